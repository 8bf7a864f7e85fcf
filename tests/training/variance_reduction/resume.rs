//! Runs of rules that correct gradients, looked at, saved and ended within epochs and resumed,
//! against runs that are not.

use super::{D, Linear, Machine, N, Plan, data, parameters, plans, trainer};
use nnz::core::update_rules::UpdateRule;
use nnz::data::Position;
use nnz::prelude::*;
use nnz::training::{Callback, EpochReport, Moment, checkpoint::CheckpointError};
use std::cell::RefCell;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// Saves every seven batches and after every epoch, and ends the run after the second time.
struct SaveAndStop<'a> {
    path: &'a Path,
    left: u64,
    seen: &'a RefCell<Vec<Position>>,
}

impl Callback for SaveAndStop<'_> {
    fn epoch(&mut self, _: &EpochReport, moment: &Moment<'_>) -> nnz::Result<ControlFlow<()>> {
        self.batch(moment)
    }

    fn next_batch(&self, n_batches: u64) -> Option<u64> {
        Some((n_batches / 7 + 1) * 7)
    }

    fn batch(&mut self, moment: &Moment<'_>) -> nnz::Result<ControlFlow<()>> {
        self.seen.borrow_mut().push(moment.position());
        moment.save_run(self.path)?;
        self.left -= 1;
        Ok(if self.left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }
}

struct File(PathBuf);

impl File {
    fn new(test: &str) -> File {
        let name = format!("nnz-reduced-{test}-{}.safetensors", std::process::id());
        File(std::env::temp_dir().join(name))
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// With batches of one row, made many at a time, and of five, one by one.
fn resumes<M: Model<Element = f64>, R: UpdateRule>(new: impl Fn() -> M, rule: &R, test: &str) {
    let data = data();
    // Momentum and decay at a constant rate, and at one that changes with every step.
    for plan in plans().split_off(8).into_iter().take(4).step_by(3) {
        let file = File::new(test);
        let mut whole = new();
        let seen = RefCell::new(Vec::new());
        // Looked at as often, and never ended: sums of losses are cut where somebody looks.
        let looks = SaveAndStop { path: &file.0, left: u64::MAX, seen: &seen };
        let expected = trainer(&plan, rule.clone()).callback(looks).fit(&mut whole, &data).unwrap();
        assert_eq!(seen.take(), every_seventh(&plan), "{test}");
        let mut resumed = new();
        for part in 0.. {
            assert!(part < 60, "no progress");
            resumed = new();
            let stop = SaveAndStop { path: &file.0, left: 2, seen: &seen };
            let mut trainer = trainer(&plan, rule.clone()).callback(stop);
            let report = match part {
                0 => trainer.fit(&mut resumed, &data).unwrap(),
                _ => trainer.resume(&mut resumed, &data, &file.0).unwrap(),
            };
            if report.epochs.len() as u64 == plan.epochs {
                let losses = |report: nnz::training::FitReport| {
                    Vec::from_iter(report.epochs.iter().map(|epoch| epoch.loss.to_bits()))
                };
                assert_eq!(losses(report), losses(expected), "{test}");
                break;
            }
        }
        assert_eq!(parameters(&resumed), parameters(&whole), "{test}");
        assert_eq!(*seen.borrow(), every_seventh(&plan), "{test}");
    }
}

/// Where somebody looks who looks every seven batches and after every epoch.
fn every_seventh(plan: &Plan) -> Vec<Position> {
    let n_batches = N.div_ceil(plan.batch_size) as u64;
    let of_epoch = |epoch: u64| {
        let within = (1..=n_batches / 7).map(move |i| Position { epoch, batch: 7 * i });
        within.chain([Position { epoch: epoch + 1, batch: 0 }])
    };
    (0..plan.epochs).flat_map(of_epoch).collect()
}

#[test]
fn a_resumed_run_is_the_run_to_the_bit() {
    let rule = plans().remove(8).rule;
    let svrg = Svrg { update_freq: 3, rule: rule.clone() };
    resumes(|| Linear::new(dims! { d: D }, Seed(1)).unwrap(), &svrg, "derivatives");
    resumes(|| Machine::new(dims! { d: D }, Seed(1)).unwrap(), &svrg, "snapshot");
    resumes(|| Linear::new(dims! { d: D }, Seed(1)).unwrap(), &Saga { rule }, "saga");
}

#[test]
fn a_run_goes_on_with_the_same_update_freq() {
    let (data, plan, file) = (data(), plans().remove(0), File::new("freq"));
    let svrg = |update_freq| Svrg { update_freq, rule: plan.rule.clone() };
    let mut model = Linear::new(dims! { d: D }, Seed(1)).unwrap();
    trainer(&plan, svrg(2)).callback(Checkpoints::new(&file.0)).fit(&mut model, &data).unwrap();
    match trainer(&plan, svrg(3)).epochs(9).resume(&mut model, &data, &file.0).unwrap_err() {
        Error::Checkpoint(CheckpointError::Setting { name, .. }) => {
            assert_eq!(name, "variance_reduction");
        }
        other => panic!("{other}"),
    }
    assert_eq!(trainer(&plan, svrg(2)).resume(&mut model, &data, &file.0).unwrap().epochs.len(), 4);
}
