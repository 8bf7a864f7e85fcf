//! Layers in models: tables that batches read by rows, trained exactly; class weights; ids of 64
//! bits.

use nnz::optimizer::Updater;
use nnz::prelude::*;

graph! {
    /// A factorization machine with an embedding and a bag.
    pub model Machine {
        input x: csr[n, d];
        input user: dense<u64>[n];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Normal { mean: 0.0, std: 0.3 };
        param v: row_sparse[d, 3] = Normal { mean: 0.0, std: 0.3 };
        param t: row_sparse[d, 2] = Normal { mean: 0.0, std: 0.3 };
        param u: row_sparse[m, 2] = Normal { mean: 0.0, std: 0.3 };
        param h: dense[1, 2] = Constant(0.5);
        param b: dense[1] = Zeros;
        let hidden = embedding(user, u) + embedding_bag(x, t, mean = true);
        let score = dot(x, w) + pairwise_interaction(x, v) + fully_connected(hidden, h, b);
        loss logistic(score, y);
        output score;
    }

    /// Weights that are a vector, and so scores that are one.
    pub model Vector {
        input x: csr[n, d];
        label y: dense[n];
        param w: row_sparse[d] = Normal { mean: 0.0, std: 0.3 };
        param b: dense[] = Zeros;
        let score = dot(x, w) + b;
        loss logistic(score, y);
        output score;
    }

    /// The same weights as a matrix of one column.
    pub model Column {
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Normal { mean: 0.0, std: 0.3 };
        param b: dense[] = Zeros;
        let score = dot(x, w) + b;
        loss logistic(score, y);
        output score;
    }

    /// Classes weighted by a table that is not trained.
    pub model Weighted {
        input x: csr[n, d];
        label y: dense<u32>[n];
        param w: row_sparse[d, 2] = Normal { mean: 0.0, std: 0.3 };
        param(frozen) class_weight: dense[2] = Constant(2.0);
        let score = dot(x, w);
        loss softmax_cross_entropy(score, y, weight = take(class_weight, y));
        output score;
    }

    /// Predictions of a matrix factorization at the ratings that there are.
    pub model Ratings {
        input rating: csr[n, m];
        input p: dense[n, 2];
        param q: row_sparse[m, 2] = Normal { mean: 0.0, std: 0.3 };
        let error = sampled_dot(p, q, rating, transpose_rhs = true) - rating;
        loss sum(square(error));
        output error;
    }
}

struct Data {
    x: Csr,
    user: Dense<u64>,
    y: Dense,
}

fn data() -> Data {
    let rows = [
        vec![(0, 1.0), (3, 2.0), (6, 1.0)],
        vec![],
        vec![(3, -1.0), (5, 0.5)],
        vec![(1, 0.0), (2, 4.0)],
    ];
    Data {
        x: Csr::from_rows(7, rows).unwrap(),
        user: Dense::new([4], vec![4, 0, 4, 2]).unwrap(),
        y: Dense::new([4, 1], vec![1.0, 0.0, 0.0, 1.0]).unwrap(),
    }
}

/// Batches that leave rows idle for a while, with momentum and decay: the exact update is the dense
/// one.
#[test]
fn tables_are_settled_by_columns_and_ids() {
    let Data { x, user, y } = data();
    let mut ends = Vec::new();
    for lazy_update in [LazyUpdate::Exact, LazyUpdate::Dense] {
        let sgd = Sgd {
            learning_rate: 0.2,
            momentum: 0.9,
            weight_decay: 0.05,
            lazy_update,
            ..Sgd::default()
        };
        let mut model = Machine::new(dims! { d: 7, m: 5 }, Seed(3)).unwrap();
        let mut updater = Updater::for_model(sgd, &model).unwrap();
        for step in 0..11 {
            let row = [0, 2, 2, 3][step % 4];
            let rows = if step == 5 { 0..4 } else { row..row + 1 };
            let x = x.view().rows(rows.clone()).unwrap();
            let user = user.view().rows(rows.clone()).unwrap();
            let y = y.view().rows(rows).unwrap();
            let batch = MachineBatch { x, user, y };
            model.train_step(&batch, &mut updater).unwrap();
        }
        updater.flush_model(&mut model).unwrap();
        let values: Vec<Vec<f32>> =
            model.parameters().iter().map(|parameter| parameter.values().to_vec()).collect();
        ends.push(values);
    }
    for (exact, dense) in ends[0].iter().flatten().zip(ends[1].iter().flatten()) {
        assert!((exact - dense).abs() < 1e-5, "{exact} {dense}");
    }
}

#[test]
fn gradients_store_what_the_batch_names() {
    let Data { x, user, y } = data();
    let mut model = Machine::new(dims! { d: 7, m: 5 }, Seed(3)).unwrap();
    let (x, user, y) = (x.view(), user.view(), y.view());
    model.loss_and_grads(&MachineBatch { x, user, y }).unwrap();
    let gradients = model.gradients();
    assert_eq!(gradients.u.indices(), [0, 2, 4]);
    for table in [&gradients.w, &gradients.v, &gradients.t] {
        assert_eq!(table.indices(), [0, 1, 2, 3, 5, 6]);
    }
}

