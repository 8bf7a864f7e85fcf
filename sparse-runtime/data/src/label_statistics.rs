//! Label statistics: count, mean, variance, range and frequencies of the labels of a column.

use super::WEIGHT;
use super::column::ColumnValues;
use super::dataset::Dataset;
use nnz_arrays::formats::Ids;
use nnz_arrays::with_ids;
use nnz_step::model::InputRole;
use sparse_core::element::{Float, Id};
use std::collections::BTreeMap;

/// Statistics of the labels of a column. Sums are in `f64`, for any type of the labels.
///
/// ```
/// use nnz::data::Dataset;
/// use nnz::formats::Csr;
///
/// let data = Dataset::new(Csr::<f32>::zeros(4, 1), vec![1.0, 3.0, 1.0, 3.0])?;
/// let labels = &data.label_statistics()[0];
/// assert_eq!((labels.mean(), labels.variance()), (Some(2.0), Some(1.0)));
/// assert_eq!((labels.range(), labels.distinct()), (Some((1.0, 3.0)), Some(&[1.0, 3.0][..])));
/// # Ok::<(), nnz::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct LabelStatistics {
    name: Option<String>,
    count: u64,
    mean: f64,
    /// The sum of the squared distances from the mean.
    squares: f64,
    lowest: f64,
    highest: f64,
    /// The distinct numbers, ascending; `None` if there are more than [`MOST_DISTINCT`].
    distinct: Option<Vec<f64>>,
    class_counts: BTreeMap<usize, u64>,
}

/// The largest number of distinct labels that are listed.
const MOST_DISTINCT: usize = 10;

/// Labels whose mean is computed at a time.
const BLOCK: usize = 4096;

impl LabelStatistics {
    /// Of a column without labels.
    pub(super) fn new(name: Option<&str>) -> Self {
        LabelStatistics {
            name: name.map(str::to_owned),
            count: 0,
            mean: 0.0,
            squares: 0.0,
            lowest: f64::INFINITY,
            highest: f64::NEG_INFINITY,
            distinct: Some(Vec::new()),
            class_counts: BTreeMap::new(),
        }
    }

    /// The name of the column.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The number of labels.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The mean; `None` for class ids, and without labels.
    pub fn mean(&self) -> Option<f64> {
        self.range().map(|_| self.mean)
    }

    /// The mean squared distance from the mean; `None` for class ids, and without labels.
    pub fn variance(&self) -> Option<f64> {
        self.range().map(|_| self.squares / self.count as f64)
    }

    /// The lowest and the highest label; `None` for class ids, and without labels.
    pub fn range(&self) -> Option<(f64, f64)> {
        (self.lowest <= self.highest).then_some((self.lowest, self.highest))
    }

    /// The distinct labels, ascending; `None` for class ids, and for more than ten distinct labels.
    pub fn distinct(&self) -> Option<&[f64]> {
        self.distinct.as_deref().filter(|_| self.class_counts.is_empty())
    }

    /// The number of labels of each class id; empty for labels that are numbers.
    pub fn class_counts(&self) -> &BTreeMap<usize, u64> {
        &self.class_counts
    }

    /// Adds some numbers. O(labels).
    pub(super) fn add<T: Float>(&mut self, labels: &[T]) {
        for block in labels.chunks(BLOCK) {
            let numbers = || block.iter().map(|label| label.as_f64());
            let count = block.len() as f64;
            let mean = numbers().sum::<f64>() / count;
            let squares = numbers().map(|label| (label - mean).powi(2)).sum();
            self.combine(block.len() as u64, mean, squares);
            for label in numbers() {
                self.lowest = self.lowest.min(label);
                self.highest = self.highest.max(label);
                self.see(label);
            }
        }
    }

    /// Adds some class ids. O(ids · log(classes)).
    pub(super) fn add_ids(&mut self, ids: impl Iterator<Item = usize>) {
        for id in ids {
            self.count += 1;
            *self.class_counts.entry(id).or_default() += 1;
        }
    }

    /// Adds the labels of another part of the column.
    pub(super) fn merge(&mut self, other: &LabelStatistics) {
        self.combine(other.count, other.mean, other.squares);
        self.lowest = self.lowest.min(other.lowest);
        self.highest = self.highest.max(other.highest);
        match &other.distinct {
            Some(labels) => labels.iter().for_each(|label| self.see(*label)),
            None => self.distinct = None,
        }
        for (id, count) in &other.class_counts {
            *self.class_counts.entry(*id).or_default() += count;
        }
    }

