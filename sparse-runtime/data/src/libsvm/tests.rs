use super::{IndexBase, Reader, write_to};
use crate::{ColumnValues, Dataset, OnError, Place, Problem, ReadError};
use nnz_arrays::formats::ColumnIdsView;
use nnz_arrays::kernels::Parallel;
use proptest::prelude::*;
use sparse_core::element::Float;

pub(super) fn parse(text: &str, base: IndexBase) -> Result<Dataset, ReadError> {
    Reader::new().index_base(base).read_bytes("file", text.as_bytes())
}

fn labels<T: Float>(data: &Dataset<T>) -> &[T] {
    match data.labels() {
        Some(ColumnValues::Dense(labels)) => labels.values(),
        _ => panic!("the labels are numbers"),
    }
}

/// Samples as `(column, value)`.
pub(super) fn rows<T: Float>(data: &Dataset<T>) -> Vec<Vec<(usize, T)>> {
    let features = data.features().expect("a reader makes a csr input");
    features.iter_rows().map(Iterator::collect).collect()
}

/// The place and text of a fault.
#[track_caller]
fn fault(text: &str, base: IndexBase) -> (u64, u64, String) {
    fault_of(parse(text, base))
}

#[track_caller]
fn fault_of(result: Result<Dataset, ReadError>) -> (u64, u64, String) {
    match result {
        Err(ReadError::Syntax { place, problem }) => {
            assert_eq!(place.file, "file");
            (place.line, place.column, problem.to_string())
        }
        other => panic!("expected a syntax error, got {other:?}"),
    }
}

#[test]
fn everything_that_is_allowed() {
    let text = "\u{feff}# a comment first\r\n\
                +1 1:0.5 3:-2e-1\t7:1 \r\n\
                \n   \t\n\
                -1   qid:12 2:.25#3:9\n\
                0.5 # only a label\n\
                \t 2 1:0 2:+1.\n\
                -0 3:1";
    let data = parse(text, IndexBase::One).unwrap();
    assert_eq!(labels(&data), [1.0, -1.0, 0.5, 2.0, 0.0]);
    assert_eq!(data.n_features(), 7);
    assert_eq!(
        rows(&data),
        [
            vec![(0, 0.5), (2, -0.2), (6, 1.0)],
            vec![(1, 0.25)],
            vec![],
            vec![(0, 0.0), (1, 1.0)],
            vec![(2, 1.0)],
        ]
    );
}

#[test]
fn the_base_is_detected_and_told() {
    let data = parse("1 1:1 4:1\n", IndexBase::Detect).unwrap();
    assert_eq!((data.n_features(), rows(&data)), (4, vec![vec![(0, 1.0), (3, 1.0)]]));
    assert!(data.to_string().contains("file, indices from one (detected)"), "{data}");
    let report = data.report().unwrap();
    assert_eq!((report.index_base, report.detected), (Some(IndexBase::One), true));

    let data = parse("1 1:1 4:1\n0\n-1 0:2\n", IndexBase::Detect).unwrap();
    assert_eq!(data.n_features(), 5);
    assert_eq!(rows(&data)[0], [(1, 1.0), (4, 1.0)]);
    assert_eq!(data.report().unwrap().index_base, Some(IndexBase::Zero));

    let data = parse("1 1:1 4:1\n", IndexBase::Zero).unwrap();
    assert_eq!(data.n_features(), 5);
    assert!(!data.report().unwrap().detected);
}

#[test]
fn indices_beyond_32_bits() {
    let text = format!("1 5:1 {}:2\n0 7:3\n", 1u64 << 40);
    let data = parse(&text, IndexBase::Zero).unwrap();
    assert_eq!(data.n_features(), (1 << 40) + 1);
    assert_eq!(rows(&data), [vec![(5, 1.0), (1 << 40, 2.0)], vec![(7, 3.0)]]);
    assert!(matches!(data.features().unwrap().columns(), ColumnIdsView::U64(_)));

    // The largest width whose ids fit 32 bits, with indices that do not.
    let text = format!("1 {}:1\n", 1u64 << 32);
    let data = parse(&text, IndexBase::One).unwrap();
    assert_eq!(data.n_features(), 1 << 32);
    assert_eq!(rows(&data), [[((1 << 32) - 1, 1.0)]]);
    assert!(matches!(data.features().unwrap().columns(), ColumnIdsView::U32(_)));

    let largest = (1u64 << 63) - 1;
    let data = parse(&format!("1 {largest}:1\n"), IndexBase::One).unwrap();
    assert_eq!(data.n_features() as u64, largest);
}

