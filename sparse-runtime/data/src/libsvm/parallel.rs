//! Parses LibSVM text on several threads in pieces. Each thread parses into memory of its own,
//! which stays in its cache. It then copies the samples to their place in the result, which is
//! known once all earlier pieces are parsed. Parsed data therefore does not travel between cores,
//! and a thread waits for others only if it is far ahead.

use super::super::read_error::Fault;
use super::IndexBase;
use super::parsed_samples::{ParsedSamples, SampleCounts};
use super::uninit_output::{OutputPages, UninitOutput};
use nnz_device::thread_pool::{self, wait_a_little};
use sparse_core::element::Float;
use std::array;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// The number of parsed pieces per thread that may wait for earlier ones.
const WAITING: usize = 4;

/// Some lines, parsed.
struct Piece<T> {
    number: usize,
    rows: ParsedSamples<T>,
    faults: Vec<Fault>,
}

/// The findings in a piece.
pub(super) struct Found {
    /// Its number.
    pub(super) piece: usize,
    pub(super) faults: Vec<Fault>,
    pub(super) needs_base_one: Option<usize>,
}

/// The state of one thread.
pub(super) struct Reading<T> {
    /// A ring: the piece in turn `t` is at the remainder of `t`.
    pieces: [Piece<T>; WAITING],
    /// The turns of waiting pieces.
    waiting: Range<usize>,
    /// Pages that this thread maps for all.
    pages: Option<OutputPages>,
    /// The turn of all threads when this one last placed a piece.
    taken: SampleCounts,
    /// The lines and column findings of placed pieces.
    lines: u64,
    largest: Option<u64>,
    has_zero: bool,
    found: Vec<Found>,
}

/// The state that threads share.
struct Shared<'a, T, F> {
    parse: F,
    n_pieces: usize,
    /// The first piece that has not begun.
    begun: AtomicUsize,
    /// The piece that is placed next, by its thread.
    next: AtomicUsize,
    /// Stop: there is no memory for the next piece, or a thread panicked.
    ended: AtomicBool,
    /// The remaining memory, and the part taken.
    output: Mutex<(UninitOutput<'a, T>, SampleCounts)>,
}

/// The size of a piece of a text, except for the ends of lines.
const PIECE_BYTES: usize = 1 << 16;

/// The number of pieces of a text.
pub(super) fn n_pieces(text: &[u8]) -> usize {
    text.len().div_ceil(PIECE_BYTES)
}

/// The lines of a piece, if any begin there. All pieces together take O(length of the text), for
/// lines of any length.
pub(super) fn lines_of_piece(text: &[u8], piece: usize) -> Range<usize> {
    let line_end = |bytes: &[u8]| bytes.iter().position(|&byte| byte == b'\n');
    let (first, next) = (piece * PIECE_BYTES, ((piece + 1) * PIECE_BYTES).min(text.len()));
    // A line begins behind the end of another one.
    let start = match first {
        0 => Some(0),
        _ => line_end(&text[first - 1..next - 1]).map(|before| first + before),
    };
    let Some(start) = start else { return next..next };
    let end = line_end(&text[next - 1..]).map_or(text.len(), |behind| next + behind);
    start..end
}

/// Stops the others if this thread panics: they would wait for its pieces.
struct EndsOnPanic<'a>(&'a AtomicBool);

impl Drop for EndsOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}

/// Appends the samples of some pieces, which `parse` appends to given samples, on as many threads
/// as there are readings, as long as memory and the width of columns suffice. Returns the next
/// piece, and the findings of earlier ones, in order.
pub(super) fn read_pieces<T: Float>(
    rows: &mut ParsedSamples<T>,
    readings: &mut [Reading<T>],
    pieces: Range<usize>,
    parse: impl Fn(&mut ParsedSamples<T>, usize) -> Vec<Fault> + Sync,
) -> (usize, Vec<Found>) {
    let output = rows.uninit_output();
    let mut pages = Some(output.pages());
    let shared = Shared {
        parse,
        n_pieces: pieces.end,
        begun: AtomicUsize::new(pieces.start),
        next: AtomicUsize::new(pieces.start),
        ended: AtomicBool::new(false),
        output: Mutex::new((output, SampleCounts::default())),
    };
    // The first thread is the calling one.
    readings.iter_mut().for_each(|reading| reading.pages = pages.take());
    thread_pool::each(readings, |_, reading| reading.read(&shared));
    let placed = shared.next.into_inner();
    let (_, taken) = shared.output.into_inner().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: had a thread panicked this would not be reached: what was taken was filled by who
    // took it.
    unsafe { rows.assume_written(taken) };
    let mut found = Vec::new();
    for reading in readings {
        rows.lines += std::mem::take(&mut reading.lines);
        rows.largest = rows.largest.max(reading.largest.take());
        rows.has_zero |= std::mem::take(&mut reading.has_zero);
        found.append(&mut reading.found);
    }
    found.sort_unstable_by_key(|found| found.piece);
    (placed, found)
}

