//! A run of a batch's samples, as a batch.

use nnz_arrays::formats::{CsrView, DenseView, IdsView};
use nnz_step::model::BatchSource;
use sparse_core::element::{Float, Unit};
use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;

/// A run of the samples of a batch: every array is sliced, in O(1), when it is read.
pub struct Part<'s, S: ?Sized, T> {
    batch: &'s S,
    rows: Range<usize>,
    element: PhantomData<T>,
}

impl<'s, S: ?Sized, T> Part<'s, S, T> {
    /// The samples that the batch must have; binding the part to another size is an error.
    pub fn new(batch: &'s S, rows: Range<usize>) -> Self {
        Part { batch, rows, element: PhantomData }
    }
}

impl<S: ?Sized, T> fmt::Debug for Part<'_, S, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Part").field("rows", &self.rows).finish_non_exhaustive()
    }
}

impl<'a, T: Float, S: BatchSource<'a, T> + ?Sized> BatchSource<'a, T> for Part<'_, S, T> {
    fn n_rows(&self) -> usize {
        self.rows.len()
    }

    fn csr(&self, index: usize) -> nnz_step::Result<CsrView<'a, T>> {
        Ok(self.batch.csr(index)?.rows(self.rows.clone())?)
    }

    fn unit(&self, index: usize) -> nnz_step::Result<CsrView<'a, Unit>> {
        Ok(self.batch.unit(index)?.rows(self.rows.clone())?)
    }

    fn dense(&self, index: usize) -> nnz_step::Result<DenseView<'a, T>> {
        Ok(self.batch.dense(index)?.rows(self.rows.clone())?)
    }

    fn ids(&self, index: usize) -> nnz_step::Result<IdsView<'a>> {
        Ok(self.batch.ids(index)?.rows(self.rows.clone())?)
    }
}