#[test]
fn a_base_found_late_holds_for_all() {
    // Several blocks for several threads; the index that tells comes in one of them, the wide one
    // in another.
    const WIDE: u64 = 1 << 33;
    let n_lines = 3 << 20 >> 2;
    for (zero, wide) in [(0, None), (n_lines - 1, Some(1)), (n_lines / 2, Some(n_lines - 1))] {
        let column = |line: usize| match line {
            _ if line == zero => 0,
            _ if Some(line) == wide => WIDE,
            _ => 1 + line as u64 % 9,
        };
        let text: String = (0..n_lines).map(|line| format!("1 {}:1\n", column(line))).collect();
        for threads in [1, 3] {
            let reader = Reader::new().parallel(Parallel::Threads(threads));
            let data = reader.read_bytes("file", text.as_bytes()).unwrap();
            assert_eq!(data.report().unwrap().index_base, Some(IndexBase::Zero));
            assert_eq!(data.n_features() as u64, if wide.is_some() { WIDE + 1 } else { 10 });
            let columns = data.features().unwrap().columns();
            assert_eq!(columns.len(), n_lines);
            for (line, found) in columns.iter().enumerate() {
                assert_eq!(found as u64, column(line), "line {line} with {threads} threads");
            }
        }
    }
}

#[test]
fn a_declared_width_is_the_width() {
    let reader = Reader::new().n_features(6);
    let read =
        |base, text: &str| reader.clone().index_base(base).read_bytes("file", text.as_bytes());
    assert_eq!(read(IndexBase::One, "1 6:1\n").unwrap().n_features(), 6);
    assert_eq!(read(IndexBase::Zero, "1 5:1\n").unwrap().n_features(), 6);
    assert_eq!(read(IndexBase::Detect, "1 6:1\n").unwrap().n_features(), 6);
    let message = |index, base| {
        format!("index {index} is beyond the 6 features declared (indices count from {base})")
    };
    let text = "1 1:1\n1 qid:7 2:1 7:1 9:1\n";
    assert_eq!(fault_of(read(IndexBase::One, text)), (2, 13, message(7, 1)));
    assert_eq!(fault_of(read(IndexBase::Detect, text)), (2, 13, message(7, 1)));
    assert_eq!(fault_of(read(IndexBase::Zero, "1 6:1\n")), (1, 3, message(6, 0)));
    // Valid if indices count from one, which the last row refutes.
    let text = "# comment\n1 1:1\n1 2:1 6:1\n0 6:1\n1 0:1\n";
    assert_eq!(fault_of(read(IndexBase::Detect, text)), (3, 1, message(6, 0)));
}

