//! Numbers of threads and bytes that no reader can use.

use super::libsvm::{IndexBase, Reader};
use super::stream::Stream;
use super::{DataError, Delimited, Hashing, ReadError, TextReader, synthetic};
use nnz_arrays::formats::FormatError;
use nnz_arrays::kernels::{MAX_THREADS, Parallel, TooManyThreads};

const TEXT: &[u8] = b"1 1:0.5\n-1 2:1\n1 1:2\n";

#[track_caller]
fn assert_refused<A>(result: Result<A, ReadError>, what: &'static str, found: usize) {
    match result.err() {
        Some(ReadError::Threads(error)) => {
            assert_eq!(error, TooManyThreads::check(what, found).unwrap_err())
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn readers_refuse_more_threads_than_there_can_be() {
    let reader = |threads| Reader::new().parallel(Parallel::Threads(threads));
    let format = Delimited::csv(Hashing::new(10).unwrap()).label("click").numeric("age");
    let csv = |threads| TextReader::new(format.clone()).parallel(Parallel::Threads(threads));
    for found in [MAX_THREADS + 1, usize::MAX] {
        let what = "libsvm::Reader::parallel";
        assert_refused(reader(found).read_bytes("t", TEXT), what, found);
        assert_refused(reader(found).read("t", TEXT), what, found);
        assert_refused(csv(found).read_bytes("t", b"1,34\n"), "TextReader::parallel", found);
    }
    for threads in [0, 1, MAX_THREADS] {
        assert_eq!(reader(threads).read_bytes("t", TEXT).unwrap().n_rows(), 3);
        assert_eq!(csv(threads).read_bytes("t", b"1,34\n").unwrap().n_rows(), 1);
    }
}

#[test]
fn streams_refuse_more_threads_than_there_can_be() {
    let path = std::env::temp_dir().join(format!("nnz-faults-stream-{}.svm", std::process::id()));
    std::fs::write(&path, TEXT).unwrap();
    let stream = |buffer, threads| {
        let format = Reader::new().index_base(IndexBase::One);
        Stream::new(format).file(&path).buffer(buffer).parallel(Parallel::Threads(threads)).open()
    };
    for found in [MAX_THREADS + 1, 1_000_000, usize::MAX] {
        assert_refused(stream(1 << 20, found), "Stream::parallel", found);
        assert_refused(stream(usize::MAX, found), "Stream::parallel", found);
    }
    // As many as the buffer has room for.
    for (buffer, threads) in [(1 << 20, MAX_THREADS), (usize::MAX, 2), (usize::MAX, 0)] {
        assert_eq!(stream(buffer, threads).unwrap().n_rows(), Some(3));
    }
    assert!(matches!(stream(0, 1), Err(ReadError::Stream { .. })));
    std::fs::remove_file(path).unwrap();
}

#[test]
fn data_is_not_divided_for_more_threads_than_there_can_be() {
    let data = || synthetic::click_log(100, 50, 4, 1).unwrap();
    for found in [MAX_THREADS + 1, usize::MAX] {
        let expected =
            FormatError::Threads(TooManyThreads::check("divided_for", found).unwrap_err());
        let error = data().features().unwrap().view().divided_for(found).err();
        assert_eq!(error, Some(expected.clone()));
        assert_eq!(data().divided_for(found).err(), Some(DataError::Format(expected)));
    }
    for threads in [0, 1, 33, MAX_THREADS] {
        assert_eq!(data().divided_for(threads).unwrap().n_rows(), 100);
    }
}
