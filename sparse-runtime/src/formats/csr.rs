//! `csr`: compressed sparse rows.

use super::{ColumnIds, ColumnIdsView};
use crate::device::{Cpu, Device};
use sparse_core::element::Element;

/// A matrix in compressed sparse rows.
///
/// Invariant: `indptr` has `n_rows + 1` entries, starts at 0, never decreases and ends at `nnz`; inside a row
/// the columns ascend strictly and are below `n_cols`; there are as many values as columns.
#[derive(Clone)]
pub struct Csr<T: Element = f32, D: Device = Cpu> {
    n_cols: usize,
    indptr: D::Buffer<u64>,
    columns: ColumnIds,
    values: D::Buffer<T>,
}

/// A borrowed csr matrix, or a selection of rows of one.
///
/// In the four-array form: row `i` is `starts[i]..ends[i]` of the columns and values, so that a run of rows is two
/// overlapping slices of one `indptr`, and a shuffled batch is two gathered ones, without touching the non-zeros.
///
/// Invariant: as [`Csr`], row by row; `starts[i] <= ends[i] <= columns.len()`.
#[derive(Clone, Copy)]
pub struct CsrView<'a, T: Element = f32, D: Device = Cpu> {
    n_cols: usize,
    starts: D::Slice<'a, u64>,
    ends: D::Slice<'a, u64>,
    columns: ColumnIdsView<'a>,
    values: D::Slice<'a, T>,
}
