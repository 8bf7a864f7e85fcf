//! Passes over pieces of data, and what is refused or passed over before and within a run.

use super::*;
use crate::metric::{Named, TopKAccuracy};

/// A callback that ends the run after so many batches.
struct StopAfter(u64);

impl Callback for StopAfter {
    fn next_batch(&self, n_batches: u64) -> Option<u64> {
        (n_batches < self.0).then_some(self.0)
    }

    fn batch(&mut self, _: &Moment<'_>) -> crate::Result<ControlFlow<()>> {
        Ok(ControlFlow::Break(()))
    }
}

#[test]
fn a_pass_that_is_ended_says_so() {
    let data = data::<f64>(20);
    let mut model = Linear::<f64>::new(D);
    let mut trainer = quiet(sgd(0.1, 0.0)).batch_size(2).callback(StopAfter(3));
    let mut updater = trainer.updater(&model).unwrap();
    let error = trainer.partial_fit(&mut model, &mut updater, &data).unwrap_err();
    assert!(matches!(error, crate::Error::Train(TrainError::Stopped { n_steps: 3 })), "{error}");
    assert_eq!(updater.clock(), 3);
    assert!(model.w.values().iter().any(|w| *w != 0.0));
}

#[test]
fn passes_are_saved_as_epochs_are() {
    let data = data::<f64>(20);
    let file = std::env::temp_dir().join(format!("nnz-passes-{}", std::process::id()));
    let mut model = Linear::<f64>::new(D);
    let mut trainer = quiet(sgd(0.1, 0.0)).callback(Checkpoints::new(&file).every_epochs(3));
    let mut updater = trainer.updater(&model).unwrap();
    let mut saved = Vec::new();
    for _ in 0..7 {
        trainer.partial_fit(&mut model, &mut updater, &data).unwrap();
        saved.push(std::fs::remove_file(&file).is_ok());
    }
    assert_eq!(saved, [false, false, true, false, false, true, false]);
}

#[test]
fn two_metrics_have_two_names() {
    let (data, mut model) = (data::<f64>(20), Linear::<f64>::new(D));
    let trainer = || quiet(sgd(0.1, 0.0)).epochs(1).metric(Mse);
    let error = trainer().metric(Mse).fit(&mut model, &data).unwrap_err().to_string();
    assert!(error.starts_with("two metrics are called `mse`"), "{error}");
    let other = Named { name: "again", metric: Mse };
    let report = trainer().metric(other).fit(&mut model, &data).unwrap();
    let epoch = &report.epochs[0];
    assert!(epoch.metric("mse").is_some() && epoch.metric("mse") == epoch.metric("again"));
}

#[test]
fn a_metric_that_does_not_fit_is_refused_before_the_first_step() {
    let (data, test) = (data::<f64>(20), data::<f64>(5));
    let classes = TopKAccuracy { k: 1 };
    let mut model = Linear::<f64>::new(D);
    let untouched = |model: &Linear<f64>| model.w.values().iter().all(|w| *w == 0.0);
    let trainer = || quiet(sgd(0.1, 0.0)).epochs(1).metric(classes);
    assert!(trainer().fit(&mut model, &data).is_err() && untouched(&model));
    assert!(trainer().evaluation(&test).fit(&mut model, &data).is_err() && untouched(&model));
    let mut on_threads = trainer().evaluation(&test);
    assert!(on_threads.fit_on_threads(&mut model, &data, 2).is_err() && untouched(&model));
}

/// An epoch whose rows all roll over has no value that could be worse.
#[test]
fn an_epoch_without_rows_is_not_watched() {
    let data = data::<f64>(1);
    let mut trainer = quiet(sgd(0.1, 0.0)).batch_size(4).epochs(8);
    trainer = trainer.last_batch(LastBatch::RollOver).callback(EarlyStopping::patience(3));
    let (_, report) = fitted(&mut trainer, &data);
    let rows: Vec<_> = report.epochs.iter().map(|epoch| epoch.n_rows).collect();
    assert_eq!(rows, [0, 0, 0, 4, 0, 0, 0, 4]);
}
