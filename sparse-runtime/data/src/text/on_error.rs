//! The handling of unreadable samples.

use super::super::read_error::Fault;
use super::super::{Place, Problem, ReadError};
use super::{Chunk, RowParser};
use serde::{Deserialize, Serialize};
use sparse_core::element::Float;
use std::fmt;

/// What a reader does with an unreadable sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum OnError {
    /// Reading ends with the error.
    #[default]
    Fail,
    /// The sample is skipped, up to this number of times; the next one is
    /// [`ReadError::TooManySkipped`]. Nothing is skipped silently:
    /// [`ReadReport`](super::super::ReadReport) has the number and the first places.
    ///
    /// In LibSVM text in memory whose base is detected, an index may be beyond the declared width
    /// only because a later sample has index 0. That is an error, and no sample is skipped, because
    /// the earlier one was already read. A stream, which knows the base before, skips it; so does a
    /// reader with a declared [base](super::super::libsvm::Reader::index_base).
    Skip(u64),
}

/// A sample that was skipped.
#[derive(Clone, Debug, PartialEq)]
pub struct SkippedRow {
    /// Where.
    pub place: Place,
    /// Why.
    pub problem: Problem,
}

/// `train.csv:12:7: expected a number …`.
impl fmt::Display for SkippedRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.problem)
    }
}

impl OnError {
    /// The most rows that may be skipped.
    pub(crate) fn limit(self) -> u64 {
        match self {
            OnError::Fail => 0,
            OnError::Skip(limit) => limit,
        }
    }
}

/// The samples skipped so far, in the order of the file, for any number of threads.
#[derive(Clone, Debug, Default)]
pub(crate) struct Skips {
    on_error: OnError,
    pub(crate) count: u64,
    pub(crate) first: Vec<SkippedRow>,
}

impl Skips {
    /// The number of places that are kept.
    const REMEMBERED: usize = 10;

    pub(crate) fn new(on_error: OnError) -> Self {
        Skips { on_error, ..Skips::default() }
    }

    /// Adds an unreadable sample.
    pub(crate) fn add(&mut self, place: Place, problem: Problem) -> Result<(), ReadError> {
        let limit = self.on_error.limit();
        if self.count == limit {
            return Err(match self.on_error {
                OnError::Fail => ReadError::Syntax { place, problem },
                OnError::Skip(_) => {
                    let problem = Box::new(problem);
                    ReadError::TooManySkipped { place, problem, limit }
                }
            });
        }
        self.count += 1;
        if self.first.len() < Self::REMEMBERED {
            self.first.push(SkippedRow { place, problem });
        }
        Ok(())
    }
}

/// Parses whole lines, and continues after each fault with the next line, up to one fault beyond
/// the limit.
pub(crate) fn parse_part<T: Float, P: RowParser<T>>(
    parser: &mut P,
    text: &[u8],
    rows: &mut Chunk<T>,
    on_error: OnError,
) -> Vec<Fault> {
    skip_faults(text, on_error, |text| {
        let result = parser.parse(text, rows);
        if result.is_err() {
            rows.discard_partial();
        }
        result
    })
}

/// Calls `parse` with the rest of a text: after each fault with the text after its line, up to one
/// fault beyond the limit.
pub(crate) fn skip_faults(
    text: &[u8],
    on_error: OnError,
    mut parse: impl FnMut(&[u8]) -> Result<(), Fault>,
) -> Vec<Fault> {
    let mut faults = Vec::new();
    let mut start = 0;
    while start < text.len() {
        let Err(Fault { offset, problem }) = parse(&text[start..]) else { break };
        let offset = start + offset.min(text.len() - start);
        start = memchr::memchr(b'\n', &text[offset..]).map_or(text.len(), |end| offset + end + 1);
        faults.push(Fault { offset, problem });
        if faults.len() as u64 > on_error.limit() {
            break;
        }
    }
    faults
}
