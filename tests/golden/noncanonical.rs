//! Inputs with unsorted or repeated indices: refused when they are built, and brought into valid form where they are
//! given as coordinates.

use crate::case::{Tensor, cases, id};
use crate::compare::Tolerance;
use crate::create::{broken_csr, broken_rows, expand, names};
use crate::differences::{Reason, judge};
use crate::tally::Tally;
use nnz::core::storage::Storage;
use nnz::formats::{Csr, FormatError, RowSparse, Shape};
use nnz::kernels::Array;
use serde_json::Value;

/// In what a case differs.
#[derive(Debug, PartialEq)]
enum Kind {
    /// An operand is refused, and brought into valid form from its coordinates.
    Refused,
}

const REASONS: &[Reason<Kind>] = &[Reason {
    patterns: &["*"],
    kinds: &[Kind::Refused],
    why: "an operand that is not valid is refused when it is built, and valid when it is built from coordinates, which are added",
}];

#[test]
fn noncanonical() {
    let Some(cases) = cases("noncanonical") else { return };
    let mut tally = Tally::new("noncanonical");
    for case in &cases {
        tally.add(id(case), judge(REASONS, id(case), run_case(case)));
    }
    tally.finish();
}

fn run_case(case: &Value) -> Result<Option<Kind>, String> {
    let mut refused = None;
    for tensor in Tensor::read_all(&case["inputs"])?.iter().flatten() {
        let tolerance = Tolerance::of_case(id(case), "create");
        if tensor.stype() != Storage::Dense && run_operand(tensor, tolerance)? {
            refused = Some(Kind::Refused);
        }
    }
    refused.ok_or_else(|| "every operand is valid".to_owned()).map(Some)
}

/// Whether an operand is not valid, and is treated accordingly.
fn run_operand(tensor: &Tensor, tolerance: Tolerance) -> Result<bool, String> {
    let error = |error: FormatError| error.to_string();
    let shape = Shape::try_new(&tensor.shape).map_err(error)?;
    let values: Vec<f32> = tensor.data.iter().map(|&value| value as f32).collect();
    let signed = |ids: &[u64]| ids.iter().map(|&id| id as i64).collect::<Vec<_>>();
    let indices = tensor.indices.clone();
    let (built, broken, canonical) = if tensor.stype() == Storage::Csr {
        let (n_rows, n_cols) = shape.matrix().ok_or("a csr that is no matrix")?;
        let indptr = tensor.indptr.clone();
        let broken = broken_csr(n_rows, n_cols, &signed(&indptr), &signed(&indices), values.len());
        let entries = indptr.windows(2).enumerate().flat_map(|(row, ends)| {
            let places = ends[0] as usize..ends[1] as usize;
            let (indices, values) = (&indices, &values);
            places.map(move |at| (row, indices[at] as usize, values[at]))
        });
        let canonical = Csr::from_coo(n_rows, n_cols, entries).map(Array::Csr);
        let built = Csr::with_shape((n_rows, n_cols), indptr.clone(), indices.clone(), values);
        (built.map(Array::Csr), broken, canonical)
    } else {
        let broken = broken_rows(shape.n_rows(), &signed(&indices));
        let canonical = RowSparse::from_unsorted(shape, indices.clone(), values.clone());
        let built = RowSparse::new(shape, indices, values);
        (built.map(Array::RowSparse), broken, canonical.map(Array::RowSparse))
    };
    let canonical = canonical.map_err(error)?;
    check_canonical(&canonical)?;
    tolerance.compare("sums", expand(&canonical)?, &sums(tensor))?;
    match (built, broken.is_empty()) {
        (Ok(_), true) => Ok(false),
        (Err(error), false) => names(&error, &broken).map(|()| true),
        (Ok(_), false) => Err(format!("accepted, but {broken:?} is broken")),
        (Err(error), true) => Err(format!("refused: {error}")),
    }
}

/// Whether the parts of an array obey its invariant, by the definition.
fn check_canonical(array: &Array<f32>) -> Result<(), String> {
    let broken = match array {
        Array::Csr(csr) => {
            let parts = csr.clone().into_parts();
            let indptr: Vec<i64> = parts.indptr.iter().map(|&end| end as i64).collect();
            let columns: Vec<i64> =
                csr.iter_rows().flatten().map(|(column, _)| column as i64).collect();
            broken_csr(csr.n_rows(), csr.n_cols(), &indptr, &columns, parts.values.len())
        }
        Array::RowSparse(rows) => {
            let ids: Vec<i64> = rows.indices().iter().map(|&id| id as i64).collect();
            broken_rows(rows.shape().n_rows(), &ids)
        }
        other => return Err(format!("{} was built", other.storage())),
    };
    if broken.is_empty() { Ok(()) } else { Err(format!("not canonical: {broken:?}")) }
}

/// Every element, the values at one place added.
fn sums(tensor: &Tensor) -> Vec<f64> {
    let mut dense = vec![0.0; tensor.size()];
    let row_size: usize = tensor.shape[1..].iter().product();
    if tensor.stype() == Storage::Csr {
        for (row, ends) in tensor.indptr.windows(2).enumerate() {
            for at in ends[0] as usize..ends[1] as usize {
                dense[row * row_size + tensor.indices[at] as usize] += tensor.data[at];
            }
        }
    } else {
        for (position, &row) in tensor.indices.iter().enumerate() {
            for column in 0..row_size {
                dense[row as usize * row_size + column] +=
                    tensor.data[position * row_size + column];
            }
        }
    }
    dense
}
