//! What a penalty costs beside an epoch, of wide tables of which few rows are in use: what these
//! rows do, whatever the width.

use super::emitted::Emitted;
use super::linear::{Logistic, RATE};
use crate::data::{Data, Random};
use crate::workload::{Error, Named, Workload};
use nnz::prelude::*;

/// Powers of two: columns of the data.
const WIDTHS: [u32; 3] = [20, 24, 28];
/// Columns in use, which lie anywhere.
const IN_USE: usize = 9_565;
const DECAY: f64 = 1e-6;
const SAMPLES: usize = 100_000;
const ENTRIES: usize = 39;

pub fn workloads(_: &Data) -> Vec<Named<'_>> {
    let of_width = |bits| {
        let decays = [norms("norms", bits, 1, DECAY), norms("norms", bits, 1024, DECAY)];
        decays.into_iter().chain([epoch(bits, 1), epoch(bits, 1024)])
    };
    // Nothing makes rows of a rule without idle steps wait, so that nobody has noted them.
    let noted_by_nobody = norms("norms without a penalty", 24, 1, 0.0);
    WIDTHS.into_iter().flat_map(of_width).chain([noted_by_nobody]).collect()
}

/// A log of features that were hashed into far more columns than there are features.
fn log(bits: u32) -> Result<Dataset, Error> {
    let width = 1 << bits;
    let mut random = Random(17);
    let mut draw = |below: usize| (random.uniform() * below as f64) as usize;
    let mut in_use: Vec<u32> = (0..IN_USE).map(|_| draw(width) as u32).collect();
    in_use.sort_unstable();
    let rows = (0..SAMPLES).map(|_| {
        let mut columns: Vec<usize> =
            (0..ENTRIES).map(|_| in_use[draw(in_use.len())] as usize).collect();
        columns.sort_unstable();
        columns.dedup();
        columns.into_iter().map(|column| (column, 1.0f32)).collect::<Vec<_>>()
    });
    let x = Csr::from_rows(width, rows)?;
    let labels = (0..SAMPLES).map(|row| (row % 3 == 0) as u8 as f32).collect::<Vec<_>>();
    Ok(Dataset::new(x, labels)?)
}

type Trained = Emitted<Logistic, Sgd>;

fn trained(log: &Dataset, bits: u32, batch: usize, weight_decay: f64) -> Result<Trained, Error> {
    let model = Logistic::new(dims! { d: 1 << bits }, Seed(0))?;
    let rule = Sgd { learning_rate: f64::from(RATE), weight_decay, ..Sgd::default() };
    let mut emitted = Emitted::new(model, rule, batch)?;
    emitted.run(log);
    Ok(emitted)
}

/// Norms of a table after an epoch, against those of a table of the rows in use alone.
fn norms<'a>(what: &str, bits: u32, batch: usize, weight_decay: f64) -> Named<'a> {
    let name = format!("{what}, {IN_USE} of 2^{bits} rows in use, after sgd batch {batch}");
    Named::new(name, move || {
        let mut trained = trained(&log(bits)?, bits, batch, weight_decay)?;
        let mut alone = Vec::new();
        let rows = trained.model.w.table();
        rows.for_each_written_row(|_, weights| alone.extend_from_slice(weights));
        let alone = nnz::table::Table::from_values(1, &alone);
        if weight_decay == 0.0 {
            // What a pass has found counts until the next write.
            trained.model.w.values_mut();
        }
        let norms = move |sum: &mut f64| *sum = trained.model.w.table().norms().l1;
        let of_alone = move |sum: &mut f64| *sum = alone.norms().l1;
        Ok(Workload::per_second("k passes/s", 1e-3)
            .contestant("nnz", 0.0, norms, |sum| *sum)
            .contestant("rows in use alone", 0.0, of_alone, |sum| *sum))
    })
}

/// An epoch and then the norms, against the epoch.
fn epoch<'a>(bits: u32, batch: usize) -> Named<'a> {
    let name = format!("epoch and norms, {IN_USE} of 2^{bits} rows in use, sgd batch {batch}");
    Named::new(name, move || {
        let data = std::rc::Rc::new(log(bits)?);
        let make = || trained(&data, bits, batch, DECAY);
        let (ours, theirs) = (make()?, make()?);
        let also = data.clone();
        let weight = |emitted: &Trained| emitted.model.w.table().norms().l1;
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
