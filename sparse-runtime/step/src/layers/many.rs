//! The loop of a step of many samples through dense layers.
//!
//! The samples of a batch are processed in runs, each by a free thread. A run's samples are read,
//! and go through the row function, which adds to the run's sums of the gradients of dense
//! parameters, and keeps the requested numbers of each sample. A few samples are summed in the
//! elements' own type, and those sums in `f64`; the calling thread adds up the runs in order, in
//! `f64`. The bits therefore do not depend on the number of threads, and a run's sums stay in a
//! cache.

use super::reads::RowReads;
use crate::error::Result;
use crate::linear::{Scratch, is_large};
use crate::optimizer::{RowWeights, Updater, Weights};
use crate::paces::Stage;
use crate::row_parts::{MAX_SLOTS, in_turn};
use crate::with_rows;
use nnz_arrays::kernels::Parallel;
use nnz_arrays::parameter_memory::Table;
use nnz_device::simd;
use nnz_device::thread_pool;
use nnz_optim::UpdateRule;
use sparse_core::element::Float;
use std::ops::Range;

/// Rows of data in a run.
const RUN: usize = 64;

/// Rows of data whose gradients are added in the elements' own type: those of more are added in
/// `f64`, so that an element of a sum is off by 4 units in the last place at most.
const ROWS_IN_ELEMENTS: usize = 8;

/// What a pass keeps of each row of data: `columns` numbers, nothing where there is no memory.
#[derive(Debug)]
pub struct Kept<'a, T> {
    /// Their memory, row by row.
    pub rows: &'a mut [T],
    /// How many of each row.
    pub columns: usize,
}

/// Some rows of data that are being made, or wait to be added up.
#[derive(Clone, Debug, Default)]
pub(crate) struct Run<T> {
    /// The [sums](Self::sums), and what comes before the cache line at which they begin.
    memory: Vec<T>,
    /// The sums of all rows of the run.
    totals: Vec<f64>,
    kept: Vec<T>,
    loss: f64,
}

impl<T: Float> Run<T> {
    const LINE: usize = 64;

    /// Room for so many sums, and what is kept.
    fn make_room(&mut self, sums: usize, kept: usize) {
        self.memory.resize(sums + Self::LINE / size_of::<T>().max(1), T::zero());
        self.totals.resize(sums, 0.0);
        self.kept.resize(kept, T::zero());
    }

    /// The sums of a few rows, from a cache line on: of vectors that lie in two lines each access
    /// costs two. Then the sums of all rows, and what is kept.
    fn sums<const SUMS: usize>(&mut self) -> Option<(Sums<'_, T, SUMS>, &mut [T])> {
        let room = self.memory.len().saturating_sub(SUMS);
        let before = self.memory.as_ptr().align_offset(Self::LINE).min(room);
        let few = self.memory.get_mut(before..)?.first_chunk_mut::<SUMS>()?;
        let all = self.totals.first_chunk_mut::<SUMS>()?;
        Some((Sums { few, all }, &mut self.kept))
    }
}

/// The sums of a run.
struct Sums<'a, T, const SUMS: usize> {
    /// Of up to [`ROWS_IN_ELEMENTS`] rows.
    few: &'a mut [T; SUMS],
    /// Of the rows before them.
    all: &'a mut [f64; SUMS],
}

impl<T: Float, const SUMS: usize> Sums<'_, T, SUMS> {
    /// Adds the sums of a few rows to those of all.
    #[inline(always)]
    fn fold(&mut self) {
        for (all, few) in self.all.iter_mut().zip(self.few.iter_mut()) {
            *all += few.as_f64();
            *few = T::zero();
        }
    }
}

