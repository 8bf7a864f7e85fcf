//! Operators that users declare with the table rows that they read and store.
#![allow(clippy::unwrap_used)]

use nnz::core::update_rules::LazyUpdate;
use nnz::model::{RowSet, check_rows_read};
use nnz::optimizer::Updater;
use nnz::prelude::*;

mod functions {
    use nnz::formats::{CsrView, Dense, DenseView, IdsView, RowSparse, RowSparseView};
    use std::collections::BTreeMap;

    /// Σ xᵢ ‖vᵢ‖² of each sample.
    pub(crate) fn norms(out: &mut Dense<f64>, x: CsrView<'_, f64>, v: RowSparseView<'_, f64>) {
        for (out, entries) in out.values_mut().iter_mut().zip(x.iter_rows()) {
            for (column, value) in entries {
                *out += value * squares(v, column);
            }
        }
    }

    fn squares(v: RowSparseView<'_, f64>, row: usize) -> f64 {
        v.row(row).unwrap_or_default().iter().map(|v| v * v).sum()
    }

    /// The same, and the first row of the table, whatever the columns are.
    pub(crate) fn greedy(out: &mut Dense<f64>, x: CsrView<'_, f64>, v: RowSparseView<'_, f64>) {
        norms(out, x, v);
        out.values_mut().iter_mut().for_each(|out| *out += squares(v, 0));
    }

    /// 2 xᵢ gᵢ vᵢ, summed over samples.
    pub(crate) fn gradient(
        out: &mut RowSparse<f64>,
        x: CsrView<'_, f64>,
        v: RowSparseView<'_, f64>,
        grad: DenseView<'_, f64>,
    ) {
        *out = RowSparse::new(*v.shape(), Vec::new(), Vec::new()).unwrap();
        let terms = x.iter_rows().zip(grad.values());
        let terms = terms.flat_map(|(entries, g)| entries.map(move |(row, x)| (row, 2.0 * x * g)));
        *out = rows(v, terms);
    }

    /// The same, with one row more.
    pub(crate) fn generous(
        out: &mut RowSparse<f64>,
        x: CsrView<'_, f64>,
        v: RowSparseView<'_, f64>,
        grad: DenseView<'_, f64>,
    ) {
        gradient(out, x, v, grad);
        let terms = x.iter_columns().chain([5]).map(|row| (row, 1.0));
        *out = rows(v, terms);
    }

    pub(crate) fn of_ids(out: &mut Dense<f64>, ids: IdsView<'_>, v: RowSparseView<'_, f64>) {
        for (out, id) in out.values_mut().iter_mut().zip(ids.iter()) {
            *out = squares(v, id);
        }
    }

    pub(crate) fn ids_gradient(
        out: &mut RowSparse<f64>,
        ids: IdsView<'_>,
        v: RowSparseView<'_, f64>,
        grad: DenseView<'_, f64>,
    ) {
        *out = rows(v, ids.iter().zip(grad.values()).map(|(id, g)| (id, 2.0 * g)));
    }

    /// The sums of rows of a table, each times a number.
    fn rows(
        v: RowSparseView<'_, f64>,
        terms: impl Iterator<Item = (usize, f64)>,
    ) -> RowSparse<f64> {
        let mut sums = BTreeMap::<u64, Vec<f64>>::new();
        for (row, share) in terms {
            let sum = sums.entry(row as u64).or_insert_with(|| vec![0.0; v.shape().row_size()]);
            let row = v.row(row).unwrap_or_default();
            sum.iter_mut().zip(row).for_each(|(sum, v)| *sum += share * v);
        }
        let (ids, sums): (Vec<u64>, Vec<Vec<f64>>) = sums.into_iter().unzip();
        RowSparse::new(*v.shape(), ids, sums.concat()).unwrap()
    }
}

graph! {
    operator norms(x, v) {
        rule csr row_sparse -> dense = functions::norms;
        shape [n, d] [d, k] -> [n, 1];
        reads v by columns(x);
        gradient v = norms_gradient(x, v, grad);
    }

    operator norms_gradient(x, v, grad) {
        rule csr row_sparse dense -> row_sparse = functions::gradient;
        shape [n, d] [d, k] [n, 1] -> [d, k];
        reads v by columns(x);
        stores by columns(x);
    }

    operator greedy(x, v) {
        rule csr row_sparse -> dense = functions::greedy;
        shape [n, d] [d, k] -> [n, 1];
        reads v by columns(x);
        gradient v = norms_gradient(x, v, grad);
    }

    operator generous(x, v) {
        rule csr row_sparse -> dense = functions::norms;
        shape [n, d] [d, k] -> [n, 1];
        reads v by columns(x);
        gradient v = generous_gradient(x, v, grad);
    }

    operator generous_gradient(x, v, grad) {
        rule csr row_sparse dense -> row_sparse = functions::generous;
        shape [n, d] [d, k] [n, 1] -> [d, k];
        reads v by columns(x);
        stores by columns(x);
    }

    operator of_ids(ids, v) {
        rule ids row_sparse -> dense = functions::of_ids;
        shape [n] [d, k] -> [n];
        reads v by ids(ids);
        gradient v = ids_gradient(ids, v, grad);
    }

    operator ids_gradient(ids, v, grad) {
        rule ids row_sparse dense -> row_sparse = functions::ids_gradient;
        shape [n] [d, k] [n] -> [d, k];
        reads v by ids(ids);
        stores by ids(ids);
    }

    pub model Norms {
        dtype = f64;
        input x: csr[n, d];
        label y: dense[n, 1];
        param v: row_sparse[d, 2] = Normal { mean: 0.0, std: 1.0 };
        let prediction = norms(x, v);
        loss squared_error(prediction, y);
        output prediction;
    }

    pub model Greedy {
        dtype = f64;
        input x: csr[n, d];
        label y: dense[n, 1];
        param v: row_sparse[d, 2] = Ones;
        let prediction = greedy(x, v);
        loss squared_error(prediction, y);
        output prediction;
    }

    pub model Generous {
        dtype = f64;
        input x: csr[n, d];
        label y: dense[n, 1];
        param v: row_sparse[d, 2] = Ones;
        let prediction = generous(x, v);
        loss squared_error(prediction, y);
        output prediction;
    }

    pub model OfIds {
        dtype = f64;
        input ids: dense<u32>[n];
        label y: dense[n];
        param v: row_sparse[d, 2] = Normal { mean: 0.0, std: 1.0 };
        let prediction = of_ids(ids, v);
        loss squared_error(prediction, y);
        output prediction;
    }
}

