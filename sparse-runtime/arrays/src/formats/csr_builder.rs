//! Building a csr matrix row by row, as file readers do.

use super::csr_check::check_column;
use super::{ColumnIds, Csr, FormatError};
use sparse_core::element::{Float, Stored};

/// Builds a [`Csr`] entry by entry; the number of columns need not be known before the end.
///
/// ```
/// use nnz::formats::CsrBuilder;
/// let mut builder = CsrBuilder::new();
/// builder.push_entry(3, 1.0f32)?;
/// builder.finish_row();
/// builder.finish_row();
/// let x = builder.finish(None)?;
/// assert_eq!((x.n_rows(), x.n_cols(), x.nnz()), (2, 4, 1));
/// # Ok::<(), nnz::formats::FormatError>(())
/// ```
#[derive(Clone, Debug)]
pub struct CsrBuilder<T> {
    n_cols: Option<usize>,
    indptr: Vec<u64>,
    columns: ColumnIds,
    values: Vec<T>,
    /// The last column of the row being built.
    previous: Option<u64>,
    /// The largest column of the finished rows, and the row and position of its first occurrence.
    largest: Option<(u64, usize, usize)>,
}

impl<T: Stored> CsrBuilder<T> {
    /// A matrix whose number of columns is given at the end, or found.
    pub fn new() -> Self {
        CsrBuilder {
            n_cols: None,
            indptr: vec![0],
            columns: ColumnIds::default(),
            values: Vec::new(),
            previous: None,
            largest: None,
        }
    }

    /// A matrix of `n_cols` columns: an entry beyond is an error at once.
    pub fn with_n_cols(n_cols: usize) -> Self {
        CsrBuilder { n_cols: Some(n_cols), columns: ColumnIds::empty(n_cols), ..CsrBuilder::new() }
    }

    /// Reserves memory for `rows` rows and `entries` entries.
    ///
    /// # Panics
    ///
    /// If they cannot be addressed, as `Vec` does.
    #[track_caller]
    pub fn reserve(&mut self, rows: usize, entries: usize) {
        self.indptr.reserve(rows);
        match &mut self.columns {
            ColumnIds::U32(ids) => ids.reserve(entries),
            ColumnIds::U64(ids) => ids.reserve(entries),
        }
        self.values.reserve(entries);
    }

    /// The number of finished rows.
    pub fn n_rows(&self) -> usize {
        self.indptr.len() - 1
    }

    /// The number of entries so far, those of the row being built included.
    pub fn nnz(&self) -> usize {
        self.values.len()
    }

    /// One past the largest column of the finished rows.
    pub fn n_cols_seen(&self) -> usize {
        self.largest.map_or(0, |(column, ..)| column as usize + 1)
    }

    /// Appends an entry to the current row. After an error the builder is as before the call.
    ///
    /// # Errors
    ///
    /// [`FormatError`], with the row and position, if the column is not above the previous one in
    /// this row, or beyond the given number of columns.
    #[inline]
    pub fn push_entry(&mut self, column: usize, value: T) -> Result<(), FormatError> {
        // The largest width is `usize::MAX`, so that the largest column is one less.
        let n_cols = self.n_cols.unwrap_or(usize::MAX);
        let (row, position, id) = (self.n_rows(), self.values.len(), column as u64);
        check_column(n_cols, row, position, self.previous, id)?;
        match &mut self.columns {
            ColumnIds::U32(ids) if id <= u32::MAX.into() => ids.push(id as u32),
            ColumnIds::U32(ids) => {
                let mut wide: Vec<u64> = ids.iter().map(|&id| id.into()).collect();
                wide.push(id);
                self.columns = ColumnIds::U64(wide);
            }
            ColumnIds::U64(ids) => ids.push(id),
        }
        self.values.push(value);
        self.previous = Some(id);
        Ok(())
    }

    /// Completes the current row; the next entry belongs to the next row.
    #[inline]
    pub fn finish_row(&mut self) {
        // Columns ascend: the last one is the largest of the row.
        if let Some(last) = self.previous.take()
            && self.largest.is_none_or(|(largest, ..)| last > largest)
        {
            self.largest = Some((last, self.n_rows(), self.values.len() - 1));
        }
        self.indptr.push(self.values.len() as u64);
    }

    /// Finishes the row being built if it has entries.
    fn finish_open_row(&mut self) {
        if self.previous.is_some() {
            self.finish_row();
        }
    }

