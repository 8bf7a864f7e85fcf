//! `row_sparse`: some rows of a larger array.

use super::Shape;
use crate::device::{Cpu, Device};
use sparse_core::element::Element;

/// Some rows of a larger array; the others are zero.
///
/// Invariant: row ids ascend strictly and are below `shape[0]`; `values` holds one row of `shape.row_size()`
/// elements for each id, in order.
#[derive(Clone)]
pub struct RowSparse<T: Element = f32, D: Device = Cpu> {
    shape: Shape,
    indices: D::Buffer<u64>,
    values: D::Buffer<T>,
}

/// A borrowed row_sparse array.
#[derive(Clone, Copy)]
pub struct RowSparseView<'a, T: Element = f32, D: Device = Cpu> {
    shape: Shape,
    indices: RowIdsView<'a, D>,
    values: D::Slice<'a, T>,
}

/// The row ids of a view.
#[derive(Clone, Copy)]
pub enum RowIdsView<'a, D: Device = Cpu> {
    /// Every row is stored: a parameter's table.
    All,
    /// These rows are stored.
    Listed(D::Slice<'a, u64>),
}
