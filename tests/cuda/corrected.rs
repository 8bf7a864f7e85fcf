//! Corrected gradients, by those of a snapshot or by derivatives that are kept for each sample, and
//! updaters that take turns, against the same on the CPU.

use crate::device::{gpu, is_real, limit_memory};
use crate::uploads;
use crate::waiting::{StopAfter, close, rule, schedule, trainer, values};
use crate::{Logistic, LogisticOff};
use nnz::core::update_rules::{LazyUpdate, UpdateRule};
use nnz::data::{BatchOptions, Batches, DataSource};
use nnz::model::OnGpu;
use nnz::optimizer::Updater;
use nnz::prelude::*;
use nnz::training::Checkpoints;

graph! {
    /// Numbers of 64 bits.
    model Wide {
        dtype = f64;
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Normal { mean: 0.0, std: 0.3 };
        param v: row_sparse[d, 3] = Normal { mean: 0.0, std: 0.3 };
        param b: dense[1] = Zeros;
        let score = dot(x, w) + pairwise_interaction(x, v) + b;
        loss logistic(score, y);
    }

    /// Linear, so that derivatives can be kept.
    model Line {
        dtype = f64;
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Normal { mean: 0.0, std: 0.3 };
        param b: dense[1] = Zeros;
        loss logistic(dot(x, w) + b, y);
    }

    /// The same with several scores, of which each row has its weight.
    model Classes {
        dtype = f64;
        input x: csr[n, d];
        input importance: dense[n];
        label class: dense<u32>[n];
        param w: row_sparse[d, 3] = Normal { mean: 0.0, std: 0.3 };
        param b: dense[3] = Zeros;
        loss softmax_cross_entropy(dot(x, w) + b, class, importance);
    }

    /// Scores that no single launch computes: of a number that is added and of one that they are
    /// multiplied by.
    model Moved {
        dtype = f64;
        input x: csr[n, d];
        input importance: dense[n];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Normal { mean: 0.0, std: 0.3 };
        param b: dense[1] = Zeros;
        let score = dot(x, w) * 0.5 + b - 0.25;
        output score;
        loss logistic(score, y, importance);
    }

    /// So many classes as it is made for.
    model AnyClasses {
        dtype = f64;
        input x: csr[n, d];
        label class: dense<u32>[n];
        param w: row_sparse[d, c] = Normal { mean: 0.0, std: 0.3 };
        param b: dense[c] = Zeros;
        loss softmax_cross_entropy(dot(x, w) + b, class);
    }
}

fn numbers(data: &Dataset) -> Dataset<f64> {
    let mut text = String::new();
    let options = BatchOptions { batch_size: 1, ..BatchOptions::default() };
    let mut batches = data.batches(Logistic::INPUTS, &options).unwrap();
    while let Some(batch) = batches.next_batch().unwrap() {
        let model = Logistic::new(dims! { d: uploads::COLUMNS }, Seed(3)).unwrap();
        let bound = model.bind(&batch).unwrap();
        text += &format!("{}", bound.y.values()[0]);
        for (column, value) in bound.x.iter_columns().zip(bound.x.values()) {
            text += &format!(" {column}:{value}");
        }
        text += "\n";
    }
    libsvm::Reader::new()
        .element::<f64>()
        .n_features(uploads::COLUMNS)
        .read_bytes("rows", text.as_bytes())
        .unwrap()
}

