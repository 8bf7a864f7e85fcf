//! Runs on workers that are saved, ended and gone on with, by as many workers or by others.

use super::{Machine, bits, data, machine, trainer, values};
use nnz::core::update_rules::UpdateRule;
use nnz::prelude::*;
use nnz::training::checkpoint::{self, CheckpointError};
use nnz::training::{Callback, Checkpoints, EpochReport, FitReport, Moment, ParameterReport};
use std::cell::{Cell, RefCell};
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

struct File(PathBuf);

impl File {
    fn new(test: &str) -> File {
        let name = format!("nnz-workers-{test}-{}.safetensors", std::process::id());
        File(std::env::temp_dir().join(name))
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Saves every three batches and after epochs, and ends the run at the first save.
struct SaveAndStop<'a> {
    path: &'a Path,
    saves: &'a Cell<u64>,
}

impl Callback for SaveAndStop<'_> {
    fn epoch(&mut self, _: &EpochReport, moment: &Moment<'_>) -> Result<ControlFlow<()>> {
        self.batch(moment)
    }

    fn next_batch(&self, n_batches: u64) -> Option<u64> {
        Some((n_batches / 3 + 1) * 3)
    }

    fn batch(&mut self, moment: &Moment<'_>) -> Result<ControlFlow<()>> {
        self.saves.set(self.saves.get() + 1);
        moment.save_run(self.path)?;
        Ok(ControlFlow::Break(()))
    }
}

fn timeless(mut report: FitReport) -> FitReport {
    report.epochs.iter_mut().for_each(|epoch| epoch.seconds = 0.0);
    report
}

fn resumes<R: UpdateRule>(rule: R, clip_norm: Option<f64>, test: &str) {
    let data = data();
    let schedule = if R::ONE_RATE {
        Schedule::Constant
    } else {
        Schedule::InverseScaling { decay: 0.1, power: 0.5, unit: ScheduleUnit::Step }
    };
    let new = || trainer(rule.clone()).schedule(schedule.clone()).clip_norm(clip_norm).epochs(4);
    let mut expected = machine();
    let report = new().fit_on_threads(&mut expected, &data, 3).unwrap();
    // On the same number of workers, and on another one each time.
    for workers in [&[2][..], &[3, 1, 8, 2]] {
        let file = File::new(&format!("{test}-{}", workers.len()));
        let saves = Cell::new(0);
        let mut run = 0;
        let (found, its_report) = loop {
            let n_workers = workers[run % workers.len()];
            let callback = SaveAndStop { path: &file.0, saves: &saves };
            let mut trainer = new().callback(callback);
            let mut model = machine();
            let report = match run {
                0 => trainer.fit_on_threads(&mut model, &data, n_workers),
                _ => trainer.resume_on_threads(&mut model, &data, n_workers, &file.0),
            };
            let report = report.unwrap();
            if report.epochs.len() == 4 {
                break (model, report);
            }
            assert!(report.stopped);
            run += 1;
            assert!(run < 20, "no progress");
        };
        // Two within each epoch of seven batches, and one at its end.
        assert_eq!(saves.get(), 12, "{}", R::NAME);
        assert_eq!(bits(&values(&found)), bits(&values(&expected)), "{} on {workers:?}", R::NAME);
        assert_eq!(timeless(its_report), timeless(report.clone()), "{}", R::NAME);
        let mut loaded = machine();
        checkpoint::load(&mut loaded, &file.0).unwrap();
        assert_eq!(bits(&values(&loaded)), bits(&values(&expected)));
    }
}

#[test]
fn runs_that_are_resumed_have_the_bits_of_those_that_were_not_ended() {
    let rule = Sgd { learning_rate: 0.2, momentum: 0.9, weight_decay: 0.01, ..Sgd::default() };
    resumes(rule.clone(), None, "sgd");
    resumes(rule.clone(), Some(0.1), "clipped");
    resumes(Svrg { update_freq: 3, rule }, None, "svrg");
    resumes(AdaGrad { weight_decay: 0.01, ..AdaGrad::default() }, None, "adagrad");
    resumes(Ftrl { l1: 0.01, ..Ftrl::default() }, None, "ftrl");
    let lazy_update = LazyUpdate::Touched;
    resumes(Adam { lazy_update, ..Adam::default() }, None, "adam");
}

/// What a callback sees: where, the loss so far, the parameters.
type Seen = (u64, u64, u64, f64, Vec<ParameterReport>);

struct Watch<'a>(&'a RefCell<Vec<Seen>>);

