//! Column ids: `u32` where the width fits, `u64` where it does not, chosen once by the constructor.

use sparse_core::element::Id;

/// An integer type for column ids.
pub trait ColumnId: Id {
    /// As an index. Lossless: an array's ids are below its width, which is a `usize`.
    fn at(self) -> usize;
}

impl ColumnId for u32 {
    #[inline(always)]
    fn at(self) -> usize {
        self as usize
    }
}

impl ColumnId for u64 {
    #[inline(always)]
    fn at(self) -> usize {
        self as usize
    }
}

/// Owned column ids.
#[derive(Clone, Debug, PartialEq)]
pub enum ColumnIds {
    /// For widths up to 2³².
    U32(Vec<u32>),
    /// For wider arrays.
    U64(Vec<u64>),
}

/// Borrowed column ids.
#[derive(Clone, Copy, Debug)]
pub enum ColumnIdsView<'a> {
    /// For widths up to 2³².
    U32(&'a [u32]),
    /// For wider arrays.
    U64(&'a [u64]),
}

/// Runs `$body` with `$ids` bound to the slice of ids of either width: one branch a call, none inside.
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
