//! The totals of several steps of one call.

/// The steps of a call of [`Model::train_rows`](super::Model::train_rows), each of one sample.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RowSteps {
    /// The number of steps.
    pub n_steps: usize,
    /// The sum of the losses, each of a sample just before it was learnt from.
    pub loss_sum: f64,
    /// The loss of the last sample.
    pub last_loss: f64,
}

impl RowSteps {
    /// Counts a step. False if its loss is infinite or NaN: stop then.
    #[inline(always)]
    pub fn add(&mut self, loss: f64) -> bool {
        self.n_steps += 1;
        self.loss_sum += loss;
        self.last_loss = loss;
        loss.is_finite()
    }

    /// Adds later steps.
    #[inline]
    pub fn extend(&mut self, steps: RowSteps) {
        self.n_steps += steps.n_steps;
        self.loss_sum += steps.loss_sum;
        self.last_loss = steps.last_loss;
    }

    /// Whether the last loss is infinite or NaN.
    #[inline]
    pub fn diverged(&self) -> bool {
        !self.last_loss.is_finite()
    }
}
