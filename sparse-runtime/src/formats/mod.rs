//! The three storage types as arrays and views, one a file: invariants, constructors, conversions,
//! exchange with `ndarray` and `sprs`.
//!
//! Every array is canonical by construction: column and row ids are sorted, unique and in range, lengths
//! agree. Kernels rely on it and check nothing inside.

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
