//! Operators that move elements.

use super::elementwise::reduction;
use super::{Given, Make, Recipe, apply, built, call, plain};
use nnz::core::ir::{AttributeValue, Attributes, Place};

/// Operators of the reference that are not built yet.
pub(super) const NOT_BUILT: &[&str] = &[];

/// Operators by the reference's names.
pub(super) const RECIPES: &[(&str, Make)] = &[
    ("slice", |given| with("slice", given.lists(["begin", "end", "step"]))),
    ("slice_axis", |given| {
        let axis = AttributeValue::Integer(given.integer("axis").unwrap_or(0));
        let mut attributes = given.lists(["begin", "end"]);
        attributes.push(("axis", axis));
        with("slice_axis", attributes)
    }),
    ("slice_like", |given| with("slice_like", given.lists(["axes"]))),
    ("Concat", |given| {
        given.get("num_args");
        let axis = AttributeValue::Integer(given.integer("dim").unwrap_or(1));
        with("concat", vec![("axis", axis)])
    }),
    // A conversion to the storage of the second operand.
    ("_identity_with_attr_like_rhs", |_| {
        Some(Recipe::built(|graph, operands| {
            let storage = graph.storage(operands[1]).name();
            call(graph, storage, &operands[..1])
        }))
    }),
    ("Reshape", |given| with("reshape", given.lists(["shape"]))),
    ("Flatten", |_| built(plain("flatten"))),
    ("expand_dims", |given| with("expand_dims", integers(given, [("axis", "axis")]))),
    ("SwapAxis", |given| {
        with("swap_axes", integers(given, [("dim1", "first"), ("dim2", "second")]))
    }),
    ("reverse", |given| with("reverse", given.lists(["axis"]))),
    ("tile", |given| with("tile", given.lists(["reps"]))),
    ("repeat", |given| with("repeat", integers(given, [("repeats", "repeats"), ("axis", "axis")]))),
    ("stack", |given| {
        given.get("num_args");
        with("stack", integers(given, [("axis", "axis")]))
    }),
    ("SliceChannel", |given| {
        let axis = ("axis", AttributeValue::Integer(given.integer("axis").unwrap_or(1)));
        let squeezed = given.flag("squeeze_axis");
        // A split into one part, which is all of the axis: a recipe has one result.
        given.integer("num_outputs").filter(|parts| *parts == 1)?;
        Some(Recipe::built(move |graph, operands| {
            let along = Attributes::from(&[axis][..]);
            let part = apply(graph, "slice_axis", operands, along.clone());
            if squeezed { apply(graph, "squeeze", &[part], along) } else { part }
        }))
    }),
    ("sort", |given| {
        let mut attributes = integers(given, [("axis", "axis")]);
        let ascending = given.get("is_ascend").as_bool().unwrap_or(true);
        attributes.push(("descending", AttributeValue::Flag(!ascending)));
        with("sort", attributes)
    }),
    ("topk", |given| {
        let mut attributes = integers(given, [("axis", "axis"), ("k", "k")]);
        attributes.push(("smallest", AttributeValue::Flag(given.flag("is_ascend"))));
        match given.get("ret_typ").as_str() {
            Some("value") => with("topk", attributes),
            None | Some("indices") => with("topk_ids", attributes),
            _ => None,
        }
    }),
    ("argmax", |given| with("argmax", given.lists(["axis"]))),
    ("argmin", |given| with("argmin", given.lists(["axis"]))),
    ("_sparse_retain", |_| built(plain("retain"))),
    ("take", |given| lookup("take", given)),
    ("pick", |given| lookup("pick", given)),
    // The element of a row, less 1 where none is stored.
    ("_contrib_edge_id", |_| {
        Some(Recipe::built(|graph, operands| {
            let rows = call(graph, "take", &operands[..2]);
            let pattern = call(graph, "pattern", &[rows]);
            let values = call(graph, "pick", &[rows, operands[2]]);
            let stored = call(graph, "pick", &[pattern, operands[2]]);
            let one = graph.constant(1.0, Place::default());
            let missing = call(graph, "subtract", &[one, stored]);
            call(graph, "subtract", &[values, missing])
        }))
    }),
    ("_contrib_getnnz", |given| {
        Some(Recipe::Built {
            build: reduction("count_stored", given),
            explicit: None,
            loss: None,
            of_pattern: Some(reduction("sum", given)),
        })
    }),
    ("where", |_| built(plain("select"))),
    ("zeros_like", |_| built(plain("zeros_like"))),
    ("transpose", |_| built(plain("transpose"))),
    ("softmax", |given| with("softmax", integers(given, [("axis", "axis")]))),
    ("log_softmax", |given| with("log_softmax", integers(given, [("axis", "axis")]))),
];

/// Elements by ids.
fn lookup(name: &'static str, given: &Given<'_>) -> Option<Recipe> {
    let mut attributes = integers(given, [("axis", "axis")]);
    if given.flag("keepdims") {
        attributes.push(("keepdims", AttributeValue::Flag(true)));
    }
    // Both operators clip where nothing is said.
    match given.get("mode").as_str() {
        None | Some("clip") => attributes.push(("clip", AttributeValue::Flag(true))),
        Some("wrap") => attributes.push(("wrap", AttributeValue::Flag(true))),
        Some("raise") => {}
        _ => return None,
    }
    with(name, attributes)
}

/// Integers that are given, by the reference's names and ours.
fn integers<const N: usize>(
    given: &Given<'_>,
    names: [(&'static str, &'static str); N],
) -> Vec<(&'static str, AttributeValue)> {
    let integer = |(theirs, ours)| Some((ours, AttributeValue::Integer(given.integer(theirs)?)));
    names.into_iter().filter_map(integer).collect()
}

/// The operands that are ids.
pub(super) fn ids_of(op: &str) -> &'static [usize] {
    match op {
        "take" | "pick" | "_sparse_retain" => &[1],
        "_contrib_edge_id" => &[1, 2],
        _ => &[],
    }
}

/// An operator with attributes.
fn with(name: &'static str, attributes: Vec<(&'static str, AttributeValue)>) -> Option<Recipe> {
    built(super::with(name, &attributes))
}
