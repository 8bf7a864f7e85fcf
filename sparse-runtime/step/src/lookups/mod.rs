//! The loop of a fused step whose samples name table rows by ids: matrix factorization and its kin.
//!
//! A sample reads some numbers: elements that ids name, and inner products of two table rows that
//! ids name. `graph!` composes this loop with an emitted row function, which turns these numbers
//! into a loss and the gradients by each. The gradient of an inner product ⟨p, q⟩ by p is q, and by
//! q it is p.

#[cfg(test)]
mod accuracy;
mod parallel;
mod visitors;

use self::visitors::{InnerSize, Read, Sizes, Sum, Update, Uses};
use crate::autotune::Stage;
use crate::error::Result;
use crate::linear::{Scratch, Width, is_large};
use crate::model::{ModelError, RowSteps};
use crate::optimizer::{RowCursor, RowUpdater, UpdateKind, Updater, Weights};
use crate::with_rows;
use nnz_arrays::kernels::Parallel;
use nnz_arrays::parameter_memory::Table;
use nnz_device::prefetch::AHEAD;
use nnz_device::simd;
use nnz_optim::UpdateRule;
use sparse_core::element::Float;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ops::Range;

/// The numbers that a row of data reads of `TABLES` tables, each of which is read once.
///
/// A type and not a list of them: what is done with each number is then straight code, whose rows
/// lie in registers. It is `graph!` that writes such types. Not to be implemented by hand: a call
/// checks once that each table and number is read once, and that rows have their sizes, and then
/// relies on [`each`](Self::each) doing the same every time, without looking.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say what a row of data reads of {TABLES} tables",
    note = "`graph!` writes a type that does, for models of rows that ids name"
)]
pub trait Reads<const TABLES: usize, const COUNT: usize>: Copy {
    /// Does something with each of them, in order.
    fn each<V: Visitor>(visitor: &mut V);
}

/// Something that is done with numbers of a row of data: by their positions, and those of the
/// tables.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does nothing with the numbers of a row of data",
    note = "the loop over rows of data has a type for each thing that is done with them"
)]
pub trait Visitor {
    /// A row of one element.
    fn element<const NUMBER: usize, const TABLE: usize>(&mut self);

