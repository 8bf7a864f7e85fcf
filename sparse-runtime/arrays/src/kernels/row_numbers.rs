//! The table rows that a batch names, and the number of each among them.

use super::entry_prefetch;
use super::index_set::IndexSet;
use crate::formats::{ColumnId, ColumnIdsView, CsrArrays, CsrView, DenseView, IdsView, Shape};
use crate::{with_column_ids, with_ids};
use nnz_device::simd::wide;
use sparse_core::element::{Id, Stored};

/// The rows of a table that some inputs name, ascending, and the arrays of these inputs with the
/// number of each row in place of the row. Numbers keep the order of rows, so that the columns of
/// a csr ascend as before.
///
/// Inputs are first [added](Self::add_columns), then the rows are [counted](Self::finish), then
/// arrays can be rewritten. Memory: 8 bytes for each row named, and a fifth of a byte for each row
/// of the table, mapped where batches touch it. O(entries); nothing is allocated once the largest
/// batch was seen.
#[derive(Clone, Debug, Default)]
pub struct RowNumbers {
    set: IndexSet,
    rows: Vec<u64>,
}

impl RowNumbers {
    /// No rows of a table of `n_rows`. About `n_entries` names will come.
    pub fn begin(&mut self, n_rows: usize, n_entries: usize) {
        self.set.begin_with(n_rows, n_entries);
        self.rows.clear();
    }

    /// Adds the columns of a csr, which are below the rows of the table.
    pub fn add_columns<V: Stored>(&mut self, matrix: CsrView<'_, V>) {
        with_column_ids!(matrix.columns(), |ids| {
            for (row, (&start, &end)) in matrix.starts().iter().zip(matrix.ends()).enumerate() {
                entry_prefetch::prefetch_ids(matrix, ids, row);
                self.set.insert_all(ids[start as usize..end as usize].iter().map(|id| id.at()));
            }
        });
    }

    /// Adds ids, which are below the rows of the table.
    pub fn add_ids(&mut self, ids: IdsView<'_>) {
        with_ids!(IdsView, ids, |ids| {
            self.set.insert_all(ids.values().iter().filter_map(|id| id.index()));
        });
    }

    /// Adds rows of the table.
    pub fn add_rows(&mut self, rows: &[u64]) {
        self.set.insert_all(rows.iter().map(|row| *row as usize));
    }

    /// Counts the rows that were added. O(rows).
    pub fn finish(&mut self) -> usize {
        let RowNumbers { set, rows } = self;
        set.finish(|row| rows.push(row as u64));
        rows.len()
    }

    /// The rows, ascending: number `i` is that of `rows()[i]`.
    pub fn rows(&self) -> &[u64] {
        &self.rows
    }

    /// Writes the numbers of a csr's columns, which were added, and its values.
    pub fn number_columns<V: Stored>(&self, matrix: CsrView<'_, V>, out: &mut NumberedCsr<V>) {
        out.starts.clear();
        out.starts.push(0);
        out.columns.clear();
        out.values.clear();
        out.columns.reserve(matrix.nnz());
        out.values.reserve(matrix.nnz());
        with_column_ids!(matrix.columns(), |ids| wide(
            #[inline(always)]
            || {
                for (row, (&start, &end)) in matrix.starts().iter().zip(matrix.ends()).enumerate() {
                    entry_prefetch::prefetch_ids(matrix, ids, row);
                    let entries = start as usize..end as usize;
                    let numbers = ids[entries.clone()].iter().map(
                        #[inline(always)]
                        |id| self.set.rank(id.at()) as u32,
                    );
                    out.columns.extend(numbers);
                    out.values.extend_from_slice(&matrix.values()[entries]);
                    out.starts.push(out.columns.len() as u64);
                }
            }
        ));
    }

    /// Writes the numbers of rows, which were added.
    pub fn number_rows(&self, rows: &[u64], numbers: &mut Vec<u32>) {
        numbers.clear();
        numbers.reserve(rows.len());
        wide(
            #[inline(always)]
            || {
                numbers.extend(rows.iter().map(
                    #[inline(always)]
                    |row| self.set.rank(*row as usize) as u32,
                ));
            },
        );
    }

