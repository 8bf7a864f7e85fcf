//! The loop of a fused step whose rows of data name rows of parameters by ids: matrix factorization and its kin.
//!
//! A row of data reads some numbers: elements that ids name, and inner products of two rows that ids name. `graph!` composes
//! this loop with a row function that it emits from the graph, which makes of these numbers a loss and the gradients with
//! respect to each. The gradient of an inner product ⟨p, q⟩ with respect to p is q, and with respect to q it is p.

use crate::error::Result;
use crate::lanes;
use crate::linear::{AHEAD, Scratch, Width, is_large};
use crate::model::{ModelError, RowSteps};
use crate::optimizer::{RowCursor, RowUpdater, UpdateKind, Updater, Weights};
use crate::table::Table;
use crate::with_rows;
use sparse_core::element::Float;
use sparse_core::update_rules::UpdateRule;
use std::ops::Range;

/// One number that a row of data reads; tables by their positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Read {
    /// A row of one element.
    Element(usize),
    /// The inner product of rows of two tables.
    Inner(usize, usize),
}

/// The numbers that a row of data reads of `TABLES` tables, each of which is read once.
pub trait Reads<const TABLES: usize, const COUNT: usize>: Copy {
    /// The numbers, in order.
    const READS: [Read; COUNT];
}

/// Whether the positions are those of `tables` tables, each once: what writing one table while another is read relies on.
const fn are_apart(reads: &[Read], tables: usize) -> bool {
    let mut seen = 0u64;
    let mut at = 0;
    while at < reads.len() {
        let (first, second) = match reads[at] {
            Read::Element(table) => (table, None),
            Read::Inner(left, right) => (left, Some(right)),
        };
        let others = match second {
            Some(second) if second < 64 => 1 << second,
            Some(_) => return false,
            None => 0,
        };
        if first >= 64 || seen & (1 << first | others) != 0 || others == 1 << first {
            return false;
        }
        seen |= 1 << first | others;
        at += 1;
    }
    tables < 64 && seen == (1 << tables) - 1
}

/// What a batch is to the loop.
#[derive(Clone, Copy, Debug)]
pub struct Rows<F> {
    /// Its rows.
    pub count: usize,
    /// The row of each table that a row of data names. Any number stands for an id that is none.
    pub ids: F,
}

/// One step on a batch: returns the mean of the rows' losses.
///
/// `row_function(row, numbers, saved)` gets the numbers of a row, replaces them by the gradients of the batch's loss with
/// respect to them, and returns the row's own loss. `saved` is scratch of the same length. `width` is the number of elements
/// of rows in inner products. O(rows · elements of the rows named · cost of the rule).
///
/// # Errors
///
/// [`ModelError::Lookup`] for an id beyond a table, [`ModelError::Extent`] for a table with rows of another size.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
pub fn step<P, R, T, W, F, const N: usize, const M: usize>(
    _: P,
    rows: Rows<F>,
    tables: [(usize, &mut Table<T>); N],
    updater: &mut Updater<R, T>,
    width: W,
    scratch: &mut Scratch<T>,
    row_function: impl FnMut(usize, &mut [T], &mut [T]) -> T,
) -> Result<f64>
where
    P: Reads<N, M>,
    R: UpdateRule,
    T: Float<Accumulator = T>,
    W: Width,
    F: Fn(usize) -> [usize; N],
{
    let weights = tables.map(|(index, table)| (index, Weights::from(table)));
    with_rows!(*updater, weights, |lent| {
        let tables = Tables::<P, _, _, _, N, M>::new(lent, width)?;
        tables.together(rows, width, scratch, row_function)
    })
}

/// As many steps as `range` has rows, each of one row of data, as [`linear::steps`](crate::linear::steps) for this family.
///
/// # Errors
///
/// As [`step`].
#[inline(always)]
#[allow(clippy::too_many_arguments)]
pub fn steps<P, R, T, W, F, const N: usize, const M: usize>(
    _: P,
    rows: Rows<F>,
    range: Range<usize>,
    tables: [(usize, &mut Table<T>); N],
    updater: &mut Updater<R, T>,
    width: W,
    scratch: &mut Scratch<T>,
    row_function: impl FnMut(usize, &mut [T], &mut [T]) -> T,
) -> Result<RowSteps>
where
    P: Reads<N, M>,
    R: UpdateRule,
    T: Float<Accumulator = T>,
    W: Width,
    F: Fn(usize) -> [usize; N],
{
    let weights = tables.map(|(index, table)| (index, Weights::from(table)));
    with_rows!(*updater, weights, |lent| {
        let tables = Tables::<P, _, _, _, N, M>::new(lent, width)?;
        tables.one_by_one(rows, range, width, scratch, row_function)
    })
}

