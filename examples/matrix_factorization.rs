//! Matrix factorization with biases on ratings, `user item rating` a line.
//!
//! ```text
//! cargo run --release --example matrix_factorization -- ml100k.u2.base.gz ml100k.u2.test
//! ```

#[path = "command_line/run.rs"]
mod command_line;

use command_line::run;
use nnz::data::{IdMap, Ratings, TextReader};
use nnz::prelude::*;
use nnz::training::ScoreReport;
use std::process::ExitCode;

graph! {
    /// Ratings as inner products of users' and items' factors, and biases; the output is cut to the
    /// scale of the ratings.
    pub model MatrixFactorization {
        input user: dense<u32>[n];
        input item: dense<u32>[n];
        label rating: dense[n];

        param p: row_sparse[users, k] = Normal { mean: 0.0, std: 0.1 };
        param q: row_sparse[items, k] = Normal { mean: 0.0, std: 0.1 };
        param of_user: row_sparse[users] = Zeros;
        param of_item: row_sparse[items] = Zeros;
        param mean: dense[1] = Zeros;

        let score = sum(take(p, user) * take(q, item), axis = 1)
            + take(of_user, user) + take(of_item, item) + mean;

        loss squared_error(score, rating);
        output prediction = clip(score, lower = 1, upper = 5);
    }
}

fn main() -> ExitCode {
    run("matrix_factorization TRAIN TEST", |words| match words {
        [train, test] => Some(fit(train, test)),
        _ => None,
    })
}

/// Half the squared error of the scores on the test file, and the root of the mean squared error of
/// the predictions.
pub fn fit(train: &str, test: &str) -> Result<ScoreReport> {
    // Items that occur in the test file alone have a row as well, which stays near 0.
    let (mut users, mut items) = (IdMap::new(), IdMap::new());
    for path in [train, test] {
        let data: Dataset = TextReader::new(Ratings::new()).read_path(path)?;
        for (column, known) in [("user", &mut users), ("item", &mut items)] {
            for id in data.id_map(column).into_iter().flat_map(IdMap::ids) {
                known.insert(id);
            }
        }
    }
    let dims = dims! { users: users.len(), items: items.len(), k: 8 };
    let reader = TextReader::new(Ratings::new().users(users).items(items));
    let (train, test) = (reader.read_path(train)?, reader.read_path(test)?);

    let mut model = MatrixFactorization::new(dims, Seed(42))?;
    let sgd = Sgd { learning_rate: 0.2, weight_decay: 1.25e-4, ..Sgd::default() };
    let mut trainer = Trainer::new(sgd)
        .epochs(20)
        .schedule(Schedule::Exponential { factor: 0.8, unit: ScheduleUnit::Epoch })
        .metric(Rmse);
    trainer.fit(&mut model, &train)?;
    trainer.score(&mut model, &test)
}
