//! A shard: the rows of one table that a worker owns.

use super::error::StoreError;
use super::leaf_sum::LeafSum;
use crate::error::Result;
use crate::metric::ExactSum;
use nnz_arrays::formats::RowSparseView;
use nnz_arrays::parameter_memory::Table;
use nnz_optim::{Correction, UpdateRule};
use nnz_step::optimizer::{ParameterSpec, TableState, Updater, Usage, clip};
use sparse_core::element::Float;
use sparse_core::storage::Storage;

/// The rows of a table whose number is `rank` modulo the number of workers: row
/// `local · size + rank` at position `local`.
pub(super) struct Shard<T: Float> {
    /// The extents of the whole table.
    pub(super) spec: ParameterSpec,
    pub(super) table: Table<T>,
    pub(super) optimizer: Option<Box<dyn Optimizer<T>>>,
    /// The rows at the start of a mean gradient.
    pub(super) snapshot: Option<Table<T>>,
    /// Gradients on their way to the update, and the values of their sum.
    pub(super) sum: LeafSum<T>,
    values: Vec<T>,
}

/// An [`Updater`] of one table, without the type of its rule. Each gradient is a step.
pub(super) trait Optimizer<T: Float>: Send {
    fn apply(
        &mut self,
        table: &mut Table<T>,
        gradient: RowSparseView<'_, T>,
        correction: Correction,
    ) -> Result<()>;
    fn settle(&mut self, table: &mut Table<T>, rows: &[u64]) -> Result<()>;
    fn flush(&mut self, table: &mut Table<T>) -> Result<()>;
    fn clock(&self) -> u64;
    fn learning_rate(&self) -> f64;
    fn set_learning_rate(&mut self, learning_rate: f64) -> Result<()>;
    /// Whether the rule adds a mean gradient.
    fn corrects(&self) -> bool;
    /// Starts with a mean gradient of 0.
    fn begin_mean(&mut self, table: &mut Table<T>) -> Result<()>;
    /// Undoes the steps since step `clock`, except for the sums of gradients of `n_rows` samples,
    /// which become means.
    fn end_mean(&mut self, table: &mut Table<T>, clock: u64, n_rows: u64) -> Result<()>;
    /// The state of these rows; `kept` are their weights at the start of the mean gradient.
    fn state(&self, table: &Table<T>, kept: Option<&Table<T>>) -> TableState<T>;
    /// Restores a state, and writes the weights.
    fn restore(&mut self, table: &mut Table<T>, state: TableState<T>) -> Result<()>;
}

impl<R: UpdateRule, T: Float> Optimizer<T> for Updater<R, T> {
    fn apply(
        &mut self,
        table: &mut Table<T>,
        gradient: RowSparseView<'_, T>,
        correction: Correction,
    ) -> Result<()> {
        if R::CORRECTS {
            self.prepare_steps(correction, Usage::Nothing, |_| {})?;
        }
        self.begin_step()?;
        let storage = self.parameters().next().and_then(|spec| spec.gradient);
        match storage {
            Some(Storage::RowSparse) => self.apply_row_sparse(0, table, gradient)?,
            _ => self.apply_dense(0, table, gradient.values())?,
        }
        self.end_step()?;
        self.end_prepared_steps();
        Ok(())
    }

    fn settle(&mut self, table: &mut Table<T>, rows: &[u64]) -> Result<()> {
        Ok(self.settle_rows(0, table, rows.iter().map(|row| *row as usize))?)
    }

    fn flush(&mut self, table: &mut Table<T>) -> Result<()> {
        Ok(Updater::flush(self, 0, table)?)
    }

    fn clock(&self) -> u64 {
        Updater::clock(self)
    }

    fn learning_rate(&self) -> f64 {
        Updater::learning_rate(self)
    }

    fn set_learning_rate(&mut self, learning_rate: f64) -> Result<()> {
        Ok(Updater::set_learning_rate(self, learning_rate)?)
    }

    fn corrects(&self) -> bool {
        R::CORRECTS
    }

    fn begin_mean(&mut self, table: &mut Table<T>) -> Result<()> {
        self.reset_mean([table], None, None);
        Ok(())
    }

    fn end_mean(&mut self, table: &mut Table<T>, clock: u64, n_rows: u64) -> Result<()> {
        Updater::flush(self, 0, &mut *table)?;
        self.end_gathering([table], clock, n_rows);
        Ok(())
    }

