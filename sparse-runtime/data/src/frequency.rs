//! Order of features by frequency: the most frequent ones next to each other.

use super::{ColumnValues, DataError, Dataset};
use nnz_arrays::formats::{ColumnIds, ColumnIdsView, Csr, CsrParts};
use nnz_arrays::parameter_memory::Table;
use sparse_core::element::{Element, Float, Stored};

/// A renumbering of the columns of csr data: the most frequent one is column 0, and so on; columns
/// that do not occur follow in their order.
///
/// Hashed features lie anywhere in a table. The few frequent ones then share cache lines with table
/// rows that are never read, and each costs a cache miss and an entry of the translation buffer. In
/// order of frequency they lie together, so that the same memory holds more of them. It is a
/// permutation: it changes no model except the order of its table rows, and no result except the
/// order in which a sample's terms are added. Data to be scored goes through the same order, or the
/// trained table rows are [put back](Self::restore).
///
/// ```
/// use nnz::data::{Dataset, FrequencyOrder};
/// use nnz::formats::Csr;
///
/// let x = Csr::from_rows(1000, [vec![(70, 1.0f32), (900, 2.0)], vec![(900, 3.0)]])?;
/// let data = Dataset::new(x, vec![1.0, 0.0])?;
/// let order = FrequencyOrder::of(&data)?;
/// let new = [900, 70, 0, 999].map(|old| order.column(old));
/// assert_eq!(new, [Some(0), Some(1), Some(2), Some(999)]);
/// let data = order.reorder(data)?;
/// assert_eq!(data.features().map(|x| x.values()), Some(&[2.0, 1.0, 3.0][..]));
/// # Ok::<(), nnz::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct FrequencyOrder {
    n_cols: usize,
    /// The columns that occur, by frequency.
    frequent: Vec<usize>,
    /// The same, ascending, each with its position in `frequent`.
    places: Vec<(usize, usize)>,
}

impl FrequencyOrder {
    /// The order of the first csr input of some data. O(nnz · log nnz), for any width.
    ///
    /// # Errors
    ///
    /// [`DataError::NoInput`] if no input is csr.
    pub fn of<T: Float>(data: &Dataset<T>) -> Result<Self, DataError> {
        match data.csr_input() {
            Some(ColumnValues::Csr(x)) => Ok(Self::of_csr(x)),
            Some(ColumnValues::Unit(x)) => Ok(Self::of_csr(x)),
            _ => Err(DataError::NoInput),
        }
    }

    /// The order of a matrix. O(nnz · log nnz).
    pub fn of_csr<V: Stored>(x: &Csr<V>) -> Self {
        let mut columns: Vec<usize> = match x.columns() {
            ColumnIdsView::U32(ids) => ids.iter().map(|id| *id as usize).collect(),
            ColumnIdsView::U64(ids) => ids.iter().map(|id| *id as usize).collect(),
        };
        columns.sort_unstable();
        let mut counts: Vec<(usize, usize)> =
            columns.chunk_by(|a, b| a == b).map(|run| (run[0], run.len())).collect();
        // Of equally frequent columns the first comes first: the sort is stable.
        counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let frequent: Vec<usize> = counts.into_iter().map(|(column, _)| column).collect();
        let mut places: Vec<_> = frequent.iter().copied().zip(0..).collect();
        places.sort_unstable();
        FrequencyOrder { n_cols: x.n_cols(), frequent, places }
    }

    /// The number of columns.
    pub fn n_cols(&self) -> usize {
        self.n_cols
    }

    /// The number of columns that occur: they are the first.
    pub fn n_frequent(&self) -> usize {
        self.frequent.len()
    }

    /// The new number of a column; `None` if it does not exist. O(log of the columns that occur).
    pub fn column(&self, old: usize) -> Option<usize> {
        if old >= self.n_cols {
            return None;
        }
        Some(match self.places.binary_search_by_key(&old, |place| place.0) {
            Ok(found) => self.places[found].1,
            // After the frequent ones, without those of them that came before it.
            Err(before) => self.frequent.len() + old - before,
        })
    }

    /// Data with the columns of its first csr input in this order. O(nnz · log nnz).
    ///
    /// # Errors
    ///
    /// [`DataError::NoInput`] if no input is csr, [`DataError::OrderWidth`] if it has another
    /// width.
    pub fn reorder<T: Float>(&self, data: Dataset<T>) -> Result<Dataset<T>, DataError> {
        let values = match data.csr_input() {
            Some(ColumnValues::Csr(x)) => ColumnValues::Csr(self.reorder_csr(x)?),
            Some(ColumnValues::Unit(x)) => ColumnValues::Unit(self.reorder_csr(x)?),
            _ => return Err(DataError::NoInput),
        };
        Ok(data.with_csr_input(values))
    }

