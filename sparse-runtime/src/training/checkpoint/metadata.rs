//! What a checkpoint says about itself.

use super::error::{CheckpointError, ParameterMismatch};
use crate::formats::Shape;
use crate::model::{Dims, Model};
use safetensors::tensor::{Dtype, Metadata, TensorInfo};
use serde::{Deserialize, Serialize};
use sparse_core::element::Stored;
use sparse_core::storage::{ElementType, Storage};
use std::collections::HashMap;
use std::path::Path;

/// The format that this version writes and reads.
pub(super) const FORMAT: u32 = 1;

/// The entry of the safetensors metadata that holds ours. One entry, because the order of several would
/// change from file to file.
const KEY: &str = "nnz";

/// What a checkpoint says about itself, without its values.
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
    /// Where its values are, counted from the end of the header.
    pub(super) offset: u64,
}

/// Our entry, as it is written. Numbers of 64 bits are hexadecimal text: JSON's lose bits.
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
}

#[derive(Serialize, Deserialize)]
struct EntryParameter {
    name: String,
    storage: String,
    checksum: String,
}

impl CheckpointMetadata {
    /// Of a model, whose parameters have these checksums.
    pub(super) fn of_model<M: Model>(model: &M, checksums: &[u64]) -> Self {
        let mut offset = 0;
        let parameters = model
            .parameters()
            .iter()
            .zip(M::PARAMETERS)
            .zip(checksums)
            .map(|((parameter, info), &checksum)| {
                let start = offset;
                offset += size_of_val(parameter.values()) as u64;
                SavedParameter {
                    name: info.name.to_owned(),
                    storage: info.storage,
                    element: M::Element::TYPE,
                    shape: parameter.shape,
                    checksum,
                    offset: start,
                }
            })
            .collect();
        CheckpointMetadata {
            model: M::NAME.to_owned(),
            fingerprint: M::FINGERPRINT,
            dims: model.dims().clone(),
            parameters,
        }
    }

    /// The header of the file: a safetensors header, padded to a multiple of 8 bytes.
    pub(super) fn header(&self, path: &Path) -> Result<Vec<u8>, CheckpointError> {
        let impossible =
            |problem: String| CheckpointError::Malformed { path: path.to_owned(), problem };
        let entry = Entry {
            format: FORMAT,
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
        };
        let entry = serde_json::to_string(&entry).map_err(|error| impossible(error.to_string()))?;
        let tensors = self.parameters.iter().map(|parameter| {
            let start = parameter.offset as usize;
            let bytes = parameter.shape.size() * parameter.element.bytes() as usize;
            let info = TensorInfo {
                dtype: dtype(parameter.element),
                shape: parameter.shape.to_vec(),
                data_offsets: (start, start + bytes),
            };
            (parameter.name.clone(), info)
        });
        let metadata = HashMap::from([(KEY.to_owned(), entry)]);
        let header = Metadata::new(Some(metadata), tensors.collect())
            .map_err(|error| impossible(error.to_string()))?;
        let mut header =
            serde_json::to_vec(&header).map_err(|error| impossible(error.to_string()))?;
        header.resize(header.len().next_multiple_of(8), b' ');
        Ok(header)
    }

    /// From the header of a file.
    pub(super) fn parse(path: &Path, header: &Metadata) -> Result<Self, CheckpointError> {
        let malformed =
            |problem: String| CheckpointError::Malformed { path: path.to_owned(), problem };
        let entry =
            (header.metadata().as_ref()).and_then(|metadata| metadata.get(KEY)).ok_or_else(
                || malformed(format!("it is a safetensors file without the entry `{KEY}`")),
            )?;
        let entry: Entry = serde_json::from_str(entry)
            .map_err(|error| malformed(format!("its entry `{KEY}`: {error}")))?;
        if entry.format != FORMAT {
            return Err(CheckpointError::Format {
                path: path.to_owned(),
                found: entry.format,
                supported: FORMAT,
            });
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
        if let Some(name) = tensors.keys().min() {
            return Err(malformed(format!("tensor `{name}` is no parameter")));
        }
        Ok(CheckpointMetadata {
            model: entry.model,
            fingerprint: hexadecimal(&entry.fingerprint)?,
            dims: (entry.dims.iter())
                .fold(Dims::new(), |dims, (name, extent)| dims.with(name, *extent)),
            parameters,
        })
    }

    /// Refuses a file that does not hold exactly the parameters of a model.
    pub(super) fn check<M: Model>(&self, path: &Path, model: &M) -> Result<(), CheckpointError> {
        let mismatch = self.first_mismatch(model).map(Box::new);
        if self.fingerprint != M::FINGERPRINT {
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
            None => Ok(()),
            Some(mismatch) => Err(CheckpointError::Parameter { path: path.to_owned(), mismatch }),
        }
    }

    /// The saved parameter of a name.
    pub(super) fn parameter(&self, name: &str) -> Option<&SavedParameter> {
        self.parameters.iter().find(|saved| saved.name == name)
    }

    fn first_mismatch<M: Model>(&self, model: &M) -> Option<ParameterMismatch> {
        for (parameter, info) in model.parameters().iter().zip(M::PARAMETERS) {
            let name = || info.name.to_owned();
            let Some(saved) = self.parameter(info.name) else {
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
        let known = |name: &str| M::PARAMETERS.iter().any(|info| info.name == name);
        let unexpected = self.parameters.iter().find(|saved| !known(&saved.name))?;
        Some(ParameterMismatch::Unexpected { parameter: unexpected.name.clone() })
    }
}

/// The types that a file and the language have in common, each pair once.
const TYPES: [(ElementType, Dtype); 7] = [
    (ElementType::F32, Dtype::F32),
    (ElementType::F64, Dtype::F64),
    (ElementType::F16, Dtype::F16),
    (ElementType::BF16, Dtype::BF16),
    (ElementType::U32, Dtype::U32),
    (ElementType::U64, Dtype::U64),
    (ElementType::I64, Dtype::I64),
];

fn dtype(element: ElementType) -> Dtype {
    let known = TYPES.iter().find(|(known, _)| *known == element);
    // The table has every type that a parameter can have, as a test checks.
    known.map_or(Dtype::U8, |(_, dtype)| *dtype)
}

fn element(dtype: Dtype) -> Option<ElementType> {
    let known = TYPES.iter().find(|(_, known)| *known == dtype);
    known.map(|(element, _)| *element)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_element_type_can_be_written() {
        for element_type in ElementType::ALL.into_iter().filter(|known| known.bytes() > 0) {
            let dtype = dtype(element_type);
            assert_eq!(element(dtype), Some(element_type));
            assert_eq!(dtype.bitsize() as u64, 8 * element_type.bytes());
        }
    }
}
