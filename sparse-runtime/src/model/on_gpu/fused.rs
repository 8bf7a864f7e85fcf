//! What of a step has kernels of its own: found in the plan, where it is one of the families that are one loop on the host.

use super::program::{Place, Planned, Wanted};
use crate::kernels::cuda::linear_rows::{self, LinearRows, MOST_SCORES, RowLoss, RowResults};
use crate::kernels::cuda::table::{GpuArray, GpuOperand};
use crate::kernels::cuda::{CudaContext, GpuFloat};
use sparse_core::inspect::{Computed, Extent, Operand, PlanStep, PlanTable, PlanValue, Written};
use sparse_core::ir::Attributes;
use sparse_core::operators::{Kind, find};
use sparse_core::storage::Storage;

/// A generalised linear model's batch as one launch: the product of a csr with a parameter, a bias if there is one, the loss of these
/// scores, and its derivatives by them.
#[derive(Clone, Debug)]
pub(super) struct LinearLaunch {
    /// The values that it computes, in the order of the plan.
    pub(super) values: Vec<usize>,
    /// Where the scores, the loss and the derivatives are kept: in slots of their own, since they are computed earlier than the plan has
    /// it.
    pub(super) slots: [usize; 3],
    /// The values that have them.
    kept: [usize; 3],
    /// What asks for the scores.
    scores_for: Wanted,
    x: Place,
    weights: Place,
    bias: Option<Place>,
    labels: Place,
    row_weights: Option<Place>,
    loss: RowLoss,
}

impl LinearLaunch {
    /// That of a plan whose step is one loop over the rows of a csr, where it is no more than that. `places` has the place of each value, and
    /// `slot` gives a new one.
    pub(super) fn find(plan: &PlanTable<'_>, places: &[Place], first_slot: usize) -> Option<Self> {
        let PlanStep::LinearRows { input, weight, factors: None, .. } = plan.step else {
            return None;
        };
        let product = plan.values.iter().position(|value| {
            let reads = [Operand::Value(input), Operand::Value(weight)];
            applies(value, "dot").is_some_and(|how| {
                how.operands == reads
                    && how.attributes.is_empty()
                    && value.storage == Storage::Dense
            })
        })?;
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
        let bias = match score == product {
            true => None,
            false => Some(bias(plan, product, score)?),
        };
        let declared = |operand: Option<&Operand>| {
            let place = places[position(operand?)?];
            matches!(place, Place::Input(_)).then_some(place)
        };
        let row_weights = match of_loss.operands.len() {
            2 => None,
            _ => Some(declared(of_loss.operands.get(2))?),
        };
        let few = match plan.values[product].shape {
            [_] => true,
            [_, Extent::Constant(scores)] => *scores <= MOST_SCORES,
            _ => false,
        };
        let mut values = vec![product, score, loss, gradient];
        values.dedup();
        few.then_some(LinearLaunch {
            values,
            slots: [0, 1, 2].map(|next| first_slot + next),
            kept: [score, loss, gradient],
            scores_for: Wanted::NOTHING,
            x: places[input as usize],
            weights: places[weight as usize],
            bias: bias.map(|bias| places[bias]),
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
        };
        let weights = dense(Some(self.weights))??;
        let (bias, row_weights) = (dense(self.bias)?, dense(self.row_weights)?);
        let labels = operand(self.labels)?.labels()?;
        match operand(self.x)? {
            GpuOperand::Csr(x) => {
                let of = LinearRows { x, weights, bias, labels, row_weights };
                linear_rows::compute(out, &of, self.loss, context);
            }
            GpuOperand::Unit(x) => {
                let of = LinearRows { x, weights, bias, labels, row_weights };
                linear_rows::compute(out, &of, self.loss, context);
            }
            _ => return None,
        }
        Some(())
    }
}

/// The parameters whose gradient csrᵀ · dense goes into their update, all of the same csr, so that its columns are looked for once.
#[derive(Clone, Debug, Default)]
pub(super) struct Products {
    /// The csr.
    pub(super) x: Option<Place>,
    /// Of each its place, the position of its gradient in the plan, and the dense side of that.
    pub(super) of: Vec<(Place, usize, usize)>,
}

impl Products {
    /// Those of a plan that does not say `fuse = off`.
    pub(super) fn find(plan: &PlanTable<'_>, places: &[Place]) -> Self {
        let mut found = Products::default();
        if matches!(plan.step, PlanStep::Unfused { .. }) {
            return found;
        }
        for (parameter, value) in plan.values.iter().enumerate() {
            let Some(gradient) = value.gradient else { continue };
            let is_read = |value: &PlanValue<'_>| value.reads().any(|read| read == gradient);
            let shared = plan.values.iter().filter(|of| of.gradient == Some(gradient)).count() > 1;
            let Some((x, right)) = product(plan, gradient as usize) else { continue };
            let x = places[x];
            let other_csr = found.x.is_some_and(|known| known != x);
            if shared
                || other_csr
                || !matches!(x, Place::Input(_))
                || plan.values.iter().any(is_read)
            {
                continue;
            }
            found.x = Some(x);
            found.of.push((places[parameter], gradient as usize, right));
        }
        found
    }
}

/// The csr and the dense side of a value that is csrᵀ · dense, as row_sparse.
fn product(plan: &PlanTable<'_>, value: usize) -> Option<(usize, usize)> {
    let value = &plan.values[value];
    let how = applies(value, "dot")?;
    let attributes = Attributes::from(how.attributes);
    let [x, right] = how.operands else { return None };
    let (x, right) = (position(x)?, position(right)?);
    let storages = [value.storage, plan.values[x].storage, plan.values[right].storage];
    let transposed = attributes.flag("transpose_lhs") && !attributes.flag("transpose_rhs");
    let is = storages == [Storage::RowSparse, Storage::Csr, Storage::Dense] && transposed;
    is.then_some((x, right))
}

/// The parameter that is added to each row of a product for the scores, which nothing else is computed from.
fn bias(plan: &PlanTable<'_>, product: usize, score: usize) -> Option<usize> {
    let how = applies(&plan.values[score], "add")?;
    let [first, second] = how.operands else { return None };
    let bias = match (position(first)?, position(second)?) {
        (first, bias) if first == product => bias,
        (bias, second) if second == product => bias,
        _ => return None,
    };
    let readers = plan.values.iter().filter(|value| value.reads().any(|of| of as usize == product));
    let written = matches!(plan.values[product].written, Some(Written::Output(_)));
    let shapes = [score, product, bias].map(|value| plan.values[value].shape);
    let columns = match shapes[1] {
        [_, columns] => *columns,
        _ => Extent::Constant(1),
    };
    let one = |extent: &Extent<'_>| *extent == Extent::Constant(1);
    let fits = match shapes[2] {
        [] => true,
        [rows @ .., last] => rows.iter().all(one) && (one(last) || *last == columns),
    };
    let is_parameter = plan.values[bias].computed.is_none()
        && plan.rows.iter().any(|rows| rows.parameter as usize == bias);
    let fits = fits && shapes[0] == shapes[1] && is_parameter;
    (fits && !written && readers.count() == 1).then_some(bias)
}

fn applies<'a>(value: &PlanValue<'a>, operator: &str) -> Option<Computed<'a>> {
    value.computed.filter(|how| how.operator == operator)
}

fn position(operand: &Operand) -> Option<usize> {
    match operand {
        Operand::Value(position) => Some(*position as usize),
        Operand::Shape(_) | Operand::Number(_) => None,
    }
}
