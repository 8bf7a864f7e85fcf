//! Searches of a model's plan: its loss, the sum that its scores are, the readers of a value.

use super::workspace::Place;
use sparse_core::inspect::{Computed, Extent, Operand, PlanTable, PlanValue, Written};
use sparse_core::operators::{Kind, Operator, find};

/// The loss of a plan, by positions there.
pub(super) struct Loss<'p> {
    pub(super) value: usize,
    pub(super) score: usize,
    pub(super) gradient: usize,
    pub(super) labels: usize,
    pub(super) row_weights: Option<usize>,
    pub(super) operator: &'static Operator,
    pub(super) computed: Computed<'p>,
}

impl<'p> Loss<'p> {
    pub(super) fn find(plan: &PlanTable<'p>) -> Option<Self> {
        let [loss] = plan.losses else { return None };
        let value = position(loss)?;
        let computed = plan.values[value].computed?;
        let operator = find(computed.operator)?;
        let gradient = plan.values.iter().position(|value| {
            value.computed.is_some_and(|how| {
                find(how.operator).is_some_and(|of| of.kind == Kind::LossGradient(operator.name))
                    && (how.operands, how.attributes) == (computed.operands, computed.attributes)
            })
        })?;
        let row_weights = match computed.operands.get(2) {
            Some(operand) => Some(position(operand)?),
            None => None,
        };
        let [score, labels, ..] = computed.operands else { return None };
        let (score, labels) = (position(score)?, position(labels)?);
        Some(Loss { value, score, gradient, labels, row_weights, operator, computed })
    }
}

/// What scores are the sum of, by positions in the plan.
pub(super) struct Sum {
    /// What is neither a sum nor a parameter, each of the shape of the scores.
    pub(super) terms: Vec<usize>,
    /// A parameter with one number, or with one for each column of the scores.
    pub(super) bias: Option<usize>,
    /// Numbers in the source.
    pub(super) constant: f64,
}

impl Sum {
    pub(super) fn find(plan: &PlanTable<'_>, places: &[Place], score: usize) -> Option<Self> {
        let mut sum = Sum { terms: Vec::new(), bias: None, constant: 0.0 };
        let mut open = vec![score];
        while let Some(at) = open.pop() {
            let value = &plan.values[at];
            if matches!(places[at], Place::Parameter(_)) {
                if sum.bias.replace(at).is_some() || !is_added_to_rows(plan, at, score) {
                    return None;
                }
                continue;
            }
            if value.shape != plan.values[score].shape {
                return None;
            }
            let Some(added) = applies(value, "add") else {
                sum.terms.push(at);
                continue;
            };
            for operand in added.operands {
                match operand {
                    Operand::Number(number) => sum.constant += number,
                    operand => open.push(position(operand)?),
                }
            }
        }
        Some(sum)
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

/// Some values and all that are computed for them, in the order of the plan.
pub(super) fn computed_for(plan: &PlanTable<'_>, values: &[usize]) -> Vec<usize> {
    let mut needed = vec![false; plan.values.len()];
    values.iter().for_each(|value| needed[*value] = true);
    // Operands come first.
    for at in (0..plan.values.len()).rev().filter(|at| plan.values[*at].computed.is_some()) {
        if needed[at] {
            plan.values[at].reads().for_each(|read| needed[read as usize] = true);
        }
    }
    let is_computed = |at: &usize| needed[*at] && plan.values[*at].computed.is_some();
    (0..plan.values.len()).filter(is_computed).collect()
}

pub(super) fn is_output(value: &PlanValue<'_>) -> bool {
    matches!(value.written, Some(Written::Output(_)))
}

/// Whether a value is computed from another one, or from its shape.
pub(super) fn is_operand(value: &PlanValue<'_>, of: usize) -> bool {
    let operands = value.computed.map_or(&[][..], |how| how.operands);
    operands.iter().any(|operand| match operand {
        Operand::Value(position) | Operand::Shape(position) => *position as usize == of,
        Operand::Number(_) | Operand::Named { .. } => false,
    })
}

pub(super) fn applies<'a>(value: &PlanValue<'a>, operator: &str) -> Option<Computed<'a>> {
    value.computed.filter(|how| how.operator == operator)
}

pub(super) fn position(operand: &Operand) -> Option<usize> {
    match operand {
        Operand::Value(position) => Some(*position as usize),
        Operand::Shape(_) | Operand::Number(_) | Operand::Named { .. } => None,
    }
}
