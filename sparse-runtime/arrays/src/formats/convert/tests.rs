//! Conversions there and back, into used destinations, and what they refuse.

use super::*;
use crate::formats::RowSelection;
use proptest::prelude::*;

/// Bits, so that NaN equals itself and -0.0 differs from 0.0.
fn bits(values: &[f64]) -> Vec<u64> {
    values.iter().map(|value| value.to_bits()).collect()
}

/// Small matrices, empty ones included, with zeros, whole zero rows, NaN and infinity.
fn matrices() -> impl Strategy<Value = Dense<f64>> {
    let value = prop_oneof![
        4 => Just(0.0),
        4 => -4.0..4.0f64,
        1 => Just(f64::NAN),
        1 => Just(f64::NEG_INFINITY),
    ];
    (0..7usize, 0..6usize).prop_flat_map(move |(n_rows, n_cols)| {
        let row =
            prop_oneof![Just(vec![0.0; n_cols]), prop::collection::vec(value.clone(), n_cols),];
        prop::collection::vec(row, n_rows)
            .prop_map(move |rows| Dense::new([n_rows, n_cols], rows.concat()).unwrap())
    })
}

proptest! {
    #[test]
    fn round_trips_keep_every_bit(dense in matrices()) {
        let csr = dense.to_csr().unwrap();
        let rows = dense.to_row_sparse().unwrap();
        let stored = dense.values().iter().filter(|&&value| value != 0.0).count();
        prop_assert_eq!(csr.nnz(), stored);
        for back in [
            csr.to_dense(),
            rows.to_dense(),
            csr.to_row_sparse().and_then(|rows| rows.to_dense()),
            rows.to_csr().and_then(|csr| csr.to_dense()),
        ] {
            let back = back.unwrap();
            prop_assert_eq!(back.shape(), dense.shape());
            prop_assert_eq!(bits(back.values()), bits(dense.values()));
        }
        let through_rows = rows.to_csr().unwrap();
        prop_assert_eq!(through_rows.indptr(), csr.indptr());
        prop_assert_eq!(through_rows.columns(), csr.columns());
    }

    #[test]
    fn reused_destinations_equal_new_ones(first in matrices(), second in matrices()) {
        // the second conversion must not see what the first one left behind
        let (mut dense, mut csr, mut rows) = (first.clone(), Csr::default(), RowSparse::default());
        csr.assign_dense(first.view()).unwrap();
        rows.assign_dense(first.view());
        csr.assign_dense(second.view()).unwrap();
        rows.assign_dense(second.view());
        dense.assign_csr(csr.view()).unwrap();
        prop_assert_eq!(bits(dense.values()), bits(second.values()));
        dense.assign_dense(first.view());
        dense.assign_row_sparse(rows.view()).unwrap();
        prop_assert_eq!(bits(dense.values()), bits(second.values()));
        rows.assign_csr(csr.view()).unwrap();
        csr.assign_row_sparse(rows.view()).unwrap();
        prop_assert_eq!(bits(csr.to_dense().unwrap().values()), bits(second.values()));
    }

    #[test]
    fn coordinates_add_up_as_in_a_dense_array(
        (n_rows, n_cols, entries) in (1..6usize, 1..6usize).prop_flat_map(|(n_rows, n_cols)| {
            let entry = (0..n_rows, 0..n_cols, -2.0..2.0f64);
            (Just(n_rows), Just(n_cols), prop::collection::vec(entry, 0..40))
        })
    ) {
        let mut sums = Dense::zeros([n_rows, n_cols]);
        for &(row, column, value) in &entries {
            sums.values_mut()[row * n_cols + column] += value;
        }
        let places: std::collections::BTreeSet<_> =
            entries.iter().map(|&(row, column, _)| (row, column)).collect();
        let csr = Csr::from_coo(n_rows, n_cols, entries.clone()).unwrap();
        prop_assert_eq!(csr.nnz(), places.len());
        // the same order of additions, so equal to the last bit
        prop_assert_eq!(csr.to_dense().unwrap(), sums);

        let (ids, values) = entries.iter().map(|&(row, _, value)| (row as u64, value)).unzip();
        let rows = RowSparse::from_unsorted([n_rows], ids, values).unwrap();
        let mut sums = Dense::zeros([n_rows]);
        for &(row, _, value) in &entries {
            sums.values_mut()[row] += value;
        }
        prop_assert_eq!(rows.to_dense().unwrap(), sums);
    }

    #[test]
    fn selections_equal_gathered_dense_rows(
        (dense, picks) in matrices().prop_flat_map(|dense| {
            let n_rows = dense.shape()[0];
            let picks = prop::collection::vec(0..n_rows.max(1), 0..if n_rows == 0 { 1 } else { 9 });
            (Just(dense), picks)
        })
    ) {
        let csr = dense.to_csr().unwrap();
        let mut selection = RowSelection::new();
        let batch = selection.gather(&csr, &picks).unwrap();
        let expected: Vec<f64> =
            picks.iter().flat_map(|&row| dense.row(row).unwrap()).copied().collect();
        prop_assert_eq!(bits(batch.to_dense().unwrap().values()), bits(&expected));
        prop_assert_eq!(batch.nnz(), expected.iter().filter(|&&value| value != 0.0).count());
        let owned = batch.to_owned();
        prop_assert_eq!((owned.nnz(), owned.n_rows()), (batch.nnz(), picks.len()));
        prop_assert_eq!(bits(owned.to_dense().unwrap().values()), bits(&expected));
    }
}