/// Two samples of the columns 1, 3 and 7, in tables of this height.
fn data(d: usize) -> (Csr<f64>, Dense<f64>) {
    let x = Csr::from_rows(d, [vec![(1, 0.5), (7, 1.0)], vec![(3, 1.0), (7, -0.5)]]).unwrap();
    (x, Dense::new([2, 1], vec![1.0, -1.0]).unwrap())
}

#[test]
fn operators_read_and_store_the_rows_that_they_say() {
    let (x, y) = data(10);
    let model = Norms::new(dims! { d: 10 }, Seed(1)).unwrap();
    let of_x = RowSet::Of(&[0]);
    let [v] = Norms::PARAMETERS else { panic!() };
    assert_eq!((v.reads, v.writes), (of_x, of_x));
    check_rows_read(&model, &NormsBatch { x: x.view(), y: y.view() }).unwrap();

    let (ids, y) = (Dense::new([3], vec![4u32, 0, 4]).unwrap(), Dense::zeros([3]));
    let model = OfIds::new(dims! { d: 5 }, Seed(1)).unwrap();
    let [v] = OfIds::PARAMETERS else { panic!() };
    assert_eq!((v.reads, v.writes), (of_x, of_x));
    check_rows_read(&model, &OfIdsBatch { ids: ids.view(), y: y.view() }).unwrap();
    let beyond = Dense::new([3], vec![4u32, 5, 4]).unwrap();
    let error = model.clone().forward(&OfIdsBatch { ids: beyond.view(), y: y.view() }).unwrap_err();
    assert!(error.to_string().contains('5'), "{error}");
}

#[test]
fn exact_decay_before_a_declared_operator_writes_the_rows_of_the_batch_alone() {
    const HEIGHT: usize = 100_000;
    let (x, y) = data(HEIGHT);
    let batch = NormsBatch { x: x.view(), y: y.view() };
    let trained = |lazy_update| {
        let mut model = Norms::new(dims! { d: HEIGHT }, Seed(1)).unwrap();
        let rule = Sgd { learning_rate: 0.01, weight_decay: 0.1, lazy_update, ..Sgd::default() };
        let mut updater = Updater::for_model(rule, &model).unwrap();
        let before = model.v.values().to_vec();
        for _ in 0..5 {
            model.train_step(&batch, &mut updater).unwrap();
        }
        let rows = model.v.values().chunks(2).zip(before.chunks(2)).enumerate();
        let written: Vec<usize> =
            rows.filter(|(_, (new, old))| new != old).map(|(row, _)| row).collect();
        updater.flush_model(&mut model).unwrap();
        (written, model.v.values().to_vec())
    };
    let (written, exact) = trained(LazyUpdate::Exact);
    assert_eq!(written, [1, 3, 7]);
    // Afterwards all rows have the decay of five steps, as those of a dense update.
    let (written, dense) = trained(LazyUpdate::Dense);
    assert_eq!(written.len(), HEIGHT);
    for (exact, dense) in exact.iter().zip(&dense) {
        assert!((exact - dense).abs() < 1e-12, "{exact} {dense}");
    }
}

#[test]
fn an_operator_that_reads_other_rows_than_it_says_is_found() {
    let (x, y) = data(10);
    let model = Greedy::new(dims! { d: 10 }, Seed(1)).unwrap();
    let error = check_rows_read(&model, &GreedyBatch { x: x.view(), y: y.view() }).unwrap_err();
    assert_eq!(
        error.to_string(),
        "model `Greedy` reads table rows of `v` that its batch does not name: of the operators that \
         read it, correct the line `reads v by …`, or leave it out"
    );
}

#[test]
#[cfg(debug_assertions)]
fn a_result_with_other_rows_than_its_operator_says_is_refused() {
    let (x, y) = data(10);
    let mut model = Generous::new(dims! { d: 10 }, Seed(1)).unwrap();
    let error = model.loss_and_grads(&GenerousBatch { x: x.view(), y: y.view() }).unwrap_err();
    assert_eq!(
        error.to_string(),
        "model `Generous`: the result of the operator `generous_gradient` stores the table row 5, \
         which its batch does not name: correct the line `stores by …` of the operator, or leave it \
         out"
    );
}