    /// Combines the mean and squares of two parts.
    fn combine(&mut self, count: u64, mean: f64, squares: f64) {
        let total = self.count + count;
        if total > 0 {
            let (share, distance) = (count as f64 / total as f64, mean - self.mean);
            self.mean += distance * share;
            self.squares += squares + distance * distance * share * self.count as f64;
        }
        self.count = total;
    }

    /// Lists a number among the distinct ones. Zeros of both signs are equal.
    fn see(&mut self, label: f64) {
        let Some(distinct) = &mut self.distinct else { return };
        let label = label + 0.0;
        if let Err(place) = distinct.binary_search_by(|known| known.total_cmp(&label)) {
            distinct.insert(place, label);
        }
        if distinct.len() > MOST_DISTINCT {
            self.distinct = None;
        }
    }
}

impl<T: Float> Dataset<T> {
    /// Statistics of the labels: for each dense column and each column of ids, in order, without
    /// weights. O(labels).
    pub fn label_statistics(&self) -> Vec<LabelStatistics> {
        let columns = self.columns().iter();
        let labels = columns.filter(|column| is_label(column.role(), column.name()));
        let statistics = labels.filter_map(|column| {
            let mut labels = LabelStatistics::new(column.name());
            match column.values() {
                ColumnValues::Dense(values) => labels.add(values.values()),
                ColumnValues::Ids(ids) => with_ids!(Ids, ids, |ids| {
                    labels.add_ids(ids.values().iter().filter_map(|id| id.index()));
                }),
                ColumnValues::Csr(_) | ColumnValues::Unit(_) => return None,
            }
            Some(labels)
        });
        statistics.collect()
    }
}

/// Whether a column has labels, and not the weights of samples.
pub(super) fn is_label(role: InputRole, name: Option<&str>) -> bool {
    role == InputRole::Label && name != Some(WEIGHT)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(labels: &[f64]) -> LabelStatistics {
        let mut statistics = LabelStatistics::new(None);
        statistics.add(labels);
        statistics
    }

    #[test]
    fn mean_and_variance_of_parts_are_those_of_the_whole() {
        let labels: Vec<f64> = (0..10_007).map(|i| 1e6 + f64::from(i % 97)).collect();
        let mean = labels.iter().sum::<f64>() / labels.len() as f64;
        let variance = labels.iter().map(|label| (label - mean).powi(2)).sum::<f64>();
        let variance = variance / labels.len() as f64;
        for cut in [0, 1, 4096, 5000, labels.len()] {
            let mut parts = of(&labels[..cut]);
            parts.merge(&of(&labels[cut..]));
            assert_eq!((parts.count(), parts.distinct()), (10_007, None));
            assert_eq!(parts.range(), Some((1e6, 1e6 + 96.0)));
            assert!((parts.mean().unwrap() - mean).abs() < 1e-9, "{parts:?}");
            assert!((parts.variance().unwrap() / variance - 1.0).abs() < 1e-12, "{parts:?}");
        }
    }

    #[test]
    fn distinct_labels_are_listed_while_they_are_few() {
        let few = of(&[1.0, -1.0, 0.0, -0.0, 1.0]);
        assert_eq!(few.distinct(), Some(&[-1.0, 0.0, 1.0][..]));
        let mut ten = of(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]);
        assert_eq!(ten.distinct().unwrap().len(), 10);
        ten.merge(&of(&[10.0]));
        assert_eq!((ten.distinct(), ten.range()), (None, Some((0.0, 10.0))));
    }

    #[test]
    fn class_ids_are_counted_and_are_no_numbers() {
        let mut ids = LabelStatistics::new(Some("y"));
        ids.add_ids([2, 0, 2].into_iter());
        assert_eq!((ids.name(), ids.count()), (Some("y"), 3));
        assert_eq!(ids.class_counts(), &BTreeMap::from([(0, 1), (2, 2)]));
        assert_eq!((ids.mean(), ids.range(), ids.distinct()), (None, None, None));
        assert_eq!((of(&[]).mean(), of(&[]).variance()), (None, None));
    }
}
