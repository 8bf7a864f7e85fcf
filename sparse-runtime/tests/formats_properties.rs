//! Properties of the arrays: one canonical form whatever the way there, conversions that lose
//! nothing, laws of the operators. Values are small whole numbers, so that every sum is exact and
//! equal means equal.

use ndarray::{ArrayD, ArrayViewD};
use proptest::prelude::*;
use sparse_runtime::formats::{
    AnyView, Csr, CsrBuilder, CsrView, Dense, DenseView, RowSelection, RowSparse, RowSparseView,
    Shape,
};
use sparse_runtime::initializer::Seed;
use sparse_runtime::ops;
use sprs::{CsMat, CsMatI, CsMatViewI};

type Entries = Vec<(usize, usize, f64)>;

/// A size, and entries in any order, some at one place.
fn coordinates() -> impl Strategy<Value = (usize, usize, Entries)> {
    (1..8usize, 1..8usize).prop_flat_map(|(n_rows, n_cols)| {
        let entry = (0..n_rows, 0..n_cols, (-4..5i8).prop_map(f64::from));
        (Just(n_rows), Just(n_cols), prop::collection::vec(entry, 0..30))
    })
}

fn csr_of(n_rows: usize, n_cols: usize) -> impl Strategy<Value = Csr<f64>> {
    let value = (-4..5i8).prop_map(f64::from);
    let places = (n_rows * n_cols).min(20);
    let entry = (0..n_rows.max(1), 0..n_cols.max(1), value);
    prop::collection::vec(entry, 0..=places).prop_map(move |entries| {
        let entries = entries.into_iter().filter(|_| n_rows * n_cols > 0);
        Csr::from_coo(n_rows, n_cols, entries).unwrap()
    })
}

fn size() -> impl Strategy<Value = (usize, usize)> {
    (0..6usize, 0..6usize)
}

fn matrix() -> impl Strategy<Value = Csr<f64>> {
    size().prop_flat_map(|(n_rows, n_cols)| csr_of(n_rows, n_cols))
}

/// Rank 1 to 4, some rows stored, some of those zero.
fn rows() -> impl Strategy<Value = RowSparse<f64>> {
    prop::collection::vec(0..4usize, 1..5).prop_flat_map(|extents| {
        let row_size: usize = extents[1..].iter().product();
        let value = prop_oneof![Just(0.0), (-4..5i8).prop_map(f64::from)];
        let row = prop::collection::vec(value, row_size);
        prop::collection::btree_map(0..extents[0].max(1) as u64, row, 0..=extents[0]).prop_map(
            move |stored| {
                let stored = stored.into_iter().filter(|_| extents[0] > 0);
                let (indices, values): (Vec<u64>, Vec<Vec<f64>>) = stored.unzip();
                RowSparse::new(Shape::try_new(&extents).unwrap(), indices, values.concat()).unwrap()
            },
        )
    })
}

fn dense_sums(n_rows: usize, n_cols: usize, entries: &Entries) -> Dense<f64> {
    let mut sums = Dense::zeros([n_rows, n_cols]);
    for &(row, column, value) in entries {
        sums.values_mut()[row * n_cols + column] += value;
    }
    sums
}

/// The array's own parts pass its own check.
fn assert_canonical(x: &Csr<f64>) {
    assert_eq!(Csr::from_parts(x.clone().into_parts()).as_ref(), Ok(x));
}

fn assert_canonical_rows(x: &RowSparse<f64>) {
    let (shape, indices, values) = x.clone().into_parts();
    assert_eq!(RowSparse::new(shape, indices, values).as_ref(), Ok(x));
}

