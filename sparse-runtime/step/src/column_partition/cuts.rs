//! The cuts between the threads' parts in the samples of a batch.

use crate::thread_pipeline::Order;
use nnz_arrays::formats::{ColumnId, ColumnIdsView, CsrArrays, CsrView, DividedRows, LANES};
use nnz_arrays::kernels::parallel::below;
use nnz_arrays::with_column_ids;
use nnz_device::prefetch::{AHEAD, DATA_AHEAD, ENTRIES_AHEAD};
use nnz_device::simd;
use nnz_device::thread_pool;
use sparse_core::element::Stored;
use std::marker::PhantomData;
use std::ops::Range;
use std::slice;

/// Where each row of a batch is cut into runs of entries, one for each part of neighbouring
/// columns.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cuts {
    /// The first column of each part but the first.
    columns: Vec<usize>,
    n_cols: usize,
    /// For each of them, where in the batch's arrays a row's entries of it and of what follows
    /// begin, row by row.
    bounds: Vec<u64>,
}

impl Cuts {
    /// Sets the columns at which parts begin but the first, of so many; where rows are cut is to be
    /// found anew.
    pub(super) fn set_columns(&mut self, columns: impl Iterator<Item = usize>, n_cols: usize) {
        self.columns.clear();
        self.columns.extend(columns);
        self.n_cols = n_cols;
    }

    /// Whether columns are set, for so many parts of so many columns.
    pub(super) fn are_for(&self, n_parts: usize, n_cols: usize) -> bool {
        self.columns.len() + 1 == n_parts && self.n_cols == n_cols
    }

    /// Cuts all rows of `x`, as many of them on each thread, unless they are divided. O(nnz of `x`
    /// · cuts).
    pub(crate) fn find<V: Stored>(&mut self, x: CsrView<'_, V>) {
        let Cuts { columns, bounds, .. } = self;
        let n_parts = columns.len() + 1;
        if x.divided_among(n_parts).is_some() {
            return;
        }
        bounds.resize(columns.len() * x.n_rows(), 0);
        let piece = bounds.len().div_ceil(n_parts).max(1);
        let mut pieces = [const { None }; thread_pool::MAX_PARTS];
        for (slot, bounds) in pieces.iter_mut().zip(bounds.chunks_mut(piece)) {
            *slot = Some(bounds);
        }
        let columns = &*columns;
        thread_pool::each(&mut pieces[..n_parts], |place, bounds| {
            let mut first = place * piece;
            let mut rest = bounds.take().unwrap_or_default();
            while !rest.is_empty() {
                let (cut, row) = (first / x.n_rows(), first % x.n_rows());
                let (bounds, after) = rest.split_at_mut(rest.len().min(x.n_rows() - row));
                let rows = row..row + bounds.len();
                put_below(
                    bounds,
                    &x.starts()[rows.clone()],
                    &x.ends()[rows],
                    x.columns(),
                    columns[cut],
                );
                (first, rest) = (first + bounds.len(), after);
            }
        });
    }

    /// The columns of a part.
    pub(crate) fn columns(&self, part: usize) -> Range<usize> {
        let first = part.checked_sub(1).map_or(0, |before| self.columns[before]);
        first..self.columns.get(part).copied().unwrap_or(self.n_cols)
    }

    /// The rows of `x`, to be cut as they go through stages: [`Stages::piece`]. Through one for
    /// each part where `hands_on`, else through one.
    pub(crate) fn in_stages<'a, 'x, V: Stored>(
        &'a mut self,
        x: CsrView<'x, V>,
        hands_on: bool,
    ) -> Stages<'a, 'x, V> {
        self.bounds.resize(self.columns.len() * x.n_rows(), 0);
        let n_stages = if hands_on { self.columns.len() + 1 } else { 1 };
        let divided = x.divided_among(n_stages);
        let (columns, bounds) = (&self.columns[..], self.bounds.as_mut_ptr());
        Stages { x, divided, n_stages, columns, bounds, borrow: PhantomData }
    }

    /// The entries of a part, as rows as many as those of `x`.
    ///
    /// Invariant, for the caller to keep: the cuts were found in `x`, if it is not divided, and
    /// there is such a part.
    pub(crate) fn of<'a, 'x: 'a, V: Stored>(
        &'a self,
        part: usize,
        x: CsrView<'x, V>,
    ) -> CsrView<'a, V> {
        if let Some(divided) = x.divided_among(self.columns.len() + 1) {
            let divided: DividedRows<'a, V> = divided;
            return divided.part(part);
        }
        let n_rows = x.n_rows();
        debug_assert_eq!(self.bounds.len(), self.columns.len() * n_rows);
        let starts = match part {
            0 => x.starts(),
            _ => &self.bounds[(part - 1) * n_rows..part * n_rows],
        };
        let ends = if part == self.columns.len() {
            x.ends()
        } else {
            &self.bounds[part * n_rows..(part + 1) * n_rows]
        };
        let arrays: CsrArrays<'a, V> = x.arrays();
        arrays.view().with_rows(starts, ends)
    }
}

