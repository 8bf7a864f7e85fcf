//! The metadata of a checkpoint.

use super::error::{CheckpointError, ParameterMismatch};
use super::load_options::LoadOptions;
use super::tensor::{Tensor, dtype, element};
use nnz_arrays::bytes::Checksum;
use nnz_arrays::formats::Shape;
use nnz_step::model::{AnyModel, Dims, Extent, Model};
use safetensors::tensor::{Dtype, Metadata, TensorInfo};
use serde::{Deserialize, Serialize};
use sparse_core::element::{Float, Stored};
use sparse_core::storage::{ElementType, Storage};
use std::collections::HashMap;
use std::io;
use std::path::Path;

/// The tensor that says how to read those of a run, as JSON. No parameter has a name with a point.
pub(super) const RUN: &str = "run.json";

/// The version of the format that this library writes. It reads those before it as well: the first
/// one has other checksums.
pub(super) const FORMAT: u32 = 2;

/// The checksum, so far of nothing, that files of a format have.
fn checksum_in(format: u32) -> Checksum {
    if format < 2 { Checksum::of_words() } else { Checksum::new() }
}

/// The entry of the safetensors metadata that holds ours. It is a single entry, because the order
/// of several would change from file to file.
const KEY: &str = "nnz";

/// The metadata of a checkpoint, without its values.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct CheckpointMetadata {
    /// The model's name.
    pub model: String,
    /// The fingerprint of its graph.
    pub fingerprint: u64,
    /// The dimensions that it was made with.
    pub dims: Dims,
    /// Its parameters, in the order of declaration.
    pub parameters: Vec<SavedParameter>,
    /// False for a checkpoint from within an epoch whose weights miss steps: such a run can be
    /// resumed, but the parameters alone are unusable.
    pub is_settled: bool,
    /// The notes given to [`save_with_notes`](super::save_with_notes).
    pub notes: Vec<(String, String)>,
    /// Further tensors: the state of a run of training, ids, or none.
    pub(super) tensors: Vec<SavedTensor>,
    /// The version of the format of the file.
    format: u32,
}

impl CheckpointMetadata {
    /// Whether the file has the state of a run of training, which can be resumed.
    pub fn has_run(&self) -> bool {
        self.tensor(RUN).is_some()
    }

    /// The checksum, so far of nothing, of the tensors of the file.
    pub(super) fn checksum(&self) -> Checksum {
        checksum_in(self.format)
    }
}

/// A tensor that is not a parameter.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SavedTensor {
    pub(super) name: String,
    pub(super) dtype: Dtype,
    pub(super) shape: Vec<usize>,
    pub(super) checksum: u64,
    /// Its offset from the end of the header.
    pub(super) offset: u64,
}

impl SavedTensor {
    pub(super) fn n_bytes(&self) -> u64 {
        bytes_of(self.dtype, &self.shape)
    }
}

/// A parameter in a checkpoint.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct SavedParameter {
    /// Its name, which is also the name of its tensor.
    pub name: String,
    /// Its storage type.
    pub storage: Storage,
    /// The type of its elements.
    pub element: ElementType,
    /// Its shape.
    pub shape: Shape,
    /// The checksum of its values.
    pub(super) checksum: u64,
    /// The offset of its values from the end of the header.
    pub(super) offset: u64,
}

/// Our entry, as it is written. 64-bit numbers are hexadecimal text: JSON numbers lose bits.
#[derive(Serialize, Deserialize)]
struct Entry {
    format: u32,
    #[serde(default)]
    model: String,
    #[serde(default)]
    fingerprint: String,
    #[serde(default)]
    dims: Vec<(String, usize)>,
    #[serde(default)]
    parameters: Vec<EntryParameter>,
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    settled: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    tensors: Vec<EntryTensor>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    notes: Vec<(String, String)>,
    /// The checksum of this entry without its checksum.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    checksum: String,
}

impl Entry {
    /// The entry as text. `checksum` is empty here; in the text it is filled in.
    fn into_json(mut self) -> serde_json::Result<String> {
        self.checksum = checksum_of(self.format, &serde_json::to_string(&self)?);
        serde_json::to_string(&self)
    }

    /// Whether the entry is unchanged since it was written. Damage shows in the values read, or,
    /// for an unknown name, in a missing one.
    fn is_whole(&mut self) -> bool {
        let checksum = std::mem::take(&mut self.checksum);
        // Files of before have none.
        checksum.is_empty()
            || serde_json::to_string(self)
                .is_ok_and(|text| checksum_of(self.format, &text) == checksum)
    }
}

fn checksum_of(format: u32, text: &str) -> String {
    let mut checksum = checksum_in(format);
    checksum.add(text.as_bytes());
    format!("{:016x}", checksum.value())
}

