//! Readers of files.

use nnz::data::libsvm::{self as libsvm_file, IndexBase, Reader};
use nnz::data::npz::NpzCsr;
use nnz::data::stream::Stream;
use nnz::data::{
    BatchOptions, Batches, ColumnValues, DataSource, Dataset, Delimited, Hashing, LibFfm, Numbers,
    OnError, Ratings, ReadError, TextReader, VowpalWabbit, WholeFormat, Words,
    matrix_market as matrix_market_file,
};
use nnz::model::BatchSource;
use nnz::prelude::*;
use std::io::Cursor;
use std::path::{Path, PathBuf};

/// Text as a LibSVM file, with every base. What is read is the same as a stream, in parts, and when
/// it is written and read again.
pub fn libsvm(bytes: &[u8]) -> bool {
    let bases = [IndexBase::Zero, IndexBase::One, IndexBase::Detect];
    bases.map(|base| libsvm_of_base(bytes, base)).contains(&true)
}

fn libsvm_of_base(bytes: &[u8], base: IndexBase) -> bool {
    let reader = Reader::new().index_base(base);
    let data = match reader.read_bytes("bytes", bytes) {
        Ok(data) => data,
        Err(error) => {
            check_message(&error);
            return false;
        }
    };
    let known = data.report().unwrap().index_base.unwrap();
    if base == IndexBase::Detect {
        // The ways to read do not depend on the base, and a stream takes a large buffer.
        assert_eq!(content(&reader.read("stream", bytes).unwrap()), content(&data));
        let reader = reader.clone().index_base(known).n_features(data.n_features());
        let mut rows = Vec::new();
        for index in 0..3 {
            match reader.clone().part(index, 3).read_bytes("part", bytes) {
                Ok(part) => rows.extend(content(&part)),
                Err(ReadError::Part { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
        assert_eq!(rows, content(&data));
    }
    // Indices are written from one, whatever was read: the largest that there is has no successor.
    if data.n_features() as u64 >= 1 << 63 {
        return true;
    }
    let mut text = Vec::new();
    libsvm_file::write_to("text", &mut text, &data).unwrap();
    let reader = reader.index_base(IndexBase::One).n_features(data.n_features());
    let again = reader.read_bytes("again", &text).unwrap();
    assert_eq!(content(&again), content(&data));
    true
}

/// A row as its label and entries, numbers by their bits.
type Row = (u32, Vec<(usize, u32)>);

/// The rows of data.
fn content(data: &Dataset) -> Vec<Row> {
    let Some(ColumnValues::Dense(labels)) = data.labels() else { panic!("no labels") };
    let rows = data.features().unwrap().iter_rows();
    labels
        .values()
        .iter()
        .zip(rows)
        .map(|(label, row)| {
            let entries = row.map(|(column, value)| (column, value.to_bits()));
            (label.to_bits(), entries.collect())
        })
        .collect()
}

/// Text as a table of every kind of column, with and without quotes and a header.
pub fn delimited(bytes: &[u8]) -> bool {
    let columns = |format: Delimited| {
        format
            .label("y")
            .numeric("a")
            .count("b")
            .number("c", Numbers::Buckets)
            .categorical("d")
            .weight("w")
            .ignore("z")
    };
    let hashing = Hashing::new(6).unwrap();
    let formats = [
        columns(Delimited::csv(hashing)),
        columns(Delimited::csv(hashing).header(true)).numbers_apart().ids(),
        columns(Delimited::tsv(hashing)),
    ];
    formats.map(|format| text_of_format(format, bytes)).contains(&true)
}

/// Text as ratings.
pub fn ratings(bytes: &[u8]) -> bool {
    text_of_format(Ratings::new(), bytes)
}

/// Text of libFFM.
pub fn libffm(bytes: &[u8]) -> bool {
    [LibFfm::new(), LibFfm::new().n_features(100).add_repeated()]
        .map(|format| text_of_format(format, bytes))
        .contains(&true)
}

/// Text of Vowpal Wabbit.
pub fn vowpal_wabbit(bytes: &[u8]) -> bool {
    let plain = VowpalWabbit::new(Hashing::new(6).unwrap());
    let crossed = plain.clone().cross("a", "b").cross_initials(b':', b'u');
    [plain, crossed].map(|format| text_of_format(format, bytes)).contains(&true)
}

/// Text as documents.
pub fn words(bytes: &[u8]) -> bool {
    let words = Words::new(Hashing::new(6).unwrap());
    let pairs = words.clone().ngrams(1..=2).unwrap().signed().unit_norm();
    [words, pairs].map(|format| text_of_format(format, bytes)).contains(&true)
}

/// What is read without an error is read the same where rows may be skipped, and then none is;
/// where there is an error, rows are skipped, and what is left is valid.
fn text_of_format<F: WholeFormat<f32> + Clone>(format: F, bytes: &[u8]) -> bool {
    let strict = TextReader::new(format.clone()).read_bytes("bytes", bytes);
    let tolerant = TextReader::new(format).on_error(OnError::Skip(u64::MAX));
    let tolerant = tolerant.read_bytes("bytes", bytes);
    for data in strict.iter().chain(&tolerant) {
        for column in data.columns() {
            match column.values() {
                ColumnValues::Csr(csr) => check(csr),
                ColumnValues::Dense(dense) => assert!(dense.values().iter().all(|v| v.is_finite())),
                // Ids, whose type is all that is to be known of them. No reader makes patterns.
                _ => {}
            }
        }
    }
    match (&strict, &tolerant) {
        (Ok(strict), Ok(tolerant)) => {
            assert_eq!(tolerant.report().unwrap().n_skipped, 0);
            assert_eq!(tolerant.to_string(), strict.to_string());
        }
        (Err(error), Ok(tolerant)) => {
            check_message(error);
            assert!(tolerant.report().unwrap().n_skipped > 0, "{error}");
        }
        (Err(error), Err(tolerant)) => {
            check_message(error);
            check_message(tolerant);
        }
        (Ok(_), Err(error)) => panic!("{error}"),
    }
    strict.is_ok()
}

/// Text as a MatrixMarket file; what is read is the same when it is written and read again.
pub fn matrix_market(bytes: &[u8]) -> bool {
    // A file can promise any number of rows in a few bytes, and is given the memory for them: that
    // is not what is tested.
    const DIGITS: usize = 6;
    if bytes.chunk_by(|a, b| a.is_ascii_digit() && b.is_ascii_digit()).any(|run| run.len() > DIGITS)
    {
        return false;
    }
    let matrix = match matrix_market_file::read_from::<f32>("bytes", bytes) {
        Ok(matrix) => matrix,
        Err(error) => {
            check_message(&error);
            return false;
        }
    };
    check(&matrix);
    let mut text = Vec::new();
    matrix_market_file::write_to("text", &mut text, &matrix).unwrap();
    let again = matrix_market_file::read_from::<f32>("again", &text[..]).unwrap();
    assert_eq!(again, matrix);
    true
}

/// Bytes as a file of SciPy's.
pub fn npz(bytes: &[u8]) -> bool {
    let read = NpzCsr::read_from("bytes", Cursor::new(bytes));
    match read.and_then(|file| file.into_csr::<f32>()) {
        Ok(matrix) => {
            check(&matrix);
            true
        }
        Err(error) => {
            check_message(&error);
            false
        }
    }
}

graph! {
    /// What a checkpoint is loaded into.
    pub model Small {
        input x: csr[n, d];
        label y: dense[n, 1];
        param weight: row_sparse[d, 2] = Zeros;
        param bias: dense[2] = Zeros;
        param mix: dense[2, 1] = Zeros;
        loss squared_error(dot(dot(x, weight) + bias, mix), y);
    }
}

/// What stands in the kept inputs where a checkpoint has its model's fingerprint, which changes
/// with the compiler.
const FINGERPRINT: &[u8; 16] = b"feedfacefeedface";

/// Bytes as a checkpoint. What is refused leaves the model as it was; what is loaded is loaded
/// again from what is saved.
pub fn checkpoint(bytes: &[u8]) -> bool {
    let mut bytes = bytes.to_vec();
    if let Some(at) = bytes.windows(FINGERPRINT.len()).position(|found| found == FINGERPRINT) {
        let fingerprint = format!("{:016x}", Small::FINGERPRINT);
        bytes[at..at + FINGERPRINT.len()].copy_from_slice(fingerprint.as_bytes());
    }
    let path = file(&bytes);
    let described = nnz::training::checkpoint::read_metadata(&path);
    // Neither makes anything of what the header promises, before that fits.
    let _ = nnz::training::checkpoint::read_ids(&path);
    let _ = nnz::predictor::Predictor::<Small>::open(&path);
    let mut model = Small::new(dims! { d: 3 }, Seed(0)).unwrap();
    let before = values(&model);
    let loaded = nnz::training::checkpoint::load(&mut model, &path);
    let accepted = match loaded {
        Ok(metadata) => {
            assert_eq!(described.unwrap(), metadata);
            let mut again = Small::new(dims! { d: 3 }, Seed(0)).unwrap();
            nnz::training::checkpoint::save(&model, &path).unwrap();
            nnz::training::checkpoint::load(&mut again, &path).unwrap();
            assert_eq!(values(&again), values(&model));
            true
        }
        Err(error) => {
            assert_eq!(values(&model), before, "half loaded: {error}");
            false
        }
    };
    std::fs::remove_file(&path).unwrap();
    accepted
}

/// Bytes as a file of data. What is loaded is loaded again from what is saved.
pub fn cache(bytes: &[u8]) -> bool {
    let path = file(bytes);
    let loaded = Dataset::<f32>::load(&path);
    match &loaded {
        Ok(data) => {
            data.save(&path).unwrap();
            let again = Dataset::<f32>::load(&path).unwrap();
            assert_eq!(again.columns().len(), data.columns().len());
            for (again, column) in again.columns().iter().zip(data.columns()) {
                assert_eq!((again.name(), again.role()), (column.name(), column.role()));
                assert_eq!(again.values().shape(), column.values().shape());
            }
        }
        Err(error) => check_message(error),
    }
    std::fs::remove_file(&path).unwrap();
    loaded.is_ok()
}

/// Text as a LibSVM file that is streamed: the rows, or an error, as of a reader that has the whole
/// text.
pub fn stream(bytes: &[u8]) -> bool {
    let path = file(bytes);
    let reader = Reader::new().index_base(IndexBase::One).n_features(1000);
    let streamed = rows_of_stream(&path, reader.clone());
    let read = reader.read_path(&path);
    match (&streamed, &read) {
        (Ok(rows), Ok(data)) => assert_eq!(*rows, content(data)),
        (Err(streamed), Err(read)) => {
            check_message(read);
            assert_eq!(streamed.to_string(), read.to_string());
        }
        // That there are none is seen by who counts them.
        (Ok(rows), Err(read)) => assert!(rows.is_empty(), "{} rows, but: {read}", rows.len()),
        (Err(streamed), Ok(_)) => panic!("only a stream says: {streamed}"),
    }
    std::fs::remove_file(&path).unwrap();
    streamed.is_ok()
}

/// Bytes as a compressed LibSVM file, zstd's where the first is a `z` and else gzip's: streamed and
/// whole it has the same rows, or none.
pub fn compressed(bytes: &[u8]) -> bool {
    let (ending, bytes) = match bytes.split_first() {
        Some((b'z', bytes)) => ("zst", bytes),
        Some((_, bytes)) => ("gz", bytes),
        None => ("gz", bytes),
    };
    let plain = file(bytes);
    let path = plain.with_extension(ending);
    std::fs::rename(&plain, &path).unwrap();
    let reader = Reader::new().index_base(IndexBase::One).n_features(1000);
    let streamed = rows_of_stream(&path, reader.clone());
    let read = reader.read_path(&path);
    match (&streamed, &read) {
        (Ok(rows), Ok(data)) => assert_eq!(*rows, content(data)),
        // Which of two errors is told first depends on how far is read ahead.
        (Err(_), Err(read)) => check_message(read),
        (Ok(rows), Err(read)) => assert!(rows.is_empty(), "{} rows, but: {read}", rows.len()),
        (Err(streamed), Ok(_)) => panic!("only a stream says: {streamed}"),
    }
    std::fs::remove_file(&path).unwrap();
    read.is_ok()
}

/// The rows that a stream gives: the same when they are parsed and when they are read again.
fn rows_of_stream(path: &Path, reader: Reader) -> nnz::Result<Vec<Row>> {
    let stream = Stream::new(reader).file(path).buffer(1 << 20).cache_in(std::env::temp_dir());
    let data = stream.open()?;
    let rows = rows_of_epoch(&data, 0)?;
    assert_eq!(rows_of_epoch(&data, 1).unwrap(), rows);
    Ok(rows)
}

fn rows_of_epoch(data: &impl DataSource<f32>, epoch: u64) -> nnz::Result<Vec<Row>> {
    let mut batches = data.batches(Small::INPUTS, &BatchOptions::default())?;
    let mut rows = Vec::new();
    batches.start_epoch(epoch)?;
    while let Some(batch) = batches.next_batch()? {
        let (x, y) = (batch.csr(0)?, batch.dense(1)?);
        for (label, row) in y.values().iter().zip(x.iter_rows()) {
            let entries = row.map(|(column, value)| (column, value.to_bits()));
            rows.push((label.to_bits(), entries.collect()));
        }
    }
    Ok(rows)
}

/// A file of these bytes, for this thread.
fn file(bytes: &[u8]) -> PathBuf {
    let name = format!("nnz-fuzz-{}-{:?}", std::process::id(), std::thread::current().id());
    let path = std::env::temp_dir().join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

/// The bits of every weight.
fn values(model: &Small) -> Vec<u32> {
    let parameters = model.parameters();
    parameters
        .iter()
        .flat_map(|parameter| parameter.values())
        .map(|value| value.to_bits())
        .collect()
}

/// A matrix that was read is canonical, and its values are numbers.
fn check(matrix: &Csr) {
    assert!(matrix.values().iter().all(|value| value.is_finite()));
    assert!(Csr::from_parts(matrix.clone().into_parts()).is_ok());
}

/// An error can be told, in a line of reasonable length.
fn check_message(error: &ReadError) {
    let message = error.to_string();
    assert!(!message.is_empty() && message.len() < 1000, "{message}");
}