#[test]
fn a_vector_of_weights_trains_as_one_column_does() {
    let Data { x, y, .. } = data();
    let labels = y.clone().reshape([4]).unwrap();
    let sgd = || Sgd { learning_rate: 0.2, momentum: 0.9, weight_decay: 0.05, ..Sgd::default() };
    let mut vector = Vector::new(dims! { d: 7 }, Seed(3)).unwrap();
    let mut column = Column::new(dims! { d: 7 }, Seed(3)).unwrap();
    let mut of_vector = Updater::for_model(sgd(), &vector).unwrap();
    let mut of_column = Updater::for_model(sgd(), &column).unwrap();
    for rows in [0..1, 2..4, 2..3, 0..4, 1..2, 0..2] {
        let x = x.view().rows(rows.clone()).unwrap();
        let y = y.view().rows(rows.clone()).unwrap();
        column.train_step(&ColumnBatch { x, y }, &mut of_column).unwrap();
        let y = labels.view().rows(rows).unwrap();
        vector.train_step(&VectorBatch { x, y }, &mut of_vector).unwrap();
    }
    of_vector.flush_model(&mut vector).unwrap();
    of_column.flush_model(&mut column).unwrap();
    for (found, expected) in vector.parameters().iter().zip(column.parameters()) {
        for (found, expected) in found.values().iter().zip(expected.values()) {
            assert!((found - expected).abs() < 1e-6, "{found} {expected}");
        }
    }
    let (x, y) = (x.view().rows(2..3).unwrap(), labels.view().rows(2..3).unwrap());
    vector.loss_and_grads(&VectorBatch { x, y }).unwrap();
    assert_eq!(vector.gradients().w.indices(), [3, 5]);
}

#[test]
fn an_id_beyond_the_table_is_a_typed_error() {
    let Data { x, y, .. } = data();
    let mut model = Machine::new(dims! { d: 7, m: 5 }, Seed(3)).unwrap();
    // Beyond 32 bits, where a cut id would be one of the table.
    let user = Dense::new([4], vec![4, 0, (1u64 << 32) + 1, 2]).unwrap();
    let (x, user, y) = (x.view(), user.view(), y.view());
    let error = model.forward(&MachineBatch { x, user, y }).unwrap_err();
    assert!(error.to_string().contains("4294967297"), "{error}");
}

#[test]
fn a_table_may_be_wider_than_ids_of_32_bits() {
    let (wide, far) = (1usize << 40, (1u64 << 40) - 1);
    let table = RowSparse::new([wide, 2], vec![7, far], vec![1.0f32, 2.0, 3.0, 4.0]).unwrap();
    let ids = Dense::new([2, 2], vec![far, 3, 7, far]).unwrap();
    let rows = nnz::ops::embedding(&ids, &table).unwrap();
    assert_eq!(rows.shape()[..], [2, 2, 2]);
    assert_eq!(rows.values(), [3.0, 4.0, 0.0, 0.0, 1.0, 2.0, 3.0, 4.0]);
    let beyond = Dense::new([1], vec![1u64 << 40]).unwrap();
    assert!(nnz::ops::embedding(&beyond, &table).is_err());
}

#[test]
fn a_class_weight_multiplies_the_loss() {
    let Data { x, .. } = data();
    let labels = Dense::<u32>::new([4], vec![0, 1, 1, 0]).unwrap();
    let mut model = Weighted::new(dims! { d: 7 }, Seed(3)).unwrap();
    let (x, y) = (x.view(), labels.view());
    let doubled = model.loss(&WeightedBatch { x, y }).unwrap();
    model.forward(&WeightedBatch { x, y }).unwrap();
    let scores = model.outputs().score.clone();
    let plain = nnz::ops::softmax_cross_entropy(&scores, &labels).unwrap();
    assert!((doubled - 2.0 * f64::from(plain.values()[0])).abs() < 1e-6);
}

#[test]
fn a_factorization_reads_only_the_ratings() {
    let rating = Csr::from_rows(4, [vec![(3, 1.0)], vec![(0, 2.0), (3, -1.0)]]).unwrap();
    let p = Dense::from_rows(&[[1.0, 0.5], [2.0, -1.0]]);
    let mut model = Ratings::new(dims! { m: 4 }, Seed(3)).unwrap();
    let (rating, p) = (rating.view(), p.view());
    let batch = RatingsBatch { rating, p };
    model.loss_and_grads(&batch).unwrap();
    assert_eq!(model.gradients().q.indices(), [0, 3]);
    let error: &Csr = &model.outputs().error;
    assert_eq!(error.nnz(), 3);
}
