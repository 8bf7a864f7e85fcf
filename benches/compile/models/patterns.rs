//! Logistic regression on hashed categories, which store no values.

use nnz::prelude::*;

graph! {
    /// The probability of a click.
    pub model Patterns {
        input x: csr<unit>[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Zeros;
        let score = dot(x, w);
        loss logistic(score, y);
        output probability = sigmoid(score);
    }
}

fn main() -> Result<()> {
    let data = nnz::data::synthetic::click_log(64, samples::FEATURES, 10, 1)?.into_units()?;
    let mut model = Patterns::new(dims! { d: samples::FEATURES }, Seed(42))?;
    Trainer::new(Ftrl::default()).fit(&mut model, &data)?;
    Trainer::new(Adam::default()).fit(&mut model, &data)?;
    Ok(())
}
