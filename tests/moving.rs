//! Operators that move elements, in models.

use nnz::prelude::*;

graph! {
    /// A function of arrays.
    pub model Parts {
        input x: csr[n, 6];
        input z: row_sparse[4, 2];
        let left = slice(x, begin = [_, 0], end = [_, 2]);
        let tail = slice_axis(z, axis = 0, begin = -2);
        output left;
        output tail;
        output backwards = slice(x, step = [-1, -2]);
        output wide = concat(x, left, x, axis = 1);
        output both = concat(z, tail, axis = 0);
    }

    /// Rows of a table that have a meaning of their own.
    pub model Bias {
        input x: csr[n, 5];
        label y: dense[n, 1];
        param w: row_sparse[6, 1] = Constant(1.0);
        let weights = slice(w, begin = [1]);
        let bias = slice(w, end = [1]);
        loss squared_error(dot(x, weights) + dense(bias), y);
    }
}

#[test]
fn parts_and_joins() {
    let x =
        Csr::from_rows(6, [vec![(0, 1.0), (3, 2.0), (5, 3.0)], vec![], vec![(1, 4.0)]]).unwrap();
    let z = RowSparse::new([4, 2], vec![0, 3], vec![1.0, 2.0, 3.0, 4.0]).unwrap();
    let mut model = Parts::new(dims! {}, Seed(1)).unwrap();
    let batch = PartsBatch { x: x.view(), z: z.view() };
    let found = model.forward(&batch).unwrap();
    assert_eq!(found.left, Csr::from_rows(2, [vec![(0, 1.0)], vec![], vec![(1, 4.0)]]).unwrap());
    let backwards = [vec![(2, 4.0)], vec![], vec![(0, 3.0), (1, 2.0)]];
    assert_eq!(found.backwards, Csr::from_rows(3, backwards).unwrap());
    assert_eq!(found.tail, RowSparse::new([2, 2], vec![1], vec![3.0, 4.0]).unwrap());
    let first = vec![(0, 1.0), (3, 2.0), (5, 3.0), (6, 1.0), (8, 1.0), (11, 2.0), (13, 3.0)];
    let last = vec![(1, 4.0), (7, 4.0), (9, 4.0)];
    assert_eq!(found.wide, Csr::from_rows(14, [first, vec![], last]).unwrap());
    let both = RowSparse::new([6, 2], vec![0, 3, 5], vec![1.0, 2.0, 3.0, 4.0, 3.0, 4.0]).unwrap();
    assert_eq!(found.both, both);
}

/// The gradient of a part of a row_sparse table is row_sparse.
#[test]
fn gradients_of_parts_of_a_table() {
    let x = Csr::from_rows(5, [vec![(1, 2.0)], vec![(1, 1.0), (4, 3.0)]]).unwrap();
    let y = Dense::new([2, 1], vec![0.0, 0.0]).unwrap();
    let mut model = Bias::new(dims! {}, Seed(1)).unwrap();
    let batch = BiasBatch { x: x.view(), y: y.view() };
    model.loss_and_grads(&batch).unwrap();
    // Scores 2 + 1 and 4 + 1; the gradient of each is half the error.
    let expected = RowSparse::new([6, 1], vec![0, 2, 5], vec![4.0, 5.5, 7.5]).unwrap();
    assert_eq!(model.gradients().w, expected);
}

graph! {
    /// Rows of a table by ids.
    pub model Table {
        input ids: dense<u32>[n];
        input x: csr[n, 4];
        label y: dense[n, 2];
        param table: row_sparse[d, 2] = Constant(1.0);
        let rows = take(table, ids);
        let chosen = take(x, ids, clip = true);
        loss squared_error(rows, y);
        output hot = one_hot(ids, depth = 9);
        output chosen;
    }
}

/// A step reads and writes the rows of the ids, and an id beyond the table or the depth is an
/// error.
#[test]
fn rows_of_a_table_by_ids() {
    let ids = Dense::<u32>::from(vec![3, 0, 3]);
    let x = Csr::from_rows(4, [vec![(0, 1.0)], vec![(1, 2.0)], vec![]]).unwrap();
    let y = Dense::zeros([3, 2]);
    let mut model = Table::new(dims! { d: 5 }, Seed(1)).unwrap();
    let mut batch = TableBatch { ids: ids.view(), x: x.view(), y: y.view() };
    model.loss_and_grads(&batch).unwrap();
    let third = 1.0 / 3.0;
    let expected = [third, third, 2.0 * third, 2.0 * third];
    let gradient = &model.gradients().table;
    assert_eq!(gradient.indices(), [0, 3]);
    let near = |(found, expected): (&f32, f32)| (found - expected).abs() < 1e-6;
    assert!(gradient.values().iter().zip(expected).all(near), "{gradient:?}");
    let hot = [vec![(3, 1.0)], vec![(0, 1.0)], vec![(3, 1.0)]];
    assert_eq!(model.outputs().hot, Csr::from_rows(9, hot).unwrap());
    let chosen = [vec![], vec![(0, 1.0)], vec![]];
    assert_eq!(model.outputs().chosen, Csr::from_rows(4, chosen).unwrap());

    let mut updater = nnz::optimizer::Updater::for_model(
        Sgd { learning_rate: 3.0, momentum: 0.5, ..Sgd::default() },
        &model,
    )
    .unwrap();
    model.train_step(&batch, &mut updater).unwrap();
    updater.flush_model(&mut model).unwrap();
    let table = model.table.view();
    assert_eq!(table.row(1), Some(&[1.0, 1.0][..]));
    assert!(table.row(3).unwrap().iter().all(|value| (value + 1.0).abs() < 1e-6));

    let beyond = Dense::<u32>::from(vec![0, 5, 1]);
    batch.ids = beyond.view();
    let error = model.loss_and_grads(&batch).unwrap_err().to_string();
    assert!(error.contains('5'), "{error}");
}

#[test]
fn operators_by_ids_on_arrays() {
    use nnz::ops;
    let x = Csr::from_rows(3, [vec![(0, 1.0f32)], vec![(1, 2.0), (2, 3.0)]]).unwrap();
    let ids = Dense::<u32>::from(vec![1, 1, 0]);
    let taken = ops::take(&x, &ids, 0, false, false).unwrap();
    assert_eq!(taken.indptr(), [0, 2, 4, 5]);
    let beyond = Dense::<i64>::from(vec![-1, 7]);
    let error = ops::take(&x, &beyond, 0, false, false).unwrap_err();
    assert!(error.to_string().contains("id -1 at position 0 of `ids` is not below 2"), "{error}");
    let wrapped = ops::take(&x, &beyond, 0, false, true).unwrap();
    assert_eq!(wrapped.indptr(), [0, 2, 4]);
    let picked = ops::pick(&x, &ids, 0, false, false, false).unwrap();
    assert_eq!(picked.values(), [0.0, 2.0, 0.0]);
    let hot = ops::one_hot(&ids, 2).unwrap();
    assert_eq!(hot.columns().iter().collect::<Vec<_>>(), [1, 1, 0]);
    assert!(ops::one_hot(&ids, 1).is_err());
}
