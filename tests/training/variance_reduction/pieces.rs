//! Rows that are seen twice, and data that comes in pieces.

use super::{D, Linear, N, Unfused, data, parameters, rows};
use nnz::core::update_rules::UpdateRule;
use nnz::prelude::*;

fn sgd() -> Sgd {
    Sgd { learning_rate: 0.5, weight_decay: 0.05, ..Sgd::default() }
}

fn trainer<R: UpdateRule>(rule: R) -> Trainer<'static, R> {
    Trainer::new(rule).decay_all().progress(Progress::Silent)
}

/// The minimum over all rows.
fn optimum() -> Vec<Vec<f64>> {
    let mut model = Linear::new(dims! { d: D }, Seed(1)).unwrap();
    let svrg = Svrg { update_freq: 1, rule: sgd() };
    trainer(svrg).epochs(400).fit(&mut model, &data()).unwrap();
    parameters(&model)
}

fn distance(a: &[Vec<f64>], b: &[Vec<f64>]) -> f64 {
    let pairs = a.iter().flatten().zip(b.iter().flatten());
    pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

/// Any row may fill the last batch up, so that none counts more than others.
#[test]
fn shuffled_rows_that_fill_a_batch_up_do_not_move_the_optimum() {
    fn reached<M: Model<Element = f64> + Send>(
        mut model: M,
        last_batch: LastBatch,
        workers: usize,
    ) -> f64 {
        let svrg = Svrg { update_freq: 1, rule: sgd() };
        let mut trainer = trainer(svrg).epochs(600).batch_size(8).last_batch(last_batch);
        match workers {
            0 => trainer.fit(&mut model, &data()).unwrap(),
            _ => trainer.fit_on_threads(&mut model, &data(), workers).unwrap(),
        };
        distance(&parameters(&model), &optimum())
    }
    let linear = || Linear::new(dims! { d: D }, Seed(1)).unwrap();
    let unfused = || Unfused::new(dims! { d: D }, Seed(1)).unwrap();
    assert_ne!(N % 8, 0);
    for last_batch in [LastBatch::Short, LastBatch::Pad, LastBatch::Discard, LastBatch::RollOver] {
        assert!(reached(linear(), last_batch, 0) < 1e-9, "{last_batch:?}");
        assert!(reached(unfused(), last_batch, 0) < 1e-9, "{last_batch:?}");
    }
    assert!(reached(linear(), LastBatch::Pad, 2) < 1e-9);
}

/// Other rows of the same number: what is kept of those before is of no use.
#[test]
fn pieces_have_mean_gradients_of_their_own() {
    fn reached<R: UpdateRule>(rule: R) -> f64 {
        let (first, second) = (data(), rows((0..N).rev()));
        let mut model = Linear::new(dims! { d: D }, Seed(1)).unwrap();
        let mut trainer = trainer(rule);
        let mut updater = trainer.updater(&model).unwrap();
        for _ in 0..5 {
            trainer.partial_fit(&mut model, &mut updater, &first).unwrap();
        }
        for _ in 0..600 {
            trainer.partial_fit(&mut model, &mut updater, &second).unwrap();
        }
        distance(&parameters(&model), &optimum())
    }
    assert!(reached(Saga { rule: sgd() }) < 1e-9);
    assert!(reached(Svrg { update_freq: 1, rule: sgd() }) < 1e-9);
}
