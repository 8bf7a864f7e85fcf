//! A run of training in a file: parameters, the state of the optimizer, and where the run stands.

use super::bytes::{self, PIECE, decode};
use super::error::CheckpointError;
use super::metadata::{CheckpointMetadata, SavedTensor};
use super::tensor::{Tensor, dtype};
use super::{LoadOptions, check_bytes, check_parameters, io_error, open, read_into, write};
use crate::data::Position;
use crate::error::Result;
use crate::model::Model;
use crate::optimizer::{ReductionSnapshot, Snapshot, StateOf, Updater};
use crate::table::Table;
use crate::training::{EpochReport, EpochTotals};
use safetensors::tensor::Dtype;
use serde::{Deserialize, Serialize};
use sparse_core::element::{Float, Stored};
use sparse_core::update_rules::{StateBlock, UpdateRule};
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::Path;

/// Where a run of training stands, besides its model and its updater. There is no random state: orders follow from seed and
/// epoch, which are settings and position; nor a state of the schedule, which is a function of step and epoch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// The batch that comes next.
    pub position: Position,
    /// What the epoch of that batch has come to so far.
    pub totals: EpochTotals,
    /// What each metric of the training data has [seen](crate::metric::Accumulator::numbers) of that epoch so far.
    #[serde(skip)]
    pub metrics: Vec<Vec<f64>>,
    /// The epochs before it.
    pub epochs: Vec<EpochReport>,
    /// What the result depends on and a program may change, by name, as text: a run goes on with the same. Those of the updater (its
    /// rule with all hyperparameters, the scales of parameters) are added and compared without being listed here.
    pub settings: Vec<(String, String)>,
}

/// The tensor that says how to read the others, as JSON. No parameter has a name with a point.
const RUN: &str = "run.json";

/// The tensor of the derivatives that a rule keeps for each sample.
const DERIVATIVES: &str = "samples.derivatives";

/// What that tensor holds.
#[derive(Serialize, Deserialize)]
struct RunFile {
    run: Run,
    updater: Snapshot,
    /// Of a rule that corrects gradients.
    #[serde(default)]
    reduction: ReductionSnapshot,
    /// Those of the updater.
    settings: Vec<(String, String)>,
}

