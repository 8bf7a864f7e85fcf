//! Weights of samples and of classes.

use super::{Column, ColumnValues, DataError, Dataset};
use nnz_arrays::formats::Dense;
use nnz_step::model::InputRole;
use serde::{Deserialize, Serialize};
use sparse_core::element::Float;

/// The label of a model whose values weigh samples: `label weight: dense[n]`.
pub const WEIGHT: &str = "weight";

/// The weights of the samples of each class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum ClassWeights {
    /// `n / (K · n_c)` for a class with `n_c` of the `n` samples, with K classes that occur: all
    /// classes have the same total weight, and the mean weight is 1 (scikit-learn's
    /// `class_weight = "balanced"`).
    Balanced,
    /// One for each class: by id; for labels that are numbers, the first for samples with a label
    /// below 1/2, the second for the others.
    Given(Vec<f64>),
}

/// Refuses weights of samples that are negative, infinite or NaN.
pub(super) fn check_weights<T: Float>(weights: &[T]) -> Result<(), DataError> {
    let is_bad = |weight: &T| !(weight.as_f64() >= 0.0 && weight.is_finite());
    match weights.iter().position(is_bad) {
        Some(row) => Err(DataError::Weight { row, value: weights[row].as_f64() }),
        None => Ok(()),
    }
}

impl<T: Float> Dataset<T> {
    /// The same data with a weight for each sample, as the label `weight`, which a model declares
    /// and gives to its loss:
    ///
    /// ```text
    /// label y: dense[n, 1];
    /// label weight: dense[n];
    /// loss logistic(score, y, weight = weight);
    /// ```
    ///
    /// A loss is the mean over samples of the weighted losses; metrics (`nnz::metric`) of such
    /// a model weigh samples in the same way. Present weights of the data are multiplied.
    ///
    /// # Errors
    ///
    /// [`DataError::Weight`] for one that is negative, infinite or NaN, [`DataError::RowCount`]
    /// unless there is one for each sample.
    pub fn with_weights(self, mut weights: Vec<T>) -> Result<Self, DataError> {
        check_weights(&weights)?;
        if let Some(ColumnValues::Dense(before)) = self.column(WEIGHT).map(Column::values) {
            weights.iter_mut().zip(before.values()).for_each(|(weight, other)| *weight *= *other);
        }
        let values = ColumnValues::Dense(Dense::new([weights.len()], weights)?);
        self.with_column(Column::new(Some(WEIGHT.to_owned()), InputRole::Label, values))
    }

    /// The same data with the [weight](Self::with_weights) of each sample's class. The class is the
    /// first label: an id, or a number compared with 1/2.
    ///
    /// ```
    /// use nnz::data::{ClassWeights, ColumnValues, Dataset};
    /// use nnz::formats::Csr;
    ///
    /// let data = Dataset::new(Csr::<f32>::zeros(4, 1), vec![1.0, -1.0, -1.0, -1.0])?;
    /// let data = data.with_class_weights(&ClassWeights::Balanced)?;
    /// let column = data.column("weight").map(|column| column.values());
    /// let Some(ColumnValues::Dense(weights)) = column else {
    ///     panic!("no weights");
    /// };
    /// assert_eq!(weights.values(), [2.0, 2.0 / 3.0, 2.0 / 3.0, 2.0 / 3.0]);
    /// # Ok::<(), nnz::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`DataError::NothingToClassify`] without a label of one number or id a sample,
    /// [`DataError::ClassWeight`] for a class without a weight, and those of
    /// [`with_weights`](Self::with_weights).
    pub fn with_class_weights(self, weights: &ClassWeights) -> Result<Self, DataError> {
        let classes = self.class_of_rows().ok_or(DataError::NothingToClassify)?;
        let balanced = match weights {
            ClassWeights::Balanced => balanced(&classes),
            ClassWeights::Given(_) => Vec::new(),
        };
        let known = match weights {
            ClassWeights::Balanced => &balanced,
            ClassWeights::Given(weights) => weights,
        };
        let of_rows = classes.iter().enumerate().map(|(row, &class)| {
            let weight = usize::try_from(class).ok().and_then(|class| known.get(class));
            let missing =
                || DataError::ClassWeight { row, class: class.to_string(), known: known.len() };
            weight.map(|weight| T::of(*weight)).ok_or_else(missing)
        });
        let of_rows = of_rows.collect::<Result<Vec<T>, _>>()?;
        self.with_weights(of_rows)
    }

