//! Changes of storage: the only operators that make a sparse value dense.

use super::write::{DEFAULTS, all_rows, gradient, rule, shared, within_rows};
use super::{CsrPattern, Operator};
use crate::storage::Storage;

pub(super) const ALL: &[&Operator] = &[&DENSE, &CSR, &ROW_SPARSE];

const DENSE: Operator = Operator {
    cost: "O(size of the result).",
    name: "dense",
    converts_to: Some(Storage::Dense),
    summary: "The same values, stored densely: O(rows · columns) memory.",
    storage: &[
        rule("dense -> dense").on_gpu(),
        rule("csr -> dense").on_gpu().of_units(),
        rule("row_sparse -> dense").on_gpu(),
    ],
    gradient: &[gradient("x", "grad")],
    reads_rows: &[all_rows("x")],
    kernels: shared("casts"),
    ..DEFAULTS
};

const CSR: Operator = Operator {
    cost: "O(size) of a dense operand, O(stored elements) of a sparse one.",
    name: "csr",
    converts_to: Some(Storage::Csr),
    summary: "The same values as csr; a dense operand stores its elements other than zero. The ones of a `csr<unit>` are written out, for \
              operators that have no kernel for a pattern.",
    shape: "[m, n] -> [m, n]",
    storage: &[
        rule("dense -> csr").on_gpu(),
        rule("csr -> csr").on_gpu().of_units(),
        rule("row_sparse -> csr").on_gpu(),
    ],
    gradient: &[gradient("x", "grad")],
    csr_pattern: CsrPattern::Operand("x"),
    reads_rows: &[all_rows("x")],
    kernels: shared("casts"),
    ..DEFAULTS
};

const ROW_SPARSE: Operator = Operator {
    cost: "O(size) of a dense operand, O(stored elements) of a sparse one; of a csr O(non-empty rows · columns).",
    name: "row_sparse",
    converts_to: Some(Storage::RowSparse),
    summary: "The same values as row_sparse; a dense operand stores its rows that have an element other \
              than zero.",
    storage: &[
        rule("dense -> row_sparse").on_gpu(),
        rule("csr -> row_sparse").on_gpu(),
        rule("row_sparse -> row_sparse").on_gpu(),
    ],
    gradient: &[gradient("x", "grad")],
    reads_rows: &[all_rows("x")],
    result_rows: &[within_rows(&["x"])],
    kernels: shared("casts"),
    ..DEFAULTS
};
