//! What holds for all formats.

use super::super::{
    Dataset, Delimited, Hashing, LibFfm, OnError, Ratings, ReadError, TextReader, VowpalWabbit,
    Words,
};
use super::*;
use nnz_arrays::kernels::Parallel;
use std::sync::{Arc, Mutex};

/// A text of each format with a row that is wrong in each hundred.
fn texts() -> Vec<(&'static str, String)> {
    let lines = |row: &dyn Fn(usize) -> String| {
        let line = |i| if i % 100 == 77 { "what is this\n".to_owned() } else { row(i) };
        (0..60_000).map(line).collect::<String>()
    };
    vec![
        ("csv", lines(&|i| format!("{},{},city {}\n", i % 2, i % 91, i % 1001))),
        ("ratings", lines(&|i| format!("u{},i{},{}\n", i % 3001, i % 707, i % 5))),
        ("libffm", lines(&|i| format!("{} 0:{}:1 1:{}:0.5\n", i % 2, i % 100, 100 + i % 777))),
        (
            "vw",
            lines(&|i| {
                format!(
                    "{} {}.5 'r{i} |u u{} age:{} |p p{}\n",
                    i % 2,
                    i % 3,
                    i % 301,
                    i % 9,
                    i % 77
                )
            }),
        ),
        ("words", lines(&|i| format!("{}\tsome words {} and {}\n", i % 2, i % 97, i))),
    ]
}

fn read(
    name: &str,
    text: &str,
    parallel: Parallel,
    on_error: OnError,
) -> Result<Dataset, ReadError> {
    fn with<F: WholeFormat<f32>>(
        format: F,
        text: &str,
        parallel: Parallel,
        on_error: OnError,
    ) -> Result<Dataset, ReadError> {
        let reader = TextReader::new(format).parallel(parallel).on_error(on_error);
        reader.read_bytes("file", text.as_bytes())
    }
    let hashing = Hashing::new(18).unwrap();
    match name {
        "csv" => {
            let format = Delimited::csv(hashing).label("y").count("n").categorical("c").ids();
            with(format, text, parallel, on_error)
        }
        "ratings" => with(Ratings::new(), text, parallel, on_error),
        "libffm" => with(LibFfm::new(), text, parallel, on_error),
        "vw" => with(VowpalWabbit::new(hashing).cross("u", "p"), text, parallel, on_error),
        _ => with(Words::new(hashing), text, parallel, on_error),
    }
}

/// Everything that is in the data, as text.
fn content(data: &Dataset) -> Vec<String> {
    use crate::ColumnValues;
    let column = |values: &ColumnValues| match values {
        ColumnValues::Csr(csr) => {
            let rows: Vec<Vec<(usize, f32)>> = csr.iter_rows().map(Iterator::collect).collect();
            format!("{} {rows:?}", csr.n_cols())
        }
        ColumnValues::Dense(dense) => format!("{:?}", dense.values()),
        ColumnValues::Ids(ids) => format!("{:?}", ids.view().iter().collect::<Vec<_>>()),
        ColumnValues::Unit(csr) => csr.to_string(),
    };
    data.columns().iter().map(|found| column(found.values())).collect()
}

#[test]
fn threads_change_nothing() {
    for (name, text) in texts() {
        let one = read(name, &text, Parallel::Sequential, OnError::Skip(600)).unwrap();
        assert_eq!(one.n_rows(), 60_000 - 600);
        for threads in [2, 3, 7] {
            let more = read(name, &text, Parallel::Threads(threads), OnError::Skip(600)).unwrap();
            assert_eq!(content(&more), content(&one), "{name}, {threads} threads");
            assert_eq!(more.report(), one.report());
        }
        for (on_error, line) in [(OnError::Fail, 78), (OnError::Skip(3), 378)] {
            for parallel in [Parallel::Sequential, Parallel::Threads(3)] {
                let error = read(name, &text, parallel, on_error).unwrap_err().to_string();
                assert!(error.starts_with(&format!("file:{line}:")), "{name}: {error}");
            }
        }
    }
}

#[test]
fn a_line_of_ten_megabytes_is_a_line() {
    let long = "x".repeat(10 << 20);
    let format = || Delimited::csv(Hashing::new(8).unwrap()).label("y").categorical("c");
    let text = format!("1,a\n0,{long}\n1,b\n");
    let data = TextReader::new(format()).read_bytes("file", text.as_bytes()).unwrap();
    assert_eq!((data.n_rows(), data.features().unwrap().nnz()), (3, 3));
    let text = format!("1,a\n{long}\n1,b\n");
    let error = TextReader::new(format()).read_bytes("file", text.as_bytes()).unwrap_err();
    let error = error.to_string();
    assert_eq!(
        error,
        "file:2:1: expected a number in the column `y`, found `xxxxxxxxxxxxxxxxxxxxxxxx`…"
    );
    let reader = TextReader::new(format()).on_error(OnError::Skip(1));
    assert_eq!(reader.read_bytes("file", text.as_bytes()).unwrap().n_rows(), 2);
}

#[test]
fn progress_is_told_in_bytes_of_the_file() {
    let path = std::env::temp_dir().join(format!("nnz-progress-{}.csv", std::process::id()));
    let text = "1,a\n".repeat(1 << 20);
    std::fs::write(&path, &text).unwrap();
    let told = Arc::new(Mutex::new(Vec::new()));
    let listener = Arc::clone(&told);
    let format = Delimited::csv(Hashing::new(8).unwrap()).label("y").categorical("c");
    let reader = TextReader::new(format)
        .progress(move |progress| listener.lock().unwrap().push((progress.bytes, progress.total)));
    let read = reader.read_path(&path);
    std::fs::remove_file(&path).unwrap();
    assert_eq!(read.unwrap().n_rows(), 1 << 20);
    let told = told.lock().unwrap();
    assert_eq!(told.len(), 4);
    assert!(told.is_sorted() && told.iter().all(|(_, total)| *total == Some(text.len() as u64)));
    assert_eq!(told.last().unwrap().0, text.len() as u64);
}

