//! The three storage types as arrays and views, one a file: invariants, constructors, conversions,
//! exchange with `ndarray` and `sprs`.
//!
//! Every array is canonical by construction: column and row ids are sorted, unique and in range, lengths
//! agree. Kernels rely on it and check nothing inside.
//!
//! # Exchange with `ndarray`
//!
//! By `TryFrom`, both ways. Views copy nothing; owned arrays are moved where their layout is the standard one (row
//! major, contiguous) and copied where not. A view in another layout is an error.
//!
//! ```
//! use ndarray::{ArrayViewD, array};
//! use sparse_runtime::formats::{Dense, DenseView};
//! let theirs = array![[1.0f32, 2.0], [3.0, 4.0]];
//! let borrowed = DenseView::try_from(theirs.view())?;
//! assert_eq!(borrowed.row(1), Some(&[3.0, 4.0][..]));
//! let ours = Dense::try_from(theirs)?;
//! let back = ArrayViewD::try_from(ours.view())?;
//! assert_eq!(back[[0, 1]], 2.0);
//! # Ok::<(), sparse_runtime::formats::FormatError>(())
//! ```
//!
//! # Exchange with `sprs`
//!
//! By `TryFrom`, both ways. Views copy nothing. Of owned matrices, values and `indptr` are moved where `sprs` holds the
//! latter in 64 bits (`usize` on the usual machines included). Column ids are moved where they have the width that ours
//! take; `usize` and `u64` ids of a matrix of up to 2³² columns are narrowed once, which halves what every later pass over
//! them reads. Column-major (csc) matrices are refused: converting them is a pass over the data that the source should
//! show.
//!
//! ```
//! use sparse_runtime::formats::Csr;
//! use sprs::{CsMat, CsMatViewI};
//! let theirs = CsMat::new((2, 3), vec![0, 1, 2], vec![2, 0], vec![1.0f32, 5.0]);
//! let ours = Csr::try_from(theirs)?;
//! assert_eq!((ours.n_rows(), ours.n_cols(), ours.nnz()), (2, 3, 2));
//! let borrowed = CsMatViewI::<f32, u32, u64>::try_from(&ours)?;
//! assert_eq!(borrowed.get(1, 0), Some(&5.0));
//! # Ok::<(), sparse_runtime::formats::FormatError>(())
//! ```

mod convert;
mod csr;
mod csr_builder;
mod csr_check;
mod csr_view;
mod dense;
mod display;
mod error;
mod ids;
mod interop_ndarray;
mod interop_sprs;
mod row_sparse;
mod shape;

pub use csr::{Csr, CsrParts};
pub use csr_builder::CsrBuilder;
pub use csr_view::{CsrView, RowEntries, RowSelection};
pub use dense::{Dense, DenseView};
pub use error::FormatError;
pub use ids::{ColumnId, ColumnIds, ColumnIdsView, ColumnIndex};
pub(crate) use ids::{fits_u32, with_id_type};
pub use row_sparse::{RowIdsView, RowSparse, RowSparseView};
pub use shape::{MAX_RANK, Shape};

use crate::device::Device;
use sparse_core::element::Element;
use sparse_core::storage::Storage;

/// An array type: [`Dense`], [`Csr`] or [`RowSparse`].
pub trait Array {
    /// The type of its elements.
    type Element: Element;
    /// Its storage type.
    const STORAGE: Storage;
}

macro_rules! arrays {
    ($($array:ident),*) => {
        $(impl<T: Element, D: Device> Array for $array<T, D> {
            type Element = T;
            const STORAGE: Storage = Storage::$array;
        })*
    };
}

arrays!(Dense, Csr, RowSparse);