impl Callback for Watch<'_> {
    fn next_batch(&self, n_batches: u64) -> Option<u64> {
        Some((n_batches / 2 + 1) * 2)
    }

    fn batch(&mut self, moment: &Moment<'_>) -> Result<ControlFlow<()>> {
        let position = moment.position();
        let (loss, steps) = (moment.totals().mean_loss(), moment.n_steps());
        self.0.borrow_mut().push((
            position.epoch,
            position.batch,
            steps,
            loss,
            moment.parameters(),
        ));
        Ok(ControlFlow::Continue(()))
    }
}

#[test]
fn callbacks_between_batches_see_what_they_see_of_one_worker() {
    let data = data();
    let rule = || Sgd { learning_rate: 0.2, momentum: 0.9, ..Sgd::default() };
    let watch = |fit: &dyn Fn(&mut Trainer<'_, Sgd>, &mut Machine)| {
        let seen = RefCell::new(Vec::new());
        let mut model = machine();
        fit(&mut trainer(rule()).epochs(2).callback(Watch(&seen)), &mut model);
        (seen.into_inner(), bits(&values(&model)))
    };
    let (expected, bits) = watch(&|trainer, model| {
        trainer.fit_on_threads(model, &data, 1).unwrap();
    });
    assert_eq!(expected.len(), 6);
    assert!(expected.iter().any(|seen| seen.4.iter().any(|p| p.n_rows_touched.is_some())));
    let of_three = watch(&|trainer, model| {
        trainer.fit_on_threads(model, &data, 3).unwrap();
    });
    assert_eq!(of_three, (expected.clone(), bits.clone()));
    // To look changes nothing.
    let mut model = machine();
    trainer(rule()).epochs(2).fit_on_threads(&mut model, &data, 3).unwrap();
    assert_eq!(super::bits(&values(&model)), bits);
    // And it is what one sees without workers, but for rounding.
    let (alone, _) = watch(&|trainer, model| {
        trainer.fit(model, &data).unwrap();
    });
    for (alone, expected) in alone.iter().zip(&expected) {
        assert_eq!((alone.0, alone.1, alone.2), (expected.0, expected.1, expected.2));
        assert!((alone.3 - expected.3).abs() < 1e-12);
        for (alone, expected) in alone.4.iter().zip(&expected.4) {
            assert!((alone.norm - expected.norm).abs() < 1e-12);
            assert_eq!(alone.n_rows_touched, expected.n_rows_touched, "{}", alone.name);
        }
    }
}

#[test]
fn runs_that_add_otherwise_are_not_gone_on_with() {
    let data = data();
    let file = File::new("settings");
    let new = || trainer(AdaGrad::default()).callback(Checkpoints::new(&file.0));
    let refused = |result: Result<FitReport>| match result {
        Err(Error::Checkpoint(CheckpointError::Setting { name, .. })) => name,
        other => panic!("{other:?}"),
    };
    new().epochs(1).fit_on_threads(&mut machine(), &data, 2).unwrap();
    assert_eq!(refused(new().resume(&mut machine(), &data, &file.0)), "leaves");
    let other = new().leaves(4).resume_on_threads(&mut machine(), &data, 2, &file.0);
    assert_eq!(refused(other), "leaves");
    new().epochs(1).fit(&mut machine(), &data).unwrap();
    assert_eq!(refused(new().resume_on_threads(&mut machine(), &data, 2, &file.0)), "leaves");
}

/// A run that a callback had ended stays ended.
#[test]
fn what_callbacks_say_of_the_epochs_before_counts() {
    struct Once<'a>(&'a Path);
    impl Callback for Once<'_> {
        fn epoch(&mut self, _: &EpochReport, moment: &Moment<'_>) -> Result<ControlFlow<()>> {
            moment.save_run(self.0)?;
            Ok(ControlFlow::Break(()))
        }

        fn replay(&mut self, _: &EpochReport) -> ControlFlow<()> {
            ControlFlow::Break(())
        }
    }
    let (data, file) = (data(), File::new("ended"));
    let new = || trainer(AdaGrad::default()).callback(Once(&file.0));
    let (mut model, mut again) = (machine(), machine());
    let report = new().fit_on_threads(&mut model, &data, 2).unwrap();
    assert_eq!((report.epochs.len(), report.stopped), (1, true));
    let its_report = new().resume_on_threads(&mut again, &data, 3, &file.0).unwrap();
    assert_eq!(timeless(its_report), timeless(report));
    assert_eq!(bits(&values(&again)), bits(&values(&model)));
}