#[test]
fn faults_name_place_and_problem() {
    let one = |text: &str| fault(text, IndexBase::One);
    let expect = |text: &str, line, column, message: &str| {
        assert_eq!(one(text), (line, column, message.to_owned()), "{text:?}");
    };
    expect("1 1:1\n  x 1:1\n", 2, 3, "expected a label, found `x`");
    expect("1,2 1:1", 1, 1, "expected a label, found `1,2`");
    expect(
        "# no label\n\n1:1 2:1\n",
        3,
        1,
        "the row has no label: expected a number before the first `index:value`, found `1:1`",
    );
    expect("nan 1:1", 1, 1, "label `nan` is not a finite number");
    expect("-inf 1:1", 1, 1, "label `-inf` is not a finite number");
    expect("1e39 1:1", 1, 1, "label `1e39` is beyond the range of f32");
    expect("1 abc", 1, 3, "expected `index:value`, found `abc`");
    expect("1 -3:1", 1, 3, "expected `index:value`, found `-3:1`");
    expect("1 1:1 :1", 1, 7, "expected `index:value`, found `:1`");
    expect("1 7", 1, 4, "expected `:` after the index 7, found the end of the line");
    expect("1 7 :2", 1, 4, "expected `:` after the index 7, found a blank");
    expect("1 7=2", 1, 4, "expected `:` after the index 7, found `=2`");
    expect("1 7:", 1, 5, "the entry of index 7 has no value after `:`");
    expect("1 7: 3:4", 1, 5, "the entry of index 7 has no value after `:`");
    expect(
        "1 |f 3:4",
        1,
        3,
        "`|f` is a namespace of Vowpal Wabbit's text: read it as such (`VowpalWabbit`, `--format vw`)",
    );
    expect("1 7:#", 1, 5, "the entry of index 7 has no value after `:`");
    expect("1 7:x", 1, 5, "expected a number as the value of index 7, found `x`");
    expect("1 7:1x 8:1", 1, 5, "expected a number as the value of index 7, found `1x`");
    expect("1 7:1:2", 1, 5, "expected a number as the value of index 7, found `1:2`");
    expect("1 7:1,8:2", 1, 5, "expected a number as the value of index 7, found `1,8:2`");
    for value in ["nan", "NaN", "inf", "-Infinity"] {
        let message = format!(
            "the value `{value}` of index 7 is not a finite number; leave the entry out where a value is missing"
        );
        expect(&format!("1 7:{value} 8:1"), 1, 5, &message);
    }
    expect(
        "1 7:1e40 8:1",
        1,
        5,
        "the value `1e40` of index 7 is beyond the range of f32: scale the feature",
    );
    expect("1 3:1 3:2", 1, 7, "index 3 occurs twice in the row");
    expect("1 5:1 3:2", 1, 7, "index 3 follows 5: the indices of a row must ascend");
    expect(
        "1 0:1",
        1,
        3,
        "index 0 in a file read with `IndexBase::One`; read it with `IndexBase::Zero` or `Detect`",
    );
    let too_large = |found: &str| format!("index {found} is too large: indices must be below 2^63");
    expect("1 9223372036854775808:1", 1, 3, &too_large("`9223372036854775808:1`"));
    expect("1 99999999999999999999:1", 1, 3, &too_large("`99999999999999999999:1`"));
    expect("1 1:2\0", 1, 5, "expected a number as the value of index 1, found `2\\x00`");
    expect("\0", 1, 1, "expected a label, found `\\x00`");
    expect(
        &format!("1 {}", "é".repeat(100)),
        1,
        3,
        &format!("expected `index:value`, found `{}`…", "\\xc3\\xa9".repeat(12)),
    );
    // Without the rule of base one, a row can begin with index 0, but not twice.
    assert_eq!(fault("1 0:1 0:2", IndexBase::Zero).2, "index 0 occurs twice in the row");
    assert_eq!(
        fault("1 1:1 0:2", IndexBase::Detect).2,
        "index 0 follows 1: the indices of a row must ascend"
    );
}

#[test]
fn no_rows_is_an_error() {
    for text in ["", "\n\n", "# nothing\n", "  \r\n"] {
        let error = parse(text, IndexBase::One).unwrap_err();
        assert!(matches!(error, ReadError::Empty { .. }), "{text:?}: {error}");
        assert_eq!(error.to_string(), "`file` has no rows");
    }
    assert_eq!(parse("1\n", IndexBase::One).unwrap().n_features(), 0);
}

#[test]
fn values_are_rounded_once() {
    // As f64 and then f32 this is one unit off.
    let text = "1 1:1.00000005960464477540\n";
    let expected: f32 = "1.00000005960464477540".parse().unwrap();
    assert_eq!(rows(&parse(text, IndexBase::One).unwrap())[0][0].1, expected);
    let wide = Reader::new().element::<f64>().read_bytes("file", b"0.1 1:0.1\n").unwrap();
    assert_eq!((labels(&wide)[0], rows(&wide)[0][0].1), (0.1, 0.1));
    // Beyond the range of f32, but not of f64.
    assert!(Reader::new().element::<f64>().read_bytes("file", b"1 1:1e40\n").is_ok());
}

#[test]
fn blocks_do_not_show() {
    // More than one block, the second beginning in the middle of a line.
    let line = "1 1:0.25 20:1 300:1\n";
    let n_lines = (1 << 20) / line.len() + 1000;
    let mut text = line.repeat(n_lines);
    let data = Reader::new().read("file", text.as_bytes()).unwrap();
    assert_eq!((data.n_rows(), data.n_features()), (n_lines, 300));
    assert_eq!(data.features().unwrap().nnz(), 3 * n_lines);
    text.push_str("1 5:1 4:1\n");
    let (found, column, _) = fault_of(Reader::new().read("file", text.as_bytes()));
    assert_eq!((found, column), (n_lines as u64 + 1, 7));
}