    /// Appends a whole row from entries in any order; values of the same column are added in the
    /// given order. Leaves `entries` empty, with its allocation. Readers that hash features or take
    /// unsorted files use it. An unfinished row with entries is finished first.
    ///
    /// # Errors
    ///
    /// [`FormatError::ColumnOutOfRange`]; the row is then left out wholly, and `entries` empty as
    /// well.
    pub fn push_unsorted_row(&mut self, entries: &mut Vec<(usize, T)>) -> Result<(), FormatError>
    where
        T: Float,
    {
        self.finish_open_row();
        entries.sort_by_key(|&(column, _)| column);
        entries.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            if same {
                kept.1 += next.1;
            }
            same
        });
        // As in `push_entry`.
        let n_cols = self.n_cols.unwrap_or(usize::MAX);
        if let Some(&(column, _)) = entries.last()
            && column >= n_cols
        {
            let position = self.values.len() + entries.len() - 1;
            entries.clear();
            return Err(FormatError::ColumnOutOfRange {
                row: self.n_rows(),
                position,
                column: column as u64,
                n_cols,
            });
        }
        // Columns ascend from here, and the last is within: no entry is refused.
        for (column, value) in entries.drain(..) {
            self.push_entry(column, value)?;
        }
        self.finish_row();
        Ok(())
    }

    /// Appends the rows of another builder. Readers that parse parts of a file in parallel use it.
    /// Unfinished rows with entries are finished in both.
    ///
    /// # Errors
    ///
    /// [`FormatError::ColumnOutOfRange`] if the other has a column beyond this one's number of
    /// columns; nothing is appended then.
    pub fn append(&mut self, mut other: CsrBuilder<T>) -> Result<(), FormatError> {
        self.finish_open_row();
        other.finish_open_row();
        let (rows, entries) = (self.n_rows(), self.values.len());
        if let Some((column, row, position)) = other.largest {
            if let Some(n_cols) = self.n_cols
                && column >= n_cols as u64
            {
                return Err(FormatError::ColumnOutOfRange {
                    row: rows + row,
                    position: entries + position,
                    column,
                    n_cols,
                });
            }
            if self.largest.is_none_or(|(largest, ..)| column > largest) {
                self.largest = Some((column, rows + row, entries + position));
            }
        }
        self.indptr.extend(other.indptr[1..].iter().map(|end| end + entries as u64));
        self.values.extend_from_slice(&other.values);
        match (&mut self.columns, other.columns) {
            (ColumnIds::U32(ids), ColumnIds::U32(more)) => ids.extend_from_slice(&more),
            (ColumnIds::U64(ids), ColumnIds::U64(more)) => ids.extend_from_slice(&more),
            (ColumnIds::U64(ids), ColumnIds::U32(more)) => {
                ids.extend(more.into_iter().map(u64::from));
            }
            (ColumnIds::U32(ids), ColumnIds::U64(more)) => {
                let wide = ids.iter().map(|&id| id.into()).chain(more).collect();
                self.columns = ColumnIds::U64(wide);
            }
        }
        Ok(())
    }

    /// The matrix. Entries of an unfinished row become a last row. The number of columns is the one
    /// given here or at the start, otherwise one past the largest column.
    ///
    /// # Errors
    ///
    /// [`FormatError::ColumnOutOfRange`] if a column is beyond it; the place named is that of the
    /// largest column.
    pub fn finish(mut self, n_cols: Option<usize>) -> Result<Csr<T>, FormatError> {
        self.finish_open_row();
        let n_cols = n_cols.or(self.n_cols).unwrap_or_else(|| self.n_cols_seen());
        if let Some((column, row, position)) = self.largest
            && column >= n_cols as u64
        {
            return Err(FormatError::ColumnOutOfRange { row, position, column, n_cols });
        }
        Ok(Csr {
            n_cols,
            indptr: self.indptr,
            columns: self.columns.into_width(n_cols),
            values: self.values,
        })
    }
}

