//! From a graph to a trained, saved and loaded model, through the facade.
mod hogwild;
mod resumed;
mod spans;
mod variance_reduction;
mod workers;

use nnz::data::stream::Stream;
use nnz::data::{
    BatchOptions, Batches, ClassWeights, DataSource, Delimited, Hashing, TextReader, synthetic,
};
use nnz::metric::PrAuc;
use nnz::prelude::*;
use nnz::training::{Monitor, ParameterReport, ScoreReport};

graph! {
    /// Logistic regression.
    pub model Logistic {
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Normal { mean: 0.0, std: 0.01 };
        param b: dense[1] = Zeros;
        let score = dot(x, w) + b;
        loss logistic(score, y);
        output probability = sigmoid(score);
    }

    /// The same names and shapes, another graph.
    pub model Squared {
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Normal { mean: 0.0, std: 0.01 };
        param b: dense[1] = Zeros;
        let score = dot(x, w) + b;
        loss squared_error(score, y);
        output score;
    }

    /// Squared error, in `f64`.
    pub model Wide {
        dtype = f64;
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Zeros;
        loss squared_error(dot(x, w), y);
    }

    /// Softmax regression.
    pub model Softmax {
        input x: csr[n, d];
        label y: dense<u32>[n];
        param w: row_sparse[d, k] = Zeros;
        let scores = dot(x, w);
        loss softmax_cross_entropy(scores, y);
        output probabilities = softmax(scores);
    }
}

fn data() -> Dataset {
    synthetic::click_log(400, 500, 6, 1).unwrap()
}

fn trainer() -> Trainer<'static, Sgd> {
    let rule = Sgd { learning_rate: 0.1, momentum: 0.5, weight_decay: 1e-4, ..Sgd::default() };
    Trainer::new(rule).batch_size(7).epochs(5).progress(Progress::Silent)
}

fn model() -> Logistic {
    Logistic::new(dims! { d: 500 }, Seed(3)).unwrap()
}

/// One batch an epoch: what is told within it is the gradient at the parameters that come out.
#[test]
fn norms_of_gradients_are_told_and_change_nothing() {
    let data = data();
    let rule = Sgd { learning_rate: 0.1, ..Sgd::default() };
    let trainer =
        || Trainer::new(rule.clone()).batch_size(400).epochs(3).progress(Progress::Silent);
    let (mut plain, mut watched, mut told) = (model(), model(), Vec::new());
    trainer().fit(&mut plain, &data).unwrap();
    let monitor = Monitor::new(|_, parameters: &[ParameterReport]| {
        told.push([&parameters[0], &parameters[1]].map(|parameter| parameter.gradient_norm));
    });
    let monitor = monitor.every_batches(1).gradients();
    trainer().callback(monitor).fit(&mut watched, &data).unwrap();
    assert_eq!((watched.w.values(), watched.b.values()), (plain.w.values(), plain.b.values()));

    let options = BatchOptions { batch_size: 400, ..BatchOptions::default() };
    let mut batches = data.batches(Logistic::INPUTS, &options).unwrap();
    let batch = batches.next_batch().unwrap().unwrap();
    let bound = plain.bind(&batch).unwrap();
    plain.loss_and_grads(&bound).unwrap();
    let norm = |values: &[f32]| values.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>().sqrt();
    let expected = [norm(plain.gradients().w.values()), norm(plain.gradients().b.values())];
    // Within each epoch, and after it, where there is no batch.
    assert_eq!((told.len(), told[5]), (6, [None; 2]));
    for (found, expected) in told[4].iter().zip(expected) {
        // The batch has another order.
        assert!((found.unwrap() - expected).abs() < 1e-6 * expected, "{found:?} {expected}");
    }
}

/// Of the batch that was learnt from last, at the parameters that came of it, however many steps
/// are made in a call.
#[test]
fn gradients_are_those_of_the_last_batch() {
    let data = data();
    let rule = Sgd { learning_rate: 0.1, ..Sgd::default() };
    let told = |with_metric: bool| {
        let mut told = Vec::new();
        let monitor = Monitor::new(|_, parameters: &[ParameterReport]| {
            told.extend(parameters[0].gradient_norm);
        });
        let monitor = monitor.every_batches(10).gradients();
        let mut trainer = Trainer::new(rule.clone()).epochs(2).progress(Progress::Silent);
        trainer = if with_metric { trainer.metric(LogLoss) } else { trainer };
        trainer.callback(monitor).fit(&mut model(), &data).unwrap();
        told
    };
    let (many, one_by_one) = (told(false), told(true));
    assert_eq!(many.len(), 80);
    for (many, one) in many.iter().zip(&one_by_one) {
        assert!((many - one).abs() < 1e-5 * one, "{many} {one}");
    }
}

