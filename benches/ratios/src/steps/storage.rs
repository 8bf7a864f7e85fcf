//! Steps through a csr that is computed from parameters, and through functions of a table, for
//! wider and wider data: what a sample costs must not grow with the columns.

use super::emitted::Emitted;
use crate::data::{Data, Random};
use crate::workload::{Error, Named, Workload};
use nnz::formats::Csr;
use nnz::prelude::*;

/// The narrowest, against which the others are measured.
const NARROW: usize = 2_000;
const SAMPLES: usize = 200;
const ENTRIES: usize = 8;

graph! {
    /// Products of two tables at the entries of the batch.
    pub model Sampled {
        input x: csr[n, d];
        label y: dense[n, 1];
        param u: row_sparse[d, 4] = Normal { mean: 0.0, std: 0.1 };
        param v: row_sparse[d, 4] = Normal { mean: 0.0, std: 0.1 };
        param r: row_sparse[d, 1] = Normal { mean: 0.0, std: 0.1 };
        let z = sampled_dot(dot(x, u), v, x, transpose_rhs = true);
        loss logistic(dot(tanh(z + x), r), y);
    }

    /// Functions of tables that are read by rows.
    pub model Functions {
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Normal { mean: 0.0, std: 0.1 };
        param v: row_sparse[d, 1] = Normal { mean: 0.0, std: 0.1 };
        loss logistic(dot(x, relu(w)) + dot(square(x), square(v)), y);
    }
}

pub fn workloads(_: &Data) -> Vec<Named<'_>> {
    let widths = [NARROW, 200_000, 20_000_000];
    let each = widths.into_iter().flat_map(|width| {
        [
            Named::new(format!("computed csr, {width} columns"), move || {
                let model = |width| Ok(Sampled::new(dims! { d: width }, Seed(0))?);
                workload(width, model, |model| f64::from(model.r.row(0)[0]))
            }),
            Named::new(format!("functions of a table, {width} rows"), move || {
                let model = |width| Ok(Functions::new(dims! { d: width }, Seed(0))?);
                workload(width, model, |model| f64::from(model.w.row(0)[0]))
            }),
        ]
    });
    each.collect()
}

/// The ratio is of the time of a sample at the narrowest width over that at `width`. Weights
/// differ, so that what is compared is whether there are numbers.
fn workload<'a, M: Model<Element = f32> + 'a>(
    width: usize,
    model: impl Fn(usize) -> Result<M, Error>,
    weight: impl Fn(&M) -> f64 + Copy + 'a,
) -> Result<Workload<'a>, Error> {
    let rule = Sgd { learning_rate: 0.01, ..Sgd::default() };
    let contestant = |width| {
        let emitted = Emitted::new(model(width)?, rule.clone(), SAMPLES)?;
        Ok::<_, Error>((emitted, samples(width)?))
    };
    let is_finite = move |weight: f64| f64::from(u8::from(weight.is_finite()));
    let (wide, narrow) = (contestant(width)?, contestant(NARROW)?);
    Ok(Workload::per_second("k samples/s", SAMPLES as f64 / 1e3)
        .warm_up(3)
        .contestant(
            "nnz",
            wide,
            |(emitted, data)| emitted.run(data),
            move |(emitted, _)| is_finite(weight(&emitted.model)),
        )
        .contestant(
            "2000 columns",
            narrow,
            |(emitted, data)| emitted.run(data),
            move |(emitted, _)| is_finite(weight(&emitted.model)),
        ))
}

/// Samples whose entries are anywhere among the columns.
fn samples(width: usize) -> Result<Dataset, Error> {
    let mut random = Random(7);
    let rows = (0..SAMPLES).map(|_| {
        let mut columns: Vec<usize> =
            (0..ENTRIES).map(|_| (random.uniform() * width as f64) as usize).collect();
        columns.sort_unstable();
        columns.dedup();
        columns.into_iter().map(|column| (column, 1.0)).collect::<Vec<_>>()
    });
    let x = Csr::from_rows(width, rows)?;
    let labels = (0..SAMPLES).map(|sample| (sample % 2) as f32).collect();
    Ok(Dataset::new(x, labels)?)
}
