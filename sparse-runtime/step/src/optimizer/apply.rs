//! Updates of a parameter by a complete gradient, for graphs whose step is not fused.

use super::dense_steps::{add_all, update_all};
use super::error::OptimizerError;
use super::memory::Weights;
use super::rows::RowUpdater;
use super::update_kind::{Beside, General, UpdateKind, WithSlots};
use super::updater::Updater;
use crate::error::Result;
use crate::in_library_by_rule;
use crate::linear::is_large;
use crate::model::{Model, RowSet};
use nnz_arrays::formats::RowSparseView;
use nnz_device::simd;
use nnz_optim::{Step, UpdateRule};
use sparse_core::element::Float;
use sparse_core::storage::Storage;

impl<R: UpdateRule, T: Float> Updater<R, T> {
    /// Brings rows up to date before they are read. O(rows given) in `Exact`, nothing otherwise.
    ///
    /// # Errors
    ///
    /// As [`rows`](Self::rows); a row outside the table, before which all others were settled.
    pub fn settle_rows<'a>(
        &'a mut self,
        parameter: usize,
        weights: impl Into<Weights<'a, T>>,
        ids: impl IntoIterator<Item = usize>,
    ) -> Result<()> {
        let mut ids = ids.into_iter();
        self.settle_by(parameter, weights.into(), &mut |settle| ids.try_for_each(settle))
    }

    /// Brings the rows that a batch reads up to date, as the model's
    /// [`PARAMETERS`](Model::PARAMETERS) say. O(rows read, as often as they occur) in `Exact`.
    ///
    /// # Errors
    ///
    /// As [`settle_rows`](Self::settle_rows).
    pub fn settle_read<'a, M: Model<Element = T>>(
        &'a mut self,
        parameter: usize,
        weights: impl Into<Weights<'a, T>>,
        batch: &M::Batch<'_>,
    ) -> Result<()> {
        let weights = weights.into();
        self.check(parameter, &weights)?;
        let reads = M::PARAMETERS.get(parameter).map_or(RowSet::All, |info| info.reads);
        if reads == RowSet::All {
            return self.flush(parameter, weights);
        }
        self.settle_by(parameter, weights, &mut |settle| reads.visit::<M>(batch, settle))
    }

    /// Settles the rows with which `visit` calls what it is given; in one copy for a rule.
    fn settle_by(
        &mut self,
        parameter: usize,
        weights: Weights<'_, T>,
        visit: &mut dyn FnMut(Settle<'_>) -> Result<()>,
    ) -> Result<()> {
        let updater = self;
        in_library_by_rule!(<R, T> Updater::<R, T>::settle_visited => (
            updater: &mut Updater<R, T>,
            parameter: usize,
            weights: Weights<'_, T>,
            visit: &mut dyn FnMut(Settle<'_>) -> Result<()>,
        ) -> Result<()>)
    }

    fn settle_visited(
        &mut self,
        parameter: usize,
        weights: Weights<'_, T>,
        visit: &mut dyn FnMut(Settle<'_>) -> Result<()>,
    ) -> Result<()> {
        self.check(parameter, &weights)?;
        let name = self.parameters[parameter].spec.name.clone();
        if !self.parameters[parameter].beside {
            let mut rows = self.rows_to_settle::<General>(parameter, weights)?;
            visit(&mut |row| settle(&mut rows, &name, row))
        } else if self.keeps_slots(parameter, &weights) {
            let mut rows = self.rows_to_settle::<WithSlots<Beside>>(parameter, weights)?;
            visit(&mut |row| settle(&mut rows, &name, row))
        } else {
            let mut rows = self.rows_to_settle::<Beside>(parameter, weights)?;
            visit(&mut |row| settle(&mut rows, &name, row))
        }
    }

    /// Applies a row_sparse gradient, in the rule's mode. O(rows of the gradient), in `Dense`
    /// O(rows).
    ///
    /// # Errors
    ///
    /// As [`rows`](Self::rows); a gradient of another shape; a parameter whose gradient was said to
    /// be dense.
    pub fn apply_row_sparse<'a>(
        &'a mut self,
        parameter: usize,
        weights: impl Into<Weights<'a, T>>,
        grad: RowSparseView<'_, T>,
    ) -> Result<()> {
        let (updater, weights) = (self, weights.into());
        in_library_by_rule!(<R, T> Updater::<R, T>::apply_rows => (
            updater: &mut Updater<R, T>,
            parameter: usize,
            weights: Weights<'_, T>,
            grad: RowSparseView<'_, T>,
        ) -> Result<()>)
    }

    fn apply_rows(
        &mut self,
        parameter: usize,
        weights: Weights<'_, T>,
        grad: RowSparseView<'_, T>,
    ) -> Result<()> {
        self.check(parameter, &weights)?;
        let spec = &self.parameters[parameter].spec;
        let shape = grad.shape();
        if shape.n_rows() != spec.n_rows || shape.row_size() != spec.row_size {
            return Err(OptimizerError::GradientShape {
                parameter: spec.name.to_string(),
                n_rows: spec.n_rows,
                row_size: spec.row_size,
                found: *shape,
            }
            .into());
        }
        if spec.gradient != Some(Storage::RowSparse) {
            return Err(OptimizerError::GradientStorage { parameter: spec.name.to_string() }.into());
        }
        if self.parameters[parameter].beside {
            update(self.rows_as::<Beside>(parameter, weights)?, grad)
        } else {
            update(self.rows(parameter, weights)?, grad)
        }
        Ok(())
    }

    /// Applies a dense gradient: every row is updated. O(values).
    ///
    /// # Errors
    ///
    /// As [`rows`](Self::rows); a gradient with another number of values.
    #[inline]
    pub fn apply_dense<'a>(
        &mut self,
        parameter: usize,
        weights: impl Into<Weights<'a, T>>,
        grad: &[T],
    ) -> Result<()> {
        let (updater, weights) = (self, weights.into());
        in_library_by_rule!(<R, T> Updater::<R, T>::apply_values => (
            updater: &mut Updater<R, T>,
            parameter: usize,
            weights: Weights<'_, T>,
            grad: &[T],
        ) -> Result<()>)
    }

    fn apply_values(
        &mut self,
        parameter: usize,
        mut weights: Weights<'_, T>,
        grad: &[T],
    ) -> Result<()> {
        self.check(parameter, &weights)?;
        let spec = &self.parameters[parameter].spec;
        if grad.len() != weights.len() {
            return Err(OptimizerError::GradientShape {
                parameter: spec.name.to_string(),
                n_rows: spec.n_rows,
                row_size: spec.row_size,
                found: [grad.len()].into(),
            }
            .into());
        }
        self.check_begun(parameter)?;
        // Rows that wait for idle steps take them first.
        self.settle_all(parameter, &mut weights);
        self.ready::<General>(parameter, &mut weights);
        let values = match weights {
            Weights::Values(values) => values,
            Weights::Table(table) => table.values_mut(),
        };
        let is_plain = self.is_plain(parameter);
        let table = &mut self.parameters[parameter];
        let step = self.groups[table.group].step;
        let row_size = table.spec.row_size;
        match step.gradient_factor().filter(|_| is_plain) {
            Some(factor) => simd::wide(
                #[inline(always)]
                || add_all(factor, values, grad),
            ),
            None => update_all(&step, values, &mut table.states, grad, row_size),
        }
        // Every row is past this step.
        table.base = self.clock + 1;
        table.touched.give_up();
        table.finished = true;
        Ok(())
    }
}

/// Settles a row.
type Settle<'s> = &'s mut dyn FnMut(usize) -> Result<()>;

#[inline]
fn settle<R: UpdateRule, T: Float, K: UpdateKind>(
    rows: &mut RowUpdater<'_, R, T, K>,
    name: &str,
    row: usize,
) -> Result<()> {
    rows.check_row(name, row)?;
    rows.settle(row);
    Ok(())
}

/// Rows between asking for one and updating it.
const ROWS_AHEAD: usize = 16;

fn update<R: UpdateRule, T: Float, K: UpdateKind>(
    mut rows: RowUpdater<'_, R, T, K>,
    grad: RowSparseView<'_, T>,
) {
    let is_large = is_large(&rows);
    for (position, (row, values)) in grad.iter_rows().enumerate() {
        if let Some(row) = grad.row_id(position + ROWS_AHEAD).filter(|_| is_large) {
            rows.prefetch(row);
        }
        rows.settle(row);
        rows.update_row(row, values);
    }
    rows.finish();
}
