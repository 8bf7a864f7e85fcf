//! The rows that a model says a batch reads and writes, against the rows that change something when
//! they are perturbed and those that a step changes.

use nnz::formats::RowIdsView;
use nnz::model::{ModelError, RowIds, RowSet};
use nnz::optimizer::Updater;
use nnz::prelude::*;

graph! {
    /// One table, fused.
    pub model Fused {
        dtype = f64;
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Normal { mean: 0.0, std: 1.0 };
        param b: dense[1] = Zeros;
        let pred = dot(x, w) + b;
        loss squared_error(pred, y);
        output pred;
    }

    /// The same, kernel by kernel.
    pub model Unfused {
        dtype = f64;
        fuse = off;
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Normal { mean: 0.0, std: 1.0 };
        param b: dense[1] = Zeros;
        let pred = dot(x, w) + b;
        loss squared_error(pred, y);
        output pred;
    }

    /// A factorization machine, fused.
    pub model Machine {
        dtype = f64;
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Normal { mean: 0.0, std: 1.0 };
        param v: row_sparse[d, 3] = Normal { mean: 0.0, std: 1.0 };
        let score = dot(x, w) + pairwise_interaction(x, v);
        loss logistic(score, y);
        output score;
    }

    /// Rows by ids.
    pub model Factors {
        dtype = f64;
        input user: dense<u32>[n];
        input item: dense<i64>[n];
        label y: dense[n, 1];
        param p: row_sparse[users, 3] = Normal { mean: 0.0, std: 1.0 };
        param q: row_sparse[items, 3] = Normal { mean: 0.0, std: 1.0 };
        param bias: row_sparse[items, 1] = Zeros;
        let pred = sum(embedding(user, p) * embedding(item, q), axis = 1, keepdims = true)
            + embedding(item, bias);
        loss squared_error(pred, y);
        output pred;
    }

    /// A wide part and a deep one, of which some is not trained.
    pub model WideDeep {
        dtype = f64;
        input x: csr[n, d];
        input word: dense<u32>[n];
        label y: dense[n, 1];
        param wide: row_sparse[d, 1] = Zeros;
        param bag: row_sparse[d, 2] = Normal { mean: 0.0, std: 1.0 };
        param(frozen) words: row_sparse[v, 2] = Normal { mean: 0.0, std: 1.0 };
        param layer: dense[2, 1] = Normal { mean: 0.0, std: 1.0 };
        let hidden = tanh(embedding_bag(x, bag) + embedding(word, words));
        let score = dot(x, wide) + dot(hidden, layer);
        loss logistic(score, y);
        output score;
    }

    /// A table that two inputs read, one of them scaled, and one by functions of its elements.
    pub model Shared {
        dtype = f64;
        input x: csr[n, 6];
        input z: csr[n, 6];
        input ids: dense<u64>[n];
        label y: dense[n, 1];
        param w: row_sparse[6, 1] = Normal { mean: 0.0, std: 1.0 };
        param u: row_sparse[6, 1] = Normal { mean: 0.0, std: 1.0 };
        param t: row_sparse[6, 1] = Normal { mean: 0.0, std: 1.0 };
        let pred = dot(x, w) + dot(2.0 * z, w) + dot(tanh(x) * x, u) + dot(x - z, t)
            + dot(one_hot(ids, depth = 6), t);
        loss squared_error(pred, y);
        output pred;
    }

    /// Functions of tables that are read by rows.
    pub model Functions {
        dtype = f64;
        input x: csr[n, d];
        input ids: dense<u64>[n];
        input mask: dense[d, 1];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Normal { mean: 0.0, std: 1.0 };
        param v: row_sparse[d, 1] = Normal { mean: 0.0, std: 1.0 };
        param t: row_sparse[d, 1] = Normal { mean: 0.0, std: 1.0 };
        let pred = dot(x, relu(w) * mask) + dot(square(x), square(v)) + dot(x, v)
            + embedding(ids, tanh(2.0 * t));
        loss squared_error(pred, y);
        output pred;
    }

    /// Parts of a table, tables that are joined, and a penalty on the rows that are read.
    pub model Parts {
        dtype = f64;
        input x: csr[n, d];
        input ids: dense<u64>[n];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Normal { mean: 0.0, std: 1.0 };
        param v: row_sparse[d, 3] = Normal { mean: 0.0, std: 1.0 };
        param t: row_sparse[d, 2] = Normal { mean: 0.0, std: 1.0 };
        let joined = embedding(ids, concat(w, t, axis = 1));
        let pred = dot(x, slice_axis(v, axis = 1, begin = 1, end = 2)) + sum(joined, axis = 1, keepdims = true);
        loss squared_error(pred, y);
        loss 0.1 * sum(power(square_sum(retain(t, ids), axis = 1), 0.5));
        output pred;
    }

    /// What reads all rows, and what none.
    pub model Whole {
        dtype = f64;
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Normal { mean: 0.0, std: 1.0 };
        param c: dense[d, 1] = Normal { mean: 0.0, std: 1.0 };
        param(frozen) idle: row_sparse[d, 1] = Zeros;
        let pred = dot(x, sin(w)) + dot(x, c) + 0.1 * sum(stop_gradient(w));
        loss squared_error(pred, y);
        loss 0.1 * sum(square(c));
        output pred;
    }
}

