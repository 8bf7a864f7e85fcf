//! Catch-up of rows of one weight along a mean, sixteen at a time: roots and quotients of sixteen
//! numbers take the time of one.
//!
//! Each row gets the bits that it gets by itself: a lane does what scalar code would.

// Iterators and closures are functions of their own, which have no vectors where they are not
// inlined.
#![allow(clippy::needless_range_loop)]

use super::catch_up::CatchUp;
use super::cursor::RowCursor;
use super::memory::has_last_beside;
use super::update_avx512::{LANES, MIN_ROWS, load_transposed, store_transposed};
use super::update_kind::{IdleOf, StateOf, UpdateKind};
use nnz_arrays::formats::ColumnId;
use nnz_device::simd::is_f32;
use nnz_device::simd::x86::divides_in_sixteens;
use nnz_optim::{IdleMap, MeanRun, Runs, StateBlock, Step, UpdateRule};
use sparse_core::element::Float;

/// The numbers of a block: a weight, its two means, and the step up to which the row is settled.
const BLOCK: usize = 4;

/// The bytes of a [`MeanRun`] are two blocks of numbers.
const _: () = assert!(size_of::<MeanRun<f32>>() == 2 * BLOCK * size_of::<f32>());

impl<R: UpdateRule, T: Float> CatchUp<'_, R, T> {
    /// [Settles](Self::settle) rows; says how many, which are the first ones. The others, and those
    /// of other types, processors and rules, are left to be settled one by one.
    ///
    /// # Safety
    ///
    /// As [`settle`](Self::settle), of rows that settle.
    #[inline(always)]
    pub(super) unsafe fn settle_by_avx512<K: UpdateKind, I: ColumnId>(
        &mut self,
        cursor: RowCursor<'_, R, T, K>,
        ids: &[I],
        updated: bool,
    ) -> usize {
        if const {
            !IdleOf::<R, T>::HAS_RUNS
                || !K::BESIDE
                || !is_f32::<T>()
                || StateOf::<R, T>::BY_ROW
                || !has_last_beside::<T, StateOf<R, T>>(1)
        } {
            return 0;
        }
        let of_one =
            cursor.places.row_size == 1 && cursor.places.stride == BLOCK * size_of::<f32>();
        if !of_one || ids.len() < MIN_ROWS || !divides_in_sixteens() {
            return 0;
        }
        // SAFETY: the processor has the instructions; a row is a block of four numbers of four
        // bytes, the last of which says up to where it is settled; the caller promises the rows.
        unsafe { self.settle_groups(cursor, ids, updated) }
    }

    /// # Safety
    ///
    /// As there; the processor has AVX-512, elements are `f32`, and the cursor's rows are blocks of
    /// [`BLOCK`] numbers, the last of which is that of [`last`](CatchUp::last).
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi1,bmi2,popcnt")]
    unsafe fn settle_groups<K: UpdateKind, I: ColumnId>(
        &mut self,
        cursor: RowCursor<'_, R, T, K>,
        ids: &[I],
        updated: bool,
    ) -> usize {
        let places = cursor.places.known_to_be_apart(BLOCK * size_of::<f32>());
        let now = self.missed.now;
        let (runs, first) = self.missed.runs();
        let zero = T::zero().widen();
        // Those of more steps leave nothing of a mean, or are for scalar code.
        let known = match runs.first.last() {
            Some(last) if last.of_mean == zero => runs.known(),
            _ => runs.low.len() as u64,
        };
        let known = u32::try_from(known).unwrap_or(u32::MAX);
        let digit = const { Runs::<f32>::DIGIT as usize };
        let mark = now + u32::from(updated);
        let zeros = [zero; LANES];
        let (mut numbers, mut low, mut high) = ([zeros; BLOCK], [zeros; BLOCK], [zeros; BLOCK]);
        let high_roots: &[f64] = if runs.high.is_empty() { &[1.0] } else { runs.high };
        let mut done = 0;
        while done + MIN_ROWS <= ids.len() && known > 0 {
            let count = LANES.min(ids.len() - done);
            let mut blocks = [std::ptr::null_mut::<f32>(); LANES];
            for lane in 0..LANES {
                // Lanes beyond the last row do what its lane does.
                let row = ids[done + lane.min(count - 1)].at();
                // SAFETY: promised by the caller.
                blocks[lane] = unsafe { places.weights(row) }.cast();
            }
            // SAFETY: there are so many numbers at each address.
            unsafe { load_transposed::<BLOCK, T>(&blocks, &mut numbers) };
            let lasts = numbers[BLOCK - 1].as_mut_ptr().cast::<u32>();
            let mut missed = [0_u32; LANES];
            let mut is_other = [false; LANES];
            for lane in 0..LANES {
                // SAFETY: there are so many numbers of four bytes.
                let last = unsafe { *lasts.add(lane) };
                // Of a row that is ahead of this step, more than are known.
                let steps = now.wrapping_sub(last);
                let is_known = (last > first) & (steps < known);
                missed[lane] = if is_known { steps } else { 0 };
                // To be settled by itself.
                is_other[lane] = !is_known;
            }
            let mut squares = zeros;
            let mut halves = [[std::ptr::null_mut::<f32>(); LANES]; 2];
            for lane in 0..LANES {
                let steps = missed[lane] as usize;
                // SAFETY: `steps` is below what is known: there is a run for each below 1024, and
                // one for all others; a root for each digit.
                unsafe {
                    let run = runs.first.as_ptr().add(steps.min(digit));
                    halves[0][lane] = run.cast::<f32>().cast_mut();
                    halves[1][lane] = halves[0][lane].add(BLOCK);
                    let root = *runs.low.get_unchecked(steps % digit)
                        * *high_roots.get_unchecked(steps / digit);
                    squares[lane] = T::Accumulator::of(root * root);
                }
            }
            // SAFETY: there are so many numbers at each address, which are only read.
            unsafe {
                load_transposed::<BLOCK, T>(&halves[0], &mut low);
                load_transposed::<BLOCK, T>(&halves[1], &mut high);
            }
            for lane in 0..LANES {
                let run = MeanRun {
                    scale: low[0][lane],
                    rate: low[1][lane],
                    place: low[2][lane],
                    spread: low[3][lane],
                    far: high[0][lane],
                    least_root: high[1][lane],
                    of_mean: high[2][lane],
                    of_square: squares[lane],
                };
                let (mut weight, mut state) = (numbers[0][lane], StateOf::<R, T>::default());
                for (to, from) in state.values_mut().zip(&numbers[1..]) {
                    *to = from[lane];
                }
                let is_right = cursor.step.try_run(&run, &mut weight, &mut state);
                let has_missed = missed[lane] != 0;
                is_other[lane] |= has_missed & !is_right;
                // A row that has missed nothing keeps its bits.
                if has_missed & is_right {
                    numbers[0][lane] = weight;
                    for (to, from) in numbers[1..].iter_mut().zip(state.values()) {
                        to[lane] = from;
                    }
                }
            }
            let lasts = numbers[BLOCK - 1].as_mut_ptr().cast::<u32>();
            for lane in 0..LANES {
                if !is_other[lane] {
                    // SAFETY: there are so many numbers of four bytes.
                    unsafe { *lasts.add(lane) = mark };
                }
            }
            // SAFETY: as above.
            unsafe { store_transposed::<BLOCK, T>(&numbers, &blocks) };
            if is_other.contains(&true) {
                for lane in 0..count {
                    if is_other[lane] {
                        // SAFETY: promised by the caller.
                        unsafe { self.settle_apart(cursor, ids[done + lane].at(), updated) };
                    }
                }
            }
            done += count;
        }
        done
    }
}

