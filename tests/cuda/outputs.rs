//! Outputs that are not dense come back from a GPU as the host's model has them.

use crate::device::gpu;
use crate::near;
use nnz::model::OnGpu;
use nnz::optimizer::Updater;
use nnz::prelude::*;
use std::collections::BTreeSet;

graph! {
    /// Outputs of every storage type.
    model Stored {
        input x: csr[n, d];
        input z: csr<unit>[n, d];
        input r: dense[n, 2];
        label y: dense[n, 1];
        param(frozen) w: dense[d] = Normal { mean: 0.0, std: 1.0 };
        param v: row_sparse[d, 1] = Normal { mean: 0.0, std: 1.0 };
        let score = dot(x, v);
        loss squared_error(score, y);
        output scaled = x * w;
        output both = x * w + z;
        output rows: row_sparse[d, 2] = dot(x, r, transpose_lhs = true);
        output table = v * 2;
        output score;
        output largest = argmax(x, axis = 1);
    }
}

/// A batch in its arrays.
struct Arrays {
    x: Csr,
    z: Csr<nnz::core::element::Unit>,
    r: Dense,
    y: Dense,
}

impl Arrays {
    /// So many rows, of which row i stores i modulo `most` entries.
    fn new(n: usize, d: usize, most: usize) -> Self {
        let entry = |row, at| (row, (row * 5 + at * 7) % d, (row + 2 * at) as f32 / 4.0 - 1.0);
        let entries = (0..n).flat_map(|row| (0..row % most).map(move |at| entry(row, at)));
        let x = Csr::from_coo(n, d, entries).unwrap();
        let rows = (0..n).map(|row| -> BTreeSet<u32> {
            (0..row % 3).map(|at| ((row + at * 11) % d) as u32).collect()
        });
        let (mut indptr, mut columns) = (vec![0], Vec::new());
        for row in rows {
            columns.extend(row);
            indptr.push(columns.len() as u64);
        }
        let z = Csr::pattern(d, indptr, columns).unwrap();
        let r = Dense::new([n, 2], (0..2 * n).map(|at| at as f32 / 8.0 - 0.5).collect()).unwrap();
        Arrays { x, z, r, y: Dense::zeros([n, 1]) }
    }

    fn batch(&self) -> StoredBatch<'_> {
        StoredBatch { x: self.x.view(), z: self.z.view(), r: self.r.view(), y: self.y.view() }
    }
}

/// Holds what came back to what the host has.
fn same(there: &OnGpu<Stored>, expected: &StoredOutputs) {
    for (index, expected) in [(0, &expected.scaled), (1, &expected.both)] {
        let found = there.csr_output(index).unwrap().to_owned();
        assert_eq!(found.n_cols(), expected.n_cols());
        assert_eq!(found.indptr(), expected.indptr());
        assert_eq!(found.columns(), expected.columns());
        assert_eq!(found.values().len(), expected.nnz());
        near(found.values(), expected.values(), Stored::OUTPUTS[index].name);
    }
    for (index, expected) in [(2, &expected.rows), (3, &expected.table)] {
        let found = there.row_sparse_output(index).unwrap().to_owned();
        assert_eq!(found.shape(), expected.shape());
        assert_eq!(found.indices(), expected.indices());
        assert_eq!(found.values().len(), expected.values().len());
        near(found.values(), expected.values(), Stored::OUTPUTS[index].name);
    }
    near(there.dense_output(4).unwrap().values(), expected.score.values(), "score");
    assert_eq!(there.ids_output(5), Some(expected.largest.view()));
}

#[test]
fn csr_and_row_sparse_outputs_come_back_as_they_are() {
    let mut host = Stored::new(dims! { d: 30 }, Seed(3)).unwrap();
    let mut there = OnGpu::new(&host, &gpu()).unwrap();
    assert_eq!(there.csr_output(0).map(|csr| csr.values().len()), Some(0));
    // Larger than before, smaller, without an entry, without a row, and larger than all.
    for (n, most) in [(4, 3), (9, 4), (2, 2), (5, 1), (0, 1), (40, 6)] {
        let arrays = Arrays::new(n, 30, most);
        there.forward(&arrays.batch()).unwrap();
        same(&there, host.forward(&arrays.batch()).unwrap());
    }
    // Each output is of one type.
    assert!(there.dense_output(0).is_none() && there.dense_output(2).is_none());
    assert!(there.dense_output(5).is_none() && there.dense_output(6).is_none());
    assert!(there.csr_output(2).is_none() && there.row_sparse_output(0).is_none());
    assert!(there.csr_output(4).is_none() && there.row_sparse_output(4).is_none());
    assert!(there.ids_output(0).is_none() && there.csr_output(6).is_none());
}

#[test]
fn a_step_has_them_too_and_a_clone_keeps_them() {
    let mut host = Stored::new(dims! { d: 30 }, Seed(3)).unwrap();
    let mut there = OnGpu::new(&host, &gpu()).unwrap();
    let rule = Sgd { learning_rate: 0.25, ..Sgd::default() };
    let mut on_cpu = Updater::for_model(rule.clone(), &host).unwrap();
    let mut on_gpu = Updater::for_model(rule, &there).unwrap();
    for n in [5, 12] {
        let arrays = Arrays::new(n, 30, 4);
        host.train_step(&arrays.batch(), &mut on_cpu).unwrap();
        there.train_step(&arrays.batch(), &mut on_gpu).unwrap();
        same(&there, host.outputs());
        same(&there.clone(), host.outputs());
    }
}

#[test]
fn a_metric_of_an_output_that_is_not_dense_is_refused_as_on_the_host() {
    let model = Stored::new(dims! { d: 30 }, Seed(3)).unwrap();
    let arrays = Arrays::new(8, 30, 4);
    let data = Dataset::builder()
        .input("x", arrays.x)
        .input("z", arrays.z)
        .input("r", arrays.r)
        .label("y", arrays.y)
        .build()
        .unwrap();
    let trainer = || {
        let trainer = Trainer::new(Sgd::default()).batch_size(4).metric(Mse);
        trainer.progress(Progress::Silent)
    };
    let mut there = OnGpu::new(&model, &gpu()).unwrap();
    let mut host = model;
    let expected = trainer().fit(&mut host, &data).unwrap_err().to_string();
    assert_eq!(trainer().fit(&mut there, &data).unwrap_err().to_string(), expected);
}
