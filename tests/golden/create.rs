//! Building arrays from their parts, valid and invalid.
//!
//! What is not valid must be refused, and the message must name the numbers of an invariant that it
//! breaks. Which ones those are is found here anew, by the definition and not by the library.

use crate::golden::case::{Tensor, cases, id, numbers};
use crate::golden::compare::Tolerance;
use crate::golden::differences::{Reason, judge};
use crate::golden::reasons::Relaxes;
use crate::golden::tally::{Tally, finish};
use nnz::formats::{Csr, FormatError, RowSparse, Shape, ids_from_signed};
use nnz::kernels::Array;
use serde_json::Value;

pub(crate) const REASONS: &[Reason] = &[Reason {
    patterns: &["csr_matrix.*", "row_sparse_array.*", "csr_from_coo.*"],
    relaxes: Relaxes::Acceptance,
    why: "an array that is not valid is refused when it is built; the reference builds it, and its operators disagree on it",
}];

#[test]
fn create() {
    finish(judged());
}

pub(crate) fn judged() -> Option<Tally> {
    let mut tally = Tally::new("create");
    for case in &cases("create")? {
        tally.add(id(case), judge(REASONS, id(case), run_case(case)));
    }
    Some(tally)
}

fn run_case(case: &Value) -> Result<Vec<Relaxes>, String> {
    let parts = Parts::read(case)?;
    let broken = parts.broken();
    match (parts.build(), case["valid"].as_bool()) {
        (Ok(array), Some(true)) => {
            let expected = Tensor::read(&case["outputs"][0])?;
            same_parts(&array, &expected)?;
            let dense = numbers(&case["dense_value"]).ok_or("`dense_value` cannot be read")?;
            let dense = if case["dense_value"].is_null() { expected.expand() } else { dense };
            let found = expand(&array)?;
            Tolerance::of_case(id(case), "create").compare("dense", found, &dense)?;
            Ok(Vec::new())
        }
        (Err(error), Some(false)) => names(&error, &broken).map(|()| vec![Relaxes::Acceptance]),
        (Ok(_), Some(false)) => Err(format!("accepted, but {broken:?} is broken")),
        (Err(error), Some(true)) => Err(format!("refused: {error}")),
        (_, None) => Err("not said to be valid or not".into()),
    }
}

/// The parts of an array, as integers with a sign.
struct Parts {
    op: String,
    shape: Vec<usize>,
    data: Vec<f32>,
    indices: Vec<i64>,
    indptr: Vec<i64>,
    rows: Vec<i64>,
}

impl Parts {
    fn read(case: &Value) -> Result<Self, String> {
        let input = |name: &str| -> Result<Vec<f64>, String> {
            let inputs = case["inputs"].as_array().ok_or("no inputs")?;
            let tensor = inputs.iter().find(|input| input["name"] == name);
            tensor.map_or(Ok(Vec::new()), |tensor| Ok(Tensor::read(tensor)?.data))
        };
        let ids = |name| Ok::<_, String>(input(name)?.iter().map(|&id| id as i64).collect());
        let op = case["op"].as_str().ok_or("no operator")?.to_owned();
        let extents = case["attrs"]["shape"].as_array().ok_or("no shape")?.iter();
        let shape = extents.map(|extent| extent.as_u64().map(|extent| extent as usize));
        Ok(Parts {
            shape: shape.collect::<Option<_>>().ok_or("the shape cannot be read")?,
            data: input("data")?.iter().map(|&value| value as f32).collect(),
            indices: ids(if op == "csr_from_coo" { "col" } else { "indices" })?,
            indptr: ids("indptr")?,
            rows: ids("row")?,
            op,
        })
    }

    /// The array, by the constructor that the operator stands for.
    fn build(&self) -> Result<Array<f32>, FormatError> {
        let indices = ids_from_signed(&self.indices)?;
        let shape = Shape::try_new(&self.shape)?;
        if self.op == "row_sparse_array" {
            return Ok(Array::RowSparse(RowSparse::new(shape, indices, self.data.clone())?));
        }
        let rank = FormatError::Rank { operation: "csr", expected: 2, shape };
        let (n_rows, n_cols) = shape.matrix().ok_or(rank)?;
        Ok(Array::Csr(if self.op == "csr_from_coo" {
            let rows = ids_from_signed(&self.rows)?;
            let places = rows.iter().zip(&indices).map(|(&row, &column)| (row as usize, column));
            let entries = places.zip(&self.data);
            Csr::from_coo(n_rows, n_cols, entries.map(|((r, c), &v)| (r, c as usize, v)))?
        } else {
            let indptr = ids_from_signed(&self.indptr)?;
            Csr::with_shape((n_rows, n_cols), indptr, indices, self.data.clone())?
        }))
    }

