//! Parsed samples: the columns of a run of lines, before they become part of a dataset or a pool.

use super::super::{Column, ColumnValues, DataError, Dataset};
use nnz_arrays::formats::{ColumnIds, Csr, Dense, FormatError, Shape};
use nnz_device::memory::make_room;
use nnz_step::model::InputRole;
use sparse_core::element::Float;
use std::ops::Range;

/// The layout of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnLayout {
    /// Its name, or none if it binds by role.
    pub name: Option<String>,
    /// Input or label.
    pub role: InputRole,
    /// Storage and width.
    pub kind: ColumnKind,
}

/// Storage and width of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnKind {
    /// Sparse rows of this width; `None` if the largest column that occurs decides.
    Csr(Option<usize>),
    /// Dense rows of this number of numbers.
    Dense(usize),
    /// Dense rows of this number of ids.
    Ids(usize),
}

/// The columns of some samples.
///
/// Invariant: all columns have `n_rows` rows, except for the started part of the next sample. The
/// entries of a csr row ascend strictly and are below its width, if that is known.
#[derive(Clone, Debug)]
pub struct Chunk<T: Float> {
    pub(crate) columns: Vec<ChunkColumn<T>>,
    pub(crate) n_rows: usize,
}

/// One column of a [`Chunk`].
#[derive(Clone, Debug)]
pub enum ChunkColumn<T> {
    /// Sparse rows.
    Csr(CsrChunk<T>),
    /// Numbers, row major.
    Dense { width: usize, values: Vec<T> },
    /// Ids, row major.
    Ids { width: usize, values: Vec<u32> },
}

/// Sparse rows: like a [`Csr`] whose width is not known yet.
#[derive(Clone, Debug)]
pub struct CsrChunk<T> {
    pub(crate) indptr: Vec<u64>,
    pub(crate) ids: ColumnIds,
    pub(crate) values: Vec<T>,
    pub(crate) n_cols: Option<usize>,
}

impl<T: Float> Chunk<T> {
    /// An empty chunk.
    pub(crate) fn new(layout: &[ColumnLayout]) -> Self {
        let column = |column: &ColumnLayout| match column.kind {
            ColumnKind::Csr(n_cols) => ChunkColumn::Csr(CsrChunk {
                indptr: vec![0],
                ids: n_cols.map_or_else(ColumnIds::default, ColumnIds::empty),
                values: Vec::new(),
                n_cols,
            }),
            ColumnKind::Dense(width) => ChunkColumn::Dense { width, values: Vec::new() },
            ColumnKind::Ids(width) => ChunkColumn::Ids { width, values: Vec::new() },
        };
        Chunk { columns: layout.iter().map(column).collect(), n_rows: 0 }
    }

    /// The sparse column at a position, which the layout says is sparse.
    #[inline]
    pub(crate) fn csr(&mut self, position: usize) -> &mut CsrChunk<T> {
        match &mut self.columns[position] {
            ChunkColumn::Csr(csr) => csr,
            _ => unreachable!("the layout says csr"),
        }
    }

    /// The numbers at a position, which the layout says are numbers.
    #[inline]
    pub(crate) fn dense(&mut self, position: usize) -> &mut Vec<T> {
        match &mut self.columns[position] {
            ChunkColumn::Dense { values, .. } => values,
            _ => unreachable!("the layout says dense"),
        }
    }

    /// The ids at a position, which the layout says are ids.
    #[inline]
    pub(crate) fn ids(&mut self, position: usize) -> &mut Vec<u32> {
        match &mut self.columns[position] {
            ChunkColumn::Ids { values, .. } => values,
            _ => unreachable!("the layout says ids"),
        }
    }

    /// Completes the sample: each column has it.
    #[inline]
    pub(crate) fn finish_row(&mut self) {
        for column in &mut self.columns {
            if let ChunkColumn::Csr(csr) = column {
                csr.indptr.push(csr.values.len() as u64);
            }
        }
        self.n_rows += 1;
    }

    /// Drops the started part of an incomplete sample.
    pub(crate) fn discard_partial(&mut self) {
        self.truncate(self.n_rows);
    }