/// Gradients at a snapshot are taken from those of the model, and their mean is added, on either
/// device.
#[test]
fn corrected_gradients_are_those_of_the_cpu() {
    let data = numbers(&uploads::data());
    let host = Wide::new(dims! { d: uploads::COLUMNS }, Seed(3)).unwrap();
    let decay = Sgd { learning_rate: 0.2, weight_decay: 0.01, ..Sgd::default() };
    let clipped = Sgd { clip_gradient: Some(0.05), ..rule() };
    let dense = Sgd { lazy_update: LazyUpdate::Dense, ..rule() };
    for (rule, schedule) in [
        (decay, Schedule::Constant),
        (rule(), schedule()),
        (clipped, schedule()),
        (dense, schedule()),
    ] {
        let rule = Svrg { update_freq: 2, rule };
        let trainer = || trainer(rule.clone()).schedule(schedule.clone());
        let (mut on_cpu, mut on_gpu) = (host.clone(), OnGpu::new(&host, &gpu()).unwrap());
        let mut again = on_gpu.clone();
        trainer().fit(&mut on_cpu, &data).unwrap();
        trainer().fit(&mut on_gpu, &data).unwrap();
        close(&values(&on_gpu), &values(&on_cpu), 1e-11, "svrg");
        trainer().fit(&mut again, &data).unwrap();
        assert_eq!(values(&again), values(&on_gpu), "the same bits again");
    }
}

/// The rows of some data with a class and a weight for each.
fn with_classes(data: &Dataset<f64>) -> Dataset<f64> {
    let Some(features) = data.features() else { panic!("the data has features") };
    let rows = 0..data.n_rows();
    let importance = rows.clone().map(|row| 0.5 + (row % 4) as f64).collect();
    let classes = rows.map(|row| (row * row % 3) as u32).collect::<Vec<_>>();
    Dataset::builder()
        .input("x", features.clone())
        .input("importance", Dense::new([data.n_rows()], importance).unwrap())
        .label("class", Dense::new([data.n_rows()], classes).unwrap())
        .build()
        .unwrap()
}

/// The rows with a label and a weight for each; some have none.
fn with_weights(data: &Dataset<f64>) -> Dataset<f64> {
    let Some(features) = data.features() else { panic!("the data has features") };
    let rows = 0..data.n_rows();
    let importance = rows.clone().map(|row| (row % 5) as f64 / 2.0).collect();
    let labels = rows.map(|row| (row % 2) as f64).collect();
    Dataset::builder()
        .input("x", features.clone())
        .input("importance", Dense::new([data.n_rows()], importance).unwrap())
        .label("y", Dense::new([data.n_rows(), 1], labels).unwrap())
        .build()
        .unwrap()
}

/// Trains on both devices, which give the same, whatever the rest of an epoch is; with the last
/// batch filled up and larger ones a sample comes twice.
fn hold<M: Model<Element = f64>, R: UpdateRule>(host: &M, data: &Dataset<f64>, rule: &R) {
    for (batch_size, last_batch, schedule) in [
        (12, LastBatch::Short, Schedule::Constant),
        (data.n_rows() * 2 / 3, LastBatch::RollOver, schedule()),
        (data.n_rows() * 3 / 2, LastBatch::Pad, Schedule::Constant),
    ] {
        let trainer = || {
            let trainer = trainer(rule.clone()).schedule(schedule.clone());
            trainer.batch_size(batch_size).last_batch(last_batch)
        };
        let (mut on_cpu, mut on_gpu) = (host.clone(), OnGpu::try_new(host, &gpu()).unwrap());
        assert!(on_cpu.corrects_scores() && on_gpu.corrects_scores());
        let mut again = on_gpu.clone();
        let expected = trainer().fit(&mut on_cpu, data).unwrap();
        let found = trainer().fit(&mut on_gpu, data).unwrap();
        for (found, expected) in found.epochs.iter().zip(&expected.epochs) {
            assert!((found.loss - expected.loss).abs() < 1e-12, "{found:?} {expected:?}");
        }
        close(&values(&on_gpu), &values(&on_cpu), 1e-11, R::NAME);
        trainer().fit(&mut again, data).unwrap();
        assert_eq!(values(&again), values(&on_gpu), "the same bits again");
    }
}

#[test]
fn derivatives_are_kept_as_on_the_cpu() {
    let data = numbers(&uploads::data());
    let classes = with_classes(&data);
    let decay = Sgd { learning_rate: 0.2, weight_decay: 0.01, ..Sgd::default() };
    for rule in [decay, rule()] {
        let line = Line::new(dims! { d: uploads::COLUMNS }, Seed(3)).unwrap();
        hold(&line, &data, &Svrg { update_freq: 2, rule: rule.clone() });
        hold(&line, &data, &Saga { rule: rule.clone() });
        let several = Classes::new(dims! { d: uploads::COLUMNS }, Seed(3)).unwrap();
        hold(&several, &classes, &Svrg { update_freq: 1, rule: rule.clone() });
        hold(&several, &classes, &Saga { rule });
    }
}

