//! The partition of a batch among threads: samples for scoring, table rows for updating.
//!
//! A step on several threads has the bits of one thread. One thread scores a sample. The calling
//! thread sums over samples in their order. One thread updates a table row. The table rows of a
//! thread are neighbours, so its entries in each sample, which is sorted, are a run.

mod cuts;
mod shares;

pub(crate) use self::cuts::{Cuts, Piece};

use self::shares::{Shares, Times};
use crate::optimizer::RowAccumulator;
use nnz_arrays::formats::CsrView;
use nnz_arrays::formats::column_shares::{
    LINE, N_SAMPLES, are_even, columns_of_shares, equal_starts, firsts_of, samples,
};
use nnz_arrays::kernels::Parallel;
use nnz_device::prefetch::next_cache_is_near;
use nnz_device::thread_pool;
use sparse_core::element::{Float, Stored};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

/// The work, in about a quarter of a nanosecond, that a part of a step must have.
const WORK_OF_A_PART: usize = 1_000_000;

/// The work of a step on a batch, in which every entry reads and updates `columns` weights, in
/// about a quarter of a nanosecond: 0 where there is nothing to share.
pub(crate) fn work_of_step<V: Stored>(x: CsrView<'_, V>, columns: usize) -> usize {
    if columns == 0 || x.n_rows() < 2 {
        return 0;
    }
    x.nnz().saturating_mul(columns.saturating_add(15))
}

/// In how many parts to do work of so many quarters of a nanosecond.
pub(crate) fn parts_of_work(parallel: Parallel, work: usize) -> usize {
    let Parallel::Threads(threads) = parallel else { return 1 };
    threads.min(thread_pool::MAX_PARTS).min(work / WORK_OF_A_PART).max(1)
}

/// Whether threads hand on what they sum over the entries of a row of data, so that each reads no
/// rows of a parameter but those that it updates. A processor guesses wrong where a thread's
/// entries of a row end: that costs more than to read what another thread has written, where that
/// is [near](next_cache_is_near).
pub(crate) fn hand_on() -> bool {
    !next_cache_is_near()
}

/// What one of several threads keeps of the rows of a parameter that it updates.
#[derive(Clone, Debug)]
pub(crate) struct RowPart<A> {
    /// The sums of their gradients.
    pub(crate) sums: RowAccumulator,
    /// Those that the last [settling](crate::linear::settle) settled for the first time.
    pub(crate) first_settled: Vec<usize>,
    /// Rows of scratch.
    pub(crate) scratch: Vec<A>,
    /// How long [`each_updates`] took this thread, since batches were divided anew.
    times: Times,
}

impl<A: Float> RowPart<A> {
    /// As many parts, with empty sums for rows of `row_size` elements of a parameter of `n_rows`.
    pub(crate) fn resize(parts: &mut Vec<Self>, n_parts: usize, n_rows: usize, row_size: usize) {
        let fits = |part: &Self| part.sums.n_rows() == n_rows && part.sums.row_size() == row_size;
        if parts.len() != n_parts || !parts.iter().all(fits) {
            let sums = RowAccumulator::new(n_rows, row_size);
            parts.clear();
            let (first_settled, scratch, times) = (Vec::new(), Vec::new(), Times::default());
            parts.resize(n_parts, RowPart { sums, first_settled, scratch, times });
        }
        // A step that panicked may have left some.
        parts.iter_mut().for_each(|part| part.sums.clear());
    }
}

/// Calls `update` for each part on its thread: what nobody else can do of a step, however late the
/// thread is. How long that takes says how many of the entries it is to have.
pub(crate) fn each_updates<A: Send>(
    parts: &mut [RowPart<A>],
    update: impl Fn(usize, &mut RowPart<A>) + Sync,
) {
    thread_pool::each(parts, |place, part| {
        let start = Instant::now();
        update(place, part);
        part.times.note(start.elapsed().as_secs_f64());
    });
}

/// A batch in parts.
#[derive(Clone, Debug)]
pub(crate) struct Parts<A> {
    cuts: Cuts,
    rows: Vec<RowPart<A>>,
    shares: Shares,
    /// The batches that were divided by these cuts.
    uses: u32,
    spread: Spread,
}

impl<A> Default for Parts<A> {
    fn default() -> Self {
        let (cuts, shares) = (Cuts::default(), Shares::default());
        Parts { cuts, rows: Vec::new(), shares, uses: 0, spread: Spread::default() }
    }
}

