//! Threads that train one model at once, without locks.

use super::{Logistic, Softmax};
use nnz::core::update_rules::UpdateRule;
use nnz::data::synthetic;
use nnz::prelude::*;

graph! {
    /// Two tables.
    pub model Machine {
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Zeros;
        param v: row_sparse[d, 4] = Normal { mean: 0.0, std: 0.1 };
        loss logistic(dot(x, w) + pairwise_interaction(x, v), y);
    }
}

graph! {
    /// One table, which no product reads.
    pub model Bags {
        input x: csr[n, d];
        label y: dense[n, 1];
        param t: row_sparse[d, 4] = Normal { mean: 0.0, std: 0.3 };
        param h: dense[4, 1] = Normal { mean: 0.0, std: 0.3 };
        loss logistic(dot(tanh(embedding_bag(x, t)), h), y);
    }
}

graph! {
    /// A table that two reads name rows of, one of them the other's.
    pub model Twice {
        input x: csr[n, d];
        label y: dense[n, 1];
        param t: row_sparse[d, 4] = Normal { mean: 0.0, std: 0.3 };
        param h: dense[4, 1] = Normal { mean: 0.0, std: 0.3 };
        let bag = embedding_bag(x, t, mean = true);
        loss logistic(dot(tanh(bag), h) + pairwise_interaction(x, t), y);
    }
}

graph! {
    /// Rows that ids name, two of them of one table.
    pub model Ratings {
        input user: dense<u32>[n];
        input better: dense<u32>[n];
        input worse: dense<u32>[n];
        label y: dense[n];
        param p: row_sparse[users, 4] = Normal { mean: 0.0, std: 0.3 };
        param q: row_sparse[items, 4] = Normal { mean: 0.0, std: 0.3 };
        param b: row_sparse[items] = Zeros;
        let liked = sum(take(p, user) * take(q, better), axis = 1) + take(b, better);
        let other = sum(take(p, user) * take(q, worse), axis = 1) + take(b, worse);
        loss logistic(liked - other, y);
    }
}

graph! {
    /// A step of kernels.
    pub model Unfused {
        fuse = off;
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Zeros;
        loss logistic(dot(x, w), y);
    }
}

const N_FEATURES: usize = 1 << 12;

fn data() -> Dataset {
    synthetic::click_log(3000, N_FEATURES, 10, 7).unwrap()
}

fn trainer<R: UpdateRule>(rule: R) -> Trainer<'static, R> {
    Trainer::new(rule).epochs(3).progress(Progress::Silent)
}

/// Of the first 300 rows of data features below 64, of the others those above.
fn halves() -> Dataset {
    let log = synthetic::click_log(600, 64, 6, 7).unwrap();
    let rows = log.features().unwrap().iter_rows().enumerate().map(|(row, entries)| {
        let moved = entries.map(move |(column, value)| (column + row / 300 * 64, value));
        moved.collect::<Vec<_>>()
    });
    let x = Csr::from_rows(128, rows).unwrap();
    let classes = (0..600u32).map(|row| row * 7 % 3).collect();
    let labels = Dense::new([600], classes).unwrap();
    Dataset::builder().input("x", x).label("y", labels).build().unwrap()
}

/// Nothing is lost and nothing is late of what no other thread names.
#[test]
fn threads_that_name_rows_of_their_own_make_the_weights_of_one() {
    let data = halves();
    let weights = |hogwild: Hogwild| {
        let mut model = Softmax::new(dims! { d: 128, k: 3 }, Seed(1)).unwrap();
        let mut trainer = trainer(AdaGrad::default()).shuffle(false);
        trainer.fit_hogwild(&mut model, &data, hogwild).unwrap();
        model.w.values().to_vec()
    };
    let alone = weights(Hogwild::threads(1));
    assert!(
        alone.iter().all(|weight| weight.abs() < 2.0) && alone.iter().any(|weight| *weight != 0.0)
    );
    assert_eq!(weights(Hogwild::threads(2)), alone);
    // A copy is merged 57 times, which adds a change and rounds twice, each time by at most 2⁻²³ of
    // numbers below 2.
    let copied = weights(Hogwild::threads(2).hot_rows(32).merge_every(16));
    let far = copied.iter().zip(&alone).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(far > 0.0 && far < 57.0 * 4.0 * f32::EPSILON, "{far}");
}

