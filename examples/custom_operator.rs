//! Operators of one's own: what they compute is written in Rust, everything else is declared.
//!
//! ```sh
//! cargo run --release --example custom_operator
//! ```

use nnz::data::synthetic;
use nnz::prelude::*;

/// x · sigmoid(x).
fn swish(x: f32) -> f32 {
    x / (1.0 + (-x).exp())
}

fn swish_slope(x: f32) -> f32 {
    let sigmoid = 1.0 / (1.0 + (-x).exp());
    sigmoid * (1.0 + x * (1.0 - sigmoid))
}

/// The mean over the stored elements of each row: the element times the row of a table that its
/// column names. The compiler knows the shape of `out`, which is all 0 before.
fn mean_of_rows(out: &mut Dense, x: CsrView<'_>, w: RowSparseView<'_>) {
    for (row, stored) in x.iter_rows().enumerate() {
        let (Some(out), n) = (out.row_mut(row), stored.len()) else { continue };
        for (column, value) in stored {
            for (out, weight) in out.iter_mut().zip(w.row(column).unwrap_or_default()) {
                *out += value * weight / n as f32;
            }
        }
    }
}

graph! {
    /// A function of each element. It is 0 at 0, so that a csr stays one.
    operator swish(x) {
        each = crate::swish;
        derivative = crate::swish_slope;
        at_zero = 0;
    }

    /// A product that is scaled. Its gradient is a formula, from whose operators follows how it is
    /// stored.
    operator mean_of_rows(x, w) {
        rule csr row_sparse -> dense = crate::mean_of_rows;
        shape [n, d] [d, k] -> [n, k];
        reads w by columns(x);
        gradient w = dot(x, grad / expand_dims(count_of(x), axis = 1), transpose_lhs = true);
    }

    /// How much is stored in each row.
    operator count_of(x) {
        rule csr -> dense = crate::count_of;
        shape [n, d] -> [n];
    }

    pub model Clicks {
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 8] = Normal { mean: 0.0, std: 0.3 };
        param v: dense[8, 1] = Normal { mean: 0.0, std: 0.3 };
        param b: dense[1] = Zeros;
        let hidden = swish(mean_of_rows(x, w));
        let score = dot(hidden, v) + b;
        loss logistic(score, y);
        output probability = sigmoid(score);
    }
}

fn count_of(out: &mut Dense, x: CsrView<'_>) {
    for (count, stored) in out.values_mut().iter_mut().zip(x.iter_rows()) {
        *count = stored.len().max(1) as f32;
    }
}

fn main() -> Result<()> {
    let data = synthetic::click_log(4000, 500, 10, 1)?;
    let (train, test) = data.split(0.8, 2)?;
    let mut model = Clicks::new(dims! { d: 500 }, Seed(3))?;
    println!("{}", Clicks::PLAN);
    let rule = AdaGrad { learning_rate: 0.3, ..AdaGrad::default() };
    Trainer::new(rule)
        .batch_size(32)
        .epochs(5)
        .metric(LogLoss)
        .metric(Auc)
        .evaluation(&test)
        .fit(&mut model, &train)?;
    Ok(())
}