/// Batches of a run are much alike, and what a thread has in its cache is to be its own in the next
/// one, too.
const USES: u32 = 16;

/// Whether the columns of batches can be divided, as one of them has shown.
#[derive(Clone, Copy, Debug, Default)]
struct Spread {
    n_parts: usize,
    n_cols: usize,
    uses: u32,
    is_even: bool,
}

impl<A: Float> Parts<A> {
    /// Whether a batch like `x` is worth to be [divided](Self::divide) among so many threads:
    /// [where](are_even) its columns allow for it. Most entries of a single column are the work of
    /// one thread.
    pub(crate) fn are_even<V: Stored>(&mut self, n_parts: usize, x: CsrView<'_, V>) -> bool {
        let spread = &mut self.spread;
        let is_known = spread.n_parts == n_parts && spread.n_cols == x.n_cols();
        if !is_known || spread.uses == USES {
            let samples = samples::<_, { 4 * N_SAMPLES }>(x);
            let is_even = match x.divided_among(n_parts) {
                Some(divided) => are_even(&samples, divided.firsts().iter().copied()),
                None => are_even(&samples, firsts_of(samples, equal_starts(n_parts))),
            };
            *spread = Spread { n_parts, n_cols: x.n_cols(), uses: 0, is_even };
        }
        spread.uses += 1;
        spread.is_even
    }

    /// Gives each of some threads rows with about as many entries of `x`, or of a batch lately, as
    /// take it as long as the others, and empty sums of `row_size` elements for them. Where rows
    /// are cut is still to be found.
    pub(crate) fn divide<V: Stored>(
        &mut self,
        n_parts: usize,
        x: CsrView<'_, V>,
        row_size: usize,
    ) -> (&mut Cuts, &mut [RowPart<A>]) {
        let Parts { cuts, rows, shares, uses, .. } = self;
        RowPart::resize(rows, n_parts, x.n_cols(), row_size);
        if let Some(divided) = x.divided_among(n_parts) {
            cuts.set_columns(divided.firsts().iter().copied(), x.n_cols());
            // What comes after it is cut anew.
            *uses = USES;
            return (cuts, rows);
        }
        *uses += 1;
        let is_new = !cuts.are_for(n_parts, x.n_cols());
        if *uses > USES || is_new {
            *uses = 1;
            if is_new {
                shares.make_equal(n_parts)
            } else {
                shares.correct(rows.iter().map(|part| part.times.seconds()))
            }
            rows.iter_mut().for_each(|part| part.times = Times::default());
            cuts.set_columns(columns_of_shares(x, shares.starts()), x.n_cols());
        }
        (cuts, rows)
    }
}

/// Neighbouring rows for each of some parts.
pub(crate) struct Bounds {
    /// The first row of each part, and one after the last.
    rows: [usize; thread_pool::MAX_PARTS + 1],
    /// As [`are_even`] says.
    pub(crate) are_even: bool,
}

impl Bounds {
    /// Divides `n_rows` rows so that each part has as many of the rows that `sample(place, of)`
    /// gives, for each place.
    pub(crate) fn of(
        n_parts: usize,
        n_rows: usize,
        sample: &dyn Fn(usize, usize) -> usize,
    ) -> Self {
        let mut samples = [0; N_SAMPLES];
        for (place, row) in samples.iter_mut().enumerate() {
            *row = sample(place, N_SAMPLES).min(n_rows);
        }
        samples.sort_unstable();
        let mut rows = [n_rows; thread_pool::MAX_PARTS + 1];
        rows[0] = 0;
        for (part, first) in rows.iter_mut().enumerate().take(n_parts).skip(1) {
            *first = samples[part * N_SAMPLES / n_parts] / LINE * LINE;
        }
        let are_even = are_even(&samples, rows[1..n_parts].iter().copied());
        Bounds { rows, are_even }
    }

    /// The rows of a part.
    pub(crate) fn of_part(&self, part: usize) -> Range<usize> {
        self.rows[part]..self.rows[part + 1]
    }
}

/// The runs that can be made and not taken yet at most: a bit of a word each.
pub(crate) const MAX_SLOTS: usize = u64::BITS as usize;

