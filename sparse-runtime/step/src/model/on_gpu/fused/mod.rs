//! Batches that are one launch up to the derivatives of their loss, found in the plan of a model
//! that is not `fuse = off`.

mod layers;
mod linear;
mod lookups;
mod operands;

use self::layers::Layers;
use self::linear::Linear;
use self::lookups::Lookups;
use self::operands::CommonOperands;
use super::plan_search::{Loss, Sum, computed_for, is_operand, is_output};
use super::workspace::{Place, Wanted};
use crate::model::on_gpu::rows::KeptRows;
use crate::model::on_gpu::rows::row_results::RowResults;
use nnz_arrays::device::cuda::CudaBuffer;
use nnz_arrays::kernels::cuda::table::{GpuArray, GpuOperand};
use nnz_arrays::kernels::cuda::{CudaContext, GpuFloat};
use sparse_core::inspect::{PlanStep, PlanTable};

/// A batch as one launch: the loss of scores, and its derivatives.
#[derive(Clone, Debug)]
pub(super) struct RowsLaunch {
    /// The values that it computes, in the order of the plan.
    pub(super) values: Vec<usize>,
    /// Those of them that others may read. They are in slots of their own, since they are computed
    /// earlier than the plan has it.
    kept: Vec<usize>,
    /// What asks for each of these.
    kept_for: Vec<Wanted>,
    /// The first of these slots, which are as many.
    first_slot: usize,
    labels: Place,
    row_weights: Option<Place>,
    rows: RowScores,
}

/// How the scores of rows are computed.
#[derive(Clone, Debug)]
enum RowScores {
    /// Scores that are a sum of what a row reads of parameters, and a bias. What is kept are the
    /// scores, the loss, the derivatives by the scores, then other derivatives.
    Sum { bias: Option<Place>, terms: Terms },
    /// Any scores of values whose rows have a fixed length.
    Layers(Box<Layers>),
}

/// What scores are the sum of, beside a bias.
#[derive(Clone, Debug)]
enum Terms {
    Linear(Linear),
    Lookups(Lookups),
}

impl RowsLaunch {
    /// That of a plan whose model does not say `fuse = off`. `places` has the place of each value,
    /// and from `first_slot` on slots are free.
    pub(super) fn find(plan: &PlanTable<'_>, places: &[Place], first_slot: usize) -> Option<Self> {
        if matches!(plan.step, PlanStep::Unfused { .. }) {
            return None;
        }
        let loss = Loss::find(plan)?;
        let (rows, values, kept) = RowScores::sum(plan, places, &loss).or_else(|| {
            let found = Layers::find(plan, places, &loss)?;
            Some((RowScores::Layers(Box::new(found.layers)), found.values, found.kept))
        })?;
        let declared =
            |value: usize| matches!(places[value], Place::Input(_)).then_some(places[value]);
        let row_weights = match loss.row_weights {
            Some(value) => Some(declared(value)?),
            None => None,
        };
        let kept_for = vec![Wanted::NOTHING; kept.len()];
        let labels = declared(loss.labels)?;
        Some(RowsLaunch { values, kept, kept_for, first_slot, labels, row_weights, rows })
    }

    /// The slots of the values that are kept.
    pub(super) fn slots(&self) -> std::ops::Range<usize> {
        self.first_slot..self.first_slot + self.kept.len()
    }

    /// Gives the values that it keeps their places.
    pub(super) fn keep(&self, places: &mut [Place]) {
        for (value, slot) in self.kept.iter().zip(self.slots()) {
            places[*value] = Place::Slot(slot);
        }
    }

    /// The csr and the factors of interactions, and the position of the derivatives by the scores,
    /// which are those by the interactions.
    pub(super) fn interactions(&self) -> Option<(Place, Place, usize)> {
        let RowScores::Sum { terms: Terms::Linear(linear), .. } = &self.rows else { return None };
        let [_, _, gradient, ..] = self.kept[..] else { return None };
        Some((linear.x, linear.factors?, gradient))
    }

    /// The parameter that a row of data is multiplied with, where that and a bias are all of its
    /// scores: derivatives by these can be corrected.
    pub(super) fn corrected(&self) -> Option<Place> {
        match &self.rows {
            RowScores::Sum { terms: Terms::Linear(of), .. } if of.factors.is_none() => {
                Some(of.weights)
            }
            _ => None,
        }
    }

