//! Batches that are one launch up to the derivatives of their loss, found in the plan of a model that is not `fuse = off`.

use super::program::{Place, Planned, Wanted};
use crate::device::cuda::CudaBuffer;
use crate::kernels::cuda::linear_rows::{self, LinearRows, MOST_SCORES, RowLoss, RowResults};
use crate::kernels::cuda::table::{GpuArray, GpuOperand};
use crate::kernels::cuda::{CudaContext, GpuFloat};
use sparse_core::inspect::{Computed, Extent, Operand, PlanStep, PlanTable, PlanValue, Written};
use sparse_core::ir::Attributes;
use sparse_core::operators::{Kind, find};
use sparse_core::storage::Storage;

/// A generalised linear model's batch as one launch: the product of a csr with a parameter, plus the interactions of a factorization machine and
/// a bias if there are any, the loss of these scores, and its derivatives by them.
#[derive(Clone, Debug)]
pub(super) struct LinearLaunch {
    /// The values that it computes, in the order of the plan.
    pub(super) values: Vec<usize>,
    /// Where the scores, the loss and the derivatives are kept: in slots of their own, since they are computed earlier than the plan has
    /// it.
    pub(super) slots: [usize; 3],
    /// The values that have them.
    pub(super) kept: [usize; 3],
    /// What asks for the scores.
    scores_for: Wanted,
    pub(super) x: Place,
    weights: Place,
    pub(super) factors: Option<Place>,
    bias: Option<Place>,
    labels: Place,
    row_weights: Option<Place>,
    loss: RowLoss,
}

impl LinearLaunch {
    /// That of a plan whose model is no more than that, and does not say `fuse = off`. `places` has the place of each value, and from
    /// `first_slot` on slots are free.
    pub(super) fn find(plan: &PlanTable<'_>, places: &[Place], first_slot: usize) -> Option<Self> {
        if matches!(plan.step, PlanStep::Unfused { .. }) {
            return None;
        }
        let [loss] = plan.losses else { return None };
        let loss = position(loss)?;
        let of_loss = plan.values[loss].computed?;
        let operator = find(of_loss.operator)?;
        let score = position(of_loss.operands.first()?)?;
        let gradient = plan.values.iter().position(|value| {
            value.computed.is_some_and(|how| {
                find(how.operator).is_some_and(|of| of.kind == Kind::LossGradient(operator.name))
                    && (how.operands, how.attributes) == (of_loss.operands, of_loss.attributes)
            })
        })?;
        let scores = Scores::find(plan, places, score)?;
        let declared = |operand: Option<&Operand>| {
            let place = places[position(operand?)?];
            matches!(place, Place::Input(_)).then_some(place)
        };
        let row_weights = match of_loss.operands.len() {
            2 => None,
            _ => Some(declared(of_loss.operands.get(2))?),
        };
        let few = match plan.values[score].shape {
            [_] => true,
            [_, Extent::Constant(scores)] => *scores <= MOST_SCORES,
            _ => false,
        };
        let mut values = [&scores.values[..], &[loss, gradient]].concat();
        values.sort_unstable();
        few.then_some(LinearLaunch {
            values,
            slots: [0, 1, 2].map(|next| first_slot + next),
            kept: [score, loss, gradient],
            scores_for: Wanted::NOTHING,
            x: places[scores.x],
            weights: places[scores.weights],
            factors: scores.factors.map(|factors| places[factors]),
            bias: scores.bias.map(|bias| places[bias]),
            labels: declared(of_loss.operands.get(1))?,
            row_weights,
            loss: RowLoss::new(operator, &Attributes::from(of_loss.attributes))?,
        })
    }

    /// Gives the values that it keeps their places, and finds out who asks for the scores.
    pub(super) fn keep(&self, places: &mut [Place]) {
        for (value, slot) in self.kept.into_iter().zip(self.slots) {
            places[value] = Place::Slot(slot);
        }
    }

    /// Notes what asks for the scores: launches beside this one that read them.
    pub(super) fn note_readers<T: GpuFloat>(
        &mut self,
        plan: &PlanTable<'_>,
        launches: &[Planned<T>],
    ) {
        let [score, ..] = self.kept;
        for planned in launches.iter().filter(|planned| !self.values.contains(&planned.value)) {
            if plan.values[planned.value].reads().any(|read| read as usize == score) {
                self.scores_for = self.scores_for.and(planned.needed);
            }
        }
        if matches!(plan.values[score].written, Some(Written::Output(_))) {
            self.scores_for = self.scores_for.and(Wanted::OUTPUTS);
        }
    }

