//! What is done with the numbers of a row of data.

use super::{Reads, Visitor};
use crate::lanes::inner;
use crate::linear::Width;
use crate::optimizer::{ReadRows as _, RowCursor, RowUpdater, UpdateKind};
use crate::prefetch::prefetch_at;
use sparse_core::element::Float;
use sparse_core::update_rules::UpdateRule;

/// How often each is named.
#[derive(Debug)]
pub(super) struct Uses<const N: usize, const M: usize> {
    pub(super) tables: [u32; N],
    pub(super) numbers: [u32; M],
}

impl<const N: usize, const M: usize> Visitor for Uses<N, M> {
    #[inline(always)]
    fn element<const NUMBER: usize, const TABLE: usize>(&mut self) {
        self.numbers[NUMBER] += 1;
        self.tables[TABLE] += 1;
    }

    #[inline(always)]
    fn inner<const NUMBER: usize, const LEFT: usize, const RIGHT: usize>(&mut self) {
        self.numbers[NUMBER] += 1;
        self.tables[LEFT] += 1;
        self.tables[RIGHT] += 1;
    }
}

/// The elements of a row of each table.
pub(super) struct Sizes<const N: usize> {
    pub(super) sizes: [usize; N],
    pub(super) width: usize,
}

impl<const N: usize> Sizes<N> {
    #[inline(always)]
    pub(super) fn of<P: Reads<N, M>, const M: usize>(width: impl Width) -> [usize; N] {
        let mut sizes = Sizes { sizes: [1; N], width: width.columns() };
        P::each(&mut sizes);
        sizes.sizes
    }
}

impl<const N: usize> Visitor for Sizes<N> {
    #[inline(always)]
    fn element<const NUMBER: usize, const TABLE: usize>(&mut self) {}

    #[inline(always)]
    fn inner<const NUMBER: usize, const LEFT: usize, const RIGHT: usize>(&mut self) {
        self.sizes[LEFT] = self.width;
        self.sizes[RIGHT] = self.width;
    }
}

// Invariant of the visitors below: each id is below the rows of its table, and cursors and tables are those of a `Tables`.

/// Rows of data between asking for what [`Keep`] kept of them and reading it.
const FAR: usize = 24;

/// Asks for rows of some tables. The ids may be any.
pub(super) struct Ask<'c, R: UpdateRule, T: Float, K, const N: usize> {
    pub(super) cursors: [RowCursor<'c, R, T, K>; N],
    pub(super) ids: [usize; N],
    pub(super) asked: [bool; N],
}

impl<R: UpdateRule, T: Float, K: UpdateKind, const N: usize> Visitor for Ask<'_, R, T, K, N> {
    #[inline(always)]
    fn element<const NUMBER: usize, const TABLE: usize>(&mut self) {
        if self.asked[TABLE] {
            self.cursors[TABLE].prefetch(self.ids[TABLE]);
        }
    }

    #[inline(always)]
    fn inner<const NUMBER: usize, const LEFT: usize, const RIGHT: usize>(&mut self) {
        self.element::<NUMBER, LEFT>();
        self.element::<NUMBER, RIGHT>();
    }
}

/// The numbers of a row of data.
pub(super) struct Read<'c, R: UpdateRule, T: Float, K, const N: usize, const M: usize> {
    pub(super) cursors: [RowCursor<'c, R, T, K>; N],
    pub(super) ids: [usize; N],
    pub(super) numbers: [T; M],
}

impl<R, T, K, const N: usize, const M: usize> Visitor for Read<'_, R, T, K, N, M>
where
    R: UpdateRule,
    T: Float<Accumulator = T>,
    K: UpdateKind,
{
    #[inline(always)]
    fn element<const NUMBER: usize, const TABLE: usize>(&mut self) {
        // SAFETY: the invariant.
        self.numbers[NUMBER] = unsafe { self.cursors[TABLE].value(self.ids[TABLE], 0) };
    }

    #[inline(always)]
    fn inner<const NUMBER: usize, const LEFT: usize, const RIGHT: usize>(&mut self) {
        // SAFETY: the invariant.
        let (left, right) = unsafe {
            (self.cursors[LEFT].row(self.ids[LEFT]), self.cursors[RIGHT].row(self.ids[RIGHT]))
        };
        self.numbers[NUMBER] = inner(left, right);
    }
}

/// The elements that [`Keep`] copies.
pub(super) struct KeptSize {
    pub(super) size: usize,
    pub(super) width: usize,
}

impl Visitor for KeptSize {
    #[inline(always)]
    fn element<const NUMBER: usize, const TABLE: usize>(&mut self) {}

    #[inline(always)]
    fn inner<const NUMBER: usize, const LEFT: usize, const RIGHT: usize>(&mut self) {
        self.size += 2 * self.width;
    }
}

