//! The step of a large batch on two threads, with the bits of one. Free threads read samples; then
//! one thread sums the gradients of each table, in the order of the batch, while no row is written;
//! and then each updates its tables.

use super::visitors::{Ask, Read, Sizes, SumOwn};
use super::{Reads, Rows, Tables, named};
use crate::column_partition::{MAX_SLOTS, in_turn};
use crate::error::Result;
use crate::linear::{Scratch, Width};
use crate::optimizer::{RowAccumulator, RowCursor, SharedRows, UpdateKind};
use nnz_device::prefetch::LINE;
use nnz_device::simd;
use nnz_device::thread_pool;
use nnz_optim::UpdateRule;
use sparse_core::element::Float;
use std::mem::{self, MaybeUninit};
use std::ops::Range;

/// Each thread has tables of its own: of more threads the others would have none.
const MOST: usize = 2;

/// The work of a row of data beside its elements, in about a quarter of a nanosecond.
const WORK_OF_A_ROW: usize = 100;

/// Rows of data between asking for the rows of a table and reading them: those that the other
/// thread has written in the step before come from further away than memory that nobody has.
const FAR: usize = 12;

/// The work, in about a quarter of a nanosecond, of a step by a rule that only adds, of so many
/// rows of data, each of which reads `inner_size` elements of inner products: 0 where there are
/// none, since a row of data is too little work then to be handed over.
pub(super) fn work(n_rows: usize, inner_size: usize) -> usize {
    if inner_size == 0 { 0 } else { n_rows.saturating_mul(inner_size + WORK_OF_A_ROW) }
}

impl<P, R, T, K, W, const N: usize, const M: usize> Tables<'_, P, R, T, K, W, N, M>
where
    P: Reads<N, M>,
    R: UpdateRule,
    T: Float<Accumulator = T>,
    K: UpdateKind,
    W: Width,
{
    /// As [`sum_together`](Self::sum_together), of rows that never wait for steps.
    #[inline(never)]
    pub(super) fn sum_in_parts<F: Fn(usize) -> [usize; N] + Sync>(
        &mut self,
        rows: &Rows<F>,
        scratch: &mut Scratch<T>,
        row_function: &mut impl FnMut(usize, &mut [T], &mut [T]) -> T,
    ) -> Result<f64> {
        let (bounds, count) = (self.bounds, rows.count);
        let sizes = Sizes::of::<P, M>(self.width);
        let n_rows = count.div_ceil(MAX_SLOTS).max(1);
        let n_runs = count.div_ceil(n_rows);
        let rows_of = |run: usize| run * n_rows..count.min((run + 1) * n_rows);
        let numbers = of_len(&mut scratch.gradients, count * M);
        let mut chunks = [const { None }; MAX_SLOTS];
        let runs = numbers.chunks_mut(n_rows * M);
        chunks.iter_mut().zip(runs).for_each(|(chunk, run)| *chunk = Some(run));

        let shared = self.shared(&sizes);
        let mut total: Result<f64> = Ok(0.0);
        in_turn(
            &mut [(); MOST],
            n_runs,
            &mut chunks[..n_runs],
            |(), run, chunk| {
                let Some(numbers) = chunk else { return };
                simd::wide(
                    #[inline(always)]
                    || {
                        let cursors = cursors(&shared, &sizes);
                        read::<P, _, _, _, _, N, M>(cursors, rows, bounds, rows_of(run), numbers);
                    },
                );
            },
            |run, chunk| {
                let Some(numbers) = chunk else { return };
                let Ok(mut sum) = total else { return };
                total = (|| {
                    let numbers = numbers.as_chunks_mut::<M>().0.iter_mut();
                    for (row, numbers) in rows_of(run).zip(numbers) {
                        named(rows, row, &bounds)?;
                        sum += row_function(row, numbers, &mut [T::zero(); M]).as_f64();
                    }
                    Ok(sum)
                })();
            },
        );
        let total = total?;
        let chunks = &chunks[..n_runs];

        // Out of the tables while these are read; the stand-ins allocate nothing.
        let mut sums = self.rows.each_mut().map(|rows| {
            let mut sums = mem::replace(rows.sums_mut(), RowAccumulator::new(0, 0));
            // A step that panicked may have left some.
            sums.clear();
            sums
        });
        let shared = self.shared(&sizes);
        let mut parts: [[Option<&mut RowAccumulator>; N]; MOST] =
            std::array::from_fn(|_| std::array::from_fn(|_| None));
        for (table, sums) in sums.iter_mut().enumerate() {
            parts[table % MOST][table] = Some(sums);
        }
        thread_pool::each(&mut parts, |_, own| {
            simd::wide(
                #[inline(always)]
                || {
                    let cursors = cursors(&shared, &sizes);
                    for (run, chunk) in chunks.iter().enumerate() {
                        let Some(numbers) = chunk else { return };
                        sum::<P, _, _, _, _, N, M>(
                            cursors,
                            own,
                            rows,
                            bounds,
                            rows_of(run),
                            numbers,
                        );
                    }
                },
            );
        });
        thread_pool::each(&mut parts, |_, own| {
            for (rows, sums) in shared.iter().zip(own) {
                if let Some(sums) = sums {
                    // SAFETY: these are the table's sums, and no other thread has it.
                    unsafe { rows.update_summed(sums) };
                    sums.clear();
                }
            }
        });
        for (rows, sums) in self.rows.iter_mut().zip(sums) {
            *rows.sums_mut() = sums;
        }
        Ok(total)
    }

    /// The rows for several threads.
    fn shared(&mut self, sizes: &[usize; N]) -> [SharedRows<'_, R, T, K>; N] {
        let mut sizes = sizes.iter();
        self.rows.each_mut().map(|rows| rows.shared(sizes.next().copied().unwrap_or_default()))
    }
}

