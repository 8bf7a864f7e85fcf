//! Two sparse operands of one shape, merged by their sorted ids.

use crate::formats::{
    ColumnId, ColumnIdsView, Csr, CsrBuffers, CsrView, RowSparse, RowSparseView, with_id_type,
};
use crate::kernels::{Context, Parallel, entry_prefetch, parallel};
use nnz_device::huge_pages::reserve_large;
use nnz_device::thread_pool::{self, MAX_PARTS};
use sparse_core::element::{Float, Stored};
use std::cmp::Ordering;
use std::mem::MaybeUninit;
use std::ops::Range;

/// Ascending ids. With the usual width they are a slice; otherwise each is looked up by its type,
/// which costs a branch and saves compiling every function for every pair of types.
trait Columns: Copy {
    fn len(self) -> usize;

    /// # Safety
    ///
    /// The position is below [`len`](Columns::len).
    unsafe fn at(self, position: usize) -> usize;

    /// Asks for those that a loop over rows reads after a row.
    fn ask_for_row<V: Stored>(self, matrix: CsrView<'_, V>, row: usize);
}

impl Columns for &[u32] {
    #[inline(always)]
    fn len(self) -> usize {
        <[u32]>::len(self)
    }

    #[inline(always)]
    unsafe fn at(self, position: usize) -> usize {
        // SAFETY: as the caller says.
        unsafe { self.get_unchecked(position) }.at()
    }

    #[inline(always)]
    fn ask_for_row<V: Stored>(self, matrix: CsrView<'_, V>, row: usize) {
        /// Two matrices are read, and a third is written.
        const ENTRIES_AHEAD: usize = 128;
        entry_prefetch::prefetch_row(matrix, self, row, ENTRIES_AHEAD);
    }
}

impl Columns for ColumnIdsView<'_> {
    #[inline(always)]
    fn len(self) -> usize {
        ColumnIdsView::len(&self)
    }

    #[inline(always)]
    unsafe fn at(self, position: usize) -> usize {
        // There is one.
        self.get(position).unwrap_or_default()
    }

    #[inline(always)]
    fn ask_for_row<V: Stored>(self, _matrix: CsrView<'_, V>, _row: usize) {}
}

/// A row of an operand: columns and values of all its rows, and where those of this one are. The
/// same columns and values for every row, and one position in both, so that a loop over two
/// operands has registers enough.
#[derive(Clone, Copy)]
struct OperandRow<'a, C, T> {
    columns: C,
    values: &'a [T],
    start: usize,
    end: usize,
}

impl<'a, C: Columns, T: Float> OperandRow<'a, C, T> {
    /// # Panics
    ///
    /// If `columns` and the values of the matrix do not have those of the row.
    #[inline(always)]
    fn of(matrix: CsrView<'a, T>, columns: C, row: usize) -> Self {
        let (start, end) = (matrix.starts()[row] as usize, matrix.ends()[row] as usize);
        let values = matrix.values();
        assert!(end <= columns.len() && end <= values.len(), "rows end where entries do");
        OperandRow { columns, values, start, end }
    }

    /// The column of an entry.
    ///
    /// # Safety
    ///
    /// It is one of the row's.
    #[inline(always)]
    unsafe fn column(self, entry: usize) -> usize {
        // SAFETY: as the caller says; `of` checked that there are as many.
        unsafe { self.columns.at(entry) }
    }

    /// The value of an entry.
    ///
    /// # Safety
    ///
    /// It is one of the row's.
    #[inline(always)]
    unsafe fn value(self, entry: usize) -> T {
        // SAFETY: as the caller says; `of` checked that there are as many.
        unsafe { *self.values.get_unchecked(entry) }
    }
}

/// What either matrix stores; results equal to 0 are dropped.
pub(super) fn union_csr<T: Float>(
    out: &mut Csr<T>,
    lhs: CsrView<'_, T>,
    rhs: CsrView<'_, T>,
    f: impl Fn(T, T) -> T + Sync + Copy,
    context: &mut Context,
) {
    merge_rows(out, lhs, rhs, Union(f), context.parallel);
}

/// What both matrices store, results equal to 0 included.
pub(super) fn intersection_csr<T: Float>(
    out: &mut Csr<T>,
    lhs: CsrView<'_, T>,
    rhs: CsrView<'_, T>,
    f: impl Fn(T, T) -> T + Sync + Copy,
    context: &mut Context,
) {
    merge_rows(out, lhs, rhs, Intersection(f), context.parallel);
}

/// What the left matrix stores, results equal to 0 included.
pub(super) fn left_csr<T: Float>(
    out: &mut Csr<T>,
    lhs: CsrView<'_, T>,
    rhs: CsrView<'_, T>,
    f: impl Fn(T, T) -> T + Sync + Copy,
    context: &mut Context,
) {
    merge_rows(out, lhs, rhs, Left(f), context.parallel);
}

