//! Operators that reshape, reorder and repeat elements.

use super::write::{
    DEFAULTS, axes, extents, flag, gradient, integer, list, planned, required_extent, rule,
};
use super::{Operator, Rule};

pub(super) const ALL: &[&Operator] = &[
    &RESHAPE,
    &FLATTEN,
    &EXPAND_DIMS,
    &SQUEEZE,
    &PERMUTE,
    &SWAP_AXES,
    &REVERSE,
    &TILE,
    &REPEAT,
    &RESHAPE_LIKE,
    &TILE_GRADIENT,
    &REPEAT_GRADIENT,
];

const DENSE_ONLY: &[Rule] = &[rule("dense -> dense").on_gpu()];

const RESHAPE: Operator = Operator {
    name: "reshape",
    cost: "O(size).",
    summary: "The same elements under another shape, row major. In `shape` a 0 keeps the extent at its place, and one `_` or -1 is what \
              is left.",
    attributes: &[extents("shape")],
    shape: "reshape",
    storage: DENSE_ONLY,
    gradient: &[gradient("x", "reshape_like(grad, x)")],
    kernels: planned("layout", "copied"),
    ..DEFAULTS
};

const FLATTEN: Operator = Operator {
    name: "flatten",
    cost: "O(size).",
    summary: "A matrix with the rows of the operand: all axes but the first become one.",
    shape: "flatten",
    storage: DENSE_ONLY,
    gradient: &[gradient("x", "reshape_like(grad, x)")],
    kernels: planned("layout", "copied"),
    ..DEFAULTS
};

const EXPAND_DIMS: Operator = Operator {
    name: "expand_dims",
    cost: "O(size).",
    summary: "One more axis of extent 1, at the place `axis` of the result.",
    attributes: &[integer("axis", 0)],
    shape: "expand_dims",
    storage: DENSE_ONLY,
    gradient: &[gradient("x", "reshape_like(grad, x)")],
    kernels: planned("layout", "copied"),
    ..DEFAULTS
};

const SQUEEZE: Operator = Operator {
    name: "squeeze",
    cost: "O(size).",
    summary: "Axes of extent 1 removed: those of `axis`, or all.",
    attributes: &[axes("axis")],
    shape: "squeeze",
    storage: DENSE_ONLY,
    gradient: &[gradient("x", "reshape_like(grad, x)")],
    kernels: planned("layout", "copied"),
    ..DEFAULTS
};

const RESHAPE_LIKE: Operator = Operator {
    name: "reshape_like",
    cost: "O(size).",
    summary: "The same elements in the shape of `like`: the gradient of a change of shape.",
    operands: &["x", "like"],
    shape: "any any -> like",
    storage: &[rule("dense like -> dense").on_gpu()],
    gradient: &[gradient("x", "reshape_like(grad, x)")],
    internal: true,
    kernels: planned("layout", "copied"),
    ..DEFAULTS
};

const PERMUTE: Operator = Operator {
    name: "permute",
    cost: "O(size).",
    summary: "The axes in another order: axis i of the result is axis `axes[i]` of the operand, or the other way round with \
              `inverse`. Of matrices, `transpose` costs less.",
    attributes: &[list("axes"), flag("inverse")],
    shape: "permute",
    storage: DENSE_ONLY,
    gradient: &[gradient("x", "permute(grad, axes = axes, inverse = !inverse)")],
    kernels: planned("layout", "moved"),
    ..DEFAULTS
};

const SWAP_AXES: Operator = Operator {
    name: "swap_axes",
    cost: "O(size).",
    summary: "Two axes exchanged.",
    attributes: &[integer("first", 0), integer("second", 1)],
    shape: "swap_axes",
    storage: DENSE_ONLY,
    gradient: &[gradient("x", "swap_axes(grad, first = first, second = second)")],
    kernels: planned("layout", "moved"),
    ..DEFAULTS
};

const REVERSE: Operator = Operator {
    name: "reverse",
    cost: "O(size).",
    summary: "The elements in the opposite order along some axes, or along all.",
    attributes: &[axes("axis")],
    shape: "reverse",
    storage: DENSE_ONLY,
    gradient: &[gradient("x", "reverse(grad, axis = axis)")],
    kernels: planned("layout", "moved"),
    ..DEFAULTS
};

const TILE: Operator = Operator {
    name: "tile",
    cost: "O(size of the result).",
    summary: "The array repeated as a whole, `reps` times along each axis.",
    attributes: &[extents("reps")],
    shape: "tile",
    storage: DENSE_ONLY,
    gradient: &[gradient("x", "tile_gradient(grad, x, reps = reps)")],
    kernels: planned("layout", "moved"),
    ..DEFAULTS
};

const TILE_GRADIENT: Operator = Operator {
    name: "tile_gradient",
    cost: "O(size of `grad`).",
    summary: "The gradient of `tile`: the sum of the repetitions.",
    operands: &["sum", "like"],
    attributes: &[extents("reps")],
    shape: "any any -> like",
    storage: &[rule("dense like -> dense").on_gpu()],
    gradient: &[gradient("sum", "tile(grad, reps = reps)")],
    internal: true,
    kernels: planned("layout", "summed"),
    ..DEFAULTS
};

const REPEAT: Operator = Operator {
    name: "repeat",
    cost: "O(size of the result).",
    summary: "Each element along an axis repeated `repeats` times, one after the other.",
    attributes: &[required_extent("repeats"), integer("axis", 0)],
    shape: "repeat",
    storage: DENSE_ONLY,
    gradient: &[gradient("x", "repeat_gradient(grad, x, repeats = repeats, axis = axis)")],
    kernels: planned("layout", "moved"),
    ..DEFAULTS
};

const REPEAT_GRADIENT: Operator = Operator {
    name: "repeat_gradient",
    cost: "O(size of `grad`).",
    summary: "The gradient of `repeat`: the sum of the repetitions.",
    operands: &["sum", "like"],
    attributes: &[required_extent("repeats"), integer("axis", 0)],
    shape: "any any -> like",
    storage: &[rule("dense like -> dense").on_gpu()],
    gradient: &[gradient("sum", "repeat(grad, repeats = repeats, axis = axis)")],
    internal: true,
    kernels: planned("layout", "summed"),
    ..DEFAULTS
};