#[test]
fn stored_zeros_stay_between_sparse_arrays() {
    let csr = Csr::new(2, vec![0, 1, 1, 2], vec![0u32, 1], vec![0.0f32, -0.0]).unwrap();
    assert_eq!(csr.to_csr().unwrap(), csr);
    assert_eq!(csr.view().to_owned().nnz(), 2);
    let rows = csr.to_row_sparse().unwrap();
    assert_eq!(rows.indices(), [0, 2]);
    assert_eq!(rows.to_row_sparse().unwrap(), rows);
    assert_eq!(rows.to_csr().unwrap().nnz(), 0);
    assert_eq!(Dense::from_rows(&[[-0.0f32, 0.0]]).to_csr().unwrap().nnz(), 0);
}

#[test]
fn other_ranks_and_sizes_are_errors() {
    let cube = Dense::<f32>::full([2, 2, 2], 1.0);
    assert_eq!(
        cube.to_csr().unwrap_err().to_string(),
        "a conversion to csr needs an array of rank 2, but the shape is [2, 2, 2]: reshape it"
    );
    assert_eq!(cube.to_row_sparse().unwrap().to_dense().unwrap(), cube);
    assert!(cube.to_row_sparse().unwrap().to_csr().is_err());
    let wide = Csr::from_coo(2, usize::MAX, [(1, 7, 1.0f32)]).unwrap();
    assert!(matches!(wide.to_dense(), Err(FormatError::TooLarge { .. })));
    assert!(matches!(wide.to_row_sparse(), Err(FormatError::TooLarge { .. })));
    let tall = RowSparse::new([usize::MAX, 2], vec![5], vec![1.0f32, 2.0]).unwrap();
    assert!(matches!(tall.to_dense(), Err(FormatError::TooLarge { .. })));
    assert!(matches!(tall.to_csr(), Err(FormatError::OutOfMemory { .. })));
    let large = Csr::from_coo(2, 1 << 58, [(1, 7, 1.0f32)]).unwrap();
    assert!(matches!(large.to_dense(), Err(FormatError::OutOfMemory { .. })));
    assert!(matches!(large.to_row_sparse(), Err(FormatError::OutOfMemory { .. })));
    // Rows without elements need no values, but pointers and ids.
    let thin = Dense::<f32>::new([usize::MAX, 0], vec![]).unwrap();
    assert!(matches!(thin.to_csr(), Err(FormatError::OutOfMemory { .. })));
    assert_eq!(thin.to_row_sparse().unwrap().n_stored(), 0);
    let table = RowSparseView::<f32>::all([usize::MAX, 0], &[]).unwrap();
    assert!(matches!(table.to_row_sparse(), Err(FormatError::OutOfMemory { .. })));
    assert!(matches!(table.slice_rows(1..usize::MAX), Err(FormatError::OutOfMemory { .. })));
    assert_eq!(table, table);
}

#[test]
fn a_table_of_all_rows_converts() {
    let values = [1.0f32, 0.0, 0.0, 0.0];
    let table = RowSparseView::all([2, 2], &values).unwrap();
    assert_eq!(table.to_dense().unwrap().values(), values);
    assert_eq!(table.to_csr().unwrap(), Csr::from_rows(2, [vec![(0, 1.0)], vec![]]).unwrap());
    assert_eq!(table.to_row_sparse().unwrap().indices(), [0, 1]);
}