/// The same numbers are kept of models that are launched value by value, so that runs go on from
/// one device to the other.
#[test]
fn derivatives_are_kept_where_each_value_has_its_launch() {
    let data = numbers(&uploads::data());
    let classes = with_classes(&data);
    let weighted = with_weights(&data);
    for rule in [Sgd { learning_rate: 0.2, weight_decay: 0.01, ..Sgd::default() }, rule()] {
        let moved = Moved::new(dims! { d: uploads::COLUMNS }, Seed(3)).unwrap();
        hold(&moved, &weighted, &Svrg { update_freq: 2, rule: rule.clone() });
        hold(&moved, &weighted, &Saga { rule: rule.clone() });
        let any = AnyClasses::new(dims! { d: uploads::COLUMNS, c: 3 }, Seed(3)).unwrap();
        hold(&any, &classes, &Svrg { update_freq: 1, rule: rule.clone() });
        hold(&any, &classes, &Saga { rule: rule.clone() });
        let mut there = OnGpu::new(&any, &gpu()).unwrap();
        trainer(Saga { rule }).fit(&mut there, &classes).unwrap();
        let kernels = there.kernels();
        let is_corrected = |line: &str| line.contains("gradient") && line.contains("correct_rows");
        assert!(kernels.lines().any(is_corrected), "{kernels}");
    }
}

/// A model that says `fuse = off` keeps none on either device.
#[test]
fn saga_is_refused_by_name_where_none_are_kept() {
    let data = uploads::data();
    let host = LogisticOff::new(dims! { d: uploads::COLUMNS }, Seed(3)).unwrap();
    let (mut here, mut there) = (host.clone(), OnGpu::new(&host, &gpu()).unwrap());
    let error = trainer(Saga { rule: rule() }).fit(&mut there, &data).unwrap_err().to_string();
    assert!(error.contains("`LogisticOff`") && error.contains("use `Svrg`"), "{error}");
    let on_cpu = trainer(Saga { rule: rule() }).fit(&mut here, &data).unwrap_err().to_string();
    assert_eq!(error, on_cpu);
}

/// Runs that are saved within an epoch and resumed have the bits of those that are not ended, and
/// the host goes on with what a GPU has kept.
#[test]
fn a_run_goes_on_with_the_derivatives_that_it_kept() {
    let data = numbers(&uploads::data());
    let weighted = with_weights(&data);
    let line = Line::new(dims! { d: uploads::COLUMNS }, Seed(3)).unwrap();
    let moved = Moved::new(dims! { d: uploads::COLUMNS }, Seed(3)).unwrap();
    resume(&line, &data, Saga { rule: rule() });
    resume(&moved, &weighted, Saga { rule: rule() });
    resume(&line, &data, Svrg { update_freq: 2, rule: rule() });
    resume(&moved, &weighted, Svrg { update_freq: 2, rule: rule() });
}

fn resume<M: Model<Element = f64>, R: UpdateRule>(host: &M, data: &Dataset<f64>, rule: R) {
    let file = format!("nnz-corrected-{}-{}-{}.safetensors", M::NAME, R::NAME, std::process::id());
    let path = std::env::temp_dir().join(file);
    let on_gpu = || OnGpu::try_new(host, &gpu()).unwrap();
    let saves = || Checkpoints::new(&path).every_batches(5);
    let (mut whole, mut resumed, mut on_host) = (on_gpu(), on_gpu(), host.clone());
    trainer(rule.clone()).callback(saves()).fit(&mut whole, data).unwrap();
    let stopped = || {
        let mut trainer = trainer(rule.clone()).callback(saves()).callback(StopAfter(5));
        trainer.fit(&mut on_gpu(), data).unwrap();
    };
    stopped();
    trainer(rule.clone()).callback(saves()).resume(&mut resumed, data, &path).unwrap();
    assert_eq!(values(&resumed), values(&whole));
    stopped();
    trainer(rule.clone()).resume(&mut on_host, data, &path).unwrap();
    close(&values(&on_host), &values(&whole), 1e-11, "resumed on the host");
    std::fs::remove_file(&path).unwrap();
}