#[test]
fn fitting_improves_and_everything_is_reported() {
    let (train, test) = data().split(0.75, 5).unwrap();
    let mut model = model();
    let mut trainer = trainer().metric(LogLoss).metric(Accuracy).metric(Auc).evaluation(&test);
    let before = trainer.score(&mut model, &train).unwrap();
    let report = trainer.fit(&mut model, &train).unwrap();
    let after = trainer.score(&mut model, &train).unwrap();
    assert_eq!(report.epochs.len(), 5);
    assert!(after.loss < 0.8 * before.loss, "{} {}", before.loss, after.loss);
    assert!(after.metric("auc").unwrap() > 0.8, "{after}");
    // The loss of the scores is the log loss of the probabilities.
    assert!((after.loss - after.metric("log_loss").unwrap()).abs() < 1e-5);
    let last = report.last().unwrap();
    assert!(last.evaluation.as_ref().unwrap().metric("accuracy").is_some());
    assert_eq!(last.n_rows, 300);
}

#[test]
fn predictions_need_no_labels() {
    let data = data();
    let mut model = model();
    let trainer = trainer();
    let with = trainer.predict(&mut model, &data).unwrap();
    let features = Dataset::features_only(data.features().unwrap().clone()).unwrap();
    let without = trainer.predict(&mut model, &features).unwrap();
    assert_eq!(*with.shape(), [400, 1].into());
    assert_eq!(with.values(), without.values());
    assert!(with.values().iter().all(|p| *p > 0.0 && *p < 1.0));
}

/// Not after the first epoch, which would be lost.
#[test]
fn data_to_evaluate_on_is_checked_before_the_first_step() {
    let wider = nnz::data::synthetic::click_log(10, 501, 8, 3).unwrap();
    let mut trained = model();
    let error = trainer().evaluation(&wider).fit(&mut trained, &data()).unwrap_err().to_string();
    assert!(error.contains("501") && error.contains("500"), "{error}");
    assert_eq!(trained.w.values(), model().w.values());
}

#[test]
fn the_seed_decides_everything() {
    let data = data();
    let run = |order, seed| {
        let mut model = Logistic::new(dims! { d: 500 }, Seed(seed)).unwrap();
        trainer().seed(order).fit(&mut model, &data).unwrap();
        model.w.values().iter().map(|w| w.to_bits()).collect::<Vec<_>>()
    };
    assert_eq!(run(1, 1), run(1, 1));
    assert_ne!(run(1, 1), run(2, 1));
    assert_ne!(run(1, 1), run(1, 2));
}

#[test]
fn last_batches() {
    let data = data();
    // 400 rows in batches of 7: 57 and one row.
    for (last_batch, rows) in
        [(LastBatch::Short, 400), (LastBatch::Discard, 399), (LastBatch::Pad, 400)]
    {
        let mut trainer = trainer().last_batch(last_batch).epochs(1);
        let report = trainer.fit(&mut model(), &data).unwrap();
        assert_eq!(report.last().unwrap().n_rows, rows, "{last_batch:?}");
    }
}

#[test]
fn saved_models_are_loaded_and_other_graphs_refused() {
    let data = data();
    let path = std::env::temp_dir().join(format!("nnz-{}.safetensors", std::process::id()));
    let mut trained = model();
    let mut trainer = trainer();
    trainer.fit(&mut trained, &data).unwrap();
    checkpoint::save(&trained, &path).unwrap();

    let mut loaded = Logistic::new(dims! { d: 500 }, Seed(9)).unwrap();
    assert_ne!(loaded.w.values(), trained.w.values());
    checkpoint::load(&mut loaded, &path).unwrap();
    assert_eq!(loaded.w.values(), trained.w.values());
    assert_eq!(loaded.b.values(), trained.b.values());
    assert_eq!(
        trainer.score(&mut loaded, &data).unwrap(),
        trainer.score(&mut trained, &data).unwrap()
    );

    let mut other = Squared::new(dims! { d: 500 }, Seed(9)).unwrap();
    let before = other.w.values().to_vec();
    let refused = checkpoint::load(&mut other, &path).unwrap_err().to_string();
    assert!(refused.contains("Logistic") && refused.contains("Squared"), "{refused}");
    assert_eq!(other.w.values(), before);

    let mut narrow = Logistic::new(dims! { d: 499 }, Seed(9)).unwrap();
    let refused = checkpoint::load(&mut narrow, &path).unwrap_err().to_string();
    assert!(
        refused.contains('w') && refused.contains("499") && refused.contains("500"),
        "{refused}"
    );
    std::fs::remove_file(path).unwrap();
}

