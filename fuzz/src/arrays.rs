//! Constructors that check, from bytes that stand for their arguments.

use nnz::formats::{Csr, Dense, RowSparse};
use std::collections::BTreeMap;

/// Bytes as the parts of a csr matrix. It is built if and only if the parts are canonical, and the
/// same entries as coordinates add up to what they should.
pub fn csr(bytes: &[u8]) -> bool {
    let mut bytes = Bytes(bytes);
    let n_cols = bytes.small(40);
    let indptr: Vec<u64> = (0..bytes.small(12)).map(|_| bytes.id(30)).collect();
    let columns: Vec<u64> = (0..bytes.small(30)).map(|_| bytes.id(n_cols as u64 + 1)).collect();
    // As many values as columns, mostly.
    let n_values = if bytes.small(20) == 19 { bytes.small(30) } else { columns.len() };
    let values: Vec<f32> = (0..n_values).map(|_| bytes.value()).collect();

    let canonical = indptr.first() == Some(&0)
        && indptr.is_sorted()
        && indptr.last() == Some(&(columns.len() as u64))
        && values.len() == columns.len()
        && columns.iter().all(|&column| column < n_cols as u64)
        && indptr.windows(2).all(|row| {
            columns[row[0] as usize..row[1] as usize].is_sorted_by(|left, right| left < right)
        });
    let narrow: Option<Vec<u32>> =
        columns.iter().map(|&column| u32::try_from(column).ok()).collect();
    let built = Csr::new(n_cols, indptr.clone(), columns.clone(), values.clone());
    if let Some(narrow) = narrow {
        let narrow = Csr::new(n_cols, indptr.clone(), narrow, values.clone());
        assert_eq!(narrow.is_ok(), built.is_ok());
    }
    let n_rows = indptr.len().saturating_sub(1);
    let shaped = Csr::with_shape((n_rows, n_cols), indptr.clone(), columns.clone(), values.clone());
    assert_eq!(shaped.is_ok(), built.is_ok());
    assert_eq!(built.is_ok(), canonical, "{built:?}");
    if let Ok(built) = &built {
        assert_eq!(built.to_csr().as_ref(), Ok(built));
        let dense = built.to_dense().unwrap();
        assert_eq!(built.to_row_sparse().unwrap().to_dense().unwrap(), dense);
        assert_eq!(dense.to_csr().unwrap().to_dense().unwrap(), dense);
    }

    // The columns in the order given, as coordinates in rows that the values choose.
    let n_rows = 1 + bytes.small(8);
    let places = columns.iter().zip(&values);
    let entries: Vec<(usize, usize, f32)> =
        places.map(|(&column, &value)| (bytes.small(n_rows + 1), column as usize, value)).collect();
    let inside = |&(row, column, _): &(usize, usize, f32)| row < n_rows && column < n_cols;
    match Csr::from_coo(n_rows, n_cols, entries.iter().copied()) {
        Ok(sums) => {
            assert!(entries.iter().all(inside));
            assert!(Csr::from_parts(sums.clone().into_parts()).is_ok());
            let mut expected = Dense::zeros([n_rows, n_cols]);
            for (row, column, value) in entries {
                expected.values_mut()[row * n_cols + column] += value;
            }
            assert_eq!(sums.to_dense().unwrap(), expected);
        }
        Err(_) => assert!(!entries.iter().all(inside)),
    }
    canonical
}

/// Bytes as the parts of a row_sparse array: as [`csr`].
pub fn row_sparse(bytes: &[u8]) -> bool {
    let mut bytes = Bytes(bytes);
    let (n_rows, row_size) = (bytes.small(30), bytes.small(5));
    let ids: Vec<u64> = (0..bytes.small(20)).map(|_| bytes.id(n_rows as u64 + 1)).collect();
    let n_values = if bytes.small(20) == 19 { bytes.small(60) } else { ids.len() * row_size };
    let values: Vec<f32> = (0..n_values).map(|_| bytes.value()).collect();

    let inside = ids.iter().all(|&id| id < n_rows as u64) && values.len() == ids.len() * row_size;
    let canonical = inside && ids.is_sorted_by(|left, right| left < right);
    let shape = [n_rows, row_size];
    let built = RowSparse::new(shape, ids.clone(), values.clone());
    assert_eq!(built.is_ok(), canonical, "{built:?}");
    if let Ok(built) = &built {
        assert_eq!(built.to_row_sparse().as_ref(), Ok(built));
        let dense = built.to_dense().unwrap();
        assert_eq!(built.to_csr().unwrap().to_dense().unwrap(), dense);
    }

    let sums = RowSparse::from_unsorted(shape, ids.clone(), values.clone());
    assert_eq!(sums.is_ok(), inside, "{sums:?}");
    if let Ok(sums) = sums {
        let mut expected: BTreeMap<u64, Vec<f32>> = BTreeMap::new();
        for (position, &id) in ids.iter().enumerate() {
            let row = expected.entry(id).or_insert_with(|| vec![0.0; row_size]);
            for (sum, value) in row.iter_mut().zip(&values[position * row_size..]) {
                *sum += value;
            }
        }
        assert!(expected.keys().eq(sums.indices()));
        assert_eq!(sums.values(), expected.into_values().flatten().collect::<Vec<_>>());
    }
    canonical
}

/// Bytes that are used up; then there are only zeros.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn next(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        first
    }

    /// A number below `bound`, which is not 0.
    fn small(&mut self, bound: usize) -> usize {
        usize::from(self.next()) % bound
    }

    /// An id, below `bound` mostly.
    fn id(&mut self, bound: u64) -> u64 {
        match self.next() {
            255 => u64::MAX,
            254 => 1 << 32,
            253 => u64::from(u32::MAX),
            byte => u64::from(byte) % bound,
        }
    }

    /// A number whose sums are exact.
    fn value(&mut self) -> f32 {
        f32::from(self.next() as i8) / 8.0
    }
}
