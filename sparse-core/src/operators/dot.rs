//! Matrix products.

use super::write::{
    DEFAULTS, all_rows, flag, gradient, gradient_when, rows_by, rule, storage, within_rows,
};
use super::{
    Condition, CsrPattern, MatrixProduct, Operator, ResultRows, RowNames, RowUse, Weights,
};
use crate::storage::Storage::Dense;

pub(super) const ALL: &[&Operator] = &[&DOT, &OUTER];

/// The rows of the result are those of the left side, which a vector does not have.
const OF_A_MATRIX: Condition = Condition {
    text: "where lhs is a matrix",
    suffix: "",
    holds: |given| given.ranks.first() == Some(&2),
};

const DOT: Operator = Operator {
    cost: "O(m · k · n) of a dense product; O(nnz · columns of the other) with a csr, transposed or not: never the width of a table; \
           O(values stored · rows or columns of the other) with a row_sparse operand.",
    name: "dot",
    summary: "The product of two matrices, either read transposed on request; of a matrix and a vector, a vector and a matrix, or the \
              inner product of two vectors.",
    operands: &["lhs", "rhs"],
    is_associative: true,
    matrix_product: MatrixProduct::ByFlags,
    attributes: &[flag("transpose_lhs"), flag("transpose_rhs"), storage("out")],
    shape: "[m, k] [k, n] -> [m, n] | [m, k] [k] -> [m] | [k] [k, n] -> [n] | [k] [k] -> []",
    storage: &[
        rule("dense dense -> dense").on_gpu(),
        rule("csr dense -> dense").on_gpu().of_units(),
        rule("csr' dense -> row_sparse").on_gpu().or_on_request(Dense).of_units(),
        rule("csr row_sparse -> dense").on_gpu().of_units(),
        rule("csr row_sparse' -> dense").on_gpu().of_units(),
        rule("csr' row_sparse -> row_sparse").on_gpu().or_on_request(Dense).of_units(),
        rule("dense csr -> csr").on_gpu().or_on_request(Dense).only(&OF_A_MATRIX).of_units(),
        rule("dense csr' -> dense").on_gpu().of_units(),
        rule("dense row_sparse -> dense").on_gpu(),
        rule("dense row_sparse' -> dense").on_gpu(),
        rule("row_sparse dense -> row_sparse").on_gpu().only(&OF_A_MATRIX),
        rule("row_sparse' dense -> dense").on_gpu(),
        rule("row_sparse' row_sparse -> dense").on_gpu(),
    ],
    gradient: &[
        gradient_when("lhs_rank == 1 and rhs_rank == 1", "lhs", "rhs * grad"),
        gradient_when("lhs_rank == 1", "lhs", "dot(rhs, grad, transpose_lhs = transpose_rhs)"),
        gradient_when("rhs_rank == 1 and transpose_lhs", "lhs", "outer(rhs, grad)"),
        gradient_when("rhs_rank == 1", "lhs", "outer(grad, rhs)"),
        gradient_when("lhs_rank == 1 and rhs_rank == 1", "rhs", "lhs * grad"),
        gradient_when("rhs_rank == 1", "rhs", "dot(lhs, grad, transpose_lhs = !transpose_lhs)"),
        gradient_when("lhs_rank == 1 and transpose_rhs", "rhs", "outer(grad, lhs)"),
        gradient_when("lhs_rank == 1", "rhs", "outer(lhs, grad)"),
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
    weights: Weights::Operands(&["lhs", "rhs"]),
    at_pattern: Some("sampled_dot"),
    csr_pattern: CsrPattern::EveryRow,
    reads_rows: &[
        rows_by("rhs", "lhs", RowUse::Product).only("!transpose_lhs and !transpose_rhs"),
        all_rows("lhs"),
        all_rows("rhs"),
    ],
    result_rows: &[
        ResultRows::Added {
            by: RowNames::Columns("lhs"),
            what: RowUse::Product,
            of: "rhs",
            when: Some("transpose_lhs and !transpose_rhs"),
        },
        ResultRows::Added {
            by: RowNames::Columns("lhs"),
            what: RowUse::Otherwise,
            of: "rhs",
            when: Some("transpose_lhs"),
        },
        within_rows(&["lhs"]),
    ],
    ..DEFAULTS
};

const OUTER: Operator = Operator {
    cost: "O(m · n), of a row_sparse lhs O(rows stored · n).",
    name: "outer",
    matrix_product: MatrixProduct::Outer,
    summary: "The products of all elements of a vector with all of another.",
    operands: &["lhs", "rhs"],
    shape: "[m] [n] -> [m, n]",
    storage: &[
        rule("dense dense -> dense").on_gpu(),
        rule("dense row_sparse -> dense").on_gpu(),
        rule("row_sparse dense -> row_sparse").on_gpu(),
        rule("row_sparse row_sparse -> row_sparse").on_gpu(),
    ],
    gradient: &[
        gradient("lhs", "dot(grad, rhs)"),
        gradient("rhs", "dot(grad, lhs, transpose_lhs = true)"),
    ],
    weights: Weights::Operands(&["lhs", "rhs"]),
    at_pattern: Some("sampled_dot"),
    reads_rows: &[all_rows("lhs"), all_rows("rhs")],
    result_rows: &[within_rows(&["lhs"])],
    ..DEFAULTS
};
