//! A row program with the arrays of one batch.

use crate::error::Result;
use crate::linear::{self, prefetch_data};
use crate::model::ModelError;
use nnz_arrays::formats::{ColumnIdsView, CsrView, DenseView, IdsView, RowSparse, Shape};
use nnz_arrays::parameter_memory::Table;
use nnz_arrays::with_column_ids;
use sparse_core::element::{Element, Float, Stored, Unit};
use std::fmt;

/// A row program with the arrays of one batch. A model makes it for each call; it borrows all that
/// it names.
#[derive(Debug)]
pub struct Program<'b, 'm, T: Float> {
    /// The samples of the batch.
    pub n_samples: usize,
    /// The reads of trained tables, those of one table as neighbours, then those of frozen tables.
    pub reads: &'m [Read<'b, 'm, T>],
    /// The trained tables, in the order of their parameters.
    pub tables: &'m mut [TrainedTable<'m, T>],
    /// The trained dense parameters, in the order of their parameters.
    pub dense: &'m mut [TrainedDense<'m, T>],
    /// The arrays for outputs.
    pub outputs: &'m mut [Output<'m, T>],
    /// The numbers that the row function needs as scratch.
    pub work: usize,
}

/// Table rows that each sample names, pooled to some numbers.
#[derive(Clone, Copy, Debug)]
pub struct Read<'b, 'm, T: Float> {
    /// The table.
    pub source: Source<'m, T>,
    /// What names the rows.
    pub refs: Refs<'b, T>,
    /// How they are pooled.
    pub pool: Pool,
    /// The numbers of a sample.
    pub size: usize,
    /// Whether the row function gives a gradient for each number.
    pub has_gradient: bool,
}

/// The table of a [`Read`].
#[derive(Clone, Copy, Debug)]
pub enum Source<'m, T> {
    /// A trained one, by its position in [`Program::tables`].
    Trained(usize),
    /// The values of a frozen one, row major, and the elements of a row.
    Frozen(&'m [T], usize),
}

/// Names of table rows, sample by sample.
#[derive(Clone, Copy, Debug)]
pub enum Refs<'b, T: Float> {
    /// The columns of a csr, each with its value.
    Csr(CsrView<'b, T>),
    /// The columns of a csr whose values are all 1.
    Units(CsrView<'b, Unit>),
    /// Ids, and how many of them a sample has.
    Ids(IdsView<'b>, usize),
}

/// How the rows that a sample names become numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pool {
    /// Their sum, each multiplied by its value.
    Product,
    /// Their sum or mean, as `embedding_bag` adds them up.
    Bag {
        /// Whether the sum is divided by the number of rows, or by the sum of their weights.
        mean: bool,
        /// Whether rows are multiplied by their values.
        weighted: bool,
    },
    /// One after the other.
    Rows,
    /// The sum of the products of all pairs of them, as `pairwise_interaction` has it: one number.
    Pairs,
}

/// A trained parameter that is read by rows.
#[derive(Debug)]
pub struct TrainedTable<'m, T: Float> {
    /// Its number.
    pub parameter: usize,
    /// Its shape.
    pub shape: Shape,
    /// Its memory.
    pub table: &'m mut Table<T>,
    /// Where the gradient of a batch is put, if [gradients](super::Pass::Gradients) are what is
    /// asked for.
    pub gradient: &'m mut RowSparse<T>,
}

/// A trained dense parameter.
#[derive(Debug)]
pub struct TrainedDense<'m, T: Float> {
    /// Its number.
    pub parameter: usize,
    /// Its values, row major.
    pub values: &'m mut [T],
    /// Where the gradient of a batch is put.
    pub gradient: &'m mut [T],
    /// What the row function gives of the gradient.
    pub term: DenseTerm,
}

/// What a row function gives of the gradient of a dense parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DenseTerm {
    /// All of it.
    Whole,
    /// Two rows of these lengths, one after the other: all products of an element of the one with
    /// an element of the other are the gradient.
    Outer(usize, usize),
}

/// The array of an output, with this number of elements a sample.
#[derive(Debug)]
pub struct Output<'m, T> {
    /// Its elements, row major. Empty where outputs are not recorded.
    pub values: &'m mut [T],
    /// The elements of a sample.
    pub size: usize,
}

/// What a model computes of one sample: it gets what the sample reads in [`Sample::numbers`],
/// writes gradients, terms and outputs, and returns the loss.
pub type RowFunction<'f, T> = dyn Fn(Sample<'_, T>) -> T + Sync + 'f;

