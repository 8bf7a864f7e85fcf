//! Memory for the states of a rule, checked before the first step.

use super::error::OptimizerError;
use super::memory::states_of_row;
use super::update_kind::StateOf;
use super::updater::Updater;
use crate::error::Result;
use nnz_arrays::parameter_memory::Layout;
use nnz_device::memory;
use nnz_optim::UpdateRule;
use sparse_core::element::Float;

impl<R: UpdateRule, T: Float> Updater<R, T> {
    /// Refuses parameters for whose states the system has no memory: the step that first needs them
    /// could only end the process. States lie beside the weights, so that a row takes both. Nothing
    /// is kept or mapped.
    ///
    /// # Errors
    ///
    /// [`OptimizerError::OutOfMemory`].
    pub(super) fn check_memory(&self) -> Result<()> {
        for (index, record) in self.parameters.iter().enumerate() {
            if record.spec.gradient.is_some() && self.uses_state(index) {
                check_states::<R, T>(&record.spec.name, record.spec.n_rows, record.spec.row_size)?;
            }
        }
        Ok(())
    }
}

/// Refuses states of so many rows for which the system has no memory.
pub(super) fn check_states<R: UpdateRule, T: Float>(
    parameter: &str,
    n_rows: usize,
    row_size: usize,
) -> Result<()> {
    let n_states = states_of_row::<T::Accumulator, StateOf<R, T>>(row_size);
    let bytes = n_rows.saturating_mul(Layout::of::<T, StateOf<R, T>>(row_size, n_states).stride);
    if memory::is_there_for::<u8>(bytes) {
        return Ok(());
    }
    let parameter = parameter.to_owned();
    Err(OptimizerError::OutOfMemory { parameter, rule: R::NAME, n_rows, bytes }.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::optimizer::ParameterSpec;
    use nnz_optim::{Ftrl, Sgd};
    use sparse_core::storage::Storage;

    #[test]
    fn states_that_do_not_fit_in_memory_are_an_error_before_the_first_step() {
        let spec = |gradient| vec![ParameterSpec::new("w", 1 << 44, 1, gradient)];
        let learnt = spec(Some(Storage::RowSparse));
        let Err(error) = Updater::<Ftrl, f32>::new(Ftrl::default(), learnt.clone()) else {
            panic!("there is so much memory");
        };
        let error = error.to_string();
        assert!(error.starts_with("no memory for parameter `w` with the states of"), "{error}");
        assert!(error.contains("17592186044416 rows take 281474976710656 bytes"), "{error}");
        // Nothing is kept of a frozen parameter, nor by a rule without states.
        assert!(Updater::<Ftrl, f32>::new(Ftrl::default(), spec(None)).is_ok());
        assert!(Updater::<Sgd, f32>::new(Sgd::default(), learnt).is_ok());
    }
}