    /// The name of its kernel.
    pub(super) fn kernel(&self) -> &'static str {
        match self.rows {
            RowScores::Sum { terms: Terms::Linear(_), .. } => "linear_rows",
            RowScores::Sum { terms: Terms::Lookups(_), .. } => "lookup_rows",
            RowScores::Layers(_) => "layer_rows",
        }
    }

    /// Notes what asks for the values that are kept: launches beside this one that read them, each
    /// given by its value and what that is needed for.
    pub(super) fn note_readers(&mut self, plan: &PlanTable<'_>, launches: &[(usize, Wanted)]) {
        for (of, kept_for) in self.kept.iter().zip(&mut self.kept_for) {
            let others = launches.iter().filter(|(value, _)| !self.values.contains(value));
            for (_, needed) in others.filter(|(value, _)| is_operand(&plan.values[*value], *of)) {
                *kept_for = kept_for.and(*needed);
            }
            if is_output(&plan.values[*of]) {
                *kept_for = kept_for.and(Wanted::OUTPUTS);
            }
        }
    }

    /// Computes a batch, whose values that are kept are to be in `out`, and whose derivatives are
    /// corrected by those `kept` of samples. `None` where an operand is not what the kernel takes:
    /// nothing is launched then.
    pub(super) fn launch<'w, T: GpuFloat>(
        &self,
        out: &mut [GpuArray<T>],
        factor_sums: &mut CudaBuffer<f64>,
        kept: KeptRows<'w, T>,
        operand: impl Fn(Place) -> Option<GpuOperand<'w, T>>,
        wanted: Wanted,
        context: &mut CudaContext,
    ) -> Option<()> {
        let dense = |place: Option<Place>| match place {
            Some(place) => Some(Some(operand(place)?.dense()?)),
            None => Some(None),
        };
        let labels = operand(self.labels)?.labels()?;
        let row_weights = dense(self.row_weights)?;
        let (bias, terms) = match &self.rows {
            RowScores::Sum { bias, terms } => (dense(*bias)?, terms),
            RowScores::Layers(of) => {
                // What a gradient that need not be made reads, its update reads.
                let wanted = wanted.and(Wanted::SUMS);
                let is_wanted = |at: usize| self.kept_for[at].meets(wanted);
                return of.launch(out, is_wanted, operand, labels, row_weights, context);
            }
        };
        let [scores, loss, gradient, derivatives @ ..] = out else { return None };
        let rows = RowResults {
            scores: wanted.meets(self.kept_for[0]).then(|| scores.dense()),
            loss: loss.dense(),
            gradient: gradient.dense(),
        };
        let beside = CommonOperands { bias, labels, row_weights, kept };
        match terms {
            Terms::Linear(of) => {
                // A gradient that is made has sums of its own.
                let factor_sums = (!wanted.meets(Wanted::SUMS)).then_some(factor_sums);
                of.launch(rows, factor_sums, operand, beside, context)
            }
            Terms::Lookups(of) => of.launch(rows, derivatives, operand, beside, context),
        }
    }
}

impl RowScores {
    /// Scores that are a sum, in a model that is no more than that: with the values computed, and
    /// those of them that are kept.
    fn sum(
        plan: &PlanTable<'_>,
        places: &[Place],
        loss: &Loss<'_>,
    ) -> Option<(Self, Vec<usize>, Vec<usize>)> {
        let sum = Sum::find(plan, places, loss.score)?;
        let (terms, derivatives) = match plan.step {
            PlanStep::LookupRows { reads, .. } => {
                let (lookups, derivatives) = Lookups::find(plan, places, loss, &sum, reads)?;
                (Terms::Lookups(lookups), derivatives)
            }
            _ => (Terms::Linear(Linear::find(plan, places, loss, &sum)?), Vec::new()),
        };
        let kept = [&[loss.score, loss.value, loss.gradient], &derivatives[..]].concat();
        let values = computed_for(plan, &kept);
        let is_read_elsewhere = |of: &usize| {
            let mut others = (0..plan.values.len()).filter(|at| !values.contains(at));
            is_output(&plan.values[*of]) || others.any(|at| is_operand(&plan.values[at], *of))
        };
        if values.iter().any(|value| !kept.contains(value) && is_read_elsewhere(value)) {
            return None;
        }
        let bias = sum.bias.map(|bias| places[bias]);
        Some((RowScores::Sum { bias, terms }, values, kept))
    }
}