/// Copies the rows of inner products, of a run of rows of data: those of one table are neighbours, and those of the next begin `apart`
/// elements on.
pub(super) struct Keep<'c, 'k, R: UpdateRule, T: Float, K, const N: usize> {
    pub(super) cursors: [RowCursor<'c, R, T, K>; N],
    pub(super) ids: [usize; N],
    /// The row of data, from the first of the run on.
    pub(super) at: usize,
    pub(super) apart: usize,
    /// What is left to be written.
    pub(super) kept: &'k mut [T],
}

impl<R: UpdateRule, T: Float, K: UpdateKind, const N: usize> Visitor for Keep<'_, '_, R, T, K, N> {
    #[inline(always)]
    fn element<const NUMBER: usize, const TABLE: usize>(&mut self) {}

    #[inline(always)]
    fn inner<const NUMBER: usize, const LEFT: usize, const RIGHT: usize>(&mut self) {
        // SAFETY: the invariant.
        let (left, right) = unsafe {
            (self.cursors[LEFT].row(self.ids[LEFT]), self.cursors[RIGHT].row(self.ids[RIGHT]))
        };
        let (lefts, rest) = std::mem::take(&mut self.kept).split_at_mut(self.apart);
        let (rights, rest) = rest.split_at_mut(self.apart);
        lefts[self.at * left.len()..][..left.len()].copy_from_slice(left);
        rights[self.at * right.len()..][..right.len()].copy_from_slice(right);
        self.kept = rest;
    }
}

/// Updates, by a rule that only adds, with gradients of numbers that were made of rows kept.
pub(super) struct AddKept<'c, 'k, R: UpdateRule, T: Float, K, W, const N: usize> {
    pub(super) cursors: [RowCursor<'c, R, T, K>; N],
    pub(super) ids: [usize; N],
    pub(super) numbers: &'k [T],
    /// What is left to be read.
    pub(super) kept: &'k [T],
    pub(super) width: W,
    pub(super) scratch: &'c mut Vec<T>,
}

impl<R, T, K, W, const N: usize> Visitor for AddKept<'_, '_, R, T, K, W, N>
where
    R: UpdateRule,
    T: Float<Accumulator = T>,
    K: UpdateKind,
    W: Width,
{
    #[inline(always)]
    fn element<const NUMBER: usize, const TABLE: usize>(&mut self) {
        // SAFETY: the invariant.
        unsafe { self.cursors[TABLE].update(self.ids[TABLE], 0, self.numbers[NUMBER]) };
    }

    #[inline(always)]
    fn inner<const NUMBER: usize, const LEFT: usize, const RIGHT: usize>(&mut self) {
        let (number, size) = (self.numbers[NUMBER], self.width.columns());
        let (left, rest) = self.kept.split_at(size);
        let (right, rest) = rest.split_at(size);
        self.kept = rest;
        let (cursors, of_left, of_right) = (self.cursors, self.ids[LEFT], self.ids[RIGHT]);
        self.width.with_rows(
            self.scratch,
            #[inline(always)]
            |was_left, was_right| {
                // Copies: then the compiler knows that what is read is not what is written.
                was_left.copy_from_slice(left);
                was_right.copy_from_slice(right);
                // SAFETY: the invariant; rows were kept whole.
                unsafe {
                    update_by_other(cursors[LEFT], of_left, number, was_right);
                    update_by_other(cursors[RIGHT], of_right, number, was_left);
                }
            },
        );
    }
}

/// [`AddKept`] of each second table, from `PART` on.
pub(super) struct AddOwn<'c, 'k, R: UpdateRule, T: Float, K, W, const N: usize, const PART: usize> {
    pub(super) cursors: [RowCursor<'c, R, T, K>; N],
    pub(super) ids: [usize; N],
    pub(super) numbers: &'k [T],
    pub(super) at: usize,
    pub(super) apart: usize,
    /// What is left to be read.
    pub(super) kept: &'k [T],
    pub(super) width: W,
}

impl<R, T, K, W, const N: usize, const PART: usize> AddOwn<'_, '_, R, T, K, W, N, PART>
where
    R: UpdateRule,
    T: Float<Accumulator = T>,
    K: UpdateKind,
    W: Width,
{
    /// Adds to the row of a table. No closure, which would have to be inlined to be in vectors.
    #[inline(always)]
    fn add(&self, table: usize, gradient: T, other: &[T]) {
        let cursor = self.cursors[table];
        let Some(factor) = cursor.plain_factor() else { return };
        let step = factor * gradient;
        // SAFETY: the invariant; rows were kept whole.
        unsafe { cursor.add_whole_row(self.width, self.ids[table], other, |o| step * o) };
    }
}

impl<R, T, K, W, const N: usize, const PART: usize> Visitor for AddOwn<'_, '_, R, T, K, W, N, PART>
where
    R: UpdateRule,
    T: Float<Accumulator = T>,
    K: UpdateKind,
    W: Width,
{
    #[inline(always)]
    fn element<const NUMBER: usize, const TABLE: usize>(&mut self) {
        if TABLE % 2 == PART {
            // SAFETY: the invariant.
            unsafe { self.cursors[TABLE].update(self.ids[TABLE], 0, self.numbers[NUMBER]) };
        }
    }

    #[inline(always)]
    fn inner<const NUMBER: usize, const LEFT: usize, const RIGHT: usize>(&mut self) {
        let (number, size) = (self.numbers[NUMBER], self.width.columns());
        let (lefts, rest) = self.kept.split_at(self.apart);
        let (rights, rest) = rest.split_at(self.apart);
        let (was_left, was_right) =
            (&lefts[self.at * size..][..size], &rights[self.at * size..][..size]);
        self.kept = rest;
        // What the other thread kept.
        let ahead = (self.at + FAR) * size;
        if LEFT % 2 == PART {
            prefetch_at(rights.as_ptr().wrapping_add(ahead));
        }
        if RIGHT % 2 == PART {
            prefetch_at(lefts.as_ptr().wrapping_add(ahead));
        }
        if LEFT % 2 == PART {
            self.add(LEFT, number, was_right);
        }
        if RIGHT % 2 == PART {
            self.add(RIGHT, number, was_left);
        }
    }
}

/// Sums what a row of data contributes, by the rows that it names.
pub(super) struct Sum<
    's,
    'a,
    R: UpdateRule,
    T: Float,
    K: UpdateKind,
    const N: usize,
    const M: usize,
> {
    pub(super) rows: &'s mut [RowUpdater<'a, R, T, K>; N],
    pub(super) ids: [usize; N],
    pub(super) numbers: &'s [T; M],
}

impl<R, T, K, const N: usize, const M: usize> Visitor for Sum<'_, '_, R, T, K, N, M>
where
    R: UpdateRule,
    T: Float<Accumulator = T>,
    K: UpdateKind,
{
    #[inline(always)]
    fn element<const NUMBER: usize, const TABLE: usize>(&mut self) {
        // SAFETY: the invariant.
        let sums = unsafe { self.rows[TABLE].sums_mut().row_mut_unchecked(self.ids[TABLE]) };
        sums[0] += self.numbers[NUMBER];
    }

    #[inline(always)]
    fn inner<const NUMBER: usize, const LEFT: usize, const RIGHT: usize>(&mut self) {
        let number = self.numbers[NUMBER];
        // They are two tables.
        let Ok([left, right]) = self.rows.get_disjoint_mut([LEFT, RIGHT]) else { return };
        let (of_left, of_right) = (self.ids[LEFT], self.ids[RIGHT]);
        // SAFETY: the invariant.
        unsafe {
            let sums = left.sums_mut().row_mut_unchecked(of_left);
            sums.iter_mut().zip(right.row_unchecked(of_right)).for_each(|(s, o)| *s += number * *o);
            let sums = right.sums_mut().row_mut_unchecked(of_right);
            sums.iter_mut().zip(left.row_unchecked(of_left)).for_each(|(s, o)| *s += number * *o);
        }
    }
}

/// Updates at once.
pub(super) struct Update<'c, R: UpdateRule, T: Float, K, W, const N: usize, const M: usize> {
    pub(super) cursors: [RowCursor<'c, R, T, K>; N],
    pub(super) ids: [usize; N],
    pub(super) numbers: [T; M],
    pub(super) width: W,
    pub(super) scratch: &'c mut Vec<T>,
}

impl<R, T, K, W, const N: usize, const M: usize> Visitor for Update<'_, R, T, K, W, N, M>
where
    R: UpdateRule,
    T: Float<Accumulator = T>,
    K: UpdateKind,
    W: Width,
{
    #[inline(always)]
    fn element<const NUMBER: usize, const TABLE: usize>(&mut self) {
        // SAFETY: the invariant.
        unsafe { self.cursors[TABLE].update(self.ids[TABLE], 0, self.numbers[NUMBER]) };
    }

    #[inline(always)]
    fn inner<const NUMBER: usize, const LEFT: usize, const RIGHT: usize>(&mut self) {
        let (number, cursors) = (self.numbers[NUMBER], self.cursors);
        let (left, right) = (self.ids[LEFT], self.ids[RIGHT]);
        self.width.with_rows(
            self.scratch,
            #[inline(always)]
            |was_left, was_right| {
                // Both are copied: then the compiler knows that what is read is not what is written.
                // SAFETY: the invariant.
                unsafe {
                    was_left.copy_from_slice(cursors[LEFT].row(left));
                    was_right.copy_from_slice(cursors[RIGHT].row(right));
                    update_by_other(cursors[LEFT], left, number, was_right);
                    update_by_other(cursors[RIGHT], right, number, was_left);
                }
            },
        );
    }
}

/// Updates a row with the gradient that it has of an inner product: the gradient of the product times the other row.
///
/// # Safety
///
/// The table has the row, of as many elements as the other.
#[inline(always)]
unsafe fn update_by_other<R: UpdateRule, T: Float<Accumulator = T>, K: UpdateKind>(
    rows: RowCursor<'_, R, T, K>,
    row: usize,
    gradient: T,
    other: &[T],
) {
    // SAFETY: promised by the caller.
    unsafe {
        match rows.plain_factor() {
            Some(factor) => {
                let step = factor * gradient;
                rows.add_row(row, other, |other| step * other);
            }
            None => rows.update_row_by(row, other, |other, _| gradient * other),
        }
    }
}
