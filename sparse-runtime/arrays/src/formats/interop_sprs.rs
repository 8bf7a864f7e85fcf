//! Exchange with `sprs`; what is copied and what is not is in the documentation of
//! [`formats`](super).
//!
//! Deliberately absent: a `sprs` view of a [`CsrView`], which has no `indptr` of its own. Borrow
//! the whole matrix and slice there.

use super::ids::ColumnIndex;
use super::{ColumnIds, ColumnIdsView, Csr, CsrParts, CsrView, FormatError};
use bytemuck::{allocation::try_cast_vec, try_cast_slice};
use sparse_core::element::Element;
use sprs::errors::StructureError;
use sprs::{CsMatI, CsMatViewI, SpIndex};

/// Values and `indptr` of 64 bits are moved; ids are copied where their width differs.
///
/// # Errors
///
/// [`FormatError::Layout`] for a csc matrix; as [`Csr::new`] where `sprs` was made to hold an
/// invalid one.
impl<T, I, P> TryFrom<CsMatI<T, I, P>> for Csr<T>
where
    T: Element,
    I: ColumnIndex + SpIndex,
    P: ColumnIndex + SpIndex,
{
    type Error = FormatError;

    fn try_from(matrix: CsMatI<T, I, P>) -> Result<Self, FormatError> {
        if !matrix.is_csr() {
            return Err(COLUMN_MAJOR);
        }
        let n_cols = matrix.cols();
        let (indptr, columns, values) = matrix.into_raw_storage();
        Csr::new(n_cols, P::into_u64(indptr), columns, values)
    }
}

const COLUMN_MAJOR: FormatError = FormatError::Layout {
    array: "a `sprs` matrix",
    reason: "it is stored by columns (csc): convert it with `.to_csr()` first",
};

fn refused(error: StructureError) -> FormatError {
    FormatError::Mismatch { operation: "an exchange with `sprs`", message: error.to_string() }
}

/// What a conversion of ids gives where their width or the machine's is in the way.
fn other_width(wanted: &'static str) -> FormatError {
    FormatError::Layout {
        array: wanted,
        reason: "ids are `u32` up to 2³² columns and `u64` beyond: ask for the type that the matrix has, \
                 or convert an owned matrix",
    }
}

/// Owned and borrowed `sprs` matrices whose ids and `indptr` have the types given.
macro_rules! exchange {
    ($($id:ty as $stored:ty, $pointer:ty: $own_ids:expr, $own_indptr:expr, $borrow_ids:expr;)*) => {
        $(/// Values and `indptr` are moved; ids are copied where their width differs.
        ///
        /// # Errors
        ///
        /// [`FormatError::Layout`] for `u32` ids and more than 2³² columns,
        /// [`FormatError::Mismatch`] for what `sprs` refuses.
        impl<T: Element> TryFrom<Csr<T>> for CsMatI<T, $id, $pointer> {
            type Error = FormatError;

            fn try_from(matrix: Csr<T>) -> Result<Self, FormatError> {
                let shape = (matrix.n_rows(), matrix.n_cols());
                let CsrParts { indptr, columns, values, .. } = matrix.into_parts();
                CsMatI::try_new(shape, $own_indptr(indptr), $own_ids(columns)?, values)
                    .map_err(|(_, _, _, error)| refused(error))
            }
        }

        /// Without copying.
        ///
        /// # Errors
        ///
        /// [`FormatError::Layout`] where the ids have another width, [`FormatError::Mismatch`] for
        /// what `sprs` refuses.
        impl<'a, T: Element> TryFrom<&'a Csr<T>> for CsMatViewI<'a, T, $id, $pointer> {
            type Error = FormatError;

            fn try_from(matrix: &'a Csr<T>) -> Result<Self, FormatError> {
                let wanted = concat!("a `", stringify!($id), "` view of a csr matrix");
                let (Some(ids), Ok(indptr)) =
                    ($borrow_ids(matrix.columns()), try_cast_slice(matrix.indptr()))
                else {
                    return Err(other_width(wanted));
                };
                CsMatViewI::try_new((matrix.n_rows(), matrix.n_cols()), indptr, ids, matrix.values())
                    .map_err(|(_, _, _, error)| refused(error))
            }
        }

        /// Without copying, checked in O(n_rows + nnz).
        ///
        /// # Errors
        ///
        /// [`FormatError::Layout`] for a csc matrix or a run of rows that does not start at row 0;
        /// as [`Csr::new`] where `sprs` was made to hold an invalid one.
        impl<'a, T: Element> TryFrom<CsMatViewI<'a, T, $id, $pointer>> for CsrView<'a, T> {
            type Error = FormatError;

            fn try_from(matrix: CsMatViewI<'a, T, $id, $pointer>) -> Result<Self, FormatError> {
                if !matrix.is_csr() {
                    return Err(COLUMN_MAJOR);
                }
                let n_cols = matrix.cols();
                let (indptr, columns, values) = matrix.into_raw_storage();
                let (Ok(indptr), Ok(columns)) =
                    (try_cast_slice(indptr), try_cast_slice::<_, $stored>(columns))
                else {
                    return Err(other_width("a `sprs` view"));
                };
                if indptr.first().is_some_and(|&first| first != 0) {
                    return Err(FormatError::Layout {
                        array: "a `sprs` view",
                        reason: "its rows are a run that does not start at row 0: borrow the whole matrix \
                                 and take `.rows(…)` of it",
                    });
                }
                CsrView::new(n_cols, indptr, columns, values)
            }
        })*
    };
}