/// The rows of a batch on their way through [stages](crate::thread_pipeline), each of which finds
/// where the next one goes on; or through one, which [cuts](Self::cut) them.
///
/// Invariants: `bounds` points to as many bounds as there are columns for each row of `x`; there is
/// one stage, or one more than columns.
pub(crate) struct Stages<'a, 'x, V: Stored> {
    x: CsrView<'x, V>,
    /// Where each stage has entries of its own.
    divided: Option<DividedRows<'x, V>>,
    n_stages: usize,
    columns: &'a [usize],
    bounds: *mut u64,
    borrow: PhantomData<&'a mut [u64]>,
}

// SAFETY: several threads make references to bounds of different rows, as the caller of `piece`
// promises.
unsafe impl<V: Stored> Sync for Stages<'_, '_, V> {}

impl<'a, 'x: 'a, V: Stored> Stages<'a, 'x, V> {
    /// How rows go through them: where the entries of each stage lie by themselves, a thread
    /// [keeps](Order::keeps) to its own.
    pub(crate) fn order(&self) -> Order {
        Order { n_stages: self.n_stages, keeps: self.divided.is_some() }
    }

    /// Cuts some rows that go through one stage.
    ///
    /// # Panics
    ///
    /// If there are no such rows.
    ///
    /// # Safety
    ///
    /// No piece is of these rows, and nobody else cuts them meanwhile.
    pub(crate) unsafe fn cut(&self, rows: Range<usize>) {
        let (starts, ends) = (&self.x.starts()[rows.clone()], &self.x.ends()[rows.clone()]);
        for (cut, column) in self.columns.iter().enumerate() {
            // SAFETY: within the bounds, as the invariant says, of rows that there are; nobody else
            // refers to them.
            let bounds = unsafe {
                let first = self.bounds.add(cut * self.x.n_rows() + rows.start);
                slice::from_raw_parts_mut(first, rows.len())
            };
            put_below(bounds, starts, ends, self.x.columns(), *column);
        }
    }

    /// What a stage has of some neighbouring rows.
    ///
    /// # Panics
    ///
    /// If there are no such rows, or there is no such stage.
    ///
    /// # Safety
    ///
    /// All stages before have [ended](Piece::end) each of the rows, and no other piece is of these
    /// rows while this is there.
    pub(crate) unsafe fn piece(&self, stage: usize, rows: Range<usize>) -> Piece<'a, 'x, V> {
        let n_rows = self.x.n_rows();
        assert!(rows.start <= rows.end && rows.end <= n_rows && stage < self.n_stages);
        let is_last = stage + 1 == self.n_stages;
        let bound = if is_last { self.x.n_cols() } else { self.columns[stage] };
        if let Some(divided) = self.divided {
            let x = divided.part(stage);
            let (starts, row_ends) = (&x.starts()[rows.clone()], &x.ends()[rows.clone()]);
            let place = Place { stage, is_last, lanes: Some(&divided.lanes(stage)[rows]) };
            return Piece { x, of_row: starts, row_ends, place, starts, ends: None, bound };
        }
        // SAFETY: within the bounds, as the invariant says; nobody else refers to them.
        let cut = |cut: usize| unsafe { self.bounds.add(cut * n_rows + rows.start) };
        let starts = match stage.checked_sub(1) {
            None => &self.x.starts()[rows.clone()],
            // SAFETY: as above.
            Some(before) => unsafe { slice::from_raw_parts(cut(before), rows.len()) },
        };
        // SAFETY: as above.
        let ends = (!is_last).then(|| unsafe { slice::from_raw_parts_mut(cut(stage), rows.len()) });
        let place = Place { stage, is_last, lanes: None };
        let (of_row, row_ends) = (&self.x.starts()[rows.clone()], &self.x.ends()[rows]);
        Piece { x: self.x, of_row, row_ends, place, starts, ends, bound }
    }
}

/// The entries of some neighbouring rows that one stage has, by the place of each row among them.
///
/// Invariants: the slices are equally long; starts are within their rows, and in order of the
/// stages.
pub(crate) struct Piece<'a, 'x, V: Stored> {
    /// Whose entries these are: the batch, or those of this stage.
    x: CsrView<'x, V>,
    of_row: &'x [u64],
    row_ends: &'x [u64],
    place: Place<'x>,
    starts: &'a [u64],
    /// None where this stage's entries end where rows do: the last stage, or entries of its own.
    ends: Option<&'a mut [u64]>,
    bound: usize,
}

/// Which of the stages one is.
struct Place<'x> {
    stage: usize,
    is_last: bool,
    /// Of entries that lie by themselves the place of the first of each row among so many
    /// [`LANES`].
    lanes: Option<&'x [u8]>,
}