const N_ROWS: usize = 6;

fn x() -> Csr<f64> {
    let rows = [vec![(1, 1.0), (4, 2.0)], vec![], vec![(1, -1.0), (2, 0.5)]];
    Csr::from_rows(N_ROWS, rows).unwrap()
}

fn z() -> Csr<f64> {
    Csr::from_rows(N_ROWS, [vec![(5, 3.0)], vec![(1, 1.0)], vec![]]).unwrap()
}

fn y() -> Dense<f64> {
    Dense::new([3, 1], vec![1.0, 0.0, 1.0]).unwrap()
}

/// `None` for all rows.
type Expected<'a> = Option<&'a [u64]>;

fn listed(rows: RowIdsView<'_>) -> Option<Vec<u64>> {
    match rows {
        RowIdsView::All => None,
        RowIdsView::Listed(ids) => Some(ids.to_vec()),
    }
}

/// The values of all parameters and the loss, after a step of plain gradient descent.
fn step<M: Model<Element = f64>>(model: &mut M, batch: &M::Batch<'_>) -> (Vec<Vec<f64>>, f64) {
    let rule = Sgd { learning_rate: 1.0, ..Sgd::default() };
    let mut updater = Updater::for_model(rule, model).unwrap();
    let loss = model.train_step(batch, &mut updater).unwrap();
    (values(model), loss)
}

fn values<M: Model<Element = f64>>(model: &M) -> Vec<Vec<f64>> {
    model.parameters().iter().map(|parameter| parameter.values().to_vec()).collect()
}

fn restore<M: Model<Element = f64>>(model: &mut M, values: &[Vec<f64>]) {
    for (mut parameter, values) in model.parameters_mut().into_iter().zip(values) {
        parameter.values_mut().copy_from_slice(values);
    }
}

