//! Misuse that people have met: data of another width, fewer samples than threads or than a batch,
//! labels that are missing.

#![allow(clippy::unwrap_used)]

use nnz::formats::FormatError;
use nnz::model::DimsError;
use nnz::predictor::Predictor;
use nnz::prelude::*;
use nnz::training::predict;
use std::panic::{AssertUnwindSafe, catch_unwind};

graph! {
    /// A layer behind a bag.
    pub model Bags {
        input x: csr[n, d];
        label y: dense[n, 1];
        param t: row_sparse[d, 4] = Normal { mean: 0.0, std: 0.3 };
        param h: dense[4, 1] = Normal { mean: 0.0, std: 0.3 };
        let score = dot(tanh(embedding_bag(x, t)), h);
        loss logistic(score, y);
        output score;
    }

    /// What Hogwild trains.
    pub model Linear {
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Zeros;
        param b: dense[1] = Zeros;
        let score = dot(x, w) + b;
        loss logistic(score, y);
        output score;
    }
}

const D: usize = 16;

fn bags() -> Bags {
    Bags::new(dims! { d: D }, Seed(1)).unwrap()
}

/// `n` samples of two entries, in a matrix of `d` columns.
fn data(n: usize, d: usize) -> Dataset {
    let row = |k: usize| [(k % (d / 2), 1.0), (d / 2 + k % 3, 0.5)];
    let x = Csr::from_rows(d, (0..n).map(row)).unwrap();
    Dataset::new(x, (0..n).map(|k| (k % 2) as f32).collect()).unwrap()
}

fn trainer() -> Trainer<'static, Sgd> {
    Trainer::new(Sgd { learning_rate: 0.1, ..Sgd::default() }).epochs(2).progress(Progress::Silent)
}

fn weights(model: &Bags) -> Vec<f32> {
    [model.t.values(), model.h.values()].concat()
}

#[test]
fn data_of_another_width_is_refused_before_a_step_is_made() {
    let before = weights(&bags());
    let train = data(20, D);
    for width in [8, 32] {
        let other = data(20, width);
        let mut model = bags();
        for batch_size in [1, 7] {
            for result in [
                trainer().batch_size(batch_size).fit(&mut model, &other),
                trainer().batch_size(batch_size).evaluation(&other).fit(&mut model, &train),
                trainer().batch_size(batch_size).fit_on_threads(&mut model, &other, 2),
            ] {
                let error = result.unwrap_err().to_string();
                assert!(error.contains(&width.to_string()) && error.contains("16"), "{error}");
            }
        }
        assert_eq!(weights(&model), before, "width {width}");
        let error = predict(&mut model, &other, 4).unwrap_err().to_string();
        assert!(error.contains(&width.to_string()) && error.contains("16"), "{error}");
    }
}

#[test]
fn a_batch_or_a_number_of_threads_above_the_samples_is_all_of_them() {
    let train = data(5, D);
    let run = |batch_size| {
        let mut model = bags();
        trainer().batch_size(batch_size).fit(&mut model, &train).unwrap();
        weights(&model)
    };
    let whole = run(5);
    assert_eq!(run(6), whole);
    assert_eq!(run(usize::MAX), whole);
    assert_ne!(run(1), whole);
    let mut linear = Linear::new(dims! { d: D }, Seed(1)).unwrap();
    let report = trainer().fit_hogwild(&mut linear, &train, Hogwild::threads(9)).unwrap();
    assert_eq!(report.last().unwrap().n_rows, 5);
    let hot = Hogwild::threads(2).hot_rows(1 << 24).merge_every(usize::MAX);
    assert!(trainer().fit_hogwild(&mut linear, &train, hot).is_ok());
    let error = trainer().fit_hogwild(&mut linear, &train, Hogwild::threads(1_000_000));
    assert!(error.unwrap_err().to_string().contains("1000000 threads, but at most 1024"));
}

#[test]
fn labels_that_are_missing_are_not_needed_to_predict() {
    let unlabelled = Dataset::features_only(data(5, D).features().unwrap().clone()).unwrap();
    let mut model = bags();
    assert_eq!(predict(&mut model, &unlabelled, 3).unwrap().shape()[..], [5, 1]);
    let error = trainer().fit(&mut model, &unlabelled).unwrap_err().to_string();
    assert!(error.contains("label `y` has no data"), "{error}");
    let score = trainer().score(&mut model, &unlabelled).unwrap_err().to_string();
    assert!(score.contains("label `y` has no data"), "{score}");
}

#[test]
fn a_row_that_no_model_reads_is_refused_by_name() {
    let predictor = Predictor::new(bags());
    let mut scorer = predictor.scorer().unwrap();
    let mut refused = |columns: &[u32], values: &[f32]| match scorer.score_row(columns, values) {
        Err(nnz::Error::Format(error)) => error,
        other => panic!("{other:?}"),
    };
    assert!(matches!(refused(&[16], &[1.0]), FormatError::ColumnOutOfRange { .. }));
    assert!(matches!(refused(&[3, 3], &[1.0, 1.0]), FormatError::ColumnDuplicate { .. }));
    assert!(matches!(refused(&[3, 2], &[1.0, 1.0]), FormatError::ColumnUnsorted { .. }));
    let _ = refused(&[3], &[]);
    assert_eq!(scorer.score_row(&[], &[]).unwrap(), [0.0]);
}

/// A panic of the data or of a callback reaches the caller; another run is as the first would have
/// been.
#[test]
fn a_run_after_a_panic_that_was_caught_is_as_any_other() {
    let train = data(40, D);
    let run = |panics: bool| {
        let mut model = bags();
        let mut trainer =
            trainer().batch_size(4).callback(move |_: &nnz::training::EpochReport| {
                assert!(!panics, "no more of this");
                std::ops::ControlFlow::Continue(())
            });
        trainer.fit(&mut model, &train).unwrap();
        weights(&model)
    };
    let expected = run(false);
    assert!(catch_unwind(AssertUnwindSafe(|| run(true))).is_err());
    assert_eq!(run(false), expected);
}

#[test]
fn a_model_of_a_size_that_cannot_be_addressed_is_refused() {
    for d in [usize::MAX, 1 << 62] {
        let error = Bags::new(dims! { d: d }, Seed(1)).map(|_| ()).unwrap_err();
        assert!(matches!(error, nnz::Error::Dims(DimsError::TooLarge { .. })), "{error}");
    }
}
