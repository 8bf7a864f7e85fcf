//! Labels of a stream: which line is named where they are mixed, and their statistics.

use super::*;
use crate::LabelStatistics;

const BINARY: &[InputInfo] = &[
    INPUTS[0],
    declare("y", InputRole::Label, Storage::Dense, ElementType::F32, LabelKind::Binary),
];

/// Rows of these labels.
fn rows(labels: impl Iterator<Item = i32>) -> String {
    labels.enumerate().map(|(i, y)| format!("{y} {}:0.5 {}:1\n", 1 + i % 100, 102)).collect()
}

/// The first error of an epoch in shuffled order.
fn error_by(data: &StreamedDataset, seed: u64) -> String {
    let options = options(2, Order::Shuffled { seed }, LastBatch::Short);
    let mut batches = data.batches(BINARY, &options).unwrap();
    batches.start_epoch(0).unwrap();
    loop {
        match batches.next_batch() {
            Ok(Some(_)) => {}
            Ok(None) => panic!("labels are mixed"),
            Err(error) => return error.to_string(),
        }
    }
}

#[test]
fn d13_mixed_labels_name_the_first_line_of_the_files_whatever_the_threads_and_the_order() {
    let few = |i: usize| if i % 20_000 == 7000 { 0 } else { -1 };
    let file = TempFile::new("mixed-few.svm", rows((0..N).map(few)));
    let minus = TempFile::new("mixed-minus.svm", rows((0..N).map(|_| -1)));
    let zeros = TempFile::new("mixed-zeros.svm", format!("1 1:1\n{}", rows((0..N).map(|_| 0))));
    for threads in [1, 2, 5] {
        for seed in 0..3 {
            let error = error_by(&open(&[&file], threads), seed);
            let expected = "mixed-few.svm:7001:1: the label 0 beside labels that are -1: `y`";
            assert!(error.contains(expected), "{error}");
            let error = error_by(&open(&[&minus, &zeros], threads), seed);
            let expected = "mixed-zeros.svm:2:1: the label 0 beside labels that are -1";
            assert!(error.contains(expected), "{error}");
            let error = error_by(&open(&[&zeros, &minus], threads), seed);
            let expected = "mixed-minus.svm:1:1: the label -1 beside labels that are from 0";
            assert!(error.contains(expected), "{error}");
        }
    }
}

#[test]
fn d13_mixed_labels_are_found_among_rows_that_are_kept() {
    let text = format!("{}{}", rows((0..N).map(|_| -1)), rows((0..N).map(|_| 0)));
    let file = TempFile::new("mixed-kept.svm", text);
    let stream = Stream::new(format()).file(&file.0).buffer(1 << 20);
    let data = stream.cache_in(std::env::temp_dir()).open().unwrap();
    // As numbers they are kept.
    let sequential = options(32, Order::Sequential, LastBatch::Short);
    let mut batches = data.batches(INPUTS, &sequential).unwrap();
    batches.start_epoch(0).unwrap();
    while batches.next_batch().unwrap().is_some() {}
    let error = error_by(&data, 1);
    assert!(error.contains(&format!("mixed-kept.svm:{}:1: the label 0", N + 1)), "{error}");
}

#[test]
fn two_labels_may_write_the_negative_class_in_two_ways() {
    let text: String = (0..3000).map(|i| format!("{},{},{i}\n", i % 2, i % 2 * 2 - 1)).collect();
    let file = TempFile::new("two-labels.csv", text);
    let format = Delimited::csv(Hashing::new(4).unwrap());
    let format = format.with_schema("a:label,b:label,x:categorical").unwrap();
    let data = Stream::new(format).file(&file.0).buffer(1 << 20).open().unwrap();
    let label =
        |name| declare(name, InputRole::Label, Storage::Dense, ElementType::F32, LabelKind::Binary);
    let inputs = [INPUTS[0], label("a"), label("b")];
    let sequential = options(32, Order::Sequential, LastBatch::Short);
    let mut batches = data.batches(&inputs, &sequential).unwrap();
    batches.start_epoch(0).unwrap();
    let mut n_rows = 0;
    while let Some(batch) = batches.next_batch().unwrap() {
        n_rows += batch.n_rows();
    }
    assert_eq!(n_rows, 3000);
    let seen = data.label_statistics().unwrap();
    let names: Vec<_> = seen.iter().map(LabelStatistics::name).collect();
    assert_eq!(names, [Some("a"), Some("b")]);
    assert_eq!(seen[1].distinct(), Some(&[-1.0, 1.0][..]));
}

#[test]
fn statistics_of_labels_are_known_after_the_first_epoch_and_count_each_row_once() {
    let file = TempFile::new("statistics", text(N));
    let of = |threads, kept: bool| {
        let stream = Stream::new(format()).file(&file.0).buffer(1 << 20);
        let stream = if kept { stream.cache_in(std::env::temp_dir()) } else { stream };
        let data = stream.parallel(Parallel::Threads(threads)).open().unwrap();
        assert_eq!(data.label_statistics(), None);
        let shuffled = options(77, Order::Shuffled { seed: 3 }, LastBatch::Short);
        let mut batches = data.batches(INPUTS, &shuffled).unwrap();
        // An epoch that is left counts what it has read.
        batches.start_epoch(0).unwrap();
        batches.next_batch().unwrap().unwrap();
        for number in 1..3 {
            epoch(&mut batches, number);
        }
        data.label_statistics().unwrap()
    };
    let mean = (N - 1) as f64 / 2.0;
    let variance = ((N * N - 1) as f64) / 12.0;
    for (threads, kept) in [(1, false), (3, false), (2, true)] {
        let [labels] = &of(threads, kept)[..] else { panic!("there is one label") };
        assert_eq!((labels.count(), labels.distinct()), (N as u64, None));
        assert_eq!(labels.range(), Some((0.0, (N - 1) as f64)));
        assert!((labels.mean().unwrap() / mean - 1.0).abs() < 1e-12, "{labels:?}");
        assert!((labels.variance().unwrap() / variance - 1.0).abs() < 1e-12, "{labels:?}");
    }
}

#[test]
fn statistics_of_labels_are_known_at_once_where_opening_reads_all_rows() {
    let file = TempFile::new("surveyed", "3 1:1\nx\n1 2:1\n");
    let open = |classes: bool, skip| {
        let stream = Stream::new(Reader::new()).file(&file.0).buffer(1 << 20);
        let stream = stream.on_error(if skip { OnError::Skip(1) } else { OnError::Fail });
        if classes { stream.find_classes().open() } else { stream.open() }
    };
    assert!(open(false, false).is_err());
    // What is left out may be more once the width is known.
    assert_eq!(open(false, true).unwrap().label_statistics(), None);
    std::fs::write(&file.0, "3 1:1\n1 2:1\n").unwrap();
    let labels = open(false, false).unwrap().label_statistics().unwrap();
    assert_eq!(labels[0].distinct(), Some(&[1.0, 3.0][..]));
    // Class ids are counted by an epoch.
    let data = open(true, false).unwrap();
    assert_eq!(data.label_statistics(), None);
    let class = [
        INPUTS[0],
        declare("y", InputRole::Label, Storage::Dense, ElementType::U32, LabelKind::Class),
    ];
    let sequential = options(2, Order::Sequential, LastBatch::Short);
    let mut batches = data.batches(&class, &sequential).unwrap();
    batches.start_epoch(0).unwrap();
    while batches.next_batch().unwrap().is_some() {}
    let counts = data.label_statistics().unwrap()[0].class_counts().clone();
    assert_eq!(counts, [(0, 1), (1, 1)].into());
}
