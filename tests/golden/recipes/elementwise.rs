//! Element-wise operators, reductions and conversions.

use super::{Build, Given, apply, plain, with};
use nnz::core::ir::{AttributeValue, Attributes, List, Number, Place};
use nnz::core::operators::{Kind, find};
use nnz::core::storage::Storage;

pub(super) fn known(op: &str, given: &Given<'_>) -> Option<Build> {
    Some(match op {
        "_scatter_plus_scalar" => stored_with_number("add", given)?,
        "_scatter_minus_scalar" => stored_with_number("subtract", given)?,
        "_rminus_scalar" => with_number("subtract", given, true)?,
        "_rdiv_scalar" => with_number("divide", given, true)?,
        "_rpower_scalar" => with_number("power", given, true)?,
        _ if op.ends_with("_scalar") => {
            with_number(binary(op.strip_suffix("_scalar")?)?, given, false)?
        }
        "smooth_l1" => with("smooth_l1", &[("scale", number(given, "scalar")?)]),
        "_contrib_quadratic" => with(
            "quadratic",
            &[("a", number(given, "a")?), ("b", number(given, "b")?), ("c", number(given, "c")?)],
        ),
        "clip" => {
            with("clip", &[("lower", number(given, "a_min")?), ("upper", number(given, "a_max")?)])
        }
        "_contrib_gradientmultiplier" => {
            with("scale_gradient", &[("factor", number(given, "scalar")?)])
        }
        "add_n" => {
            given.get("num_args");
            plain("add_n")
        }
        "_copy" => Box::new(|_, operands| operands[0]),
        "BlockGrad" => plain("stop_gradient"),
        "fix" => plain("trunc"),
        "_contrib_round_ste" => plain("round_ste"),
        "_contrib_sign_ste" => plain("sign_ste"),
        "_square_sum" => reduction("square_sum", given),
        "sum" | "mean" | "norm" | "prod" | "nansum" | "max" | "min" => {
            reduction(find(op)?.name, given)
        }
        "cast_storage" | "assign" => match given.storage("stype")? {
            Storage::Dense => plain("dense"),
            Storage::Csr => plain("csr"),
            Storage::RowSparse => plain("row_sparse"),
        },
        "Activation" => match given.get("act_type").as_str()? {
            "softrelu" => plain("softplus"),
            function => plain(unary(function)?),
        },
        _ => match binary(op) {
            Some(name) => plain(name),
            None => plain(unary(op)?),
        },
    })
}

/// Functions of one operand that are called the same.
fn unary(op: &str) -> Option<&'static str> {
    let row = find(op).filter(|row| !row.internal && matches!(row.kind, Kind::Unary(_)))?;
    Some(row.name)
}

/// Functions of two operands.
fn binary(op: &str) -> Option<&'static str> {
    Some(match op {
        "_grad_add" => "add",
        "_scatter_elemwise_div" => "scatter_divide",
        _ => match op
            .strip_prefix("elemwise_")
            .or(op.strip_prefix("broadcast_"))
            .or(op.strip_prefix('_'))?
        {
            "add" | "plus" => "add",
            "sub" | "minus" => "subtract",
            "mul" => "multiply",
            "div" => "divide",
            "mod" => "modulo",
            "lesser" => "less",
            "lesser_equal" => "less_equal",
            name => find(name).filter(|row| matches!(row.kind, Kind::Binary(..)))?.name,
        },
    })
}

fn number(given: &Given<'_>, name: &'static str) -> Option<AttributeValue> {
    Some(AttributeValue::Number(Number(given.number(name)?)))
}

/// An operand and a number, the number first where `turned`.
fn with_number(name: &'static str, given: &Given<'_>, turned: bool) -> Option<Build> {
    let scalar = given.number("scalar")?;
    Some(Box::new(move |graph, operands| {
        let scalar = graph.constant(scalar, Place::default());
        let operands = if turned { [scalar, operands[0]] } else { [operands[0], scalar] };
        apply(graph, name, &operands, Attributes::default())
    }))
}

/// The function of what is stored and a number.
fn stored_with_number(name: &'static str, given: &Given<'_>) -> Option<Build> {
    let scalar = given.number("scalar")?;
    Some(Box::new(move |graph, operands| {
        let scalar = graph.constant(scalar, Place::default());
        let pattern = apply(graph, "pattern", operands, Attributes::default());
        let numbers = apply(graph, "multiply", &[pattern, scalar], Attributes::default());
        apply(graph, name, &[operands[0], numbers], Attributes::default())
    }))
}

/// Over the axes that are given, or all of them.
pub(super) fn reduction(name: &'static str, given: &Given<'_>) -> Build {
    let mut attributes = Attributes::default();
    if let Some(axes) = given.axes("axis") {
        attributes.set("axis", AttributeValue::List(List::from(&axes[..])));
    }
    for flag in ["keepdims", "exclude"] {
        if given.flag(flag) {
            attributes.set(flag, AttributeValue::Flag(true));
        }
    }
    if let Some(ord) = given.integer("ord") {
        attributes.set("ord", AttributeValue::Integer(ord));
    }
    Box::new(move |graph, operands| apply(graph, name, operands, attributes.clone()))
}
