//! Scores of a generalised linear model: the product of a csr with a parameter, plus the
//! interactions of a factorization machine if there are any.

use super::operands::CommonOperands;
use crate::model::on_gpu::plan_search::{Loss, Sum, position};
use crate::model::on_gpu::rows::linear_rows::{
    self, LinearResults, LinearRows, MOST_SCORES, RowLoss,
};
use crate::model::on_gpu::rows::row_results::RowResults;
use crate::model::on_gpu::workspace::Place;
use nnz_arrays::device::cuda::CudaBuffer;
use nnz_arrays::kernels::cuda::table::GpuOperand;
use nnz_arrays::kernels::cuda::{CudaContext, GpuFloat};
use sparse_core::inspect::{Extent, PlanTable};
use sparse_core::ir::Attributes;
use sparse_core::storage::Storage;

/// The terms of such scores.
#[derive(Clone, Debug)]
pub(super) struct Linear {
    pub(super) x: Place,
    pub(super) weights: Place,
    pub(super) factors: Option<Place>,
    loss: RowLoss,
}

impl Linear {
    pub(super) fn find(
        plan: &PlanTable<'_>,
        places: &[Place],
        loss: &Loss<'_>,
        sum: &Sum,
    ) -> Option<Self> {
        let (mut product, mut interaction) = (None, None);
        for &value in &sum.terms {
            let how = plan.values[value].computed?;
            let [first, second] = how.operands else { return None };
            let (first, second) = (position(first)?, position(second)?);
            let term = match how.operator {
                "dot" => &mut product,
                "pairwise_interaction" => &mut interaction,
                _ => return None,
            };
            let is_csr = plan.values[first].storage == Storage::Csr;
            let declared = (places[first], places[second]);
            let is = is_csr && matches!(declared, (Place::Input(_), Place::Parameter(_)));
            if !is || !how.attributes.is_empty() || term.replace(declared).is_some() {
                return None;
            }
        }
        let (x, weights) = product?;
        let few = match plan.values[loss.score].shape {
            [_] => true,
            [_, Extent::Constant(scores)] => *scores <= MOST_SCORES,
            _ => false,
        };
        let one_csr = interaction.is_none_or(|(of, _)| of == x);
        (few && one_csr && sum.constant == 0.0).then_some(Linear {
            x,
            weights,
            factors: interaction.map(|(_, factors)| factors),
            loss: RowLoss::new(loss.operator, &Attributes::from(loss.computed.attributes))?,
        })
    }

    /// Computes a batch, and for the update of factors the sums that their gradient reads.
    pub(super) fn launch<'w, T: GpuFloat>(
        &self,
        rows: RowResults<'_, T>,
        factor_sums: Option<&mut CudaBuffer<f64>>,
        operand: impl Fn(Place) -> Option<GpuOperand<'w, T>>,
        CommonOperands { bias, labels, row_weights, kept }: CommonOperands<'w, T>,
        context: &mut CudaContext,
    ) -> Option<()> {
        let weights = operand(self.weights)?.dense()?;
        let factors = match self.factors {
            Some(factors) => Some(operand(factors)?.dense()?),
            None => None,
        };
        let is_of_batch = |n_rows: usize| kept.are_of(n_rows, weights.shape().row_size());
        let out = LinearResults { rows, factor_sums: factor_sums.filter(|_| factors.is_some()) };
        match operand(self.x)? {
            GpuOperand::Csr(x) if is_of_batch(x.n_rows()) => {
                let of = LinearRows { x, weights, factors, bias, labels, row_weights, kept };
                linear_rows::compute(out, &of, self.loss, context);
            }
            GpuOperand::Unit(x) if is_of_batch(x.n_rows()) => {
                let of = LinearRows { x, weights, factors, bias, labels, row_weights, kept };
                linear_rows::compute(out, &of, self.loss, context);
            }
            _ => return None,
        }
        Some(())
    }
}
