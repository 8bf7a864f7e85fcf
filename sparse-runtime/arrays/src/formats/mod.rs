//! The three storage types as arrays and views, one a file: invariants, constructors, conversions,
//! exchange with `ndarray` and `sprs`.
//!
//! Every array is canonical by construction: column and row ids are sorted, unique and in range,
//! lengths agree. Kernels rely on it and check nothing.
//!
//! # Casts
//!
//! [`cast`](Dense::cast) changes the type of the elements and neither storage nor pattern.
//!
//! | from ↓ to → | `f64` | `f32` | `f16`, `bf16` | ids (`u32`, `u64`, `i64`) |
//! |---|---|---|---|---|
//! | `f64` | | rounded | rounded | cut towards zero |
//! | `f32` | exact | | rounded | cut towards zero |
//! | `f16`, `bf16` | exact | exact | rounded | cut towards zero |
//! | ids | exact up to 2⁵³ | exact up to 2²⁴ | exact up to 2¹¹, 2⁸ | exact within the bounds |
//! | [`Unit`] | 1 | 1 | 1 | 1 |
//!
//! Rounding is to nearest, ties to even, once. A float beyond the largest one becomes infinite, a
//! number beyond the bounds of an id type the bound, NaN as an id 0. Any number is 1 as a [`Unit`],
//! which only a csr stores. [`try_cast`](Dense::try_cast) refuses to lose anything.
//!
//! Halves need the feature `half`. They are stored, converted and cast; operators compute in `f32`
//! and `f64`.
//!
//! # Exchange with `ndarray`
//!
//! By `TryFrom`, both ways. Views copy nothing. Owned arrays are moved if their layout is the
//! standard one (row major, contiguous) and copied otherwise. A view in another layout is an error.
//! An array that allocated its memory itself begins at a cache line, and moves its elements to the
//! front when it gives its memory away.
//!
//! ```
//! use ndarray::{ArrayViewD, array};
//! use nnz::formats::{Dense, DenseView};
//! let theirs = array![[1.0f32, 2.0], [3.0, 4.0]];
//! let borrowed = DenseView::try_from(theirs.view())?;
//! assert_eq!(borrowed.row(1), Some(&[3.0, 4.0][..]));
//! let ours = Dense::try_from(theirs)?;
//! let back = ArrayViewD::try_from(ours.view())?;
//! assert_eq!(back[[0, 1]], 2.0);
//! # Ok::<(), nnz::formats::FormatError>(())
//! ```
//!
//! # Exchange with `sprs`
//!
//! By `TryFrom`, both ways. Views copy nothing. For owned matrices, values and `indptr` are moved
//! if `sprs` holds the latter in 64 bits (also as `usize` on the usual machines). Column ids are
//! moved if their width is ours; `usize` and `u64` ids of a matrix of up to 2³² columns are
//! narrowed once, which halves the reads of every later pass. Column-major (csc) matrices are
//! refused: their conversion is a pass over the data that the source should show.
//!
//! ```
//! use nnz::formats::Csr;
//! use sprs::{CsMat, CsMatViewI};
//! let theirs = CsMat::new((2, 3), vec![0, 1, 2], vec![2, 0], vec![1.0f32, 5.0]);
//! let ours = Csr::try_from(theirs)?;
//! assert_eq!((ours.n_rows(), ours.n_cols(), ours.nnz()), (2, 3, 2));
//! let borrowed = CsMatViewI::<f32, u32, u64>::try_from(&ours)?;
//! assert_eq!(borrowed.get(1, 0), Some(&5.0));
//! # Ok::<(), nnz::formats::FormatError>(())
//! ```

mod array;
mod cast;
pub mod column_shares;
mod convert;
mod copy;
mod create;
mod csr;
mod csr_builder;
mod csr_check;
mod csr_unit;
mod csr_view;
#[cfg(feature = "cuda")]
pub mod cuda;
mod dense;
mod display;
mod divided;
mod elements;
mod error;
mod extents;
mod id_array;
mod ids;
mod inspect;
mod interop_ndarray;
mod interop_sprs;
mod memory;
#[cfg(feature = "cuda")]
mod on_gpu;
mod random;
mod row_sparse;
mod select;
mod shape;
mod signed;

pub(crate) use crate::with_ids;
pub use array::Array;
pub use copy::AnyView;
pub(crate) use csr::CsrBuffers;
pub use csr::{Csr, CsrParts};
pub use csr_builder::CsrBuilder;
pub use csr_view::CsrArrays;
pub use csr_view::{CsrView, RowEntries, RowSelection};
pub use dense::{Dense, DenseView};
pub use divided::DividedCsr;
pub use divided::{DividedEntries, DividedRows, GatheredBounds, LANES};
pub use elements::Elements;
pub use error::FormatError;
pub use extents::Extents;
pub use id_array::position_beyond;
pub use id_array::{Ids, IdsView};
pub use ids::fits_u32;
pub(crate) use ids::with_id_type;
pub use ids::{ColumnId, ColumnIds, ColumnIdsView, ColumnIndex};
pub(crate) use memory::ELEMENTS;
pub use row_sparse::{RowIdsView, RowSparse, RowSparseView};
pub use shape::{MAX_RANK, Shape};
pub use signed::ids_from_signed;

pub use sparse_core::element::Unit;
#[cfg(feature = "half")]
pub use sparse_core::element::{bf16, f16};