    /// A matrix with its columns in this order. O(nnz · log nnz).
    ///
    /// # Errors
    ///
    /// [`DataError::OrderWidth`] if it has another width.
    pub fn reorder_csr<V: Stored>(&self, x: &Csr<V>) -> Result<Csr<V>, DataError> {
        self.check(x.n_cols())?;
        let (mut columns, mut values) = (Vec::with_capacity(x.nnz()), Vec::with_capacity(x.nnz()));
        let mut row = Vec::new();
        for entries in x.iter_rows() {
            let named = entries.filter_map(|(old, value)| Some((self.column(old)? as u64, value)));
            row.extend(named);
            row.sort_unstable_by_key(|(column, _)| *column);
            columns.extend(row.iter().map(|(column, _)| *column));
            values.extend(row.drain(..).map(|(_, value)| value));
        }
        let columns = match x.columns() {
            ColumnIdsView::U32(_) => ColumnIds::U32(columns.iter().map(|id| *id as u32).collect()),
            ColumnIdsView::U64(_) => ColumnIds::U64(columns),
        };
        let indptr = x.indptr().to_vec();
        Ok(Csr::from_parts(CsrParts { n_cols: self.n_cols, indptr, columns, values })?)
    }

    /// Puts the rows of a parameter that was trained on data in this order back into the data's own
    /// order. Call it after training: states of an update rule stay where they are. O(values).
    ///
    /// # Errors
    ///
    /// [`DataError::OrderWidth`] if the table has another number of rows.
    ///
    /// ```
    /// # use nnz::{data::FrequencyOrder, formats::Csr, table::Table};
    /// let order = FrequencyOrder::of_csr(&Csr::from_rows(4, [vec![(2, 1.0f32)]])?);
    /// let mut w = Table::from_values(1, &[0.5f32, 0.0, 0.0, 0.0]);
    /// order.restore(&mut w)?;
    /// assert_eq!(w.values(), [0.0, 0.0, 0.5, 0.0]);
    /// # Ok::<(), nnz::Error>(())
    /// ```
    pub fn restore<T: Element>(&self, table: &mut Table<T>) -> Result<(), DataError> {
        self.check(table.n_rows())?;
        let size = table.row_size();
        if size == 0 {
            return Ok(());
        }
        let values = table.values_mut();
        let frequent = values[..self.frequent.len() * size].to_vec();
        // The others are in their order already: runs of them move down, to between the frequent
        // ones.
        let mut first = 0;
        for (before, end) in
            self.places.iter().map(|place| place.0).chain([self.n_cols]).enumerate()
        {
            let from = self.frequent.len() + first - before;
            values.copy_within(from * size..(from + end - first) * size, first * size);
            first = end + 1;
        }
        for (row, old) in frequent.chunks_exact(size).zip(&self.frequent) {
            values[old * size..(old + 1) * size].copy_from_slice(row);
        }
        Ok(())
    }

    fn check(&self, found: usize) -> Result<(), DataError> {
        if found == self.n_cols {
            Ok(())
        } else {
            Err(DataError::OrderWidth { found, expected: self.n_cols })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn columns_are_permuted_and_rows_put_back(
            n_cols in 1usize..40,
            rows in proptest::collection::vec(proptest::collection::btree_set(0usize..40, 0..10), 0..20),
            wide: bool,
        ) {
            let n_cols = if wide { n_cols + (1 << 33) } else { n_cols };
            let rows: Vec<Vec<(usize, f32)>> = rows
                .iter()
                .map(|row| row.iter().filter(|c| **c < n_cols).map(|c| (*c, *c as f32 + 0.5)).collect())
                .collect();
            let x = Csr::from_rows(n_cols, rows.clone()).unwrap();
            let order = FrequencyOrder::of_csr(&x);
            let count = |column: usize| rows.iter().flatten().filter(|(c, _)| *c == column).count();
            let news: Vec<usize> = (0..n_cols.min(50)).filter_map(|old| order.column(old)).collect();
            // Another place for each, and the frequent ones first.
            let distinct: std::collections::BTreeSet<_> = news.iter().collect();
            prop_assert_eq!(distinct.len(), n_cols.min(50));
            for (old, new) in news.iter().enumerate() {
                prop_assert_eq!(*new < order.n_frequent(), count(old) > 0);
                for (other, place) in news.iter().enumerate() {
                    prop_assert!(count(old) <= count(other) || new < place);
                }
            }
            prop_assert_eq!(order.column(n_cols), None);
            let reordered = order.reorder_csr(&x).unwrap();
            for (row, entries) in rows.iter().zip(reordered.iter_rows()) {
                let mut named: Vec<_> = row.iter().map(|(c, v)| (order.column(*c).unwrap(), *v)).collect();
                named.sort_by_key(|(column, _)| *column);
                prop_assert_eq!(entries.collect::<Vec<_>>(), named);
            }
            if !wide {
                // Each row says which it was.
                let mut trained = vec![0.0; 2 * n_cols];
                for (old, new) in news.iter().enumerate() {
                    trained[2 * new..2 * new + 2].copy_from_slice(&[old as f32, -(old as f32)]);
                }
                let mut table = Table::from_values(2, &trained);
                order.restore(&mut table).unwrap();
                let expected: Vec<f32> = (0..n_cols).flat_map(|old| [old as f32, -(old as f32)]).collect();
                prop_assert_eq!(table.values(), &expected[..]);
            }
        }
    }

    #[test]
    fn other_widths_are_refused() {
        let order = FrequencyOrder::of_csr(&Csr::<f32>::zeros(1, 5));
        let refused = |error| matches!(error, DataError::OrderWidth { found: 4, expected: 5 });
        assert!(refused(order.reorder_csr(&Csr::<f32>::zeros(1, 4)).unwrap_err()));
        assert!(refused(order.restore(&mut Table::<f32>::zeros(4, 2)).unwrap_err()));
    }
}
