//! The numbers of variance reduction, beside the mean gradient in the states of weights.

use crate::optimizer::samples::Samples;
use nnz_arrays::parameter_memory::Table;
use nnz_optim::Correction;
use sparse_core::element::Float;

/// What an updater keeps of a rule that corrects gradients, beside the mean in the states of
/// weights.
#[derive(Clone, Debug)]
pub(crate) struct Reduction<T: Float> {
    pub(in crate::optimizer) correction: Correction,
    /// The next steps get what they are told to.
    pub(in crate::optimizer) is_prepared: bool,
    /// The mean gradient is that of some old gradients.
    pub(in crate::optimizer) has_mean: bool,
    /// Of which data they are, as its fingerprint says; `None` where that is not known, of what was
    /// restored.
    pub(in crate::optimizer) of_data: Option<Option<u64>>,
    pub(in crate::optimizer) samples: Samples<T::Accumulator>,
    /// All parameters at the snapshot, where old gradients are computed anew.
    pub(in crate::optimizer) snapshot: Vec<Table<T>>,
}

impl<T: Float> Default for Reduction<T> {
    fn default() -> Self {
        Reduction {
            correction: Correction::Apply { share: 0.0 },
            is_prepared: false,
            has_mean: false,
            of_data: None,
            samples: Samples::default(),
            snapshot: Vec::new(),
        }
    }
}
