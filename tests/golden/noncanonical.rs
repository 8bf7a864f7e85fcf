//! Inputs with unsorted or repeated indices: refused when they are built, and brought into valid
//! form where they are given as coordinates.

use crate::golden::case::{Tensor, cases, id};
use crate::golden::compare::Tolerance;
use crate::golden::compilation::{Compilation, forward, operand_name};
use crate::golden::create::{broken_csr, broken_rows, expand, names};
use crate::golden::device::{Device, Failure, Host};
use crate::golden::differences::{Reason, judge};
use crate::golden::operators::elements;
use crate::golden::reasons::Relaxes;
use crate::golden::recipes::{Build, Recipe, recipe};
use crate::golden::refusals::of_dense;
use crate::golden::tally::{Tally, finish};
use nnz::core::storage::Storage;
use nnz::formats::{Csr, FormatError, RowSparse, Shape};
use nnz::kernels::Array;
use serde_json::Value;
use std::collections::HashMap;

pub(crate) const REASONS: &[Reason] = &[
    Reason {
        patterns: &["*"],
        relaxes: Relaxes::Acceptance,
        why: "an operand that is not valid is refused when it is built, and valid when it is built from coordinates, which are added",
    },
    Reason {
        patterns: &["*unsorted", "*duplicate*"],
        relaxes: Relaxes::Values,
        why: "the reference's operators disagree on what values at one place or out of order mean: the result is that of the dense sums",
    },
];

#[test]
fn noncanonical() {
    finish(judged(&Host));
}

pub(crate) fn judged<D: Device>(on: &D) -> Option<Tally> {
    let mut tally = Tally::new(&format!("noncanonical{}", D::SUFFIX));
    for case in &cases("noncanonical")? {
        tally.add(id(case), judge(REASONS, id(case), run_case(case, on)));
    }
    Some(tally)
}

fn run_case(case: &Value, on: &impl Device) -> Result<Vec<Relaxes>, Failure> {
    let inputs = Tensor::read_all(&case["inputs"])?;
    let mut inputs: Vec<Tensor> = inputs.into_iter().collect::<Option<_>>().ok_or("no input")?;
    let mut arrays = HashMap::new();
    let mut is_valid = true;
    for (index, tensor) in inputs.iter_mut().enumerate() {
        let tolerance = Tolerance::of_case(id(case), "create");
        let array = match tensor.stype() {
            Storage::Dense => tensor.array()?,
            _ => {
                let (array, valid) = run_operand(tensor, tolerance)?;
                is_valid &= valid;
                *tensor = Tensor { data: sums(tensor), ..dense_like(tensor) };
                array
            }
        };
        arrays.insert(operand_name(index), array);
    }
    if is_valid {
        return Err("every operand is valid".into());
    }
    let op = case["op"].as_str().ok_or("no operator")?;
    let Recipe::Built { build, explicit, .. } = recipe(op, &case["attrs"])? else {
        return Err(format!("no recipe of `{op}`").into());
    };
    // The operator of the arrays that were built is that of the dense sums.
    let storage = |graph: &Build, fallback| {
        let mut typed = inputs.clone();
        for (index, tensor) in typed.iter_mut().enumerate() {
            tensor.storage = Some(arrays[&operand_name(index)].storage());
        }
        forward(graph, &typed, fallback)
    };
    let compiled = Compilation::of(&build, explicit.as_ref(), storage)?;
    let values = on.evaluate(compiled.compiled(), &arrays)?;
    let found = elements(values.output("o").ok_or("no output")?)?;
    let tolerance = Tolerance::of_case(id(case), op);
    let expected = of_dense(&inputs, &build, explicit.as_ref())?;
    tolerance.compare("output", found.iter().copied(), &expected.data)?;

    let recorded = Tensor::read(&case["outputs"][0])?.expand();
    let mut relaxed = vec![Relaxes::Acceptance];
    if tolerance.compare("output", found, &recorded).is_err() {
        relaxed.push(Relaxes::Values);
    }
    Ok(relaxed)
}

fn dense_like(tensor: &Tensor) -> Tensor {
    Tensor {
        name: tensor.name.clone(),
        storage: Some(Storage::Dense),
        shape: tensor.shape.clone(),
        ..Tensor::default()
    }
}

/// The operand that is built from coordinates, and whether the parts are valid, and are accepted or
/// refused accordingly.
fn run_operand(tensor: &Tensor, tolerance: Tolerance) -> Result<(Array<f32>, bool), String> {
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
        (Ok(_), true) => Ok((canonical, true)),
        (Err(error), false) => names(&error, &broken).map(|()| (canonical, false)),
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
