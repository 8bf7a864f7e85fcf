//! Runs without finite numbers or without a value of a metric: errors that say why, and nothing
//! saved. The loss of batches that are filled up.

use super::*;
use std::path::PathBuf;

/// Samples of one feature, each in a column of its own.
fn labelled<T: Float>(features: &[f64], labels: &[f64]) -> Dataset<T> {
    let of = |values: &[f64]| values.iter().map(|value| T::of(*value)).collect::<Vec<_>>();
    let rows = of(features).into_iter().enumerate().map(|(row, value)| [(row % D, value)]);
    Dataset::new(Csr::from_rows(D, rows).unwrap(), of(labels)).unwrap()
}

fn file(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("nnz-{name}-{}", std::process::id()))
}

#[test]
fn n6_a_metric_without_a_value_ends_the_first_epoch_and_nothing_is_saved() {
    let (train, one_class) = (data::<f64>(20), labelled::<f64>(&[1.0; 4], &[1.0; 4]));
    let files = [file("n6-best"), file("n6-run")];
    let mut model = Linear::<f64>::new(D);
    let mut trainer = quiet(sgd(0.01, 0.0))
        .epochs(5)
        .metric(Auc)
        .evaluation(&one_class)
        .callback(EarlyStopping::patience(2).watch(Watch::largest("auc")))
        .callback(BestModel::new(&files[0]).watch(Watch::largest("auc")))
        .callback(Checkpoints::new(&files[1]));
    let error = trainer.fit(&mut model, &train).unwrap_err().to_string();
    assert_eq!(
        error,
        "metric `auc` has no value: the evaluation data has no negative sample: no label is below 1/2"
    );
    assert!(files.iter().all(|file| !file.exists()));
    // So of the training data, but not of a piece of it.
    let mut trainer = quiet(sgd(0.01, 0.0)).epochs(5).metric(Auc);
    let error = trainer.fit(&mut model, &one_class).unwrap_err().to_string();
    assert!(error.contains("the training data has no negative sample"), "{error}");
    let error = trainer.score(&mut model, &one_class).unwrap_err().to_string();
    assert!(error.contains("metric `auc` has no value: the data has no negative"), "{error}");
    let mut updater = trainer.updater(&model).unwrap();
    let report = trainer.partial_fit(&mut model, &mut updater, &one_class).unwrap();
    assert!(report.metric("auc").unwrap().is_nan());
    let mut trainer = trainer.callback(EarlyStopping::patience(2).watch(Watch::largest("auc")));
    let error = trainer.partial_fit(&mut model, &mut updater, &one_class).unwrap_err();
    assert!(error.to_string().starts_with("metric `auc` is not a number after epoch 1"), "{error}");
}

#[test]
fn n7_an_evaluation_that_is_not_finite_ends_the_run_and_nothing_is_saved() {
    let features = [1e30; 6];
    let data = labelled::<f32>(&features, &[1.0, 0.0, 1.0, 0.0, 1.0, 0.0]);
    let saved = file("n7-best");
    let mut model = Linear::<f32>::new(D);
    // One step, whose loss is finite; the weights that it gives are not for these features.
    let mut trainer = quiet(sgd(0.1, 0.0)).batch_size(6).epochs(1).evaluation(&data);
    trainer = trainer.callback(BestModel::new(&saved)).callback(Checkpoints::new(&saved));
    let error = trainer.fit(&mut model, &data).unwrap_err().to_string();
    assert!(
        error.starts_with("the loss on the evaluation data is inf in samples 0 to 5"),
        "{error}"
    );
    assert!(!saved.exists());
    assert!(trainer.score(&mut model, &data).is_err());
}

/// Nobody evaluates: the one step that is made has a loss that is finite.
#[test]
fn n7_a_model_that_is_not_finite_is_not_saved() {
    let data = labelled::<f32>(&[1e30; 3], &[1e10; 3]);
    let saved = [file("n7-model"), file("n7-run")];
    for (run, path) in saved.iter().enumerate() {
        let mut trainer = quiet(sgd(1.0, 0.0)).batch_size(3).epochs(1);
        trainer = match run {
            0 => trainer.callback(BestModel::new(path)),
            _ => trainer.callback(Checkpoints::new(path)),
        };
        let error = trainer.fit(&mut Linear::<f32>::new(D), &data).unwrap_err().to_string();
        assert!(error.starts_with("parameter `w` holds inf in row 0, so that"), "{error}");
        assert!(!path.exists());
    }
}

