//! How many epochs rates take to the optimum.

use super::Linear;
use nnz::core::update_rules::Svrg;
use nnz::prelude::*;

const FIELDS: usize = 14;
const N: usize = 300;

/// Rows with one of two columns of each field, by the bits of numbers that look random.
fn one_hot() -> Dataset<f64> {
    let mut state = 42u64;
    let mut random = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    };
    let (mut rows, mut labels) = (Vec::new(), Vec::new());
    for _ in 0..N {
        let bits = random();
        let bit = |field: usize| (bits >> field & 1) as usize;
        rows.push((0..FIELDS).map(|field| (2 * field + bit(field), 1.0)).collect::<Vec<_>>());
        // More often positive, the more of the first half of the fields have their second column.
        let n_second = (0..FIELDS / 2).map(bit).sum::<usize>() as u64;
        labels.push(if random() % 7 < n_second { 1.0 } else { 0.0 });
    }
    Dataset::new(Csr::from_rows(2 * FIELDS, rows).unwrap(), labels).unwrap()
}

#[test]
fn n17_a_third_of_the_rate_reaches_the_optimum_of_one_hot_data_in_fewer_epochs() {
    let data = one_hot();
    // Scores are half the product with the row and the bias.
    let curvature = 0.25 * 0.25 * (FIELDS as f64 + 1.0);
    let weight_decay = 1.0 / N as f64;
    let objectives = |learning_rate: f64, epochs: u64| -> Vec<f64> {
        let rule = Sgd { learning_rate, weight_decay, ..Sgd::default() };
        let trainer = Trainer::new(Svrg { update_freq: 2, rule });
        let mut trainer = trainer.decay_all().progress(Progress::Silent);
        let mut model = Linear::new(dims! { d: 2 * FIELDS }, Seed(1)).unwrap();
        let mut updater = trainer.updater(&model).unwrap();
        let objective = |epoch| {
            trainer.fit_epochs(&mut model, &mut updater, &data, epoch..epoch + 1).unwrap();
            let squares = model.w.values().iter().chain(model.b.values()).map(|w| w * w);
            let penalty = weight_decay / 2.0 * squares.sum::<f64>();
            trainer.score(&mut model, &data).unwrap().loss + penalty
        };
        (0..epochs).map(objective).collect()
    };
    let at_a_third = objectives(1.0 / (3.0 * curvature), 60);
    let best = at_a_third.last().unwrap();
    let reached = |of: &[f64]| of.iter().position(|objective| objective - best < 1e-6);
    let epochs = reached(&at_a_third).unwrap() + 1;
    let at_the_whole = objectives(1.0 / curvature, 3 * epochs as u64 / 2);
    assert_eq!(reached(&at_the_whole), None, "{epochs} epochs at a third of the rate");
}