    /// Writes the numbers of ids, which were added.
    pub fn number_ids(&self, ids: IdsView<'_>, out: &mut NumberedIds) {
        out.shape = with_ids!(IdsView, ids, |ids| *ids.shape());
        let number = |id: usize| self.set.rank(id);
        match ids {
            IdsView::U32(ids) => {
                out.narrow.clear();
                out.narrow.extend(ids.values().iter().map(|id| number(*id as usize) as u32));
            }
            IdsView::U64(ids) => {
                out.wide.clear();
                out.wide.extend(ids.values().iter().map(|id| number(*id as usize) as u64));
            }
            IdsView::I64(ids) => {
                out.signed.clear();
                out.signed.extend(ids.values().iter().map(|id| number(*id as usize) as i64));
            }
        }
    }
}

/// A csr whose columns are numbers of rows: see [`RowNumbers`].
#[derive(Clone, Debug)]
pub struct NumberedCsr<V> {
    starts: Vec<u64>,
    columns: Vec<u32>,
    values: Vec<V>,
}

impl<V> Default for NumberedCsr<V> {
    fn default() -> Self {
        NumberedCsr { starts: vec![0], columns: Vec::new(), values: Vec::new() }
    }
}

impl<V: Stored> NumberedCsr<V> {
    /// The csr, for a table with room for `n_cols` rows, at least those that were counted.
    pub fn view(&self, n_cols: usize) -> CsrView<'_, V> {
        let n_rows = self.starts.len().saturating_sub(1);
        CsrArrays {
            n_cols,
            starts: &self.starts[..n_rows],
            ends: &self.starts[self.starts.len() - n_rows..],
            columns: ColumnIdsView::U32(&self.columns),
            values: &self.values,
        }
        .view()
    }
}

/// Ids that are numbers of rows, of the type that they have in the batch: see [`RowNumbers`].
#[derive(Clone, Debug, Default)]
pub struct NumberedIds {
    shape: Shape,
    narrow: Vec<u32>,
    wide: Vec<u64>,
    signed: Vec<i64>,
}

impl NumberedIds {
    /// The numbers in place of `ids`, which they were made of.
    pub fn view<'a>(&'a self, ids: IdsView<'_>) -> IdsView<'a> {
        match ids {
            IdsView::U32(_) => IdsView::U32(DenseView::table(self.shape, &self.narrow)),
            IdsView::U64(_) => IdsView::U64(DenseView::table(self.shape, &self.wide)),
            IdsView::I64(_) => IdsView::I64(DenseView::table(self.shape, &self.signed)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::{Csr, Dense};

    #[test]
    fn numbers_are_places_in_the_list_of_rows() {
        let mut numbers = RowNumbers::default();
        let (mut numbered, mut of_ids) = (NumberedCsr::default(), NumberedIds::default());
        for n_cols in [100, 1 << 33] {
            let rows = [vec![(3, 1.0f32), (70, 2.0)], vec![], vec![(0, 3.0), (3, 4.0), (99, 5.0)]];
            let matrix = Csr::from_rows(n_cols, rows).unwrap();
            let ids = Dense::new([2, 2], vec![70i64, 4, 4, 99]).unwrap();
            numbers.begin(n_cols, 9);
            numbers.add_columns(matrix.view());
            numbers.add_ids(IdsView::I64(ids.view()));
            assert_eq!(numbers.finish(), 5);
            assert_eq!(numbers.rows(), [0, 3, 4, 70, 99]);
            numbers.number_columns(matrix.view(), &mut numbered);
            let expected =
                [vec![(1, 1.0f32), (3, 2.0)], vec![], vec![(0, 3.0), (1, 4.0), (4, 5.0)]];
            assert_eq!(numbered.view(8).to_owned(), Csr::from_rows(8, expected).unwrap());
            numbers.number_ids(IdsView::I64(ids.view()), &mut of_ids);
            let IdsView::I64(found) = of_ids.view(IdsView::I64(ids.view())) else { panic!() };
            assert_eq!(found.to_owned(), Dense::new([2, 2], vec![3i64, 2, 2, 4]).unwrap());
        }
    }
}