/// Holds a model to what is expected of its parameters' rows, read and written, and that to what a
/// step does.
fn check<M: Model<Element = f64>>(
    model: &mut M,
    batch: &M::Batch<'_>,
    expected: &[(Expected<'_>, Expected<'_>)],
) {
    let mut rows = RowIds::new();
    assert_eq!(expected.len(), M::PARAMETERS.len());
    for (index, (reads, writes)) in expected.iter().enumerate() {
        let name = M::PARAMETERS[index].name;
        let found = listed(model.rows_read(batch, index, &mut rows).unwrap());
        assert_eq!(found.as_deref(), *reads, "rows of `{name}` read");
        let found = listed(model.rows_written(batch, index, &mut rows).unwrap());
        assert_eq!(found.as_deref(), *writes, "rows of `{name}` written");
    }
    let before = values(model);
    let (after, loss) = step(model, batch);
    let says = |rows: Expected<'_>, row: usize| rows.is_none_or(|ids| ids.contains(&(row as u64)));
    for (index, (reads, writes)) in expected.iter().enumerate() {
        let shape = model.parameters()[index].shape;
        let (name, size) = (M::PARAMETERS[index].name, shape.row_size());
        for row in 0..shape.n_rows() {
            let of_row = row * size..(row + 1) * size;
            let written = before[index][of_row.clone()] != after[index][of_row.clone()];
            assert!(!written || says(*writes, row), "row {row} of `{name}` is written");
            restore(model, &before);
            for (at, value) in of_row.clone().enumerate() {
                model.parameters_mut()[index].values_mut()[value] += 0.3 + at as f64;
            }
            let (mut others, other_loss) = step(model, batch);
            others[index][of_row.clone()].copy_from_slice(&after[index][of_row]);
            let read = other_loss.to_bits() != loss.to_bits() || others != after;
            assert!(!read || says(*reads, row), "row {row} of `{name}` is read");
        }
    }
}

const OF_X: Expected<'static> = Some(&[1, 2, 4]);
const NO_ROW: Expected<'static> = Some(&[]);

#[test]
fn products_read_and_write_the_columns_of_the_batch() {
    let (x, y, d) = (x(), y(), dims! { d: N_ROWS });
    let expected = [(OF_X, OF_X), (None, None)];
    let batch = FusedBatch { x: x.view(), y: y.view() };
    check(&mut Fused::new(d.clone(), Seed(1)).unwrap(), &batch, &expected);
    let batch = UnfusedBatch { x: x.view(), y: y.view() };
    check(&mut Unfused::new(d.clone(), Seed(1)).unwrap(), &batch, &expected);
    let batch = MachineBatch { x: x.view(), y: y.view() };
    check(&mut Machine::new(d, Seed(1)).unwrap(), &batch, &[(OF_X, OF_X), (OF_X, OF_X)]);
    assert!(Fused::PLAN.is_fused() && Machine::PLAN.is_fused() && !Unfused::PLAN.is_fused());
}

#[test]
fn a_batch_without_entries_reads_no_row() {
    let (x, y) = (Csr::from_rows(N_ROWS, [vec![], vec![]]).unwrap(), Dense::zeros([2, 1]));
    let batch = FusedBatch { x: x.view(), y: y.view() };
    let mut model = Fused::new(dims! { d: N_ROWS }, Seed(1)).unwrap();
    check(&mut model, &batch, &[(NO_ROW, NO_ROW), (None, None)]);
}

#[test]
fn ids_name_rows() {
    let user = Dense::new([3], vec![4u32, 0, 4]).unwrap();
    let item = Dense::new([3], vec![2i64, 1, 0]).unwrap();
    let y = y();
    let batch = FactorsBatch { user: user.view(), item: item.view(), y: y.view() };
    let mut model = Factors::new(dims! { users: 5, items: 4 }, Seed(2)).unwrap();
    let (users, items): (Expected<'_>, Expected<'_>) = (Some(&[0, 4]), Some(&[0, 1, 2]));
    check(&mut model, &batch, &[(users, users), (items, items), (items, items)]);
}

#[test]
fn each_part_of_a_model_has_its_rows() {
    let word = Dense::new([3], vec![6u32, 6, 2]).unwrap();
    let (x, y) = (x(), y());
    let batch = WideDeepBatch { x: x.view(), word: word.view(), y: y.view() };
    let mut model = WideDeep::new(dims! { d: N_ROWS, v: 7 }, Seed(3)).unwrap();
    let expected = [(OF_X, OF_X), (OF_X, OF_X), (Some(&[2, 6][..]), NO_ROW), (None, None)];
    check(&mut model, &batch, &expected);
}