#[test]
fn n11_features_that_overflow_are_named_and_not_the_learning_rate() {
    let features = [1.0, 1.0, 1.0, 1e30, 1.0, 1.0];
    let data = labelled::<f32>(&features, &[1.0, 0.0, 1.0, 1.0, 1.0, 0.0]);
    let mut model = Linear::<f32>::new(D);
    for batch_size in [1, 3] {
        let mut trainer = quiet(sgd(0.1, 0.0)).batch_size(batch_size).shuffle(false).epochs(2);
        trainer = trainer.leaves(1);
        let error = trainer.fit(&mut model, &data).unwrap_err().to_string();
        assert!(error.contains("sample 3 (numbered from 0) holds 1"), "{error}");
        assert!(error.contains("in column 3 of `x`, whose square is beyond `f32`"), "{error}");
        assert!(!error.contains("learning rate"), "{error}");
        model = Linear::new(D);
        let error = trainer.fit_on_threads(&mut model, &data, 2).unwrap_err().to_string();
        assert!(error.contains("sample 3 (numbered from 0) holds 1"), "{error}");
        model = Linear::new(D);
    }
}

#[test]
fn n11_a_first_step_that_is_not_finite_names_the_sample_and_the_feature() {
    let data = labelled::<f64>(&[1.0, 2.0, -30.0, 4.0], &[1.0; 4]);
    let fit = |batch_size, model: &mut Linear<f64>| {
        let mut trainer = quiet(sgd(0.1, 0.0)).batch_size(batch_size).shuffle(false);
        trainer.fit(model, &data).unwrap_err().to_string()
    };
    let mut model = Linear::<f64>::new(D);
    model.w.values_mut()[1] = f64::INFINITY;
    let error = fit(4, &mut model);
    assert!(error.starts_with("the loss is inf in the first step"), "{error}");
    assert!(error.contains("is -30, in column 2 of `x` of sample 2"), "{error}");
    // Of any other step the learning rate is the usual suspect.
    model = Linear::<f64>::new(D);
    model.w.values_mut()[1] = f64::INFINITY;
    assert!(fit(1, &mut model).contains("lower the learning rate"));
    let data = labelled::<f64>(&[1.0; 3], &[0.0, 1e200, 0.0]);
    let mut model = Linear::<f64>::new(D);
    let mut trainer = quiet(sgd(0.1, 0.0)).batch_size(3);
    let error = trainer.fit(&mut model, &data).unwrap_err().to_string();
    assert!(error.contains("sample 1 (numbered from 0) holds 1"), "{error}");
    assert!(error.contains("in column 0 of `y`"), "{error}");
}

/// The mean of ½y² over the samples, none of them twice.
#[test]
fn n12_copies_that_fill_up_a_batch_do_not_count_in_the_loss() {
    let labels: Vec<f64> = (0..101).map(|row| f64::from(row % 7)).collect();
    let data = labelled::<f64>(&[1.0; 101], &labels);
    let expected = 1279.0 / 202.0;
    for batch_size in [100, 7, 300] {
        for shuffle in [false, true] {
            let trainer = |rule| {
                let trainer = quiet(rule).batch_size(batch_size).epochs(2).shuffle(shuffle);
                trainer.last_batch(LastBatch::Pad)
            };
            let mut model = Linear::<f64>::new(D);
            let report = trainer(sgd(1e-30, 0.0)).fit(&mut model, &data).unwrap();
            for epoch in &report.epochs {
                assert!((epoch.loss - expected).abs() < 1e-12, "{batch_size}: {}", epoch.loss);
                assert_eq!(epoch.n_rows, 101);
            }
            for workers in [1, 2] {
                let mut model = Linear::<f64>::new(D);
                let mut trainer = trainer(sgd(1e-30, 0.0));
                let report = trainer.fit_on_threads(&mut model, &data, workers).unwrap();
                let loss = report.epochs[0].loss;
                assert!((loss - expected).abs() < 1e-12, "{batch_size}, {workers}: {loss}");
            }
        }
    }
    // The loss is that of the parameters before the step, rows that wait for steps included.
    let rule = Sgd { weight_decay: 0.5, ..sgd(0.1, 0.5) };
    let losses = [LazyUpdate::Exact, LazyUpdate::Dense].map(|lazy_update| {
        let rule = Sgd { lazy_update, ..rule.clone() };
        let mut trainer = quiet(rule).batch_size(7).epochs(2).last_batch(LastBatch::Pad);
        trainer.fit(&mut Linear::<f64>::new(D), &data).unwrap().epochs[1].loss
    });
    assert!((losses[0] - losses[1]).abs() < 1e-12 * losses[1], "{losses:?}");
}

#[test]
fn what_is_watched_is_a_number() {
    let data = data::<f64>(20);
    struct NoLoss;
    impl Callback for NoLoss {
        fn epoch(
            &mut self,
            report: &EpochReport,
            at: &Moment<'_>,
        ) -> crate::Result<ControlFlow<()>> {
            let report = EpochReport { loss: f64::NAN, ..report.clone() };
            EarlyStopping::patience(2).epoch(&report, at)
        }
    }
    let mut model = Linear::<f64>::new(D);
    let error = quiet(sgd(0.01, 0.0)).callback(NoLoss).fit(&mut model, &data).unwrap_err();
    let expected = "the loss is not a number after epoch 1, so that no epoch can be the best";
    assert_eq!(error.to_string(), expected);
}
