//! Constructors and accessors on arbitrary arrays and sizes: what they give is canonical or a typed
//! error, and nothing panics, overflows or runs away.

use proptest::prelude::*;
use sparse_runtime::formats::{
    AnyView, Csr, CsrBuilder, CsrView, Dense, DenseView, FormatError, RowSelection, RowSparse,
    RowSparseView, Shape,
};
use sparse_runtime::initializer::Seed;
use sprs::{CsMat, CsMatI, CsMatViewI};

/// Small sizes, and sizes that no memory has: nothing between, which a machine might have and then
/// fill.
fn size() -> impl Strategy<Value = usize> {
    prop_oneof![
        8 => 0..5usize,
        1 => Just(1 << 58),
        1 => Just(usize::MAX / 4),
        1 => Just(usize::MAX - 1),
        1 => Just(usize::MAX),
    ]
}

fn id() -> impl Strategy<Value = u64> {
    prop_oneof![12 => 0..5u64, 1 => Just(1 << 58), 1 => Just(u64::MAX - 1), 1 => Just(u64::MAX)]
}

fn shape() -> impl Strategy<Value = Shape> {
    prop::collection::vec(size(), 0..5).prop_map(|extents| Shape::try_new(&extents).unwrap())
}

/// Mostly ascending, as `indptr` and ids are, so that some are accepted.
fn ids() -> impl Strategy<Value = Vec<u64>> {
    let sorted = prop::collection::btree_set(id(), 0..4).prop_map(|ids| ids.into_iter().collect());
    prop_oneof![2 => sorted, 1 => prop::collection::vec(id(), 0..5)]
}

fn indptr() -> impl Strategy<Value = Vec<u64>> {
    let valid = prop::collection::vec(0..3u64, 0..4).prop_map(|lengths| {
        let mut end = 0;
        [0].into_iter()
            .chain(lengths.into_iter().map(|length| {
                end += length;
                end
            }))
            .collect()
    });
    prop_oneof![3 => valid, 1 => prop::collection::vec(id(), 0..5)]
}

/// Everything that can be asked of an array. It may refuse; it may not panic.
fn use_matrix(x: &Csr) {
    assert_eq!(Csr::from_parts(x.clone().into_parts()).as_ref(), Ok(x));
    let _ = (x.density(), x.shape(), format!("{x} {x:?}"), x.iter().count());
    for (row, column, value) in x.iter() {
        assert_eq!(x.get(row, column), Some(value));
    }
    let mut sparse = x.clone();
    sparse.eliminate_zeros();
    sparse.copy_from(x).unwrap();
    assert_eq!(&sparse, x);
    let _ = (x.cast::<u32>(), x.try_cast::<u64>());
    use_view(x.into());
    let _ = (CsMat::try_from(x.clone()), CsMatI::<f32, u32, u64>::try_from(x.clone()));
    if let Ok(view) = CsMatViewI::<f32, u32, u64>::try_from(x) {
        assert_eq!(CsrView::try_from(view).unwrap(), x.view());
    }
}

fn use_rows(x: &RowSparse) {
    let (shape, indices, values) = x.clone().into_parts();
    assert_eq!(RowSparse::new(shape, indices, values).as_ref(), Ok(x));
    let _ = (x.density(), x.data().values(), format!("{x} {x:?}"), x.cast::<i64>());
    assert_eq!(x.iter_rows().count(), x.n_stored());
    let mut sparse = x.clone();
    sparse.eliminate_zeros();
    sparse.copy_from(x).unwrap();
    assert_eq!(&sparse, x);
    use_view(x.into());
}

fn use_dense(x: DenseView<'_>) {
    let _ = (x.nnz(), x.density(), format!("{x} {x:?}"), x.row(0), x.reshape([x.values().len()]));
    let _ = ndarray::ArrayViewD::try_from(x);
    use_view(x.into());
}

fn use_view(x: AnyView<'_>) {
    if let Ok(dense) = x.to_dense() {
        assert_eq!(
            (AnyView::from(&dense).shape(), dense.values().len()),
            (x.shape(), x.shape().size())
        );
        Dense::try_zeros(x.shape()).unwrap().copy_from(x).unwrap();
    }
    if let Ok(csr) = x.to_csr() {
        assert_eq!(csr.shape(), x.shape());
    }
    if let Ok(rows) = x.to_row_sparse() {
        assert_eq!(*rows.shape(), x.shape());
        RowSparse::zeros(x.shape()).copy_from(x).unwrap();
    }
    assert!(matches!(
        Dense::<f32>::default().copy_from(x),
        Ok(()) | Err(FormatError::Mismatch { .. })
    ));
}