#[test]
fn rows_of_computed_values_are_known_by_the_inputs_they_are_computed_from() {
    let ids = Dense::new([3], vec![0u64, 5, 0]).unwrap();
    let (x, z, y) = (x(), z(), y());
    let batch = SharedBatch { x: x.view(), z: z.view(), ids: ids.view(), y: y.view() };
    let mut model = Shared::new(dims! {}, Seed(4)).unwrap();
    let both: Expected<'_> = Some(&[1, 2, 4, 5]);
    let all_three: Expected<'_> = Some(&[0, 1, 2, 4, 5]);
    check(&mut model, &batch, &[(both, both), (OF_X, OF_X), (all_three, all_three)]);
}

#[test]
fn s_functions_of_a_table_read_and_write_the_rows_of_the_batch() {
    let (x, y, ids) = (x(), y(), Dense::new([3], vec![0u64, 5, 0]).unwrap());
    let mask = Dense::new([N_ROWS, 1], vec![0.5, 1.0, -2.0, 3.0, 0.25, 1.5]).unwrap();
    let (x, y, ids, mask) = (x.view(), y.view(), ids.view(), mask.view());
    let batch = FunctionsBatch { x, ids, mask, y };
    let mut model = Functions::new(dims! { d: N_ROWS }, Seed(6)).unwrap();
    let of_ids: Expected<'_> = Some(&[0, 5]);
    check(&mut model, &batch, &[(OF_X, OF_X), (OF_X, OF_X), (of_ids, of_ids)]);
}

#[test]
fn parts_and_joins_of_columns_read_the_rows_of_the_batch() {
    let (x, y, ids) = (x(), y(), Dense::new([3], vec![0u64, 5, 0]).unwrap());
    let batch = PartsBatch { x: x.view(), ids: ids.view(), y: y.view() };
    let mut model = Parts::new(dims! { d: N_ROWS }, Seed(7)).unwrap();
    let of_ids: Expected<'_> = Some(&[0, 5]);
    check(&mut model, &batch, &[(of_ids, of_ids), (OF_X, OF_X), (of_ids, of_ids)]);
}

#[test]
fn a_table_that_is_read_as_a_whole_reads_all_rows_and_an_unused_one_none() {
    let (x, y) = (x(), y());
    let batch = WholeBatch { x: x.view(), y: y.view() };
    let mut model = Whole::new(dims! { d: N_ROWS }, Seed(5)).unwrap();
    let expected = [(None, OF_X), (None, None), (NO_ROW, NO_ROW)];
    check(&mut model, &batch, &expected);
    assert_eq!(Whole::PARAMETERS[0].writes, RowSet::Of(&[0]));
}

#[test]
fn rows_beyond_a_parameter_are_refused() {
    let mut rows = RowIds::new();
    let model = Factors::new(dims! { users: 5, items: 4 }, Seed(2)).unwrap();
    let user = Dense::new([2], vec![0u32, 5]).unwrap();
    let item = Dense::new([2], vec![3i64, -1]).unwrap();
    let batch = FactorsBatch { user: user.view(), item: item.view(), ..Default::default() };
    let mut refused = |index| match model.rows_read(&batch, index, &mut rows) {
        Err(nnz::model::Error::Model(error)) => error,
        other => panic!("{:?}", other.map(listed)),
    };
    let id = |name, id: &str, bound| {
        let id = id.to_owned();
        ModelError::Id { model: "Factors", name, row: 1, id, bound }
    };
    assert_eq!(refused(0), id("user", "5", 5));
    assert_eq!(refused(1), id("item", "-1", 4));
    assert_eq!(refused(3), ModelError::NoParameter { model: "Factors", index: 3, known: 3 });

    let model = Fused::new(dims! { d: N_ROWS + 1 }, Seed(1)).unwrap();
    let x = x();
    let batch = FusedBatch { x: x.view(), ..Default::default() };
    let message = model.rows_read(&batch, 0, &mut rows).map(listed).unwrap_err().to_string();
    assert!(message.starts_with("model `Fused`: `x` has 6 columns, but `d` is 7"), "{message}");
}
