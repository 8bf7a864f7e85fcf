//! Scoring the log of clicks by a predictor whose table is mapped from its file, against a loop by
//! hand over the same weights.

use crate::data::Data;
use crate::workload::{Error, Named, Workload};
use nnz::formats::ColumnIdsView;
use nnz::predictor::{Predictor, Scorer};
use nnz::prelude::*;
use nnz::training::predict;

graph! {
    /// The probability of a click.
    pub model Clicks {
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Normal { mean: 0.0, std: 0.1 };
        param b: dense[1] = Constant(-1.0);
        let score = dot(x, w) + b;
        loss logistic(score, y);
        output probability = sigmoid(score);
    }
}

/// One row a call, whose time is the latency of a score, or a thousand rows.
const BATCHES: [usize; 2] = [1, 1024];

pub fn workloads(data: &Data) -> Vec<Named<'_>> {
    BATCHES.map(|batch| workload(data, batch)).into()
}

fn workload(data: &Data, batch: usize) -> Named<'_> {
    Named::new(format!("predict logistic 2^20 batch {batch}"), move || {
        let log = data.log(20)?;
        let features = log.features().ok_or("the log has a csr")?;
        let ColumnIdsView::U32(columns) = features.columns() else {
            return Err("the log has u32 columns".into());
        };
        let model = Clicks::new(dims! { d: features.n_cols() }, Seed(1))?;
        let (weights, bias) = (model.w.values().to_vec(), model.b.values()[0]);
        let scorer = mapped(&model)?.scorer()?;
        let rows: Vec<_> = (features.indptr().windows(2))
            .map(|bounds| bounds[0] as usize..bounds[1] as usize)
            .map(|row| (&columns[row.clone()], &features.values()[row]))
            .collect();
        let by_hand = rows.clone();
        Ok(Workload::per_second("M rows/s", rows.len() as f64 / 1e6)
            .contestant(
                "nnz",
                (scorer, 0.0),
                move |(scorer, sum)| {
                    let scored = match batch {
                        1 => one_by_one(scorer, &rows),
                        _ => predict(scorer.model(), log, batch)
                            .map(|scores| scores.values().iter().map(|p| f64::from(*p)).sum()),
                    };
                    *sum = scored.unwrap_or(f64::NAN);
                },
                |(_, sum)| *sum,
            )
            .contestant(
                "by hand",
                0.0,
                move |sum| {
                    *sum = by_hand
                        .iter()
                        .map(|(columns, values)| {
                            let terms = columns.iter().zip(*values);
                            let score: f32 = terms.map(|(c, v)| weights[*c as usize] * v).sum();
                            f64::from(1.0 / (1.0 + (-score - bias).exp()))
                        })
                        .sum();
                },
                |sum| *sum,
            ))
    })
}

fn one_by_one(scorer: &mut Scorer<Clicks>, rows: &[(&[u32], &[f32])]) -> nnz::Result<f64> {
    let mut sum = 0.0;
    for (columns, values) in rows {
        sum += f64::from(scorer.score_row(columns, values)?[0]);
    }
    Ok(sum)
}

/// A predictor of a file that has lost its name and is there as long as it is mapped.
fn mapped(model: &Clicks) -> Result<Predictor<Clicks>, Error> {
    let path = std::env::temp_dir().join(format!("nnz-predict-{}", std::process::id()));
    checkpoint::save(model, &path)?;
    let predictor = Predictor::open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(predictor)
}
