//! An updater without the type of its rule: code for epochs, callbacks and files is compiled once
//! for all rules.

use super::checkpoint::error::CheckpointError;
use super::checkpoint::run_file::TensorsOf;
use super::checkpoint::tensor::Take;
use crate::error::Result;
use nnz_arrays::bytes::{self, PIECE};
use nnz_arrays::parameter_memory::Table;
use nnz_optim::{StateBlock, UpdateRule};
use nnz_step::in_library_by_rule;
use nnz_step::optimizer::{
    Precision, RecordSnapshot, ReductionSnapshot, Snapshot, StateOf, Updater,
};
use sparse_core::element::Float;
use std::io;

/// The interface of an [`Updater`] for callbacks and files; methods are documented there.
pub(super) trait AnyUpdater<T: Float> {
    fn clock(&self) -> u64;

    fn learning_rate(&self) -> f64;

    fn set_learning_rate(&mut self, learning_rate: f64) -> Result<()>;

    fn set_records_outputs(&mut self, records: bool);

    fn n_rows_touched(&self, parameter: usize) -> Option<u64>;

    /// See [`Updater::copy_settled`].
    fn copy_settled(&self, parameter: usize, table: &Table<T>, row: usize, to: &mut [T]);

    /// See [`Updater::precision`].
    fn precision(
        &self,
        parameter: usize,
        table: &Table<T>,
        gradients: (&[usize], &[T]),
        n_steps: u64,
    ) -> Precision;

    /// The number of its parameters.
    fn n_parameters(&self) -> usize;

    fn settings(&self) -> Vec<(String, String)>;

    fn is_settled(&self) -> bool;

    fn snapshot(&self, tables: &[&Table<T>]) -> Snapshot;

    fn reduction(&self) -> ReductionSnapshot;

    fn derivatives(&self) -> &[T::Accumulator];

    fn kept_snapshot(&self) -> &[Table<T>];

    fn knows_settled(&self, parameter: usize) -> bool;

    /// Passes on the bytes of the last steps of a parameter's rows.
    fn encode_settled(&self, parameter: usize, table: &Table<T>, take: Take<'_>) -> io::Result<()>;

    /// The tensors of the states of a parameter: by the names of the rule, or by number if it has
    /// none.
    fn state_names(&self, parameter: &str) -> Vec<String>;

    /// The shape of a state of a parameter: that of the parameter, or one number a row.
    fn state_shape(&self, shape: &[usize]) -> Vec<usize>;

    /// Passes on the bytes of one state of a parameter.
    fn encode_state(
        &self,
        parameter: usize,
        table: &Table<T>,
        component: usize,
        take: Take<'_>,
    ) -> io::Result<()>;

    fn check_snapshot(&self, snapshot: &Snapshot) -> Result<()>;

    /// Becomes the saved updater, except for the states, which are [read](Self::read_state) next.
    fn restore(
        &mut self,
        snapshot: Snapshot,
        reduction: &ReductionSnapshot,
        derivatives: Vec<T::Accumulator>,
        kept: Vec<Table<T>>,
    );

    fn weights_mut<'t>(&self, saved: &RecordSnapshot, table: &'t mut Table<T>) -> &'t mut [T];

    /// Reads one state of a parameter from its place.
    fn read_state(
        &mut self,
        parameter: usize,
        component: usize,
        file: &mut TensorsOf<'_>,
        offset: u64,
    ) -> Result<(), CheckpointError>;
}