#[test]
fn classes_are_ids() {
    let text = b"3 1:1\n1 2:1\n7 3:1\n3 1:2\n1 2:2\n7 3:2\n";
    let data: Dataset = libsvm::Reader::new().read_bytes("classes", text).unwrap();
    let (data, classes) = data.into_classes().unwrap();
    assert_eq!(classes.labels(), [1.0, 3.0, 7.0]);
    let mut model = Softmax::new(dims! { d: 3, k: classes.len() }, Seed(0)).unwrap();
    let rule = Sgd { learning_rate: 0.5, ..Sgd::default() };
    let mut trainer = Trainer::new(rule).epochs(20).metric(Accuracy).progress(Progress::Silent);
    trainer.fit(&mut model, &data).unwrap();
    assert_eq!(trainer.score(&mut model, &data).unwrap().metric("accuracy"), Some(1.0));
    // A model for fewer classes says which one does not fit.
    let mut small = Softmax::new(dims! { d: 3, k: 2 }, Seed(0)).unwrap();
    let error = trainer.fit(&mut small, &data).unwrap_err().to_string();
    assert!(error.contains("`y` holds id 2 in row 0") && error.contains("below 2"), "{error}");
    // Labels that were not seen in training are refused.
    let unseen: Dataset = libsvm::Reader::new().read_bytes("unseen", b"5 1:1\n").unwrap();
    let error = unseen.with_classes(&classes).unwrap_err().to_string();
    assert!(error.contains('5'), "{error}");
}

#[test]
fn labels_must_suit_the_loss() {
    let text = b"2 1:1\n0 2:1\n";
    let data: Dataset = libsvm::Reader::new().n_features(500).read_bytes("labels", text).unwrap();
    let error = trainer().fit(&mut model(), &data).unwrap_err().to_string();
    assert!(error.contains('2'), "{error}");
}

#[test]
fn a_rate_that_is_too_large_is_reported_as_divergence() {
    let data = data();
    let mut model = Squared::new(dims! { d: 500 }, Seed(0)).unwrap();
    let rule = Sgd { learning_rate: 1e6, ..Sgd::default() };
    let mut trainer = Trainer::new(rule).epochs(50).progress(Progress::Silent);
    let error = trainer.fit(&mut model, &data).unwrap_err().to_string();
    assert!(error.contains("epoch") && error.contains("batch"), "{error}");
}

/// The gradients of all parameters are made shorter together: expected by hand from the gradients
/// of the loss.
#[test]
fn gradients_are_clipped_by_their_norm_together() {
    use nnz::data::{BatchOptions, Batches, DataSource};
    let data = data();
    let mut batches = data
        .batches(Logistic::INPUTS, &BatchOptions { batch_size: 7, ..Default::default() })
        .unwrap();
    let batch = batches.next_batch().unwrap().unwrap();
    let rule = Sgd { learning_rate: 0.5, ..Sgd::default() };
    let values = |model: &Logistic| [model.w.values(), model.b.values()].concat();
    for max_norm in [1e-3f64, 1e3] {
        let mut expected = model();
        let bound = expected.bind(&batch).unwrap();
        expected.loss_and_grads(&bound).unwrap();
        let w = expected.gradients().w.to_dense().unwrap();
        let grads = [w.values(), expected.gradients().b.values()].concat();
        let norm = grads.iter().map(|g| f64::from(*g).powi(2)).sum::<f64>().sqrt();
        assert!(norm > 1e-2 && norm < 1e2, "{norm}");
        let factor = (max_norm / norm).min(1.0);
        let mut clipped = model();
        let mut updater = nnz::optimizer::Updater::for_model(rule.clone(), &clipped).unwrap();
        clipped.clipped_step(&bound, &mut updater, max_norm).unwrap();
        let (before, after) = (values(&expected), values(&clipped));
        for ((before, after), grad) in before.iter().zip(&after).zip(&grads) {
            let by_hand = f64::from(*before) - 0.5 * factor * f64::from(*grad);
            assert!((f64::from(*after) - by_hand).abs() < 1e-7, "{after} {by_hand}");
        }
    }
    // Squares beyond `f64`.
    let data = Dataset::new(Csr::from_rows(2, [vec![(1, 1e160)]]).unwrap(), vec![1.0]).unwrap();
    let mut clipped = Wide::new(dims! { d: 2 }, Seed(0)).unwrap();
    let quarter = Trainer::new(Sgd { learning_rate: 0.25, ..Sgd::default() }).epochs(1);
    quarter.clip_norm(2.0).progress(Progress::Silent).fit(&mut clipped, &data).unwrap();
    assert_eq!(clipped.w.values(), [0.0, 0.5]);
    // A norm that nothing reaches changes nothing but the order of additions.
    let data = self::data();
    let (mut free, mut bounded) = (model(), model());
    trainer().fit(&mut free, &data).unwrap();
    trainer().clip_norm(1e6).fit(&mut bounded, &data).unwrap();
    for (a, b) in values(&free).iter().zip(&values(&bounded)) {
        assert!((a - b).abs() < 1e-5);
    }
    let error = trainer().clip_norm(0.0).fit(&mut bounded, &data).unwrap_err();
    assert_eq!(error.to_string(), "`clip_norm` is 0, but must be positive");
}