/// What becomes of the entries of two rows. Not more are pushed than there are, each when one or
/// two more of them have been read; what is pushed with `false` is not kept.
trait Merge<T>: Copy {
    fn row(
        self,
        lhs: OperandRow<'_, impl Columns, T>,
        rhs: OperandRow<'_, impl Columns, T>,
        push: impl FnMut(usize, T, bool),
    );
}

#[derive(Clone, Copy)]
struct Union<F>(F);

#[derive(Clone, Copy)]
struct Intersection<F>(F);

#[derive(Clone, Copy)]
struct Left<F>(F);

impl<T: Float, F: Fn(T, T) -> T + Copy> Merge<T> for Union<F> {
    #[inline]
    fn row(
        self,
        x: OperandRow<'_, impl Columns, T>,
        y: OperandRow<'_, impl Columns, T>,
        mut push: impl FnMut(usize, T, bool),
    ) {
        let f = self.0;
        let mut push = |column, value: T| push(column, value, value != T::zero());
        let (mut i, mut j) = (x.start, y.start);
        // SAFETY: `i` and `j` are entries of the rows wherever they are read: the loops end where
        // these do.
        unsafe {
            if i < x.end && j < y.end {
                let (mut a, mut b) = (x.column(i), y.column(j));
                // Branches that the processor guesses: to compute which operand moves on takes
                // longer than a wrong guess now and then. But as few as can be, and little to be
                // done between them.
                loop {
                    if a < b {
                        push(a, f(x.value(i), T::zero()));
                        i += 1;
                        if i == x.end {
                            break;
                        }
                        a = x.column(i);
                    } else if b < a {
                        push(b, f(T::zero(), y.value(j)));
                        j += 1;
                        if j == y.end {
                            break;
                        }
                        b = y.column(j);
                    } else {
                        push(a, f(x.value(i), y.value(j)));
                        i += 1;
                        j += 1;
                        if i == x.end || j == y.end {
                            break;
                        }
                        (a, b) = (x.column(i), y.column(j));
                    }
                }
            }
            for i in i..x.end {
                push(x.column(i), f(x.value(i), T::zero()));
            }
            for j in j..y.end {
                push(y.column(j), f(T::zero(), y.value(j)));
            }
        }
    }
}

impl<T: Float, F: Fn(T, T) -> T + Copy> Merge<T> for Intersection<F> {
    #[inline]
    fn row(
        self,
        x: OperandRow<'_, impl Columns, T>,
        y: OperandRow<'_, impl Columns, T>,
        mut push: impl FnMut(usize, T, bool),
    ) {
        let f = self.0;
        let (mut i, mut j) = (x.start, y.start);
        while i < x.end && j < y.end {
            // SAFETY: both are entries of the rows.
            unsafe {
                let (a, b) = (x.column(i), y.column(j));
                if a == b {
                    push(a, f(x.value(i), y.value(j)), true);
                }
                i += usize::from(a <= b);
                j += usize::from(b <= a);
            }
        }
    }
}

impl<T: Float, F: Fn(T, T) -> T + Copy> Merge<T> for Left<F> {
    #[inline]
    fn row(
        self,
        x: OperandRow<'_, impl Columns, T>,
        y: OperandRow<'_, impl Columns, T>,
        mut push: impl FnMut(usize, T, bool),
    ) {
        let mut j = y.start;
        for i in x.start..x.end {
            // SAFETY: `i` is an entry of its row, and `j` is where it is read.
            unsafe {
                let column = x.column(i);
                while j < y.end && y.column(j) < column {
                    j += 1;
                }
                let matched = j < y.end && y.column(j) == column;
                let y = if matched { y.value(j) } else { T::zero() };
                push(column, (self.0)(x.value(i), y), true);
            }
        }
    }
}

fn merge_rows<T: Float>(
    out: &mut Csr<T>,
    lhs: CsrView<'_, T>,
    rhs: CsrView<'_, T>,
    merge: impl Merge<T> + Sync,
    parallel: Parallel,
) {
    let n_cols = lhs.n_cols();
    // Other kernels rely on columns below `n_cols`.
    assert_eq!((lhs.n_rows(), n_cols), (rhs.n_rows(), rhs.n_cols()), "extents of the operands");
    let most = lhs.nnz() + rhs.nnz();
    with_id_type!(n_cols, |I| out.rebuild::<I, _>(n_cols, |parts| {
        let CsrBuffers { indptr, columns, values } = parts;
        indptr.resize(lhs.n_rows() + 1, 0);
        reserve_large(columns, most);
        reserve_large(values, most);
        columns.reserve(most);
        values.reserve(most);
        let room = Room {
            ends: &mut indptr[1..],
            columns: &mut columns.spare_capacity_mut()[..most],
            values: &mut values.spare_capacity_mut()[..most],
        };
        let n = merge_parts(
            parallel::parts(parallel, most.saturating_mul(8)),
            room,
            lhs,
            rhs,
            &|room, lhs, rhs| merge_all(room, lhs, rhs, merge),
        );
        // SAFETY: `merge_parts` wrote the first `n` of the room after the vectors' ends, which were
        // at 0.
        unsafe {
            columns.set_len(n);
            values.set_len(n);
        }
    }));
}

