//! Element-wise operators, reductions and conversions.

use super::{Build, Given, Make, Recipe, apply, built, plain, with};
use nnz::core::ir::{AttributeValue, Attributes, List, Number, Place};
use nnz::core::operators::{Kind, find};

/// Operators by the reference's names.
pub(super) const RECIPES: &[(&str, Make)] = &[
    ("_scatter_plus_scalar", |given| built(stored_with_number("add", given)?)),
    ("_scatter_minus_scalar", |given| built(stored_with_number("subtract", given)?)),
    ("_rminus_scalar", |given| built(with_number("subtract", given, true)?)),
    ("_rdiv_scalar", |given| built(with_number("divide", given, true)?)),
    ("_rpower_scalar", |given| built(with_number("power", given, true)?)),
    ("smooth_l1", |given| built(with("smooth_l1", &[("scale", number(given, "scalar")?)]))),
    ("_contrib_quadratic", |given| {
        let [a, b, c] = [number(given, "a")?, number(given, "b")?, number(given, "c")?];
        built(with("quadratic", &[("a", a), ("b", b), ("c", c)]))
    }),
    ("clip", |given| {
        let limits = [("lower", number(given, "a_min")?), ("upper", number(given, "a_max")?)];
        built(with("clip", &limits))
    }),
    ("_contrib_gradientmultiplier", |given| {
        built(with("scale_gradient", &[("factor", number(given, "scalar")?)]))
    }),
    ("add_n", |given| {
        given.get("num_args");
        built(plain("add_n"))
    }),
    ("_copy", |_| built(Box::new(|_, operands| operands[0]))),
    ("BlockGrad", |_| built(plain("stop_gradient"))),
    ("fix", |_| built(plain("trunc"))),
    ("_contrib_round_ste", |_| built(plain("round_ste"))),
    ("_contrib_sign_ste", |_| built(plain("sign_ste"))),
    ("_square_sum", |given| built(reduction("square_sum", given))),
    ("sum", |given| built(reduction("sum", given))),
    ("mean", |given| built(reduction("mean", given))),
    ("norm", |given| built(reduction("norm", given))),
    ("prod", |given| built(reduction("prod", given))),
    ("nansum", |given| built(reduction("nansum", given))),
    ("max", |given| built(reduction("max", given))),
    ("min", |given| built(reduction("min", given))),
    ("cast_storage", cast),
    ("assign", cast),
    ("Activation", |given| match given.get("act_type").as_str()? {
        "softrelu" => built(plain("softplus")),
        function => built(plain(unary(function)?)),
    }),
];

/// Functions whose names here follow from those of the reference.
pub(super) fn by_name(op: &str, given: &Given<'_>) -> Option<Recipe> {
    built(match (op.strip_suffix("_scalar"), binary(op)) {
        (Some(op), _) => with_number(binary(op)?, given, false)?,
        (_, Some(name)) => plain(name),
        _ => plain(unary(op)?),
    })
}

fn cast(given: &Given<'_>) -> Option<Recipe> {
    built(plain(given.storage("stype")?.name()))
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
