//! Steps that are rounded away, in models that are compiled: on threads, from memory and from a
//! stream.

use nnz::data::stream::Stream;
use nnz::data::{BatchOptions, DataSource};
use nnz::optimizer::Updater;
use nnz::prelude::*;
use nnz::training::{EpochReport, fit_epoch};
use std::ops::ControlFlow;

graph! {
    /// Weights of 1.
    pub model Ones {
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Constant(1.0);
        let score = dot(x, w);
        loss squared_error(score, y);
        output score;
    }

    /// The same, step by step.
    pub model UnfusedOnes {
        fuse = off;
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Constant(1.0);
        let score = dot(x, w);
        loss squared_error(score, y);
        output score;
    }
}

const N: usize = 300;
const D: usize = 4;

/// A run of many epochs that is ended after the first.
fn trainer(learning_rate: f64, batch_size: usize) -> Trainer<'static, Sgd> {
    let rule = Sgd { learning_rate, weight_decay: 1e-12, momentum: 0.0, ..Sgd::default() };
    Trainer::new(rule)
        .epochs(1_000_000)
        .batch_size(batch_size)
        .shuffle(false)
        .progress(Progress::Silent)
        .callback(|_: &EpochReport| ControlFlow::Break(()))
}

/// Samples of feature 0 alone, with label 0: the gradient of its weight is 1 in each batch.
fn data() -> Dataset {
    Dataset::new(Csr::from_rows(D, vec![[(0, 1.0)]; N]).unwrap(), vec![0.0; N]).unwrap()
}

fn one_warning<M: Model<Element = f32>>(new: impl Fn() -> M, data: &impl DataSource<f32>) {
    for batch_size in [1, 8, N] {
        for parallel in [Parallel::Sequential, Parallel::Threads(2)] {
            let warnings = |learning_rate: f64| {
                let mut model = new();
                let mut trainer = trainer(learning_rate, batch_size).parallel(parallel);
                trainer.fit(&mut model, data).unwrap().warnings
            };
            // Half a unit in the last place of 1 is 3e-8 below it.
            assert_eq!(warnings(1e-3), Vec::<String>::new());
            let warnings = warnings(2e-8);
            let [warning] = &warnings[..] else { panic!("{batch_size}: {warnings:?}") };
            let start = "parameter `w` mostly does not move: the steps of ";
            assert!(warning.starts_with(start), "{warning}");
        }
    }
}

#[test]
fn n13_a_table_that_does_not_move_has_one_warning_however_it_is_trained() {
    let ones = || Ones::new(dims! { d: D }, Seed(1)).unwrap();
    let unfused = || UnfusedOnes::new(dims! { d: D }, Seed(1)).unwrap();
    one_warning(ones, &data());
    one_warning(unfused, &data());
    let path = std::env::temp_dir().join(format!("nnz-n13-{}.svm", std::process::id()));
    libsvm::write(&path, &data()).unwrap();
    let reader = libsvm::Reader::new().index_base(IndexBase::One).n_features(D);
    one_warning(ones, &Stream::new(reader).file(&path).open().unwrap());
    std::fs::remove_file(&path).unwrap();
}

/// Parameters and outputs, by the steps of an epoch that nobody looks at.
#[test]
fn n13_a_compiled_model_has_the_same_bits_with_and_without_the_check() {
    fn agree<M: Model<Element = f32>>(new: impl Fn() -> M) {
        let rows = (0..N).map(|i| [(i % 3, 0.5), (3, (i as f32).sin())]);
        let labels = (0..N).map(|i| (i as f32).cos()).collect();
        let data = Dataset::new(Csr::from_rows(D, rows).unwrap(), labels).unwrap();
        let bits = |model: &M| {
            let output = model.dense_output(0).map_or(Vec::new(), |view| view.values().to_vec());
            [model.parameters()[0].values(), &output].concat()
        };
        for batch_size in [1, 7, N] {
            let rule =
                Sgd { learning_rate: 0.1, weight_decay: 0.01, momentum: 0.9, ..Sgd::default() };
            let mut trainer = Trainer::new(rule.clone()).decay_all().epochs(1).shuffle(false);
            trainer = trainer.batch_size(batch_size).progress(Progress::Silent);
            let (mut checked, mut model) = (new(), new());
            let mut updater: Updater<Sgd, f32> = trainer.updater(&model).unwrap();
            trainer.fit(&mut checked, &data).unwrap();
            updater.set_records_outputs(false);
            let options = BatchOptions { batch_size, ..BatchOptions::default() };
            let mut batches = data.batches(M::INPUTS, &options).unwrap();
            fit_epoch(&mut model, &mut updater, &mut batches, 0, &mut ()).unwrap();
            assert_eq!(bits(&checked), bits(&model), "{batch_size}");
        }
    }
    agree(|| Ones::new(dims! { d: D }, Seed(1)).unwrap());
    agree(|| UnfusedOnes::new(dims! { d: D }, Seed(1)).unwrap());
}
