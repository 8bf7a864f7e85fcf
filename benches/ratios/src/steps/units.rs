//! Logistic regression on the log of clicks as a pattern, whose values are 1: against the loops by
//! hand without values, and beside the same model of the same data with them.

use super::emitted::Emitted;
use super::hand::{self, Batches, Lines, Log, Rule, WITH_SLOT, stride_of};
use super::linear::{Logistic, RATE, loss};
use crate::data::Data;
use crate::workload::{Named, Workload};
use nnz::formats::Unit;
use nnz::optimizer::UpdateRule;
use nnz::prelude::*;

graph! {
    /// Without bias, as the loops by hand compute it.
    pub model Patterns {
        specialize = [Sgd, AdaGrad, Ftrl, Adam];
        input x: csr<unit>[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Zeros;
        let score = dot(x, w);
        loss logistic(score, y);
        output score;
    }
}

pub fn workloads(data: &Data) -> Vec<Named<'_>> {
    let mut all = Vec::new();
    for batch in [1, 1024] {
        let lazy_update = LazyUpdate::Touched;
        let rate = f64::from(RATE);
        let sgd = Sgd { learning_rate: rate, ..Sgd::default() };
        all.push(workload(data, batch, sgd, hand::Sgd(RATE)));
        let adagrad = AdaGrad { learning_rate: rate, ..AdaGrad::default() };
        all.push(workload(data, batch, adagrad, hand::AdaGrad(RATE)));
        let ftrl = Ftrl { learning_rate: rate, l1: 1e-4, lazy_update, ..Ftrl::default() };
        let by_hand = hand::Ftrl { inverse_rate: 1.0 / RATE, beta: 1.0, l1: 1e-4 };
        all.push(workload(data, batch, ftrl, by_hand));
        let adam = Adam { learning_rate: 1e-3, lazy_update, ..Adam::default() };
        all.push(workload(data, batch, adam, hand::Adam::new(1e-3)));
    }
    all
}

fn workload<'a, const BLOCK: usize, R: UpdateRule, H: Rule<BLOCK> + 'a>(
    data: &'a Data,
    batch: usize,
    rule: R,
    by_hand: H,
) -> Named<'a> {
    let name = format!("patterns 2^20 {} batch {batch}", R::NAME);
    Named::new(name, move || {
        let (log, units) = (data.log(20)?, data.units()?);
        let arrays = Log::of_units(units).ok_or("the log is a pattern with u32 columns")?;
        let dims = || dims! { d: arrays.width };
        let is_sgd = R::NAME == "sgd";
        let stride = stride_of::<BLOCK>(batch);
        let table = Lines::zeros(arrays.width * stride)?;
        let batches = Batches::new(batch);
        Ok(Workload::per_second("M samples/s", arrays.n_rows() as f64 / 1e6)
            .tolerance(1e-3)
            .contestant(
                "nnz",
                Emitted::new(Patterns::new(dims(), Seed(0))?, rule.clone(), batch)?,
                move |emitted| emitted.run(units),
                move |emitted| loss(arrays, (emitted.model.w.values(), 1)),
            )
            .contestant(
                "by hand",
                (table, batches, by_hand, 0.0),
                move |(table, batches, rule, total)| {
                    *total = match (batch, is_sgd) {
                        (1, _) => hand::online::<BLOCK, H, Unit>(arrays, table.get_mut(), rule),
                        (_, true) => batches.sgd(arrays, table.get_mut(), RATE),
                        _ => {
                            batches.any::<BLOCK, WITH_SLOT, H, Unit>(arrays, table.get_mut(), rule)
                        }
                    };
                },
                move |(table, ..)| loss(arrays, (table.get(), stride)),
            )
            .contestant(
                "nnz with values",
                Emitted::new(Logistic::new(dims(), Seed(0))?, rule, batch)?,
                move |emitted| emitted.run(log),
                move |emitted| loss(arrays, (emitted.model.w.values(), 1)),
            ))
    })
}
