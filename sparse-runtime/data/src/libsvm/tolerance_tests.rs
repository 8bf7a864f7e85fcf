//! Rows that are read on request: unsorted, repeated, unknown and hashed indices, and any label.

use super::tests::rows;
use super::{IndexBase, Reader};
use crate::{Dataset, Hashing, ReadError};
use nnz_arrays::kernels::Parallel;

fn read_by(reader: &Reader, text: &str) -> Result<Dataset, ReadError> {
    reader.read_bytes("file", text.as_bytes())
}

#[test]
fn d10_unknown_features_are_left_out_on_request() {
    let text = "-1 4:1 9:1\n1 9:2 10:1\n0 8:1\n";
    let reader = Reader::new().index_base(IndexBase::One).n_features(8);
    let error = read_by(&reader, text).unwrap_err().to_string();
    assert!(error.starts_with("file:1:8: index 9 is beyond the 8 features"), "{error}");
    let data = read_by(&reader.ignore_unknown(), text).unwrap();
    assert_eq!(rows(&data), [vec![(3, 1.0)], vec![], vec![(7, 1.0)]]);
    assert_eq!(data.n_features(), 8);
}

#[test]
fn d11_values_after_blanks_are_read() {
    let data = read_by(&Reader::new(), "0   21:1.00   63: .50\r\n1 5:\t2 7:1\n").unwrap();
    assert_eq!(rows(&data), [[(20, 1.0), (62, 0.5)], [(4, 2.0), (6, 1.0)]]);
    let error = read_by(&Reader::new(), "0 21: 63:.5\n").unwrap_err().to_string();
    assert!(error.starts_with("file:1:6: the entry of index 21 has no value"), "{error}");
}

#[test]
fn d14_indices_of_64_bits_are_folded_by_a_hash() {
    let hashing = Hashing::new(12).unwrap();
    let column = |index: u64| hashing.column("", &index.to_le_bytes()) as usize;
    let text = "1 9223372036854775806:2 72048431380967004:1 0:1\n0 0:1 0:0.5\n";
    let data = read_by(&Reader::new().hashed(hashing), text).unwrap();
    let mut expected = vec![
        (column(9223372036854775806), 2.0),
        (column(72048431380967004), 1.0),
        (column(0), 1.0),
    ];
    expected.sort_by_key(|(column, _)| *column);
    assert_eq!(rows(&data), [expected, vec![(column(0), 1.5)]]);
    assert_eq!((data.n_rows(), data.n_features()), (2, 4096));
}

#[test]
fn d15_samples_to_score_need_no_label() {
    let text = "? 1:1\nuser7 2:1\n1:1 2:1\n# comment\n-1 1:2\n";
    assert!(read_by(&Reader::new(), text).unwrap_err().to_string().contains("expected a label"));
    let data = read_by(&Reader::new().without_labels(), text).unwrap();
    let expected = [vec![(0, 1.0)], vec![(1, 1.0)], vec![(0, 1.0), (1, 1.0)], vec![(0, 2.0)]];
    assert_eq!(rows(&data), expected);
    assert_eq!(data.columns().len(), 1);
}

#[test]
fn d16_rows_in_any_order_with_repeated_indices_are_read_on_request() {
    let text = "-1 15515:1 280:1 2:1\n1 3:1 3:2 7:1\n0 5:1 3:1 5:0.5\n";
    let reader = Reader::new().index_base(IndexBase::One).n_features(20_000);
    let refused = |reader: &Reader| read_by(reader, text).unwrap_err().to_string();
    assert!(refused(&reader).starts_with("file:1:12: index 280 follows 15515"));
    assert!(refused(&reader.clone().sort_unsorted()).starts_with("file:2:7: index 3 occurs twice"));
    assert!(refused(&reader.clone().add_repeated()).starts_with("file:1:12: index 280 follows"));
    let data = read_by(&reader.sort_unsorted().add_repeated(), text).unwrap();
    let expected = [
        vec![(1, 1.0), (279, 1.0), (15514, 1.0)],
        vec![(2, 3.0), (6, 1.0)],
        vec![(2, 1.0), (4, 1.5)],
    ];
    assert_eq!(rows(&data), expected);
}

#[test]
fn d21_numbers_beyond_the_range_of_the_element_type_are_named_so() {
    let text = "1 1:1.79769313486e+308\n";
    let error = read_by(&Reader::new(), text).unwrap_err().to_string();
    let message = "file:1:5: the value `1.79769313486e+308` of index 1 is beyond the range of f32";
    assert!(error.starts_with(message), "{error}");
    assert!(Reader::new().element::<f64>().read_bytes("file", text.as_bytes()).is_ok());
}

#[test]
fn d16_rows_in_any_order_are_the_same_on_threads() {
    let line = |row: usize| format!("{0} {1}:1 {2}:2 {1}:1\n", row % 2, row % 97 + 5, row % 5 + 1);
    let text: String = (0..120_000).map(line).collect();
    let reader = Reader::new().sort_unsorted().add_repeated();
    let one = read_by(&reader, &text).unwrap();
    let many = read_by(&reader.clone().parallel(Parallel::Threads(3)), &text).unwrap();
    assert_eq!(one.features().unwrap(), many.features().unwrap());
}