/// One sample for the row function.
pub struct Sample<'s, T: Float> {
    /// Its position in the batch.
    pub index: usize,
    /// The numbers of its reads, one read after the other.
    pub numbers: &'s [T],
    /// The dense parameters.
    pub dense: &'s [TrainedDense<'s, T>],
    /// For the gradients of the reads that have one, one read after the other.
    pub gradients: &'s mut [T],
    /// For the terms of the gradients of dense parameters, one parameter after the other.
    pub terms: &'s mut [T],
    /// For the outputs, one after the other; `None` where they are not recorded.
    pub outputs: Option<&'s mut [T]>,
    /// Scratch.
    pub work: &'s mut [T],
}

impl<T: Float> fmt::Debug for Sample<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sample").field("index", &self.index).finish_non_exhaustive()
    }
}

impl DenseTerm {
    /// The numbers that the row function gives, for a parameter with `elements` elements.
    pub(super) fn size(self, elements: usize) -> usize {
        match self {
            DenseTerm::Whole => elements,
            DenseTerm::Outer(rows, columns) => rows + columns,
        }
    }
}

/// The values of named rows.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Values<'a, T> {
    /// One for each row.
    Each(&'a [T]),
    /// All are 1.
    Ones,
}

impl<T: Float> Read<'_, '_, T> {
    /// The elements of a row of the table.
    pub(super) fn is_of(&self, row_size: usize) -> bool {
        match (self.pool, self.refs) {
            (Pool::Pairs, _) => self.size == 1,
            (Pool::Rows, Refs::Ids(_, n_ids)) => Some(self.size) == n_ids.checked_mul(row_size),
            _ => self.size == row_size,
        }
    }

    /// Compares a table with the read.
    pub(super) fn check(&self, n_rows: usize, row_size: usize) -> Result<()> {
        let wrong = |axis, expected, found| {
            Err(ModelError::extent("training step", "table", axis, expected, found).into())
        };
        if !self.is_of(row_size) {
            return wrong(1, row_size, self.size);
        }
        let n_cols = match self.refs {
            Refs::Csr(csr) => csr.n_cols(),
            Refs::Units(csr) => csr.n_cols(),
            Refs::Ids(..) => return Ok(()),
        };
        if n_cols == n_rows { Ok(()) } else { wrong(0, n_rows, n_cols) }
    }
}

