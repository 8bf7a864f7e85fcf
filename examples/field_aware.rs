//! A field-aware factorization machine (Juan, Zhuang, Chin and Lin, RecSys 2016): a feature has a
//! factor for each field that it may meet. The interaction is an operator of the example's own, and
//! so is its gradient, which stores the rows of a batch and no others.
//!
//! ```text
//! cargo run --release --example field_aware -- criteo_tiny.train.ffm.gz criteo_tiny.test.ffm.gz \
//!     429705
//! ```

#[path = "command_line/run.rs"]
mod command_line;

use command_line::run;
use nnz::data::{LibFfm, TextReader};
use nnz::prelude::*;
use nnz::training::ScoreReport;
use std::process::ExitCode;

/// Fields of the data, and the factors that a feature has for each.
const FIELDS: usize = 39;
const FACTORS: usize = 2;

graph! {
    /// Σ xᵢ xⱼ ⟨v[i, fieldⱼ], v[j, fieldᵢ]⟩ over the pairs of stored elements of each row.
    operator field_interaction(x, field, v) {
        rule csr csr row_sparse -> dense = interaction;
        shape [n, d] [n, d] [d, k] -> [n, 1];
        reads v by columns(x);
        gradient v = field_interaction_gradient(x, field, v, grad);
    }

    /// The gradient of that with respect to the factors.
    operator field_interaction_gradient(x, field, v, grad) {
        rule csr csr row_sparse dense -> row_sparse = gradient;
        shape [n, d] [n, d] [d, k] [n, 1] -> [d, k];
        reads v by columns(x);
        stores by columns(x);
    }

    /// The output is the probability of the positive class.
    pub model FieldAware {
        const FIELDS_BY_FACTORS;
        input x: csr[n, d];
        input field: csr[n, d];
        label y: dense[n, 1];

        param w: row_sparse[d, 1] = Zeros;
        param v: row_sparse[d, FIELDS_BY_FACTORS] = Normal { mean: 0.0, std: 0.05 };
        param b: dense[1] = Zeros;

        let score = dot(x, w) + field_interaction(x, field, v) + b;

        loss logistic(score, y);
        output probability = sigmoid(score);
    }
}

const FIELDS_BY_FACTORS: usize = FIELDS * FACTORS;

/// The pairs of a row: the columns of both, where the factors of each begin that are for the
/// other's field, and the product of their values.
fn each_pair(
    x: CsrView<'_>,
    field: CsrView<'_>,
    mut pair: impl FnMut(usize, [(usize, usize); 2], f32),
) {
    for (row, (stored, fields)) in x.iter_rows().zip(field.iter_rows()).enumerate() {
        let entries = || stored.clone().zip(fields.clone().map(|(_, field)| field as usize));
        for (place, ((i, xi), field_i)) in entries().enumerate() {
            for ((j, xj), field_j) in entries().skip(place + 1) {
                pair(row, [(i, field_j * FACTORS), (j, field_i * FACTORS)], xi * xj);
            }
        }
    }
}

fn interaction(out: &mut Dense, x: CsrView<'_>, field: CsrView<'_>, v: RowSparseView<'_>) {
    each_pair(x, field, |row, places, product| {
        let [left, right] = places.map(|place| factors(v, place));
        let inner: f32 = left.iter().zip(right).map(|(left, right)| left * right).sum();
        out.values_mut()[row] += product * inner;
    });
}

fn gradient(
    out: &mut RowSparse,
    x: CsrView<'_>,
    field: CsrView<'_>,
    v: RowSparseView<'_>,
    grad: DenseView<'_>,
) {
    let mut ids: Vec<u64> =
        x.iter_rows().flatten().map(|(column, _): (usize, f32)| column as u64).collect();
    ids.sort_unstable();
    ids.dedup();
    let mut sums = vec![0.0; ids.len() * FIELDS_BY_FACTORS];
    each_pair(x, field, |row, places, product| {
        let share = grad.values()[row] * product;
        for [(own, start), other] in [places, [places[1], places[0]]] {
            let Ok(position) = ids.binary_search(&(own as u64)) else { continue };
            let sums = &mut sums[position * FIELDS_BY_FACTORS + start..][..FACTORS];
            sums.iter_mut().zip(factors(v, other)).for_each(|(sum, other)| *sum += share * other);
        }
    });
    if let Ok(sums) = RowSparse::new([x.n_cols(), FIELDS_BY_FACTORS], ids, sums) {
        *out = sums;
    }
}

fn factors<'a>(v: RowSparseView<'a>, (column, start): (usize, usize)) -> &'a [f32] {
    let row = v.row(column).unwrap_or_default();
    row.get(start..start + FACTORS).unwrap_or_default()
}

fn main() -> ExitCode {
    run("field_aware TRAIN TEST FEATURES", |words| match words {
        [train, test, features] => Some(fit(train, test, features.parse().ok()?)),
        _ => None,
    })
}

/// Log loss and AUC on the test file.
pub fn fit(train: &str, test: &str, features: usize) -> Result<ScoreReport> {
    let reader = TextReader::new(LibFfm::new().n_features(features));
    let (train, test) = (reader.read_path(train)?, reader.read_path(test)?);

    let mut model = FieldAware::new(dims! { d: features }, Seed(42))?;
    let rule = AdaGrad { learning_rate: 0.01, ..AdaGrad::default() };
    // In a second epoch it begins to know single rows.
    let mut trainer = Trainer::new(rule).epochs(1).metric(Auc);
    trainer.fit(&mut model, &train)?;
    trainer.score(&mut model, &test)
}
