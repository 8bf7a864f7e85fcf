//! `csr<unit>`: a csr that holds a pattern only, every stored value being 1.
//!
//! Its values are a run of [`Unit`], which takes no memory, so that whatever is generic in what a
//! csr stores (views, batches, loops) neither holds nor reads values.

use super::ids::ColumnIndex;
use super::{ColumnIdsView, Csr, CsrView, FormatError};
use sparse_core::element::{Number, Stored, Unit};

/// As many units as there can be, in no memory.
static UNITS: [Unit; usize::MAX] = [Unit; usize::MAX];

impl Csr<Unit> {
    /// A pattern from its arrays, every invariant checked, in O(n_rows + nnz): as
    /// [`new`](Csr::new), with 1 for each value.
    ///
    /// # Errors
    ///
    /// As [`new`](Csr::new).
    ///
    /// ```
    /// use nnz::formats::Csr;
    /// // Row 0 stores columns 1 and 3, row 1 nothing, row 2 column 0.
    /// let x = Csr::pattern(4, vec![0, 2, 2, 3], vec![1u32, 3, 0])?;
    /// let shown = "csr [3, 4] unit, 3 stored (25.0 %)\n  0: (1) 1, (3) 1\n  1:\n  2: (0) 1";
    /// assert_eq!(x.to_string(), shown);
    /// assert_eq!(size_of_val(x.values()), 0);
    /// # Ok::<(), nnz::formats::FormatError>(())
    /// ```
    pub fn pattern<C: ColumnIndex>(
        n_cols: usize,
        indptr: Vec<u64>,
        columns: Vec<C>,
    ) -> Result<Self, FormatError> {
        let values = units(columns.len()).to_vec();
        Csr::new(n_cols, indptr, columns, values)
    }
}

impl<'a> CsrView<'a, Unit> {
    /// A view of the borrowed arrays of a pattern, every invariant checked, in O(n_rows + nnz).
    ///
    /// # Errors
    ///
    /// As [`Csr::new`].
    pub fn pattern<C: ColumnIndex>(
        n_cols: usize,
        indptr: &'a [u64],
        columns: &'a [C],
    ) -> Result<Self, FormatError>
    where
        &'a [C]: Into<ColumnIdsView<'a>>,
    {
        CsrView::new(n_cols, indptr, columns, units(columns.len()))
    }
}

impl<'a, T: Stored> CsrView<'a, T> {
    /// The same rows as a pattern, without a copy: their values are 1. O(n_rows + nnz), which are
    /// read once.
    ///
    /// # Errors
    ///
    /// [`FormatError::NotUnit`], with row, column and value, for the first that is not 1.
    ///
    /// ```
    /// use nnz::formats::Csr;
    /// let x = Csr::from_rows(4, [vec![(1, 1.0f32), (3, 1.0)], vec![(0, 1.0)]])?;
    /// assert_eq!(x.view().units()?, Csr::pattern(4, vec![0, 2, 3], vec![1u32, 3, 0])?.view());
    /// let counts = Csr::from_rows(4, [vec![(1, 1.0f32), (3, 2.0)]])?;
    /// assert_eq!(
    ///     counts.view().units().unwrap_err().to_string(),
    ///     "row 0 stores 2 in column 3 (numbered from 0): every value of a pattern is 1"
    /// );
    /// # Ok::<(), nnz::formats::FormatError>(())
    /// ```
    pub fn units(&self) -> Result<CsrView<'a, Unit>, FormatError> {
        let is_one = |value: &T| match value.to_number() {
            Number::Float(value) => value == 1.0,
            Number::Integer(value) => value == 1,
        };
        for (row, entries) in self.iter_rows().enumerate() {
            for (column, value) in entries {
                if !is_one(&value) {
                    return Err(FormatError::NotUnit { row, column, value: value.to_string() });
                }
            }
        }
        Ok(CsrView {
            n_cols: self.n_cols,
            starts: self.starts,
            ends: self.ends,
            columns: self.columns,
            values: units(self.values.len()),
            upcoming: self.upcoming,
            divided: None,
        })
    }
}

/// So many units.
fn units(len: usize) -> &'static [Unit] {
    &UNITS[..len]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::RowSelection;

    #[test]
    fn values_take_no_memory_and_arrays_are_checked() {
        let x = Csr::pattern(5, vec![0, 2, 3], vec![1u32, 4, 0]).unwrap();
        assert_eq!((x.nnz(), x.n_rows(), size_of_val(x.values())), (3, 2, 0));
        let twice = Csr::pattern(5, vec![0, 2], vec![1u32, 1]).unwrap_err();
        assert!(twice.to_string().starts_with("column 1 occurs twice in row 0"), "{twice}");
        assert!(Csr::pattern(1, vec![0, 2, 3], vec![1u32, 4, 0]).is_err());
        let (indptr, columns) = ([0, 2, 3], [1u32, 4, 0]);
        assert_eq!(CsrView::pattern(5, &indptr, &columns[..]).unwrap(), x.view());
        assert_eq!(x.cast::<f64>().values(), [1.0; 3]);
        assert_eq!(x.cast::<f32>().try_cast::<Unit>().unwrap(), x);
        assert!(Csr::from_rows(2, [[(1, 0.5f32)]]).unwrap().try_cast::<Unit>().is_err());
    }

    #[test]
    fn rows_of_a_view_are_seen_as_a_pattern_without_a_copy() {
        let x = Csr::from_rows(3, [vec![(0, 7.0)], vec![(1, 1.0), (2, 1.0f32)], vec![]]).unwrap();
        assert_eq!(
            x.view().units(),
            Err(FormatError::NotUnit { row: 0, column: 0, value: "7".to_owned() })
        );
        let mut selection = RowSelection::new();
        let picked = selection.gather(&x, &[2, 1, 1]).unwrap();
        let units = picked.units().unwrap();
        assert_eq!((units.n_rows(), units.nnz(), units.columns()), (3, 4, x.columns()));
        let owned = units.to_owned();
        assert_eq!(owned, Csr::pattern(3, vec![0, 0, 2, 4], vec![1u32, 2, 1, 2]).unwrap());
        let nan = Csr::from_rows(1, [[(0, f64::NAN)]]).unwrap();
        assert!(nan.view().units().is_err());
    }
}
