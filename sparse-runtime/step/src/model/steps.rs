//! The totals of several steps of one call.

/// The steps that [`Model::train_rows`](super::Model::train_rows) made, each of one row.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RowSteps {
    /// How many.
    pub n_steps: usize,
    /// The sum of the losses, each of a row just before it was learnt from.
    pub loss_sum: f64,
    /// The loss of the last row.
    pub last_loss: f64,
}

impl RowSteps {
    /// Counts a step. False if its loss is infinite or NaN: it should be the last.
    #[inline(always)]
    pub fn add(&mut self, loss: f64) -> bool {
        self.n_steps += 1;
        self.loss_sum += loss;
        self.last_loss = loss;
        loss.is_finite()
    }

    /// Counts steps that follow these.
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
