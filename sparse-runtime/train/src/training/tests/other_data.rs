//! Runs that are resumed on data of the same size with other contents, which is refused.

use super::{D, data, linear::Linear, quiet, resume::File, sgd};
use crate::error::{Error, Result};
use crate::training::Checkpoints;
use crate::training::checkpoint::CheckpointError;
use nnz_arrays::formats::{ColumnIds, Csr, CsrParts};
use nnz_arrays::kernels::Parallel;
use nnz_data::libsvm::{IndexBase, Reader};
use nnz_data::stream::{Stream, StreamedDataset};
use nnz_data::{BatchOptions, ColumnValues, DataSource, Dataset, DatasetBatches};
use nnz_step::model::InputInfo;
use sparse_core::element::Float;
use std::fs;
use std::path::{Path, PathBuf};

/// Trains two epochs, of which both are saved.
fn train<T: Float>(data: &impl DataSource<T>, file: &File) {
    let mut trainer = quiet(sgd(0.05, 0.9)).epochs(2).callback(Checkpoints::new(&file.0));
    trainer.fit(&mut Linear::<T>::new(D), data).unwrap();
}

/// Goes on to the third epoch.
fn go_on<T: Float>(data: &impl DataSource<T>, file: &File) -> Result<Vec<f64>> {
    let mut model = Linear::<T>::new(D);
    quiet(sgd(0.05, 0.9)).epochs(3).resume(&mut model, data, &file.0)?;
    Ok(weights(&model))
}

/// Three epochs at once.
fn whole<T: Float>(data: &impl DataSource<T>) -> Vec<f64> {
    let mut model = Linear::<T>::new(D);
    quiet(sgd(0.05, 0.9)).epochs(3).fit(&mut model, data).unwrap();
    weights(&model)
}

fn weights<T: Float>(model: &Linear<T>) -> Vec<f64> {
    model.w.values().iter().chain(model.b.values()).map(|weight| weight.as_f64()).collect()
}

/// That a run is not resumed for its data, and says so.
fn assert_refused(result: Result<Vec<f64>>, what: &str) {
    assert_refused_for("fingerprint of the data", result, what);
}

fn assert_refused_for(setting: &str, result: Result<Vec<f64>>, what: &str) {
    let Err(Error::Checkpoint(error)) = result else { panic!("{what}: {result:?}") };
    let CheckpointError::Setting { name, found, expected, .. } = &error else {
        panic!("{what}: {error}")
    };
    assert_eq!(name, setting, "{what}");
    assert_ne!(found, expected, "{what}");
    let message = error.to_string();
    assert!(message.ends_with(": resume it with the same"), "{what}: {message}");
}

/// The features and labels of [`data`], changed.
fn changed(change: impl FnOnce(&mut Vec<u32>, &mut Vec<f64>, &mut Vec<f64>)) -> Dataset<f64> {
    let data = data::<f64>(4000);
    let features = data.features().unwrap();
    let Some(ColumnValues::Dense(labels)) = data.labels() else { panic!("labels are numbers") };
    let mut columns = features.columns().iter().map(|id| id as u32).collect();
    let (mut values, mut labels) = (features.values().to_vec(), labels.values().to_vec());
    change(&mut columns, &mut values, &mut labels);
    let indptr = features.indptr().to_vec();
    let columns = ColumnIds::U32(columns);
    let features = Csr::from_parts(CsrParts { n_cols: D, indptr, columns, values }).unwrap();
    Dataset::new(features, labels).unwrap()
}

#[test]
fn other_values_of_the_same_shape_are_refused_in_memory() {
    let file = File::new("other-values");
    train(&data::<f64>(4000), &file);
    // The same, made again.
    assert_eq!(go_on(&changed(|_, _, _| {}), &file).unwrap(), whole(&data::<f64>(4000)));
    train(&data::<f64>(4000), &file);
    assert_refused(go_on(&changed(|_, values, _| values[0] += 0.5), &file), "first value");
    assert_refused(go_on(&changed(|_, _, labels| labels[3999] += 0.5), &file), "last label");
    assert_refused(
        go_on(&changed(|_, values, _| values.iter_mut().for_each(|value| *value *= 2.0)), &file),
        "values",
    );
    let labels = |_: &mut _, _: &mut _, labels: &mut Vec<f64>| labels.rotate_left(1);
    assert_refused(go_on(&changed(labels), &file), "labels of other rows");
    // The three columns of each row are neighbours: so are these, and none is what it was.
    let columns = |columns: &mut Vec<u32>, _: &mut _, _: &mut _| {
        let flipped = |row: &mut [u32]| {
            row.reverse();
            row.iter_mut().for_each(|column| *column = D as u32 - 1 - *column);
        };
        columns.chunks_mut(3).for_each(flipped);
    };
    assert_refused(go_on(&changed(columns), &file), "columns");
}

#[test]
fn other_values_of_the_same_shape_are_refused_on_workers() {
    let file = File::new("other-on-workers");
    let trainer = || quiet(sgd(0.05, 0.9)).batch_size(100);
    let mut model = Linear::<f64>::new(D);
    let mut first = trainer().epochs(1).callback(Checkpoints::new(&file.0));
    first.fit_on_threads(&mut model, &data::<f64>(4000), 2).unwrap();
    let mut go_on = |data: &Dataset<f64>, n_workers| {
        let report = trainer().epochs(2).resume_on_threads(&mut model, data, n_workers, &file.0);
        report.map(|_| weights(&model))
    };
    assert_refused(go_on(&changed(|_, values, _| values[0] += 0.5), 2), "first value");
    go_on(&data(4000), 3).unwrap();
}