    /// Keeps the first samples.
    pub(crate) fn truncate(&mut self, n_rows: usize) {
        self.n_rows = n_rows;
        for column in &mut self.columns {
            match column {
                ChunkColumn::Csr(csr) => {
                    csr.indptr.truncate(n_rows + 1);
                    let nnz = csr.indptr.last().map_or(0, |&end| end as usize);
                    csr.values.truncate(nnz);
                    match &mut csr.ids {
                        ColumnIds::U32(ids) => ids.truncate(nnz),
                        ColumnIds::U64(ids) => ids.truncate(nnz),
                    }
                }
                ChunkColumn::Dense { width, values } => values.truncate(n_rows * *width),
                ChunkColumn::Ids { width, values } => values.truncate(n_rows * *width),
            }
        }
    }

    /// Appends the samples of another chunk of the same layout, which is emptied.
    pub(crate) fn append(&mut self, other: &mut Chunk<T>) {
        for (column, more) in self.columns.iter_mut().zip(&mut other.columns) {
            match (column, more) {
                (ChunkColumn::Csr(csr), ChunkColumn::Csr(more)) => csr.append(more),
                (ChunkColumn::Dense { values, .. }, ChunkColumn::Dense { values: more, .. }) => {
                    values.append(more);
                }
                (ChunkColumn::Ids { values, .. }, ChunkColumn::Ids { values: more, .. }) => {
                    values.append(more);
                }
                _ => unreachable!("one layout"),
            }
        }
        self.n_rows += other.n_rows;
        other.truncate(0);
    }

    /// Appends copies of some samples of another chunk of the same layout.
    pub(crate) fn append_rows(&mut self, other: &Chunk<T>, rows: &[usize]) {
        for run in rows.chunk_by(|a, b| b.wrapping_sub(*a) == 1) {
            self.append_run(other, run[0]..run[0] + run.len());
        }
    }

    /// Appends copies of a run of samples of another chunk of the same layout.
    #[inline]
    pub(crate) fn append_run(&mut self, other: &Chunk<T>, rows: Range<usize>) {
        for (column, source) in self.columns.iter_mut().zip(&other.columns) {
            match (column, source) {
                (ChunkColumn::Csr(csr), ChunkColumn::Csr(more)) => csr.append_run(more, &rows),
                (ChunkColumn::Dense { width, values }, ChunkColumn::Dense { values: more, .. }) => {
                    values.extend_from_slice(&more[rows.start * *width..rows.end * *width]);
                }
                (ChunkColumn::Ids { width, values }, ChunkColumn::Ids { values: more, .. }) => {
                    values.extend_from_slice(&more[rows.start * *width..rows.end * *width]);
                }
                _ => unreachable!("one layout"),
            }
        }
        self.n_rows += rows.len();
    }

    /// Reserves memory for `times` the present samples.
    ///
    /// # Errors
    ///
    /// The bytes of an array for which there is no memory.
    pub(crate) fn grow(&mut self, times: f64) -> Result<(), usize> {
        // A few more, as rows differ.
        let more = |len: usize| (len as f64 * times * 1.1) as usize;
        for column in &mut self.columns {
            match column {
                ChunkColumn::Csr(CsrChunk { indptr, ids, values, .. }) => {
                    let (n_rows, nnz) = (more(indptr.len()), more(values.len()));
                    make_room(indptr, n_rows)?;
                    make_room(values, nnz)?;
                    match ids {
                        ColumnIds::U32(ids) => make_room(ids, nnz)?,
                        ColumnIds::U64(ids) => make_room(ids, nnz)?,
                    }
                }
                ChunkColumn::Dense { values, .. } => {
                    let count = more(values.len());
                    make_room(values, count)?;
                }
                ChunkColumn::Ids { values, .. } => {
                    let count = more(values.len());
                    make_room(values, count)?;
                }
            }
        }
        Ok(())
    }