/// Where rows are written: as many ends as rows, and room for all entries of both operands.
struct Room<'a, I, T> {
    ends: &'a mut [u64],
    columns: &'a mut [MaybeUninit<I>],
    values: &'a mut [MaybeUninit<T>],
}

/// Merges all rows, without a gap from the start of the room, and says how many entries it has
/// written.
type MergeAll<'f, I, T> =
    &'f (dyn Fn(Room<'_, I, T>, CsrView<'_, T>, CsrView<'_, T>) -> usize + Sync);

/// Writes the merged rows; returns how many entries were written, without a gap from the start of
/// the room. In one copy, whatever the function.
fn merge_parts<T: Float, I: ColumnId>(
    parts: usize,
    room: Room<'_, I, T>,
    mut lhs: CsrView<'_, T>,
    mut rhs: CsrView<'_, T>,
    merge_all: MergeAll<'_, I, T>,
) -> usize {
    if parts < 2 || lhs.n_rows() < 2 {
        return merge_all(room, lhs, rhs);
    }
    let Room { mut ends, columns, values } = room;
    let mut rest = (&mut *columns, &mut *values);
    let mut pieces = [const { None }; MAX_PARTS];
    for (place, piece) in pieces[..parts].iter_mut().enumerate() {
        let cut = parallel::cut(lhs, 1, parts - place);
        let ((left, left_rest), (right, right_rest)) = (lhs.split(cut), rhs.split(cut));
        let most = left.nnz() + right.nnz();
        let (ends_here, more_ends) = ends.split_at_mut(cut);
        let (columns, more_columns) = rest.0.split_at_mut(most);
        let (values, more_values) = rest.1.split_at_mut(most);
        *piece = Some((Room { ends: ends_here, columns, values }, left, right, 0));
        (ends, rest) = (more_ends, (more_columns, more_values));
        (lhs, rhs) = (left_rest, right_rest);
    }
    thread_pool::each(&mut pieces[..parts], |_, piece| {
        if let Some((Room { ends, columns, values }, left, right, n)) = piece {
            *n = merge_all(Room { ends, columns, values }, *left, *right);
        }
    });
    let (mut room_before, mut before) = (0, 0);
    let written = pieces.map(|piece| {
        let (Room { ends, columns, .. }, .., n) = piece?;
        ends.iter_mut().for_each(|end| *end += before as u64);
        let from = room_before..room_before + n;
        let to = before;
        (room_before, before) = (room_before + columns.len(), before + n);
        Some((from, to))
    });
    thread_pool::each(
        &mut [Moved::Columns(columns), Moved::Values(values)],
        |_, moved| match moved {
            Moved::Columns(columns) => move_up(columns, &written),
            Moved::Values(values) => move_up(values, &written),
        },
    );
    before
}