    /// Computes a batch. `None` where an operand is not what the kernel takes: nothing is launched then.
    pub(super) fn launch<'w, T: GpuFloat>(
        &self,
        [scores, loss, gradient]: [&mut GpuArray<T>; 3],
        factor_sums: &mut CudaBuffer<f64>,
        operand: impl Fn(Place) -> Option<GpuOperand<'w, T>>,
        wanted: Wanted,
        context: &mut CudaContext,
    ) -> Option<()> {
        let dense = |place: Option<Place>| match place {
            Some(place) => Some(Some(operand(place)?.dense()?)),
            None => Some(None),
        };
        let out = RowResults {
            scores: wanted.meets(self.scores_for).then(|| scores.dense()),
            loss: loss.dense(),
            gradient: gradient.dense(),
            // A gradient that is made has sums of its own.
            factor_sums: (self.factors.is_some() && !wanted.meets(Wanted::SUMS))
                .then_some(factor_sums),
        };
        let weights = dense(Some(self.weights))??;
        let (factors, bias) = (dense(self.factors)?, dense(self.bias)?);
        let row_weights = dense(self.row_weights)?;
        let labels = operand(self.labels)?.labels()?;
        match operand(self.x)? {
            GpuOperand::Csr(x) => {
                let of = LinearRows { x, weights, factors, bias, labels, row_weights };
                linear_rows::compute(out, &of, self.loss, context);
            }
            GpuOperand::Unit(x) => {
                let of = LinearRows { x, weights, factors, bias, labels, row_weights };
                linear_rows::compute(out, &of, self.loss, context);
            }
            _ => return None,
        }
        Some(())
    }
}

/// What scores are the sum of, by positions in the plan. Nothing but the scores is computed from what is on the way.
struct Scores {
    /// The terms and sums, the scores among them.
    values: Vec<usize>,
    x: usize,
    weights: usize,
    factors: Option<usize>,
    bias: Option<usize>,
}

impl Scores {
    fn find(plan: &PlanTable<'_>, places: &[Place], score: usize) -> Option<Self> {
        let (mut open, mut values) = (vec![score], Vec::new());
        let (mut product, mut interaction, mut bias) = (None, None, None);
        while let Some(value) = open.pop() {
            let reads = |of: &&PlanValue<'_>| of.reads().any(|read| read as usize == value);
            let written = matches!(plan.values[value].written, Some(Written::Output(_)));
            if matches!(places[value], Place::Parameter(_)) {
                if bias.replace(value).is_some() {
                    return None;
                }
                continue;
            }
            if value != score && (written || plan.values.iter().filter(reads).count() > 1) {
                return None;
            }
            values.push(value);
            let how = plan.values[value].computed?;
            let [first, second] = how.operands else { return None };
            let (first, second) = (position(first)?, position(second)?);
            let term = match how.operator {
                "add" => {
                    open.extend([first, second]);
                    continue;
                }
                "dot" => &mut product,
                "pairwise_interaction" => &mut interaction,
                _ => return None,
            };
            let is_csr = plan.values[first].storage == Storage::Csr;
            let declared = [places[first], places[second]];
            let is = is_csr && matches!(declared, [Place::Input(_), Place::Parameter(_)]);
            if !is || !how.attributes.is_empty() || term.replace((first, second)).is_some() {
                return None;
            }
        }
        let (x, weights) = product?;
        let one_shape =
            values.iter().all(|value| plan.values[*value].shape == plan.values[score].shape);
        let one_csr = interaction.is_none_or(|(of, _)| of == x);
        let is_added = bias.is_none_or(|bias| is_added_to_rows(plan, bias, score));
        let factors = interaction.map(|(_, factors)| factors);
        (one_shape && one_csr && is_added).then_some(Scores { values, x, weights, factors, bias })
    }
}

/// Whether a value has one number, or one for each column of the scores.
fn is_added_to_rows(plan: &PlanTable<'_>, value: usize, score: usize) -> bool {
    let columns = match plan.values[score].shape {
        [_, columns] => *columns,
        _ => Extent::Constant(1),
    };
    let one = |extent: &Extent<'_>| *extent == Extent::Constant(1);
    match plan.values[value].shape {
        [] => true,
        [rows @ .., last] => rows.iter().all(one) && (one(last) || *last == columns),
    }
}

pub(super) fn applies<'a>(value: &PlanValue<'a>, operator: &str) -> Option<Computed<'a>> {
    value.computed.filter(|how| how.operator == operator)
}

pub(super) fn position(operand: &Operand) -> Option<usize> {
    match operand {
        Operand::Value(position) => Some(*position as usize),
        Operand::Shape(_) | Operand::Number(_) => None,
    }
}
