//! The rows: each model by each rule, one sample a step, and some in batches.

use crate::models::*;
use nnz::optimizer::{UpdateRule, Updater};
use nnz::prelude::*;
use std::error::Error;

/// A row of the table.
pub struct Row {
    pub name: String,
    /// Samples of an epoch.
    pub samples: usize,
    make: Box<dyn Fn() -> Result<Epoch, Box<dyn Error>>>,
}

/// Trains for one epoch more.
pub type Epoch = Box<dyn FnMut() -> Result<(), Box<dyn Error>>>;

impl Row {
    /// A new model with its states.
    pub fn make(&self) -> Result<Epoch, Box<dyn Error>> {
        (self.make)()
    }
}

/// Every row.
pub fn rows(data: &'static Data) -> Vec<Row> {
    let mut rows = Vec::new();
    let d = || dims! { d: FEATURES };
    by_rule(&mut rows, "linear", &data.clicks, move || Linear::new(d(), Seed(0)));
    by_rule(&mut rows, "logistic", &data.clicks, move || Logistic::new(d(), Seed(0)));
    by_rule(&mut rows, "poisson", &data.clicks, move || Poisson::new(d(), Seed(0)));
    by_rule(&mut rows, "softmax", &data.classes, move || Softmax::new(d(), Seed(0)));
    by_rule(&mut rows, "machine", &data.clicks, move || Machine::new(d(), Seed(0)));
    by_rule(&mut rows, "wide & deep", &data.clicks, move || WideDeep::new(d(), Seed(0)));
    by_rule(&mut rows, "texts", &data.classes, move || Texts::new(d(), Seed(0)));
    let sizes = || dims! { users: USERS, items: ITEMS };
    by_rule(&mut rows, "ratings", &data.ratings, move || Factors::new(sizes(), Seed(0)));
    rows
}

fn by_rule<M, F>(rows: &mut Vec<Row>, model: &str, data: &'static Dataset, new: F)
where
    M: Model<Element = f32> + 'static,
    F: Fn() -> nnz::Result<M> + Copy + 'static,
{
    let lazy_update = LazyUpdate::Touched;
    let learning_rate = 0.01;
    let mut of = Rows { rows, model, data, new };
    of.add("sgd", Sgd { learning_rate, ..Sgd::default() });
    of.add("adagrad", AdaGrad { learning_rate, ..AdaGrad::default() });
    of.add("ftrl", Ftrl { learning_rate, lazy_update, ..Ftrl::default() });
    of.add("adam", Adam { learning_rate: 1e-3, lazy_update, ..Adam::default() });
    of.add("adamw", AdamW { learning_rate: 1e-3, lazy_update, ..AdamW::default() });
    of.add("rmsprop", RmsProp { learning_rate: 1e-3, lazy_update, ..RmsProp::default() });
    if model == "logistic" {
        of.add("adam, exact", Adam { learning_rate: 1e-3, ..Adam::default() });
    }
}

struct Rows<'a, F> {
    rows: &'a mut Vec<Row>,
    model: &'a str,
    data: &'static Dataset,
    new: F,
}

impl<M, F> Rows<'_, F>
where
    M: Model<Element = f32> + 'static,
    F: Fn() -> nnz::Result<M> + Copy + 'static,
{
    fn add<R: UpdateRule>(&mut self, rule_name: &str, rule: R) {
        for batch_size in [1, 1024] {
            if batch_size > 1 && !["sgd", "adagrad", "adam"].contains(&rule_name) {
                continue;
            }
            let (new, data, rule) = (self.new, self.data, rule.clone());
            let make = move || -> Result<Epoch, Box<dyn Error>> {
                let mut model = new()?;
                let mut trainer = Trainer::new(rule.clone())
                    .batch_size(batch_size)
                    .shuffle(false)
                    .progress(Progress::Silent);
                let mut updater: Updater<R, f32> = trainer.updater(&model)?;
                let mut epoch = 0;
                Ok(Box::new(move || {
                    trainer.fit_epochs(&mut model, &mut updater, data, epoch..epoch + 1)?;
                    epoch += 1;
                    Ok(())
                }))
            };
            let name = format!("{} {rule_name} batch {batch_size}", self.model);
            self.rows.push(Row { name, samples: self.data.n_rows(), make: Box::new(make) });
        }
    }
}
