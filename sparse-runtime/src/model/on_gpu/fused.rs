//! What of a step has kernels of its own, found in the plan of a model that is not `fuse = off`.

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
    kept: [usize; 3],
    /// What asks for the scores.
    scores_for: Wanted,
    x: Place,
    weights: Place,
    factors: Option<Place>,
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
            factor_sums: (self.factors.is_some() && !wanted.meets(Wanted::PRODUCTS))
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

/// The parameters whose gradient goes into their update: csrᵀ · dense, or that of interactions whose sums a [`LinearLaunch`] has. All are of
/// the same csr, so that its columns are looked for once.
#[derive(Clone, Debug, Default)]
pub(super) struct Products {
    /// The csr.
    pub(super) x: Option<Place>,
    /// Each of them.
    pub(super) of: Vec<Product>,
}

/// A gradient that goes into its update.
#[derive(Clone, Copy, Debug)]
pub(super) struct Product {
    /// The parameter.
    pub(super) parameter: Place,
    /// The position of the gradient in the plan.
    pub(super) gradient: usize,
    /// That of its dense side, or of the derivatives by interactions.
    pub(super) right: usize,
    /// Whether it is that of interactions.
    pub(super) interacts: bool,
}

impl Products {
    /// Those of a plan that does not say `fuse = off`.
    pub(super) fn find(
        plan: &PlanTable<'_>,
        places: &[Place],
        linear: Option<&LinearLaunch>,
    ) -> Self {
        let mut found = Products::default();
        if matches!(plan.step, PlanStep::Unfused { .. }) {
            return found;
        }
        for (parameter, value) in plan.values.iter().enumerate() {
            let Some(gradient) = value.gradient else { continue };
            let is_read = |value: &PlanValue<'_>| value.reads().any(|read| read == gradient);
            let shared = plan.values.iter().filter(|of| of.gradient == Some(gradient)).count() > 1;
            let interaction = || interaction(plan, places, gradient as usize, linear?);
            let (interacts, of) = match product(plan, gradient as usize) {
                Some(of) => (false, Some(of)),
                None => (true, interaction()),
            };
            let Some((x, right)) = of else { continue };
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
            let (parameter, gradient) = (places[parameter], gradient as usize);
            found.of.push(Product { parameter, gradient, right, interacts });
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

/// The csr and the derivatives by the interactions of a value that is the gradient of factors, whose sums a launch has.
fn interaction(
    plan: &PlanTable<'_>,
    places: &[Place],
    value: usize,
    linear: &LinearLaunch,
) -> Option<(usize, usize)> {
    let value = &plan.values[value];
    let how = applies(value, "pairwise_interaction_gradient")?;
    let [x, factors, right] = how.operands else { return None };
    let (x, factors, right) = (position(x)?, position(factors)?, position(right)?);
    let [.., gradient] = linear.kept;
    let is = (places[x], Some(places[factors]), right) == (linear.x, linear.factors, gradient)
        && value.storage == Storage::RowSparse;
    is.then_some((x, right))
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

fn applies<'a>(value: &PlanValue<'a>, operator: &str) -> Option<Computed<'a>> {
    value.computed.filter(|how| how.operator == operator)
}

fn position(operand: &Operand) -> Option<usize> {
    match operand {
        Operand::Value(position) => Some(*position as usize),
        Operand::Shape(_) | Operand::Number(_) => None,
    }
}
