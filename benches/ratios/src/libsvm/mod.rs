//! LibSVM text in memory → a data set, whose arrays are made anew each time.

mod hand;

use crate::data::{Arrays, Data, Matrix, Random};
use crate::workload::{Error, Named, Workload, fingerprint};
use nnz::data::ColumnValues;
use nnz::data::libsvm::{IndexBase, Reader, write_to};
use nnz::kernels::Parallel;
use nnz::prelude::Dataset;

pub fn workloads(data: &Data) -> Vec<Named<'_>> {
    let mut list = Vec::new();
    for matrix in Matrix::ALL {
        let name = format!("LibSVM text → csr, {}", matrix.name());
        list.push(Named::new(name.clone(), move || against_hand(text(data, matrix)?)));
        let name = format!("2 threads, {name}");
        list.push(Named::new(name, move || threads(text(data, matrix)?)));
    }
    list
}

/// The matrix with labels, as our writer writes it: indices from one, values in as few digits as
/// tell them apart.
fn text(data: &Data, matrix: Matrix) -> Result<Vec<u8>, Error> {
    let features = data.matrix(matrix)?.clone();
    let mut random = Random(5);
    let labels = (0..features.n_rows()).map(|_| (random.bits() & 1) as f32).collect::<Vec<_>>();
    let mut text = Vec::new();
    write_to("text", &mut text, &Dataset::new(features, labels)?)?;
    Ok(text)
}

fn gigabytes<'a>(text: &[u8]) -> Workload<'a> {
    Workload::per_second("GB/s", 1e-9 * text.len() as f64)
}

fn against_hand<'a>(text: Vec<u8>) -> Result<Workload<'a>, Error> {
    let same = text.clone();
    let reader = Reader::new().index_base(IndexBase::One);
    Ok(gigabytes(&text)
        .contestant(
            "ours",
            None,
            move |out| *out = reader.read_bytes("text", &text).ok(),
            |out| out.as_ref().map_or(f64::NAN, of_dataset),
        )
        .contestant("hand", None, move |out| *out = hand::parse(&same), of_hand))
}

/// Ours with two threads against ours with one.
fn threads<'a>(text: Vec<u8>) -> Result<Workload<'a>, Error> {
    let mut workload = gigabytes(&text).wall().tolerance(0.0);
    for (name, parallel) in [("ours", Parallel::Threads(2)), ("one thread", Parallel::Sequential)] {
        let (text, reader) =
            (text.clone(), Reader::new().index_base(IndexBase::One).parallel(parallel));
        workload = workload.contestant(
            name,
            None,
            move |out| *out = reader.read_bytes("text", &text).ok(),
            |out| out.as_ref().map_or(f64::NAN, of_dataset),
        );
    }
    Ok(workload)
}

fn of_dataset(dataset: &Dataset) -> f64 {
    let (Some(features), Some(ColumnValues::Dense(labels))) =
        (dataset.features(), dataset.labels())
    else {
        return f64::NAN;
    };
    Arrays::of(features)
        .map_or(f64::NAN, |x| of_arrays(x.indptr, x.columns, x.values, labels.values()))
}

fn of_hand(rows: &Option<hand::Rows>) -> f64 {
    rows.as_ref()
        .map_or(f64::NAN, |rows| of_arrays(&rows.indptr, &rows.columns, &rows.values, &rows.labels))
}

fn of_arrays(indptr: &[u64], columns: &[u32], values: &[f32], labels: &[f32]) -> f64 {
    fingerprint(indptr.iter().map(|&end| end as f32))
        + fingerprint(columns.iter().map(|&column| column as f32))
        + fingerprint(values.iter().chain(labels).copied())
}