proptest! {
    #[test]
    fn the_order_of_construction_does_not_show(
        (n_rows, n_cols, entries) in coordinates(),
        order in any::<prop::sample::Selector>(),
    ) {
        let x = Csr::from_coo(n_rows, n_cols, entries.clone()).unwrap();
        assert_canonical(&x);
        let mut shuffled = Vec::new();
        let mut left = entries.clone();
        while !left.is_empty() {
            let picked = *order.select(&(0..left.len()).collect::<Vec<_>>());
            shuffled.push(left.swap_remove(picked));
        }
        prop_assert_eq!(&Csr::from_coo(n_rows, n_cols, shuffled.clone()).unwrap(), &x);
        prop_assert_eq!(x.to_dense().unwrap(), dense_sums(n_rows, n_cols, &entries));

        // One row after the other, each in any order.
        let mut builder = CsrBuilder::with_n_cols(n_cols);
        for row in 0..n_rows {
            let in_row = shuffled.iter().filter(|entry| entry.0 == row);
            let mut entries = in_row.map(|&(_, column, value)| (column, value)).collect();
            builder.push_unsorted_row(&mut entries).unwrap();
        }
        prop_assert_eq!(&builder.finish(None).unwrap(), &x);

        // Rows of a row_sparse array, one value each.
        let (ids, values) = shuffled.iter().map(|&(row, _, value)| (row as u64, value)).unzip();
        let sums = RowSparse::from_unsorted([n_rows, 1], ids, values).unwrap();
        assert_canonical_rows(&sums);
        let expected = x.to_dense().unwrap();
        for row in 0..n_rows {
            let expected: f64 = expected.row(row).unwrap().iter().sum();
            prop_assert_eq!(sums.get(&[row, 0]), Some(expected));
        }
    }

    #[test]
    fn a_builder_holds_the_rows_pushed(
        rows in prop::collection::vec(prop::collection::btree_map(0..9usize, -3..4i8, 0..6), 0..6),
        cut in any::<prop::sample::Index>(),
    ) {
        let n_cols = rows.iter().flatten().map(|(column, _)| column + 1).max().unwrap_or(0);
        let mut naive = Dense::<f64>::zeros([rows.len(), n_cols]);
        let cut = cut.index(rows.len() + 1);
        let mut parts = [CsrBuilder::new(), CsrBuilder::new()];
        for (row, entries) in rows.iter().enumerate() {
            for (&column, &value) in entries {
                naive.values_mut()[row * n_cols + column] = value.into();
                parts[usize::from(row >= cut)].push_entry(column, f64::from(value)).unwrap();
            }
            parts[usize::from(row >= cut)].finish_row();
        }
        let [mut first, second] = parts;
        first.append(second).unwrap();
        prop_assert_eq!((first.n_rows(), first.n_cols_seen()), (rows.len(), n_cols));
        let x = first.finish(None).unwrap();
        assert_canonical(&x);
        prop_assert_eq!(x.nnz(), rows.iter().map(|row| row.len()).sum::<usize>());
        prop_assert_eq!(x.to_dense().unwrap(), naive);
    }

    #[test]
    fn storage_changes_and_the_values_stay(x in matrix()) {
        let dense = x.to_dense().unwrap();
        let rows = x.to_row_sparse().unwrap();
        assert_canonical_rows(&rows);
        let mut canonical = x.clone();
        canonical.eliminate_zeros();
        assert_canonical(&canonical);
        prop_assert_eq!(&dense.to_csr().unwrap(), &canonical);
        prop_assert_eq!(&rows.to_csr().unwrap(), &canonical);
        prop_assert_eq!(&rows.to_dense().unwrap(), &dense);
        prop_assert_eq!(dense.nnz(), canonical.nnz());
        for (row, column, value) in x.iter() {
            prop_assert_eq!(dense.get(&[row, column]), Some(value));
        }
        let sources: [AnyView<'_, f64>; 3] = [(&dense).into(), (&x).into(), (&rows).into()];
        for source in sources {
            let (mut to_dense, mut to_csr, mut to_rows) =
                (Dense::ones(x.shape()), Csr::zeros(x.n_rows(), x.n_cols()), RowSparse::zeros(x.shape()));
            to_dense.copy_from(source).unwrap();
            to_csr.copy_from(source).unwrap();
            to_rows.copy_from(source).unwrap();
            prop_assert_eq!(&to_dense, &dense);
            prop_assert_eq!(&to_csr.to_dense().unwrap(), &dense);
            prop_assert_eq!(&to_rows.to_dense().unwrap(), &dense);
        }
    }

    #[test]
    fn rows_of_any_rank_pass_through_dense(x in rows()) {
        let dense = x.to_dense().unwrap();
        let mut canonical = x.clone();
        canonical.eliminate_zeros();
        // Rows without elements are zero everywhere.
        prop_assert_eq!(dense.to_row_sparse().unwrap(), canonical);
        for (id, row) in x.iter_rows() {
            prop_assert_eq!(dense.row(id), Some(row));
        }
        let parts = RowSparse::from_data(
            x.data().to_owned(), x.indices().to_vec(), x.shape().n_rows(),
        );
        prop_assert_eq!(parts.unwrap(), x);
    }

    #[test]
    fn other_libraries_give_back_what_they_got(x in matrix(), table in rows()) {
        let theirs = CsMat::try_from(x.clone()).unwrap();
        prop_assert_eq!(theirs.nnz(), x.nnz());
        for (row, column, value) in x.iter() {
            prop_assert_eq!(theirs.get(row, column), Some(&value));
        }
        prop_assert_eq!(&Csr::try_from(theirs).unwrap(), &x);
        let narrow = CsMatI::<f64, u32, u64>::try_from(x.clone()).unwrap();
        prop_assert_eq!(CsrView::try_from(narrow.view()).unwrap(), x.view());
        let borrowed = CsMatViewI::<f64, u32, u64>::try_from(&x).unwrap();
        prop_assert_eq!(CsrView::try_from(borrowed).unwrap(), x.view());

        let dense = table.to_dense().unwrap();
        let theirs = ArrayD::try_from(dense.clone()).unwrap();
        prop_assert_eq!(DenseView::try_from(theirs.view()).unwrap(), dense.view());
        prop_assert_eq!(ArrayViewD::try_from(dense.view()).unwrap(), theirs.view());
        // In another order of memory it is copied.
        let turned = Dense::try_from(theirs.clone().reversed_axes()).unwrap();
        prop_assert_eq!(ArrayD::try_from(turned).unwrap().reversed_axes(), theirs.clone());
        prop_assert_eq!(Dense::try_from(theirs).unwrap(), dense);
    }

    #[test]
    fn transposing_twice_is_nothing(x in matrix()) {
        let turned = ops::transpose(&x).unwrap();
        assert_canonical(&turned);
        let mut entries: Entries = x.iter().map(|(row, column, value)| (column, row, value)).collect();
        entries.sort_by_key(|entry| (entry.0, entry.1));
        prop_assert_eq!(turned.iter().collect::<Entries>(), entries);
        prop_assert_eq!(&turned.to_dense().unwrap(), &ops::transpose(&x.to_dense().unwrap()).unwrap());
        prop_assert_eq!(ops::transpose(&turned).unwrap(), x);
    }

    #[test]
    fn slices_are_those_of_the_dense_array(
        x in matrix(),
        table in rows(),
        bounds in any::<[prop::sample::Index; 2]>(),
        picks in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let range = |n_rows: usize| {
            let [a, b] = bounds.map(|bound| bound.index(n_rows + 1));
            a.min(b)..a.max(b)
        };
        let dense = x.to_dense().unwrap();
        let part = range(x.n_rows());
        let expected = dense.rows(part.clone()).unwrap();
        let slice = x.rows(part).unwrap();
        assert_canonical(&slice.to_owned());
        prop_assert_eq!(slice.to_dense().unwrap(), expected.to_owned());
        prop_assert_eq!(slice.nnz(), slice.iter().count());

        let part = range(table.shape().n_rows());
        let dense = table.to_dense().unwrap();
        let slice = table.slice_rows(part.clone()).unwrap();
        assert_canonical_rows(&slice);
        prop_assert_eq!(slice.to_dense().unwrap(), dense.rows(part).unwrap().to_owned());

        if x.n_rows() > 0 {
            let picks: Vec<usize> = picks.iter().map(|pick| pick.index(x.n_rows())).collect();
            let mut selection = RowSelection::new();
            let batch = selection.gather(&x, &picks).unwrap();
            for (position, &row) in picks.iter().enumerate() {
                prop_assert_eq!(batch.row(position), x.row(row));
            }
            assert_canonical(&batch.to_owned());
        }
    }

    #[test]
    fn retained_rows_are_those_of_the_list_that_are_stored(
        x in rows(), picks in prop::collection::btree_set(0..4u64, 0..4),
    ) {
        let ids: Vec<u64> =
            picks.into_iter().filter(|&id| id < x.shape().n_rows() as u64).collect();
        let kept = x.retain(&ids).unwrap();
        assert_canonical_rows(&kept);
        let stored = x.indices().iter().copied().filter(|id| ids.contains(id));
        prop_assert_eq!(kept.indices(), &stored.collect::<Vec<_>>()[..]);
        prop_assert_eq!(kept.retain(&ids).unwrap(), kept.clone());
        let (before, after) = (x.to_dense().unwrap(), kept.to_dense().unwrap());
        for row in 0..x.shape().n_rows() {
            let expected = if ids.contains(&(row as u64)) { before.row(row).unwrap().to_vec() } else { vec![0.0; x.shape().row_size()] };
            prop_assert_eq!(after.row(row), Some(&expected[..]));
        }
        // A table stores all rows.
        let table = RowSparseView::all(*before.shape(), before.values()).unwrap();
        let of_table = table.retain(&ids).unwrap();
        prop_assert_eq!((of_table.indices(), of_table.to_dense().unwrap()), (&ids[..], after));
    }

    #[test]
    fn random_arrays_have_their_density(
        (n_rows, n_cols) in (0..40usize, 0..40usize), density in 0.0..=1.0f64, seed in any::<u64>(),
    ) {
        let x = Csr::<f64>::random(n_rows, n_cols, density, Seed(seed)).unwrap();
        assert_canonical(&x);
        let places = (n_rows * n_cols) as f64;
        prop_assert_eq!(x.nnz(), (density * places).round() as usize);
        prop_assert!((x.density() - density).abs() * places <= 0.5 + 1e-9 || places == 0.0);
        prop_assert!(x.values().iter().all(|&value| 0.0 < value && value < 1.0));
        prop_assert_eq!(&Csr::random(n_rows, n_cols, density, Seed(seed)).unwrap(), &x);
        let rows = RowSparse::<f64>::random([n_rows, 2, 3], density, Seed(seed)).unwrap();
        assert_canonical_rows(&rows);
        prop_assert_eq!(rows.n_stored(), (density * n_rows as f64).round() as usize);
    }

    #[test]
    fn casts_to_more_digits_and_back_are_nothing(x in matrix(), table in rows()) {
        let narrow: Csr<f32> = x.cast();
        prop_assert_eq!(narrow.try_cast::<f64>().unwrap(), x.clone());
        prop_assert_eq!(x.try_cast::<i64>().unwrap().cast::<f64>(), x.clone());
        let negative = x.values().iter().any(|&value| value < 0.0);
        prop_assert_eq!(x.try_cast::<u32>().is_err(), negative);
        prop_assert_eq!(table.cast::<f32>().cast::<f64>(), table);
    }
}

/// Two matrices of one size, and two that can be multiplied.
fn pairs() -> impl Strategy<Value = (Csr<f64>, Csr<f64>, Csr<f64>)> {
    size().prop_flat_map(|(m, k)| {
        let right = (0..5usize).prop_flat_map(move |n| csr_of(k, n));
        (csr_of(m, k), csr_of(m, k), right)
    })
}

proptest! {
    #[test]
    fn sums_and_products_by_element_are_those_of_dense_arrays((a, b, _) in pairs()) {
        let (da, db) = (a.to_dense().unwrap(), b.to_dense().unwrap());
        let (ra, rb) = (a.to_row_sparse().unwrap(), b.to_row_sparse().unwrap());
        let sum = &da + &db;
        prop_assert_eq!(&(&a + &b).to_dense().unwrap(), &sum);
        prop_assert_eq!(&a + &b, &b + &a);
        prop_assert_eq!(&(&ra + &rb).to_dense().unwrap(), &sum);
        prop_assert_eq!(&ra + &rb, &rb + &ra);
        prop_assert_eq!(&(&a + &db), &sum);
        prop_assert_eq!(&(&ra + &db), &sum);
        prop_assert_eq!((&a - &a).to_dense().unwrap().nnz(), 0);
        prop_assert_eq!((&(&a + &b) - &b).to_dense().unwrap(), da.clone());
        prop_assert_eq!((&a + &a).to_dense().unwrap(), (&a * 2.0).to_dense().unwrap());
        let product = &da * &db;
        prop_assert_eq!(&(&a * &b).to_dense().unwrap(), &product);
        prop_assert_eq!(&(&ra * &rb).to_dense().unwrap(), &product);
        prop_assert_eq!(&(&a * &db).to_dense().unwrap(), &product);
        prop_assert_eq!((-&a).to_dense().unwrap(), -&da);
        for x in [&a + &b, &a - &b, &a * &b, &a * &db, -&a] {
            assert_canonical(&x);
        }
        for x in [&ra + &rb, &ra - &rb, &ra * &rb, &ra * &db] {
            assert_canonical_rows(&x);
        }
    }

    #[test]
    fn a_transposed_product_is_the_product_of_transposes((a, b, c) in pairs()) {
        let dense = c.to_dense().unwrap();
        let product = ops::dot(&a, &dense).unwrap();
        let turned = ops::dot(dense.t(), a.to_dense().unwrap().t()).unwrap();
        prop_assert_eq!(ops::transpose(&product).unwrap(), turned);
        // Every way to the same product.
        prop_assert_eq!(&ops::dot(&a, &c.to_row_sparse().unwrap()).unwrap(), &product);
        prop_assert_eq!(&ops::dot(&a.to_dense().unwrap(), &dense).unwrap(), &product);
        let sparse = ops::dot(&a.to_dense().unwrap(), &c).unwrap();
        assert_canonical(&sparse);
        prop_assert_eq!(&sparse.to_dense().unwrap(), &product);
        let gradient = ops::dot(ops::transpose(&a).unwrap().t(), &dense).unwrap();
        assert_canonical_rows(&gradient);
        prop_assert_eq!(&gradient.to_dense().unwrap(), &product);
        // It is linear.
        let other = ops::dot(&b, &dense).unwrap();
        prop_assert_eq!(ops::dot(&(&a + &b), &dense).unwrap(), &product + &other);
        prop_assert_eq!(ops::dot(&(&a * 3.0), &dense).unwrap(), &product * 3.0);
    }
}
