//! Entries at rows whose places are found first, which takes longer than to add.

use super::panels::{Elements, InPanels, in_panels};
use super::{Scatter, Target};
use crate::formats::ColumnId;
use crate::kernels::value::ValueOf;
use nnz_device::prefetch::{LINE, begin_lines};
use nnz_device::simd::{Lanes, Loop, is_accumulator, same_type};
use sparse_core::element::Float;
use std::ops::Range;

/// Each entry is read once, with its place, and then waits for its turn: a place is needed twice,
/// first to ask for its memory.
pub(super) struct Queue<S>(pub(super) S);

/// So many have their turn together, where a row of sums is one line of the cache, and where it is
/// more; as many wait behind them, whose places are asked for meanwhile.
const OF_LINES: usize = 192;
const OF_ROWS: usize = 48;

/// The next power of two to twice as many, in a part of the core's first cache.
const LONGEST: usize = 512;

/// An entry, in sixteen bytes where numbers are of four.
#[derive(Clone, Copy)]
struct Waiting<A> {
    place: usize,
    /// From some row on.
    row: u32,
    value: A,
}

/// So many rows are counted from one on; then the queue is emptied.
const MOST_ROWS: usize = if cfg!(test) { 15 } else { u32::MAX as usize };

impl<T, V, I, P, const NEVER_MINUS_ZERO: bool> Loop<T::Accumulator>
    for Queue<Scatter<'_, '_, T, V, I, P, NEVER_MINUS_ZERO>>
where
    T: Float,
    V: ValueOf<T>,
    I: ColumnId,
    P: Target,
{
    const IN_VECTORS: bool = Scatter::<T, V, I, P, NEVER_MINUS_ZERO>::IN_VECTORS;

    #[inline(always)]
    unsafe fn run<L: Lanes<T::Accumulator>>(self) {
        let Queue(mut scatter) = self;
        let (sums, n_rows) = (scatter.origin(), scatter.lhs.n_rows());
        let is_line = scatter.rhs.n_cols * size_of::<T::Accumulator>() <= LINE;
        let together = if is_line { OF_LINES } else { OF_ROWS };
        let rows = scatter.rhs.rows().and_then(same_type::<T, T::Accumulator>);
        let none = Waiting { place: scatter.start, row: 0, value: T::zero().widen() };
        let mut queue = [none; LONGEST];
        // How many have come, and how many have had their turn; the row whose entries come next,
        // what is left of the one before, and the row from which on those in the queue are counted.
        let (mut n_come, mut n_done, mut row, mut rest, mut first_row) = (0, 0, 0, 0..0, 0);
        loop {
            while n_come < n_done + 2 * together && (row < n_rows || !rest.is_empty()) {
                if rest.is_empty() {
                    if row - first_row == MOST_ROWS {
                        if n_done < n_come {
                            break;
                        }
                        first_row = row;
                    }
                    rest = scatter.own(row);
                    row += 1;
                }
                let n = rest.len().min(n_done + 2 * together - n_come);
                let row = (row - 1 - first_row) as u32;
                for at in rest.start..rest.start + n {
                    // SAFETY: these are entries of a csr.
                    let (id, value) = unsafe {
                        let value = scatter.lhs.values().get_unchecked(at);
                        (scatter.ids.get_unchecked(at), value.number().widen())
                    };
                    let place = scatter.place.of(id.at());
                    queue[n_come % LONGEST] = Waiting { place, row, value };
                    n_come += 1;
                }
                rest.start += n;
            }
            if n_done == n_come {
                return;
            }
            let turns = n_done..n_come.min(n_done + together);
            n_done = turns.end;
            // SAFETY: `out` has the places, and the processor the instructions, as the callers say.
            unsafe {
                if const { is_accumulator::<T>() }
                    && let Some(rows) = rows
                {
                    let width = scatter.rhs.n_cols;
                    let rows = &rows[first_row * width..];
                    in_panels::<T, L, _>(&Turns::<_, NEVER_MINUS_ZERO> {
                        sums,
                        rows,
                        width,
                        queue: &queue,
                        turns,
                        together,
                    });
                    continue;
                }
                for turn in turns {
                    let Waiting { place, row, value } = queue[turn % LONGEST];
                    let sums = sums.add(place * scatter.rhs.n_cols);
                    scatter.add_row(sums, value, first_row + row as usize);
                }
            }
        }
    }
}

/// Entries that have their turn: their places are there.
struct Turns<'q, A, const NEVER_MINUS_ZERO: bool> {
    sums: *mut A,
    /// Of the right side.
    rows: &'q [A],
    width: usize,
    queue: &'q [Waiting<A>; LONGEST],
    turns: Range<usize>,
    together: usize,
}

impl<A: Copy, const NEVER_MINUS_ZERO: bool> InPanels<A> for Turns<'_, A, NEVER_MINUS_ZERO> {
    #[inline(always)]
    fn width(&self) -> usize {
        self.width
    }

    #[inline(always)]
    unsafe fn panel<L: Lanes<A>, const N: usize, const ALL: bool>(&self, column: usize) {
        let width = if ALL { N * L::COUNT } else { self.width };
        let sums = self.sums.wrapping_add(column);
        let begin_lines = begin_lines(sums, width);
        for turn in self.turns.clone() {
            let later = self.queue[(turn + self.together) % LONGEST];
            Elements::<L, N>::ask(sums.wrapping_add(later.place * width), begin_lines);
            let Waiting { place, row, value } = self.queue[turn % LONGEST];
            let start = row as usize * width + column;
            let x = &self.rows[start..start + N * L::COUNT];
            // SAFETY: `x` has a panel, and so has the row of sums at each place.
            unsafe {
                let x = Elements::<L, N>::load(x.as_ptr());
                x.add_to::<_, NEVER_MINUS_ZERO>(sums.add(place * width), value);
            }
        }
    }
}
