//! Loops that are compiled in the user's crate, against those of the library.

use nnz::core::update_rules::UpdateRule;
use nnz::formats::Unit;
use nnz::optimizer::Updater;
use nnz::prelude::*;

/// A model by the loops of the library, and the same with loops of its own under some rules.
macro_rules! specialized {
    ($($Model:ident, $Special:ident { $($body:tt)* })*) => {
        $(
            graph! { model $Model { $($body)* } }
            graph! {
                model $Special {
                    specialize = [Sgd, nnz::core::update_rules::AdaGrad, Ftrl];
                    $($body)*
                }
            }
        )*
    };
}

specialized! {
    Linear, LinearSpecial {
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Normal { mean: 0.0, std: 0.3 };
        param b: dense[1] = Zeros;
        let score = dot(x, w) + b;
        loss logistic(score, y);
        output score;
    }

    Patterns, PatternsSpecial {
        input x: csr<unit>[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Normal { mean: 0.0, std: 0.3 };
        let score = dot(x, w);
        loss squared_error(score, y);
        output score;
    }
}

const ROWS: usize = 30;
const D: usize = 11;

fn csr() -> Csr {
    let row = |row: usize| {
        let columns = (0..D).filter(|column| !(row * 3 + column * 5).is_multiple_of(4));
        columns.map(|column| (column, 0.25 * (1 + (row + column) % 5) as f32)).collect::<Vec<_>>()
    };
    Csr::from_rows(D, (0..ROWS).map(row).collect::<Vec<_>>()).unwrap()
}

fn pattern() -> Csr<Unit> {
    let row = |row: usize| {
        let columns = (0..D).filter(|column| !(row * 3 + column * 5).is_multiple_of(4));
        columns.map(|column| (column, Unit)).collect::<Vec<_>>()
    };
    Csr::from_rows(D, (0..ROWS).map(row).collect::<Vec<_>>()).unwrap()
}

fn labels() -> Dense {
    Dense::new([ROWS, 1], (0..ROWS).map(|row| (row * 7 % 3 % 2) as f32).collect()).unwrap()
}

/// Steps of batches, of one sample, and of samples in one call: the same losses and weights, to the
/// bit.
macro_rules! agree {
    ($rule:expr, $Model:ident, $Special:ident, $Batch:ident, $SpecialBatch:ident, $x:expr, $y:expr) => {{
        let (x, y) = ($x, $y);
        let mut a = $Model::new(dims! { d: D }, Seed(7)).unwrap();
        let mut b = $Special::new(dims! { d: D }, Seed(7)).unwrap();
        let mut of_a = Updater::for_model($rule.clone(), &a).unwrap();
        let mut of_b = Updater::for_model($rule.clone(), &b).unwrap();
        for range in [0..ROWS, 3..4, 4..9, 5..6, 9..ROWS] {
            let (x, y) = (x.rows(range.clone()).unwrap(), y.view().rows(range).unwrap());
            let found = a.train_step(&$Batch { x, y }, &mut of_a).unwrap();
            let expected = b.train_step(&$SpecialBatch { x, y }, &mut of_b).unwrap();
            assert_eq!(found.to_bits(), expected.to_bits());
        }
        let (x, y) = (x.view(), y.view());
        let found = a.train_rows(&$Batch { x, y }, &mut of_a).unwrap();
        let expected = b.train_rows(&$SpecialBatch { x, y }, &mut of_b).unwrap();
        assert_eq!(found, expected);
        of_a.flush_model(&mut a).unwrap();
        of_b.flush_model(&mut b).unwrap();
        for (found, expected) in a.parameters().iter().zip(b.parameters()) {
            assert_eq!(found.values(), expected.values(), "{} {:?}", found.name, $rule);
        }
    }};
}

fn all_agree<R: UpdateRule>(rule: &R) {
    agree!(rule, Linear, LinearSpecial, LinearBatch, LinearSpecialBatch, csr(), labels());
    agree!(
        rule,
        Patterns,
        PatternsSpecial,
        PatternsBatch,
        PatternsSpecialBatch,
        pattern(),
        labels()
    );
}

#[test]
fn a_loop_of_the_user_s_crate_has_the_bits_of_the_library_s() {
    all_agree(&Sgd::default());
    all_agree(&Sgd { momentum: 0.9, ..Sgd::default() });
    all_agree(&AdaGrad::default());
    all_agree(&Ftrl { l1: 0.001, ..Ftrl::default() });
}

/// Under a rule that is not named both are the library's.
#[test]
fn a_rule_that_is_not_named_trains_as_without_the_list() {
    all_agree(&Adam::default());
}

/// A loss that is not finite ends the samples of one call at the same one.
#[test]
fn a_loss_that_is_not_finite_ends_the_steps_of_both() {
    let (x, mut y) = (csr(), labels());
    y.values_mut()[17] = f32::NAN;
    let mut a = Linear::new(dims! { d: D }, Seed(7)).unwrap();
    let mut b = LinearSpecial::new(dims! { d: D }, Seed(7)).unwrap();
    let mut of_a = Updater::for_model(AdaGrad::default(), &a).unwrap();
    let mut of_b = Updater::for_model(AdaGrad::default(), &b).unwrap();
    let (x, y) = (x.view(), y.view());
    let found = a.train_rows(&LinearBatch { x, y }, &mut of_a).unwrap();
    let expected = b.train_rows(&LinearSpecialBatch { x, y }, &mut of_b).unwrap();
    assert_eq!((found.n_steps, expected.n_steps), (18, 18));
    assert!(found.diverged() && expected.diverged());
    // Weights that the sample reads are not finite either.
    let bits = |values: &[f32]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
    assert_eq!(bits(a.w.values()), bits(b.w.values()));
}