impl<T: Float> Reading<T> {
    pub(super) fn new(base: IndexBase) -> Self {
        let piece = |_| Piece { number: 0, rows: ParsedSamples::new(base), faults: Vec::new() };
        Reading {
            pieces: array::from_fn(piece),
            waiting: 0..0,
            pages: None,
            taken: SampleCounts::default(),
            lines: 0,
            largest: None,
            has_zero: false,
            found: Vec::new(),
        }
    }

    /// Parses and places pieces until none is left.
    fn read<F>(&mut self, shared: &Shared<'_, T, F>)
    where
        F: Fn(&mut ParsedSamples<T>, usize) -> Vec<Fault> + Sync,
    {
        let _ends = EndsOnPanic(&shared.ended);
        self.taken = SampleCounts::default();
        let mut looks = 0;
        while !shared.ended.load(Ordering::Relaxed) {
            // No thread waits for this one meanwhile.
            if let Some(pages) = self.pages.as_mut().filter(|_| self.waiting.is_empty()) {
                pages.map_behind(self.taken);
            }
            let is_at_work = self.place_first(shared) || self.parse_next(shared);
            if !is_at_work && self.waiting.is_empty() {
                return;
            }
            if !is_at_work {
                wait_a_little(&mut looks);
            }
        }
        // What has no place is parsed again by the calling thread.
        for turn in std::mem::replace(&mut self.waiting, 0..0) {
            self.pieces[turn % WAITING].rows.clear();
        }
    }

    /// Copies the first waiting piece to its place, if all earlier pieces are placed.
    fn place_first<F>(&mut self, shared: &Shared<'_, T, F>) -> bool {
        let piece = &mut self.pieces[self.waiting.start % WAITING];
        if self.waiting.is_empty() || shared.next.load(Ordering::Relaxed) != piece.number {
            return false;
        }
        let mut output = shared.output.lock().unwrap_or_else(PoisonError::into_inner);
        let (output_left, taken) = &mut *output;
        let Some((place, size)) = output_left.take_for(&piece.rows) else {
            shared.ended.store(true, Ordering::Relaxed);
            return false;
        };
        taken.rows += size.rows;
        taken.entries += size.entries;
        let taken = *taken;
        shared.next.store(piece.number + 1, Ordering::Relaxed);
        drop(output);

        let (rows, faults) = (&mut piece.rows, std::mem::take(&mut piece.faults));
        let needs_base_one = rows.needs_base_one.take();
        if !faults.is_empty() || needs_base_one.is_some() {
            self.found.push(Found { piece: piece.number, faults, needs_base_one });
        }
        self.lines += rows.lines;
        self.largest = self.largest.max(rows.largest);
        self.has_zero |= rows.has_zero;
        place.fill(rows);
        self.waiting.start += 1;
        self.taken = taken;
        true
    }

    /// Parses the next piece that has not begun, unless too many wait.
    fn parse_next<F>(&mut self, shared: &Shared<'_, T, F>) -> bool
    where
        F: Fn(&mut ParsedSamples<T>, usize) -> Vec<Fault> + Sync,
    {
        if self.waiting.len() == WAITING {
            return false;
        }
        let next = |begun: usize| (begun < shared.n_pieces).then_some(begun + 1);
        let Ok(number) = shared.begun.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next)
        else {
            return false;
        };
        let piece = &mut self.pieces[self.waiting.end % WAITING];
        piece.number = number;
        piece.faults = (shared.parse)(&mut piece.rows, number);
        self.waiting.end += 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse::Rules;
    use super::super::tolerance::Tolerance;
    use super::*;
    use nnz_arrays::formats::ColumnIds;

    const RULES: Rules = Rules {
        base: IndexBase::One,
        n_features: None,
        tolerance: Tolerance {
            unsorted: false,
            repeated: false,
            unknown: false,
            any_label: false,
            hashing: None,
        },
    };

    /// Samples of 0 to 6 entries, some of 64 bits if they are to be wide.
    fn texts(n: usize, wide: bool) -> Vec<String> {
        let line = |row: usize| {
            let entries = (0..row % 7).map(|k| {
                if wide && row % 31 == 30 {
                    format!(" {}:0.5", k as u64 + (1 << 40))
                } else {
                    format!(" {}:{}", 3 * k + row % 3 + 1, k)
                }
            });
            format!("{row}{}\n", entries.collect::<String>())
        };
        (0..n).map(|piece| (0..piece % 5).map(|row| line(piece * 5 + row)).collect()).collect()
    }

    fn parse(rows: &mut ParsedSamples<f32>, text: &str) -> Vec<Fault> {
        rows.parse(text.as_bytes(), RULES).err().into_iter().collect()
    }

    /// The columns of rows as numbers.
    fn columns(rows: &ParsedSamples<f32>) -> Vec<u64> {
        match &rows.columns {
            ColumnIds::U32(columns) => columns.iter().map(|&column| column.into()).collect(),
            ColumnIds::U64(columns) => columns.clone(),
        }
    }

    #[test]
    fn pieces_are_appended_in_order() {
        let n_pieces = if cfg!(miri) { 20 } else { 300 };
        for (wide, rows_of_room, n_readings) in
            [(false, 10_000, 3), (false, 10_000, 1), (false, 1, 3), (true, 10_000, 3), (true, 7, 2)]
        {
            let texts = texts(n_pieces, wide);
            let mut expected = ParsedSamples::new(IndexBase::One);
            texts.iter().for_each(|text| assert!(parse(&mut expected, text).is_empty()));

            let mut rows = ParsedSamples::new(IndexBase::One);
            let mut readings: Vec<_> =
                (0..n_readings).map(|_| Reading::new(IndexBase::One)).collect();
            let (mut next, mut calls) = (0, 0);
            while next < n_pieces {
                rows.reserve(rows_of_room, 7 * rows_of_room);
                let pieces = next..n_pieces;
                let (end, found) = read_pieces(&mut rows, &mut readings, pieces, |rows, piece| {
                    parse(rows, &texts[piece])
                });
                assert!(found.is_empty());
                if end < n_pieces {
                    parse(&mut rows, &texts[end]);
                }
                (next, calls) = (end + 1, calls + 1);
            }
            assert_eq!(calls > 1, wide || rows_of_room < 10_000);
            assert_eq!((&rows.labels, &rows.indptr), (&expected.labels, &expected.indptr));
            assert_eq!((columns(&rows), &rows.values), (columns(&expected), &expected.values));
            assert_eq!((rows.lines, rows.largest), (expected.lines, expected.largest));
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "megabytes of text, and nothing in it is unsafe")]
    fn every_line_is_of_one_piece() {
        let line = |len: usize| "1".repeat(len) + "\n";
        for lens in [
            &[10; 30_000][..],
            &[PIECE_BYTES - 1; 5],
            &[PIECE_BYTES; 5],
            &[5, 4 * PIECE_BYTES, 0, PIECE_BYTES - 8, 0, 0, 3],
            &[0; 2 * PIECE_BYTES],
            &[7],
        ] {
            let mut text: String = lens.iter().map(|&len| line(len)).collect();
            for _ in 0..2 {
                let mut end = 0;
                for piece in 0..n_pieces(text.as_bytes()) {
                    let lines = lines_of_piece(text.as_bytes(), piece);
                    if lines.is_empty() {
                        continue;
                    }
                    assert_eq!(lines.start, end);
                    assert!(lines.start / PIECE_BYTES == piece);
                    assert!(lines.end == text.len() || text[..lines.end].ends_with('\n'));
                    end = lines.end;
                }
                assert_eq!(end, text.len());
                text.pop();
            }
        }
    }

    #[test]
    fn what_is_found_is_told_in_order() {
        let mut rows = ParsedSamples::<f32>::new(IndexBase::One);
        rows.reserve(100, 100);
        let mut readings = array::from_fn::<_, 3, _>(|_| Reading::new(IndexBase::One));
        let (end, found) = read_pieces(&mut rows, &mut readings, 3..40, |rows, piece| {
            let faults = parse(rows, if piece % 4 == 1 { "1 2:x\n" } else { "1 1:1\n" });
            rows.discard_partial();
            faults
        });
        assert_eq!((end, rows.labels.len()), (40, 28));
        assert!(found.iter().map(|found| found.piece).eq((5..40).step_by(4)));
        assert!(found.iter().all(|found| found.faults.len() == 1));
    }

    #[test]
    fn nobody_waits_for_a_piece_after_a_panic() {
        for panics in [0, 1, 17, 99] {
            let result = std::panic::catch_unwind(|| {
                let mut rows = ParsedSamples::<f32>::new(IndexBase::One);
                rows.reserve(1000, 1000);
                let mut readings = array::from_fn::<_, 3, _>(|_| Reading::new(IndexBase::One));
                read_pieces(&mut rows, &mut readings, 0..100, |rows, piece| {
                    assert!(piece != panics, "piece {piece}");
                    parse(rows, "1 1:1\n")
                })
            });
            assert!(result.is_err());
        }
    }
}