#[test]
fn errors_read_well() {
    let error = parse("1 1:1\n1 3:x\n", IndexBase::One).unwrap_err();
    assert_eq!(error.to_string(), "file:2:5: expected a number as the value of index 3, found `x`");
    let ReadError::Syntax { place, problem } = error else {
        panic!("a syntax error");
    };
    let file = "file".to_owned();
    assert_eq!(place, Place { file, line: 2, column: 5 });
    assert!(matches!(problem, Problem::ExpectedValue { index: 3, .. }));
}

/// Samples as they may be, with the label and the entries.
fn any_rows() -> impl Strategy<Value = Vec<(f32, Vec<(u64, f32)>)>> {
    let number = any::<f32>().prop_filter("finite", |value| value.is_finite());
    let index = prop_oneof![0u64..40, 0u64..1 << 40];
    let entries = proptest::collection::btree_map(index, number.clone(), 0..6);
    let row = (number, entries.prop_map(|entries| entries.into_iter().collect()));
    proptest::collection::vec(row, 1..8)
}

fn text_of(rows: &[(f32, Vec<(u64, f32)>)]) -> String {
    let mut text = String::new();
    for (label, entries) in rows {
        text += &format!("{label}");
        for (index, value) in entries {
            text += &format!(" {index}:{value:e}");
        }
        text.push('\n');
    }
    text
}

proptest! {
    #[test]
    fn what_is_written_is_read(rows_in in any_rows()) {
        let data = parse(&text_of(&rows_in), IndexBase::Zero).unwrap();
        let found: Vec<(u32, Vec<(u64, u32)>)> = labels(&data)
            .iter()
            .zip(rows(&data))
            .map(|(label, row)| {
                let row = row.iter().map(|&(column, value)| (column as u64, value.to_bits()));
                (label.to_bits(), row.collect())
            })
            .collect();
        let expected: Vec<(u32, Vec<(u64, u32)>)> = rows_in
            .iter()
            .map(|(label, row)| {
                let row = row.iter().map(|&(column, value)| (column, value.to_bits()));
                (label.to_bits(), row.collect())
            })
            .collect();
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn our_writer_loses_nothing(rows_in in any_rows()) {
        let data = parse(&text_of(&rows_in), IndexBase::Zero).unwrap();
        let mut text = Vec::new();
        write_to("file", &mut text, &data).unwrap();
        let reader = Reader::new().n_features(data.n_features()).index_base(IndexBase::One);
        let again = reader.read_bytes("file", &text).unwrap();
        prop_assert_eq!(again.features(), data.features());
        let bits = |data: &Dataset| labels(data).iter().map(|label| label.to_bits()).collect::<Vec<_>>();
        prop_assert_eq!(bits(&again), bits(&data));
    }

    #[test]
    fn truncated_files_never_panic(rows_in in any_rows(), cut in 0usize..400) {
        let text = text_of(&rows_in);
        let cut = cut.min(text.len());
        if let Ok(data) = parse(&text[..cut], IndexBase::Detect) {
            prop_assert!(data.n_rows() <= rows_in.len());
        }
    }

    #[test]
    fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = Reader::new().read_bytes("file", &bytes);
    }

    #[test]
    fn random_text_that_is_nearly_right_never_panics(
        text in "([ \t\r\n#:.eE+-]|[0-9]{1,21}|qid:|nan|inf|1:1|[01] ){0,60}",
        declared in proptest::option::of(0usize..30),
    ) {
        for base in [IndexBase::Zero, IndexBase::One, IndexBase::Detect] {
            let reader = Reader::new().index_base(base).n_features(declared);
            let whole = reader.read_bytes("file", text.as_bytes());
            if let Ok(data) = &whole {
                prop_assert!(declared.is_none_or(|n| n == data.n_features()));
            }
            if let Err(ReadError::Syntax { place, .. }) = &whole {
                let line = text.split('\n').nth(place.line as usize - 1);
                prop_assert!(line.is_some_and(|line| (place.column as usize) <= line.len() + 1));
            }
        }
    }
}

