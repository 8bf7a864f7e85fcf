//! What a penalty costs beside an epoch, of a wide table of which few rows are in use.

use super::emitted::Emitted;
use super::linear::{Logistic, RATE};
use crate::data::{Data, Random};
use crate::workload::{Error, Named, Workload};
use nnz::prelude::*;

const WIDTH: usize = 1 << 24;
/// Columns in use, which lie anywhere.
const IN_USE: usize = 9_565;
const SAMPLES: usize = 100_000;
const ENTRIES: usize = 39;

pub fn workloads(_: &Data) -> Vec<Named<'_>> {
    [1, 1024].into_iter().flat_map(|batch| [norms(batch), epoch(batch)]).collect()
}

/// A log of features that were hashed into far more columns than there are features.
fn log() -> Result<Dataset, Error> {
    let mut random = Random(17);
    let mut draw = |below: usize| (random.uniform() * below as f64) as usize;
    let mut in_use: Vec<u32> = (0..IN_USE).map(|_| draw(WIDTH) as u32).collect();
    in_use.sort_unstable();
    let rows = (0..SAMPLES).map(|_| {
        let mut columns: Vec<usize> =
            (0..ENTRIES).map(|_| in_use[draw(in_use.len())] as usize).collect();
        columns.sort_unstable();
        columns.dedup();
        columns.into_iter().map(|column| (column, 1.0f32)).collect::<Vec<_>>()
    });
    let x = Csr::from_rows(WIDTH, rows)?;
    let labels = (0..SAMPLES).map(|row| (row % 3 == 0) as u8 as f32).collect::<Vec<_>>();
    Ok(Dataset::new(x, labels)?)
}

fn trained(log: &Dataset, batch: usize) -> Result<Emitted<Logistic, Sgd>, Error> {
    let model = Logistic::new(dims! { d: WIDTH }, Seed(0))?;
    let rule = Sgd { learning_rate: f64::from(RATE), ..Sgd::default() };
    let mut emitted = Emitted::new(model, rule, batch)?;
    emitted.run(log);
    Ok(emitted)
}

/// Norms of a table after an epoch, against those of a table of the rows in use alone.
fn norms<'a>(batch: usize) -> Named<'a> {
    let name = format!("norms, {IN_USE} of 2^24 rows in use, after sgd batch {batch}");
    Named::new(name, move || {
        let model = trained(&log()?, batch)?.model;
        let mut alone = Vec::new();
        model.w.table().for_each_written_row(|_, weights| alone.extend_from_slice(weights));
        let alone = nnz::table::Table::from_values(1, &alone);
        Ok(Workload::per_second("k passes/s", 1e-3)
            .contestant("nnz", 0.0, move |sum| *sum = model.w.table().norms().l1, |sum| *sum)
            .contestant("rows in use alone", 0.0, move |sum| *sum = alone.norms().l1, |sum| *sum))
    })
}

/// An epoch and then the norms, against the epoch.
fn epoch<'a>(batch: usize) -> Named<'a> {
    let name = format!("epoch and norms, {IN_USE} of 2^24 rows in use, sgd batch {batch}");
    Named::new(name, move || {
        let data = std::rc::Rc::new(log()?);
        let (ours, theirs) = (trained(&data, batch)?, trained(&data, batch)?);
        let also = data.clone();
        let weight = |emitted: &Emitted<Logistic, Sgd>| emitted.model.w.table().norms().l1;
        Ok(Workload::per_second("M samples/s", SAMPLES as f64 / 1e6)
            .contestant(
                "with norms",
                ours,
                move |emitted| {
                    emitted.run(&data);
                    std::hint::black_box(emitted.model.w.table().norms());
                },
                weight,
            )
            .contestant("the epoch", theirs, move |emitted| emitted.run(&also), weight))
    })
}
