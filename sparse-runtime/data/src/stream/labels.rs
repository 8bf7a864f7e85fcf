//! Label statistics of a stream, gathered by its first pass, unit by unit.

use super::super::label_statistics::{LabelStatistics, is_label};
use super::super::text::{Chunk, ChunkColumn, ColumnKind, ColumnLayout};
use sparse_core::element::Float;

/// The statistics of the units that were read completely.
#[derive(Clone, Debug, Default)]
pub(super) struct SeenLabels {
    /// Of each label column that is not sparse.
    statistics: Vec<LabelStatistics>,
    /// Whether a unit is among them.
    units: Vec<bool>,
}

impl SeenLabels {
    /// Empty statistics for `n_units` units.
    pub(super) fn new(layout: &[ColumnLayout], n_units: usize) -> Self {
        SeenLabels { statistics: of_no_rows(layout), units: vec![false; n_units] }
    }

    /// Whether a unit was read completely.
    pub(super) fn has(&self, unit: usize) -> bool {
        self.units[unit]
    }

    /// Adds a unit, once.
    pub(super) fn add_unit(&mut self, unit: usize, labels: &[LabelStatistics]) {
        if !std::mem::replace(&mut self.units[unit], true) {
            self.statistics.iter_mut().zip(labels).for_each(|(all, of_unit)| all.merge(of_unit));
        }
    }

    /// The statistics of all samples, once all units were read.
    pub(super) fn all(&self) -> Option<&[LabelStatistics]> {
        self.units.iter().all(|has| *has).then_some(&self.statistics)
    }
}

/// The label columns of a layout that have statistics, by their positions.
fn columns(layout: &[ColumnLayout]) -> impl Iterator<Item = (usize, &ColumnLayout)> {
    let is_counted = |column: &ColumnLayout| {
        is_label(column.role, column.name.as_deref()) && !matches!(column.kind, ColumnKind::Csr(_))
    };
    layout.iter().enumerate().filter(move |(_, column)| is_counted(column))
}

/// Statistics of no samples.
pub(super) fn of_no_rows(layout: &[ColumnLayout]) -> Vec<LabelStatistics> {
    columns(layout).map(|(_, column)| LabelStatistics::new(column.name.as_deref())).collect()
}

/// Adds the labels of a block. O(labels).
pub(super) fn add_rows<T: Float>(
    statistics: &mut [LabelStatistics],
    layout: &[ColumnLayout],
    rows: &Chunk<T>,
) {
    for (statistics, (column, _)) in statistics.iter_mut().zip(columns(layout)) {
        match &rows.columns[column] {
            ChunkColumn::Dense { values, .. } => statistics.add(values),
            ChunkColumn::Ids { values, .. } => {
                statistics.add_ids(values.iter().map(|id| *id as usize));
            }
            ChunkColumn::Csr(_) => {}
        }
    }
}