/// So many elements, the first of them at the beginning of a cache line.
fn of_len<T: Float>(memory: &mut Vec<T>, len: usize) -> &mut [T] {
    let of_line = LINE / size_of::<T>();
    if memory.len() < len + of_line {
        memory.resize(len + of_line, T::zero());
    }
    let first = memory.as_ptr().align_offset(LINE).min(of_line);
    &mut memory[first..][..len]
}

/// The rows that the calling thread reads. A loop, as in [`Tables::cursors`].
#[inline(always)]
fn cursors<'a, R: UpdateRule, T: Float, K: UpdateKind, const N: usize>(
    shared: &'a [SharedRows<'_, R, T, K>; N],
    sizes: &[usize; N],
) -> [RowCursor<'a, R, T, K>; N] {
    let mut cursors = [const { MaybeUninit::uninit() }; N];
    for ((cursor, rows), size) in cursors.iter_mut().zip(shared).zip(sizes) {
        *cursor = MaybeUninit::new(rows.cursor_of_size(*size));
    }
    // SAFETY: each was written, there being as many tables; the types differ in that only.
    unsafe { std::mem::transmute_copy(&cursors) }
}

/// Reads the numbers of some rows of data.
#[inline(always)]
fn read<P, R, T, K, F, const N: usize, const M: usize>(
    cursors: [RowCursor<'_, R, T, K>; N],
    rows: &Rows<F>,
    bounds: [usize; N],
    of_run: Range<usize>,
    numbers: &mut [T],
) where
    P: Reads<N, M>,
    R: UpdateRule,
    T: Float<Accumulator = T>,
    K: UpdateKind,
    F: Fn(usize) -> [usize; N],
{
    for (row, numbers) in of_run.zip(numbers.as_chunks_mut::<M>().0) {
        if row + FAR < rows.count {
            P::each(&mut Ask { cursors, ids: (rows.ids)(row + FAR), asked: [true; N] });
        }
        // Who takes the run refuses it.
        let Ok(ids) = named(rows, row, &bounds) else { return };
        let mut read = Read { cursors, ids, numbers: [T::zero(); M] };
        P::each(&mut read);
        *numbers = read.numbers;
    }
}

/// Adds what some rows of data contribute to the sums of the tables that a thread has.
#[inline(always)]
fn sum<'c, P, R, T, K, F, const N: usize, const M: usize>(
    cursors: [RowCursor<'c, R, T, K>; N],
    own: &mut [Option<&'c mut RowAccumulator>; N],
    rows: &Rows<F>,
    bounds: [usize; N],
    of_run: Range<usize>,
    numbers: &[T],
) where
    P: Reads<N, M>,
    R: UpdateRule,
    T: Float<Accumulator = T>,
    K: UpdateKind,
    F: Fn(usize) -> [usize; N],
{
    // A row of a table that is not this thread's is read for the other one of an inner product.
    let asked = std::array::from_fn(|table| own[table].is_none());
    for (row, numbers) in of_run.zip(numbers.as_chunks::<M>().0) {
        if row + FAR < rows.count {
            P::each(&mut Ask { cursors, ids: (rows.ids)(row + FAR), asked });
        }
        // All were compared when their numbers were taken.
        let Ok(ids) = named(rows, row, &bounds) else { return };
        P::each(&mut SumOwn { cursors, sums: own, ids, numbers });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::column_partition::parts_of_work;
    use crate::linear::{Fixed, Runtime};
    use crate::lookups::Visitor;
    use crate::optimizer::{ParameterSpec, Plain, Updater, Weights};
    use nnz_arrays::kernels::Parallel;
    use nnz_arrays::parameter_memory::Table;
    use nnz_optim::Sgd;
    use sparse_core::storage::Storage;

    const ROWS: [usize; 5] = [11, 7, 5, 11, 7];
    const SIZE: usize = 3;

    /// ⟨p₀, p₁⟩, p₂ and ⟨p₄, p₃⟩.
    #[derive(Clone, Copy)]
    struct Numbers;

    impl Reads<5, 3> for Numbers {
        fn each<V: Visitor>(visitor: &mut V) {
            visitor.inner::<0, 0, 1>();
            visitor.element::<1, 2>();
            visitor.inner::<2, 4, 3>();
        }
    }

    fn ids(row: usize) -> [usize; 5] {
        [row * row, row, row / 3, row * 5, row * row * 3].map(|id| id + row % 2)
    }

    /// Three steps of batches of `count` rows; the losses, and all weights at the end.
    fn steps(
        width: impl Width,
        count: usize,
        in_parts: bool,
        refused: Option<usize>,
    ) -> (Vec<Result<f64>>, Vec<Vec<f32>>) {
        let sizes = [SIZE, SIZE, 1, SIZE, SIZE];
        let spec = |i: usize| {
            ParameterSpec::new(format!("p{i}"), ROWS[i], sizes[i], Some(Storage::RowSparse))
        };
        let rule = Sgd { learning_rate: 0.125, ..Sgd::default() };
        let mut updater =
            Updater::<Sgd, f32>::new(rule, (0..5).map(spec).collect::<Vec<_>>()).unwrap();
        let mut tables: [Table<f32>; 5] = std::array::from_fn(|i| {
            let values = (0..ROWS[i] * sizes[i]).map(|at| (at * 7 % 11) as f32 / 16.0 - 0.25);
            Table::from_values(sizes[i], &values.collect::<Vec<_>>())
        });
        let (mut scratch, mut losses) = (Scratch::default(), Vec::new());
        for step in 0..3 {
            updater.begin_step().unwrap();
            let of_row = |row: usize| {
                let mut found = ids(row + step);
                found.iter_mut().zip(ROWS).for_each(|(id, rows)| *id %= rows);
                found[1] += if refused == Some(row) { ROWS[1] } else { 0 };
                found
            };
            let rows = Rows { count, ids: of_row };
            let mut row_function = |row: usize, numbers: &mut [f32], _: &mut [f32]| {
                let error = numbers.iter().sum::<f32>() - (row % 3) as f32;
                numbers.fill(error / count as f32);
                error * error
            };
            let mut place = 0..5;
            let weights = tables.each_mut();
            let weights =
                weights.map(|table| (place.next().unwrap_or_default(), Weights::Table(table)));
            let lent = updater.rows_of::<Plain, 5>(weights).unwrap();
            let mut lent = Tables::<Numbers, _, _, _, _, 5, 3>::new(lent, width).unwrap();
            losses.push(if in_parts {
                lent.sum_in_parts(&rows, &mut scratch, &mut row_function)
            } else {
                lent.sum_together(&rows, &mut row_function)
            });
            updater.end_step().unwrap();
        }
        (losses, tables.iter().map(|table| table.values().to_vec()).collect())
    }

    #[test]
    fn two_threads_have_the_bits_of_one() {
        for count in [0, 1, 2, 63, 64, 65, 200] {
            let (losses, tables) = steps(Fixed::<SIZE>, count, false, None);
            let losses: Vec<f64> = losses.into_iter().map(Result::unwrap).collect();
            for shared in
                [steps(Fixed::<SIZE>, count, true, None), steps(Runtime(SIZE), count, true, None)]
            {
                assert!(shared.0.into_iter().map(Result::unwrap).eq(losses.iter().copied()));
                assert!(shared.1 == tables, "{count} rows");
            }
        }
    }

    #[test]
    fn a_row_that_is_refused_changes_nothing() {
        let (_, before) = steps(Fixed::<SIZE>, 0, false, None);
        for refused in [0, 64, 199] {
            let (losses, tables) = steps(Fixed::<SIZE>, 200, true, Some(refused));
            assert!(losses.iter().all(Result::is_err));
            assert!(tables == before, "row {refused}");
        }
    }

    #[test]
    fn small_batches_are_for_one_thread() {
        let parts = |n_rows, kept| parts_of_work(Parallel::Threads(2), work(n_rows, kept));
        assert_eq!((parts(1 << 14, 32), parts(8192, 32), parts(1 << 30, 0)), (2, 1, 1));
    }
}