/// The tables during a call.
///
/// Invariant: those in inner products have rows of `width.columns()` elements, for the width that it was made with, the
/// others of one.
struct Tables<'a, P, R: UpdateRule, T: Float, K: UpdateKind, const N: usize, const M: usize> {
    rows: [RowUpdater<'a, R, T, K>; N],
    /// The rows of each.
    bounds: [usize; N],
    reads: std::marker::PhantomData<P>,
}

type Cursors<'a, R, T, K, const N: usize> = [RowCursor<'a, R, T, K>; N];

impl<'a, P, R, T, K, const N: usize, const M: usize> Tables<'a, P, R, T, K, N, M>
where
    P: Reads<N, M>,
    R: UpdateRule,
    T: Float<Accumulator = T>,
    K: UpdateKind,
{
    #[inline(always)]
    fn new<W: Width>(rows: [RowUpdater<'a, R, T, K>; N], width: W) -> Result<Self> {
        const { assert!(are_apart(&P::READS, N), "each table is read once") };
        let bounds = std::array::from_fn(|table| rows[table].n_rows());
        let sizes = Self::sizes(width);
        for (rows, size) in rows.iter().zip(sizes) {
            if rows.row_size() != size {
                return Err(ModelError::extent("lookups", "row", 1, rows.row_size(), size).into());
            }
        }
        Ok(Tables { rows, bounds, reads: std::marker::PhantomData })
    }

    /// The elements of a row of each table.
    #[inline(always)]
    fn sizes<W: Width>(width: W) -> [usize; N] {
        let mut sizes = [1; N];
        for read in P::READS {
            if let Read::Inner(left, right) = read {
                sizes[left] = width.columns();
                sizes[right] = width.columns();
            }
        }
        sizes
    }

    #[inline(always)]
    fn cursors(&mut self, sizes: [usize; N]) -> Cursors<'_, R, T, K, N> {
        let mut sizes = sizes.into_iter();
        // There are as many sizes as tables.
        self.rows.each_mut().map(|rows| rows.cursor(sizes.next().unwrap_or(1)))
    }

    /// The ids of a row of data, each below the rows of its table.
    #[inline(always)]
    fn named<F: Fn(usize) -> [usize; N]>(&self, rows: &Rows<F>, row: usize) -> Result<[usize; N]> {
        let ids = (rows.ids)(row);
        for table in 0..N {
            if ids[table] >= self.bounds[table] {
                return Err(self.refusal(row, ids[table], self.bounds[table]));
            }
        }
        Ok(ids)
    }

    #[cold]
    fn refusal(&self, row: usize, id: usize, n_rows: usize) -> crate::Error {
        ModelError::Lookup { row, id, n_rows }.into()
    }

    /// Brings the rows that a row of data names up to date.
    #[inline(always)]
    fn settle(&mut self, ids: [usize; N]) {
        for (rows, id) in self.rows.iter_mut().zip(ids) {
            // SAFETY: `named` has compared it.
            unsafe { rows.settle_unchecked(id) };
        }
    }

    /// Asks for the rows that a later row of data names, of the tables that are no cache's size.
    #[inline(always)]
    fn prefetch<F: Fn(usize) -> [usize; N]>(&mut self, rows: &Rows<F>, row: usize, is_large: bool) {
        if is_large && row + AHEAD < rows.count {
            for (rows, id) in self.rows.iter_mut().zip((rows.ids)(row + AHEAD)) {
                rows.prefetch(id);
            }
        }
    }

    /// A step of all rows.
    #[inline(never)]
    fn together<W: Width, F: Fn(usize) -> [usize; N]>(
        mut self,
        rows: Rows<F>,
        width: W,
        scratch: &mut Scratch<T>,
        mut row_function: impl FnMut(usize, &mut [T], &mut [T]) -> T,
    ) -> Result<f64> {
        let total = lanes::wide(
            #[inline(always)]
            || self.step_together(&rows, width, scratch, &mut row_function),
        )?;
        self.rows.into_iter().for_each(RowUpdater::finish);
        Ok(total / rows.count.max(1) as f64)
    }

    #[inline(always)]
    fn step_together<W: Width, F: Fn(usize) -> [usize; N]>(
        &mut self,
        rows: &Rows<F>,
        width: W,
        scratch: &mut Scratch<T>,
        row_function: &mut impl FnMut(usize, &mut [T], &mut [T]) -> T,
    ) -> Result<f64> {
        let sizes = Self::sizes(width);
        let is_large = self.rows.iter().any(is_large);
        let Scratch { gradients, factors: kept, .. } = scratch;
        gradients.clear();
        kept.clear();
        let mut total = 0.0;
        for row in 0..rows.count {
            self.prefetch(rows, row, is_large);
            let ids = self.named(rows, row)?;
            self.settle(ids);
            let cursors = self.cursors(sizes);
            // SAFETY: `named` has compared the ids; the cursors are those of `sizes`.
            let mut numbers: [T; M] = unsafe { read::<P, _, _, _, N, M>(cursors, ids) };
            total += row_function(row, &mut numbers, &mut [T::zero(); M]).as_f64();
            gradients.extend_from_slice(&numbers);
            if K::PLAIN {
                for read in P::READS {
                    if let Read::Inner(left, right) = read {
                        // SAFETY: as above.
                        unsafe {
                            kept.extend_from_slice(cursors[left].row(ids[left]));
                            kept.extend_from_slice(cursors[right].row(ids[right]));
                        }
                    }
                }
            }
        }
        if K::PLAIN {
            self.add_each(rows, width, gradients, kept)?;
        } else {
            self.sum_each(rows, sizes, gradients)?;
            for (rows, size) in self.rows.iter_mut().zip(sizes) {
                rows.apply_accumulated_as(size);
            }
        }
        Ok(total)
    }

    /// Such a rule only adds: what a row of data contributes is added in its turn, made of the rows as they were before
    /// the step.
    #[inline(always)]
    fn add_each<W: Width, F: Fn(usize) -> [usize; N]>(
        &mut self,
        rows: &Rows<F>,
        width: W,
        gradients: &[T],
        kept: &[T],
    ) -> Result<()> {
        let (sizes, size) = (Self::sizes(width), width.columns());
        // Empty where there is no inner product.
        let mut kept = kept.chunks_exact(size.max(1));
        for (row, numbers) in gradients.chunks_exact(M).enumerate() {
            let ids = self.named(rows, row)?;
            let cursors = self.cursors(sizes);
            for (number, read) in numbers.iter().zip(P::READS) {
                match read {
                    // SAFETY: `named` has compared the ids; the cursors are those of `sizes`.
                    Read::Element(table) => unsafe {
                        cursors[table].update(ids[table], 0, *number);
                    },
                    Read::Inner(left, right) => {
                        let (was_left, was_right) =
                            (kept.next().unwrap_or_default(), kept.next().unwrap_or_default());
                        // SAFETY: as above; rows that were kept have the size of the row.
                        unsafe {
                            let by = |other: T, _| *number * other;
                            cursors[left].update_row_by(ids[left], was_right, by);
                            cursors[right].update_row_by(ids[right], was_left, by);
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Sums what the rows of data contribute, by the rows that they name.
    #[inline(always)]
    fn sum_each<F: Fn(usize) -> [usize; N]>(
        &mut self,
        rows: &Rows<F>,
        sizes: [usize; N],
        gradients: &[T],
    ) -> Result<()> {
        for (row, numbers) in gradients.chunks_exact(M).enumerate() {
            let ids = self.named(rows, row)?;
            for (number, read) in numbers.iter().zip(P::READS) {
                match read {
                    // SAFETY: `named` has compared the ids.
                    Read::Element(table) => unsafe {
                        let sums = self.rows[table].sums_mut().row_mut_unchecked(ids[table]);
                        sums[0] += *number;
                    },
                    Read::Inner(left, right) => {
                        for (to, from) in [(left, right), (right, left)] {
                            let other = self.rows[from].cursor(sizes[from]);
                            // SAFETY: as above; the sums are another memory than the table, which nobody writes here.
                            unsafe {
                                let other = other.row(ids[from]);
                                let other = std::slice::from_raw_parts(other.as_ptr(), other.len());
                                let sums = self.rows[to].sums_mut().row_mut_unchecked(ids[to]);
                                for (sum, other) in sums.iter_mut().zip(other) {
                                    *sum += *number * *other;
                                }
                            }
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// A step of each row.
    #[inline(never)]
    fn one_by_one<W: Width, F: Fn(usize) -> [usize; N]>(
        mut self,
        rows: Rows<F>,
        range: Range<usize>,
        width: W,
        scratch: &mut Scratch<T>,
        mut row_function: impl FnMut(usize, &mut [T], &mut [T]) -> T,
    ) -> Result<RowSteps> {
        let steps = lanes::wide(
            #[inline(always)]
            || self.each(&rows, range, width, scratch, &mut row_function),
        )?;
        self.rows.into_iter().for_each(RowUpdater::finish);
        Ok(steps)
    }

    #[inline(always)]
    fn each<W: Width, F: Fn(usize) -> [usize; N]>(
        &mut self,
        rows: &Rows<F>,
        range: Range<usize>,
        width: W,
        scratch: &mut Scratch<T>,
        row_function: &mut impl FnMut(usize, &mut [T], &mut [T]) -> T,
    ) -> Result<RowSteps> {
        let sizes = Self::sizes(width);
        let is_large = self.rows.iter().any(is_large);
        let mut steps = RowSteps::default();
        for row in range {
            self.prefetch(rows, row, is_large);
            let ids = self.named(rows, row)?;
            self.settle(ids);
            let cursors = self.cursors(sizes);
            // SAFETY: `named` has compared the ids; the cursors are those of `sizes`.
            let mut numbers: [T; M] = unsafe { read::<P, _, _, _, N, M>(cursors, ids) };
            let loss = row_function(row, &mut numbers, &mut [T::zero(); M]);
            for (number, read) in numbers.into_iter().zip(P::READS) {
                match read {
                    // SAFETY: as above.
                    Read::Element(table) => unsafe { cursors[table].update(ids[table], 0, number) },
                    Read::Inner(left, right) => width.with_rows(
                        &mut scratch.factors,
                        #[inline(always)]
                        |was_left, _| {
                            // SAFETY: as above. `are_apart`: the row that is written is of another table than the one
                            // that is read.
                            unsafe {
                                was_left.copy_from_slice(cursors[left].row(ids[left]));
                                let by = |other: T, _| number * other;
                                let other = cursors[right].row(ids[right]);
                                cursors[left].update_row_by(ids[left], other, by);
                                cursors[right].update_row_by(ids[right], &*was_left, by);
                            }
                        },
                    ),
                }
            }
            for (rows, id) in self.rows.iter_mut().zip(ids) {
                // SAFETY: as above.
                unsafe { rows.mark_rows(&[id]) };
                rows.advance();
            }
            if !steps.add(loss.as_f64()) {
                break;
            }
        }
        Ok(steps)
    }
}

/// The numbers of a row of data.
///
/// # Safety
///
/// Each id is below the rows of its table, whose cursor has rows of one element, or as many as the other of an inner
/// product.
#[inline(always)]
unsafe fn read<P, R, T, K, const N: usize, const M: usize>(
    cursors: Cursors<'_, R, T, K, N>,
    ids: [usize; N],
) -> [T; M]
where
    P: Reads<N, M>,
    R: UpdateRule,
    T: Float<Accumulator = T>,
    K: UpdateKind,
{
    P::READS.map(|read| match read {
        // SAFETY: promised by the caller.
        Read::Element(table) => unsafe { cursors[table].value(ids[table], 0) },
        // SAFETY: promised by the caller.
        Read::Inner(left, right) => unsafe {
            inner(cursors[left].row(ids[left]), cursors[right].row(ids[right]))
        },
    })
}

/// Σ a b, in eight sums so that an addition does not wait for the one before it.
#[inline(always)]
fn inner<T: Float<Accumulator = T>>(a: &[T], b: &[T]) -> T {
    const LANES: usize = 8;
    let mut sums = [T::zero(); LANES];
    let (a_chunks, a_rest) = a.as_chunks::<LANES>();
    let (b_chunks, b_rest) = b.as_chunks::<LANES>();
    for (a, b) in a_chunks.iter().zip(b_chunks) {
        for lane in 0..LANES {
            sums[lane] += a[lane] * b[lane];
        }
    }
    for (lane, (a, b)) in a_rest.iter().zip(b_rest).enumerate() {
        sums[lane] += *a * *b;
    }
    let [a, b, c, d, e, f, g, h] = sums;
    ((a + e) + (b + f)) + ((c + g) + (d + h))
}