    /// The inner product of rows of two tables.
    fn inner<const NUMBER: usize, const LEFT: usize, const RIGHT: usize>(&mut self);
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
/// `row_function(row, numbers, saved)` gets the numbers of a row, replaces them by the gradients of
/// the batch's loss with respect to them, and returns the row's own loss. `saved` is scratch of the
/// same length. `width` is the number of elements of rows in inner products. O(rows · elements of
/// the rows named · cost of the rule). `parallel` threads share the work of a large batch where the
/// rule only adds; the bits do not depend on it.
///
/// # Errors
///
/// [`ModelError::Lookup`] for an id beyond a table, [`ModelError::Extent`] for a table with rows of
/// another size.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
pub fn step<P, R, T, W, F, const N: usize, const M: usize>(
    _: P,
    rows: Rows<F>,
    tables: [(usize, &mut Table<T>); N],
    updater: &mut Updater<R, T>,
    width: W,
    parallel: Parallel,
    scratch: &mut Scratch<T>,
    row_function: impl FnMut(usize, &mut [T], &mut [T]) -> T,
) -> Result<f64>
where
    P: Reads<N, M>,
    R: UpdateRule,
    T: Float<Accumulator = T>,
    W: Width,
    F: Fn(usize) -> [usize; N] + Sync,
{
    let weights = tables.map(|(index, table)| (index, Weights::Table(table)));
    with_rows!(R, T; *updater, weights, |lent| {
        let tables = Tables::<P, _, _, _, _, N, M>::new(lent, width)?;
        tables.together(rows, parallel, scratch, row_function)
    })
}

/// As many steps as `range` has rows, each of one row of data, as
/// [`linear::steps`](crate::linear::steps) for this family.
///
/// # Errors
///
/// As [`step`].
#[inline(always)]
#[allow(clippy::too_many_arguments)]
pub fn steps<P, R, T, W, F, C, const N: usize, const M: usize>(
    _: P,
    rows: Rows<F>,
    range: Range<usize>,
    tables: [(usize, &mut Table<T>); N],
    updater: &mut Updater<R, T>,
    width: W,
    scratch: &mut Scratch<T>,
    kept: &mut C,
    row_function: impl FnMut(usize, &mut [T], &mut [T], &mut C) -> T,
) -> Result<RowSteps>
where
    C: Copy,
    P: Reads<N, M>,
    R: UpdateRule,
    T: Float<Accumulator = T>,
    W: Width,
    F: Fn(usize) -> [usize; N],
{
    let weights = tables.map(|(index, table)| (index, Weights::Table(table)));
    with_rows!(R, T; *updater, weights, |lent| {
        let tables = Tables::<P, _, _, _, _, N, M>::new(lent, width)?;
        tables.one_by_one(rows, range, scratch, kept, row_function)
    })
}

/// The tables during a call.
///
/// Invariants: those in inner products have rows of `width.columns()` elements, the others of one.
/// Each is read by one number, and an inner product is of two.
struct Tables<'a, P, R: UpdateRule, T: Float, K: UpdateKind, W, const N: usize, const M: usize> {
    rows: [RowUpdater<'a, R, T, K>; N],
    /// The rows of each.
    bounds: [usize; N],
    width: W,
    reads: PhantomData<P>,
}

impl<'a, P, R, T, K, W, const N: usize, const M: usize> Tables<'a, P, R, T, K, W, N, M>
where
    P: Reads<N, M>,
    R: UpdateRule,
    T: Float<Accumulator = T>,
    K: UpdateKind,
    W: Width,
{
    #[inline(always)]
    fn new(rows: [RowUpdater<'a, R, T, K>; N], width: W) -> Result<Self> {
        let mut uses = Uses { tables: [0; N], numbers: [0; M] };
        P::each(&mut uses);
        // A table that is written while it is read would be undefined behaviour.
        assert!(uses.tables == [1; N] && uses.numbers == [1; M], "not read once each: {uses:?}");
        let sizes = Sizes::of::<P, M>(width);
        let mut bounds = [0; N];
        for ((bound, rows), size) in bounds.iter_mut().zip(&rows).zip(&sizes) {
            *bound = rows.n_rows();
            if rows.row_size() != *size {
                return Err(ModelError::extent("lookups", "row", 1, rows.row_size(), *size).into());
            }
        }
        Ok(Tables { rows, bounds, width, reads: PhantomData })
    }

    // Loops, here and below, for what arrays have methods for: those are not inlined, and copy
    // their elements.
    #[inline(always)]
    fn cursors(&mut self) -> [RowCursor<'_, R, T, K>; N] {
        let sizes = Sizes::of::<P, M>(self.width);
        let mut cursors = [const { MaybeUninit::uninit() }; N];
        for ((cursor, rows), size) in cursors.iter_mut().zip(&mut self.rows).zip(&sizes) {
            *cursor = MaybeUninit::new(rows.cursor(*size));
        }
        // SAFETY: each was written, there being as many tables; the types differ in that only.
        unsafe { std::mem::transmute_copy(&cursors) }
    }

    /// Brings the rows that a row of data names up to date.
    ///
    /// # Safety
    ///
    /// The ids are below the rows of their tables.
    #[inline(always)]
    unsafe fn settle(&mut self, ids: &[usize; N]) {
        for (rows, id) in self.rows.iter_mut().zip(ids) {
            // SAFETY: promised by the caller.
            unsafe { rows.settle_unchecked(*id) };
        }
    }

    /// Asks for the rows that a later row of data names.
    #[inline(always)]
    fn prefetch<F: Fn(usize) -> [usize; N]>(&mut self, rows: &Rows<F>, row: usize) {
        if row + AHEAD < rows.count {
            let (ids, sizes) = ((rows.ids)(row + AHEAD), Sizes::of::<P, M>(self.width));
            for ((rows, id), size) in self.rows.iter_mut().zip(&ids).zip(&sizes) {
                rows.prefetch_each(*size, &[*id as u64]);
            }
        }
    }

    /// A step of all rows.
    #[inline(never)]
    fn together<F: Fn(usize) -> [usize; N] + Sync>(
        mut self,
        rows: Rows<F>,
        parallel: Parallel,
        scratch: &mut Scratch<T>,
        mut row_function: impl FnMut(usize, &mut [T], &mut [T]) -> T,
    ) -> Result<f64> {
        // A batch of one is what a step of many such is made of, to the bit.
        if rows.count == 1 {
            let loss = simd::wide(
                #[inline(always)]
                || self.in_place(&rows, 0, scratch, &mut row_function),
            )?;
            self.rows.into_iter().for_each(RowUpdater::finish);
            return Ok(loss);
        }
        // The elements of a row of data's inner products.
        let mut inner_size = InnerSize { size: 0, width: self.width.columns() };
        P::each(&mut inner_size);
        // What is known of the rule comes first: the other rules' loops are not compiled for two
        // threads.
        let work = if K::PLAIN { parallel::work(rows.count, inner_size.size) } else { 0 };
        let begun = scratch.autotune.begin(Stage::Rows, parallel, work);
        let total = if K::PLAIN && begun.n_parts > 1 {
            self.sum_in_parts(&rows, scratch, &mut row_function)?
        } else {
            simd::wide(
                #[inline(always)]
                || self.sum_together(&rows, &mut row_function),
            )?
        };
        scratch.autotune.end(begun);
        self.rows.into_iter().for_each(RowUpdater::finish);
        Ok(total / rows.count.max(1) as f64)
    }

    /// Sums what each row of data contributes by the rows that it is to, which do not change
    /// meanwhile, and updates each of these once.
    #[inline(always)]
    fn sum_together<F: Fn(usize) -> [usize; N]>(
        &mut self,
        rows: &Rows<F>,
        row_function: &mut impl FnMut(usize, &mut [T], &mut [T]) -> T,
    ) -> Result<f64> {
        // A step that panicked may have left some.
        self.rows.iter_mut().for_each(|rows| rows.sums_mut().clear());
        let total = self.sum_all(rows, row_function);
        match total {
            Ok(_) => self.rows.iter_mut().for_each(RowUpdater::apply_settled),
            Err(_) => self.rows.iter_mut().for_each(|rows| rows.sums_mut().clear()),
        }
        total
    }

    #[inline(always)]
    fn sum_all<F: Fn(usize) -> [usize; N]>(
        &mut self,
        rows: &Rows<F>,
        row_function: &mut impl FnMut(usize, &mut [T], &mut [T]) -> T,
    ) -> Result<f64> {
        let is_large = self.rows.iter().any(is_large);
        let mut total = 0.0;
        for row in 0..rows.count {
            if is_large {
                self.prefetch(rows, row);
            }
            let ids = named(rows, row, &self.bounds)?;
            // SAFETY: `named` has compared the ids, here and below.
            unsafe { self.settle(&ids) };
            let cursors = self.cursors();
            let mut read = Read { cursors, ids, numbers: [T::zero(); M] };
            P::each(&mut read);
            let mut numbers = read.numbers;
            total += row_function(row, &mut numbers, &mut [T::zero(); M]).as_f64();
            P::each(&mut Sum { rows: &mut self.rows, ids, numbers: &numbers });
        }
        Ok(total)
    }

    /// A step of each row.
    #[inline(never)]
    fn one_by_one<F: Fn(usize) -> [usize; N], C: Copy>(
        mut self,
        rows: Rows<F>,
        range: Range<usize>,
        scratch: &mut Scratch<T>,
        kept: &mut C,
        mut row_function: impl FnMut(usize, &mut [T], &mut [T], &mut C) -> T,
    ) -> Result<RowSteps> {
        let steps = simd::wide(
            #[inline(always)]
            || {
                let mut own = *kept;
                let steps = self.each(&rows, range, scratch, |row, numbers, saved| {
                    row_function(row, numbers, saved, &mut own)
                });
                *kept = own;
                steps
            },
        )?;
        self.rows.into_iter().for_each(RowUpdater::finish);
        Ok(steps)
    }

    #[inline(always)]
    fn each<F: Fn(usize) -> [usize; N]>(
        &mut self,
        rows: &Rows<F>,
        range: Range<usize>,
        scratch: &mut Scratch<T>,
        mut row_function: impl FnMut(usize, &mut [T], &mut [T]) -> T,
    ) -> Result<RowSteps> {
        let is_large = self.rows.iter().any(is_large);
        let mut steps = RowSteps::default();
        for row in range {
            if is_large {
                self.prefetch(rows, row);
            }
            let loss = self.in_place(rows, row, scratch, &mut row_function)?;
            self.rows.iter_mut().for_each(RowUpdater::advance);
            if !steps.add(loss) {
                break;
            }
        }
        Ok(steps)
    }

    /// Updates the rows that a row of data names by what it alone contributes, and returns its
    /// loss.
    #[inline(always)]
    fn in_place<F: Fn(usize) -> [usize; N]>(
        &mut self,
        rows: &Rows<F>,
        row: usize,
        scratch: &mut Scratch<T>,
        row_function: &mut impl FnMut(usize, &mut [T], &mut [T]) -> T,
    ) -> Result<f64> {
        let width = self.width;
        let ids = named(rows, row, &self.bounds)?;
        // SAFETY: `named` has compared the ids, here and below.
        unsafe { self.settle(&ids) };
        let cursors = self.cursors();
        let mut read = Read { cursors, ids, numbers: [T::zero(); M] };
        P::each(&mut read);
        let mut numbers = read.numbers;
        let loss = row_function(row, &mut numbers, &mut [T::zero(); M]);
        P::each(&mut Update { cursors, ids, numbers, width, scratch: &mut scratch.factors });
        for (rows, id) in self.rows.iter_mut().zip(&ids) {
            // SAFETY: as above.
            unsafe { rows.mark_rows(&[*id]) };
        }
        Ok(loss.as_f64())
    }
}

/// The ids of a row of data, each below the rows of its table.
#[inline(always)]
fn named<F: Fn(usize) -> [usize; N], const N: usize>(
    rows: &Rows<F>,
    row: usize,
    bounds: &[usize; N],
) -> Result<[usize; N]> {
    let ids = (rows.ids)(row);
    for (id, bound) in ids.iter().zip(bounds) {
        if id >= bound {
            return Err(refusal(row, *id, *bound));
        }
    }
    Ok(ids)
}

#[cold]
fn refusal(row: usize, id: usize, n_rows: usize) -> crate::Error {
    ModelError::Lookup { row, id, n_rows }.into()
}
