//! The last step of each table row, beside its weights or in an array.

use nnz_device::prefetch::prefetch_at;
use std::marker::PhantomData;

/// The last step of each table row. It lies beside the row's weights and states if a row of
/// [blocks](nnz_arrays::parameter_memory::Layout) has unused bytes, so that one cache line has the
/// whole row; otherwise in an array. By value, like [`RowCursor`](super::RowCursor).
///
/// Invariant: from `first` on there are `n_rows` numbers, `stride` bytes from one to the next,
/// borrowed for `'a`.
#[derive(Clone, Copy, Debug)]
pub(super) struct LastSteps<'a> {
    first: *mut u8,
    stride: usize,
    n_rows: usize,
    of: PhantomData<&'a mut [u32]>,
}

impl<'a> LastSteps<'a> {
    /// Unused, for rules that keep no last steps.
    pub(super) const NONE: LastSteps<'static> =
        LastSteps { first: std::ptr::null_mut(), stride: 0, n_rows: 0, of: PhantomData };

    /// An array of them.
    #[inline(always)]
    pub(super) fn apart(last: &'a mut [u32]) -> Self {
        let n_rows = last.len();
        LastSteps {
            first: last.as_mut_ptr().cast(),
            stride: size_of::<u32>(),
            n_rows,
            of: PhantomData,
        }
    }

    /// In blocks.
    ///
    /// # Safety
    ///
    /// The invariant; all are aligned.
    #[inline(always)]
    pub(super) unsafe fn beside(first: *mut u8, stride: usize, n_rows: usize) -> Self {
        LastSteps { first, stride, n_rows, of: PhantomData }
    }

    /// The same, of numbers that are known to be `stride` bytes apart, if there are any.
    #[inline(always)]
    pub(super) fn known_to_be_apart(self, stride: usize) -> Self {
        debug_assert!(self.stride == stride || self.n_rows == 0);
        LastSteps { stride, ..self }
    }

    /// The same, of numbers that are known to lie there, if there are any.
    #[inline(always)]
    pub(super) fn known_to_lie(self, first: *mut u8, stride: usize) -> Self {
        debug_assert!((self.first, self.stride) == (first, stride) || self.n_rows == 0);
        LastSteps { first, stride, ..self }
    }