/// Of rows that contradict each other about the base, one has an index beyond the declared width,
/// whichever base it is.
#[test]
fn a_declared_width_is_not_grown_where_rows_contradict_each_other() {
    let reader = Reader::new().n_features(3).on_error(OnError::Skip(9));
    for parallel in [Parallel::Sequential, Parallel::Threads(2)] {
        let reader = reader.clone().parallel(parallel);
        for (text, line) in [("1 0:1\n2 3:1\n", 2), ("1 1:1 3:1\n2 1:1\n3 0:1 2:1\n", 1)] {
            let error = reader.read_bytes("file", text.as_bytes()).unwrap_err().to_string();
            assert!(error.starts_with(&format!("file:{line}:1: ")), "{error}");
            assert!(error.contains("3") && error.contains("features"), "{error}");
        }
        // Beyond it whatever the base: left out, and counted.
        let data = reader.read_bytes("file", b"1 0:1 4:1\n2 1:1 3:1\n3 4:1\n").unwrap();
        assert_eq!((data.n_features(), labels(&data)), (3, &[2.0][..]));
        assert_eq!(data.report().unwrap().n_skipped, 2);
    }
}

#[test]
fn rows_are_skipped_and_leave_nothing_behind() {
    let text = "1 1:1 2:2\n2 0:1 9:1\n3 2:x\nx\n4 3:1\n";
    let reader = Reader::new().n_features(3);
    for parallel in [Parallel::Sequential, Parallel::Threads(2)] {
        let reader = reader.clone().parallel(parallel).on_error(OnError::Skip(3));
        let data = reader.read_bytes("file", text.as_bytes()).unwrap();
        assert_eq!(labels(&data), [1.0, 4.0]);
        assert_eq!(rows(&data), [vec![(0, 1.0), (1, 2.0)], vec![(2, 1.0)]]);
        // The index 0 was in a row that is not there.
        assert_eq!(data.report().unwrap().index_base, Some(IndexBase::One));
        let places: Vec<_> =
            data.report().unwrap().first_skipped.iter().map(|row| row.place.line).collect();
        assert_eq!((data.report().unwrap().n_skipped, &places[..]), (3, &[2, 3, 4][..]));
    }
    let error = reader.on_error(OnError::Skip(2)).read_bytes("file", text.as_bytes()).unwrap_err();
    assert!(
        error.to_string().starts_with("file:4:1: expected a label, found `x` (the 2 rows"),
        "{error}"
    );
}

/// Lines are those of the file, whichever part they are in.
#[test]
fn skipped_rows_of_a_part_are_told_by_their_lines() {
    let is_bad = |line: usize| line.is_multiple_of(10);
    let line = |line| if is_bad(line) { "1 x\n" } else { "1 1:0.5 2:0.25\n" };
    let text: String = (1..=100).map(line).collect();
    let reader = Reader::new().index_base(IndexBase::One).n_features(2);
    let reader = reader.on_error(OnError::Skip(50));
    let mut lines = Vec::new();
    for part in 0..3 {
        let data = reader.clone().part(part, 3).read_bytes("file", text.as_bytes()).unwrap();
        lines.extend(data.report().unwrap().first_skipped.iter().map(|row| row.place.line));
    }
    assert_eq!(lines, (1..=10).map(|k| 10 * k).collect::<Vec<u64>>());
}

#[test]
fn d7_rows_that_end_in_carriage_returns_are_refused() {
    for text in ["1 1:1\r0 2:1\r", "1\r0\r", "1 1:1\r-1 2:1\n", "1 1:1\r0.5 2:1"] {
        let (line, _, problem) = fault(text, IndexBase::Detect);
        assert!(line == 1 && problem.starts_with("a carriage return (CR) within a line"), "{text}");
    }
    assert_eq!(parse("1 1:1\r\r\n0 2:1 \r\n", IndexBase::Detect).unwrap().n_rows(), 2);
    let (line, _, problem) = fault("1 1:1\n\u{feff}0 2:1\n", IndexBase::Detect);
    assert!(line == 2 && problem.starts_with("expected a label"), "{problem}");
}

/// A half has a short range: what is beyond it is told where it is.
#[cfg(feature = "half")]
#[test]
fn numbers_beyond_a_half_are_refused() {
    use sparse_core::element::f16;
    let reader = Reader::new().element::<f16>();
    for text in ["1 1:0.5\n1 1:100000 2:0.5\n", "1 1:0.5\n1 1:1e5\n", "1 1:0.5\n70000 1:1\n"] {
        let error = reader.read_bytes("file", text.as_bytes()).unwrap_err().to_string();
        assert!(error.starts_with("file:2:"), "{error}");
    }
    let data = reader.read_bytes("file", b"-1 1:65504 2:-0.1\n").unwrap();
    assert_eq!(data.features().unwrap().values()[0].to_f32(), 65504.0);
}
