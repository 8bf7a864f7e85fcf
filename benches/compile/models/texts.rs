//! Classes of texts by the mean of their words' vectors.

use nnz::prelude::*;
use samples::{bags, one_id};

graph! {
    /// A bag of vectors and one layer.
    pub model Texts {
        input x: csr[n, d];
        label y: dense<u32>[n];
        param t: row_sparse[d, 16] = Normal { mean: 0.0, std: 0.05 };
        param h: dense[16, 10] = Normal { mean: 0.0, std: 0.2 };
        let scores = dot(embedding_bag(x, t, mean = true), h);
        loss softmax_cross_entropy(scores, y);
        output probabilities = softmax(scores);
    }
}

fn main() -> Result<()> {
    let data = Dataset::builder().input("x", bags(1)).label("y", one_id(10)).build()?;
    let mut model = Texts::new(dims! { d: samples::FEATURES }, Seed(42))?;
    Trainer::new(Sgd::default()).fit(&mut model, &data)?;
    Trainer::new(AdamW::default()).fit(&mut model, &data)?;
    Ok(())
}
