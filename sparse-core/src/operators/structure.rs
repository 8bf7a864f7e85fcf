//! Operators that move elements and compute nothing, and normalisation along an axis.

use super::write::{DEFAULTS, all_rows, gradient, integer, no_gradient, rule, shared};
use super::{CsrPattern, Link, Operator, Placement, ResultRows};

pub(super) const ALL: &[&Operator] =
    &[&TRANSPOSE, &ZEROS_LIKE, &SOFTMAX, &LOG_SOFTMAX, &SOFTMAX_GRADIENT];

const TRANSPOSE: Operator = Operator {
    cost: "O(size), of a csr O(nnz + rows + columns).",
    name: "transpose",
    placement: Placement::Transposed,
    summary: "The matrix with rows and columns exchanged. Inside `dot` it costs nothing: it becomes \
              the flag of the product.",
    shape: "[m, n] -> [n, m]",
    storage: &[rule("dense -> dense").on_gpu(), rule("csr -> csr").on_gpu()],
    gradient: &[gradient("x", "transpose(grad)")],
    csr_pattern: CsrPattern::OfOperands,
    ..DEFAULTS
};

const ZEROS_LIKE: Operator = Operator {
    cost: "O(size) of a dense operand, O(rows) of a csr, O(1) of a row_sparse one.",
    name: "zeros_like",
    summary: "Zeros in the shape and storage of the operand: of a sparse one, nothing is stored.",
    storage: &[
        rule("dense -> dense").on_gpu(),
        rule("csr -> csr").on_gpu(),
        rule("row_sparse -> row_sparse").on_gpu(),
    ],
    gradient: &[gradient("x", "0")],
    csr_pattern: CsrPattern::OfOperands,
    reads_rows: &[all_rows("x")],
    result_rows: &[ResultRows::Nothing],
    kernels: shared("casts"),
    ..DEFAULTS
};

const SOFTMAX: Operator = Operator {
    cost: "O(size).",
    name: "softmax",
    summary: "The softmax along an axis, of a matrix of each row: exp(x) over the sum of exp(x), computed without overflow.",
    attributes: &[integer("axis", -1)],
    shape: "along",
    storage: &[rule("dense -> dense").on_gpu()],
    gradient: &[gradient("x", "softmax_gradient(grad, out, axis = axis)")],
    alternative: Some(
        "an element that is not stored is a score of 0 and has a probability: accept the cost with `softmax(dense({}))`",
    ),
    link: Some(Link::Softmax),
    ..DEFAULTS
};

const LOG_SOFTMAX: Operator = Operator {
    cost: "O(size).",
    name: "log_softmax",
    summary: "The logarithm of the softmax along an axis, of a matrix of each row: x minus the logarithm of the sum of exp(x), computed \
              without overflow.",
    attributes: &[integer("axis", -1)],
    shape: "along",
    storage: &[rule("dense -> dense").on_gpu()],
    gradient: &[gradient("x", "grad - exp(out) * sum(grad, axis = axis, keepdims = true)")],
    alternative: Some(
        "an element that is not stored is a score of 0 and has a probability: accept the cost with `log_softmax(dense({}))`",
    ),
    kernels: shared("softmax"),
    ..DEFAULTS
};

const SOFTMAX_GRADIENT: Operator = Operator {
    cost: "O(size).",
    name: "softmax_gradient",
    summary: "The gradient of softmax: y · (g - Σ g y) along the axis.",
    operands: &["grad", "y"],
    attributes: &[integer("axis", -1)],
    shape: "same same -> same",
    storage: &[rule("dense dense -> dense").on_gpu()],
    gradient: &[
        no_gradient("grad", "second derivatives are not offered"),
        no_gradient("y", "second derivatives are not offered"),
    ],
    internal: true,
    kernels: shared("softmax"),
    ..DEFAULTS
};
