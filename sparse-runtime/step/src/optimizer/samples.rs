//! Derivatives kept for every sample, for rules that correct gradients.

use super::error::OptimizerError;
use sparse_core::element::Float;

/// The derivatives of each sample's loss by its scores, as they were once: all that is needed of an
/// old gradient where the gradient of a sample is its features times such a number.
///
/// A fused step lends it to its function of a row, which [corrects](Self::correct) the derivatives
/// of a row of a batch before anything is made of them. Memory: `columns` numbers a sample.
#[derive(Clone, Debug, Default)]
pub struct Samples<T> {
    usage: Usage,
    /// The number of each row of the batch among the samples.
    ids: Vec<usize>,
    /// `columns` a sample, sample by sample; nothing before the first.
    derivatives: Vec<T>,
    n_samples: usize,
    /// Counts how often they were begun anew: copies elsewhere are of one of these.
    version: u64,
    /// The derivatives that were kept of each sample, and the others of a row that was corrected.
    other: Option<(usize, usize)>,
}

/// What becomes of a derivative and the old one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Usage {
    /// Nothing is kept.
    #[default]
    Nothing = 0,
    /// It is kept, and stays as it is.
    Keep = 1,
    /// The old one is taken from it.
    Subtract = 2,
    /// The old one is taken from it, and it is kept.
    Exchange = 3,
}

impl<T: Float> Samples<T> {
    /// For a row of the batch: `derivatives` are those of the row's loss by its scores. O(columns);
    /// the first call allocates.
    ///
    /// Rows have as many derivatives each; where they are not as many as were kept so far, the next
    /// batch is refused, by [`OptimizerError::OtherDerivatives`].
    ///
    /// # Panics
    ///
    /// If the batch that the trainer has prepared the step for has no such row. Nothing is kept,
    /// and no row is asked for, outside of a training step by a rule that corrects gradients.
    #[inline]
    pub fn correct(&mut self, row: usize, derivatives: &mut [T]) {
        if self.usage == Usage::Nothing {
            return;
        }
        let columns = derivatives.len();
        if self.derivatives.len() != self.n_samples * columns {
            self.allocate(columns);
        }
        assert!(row < self.ids.len(), "row {row} of a batch of {} samples", self.ids.len());
        let first = self.ids[row] * columns;
        let kept = &mut self.derivatives[first..first + columns];
        match self.usage {
            Usage::Nothing => {}
            Usage::Keep => kept.copy_from_slice(derivatives),
            Usage::Subtract => {
                derivatives.iter_mut().zip(kept).for_each(|(new, old)| *new -= *old);
            }
            Usage::Exchange => {
                for (new, old) in derivatives.iter_mut().zip(kept) {
                    let difference = *new - *old;
                    *old = std::mem::replace(new, difference);
                }
            }
        }
    }

    #[cold]
    fn allocate(&mut self, columns: usize) {
        if !self.derivatives.is_empty() {
            self.other = Some((self.derivatives.len() / self.n_samples.max(1), columns));
        }
        self.derivatives.clear();
        self.derivatives.resize(self.n_samples * columns, T::zero());
    }

    /// Forgets what was kept, and makes ready for so many samples. All derivatives are 0.
    pub fn reset(&mut self, n_samples: usize) {
        self.derivatives.clear();
        self.n_samples = n_samples;
        self.version += 1;
        self.other = None;
    }

    /// What is kept: as many numbers for each sample, or nothing yet.
    pub(super) fn derivatives(&self) -> &[T] {
        &self.derivatives
    }

    /// Goes on from what was kept.
    pub fn restore(&mut self, n_samples: usize, derivatives: Vec<T>) {
        let version = self.version + 1;
        *self = Samples { n_samples, derivatives, version, ..Samples::default() };
    }

    /// What is done with the derivatives of the next batch.
    #[cfg(feature = "cuda")]
    pub(super) fn usage(&self) -> Usage {
        self.usage
    }

