//! Operators that move elements.

use super::{Given, Recipe, apply, plain};
use nnz::core::ir::Attributes;

/// Operators of the reference that are not built yet.
pub(super) const NOT_BUILT: &[&str] = &[
    "Concat",
    "Flatten",
    "Reshape",
    "SliceChannel",
    "SwapAxis",
    "_contrib_edge_id",
    "_contrib_getnnz",
    "_identity_with_attr_like_rhs",
    "_sparse_retain",
    "argmax",
    "argmin",
    "expand_dims",
    "pick",
    "repeat",
    "reverse",
    "slice",
    "slice_axis",
    "slice_like",
    "sort",
    "stack",
    "take",
    "tile",
    "topk",
    "where",
    "zeros",
];

pub(super) fn known(op: &str, given: &Given<'_>) -> Option<Recipe> {
    Some(match op {
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

fn built(build: super::Build) -> Recipe {
    Recipe::Built { build, explicit: None }
}