    /// Reserves memory for exactly the samples of several chunks.
    pub(crate) fn reserve_for<'c>(&mut self, chunks: impl Iterator<Item = &'c Chunk<T>> + Clone) {
        for (position, column) in self.columns.iter_mut().enumerate() {
            let n_rows = chunks.clone().map(|chunk| chunk.n_rows).sum::<usize>();
            match column {
                ChunkColumn::Csr(csr) => {
                    let nnz = |chunk: &Chunk<T>| match &chunk.columns[position] {
                        ChunkColumn::Csr(csr) => csr.values.len(),
                        _ => 0,
                    };
                    let nnz = chunks.clone().map(nnz).sum();
                    csr.indptr.reserve_exact(n_rows);
                    csr.values.reserve_exact(nnz);
                    match &mut csr.ids {
                        ColumnIds::U32(ids) => ids.reserve_exact(nnz),
                        ColumnIds::U64(ids) => ids.reserve_exact(nnz),
                    }
                }
                ChunkColumn::Dense { width, values } => values.reserve_exact(n_rows * *width),
                ChunkColumn::Ids { width, values } => values.reserve_exact(n_rows * *width),
            }
        }
    }

    /// Releases reserved memory.
    pub(crate) fn shrink_to_fit(&mut self) {
        for column in &mut self.columns {
            match column {
                ChunkColumn::Csr(csr) => {
                    csr.indptr.shrink_to_fit();
                    csr.values.shrink_to_fit();
                    match &mut csr.ids {
                        ColumnIds::U32(ids) => ids.shrink_to_fit(),
                        ColumnIds::U64(ids) => ids.shrink_to_fit(),
                    }
                }
                ChunkColumn::Dense { values, .. } => values.shrink_to_fit(),
                ChunkColumn::Ids { values, .. } => values.shrink_to_fit(),
            }
        }
    }

    /// The sample and the value of the first number of a column for which a condition holds.
    pub(crate) fn find_label(&self, column: usize, is: impl Fn(T) -> bool) -> Option<(usize, T)> {
        let find = |values: &[T]| values.iter().position(|&value| is(value));
        match &self.columns[column] {
            ChunkColumn::Csr(csr) => {
                let at = find(&csr.values)?;
                // The last row that starts at or before it.
                let row = csr.indptr.partition_point(|&start| start <= at as u64) - 1;
                Some((row, csr.values[at]))
            }
            ChunkColumn::Dense { width, values } => {
                let at = find(values)?;
                Some((at / (*width).max(1), values[at]))
            }
            ChunkColumn::Ids { .. } => None,
        }
    }

    /// The bytes of the samples.
    pub(crate) fn bytes(&self) -> usize {
        let bytes = |column: &ChunkColumn<T>| match column {
            ChunkColumn::Csr(csr) => {
                let id = match csr.ids {
                    ColumnIds::U32(_) => 4,
                    ColumnIds::U64(_) => 8,
                };
                csr.indptr.len() * 8 + csr.values.len() * (id + size_of::<T>())
            }
            ChunkColumn::Dense { values, .. } => size_of_val(&values[..]),
            ChunkColumn::Ids { values, .. } => size_of_val(&values[..]),
        };
        self.columns.iter().map(bytes).sum()
    }

    /// The columns as arrays.
    pub(crate) fn into_values(self) -> Result<Vec<ColumnValues<T>>, FormatError> {
        let n_rows = self.n_rows;
        let shape = |width: usize| match width {
            1 => Shape::try_new(&[n_rows]),
            width => Shape::try_new(&[n_rows, width]),
        };
        let values = |column| {
            Ok(match column {
                ChunkColumn::Csr(csr) => ColumnValues::Csr(csr.into_csr()),
                ChunkColumn::Dense { width, values } => {
                    ColumnValues::Dense(Dense::new(shape(width)?, values)?)
                }
                ChunkColumn::Ids { width, values } => {
                    ColumnValues::Ids(Dense::new(shape(width)?, values)?.into())
                }
            })
        };
        self.columns.into_iter().map(values).collect()
    }

    /// The samples as a dataset.
    pub(crate) fn into_dataset(self, layout: &[ColumnLayout]) -> Result<Dataset<T>, DataError> {
        let columns = layout.iter().zip(self.into_values()?);
        let columns = columns
            .map(|(layout, values)| Column::new(layout.name.clone(), layout.role, values))
            .collect();
        Dataset::from_columns(columns)
    }
}

