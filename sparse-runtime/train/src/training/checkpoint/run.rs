//! A run of training in a file: parameters, optimizer state, position.

use super::error::CheckpointError;
use super::file::{open, read_into, write};
use super::load_options::LoadOptions;
use super::metadata::RUN;
use super::run_file::{
    DERIVATIVES, RunFile, TensorsOf, history_names, metric_name, settled_name, snapshot_name,
};
use super::run_state::{KEPT_REPORTS, Run};
use super::tensor::{Tensor, dtype};

use crate::error::Result;
use crate::training::any_updater::{AnyUpdater, erased, erased_mut};
use nnz_arrays::in_library;
use nnz_optim::UpdateRule;
use nnz_step::model::{AnyModel, Model};
use nnz_step::optimizer::Updater;
use safetensors::tensor::Dtype;
use sparse_core::element::{Float, Stored};
use std::path::Path;

/// Saves a model in training with its updater, between two steps: [`load_run`] continues from it to
/// the bit.
///
/// Nothing is caught up for it. Within an epoch, where table rows miss steps, the file has their
/// weights as they are and the history of these steps. After an epoch no row misses a step, and the
/// file suits [`load`](super::load) as well.
///
/// The file has
///
/// - a tensor for each state of the rule, `w.velocity`;
/// - `w.settled` with 4 bytes a table row, where rows are caught up later, and the history of steps
///   since the last flush, 40 bytes for each change of the learning rate;
/// - for a rule that corrects gradients, the mean gradient as a state, and the derivatives of the
///   samples, `samples.derivatives`, or the parameters at the snapshot, `w.snapshot`.
///
/// O(values).
///
/// # Errors
///
/// As [`save`](super::save); an updater of another model.
pub fn save_run<M, R>(
    model: &M,
    updater: &Updater<R, M::Element>,
    run: &Run,
    path: impl AsRef<Path>,
) -> Result<()>
where
    M: Model,
    R: UpdateRule,
{
    save_any(model, erased(updater), run, path.as_ref())
}

/// [`save_run`], compiled once for elements of a type.
pub(in crate::training) fn save_any<T: Float>(
    model: &dyn AnyModel<T>,
    updater: &dyn AnyUpdater<T>,
    run: &Run,
    path: &Path,
) -> Result<()> {
    in_library!(<T> save_all::<T> => (
        model: &dyn AnyModel<T>,
        updater: &dyn AnyUpdater<T>,
        run: &Run,
        path: &Path,
    ) -> Result<()>)
}

fn save_all<T: Float>(
    model: &dyn AnyModel<T>,
    updater: &dyn AnyUpdater<T>,
    run: &Run,
    path: &Path,
) -> Result<()> {
    let parameters = model.parameters();
    if parameters.len() != updater.n_parameters() {
        return Err(
            nnz_step::optimizer::OptimizerError::OtherModel { model: model.facts().name }.into()
        );
    }
    let tables: Vec<_> = parameters.iter().map(|parameter| parameter.table).collect();
    let snapshot = updater.snapshot(&tables);
    let text = RunFile {
        run: Run {
            position: run.position,
            totals: run.totals,
            metrics: Vec::new(),
            epochs: run.epochs[run.epochs.len().saturating_sub(KEPT_REPORTS)..].to_vec(),
            callbacks: run.callbacks.clone(),
            settings: run.settings.clone(),
        },
        updater: snapshot.clone(),
        reduction: updater.reduction(),
        settings: updater.settings(),
    }
    .text(path)?;
    let mut tensors = Vec::new();
    for (index, (parameter, saved)) in parameters.iter().zip(&snapshot.parameters).enumerate() {
        let name = parameter.name;
        if saved.has_states {
            let shape = updater.state_shape(&parameter.shape);
            for (component, name) in updater.state_names(name).into_iter().enumerate() {
                let table = parameter.table;
                tensors.push(Tensor::new(
                    name,
                    dtype(<T::Accumulator as Stored>::TYPE),
                    shape.clone(),
                    move |take| updater.encode_state(index, table, component, take),
                ));
            }
        }
        if updater.knows_settled(index) {
            let table = parameter.table;
            tensors.push(Tensor::new(
                settled_name(name),
                Dtype::U32,
                vec![table.n_rows()],
                move |take| updater.encode_settled(index, table, take),
            ));
        }
    }
    for (index, group) in snapshot.groups.iter().enumerate() {
        let [starts, maps] = history_names(index);
        tensors.push(Tensor::of_integers(starts, Dtype::U64, &group.starts, u64::to_le_bytes));
        tensors.push(Tensor::of_values(maps, vec![group.maps.len()], &group.maps));
    }
    for (parameter, kept) in parameters.iter().zip(updater.kept_snapshot()) {
        let shape = parameter.shape.to_vec();
        tensors.push(Tensor::of_values(snapshot_name(parameter.name), shape, kept.values()));
    }
    let derivatives = updater.derivatives();
    if !derivatives.is_empty() {
        let name = DERIVATIVES.to_owned();
        tensors.push(Tensor::of_values(name, vec![derivatives.len()], derivatives));
    }
    for (index, numbers) in run.metrics.iter().enumerate() {
        tensors.push(Tensor::of_values(metric_name(index), vec![numbers.len()], numbers));
    }
    tensors.push(Tensor::new(RUN.to_owned(), Dtype::U8, vec![text.len()], |take| take(&text)));
    write(model, path, updater.is_settled(), &tensors, &[])
}

