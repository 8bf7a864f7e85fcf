//! Misuse of updaters, and panics that are caught.

use super::*;
use crate::error::{Error, Result};
use nnz_data::Position;
use nnz_optim::{Svrg, UpdateRule};
use nnz_step::optimizer::{OptimizerError, Updater};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

#[test]
fn fault_one_updater_on_two_models_is_refused() -> Result<()> {
    let data = data::<f64>(30);
    let mut trainer = Trainer::new(Ftrl::default()).epochs(9).progress(Progress::Silent);
    let (mut one, mut other) = (Linear::<f64>::new(D), Linear::<f64>::new(D));
    let mut updater = trainer.updater(&one)?;
    trainer.fit_epochs(&mut one, &mut updater, &data, 0..1)?;
    let before = one.w.values().to_vec();
    let mut results = vec![trainer.fit_epochs(&mut other, &mut updater, &data, 1..2).map(drop)];
    results.push(updater.flush_model(&mut other).map_err(Error::from));
    results.push(updater.rows(0, other.w.table_mut()).map(drop).map_err(Error::from));
    for result in results {
        let error = result.unwrap_err();
        let is_refusal = matches!(
            &error,
            Error::Optimizer(OptimizerError::OtherTable { parameter }) if parameter == "w"
        );
        assert!(is_refusal, "{error}");
    }
    assert!(other.w.values().iter().all(|weight| *weight == 0.0) && one.w.values() == before);
    // The model, and its clones, are the same one; so is what was loaded into it.
    trainer.fit_epochs(&mut one, &mut updater, &data, 1..2)?;
    let mut copy = one.clone();
    trainer.fit_epochs(&mut copy, &mut updater, &data, 2..3)?;
    checkpoint::warm_start(&mut one, &other)?;
    trainer.fit_epochs(&mut one, &mut updater, &data, 3..4)?;
    // What takes the place of a model that is gone may go on.
    drop((one, copy));
    trainer.fit_epochs(&mut other, &mut updater, &data, 4..5)?;
    // A rule that keeps nothing of a model is for any.
    let mut plain = Updater::<Sgd, f64>::for_model(sgd(0.1, 0.0), &other)?;
    let mut another = Linear::<f64>::new(D);
    plain.check_model(&other)?;
    Ok(plain.flush_model(&mut another)?)
}

/// Panics, or ends the run, between two batches.
struct At<'a> {
    batch: u64,
    panics: bool,
    is_there: &'a mut bool,
}

impl Callback for At<'_> {
    fn next_batch(&self, n_batches: u64) -> Option<u64> {
        (n_batches < self.batch).then_some(self.batch)
    }

    fn batch(&mut self, moment: &Moment<'_>) -> Result<ControlFlow<()>> {
        assert_eq!(moment.position(), Position { epoch: 0, batch: self.batch });
        *self.is_there = true;
        assert!(!self.panics, "on purpose");
        Ok(ControlFlow::Break(()))
    }
}

/// The bytes of the model's file after a run that panics, or is ended, before batch 25.
fn saved<R: UpdateRule>(rule: &R, panics: bool) -> Vec<u8> {
    let data = data::<f64>(40);
    let (mut model, mut is_there) = (Linear::<f64>::new(D), false);
    let callback = At { batch: 25, panics, is_there: &mut is_there };
    let mut trainer =
        Trainer::new(rule.clone()).progress(Progress::Silent).callback(callback).decay_all();
    let result = catch_unwind(AssertUnwindSafe(|| trainer.fit(&mut model, &data)));
    drop(trainer);
    assert!(is_there && result.is_err() == panics);
    let name = format!("nnz-caught-{}-{panics}-{}.safetensors", R::NAME, std::process::id());
    let path = std::env::temp_dir().join(name);
    checkpoint::save(&model, &path).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    bytes
}

/// The other run ends between the same two batches, and settles all rows.
#[test]
fn fault_a_panic_that_is_caught_leaves_no_row_waiting() {
    let rule = Sgd { weight_decay: 0.1, ..sgd(0.1, 0.9) };
    assert!(saved(&rule, true) == saved(&rule, false));
    let rule = Svrg { update_freq: 2, rule };
    assert!(saved(&rule, true) == saved(&rule, false));
}

/// Data that panics when its batches are asked for, after so many times.
struct Panics<'a> {
    data: &'a Dataset<f64>,
    left: Cell<u32>,
}

impl DataSource<f64> for Panics<'_> {
    type Batches<'s>
        = <Dataset<f64> as DataSource<f64>>::Batches<'s>
    where
        Self: 's;

    fn n_rows(&self) -> Option<usize> {
        Some(self.data.n_rows())
    }

    fn batches<'s>(
        &'s self,
        inputs: &[nnz_step::model::InputInfo],
        options: &BatchOptions,
    ) -> nnz_data::Result<Self::Batches<'s>> {
        self.left.set(self.left.get().checked_sub(1).expect("no more batches"));
        self.data.batches(inputs, options)
    }
}

#[test]
fn fault_a_panic_while_gradients_are_gathered_leaves_no_mean() -> Result<()> {
    let data = data::<f64>(40);
    let mut trainer =
        Trainer::new(Svrg { update_freq: 2, rule: sgd(0.1, 0.0) }).progress(Progress::Silent);
    let mut model = Linear::<f64>::new(D);
    let mut updater = trainer.updater(&model)?;
    trainer.fit_epochs(&mut model, &mut updater, &data, 0..2)?;
    let (before, clock) = (model.w.values().to_vec(), updater.clock());
    assert!(updater.has_mean(None, data.fingerprint()?));
    let panics = Panics { data: &data, left: Cell::new(1) };
    let result = catch_unwind(AssertUnwindSafe(|| {
        trainer.fit_epochs(&mut model, &mut updater, &panics, 2..3)
    }));
    assert!(result.is_err());
    assert_eq!((model.w.values(), updater.clock()), (&before[..], clock));
    assert!(!updater.has_mean(None, None) && !updater.has_mean(None, data.fingerprint()?));
    // The next epoch gathers it, though none is due.
    trainer.fit_epochs(&mut model, &mut updater, &data, 3..4)?;
    assert!(updater.has_mean(None, data.fingerprint()?));
    Ok(())
}
