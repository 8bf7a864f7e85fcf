//! Visitors of the numbers of a sample: reads, gradients, updates.

use super::{Reads, Visitor};
use crate::linear::Width;
use crate::optimizer::{ReadRows as _, RowAccumulator, RowCursor, RowUpdater, UpdateKind};
use nnz_device::simd::inner;
use nnz_optim::UpdateRule;
use sparse_core::element::Float;

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

// Invariant of the visitors below: each id is below the rows of its table, and cursors and tables
// are those of a `Tables`.

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

/// The elements of the rows of inner products.
pub(super) struct InnerSize {
    pub(super) size: usize,
    pub(super) width: usize,
}

impl Visitor for InnerSize {
    #[inline(always)]
    fn element<const NUMBER: usize, const TABLE: usize>(&mut self) {}

    #[inline(always)]
    fn inner<const NUMBER: usize, const LEFT: usize, const RIGHT: usize>(&mut self) {
        self.size += 2 * self.width;
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
        sums[0] += self.numbers[NUMBER].as_f64();
    }

    #[inline(always)]
    fn inner<const NUMBER: usize, const LEFT: usize, const RIGHT: usize>(&mut self) {
        let number = self.numbers[NUMBER];
        // They are two tables.
        let Ok([left, right]) = self.rows.get_disjoint_mut([LEFT, RIGHT]) else { return };
        let (of_left, of_right) = (self.ids[LEFT], self.ids[RIGHT]);
        // SAFETY: the invariant.
        unsafe {
            add_other(
                left.sums_mut().row_mut_unchecked(of_left),
                number,
                right.row_unchecked(of_right),
            );
            add_other(
                right.sums_mut().row_mut_unchecked(of_right),
                number,
                left.row_unchecked(of_left),
            );
        }
    }
}

/// Adds the gradient of an inner product, times the other row of it, to the sums of a row.
#[inline(always)]
fn add_other<T: Float>(sums: &mut [f64], gradient: T, other: &[T]) {
    for (sum, other) in sums.iter_mut().zip(other) {
        *sum += gradient.as_f64() * other.as_f64();
    }
}

/// [`Sum`] of tables whose sums one of several threads has.
pub(super) struct SumOwn<'c, 's, R: UpdateRule, T: Float, K, const N: usize, const M: usize> {
    pub(super) cursors: [RowCursor<'c, R, T, K>; N],
    /// Of each table that is this thread's.
    pub(super) sums: &'s mut [Option<&'c mut RowAccumulator>; N],
    pub(super) ids: [usize; N],
    pub(super) numbers: &'s [T; M],
}

impl<R, T, K, const N: usize, const M: usize> Visitor for SumOwn<'_, '_, R, T, K, N, M>
where
    R: UpdateRule,
    T: Float<Accumulator = T>,
    K: UpdateKind,
{
    #[inline(always)]
    fn element<const NUMBER: usize, const TABLE: usize>(&mut self) {
        if let Some(sums) = &mut self.sums[TABLE] {
            // SAFETY: the invariant.
            unsafe { sums.row_mut_unchecked(self.ids[TABLE])[0] += self.numbers[NUMBER].as_f64() };
        }
    }

    #[inline(always)]
    fn inner<const NUMBER: usize, const LEFT: usize, const RIGHT: usize>(&mut self) {
        let (number, of_left, of_right) = (self.numbers[NUMBER], self.ids[LEFT], self.ids[RIGHT]);
        // SAFETY: the invariant; nobody writes rows meanwhile.
        unsafe {
            if let Some(sums) = &mut self.sums[LEFT] {
                let other = self.cursors[RIGHT].row(of_right);
                add_other(sums.row_mut_unchecked(of_left), number, other);
            }
            if let Some(sums) = &mut self.sums[RIGHT] {
                let other = self.cursors[LEFT].row(of_left);
                add_other(sums.row_mut_unchecked(of_right), number, other);
            }
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
                // Both are copied: then the compiler knows that what is read is not what is
                // written.
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

/// Updates a row with the gradient that it has of an inner product: the gradient of the product
/// times the other row.
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