/// What is moved by a thread of its own.
enum Moved<'a, I, T> {
    Columns(&'a mut [MaybeUninit<I>]),
    Values(&'a mut [MaybeUninit<T>]),
}

/// Each part moves up to where the one before it ended.
fn move_up<T: Copy>(elements: &mut [T], written: &[Option<(Range<usize>, usize)>]) {
    for (from, to) in written.iter().flatten() {
        elements.copy_within(from.clone(), *to);
    }
}

fn merge_all<T: Float, I: ColumnId>(
    room: Room<'_, I, T>,
    lhs: CsrView<'_, T>,
    rhs: CsrView<'_, T>,
    merge: impl Merge<T>,
) -> usize {
    match (lhs.columns(), rhs.columns()) {
        (ColumnIdsView::U32(left), ColumnIdsView::U32(right)) => {
            merge_columns(room, (lhs, left), (rhs, right), merge)
        }
        (left, right) => merge_columns(room, (lhs, left), (rhs, right), merge),
    }
}

/// A function of its own for each width of ids, so that what the loop needs stays in registers.
#[inline(never)]
fn merge_columns<T: Float, I: ColumnId, C: Columns, D: Columns>(
    room: Room<'_, I, T>,
    (lhs, left): (CsrView<'_, T>, C),
    (rhs, right): (CsrView<'_, T>, D),
    merge: impl Merge<T>,
) -> usize {
    let Room { ends, columns, values } = room;
    let mut n = 0;
    for (row, end) in ends.iter_mut().enumerate() {
        left.ask_for_row(lhs, row);
        right.ask_for_row(rhs, row);
        let push = |column, value, keep| {
            // SAFETY: `merge_rows` made room for the entries of both operands, a part has that of
            // its rows, and each entry that is written takes the place of one or two that were
            // read.
            unsafe {
                columns.get_unchecked_mut(n).write(I::from_index(column));
                values.get_unchecked_mut(n).write(value);
            }
            n += usize::from(keep);
        };
        merge.row(OperandRow::of(lhs, left, row), OperandRow::of(rhs, right, row), push);
        *end = n as u64;
    }
    n
}

/// The rows that either array stores.
pub(super) fn union_row_sparse<T: Float>(
    out: &mut RowSparse<T>,
    lhs: RowSparseView<'_, T>,
    rhs: RowSparseView<'_, T>,
    f: impl Fn(T, T) -> T + Copy,
) {
    assert_eq!(lhs.shape(), rhs.shape(), "shapes of the operands");
    out.rebuild(*lhs.shape(), |ids, values| {
        let (mut left, mut right) = (lhs.iter_rows().peekable(), rhs.iter_rows().peekable());
        loop {
            let order = match (left.peek(), right.peek()) {
                (Some((a, _)), Some((b, _))) => a.cmp(b),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (None, None) => break,
            };
            let x = if order.is_le() { left.next() } else { None };
            let y = if order.is_ge() { right.next() } else { None };
            match (x, y) {
                (Some((id, x)), None) => {
                    ids.push(id as u64);
                    values.extend(x.iter().map(|&x| f(x, T::zero())));
                }
                (None, Some((id, y))) => {
                    ids.push(id as u64);
                    values.extend(y.iter().map(|&y| f(T::zero(), y)));
                }
                (Some((id, x)), Some((_, y))) => {
                    ids.push(id as u64);
                    values.extend(x.iter().zip(y).map(|(&x, &y)| f(x, y)));
                }
                (None, None) => break,
            }
        }
    });
}

/// The rows that both arrays store, looked up from the smaller one.
pub(super) fn intersection_row_sparse<T: Float>(
    out: &mut RowSparse<T>,
    lhs: RowSparseView<'_, T>,
    rhs: RowSparseView<'_, T>,
    f: impl Fn(T, T) -> T + Copy,
) {
    assert_eq!(lhs.shape(), rhs.shape(), "shapes of the operands");
    out.rebuild(*lhs.shape(), |ids, values| {
        let mut push = |id: usize, x: &[T], y: &[T]| {
            ids.push(id as u64);
            values.extend(x.iter().zip(y).map(|(&x, &y)| f(x, y)));
        };
        if lhs.n_stored() <= rhs.n_stored() {
            for (id, x) in lhs.iter_rows() {
                if let Some(y) = rhs.row(id) {
                    push(id, x, y);
                }
            }
        } else {
            for (id, y) in rhs.iter_rows() {
                if let Some(x) = lhs.row(id) {
                    push(id, x, y);
                }
            }
        }
    });
}

/// The rows that the left array stores.
pub(super) fn left_row_sparse<T: Float>(
    out: &mut RowSparse<T>,
    lhs: RowSparseView<'_, T>,
    rhs: RowSparseView<'_, T>,
    f: impl Fn(T, T) -> T + Copy,
) {
    assert_eq!(lhs.shape(), rhs.shape(), "shapes of the operands");
    out.rebuild(*lhs.shape(), |ids, values| {
        for (id, x) in lhs.iter_rows() {
            ids.push(id as u64);
            match rhs.row(id) {
                Some(y) => values.extend(x.iter().zip(y).map(|(&x, &y)| f(x, y))),
                None => values.extend(x.iter().map(|&x| f(x, T::zero()))),
            }
        }
    });
}

/// The rows that the left array stores; the right one is 0 where it stores nothing.
pub(super) fn left_row_sparse_csr<T: Float>(
    out: &mut RowSparse<T>,
    lhs: RowSparseView<'_, T>,
    rhs: CsrView<'_, T>,
    f: impl Fn(T, T) -> T + Copy,
) {
    out.rebuild(*lhs.shape(), |ids, values| {
        for (id, x) in lhs.iter_rows() {
            ids.push(id as u64);
            let start = values.len();
            values.extend(x.iter().map(|&x| f(x, T::zero())));
            let (columns, stored) = rhs.row(id).unwrap_or_default();
            for (column, &y) in columns.iter().zip(stored) {
                values[start + column] = f(x[column], y);
            }
        }
    });
}
