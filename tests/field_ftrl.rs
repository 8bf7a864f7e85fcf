//! FTRL from drawn weights: a factorization machine learns pairs that a linear model cannot.
#![allow(clippy::unwrap_used)]

use nnz::prelude::*;

graph! {
    /// Pairs of features, by factors.
    pub model Machine {
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Zeros;
        param v: row_sparse[d, k] = Normal { mean: 0.0, std: 0.1 };
        let score = dot(x, w) + pairwise_interaction(x, v);
        loss logistic(score, y);
        output probability = sigmoid(score);
    }

    /// Features by themselves.
    pub model Alone {
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Zeros;
        let score = dot(x, w);
        loss logistic(score, y);
        output probability = sigmoid(score);
    }
}

/// Of two features out of ten each, the label is whether both are of the same half: neither says
/// anything by itself.
fn pairs(n: usize, seed: usize) -> Dataset {
    let sample = |at: usize| {
        let number = (at + seed).wrapping_mul(0x9e37_79b9) >> 7;
        (number % 10, number / 10 % 10)
    };
    let rows = (0..n).map(sample).map(|(a, b)| [(a, 1.0), (10 + b, 1.0)]);
    let labels = (0..n).map(sample).map(|(a, b)| f32::from(u8::from((a < 5) == (b < 5))));
    Dataset::new(Csr::from_rows(24, rows).unwrap(), labels.collect::<Vec<f32>>()).unwrap()
}

fn auc<M: Model<Element = f32>>(mut model: M, learning: &Dataset, test: &Dataset) -> (M, f64) {
    let rule = Ftrl { l1: 0.1, ..Ftrl::default() };
    let mut trainer =
        Trainer::new(rule).epochs(8).metric(Auc).progress(nnz::training::Progress::Silent);
    trainer.fit(&mut model, learning).unwrap();
    let auc = trainer.score(&mut model, test).unwrap().metric("auc").unwrap();
    (model, auc)
}

#[test]
fn n3_factors_learn_under_ftrl_with_drawn_values() {
    let (learning, test) = (pairs(600, 0), pairs(300, 10_000));
    let new = Machine::new(dims! { d: 24, k: 4 }, Seed(3)).unwrap();
    let drawn = new.v.values().to_vec();
    let (machine, of_machine) = auc(new, &learning, &test);
    let (_, of_alone) = auc(Alone::new(dims! { d: 24 }, Seed(3)).unwrap(), &learning, &test);
    assert!(of_alone < 0.65, "the linear model has {of_alone}");
    assert!(of_machine > 0.95 && of_machine > of_alone + 0.2, "{of_machine} after {of_alone}");
    // Columns 20 to 23 occur in no sample: their factors are those that were drawn, to the bit.
    let bits = |values: &[f32]| values[20 * 4..].iter().map(|v| v.to_bits()).collect::<Vec<_>>();
    assert_eq!(bits(machine.v.values()), bits(&drawn));
}
