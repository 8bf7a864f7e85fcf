//! The same batches for tables of more and more rows: what a step costs must not grow with them.

use super::emitted::Emitted;
use super::linear::Logistic;
use crate::data::Data;
use crate::workload::{Named, Workload};
use nnz::optimizer::UpdateRule;
use nnz::prelude::*;

/// The features that occur.
const NARROW: u32 = 16;
const BATCH: usize = 1024;

pub fn workloads(data: &Data) -> Vec<Named<'_>> {
    let wide = [NARROW, 20, 24, 28];
    wide.into_iter()
        .flat_map(|bits| {
            let lazy_update = LazyUpdate::Touched;
            let ftrl = Ftrl { learning_rate: 0.05, l1: 1e-4, lazy_update, ..Ftrl::default() };
            let sgd = Sgd { learning_rate: 0.05, ..Sgd::default() };
            let momentum = Sgd { momentum: 0.9, ..sgd.clone() };
            [
                workload(data, bits, "sgd", sgd),
                workload(data, bits, "sgd with momentum", momentum),
                workload(data, bits, "ftrl", ftrl),
            ]
        })
        .collect()
}

fn workload<'a, R: UpdateRule>(data: &'a Data, bits: u32, label: &str, rule: R) -> Named<'a> {
    let name = format!("width 2^{bits} {label} batch {BATCH}");
    Named::new(name, move || {
        let model = |bits: u32| Logistic::new(dims! { d: 1usize << bits }, Seed(0));
        let (narrow, wide) = (data.widened(NARROW, NARROW)?, data.widened(NARROW, bits)?);
        let n_batches = wide.n_rows().div_ceil(BATCH);
        let sum = |model: &Logistic| {
            (0..1 << NARROW).map(|row| f64::from(model.w.row(row)[0]).abs()).sum::<f64>()
        };
        Ok(Workload::per_second("k steps/s", n_batches as f64 / 1e3)
            .contestant(
                "nnz",
                Emitted::new(model(bits)?, rule.clone(), BATCH)?,
                move |emitted| emitted.run(&wide),
                move |emitted| sum(&emitted.model),
            )
            .contestant(
                "width 2^16",
                Emitted::new(model(NARROW)?, rule, BATCH)?,
                move |emitted| emitted.run(&narrow),
                move |emitted| sum(&emitted.model),
            ))
    })
}
