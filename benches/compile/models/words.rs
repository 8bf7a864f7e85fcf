//! Skip-gram with negative samples, its loss written by hand.

use nnz::prelude::*;
use samples::{ids, one_id};

graph! {
    /// Vectors of words and of their contexts.
    pub model Words {
        input word: dense<u32>[n];
        input context: dense<u32>[n];
        input negative: dense<u32>[n, 5];
        param v: row_sparse[words, 16] = Normal { mean: 0.0, std: 0.1 };
        param c: row_sparse[words, 16] = Normal { mean: 0.0, std: 0.1 };
        let of_word = take(v, word);
        let near = sum(of_word * take(c, context), axis = 1);
        let far = sum(expand_dims(of_word, axis = 1) * take(c, negative), axis = 2);
        loss mean(softplus(-near)) + mean(sum(softplus(far), axis = 1));
        output near;
    }
}

fn main() -> Result<()> {
    let data = Dataset::builder()
        .input("word", one_id(50))
        .input("context", one_id(50))
        .input("negative", ids(5, 50))
        .build()?;
    let mut model = Words::new(dims! { words: 50 }, Seed(42))?;
    Trainer::new(Sgd::default()).fit(&mut model, &data)?;
    Trainer::new(AdaGrad::default()).fit(&mut model, &data)?;
    Ok(())
}
