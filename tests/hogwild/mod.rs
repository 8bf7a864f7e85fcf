//! Threads that train one model at once, without locks.

use super::Logistic;
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

const N_FEATURES: usize = 1 << 12;

fn data() -> Dataset {
    synthetic::click_log(3000, N_FEATURES, 10, 7).unwrap()
}

fn trainer<R: UpdateRule>(rule: R) -> Trainer<'static, R> {
    Trainer::new(rule).epochs(3).progress(Progress::Silent)
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
        let near = 0.5 * (at_first - alone);
        for (ways, tolerance) in [
            (Hogwild::threads(1), 1e-5),
            (Hogwild::threads(1).hot_rows(100), 1e-5),
            (Hogwild::threads(2), near),
            (Hogwild::threads(3).hot_rows(100).merge_every(16), near),
        ] {
            let (_, together) = loss(Some(ways));
            assert!(
                (together - alone).abs() < tolerance,
                "{rule:?}, {ways:?}: {together}, alone {alone}"
            );
        }
    }
    of(Sgd { learning_rate: 0.05, ..Sgd::default() });
    of(AdaGrad::default());
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

    let mut machine = Machine::new(dims! { d: N_FEATURES }, Seed(1)).unwrap();
    let error = trainer(Sgd::default()).fit_hogwild(&mut machine, &data, two).unwrap_err();
    assert_eq!(
        error.to_string(),
        "`Machine` is not for `fit_hogwild`: it has not one parameter with a row_sparse gradient; use `fit_on_threads`"
    );

    // Found out by the first steps; the parameters are as they were.
    let mut bags = Bags::new(dims! { d: N_FEATURES }, Seed(1)).unwrap();
    let before = bags.clone();
    let error = trainer(Sgd::default()).fit_hogwild(&mut bags, &data, two).unwrap_err();
    assert!(error.to_string().starts_with("parameter `t`: threads share it"), "{error}");
    assert!(bags.t.values() == before.t.values() && bags.h.values() == before.h.values());
}