fn numbers(n: usize) -> Vec<f32> {
    (0..n).map(|i| (i % 3) as f32).collect()
}

proptest! {
    #[test]
    fn csr_arrays(
        n_cols in size(), indptr in indptr(), columns in ids(), narrow in prop::collection::vec(0..6u32, 0..5),
        spare in prop_oneof![6 => Just(0isize), 1 => -1..2isize],
    ) {
        let values = numbers(columns.len().saturating_add_signed(spare));
        let made = Csr::new(n_cols, indptr.clone(), columns.clone(), values.clone());
        let view = CsrView::new(n_cols, &indptr, &columns[..], &values);
        prop_assert_eq!(made.is_ok(), view.is_ok());
        if let (Ok(x), Ok(view)) = (&made, view) {
            use_matrix(x);
            use_view(view.into());
            prop_assert_eq!(&view.to_owned(), x);
        }
        if let Ok(x) = Csr::from_data(values, columns, indptr.clone(), None) {
            use_matrix(&x);
        }
        let values = numbers(narrow.len());
        if let Ok(x) = Csr::from_data(values, narrow, indptr, n_cols) {
            use_matrix(&x);
        }
    }

    #[test]
    fn coordinates(
        n_rows in size(), n_cols in size(),
        entries in prop::collection::vec((size(), size(), 0..3u8), 0..5),
    ) {
        let entries: Vec<_> = entries.into_iter().map(|(i, j, v)| (i, j, f32::from(v))).collect();
        let inside = entries.iter().all(|&(row, column, _)| row < n_rows && column < n_cols);
        match Csr::from_coo(n_rows, n_cols, entries) {
            Ok(x) => {
                prop_assert!(inside);
                use_matrix(&x);
            }
            Err(FormatError::OutOfMemory { .. }) => prop_assert!(n_rows > 5),
            Err(error) => prop_assert!(!inside, "{}", error),
        }
    }

    #[test]
    fn builders(
        width in prop::option::of(size()), at_the_end in prop::option::of(size()),
        rows in prop::collection::vec(prop::collection::vec(size(), 0..4), 0..4),
    ) {
        let new = || width.map_or_else(CsrBuilder::new, CsrBuilder::with_n_cols);
        let (mut one, mut other) = (new(), new());
        for row in &rows {
            let before = one.nnz();
            let mut entries: Vec<_> = row.iter().map(|&column| (column, 1.0)).collect();
            if one.push_unsorted_row(&mut entries).is_err() {
                prop_assert_eq!((one.nnz(), entries.len()), (before, 0));
            }
            for &column in row {
                let _ = other.push_entry(column, 1.0);
            }
        }
        prop_assert!(one.clone().append(other.clone()).is_ok());
        for builder in [one, other] {
            if let Ok(x) = builder.finish(at_the_end) {
                use_matrix(&x);
            }
        }
    }

    #[test]
    fn row_sparse_arrays(
        shape in shape(), indices in ids(), spare in prop_oneof![6 => Just(0isize), 1 => -1..2isize],
    ) {
        let size = indices.len().saturating_mul(shape.row_size());
        let values = numbers(if size < 1000 { size.saturating_add_signed(spare) } else { 3 });
        let made = RowSparse::new(shape, indices.clone(), values.clone());
        let view = RowSparseView::new(shape, &indices, &values);
        prop_assert_eq!(made.is_ok(), view.is_ok());
        if let (Ok(x), Ok(view)) = (&made, view) {
            use_rows(x);
            prop_assert_eq!(&view.to_owned(), x);
        }
        if let Ok(x) = RowSparse::from_unsorted(shape, indices.clone(), values.clone()) {
            use_rows(&x);
        }
        if let Ok(table) = RowSparseView::all(shape, &values) {
            let _ = (table.density(), table.get(&shape), table.row(0), table.data());
            use_view(table.into());
        }
        if let Ok(data) = Dense::new(shape, values) {
            for n_rows in [None, Some(3), Some(usize::MAX)] {
                if let Ok(x) = RowSparse::from_data(data.clone(), indices.clone(), n_rows) {
                    use_rows(&x);
                }
            }
        }
    }

    #[test]
    fn dense_arrays(shape in shape(), other in shape(), n_values in 0..30usize, index in prop::collection::vec(size(), 0..5)) {
        let fits = shape.checked_size() == Some(n_values);
        prop_assert_eq!(DenseView::new(shape, &numbers(n_values)).is_ok(), fits);
        let n_values = shape.checked_size().filter(|&size| size < 1000).unwrap_or(n_values);
        let values = numbers(n_values);
        if let Ok(x) = DenseView::new(shape, &values) {
            use_dense(x);
            let inside = index.len() == shape.rank() && index.iter().zip(&*shape).all(|(i, n)| i < n);
            prop_assert_eq!(x.get(&index).is_some(), inside);
            prop_assert_eq!(x.reshape(other).is_ok(), other.checked_size() == Some(n_values));
        }
        let sparse = RowSparse::<f32>::zeros(shape);
        use_rows(&sparse);
        let inside = index.len() == shape.rank() && !index.is_empty()
            && index.iter().zip(&*shape).all(|(i, n)| i < n);
        prop_assert_eq!(sparse.get(&index).is_some(), inside);
        if let Ok(zeros) = Dense::<f32>::try_zeros(shape) {
            prop_assert_eq!(Some(zeros.values().len()), shape.checked_size());
        }
    }

    #[test]
    fn selections(start in size(), end in size(), row in size(), column in size(), ids in ids(), picks in prop::collection::vec(size(), 0..4)) {
        let x = Csr::from_coo(4, usize::MAX, [(1, 0, 1.0f32), (3, usize::MAX - 1, 2.0)]).unwrap();
        let table = RowSparse::from_rows(4, [(1, [1.0f32, 2.0])]).unwrap();
        let dense = table.to_dense().unwrap();
        let fits = start <= end && end <= 4;
        prop_assert_eq!(x.rows(start..end).is_ok(), fits);
        prop_assert_eq!(dense.rows(start..end).is_ok(), fits);
        prop_assert_eq!(table.slice_rows(start..end).is_ok(), fits);
        prop_assert_eq!(x.get(row, column).is_some(), row < 4 && column < usize::MAX);
        let listed = ids.is_sorted_by(|a, b| a < b) && ids.iter().all(|&id| id < 4);
        prop_assert_eq!(table.retain(&ids).is_ok(), listed);
        let gathered = RowSelection::new().gather(&x, &picks).is_ok();
        prop_assert_eq!(gathered, picks.iter().all(|&row| row < 4));
        let _ = (x.row(row), table.row(row), dense.row(row), table.get(&[row, column]));
        let thin = RowSparse::<f32>::zeros([usize::MAX, 1 << 58]);
        if let Ok(part) = thin.slice_rows(start..end) {
            use_rows(&part);
        }
        let _ = thin.retain(&ids);
    }

    #[test]
    fn random_sizes(n_rows in size(), n_cols in size(), density in prop_oneof![0.0..1.0f64, 0.0..1e-15f64, Just(1.0), any::<f64>()]) {
        // What would be too many draws for a test, though not for memory, is left out.
        let few = |places: f64| !(1e4..1e17).contains(&(places * density));
        if few(n_rows as f64 * n_cols as f64) && let Ok(x) = Csr::<f32>::random(n_rows, n_cols, density, Seed(1)) {
            use_matrix(&x);
        }
        if few(n_rows as f64) && let Ok(x) = RowSparse::<f32>::random([n_rows, n_cols], density, Seed(1)) {
            use_rows(&x);
        }
    }
}

#[test]
fn ids_of_either_width() {
    for n_cols in [(1 << 32) - 1, 1 << 32, (1 << 32) + 1, 1 << 58, usize::MAX] {
        let x = Csr::from_coo(2, n_cols, [(0, 0, 1.0f32), (1, n_cols - 1, 2.0)]).unwrap();
        assert_eq!(x.get(1, n_cols - 1), Some(2.0));
        assert_eq!(Csr::from_parts(x.clone().into_parts()).as_ref(), Ok(&x));
        assert_eq!(x.view().to_owned(), x);
        // `sprs` may refuse; what it takes comes back.
        for back in [
            CsMat::try_from(x.clone()).ok().map(Csr::try_from),
            CsMatI::<f32, u64, u64>::try_from(x.clone()).ok().map(Csr::try_from),
            CsMatI::<f32, u32, u64>::try_from(x.clone()).ok().map(Csr::try_from),
        ] {
            assert!(back.is_none_or(|back| back.as_ref() == Ok(&x)));
        }
    }
}