exchange! {
    u32 as u32, u64: narrow_ids, std::convert::identity, narrow_view;
    u64 as u64, u64: |ids| Ok::<_, FormatError>(wide_ids(ids)), std::convert::identity, wide_view;
    usize as u64, usize: |ids| Ok::<_, FormatError>(indices(wide_ids(ids))), indices, index_view;
}

fn narrow_ids(ids: ColumnIds) -> Result<Vec<u32>, FormatError> {
    match ids {
        ColumnIds::U32(ids) => Ok(ids),
        ColumnIds::U64(_) => Err(other_width("a `u32` `sprs` matrix")),
    }
}

fn wide_ids(ids: ColumnIds) -> Vec<u64> {
    match ids {
        ColumnIds::U32(ids) => u32::into_u64(ids),
        ColumnIds::U64(ids) => ids,
    }
}

/// Numbers of an array that exists, so that they fit.
fn indices(numbers: Vec<u64>) -> Vec<usize> {
    try_cast_vec(numbers)
        .unwrap_or_else(|(_, numbers)| numbers.into_iter().map(|number| number as usize).collect())
}

fn narrow_view(ids: ColumnIdsView<'_>) -> Option<&[u32]> {
    match ids {
        ColumnIdsView::U32(ids) => Some(ids),
        ColumnIdsView::U64(_) => None,
    }
}

fn wide_view(ids: ColumnIdsView<'_>) -> Option<&[u64]> {
    match ids {
        ColumnIdsView::U64(ids) => Some(ids),
        ColumnIdsView::U32(_) => None,
    }
}

fn index_view(ids: ColumnIdsView<'_>) -> Option<&[usize]> {
    wide_view(ids).and_then(|ids| try_cast_slice(ids).ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use sprs::{CsMat, CsMatView, TriMat};

    fn theirs() -> CsMat<f32> {
        let mut entries = TriMat::new((3, 4));
        for (row, column, value) in [(0, 3, 1.0), (2, 0, 2.0), (2, 1, 3.0)] {
            entries.add_triplet(row, column, value);
        }
        entries.to_csr()
    }

    fn ours() -> Csr {
        Csr::from_rows(4, [vec![(3, 1.0)], vec![], vec![(0, 2.0), (1, 3.0)]]).unwrap()
    }

    #[test]
    fn owned_matrices_move_their_arrays() {
        let matrix = theirs();
        let (values, indptr) = (matrix.data().as_ptr(), matrix.indptr().raw_storage().as_ptr());
        let moved = Csr::try_from(matrix).unwrap();
        assert_eq!(moved, ours());
        assert_eq!((moved.values().as_ptr(), moved.indptr().as_ptr().cast()), (values, indptr));

        let ids = match moved.columns() {
            ColumnIdsView::U32(ids) => ids.as_ptr(),
            ColumnIdsView::U64(_) => panic!("4 columns have narrow ids"),
        };
        let narrow = CsMatI::<f32, u32, u64>::try_from(moved).unwrap();
        assert_eq!((narrow.indices().as_ptr(), narrow.data().as_ptr()), (ids, values));
        assert_eq!(Csr::try_from(narrow), Ok(ours()));

        assert_eq!(CsMat::try_from(ours()).unwrap(), theirs());
        let wide = CsMatI::<f32, u64, u64>::try_from(ours()).unwrap();
        assert_eq!(Csr::try_from(wide), Ok(ours()));
    }

    #[test]
    fn views_share_memory() {
        let matrix = theirs();
        let view = CsrView::try_from(matrix.view()).unwrap();
        assert_eq!((view, view.values().as_ptr()), (ours().view(), matrix.data().as_ptr()));

        let matrix = ours();
        let view = CsMatViewI::<f32, u32, u64>::try_from(&matrix).unwrap();
        assert_eq!((view.get(2, 1), view.data().as_ptr()), (Some(&3.0), matrix.values().as_ptr()));
        assert!(CsMatView::try_from(&matrix).is_err());
        let wide = Csr::from_rows(1 << 33, [[(1 << 32, 1.0f32)]]).unwrap();
        assert_eq!(CsMatView::try_from(&wide).unwrap().get(0, 1 << 32), Some(&1.0));
        assert!(CsMatI::<f32, u32, u64>::try_from(wide).is_err());
    }

    #[test]
    fn what_cannot_be_taken_is_an_error() {
        let columns = theirs().to_csc();
        let error = CsrView::try_from(columns.view()).unwrap_err();
        assert!(error.to_string().ends_with("convert it with `.to_csr()` first"), "{error}");
        assert_eq!(Csr::try_from(columns), Err(COLUMN_MAJOR));
        let matrix = theirs();
        let view = matrix.view();
        let error = CsrView::try_from(view.slice_outer(1..3)).unwrap_err();
        assert!(error.to_string().contains("does not start at row 0"), "{error}");
        let head = view.slice_outer(0..2);
        assert_eq!(CsrView::try_from(head).unwrap(), ours().view().rows(0..2).unwrap());
    }

    #[test]
    fn empty_matrices_pass_both_ways() {
        let matrix = CsMat::try_from(Csr::<f32>::zeros(0, 3)).unwrap();
        assert_eq!(Csr::try_from(matrix), Ok(Csr::zeros(0, 3)));
        let empty = Csr::<f32>::zeros(2, 0);
        assert_eq!(CsMatViewI::<f32, u32, u64>::try_from(&empty).map(|view| view.nnz()), Ok(0));
    }
}
