//! Reductions, and their inverse, broadcasting.

use super::write::{
    DEFAULTS, all_rows, axes, flag, gradient, gradient_when, integer, no_gradient, rule, shared,
    within_rows,
};
use super::{Combine, Condition, Kind, Operator, Placement, Reduction, ResultRows, Rule};

/// The rows of reductions: constant, name, how elements are combined, the formulas, and the
/// gradient.
macro_rules! reductions {
    ($($NAME:ident $name:literal $(($attribute:expr))? = $combine:ident of $map:literal, then $finish:literal, $rules:ident,
        gradient = $gradient:expr, $summary:literal;)*) => {
        pub(super) const ALL: &[&Operator] =
            &[$(&$NAME,)* &LOGSUMEXP, &REDUCE_TO, &BROADCAST_LIKE, &BROADCAST_AT];

        $(
            const $NAME: Operator = Operator {
                name: $name,
                summary: $summary,
                attributes: &[axes("axis"), flag("keepdims"), flag("exclude") $(, $attribute)?],
                shape: "reduce",
                storage: $rules,
                gradient: $gradient,
                kind: Kind::Reduction(Reduction { map: $map, combine: Combine::$combine, finish: $finish }),
                ..DEFAULTS
            };
        )*
    };
}

/// Reductions read what is stored and give a dense result.
const REDUCTION: &[Rule] = &[
    rule("dense -> dense").on_gpu(),
    rule("csr -> dense").on_gpu(),
    rule("row_sparse -> dense").on_gpu(),
];

/// An element that is not stored makes a product 0: dense operands only.
const DENSE: &[Rule] = &[rule("dense -> dense").on_gpu()];

/// As `REDUCTION`, but that the rows which a row_sparse array does not store stay so.
const KEEPS_ROWS: &[Rule] = &[
    rule("dense -> dense").on_gpu(),
    rule("csr -> dense").on_gpu(),
    rule("row_sparse -> row_sparse").on_gpu().only(&Condition::ROWS_STAY),
    rule("row_sparse -> dense").on_gpu(),
];

reductions! {
    SUM "sum" = Sum of "x", then "s", REDUCTION,
        gradient = &[gradient("x", "broadcast_like(grad, x, axis = axis, exclude = exclude)")],
        "The sum over axes, or over everything.";
    MEAN "mean" = Sum of "x", then "s / n", REDUCTION,
        gradient = &[gradient("x", "broadcast_like(grad, x, axis = axis, exclude = exclude, mean = true)")],
        "The mean over axes, or over everything; elements that are not stored count as zeros.";
    SQUARE_SUM "square_sum" = Sum of "x * x", then "s", KEEPS_ROWS,
        gradient = &[gradient("x", "broadcast_like(grad * 2, x, axis = axis, exclude = exclude) * x")],
        "The sum of squares over axes, or over everything. Of a row_sparse array, over axes other than the first, it is row_sparse.";
    NORM "norm" (integer("ord", 2)) =
        Sum of "select(ord == 1, abs(x), x * x)", then "select(ord == 1, s, sqrt(s))", REDUCTION,
        gradient = &[
            gradient_when("ord == 1", "x", "broadcast_like(grad, x, axis = axis, exclude = exclude) * sign(x)"),
            gradient("x", "broadcast_like(grad / (out + (out == 0)), x, axis = axis, exclude = exclude) * x"),
        ],
        "The norm over axes, or over everything: √Σx², or Σ|x| with `ord = 1`. Its gradient at 0 is taken as 0.";
    PRODUCT "prod" = Product of "x", then "s", DENSE,
        gradient = &[gradient("x", "broadcast_like(grad * out, x, axis = axis, exclude = exclude) / x")],
        "The product over axes, or over everything. Its gradient is not a number where an element is 0.";
    NANSUM "nansum" = Sum of "select(x == x, x, 0)", then "s", REDUCTION,
        gradient = &[gradient("x", "broadcast_like(grad, x, axis = axis, exclude = exclude) \
            - broadcast_like(grad, x, axis = axis, exclude = exclude) * (x != x)")],
        "The sum over axes, or over everything, of what is not NaN.";
    MAX "max" = Largest of "x", then "s", REDUCTION,
        gradient = &[gradient("x", "broadcast_like(grad, x, axis = axis, exclude = exclude) * \
            (1 - (x != broadcast_like(out, x, axis = axis, exclude = exclude)))")],
        "The largest element over axes, or of everything; an element that is not stored is a 0. Equal ones share a gradient: each has all of it.";
    MIN "min" = Smallest of "x", then "s", REDUCTION,
        gradient = &[gradient("x", "broadcast_like(grad, x, axis = axis, exclude = exclude) * \
            (1 - (x != broadcast_like(out, x, axis = axis, exclude = exclude)))")],
        "The smallest element over axes, or of everything; an element that is not stored is a 0. Equal ones share a gradient: each has all of it.";
}

