//! Updates of weights that lie one behind the other, of which each of several threads has some columns, and finds its entries of them by
//! itself: [`OwnEntries`].

use crate::formats::CsrView;
use crate::kernels::own_entries::OwnEntries;
use crate::lanes::x86;
use crate::optimizer::RowWeights;
use crate::row_parts::{Cuts, RowPart};
use crate::team;
use sparse_core::element::{Factor, Float};
use std::any::TypeId;

/// Whether [`add`] adds these entries to such weights. Not where the processor does well at masks, as nobody has measured it there.
pub(super) fn are_added<T: Float, V: Factor<T>>(
    x: CsrView<'_, V>,
    weights: RowWeights<'_, T>,
) -> bool {
    (cfg!(test) || !x86::gathers_under_masks())
        && OwnEntries::of::<T>(x.with_rows(&[], &[]), &[]).is_some()
        && first(weights).is_some()
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
) -> bool {
    let (Some(all), true) = (OwnEntries::of::<T>(x, changes), first(weights).is_some()) else {
        return false;
    };
    team::each(parts, |place, _| {
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
