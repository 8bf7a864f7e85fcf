//! The derivatives of a batch by its scores, for rules that correct them by those of each sample.

use super::fused::RowsLaunch;
use super::plan_search::{Loss, applies, computed_for, is_output, position};
use super::workspace::{Place, Workspace};
use crate::model::on_gpu::rows::corrected;
use nnz_arrays::kernels::cuda::table::{GpuArray, GpuOperand};
use nnz_arrays::kernels::cuda::{CudaContext, GpuFloat};
use sparse_core::inspect::PlanTable;

/// How derivatives are corrected of a model that says
/// [`CORRECTS_SCORES`](crate::model::Model::CORRECTS_SCORES).
#[derive(Clone, Copy, Debug)]
pub(super) struct Corrected {
    /// The parameter whose products with the rows of data the scores are made of: it has as many
    /// columns as a row has derivatives.
    pub(super) parameter: usize,
    /// After which launch; `None` where that of the batch does it.
    after: Option<After>,
}

/// A launch of its own.
#[derive(Clone, Copy, Debug)]
struct After {
    /// The value that is corrected, once it is there: whatever is computed from it is linear.
    derivatives: usize,
    row_weights: Option<Place>,
}

impl Corrected {
    pub(super) fn find(
        plan: &PlanTable<'_>,
        places: &[Place],
        fused: Option<&RowsLaunch>,
    ) -> Option<Self> {
        if let Some(Place::Parameter(parameter)) = fused.and_then(RowsLaunch::corrected) {
            return Some(Corrected { parameter, after: None });
        }
        let loss = Loss::find(plan)?;
        let mut products = computed_for(plan, &[loss.score])
            .into_iter()
            .filter_map(|value| applies(&plan.values[value], "dot"));
        let Place::Parameter(parameter) = places[position(products.next()?.operands.get(1)?)?]
        else {
            return None;
        };
        let row_weights = loss.row_weights.map(|value| places[value]);
        let after = Some(After { derivatives: loss.gradient, row_weights });
        let is_read = is_output(&plan.values[loss.gradient]);
        (!is_read && products.next().is_none()).then_some(Corrected { parameter, after })
    }

    /// Whether a value is corrected by a launch of its own.
    pub(super) fn follows(&self, value: usize) -> bool {
        self.after.is_some_and(|after| after.derivatives == value)
    }

    /// Whether some value is.
    pub(super) fn is_by_itself(&self) -> bool {
        self.after.is_some()
    }

    /// Corrects derivatives that are there, by those that are kept of the samples of the batch.
    /// `None` where these are not of such rows.
    pub(super) fn correct<T: GpuFloat>(
        &self,
        derivatives: &mut GpuArray<T>,
        workspace: &Workspace<T>,
        context: &mut CudaContext,
    ) -> Option<()> {
        let row_weights = match self.after?.row_weights {
            Some(place) => Some(workspace.operand(place).and_then(GpuOperand::dense)?),
            None => None,
        };
        let kept = workspace.samples.of_batch();
        corrected::correct(derivatives.dense(), row_weights, kept, context)
    }
}