    /// Whether last steps are unused.
    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.n_rows == 0
    }

    /// Bytes of arrays of their own.
    #[inline(always)]
    pub(super) fn bytes_apart(&self) -> usize {
        if self.stride == size_of::<u32>() { size_of::<u32>() * self.n_rows } else { 0 }
    }

    /// The last step of a row.
    ///
    /// # Safety
    ///
    /// `row < n_rows`, and nothing else refers to it while the reference is there.
    #[inline(always)]
    pub(super) unsafe fn at<'r>(self, row: usize) -> &'r mut u32
    where
        'a: 'r,
    {
        debug_assert!(row < self.n_rows);
        // SAFETY: promised by the caller; the invariant.
        unsafe { &mut *self.first.add(row * self.stride).cast() }
    }

    /// The last step of a row; `None` if it is out of range.
    #[inline(always)]
    pub(super) fn get_mut(&mut self, row: usize) -> Option<&mut u32> {
        // SAFETY: compared here; borrowed as `self` is, of which no copy is used meanwhile.
        (row < self.n_rows).then(|| unsafe { self.at(row) })
    }

    /// Prefetches the last step of a row, unless it comes with the row. Any row is allowed.
    #[inline(always)]
    pub(super) fn prefetch(self, row: usize) {
        if self.stride == size_of::<u32>() {
            prefetch_at(
                self.first.wrapping_add(row.wrapping_mul(self.stride)).cast_const().cast::<u32>(),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::optimizer::samples::Usage;
    use crate::optimizer::{ParameterSpec, Updater};
    use nnz_arrays::parameter_memory::Table;
    use nnz_optim::{Correction, LazyUpdate, Sgd, Svrg, UpdateRule};
    use sparse_core::element::Float;
    use sparse_core::storage::Storage;

    const N_ROWS: usize = 40;

    type Rule = Svrg<Sgd>;

    /// A mean gradient is gathered, then applied, with a flush now and then. `is_beside` says of a
    /// step whether the states lie in the table.
    fn train<T: Float<Accumulator = T>>(
        lazy_update: LazyUpdate,
        momentum: f64,
        row_size: usize,
        is_beside: fn(usize) -> bool,
    ) -> Vec<f64> {
        let mut rule =
            Svrg { update_freq: 1, rule: Sgd { momentum, weight_decay: 0.02, ..Sgd::default() } };
        rule.set_lazy_update(lazy_update);
        let spec = ParameterSpec::new("w", N_ROWS, row_size, Some(Storage::RowSparse));
        let mut updater = Updater::<Rule, T>::new(rule, vec![spec]).unwrap();
        let drawn: Vec<T> = (0..N_ROWS * row_size).map(|i| T::of((i as f64).cos())).collect();
        let mut table = Table::from_values(row_size, &drawn);
        for t in 0..200 {
            let correction = if t < 20 {
                Correction::Gather { share: 0.1 }
            } else {
                Correction::Apply { share: 0.0 }
            };
            updater.prepare_steps(correction, Usage::default(), |_| {}).unwrap();
            updater.begin_step().unwrap();
            macro_rules! update {
                ($rows:expr) => {{
                    let mut rows = $rows;
                    for row in [t * 7 % 31, (t * 7 + 3) % 31] {
                        rows.settle(row);
                        for column in 0..row_size {
                            let pull = T::of((t as f64).sin()) + rows.row(row)[column];
                            rows.update(row, column, pull);
                        }
                    }
                    rows.finish();
                }};
            }
            if is_beside(t) {
                let [rows] =
                    updater.rows_of::<crate::optimizer::Beside, 1>([(0, &mut table)]).unwrap();
                update!(rows);
            } else {
                update!(updater.rows(0, &mut table).unwrap());
            }
            updater.end_step().unwrap();
            if t % 50 == 30 {
                updater.flush(0, &mut table).unwrap();
            }
        }
        updater.flush(0, &mut table).unwrap();
        table.values().iter().map(|value| value.as_f64()).collect()
    }

    /// Whether the last steps lie in the table or apart, and whenever they move, rows catch up with
    /// the same steps.
    #[test]
    fn where_last_steps_lie_changes_nothing() {
        for (momentum, row_size) in [(0.0, 1), (0.9, 1), (0.0, 5)] {
            let exact = |is_beside| train::<f64>(LazyUpdate::Exact, momentum, row_size, is_beside);
            let apart = exact(|_| false);
            assert_eq!(exact(|_| true), apart, "{momentum}, {row_size}");
            assert_eq!(exact(|t| t / 15 % 2 == 0), apart, "{momentum}, {row_size}");
            let dense = train::<f64>(LazyUpdate::Dense, momentum, row_size, |_| true);
            for (exact, dense) in apart.iter().zip(&dense) {
                assert!((exact - dense).abs() < 1e-11, "{momentum}, {row_size}: {exact} {dense}");
            }
            let single = |is_beside| train::<f32>(LazyUpdate::Exact, momentum, row_size, is_beside);
            assert_eq!(single(|t| t / 15 % 2 == 0), single(|_| false), "{momentum}, {row_size}");
        }
    }

    /// What is visited of another table, and what a step finds there, are as many zeros.
    #[test]
    fn a_table_that_took_the_place_of_another_has_nothing() {
        let rule = Svrg { update_freq: 1, rule: Sgd { weight_decay: 0.02, ..Sgd::default() } };
        let spec = ParameterSpec::new("w", N_ROWS, 1, Some(Storage::RowSparse));
        let mut updater = Updater::<Rule, f32>::new(rule, vec![spec]).unwrap();
        let mut table = Table::from_values(1, &[1.0; N_ROWS]);
        for share in [1.0, 0.0] {
            let correction = if share > 0.0 {
                Correction::Gather { share }
            } else {
                Correction::Apply { share }
            };
            updater.prepare_steps(correction, Usage::default(), |_| {}).unwrap();
            updater.begin_step().unwrap();
            let [mut rows] =
                updater.rows_of::<crate::optimizer::Beside, 1>([(0, &mut table)]).unwrap();
            rows.settle(3);
            rows.update(3, 0, 0.5);
            rows.finish();
            updater.end_step().unwrap();
        }
        let found = |table: &Table<f32>| {
            let (mut last, mut means) = (Vec::new(), Vec::new());
            updater.visit_settled(0, table, |step| last.push(step));
            updater.visit_states(0, table, |states| means.extend(states.iter().map(|s| s.mean)));
            assert_eq!((last.len(), means.len()), (N_ROWS, N_ROWS));
            (last.into_iter().max(), means[3])
        };
        assert_eq!(found(&table), (Some(3), 0.5));
        assert_eq!(found(&Table::from_values(1, &[1.0; N_ROWS])), (Some(0), 0.0));
    }
}