/// Saves a model in training with its updater, between two steps: [`load_run`] goes on as if nothing had happened, to the bit.
///
/// Nothing is settled for it: where rows wait for steps that they missed, within an epoch, the file has their weights as they
/// are and the history of these steps. After an epoch no row waits, and the file is good for [`load`](super::load) as well.
///
/// The file has a tensor for each state of the rule, `w.velocity`, `w.settled` with 4 bytes a row where rows are caught up later, and the
/// history of steps since the last flush, 40 bytes for each change of the learning rate. Of a rule that corrects gradients it has the mean
/// gradient as a state, and the derivatives of the samples, `samples.derivatives`, or the parameters at the snapshot, `w.snapshot`. O(values).
///
/// # Errors
///
/// As [`save`](super::save); an updater that was made for another model.
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
    let path = path.as_ref();
    let parameters = model.parameters();
    if parameters.len() != updater.parameters().len() {
        return Err(crate::optimizer::OptimizerError::OtherModel { model: M::NAME }.into());
    }
    let tables: Vec<_> = parameters.iter().map(|parameter| parameter.table).collect();
    let snapshot = updater.snapshot(&tables);
    let file = RunFile {
        run: run.clone(),
        updater: snapshot.clone(),
        reduction: updater.reduction(),
        settings: updater.settings(),
    };
    let text = serde_json::to_vec(&file).map_err(|error| CheckpointError::Malformed {
        path: path.to_owned(),
        problem: error.to_string(),
    })?;
    let mut tensors = Vec::new();
    for (index, (parameter, saved)) in parameters.iter().zip(&snapshot.parameters).enumerate() {
        let name = parameter.name;
        if saved.has_states {
            let shape = state_shape::<R, M::Element>(&parameter.shape);
            for (component, name) in state_names::<R, M::Element>(name).into_iter().enumerate() {
                let table = parameter.table;
                tensors.push(Tensor::new(
                    name,
                    dtype(<<M::Element as Float>::Accumulator as Stored>::TYPE),
                    shape.clone(),
                    move |take| encode_state(updater, index, table, component, take),
                ));
            }
        }
        let settled = updater.settled(index);
        if !settled.is_empty() {
            let name = settled_name(name);
            tensors.push(Tensor::of_integers(name, Dtype::U32, settled, u32::to_le_bytes));
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

/// Loads what [`save_run`] saved into a model and an updater that were made as they were for the run.
///
/// Everything is checked before anything is changed: what [`load`](super::load) checks, the checksums of all states, and that the
/// updater has the same rule, hyperparameters and scales.
///
/// ```
/// use sparse_core::update_rules::Sgd;
/// use sparse_runtime::data::{BatchOptions, Batches, DataSource, Dataset};
/// use sparse_runtime::model::Model;
/// use sparse_runtime::optimizer::Updater;
/// use sparse_runtime::training::checkpoint::{self, Run};
/// use sparse_runtime::training::fit_from;
///
/// /// A loop of one's own that goes on where it was ended, be it within an epoch.
/// fn train<M: Model>(
///     model: &mut M,
///     data: &Dataset<M::Element>,
///     path: &std::path::Path,
/// ) -> sparse_runtime::Result<()> {
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
/// A [`CheckpointError`] that names the file and the first thing that is wrong with it; then model and updater are as they
/// were, but after [`CheckpointError::Interrupted`].
pub fn load_run<M, R>(
    model: &mut M,
    updater: &mut Updater<R, M::Element>,
    path: impl AsRef<Path>,
) -> Result<Run>
where
    M: Model,
    R: UpdateRule,
{
    load_run_if(model, updater, path.as_ref(), |_| Ok(()))
}

/// [`load_run`], if `accept` says so of what was read.
pub(in crate::training) fn load_run_if<M, R>(
    model: &mut M,
    updater: &mut Updater<R, M::Element>,
    path: &Path,
    accept: impl FnOnce(&Run) -> Result<()>,
) -> Result<Run>
where
    M: Model,
    R: UpdateRule,
{
    let (mut reader, metadata, start) = open(path)?;
    metadata.check_parameters(path, model, LoadOptions::default())?;
    if !metadata.has_run() {
        return Err(CheckpointError::NoRun { path: path.to_owned() }.into());
    }
    if model.parameters().len() != updater.parameters().len() {
        return Err(crate::optimizer::OptimizerError::OtherModel { model: M::NAME }.into());
    }
    check_parameters(path, &mut reader, &metadata, start)?;
    for tensor in &metadata.tensors {
        let (offset, n_bytes) = (start + tensor.offset, tensor.n_bytes());
        check_bytes(path, &mut reader, &tensor.name, tensor.checksum, offset, n_bytes)?;
    }
    let mut file = TensorsOf { path, reader, metadata: &metadata, start };
    let text = file.bytes(RUN, Dtype::U8)?;
    let RunFile { mut run, updater: mut snapshot, reduction, settings } =
        serde_json::from_slice(&text)
            .map_err(|error| file.malformed(format!("its tensor `{RUN}`: {error}")))?;
    compare_settings(path, &settings, &updater.settings())?;
    while metadata.tensor(&metric_name(run.metrics.len())).is_some() {
        let bytes = file.bytes(&metric_name(run.metrics.len()), Dtype::F64)?;
        run.metrics.push(numbers(&bytes, f64::from_le_bytes));
    }
    accept(&run)?;
    for (index, group) in snapshot.groups.iter_mut().enumerate() {
        let [starts, maps] = history_names(index);
        group.starts = numbers(&file.bytes(&starts, Dtype::U64)?, u64::from_le_bytes);
        group.maps = numbers(&file.bytes(&maps, Dtype::F64)?, f64::from_le_bytes);
    }
    // Offsets of the states, one list for each parameter.
    let mut states = Vec::new();
    for (parameter, saved) in model.parameters().iter().zip(&mut snapshot.parameters) {
        let name = settled_name(parameter.name);
        if metadata.tensor(&name).is_some() {
            saved.last = numbers(&file.bytes(&name, Dtype::U32)?, u32::from_le_bytes);
        }
        let shape = state_shape::<R, M::Element>(&parameter.shape);
        let names = match saved.has_states {
            true => state_names::<R, M::Element>(parameter.name),
            false => Vec::new(),
        };
        let offsets = names.into_iter().map(|name| {
            let dtype = dtype(<<M::Element as Float>::Accumulator as Stored>::TYPE);
            let tensor = file.tensor(&name, dtype)?;
            match tensor.shape == shape {
                true => Ok(start + tensor.offset),
                false => Err(file.malformed(format!(
                    "tensor `{name}` has shape {:?}, not {shape:?}",
                    tensor.shape
                ))),
            }
        });
        states.push(offsets.collect::<Result<Vec<_>, _>>()?);
    }
    let derivatives = file.derivatives(reduction.n_samples)?;
    let mut kept = Vec::new();
    if reduction.has_snapshot {
        for parameter in model.parameters() {
            let name = snapshot_name(parameter.name);
            let bytes = file.bytes(&name, dtype(<M::Element as Stored>::TYPE))?;
            let mut values = Vec::with_capacity(parameter.table.len());
            bytes::for_each(&bytes, |value| values.push(value));
            if values.len() != parameter.table.len() {
                let (found, expected) = (values.len(), parameter.table.len());
                let problem = format!("tensor `{name}` has {found} elements, not {expected}");
                return Err(file.malformed(problem).into());
            }
            kept.push(Table::from_values(parameter.shape.row_size(), &values));
        }
    }
    updater.check_snapshot(&snapshot)?;

    let saved_parameters = snapshot.parameters.clone();
    updater.restore(snapshot);
    updater.restore_reduction(&reduction, derivatives, kept);
    let parameters = model.parameters_mut().into_iter().zip(&saved_parameters).zip(states);
    for (index, ((parameter, saved), states)) in parameters.enumerate() {
        if let Some(values) = metadata.parameter(parameter.name) {
            let weights = updater.weights_mut(saved, parameter.table);
            read_into(path, &mut file.reader, start + values.offset, weights)?;
        }
        for (component, offset) in states.into_iter().enumerate() {
            let blocks = updater.states_mut(index);
            file.read_state(offset, blocks, component)?;
        }
    }
    Ok(run)
}

/// Refuses a run with other settings than those of here, of which only the ones that both have are compared.
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

/// The tensors of the states of a parameter: by the names of the rule, and by number where it has none.
fn state_names<R: UpdateRule, T: Float>(parameter: &str) -> Vec<String> {
    let state = StateOf::<R, T>::default();
    let components = 0..state.values().count();
    components
        .map(|component| match R::STATES.get(component) {
            Some(name) => format!("{parameter}.{name}"),
            None => format!("{parameter}.state{component}"),
        })
        .collect()
}

fn snapshot_name(parameter: &str) -> String {
    format!("{parameter}.snapshot")
}

fn settled_name(parameter: &str) -> String {
    format!("{parameter}.settled")
}

fn metric_name(metric: usize) -> String {
    format!("metric.{metric}")
}

fn history_names(group: usize) -> [String; 2] {
    [format!("history.{group}.starts"), format!("history.{group}.maps")]
}

/// The shape of a state of a parameter: that of the parameter, or one number a row.
fn state_shape<R: UpdateRule, T: Float>(shape: &[usize]) -> Vec<usize> {
    match <StateOf<R, T> as StateBlock<T::Accumulator>>::BY_ROW {
        true => vec![shape.first().copied().unwrap_or(1)],
        false => shape.to_vec(),
    }
}

/// The bytes of one state of a parameter.
fn encode_state<R: UpdateRule, T: Float>(
    updater: &Updater<R, T>,
    parameter: usize,
    table: &Table<T>,
    component: usize,
    take: &mut dyn FnMut(&[u8]) -> std::io::Result<()>,
) -> std::io::Result<()> {
    let mut result = Ok(());
    let mut piece = Vec::with_capacity(PIECE);
    updater.visit_states(parameter, table, |states| {
        piece.extend(states.iter().filter_map(|state| state.values().nth(component)));
        if piece.len() >= PIECE && result.is_ok() {
            result = bytes::encode(&piece, &mut *take);
            piece.clear();
        }
    });
    result.and_then(|()| bytes::encode(&piece, take))
}

fn numbers<I, const N: usize>(bytes: &[u8], of: fn([u8; N]) -> I) -> Vec<I> {
    bytes.as_chunks().0.iter().map(|bytes| of(*bytes)).collect()
}

/// The tensors of an open file whose checksums are right.
struct TensorsOf<'a> {
    path: &'a Path,
    reader: BufReader<File>,
    metadata: &'a CheckpointMetadata,
    start: u64,
}

impl<'a> TensorsOf<'a> {
    fn malformed(&self, problem: String) -> CheckpointError {
        CheckpointError::Malformed { path: self.path.to_owned(), problem }
    }

    fn tensor(&self, name: &str, dtype: Dtype) -> Result<&'a SavedTensor, CheckpointError> {
        let tensor = self.metadata.tensor(name);
        let tensor = tensor.ok_or_else(|| self.malformed(format!("tensor `{name}` is missing")))?;
        if tensor.dtype != dtype {
            let found = tensor.dtype;
            return Err(self
                .malformed(format!("tensor `{name}` has elements of type {found}, not {dtype}")));
        }
        Ok(tensor)
    }

    /// All bytes of a tensor: not more than the file has.
    fn bytes(&mut self, name: &str, dtype: Dtype) -> Result<Vec<u8>, CheckpointError> {
        let tensor = self.tensor(name, dtype)?;
        let mut bytes = Vec::new();
        self.reader
            .seek(SeekFrom::Start(self.start + tensor.offset))
            .and_then(|_| (&mut self.reader).take(tensor.n_bytes()).read_to_end(&mut bytes))
            .map_err(|error| io_error(self.path, error))?;
        Ok(bytes)
    }

    /// The derivatives that are kept for so many samples, as many for each.
    fn derivatives<A: Float>(&mut self, n_samples: usize) -> Result<Vec<A>, CheckpointError> {
        let mut derivatives = Vec::new();
        if self.metadata.tensor(DERIVATIVES).is_some() {
            bytes::for_each(&self.bytes(DERIVATIVES, dtype(A::TYPE))?, |value| {
                derivatives.push(value)
            });
        }
        match derivatives.len() {
            0 => Ok(derivatives),
            len if n_samples > 0 && len.is_multiple_of(n_samples) => Ok(derivatives),
            len => {
                let problem =
                    format!("tensor `{DERIVATIVES}` has {len} elements for {n_samples} samples");
                Err(self.malformed(problem))
            }
        }
    }

    fn read_state<A: Float, S: StateBlock<A>>(
        &mut self,
        offset: u64,
        states: &mut [S],
        component: usize,
    ) -> Result<(), CheckpointError> {
        let count = states.len();
        let mut places = states.iter_mut();
        self.reader
            .seek(SeekFrom::Start(offset))
            .and_then(|_| {
                decode(
                    &mut self.reader,
                    count,
                    |_| {},
                    |value| {
                        let state = places.next();
                        if let Some(place) =
                            state.and_then(|state| state.values_mut().nth(component))
                        {
                            *place = value;
                        }
                    },
                )
            })
            .map_err(|error| CheckpointError::Interrupted { path: self.path.to_owned(), error })
    }
}