/// One pass over the rows of a batch, which updates nothing, but settles the rows that it reads:
/// returns the mean of the losses, and the gradients of dense parameters one after the other,
/// `SUMS` elements in all.
///
/// `row_function(row, place, numbers, sums, kept)` gets what the row reads of the tables, adds to
/// `sums`, writes row `place` of each of `kept`, and gives the row's loss. O(elements read) a row,
/// and what the row function costs. `parallel` threads share the work of a large batch.
///
/// # Errors
///
/// [`ModelError::Extent`](crate::model::ModelError::Extent) for a table of another shape than the
/// reads have, [`ModelError::Lookup`](crate::model::ModelError::Lookup) for an id beyond a table.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
pub fn pass<'s, R, T, P, F, const N: usize, const SUMS: usize, const KEPT: usize>(
    reads: P,
    n_rows: usize,
    tables: [(usize, &mut Table<T>); N],
    updater: &mut Updater<R, T>,
    parallel: Parallel,
    scratch: &'s mut Scratch<T>,
    kept: [Kept<'_, T>; KEPT],
    row_function: F,
) -> Result<(f64, &'s [T])>
where
    R: UpdateRule,
    T: Float<Accumulator = T>,
    P: RowReads<T>,
    F: Fn(usize, usize, P::Numbers, &mut [T; SUMS], &mut [&mut [T]; KEPT]) -> T + Sync,
{
    let Scratch { gradients, runs, totals, paces, .. } = scratch;
    let weights = tables.map(|(index, table)| (index, Weights::Table(table)));
    let total = with_rows!(R, T; *updater, weights, |rows| {
        reads.check(&rows)?;
        // SAFETY: checked just now.
        unsafe { reads.settle(n_rows, &mut rows)? };
        let large = rows.each_ref().map(is_large);
        let shared = rows.each_mut().map(|rows| rows.shared(rows.row_size()));
        let mut large = large.into_iter();
        let tables = shared.each_ref().map(|rows| (rows.weights(), large.next() == Some(true)));
        let work = n_rows.saturating_mul(2 * SUMS).saturating_add(reads.work(n_rows));
        let begun = paces.begin(Stage::Rows, parallel, work);
        let n_parts = begun.n_parts;
        let total = all_runs(reads, n_rows, &tables, n_parts, runs, totals, kept, row_function);
        paces.end(begun);
        total
    });
    gradients.clear();
    gradients.extend(totals.iter().map(|total| T::of(*total)));
    Ok((total / n_rows.max(1) as f64, gradients))
}

#[inline(never)]
#[allow(clippy::too_many_arguments)]
fn all_runs<T, P, F, const SUMS: usize, const KEPT: usize>(
    reads: P,
    n_rows: usize,
    tables: &[(RowWeights<'_, T>, bool)],
    n_parts: usize,
    slots: &mut Vec<Run<T>>,
    sums: &mut Vec<f64>,
    mut kept: [Kept<'_, T>; KEPT],
    row_function: F,
) -> f64
where
    T: Float<Accumulator = T>,
    P: RowReads<T>,
    F: Fn(usize, usize, P::Numbers, &mut [T; SUMS], &mut [&mut [T]; KEPT]) -> T + Sync,
{
    let columns = kept.each_ref().map(|kept| if kept.rows.is_empty() { 0 } else { kept.columns });
    let n_slots = if n_parts == 1 { 1 } else { (4 * n_parts).min(MAX_SLOTS) };
    slots.resize_with(n_slots.max(slots.len()), Run::default);
    for slot in &mut slots[..n_slots] {
        slot.make_room(SUMS, RUN * columns.iter().sum::<usize>());
    }
    sums.clear();
    sums.resize(SUMS, 0.0);
    let rows_of = |run: usize| run * RUN..n_rows.min((run + 1) * RUN);
    let mut total = 0.0;
    in_turn(
        &mut [(); thread_pool::MAX_PARTS][..n_parts],
        n_rows.div_ceil(RUN),
        &mut slots[..n_slots],
        |(), run, slot| {
            let Some((sums, mut rest)) = slot.sums::<SUMS>() else { return };
            let mut kept = columns.map(|columns| {
                let (own, others) = std::mem::take(&mut rest).split_at_mut(RUN * columns);
                rest = others;
                own
            });
            slot.loss = one_run(reads, rows_of(run), tables, sums, &mut kept, &row_function);
        },
        |run, slot| {
            total += slot.loss;
            sums.iter_mut().zip(&slot.totals).for_each(|(sum, of_run)| *sum += of_run);
            let kept_of_run = &slot.kept;
            let (rows, mut rest) = (rows_of(run), &kept_of_run[..]);
            for (kept, columns) in kept.iter_mut().zip(columns) {
                let (own, others) = rest.split_at(RUN * columns);
                kept.rows[rows.start * columns..rows.end * columns]
                    .copy_from_slice(&own[..rows.len() * columns]);
                rest = others;
            }
        },
    );
    total
}

/// The rows of a run: returns the sum of their losses.
#[inline(always)]
fn one_run<T, P, F, const SUMS: usize, const KEPT: usize>(
    reads: P,
    rows: Range<usize>,
    tables: &[(RowWeights<'_, T>, bool)],
    mut sums: Sums<'_, T, SUMS>,
    kept: &mut [&mut [T]; KEPT],
    row_function: &F,
) -> f64
where
    T: Float<Accumulator = T>,
    P: RowReads<T>,
    F: Fn(usize, usize, P::Numbers, &mut [T; SUMS], &mut [&mut [T]; KEPT]) -> T + Sync,
{
    simd::wide(
        #[inline(always)]
        || {
            sums.few.fill(T::zero());
            sums.all.fill(0.0);
            let mut total = 0.0;
            for (place, row) in rows.enumerate() {
                reads.ask(row, tables);
                // SAFETY: `pass` has checked the tables and settled the rows, which nobody writes
                // before all are read.
                let numbers = unsafe { reads.numbers(row, tables) };
                total += row_function(row, place, numbers, sums.few, kept).as_f64();
                if place % ROWS_IN_ELEMENTS == ROWS_IN_ELEMENTS - 1 {
                    sums.fold();
                }
            }
            sums.fold();
            total
        },
    )
}

/// Adds the products of all elements of two rows to a part of the sums, that begins at `first`.
#[inline(always)]
pub fn add_outer<T: Float, const K: usize, const M: usize, const N: usize>(
    sums: &mut [T; N],
    first: usize,
    left: &[T; K],
    right: &[T; M],
) {
    let Some(sums) = sums.get_mut(first..first + K * M) else { return };
    for (sums, x) in sums.as_chunks_mut::<M>().0.iter_mut().zip(left) {
        for (sum, y) in sums.iter_mut().zip(right) {
            *sum += *x * *y;
        }
    }
}

/// Adds a row to a part of the sums, that begins at `first`.
#[inline(always)]
pub fn add<T: Float, const M: usize, const N: usize>(
    sums: &mut [T; N],
    first: usize,
    row: &[T; M],
) {
    let Some(sums) = sums.get_mut(first..first + M) else { return };
    for (sum, x) in sums.iter_mut().zip(row) {
        *sum += *x;
    }
}

/// Writes a row that is kept.
#[inline(always)]
pub fn keep<T: Float, const M: usize>(kept: &mut [T], place: usize, row: &[T; M]) {
    if let Some(kept) = kept.as_chunks_mut::<M>().0.get_mut(place) {
        *kept = *row;
    }
}
