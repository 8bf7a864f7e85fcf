//! The error of labels of a binary loss that write the negative class in two ways.

use super::super::{Place, Problem, ReadError};
use super::Source;
use super::binary_labels::{Way, Written};
use super::feed::{Feed, Purpose};
use super::label_check::LabelCheck;
use sparse_core::element::Float;
use std::sync::Arc;

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
