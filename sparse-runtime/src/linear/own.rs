//! Updates of a parameter of one column, of which each of several threads has some rows, and finds its entries of them by itself: [`OwnEntries`].

use crate::formats::CsrView;
use crate::kernels::own_entries::OwnEntries;
use crate::lanes::{are_f32, x86};
use crate::optimizer::{RowAccumulator, RowWeights};
use crate::row_parts::{Cuts, RowPart, each_updates};
use sparse_core::element::{Factor, Float, Stored};
use std::any::{Any, TypeId};
use std::ops::Range;

/// Whether [`add`] adds these entries to such weights.
pub(super) fn are_added<T: Float, V: Factor<T>>(
    x: CsrView<'_, V>,
    weights: RowWeights<'_, T>,
) -> bool {
    are_found::<T, V>(x) && first(weights).is_some()
}

/// Whether [`accumulate`] sums these entries: of a batch that is still in a cache. Of larger ones it reads more, and takes a few percent longer than
/// where rows are cut.
pub(super) fn are_summed<T: Float, V: Factor<T>>(x: CsrView<'_, V>) -> bool {
    is_cached(x) && are_found::<T, V>(x)
}

/// Whether entries that were read for the scores are still in a cache.
fn is_cached<V: Stored>(x: CsrView<'_, V>) -> bool {
    const CACHED: usize = 8 << 20;
    x.nnz().saturating_mul(size_of::<u32>() + size_of::<V>()) <= CACHED
}

/// Whether threads find these entries by themselves. Not where the processor does well at masks: on Intel's that takes as long as to go over rows that
/// are cut.
fn are_found<T: Float, V: Factor<T>>(x: CsrView<'_, V>) -> bool {
    (cfg!(test) || !x86::gathers_under_masks())
        && OwnEntries::of::<T>(x.with_rows(&[], &[]), &[]).is_some()
}

/// Sums the entries of some columns, times the changes of their rows. Tells whether it did, as [`are_summed`] says.
///
/// # Safety
///
/// The sums are for the columns of `x`, of one element.
pub(super) unsafe fn accumulate<T: Float, V: Factor<T>>(
    sums: &mut RowAccumulator<T::Accumulator>,
    x: CsrView<'_, V>,
    columns: Range<usize>,
    changes: &[T::Accumulator],
) -> bool {
    if const { !are_f32::<T, V>() } {
        return false;
    }
    let sums = (sums as &mut dyn Any).downcast_mut::<RowAccumulator<f32>>();
    match (OwnEntries::of::<T>(x, changes), sums) {
        (Some(all), Some(sums)) => {
            // SAFETY: promised by the caller.
            unsafe { sums.add_own::<T, V>(&all.in_columns(columns)) };
            true
        }
        _ => false,
    }
}

/// Adds to each weight the entries of its column, times the changes of their rows, on as many threads as parts. Tells whether it did, as
/// [`are_added`] says.
///
/// # Safety
///
/// The columns of `x` are rows of the parameter, of one element, which nobody else reads or writes meanwhile.
pub(super) unsafe fn add<T: Float, V: Factor<T>>(
    x: CsrView<'_, V>,
    changes: &[T::Accumulator],
    weights: RowWeights<'_, T>,
    cuts: &Cuts,
    parts: &mut [RowPart<T::Accumulator>],
    are_far: bool,
) -> bool {
    if const { !are_f32::<T, V>() } {
        return false;
    }
    let (Some(all), true) = (OwnEntries::of::<T>(x, changes), first(weights).is_some()) else {
        return false;
    };
    let all = if are_far { all.with_far_numbers() } else { all };
    each_updates(parts, |place, _| {
        let columns = cuts.columns(place);
        if let Some(first) = first(weights) {
            // SAFETY: promised by the caller; each column is of one part.
            unsafe { all.in_columns(columns.clone()).add::<T, false>(first.add(columns.start)) };
        }
    });
    true
}

/// The first of weights of f32 that lie one behind the other.
fn first<T: Float>(weights: RowWeights<'_, T>) -> Option<*mut f32> {
    let (first, stride) = weights.addresses();
    let are_f32 = TypeId::of::<T>() == TypeId::of::<f32>();
    (are_f32 && stride == size_of::<f32>()).then_some(first.cast_mut().cast())
}