#[test]
fn a_parameter_has_scales_of_its_own() {
    let data = data();
    let fitted = |trainer: Trainer<'_, Sgd>| {
        let mut model = model();
        trainer.epochs(1).fit(&mut model, &data).map(|_| model)
    };
    let still = fitted(trainer().learning_rate_scale("b", 0.0)).unwrap();
    assert_eq!(still.b.values(), [0.0]);
    assert_ne!(fitted(trainer()).unwrap().b.values(), [0.0]);
    let refused = |trainer| fitted(trainer).map(drop).unwrap_err().to_string();
    let message = refused(trainer().learning_rate_scale("b", f64::NAN));
    assert_eq!(
        message,
        "parameter `b`: the scale of its learning rate is NaN, but must be at least 0 and finite"
    );
    let message = refused(trainer().weight_decay_scale("v", 0.5));
    assert!(message.contains("no parameter `v`"), "{message}");
}

graph! {
    model Weighted {
        input x: csr[n, d];
        label y: dense[n, 1];
        label weight: dense[n];
        param w: row_sparse[d, 1] = Zeros;
        let score = dot(x, w);
        loss logistic(score, y, weight = weight);
        output probability = sigmoid(score);
    }
}

/// A column of a file weighs rows in losses and in metrics, in memory and as a stream; what comes
/// of it is what comes of weights that are given.
#[test]
fn weights_of_a_file() {
    let path = std::env::temp_dir().join(format!("nnz-weights-{}.csv", std::process::id()));
    let rows = [(1, 0.5, "a b"), (0, 2.0, "a"), (1, 0.0, "c"), (0, 1.0, "b c"), (1, 3.0, "b")];
    let line = |(y, weight, words): (i32, f64, &str)| format!("{y},{weight},{words}\n");
    std::fs::write(&path, rows.map(line).concat()).unwrap();
    let format = Delimited::csv(Hashing::new(4).unwrap()).label("y").weight("weight");
    let format = format.categorical("words");
    let memory: Dataset = TextReader::new(format.clone()).read_path(&path).unwrap();
    let stream = Stream::new(format).file(&path).buffer(1 << 20).open().unwrap();
    // The same rows with weights of another source.
    let given = memory.clone().with_weights(vec![1.0; 5]).unwrap();
    let features = memory.features().unwrap().clone();
    let labels = rows.map(|(y, ..)| y as f32).to_vec();
    let plain = Dataset::new(features, labels).unwrap();
    let weights = rows.map(|(_, weight, _)| weight as f32).to_vec();
    let plain = plain.with_weights(weights).unwrap();
    fn fitted(data: &impl DataSource<f32>) -> (Vec<f32>, ScoreReport) {
        let mut model = Weighted::new(dims! { d: 16 }, Seed(1)).unwrap();
        let rule = Sgd { learning_rate: 0.5, ..Sgd::default() };
        let trainer = Trainer::new(rule).batch_size(2).epochs(4).shuffle(false);
        let mut trainer = trainer.metric(LogLoss).metric(Auc).progress(Progress::Silent);
        trainer.fit(&mut model, data).unwrap();
        let score = trainer.score(&mut model, data).unwrap();
        (model.w.values().to_vec(), score)
    }
    let expected = fitted(&plain);
    assert_ne!(fitted(&plain.with_weights(vec![0.5, 1.0, 2.0, 4.0, 8.0]).unwrap()), expected);
    assert_eq!(fitted(&memory), expected);
    assert_eq!(fitted(&given), expected);
    assert_eq!(fitted(&stream), expected);
    std::fs::remove_file(path).unwrap();
}

