//! Labels of binary losses in a stream: they must write the negative class in one way, as -1, or as
//! a probability from 0 on.
//!
//! Parsers record the ways of each block. Conflicts are decided in the order of the epoch, and the
//! error names the first line in the order of the files. The error therefore depends on neither the
//! number of threads nor their timing.

use super::super::Place;
use super::super::text::Chunk;
use super::Known;
use super::label_check::LabelCheck;
use nnz_step::model::LabelKind;
use sparse_core::element::Float;

/// A way to write the negative class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// -1, beside 1.
    MinusOne,
    /// Probabilities from 0 to below 1.
    Fraction,
}

/// The first label of a block that is written in one of the ways.
#[derive(Clone, Debug)]
pub(super) struct Written {
    /// The column of the label.
    pub(super) column: usize,
    pub(super) way: Way,
    pub(super) label: f64,
    /// The sample of the block.
    pub(super) row: usize,
    /// The line, if it was [requested](super::feed::Purpose::Places).
    pub(super) place: Option<Place>,
}

/// The ways of labels of binary losses in a block, in the order of its samples.
pub(super) fn written<T: Float>(rows: &Chunk<T>, checks: &[LabelCheck]) -> Vec<Written> {
    let mut written = Vec::new();
    for check in checks.iter().filter(|check| check.kind == LabelKind::Binary) {
        let column = check.column;
        let minus_one = rows.find_label(column, |label| label == -T::one());
        let is_fraction = |label| label >= T::zero() && label < T::one();
        let fraction = rows.find_label(column, is_fraction);
        let first = [(Way::MinusOne, minus_one), (Way::Fraction, fraction)];
        written.extend(first.into_iter().filter_map(|(way, found)| {
            let (row, label) = found?;
            Some(Written { column, way, label: label.as_f64(), row, place: None })
        }));
    }
    written.sort_by_key(|written| written.row);
    written
}

impl Known {
    /// Adds the ways of the next block: returns a column with labels of both ways, if there is one.
    pub(super) fn mixed_column(&mut self, written: &[Written]) -> Option<usize> {
        written.iter().find_map(|Written { column, way, .. }| {
            let seen = &mut self.written[*column];
            seen[*way as usize] = true;
            (*seen == [true; 2]).then_some(*column)
        })
    }
}
