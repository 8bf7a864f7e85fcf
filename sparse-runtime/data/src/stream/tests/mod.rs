mod changed;
#[cfg(feature = "parquet")]
mod columnar;
mod epoch_cache;
mod labels;
mod quotes;

use super::super::libsvm::{IndexBase, Reader};
use super::super::{
    AnyDataset, Batch, BatchOptions, Batches, Classes, DataSource, Dataset, Delimited, Hashing,
    Labels, LastBatch, OnError, Order, Position, ReadError,
};
use super::*;
use nnz_arrays::kernels::Parallel;
use nnz_step::model::{BatchSource, Extent, InputInfo, InputRole, LabelKind};
use sparse_core::storage::{ElementType, Storage};

const INPUTS: &[InputInfo] = &[
    declare("x", InputRole::Input, Storage::Csr, ElementType::F32, LabelKind::Real),
    declare("y", InputRole::Label, Storage::Dense, ElementType::F32, LabelKind::Real),
];

const fn declare(
    name: &'static str,
    role: InputRole,
    storage: Storage,
    element: ElementType,
    label: LabelKind,
) -> InputInfo {
    InputInfo {
        name,
        role,
        storage,
        element,
        shape: &[Extent::Named("n"), Extent::Named("d")],
        label,
    }
}

/// A file of this test's own, removed in the end.
struct TempFile(PathBuf);

