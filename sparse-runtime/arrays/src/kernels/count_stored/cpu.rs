//! How many elements are stored, on the CPU.

use crate::formats::{CsrView, Dense, Extents, RowSparseView};
use crate::kernels::Context;
use crate::kernels::extremes::without;
use sparse_core::element::{Float, Stored};
use sparse_core::ir::Axes;

/// Of a csr matrix.
pub fn csr<V: Stored>(
    out: &mut Dense<u64>,
    x: CsrView<'_, V>,
    axis: Axes,
    keepdims: bool,
    _context: &mut Context,
) {
    let (shape, axis) = without(&x.extents(), axis, keepdims);
    out.reset(shape);
    let counts = out.values_mut();
    match axis {
        None => counts[0] = x.nnz() as u64,
        Some(0) => x.iter_columns().for_each(|column| counts[column] += 1),
        Some(_) => {
            for (count, (start, end)) in counts.iter_mut().zip(x.starts().iter().zip(x.ends())) {
                *count = end - start;
            }
        }
    }
}

/// Of a row_sparse array.
pub fn row_sparse<T: Float>(
    out: &mut Dense<u64>,
    x: RowSparseView<'_, T>,
    axis: Axes,
    keepdims: bool,
    _context: &mut Context,
) {
    let (shape, axis) = without(x.shape(), axis, keepdims);
    out.reset(shape);
    let counts = out.values_mut();
    match axis {
        None => counts[0] = x.values().len() as u64,
        Some(0) => counts.fill(x.n_stored() as u64),
        Some(axis) => {
            let extent = x.shape()[axis];
            let size = x.shape().row_size() / extent.max(1);
            for (id, _) in x.iter_rows() {
                counts[id * size..(id + 1) * size].fill(extent as u64);
            }
        }
    }
}