    fn state(&self, table: &Table<T>, kept: Option<&Table<T>>) -> TableState<T> {
        self.table_state(0, table, kept)
    }

    fn restore(&mut self, table: &mut Table<T>, state: TableState<T>) -> Result<()> {
        Ok(self.restore_tables([table], &[Some(state)])?)
    }
}

/// How many of `n_rows` rows worker `rank` of `size` owns.
pub(super) fn n_owned(n_rows: usize, rank: usize, size: usize) -> usize {
    (n_rows + size - 1 - rank.min(size - 1)) / size
}

impl<T: Float> Shard<T> {
    /// The rows of worker `rank` of `size`, of a table with these values. O(values).
    pub(super) fn new(spec: ParameterSpec, values: &[T], rank: usize, size: usize) -> Self {
        let n_owned = n_owned(spec.n_rows, rank, size);
        let mut table = Table::zeros(n_owned, spec.row_size);
        // Zeros stay as they are: not mapped, and known to be zeros.
        if values.iter().any(|value| *value != T::zero() || value.is_sign_negative()) {
            let row_size = spec.row_size.max(1);
            let rows = values.chunks_exact(row_size).skip(rank).step_by(size);
            let own = table.values_mut().chunks_exact_mut(row_size);
            own.zip(rows).for_each(|(own, row)| own.copy_from_slice(row));
        }
        Shard {
            spec,
            table,
            optimizer: None,
            snapshot: None,
            sum: LeafSum::new(),
            values: Vec::new(),
        }
    }

    /// The rule for these rows.
    ///
    /// # Errors
    ///
    /// As [`Updater::new`].
    pub(super) fn optimizer<R: UpdateRule>(&self, rule: R) -> Result<Box<dyn Optimizer<T>>> {
        let mut spec = self.spec.clone();
        spec.n_rows = self.table.n_rows();
        Ok(Box::new(Updater::<R, T>::new(rule, vec![spec])?))
    }

    /// Updates the rows by `factor` times the summed gradient or, without a rule, replaces all of
    /// them.
    pub(super) fn apply_sum(&mut self, correction: Correction, factor: f64) -> Result<()> {
        self.values.clear();
        let no_ids: &[u64] = &[];
        let (ids, values) = match self.sum.nodes() {
            [root] => (&root.ids[..], &root.values[..]),
            _ => (no_ids, &[][..]),
        };
        self.values.extend(values.iter().map(|value| T::narrow(*value)));
        clip::scale(&mut self.values, factor);
        let shape = [self.table.n_rows(), self.table.row_size()];
        let is_listed = self.spec.gradient == Some(Storage::RowSparse);
        if !is_listed && self.values.is_empty() {
            // No leaf had a row.
            self.values.resize(self.table.len(), T::zero());
        }
        let gradient = if is_listed {
            RowSparseView::new(shape, ids, &self.values)?
        } else {
            RowSparseView::all(shape, &self.values)?
        };
        match &mut self.optimizer {
            Some(optimizer) => optimizer.apply(&mut self.table, gradient, correction)?,
            None => {
                let row_size = self.table.row_size();
                let stored = self.table.values_mut();
                stored.fill(T::zero());
                for (row, values) in gradient.iter_rows() {
                    stored[row * row_size..(row + 1) * row_size].copy_from_slice(values);
                }
            }
        }
        self.sum.clear();
        Ok(())
    }

    /// The rows at the start of the mean gradient.
    ///
    /// # Errors
    ///
    /// [`StoreError::NoSnapshot`].
    pub(super) fn snapshot(&self) -> Result<&Table<T>, StoreError> {
        let snapshot = self.snapshot.as_ref();
        snapshot.ok_or_else(|| StoreError::NoSnapshot { key: self.spec.name.to_string() })
    }

    /// Adds the squares of the elements of the summed gradient.
    pub(super) fn add_squares(&self, squares: &mut ExactSum) {
        for value in self.sum.nodes().iter().flat_map(|node| &node.values) {
            let value = T::narrow(*value).as_f64();
            squares.add(value * value);
        }
    }

    /// Catches up all rows.
    pub(super) fn flush(&mut self) -> Result<()> {
        match &mut self.optimizer {
            Some(optimizer) => optimizer.flush(&mut self.table),
            None => Ok(()),
        }
    }
}