fn yes() -> bool {
    true
}

fn is_yes(value: &bool) -> bool {
    *value
}

#[derive(Serialize, Deserialize)]
struct EntryParameter {
    name: String,
    storage: String,
    checksum: String,
}

#[derive(Serialize, Deserialize)]
struct EntryTensor {
    name: String,
    checksum: String,
}

impl CheckpointMetadata {
    /// The metadata of a model, without checksums and offsets.
    pub(super) fn of_model<T: Float>(model: &dyn AnyModel<T>) -> Self {
        let facts = model.facts();
        let parameters = model.parameters().into_iter().zip(facts.parameters);
        let parameters = parameters.map(|(parameter, info)| SavedParameter {
            name: info.name.to_owned(),
            storage: info.storage,
            element: T::TYPE,
            shape: parameter.shape,
            checksum: 0,
            offset: 0,
        });
        CheckpointMetadata {
            model: facts.name.to_owned(),
            fingerprint: facts.fingerprint,
            dims: model.dims().clone(),
            parameters: parameters.collect(),
            is_settled: true,
            notes: Vec::new(),
            tensors: Vec::new(),
            format: FORMAT,
        }
    }

    /// Adds where in the file the parameters lie, in order, and further tensors, and their
    /// checksums.
    pub(super) fn set_tensors(
        &mut self,
        parameters: &[Tensor<'_>],
        more: &[Tensor<'_>],
    ) -> io::Result<()> {
        let mut offset = 0;
        for (saved, tensor) in self.parameters.iter_mut().zip(parameters) {
            saved.checksum = tensor.checksum()?;
            saved.offset = offset;
            offset += bytes_of(tensor.dtype, &tensor.shape);
        }
        for tensor in more {
            self.tensors.push(SavedTensor {
                name: tensor.name.clone(),
                dtype: tensor.dtype,
                shape: tensor.shape.clone(),
                checksum: tensor.checksum()?,
                offset,
            });
            offset += bytes_of(tensor.dtype, &tensor.shape);
        }
        Ok(())
    }

    /// The header of the file: a safetensors header, padded to a multiple of 8 bytes.
    pub(super) fn header(&self, path: &Path) -> Result<Vec<u8>, CheckpointError> {
        let impossible =
            |problem: String| CheckpointError::Malformed { path: path.to_owned(), problem };
        let entry = Entry {
            format: self.format,
            model: self.model.clone(),
            fingerprint: format!("{:016x}", self.fingerprint),
            dims: (self.dims.iter()).map(|(name, extent)| (name.to_owned(), extent)).collect(),
            parameters: (self.parameters.iter())
                .map(|parameter| EntryParameter {
                    name: parameter.name.clone(),
                    storage: parameter.storage.name().to_owned(),
                    checksum: format!("{:016x}", parameter.checksum),
                })
                .collect(),
            settled: self.is_settled,
            tensors: (self.tensors.iter())
                .map(|tensor| EntryTensor {
                    name: tensor.name.clone(),
                    checksum: format!("{:016x}", tensor.checksum),
                })
                .collect(),
            notes: self.notes.clone(),
            checksum: String::new(),
        };
        let entry = entry.into_json().map_err(|error| impossible(error.to_string()))?;
        let parameters = self.parameters.iter().map(|parameter| {
            (&parameter.name, dtype(parameter.element), parameter.shape.to_vec(), parameter.offset)
        });
        let more = self.tensors.iter();
        let more =
            more.map(|tensor| (&tensor.name, tensor.dtype, tensor.shape.clone(), tensor.offset));
        let tensors = parameters.chain(more).map(|(name, dtype, shape, offset)| {
            let end = offset + bytes_of(dtype, &shape);
            let data_offsets = (offset as usize, end as usize);
            (name.clone(), TensorInfo { dtype, shape, data_offsets })
        });
        let metadata = HashMap::from([(KEY.to_owned(), entry)]);
        let header = Metadata::new(Some(metadata), tensors.collect())
            .map_err(|error| impossible(error.to_string()))?;
        let mut header =
            serde_json::to_vec(&header).map_err(|error| impossible(error.to_string()))?;
        header.resize(header.len().next_multiple_of(8), b' ');
        Ok(header)
    }

    /// The metadata in the header of a file.
    pub(super) fn parse(path: &Path, header: &Metadata) -> Result<Self, CheckpointError> {
        let malformed =
            |problem: String| CheckpointError::Malformed { path: path.to_owned(), problem };
        let entry =
            (header.metadata().as_ref()).and_then(|metadata| metadata.get(KEY)).ok_or_else(
                || malformed(format!("it is a safetensors file without the entry `{KEY}`")),
            )?;
        let mut entry: Entry = serde_json::from_str(entry)
            .map_err(|error| malformed(format!("its entry `{KEY}`: {error}")))?;
        if !(1..=FORMAT).contains(&entry.format) {
            return Err(CheckpointError::Format {
                path: path.to_owned(),
                found: entry.format,
                supported: FORMAT,
            });
        }
        if !entry.is_whole() {
            return Err(malformed(format!("its entry `{KEY}` is damaged")));
        }
        let hexadecimal = |text: &str| {
            u64::from_str_radix(text, 16).map_err(|_| {
                malformed(format!("`{text}` is not a number of 16 hexadecimal digits"))
            })
        };
        let mut tensors = header.tensors();
        let mut parameters = Vec::new();
        for parameter in entry.parameters {
            let name = parameter.name;
            let tensor = (tensors.remove(&name))
                .ok_or_else(|| malformed(format!("parameter `{name}` has no tensor")))?;
            parameters.push(SavedParameter {
                storage: parameter.storage.parse().map_err(|()| {
                    malformed(format!("`{}` is not a storage type", parameter.storage))
                })?,
                element: element(tensor.dtype).ok_or_else(|| {
                    let dtype = tensor.dtype;
                    malformed(format!("parameter `{name}` has elements of type {dtype}"))
                })?,
                shape: Shape::try_new(&tensor.shape)
                    .map_err(|error| malformed(format!("parameter `{name}`: {error}")))?,
                checksum: hexadecimal(&parameter.checksum)?,
                offset: tensor.data_offsets.0 as u64,
                name,
            });
        }
        let mut more = Vec::new();
        for EntryTensor { name, checksum } in entry.tensors {
            let tensor = (tensors.remove(&name))
                .ok_or_else(|| malformed(format!("tensor `{name}` is missing")))?;
            more.push(SavedTensor {
                dtype: tensor.dtype,
                shape: tensor.shape.clone(),
                checksum: hexadecimal(&checksum)?,
                offset: tensor.data_offsets.0 as u64,
                name,
            });
        }
        if let Some(name) = tensors.keys().min() {
            return Err(malformed(format!("tensor `{name}` is no parameter")));
        }
        Ok(CheckpointMetadata {
            model: entry.model,
            fingerprint: hexadecimal(&entry.fingerprint)?,
            dims: (entry.dims.iter())
                .fold(Dims::new(), |dims, (name, extent)| dims.with(name, *extent)),
            parameters,
            is_settled: entry.settled,
            notes: entry.notes,
            tensors: more,
            format: entry.format,
        })
    }

    /// Compares the shapes of the parameters with those of a model of the file's
    /// [dimensions](Self::dims), before one is made: nothing is allocated for a file whose header
    /// disagrees.
    ///
    /// ```
    /// use nnz::initializer::Seed;
    /// use nnz::model::{Dims, Model};
    /// use nnz::training::checkpoint;
    ///
    /// /// The model of a file, made by the `new` of its type.
    /// fn load_new<M: Model>(
    ///     path: &str,
    ///     new: fn(Dims, Seed) -> nnz::Result<M>,
    /// ) -> nnz::Result<M> {
    ///     let saved = checkpoint::read_metadata(path)?;
    ///     saved.check_dims::<M>()?;
    ///     let mut model = new(saved.dims, Seed(0))?;
    ///     checkpoint::load(&mut model, path)?;
    ///     Ok(model)
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// The first parameter that the file lacks, or has in another shape.
    pub fn check_dims<M: Model>(&self) -> Result<(), Box<ParameterMismatch>> {
        for info in M::PARAMETERS {
            let parameter = || info.name.to_owned();
            let Some(saved) = self.parameter(info.name) else {
                return Err(Box::new(ParameterMismatch::Missing { parameter: parameter() }));
            };
            let extents = info.shape.iter().map(|extent| match extent {
                Extent::Constant(extent) => *extent,
                // The model says which name is missing.
                Extent::Named(name) => self.dims.get(name).unwrap_or_default(),
            });
            let expected = Shape::try_new(&Vec::from_iter(extents)).unwrap_or_default();
            let knows = |extent: &Extent| match extent {
                Extent::Constant(_) => true,
                Extent::Named(name) => self.dims.get(name).is_some(),
            };
            if saved.shape != expected && info.shape.iter().all(knows) {
                return Err(Box::new(ParameterMismatch::Shape {
                    parameter: parameter(),
                    found: saved.shape,
                    expected,
                    dims: self.dims.to_string(),
                }));
            }
        }
        Ok(())
    }

    /// [`check_dims`](Self::check_dims), with the path and the graph in the error.
    pub fn check_dims_of<M: Model>(&self, path: &Path) -> Result<(), CheckpointError> {
        self.check_dims::<M>().or_else(|mismatch| self.refuse::<M>(path, Some(mismatch), false))
    }

    /// Refuses a file whose parameters differ from those of a model beyond the options, or are not
    /// up to date.
    pub(super) fn check<M: Model>(
        &self,
        path: &Path,
        model: &M,
        options: LoadOptions,
    ) -> Result<(), CheckpointError> {
        self.check_parameters(path, model, options)?;
        if self.is_settled {
            Ok(())
        } else {
            Err(CheckpointError::Unsettled { path: path.to_owned() })
        }
    }

    /// [`check`](Self::check) for parameters that need not be up to date.
    pub(super) fn check_parameters<M: Model>(
        &self,
        path: &Path,
        model: &M,
        options: LoadOptions,
    ) -> Result<(), CheckpointError> {
        let mismatch = self.first_mismatch(model, options).map(Box::new);
        self.refuse::<M>(path, mismatch, options.allows_other_graphs())
    }

    /// Refuses a file of another graph, unless the options allow it, and one with a parameter that
    /// does not fit.
    fn refuse<M: Model>(
        &self,
        path: &Path,
        mismatch: Option<Box<ParameterMismatch>>,
        may_be_other_graph: bool,
    ) -> Result<(), CheckpointError> {
        if self.fingerprint != M::FINGERPRINT && !may_be_other_graph {
            return Err(CheckpointError::OtherGraph {
                path: path.to_owned(),
                saved_model: self.model.clone(),
                saved: self.fingerprint,
                model: M::NAME,
                expected: M::FINGERPRINT,
                difference: mismatch,
            });
        }
        match mismatch {
            Some(mismatch) => Err(CheckpointError::Parameter { path: path.to_owned(), mismatch }),
            None => Ok(()),
        }
    }

    /// The tensor of this name that is not a parameter.
    pub(super) fn tensor(&self, name: &str) -> Option<&SavedTensor> {
        self.tensors.iter().find(|saved| saved.name == name)
    }

    /// The saved parameter of a name.
    pub(super) fn parameter(&self, name: &str) -> Option<&SavedParameter> {
        self.parameters.iter().find(|saved| saved.name == name)
    }

    /// The first parameter that does not fit the model's.
    pub(super) fn first_mismatch<M: Model>(
        &self,
        model: &M,
        options: LoadOptions,
    ) -> Option<ParameterMismatch> {
        for (parameter, info) in model.parameters().iter().zip(M::PARAMETERS) {
            let name = || info.name.to_owned();
            let Some(saved) = self.parameter(info.name) else {
                if options.allow_missing {
                    continue;
                }
                return Some(ParameterMismatch::Missing { parameter: name() });
            };
            if saved.storage != info.storage {
                return Some(ParameterMismatch::Storage {
                    parameter: name(),
                    found: saved.storage,
                    expected: info.storage,
                });
            }
            if saved.element != M::Element::TYPE {
                return Some(ParameterMismatch::Element {
                    parameter: name(),
                    found: saved.element,
                    expected: M::Element::TYPE,
                });
            }
            if saved.shape != parameter.shape {
                return Some(ParameterMismatch::Shape {
                    parameter: name(),
                    found: saved.shape,
                    expected: parameter.shape,
                    dims: self.dims.to_string(),
                });
            }
        }
        if !self.parameters.is_empty() && self.unexpected::<M>().count() == self.parameters.len() {
            let names: Vec<_> = self.parameters.iter().map(|saved| saved.name.as_str()).collect();
            return Some(ParameterMismatch::NothingInCommon { found: names.join(", ") });
        }
        if options.allow_unexpected {
            return None;
        }
        let unexpected = self.unexpected::<M>().next()?;
        Some(ParameterMismatch::Unexpected { parameter: unexpected.to_owned() })
    }

    /// The names of the parameters that a model lacks.
    pub(super) fn unexpected<M: Model>(&self) -> impl Iterator<Item = &str> {
        let names = self.parameters.iter().map(|saved| saved.name.as_str());
        names.filter(|name| M::PARAMETERS.iter().all(|info| info.name != *name))
    }

    /// The names of the parameters of a model that the file lacks.
    pub(super) fn missing<M: Model>(&self) -> impl Iterator<Item = &'static str> {
        let names = M::PARAMETERS.iter().map(|info| info.name);
        names.filter(|name| self.parameter(name).is_none())
    }
}

/// The bytes of a tensor.
fn bytes_of(dtype: Dtype, shape: &[usize]) -> u64 {
    shape.iter().map(|extent| *extent as u64).product::<u64>() * dtype.bitsize() as u64 / 8
}