const LOGSUMEXP: Operator = Operator {
    name: "logsumexp",
    summary: "log Σ exp(x) over each row, without overflow: what the softmax of the row is divided by, as a logarithm.",
    shape: "[n, k] -> [n]",
    storage: &[rule("dense -> dense").on_gpu()],
    gradient: &[gradient("x", "broadcast_like(grad, x, axis = 1) * softmax(x)")],
    cost: "O(size).",
    alternative: Some(
        "an element that is not stored counts as `exp(0)`: accept the cost with `logsumexp(dense({}))`",
    ),
    kernels: shared("softmax"),
    ..DEFAULTS
};

const REDUCE_TO: Operator = Operator {
    cost: "O(stored elements + size of the result).",
    name: "reduce_to",
    summary: "Sums `x` over the axes along which `like` was broadcast to it: the gradient of \
              broadcasting. The identity where the shapes are equal.",
    operands: &["x", "like"],
    shape: "any any -> like",
    storage: &[
        rule("dense dense -> dense").on_gpu(),
        rule("dense csr -> dense").on_gpu(),
        rule("dense row_sparse -> dense").on_gpu(),
        rule("csr dense -> dense").on_gpu(),
        rule("csr csr -> csr").on_gpu().same_shape(),
        rule("row_sparse dense -> dense").on_gpu(),
        rule("row_sparse row_sparse -> row_sparse").on_gpu().same_shape(),
        rule("row_sparse csr -> row_sparse").on_gpu().same_shape(),
        rule("csr row_sparse -> csr").on_gpu().same_shape(),
    ],
    gradient: &[gradient("x", "broadcast_like(grad, x)")],
    undoes_broadcasting: true,
    reads_rows: &[all_rows("x")],
    result_rows: &[within_rows(&["x"])],
    internal: true,
    ..DEFAULTS
};

const BROADCAST_LIKE: Operator = Operator {
    cost: "O(size of the result), of a row_sparse one its stored rows.",
    name: "broadcast_like",
    placement: Placement::RepeatedLike,
    summary: "Repeats `x` to the shape of `like`, the reduced axes put back: the gradient of a \
              reduction. With `mean`, divided by the number of repetitions. A row_sparse `x` has the rows of `like`.",
    operands: &["x", "like"],
    attributes: &[axes("axis"), flag("exclude"), flag("mean")],
    shape: "any any -> like",
    storage: &[
        rule("dense dense -> dense").on_gpu(),
        rule("dense csr -> dense").on_gpu(),
        rule("dense row_sparse -> dense").on_gpu(),
        rule("row_sparse dense -> row_sparse").on_gpu(),
        rule("row_sparse row_sparse -> row_sparse").on_gpu(),
        rule("scalar dense -> dense").on_gpu(),
        rule("scalar csr -> dense").on_gpu(),
        rule("scalar row_sparse -> dense").on_gpu(),
    ],
    gradient: &[no_gradient("x", "second derivatives of reductions are not offered")],
    at_pattern: Some("broadcast_at"),
    reads_rows: &[all_rows("x")],
    result_rows: &[within_rows(&["x"])],
    internal: true,
    ..DEFAULTS
};

const BROADCAST_AT: Operator = Operator {
    cost: "O(stored elements of `like`): the array of its shape is never made.",
    name: "broadcast_at",
    summary: "As `broadcast_like`, at the places that `like` stores; its values are not read. The gradient of a reduction of a csr, or of \
              a computed row_sparse array, is made of it.",
    operands: &["x", "like"],
    attributes: &[axes("axis"), flag("exclude"), flag("mean")],
    shape: "any any -> like",
    storage: &[
        rule("dense csr -> csr").on_gpu(),
        rule("scalar csr -> csr").on_gpu(),
        rule("dense row_sparse -> row_sparse").on_gpu(),
        rule("scalar row_sparse -> row_sparse").on_gpu(),
    ],
    gradient: &[no_gradient("x", "second derivatives of reductions are not offered")],
    csr_pattern: super::CsrPattern::Operand("like"),
    result_rows: &[ResultRows::Like],
    internal: true,
    ..DEFAULTS
};
