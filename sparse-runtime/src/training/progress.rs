//! How a run of training shows that it is alive.

use super::report::EpochReport;
#[cfg(feature = "progress")]
use indicatif::{ProgressBar, ProgressStyle};
#[cfg(feature = "progress")]
use std::io::IsTerminal;
use std::io::{self, Write};

/// What a run of training prints, always to the error stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Progress {
    /// A bar where the error stream is a terminal, lines where it is not.
    #[default]
    Auto,
    /// A bar within the epoch and a line after it. Needs the feature `progress`; lines without it.
    Bar,
    /// A line an epoch.
    Lines,
    /// Nothing.
    Silent,
}

/// Batches between two looks at the bar: a step may take 50 ns, a look takes longer.
#[cfg(feature = "progress")]
const STRIDE: u64 = 1024;

/// Progress at work.
pub(super) struct Reporter {
    lines: bool,
    #[cfg(feature = "progress")]
    bar: Option<ProgressBar>,
    /// Batches since the bar was last moved, or `u64::MAX` where there is none.
    #[cfg(feature = "progress")]
    waiting: u64,
}

impl Reporter {
    pub(super) fn new(progress: Progress) -> Self {
        #[cfg(feature = "progress")]
        let is_bar = match progress {
            Progress::Auto => io::stderr().is_terminal(),
            Progress::Bar => true,
            Progress::Lines | Progress::Silent => false,
        };
        Reporter {
            lines: progress != Progress::Silent,
            #[cfg(feature = "progress")]
            bar: is_bar.then(bar),
            #[cfg(feature = "progress")]
            waiting: if is_bar { 0 } else { u64::MAX },
        }
    }

    /// Before an epoch of `n_batches`, where that is known.
    pub(super) fn start_epoch(&mut self, epoch: u64, epochs: u64, n_batches: Option<u64>) {
        #[cfg(feature = "progress")]
        if let Some(bar) = &self.bar {
            bar.reset();
            match n_batches {
                Some(n_batches) => bar.set_length(n_batches),
                None => bar.unset_length(),
            }
            bar.set_message(format!("epoch {}/{epochs}", epoch + 1));
        }
        #[cfg(not(feature = "progress"))]
        let _ = (epoch, epochs, n_batches);
    }

    /// After some batches.
    #[inline(always)]
    pub(super) fn advance(&mut self, n_batches: u64) {
        #[cfg(feature = "progress")]
        if self.waiting != u64::MAX {
            self.waiting += n_batches;
            if self.waiting >= STRIDE {
                self.move_bar();
            }
        }
        #[cfg(not(feature = "progress"))]
        let _ = n_batches;
    }

    #[cfg(feature = "progress")]
    #[cold]
    fn move_bar(&mut self) {
        if let Some(bar) = &self.bar {
            bar.inc(self.waiting);
        }
        self.waiting = 0;
    }

    /// After an epoch.
    pub(super) fn end_epoch(&mut self, report: &EpochReport) {
        if !self.lines {
            return;
        }
        #[cfg(feature = "progress")]
        if let Some(bar) = &self.bar {
            self.waiting = 0;
            bar.suspend(|| print(report));
            return;
        }
        print(report);
    }
}

#[cfg(feature = "progress")]
impl Drop for Reporter {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

#[cfg(feature = "progress")]
fn bar() -> ProgressBar {
    let template = "{msg} {wide_bar} {pos}/{len} batches, {eta} left";
    // The template is checked by a test; a bar of the default style is no reason to stop training.
    let style = ProgressStyle::with_template(template);
    ProgressBar::new(0).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

/// Whoever closed the stream does not want to be told.
fn print(report: &EpochReport) {
    let _ = writeln!(io::stderr(), "{report}");
}