/// Loads the file of [`save_run`] into a model and an updater that were created as for the run.
///
/// Everything is checked before anything is changed: the checks of [`load`](super::load), the
/// checksums of all states, and that the updater has the same rule, hyperparameters and scales.
///
/// ```
/// use nnz::core::update_rules::Sgd;
/// use nnz::data::{BatchOptions, Batches, DataSource, Dataset};
/// use nnz::model::Model;
/// use nnz::optimizer::Updater;
/// use nnz::training::checkpoint::{self, Run};
/// use nnz::training::fit_from;
///
/// /// Your own loop, which continues where it was interrupted, also within an epoch.
/// fn train<M: Model>(
///     model: &mut M,
///     data: &Dataset<M::Element>,
///     path: &std::path::Path,
/// ) -> nnz::Result<()> {
///     let mut updater = Updater::for_model(Sgd::default(), model)?;
///     let mut run = Run::default();
///     if path.exists() {
///         run = checkpoint::load_run(model, &mut updater, path)?;
///     }
///     let mut batches = data.batches(M::INPUTS, &BatchOptions::default())?;
///     while run.position.epoch < 10 {
///         fit_from(model, &mut updater, &mut batches, run.position, run.totals, &mut ())?;
///         run.position.epoch += 1;
///         (run.position.batch, run.totals) = Default::default();
///         checkpoint::save_run(model, &updater, &run, path)?;
///     }
///     Ok(())
/// }
/// ```
///
/// # Errors
///
/// A [`CheckpointError`] that names the file and the first fault; model and updater are unchanged
/// then, except after [`CheckpointError::Interrupted`].
pub fn load_run<M, R>(
    model: &mut M,
    updater: &mut Updater<R, M::Element>,
    path: impl AsRef<Path>,
) -> Result<Run>
where
    M: Model,
    R: UpdateRule,
{
    load_run_if(model, erased_mut(updater), path.as_ref(), &|_| Ok(()))
}

/// [`load_run`] if `accept` agrees to the run, compiled once for a model.
pub(in crate::training) fn load_run_if<M: Model>(
    model: &mut M,
    updater: &mut dyn AnyUpdater<M::Element>,
    path: &Path,
    accept: &dyn Fn(&Run) -> Result<()>,
) -> Result<Run> {
    let (reader, metadata, start) = open(path)?;
    metadata.check_parameters(path, model, LoadOptions::default())?;
    if model.parameters().len() != updater.n_parameters() {
        return Err(nnz_step::optimizer::OptimizerError::OtherModel { model: M::NAME }.into());
    }
    let mut file = TensorsOf { path, reader, metadata: &metadata, start };
    let RunFile { run, updater: mut snapshot, reduction, settings } = file.run()?;
    compare_settings(path, &settings, &updater.settings())?;
    accept(&run)?;
    file.read_history(&mut snapshot)?;
    // Offsets of the states, one list for each parameter.
    let mut states = Vec::new();
    for (parameter, saved) in model.parameters().iter().zip(&mut snapshot.parameters) {
        file.read_settled(parameter.name, saved)?;
        states.push(if saved.has_states {
            file.offsets(
                updater.state_names(parameter.name),
                &updater.state_shape(&parameter.shape),
                dtype(<<M::Element as Float>::Accumulator as Stored>::TYPE),
            )?
        } else {
            Vec::new()
        });
    }
    let derivatives = file.derivatives(reduction.n_samples)?;
    let kept = if reduction.has_snapshot { file.kept(&model.parameters())? } else { Vec::new() };
    updater.check_snapshot(&snapshot)?;

    let saved_parameters = snapshot.parameters.clone();
    updater.restore(snapshot, &reduction, derivatives, kept);
    let parameters = model.parameters_mut().into_iter().zip(&saved_parameters).zip(states);
    for (index, ((parameter, saved), states)) in parameters.enumerate() {
        if let Some(values) = metadata.parameter(parameter.name) {
            let weights = updater.weights_mut(saved, parameter.table);
            read_into(path, &mut file.reader, start + values.offset, weights)?;
        }
        for (component, offset) in states.into_iter().enumerate() {
            updater.read_state(index, component, &mut file, offset)?;
        }
    }
    Ok(run)
}

/// Refuses a run whose settings differ; only settings that both have are compared.
pub(in crate::training) fn compare_settings(
    path: &Path,
    saved: &[(String, String)],
    here: &[(String, String)],
) -> Result<(), CheckpointError> {
    for (name, expected) in here {
        if let Some((_, found)) = saved.iter().find(|(known, _)| known == name)
            && found != expected
        {
            return Err(CheckpointError::Setting {
                path: path.to_owned(),
                name: name.clone(),
                found: found.clone(),
                expected: expected.clone(),
            });
        }
    }
    Ok(())
}