impl<T: Float> CsrChunk<T> {
    /// Appends an entry to the current row. Its column is above earlier ones.
    #[inline]
    pub(crate) fn push(&mut self, column: u64, value: T) {
        self.values.push(value);
        match (&mut self.ids, u32::try_from(column)) {
            (ColumnIds::U32(ids), Ok(id)) => ids.push(id),
            (ColumnIds::U64(ids), _) => ids.push(column),
            (ColumnIds::U32(_), Err(_)) => {
                self.widen();
                if let ColumnIds::U64(ids) = &mut self.ids {
                    ids.push(column);
                }
            }
        }
    }

    #[cold]
    fn widen(&mut self) {
        if let ColumnIds::U32(ids) = &self.ids {
            self.ids = ColumnIds::U64(ids.iter().map(|&id| id.into()).collect());
        }
    }

    fn append(&mut self, more: &mut CsrChunk<T>) {
        // Widths differ where rows state theirs.
        self.n_cols = self.n_cols.max(more.n_cols);
        let before = self.values.len() as u64;
        self.indptr.extend(more.indptr[1..].iter().map(|end| end + before));
        self.values.append(&mut more.values);
        if let ColumnIds::U64(_) = more.ids {
            self.widen();
        }
        match (&mut self.ids, &mut more.ids) {
            (ColumnIds::U32(ids), ColumnIds::U32(more)) => ids.append(more),
            (ColumnIds::U64(ids), ColumnIds::U64(more)) => ids.append(more),
            (ColumnIds::U64(ids), ColumnIds::U32(more)) => {
                ids.extend(more.drain(..).map(u64::from));
            }
            (ColumnIds::U32(_), ColumnIds::U64(_)) => unreachable!("widened"),
        }
    }

    #[inline]
    fn append_run(&mut self, source: &CsrChunk<T>, rows: &Range<usize>) {
        self.n_cols = self.n_cols.max(source.n_cols);
        if let ColumnIds::U64(_) = source.ids {
            self.widen();
        }
        let (first, before) = (source.indptr[rows.start], self.values.len() as u64);
        let range = first as usize..source.indptr[rows.end] as usize;
        self.values.extend_from_slice(&source.values[range.clone()]);
        match (&mut self.ids, &source.ids) {
            (ColumnIds::U32(ids), ColumnIds::U32(more)) => ids.extend_from_slice(&more[range]),
            (ColumnIds::U64(ids), ColumnIds::U64(more)) => ids.extend_from_slice(&more[range]),
            (ColumnIds::U64(ids), ColumnIds::U32(more)) => {
                ids.extend(more[range].iter().map(|&id| u64::from(id)));
            }
            (ColumnIds::U32(_), ColumnIds::U64(_)) => unreachable!("widened"),
        }
        let ends = &source.indptr[rows.start + 1..=rows.end];
        self.indptr.extend(ends.iter().map(|end| end - first + before));
    }

    /// The largest column, if there is any entry. O(rows).
    pub(crate) fn largest(&self) -> Option<u64> {
        let ends =
            self.indptr.windows(2).filter(|row| row[0] < row[1]).map(|row| row[1] as usize - 1);
        match &self.ids {
            ColumnIds::U32(ids) => ends.map(|last| u64::from(ids[last])).max(),
            ColumnIds::U64(ids) => ends.map(|last| ids[last]).max(),
        }
    }

    /// Whether column 0 occurs. O(rows).
    pub(crate) fn has_zero(&self) -> bool {
        let mut starts =
            self.indptr.windows(2).filter(|row| row[0] < row[1]).map(|row| row[0] as usize);
        match &self.ids {
            ColumnIds::U32(ids) => starts.any(|first| ids[first] == 0),
            ColumnIds::U64(ids) => starts.any(|first| ids[first] == 0),
        }
    }

    /// The width: as declared, or one past the largest column.
    fn into_csr(self) -> Csr<T> {
        // Indices are below 2^63; a width that this machine cannot address is refused by whoever
        // allocates for it.
        let width = || usize::try_from(self.largest().map_or(0, |largest| largest + 1));
        let n_cols = self.n_cols.unwrap_or_else(|| width().unwrap_or(usize::MAX));
        match self.ids {
            ColumnIds::U32(ids) => Csr::from_canonical(n_cols, self.indptr, ids, self.values),
            ColumnIds::U64(ids) => Csr::from_canonical(n_cols, self.indptr, ids, self.values),
        }
    }
}
