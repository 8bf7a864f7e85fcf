//! Several element-wise operators as one loop, which the macro writes: no array between them.
//!
//! The functions here make the result's array, cut it in runs and call the loop for each. A run is
//! as long as what is stored side by side; the loop is called with the place of the run, the
//! elements of the first operand there, and those of the result, as many. It does what the kernels
//! of the operators do for an element, one after the other, so that the result has their bits.
//!
//! O(elements of the result). Parts of it are the work of several threads where it is large.

use super::{Context, parallel};
use crate::formats::{Csr, CsrView, Dense, DenseView, RowSparse, RowSparseView};
use nnz_device::simd::wide;
use nnz_device::thread_pool::{self, MAX_PARTS};
use sparse_core::element::Float;

/// What an element takes at least, in quarters of a nanosecond: two operands and a result pass
/// through memory.
const WORK_OF_AN_ELEMENT: usize = 4;

/// A result of the shape of `x`. The place of a run is the position of its first element.
#[inline]
pub fn dense<T: Float>(
    out: &mut Dense<T>,
    x: DenseView<'_, T>,
    context: &mut Context,
    body: impl Fn(usize, &[T], &mut [T]) + Sync,
) {
    out.reset_for_overwrite(*x.shape());
    on_threads(context, x.values(), out.values_mut(), 1, body);
}

/// A result of the shape of `x`, a row at a time: a run is what the last axis has, and its place
/// the number of runs before.
#[inline]
pub fn dense_rows<T: Float>(
    out: &mut Dense<T>,
    x: DenseView<'_, T>,
    context: &mut Context,
    body: impl Fn(usize, &[T], &mut [T]) + Sync,
) {
    out.reset_for_overwrite(*x.shape());
    let width = x.shape().last().copied().unwrap_or(1).max(1);
    on_threads(
        context,
        x.values(),
        out.values_mut(),
        width,
        #[inline(always)]
        |first: usize, x: &[T], out: &mut [T]| {
            let rows = x.chunks_exact(width).zip(out.chunks_exact_mut(width));
            for (row, (x, out)) in (first / width..).zip(rows) {
                body(row, x, out);
            }
        },
    );
}

/// A result that stores what `x` stores. The place of a run is the position of its first entry.
#[inline]
pub fn csr<T: Float>(
    out: &mut Csr<T>,
    x: CsrView<'_, T>,
    context: &mut Context,
    body: impl Fn(usize, &[T], &mut [T]) + Sync,
) {
    out.take_pattern(x);
    if x.is_contiguous() {
        return on_threads(context, &x.values()[x.entries()], out.values_mut(), 1, body);
    }
    let (mut at, mut rest) = (0, out.values_mut());
    for row in 0..x.n_rows() {
        let (_, x) = x.row(row).unwrap_or_default();
        let (out, after) = rest.split_at_mut(x.len());
        body(at, x, out);
        (at, rest) = (at + x.len(), after);
    }
}

/// A result that stores the rows that `x` stores. The place of a run is the position of its first
/// element among those stored.
#[inline]
pub fn row_sparse<T: Float>(
    out: &mut RowSparse<T>,
    x: RowSparseView<'_, T>,
    context: &mut Context,
    body: impl Fn(usize, &[T], &mut [T]) + Sync,
) {
    out.take_pattern(x);
    on_threads(context, x.values(), out.values_mut(), 1, body);
}

/// Runs `body` on parts of `out` and `x`, which are equally long, with the position at which each
/// begins, a multiple of `unit`.
#[inline]
fn on_threads<T: Float>(
    context: &Context,
    x: &[T],
    out: &mut [T],
    unit: usize,
    body: impl Fn(usize, &[T], &mut [T]) + Sync,
) {
    let n_parts = parallel::parts(context.parallel, out.len().saturating_mul(WORK_OF_AN_ELEMENT));
    if n_parts < 2 {
        return wide(
            #[inline(always)]
            || body(0, x, out),
        );
    }
    let size = (out.len() / unit).div_ceil(n_parts) * unit;
    let mut pieces = [const { None }; MAX_PARTS];
    let (mut rest, mut first) = (out, 0);
    for piece in &mut pieces[..n_parts] {
        let (out, after) = rest.split_at_mut(size.min(rest.len()));
        *piece = Some((first, out));
        first += size;
        rest = after;
    }
    thread_pool::each(&mut pieces[..n_parts], |_, piece| {
        if let Some((first, out)) = piece {
            let x = &x[(*first).min(x.len())..][..out.len()];
            wide(
                #[inline(always)]
                || body(*first, x, out),
            );
        }
    });
}
