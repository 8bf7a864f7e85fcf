//! Threads that train one model without locks, against one thread: the time of the wall, and the
//! loss after some epochs.

use super::linear::{Logistic, RATE};
use crate::data::Data;
use crate::workload::{Error, Named, Workload};
use nnz::optimizer::UpdateRule;
use nnz::prelude::*;

const EPOCHS: u64 = 3;

pub fn workloads(data: &Data) -> Vec<Named<'_>> {
    let rate = f64::from(RATE);
    let sgd = Sgd { learning_rate: rate, ..Sgd::default() };
    let adagrad = AdaGrad { learning_rate: rate, ..AdaGrad::default() };
    let two = Hogwild::threads(2);
    let ways = [
        ("every row shared", two),
        ("1024 hot rows, merged every 64", two.hot_rows(1024).merge_every(64)),
        ("4096 hot rows, merged every 256", two.hot_rows(4096).merge_every(256)),
    ];
    let mut all = Vec::new();
    for (way, hogwild) in ways {
        all.push(workload(data, way, hogwild, sgd.clone()));
        all.push(workload(data, way, hogwild, adagrad.clone()));
    }
    all
}

/// A model trained from zeros.
struct Trained<'a, R: UpdateRule> {
    data: &'a Dataset,
    trainer: Trainer<'static, R>,
    model: Option<Logistic>,
}

impl<'a, R: UpdateRule> Trained<'a, R> {
    fn new(data: &'a Dataset, rule: R) -> Self {
        let trainer = Trainer::new(rule).epochs(EPOCHS).shuffle(false).progress(Progress::Silent);
        Trained { data, trainer, model: None }
    }

    fn run(&mut self, hogwild: Option<Hogwild>) {
        let trained = self.train(hogwild);
        // Without a model there is no loss, which is not accepted.
        self.model = trained.map_err(|error| eprintln!("{error}")).ok();
    }

    fn train(&mut self, hogwild: Option<Hogwild>) -> Result<Logistic, Error> {
        let mut model = Logistic::new(dims! { d: self.data.n_features() }, Seed(0))?;
        match hogwild {
            Some(hogwild) => self.trainer.fit_hogwild(&mut model, self.data, hogwild)?,
            None => self.trainer.fit(&mut model, self.data)?,
        };
        Ok(model)
    }

    /// On the data that it has learnt from.
    fn loss(&self) -> f64 {
        let score = |mut model: Logistic| self.trainer.score(&mut model, self.data).ok();
        self.model.clone().and_then(score).map_or(f64::NAN, |report| report.loss)
    }
}

fn workload<'a, R: UpdateRule>(data: &'a Data, way: &str, hogwild: Hogwild, rule: R) -> Named<'a> {
    Named::new(format!("Hogwild 2^20 {}, {way}", R::NAME), move || {
        let data = data.log(20)?;
        let trained = || Trained::new(data, rule.clone());
        Ok(Workload::per_second("M samples/s", (EPOCHS as usize * data.n_rows()) as f64 / 1e6)
            .wall()
            .tolerance(0.2)
            .showing("loss")
            .contestant("2 threads", trained(), move |it| it.run(Some(hogwild)), Trained::loss)
            .contestant("one thread", trained(), |it| it.run(None), Trained::loss))
    })
}
