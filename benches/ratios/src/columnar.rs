//! Sparse rows of a Parquet file → a data set, against LibSVM text of the same rows; and a table
//! with hashed columns against its CSV.

use crate::data::{Arrays, Data};
use crate::workload::{Error, Named, Workload, fingerprint};
use arrow_array::builder::{Float32Builder, ListBuilder, UInt32Builder};
use arrow_array::{ArrayRef, Float32Array, RecordBatch, StringArray};
use nnz::data::libsvm::{self, IndexBase, Reader};
use nnz::data::{ColumnValues, Delimited, Hashing, SparseColumns, TextReader};
use nnz::prelude::*;
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use std::fs::{self, File};
use std::path::PathBuf;
use std::sync::Arc;

/// The rows of a row group.
const GROUP: usize = 10_000;

/// A file that is removed in the end.
struct Temporary(PathBuf);

impl Temporary {
    fn new(name: &str) -> Self {
        let name = format!("nnz-ratios-{}-{name}", std::process::id());
        Temporary(std::env::temp_dir().join(name))
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

pub fn workloads(data: &Data) -> Vec<Named<'_>> {
    vec![lists(data), table(data)]
}

fn lists(data: &Data) -> Named<'_> {
    Named::new("Parquet lists → csr, clicks, against LibSVM text", move || {
        let log = data.log(20)?;
        let text = Temporary::new("rows.svm");
        libsvm::write(&text.0, log)?;
        let (features, labels) = parts(log)?;
        let mut indices = ListBuilder::new(UInt32Builder::new());
        let mut values = ListBuilder::new(Float32Builder::new());
        for row in features.iter_rows() {
            for (column, value) in row {
                indices.values().append_value(column as u32);
                values.values().append_value(value);
            }
            indices.append(true);
            values.append(true);
        }
        let labels: ArrayRef = Arc::new(Float32Array::from(labels.to_vec()));
        let columns: [(&str, ArrayRef); 3] = [
            ("label", labels),
            ("indices", Arc::new(indices.finish())),
            ("values", Arc::new(values.finish())),
        ];
        let file = Temporary::new("rows.parquet");
        write(&file, &RecordBatch::try_from_iter(columns)?)?;
        let width = features.n_cols();
        let (rows, reader) = (
            TextReader::new(SparseColumns::new().n_features(width)),
            Reader::new().index_base(IndexBase::One).n_features(width),
        );
        let entries = 1e-6 * features.nnz() as f64;
        Ok(Workload::per_second("M entries/s", entries)
            .contestant("nnz", None, move |out| *out = rows.read_path(&file.0).ok(), of_dataset)
            .contestant(
                "LibSVM",
                None,
                move |out| *out = reader.read_path(&text.0).ok(),
                of_dataset,
            ))
    })
}

fn table(data: &Data) -> Named<'_> {
    Named::new("Parquet table → csr, clicks, against CSV", move || {
        let (features, labels) = parts(data.log(20)?)?;
        let mut cells: Vec<Vec<String>> = vec![Vec::new(); 39];
        let mut csv = String::new();
        for (row, label) in features.iter_rows().zip(labels) {
            csv += &label.to_string();
            let row: Vec<usize> = row.map(|(column, _)| column).collect();
            for (at, cells) in cells.iter_mut().enumerate() {
                let cell = row.get(at).map_or(String::new(), |column| format!("{column:x}"));
                csv += &format!(",{cell}");
                cells.push(cell);
            }
            csv.push('\n');
        }
        let text = Temporary::new("table.csv");
        fs::write(&text.0, csv)?;
        let labels: ArrayRef = Arc::new(Float32Array::from(labels.to_vec()));
        let mut columns = vec![("y".to_owned(), labels)];
        let mut format = Delimited::csv(Hashing::new(20)?).label("y");
        for (at, cells) in cells.into_iter().enumerate() {
            format = format.categorical(&format!("c{at}"));
            columns.push((format!("c{at}"), Arc::new(StringArray::from(cells)) as ArrayRef));
        }
        let file = Temporary::new("table.parquet");
        write(&file, &RecordBatch::try_from_iter(columns)?)?;
        let (rows, reader) = (TextReader::new(format.clone()), TextReader::new(format));
        let entries = 1e-6 * features.nnz() as f64;
        Ok(Workload::per_second("M entries/s", entries)
            .contestant("nnz", None, move |out| *out = rows.read_path(&file.0).ok(), of_dataset)
            .contestant("CSV", None, move |out| *out = reader.read_path(&text.0).ok(), of_dataset))
    })
}

fn parts(log: &Dataset) -> Result<(&nnz::formats::Csr, &[f32]), Error> {
    match (log.features(), log.labels()) {
        (Some(features), Some(ColumnValues::Dense(labels))) => Ok((features, labels.values())),
        _ => Err("the log has features and labels".into()),
    }
}

fn write(file: &Temporary, batch: &RecordBatch) -> Result<(), Error> {
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY);
    let properties = properties.set_max_row_group_row_count(Some(GROUP)).build();
    let mut writer =
        ArrowWriter::try_new(File::create(&file.0)?, batch.schema(), Some(properties))?;
    writer.write(batch)?;
    writer.close()?;
    Ok(())
}

fn of_dataset(data: &Option<Dataset>) -> f64 {
    let Some((features, labels)) = data.as_ref().and_then(|data| parts(data).ok()) else {
        return f64::NAN;
    };
    Arrays::of(features).map_or(f64::NAN, |x| {
        fingerprint(x.columns.iter().map(|&column| column as f32))
            + fingerprint(x.values.iter().chain(labels).copied())
    })
}
