//! Runs that are ended, or killed, and gone on with.

use super::{Logistic, data, model, trainer};
use nnz::prelude::*;
use nnz::training::{Callback, Moment};
use std::ops::ControlFlow;

/// Runs of fused steps, many a call and one a call, with states beside the weights, ended within an
/// epoch and resumed.
#[test]
fn resumed_runs_of_fused_steps_are_the_run_to_the_bit() {
    let data = data();
    let path = std::env::temp_dir().join(format!("nnz-resumed-{}.safetensors", std::process::id()));
    for batch_size in [1, 7] {
        let rule = Ftrl { l1: 0.05, learning_rate: 0.5, ..Ftrl::default() };
        let trainer = || {
            let trainer = Trainer::new(rule.clone()).batch_size(batch_size).epochs(3);
            trainer.progress(Progress::Silent)
        };
        let mut whole = model();
        let mut expected = trainer().fit(&mut whole, &data).unwrap();
        let mut batches = 0;
        let mut resumed = model();
        // Saved and ended after every 90 rows or so.
        for part in 0..9 {
            let mut stop = Stop { path: &path, every: 90 / batch_size as u64, left: 1 };
            resumed = model();
            let mut trainer = trainer().callback(&mut stop);
            let report = match part {
                0 => trainer.fit(&mut resumed, &data),
                _ => trainer.resume(&mut resumed, &data, &path),
            };
            let mut report = report.unwrap();
            drop(trainer);
            batches += 1 - stop.left;
            for epochs in [&mut report.epochs, &mut expected.epochs] {
                epochs.iter_mut().for_each(|epoch| epoch.seconds = 0.0);
            }
            assert_eq!(report.epochs[..], expected.epochs[..report.epochs.len()]);
            if !report.stopped && report.epochs.len() == 3 {
                break;
            }
        }
        assert!(batches > 5, "{batches}");
        trainer().resume(&mut resumed, &data, &path).unwrap();
        let bits = |model: &Logistic| {
            let values = model.w.values().iter().chain(model.b.values());
            values.map(|value| value.to_bits()).collect::<Vec<_>>()
        };
        assert_eq!(bits(&resumed), bits(&whole));
    }
    std::fs::remove_file(path).unwrap();
}

/// Saves a run now and then, and ends it after so many times.
struct Stop<'p> {
    path: &'p std::path::Path,
    every: u64,
    left: u64,
}

impl Callback for &mut Stop<'_> {
    fn next_batch(&self, n_batches: u64) -> Option<u64> {
        Some((n_batches / self.every + 1) * self.every)
    }

    fn batch(&mut self, moment: &Moment<'_>) -> nnz::Result<ControlFlow<()>> {
        moment.save_run(self.path)?;
        self.left -= 1;
        Ok(if self.left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }
}

/// The process that [`a_killed_process_leaves_a_whole_checkpoint`] kills: trains, saves at every
/// turn, and goes on where it was.
#[test]
fn training_to_be_killed() {
    let Some(path) = std::env::var_os("NNZ_KILLED_RUN") else {
        return;
    };
    let mut trainer = killed_trainer().callback(Checkpoints::new(&path).every_batches(3));
    if std::path::Path::new(&path).exists() {
        trainer.resume(&mut model(), &data(), &path).unwrap()
    } else {
        trainer.fit(&mut model(), &data()).unwrap()
    };
}

fn killed_trainer() -> Trainer<'static, Sgd> {
    let schedule = Schedule::InverseScaling { decay: 1e-3, power: 0.5, unit: ScheduleUnit::Step };
    trainer().epochs(40).schedule(schedule)
}

fn saved_at(path: &std::path::Path) -> Option<std::time::SystemTime> {
    path.metadata().and_then(|metadata| metadata.modified()).ok()
}

/// A hundred processes, each killed after a few milliseconds: the file is always a whole
/// checkpoint, from which the next one goes on, and what comes of it is what an undisturbed run
/// comes to.
#[test]
fn a_killed_process_leaves_a_whole_checkpoint() {
    let folder = std::env::temp_dir().join(format!("nnz-killed-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("run.safetensors");
    let program = std::env::current_exe().unwrap();
    let mut positions = std::collections::BTreeSet::new();
    for kill in 0..100u64 {
        let mut process = std::process::Command::new(&program)
            .args(["--exact", "training::resumed::training_to_be_killed", "--nocapture"])
            .env("NNZ_KILLED_RUN", &path)
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        // The first one is let go on until there is something to be damaged.
        while kill == 0 && !path.exists() {
            assert_eq!(process.try_wait().unwrap(), None, "ended without a checkpoint");
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        // Under load a process may be killed before it trains: every tenth is let go on until it
        // has saved once more, or has ended.
        let before = saved_at(&path);
        while kill % 10 == 9 && saved_at(&path) == before && process.try_wait().unwrap().is_none() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        std::thread::sleep(std::time::Duration::from_micros(kill * 7919 % 20_000));
        process.kill().unwrap();
        process.wait().unwrap();
        let mut model = model();
        let mut updater = killed_trainer().updater(&model).unwrap();
        let run = checkpoint::load_run(&mut model, &mut updater, &path).unwrap();
        positions.insert(run.position);
    }
    assert!(positions.len() > 1, "nothing was learnt between {positions:?}");
    let mut resumed = model();
    killed_trainer().resume(&mut resumed, &data(), &path).unwrap();
    let mut whole = model();
    killed_trainer().fit(&mut whole, &data()).unwrap();
    assert_eq!(resumed.w.values(), whole.w.values());
    assert_eq!(resumed.b.values(), whole.b.values());
    std::fs::remove_dir_all(&folder).unwrap();
}
