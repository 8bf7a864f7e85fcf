//! Labels of two values as 0 and 1.

use super::super::{Classes, ColumnValues, DataError};
use super::Dataset;
use nnz_arrays::formats::Dense;
use sparse_core::element::Float;

impl<T: Float> Dataset<T> {
    /// Makes the label `positive` 1 and any other 0, as losses of two classes read them; with
    /// `negative`, any label but these two is an error. O(samples).
    ///
    /// # Errors
    ///
    /// [`DataError::UnknownClass`] for a label that is neither; [`DataError::NothingToClassify`]
    /// without a label that is a number.
    ///
    /// ```
    /// use nnz::data::Dataset;
    /// use nnz::formats::Csr;
    ///
    /// let data = Dataset::new(Csr::<f32>::zeros(3, 1), vec![2.0, 4.0, 2.0])?;
    /// let statistics = data.into_binary(4.0, Some(2.0))?.label_statistics();
    /// assert_eq!(statistics[0].distinct(), Some(&[0.0, 1.0][..]));
    /// # Ok::<(), nnz::Error>(())
    /// ```
    pub fn into_binary(mut self, positive: f64, negative: Option<f64>) -> Result<Self, DataError> {
        let (position, labels) = self.real_label().ok_or(DataError::NothingToClassify)?;
        let mut mapped = Vec::with_capacity(labels.values().len());
        for (row, label) in labels.values().iter().enumerate() {
            let label = label.as_f64();
            mapped.push(if label == positive {
                T::one()
            } else if negative.is_none_or(|negative| label == negative) {
                T::zero()
            } else {
                let known = Classes::of([positive].into_iter().chain(negative));
                return Err(DataError::UnknownClass { row, label, known });
            });
        }
        let mapped = ColumnValues::Dense(Dense::new(*labels.shape(), mapped)?);
        self.columns[position] = self.columns[position].with_values(mapped);
        Ok(self)
    }
}
