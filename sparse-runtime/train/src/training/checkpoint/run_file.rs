//! The tensors of a run in a file: what does not depend on the rule, nor on the model but for its
//! element type, and is compiled once.

use super::error::CheckpointError;
use super::file::{check_bytes, check_parameters, io_error};
use super::metadata::{CheckpointMetadata, RUN, SavedTensor};
use super::run_state::Run;
use super::tensor::dtype;
use crate::error::Result;
use crate::training::EpochReport;
use nnz_arrays::bytes::{self, decode};
use nnz_arrays::parameter_memory::Table;
use nnz_optim::StateBlock;
use nnz_step::model::ParameterRef;
use nnz_step::optimizer::{MOST_STEPS, RecordSnapshot, ReductionSnapshot, Snapshot};
use safetensors::tensor::Dtype;
use serde::{Deserialize, Serialize};
use sparse_core::element::Float;
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::Path;

/// The tensor of the derivatives that a rule keeps for each sample.
pub(super) const DERIVATIVES: &str = "samples.derivatives";

/// What the tensor [`RUN`] holds.
#[derive(Serialize, Deserialize)]
pub(super) struct RunFile {
    pub(super) run: Run,
    pub(super) updater: Snapshot,
    /// Of a rule that corrects gradients.
    #[serde(default)]
    pub(super) reduction: ReductionSnapshot,
    /// Those of the updater.
    pub(super) settings: Vec<(String, String)>,
}

impl RunFile {
    /// Refuses numbers that no run comes to.
    fn check(&self) -> Result<(), String> {
        let Run { position, totals, epochs, .. } = &self.run;
        let reports = epochs.iter().flat_map(|report| [report.epoch, report.n_rows]);
        let counts = [position.epoch, position.batch, totals.n_rows, totals.n_batches];
        let counts = counts.into_iter().chain(reports).chain([self.reduction.n_samples as u64]);
        if let Some(count) = counts.into_iter().find(|count| *count > MOST_STEPS) {
            return Err(format!("{count} epochs, batches or samples are more than {MOST_STEPS}"));
        }
        if !epochs.is_sorted_by(|a, b| a.epoch < b.epoch) {
            return Err("the reports of its epochs are not in order".to_owned());
        }
        let after = |report: &EpochReport| report.epoch >= position.epoch;
        match epochs.last().filter(|report| after(report)) {
            Some(report) => Err(format!(
                "it has a report of epoch {}, but stands in epoch {}",
                report.epoch, position.epoch
            )),
            None => Ok(()),
        }
    }

    /// As that tensor has it.
    pub(super) fn text(&self, path: &Path) -> Result<Vec<u8>, CheckpointError> {
        serde_json::to_vec(self).map_err(|error| CheckpointError::Malformed {
            path: path.to_owned(),
            problem: error.to_string(),
        })
    }
}

/// The tensors of an open file whose checksums are right.
pub(in crate::training) struct TensorsOf<'a> {
    pub(super) path: &'a Path,
    pub(super) reader: BufReader<File>,
    pub(super) metadata: &'a CheckpointMetadata,
    pub(super) start: u64,
}