#[test]
fn the_loss_falls_as_on_one_thread() {
    fn of<R: UpdateRule>(rule: R) {
        let data = data();
        let loss = |hogwild: Option<Hogwild>| {
            let mut model = Logistic::new(dims! { d: N_FEATURES }, Seed(1)).unwrap();
            let mut trainer = trainer(rule.clone());
            let report = match hogwild {
                None => trainer.fit(&mut model, &data).unwrap(),
                Some(hogwild) => trainer.fit_hogwild(&mut model, &data, hogwild).unwrap(),
            };
            assert!(
                report.epochs.len() == 3 && report.epochs.iter().all(|epoch| epoch.n_rows == 3000)
            );
            (report.epochs[0].loss, trainer.score(&mut model, &data).unwrap().loss)
        };
        let (at_first, alone) = loss(None);
        assert!(alone < at_first, "{alone} after {at_first}");
        for ways in [Hogwild::threads(1), Hogwild::threads(1).hot_rows(100)] {
            let (_, by_one) = loss(Some(ways));
            assert!((by_one - alone).abs() < 1e-5, "{rule:?}, {ways:?}: {by_one}, alone {alone}");
        }
        // That it falls is all that holds however threads are scheduled: one may stand still for as
        // long as another makes an epoch, and then overwrites weights with older ones.
        for ways in [Hogwild::threads(2), Hogwild::threads(3).hot_rows(100).merge_every(16)] {
            let (_, together) = loss(Some(ways));
            assert!(together < at_first, "{rule:?}, {ways:?}: {together} after {at_first}");
        }
    }
    of(Sgd { learning_rate: 0.05, ..Sgd::default() });
    of(AdaGrad::default());
}

/// Every model whose step is one loop: several tables, tables of factors, bags, ids, layers.
#[test]
fn tables_of_each_kind_of_read_are_shared() {
    fn of<M, R>(new: impl Fn() -> M, rule: R, data: &Dataset)
    where
        M: Model<Element = f32> + Send,
        R: UpdateRule,
    {
        let trained = |hogwild: Option<Hogwild>| {
            let (mut model, mut trainer) = (new(), trainer(rule.clone()));
            let report = match hogwild {
                None => trainer.fit(&mut model, data).unwrap(),
                Some(hogwild) => trainer.fit_hogwild(&mut model, data, hogwild).unwrap(),
            };
            (report.epochs[0].loss, report.epochs[2].loss, model)
        };
        let (at_first, alone, one) = trained(None);
        assert!(alone < at_first, "{}: {alone} after {at_first}", M::NAME);
        for ways in [Hogwild::threads(1), Hogwild::threads(1).hot_rows(64).merge_every(16)] {
            let (_, loss, model) = trained(Some(ways));
            let what = format!("{}, {rule:?}, {ways:?}", M::NAME);
            assert!((loss - alone).abs() < 1e-4, "{what}: {loss}, alone {alone}");
            for (a, b) in model.parameters().iter().zip(one.parameters()) {
                let pairs = a.values().iter().zip(b.values());
                let far = pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
                assert!(far < 1e-3, "{what}: {} is {far} away", a.name);
            }
        }
        let (before, together, _) = trained(Some(Hogwild::threads(3).hot_rows(64).merge_every(16)));
        assert!(together < before, "{}: {together} after {before}", M::NAME);
    }
    fn by<R: UpdateRule>(rule: R) {
        let (log, triples) = (data(), triples());
        let dims = || dims! { d: N_FEATURES };
        of(|| Machine::new(dims(), Seed(1)).unwrap(), rule.clone(), &log);
        of(|| Bags::new(dims(), Seed(1)).unwrap(), rule.clone(), &log);
        of(|| Twice::new(dims(), Seed(1)).unwrap(), rule.clone(), &log);
        let dims = || dims! { users: 50, items: 30 };
        of(|| Ratings::new(dims(), Seed(1)).unwrap(), rule, &triples);
    }
    by(Sgd { learning_rate: 0.05, ..Sgd::default() });
    by(AdaGrad { learning_rate: 0.05, ..AdaGrad::default() });
}

