//! How far recorded trajectories are followed.

use crate::golden::device::Device;

/// Epochs of recorded trajectories.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Epochs {
    /// Those followed.
    pub(crate) followed: usize,
    /// Those that a device [does not make](Device::most_steps), because they end later.
    pub(crate) left_out: usize,
}

impl Epochs {
    /// The first epochs of a recorded trajectory, which end within so many steps.
    pub(crate) fn within(most_steps: usize, recorded: usize, batches: usize) -> Self {
        let followed = recorded.min(most_steps / batches.max(1));
        Epochs { followed, left_out: recorded - followed }
    }

    /// Adds those of another trajectory.
    pub(crate) fn add(&mut self, other: Epochs) {
        self.followed += other.followed;
        self.left_out += other.left_out;
    }

    /// How many there were, and for what the others are left out.
    pub(crate) fn describe(&self, on: &impl Device) -> String {
        match self.left_out {
            0 => format!("{} epochs followed", self.followed),
            left_out => format!(
                "{} epochs followed, {left_out} left out: they do not end within {} steps",
                self.followed,
                on.most_steps()
            ),
        }
    }
}
