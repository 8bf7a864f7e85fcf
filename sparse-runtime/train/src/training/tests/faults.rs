//! Numbers that cannot be meant are refused by name or taken for what they are, and faults of
//! others leave nothing half done.

use super::{D, data, fitted, linear::Linear, quiet, sgd};
use crate::error::Error;
use crate::store::{CommunicatorError, StoreError};
use crate::training::{
    Checkpoints, EarlyStopping, EpochReport, Hogwild, Monitor, ProgressiveLoss, TrainError, predict,
};
use nnz_arrays::formats::Csr;
use nnz_arrays::kernels::{MAX_THREADS, Parallel, TooManyThreads};
use nnz_data::{DataError, Dataset, LastBatch};
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};

fn train_error<A>(result: crate::Result<A>) -> TrainError {
    match result.err().unwrap() {
        Error::Train(error) => error,
        other => panic!("{other}"),
    }
}

#[test]
fn a_million_hogwild_threads_are_refused() {
    let data = data::<f64>(10);
    let mut model = Linear::<f64>::new(D);
    for found in [MAX_THREADS + 1, 1_000_000, usize::MAX] {
        let hogwild = Hogwild::threads(found);
        let error = train_error(quiet(sgd(0.1, 0.0)).fit_hogwild(&mut model, &data, hogwild));
        let expected = TooManyThreads::check("Hogwild::threads", found).unwrap_err();
        assert_eq!(error, TrainError::Threads(expected));
        let message = format!(
            "`Hogwild::threads` is told to use {found} threads, but at most 1024 can be had"
        );
        assert_eq!(error.to_string(), message);
    }
    let none = quiet(sgd(0.1, 0.0)).fit_hogwild(&mut model, &data, Hogwild::threads(0));
    assert!(train_error(none).to_string().contains("must be at least 1"));
}

#[test]
fn hot_rows_without_end_are_refused() {
    let data = data::<f64>(10);
    let mut model = Linear::<f64>::new(D);
    for found in [(1 << 24) + 1, usize::MAX] {
        let hogwild = Hogwild::threads(2).hot_rows(found).merge_every(usize::MAX);
        let error = train_error(quiet(sgd(0.1, 0.0)).fit_hogwild(&mut model, &data, hogwild));
        assert_eq!(error, TrainError::HotRows { found, limit: 1 << 24 });
    }
}

#[test]
fn more_workers_than_there_can_be_are_refused() {
    let data = data::<f64>(10);
    let mut model = Linear::<f64>::new(D);
    for (found, expected) in [
        (0, CommunicatorError::NoWorkers),
        (65_536, CommunicatorError::TooManyWorkers { found: 65_536 }),
        (usize::MAX, CommunicatorError::TooManyWorkers { found: usize::MAX }),
    ] {
        match quiet(sgd(0.1, 0.0)).fit_on_threads(&mut model, &data, found).unwrap_err() {
            Error::Store(StoreError::Communicator(error)) => assert_eq!(error, expected),
            other => panic!("{other}"),
        }
    }
    // More of them than leaves and rows is not many.
    quiet(sgd(0.1, 0.0)).epochs(1).fit_on_threads(&mut model, &data, 12).unwrap();
}

#[test]
fn more_threads_than_there_can_be_are_refused_by_trainers() {
    let data = data::<f64>(10);
    let run = |threads| {
        let mut trainer = quiet(sgd(0.1, 0.0)).epochs(1).parallel(Parallel::Threads(threads));
        trainer.fit(&mut Linear::<f64>::new(D), &data)
    };
    for found in [MAX_THREADS + 1, usize::MAX] {
        let expected = TooManyThreads::check("Trainer::parallel", found).unwrap_err();
        assert_eq!(train_error(run(found)), TrainError::Threads(expected));
    }
    for threads in [0, 1, MAX_THREADS] {
        run(threads).unwrap();
    }
}

/// Two thousand million leaves, of which ten have a row.
#[test]
fn leaves_without_rows_are_passed_over() {
    let data = data::<f64>(10);
    let run = |leaves, workers| {
        let mut model = Linear::<f64>::new(D);
        let mut trainer = quiet(sgd(0.1, 0.5)).batch_size(10).epochs(2).leaves(leaves);
        trainer.fit_on_threads(&mut model, &data, workers)?;
        crate::Result::Ok(model.w.values().to_vec())
    };
    assert_eq!(run(1 << 31, 1).unwrap(), run(1 << 31, 2).unwrap());
    for found in [0, 6, 1 << 32, usize::MAX] {
        match run(found, 1).unwrap_err() {
            Error::Store(error) => assert_eq!(error, StoreError::LeafCount { found }),
            other => panic!("{other}"),
        }
    }
}

#[test]
fn a_batch_larger_than_the_data_is_all_of_it() {
    let data = data::<f64>(10);
    let run = |batch_size, last_batch| {
        let mut trainer = quiet(sgd(0.1, 0.0)).batch_size(batch_size).last_batch(last_batch);
        let mut model = Linear::<f64>::new(D);
        trainer = trainer.epochs(2);
        trainer.fit(&mut model, &data).map(|_| model.w.values().to_vec())
    };
    let whole = run(10, LastBatch::Short).unwrap();
    for batch_size in [11, usize::MAX] {
        assert_eq!(run(batch_size, LastBatch::Short).unwrap(), whole);
        let none = run(batch_size, LastBatch::Discard);
        assert_eq!(train_error(none), TrainError::NoRows);
    }
    let limit = 1 << 24;
    for batch_size in [limit + 1, usize::MAX] {
        for (last_batch, expected) in [
            (LastBatch::Pad, DataError::PaddedBatchSize { batch_size, limit }),
            (LastBatch::RollOver, DataError::RolledBatchSize { batch_size, limit }),
        ] {
            match run(batch_size, last_batch).unwrap_err() {
                Error::Data(error) => assert_eq!(error, expected),
                other => panic!("{other}"),
            }
        }
    }
    assert!(matches!(run(0, LastBatch::Short).unwrap_err(), Error::Data(DataError::ZeroBatchSize)));
    let mut model = Linear::<f64>::new(D);
    for batch_size in [1, usize::MAX] {
        assert_eq!(predict(&mut model, &data, batch_size).unwrap().values(), [0.0; 10]);
    }
    let none = predict(&mut model, &data, 0).unwrap_err();
    assert!(matches!(none, Error::Data(DataError::ZeroBatchSize)), "{none}");
}