impl TempFile {
    fn new(name: &str, text: impl AsRef<[u8]>) -> Self {
        let path = std::env::temp_dir().join(format!("nnz-stream-{}-{name}", std::process::id()));
        std::fs::write(&path, text).unwrap();
        TempFile(path)
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Rows that tell their number, in their label and their entries; of 1 to 4 MiB in memory.
fn text(n_rows: usize) -> String {
    (0..n_rows).map(|i| format!("{i} {}:{i} {}:0.5\n", 1 + i % 100, 101 + i % 1009)).collect()
}

fn format() -> Reader {
    Reader::new().index_base(IndexBase::One).n_features(2000)
}

fn open(files: &[&TempFile], threads: usize) -> StreamedDataset {
    let paths = files.iter().map(|file| file.0.clone());
    let parallel = Parallel::Threads(threads);
    Stream::new(format()).files(paths).buffer(1 << 20).parallel(parallel).open().unwrap()
}

fn options(batch_size: usize, order: Order, last_batch: LastBatch) -> BatchOptions {
    BatchOptions { batch_size, order, last_batch, labels: Labels::Required }
}

/// The rows of each batch that is left of an epoch, by their labels, and the padding of the last.
fn rest(batches: &mut impl Batches<f32>) -> (Vec<Vec<usize>>, usize) {
    let (mut found, mut n_padding) = (Vec::new(), 0);
    while let Some(batch) = batches.next_batch().unwrap() {
        assert_eq!(n_padding, 0, "only the last batch is padded");
        let (x, y) = (batch.csr(0).unwrap(), batch.dense(1).unwrap());
        assert_eq!((x.n_rows(), &y.shape()[..]), (batch.n_rows(), &[batch.n_rows(), 1][..]));
        let row = |(i, label): (usize, &f32)| {
            let row = *label as usize;
            let entries: Vec<_> = x.iter_rows().nth(i).unwrap().collect();
            assert_eq!(entries, [(row % 100, *label), (100 + row % 1009, 0.5)]);
            assert!(batch.row_id(i).is_none_or(|id| id == row as u64));
            row
        };
        found.push(y.values().iter().enumerate().map(row).collect());
        n_padding = batch.n_padding();
    }
    (found, n_padding)
}

fn epoch(batches: &mut impl Batches<f32>, epoch: u64) -> (Vec<Vec<usize>>, usize) {
    batches.start_epoch(epoch).unwrap();
    let (found, n_padding) = rest(batches);
    assert_eq!(batches.n_batches(), Some(found.len() as u64));
    assert_eq!(batches.position(), Position { epoch, batch: found.len() as u64 });
    (found, n_padding)
}

const N: usize = 60_000;

#[test]
fn every_row_once_in_an_order_that_seed_and_epoch_determine() {
    let text = text(N);
    // Where the files are cut does not matter to a row, nor does an end of line that lacks.
    let cut = text[..text.len() / 3].rfind('\n').unwrap() + 1;
    let files = [
        TempFile::new("rows-1", &text[..cut]),
        TempFile::new("rows-empty", ""),
        TempFile::new("rows-2", text[cut..].trim_end()),
    ];
    let files: Vec<_> = files.iter().collect();
    let data = open(&files, 1);
    assert_eq!((DataSource::<f32>::n_rows(&data), data.n_features()), (None, 2000));
    let sequential = options(32, Order::Sequential, LastBatch::Short);
    let mut batches = data.batches(INPUTS, &sequential).unwrap();
    let all: Vec<usize> = (0..N).collect();
    assert_eq!(epoch(&mut batches, 0).0.concat(), all);
    assert_eq!(data.n_rows(), Some(N));

    let shuffled = options(32, Order::Shuffled { seed: 5 }, LastBatch::Short);
    let of = |data: &StreamedDataset, number| {
        epoch(&mut data.batches(INPUTS, &shuffled).unwrap(), number).0
    };
    let first = of(&data, 0);
    let mut sorted = first.concat();
    assert!(sorted.windows(2).filter(|pair| pair[1] == pair[0] + 1).count() < N / 100);
    sorted.sort_unstable();
    assert_eq!(sorted, all);
    let second = of(&data, 1);
    assert_ne!(first, second);
    // Also of a stream that has seen nothing, with any number of threads.
    for threads in [2, 5] {
        assert_eq!(of(&open(&files, threads), 1), second);
    }
    // Rows are told apart by their number once all sizes are known.
    let mut batches = data.batches(INPUTS, &shuffled).unwrap();
    batches.start_epoch(3).unwrap();
    let batch = batches.next_batch().unwrap().unwrap();
    assert_eq!(batch.row_id(0), Some(batch.dense(1).unwrap().values()[0] as u64));
    assert_eq!(batch.row_id(32), None);
}

#[test]
fn an_epoch_goes_on_from_any_batch() {
    let file = TempFile::new("resume", text(25_000));
    for (order, last_batch) in [
        (Order::Sequential, LastBatch::Short),
        (Order::Shuffled { seed: 1 }, LastBatch::Discard),
        (Order::Shuffled { seed: 2 }, LastBatch::Pad),
    ] {
        let options = options(77, order, last_batch);
        let whole = open(&[&file], 2);
        let (expected, n_padding) = epoch(&mut whole.batches(INPUTS, &options).unwrap(), 4);
        for batch in [0, 1, 250, expected.len() as u64 - 1, expected.len() as u64] {
            // A stream that knows nothing has to read what is before; one that knows the sizes has
            // not.
            for data in [&open(&[&file], 1), &whole] {
                let mut batches = data.batches(INPUTS, &options).unwrap();
                batches.seek(Position { epoch: 4, batch }).unwrap();
                let (found, padding) = rest(&mut batches);
                assert_eq!(found, expected[batch as usize..], "from batch {batch}");
                assert!(found.is_empty() || padding == n_padding);
            }
        }
        let beyond = Position { epoch: 4, batch: expected.len() as u64 + 1 };
        assert!(whole.batches(INPUTS, &options).unwrap().seek(beyond).is_err());
        let unread = open(&[&file], 1);
        let mut batches = unread.batches(INPUTS, &options).unwrap();
        batches.seek(beyond).unwrap();
        let Err(error) = batches.next_batch() else { panic!("there is no such batch") };
        let error = error.to_string();
        assert!(error.starts_with("epoch 4 has "), "{error}");
    }
}

#[test]
fn last_batches() {
    let file = TempFile::new("last", text(10));
    let of = |batch_size, last_batch| {
        let data = open(&[&file], 1);
        let options = options(batch_size, Order::Sequential, last_batch);
        epoch(&mut data.batches(INPUTS, &options).unwrap(), 0)
    };
    assert_eq!(of(4, LastBatch::Short).0, [vec![0, 1, 2, 3], vec![4, 5, 6, 7], vec![8, 9]]);
    assert_eq!(of(4, LastBatch::Discard).0, [[0, 1, 2, 3], [4, 5, 6, 7]]);
    assert_eq!(
        of(4, LastBatch::Pad),
        (vec![vec![0, 1, 2, 3], vec![4, 5, 6, 7], vec![8, 9, 0, 1]], 2)
    );
    let all: Vec<usize> = (0..23).map(|i| i % 10).collect();
    assert_eq!(of(23, LastBatch::Pad), (vec![all], 13));
    assert_eq!(of(5, LastBatch::Pad), (vec![vec![0, 1, 2, 3, 4], vec![5, 6, 7, 8, 9]], 0));
    let data = open(&[&file], 1);
    let rolls = options(4, Order::Sequential, LastBatch::RollOver);
    assert!(data.batches(INPUTS, &rolls).is_err());
}

#[test]
fn widths_and_classes_are_found() {
    let file = TempFile::new("found", "3 1:1 7:1\n1\n3 2:1\n");
    let open =
        |format: Reader| Stream::new(format).file(&file.0).buffer(1 << 20).find_classes().open();
    let data = open(Reader::new()).unwrap();
    assert_eq!((data.n_features(), data.n_rows()), (7, Some(3)));
    assert_eq!(data.classes().unwrap().labels(), [1.0, 3.0]);
    assert_eq!(open(Reader::new().index_base(IndexBase::Zero)).unwrap().n_features(), 8);
    let class = [
        INPUTS[0],
        declare("y", InputRole::Label, Storage::Dense, ElementType::U32, LabelKind::Class),
    ];
    let mut batches =
        data.batches(&class, &options(3, Order::Sequential, LastBatch::Short)).unwrap();
    batches.start_epoch(0).unwrap();
    let batch = batches.next_batch().unwrap().unwrap();
    assert_eq!(batch.ids(1).unwrap().iter().collect::<Vec<_>>(), [1, 0, 1]);
}

/// The first error of an epoch.
fn error_of(data: &StreamedDataset, inputs: &[InputInfo]) -> String {
    let options = options(2, Order::Shuffled { seed: 0 }, LastBatch::Short);
    let mut batches = data.batches(inputs, &options).unwrap();
    batches.start_epoch(0).unwrap();
    loop {
        match batches.next_batch() {
            Ok(Some(_)) => {}
            Ok(None) => panic!("there is an error"),
            Err(error) => return error.to_string(),
        }
    }
}

#[test]
fn what_is_wrong_is_named_by_its_line() {
    let lines: Vec<String> = text(N).lines().map(|line| format!("{line}\n")).collect();
    let with = |row: usize, line: &str| {
        let mut lines = lines.clone();
        lines[row] = line.to_owned();
        lines.concat()
    };
    let file = TempFile::new("wrong.svm", with(40_000, "1 1:1 x\n"));
    let data = open(&[&file], 3);
    let error = error_of(&data, INPUTS);
    assert!(error.ends_with("wrong.svm:40001:7: expected `index:value`, found `x`"), "{error}");
    // It can be skipped, and is told.
    let skips = |limit| {
        let stream = Stream::new(format()).file(&file.0).buffer(1 << 20);
        stream.on_error(OnError::Skip(limit)).open().unwrap()
    };
    let data = skips(1);
    let mut batches =
        data.batches(INPUTS, &options(1000, Order::Sequential, LastBatch::Short)).unwrap();
    assert_eq!(epoch_len(&mut batches), N - 1);
    assert_eq!(epoch_len(&mut batches), N - 1);
    assert_eq!(data.report().n_skipped, 1);
    // What was skipped before is not held against a place that is gone to.
    batches.seek(Position { epoch: 2, batch: 41 }).unwrap();
    let mut n_rows = 0;
    while let Some(batch) = batches.next_batch().unwrap() {
        n_rows += batch.n_rows();
    }
    assert_eq!(n_rows, N - 1 - 41_000);
    assert!(data.report().first_skipped[0].to_string().contains("wrong.svm:40001:7"));

    let binary = [
        INPUTS[0],
        declare("y", InputRole::Label, Storage::Dense, ElementType::F32, LabelKind::Binary),
    ];
    let ones: String =
        lines.iter().map(|line| format!("1 {}", line.split_once(' ').unwrap().1)).collect();
    let at = ones.match_indices('\n').nth(49_999).unwrap().0 + 1;
    let file = TempFile::new("label.svm", format!("{}{}2 5:1\n", &ones[..at], "# a comment\n\n"));
    let error = error_of(&open(&[&file], 2), &binary);
    assert!(error.contains("label.svm:50003:1: the label 2 is not what `y` is read as"), "{error}");
    // D13: blocks of labels from 0 and blocks of labels from -1.
    let mixed = TempFile::new("mixed.svm", format!("{}{}-1 5:1\n", &ones[..at], "0 5:1\n"));
    let error = error_of(&open(&[&mixed], 2), &binary);
    assert!(
        error.contains("mixed.svm:5000") && error.contains("both the negative class"),
        "{error}"
    );
    let zeros = TempFile::new("zeros.svm", ones.replace("\n1 ", "\n0 "));
    let minus = TempFile::new("minus.svm", ones.replace("\n1 ", "\n-1 "));
    assert!(error_of(&open(&[&zeros, &minus], 2), &binary).contains("both the negative class"));
    let classes = Classes::of([0.0, 1.0]);
    let data = Stream::new(format()).file(&file.0).buffer(1 << 20).classes(classes).open().unwrap();
    let class = [
        INPUTS[0],
        declare("y", InputRole::Label, Storage::Dense, ElementType::U32, LabelKind::Class),
    ];
    let error = error_of(&data, &class);
    assert!(
        error.ends_with("label.svm:50003:1: the label 2 is not among the 2 classes {0, 1}"),
        "{error}"
    );

    let long = format!("1 1:1\n1 {}\n1 1:1\n", "1:1 ".repeat(1 << 20));
    let file = TempFile::new("long.svm", long);
    let error = error_of(&open(&[&file], 2), INPUTS);
    assert!(
        error.ends_with(
            "long.svm:2:1: a line of more than 131072 bytes: end lines by `\\n`, or give a stream a larger buffer"
        ),
        "{error}"
    );
}

fn epoch_len(batches: &mut StreamBatches<f32>) -> usize {
    batches.start_epoch(0).unwrap();
    let mut n_rows = 0;
    while let Some(batch) = batches.next_batch().unwrap() {
        n_rows += batch.n_rows();
    }
    n_rows
}

/// The last that is told is all of them, wherever lines are cut, and what a place that is gone to
/// has passed over counts.
#[test]
fn progress_is_told_in_bytes() {
    use std::sync::atomic::{AtomicU64, Ordering};
    let files = [TempFile::new("told-1", text(N)), TempFile::new("told-2", text(10))];
    let told = Arc::new(AtomicU64::new(0));
    let last = Arc::clone(&told);
    let stream = Stream::new(format()).files(files.iter().map(|file| file.0.clone()));
    let stream = stream.buffer(1 << 20).progress(move |at| {
        last.store(at.bytes, Ordering::Relaxed);
        assert!(Some(at.bytes) <= at.total, "{at:?}");
    });
    let data: StreamedDataset<f32> = stream.open().unwrap();
    let total: u64 = files.iter().map(|file| file.0.metadata().unwrap().len()).sum();
    let mut batches =
        data.batches(INPUTS, &options(1000, Order::Sequential, LastBatch::Short)).unwrap();
    assert_eq!(epoch_len(&mut batches), N + 10);
    assert_eq!(told.load(Ordering::Relaxed), total);
    batches.seek(Position { epoch: 1, batch: 50 }).unwrap();
    while batches.next_batch().unwrap().is_some() {}
    assert_eq!(told.load(Ordering::Relaxed), total);
    assert_eq!(batches.bytes_read().unwrap().bytes(), total);
}

/// A row that is left out says nothing of where indices count from.
#[test]
fn the_base_is_that_of_the_data_in_memory() {
    let file = TempFile::new("base", "1 1:1\n0 0:1 9:1\n1 3:1\n");
    let reader = || Reader::new().n_features(3);
    let memory: Dataset = reader().on_error(OnError::Skip(5)).read_path(&file.0).unwrap();
    let stream = Stream::new(reader()).file(&file.0).on_error(OnError::Skip(5));
    let stream: StreamedDataset<f32> = stream.open().unwrap();
    assert_eq!(stream.report().index_base, Some(IndexBase::One));
    assert_eq!(stream.report().index_base, memory.report().unwrap().index_base);
    assert_eq!((stream.n_rows(), memory.n_rows()), (None, 2));
}

#[test]
fn streams_that_make_no_sense() {
    let file = TempFile::new("sense", "1 1:1\n");
    let refused = |stream: Stream<Reader>| stream.open().unwrap_err().to_string();
    let none = "the stream cannot be opened: it has no files";
    assert!(refused(Stream::new(format())).starts_with(none));
    assert!(refused(Stream::new(format()).file(&file.0).buffer(1000)).contains("too small"));
    assert!(refused(Stream::new(format().part(0, 2)).file(&file.0)).contains("whole files"));
    let missing = Stream::new(format()).file("no/such/file").open().unwrap_err();
    assert!(matches!(missing, ReadError::Io { .. }));
    #[cfg(unix)]
    assert!(refused(Stream::new(format()).file("/dev/null")).contains("is a pipe or a device"));
    let ratings = Stream::new(super::super::Ratings::new()).file(&file.0).open().unwrap_err();
    assert!(ratings.to_string().contains("`Ratings::users`"), "{ratings}");
    let empty = TempFile::new("nothing", "\n\n");
    let error = Stream::new(Reader::new()).file(&empty.0).buffer(1 << 20).open().unwrap_err();
    assert!(matches!(error, ReadError::Empty { .. }), "{error}");
}

#[cfg(feature = "gzip")]
#[test]
fn compressed_files_and_headers() {
    use std::io::Write;
    let compress = |text: &str| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    };
    let rows = |from: usize, to: usize| -> String {
        (from..to).map(|i| format!("{i},{},city {}\n", i % 7, i % 1009)).collect()
    };
    let table = |rows: String| format!("y,n,city\n{rows}");
    let files = [
        TempFile::new("1.csv.gz", compress(&table(rows(0, 30_000)))),
        TempFile::new("2.csv", table(rows(30_000, 50_000))),
        TempFile::new("3.csv.gz", compress(&table(rows(50_000, N)))),
    ];
    let format = Delimited::csv(Hashing::new(12).unwrap())
        .header(true)
        .label("y")
        .numeric("n")
        .categorical("city");
    let paths: Vec<_> = files.iter().map(|file| file.0.clone()).collect();
    let open = |threads| {
        let stream = Stream::new(format.clone()).files(&paths).buffer(1 << 20);
        stream.parallel(Parallel::Threads(threads)).open().unwrap()
    };
    let labels = |data: &StreamedDataset, options: &BatchOptions| {
        let mut batches = data.batches(INPUTS, options).unwrap();
        batches.start_epoch(1).unwrap();
        let mut labels = Vec::new();
        while let Some(batch) = batches.next_batch().unwrap() {
            labels.extend(batch.dense(1).unwrap().values().iter().map(|&label| label as usize));
        }
        labels
    };
    let all: Vec<usize> = (0..N).collect();
    let sequential = options(64, Order::Sequential, LastBatch::Short);
    assert_eq!(labels(&open(2), &sequential), all);
    let shuffled = options(64, Order::Shuffled { seed: 9 }, LastBatch::Short);
    let found = labels(&open(1), &shuffled);
    assert_eq!(labels(&open(3), &shuffled), found);
    let mut sorted = found.clone();
    sorted.sort_unstable();
    assert_ne!(found, all);
    assert_eq!(sorted, all);

    let bytes = std::fs::read(&paths[0]).unwrap();
    std::fs::write(&paths[0], &bytes[..bytes.len() - 10]).unwrap();
    let error = error_of(&open(2), INPUTS);
    assert!(error.contains("is truncated"), "{error}");
}

#[test]
fn a_model_trains_on_it_as_on_data_in_memory() {
    // The same rows in the same order are the same data.
    let file = TempFile::new("same", text(5000));
    let data = open(&[&file], 2);
    let memory: Dataset = format().read_path(&file.0).unwrap();
    let options = options(13, Order::Sequential, LastBatch::Short);
    let mut streamed = data.batches(INPUTS, &options).unwrap();
    let mut batches = memory.batches(INPUTS, &options).unwrap();
    streamed.start_epoch(0).unwrap();
    batches.start_epoch(0).unwrap();
    while let Some(expected) = batches.next_batch().unwrap() {
        let found = streamed.next_batch().unwrap().unwrap();
        let rows = |batch: nnz_arrays::formats::CsrView<'_, f32>| batch.to_owned();
        assert_eq!(rows(found.csr(0).unwrap()), rows(expected.csr(0).unwrap()));
        assert_eq!(found.dense(1).unwrap().values(), expected.dense(1).unwrap().values());
    }
    assert!(streamed.next_batch().unwrap().is_none());
}

#[test]
fn rows_in_memory_and_of_a_stream_are_of_one_type() {
    const N_ROWS: usize = 5000;
    let file = TempFile::new("any", text(N_ROWS));
    let memory = format().read_path(&file.0).unwrap();
    for data in [AnyDataset::from(memory), AnyDataset::from(open(&[&file], 1))] {
        assert_eq!(data.n_features(), 2000);
        for batch_size in [1, 7] {
            let sequential = options(batch_size, Order::Sequential, LastBatch::Short);
            let mut batches = data.batches(INPUTS, &sequential).unwrap();
            assert_eq!(batches.batch_size(), Some(batch_size));
            let all: Vec<usize> = (0..N_ROWS).collect();
            assert_eq!(epoch(&mut batches, 0).0.concat(), all);
            // Batches of one row come many at a time, others one by one.
            batches.start_epoch(1).unwrap();
            let (mut n_rows, mut n_calls) = (0, 0);
            while let Some(batch) = batches.next_rows(1000).unwrap() {
                assert_eq!(batch.dense(1).unwrap().values()[0], n_rows as f32);
                n_rows += batch.n_rows();
                n_calls += 1;
            }
            assert_eq!(n_rows, N_ROWS);
            assert!(if batch_size == 1 { n_calls < 20 } else { n_calls == 715 }, "{n_calls}");
            let batch = N_ROWS.div_ceil(batch_size) as u64;
            assert_eq!(batches.position(), Position { epoch: 1, batch });
        }
    }
}

/// Numbers of the model's type, to the bit those that are read into memory.
#[test]
fn libsvm_text_is_streamed_as_any_element_type() {
    let file = TempFile::new("wide.svm", "0.1 1:0.1 3:1e-300\n-2e200 2:0.3\n");
    let inputs = [ElementType::F64; 2].into_iter().zip(INPUTS);
    let inputs = Vec::from_iter(inputs.map(|(element, input)| InputInfo { element, ..*input }));
    let inputs: &'static [InputInfo] = inputs.leak();
    let expected = Reader::new().element::<f64>().read_path(&file.0).unwrap();
    let by_stream = Stream::new(Reader::new()).element::<f64>().file(&file.0).open().unwrap();
    let by_reader = Stream::new(Reader::new().element::<f64>()).element::<f64>();
    for data in [by_stream, by_reader.file(&file.0).open().unwrap()] {
        let options = BatchOptions { batch_size: 2, ..BatchOptions::default() };
        let mut batches = data.batches(inputs, &options).unwrap();
        batches.start_epoch(0).unwrap();
        let batch = batches.next_batch().unwrap().unwrap();
        assert_eq!(batch.csr(0).unwrap().values(), expected.features().unwrap().values());
        assert_eq!(batch.dense(1).unwrap().values(), [0.1, -2e200]);
    }
}