#[test]
fn a_byte_order_mark_is_no_text() {
    let format = Delimited::csv(Hashing::new(8).unwrap()).header(true).label("y").categorical("c");
    let data = TextReader::new(format).read_bytes("file", b"\xef\xbb\xbfy,c\n1,a\n").unwrap();
    assert_eq!(data.n_rows(), 1);
}

#[cfg(feature = "gzip")]
#[test]
fn compressed_files_are_read_whole_or_not_at_all() {
    use std::io::Write;
    let path = std::env::temp_dir().join(format!("nnz-text-{}.csv.gz", std::process::id()));
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let text: String = (0..50_000).map(|i| format!("{},a{}\n", i % 2, i * 7919 % 10_007)).collect();
    encoder.write_all(text.as_bytes()).unwrap();
    let bytes = encoder.finish().unwrap();
    let read = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        let format = Delimited::csv(Hashing::new(8).unwrap()).label("y").categorical("c");
        TextReader::new(format).on_error(OnError::Skip(u64::MAX)).read_path(&path)
    };
    assert_eq!(read(&bytes).unwrap().n_rows(), 50_000);
    for cut in [bytes.len() / 2, bytes.len() - 1] {
        let error = read(&bytes[..cut]).unwrap_err();
        assert!(matches!(error, ReadError::TruncatedGzip { .. }), "{error}");
    }
    let error = read(text.as_bytes()).unwrap_err();
    std::fs::remove_file(&path).unwrap();
    assert!(matches!(error, ReadError::CorruptGzip { .. }), "{error}");
}

#[test]
fn rows_that_do_not_fit_in_memory_are_an_error() {
    let layout = RowFormat::<f32>::columns(&Ratings::new());
    let mut rows = Chunk::<f32>::new(&layout);
    assert_eq!(rows.grow(1e30), Ok(()));
    rows.dense(2).push(1.0);
    assert_eq!(rows.grow(1e30), Err(usize::MAX));
    let error = ReadError::OutOfMemory { file: "rows.csv".to_owned(), bytes: 1 << 40 };
    assert_eq!(
        error.to_string(),
        "`rows.csv`: there is no memory for its rows: an array of them takes 1099511627776 bytes by now: stream the \
         file (`Stream`, `--stream`), or read fewer columns"
    );
}

/// A folder of files for one test.
fn files_of(name: &str, texts: &[&str]) -> (std::path::PathBuf, Vec<std::path::PathBuf>) {
    let folder = std::env::temp_dir().join(format!("nnz-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = |(number, text): (usize, &&str)| {
        let path = folder.join(format!("{number}.txt"));
        std::fs::write(&path, text).unwrap();
        path
    };
    let paths = texts.iter().enumerate().map(file).collect();
    (folder, paths)
}

#[test]
fn several_files_are_read_as_one() {
    let texts = ["y,x\n1,a\n0,b", "\u{feff}y,x\n", "y,x\n1,\"c\nd\"\n"];
    let (folder, paths) = files_of("several-texts", &texts);
    let format = Delimited::csv(Hashing::new(10).unwrap()).header(true);
    let format = format.label("y").categorical("x");
    for parallel in [Parallel::Sequential, Parallel::Threads(3)] {
        let reader = TextReader::new(format.clone()).parallel(parallel);
        let found = reader.read_paths(&paths).unwrap();
        let whole = b"y,x\n1,a\n0,b\n1,\"c\nd\"\n";
        let expected = reader.read_bytes("whole", whole).unwrap();
        assert_eq!(found.features(), expected.features());
        assert_eq!(found.n_rows(), 3);
    }
    std::fs::remove_dir_all(folder).unwrap();

    let (folder, paths) = files_of("several-ratings", &["u,i,1\nv,j,2\n", "u,j,3\nw,i,4\n"]);
    let data: Dataset = TextReader::new(Ratings::new()).read_paths(&paths).unwrap();
    assert_eq!(data.id_map("user").unwrap().ids().collect::<Vec<_>>(), ["u", "v", "w"]);
    assert_eq!((data.n_rows(), data.id_map("item").unwrap().len()), (4, 2));
    std::fs::remove_dir_all(folder).unwrap();
}

/// A fault is placed in its file, and the limit of skipped samples is for all files together.
#[test]
fn faults_of_several_files_are_placed_in_their_own() {
    let (folder, paths) = files_of("several-faults", &["u,i,1\nv,j,?\n", "u,j,3\n\nw,i,x\n"]);
    let reader = TextReader::new(Ratings::new());
    let at = |error: ReadError| error.to_string().rsplit('/').next().unwrap().to_owned();
    let error = at(reader.read_paths(&paths).map(|_: Dataset| ()).unwrap_err());
    assert!(error.starts_with("0.txt:2:5: expected a number"), "{error}");
    let skipping = |limit| reader.clone().on_error(OnError::Skip(limit)).read_paths(&paths);
    let error = at(skipping(1).map(|_: Dataset| ()).unwrap_err());
    assert!(error.starts_with("1.txt:3:5: "), "{error}");
    assert_eq!(skipping(2).unwrap().report().unwrap().n_skipped, 2);
    let none: [&str; 0] = [];
    let error = reader.read_paths(none).map(|_: Dataset| ()).unwrap_err();
    assert!(matches!(error, ReadError::Empty { .. }), "{error}");
    std::fs::remove_dir_all(folder).unwrap();
}
