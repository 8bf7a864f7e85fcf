//! Rows of a batch that go through dense layers, wide & deep and its kin, or are another function
//! of what is read than its sum: what the plan has found.
//!
//! A row of a value is an array whose length the source has. All that is computed of declared
//! values row by row, up to the loss and back, is one launch; what has another form is launched by
//! itself, and reads rows that the one launch writes for it.

mod rows;

use self::rows::{ArrayPlaces, RowValues};
use crate::model::on_gpu::plan_search::{Loss, computed_for, is_operand, is_output};
use crate::model::on_gpu::rows::layer_rows::{
    self, Gradient, LayerOperands, LayerResults, LayerRows, Names,
};
use crate::model::on_gpu::rows::linear_rows::RowLoss;
use crate::model::on_gpu::workspace::Place;
use nnz_arrays::device::cuda::Cuda;
use nnz_arrays::formats::{DenseView, IdsView, Shape};
use nnz_arrays::kernels::cuda::table::{GpuArray, GpuOperand};
use nnz_arrays::kernels::cuda::{CudaContext, GpuFloat, Labels};
use sparse_core::inspect::{Extent, Part, PlanTable};
use sparse_core::ir::Attributes;

/// The launch, and what it reads.
#[derive(Clone, Debug)]
pub(super) struct Layers {
    kernel: LayerRows,
    places: ArrayPlaces,
    /// The ranks of the rows that are kept.
    ranks: Vec<usize>,
    /// The shapes of the gradients of dense parameters.
    shapes: Vec<Shape>,
}

/// The launch, with the positions of what it computes.
pub(super) struct FoundLayers {
    pub(super) layers: Layers,
    /// All of them, in the order of the plan.
    pub(super) values: Vec<usize>,
    /// Those that others may read: the loss, rows, and gradients of dense parameters.
    pub(super) kept: Vec<usize>,
}

impl Layers {
    pub(super) fn find(
        plan: &PlanTable<'_>,
        places: &[Place],
        loss: &Loss<'_>,
    ) -> Option<FoundLayers> {
        let of_loss = RowLoss::new(loss.operator, &Attributes::from(loss.computed.attributes))?;
        let mut gradients: Vec<usize> = Vec::new();
        for gradient in plan.values.iter().filter_map(|value| value.gradient) {
            if !gradients.contains(&(gradient as usize)) {
                gradients.push(gradient as usize);
            }
        }
        let wanted = [&[loss.value, loss.gradient], &gradients[..]].concat();
        let mut rows = RowValues::new(plan, places, batch(plan, loss.score)?);
        for at in computed_for(plan, &wanted) {
            // Of what has another form nothing is computed here.
            let _ = rows.add(at, loss);
        }
        rows.found[loss.gradient]?;
        let is_computed = |at: &usize| plan.values[*at].computed.is_some();
        let of_rows = (0..plan.values.len()).filter(|at| rows.found[*at].is_some());
        let mut values: Vec<_> = of_rows.filter(is_computed).chain([loss.value]).collect();
        let mut summed = Vec::new();
        for gradient in gradients {
            let of = plan.values.iter().position(|of| of.gradient == Some(gradient as u32))?;
            let mut terms = Vec::new();
            let mut sums = Vec::new();
            if rows.sums(of, gradient, 0, &mut terms, &mut sums).is_some() {
                values.extend(terms);
                let shape = Shape::try_new(&rows.extents(of)?).ok()?;
                rows.chain.gradients.push(Gradient { size: shape.size(), sums });
                summed.push((gradient, shape));
            }
        }
        values.sort_unstable();
        let is_read = |of: &usize| {
            let of_others = (0..plan.values.len()).filter(|at| values.binary_search(at).is_err());
            let mut launched = of_others.filter(|at| plan.values[*at].part != Part::Unused);
            is_output(&plan.values[*of]) || launched.any(|at| is_operand(&plan.values[at], *of))
        };
        let kept: Vec<_> = values
            .iter()
            .copied()
            .filter(|at| *at != loss.value && rows.found[*at].is_some() && is_read(at))
            .collect();
        let mut chain = rows.chain;
        chain.kept = kept.iter().filter_map(|at| rows.found[*at]).collect();
        let layers = Layers {
            kernel: LayerRows::new(chain, of_loss, plan.element)?,
            places: rows.arrays,
            ranks: kept.iter().map(|at| plan.values[*at].shape.len()).collect(),
            shapes: summed.iter().map(|(_, shape)| *shape).collect(),
        };
        let summed = summed.into_iter().map(|(gradient, _)| gradient);
        let kept = std::iter::once(loss.value).chain(kept).chain(summed).collect();
        Some(FoundLayers { layers, values, kept })
    }

    /// Computes a batch; of the rows that are kept those that are wanted.
    pub(super) fn launch<'w, T: GpuFloat>(
        &self,
        out: &mut [GpuArray<T>],
        is_wanted: impl Fn(usize) -> bool,
        operand: impl Fn(Place) -> Option<GpuOperand<'w, T>>,
        labels: Labels<'w, T>,
        row_weights: Option<DenseView<'w, T, Cuda>>,
        context: &mut CudaContext,
    ) -> Option<()> {
        let (loss, rest) = out.split_first_mut()?;
        let (rows, gradients) = rest.split_at_mut_checked(self.ranks.len())?;
        let rows = rows.iter_mut().zip(&self.ranks).enumerate();
        let kept = rows.map(|(at, (row, rank))| {
            // The loss is before them.
            (is_wanted(at + 1).then(|| row.dense()), *rank)
        });
        let gradients = gradients.iter_mut().zip(&self.shapes);
        let out = LayerResults {
            loss: loss.dense(),
            kept: kept.collect(),
            gradients: gradients.map(|(gradient, shape)| (gradient.dense(), *shape)).collect(),
        };
        let dense = |places: &[Place]| {
            places.iter().map(|place| operand(*place)?.dense()).collect::<Option<Vec<_>>>()
        };
        let ids = |place: &Place| -> Option<IdsView<'w, Cuda>> {
            match operand(*place)? {
                GpuOperand::Ids(ids) => Some(ids),
                _ => None,
            }
        };
        let names = |place: &Place| match operand(*place)? {
            GpuOperand::Csr(x) => Some(Names::Csr(x)),
            GpuOperand::Unit(x) => Some(Names::Unit(x)),
            _ => None,
        };
        let of = LayerOperands {
            matrices: dense(&self.places.matrices)?,
            tables: dense(&self.places.tables)?,
            csrs: self.places.csrs.iter().map(names).collect::<Option<_>>()?,
            ids: self.places.ids.iter().map(ids).collect::<Option<_>>()?,
            inputs: dense(&self.places.inputs)?,
            labels,
            row_weights,
        };
        layer_rows::compute(out, &of, &self.kernel, context)
    }
}

/// The extent that batches have, which is not one of parameters.
fn batch<'p>(plan: &PlanTable<'p>, score: usize) -> Option<Extent<'p>> {
    let batch = *plan.values[score].shape.first()?;
    let mut fixed = plan.values.iter().filter(|value| {
        matches!(value.part, Part::Parameter | Part::Frozen | Part::State)
            && value.shape.contains(&batch)
    });
    (matches!(batch, Extent::Named(_)) && fixed.next().is_none()).then_some(batch)
}
