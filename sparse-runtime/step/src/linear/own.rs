//! Sums of gradients of a parameter of one column, divided among threads by table rows; each thread
//! finds its entries by itself: [`ColumnEntries`].

use crate::optimizer::RowAccumulator;
use nnz_arrays::formats::CsrView;
use nnz_arrays::kernels::column_entries::ColumnEntries;
use nnz_device::simd::{are_f32, x86};
use sparse_core::element::{Factor, Float, Stored};
use std::ops::Range;

/// Whether [`accumulate`] sums these entries: those of a batch that is still in a cache. It reads
/// more than a loop over cut samples, and is slower for larger batches.
pub(super) fn are_summed<T: Float, V: Factor<T>>(x: CsrView<'_, V>) -> bool {
    is_cached(x) && are_found::<T, V>(x)
}

/// Whether entries that were read for the scores are still in a cache.
fn is_cached<V: Stored>(x: CsrView<'_, V>) -> bool {
    const CACHED: usize = 8 << 20;
    x.nnz().saturating_mul(size_of::<u32>() + size_of::<V>()) <= CACHED
}

/// Whether threads find these entries by themselves. A processor with fast masked gathers gains
/// nothing over cut samples.
fn are_found<T: Float, V: Factor<T>>(x: CsrView<'_, V>) -> bool {
    (const { are_f32::<T, V>() })
        && (cfg!(test) || !x86::gathers_under_masks())
        && ColumnEntries::<V, T::Accumulator>::of(x.with_rows(&[], &[]), &[]).is_some()
}

/// Sums the entries of some columns, times the gradients of their rows. Tells whether it did, as
/// [`are_summed`] says.
///
/// # Safety
///
/// The sums are for the columns of `x`, of one element.
pub(super) unsafe fn accumulate<T: Float, V: Factor<T>>(
    sums: &mut RowAccumulator,
    x: CsrView<'_, V>,
    columns: Range<usize>,
    gradients: &[T::Accumulator],
) -> bool {
    if const { !are_f32::<T, V>() } {
        return false;
    }
    match ColumnEntries::of(x, gradients) {
        Some(all) => {
            // SAFETY: promised by the caller.
            unsafe { sums.add_own(&all.in_columns(columns)) };
            true
        }
        None => false,
    }
}
