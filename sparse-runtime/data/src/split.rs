//! Train and test parts.

use super::order::append_shuffled;
use super::{DataError, Dataset};
use sparse_core::element::Float;

impl<T: Float> Dataset<T> {
    /// Splits the samples at random: `fraction` of them, rounded to a whole number, and the others.
    /// The same seed gives the same parts on every machine; inside a part the samples keep their
    /// order. Copies every non-zero once.
    ///
    /// # Errors
    ///
    /// [`DataError::Fraction`] unless the fraction is in [0, 1].
    ///
    /// ```
    /// use nnz::data::synthetic::click_log;
    ///
    /// let (train, test) = click_log(1000, 1 << 12, 5, 42)?.split(0.8, 1)?;
    /// assert_eq!((train.n_rows(), test.n_rows()), (800, 200));
    /// # Ok::<(), nnz::Error>(())
    /// ```
    pub fn split(&self, fraction: f64, seed: u64) -> Result<(Self, Self), DataError> {
        if !(0.0..=1.0).contains(&fraction) {
            return Err(DataError::Fraction { fraction });
        }
        let mut rows = Vec::new();
        append_shuffled(&mut rows, self.n_rows(), seed, 0);
        let n_first = (fraction * rows.len() as f64).round() as usize;
        let (first, second) = rows.split_at_mut(n_first);
        first.sort_unstable();
        second.sort_unstable();
        Ok((self.gather(first)?, self.gather(second)?))
    }

    fn gather(&self, rows: &[usize]) -> Result<Self, DataError> {
        self.map_values(|values| Ok(values.gather(rows)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ColumnValues;
    use nnz_arrays::formats::{Csr, Dense, Ids};

    #[test]
    fn parts_hold_every_row_once_with_its_label() {
        let x = Csr::from_rows(9, (0..9).map(|i| [(i, i as f32)])).unwrap();
        let data = Dataset::<f32>::builder()
            .input("x", x)
            .label("y", (0..9).map(|i| i as f32).collect::<Vec<_>>())
            .label("z", Dense::new([9, 2], (0..18i64).collect()).unwrap())
            .build()
            .unwrap();
        let (first, second) = data.split(0.7, 3).unwrap();
        assert_eq!((first.n_rows(), second.n_rows()), (6, 3));
        let mut seen = Vec::new();
        for part in [&first, &second] {
            let values = |name| part.column(name).unwrap().values().clone();
            let (ColumnValues::Dense(y), ColumnValues::Ids(Ids::I64(z))) =
                (values("y"), values("z"))
            else {
                panic!("the columns changed their kind");
            };
            for (i, row) in part.features().unwrap().iter_rows().enumerate() {
                let [(column, value)] = row.collect::<Vec<_>>()[..] else {
                    panic!("a row has one entry");
                };
                assert_eq!((column as f32, value), (y.values()[i], y.values()[i]));
                assert_eq!(z.row(i), Some(&[2 * column as i64, 2 * column as i64 + 1][..]));
                seen.push(column);
            }
            assert!(y.values().is_sorted());
        }
        seen.sort_unstable();
        assert_eq!(seen, (0..9).collect::<Vec<_>>());
        let error = data.split(1.5, 3).unwrap_err();
        assert_eq!(error, DataError::Fraction { fraction: 1.5 });
        assert!(data.split(f64::NAN, 3).is_err());
        assert_eq!(data.split(0.0, 3).unwrap().0.n_rows(), 0);
    }
}