impl<T: Stored> Default for CsrBuilder<T> {
    fn default() -> Self {
        CsrBuilder::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::ColumnIdsView;

    #[test]
    fn rejects_at_the_entry_and_stays_usable() {
        let mut builder = CsrBuilder::with_n_cols(4);
        builder.push_entry(0, 1.0f32).unwrap();
        builder.finish_row();
        builder.push_entry(2, 1.0).unwrap();
        assert_eq!(
            builder.push_entry(2, 1.0),
            Err(FormatError::ColumnDuplicate { row: 1, position: 2, column: 2 })
        );
        assert_eq!(
            builder.push_entry(1, 1.0),
            Err(FormatError::ColumnUnsorted { row: 1, position: 2, column: 1, previous: 2 })
        );
        assert_eq!(
            builder.push_entry(4, 1.0),
            Err(FormatError::ColumnOutOfRange { row: 1, position: 2, column: 4, n_cols: 4 })
        );
        builder.push_entry(3, 5.0).unwrap();
        let x = builder.finish(None).unwrap();
        assert_eq!(x, Csr::new(4, vec![0, 1, 3], vec![0u32, 2, 3], vec![1.0, 1.0, 5.0]).unwrap());
    }

    #[test]
    fn finds_the_width_or_checks_it_at_the_end() {
        let mut builder = CsrBuilder::new();
        for column in [6, 2, 6] {
            builder.push_entry(column, 1.0f32).unwrap();
            builder.finish_row();
        }
        assert_eq!(
            builder.clone().finish(Some(6)),
            Err(FormatError::ColumnOutOfRange { row: 0, position: 0, column: 6, n_cols: 6 })
        );
        assert_eq!(builder.clone().finish(Some(9)).unwrap().n_cols(), 9);
        assert_eq!(builder.finish(None).unwrap().n_cols(), 7);
        assert_eq!(CsrBuilder::<f32>::new().finish(None).unwrap(), Csr::default());
    }

    #[test]
    fn widens_when_a_column_needs_it() {
        let mut builder = CsrBuilder::new();
        builder.push_entry(7, 1.0f32).unwrap();
        builder.push_entry(1 << 40, 2.0).unwrap();
        builder.push_entry((1 << 40) + 1, 3.0).unwrap();
        let x = builder.finish(None).unwrap();
        assert_eq!(x.n_cols(), (1 << 40) + 2);
        assert_eq!(x.columns(), ColumnIdsView::U64(&[7, 1 << 40, (1 << 40) + 1]));
        let mut largest = CsrBuilder::new();
        assert!(largest.push_entry(usize::MAX, 1.0f32).is_err());
    }

    #[test]
    fn unsorted_rows_are_sorted_and_added_up() {
        let mut builder = CsrBuilder::with_n_cols(9);
        let mut row = vec![(5, 1.0f32), (0, 2.0), (5, 0.5)];
        builder.push_unsorted_row(&mut row).unwrap();
        assert!(row.is_empty());
        row.extend([(9, 1.0), (1, 1.0)]);
        assert!(builder.push_unsorted_row(&mut row).is_err());
        builder.push_unsorted_row(&mut row).unwrap();

        // the column that no width has leaves nothing of its row behind
        let mut unbounded = CsrBuilder::new();
        row.extend([(1, 1.0), (usize::MAX, 1.0)]);
        assert!(unbounded.push_unsorted_row(&mut row).is_err());
        assert_eq!((unbounded.nnz(), row.len()), (0, 0));
        assert_eq!(unbounded.finish(None).unwrap(), Csr::default());
        let x = builder.finish(None).unwrap();
        assert_eq!(x, Csr::new(9, vec![0, 2, 2], vec![0u32, 5], vec![2.0, 1.5]).unwrap());
    }

    #[test]
    fn an_unsorted_row_is_a_row_of_its_own() {
        let mut builder = CsrBuilder::with_n_cols(4);
        builder.push_entry(2, 1.0f32).unwrap();
        builder.push_unsorted_row(&mut vec![(3, 3.0), (1, 2.0)]).unwrap();
        builder.push_entry(3, 4.0).unwrap();
        let mut outside = vec![(4, 1.0), (0, 1.0)];
        assert_eq!(
            builder.push_unsorted_row(&mut outside),
            Err(FormatError::ColumnOutOfRange { row: 3, position: 5, column: 4, n_cols: 4 })
        );
        assert!(outside.is_empty());
        let rows = [vec![(2, 1.0)], vec![(1, 2.0), (3, 3.0)], vec![(3, 4.0)]];
        assert_eq!(builder.finish(None).unwrap(), Csr::from_rows(4, rows).unwrap());
    }

    #[test]
    fn appended_parts_equal_the_whole() {
        let rows = [vec![(3, 1.0f32)], vec![], vec![(0, 2.0), (1 << 33, 3.0)], vec![(1, 4.0)]];
        let build = |rows: &[Vec<(usize, f32)>]| {
            let mut builder = CsrBuilder::new();
            for row in rows {
                builder.push_unsorted_row(&mut row.clone()).unwrap();
            }
            builder
        };
        let whole = build(&rows).finish(None).unwrap();
        for cut in 0..=rows.len() {
            let mut first = build(&rows[..cut]);
            first.append(build(&rows[cut..])).unwrap();
            assert_eq!(first.finish(None).unwrap(), whole);
        }
        let mut narrow = CsrBuilder::with_n_cols(3);
        narrow.push_unsorted_row(&mut vec![(2, 1.0f32)]).unwrap();
        assert_eq!(
            narrow.append(build(&rows)),
            Err(FormatError::ColumnOutOfRange { row: 3, position: 3, column: 1 << 33, n_cols: 3 })
        );
        assert_eq!(narrow.n_rows(), 1);

        // entries of a row that was not finished never run into the next part
        let mut open = CsrBuilder::new();
        open.push_entry(2, 1.0f32).unwrap();
        let mut other = open.clone();
        other.finish_row();
        other.push_entry(0, 3.0).unwrap();
        open.append(other).unwrap();
        let expected = Csr::from_rows(3, [[(2, 1.0)], [(2, 1.0)], [(0, 3.0)]]).unwrap();
        assert_eq!(open.finish(None).unwrap(), expected);
    }
}
