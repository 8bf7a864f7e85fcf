//! A robust regression of `f64`.

use nnz::prelude::*;
use samples::{bags, numbers};

graph! {
    /// Errors above one count by their absolute value.
    pub model Doubles {
        dtype = f64;
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Zeros;
        param b: dense[1] = Zeros;
        let score = dot(x, w) + b;
        loss huber(score, y);
        output score;
    }
}

fn main() -> Result<()> {
    let data =
        Dataset::builder().input("x", bags(1)).label("y", numbers(1)).build()?.cast::<f64>()?;
    let mut model = Doubles::new(dims! { d: samples::FEATURES }, Seed(42))?;
    Trainer::new(Sgd::default()).fit(&mut model, &data)?;
    Trainer::new(Adam::default()).fit(&mut model, &data)?;
    Ok(())
}