#[test]
fn no_epoch_trains_nothing_and_epochs_without_end_end_when_they_are_told_to() {
    let data = data::<f64>(10);
    let (parameters, report) = fitted(&mut quiet(sgd(0.1, 0.0)).epochs(0), &data);
    assert_eq!(parameters, vec![0.0; D + 1]);
    assert!(report.epochs.is_empty() && !report.stopped);
    let patience = EarlyStopping::patience(u64::MAX);
    let mut trainer = quiet(sgd(0.1, 0.0)).epochs(u64::MAX).callback(patience).callback(
        |report: &EpochReport| match report.epoch {
            2 => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        },
    );
    assert_eq!(fitted(&mut trainer, &data).1.epochs.len(), 3);
}

#[test]
fn every_0_batches_is_every_batch_and_u64_max_is_none() {
    let data = data::<f64>(10);
    for every in [0u64, 1, 2, 5, u64::MAX] {
        let (mut seen, mut lines) = (0, 0);
        let monitor = Monitor::new(|_, _| seen += 1).every_batches(every);
        let losses = ProgressiveLoss::every(every).to(|_| lines += 1);
        let mut trainer = quiet(sgd(0.1, 0.0)).batch_size(3).epochs(3);
        trainer = trainer.callback(monitor).callback(losses);
        fitted(&mut trainer, &data);
        drop(trainer);
        // Four batches an epoch, and the end of each of three; lines are within epochs.
        let in_epochs = 3 * (4 / every.clamp(1, 100));
        assert_eq!((seen, lines), (3 + in_epochs, in_epochs), "every {every}");
    }
    let file = std::env::temp_dir().join(format!("nnz-faults-every-{}", std::process::id()));
    for every in [0, u64::MAX] {
        let checkpoints = Checkpoints::new(&file).every_batches(every).every_epochs(every);
        fitted(&mut quiet(sgd(0.1, 0.0)).batch_size(5).epochs(2).callback(checkpoints), &data);
        assert!(std::fs::remove_file(&file).is_ok());
    }
}

#[test]
fn data_without_samples_trains_nothing() {
    let none = Dataset::new(Csr::<f64>::zeros(0, D), Vec::new()).unwrap();
    let mut model = Linear::<f64>::new(D);
    let run = quiet(sgd(0.1, 0.0)).fit(&mut model, &none);
    assert_eq!(train_error(run), TrainError::NoRows);
    let run = quiet(sgd(0.1, 0.0)).evaluation(&none).fit(&mut model, &data::<f64>(5));
    assert_eq!(train_error(run), TrainError::NoRows);
    assert_eq!(model.w.values(), [0.0; D]);
    assert_eq!(predict(&mut model, &none, 4).unwrap().values().len(), 0);
}

#[test]
fn missing_labels_are_named_and_not_needed_to_predict() {
    let features = data::<f64>(5).features().unwrap().clone();
    let unlabelled = Dataset::features_only(features).unwrap();
    let mut model = Linear::<f64>::new(D);
    match quiet(sgd(0.1, 0.0)).fit(&mut model, &unlabelled).unwrap_err() {
        Error::Data(DataError::Missing { role, declared, .. }) => {
            assert_eq!((role, &declared[..]), ("label", "y"));
        }
        other => panic!("{other}"),
    }
    assert_eq!(predict(&mut model, &unlabelled, 2).unwrap().values(), [0.0; 5]);
}

/// The panic of a callback comes back to the caller; what is trained afterwards is as if there had
/// been another trainer.
#[test]
fn a_callback_that_panics_leaves_a_trainer_that_can_be_used() {
    let data = data::<f64>(20);
    for workers in [0, 2] {
        let mut panics = true;
        let mut trainer = quiet(sgd(0.1, 0.9)).epochs(2).callback(|_: &EpochReport| {
            assert!(!std::mem::take(&mut panics), "no more of this");
            ControlFlow::Continue(())
        });
        let mut run = || {
            let mut model = Linear::<f64>::new(D);
            match workers {
                0 => trainer.fit(&mut model, &data).unwrap(),
                _ => trainer.fit_on_threads(&mut model, &data, workers).unwrap(),
            };
            model.w.values().to_vec()
        };
        let panic = catch_unwind(AssertUnwindSafe(&mut run)).unwrap_err();
        assert!(panic.downcast_ref::<&str>().is_some_and(|text| text.contains("no more")));
        let after = run();
        let mut trainer = quiet(sgd(0.1, 0.9)).epochs(2);
        let mut model = Linear::<f64>::new(D);
        match workers {
            0 => trainer.fit(&mut model, &data).unwrap(),
            _ => trainer.fit_on_threads(&mut model, &data, workers).unwrap(),
        };
        assert_eq!(after, model.w.values());
    }
}
