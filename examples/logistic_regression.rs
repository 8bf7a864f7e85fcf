//! Logistic regression on a LibSVM file (gzip if it ends in .gz), with an optional test file.
//!
//! ```text
//! cargo run --release --example logistic_regression -- a9a.gz a9a.t.gz
//! ```

use nnz::prelude::*;
use std::process::ExitCode;

graph! {
    /// Logistic regression; the output is the probability of the positive class.
    pub model LogisticRegression {
        input x: csr[n, d];
        label y: dense[n, 1];

        param w: row_sparse[d, 1] = Zeros;
        param b: dense[1] = Zeros;

        let score = dot(x, w) + b;

        loss logistic(score, y);
        output probability = sigmoid(score);
    }
}

fn main() -> ExitCode {
    let mut paths = std::env::args().skip(1);
    let Some(train) = paths.next() else {
        eprintln!("usage: logistic_regression TRAIN [TEST]");
        return ExitCode::from(2);
    };
    match run(&train, paths.next().as_deref()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("logistic_regression: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(train: &str, test: Option<&str>) -> Result<()> {
    let data = libsvm::read(train, IndexBase::Detect)?;
    println!("{data}");
    let reader = libsvm::Reader::new().n_features(data.n_features());
    let test = test.map(|path| reader.read_path(path)).transpose()?;

    let mut model = LogisticRegression::new(dims! { d: data.n_features() }, Seed(42))?;
    println!("{}", LogisticRegression::PLAN);

    let sgd = Sgd { learning_rate: 0.1, weight_decay: 1e-5, ..Default::default() };
    let mut trainer = Trainer::new(sgd)
        .batch_size(8)
        .epochs(5)
        .schedule(Schedule::InverseScaling { decay: 1e-4, power: 1.0, unit: ScheduleUnit::Step })
        .metric(LogLoss)
        .metric(Accuracy)
        .metric(Auc)
        .evaluation(test.as_ref());
    trainer.fit(&mut model, &data)?;

    // Saved beside and renamed; loading refuses a file of another graph.
    let path = std::env::temp_dir().join("logistic_regression.safetensors");
    checkpoint::save(&model, &path)?;
    let mut loaded = LogisticRegression::new(dims! { d: data.n_features() }, Seed(0))?;
    checkpoint::load(&mut loaded, &path)?;
    println!("saved to {}, loaded again: {}", path.display(), trainer.score(&mut loaded, &data)?);
    Ok(())
}