    /// The number of each row of the next batch.
    #[cfg(feature = "cuda")]
    pub(super) fn ids(&self) -> &[usize] {
        &self.ids
    }

    /// Which of those that were begun anew they are.
    #[cfg(feature = "cuda")]
    pub(super) fn version(&self) -> u64 {
        self.version
    }

    /// Takes back what was kept elsewhere, of this version.
    #[cfg(feature = "cuda")]
    pub(super) fn bring(&mut self, derivatives: Vec<T>) {
        self.derivatives = derivatives;
    }

    /// How many there are.
    pub(super) fn n_samples(&self) -> usize {
        self.n_samples
    }

    /// Which samples the rows of the next batch are, as `append_ids` says, and what is done with
    /// them.
    ///
    /// # Errors
    ///
    /// [`OptimizerError::NoSuchSample`] for the first that there is none of;
    /// [`OptimizerError::OtherDerivatives`] after a row that had others than were kept.
    pub fn name(
        &mut self,
        usage: Usage,
        append_ids: impl FnOnce(&mut Vec<usize>),
    ) -> Result<(), OptimizerError> {
        if let Some((kept, found)) = self.other {
            return Err(OptimizerError::OtherDerivatives { kept, found });
        }
        self.usage = usage;
        self.ids.clear();
        append_ids(&mut self.ids);
        let n_samples = self.n_samples;
        // The highest bit of what is left of the last sample's number, or of a number itself, tells
        // that there is no such sample: without an end on the way, and without comparisons, of
        // which there are no vectors everywhere.
        let last = n_samples.wrapping_sub(1);
        let bits = self.ids.iter().fold(last, |bits, id| bits | *id | last.wrapping_sub(*id));
        if bits.leading_zeros() > 0 {
            return Ok(());
        }
        let beyond = self.ids.iter().find(|id| **id >= n_samples);
        beyond.map_or(Ok(()), |id| Err(OptimizerError::NoSuchSample { id: *id, n_samples }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_that_there_are_none_of_are_named() {
        let name = |n_samples: usize, ids: &[usize]| {
            let mut samples = Samples::<f32>::default();
            samples.reset(n_samples);
            samples.name(Usage::Keep, |to| to.extend_from_slice(ids))
        };
        assert_eq!(name(0, &[]), Ok(()));
        assert_eq!(name(5, &[4, 0, 3]), Ok(()));
        let half = usize::MAX / 2;
        for id in [5, 6, half, half + 1, half + 6, usize::MAX - 1, usize::MAX] {
            let none = |n_samples| Err(OptimizerError::NoSuchSample { id, n_samples });
            assert_eq!(name(5, &[4, id, 0]), none(5));
            assert_eq!(name(0, &[id]), none(0));
        }
    }

    /// A batch of samples 2 and 0, of three.
    fn named() -> Samples<f32> {
        let mut samples = Samples::default();
        samples.reset(3);
        samples.name(Usage::Exchange, |to| to.extend([2, 0])).unwrap();
        samples
    }

    #[test]
    fn rows_with_other_derivatives_than_were_kept_are_an_error() {
        let mut samples = named();
        samples.correct(0, &mut [1.0]);
        samples.correct(1, &mut [2.0]);
        assert_eq!(samples.name(Usage::Exchange, |to| to.push(1)), Ok(()));
        samples.correct(0, &mut [1.0, 2.0]);
        let refusal = samples.name(Usage::Exchange, |to| to.push(1));
        assert_eq!(refusal, Err(OptimizerError::OtherDerivatives { kept: 1, found: 2 }));
        samples.reset(3);
        assert_eq!(samples.name(Usage::Exchange, |to| to.push(1)), Ok(()));
    }

    #[test]
    #[should_panic(expected = "row 2 of a batch of 2 samples")]
    fn a_row_that_the_batch_does_not_have_is_said_by_number() {
        named().correct(2, &mut [1.0]);
    }
}
