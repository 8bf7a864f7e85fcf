//! Labels of binary losses in a stream: they must write the negative class in one way, as -1, or as
//! a probability from 0 on.
//!
//! Parsers record the ways of each block. Conflicts are decided in the order of the epoch, and the
//! error names the first line in the order of the files. The error therefore depends on neither the
//! number of threads nor their timing.

use super::super::text::Chunk;
use super::super::{Place, Problem, ReadError};
use super::feed::{Feed, LabelCheck, Purpose};
use super::{Known, Source};
use nnz_step::model::LabelKind;
use sparse_core::element::Float;
use std::sync::Arc;

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
    /// The line, if it was [requested](Purpose::Places).
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

/// The error of a column with labels of both ways: the first line, in the order of the files, that
/// is written in another way than lines before it. Reads the files up to it.
#[cold]
pub(super) fn first_mixed<T: Float>(
    source: &Arc<Source<T>>,
    checks: &[LabelCheck],
    column: usize,
) -> ReadError {
    let checks: Vec<LabelCheck> =
        checks.iter().filter(|check| check.column == column).cloned().collect();
    let declared = checks.first().map_or_else(String::new, |check| check.declared.to_owned());
    match find_mixed(source, checks) {
        Err(error) => error,
        Ok(Some((place, label, before))) => {
            let other = match before {
                Way::MinusOne => "-1",
                Way::Fraction => "from 0 to below 1",
            };
            let problem = Problem::MixedLabels { label, other, declared };
            ReadError::Syntax { place, problem }
        }
        Ok(None) => {
            let names: Vec<&str> = source.files.iter().map(|file| &file.name[..]).collect();
            let message = format!(
                "an epoch has found labels of `{declared}` that are -1 and others that are from 0 to below 1, and another pass has not: it changes while it is read"
            );
            ReadError::Content { file: names.join(", "), message }
        }
    }
}

/// The place and the label of that line, and the way of those before it.
fn find_mixed<T: Float>(
    source: &Arc<Source<T>>,
    checks: Vec<LabelCheck>,
) -> Result<Option<(Place, f64, Way)>, ReadError> {
    let all = (0..source.units.len()).collect();
    let mut feed = Feed::start(source, all, checks, Purpose::Places)?;
    let mut first = None;
    while let Some(block) = feed.next()? {
        for Written { way, label, place, .. } in block.written {
            let before = *first.get_or_insert(way);
            if let Some(place) = place.filter(|_| before != way) {
                return Ok(Some((place, label, before)));
            }
        }
    }
    Ok(None)
}
