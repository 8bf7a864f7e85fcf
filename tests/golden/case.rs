//! Cases as the files hold them: JSON lines, tensors, numbers.

use crate::folder::find;
use nnz::core::storage::Storage;
use nnz::formats::{Csr, Dense, RowSparse, Shape};
use nnz::kernels::Array;
use serde_json::Value;

/// A tensor of a case: its parts as written, numbers in `f64`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tensor {
    pub(crate) name: String,
    pub(crate) storage: Option<Storage>,
    pub(crate) shape: Vec<usize>,
    pub(crate) data: Vec<f64>,
    pub(crate) indices: Vec<u64>,
    pub(crate) indptr: Vec<u64>,
    /// Whether an operator reads it as ids, which the reference holds in numbers.
    pub(crate) holds_ids: bool,
}

/// The cases of a file; `None` where it is missing and may be.
pub(crate) fn cases(file: &str) -> Option<Vec<Value>> {
    let path = find("NNZ_GOLDEN", "shared/golden", &format!("{file}.jsonl"))?;
    let text = std::fs::read_to_string(&path).unwrap();
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let cases: Vec<Value> = lines
        .map(|(number, line)| {
            serde_json::from_str(line)
                .unwrap_or_else(|error| panic!("{}:{}: {error}", path.display(), number + 1))
        })
        .collect();
    assert!(!cases.is_empty(), "{} has no cases", path.display());
    Some(cases)
}

/// The id of a case.
pub(crate) fn id(case: &Value) -> &str {
    case["id"].as_str().unwrap_or("(no id)")
}

/// A number, or one of the words that JSON has no number for.
pub(crate) fn number(value: &Value) -> Option<f64> {
    match value.as_str() {
        Some("nan") => Some(f64::NAN),
        Some("inf") => Some(f64::INFINITY),
        Some("-inf") => Some(f64::NEG_INFINITY),
        Some(_) => None,
        None => value.as_f64(),
    }
}

/// A list of numbers; nothing where the field is missing.
pub(crate) fn numbers(value: &Value) -> Option<Vec<f64>> {
    value.as_array().map_or(Some(Vec::new()), |list| list.iter().map(number).collect())
}

fn integers(value: &Value) -> Option<Vec<u64>> {
    value.as_array().map_or(Some(Vec::new()), |list| list.iter().map(Value::as_u64).collect())
}

/// A storage type by the reference's word.
pub(crate) fn storage(word: &Value) -> Option<Storage> {
    match word.as_str()? {
        "default" => Some(Storage::Dense),
        word => word.parse().ok(),
    }
}

impl Tensor {
    /// Reads a tensor, or says what cannot be read. A shape alone is a tensor too.
    pub(crate) fn read(value: &Value) -> Result<Tensor, String> {
        let name = value["name"].as_str().unwrap_or_default().to_owned();
        let missing = |what: &str| format!("`{name}` has no {what} that can be read");
        let tensor = Tensor {
            storage: storage(&value["stype"]),
            shape: (integers(&value["shape"]).ok_or_else(|| missing("shape"))?.iter())
                .map(|&extent| extent as usize)
                .collect(),
            data: numbers(&value["data"]).ok_or_else(|| missing("data"))?,
            indices: integers(&value["indices"]).ok_or_else(|| missing("indices"))?,
            indptr: integers(&value["indptr"]).ok_or_else(|| missing("indptr"))?,
            name: name.clone(),
            holds_ids: false,
        };
        match tensor.storage {
            Some(_) => Ok(tensor),
            None => Err(missing("storage type")),
        }
    }

    /// The tensors of a list; `None` for each `null`.
    pub(crate) fn read_all(list: &Value) -> Result<Vec<Option<Tensor>>, String> {
        let list = list.as_array().map_or(&[][..], |list| list);
        list.iter()
            .map(|value| if value.is_null() { Ok(None) } else { Tensor::read(value).map(Some) })
            .collect()
    }

    /// The storage type, as read.
    pub(crate) fn stype(&self) -> Storage {
        self.storage.unwrap_or(Storage::Dense)
    }

    /// The number of elements.
    pub(crate) fn size(&self) -> usize {
        self.shape.iter().product()
    }

    /// Every element; what is not stored is zero.
    pub(crate) fn expand(&self) -> Vec<f64> {
        let mut dense = vec![0.0; self.size()];
        match self.stype() {
            Storage::Dense => dense.copy_from_slice(&self.data),
            Storage::Csr => {
                for (row, ends) in self.indptr.windows(2).enumerate() {
                    for at in ends[0] as usize..ends[1] as usize {
                        dense[row * self.shape[1] + self.indices[at] as usize] = self.data[at];
                    }
                }
            }
            Storage::RowSparse => {
                let row_size: usize = self.shape[1..].iter().product();
                for (position, &row) in self.indices.iter().enumerate() {
                    dense[row as usize * row_size..][..row_size]
                        .copy_from_slice(&self.data[position * row_size..][..row_size]);
                }
            }
        }
        dense
    }

    /// The same, stored densely.
    pub(crate) fn expanded(&self) -> Tensor {
        Tensor {
            name: self.name.clone(),
            storage: Some(Storage::Dense),
            shape: self.shape.clone(),
            data: self.expand(),
            ..Tensor::default()
        }
    }

    /// The same, 1 at each element that is stored.
    pub(crate) fn pattern(&self) -> Tensor {
        Tensor { data: vec![1.0; self.data.len()], ..self.clone() }
    }

    /// The tensor as an array of this library, through the constructors that check.
    pub(crate) fn array(&self) -> Result<Array<f32>, String> {
        let error = |error: nnz::formats::FormatError| format!("`{}`: {error}", self.name);
        let shape = Shape::try_new(&self.shape).map_err(error)?;
        if self.holds_ids {
            let ids = self.data.iter().map(|&id| id as i64).collect();
            return Ok(Array::Ids(Dense::<i64>::new(shape, ids).map_err(error)?.into()));
        }
        let data = self.data.iter().map(|&value| value as f32).collect();
        Ok(match self.stype() {
            Storage::Dense => Array::Dense(Dense::new(shape, data).map_err(error)?),
            Storage::Csr => {
                let [_, n_cols] = self.shape[..] else {
                    return Err(format!("`{}` is a csr of shape {shape}", self.name));
                };
                let (indptr, columns) = (self.indptr.clone(), self.indices.clone());
                let size = (self.shape[0], n_cols);
                Array::Csr(Csr::with_shape(size, indptr, columns, data).map_err(error)?)
            }
            Storage::RowSparse => {
                Array::RowSparse(RowSparse::new(shape, self.indices.clone(), data).map_err(error)?)
            }
        })
    }

    /// The tensor as integer ids, where every number is one.
    pub(crate) fn ids(&self) -> Result<Dense<u32>, String> {
        let ids: Option<Vec<u32>> = (self.data.iter())
            .map(|&value| (value as u32 as f64 == value).then_some(value as u32))
            .collect();
        let ids = ids.ok_or_else(|| format!("`{}` holds no ids", self.name))?;
        let shape = Shape::try_new(&self.shape).map_err(|error| error.to_string())?;
        Dense::new(shape, ids).map_err(|error| error.to_string())
    }
}
