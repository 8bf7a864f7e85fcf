//! To the optimum of an L2-regularised problem by SVRG and by SAGA, on a LibSVM file (gzip if it
//! ends in .gz).
//!
//! ```text
//! cargo run --release --example svrg -- a9a.gz
//! ```

#[path = "command_line/run.rs"]
mod command_line;

use command_line::run;
use nnz::core::update_rules::UpdateRule;
use nnz::prelude::*;
use std::process::ExitCode;

graph! {
    /// Logistic regression without bias.
    pub model Logistic {
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Zeros;
        let score = dot(x, w);
        loss logistic(score, y);
        output probability = sigmoid(score);
    }
}

fn main() -> ExitCode {
    run("svrg TRAIN", |words| match words {
        [train] => Some(both(train)),
        _ => None,
    })
}

/// What each of the two methods found.
fn both(train: &str) -> Result<String> {
    let data = libsvm::read(train, IndexBase::Detect)?;
    let Some(x) = data.features() else { return Ok("no features".into()) };
    let squares = x.iter_rows().map(|row| row.map(|(_, value)| value * value).sum::<f32>());
    // The loss of a row curves by at most a quarter of its squared norm.
    let curvature = f64::from(squares.fold(0.0, f32::max)) / 4.0;
    let weight_decay = 1.0 / data.n_rows() as f64;

    // At three times the rate the variance of corrected steps holds the run back:
    // docs/variance_reduction.md.
    let sgd = Sgd { learning_rate: 1.0 / (3.0 * curvature), weight_decay, ..Sgd::default() };
    let svrg = fit(Svrg { update_freq: 2, rule: sgd.clone() }, &data, weight_decay, 30)?;
    let saga = fit(Saga { rule: sgd }, &data, weight_decay, 30)?;
    Ok(format!("{svrg}\n{saga}"))
}

fn fit<R: UpdateRule>(rule: R, data: &Dataset, l2: f64, epochs: u64) -> Result<String> {
    let mut model = Logistic::new(dims! { d: data.n_features() }, Seed(0))?;
    let mut trainer = Trainer::new(rule).epochs(epochs).metric(Accuracy);
    trainer.fit(&mut model, data)?;
    let squares: f64 = model.w.values().iter().map(|w| f64::from(*w).powi(2)).sum();
    let objective = trainer.score(&mut model, data)?.loss + l2 / 2.0 * squares;
    Ok(format!("{}: objective {objective:.9}", R::NAME))
}
