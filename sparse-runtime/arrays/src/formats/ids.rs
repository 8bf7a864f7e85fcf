//! Column ids: `u32` where the width fits, `u64` where it does not, chosen once by the constructor.

use crate::with_column_ids;
use sparse_core::element::Id;
use std::ops::Range;

/// An integer type for column ids.
#[diagnostic::on_unimplemented(
    message = "arrays do not hold columns as `{Self}`",
    note = "they hold `u32` where the number of columns allows it, else `u64`"
)]
pub trait ColumnId: Id + sealed::Sealed {
    /// As an index. Lossless: an array's ids are below its width, which is a `usize`.
    fn at(self) -> usize;

    /// From an index, which must be below the width of an array whose ids are of this type.
    fn from_index(index: usize) -> Self;

    /// Owned ids of this type as [`ColumnIds`].
    fn into_ids(ids: Vec<Self>) -> ColumnIds;

    /// Takes the allocation out of `ids` if they are of this type, cleared; a new one if not.
    #[doc(hidden)]
    fn take(ids: &mut ColumnIds) -> Vec<Self>;
}

macro_rules! column_ids {
    ($($id:ident $variant:ident),*) => {
        $(impl ColumnId for $id {
            #[inline(always)]
            fn at(self) -> usize {
                self as usize
            }

            #[inline(always)]
            fn from_index(index: usize) -> Self {
                index as $id
            }

            fn into_ids(ids: Vec<Self>) -> ColumnIds {
                ColumnIds::$variant(ids)
            }

            fn take(ids: &mut ColumnIds) -> Vec<Self> {
                match std::mem::take(ids) {
                    ColumnIds::$variant(mut ids) => {
                        ids.clear();
                        ids
                    }
                    _ => Vec::new(),
                }
            }
        }

        impl From<Vec<$id>> for ColumnIds {
            fn from(ids: Vec<$id>) -> Self {
                ColumnIds::$variant(ids)
            }
        }

        impl<'a> From<&'a [$id]> for ColumnIdsView<'a> {
            fn from(ids: &'a [$id]) -> Self {
                ColumnIdsView::$variant(ids)
            }
        })*
    };
}

column_ids!(u32 U32, u64 U64);

/// An integer type that columns may be given in: `u32`, `u64` or `usize`.
#[diagnostic::on_unimplemented(
    message = "columns cannot be given as `{Self}`",
    note = "columns are numbered from 0 without a sign: `ids_from_signed` makes ids of `i64` and \
            refuses what is negative"
)]
pub trait ColumnIndex: Copy + sealed::Sealed {
    #[doc(hidden)]
    fn to_u64(self) -> u64;

    /// The ids in the width that `n_cols` asks for. They must have been checked to be below it.
    #[doc(hidden)]
    fn into_column_ids(ids: Vec<Self>, n_cols: usize) -> ColumnIds;

    /// The same numbers as `u64`, without copying where they have 64 bits.
    #[doc(hidden)]
    fn into_u64(numbers: Vec<Self>) -> Vec<u64>;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for u32 {}
    impl Sealed for u64 {}
    impl Sealed for usize {}
}

impl ColumnIndex for u32 {
    #[inline(always)]
    fn to_u64(self) -> u64 {
        self.into()
    }

    fn into_column_ids(ids: Vec<u32>, n_cols: usize) -> ColumnIds {
        if fits_u32(n_cols) { ColumnIds::U32(ids) } else { ColumnIds::U64(u32::into_u64(ids)) }
    }

    fn into_u64(numbers: Vec<u32>) -> Vec<u64> {
        numbers.into_iter().map(u64::from).collect()
    }
}

impl ColumnIndex for u64 {
    #[inline(always)]
    fn to_u64(self) -> u64 {
        self
    }

    fn into_column_ids(ids: Vec<u64>, n_cols: usize) -> ColumnIds {
        if fits_u32(n_cols) {
            ColumnIds::U32(ids.into_iter().map(|id| id as u32).collect())
        } else {
            ColumnIds::U64(ids)
        }
    }

    fn into_u64(numbers: Vec<u64>) -> Vec<u64> {
        numbers
    }
}

impl ColumnIndex for usize {
    #[inline(always)]
    fn to_u64(self) -> u64 {
        self as u64
    }

    fn into_column_ids(ids: Vec<usize>, n_cols: usize) -> ColumnIds {
        if fits_u32(n_cols) {
            ColumnIds::U32(ids.into_iter().map(|id| id as u32).collect())
        } else {
            ColumnIds::U64(usize::into_u64(ids))
        }
    }

    fn into_u64(numbers: Vec<usize>) -> Vec<u64> {
        bytemuck::allocation::try_cast_vec(numbers).unwrap_or_else(|(_, numbers)| {
            numbers.into_iter().map(|number| number as u64).collect()
        })
    }
}