#[cfg(test)]
mod tests {
    use crate::optimizer::{Beside, ParameterSpec, Updater};
    use nnz_arrays::parameter_memory::Table;
    use nnz_optim::{Adam, AdamW, LazyUpdate, Nadam, UpdateRule};
    use sparse_core::storage::Storage;

    const N_ROWS: usize = 3000;
    const N_STEPS: usize = 9000;

    /// The bits of weights after steps of some rows each: frequent ones, and rows that have missed
    /// thousands. The gradient of a column is that of the row times its `scale`.
    fn train<R: UpdateRule>(rule: &R, together: bool, scales: &[f32]) -> Vec<Vec<u32>> {
        let row_size = scales.len();
        let spec = ParameterSpec::new("w", N_ROWS, row_size, Some(Storage::RowSparse));
        let mut updater = Updater::<R, f32>::new(rule.clone(), vec![spec]).unwrap();
        let mut table = Table::from_values(row_size, &vec![0.5_f32; N_ROWS * row_size]);
        let (mut state, mut found) = (7_u64, Vec::new());
        let mut uniform = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 11) as f64 / (1_u64 << 53) as f64
        };
        for step in 0..N_STEPS {
            updater.begin_step().unwrap();
            let [mut rows] = updater.rows_of::<Beside, 1>([(0, &mut table)]).unwrap();
            let mut ids: Vec<u32> =
                (0..21).map(|_| (N_ROWS as f64).powf(uniform()) as u32 - 1).collect();
            ids.sort_unstable();
            ids.dedup();
            if together {
                // SAFETY: all are below `N_ROWS`.
                unsafe { rows.settle_each(row_size, &ids) };
            } else {
                ids.iter().for_each(|id| rows.settle(*id as usize));
            }
            for id in &ids {
                // From what is nothing next to epsilon to what is not.
                let grad = (10.0_f64.powf(-12.0 * uniform()) * (uniform() - 0.5)) as f32;
                for (column, scale) in scales.iter().enumerate() {
                    rows.update(*id as usize, column, grad * scale);
                }
            }
            rows.finish();
            updater.end_step().unwrap();
            if step % 4000 == 3999 {
                updater.flush(0, &mut table).unwrap();
                found.push(table.values().iter().map(|weight| weight.to_bits()).collect());
            }
        }
        found.push(table.values().iter().map(|weight| weight.to_bits()).collect());
        found
    }

    fn is_the_same<R: UpdateRule>(rule: &R) {
        assert_eq!(rule.lazy_update(), LazyUpdate::Exact);
        assert!(train(rule, true, &[1.0]) == train(rule, false, &[1.0]), "{rule:?}");
    }

    #[test]
    fn rows_that_are_settled_together_have_the_bits_of_those_settled_alone() {
        is_the_same(&Adam::default());
        // Of long runs something is left of the mean; of others nothing is from the start.
        is_the_same(&Adam { beta1: 0.99, ..Adam::default() });
        is_the_same(&Adam { beta1: 0.0, ..Adam::default() });
        is_the_same(&Adam { beta1: 0.9, beta2: 0.8, ..Adam::default() });
        is_the_same(&AdamW { weight_decay: 0.01, ..AdamW::default() });
        is_the_same(&Nadam::default());
    }

    #[test]
    fn columns_that_are_settled_together_have_the_bits_of_those_settled_alone() {
        let scales: Vec<f32> = (0..19).map(|column| 0.3_f32.powi(column)).collect();
        let rule = Adam { beta1: 0.95, ..Adam::default() };
        let wide = train(&rule, true, &scales);
        for (column, scale) in scales.iter().enumerate().step_by(3) {
            let alone = train(&rule, false, &[*scale]);
            for (wide, alone) in wide.iter().zip(&alone) {
                assert!(wide[column..].iter().step_by(scales.len()).eq(alone), "{column}");
            }
        }
    }
}
