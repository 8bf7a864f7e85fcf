//! Entries at rows whose places are found first, which takes longer than to add.

use super::panels::{Elements, InPanels, in_panels};
use super::{Place, Scatter};
use crate::formats::ColumnId;
use crate::lanes::{Lanes, Loop, same_type};
use crate::prefetch::LINE;
use sparse_core::element::{Factor, Float, Stored};
use std::ops::Range;

/// Each entry is read once, with its place, and then waits for its turn: a place is needed twice, first to ask for its memory.
pub(super) struct Queue<S>(pub(super) S);

/// So many have their turn together, where a row of sums is one line of the cache, and where it is more; as many wait behind them, whose places
/// are asked for meanwhile.
const OF_LINES: usize = 192;
const OF_ROWS: usize = 48;

/// The next power of two to twice as many, in a part of the core's first cache.
const LONGEST: usize = 512;

/// An entry.
#[derive(Clone, Copy)]
struct Waiting<A> {
    place: usize,
    row: usize,
    value: A,
}

impl<T, V, I, P, const NEVER_MINUS_ZERO: bool> Loop<T::Accumulator>
    for Queue<Scatter<'_, '_, T, V, I, P, NEVER_MINUS_ZERO>>
where
    T: Float,
    V: Factor<T>,
    I: ColumnId,
    P: Place,
{
    #[inline(always)]
    unsafe fn run<L: Lanes<T::Accumulator>>(self) {
        let Queue(mut scatter) = self;
        let (sums, n_rows) = (scatter.origin(), scatter.lhs.n_rows());
        let is_line = scatter.rhs.n_cols * size_of::<T::Accumulator>() <= LINE;
        let together = if is_line { OF_LINES } else { OF_ROWS };
        let none = Waiting { place: scatter.start, row: 0, value: T::zero().widen() };
        let mut queue = [none; LONGEST];
        // How many have come, and how many have had their turn; the row whose entries come next, and what is left of the one before.
        let (mut n_come, mut n_done, mut row, mut rest) = (0, 0, 0, 0..0);
        loop {
            while n_come < n_done + 2 * together && (row < n_rows || !rest.is_empty()) {
                if rest.is_empty() {
                    rest = scatter.own(row);
                    row += 1;
                }
                let n = rest.len().min(n_done + 2 * together - n_come);
                for at in rest.start..rest.start + n {
                    // SAFETY: these are entries of a csr.
                    let (id, value) = unsafe {
                        let value = scatter.lhs.values().get_unchecked(at);
                        (scatter.ids.get_unchecked(at), value.number().widen())
                    };
                    let place = scatter.place.of(id.at());
                    queue[n_come % LONGEST] = Waiting { place, row: row - 1, value };
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
                if scatter.rhs.row(0).and_then(same_type::<T, T::Accumulator>).is_some() {
                    in_panels::<T, L, _>(&Turns {
                        scatter: &scatter,
                        sums,
                        queue: &queue,
                        turns,
                        together,
                    });
                    continue;
                }
                for turn in turns {
                    let Waiting { place, row, value } = queue[turn % LONGEST];
                    scatter.add_row(sums.add(place * scatter.rhs.n_cols), value, row);
                }
            }
        }
    }
}

/// Entries that have their turn: their places are there, and rows of the right side in one piece.
struct Turns<'s, S, A> {
    scatter: &'s S,
    sums: *mut A,
    queue: &'s [Waiting<A>; LONGEST],
    turns: Range<usize>,
    together: usize,
}

impl<T, V, I, P, const NEVER_MINUS_ZERO: bool> InPanels<T::Accumulator>
    for Turns<'_, Scatter<'_, '_, T, V, I, P, NEVER_MINUS_ZERO>, T::Accumulator>
where
    T: Float,
    V: Stored,
{
    #[inline(always)]
    fn width(&self) -> usize {
        self.scatter.rhs.n_cols
    }

    #[inline(always)]
    unsafe fn panel<L: Lanes<T::Accumulator>, const N: usize, const ALL: bool>(
        &self,
        column: usize,
    ) {
        let width = if ALL { N * L::COUNT } else { self.scatter.rhs.n_cols };
        let sums = self.sums.wrapping_add(column);
        for turn in self.turns.clone() {
            let later = self.queue[(turn + self.together) % LONGEST];
            Elements::<L, N>::ask(sums.wrapping_add(later.place * width));
            let Waiting { place, row, value } = self.queue[turn % LONGEST];
            let Some(x) = self.scatter.rhs.row(row).and_then(same_type::<T, T::Accumulator>) else {
                continue;
            };
            let x = &x[column..column + N * L::COUNT];
            // SAFETY: `x` has a panel, and so has the row of sums at each place.
            unsafe {
                let x = Elements::<L, N>::load(x.as_ptr());
                x.add_to::<_, NEVER_MINUS_ZERO>(sums.add(place * width), value);
            }
        }
    }
}
