//! Parts of arrays, and arrays joined: elements are moved, nothing is computed.
//!
//! The gradient of a part is that part of an array of zeros: what is not in the part stays unstored
//! where the gradient that arrives is sparse, and also where some rows of a row_sparse array were
//! taken.

use super::write::{
    DEFAULTS, all_rows, axes, extents, flag, gradient, integer, list, planned, rule,
    within_rows_unless,
};
use super::{Condition, CsrPattern, Operator, Placement, ResultRows, Rule};

pub(super) const ALL: &[&Operator] = &[
    &SLICE,
    &SLICE_AXIS,
    &SLICE_LIKE,
    &CONCAT,
    &STACK,
    &STACK_NEXT,
    &SLICE_GRADIENT,
    &SLICE_AXIS_GRADIENT,
    &SLICE_LIKE_GRADIENT,
];

const SLICE: Operator = Operator {
    cost: "O(size of the part); of a csr O(rows of the part · log of a row + entries between its columns), of a row_sparse array O(values of the rows stored in it).",
    name: "slice",
    summary: "Part of an array: along each axis the positions from `begin` to before `end`, every `step`-th. Lists have an entry for \
              each axis, `_` where it is left open; bounds may be negative, from the end, and are cut to the extent. A negative step \
              goes backwards.",
    attributes: &[extents("begin"), extents("end"), list("step")],
    shape: "slice",
    storage: &[
        rule("dense -> dense").on_gpu(),
        rule("csr -> csr").on_gpu(),
        rule("row_sparse -> row_sparse").on_gpu(),
    ],
    gradient: &[gradient("x", "slice_gradient(grad, x, begin = begin, end = end, step = step)")],
    csr_pattern: CsrPattern::OfOperands,
    reads_rows: &[all_rows("x")],
    result_rows: &[within_rows_unless(&["x"], &Condition::ROWS_MOVED), ResultRows::Moved(&["x"])],
    kernels: planned("slicing", "part"),
    ..DEFAULTS
};

const SLICE_AXIS: Operator = Operator {
    cost: "As `slice`.",
    name: "slice_axis",
    summary: "Part of an array along one axis: the positions from `begin` to before `end`, every `step`-th, as in `slice`.",
    attributes: &[integer("axis", 0), extents("begin"), extents("end"), list("step")],
    shape: "slice_axis",
    storage: &[
        rule("dense -> dense").on_gpu(),
        rule("csr -> csr").on_gpu(),
        rule("row_sparse -> row_sparse").on_gpu(),
    ],
    gradient: &[gradient(
        "x",
        "slice_axis_gradient(grad, x, axis = axis, begin = begin, end = end, step = step)",
    )],
    csr_pattern: CsrPattern::OfOperands,
    reads_rows: &[all_rows("x")],
    result_rows: &[within_rows_unless(&["x"], &Condition::ROWS_MOVED), ResultRows::Moved(&["x"])],
    kernels: planned("slicing", "part"),
    ..DEFAULTS
};

const SLICE_LIKE: Operator = Operator {
    cost: "As `slice`.",
    name: "slice_like",
    placement: Placement::PartLike,
    summary: "The first elements along some axes, or along all, as many as `like` has there; with `from_end` the last ones.",
    operands: &["x", "like"],
    attributes: &[axes("axes"), flag("from_end")],
    shape: "slice_like",
    storage: &[
        rule("dense like -> dense").on_gpu(),
        rule("csr like -> csr").on_gpu(),
        rule("row_sparse like -> row_sparse").on_gpu(),
    ],
    gradient: &[gradient("x", "slice_like_gradient(grad, x, axes = axes, from_end = from_end)")],
    csr_pattern: CsrPattern::OfOperands,
    reads_rows: &[all_rows("x")],
    result_rows: &[within_rows_unless(&["x"], &Condition::ROWS_MOVED), ResultRows::Moved(&["x"])],
    kernels: planned("slicing", "part"),
    ..DEFAULTS
};

const CONCAT: Operator = Operator {
    cost: "O(size), of csr matrices O(rows + nnz), of row_sparse arrays O(values stored); for each operand after the second, that of the operands before it again.",
    name: "concat",
    placement: Placement::Joined,
    summary: "Arrays one after the other along an axis.",
    operands: &["lhs", "rhs"],
    chain: Some("concat"),
    attributes: &[integer("axis", 0)],
    shape: "concat",
    storage: &[
        rule("dense dense -> dense").on_gpu(),
        rule("csr csr -> csr").on_gpu(),
        rule("row_sparse row_sparse -> row_sparse").on_gpu(),
    ],
    gradient: &[
        gradient("lhs", "slice_like(grad, lhs, axes = axis)"),
        gradient("rhs", "slice_like(grad, rhs, axes = axis, from_end = true)"),
    ],
    csr_pattern: CsrPattern::OfOperands,
    reads_rows: &[all_rows("lhs"), all_rows("rhs")],
    result_rows: &[
        within_rows_unless(&["lhs", "rhs"], &Condition::ROWS_MOVED),
        ResultRows::Moved(&["lhs", "rhs"]),
    ],
    kernels: planned("joining", "join"),
    ..DEFAULTS
};

