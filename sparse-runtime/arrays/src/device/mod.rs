//! Devices of arrays. The device is a type parameter of every array, view and kernel, so that
//! mixing devices is a type error; [`Cpu`] is the default everywhere.

#[cfg(feature = "cuda")]
pub mod cuda;

use crate::formats::{ColumnIds, ColumnIdsView, Elements};
use crate::parameter_memory::Table;
use sparse_core::element::{Element, Stored};
use std::fmt::Debug;

/// A device: memory for arrays, and kernels.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a device",
    note = "arrays live on `Cpu`, which need not be written"
)]
pub trait Device: Copy + Clone + Debug + Default + Send + Sync + 'static {
    /// The device's name in plans and messages.
    const NAME: &'static str;

    /// An owned, growable run of elements. Arrays are cloned on their device; a function that
    /// returns an error allocates memory that may be missing.
    type Buffer<T: Stored>: Debug + Default + Send + Sync;

    /// An owned run of the elements of a dense array.
    type Elements<T: Element>: Debug + Default + Send + Sync;

    /// The memory of a parameter.
    type Table<T: Element>: Debug + Send + Sync;

    /// A borrowed run of elements.
    type Slice<'a, T: Stored>: Run;

    /// Owned column ids, of the width for the number of columns.
    type ColumnIds: Debug + Default + Send + Sync;

    /// Borrowed column ids.
    type ColumnIdsSlice<'a>: Copy + Debug + Send + Sync;

    /// All elements of a buffer, borrowed.
    fn slice<T: Stored>(buffer: &Self::Buffer<T>) -> Self::Slice<'_, T>;

    /// All elements of a dense array, borrowed.
    fn elements<T: Element>(elements: &Self::Elements<T>) -> Self::Slice<'_, T>;

    /// All column ids, borrowed.
    fn column_ids(ids: &Self::ColumnIds) -> Self::ColumnIdsSlice<'_>;

    /// The starts and ends of the rows of a csr, from row pointers, which may be absent.
    fn bounds(indptr: &Self::Buffer<u64>) -> (Self::Slice<'_, u64>, Self::Slice<'_, u64>);
}

/// A borrowed run of elements, on any device.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a run of elements",
    note = "what a device lends of its buffers is one: on `Cpu` a slice"
)]
pub trait Run: Copy + Debug + Send + Sync {
    /// The number of elements.
    fn len(&self) -> usize;

    /// True if there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<T: Stored> Run for &[T] {
    #[inline(always)]
    fn len(&self) -> usize {
        <[T]>::len(self)
    }
}

/// The host: buffers are `Vec`s, those of dense arrays start at a cache line, slices are slices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cpu;

impl Device for Cpu {
    const NAME: &'static str = "cpu";
    type Buffer<T: Stored> = Vec<T>;
    type Elements<T: Element> = Elements<T>;
    type Table<T: Element> = Table<T>;
    type Slice<'a, T: Stored> = &'a [T];
    type ColumnIds = ColumnIds;
    type ColumnIdsSlice<'a> = ColumnIdsView<'a>;

    #[inline(always)]
    fn slice<T: Stored>(buffer: &Vec<T>) -> &[T] {
        buffer
    }

    #[inline(always)]
    fn elements<T: Element>(elements: &Elements<T>) -> &[T] {
        elements
    }

    #[inline(always)]
    fn column_ids(ids: &ColumnIds) -> ColumnIdsView<'_> {
        ids.view()
    }

    #[inline(always)]
    fn bounds(indptr: &Vec<u64>) -> (&[u64], &[u64]) {
        match indptr.as_slice() {
            [] => (&[], &[]),
            indptr => (&indptr[..indptr.len() - 1], &indptr[1..]),
        }
    }
}