/// A text of rows, of as many bytes whatever `seed` is.
fn text(seed: usize) -> String {
    let row = |i: usize| {
        let columns = [1 + i % 3, 4 + i % 5];
        let entries = columns.map(|column| format!(" {column}:0.{}", (i * column + seed) % 10));
        format!("{}{}{}\n", i % 2, entries[0], entries[1])
    };
    (0..60_000).map(row).collect()
}

/// A folder of its own, removed in the end.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("nnz-{test}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Folder(folder)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn format() -> Reader {
    Reader::new().index_base(IndexBase::One).n_features(D)
}

fn stream(files: &[&Path], parallel: Parallel) -> StreamedDataset {
    stream_of(files, parallel, 1 << 20)
}

fn stream_of(files: &[&Path], parallel: Parallel, buffer: usize) -> StreamedDataset {
    Stream::new(format()).files(files).parallel(parallel).buffer(buffer).open().unwrap()
}

#[test]
fn other_files_of_the_same_size_are_refused() {
    let folder = Folder::new("other-files");
    let (text, other) = (text(0), text(1));
    assert_eq!(text.len(), other.len());
    let half = text.len() / 2;
    let half = half + text[half..].find('\n').unwrap() + 1;
    let (first, second) =
        (folder.write("first", &text[..half]), folder.write("second", &text[half..]));
    let open = |files: &[&Path]| stream(files, Parallel::Sequential);
    let data = open(&[&first, &second]);
    let file = File::new("other-stream");
    train(&data, &file);

    let other = folder.write("other", &other[half..]);
    assert_refused(go_on(&open(&[&first, &other]), &file), "another file");
    assert_refused(go_on(&open(&[&second, &first]), &file), "another order of files");
    let whole_text = folder.write("whole", &text);
    assert_refused(go_on(&open(&[&whole_text]), &file), "files in one");
    // The data in memory comes in another order.
    assert_refused(go_on(&format().read_path(&whole_text).unwrap(), &file), "in memory");

    // The same files elsewhere, read by more threads, and read before.
    let copies = [folder.write("a", &text[..half]), folder.write("b", &text[half..])];
    let copies = stream(&[&copies[0], &copies[1]], Parallel::Threads(2));
    let expected = whole(&copies);
    assert_eq!(go_on(&copies, &file).unwrap(), expected);
}

/// The order of a stream's rows follows from its buffer, where they are shuffled.
#[test]
fn another_buffer_of_a_stream_is_refused_where_rows_are_shuffled() {
    let folder = Folder::new("other-buffer");
    let rows = folder.write("rows", &text(0));
    let open = |buffer| stream_of(&[&rows], Parallel::Sequential, buffer);
    let file = File::new("other-buffer");
    let run = |shuffle, epochs, buffer| {
        let mut model = Linear::<f32>::new(D);
        let mut trainer = quiet(sgd(0.05, 0.9)).shuffle(shuffle).epochs(epochs);
        if epochs == 2 {
            trainer = trainer.callback(Checkpoints::new(&file.0));
            trainer.fit(&mut model, &open(buffer))?;
        } else {
            trainer.resume(&mut model, &open(buffer), &file.0)?;
        }
        Ok(weights(&model))
    };
    let (small, large) = (1 << 20, 3 << 20);
    let shuffled = run(true, 2, small).unwrap();
    assert_refused_for("buffer of the stream", run(true, 3, large), "shuffled");
    run(true, 3, small).unwrap();
    // It does make another order.
    assert_ne!(run(true, 2, large).unwrap(), shuffled);

    let in_turn = run(false, 2, small).unwrap();
    run(false, 3, large).unwrap();
    assert_eq!(run(false, 2, large).unwrap(), in_turn);
}

/// What was parsed and what a cache holds of it are the same data.
#[test]
fn other_sources_of_a_cache_are_refused() {
    let folder = Folder::new("other-cache");
    let source = folder.write("rows", &text(0));
    let cache = folder.0.join("rows.cache");
    let cached = || Dataset::cached(&cache, [&source], "one", || format().read_path(&source));
    let parsed = cached().unwrap();
    let file = File::new("other-cache");
    train(&parsed, &file);
    let loaded = cached().unwrap();
    assert_eq!(go_on(&loaded, &file).unwrap(), whole(&parsed));
    train(&loaded, &file);
    assert_eq!(go_on(&parsed, &file).unwrap(), whole(&parsed));

    train(&loaded, &file);
    // Another time of change, which a cache goes by.
    fs::remove_file(&cache).unwrap();
    folder.write("rows", &text(1));
    assert_refused(go_on(&cached().unwrap(), &file), "another source");
}

/// A source that says nothing of what it holds.
struct Unknown(Dataset<f64>);

impl DataSource<f64> for Unknown {
    type Batches<'s> = DatasetBatches<'s, f64>;

    fn n_rows(&self) -> Option<usize> {
        Some(self.0.n_rows())
    }

    fn batches<'s>(
        &'s self,
        inputs: &[InputInfo],
        options: &BatchOptions,
    ) -> nnz_data::Result<DatasetBatches<'s, f64>> {
        self.0.batches(inputs, options)
    }
}

/// As that of a checkpoint which was written before there were fingerprints.
#[test]
fn a_run_that_knows_no_contents_goes_on_with_any() {
    let file = File::new("unknown");
    let (data, expected) = (data::<f64>(400), whole(&data::<f64>(400)));
    train(&Unknown(data.clone()), &file);
    assert_eq!(go_on(&data, &file).unwrap(), expected);
    train(&data, &file);
    assert_eq!(go_on(&Unknown(data), &file).unwrap(), expected);
}
