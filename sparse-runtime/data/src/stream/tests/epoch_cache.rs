//! Later epochs that read rows which an earlier one has kept.

use super::*;

fn kept(files: &[&TempFile], threads: usize) -> StreamedDataset {
    let paths = files.iter().map(|file| file.0.clone());
    let stream = Stream::new(format()).files(paths).buffer(1 << 20);
    let stream = stream.parallel(Parallel::Threads(threads)).cache_in(std::env::temp_dir());
    stream.open().unwrap()
}

#[test]
fn rows_and_their_order_are_those_of_the_text() {
    let text = text(N);
    let cut = text[..text.len() / 3].rfind('\n').unwrap() + 1;
    let files = [
        TempFile::new("kept-1", &text[..cut]),
        TempFile::new("kept-empty", ""),
        TempFile::new("kept-2", text[cut..].trim_end()),
    ];
    let files: Vec<_> = files.iter().collect();
    let shuffled = options(77, Order::Shuffled { seed: 5 }, LastBatch::Short);
    let parsed = open(&files, 2);
    let mut parsed = parsed.batches(INPUTS, &shuffled).unwrap();
    let expected = [0, 1, 2].map(|number| epoch(&mut parsed, number));
    let streams = [1, 3].map(|threads| kept(&files, threads));
    let mut streams: Vec<_> =
        streams.iter().map(|data| data.batches(INPUTS, &shuffled).unwrap()).collect();
    for batches in &mut streams {
        // An epoch that nobody reads to its end keeps what it has come to.
        batches.start_epoch(4).unwrap();
        batches.next_batch().unwrap().unwrap();
        assert_eq!(epoch(batches, 0), expected[0]);
    }
    // There is no text to be parsed any more.
    for file in &files {
        std::fs::write(&file.0, "x\n".repeat(text.len() / 2)).unwrap();
    }
    for batches in &mut streams {
        assert_eq!(epoch(batches, 1), expected[1]);
        batches.seek(Position { epoch: 2, batch: 700 }).unwrap();
        assert_eq!(rest(batches).0, expected[2].0[700..]);
    }
}

#[cfg(feature = "gzip")]
#[test]
fn compressed_files_are_decompressed_once() {
    use std::io::Write;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text(N).as_bytes()).unwrap();
    let file = TempFile::new("kept.svm.gz", encoder.finish().unwrap());
    let sequential = options(100, Order::Sequential, LastBatch::Short);
    let data = kept(&[&file], 3);
    let mut batches = data.batches(INPUTS, &sequential).unwrap();
    let first = epoch(&mut batches, 0);
    assert_eq!(first.0.concat(), Vec::from_iter(0..N));
    std::fs::write(&file.0, "not gzip").unwrap();
    assert_eq!(epoch(&mut batches, 1), first);
}

/// Rows that were left out are told in every epoch, and labels that one model has taken are checked
/// for another.
#[test]
fn what_is_wrong_is_told_as_of_text() {
    let text = text(3000).replace("7 8:7 108:0.5\n", "7 8:x\n");
    let file = TempFile::new("kept-wrong.svm", text);
    let open = |cached: bool| {
        let stream = Stream::new(format()).file(&file.0).buffer(1 << 20);
        let stream = stream.on_error(OnError::Skip(1));
        let folder = std::env::temp_dir();
        (if cached { stream.cache_in(folder) } else { stream }).open().unwrap()
    };
    let binary = [
        INPUTS[0],
        declare("y", InputRole::Label, Storage::Dense, ElementType::F32, LabelKind::Binary),
    ];
    let options = options(10, Order::Sequential, LastBatch::Short);
    let [parsed, kept] = [false, true].map(|cached| {
        let data = open(cached);
        for number in 0..3 {
            let mut batches = data.batches(INPUTS, &options).unwrap();
            batches.start_epoch(number).unwrap();
            assert_eq!(std::iter::from_fn(|| batches.next_batch().unwrap().map(drop)).count(), 300);
            assert_eq!(data.report().n_skipped, 1);
        }
        (data.report().to_string(), error_of(&data, &binary))
    });
    assert_eq!(kept, parsed);
    assert!(kept.1.contains(" is not what `y` is read as"), "{kept:?}");
}

#[test]
fn a_file_that_cannot_be_made_is_an_error() {
    let file = TempFile::new("kept-nowhere", "1 1:1\n");
    let stream = Stream::new(format()).file(&file.0).cache_in("no/such/folder");
    let error = stream.open().unwrap_err().to_string();
    assert!(error.starts_with("`no/such/folder`: "), "{error}");
}