impl<'b, T: Float> Refs<'b, T> {
    /// The rows that a sample names, and their values. Ids of a signed type go through `buffer`.
    #[inline(always)]
    pub(super) fn of_sample<'s>(
        &self,
        sample: usize,
        buffer: &'s mut Vec<u64>,
    ) -> (ColumnIdsView<'s>, Values<'s, T>)
    where
        'b: 's,
    {
        match *self {
            Refs::Csr(csr) => {
                let (ids, range) = entries_of(csr, sample);
                (ids, Values::Each(csr.values().get(range).unwrap_or_default()))
            }
            Refs::Units(csr) => (entries_of(csr, sample).0, Values::Ones),
            Refs::Ids(ids, n_ids) => {
                let range = sample * n_ids..(sample + 1) * n_ids;
                let ids = match ids {
                    IdsView::U32(ids) => ColumnIdsView::U32(part(ids, range)),
                    IdsView::U64(ids) => ColumnIdsView::U64(part(ids, range)),
                    IdsView::I64(ids) => {
                        buffer.clear();
                        buffer.extend(part(ids, range).iter().map(|id| *id as u64));
                        ColumnIdsView::U64(buffer)
                    }
                };
                (ids, Values::Ones)
            }
        }
    }

    /// Prefetches the entries of a later sample.
    #[inline(always)]
    pub(super) fn prefetch(&self, sample: usize) {
        match self {
            Refs::Csr(csr) => {
                with_column_ids!(csr.columns(), |ids| prefetch_data(*csr, ids, sample));
            }
            Refs::Units(csr) => {
                with_column_ids!(csr.columns(), |ids| prefetch_data(*csr, ids, sample));
            }
            Refs::Ids(..) => {}
        }
    }

    /// Whether prefetching entries pays: they are larger than a cache, or do not lie in a run.
    pub(super) fn are_far(&self) -> bool {
        fn is_far<V: Stored>(csr: CsrView<'_, V>) -> bool {
            !csr.is_contiguous()
                || with_column_ids!(csr.columns(), |ids| linear::are_large(csr, ids))
        }
        match self {
            Refs::Csr(csr) => is_far(*csr),
            Refs::Units(csr) => is_far(*csr),
            Refs::Ids(..) => false,
        }
    }

    /// Whether a sample may name a row twice.
    pub(super) fn may_repeat(&self) -> bool {
        matches!(self, Refs::Ids(_, n_ids) if *n_ids > 1)
    }

    /// Where the csr lies that names rows by its columns: of two reads the same names where it is
    /// the same. `None` of ids.
    pub(super) fn csr_names(&self) -> Option<(*const u64, *const u64, *const u8)> {
        fn of<V: Stored>(csr: CsrView<'_, V>) -> (*const u64, *const u64, *const u8) {
            let columns = match csr.columns() {
                ColumnIdsView::U32(ids) => ids.as_ptr().cast(),
                ColumnIdsView::U64(ids) => ids.as_ptr().cast(),
            };
            (csr.starts().as_ptr(), csr.ends().as_ptr(), columns)
        }
        match self {
            Refs::Csr(csr) => Some(of(*csr)),
            Refs::Units(csr) => Some(of(*csr)),
            Refs::Ids(..) => None,
        }
    }

    /// Whether rows are named by ids.
    pub(super) fn are_ids(&self) -> bool {
        matches!(self, Refs::Ids(..))
    }

    /// The entries of all samples.
    pub(super) fn n_entries(&self) -> usize {
        match self {
            Refs::Csr(csr) => csr.nnz(),
            Refs::Units(csr) => csr.nnz(),
            Refs::Ids(ids, _) => ids.len(),
        }
    }

    /// Refuses an id of a sample that is not below `n_rows`. Columns of a csr were compared with
    /// the table as a whole.
    #[inline(always)]
    pub(super) fn check(&self, sample: usize, ids: ColumnIdsView<'_>, n_rows: usize) -> Result<()> {
        use nnz_arrays::formats::ColumnId;
        if !matches!(self, Refs::Ids(..)) {
            return Ok(());
        }
        let beyond =
            with_column_ids!(ids, |ids| { ids.iter().map(|id| id.at()).find(|id| *id >= n_rows) });
        match beyond {
            None => Ok(()),
            Some(id) => Err(ModelError::Lookup { row: sample, id, n_rows }.into()),
        }
    }
}

fn part<I: Element>(ids: DenseView<'_, I>, range: std::ops::Range<usize>) -> &[I] {
    ids.values().get(range).unwrap_or_default()
}

/// The columns of a row of a csr, and where its entries lie.
#[inline(always)]
fn entries_of<'b, V: Stored>(
    csr: CsrView<'b, V>,
    row: usize,
) -> (ColumnIdsView<'b>, std::ops::Range<usize>) {
    let range = csr.starts()[row] as usize..csr.ends()[row] as usize;
    let ids = match csr.columns() {
        ColumnIdsView::U32(ids) => ColumnIdsView::U32(&ids[range.clone()]),
        ColumnIdsView::U64(ids) => ColumnIdsView::U64(&ids[range.clone()]),
    };
    (ids, range)
}

impl<T: Float> Program<'_, '_, T> {
    /// The numbers of all terms of the gradients of dense parameters.
    pub(super) fn terms(&self) -> usize {
        self.dense.iter().map(|dense| dense.term.size(dense.values.len())).sum()
    }

    /// The numbers that interactions keep of a sample: two for each element of a row.
    pub(super) fn sums(&self) -> usize {
        let of_read = |read: &Read<'_, '_, T>| match (read.pool, read.source) {
            (Pool::Pairs, Source::Trained(table)) => {
                2 * self.tables.get(table).map_or(0, |table| table.table.row_size())
            }
            (Pool::Pairs, Source::Frozen(_, row_size)) => 2 * row_size,
            _ => 0,
        };
        self.reads.iter().map(of_read).sum()
    }

    /// Writes the outputs of a sample, one after the other, into their arrays.
    pub(super) fn write_outputs(&mut self, sample: usize, outputs: &[T]) {
        let mut rest = outputs;
        for output in self.outputs.iter_mut() {
            let (own, others) = rest.split_at(output.size);
            rest = others;
            let range = sample * output.size..(sample + 1) * output.size;
            if let Some(values) = output.values.get_mut(range) {
                values.copy_from_slice(own);
            }
        }
    }
}
