//! Matrix products.

use super::{Operator, ROW, flag, gradient_when, rule, storage};
use crate::storage::Storage::Dense;

pub(super) const ALL: &[&Operator] = &[&DOT];

const DOT: Operator = Operator {
    cost: "O(size) of a dense product; O(nnz · columns of the other) with a csr, transposed or not: never the width of a table.",
    name: "dot",
    summary: "The matrix product of two matrices, either read transposed on request.",
    operands: &["lhs", "rhs"],
    attributes: &[flag("transpose_lhs"), flag("transpose_rhs"), storage("out")],
    shape: "[m, k] [k, n] -> [m, n]",
    storage: &[
        rule("dense dense -> dense"),
        rule("csr dense -> dense"),
        rule("csr' dense -> row_sparse").or_on_request(Dense),
        rule("csr row_sparse -> dense"),
        rule("csr' row_sparse -> row_sparse").or_on_request(Dense),
        rule("dense csr -> csr").or_on_request(Dense),
        rule("dense csr' -> dense"),
    ],
    gradient: &[
        gradient_when("!transpose_lhs", "lhs", "dot(grad, rhs, transpose_rhs = !transpose_rhs)"),
        gradient_when(
            "transpose_lhs",
            "lhs",
            "dot(rhs, grad, transpose_lhs = transpose_rhs, transpose_rhs = true)",
        ),
        gradient_when("!transpose_rhs", "rhs", "dot(lhs, grad, transpose_lhs = !transpose_lhs)"),
        gradient_when(
            "transpose_rhs",
            "rhs",
            "dot(grad, lhs, transpose_lhs = true, transpose_rhs = transpose_lhs)",
        ),
    ],
    ..ROW
};