    fn broken(&self) -> Vec<Vec<i64>> {
        match (&self.op[..], &self.shape[..]) {
            ("csr_matrix", &[n_rows, n_cols]) => {
                broken_csr(n_rows, n_cols, &self.indptr, &self.indices, self.data.len())
            }
            ("row_sparse_array", &[n_rows, ..]) => broken_rows(n_rows, &self.indices),
            ("csr_from_coo", &[n_rows, n_cols]) => {
                let outside = |id: i64, n: usize| id < 0 || id >= n as i64;
                let places = self.rows.iter().zip(&self.indices).enumerate();
                places
                    .filter(|(_, (row, column))| {
                        outside(**row, n_rows) || outside(**column, n_cols)
                    })
                    .map(|(position, (&row, &column))| vec![position as i64, row, column])
                    .collect()
            }
            _ => Vec::new(),
        }
    }
}

/// The invariants of csr that do not hold: the numbers that a message has to name, for each.
pub(crate) fn broken_csr(
    n_rows: usize,
    n_cols: usize,
    indptr: &[i64],
    columns: &[i64],
    n_values: usize,
) -> Vec<Vec<i64>> {
    let mut broken = Vec::new();
    let [stored, n_values] = [columns.len() as i64, n_values as i64];
    if indptr.len() != n_rows + 1 {
        broken.push(vec![indptr.len() as i64, n_rows as i64]);
    }
    broken.extend(indptr.first().filter(|&&first| first != 0).map(|&first| vec![first]));
    broken.extend(indptr.last().filter(|&&last| last != stored).map(|&last| vec![last, stored]));
    if stored != n_values {
        broken.push(vec![stored, n_values]);
    }
    for (row, ends) in indptr.windows(2).enumerate() {
        if ends[0] > ends[1] {
            broken.push(vec![row as i64, ends[0], ends[1]]);
        }
        for position in ends[0].max(0)..ends[1].min(stored) {
            let column = columns[position as usize];
            let place = vec![column, row as i64, position];
            if column < 0 {
                broken.push(vec![column, position]);
            } else if column >= n_cols as i64 {
                broken.push([place, vec![n_cols as i64]].concat());
            } else if position > ends[0] && columns[position as usize - 1] >= column {
                broken.push([place, vec![columns[position as usize - 1]]].concat());
            }
        }
    }
    broken
}

/// As [`broken_csr`], for the row ids of row_sparse.
pub(crate) fn broken_rows(n_rows: usize, ids: &[i64]) -> Vec<Vec<i64>> {
    let mut broken = Vec::new();
    for (position, &id) in ids.iter().enumerate() {
        let before = position.checked_sub(1).map(|before| ids[before]);
        if id < 0 {
            broken.push(vec![id, position as i64]);
        } else if id >= n_rows as i64 {
            broken.push(vec![id, position as i64, n_rows as i64]);
        } else if let Some(before) = before.filter(|&before| before >= id) {
            broken.push(vec![id, position as i64, before]);
        }
    }
    broken
}

/// Whether a message names all the numbers of something that is broken.
pub(crate) fn names(error: &FormatError, broken: &[Vec<i64>]) -> Result<(), String> {
    let message = error.to_string();
    let found: Vec<i64> = message
        .split(|c: char| !c.is_ascii_digit() && c != '-')
        .filter_map(|word| word.parse().ok())
        .collect();
    if broken.iter().any(|numbers| numbers.iter().all(|number| found.contains(number))) {
        Ok(())
    } else {
        Err(format!("`{message}` names none of {broken:?}"))
    }
}

/// Every element of an array.
pub(crate) fn expand(array: &Array<f32>) -> Result<Vec<f64>, String> {
    let dense = match array {
        Array::Csr(csr) => csr.to_dense(),
        Array::RowSparse(rows) => rows.to_dense(),
        other => return Err(format!("{} was built", other.storage())),
    };
    let dense = dense.map_err(|error| error.to_string())?;
    Ok(dense.values().iter().map(|&value| value.into()).collect())
}

/// Whether an array has the parts recorded: what is stored where.
pub(crate) fn same_parts(array: &Array<f32>, expected: &Tensor) -> Result<(), String> {
    let expected = expected.array()?;
    let same = match (array, &expected) {
        (Array::Csr(found), Array::Csr(expected)) => found == expected,
        (Array::RowSparse(found), Array::RowSparse(expected)) => found == expected,
        _ => false,
    };
    let shapes = (array.shape(), expected.shape());
    if same { Ok(()) } else { Err(format!("other parts, of shapes {shapes:?}")) }
}