/// Users, and two items of each, now and then the same.
fn triples() -> Dataset {
    let ids = |factor: u32, below: u32| {
        let ids = (0..2000u32).map(|sample| (sample * factor + sample / 7) % below).collect();
        Dense::new([2000], ids).unwrap()
    };
    let label = |sample: u32| if sample.is_multiple_of(3) { 0.0 } else { 1.0 };
    Dataset::builder()
        .input("user", ids(13, 50))
        .input("better", ids(7, 30))
        .input("worse", ids(11, 30))
        .label("y", Dense::new([2000], (0..2000).map(label).collect()).unwrap())
        .build()
        .unwrap()
}

#[test]
fn what_threads_cannot_share_is_refused() {
    let data = data();
    let two = Hogwild::threads(2);
    let mut model = Logistic::new(dims! { d: N_FEATURES }, Seed(1)).unwrap();
    let mut refusal = |mut trainer: Trainer<'static, Sgd>, hogwild: Hogwild| {
        trainer.fit_hogwild(&mut model, &data, hogwild).unwrap_err().to_string()
    };
    assert_eq!(
        refusal(trainer(Sgd::default()).batch_size(2), two),
        "`batch_size` is not for `fit_hogwild`: its steps are of one row; use `parallel` for larger batches"
    );
    assert_eq!(
        refusal(trainer(Sgd { momentum: 0.9, ..Sgd::default() }), two),
        "`sgd` is not for `fit_hogwild`: steps change rows that they do not touch, of which threads do not tell each other; choose `LazyUpdate::Touched`"
    );
    let touched = LazyUpdate::Touched;
    assert_eq!(
        refusal(
            trainer(Sgd { momentum: 0.9, lazy_update: touched, ..Sgd::default() }),
            two.hot_rows(10)
        ),
        "`sgd` is not for `fit_hogwild`: changes of its state cannot be added up; choose `hot_rows(0)`"
    );
    assert!(refusal(trainer(Sgd::default()).clip_norm(1.0), two).starts_with("`clip_norm`"));
    assert!(refusal(trainer(Sgd::default()), Hogwild::threads(0)).contains("at least 1"));

    let mut unfused = Unfused::new(dims! { d: N_FEATURES }, Seed(1)).unwrap();
    let error = trainer(Sgd::default()).fit_hogwild(&mut unfused, &data, two).unwrap_err();
    assert_eq!(
        error.to_string(),
        "`Unfused` is not for `fit_hogwild`: a step of one row is not one loop; use `fit_on_threads`"
    );
}

/// Of one thread the steps are those of `fit`, and so is the rate of each.
#[test]
fn a_schedule_by_step_is_followed_step_by_step() {
    let unit = ScheduleUnit::Step;
    let schedules = [
        Schedule::Constant.warm_up(500, unit),
        Schedule::Step { every: 400, factor: 0.5, unit },
        Schedule::InverseScaling { decay: 0.01, power: 0.5, unit },
    ];
    let data = data();
    for schedule in schedules {
        let weights = |hogwild: Option<Hogwild>| {
            let mut model = Logistic::new(dims! { d: N_FEATURES }, Seed(1)).unwrap();
            let rule = Sgd { learning_rate: 0.3, ..Sgd::default() };
            let mut trainer = trainer(rule).schedule(schedule.clone());
            match hogwild {
                None => trainer.fit(&mut model, &data).unwrap(),
                Some(hogwild) => trainer.fit_hogwild(&mut model, &data, hogwild).unwrap(),
            };
            model.w.values().to_vec()
        };
        let alone = weights(None);
        for ways in [Hogwild::threads(1), Hogwild::threads(1).hot_rows(100).merge_every(16)] {
            let pairs = weights(Some(ways)).into_iter().zip(&alone);
            let far = pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(far < 1e-4, "{schedule:?}, {ways:?}: {far}");
        }
    }
}
