//! The rows of a table that may not be zero, as far as they are known.

use super::zeros::ROWS_PER_RUN;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Names a record of the rows that an updater writes, for as long as the record grows. A clone is
/// another record: the rows that are added to one are not in the other.
#[derive(Debug)]
pub struct RecordId(u64);

impl Default for RecordId {
    fn default() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        RecordId(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

impl Clone for RecordId {
    fn clone(&self) -> Self {
        RecordId::default()
    }
}

impl RecordId {
    /// The recorder that names this record.
    #[inline(always)]
    pub fn as_recorder(&self) -> Recorder {
        Recorder(self.0)
    }
}

/// The record to which each row is added whose weights are written while they are lent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recorder(u64);

impl Recorder {
    /// Rows are written that no record has.
    pub const NONE: Recorder = Recorder(0);
}

/// Rows of one run of `ROWS_PER_RUN` that may not be zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The number of the run.
    pub run: usize,
    /// A bit for each of its rows, the first one lowest.
    pub rows: u64,
}

const _: () = assert!(ROWS_PER_RUN == u64::BITS as usize);

impl Run {
    /// Calls `visit` with the number of each row, ascending.
    #[inline(always)]
    pub(super) fn for_each_row(self, mut visit: impl FnMut(usize)) {
        let mut rest = self.rows;
        while rest != 0 {
            visit(self.run * ROWS_PER_RUN + rest.trailing_zeros() as usize);
            rest &= rest - 1;
        }
    }
}

/// Which rows may have weights that are not zero.
///
/// Invariants: but for the rows in `known`, every bit of the weights is zero. Where there is a
/// `recorder`, so it is but for the rows in `base` and in its record. Runs ascend.
#[derive(Debug)]
pub(super) struct RunsInUse {
    /// Unset from a write until a pass finds them or a record tells them.
    known: OnceLock<Vec<Run>>,
    recorder: Recorder,
    /// Those that were known when `recorder` wrote first.
    base: Vec<Run>,
}

/// A clone of a table is written by others than the table is.
impl Clone for RunsInUse {
    fn clone(&self) -> Self {
        RunsInUse { known: self.known.clone(), recorder: Recorder::NONE, base: Vec::new() }
    }
}

/// The most runs that are listed, of a table of `n_rows` rows. With more of them in use, a pass
/// over all rows costs little more than one over those.
fn most_runs(n_rows: usize) -> usize {
    n_rows / ROWS_PER_RUN / 2 + 64
}

impl RunsInUse {
    /// Of rows that are all zero.
    pub(super) fn of_zeros() -> Self {
        RunsInUse { known: Vec::new().into(), ..RunsInUse::unknown() }
    }

    pub(super) fn unknown() -> Self {
        RunsInUse { known: OnceLock::new(), recorder: Recorder::NONE, base: Vec::new() }
    }

    /// The rows but for which all weights are zero, if they are known.
    pub(super) fn known(&self) -> Option<&[Run]> {
        self.known.get().map(Vec::as_slice)
    }

    /// Takes notice of weights that are about to be written. Two comparisons, but for the first
    /// write after the runs were known or of another recorder.
    #[inline(always)]
    pub(super) fn note_write(&mut self, recorder: Recorder) {
        let is_other = self.recorder != Recorder::NONE && self.recorder != recorder;
        if is_other || self.known.get().is_some() {
            self.note_change(recorder);
        }
    }

    #[cold]
    #[inline(never)]
    fn note_change(&mut self, recorder: Recorder) {
        let known = self.known.take();
        if self.recorder == recorder {
            return;
        }
        (self.recorder, self.base) = match known {
            Some(runs) if recorder != Recorder::NONE => (recorder, runs),
            _ => (Recorder::NONE, Vec::new()),
        };
    }

    /// Takes what a record has, as ascending runs, where it has all rows that were written since
    /// they were known. O(runs).
    pub(crate) fn set_recorded(
        &mut self,
        recorder: Recorder,
        n_rows: usize,
        recorded: impl Iterator<Item = Run>,
    ) {
        let is_all = recorder != Recorder::NONE && self.recorder == recorder;
        if !is_all || self.known.get().is_some() {
            return;
        }
        let most = most_runs(n_rows);
        let mut runs: Vec<Run> = recorded.take(most + 1).collect();
        if !self.base.is_empty() {
            runs.extend_from_slice(&self.base);
            // Two ascending parts, which a stable sort merges.
            runs.sort_by_key(|run| run.run);
            runs.dedup_by(|next, run| {
                let is_same = next.run == run.run;
                run.rows |= if is_same { next.rows } else { 0 };
                is_same
            });
        }
        if runs.len() <= most {
            self.known = runs.into();
        }
    }

    /// Takes the rows that a pass over all of them is about to [find](Finding::add).
    pub(super) fn finding(&self, n_rows: usize) -> Finding<'_> {
        let is_wanted = self.known.get().is_none();
        Finding { runs: is_wanted.then(Vec::new), most: most_runs(n_rows), of: self }
    }
}

/// The rows that a pass over all of them has found so far.
pub(super) struct Finding<'a> {
    /// `None` where they are known or too many.
    runs: Option<Vec<Run>>,
    most: usize,
    of: &'a RunsInUse,
}

impl Finding<'_> {
    /// Adds a row that is not zero, above all that were added.
    pub(super) fn add(&mut self, row: usize) {
        let Some(runs) = &mut self.runs else { return };
        let (run, bit) = (row / ROWS_PER_RUN, 1 << (row % ROWS_PER_RUN));
        if let Some(last) = runs.last_mut()
            && last.run == run
        {
            last.rows |= bit;
        } else if runs.len() == self.most {
            self.runs = None;
        } else {
            runs.push(Run { run, rows: bit });
        }
    }

    /// All rows that are not zero were added.
    pub(super) fn end(self) {
        if let Some(runs) = self.runs {
            // Of two passes at once, either has found the same.
            let _ = self.of.known.set(runs);
        }
    }
}