impl<'a> TensorsOf<'a> {
    pub(super) fn malformed(&self, problem: String) -> CheckpointError {
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

    /// What the file says of a run, once the checksums of all that it holds are right.
    pub(super) fn run(&mut self) -> Result<RunFile, CheckpointError> {
        let (path, start) = (self.path, self.start);
        if !self.metadata.has_run() {
            return Err(CheckpointError::NoRun { path: path.to_owned() });
        }
        check_parameters(path, &mut self.reader, self.metadata, start)?;
        for tensor in &self.metadata.tensors {
            let (offset, n_bytes) = (start + tensor.offset, tensor.n_bytes());
            let sum = (self.metadata.checksum(), tensor.checksum);
            check_bytes(path, &mut self.reader, &tensor.name, sum, offset, n_bytes)?;
        }
        let text = self.bytes(RUN, Dtype::U8)?;
        let mut file: RunFile = serde_json::from_slice(&text)
            .map_err(|error| self.malformed(format!("its tensor `{RUN}`: {error}")))?;
        file.check().map_err(|problem| self.malformed(format!("its tensor `{RUN}`: {problem}")))?;
        let metrics = &mut file.run.metrics;
        while self.metadata.tensor(&metric_name(metrics.len())).is_some() {
            let bytes = self.bytes(&metric_name(metrics.len()), Dtype::F64)?;
            metrics.push(numbers(&bytes, f64::from_le_bytes));
        }
        Ok(file)
    }

    /// The steps that rows wait for.
    pub(super) fn read_history(&mut self, snapshot: &mut Snapshot) -> Result<(), CheckpointError> {
        for (index, group) in snapshot.groups.iter_mut().enumerate() {
            let [starts, maps] = history_names(index);
            group.starts = numbers(&self.bytes(&starts, Dtype::U64)?, u64::from_le_bytes);
            group.maps = numbers(&self.bytes(&maps, Dtype::F64)?, f64::from_le_bytes);
        }
        Ok(())
    }

    /// Up to which step the rows of a parameter are caught up.
    pub(super) fn read_settled(
        &mut self,
        parameter: &str,
        saved: &mut RecordSnapshot,
    ) -> Result<(), CheckpointError> {
        let name = settled_name(parameter);
        if self.metadata.tensor(&name).is_some() {
            saved.last = numbers(&self.bytes(&name, Dtype::U32)?, u32::from_le_bytes);
        }
        Ok(())
    }

    /// Where tensors of one shape and type lie.
    pub(super) fn offsets(
        &self,
        names: Vec<String>,
        shape: &[usize],
        dtype: Dtype,
    ) -> Result<Vec<u64>, CheckpointError> {
        let offset = |name: String| {
            let tensor = self.tensor(&name, dtype)?;
            if tensor.shape == shape {
                Ok(self.start + tensor.offset)
            } else {
                Err(self.malformed(format!(
                    "tensor `{name}` has shape {:?}, not {shape:?}",
                    tensor.shape
                )))
            }
        };
        names.into_iter().map(offset).collect()
    }

    /// The parameters at the snapshot of a rule that corrects gradients.
    pub(super) fn kept<T: Float>(
        &mut self,
        parameters: &[ParameterRef<'_, T>],
    ) -> Result<Vec<Table<T>>, CheckpointError> {
        let mut kept = Vec::new();
        for parameter in parameters {
            let name = snapshot_name(parameter.name);
            let bytes = self.bytes(&name, dtype(T::TYPE))?;
            let mut values = Vec::with_capacity(parameter.table.len());
            bytes::for_each(&bytes, |value| values.push(value));
            if values.len() != parameter.table.len() {
                let (found, expected) = (values.len(), parameter.table.len());
                let problem = format!("tensor `{name}` has {found} elements, not {expected}");
                return Err(self.malformed(problem));
            }
            kept.push(Table::from_values(parameter.shape.row_size(), &values));
        }
        Ok(kept)
    }

    /// All bytes of a tensor, whose checksum is right.
    pub(super) fn checked(&mut self, name: &str, dtype: Dtype) -> Result<Vec<u8>, CheckpointError> {
        let tensor = self.tensor(name, dtype)?;
        let (offset, n_bytes) = (self.start + tensor.offset, tensor.n_bytes());
        let sum = (self.metadata.checksum(), tensor.checksum);
        check_bytes(self.path, &mut self.reader, name, sum, offset, n_bytes)?;
        self.bytes(name, dtype)
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
    pub(super) fn derivatives<A: Float>(
        &mut self,
        n_samples: usize,
    ) -> Result<Vec<A>, CheckpointError> {
        let mut derivatives = Vec::new();
        if self.metadata.tensor(DERIVATIVES).is_some() {
            bytes::for_each(&self.bytes(DERIVATIVES, dtype(A::TYPE))?, |value| {
                derivatives.push(value)
            });
        }
        match derivatives.len() {
            0 if Vec::<A>::new().try_reserve_exact(n_samples).is_err() => {
                let problem =
                    format!("there is no memory for what it keeps of {n_samples} samples");
                Err(self.malformed(problem))
            }
            0 => Ok(derivatives),
            len if n_samples > 0 && len.is_multiple_of(n_samples) => Ok(derivatives),
            len => {
                let problem =
                    format!("tensor `{DERIVATIVES}` has {len} elements for {n_samples} samples");
                Err(self.malformed(problem))
            }
        }
    }

    pub(in crate::training) fn read_state<A: Float, S: StateBlock<A>>(
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

pub(super) fn snapshot_name(parameter: &str) -> String {
    format!("{parameter}.snapshot")
}

pub(super) fn settled_name(parameter: &str) -> String {
    format!("{parameter}.settled")
}

pub(super) fn metric_name(metric: usize) -> String {
    format!("metric.{metric}")
}

pub(super) fn history_names(group: usize) -> [String; 2] {
    [format!("history.{group}.starts"), format!("history.{group}.maps")]
}

fn numbers<I, const N: usize>(bytes: &[u8], of: fn([u8; N]) -> I) -> Vec<I> {
    bytes.as_chunks().0.iter().map(|bytes| of(*bytes)).collect()
}
