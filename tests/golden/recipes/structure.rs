//! Operators that move elements.

use super::elementwise::reduction;
use super::{Given, Recipe, apply, plain};
use nnz::core::ir::{AttributeValue, Attributes, Graph, Place, ValueId};

/// Operators of the reference that are not built yet.
pub(super) const NOT_BUILT: &[&str] = &["SliceChannel", "sort", "topk"];

pub(super) fn known(op: &str, given: &Given<'_>) -> Option<Recipe> {
    Some(match op {
        "slice" => with("slice", given.lists(["begin", "end", "step"])),
        "slice_axis" => {
            let axis = AttributeValue::Integer(given.integer("axis").unwrap_or(0));
            let mut attributes = given.lists(["begin", "end"]);
            attributes.push(("axis", axis));
            with("slice_axis", attributes)
        }
        "slice_like" => with("slice_like", given.lists(["axes"])),
        "Concat" => {
            given.get("num_args");
            let axis = AttributeValue::Integer(given.integer("dim").unwrap_or(1));
            with("concat", vec![("axis", axis)])
        }
        // A conversion to the storage of the second operand.
        "_identity_with_attr_like_rhs" => Recipe::built(|graph, operands| {
            let storage = graph.storage(operands[1]).name();
            apply(graph, storage, &operands[..1], Attributes::default())
        }),
        "Reshape" => with("reshape", given.lists(["shape"])),
        "Flatten" => built(plain("flatten")),
        "expand_dims" => with("expand_dims", integers(given, [("axis", "axis")])),
        "SwapAxis" => with("swap_axes", integers(given, [("dim1", "first"), ("dim2", "second")])),
        "reverse" => with("reverse", given.lists(["axis"])),
        "tile" => with("tile", given.lists(["reps"])),
        "repeat" => with("repeat", integers(given, [("repeats", "repeats"), ("axis", "axis")])),
        "stack" => {
            given.get("num_args");
            let axis = AttributeValue::Integer(given.integer("axis").unwrap_or(0));
            Recipe::built(move |graph, operands| {
                let axis = Attributes::from(&[("axis", axis)][..]);
                let operands: Vec<_> = (operands.iter())
                    .map(|operand| apply(graph, "expand_dims", &[*operand], axis.clone()))
                    .collect();
                apply(graph, "concat", &operands, axis)
            })
        }
        "argmax" => with("argmax", given.lists(["axis"])),
        "argmin" => with("argmin", given.lists(["axis"])),
        "_sparse_retain" => built(plain("retain")),
        "take" | "pick" => {
            let name = if op == "take" { "take" } else { "pick" };
            let mut attributes = Vec::new();
            if let Some(axis) = given.integer("axis") {
                attributes.push(("axis", AttributeValue::Integer(axis)));
            }
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
        // The element of a row, less 1 where none is stored.
        "_contrib_edge_id" => Recipe::built(|graph, operands| {
            let call = |graph: &mut Graph, name: &str, operands: &[ValueId]| {
                apply(graph, name, operands, Attributes::default())
            };
            let rows = call(graph, "take", &operands[..2]);
            let pattern = call(graph, "pattern", &[rows]);
            let values = call(graph, "pick", &[rows, operands[2]]);
            let stored = call(graph, "pick", &[pattern, operands[2]]);
            let one = graph.constant(1.0, Place::default());
            let missing = call(graph, "subtract", &[one, stored]);
            call(graph, "subtract", &[values, missing])
        }),
        "_contrib_getnnz" => Recipe::Built {
            build: reduction("count_stored", given),
            explicit: None,
            loss: None,
            of_pattern: Some(reduction("sum", given)),
        },
        "where" => built(plain("select")),
        "zeros_like" => built(plain("zeros_like")),
        "transpose" => built(plain("transpose")),
        "softmax" => match given.get("axis").as_i64() {
            None | Some(-1 | 1) => built(plain("softmax")),
            Some(0) => Recipe::built(|graph, operands| {
                let turned = apply(graph, "transpose", operands, Attributes::default());
                let softmax = apply(graph, "softmax", &[turned], Attributes::default());
                apply(graph, "transpose", &[softmax], Attributes::default())
            }),
            _ => return None,
        },
        _ => return None,
    })
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
fn with(name: &'static str, attributes: Vec<(&'static str, AttributeValue)>) -> Recipe {
    built(super::with(name, &attributes))
}

fn built(build: super::Build) -> Recipe {
    Recipe::Built { build, explicit: None, loss: None, of_pattern: None }
}
