//! Linear regression on sparse features, the reference tutorial: a 1000 × 100 csr matrix of density 0.01, labels
//! made with the weights 1, 2, … 100, batches of one row, SGD with momentum.
//!
//! ```text
//! cargo run --release --example linear_regression
//! ```

use nnz::data::synthetic;
use nnz::ops;
use nnz::prelude::*;
use std::process::ExitCode;

graph! {
    /// Least-squares regression on sparse features.
    pub model LinearRegression {
        input x: csr[n, d];
        label y: dense[n, 1];

        param w: row_sparse[d, 1] = Normal { mean: 0.0, std: 0.01 };
        param b: dense[1] = Zeros;

        let pred = dot(x, w) + b;

        loss squared_error(pred, y);
        output pred;
    }
}

fn main() -> ExitCode {
    match run() {
        Ok(mse) if mse < 1.0 => ExitCode::SUCCESS,
        Ok(mse) => {
            eprintln!("the mean squared error {mse} is larger than expected (1.0)");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("linear_regression: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The mean squared error of the last epoch.
fn run() -> Result<f64> {
    let x: Csr = synthetic::random_csr(1000, 100, 0.01, 42)?;
    let target = Dense::new([100, 1], (1..=100).map(|weight| weight as f32).collect())?;
    let y = ops::dot(&x, &target)?;
    let data = Dataset::new(x, y.into_values())?;

    let mut model = LinearRegression::new(dims! { d: data.n_features() }, Seed(42))?;
    // Rows that a batch does not touch keep their momentum, exactly. `lazy_update: LazyUpdate::Touched` leaves them
    // alone, as MXNet does: it converges more slowly here, to 0.4 and not to 0.002.
    let sgd = Sgd { learning_rate: 0.05, momentum: 0.9, ..Default::default() };
    let report = Trainer::new(sgd).batch_size(1).epochs(10).metric(Mse).fit(&mut model, &data)?;
    Ok(report.last().and_then(|epoch| epoch.metric("mse")).unwrap_or(f64::NAN))
}
