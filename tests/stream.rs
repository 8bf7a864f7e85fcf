//! Training on a file that is four times as large as the memory that it may take, from a process of
//! its own.

#![cfg(target_os = "linux")]

use crate::own_process;
use nnz::data::libsvm::Reader;
use nnz::data::stream::Stream;
use nnz::kernels::Parallel;
use nnz::prelude::*;
use std::fmt::Write as _;
use std::io::Write as _;

graph! {
    pub model Logistic {
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Zeros;
        let score = dot(x, w);
        loss logistic(score, y);
        output score;
    }
}

const BUFFER: usize = 8 << 20;
const FEATURES: usize = 100_000;

/// The most memory that this process has had without pages of its program, which are read as code
/// is first run, in bytes.
fn peak() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let bytes = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 1024
    };
    bytes("VmHWM:") - bytes("RssFile:")
}

#[test]
fn the_memory_of_a_streamed_epoch_is_bounded_by_its_buffer() {
    if !own_process::is_own("stream::the_memory_of_a_streamed_epoch_is_bounded_by_its_buffer") {
        return;
    }
    let path = std::env::temp_dir().join(format!("nnz-stream-memory-{}.svm", std::process::id()));
    let mut file = std::io::BufWriter::new(std::fs::File::create(&path).unwrap());
    let (mut line, mut bytes, mut n_rows) = (String::new(), 0, 0usize);
    while bytes < 4 * BUFFER {
        line.clear();
        write!(line, "{}", n_rows % 2).unwrap();
        for field in 0..30 {
            let column = field * (FEATURES / 30) + n_rows * (field + 7) % (FEATURES / 30) + 1;
            write!(line, " {column}:1").unwrap();
        }
        line.push('\n');
        file.write_all(line.as_bytes()).unwrap();
        bytes += line.len();
        n_rows += 1;
    }
    drop(file);
    let mut model = Logistic::new(dims! { d: FEATURES }, Seed(0)).unwrap();
    let before = peak();
    let format = Reader::new().index_base(IndexBase::One).n_features(FEATURES);
    let stream = Stream::new(format).file(&path).buffer(BUFFER).parallel(Parallel::Threads(4));
    let data = stream.open().unwrap();
    let mut trainer =
        Trainer::new(Sgd::default()).batch_size(64).epochs(2).progress(Progress::Silent);
    let report = trainer.fit(&mut model, &data);
    let added = peak() - before;
    std::fs::remove_file(&path).unwrap();
    let report = report.unwrap();
    assert_eq!(report.epochs[1].n_rows, n_rows as u64);
    assert!(report.epochs[1].loss < report.epochs[0].loss);
    println!("a buffer of {BUFFER} bytes, a file of {bytes}: {added} bytes more at the peak");
    // The model and what the allocator keeps of freed memory are not of the buffer.
    assert!(added < 2 * BUFFER, "{added} bytes for a buffer of {BUFFER}");
}
