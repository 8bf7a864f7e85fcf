//! The operators on arrays: what the checks in front of the kernels refuse, and how attributes are
//! given.

use sparse_core::ir::Axes;
use sparse_runtime::formats::{Csr, Dense, RowSparse};
use sparse_runtime::ops;

fn x() -> Csr<f64> {
    Csr::from_rows(3, [vec![(0, 1.0), (2, -2.0)], vec![(1, 3.0)]]).unwrap()
}

#[test]
fn conditions_are_checked_with_the_numbers_given() {
    let kept: Csr<f64> = ops::clip(&x(), 0.0, 2.5).unwrap();
    assert_eq!(kept.values(), [1.0, 0.0, 2.5]);
    let error = ops::clip(&x(), 0.5, 2.5).unwrap_err().to_string();
    assert_eq!(
        error,
        "clip: the rule `csr -> csr` holds where f(0) = 0; convert the operand with `to_dense()` to accept the cost"
    );
    let squares: Csr<f64> = ops::power(&x(), 2.0).unwrap();
    assert_eq!(squares.values(), [1.0, 4.0, 9.0]);
    assert!(ops::power(&x(), 0.0).is_err());
    let large: Csr<f64> = ops::greater(&x(), 0.5).unwrap();
    assert_eq!(large.values(), [1.0, 0.0, 1.0]);
    assert!(ops::less(&x(), 0.5).is_err());
}

#[test]
fn axes_are_a_number_a_list_or_all() {
    let x = x();
    let rows: Dense<f64> = ops::sum(&x, 1, false, false).unwrap();
    assert_eq!(rows.values(), [-1.0, 3.0]);
    let columns = ops::sum(&x, 0, true, false).unwrap();
    assert_eq!((&columns.shape()[..], columns.values()), (&[1, 3][..], &[1.0, 3.0, -2.0][..]));
    assert_eq!(ops::sum(&x, Axes::all(), false, false).unwrap().values(), [2.0]);
    assert_eq!(ops::norm(&x, [0, 1], false, false, 1).unwrap().values(), [6.0]);
    // All axes but the first.
    assert_eq!(ops::max(&x, 0, false, true).unwrap().values(), [1.0, 3.0]);
    let error = ops::sum(&x, 2, false, false).unwrap_err().to_string();
    assert!(error.contains("axis 2 is beyond the shape [2, 3]"), "{error}");
}

#[test]
fn rows_that_are_not_stored_stay_so() {
    let table = RowSparse::new([4, 2], vec![1, 3], vec![3.0, 4.0, 0.0, 2.0]).unwrap();
    let norms: Dense<f64> = ops::square_sum(&table, 1, false, false).unwrap();
    assert_eq!(norms.values(), [0.0, 25.0, 0.0, 4.0]);
}

#[test]
fn class_ids_are_checked() {
    let scores = Dense::new([2, 3], vec![0.0f64; 6]).unwrap();
    let classes = Dense::new([2], vec![2u32, 3]).unwrap();
    let error = ops::softmax_cross_entropy(&scores, &classes).unwrap_err().to_string();
    assert!(error.contains("id 3 at position 1 of `label` is not below 3"), "{error}");
}