/// Makes `n_runs` runs of something on as many threads as there are parts: `make(part, run, slot)`,
/// with a part of that thread. The calling thread takes run by run in order, as soon as they are
/// made: `take(run, slot)`, after which another is made in that slot. While there is nothing to
/// take it makes some as well.
///
/// # Panics
///
/// If there are more slots than [`MAX_SLOTS`], or none.
pub(crate) fn in_turn<P: Send, S: Send>(
    parts: &mut [P],
    n_runs: usize,
    slots: &mut [S],
    make: impl Fn(&mut P, usize, &mut S) + Sync,
    mut take: impl FnMut(usize, &mut S),
) {
    /// Pointers for several threads.
    struct Starts<P, S>(*mut P, *mut S);
    // SAFETY: a part and a slot are referred to by one thread at a time, as the code below says,
    // and may be sent to it.
    unsafe impl<P: Send, S: Send> Sync for Starts<P, S> {}
    /// Says that the run in a slot is made, also if that panicked, so that nobody waits for it.
    struct Made<'a>(&'a AtomicU64, usize);
    impl Drop for Made<'_> {
        fn drop(&mut self) {
            self.0.fetch_or(1 << self.1, Ordering::Release);
        }
    }
    /// Lets nobody begin another run once the calling thread takes none, also if that panicked, so
    /// that nobody waits for a slot.
    struct Ended<'a>(&'a AtomicUsize, usize);
    impl Drop for Ended<'_> {
        fn drop(&mut self) {
            self.0.store(self.1, Ordering::Relaxed);
        }
    }

    let (n_parts, n_slots) = (parts.len(), slots.len());
    assert!((1..=MAX_SLOTS).contains(&n_slots) || n_runs == 0, "{n_slots} slots");
    let starts = &Starts(parts.as_mut_ptr(), slots.as_mut_ptr());
    let (begun, taken, made) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicU64::new(0));
    let make_next = |part: usize| {
        // A slot is free once what was in it is taken.
        let bound = n_runs.min(taken.load(Ordering::Acquire) + n_slots);
        let next = |run: usize| (run < bound).then_some(run + 1);
        let Ok(run) = begun.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next) else {
            return false;
        };
        let slot = run % n_slots;
        let _made = Made(&made, slot);
        // SAFETY: inside both; the counter gives each run to one thread, when the run before it in
        // that slot is taken, and the calling one takes it when its bit is set. A thread calls this
        // with the number of its part.
        unsafe { make(&mut *starts.0.add(part), run, &mut *starts.1.add(slot)) };
        true
    };
    let own = || {
        let _ended = Ended(&begun, n_runs);
        let mut looks = 0;
        for run in 0..n_runs {
            let slot = run % n_slots;
            while made.load(Ordering::Acquire) & 1 << slot == 0 {
                if !make_next(0) {
                    thread_pool::wait_a_little(&mut looks);
                }
            }
            // SAFETY: inside the slots; the run is made, and nobody begins another one in its slot
            // until it is taken.
            take(run, unsafe { &mut *starts.1.add(slot) });
            made.fetch_and(!(1 << slot), Ordering::Relaxed);
            taken.store(run + 1, Ordering::Release);
        }
    };
    thread_pool::beside(n_parts, own, &|part| {
        let mut looks = 0;
        while begun.load(Ordering::Relaxed) < n_runs {
            if !make_next(part) {
                thread_pool::wait_a_little(&mut looks);
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use nnz_arrays::formats::Csr;
    use nnz_arrays::formats::column_shares::divide;

    /// Rows of 0 to 149 entries.
    fn matrix() -> Csr {
        let entries = |row: usize| (0..row * 37 % 150).map(move |k| (k * 3 + row % 50, k as f32));
        Csr::from_rows(500, (0..40).map(|row| entries(row).collect::<Vec<_>>())).unwrap()
    }

    #[test]
    fn small_batches_are_for_one_thread() {
        let x = matrix();
        let parts = |parallel, x, columns| parts_of_work(parallel, work_of_step(x, columns));
        assert_eq!(parts(Parallel::Threads(4), x.view(), 1), 1);
        let columns = 4 * WORK_OF_A_PART / x.nnz();
        assert_eq!(parts(Parallel::Threads(4), x.view(), columns), 4);
        assert_eq!(parts(Parallel::Sequential, x.view(), columns), 1);
        assert_eq!(parts(Parallel::Threads(4), x.view(), 0), 1);
        assert_eq!(parts(Parallel::Threads(4), x.view().rows(0..1).unwrap(), 1 << 40), 1);
    }

    #[test]
    fn n14_parts_are_even_where_each_of_two_has_a_quarter() {
        let columns: Vec<usize> = (0..100).collect();
        for (first, expected) in [(0, false), (24, false), (25, true), (75, true), (76, false)] {
            assert_eq!(are_even(&columns, [first].into_iter()), expected, "{first}");
        }
        assert!(are_even(&columns, [30, 60].into_iter()));
        assert!(!are_even(&columns, [2, 90].into_iter()));
    }

    #[test]
    fn n14_a_batch_of_one_column_is_not_divided() {
        let one = Csr::<f32>::from_rows(500, (0..300).map(|_| [(0, 1.0)])).unwrap();
        let mut parts = Parts::<f32>::default();
        assert!(!parts.are_even(2, one.view()));
        assert!(parts.are_even(3, matrix().view()));
        let (divided, mut parts) = (divide(one.view(), 2).unwrap(), Parts::<f32>::default());
        assert!(!parts.are_even(2, one.view().with_divided(divided.rows(0..300))));
        // A step on a batch is then the work of one thread, however large it is.
        let mut scratch = crate::linear::Scratch::<f32>::default();
        let columns = 4 * WORK_OF_A_PART;
        assert_eq!(scratch.begin(Parallel::Threads(2), one.view(), columns).n_parts, 1);
    }

    #[test]
    fn every_entry_is_of_one_part() {
        let x = matrix();
        for n_parts in 1..6 {
            let mut parts = Parts::<f32>::default();
            let (cuts, rows) = parts.divide(n_parts, x.view(), 1);
            assert_eq!(rows.len(), n_parts);
            cuts.find(x.view());
            let mut found = Vec::new();
            for part in 0..n_parts {
                let own = cuts.of(part, x.view());
                let columns_of_part = cuts.columns(part);
                for row in 0..own.n_rows() {
                    let (columns, values) = own.row(row).unwrap();
                    for (at, value) in values.iter().enumerate() {
                        let column = columns.get(at).unwrap();
                        assert!(columns_of_part.contains(&column));
                        found.push((row, column, *value));
                    }
                }
            }
            found.sort_by_key(|entry| (entry.0, entry.1));
            let all = (0..x.n_rows()).flat_map(|row| {
                let (columns, values) = x.view().row(row).unwrap();
                let columns = (0..columns.len()).filter_map(move |at| columns.get(at));
                columns.zip(values).map(move |(column, value)| (row, column, *value))
            });
            assert!(found.into_iter().eq(all), "{n_parts}");
        }
    }

    #[test]
    fn who_takes_longer_has_fewer_entries() {
        let x = matrix();
        let mut parts = Parts::<f32>::default();
        let mut divide = |seconds: [f64; 2]| {
            let (cuts, rows) = parts.divide(2, x.view(), 1);
            rows.iter_mut().zip(seconds).for_each(|(part, seconds)| part.times.note(seconds));
            cuts.columns(0).end
        };
        let first = divide([2.0, 1.0]);
        let others: Vec<usize> = (0..32).map(|_| divide([2.0, 1.0])).collect();
        assert!(others[..15].iter().all(|&end| end == first));
        assert!(others[15] < first && others[31] < others[15], "{first} {others:?}");
        // Another number of parts begins with equal shares.
        let (cuts, _) = parts.divide(3, x.view(), 1);
        let ends = [cuts.columns(0).end, cuts.columns(1).end];
        let mut equal = Parts::<f32>::default();
        let (cuts, _) = equal.divide(3, x.view(), 1);
        assert_eq!(ends, [cuts.columns(0).end, cuts.columns(1).end]);
    }

    #[test]
    fn runs_are_taken_in_turn_from_slots_that_are_used_again() {
        for (n_runs, n_slots) in [(0, 1), (1, 1), (5, 1), (100, 3), (1000, 7), (64, MAX_SLOTS)] {
            let (mut slots, mut taken) = (vec![None; n_slots], Vec::new());
            in_turn(
                &mut [(); 3],
                n_runs,
                &mut slots,
                |(), run, slot| assert_eq!(slot.replace(run), None),
                |run, slot| {
                    assert_eq!(slot.take(), Some(run));
                    taken.push(run);
                },
            );
            assert!(taken.into_iter().eq(0..n_runs));
        }
    }

    #[test]
    fn nobody_waits_for_a_slot_after_a_panic() {
        let result = std::panic::catch_unwind(|| {
            let take = |run, _: &mut ()| assert!(run < 10, "run {run}");
            in_turn(&mut [(); 3], 1000, &mut [(); 2], |(), _, ()| {}, take);
        });
        assert!(result.is_err());
    }
}
