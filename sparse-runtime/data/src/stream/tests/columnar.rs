//! Streams of columnar files against the same files in memory.

use super::*;
use crate::{SparseColumns, TextReader};
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_ipc::writer::FileWriter;
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;
use std::fs::File;
use std::path::Path;

/// The entries and the label of each row of an epoch.
fn rows(data: &impl DataSource<f32>, order: Order) -> Vec<(Vec<(usize, f32)>, f32)> {
    let options = options(7, order, LastBatch::Short);
    let mut batches = data.batches(INPUTS, &options).unwrap();
    batches.start_epoch(0).unwrap();
    let mut found = Vec::new();
    while let Some(batch) = batches.next_batch().unwrap() {
        let (x, y) = (batch.csr(0).unwrap(), batch.dense(1).unwrap());
        let entries = x.iter_rows().map(Iterator::collect);
        found.extend(entries.zip(y.values().iter().copied()));
    }
    found
}

fn batch(n_rows: i64, bad: Option<i64>) -> RecordBatch {
    let y: ArrayRef = Arc::new((0..n_rows).map(Some).collect::<Int64Array>());
    let colour: ArrayRef =
        Arc::new((0..n_rows).map(|i| Some(format!("c{}", i % 97))).collect::<StringArray>());
    let number = |i: i64| if Some(i) == bad { "old".to_owned() } else { format!("{}", i % 31 + 1) };
    let age: ArrayRef = Arc::new((0..n_rows).map(|i| Some(number(i))).collect::<StringArray>());
    RecordBatch::try_from_iter([("age", age), ("y", y), ("colour", colour)]).unwrap()
}

fn parquet(name: &str, batch: &RecordBatch, group: usize) -> TempFile {
    let file = TempFile::new(name, "");
    let properties = WriterProperties::builder().set_max_row_group_row_count(Some(group)).build();
    let open = File::create(&file.0).unwrap();
    let mut writer = ArrowWriter::try_new(open, batch.schema(), Some(properties)).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
    file
}

fn arrow(name: &str, batch: &RecordBatch, group: usize) -> TempFile {
    let file = TempFile::new(name, "");
    let mut writer = FileWriter::try_new(File::create(&file.0).unwrap(), &batch.schema()).unwrap();
    for start in (0..batch.num_rows()).step_by(group) {
        writer.write(&batch.slice(start, group.min(batch.num_rows() - start))).unwrap();
    }
    writer.finish().unwrap();
    file
}

fn table() -> Delimited {
    let format = Delimited::csv(Hashing::new(12).unwrap());
    format.with_schema("y:label,colour:categorical,age:numeric").unwrap()
}

fn streamed(path: &Path, threads: usize) -> StreamedDataset {
    let stream = Stream::new(table()).file(path).buffer(1 << 20);
    stream.parallel(Parallel::Threads(threads)).open().unwrap()
}

#[test]
fn rows_of_columnar_files_stream_as_they_are_read() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/columnar");
    for name in ["rows_pyarrow.parquet", "rows_pyarrow.feather", "rows_spark.parquet"] {
        let memory: Dataset =
            TextReader::new(SparseColumns::new()).read_path(folder.join(name)).unwrap();
        let stream = Stream::new(SparseColumns::new()).file(folder.join(name)).open().unwrap();
        assert_eq!(stream.n_features(), 6, "{name}");
        assert_eq!(rows(&stream, Order::Sequential), rows(&memory, Order::Sequential), "{name}");
    }
}

#[test]
fn row_groups_stream_in_an_order_that_does_not_depend_on_threads() {
    let all = batch(20_000, None);
    for file in [parquet("groups.pq", &all, 900), arrow("groups.arrow", &all, 900)] {
        let memory: Dataset = TextReader::new(table()).read_path(&file.0).unwrap();
        let memory = rows(&memory, Order::Sequential);
        let (one, three) = (streamed(&file.0, 1), streamed(&file.0, 3));
        assert_eq!(rows(&one, Order::Sequential), memory);
        assert_eq!(one.n_rows(), Some(20_000));
        let order = Order::Shuffled { seed: 1 };
        let mut shuffled = rows(&three, order);
        assert_eq!(rows(&one, order), shuffled);
        assert_ne!(shuffled, memory);
        shuffled.sort_by(|a, b| a.1.total_cmp(&b.1));
        assert_eq!(shuffled, memory);
    }
}

#[test]
fn faults_of_row_groups_are_at_their_rows() {
    let all = batch(5000, Some(3210));
    for file in [parquet("fault.pq", &all, 900), arrow("fault.arrow", &all, 900)] {
        let data = streamed(&file.0, 2);
        let options = options(7, Order::Shuffled { seed: 3 }, LastBatch::Short);
        let mut batches = data.batches(INPUTS, &options).unwrap();
        let mut next = || -> Result<(), crate::Error> {
            batches.start_epoch(0)?;
            while batches.next_batch()?.is_some() {}
            Ok(())
        };
        let error = next().unwrap_err().to_string();
        let message = ":3211:3: expected a number in the column `age`, found `old` (`age` is Utf8; row group 3)";
        assert!(error.ends_with(message), "{error}");
    }
}

#[test]
fn a_record_batch_larger_than_the_buffer_holds_is_refused() {
    let file = arrow("large.arrow", &batch(40_000, None), 40_000);
    let data = streamed(&file.0, 1);
    let options = options(7, Order::Sequential, LastBatch::Short);
    let mut batches = data.batches(INPUTS, &options).unwrap();
    let error = batches.start_epoch(0).and_then(|()| batches.next_batch().map(|_| ()));
    let error = error.unwrap_err().to_string();
    assert!(error.contains("record batch 0 takes "), "{error}");
    assert!(error.contains("give it a larger buffer, or write batches of fewer rows"), "{error}");
}