/// Whether the ids of an array of this width are `u32`.
#[inline]
pub fn fits_u32(n_cols: usize) -> bool {
    n_cols as u64 <= 1 << 32
}

/// Owned column ids.
#[derive(Clone, Debug, PartialEq)]
pub enum ColumnIds {
    /// For widths up to 2³².
    U32(Vec<u32>),
    /// For wider arrays.
    U64(Vec<u64>),
}

impl ColumnIds {
    /// No ids, of the width that `n_cols` asks for.
    pub fn empty(n_cols: usize) -> Self {
        if fits_u32(n_cols) { ColumnIds::U32(Vec::new()) } else { ColumnIds::U64(Vec::new()) }
    }

    /// The number of ids.
    #[inline]
    pub fn len(&self) -> usize {
        self.view().len()
    }

    /// True if there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Borrowed.
    #[inline]
    pub fn view(&self) -> ColumnIdsView<'_> {
        match self {
            ColumnIds::U32(ids) => ColumnIdsView::U32(ids),
            ColumnIds::U64(ids) => ColumnIdsView::U64(ids),
        }
    }

    /// Removes all ids and takes the width that `n_cols` asks for, keeping the allocation where it
    /// is the same.
    pub(super) fn reset(&mut self, n_cols: usize) {
        match (self, fits_u32(n_cols)) {
            (ColumnIds::U32(ids), true) => ids.clear(),
            (ColumnIds::U64(ids), false) => ids.clear(),
            (ids, _) => *ids = ColumnIds::empty(n_cols),
        }
    }

    /// The same ids in the width that `n_cols` asks for, which must be above all of them.
    pub(super) fn into_width(self, n_cols: usize) -> Self {
        match self {
            ColumnIds::U32(ids) => u32::into_column_ids(ids, n_cols),
            ColumnIds::U64(ids) => u64::into_column_ids(ids, n_cols),
        }
    }
}

/// None.
impl Default for ColumnIds {
    fn default() -> Self {
        ColumnIds::U32(Vec::new())
    }
}

/// Borrowed column ids.
#[derive(Clone, Copy, Debug)]
pub enum ColumnIdsView<'a> {
    /// For widths up to 2³².
    U32(&'a [u32]),
    /// For wider arrays.
    U64(&'a [u64]),
}

impl<'a> ColumnIdsView<'a> {
    /// The number of ids.
    #[inline]
    pub fn len(&self) -> usize {
        with_column_ids!(self, |ids| ids.len())
    }

    /// True if there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The id at a position.
    #[inline]
    pub fn get(&self, position: usize) -> Option<usize> {
        with_column_ids!(self, |ids| ids.get(position).map(|id| id.at()))
    }

    /// A run of them, or `None` where they end before.
    #[inline]
    pub fn slice(&self, range: Range<usize>) -> Option<ColumnIdsView<'a>> {
        match self {
            ColumnIdsView::U32(ids) => ids.get(range).map(ColumnIdsView::U32),
            ColumnIdsView::U64(ids) => ids.get(range).map(ColumnIdsView::U64),
        }
    }

    /// The position of a column among ascending ids, in O(log n).
    #[inline]
    pub fn find(&self, column: usize) -> Option<usize> {
        with_column_ids!(self, |ids| ids.binary_search_by(|id| id.at().cmp(&column)).ok())
    }

    /// All ids, as indices.
    pub fn iter(self) -> impl DoubleEndedIterator<Item = usize> + ExactSizeIterator + 'a {
        (0..self.len()).map(move |position| with_column_ids!(self, |ids| ids[position].at()))
    }
}

/// Equal ids, whatever their width.
impl PartialEq for ColumnIdsView<'_> {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (ColumnIdsView::U32(left), ColumnIdsView::U32(right)) => left == right,
            (ColumnIdsView::U64(left), ColumnIdsView::U64(right)) => left == right,
            _ => self.iter().eq(other.iter()),
        }
    }
}

/// None.
impl Default for ColumnIdsView<'_> {
    fn default() -> Self {
        ColumnIdsView::U32(&[])
    }
}

/// Runs `$body` with `$ids` bound to the slice of ids of either width: one branch a call, none
/// inside.
#[doc(hidden)]
#[macro_export]
macro_rules! with_column_ids {
    ($view:expr, |$ids:ident| $body:expr) => {
        match $view {
            $crate::formats::ColumnIdsView::U32($ids) => $body,
            $crate::formats::ColumnIdsView::U64($ids) => $body,
        }
    };
}
/// Runs `$body` with the type `$id` being that of the ids of a matrix of `$n_cols` columns.
macro_rules! with_id_type {
    ($n_cols:expr, |$id:ident| $body:expr) => {
        if $crate::formats::fits_u32($n_cols) {
            type $id = u32;
            $body
        } else {
            type $id = u64;
            $body
        }
    };
}
pub(crate) use with_id_type;