const STACK: Operator = Operator {
    cost: "O(size); for each operand after the second, that of the operands before it again.",
    name: "stack",
    summary: "Arrays of one shape one after the other along a new axis, which is at the place `axis` of the result.",
    operands: &["lhs", "rhs"],
    chain: Some("stack_next"),
    // A stack of one has the new axis all the same.
    chain_of_one: Some("expand_dims"),
    attributes: &[integer("axis", 0)],
    shape: "stack",
    storage: &[rule("dense dense -> dense").on_gpu()],
    gradient: &[
        gradient("lhs", "reshape_like(slice_axis(grad, axis = axis, begin = 0, end = 1), lhs)"),
        gradient("rhs", "reshape_like(slice_axis(grad, axis = axis, begin = 1, end = 2), rhs)"),
    ],
    kernels: planned("joining", "join"),
    ..DEFAULTS
};

const STACK_NEXT: Operator = Operator {
    cost: "O(size).",
    name: "stack_next",
    summary: "One more array at the end of a stack.",
    operands: &["lhs", "rhs"],
    attributes: &[integer("axis", 0)],
    shape: "stack_next",
    storage: &[rule("dense dense -> dense").on_gpu()],
    gradient: &[
        gradient("lhs", "slice_like(grad, lhs, axes = axis)"),
        gradient("rhs", "reshape_like(slice_axis(grad, axis = axis, begin = -1), rhs)"),
    ],
    internal: true,
    kernels: planned("joining", "join"),
    ..DEFAULTS
};

/// A part put back among zeros.
const PLACED: &[Rule] = &[
    rule("dense row_sparse -> row_sparse").on_gpu().only(&Condition::ROWS_CUT),
    rule("dense like -> dense").on_gpu(),
    rule("csr like -> csr").on_gpu(),
    rule("row_sparse like -> row_sparse").on_gpu(),
];

const SLICE_GRADIENT: Operator = Operator {
    cost: "O(size of `like`) where the result is dense, of a csr O(rows of `like` + nnz), else O(values of the rows stored).",
    name: "slice_gradient",
    summary: "The gradient of `slice`: zeros in the shape of `like`, with `part` in its place.",
    operands: &["part", "like"],
    attributes: &[extents("begin"), extents("end"), list("step")],
    shape: "any any -> like",
    storage: PLACED,
    gradient: &[gradient("part", "slice(grad, begin = begin, end = end, step = step)")],
    internal: true,
    reads_rows: &[all_rows("part")],
    result_rows: &[
        within_rows_unless(&["part"], &Condition::ROWS_MOVED),
        ResultRows::Moved(&["part"]),
    ],
    kernels: planned("slicing", "place"),
    ..DEFAULTS
};

const SLICE_AXIS_GRADIENT: Operator = Operator {
    cost: "As `slice_gradient`.",
    name: "slice_axis_gradient",
    summary: "The gradient of `slice_axis`: zeros in the shape of `like`, with `part` in its place.",
    operands: &["part", "like"],
    attributes: &[integer("axis", 0), extents("begin"), extents("end"), list("step")],
    shape: "any any -> like",
    storage: PLACED,
    gradient: &[gradient(
        "part",
        "slice_axis(grad, axis = axis, begin = begin, end = end, step = step)",
    )],
    internal: true,
    reads_rows: &[all_rows("part")],
    result_rows: &[
        within_rows_unless(&["part"], &Condition::ROWS_MOVED),
        ResultRows::Moved(&["part"]),
    ],
    kernels: planned("slicing", "place"),
    ..DEFAULTS
};

const SLICE_LIKE_GRADIENT: Operator = Operator {
    cost: "As `slice_gradient`.",
    name: "slice_like_gradient",
    summary: "The gradient of `slice_like`: zeros in the shape of `like`, with `part` in its place.",
    operands: &["part", "like"],
    attributes: &[axes("axes"), flag("from_end")],
    shape: "any any -> like",
    storage: PLACED,
    gradient: &[gradient("part", "slice_like(grad, part, axes = axes, from_end = from_end)")],
    internal: true,
    reads_rows: &[all_rows("part")],
    result_rows: &[
        within_rows_unless(&["part"], &Condition::ROWS_MOVED),
        ResultRows::Moved(&["part"]),
    ],
    kernels: planned("slicing", "place"),
    ..DEFAULTS
};