/// A row of weight 2 is learnt from as two rows are, and measured so.
#[test]
fn weights_of_rows_and_classes() {
    let text = b"1 1:1 2:1\n-1 2:1 3:1\n-1 1:1 3:1\n";
    let data: Dataset = libsvm::Reader::new().read_bytes("rows", text).unwrap();
    let doubled = b"1 1:1 2:1\n1 1:1 2:1\n-1 2:1 3:1\n-1 1:1 3:1\n";
    let doubled: Dataset = libsvm::Reader::new().read_bytes("rows", doubled).unwrap();
    let fitted = |data: &Dataset, learning_rate| {
        let mut model = Weighted::new(dims! { d: 3 }, Seed(1)).unwrap();
        let rule = Sgd { learning_rate, ..Sgd::default() };
        let trainer = Trainer::new(rule).batch_size(4).epochs(3).shuffle(false);
        let mut trainer = trainer.metric(LogLoss).metric(PrAuc).progress(Progress::Silent);
        trainer.fit(&mut model, data).unwrap();
        let score = trainer.score(&mut model, data).unwrap();
        (model.w.values().to_vec(), score)
    };
    // The mean is over three rows here and over four there.
    let classes = ClassWeights::Given(vec![1.0, 2.0]);
    let (weighted, score) = fitted(&data.with_class_weights(&classes).unwrap(), 0.3);
    let (expected, same) = fitted(&doubled.with_weights(vec![1.0; 4]).unwrap(), 0.4);
    for (weighted, expected) in weighted.iter().zip(&expected) {
        assert!((weighted - expected).abs() < 1e-6, "{weighted} {expected}");
    }
    for metric in ["log_loss", "pr_auc"] {
        let (a, b) = (score.metric(metric).unwrap(), same.metric(metric).unwrap());
        assert!((a - b).abs() < 1e-6, "{metric} {a} {b}");
    }
    assert!((score.loss * 3.0 - same.loss * 4.0).abs() < 1e-5);
}

/// On a shuffled stream as well, whether its rows were counted when it was opened or are when a run
/// begins; and who has read it before does not matter.
#[test]
fn variance_reduction_on_a_stream() {
    use nnz::data::stream::Stream;
    let path = std::env::temp_dir().join(format!("nnz-reduced-{}.svm", std::process::id()));
    libsvm::write(&path, &data()).unwrap();
    let reader = |base| libsvm::Reader::new().index_base(base).n_features(500);
    let open = |base| Stream::new(reader(base)).file(&path).open().unwrap();
    let rule = || Svrg { update_freq: 2, rule: Sgd { learning_rate: 0.1, ..Sgd::default() } };
    let trainer = |batch| Trainer::new(rule()).batch_size(batch).progress(Progress::Silent);
    for (base, batch) in
        [(IndexBase::Detect, 1), (IndexBase::Detect, 16), (IndexBase::One, 1), (IndexBase::One, 16)]
    {
        let mut whole = model();
        let report = trainer(batch).epochs(4).fit(&mut whole, &open(base)).unwrap();
        assert!(report.epochs[3].loss < report.epochs[0].loss, "{base:?} {batch}");
        let (stream, mut parts) = (open(base), model());
        let mut updater = trainer(batch).updater(&parts).unwrap();
        for epoch in 0..4 {
            let epochs = epoch..epoch + 1;
            trainer(batch).fit_epochs(&mut parts, &mut updater, &stream, epochs).unwrap();
        }
        assert_eq!(parts.w.values(), whole.w.values(), "{base:?} {batch}");
        let mut again = model();
        trainer(batch).epochs(4).fit(&mut again, &stream).unwrap();
        assert_eq!(again.w.values(), whole.w.values(), "{base:?} {batch}");
    }
    let mut by_saga = model();
    let saga = Saga { rule: Sgd { learning_rate: 0.1, ..Sgd::default() } };
    let mut trainer = Trainer::new(saga).epochs(4).progress(Progress::Silent);
    let report = trainer.fit(&mut by_saga, &open(IndexBase::One)).unwrap();
    assert!(report.epochs[3].loss < report.epochs[0].loss);
    std::fs::remove_file(path).unwrap();
}