    /// The class of each sample, by the first label that is not a weight.
    fn class_of_rows(&self) -> Option<Vec<i128>> {
        let labels = self.columns().iter().filter(|column| column.role() == InputRole::Label);
        let mut labels = labels.filter(|column| column.name() != Some(WEIGHT));
        let label = labels.find(|column| column.values().shape().row_size() == 1)?;
        match label.values() {
            ColumnValues::Dense(labels) => {
                let is_positive = |label: &T| i128::from(label.as_f64() >= 0.5);
                Some(labels.values().iter().map(is_positive).collect())
            }
            ColumnValues::Ids(ids) => {
                let ids = ids.view();
                Some((0..self.n_rows()).map(|row| ids.number(row)).collect())
            }
            ColumnValues::Csr(_) | ColumnValues::Unit(_) => None,
        }
    }
}

/// Balanced weights, by class: as many as the largest class needs, but not more than there are
/// samples, since a class number beyond them is more likely a mistake.
fn balanced(classes: &[i128]) -> Vec<f64> {
    let n_rows = classes.len();
    let mut counts = Vec::new();
    for class in classes.iter().filter_map(|class| usize::try_from(*class).ok()) {
        if class >= counts.len() && class <= n_rows {
            counts.resize(class + 1, 0usize);
        }
        if let Some(count) = counts.get_mut(class) {
            *count += 1;
        }
    }
    let n_classes = counts.iter().filter(|count| **count > 0).count();
    let weight = |count: usize| n_rows as f64 / (n_classes * count) as f64;
    counts.into_iter().map(|count| if count == 0 { 0.0 } else { weight(count) }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use nnz_arrays::formats::Csr;

    fn labelled(labels: &[f64]) -> Dataset<f64> {
        Dataset::new(Csr::zeros(labels.len(), 2), labels.to_vec()).unwrap()
    }

    fn weights(data: &Dataset<f64>) -> Vec<f64> {
        let Some(ColumnValues::Dense(weights)) = data.column(WEIGHT).map(Column::values) else {
            panic!("no weights in {data}");
        };
        weights.values().to_vec()
    }

    #[test]
    fn weights_of_samples_and_classes_are_multiplied() {
        let data = labelled(&[1.0, 0.0, 1.0]).with_weights(vec![1.0, 2.0, 0.5]).unwrap();
        let data = data.with_class_weights(&ClassWeights::Given(vec![3.0, 10.0])).unwrap();
        assert_eq!(weights(&data), [10.0, 6.0, 5.0]);
    }

    #[test]
    fn n8_labels_that_are_probabilities_are_of_a_class_by_one_half() {
        let data = labelled(&[0.1, 0.2, 0.8, 0.9]);
        let data = data.with_class_weights(&ClassWeights::Given(vec![2.0, 3.0])).unwrap();
        assert_eq!(weights(&data), [2.0, 2.0, 3.0, 3.0]);
        let data = labelled(&[0.1, 0.2, 0.3, 0.9]);
        let data = data.with_class_weights(&ClassWeights::Balanced).unwrap();
        assert_eq!(weights(&data), [2.0 / 3.0, 2.0 / 3.0, 2.0 / 3.0, 2.0]);
    }

    /// For any origin of the column.
    #[test]
    fn a_column_of_weights_holds_weights() {
        for bad in [-1.0, f64::NEG_INFINITY] {
            let data = Dataset::<f64>::builder().input("x", Csr::<f64>::zeros(2, 2));
            let data = data.label("y", vec![1.0, 0.0]).label(WEIGHT, vec![0.5, bad]);
            assert!(data.build().is_err(), "{bad}");
        }
    }

    #[test]
    fn classes_by_id() {
        let (data, _) = labelled(&[5.0, 2.0, 9.0, 5.0]).into_classes().unwrap();
        let balanced = data.clone().with_class_weights(&ClassWeights::Balanced).unwrap();
        assert_eq!(weights(&balanced), [2.0 / 3.0, 4.0 / 3.0, 4.0 / 3.0, 2.0 / 3.0]);
        assert_eq!(balanced.classes().unwrap().len(), 3);
        let short = ClassWeights::Given(vec![1.0, 2.0]);
        let error = data.with_class_weights(&short).unwrap_err().to_string();
        assert_eq!(error, "row 2 has class 2, but there are weights of 2 classes");
    }

    #[test]
    fn bad_weights_are_refused() {
        let error = labelled(&[1.0]).with_weights(vec![-1.0]).unwrap_err().to_string();
        assert_eq!(error, "the weight of row 0 is -1, but must be at least 0 and finite");
        assert!(labelled(&[1.0, 1.0]).with_weights(vec![1.0]).is_err());
        let unlabelled = Dataset::features_only(Csr::<f64>::zeros(2, 2)).unwrap();
        assert!(unlabelled.with_class_weights(&ClassWeights::Balanced).is_err());
    }
}
