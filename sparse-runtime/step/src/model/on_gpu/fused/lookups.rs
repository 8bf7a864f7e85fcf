//! Scores of table rows that ids name, as in matrix factorization: found in the plan.

use super::operands::CommonOperands;
use crate::model::on_gpu::plan_search::{Loss, Sum, applies, position};
use crate::model::on_gpu::rows::lookup_rows::{self, Inner, LookupResults, LookupRows, NamedRows};
use crate::model::on_gpu::rows::row_results::RowResults;
use crate::model::on_gpu::workspace::Place;
use nnz_arrays::formats::Shape;
use nnz_arrays::kernels::cuda::table::{GpuArray, GpuOperand};
use nnz_arrays::kernels::cuda::{CudaContext, GpuFloat, Labels, LossFunction};
use sparse_core::inspect::{PlanLookup, PlanLookupRead, PlanNamedRow, PlanTable};
use sparse_core::ir::Attributes;

/// The terms of such scores.
#[derive(Clone, Debug)]
pub(super) struct Lookups {
    inners: Vec<([Named; 2], bool)>,
    elements: Vec<Named>,
    /// What is added to each score.
    constant: f64,
    /// The rank of the scores, which are one number a row.
    rank: usize,
    loss: LossFunction,
}

/// A table, and the ids of its rows.
#[derive(Clone, Copy, Debug)]
struct Named {
    table: Place,
    ids: Place,
}

impl Lookups {
    /// With the positions of the derivatives by the rows of inner products, two for each. `None`
    /// where the scores are another function of what is read than its sum.
    pub(super) fn find(
        plan: &PlanTable<'_>,
        places: &[Place],
        loss: &Loss<'_>,
        sum: &Sum,
        reads: &[PlanLookup],
    ) -> Option<(Self, Vec<usize>)> {
        let is_term = |of: &PlanLookup| sum.terms.contains(&(of.value as usize));
        if sum.terms.len() != reads.len() || !reads.iter().all(is_term) {
            return None;
        }
        let named = |row: PlanNamedRow| Named {
            table: places[row.table as usize],
            ids: places[row.ids as usize],
        };
        let (mut inners, mut elements, mut derivatives) = (Vec::new(), Vec::new(), Vec::new());
        for lookup in reads {
            if lookup.gradient as usize != loss.gradient {
                return None;
            }
            match lookup.read {
                PlanLookupRead::Element(row) => elements.push(named(row)),
                PlanLookupRead::Inner { left, right, mean } => {
                    inners.push(([named(left), named(right)], mean));
                    for row in lookup.rows() {
                        derivatives.push(derivative(plan, row.table)?);
                    }
                }
            }
        }
        let attributes = Attributes::from(loss.computed.attributes);
        let rank = plan.values[loss.score].shape.len();
        lookup_rows::are_few(inners.len(), elements.len()).then_some(())?;
        let loss = LossFunction::new(loss.operator, &attributes)?;
        let constant = sum.constant;
        Some((Lookups { inners, elements, constant, rank, loss }, derivatives))
    }

    /// Computes a batch.
    pub(super) fn launch<'w, T: GpuFloat>(
        &self,
        rows: RowResults<'_, T>,
        derivatives: &mut [GpuArray<T>],
        operand: impl Fn(Place) -> Option<GpuOperand<'w, T>>,
        CommonOperands { bias, labels, row_weights, .. }: CommonOperands<'w, T>,
        context: &mut CudaContext,
    ) -> Option<()> {
        let Labels::Dense(labels) = labels else { return None };
        let n_rows = labels.shape().n_rows();
        // The kernel relies on these sizes.
        let named = |of: &Named, width: usize| {
            let GpuOperand::Ids(ids) = operand(of.ids)? else { return None };
            let table = operand(of.table)?.dense()?;
            let fits = (ids.len(), table.shape().row_size()) == (n_rows, width);
            fits.then_some(NamedRows { table, ids })
        };
        let width = match &self.inners[..] {
            [([left, _], _), ..] => operand(left.table)?.dense()?.shape().row_size(),
            [] => 0,
        };
        let inner = |([left, right], mean): &([Named; 2], bool)| {
            Some(Inner { sides: [named(left, width)?, named(right, width)?], mean: *mean })
        };
        let inners = self.inners.iter().map(inner).collect::<Option<Vec<_>>>()?;
        let elements = self.elements.iter().map(|of| named(of, 1)).collect::<Option<Vec<_>>>()?;
        let (inners, elements, constant) = (&inners[..], &elements[..], self.constant);
        let of = LookupRows { inners, elements, bias, constant, labels, row_weights };
        let shape = if self.rank == 1 { Shape::from([n_rows]) } else { [n_rows, 1].into() };
        let derivatives = derivatives.iter_mut().map(GpuArray::dense).collect();
        lookup_rows::compute(LookupResults { rows, derivatives }, &of, shape, self.loss, context);
        Some(())
    }
}

/// The derivatives by the rows of a table that the batch names: what its gradient adds up.
fn derivative(plan: &PlanTable<'_>, table: u32) -> Option<usize> {
    let gradient = plan.values[table as usize].gradient?;
    position(applies(&plan.values[gradient as usize], "take_gradient")?.operands.first()?)
}
