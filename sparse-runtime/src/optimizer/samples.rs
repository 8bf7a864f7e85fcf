//! What is kept for every sample by rules that correct gradients.

use sparse_core::element::Float;

/// The derivatives of each sample's loss by its scores, as they were once: all that is needed of an old gradient where the gradient of a
/// sample is its features times such a number.
///
/// A fused step lends it to its function of a row, which [corrects](Self::correct) the derivatives of a row of a batch before anything is made of
/// them. Memory: `columns` numbers a sample.
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
}

/// What becomes of a derivative and the old one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Usage {
    /// Nothing is kept.
    #[default]
    Nothing,
    /// It is kept, and stays as it is.
    Keep,
    /// The old one is taken from it.
    Subtract,
    /// The old one is taken from it, and it is kept.
    Exchange,
}

impl<T: Float> Samples<T> {
    /// For a row of the batch: `derivatives` are those of the row's loss by its scores. O(columns); the first call allocates.
    #[inline]
    pub fn correct(&mut self, row: usize, derivatives: &mut [T]) {
        if self.usage == Usage::Nothing {
            return;
        }
        let columns = derivatives.len();
        if self.derivatives.len() != self.n_samples * columns {
            self.allocate(columns);
        }
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
        self.derivatives.clear();
        self.derivatives.resize(self.n_samples * columns, T::zero());
    }

    /// Forgets what was kept, and makes ready for so many samples. All derivatives are 0.
    pub(super) fn reset(&mut self, n_samples: usize) {
        self.derivatives.clear();
        self.n_samples = n_samples;
        self.version += 1;
    }

    /// What is kept: as many numbers for each sample, or nothing yet.
    pub(super) fn derivatives(&self) -> &[T] {
        &self.derivatives
    }

    /// Goes on from what was kept.
    pub(super) fn restore(&mut self, n_samples: usize, derivatives: Vec<T>) {
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

    /// Which samples the rows of the next batch are, as `append_ids` says, and what is done with them. The number of the first that there is
    /// none of.
    pub(super) fn name(
        &mut self,
        usage: Usage,
        append_ids: impl FnOnce(&mut Vec<usize>),
    ) -> Result<(), usize> {
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
        self.ids.iter().find(|id| **id >= n_samples).map_or(Ok(()), |id| Err(*id))
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
            assert_eq!(name(5, &[4, id, 0]), Err(id));
            assert_eq!(name(0, &[id]), Err(id));
        }
    }
}