/// An updater without the type of its rule, as [the library](nnz_step::in_library) has it.
pub(super) fn erased<R: UpdateRule, T: Float>(
    updater: &Updater<R, T>,
) -> &(dyn AnyUpdater<T> + 'static) {
    fn erase<R: UpdateRule, T: Float>(updater: &Updater<R, T>) -> &(dyn AnyUpdater<T> + 'static) {
        updater
    }
    in_library_by_rule!(<R, T> erase::<R, T> => (
        updater: &Updater<R, T>,
    ) -> &(dyn AnyUpdater<T> + 'static))
}

/// [`erased`], to be changed.
pub(super) fn erased_mut<R: UpdateRule, T: Float>(
    updater: &mut Updater<R, T>,
) -> &mut (dyn AnyUpdater<T> + 'static) {
    fn erase<R: UpdateRule, T: Float>(
        updater: &mut Updater<R, T>,
    ) -> &mut (dyn AnyUpdater<T> + 'static) {
        updater
    }
    in_library_by_rule!(<R, T> erase::<R, T> => (
        updater: &mut Updater<R, T>,
    ) -> &mut (dyn AnyUpdater<T> + 'static))
}

impl<R: UpdateRule, T: Float> AnyUpdater<T> for Updater<R, T> {
    fn clock(&self) -> u64 {
        self.clock()
    }

    fn learning_rate(&self) -> f64 {
        self.learning_rate()
    }

    fn set_learning_rate(&mut self, learning_rate: f64) -> Result<()> {
        Ok(self.set_learning_rate(learning_rate)?)
    }

    fn set_records_outputs(&mut self, records: bool) {
        self.set_records_outputs(records);
    }

    fn n_rows_touched(&self, parameter: usize) -> Option<u64> {
        self.n_rows_touched(parameter)
    }

    fn copy_settled(&self, parameter: usize, table: &Table<T>, row: usize, to: &mut [T]) {
        self.copy_settled(parameter, table, row, to);
    }

    fn precision(
        &self,
        parameter: usize,
        table: &Table<T>,
        gradients: (&[usize], &[T]),
        n_steps: u64,
    ) -> Precision {
        self.precision(parameter, table, gradients, n_steps)
    }

    fn n_parameters(&self) -> usize {
        self.parameters().len()
    }

    fn settings(&self) -> Vec<(String, String)> {
        self.settings()
    }

    fn is_settled(&self) -> bool {
        self.is_settled()
    }

    fn snapshot(&self, tables: &[&Table<T>]) -> Snapshot {
        self.snapshot(tables)
    }

    fn reduction(&self) -> ReductionSnapshot {
        self.reduction()
    }

    fn derivatives(&self) -> &[T::Accumulator] {
        self.derivatives()
    }

    fn kept_snapshot(&self) -> &[Table<T>] {
        self.kept_snapshot()
    }

    fn knows_settled(&self, parameter: usize) -> bool {
        self.knows_settled(parameter)
    }

    fn encode_settled(&self, parameter: usize, table: &Table<T>, take: Take<'_>) -> io::Result<()> {
        let mut result = Ok(());
        let mut piece = Vec::with_capacity(size_of::<u32>() * PIECE);
        self.visit_settled(parameter, table, |last| {
            piece.extend(last.to_le_bytes());
            if piece.len() >= size_of::<u32>() * PIECE && result.is_ok() {
                result = take(&piece);
                piece.clear();
            }
        });
        result.and_then(|()| take(&piece))
    }

    fn state_names(&self, parameter: &str) -> Vec<String> {
        let state = StateOf::<R, T>::default();
        let components = 0..state.values().count();
        components
            .map(|component| match R::STATES.get(component) {
                Some(name) => format!("{parameter}.{name}"),
                None => format!("{parameter}.state{component}"),
            })
            .collect()
    }

    fn state_shape(&self, shape: &[usize]) -> Vec<usize> {
        if <StateOf<R, T> as StateBlock<T::Accumulator>>::BY_ROW {
            vec![shape.first().copied().unwrap_or(1)]
        } else {
            shape.to_vec()
        }
    }

    fn encode_state(
        &self,
        parameter: usize,
        table: &Table<T>,
        component: usize,
        take: Take<'_>,
    ) -> io::Result<()> {
        let mut result = Ok(());
        let mut piece = Vec::with_capacity(PIECE);
        self.visit_states(parameter, table, |states| {
            piece.extend(states.iter().filter_map(|state| state.values().nth(component)));
            if piece.len() >= PIECE && result.is_ok() {
                result = bytes::encode(&piece, &mut *take);
                piece.clear();
            }
        });
        result.and_then(|()| bytes::encode(&piece, take))
    }

    fn check_snapshot(&self, snapshot: &Snapshot) -> Result<()> {
        Ok(self.check_snapshot(snapshot)?)
    }

    fn restore(
        &mut self,
        snapshot: Snapshot,
        reduction: &ReductionSnapshot,
        derivatives: Vec<T::Accumulator>,
        kept: Vec<Table<T>>,
    ) {
        self.restore(snapshot);
        self.restore_reduction(reduction, derivatives, kept);
    }

    fn weights_mut<'t>(&self, saved: &RecordSnapshot, table: &'t mut Table<T>) -> &'t mut [T] {
        self.weights_mut(saved, table)
    }

    fn read_state(
        &mut self,
        parameter: usize,
        component: usize,
        file: &mut TensorsOf<'_>,
        offset: u64,
    ) -> Result<(), CheckpointError> {
        file.read_state(offset, self.states_mut(parameter), component)
    }
}