impl<'x, V: Stored> Piece<'_, 'x, V> {
    /// The matrix whose entries these are, with all rows of the batch.
    #[inline(always)]
    pub(crate) fn matrix(&self) -> CsrView<'x, V> {
        self.x
    }

    /// The first column that is of later stages.
    #[inline(always)]
    pub(crate) fn bound(&self) -> usize {
        self.bound
    }

    #[inline(always)]
    pub(crate) fn is_first(&self) -> bool {
        self.place.stage == 0
    }

    #[inline(always)]
    pub(crate) fn is_last(&self) -> bool {
        self.place.is_last
    }

    /// Whether all entries up to the end of a row are of this stage.
    #[inline(always)]
    pub(crate) fn is_rest(&self) -> bool {
        self.ends.is_none()
    }

    /// Where a row, its entries of this stage, and the row's end begin. Of entries that lie by
    /// themselves the row is as if it began less than [`LANES`] before them: so many that each has
    /// the place that it has among these.
    #[inline(always)]
    pub(crate) fn bounds(&self, place: usize) -> (usize, usize, usize) {
        let start = self.starts[place] as usize;
        let row = match self.place.lanes {
            // There are so many before the first row of entries.
            Some(lanes) => start - usize::from(lanes[place]),
            None => self.of_row[place] as usize,
        };
        (row, start, self.row_ends[place] as usize)
    }

    /// How far behind the entries of a row those lie that are to be asked for with them: of each
    /// row a stage reads a part, which the processor does not foresee. The distance may wrap
    /// around.
    #[inline(always)]
    pub(crate) fn ahead(&self, place: usize) -> usize {
        if self.x.is_run() {
            return ENTRIES_AHEAD;
        }
        let ahead = self.of_row.get(place + DATA_AHEAD).unwrap_or(&self.of_row[place]);
        ahead.wrapping_sub(self.of_row[place]) as usize
    }

    /// What is left of a row: the entries of this stage, and then those of later ones.
    #[inline(always)]
    pub(crate) fn rest<'i, I: ColumnId>(&self, ids: &'i [I], place: usize) -> (&'i [I], &'x [V]) {
        assert!(place < self.starts.len() && ids.len() == self.x.values().len());
        // SAFETY: the invariants; bounds of rows are within the entries.
        unsafe {
            let start = *self.starts.get_unchecked(place) as usize;
            let range = start..*self.row_ends.get_unchecked(place) as usize;
            (ids.get_unchecked(range.clone()), self.x.values().get_unchecked(range))
        }
    }

    /// Finds the entries that are of this stage, to be called for each row in turn: of this one or,
    /// if `ahead`, up to some rows ahead, which it gives the ids of so that they can be asked for.
    #[inline(always)]
    pub(crate) fn find<'i, I: ColumnId>(
        &mut self,
        ids: &'i [I],
        place: usize,
        ahead: bool,
    ) -> &'i [I] {
        let n_rows = self.starts.len();
        let mut find = |place: usize| {
            let ids = self.rest(ids, place).0;
            let count = if self.is_rest() { ids.len() } else { below(ids, self.bound) };
            self.end(place, count);
            &ids[..count]
        };
        if !ahead {
            find(place);
            return &[];
        }
        if place == 0 {
            (0..AHEAD.min(n_rows)).for_each(|place| _ = find(place));
        }
        if place + AHEAD < n_rows { find(place + AHEAD) } else { &[] }
    }

    /// The entries of a row that are of this stage, once they are [found](Self::find).
    #[inline(always)]
    pub(crate) fn found<'i, I: ColumnId>(&self, ids: &'i [I], place: usize) -> (&'i [I], &'x [V]) {
        let (ids, values) = self.rest(ids, place);
        let count = match &self.ends {
            None => ids.len(),
            Some(ends) => (ends[place] - self.starts[place]) as usize,
        };
        (&ids[..count], &values[..count])
    }

    /// Takes notice of how many entries of a row are of this stage: those below its bound.
    #[inline(always)]
    pub(crate) fn end(&mut self, place: usize, count: usize) {
        if let Some(ends) = &mut self.ends {
            ends[place] = self.starts[place] + count as u64;
            debug_assert!(ends[place] <= self.row_ends[place]);
        }
    }

    /// The place of the first entry of a row among [`LANES`], if there were any stages before.
    #[inline(always)]
    pub(crate) fn lane(&self, place: usize) -> Option<usize> {
        let lane = || match self.place.lanes {
            Some(lanes) => usize::from(lanes[place]),
            None => (self.starts[place] - self.of_row[place]) as usize % LANES,
        };
        (!self.is_first()).then(lane)
    }
}

/// Sets each of `bounds` to where in a row the first column is that is not below `bound`. Many
/// columns are looked at together.
fn put_below(
    bounds: &mut [u64],
    starts: &[u64],
    ends: &[u64],
    columns: ColumnIdsView<'_>,
    bound: usize,
) {
    with_column_ids!(columns, |ids| simd::wide(
        #[inline(always)]
        || {
            for (at, (start, end)) in bounds.iter_mut().zip(starts.iter().zip(ends)) {
                *at = start + below(&ids[*start as usize..*end as usize], bound) as u64;
            }
        }
    ));
}