/// A first step that lacks memory after its derivatives were exchanged leaves none behind.
#[test]
fn a_step_that_fails_exchanges_nothing() {
    if is_real() {
        return;
    }
    let data = numbers(&uploads::data());
    let host = Line::new(dims! { d: uploads::COLUMNS }, Seed(3)).unwrap();
    let trainer = || trainer(Saga { rule: rule() }).batch_size(data.n_rows());
    let mut whole = OnGpu::new(&host, &gpu()).unwrap();
    let mut updater = trainer().updater(&whole).unwrap();
    trainer().fit_epochs(&mut whole, &mut updater, &data, 0..2).unwrap();
    let mut late = 0;
    // The smallest are too little for what is kept, others for the update alone, which comes after
    // the derivatives.
    for limit in (1..60).map(|count| 64 * count) {
        let mut model = OnGpu::new(&host, &gpu()).unwrap();
        let mut updater = trainer().updater(&model).unwrap();
        // There is room for a batch.
        let options = BatchOptions { batch_size: data.n_rows(), ..BatchOptions::default() };
        let mut batches = data.batches(Line::INPUTS, &options).unwrap();
        let batch = batches.next_batch().unwrap().unwrap();
        let batch = model.bind(&batch).unwrap();
        model.loss(&batch).unwrap();
        model.loss(&batch).unwrap();
        limit_memory(limit);
        let ended = trainer().fit_epochs(&mut model, &mut updater, &data, 0..1);
        limit_memory(usize::MAX);
        if let Err(error) = ended
            && updater.clock() == 0
        {
            late += u32::from(error.to_string().contains("the entries of a csr"));
            trainer().fit_epochs(&mut model, &mut updater, &data, 0..2).unwrap();
            assert_eq!(values(&model), values(&whole), "{limit} bytes");
        }
    }
    assert!(late > 0, "no limit was met that late");
}

/// Steps of three updaters in turns: with no states, with one for each weight and with two.
#[test]
fn updaters_of_one_model_keep_their_own_states() {
    fn steps<M: Model<Element = f32>>(mut model: M, data: &Dataset) -> Vec<f64> {
        let plain = Sgd { learning_rate: 0.05, ..Sgd::default() };
        let mut plain = Updater::for_model(plain, &model).unwrap();
        let mut momentum = Updater::for_model(rule(), &model).unwrap();
        let lazy_update = LazyUpdate::Touched;
        let adam = Adam { learning_rate: 0.02, lazy_update, ..Adam::default() };
        let mut adam = Updater::for_model(adam, &model).unwrap();
        let options = BatchOptions { batch_size: 8, ..BatchOptions::default() };
        let mut batches = data.batches(M::INPUTS, &options).unwrap();
        let mut step = 0;
        while let Some(batch) = batches.next_batch().unwrap() {
            let batch = model.bind(&batch).unwrap();
            match step % 4 {
                0 => model.train_step(&batch, &mut momentum).unwrap(),
                1 => model.train_step(&batch, &mut adam).unwrap(),
                2 => model.train_step(&batch, &mut plain).unwrap(),
                // Of no other updater are the states brought back.
                _ => {
                    momentum.flush_model(&mut model).unwrap();
                    model.train_step(&batch, &mut momentum).unwrap()
                }
            };
            step += 1;
        }
        assert!(step > 8);
        momentum.flush_model(&mut model).unwrap();
        adam.flush_model(&mut model).unwrap();
        values(&model)
    }
    let data = uploads::data();
    let host = Logistic::new(dims! { d: uploads::COLUMNS }, Seed(3)).unwrap();
    let there = OnGpu::new(&host, &gpu()).unwrap();
    close(&steps(there, &data), &steps(host, &data), 1e-5, "in turns");
}
