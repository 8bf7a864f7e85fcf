//! Gradients that cannot be used: missing ones, those of another shape, and losses that no training
//! changes.

use crate::diagnostics::{Code, Diagnostic};
use crate::ir::{Apply, Graph, ValueId};
use crate::operators;
use crate::shapes::{Dim, show};

/// Whether a gradient has the shape of its operand, as those of the language do. One that is
/// declared may have any.
pub(super) fn has_shape_of(
    graph: &Graph,
    apply: &Apply,
    gradient: ValueId,
    operand: ValueId,
) -> bool {
    if !matches!(apply.operator.kind, operators::Kind::Declared(..)) || graph.value(gradient).broken
    {
        return true;
    }
    // Constants of the source are compared by the compiler of Rust.
    let is_constant = |dim: &Dim| matches!(dim, Dim::Named(name) if graph.unify.is_constant(name));
    let (own, wanted) = (graph.shape(gradient), graph.shape(operand));
    let mut pairs = own.iter().zip(&wanted);
    own.len() == wanted.len()
        && pairs.all(|(own, wanted)| own == wanted || is_constant(own) || is_constant(wanted))
}

pub(super) fn wrong_shape(
    graph: &Graph,
    apply: &Apply,
    index: usize,
    id: ValueId,
    gradient: ValueId,
) -> Diagnostic {
    let (name, operand) = (apply.operator.name, apply.operator.operands[index]);
    let message = format!(
        "the gradient of `{name}` with respect to its `{operand}`, `{}`, has shape {}",
        graph.describe(apply.operands[index]),
        show(&graph.shape(gradient)),
    );
    let wanted = show(&graph.shape(apply.operands[index]));
    Diagnostic::new(Code::OperatorGradient, graph.value(id).place, message).help(format!(
        "it must be that of the operand, {wanted}: change `gradient {operand} = …;` where `{name}` is declared"
    ))
}

/// Losses that no training changes. True where one of them is a number.
pub(super) fn check_losses(
    graph: &Graph,
    trained: &[ValueId],
    diagnostics: &mut Vec<Diagnostic>,
) -> bool {
    let mut constant = false;
    for loss in &graph.losses {
        let place = graph.value(*loss).place;
        let zero = graph.apply_of(*loss).is_some_and(|apply| {
            apply.operator.is_product
                && apply.operands.iter().any(|operand| graph.constant_of(*operand) == Some(0.0))
        });
        let message = match graph.number_of(*loss) {
            Some(number) => {
                format!("the loss is the number {}, whatever the parameters are", number.bare())
            }
            None if zero => "the loss is multiplied by 0".to_owned(),
            None => continue,
        };
        constant = true;
        diagnostics
            .push(Diagnostic::new(Code::ConstantLoss, place, message).help("leave the loss out"));
    }
    if let (true, Some(loss)) = (trained.is_empty(), graph.losses.first()) {
        let message = match graph.parameters().next() {
            Some(_) => "no parameter is trained: all are frozen".to_owned(),
            None => "the model has a loss, and no parameter to train".to_owned(),
        };
        let help = "declare what is to be learnt as `param`, or give the number as an output";
        let place = graph.value(*loss).place;
        diagnostics.push(Diagnostic::new(Code::NothingTrained, place, message).help(help));
    }
    constant
}

pub(super) fn no_gradient(
    graph: &Graph,
    apply: &Apply,
    index: usize,
    id: ValueId,
    why: &str,
) -> Diagnostic {
    let operand = graph.describe(apply.operands[index]);
    let frozen = format!(
        "declare the parameters of `{operand}` as `param(frozen)`, or leave it out of the loss"
    );
    let help = match (apply.operator.kind, apply.operator.operands.get(index)) {
        (operators::Kind::Declared(..), Some(name)) => format!(
            "write `gradient {name} = …;` in the declaration of `{}`; otherwise {frozen}",
            apply.operator.name
        ),
        _ => frozen,
    };
    Diagnostic::new(
        Code::NoGradient,
        graph.value(id).place,
        format!("`{}` has no gradient with respect to `{operand}`: {why}", apply.operator.name),
    )
    .help(help)
}
