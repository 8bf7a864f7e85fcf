//! Loops that are compiled for a model and a rule, against the engine.

use nnz::core::update_rules::UpdateRule;
use nnz::optimizer::Updater;
use nnz::prelude::*;

/// A model by the engine, and the same with loops of its own under some rules.
macro_rules! specialized {
    ($($Erased:ident, $Special:ident { $($body:tt)* })*) => {
        $(
            graph! { model $Erased { $($body)* } }
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
        dtype = f64;
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Normal { mean: 0.0, std: 0.3 };
        param b: dense[1] = Zeros;
        let score = dot(x, w) + b;
        loss logistic(score, y);
        output score;
    }

    Classes, ClassesSpecial {
        dtype = f64;
        input x: csr[n, d];
        label y: dense<u32>[n];
        param w: row_sparse[d, 5] = Normal { mean: 0.0, std: 0.3 };
        param b: dense[5] = Zeros;
        let score = dot(x, w) + b;
        loss softmax_cross_entropy(score, y);
        output score;
    }

    Machine, MachineSpecial {
        dtype = f64;
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Normal { mean: 0.0, std: 0.3 };
        param v: row_sparse[d, 8] = Normal { mean: 0.0, std: 0.3 };
        let score = dot(x, w) + pairwise_interaction(x, v);
        loss squared_error(score, y);
        output score;
    }

    Factors, FactorsSpecial {
        dtype = f64;
        input user: dense<u32>[n];
        input item: dense<u32>[n];
        label y: dense[n];
        param p: row_sparse[users, 16] = Normal { mean: 0.0, std: 0.3 };
        param q: row_sparse[items, 16] = Normal { mean: 0.0, std: 0.3 };
        param of_item: row_sparse[items] = Zeros;
        let score = sum(take(p, user) * take(q, item), axis = 1) + take(of_item, item);
        loss squared_error(score, y);
        output score;
    }
}

const ROWS: usize = 30;
const D: usize = 11;

fn csr() -> Csr<f64> {
    let row = |row: usize| {
        let columns = (0..D).filter(|column| !(row * 3 + column * 5).is_multiple_of(4));
        columns.map(|column| (column, 0.25 * (1 + (row + column) % 5) as f64)).collect::<Vec<_>>()
    };
    Csr::from_rows(D, (0..ROWS).map(row).collect::<Vec<_>>()).unwrap()
}

fn ids(below: usize, by: usize) -> Dense<u32> {
    Dense::new([ROWS], (0..ROWS).map(|row| ((row * by + row / 3) % below) as u32).collect())
        .unwrap()
}

fn labels(shape: impl Into<nnz::formats::Shape>) -> Dense<f64> {
    Dense::new(shape, (0..ROWS).map(|row| (row * 7 % 3 % 2) as f64).collect()).unwrap()
}

/// Steps of batches, of one sample, and of samples in one call.
macro_rules! agree {
    ($rule:expr, $Erased:ident, $Special:ident, $ErasedBatch:ident, $SpecialBatch:ident, $dims:expr, { $($name:ident: $array:expr),* $(,)? }) => {{
        $(let $name = $array;)*
        let mut a = $Erased::new($dims, Seed(7)).unwrap();
        let mut b = $Special::new($dims, Seed(7)).unwrap();
        let mut of_a = Updater::for_model($rule.clone(), &a).unwrap();
        let mut of_b = Updater::for_model($rule.clone(), &b).unwrap();
        for range in [0..ROWS, 3..4, 4..9, 5..6, 9..ROWS] {
            $(let $name = $name.view().rows(range.clone()).unwrap();)*
            let found = a.train_step(&$ErasedBatch { $($name,)* }, &mut of_a).unwrap();
            let expected = b.train_step(&$SpecialBatch { $($name,)* }, &mut of_b).unwrap();
            assert!((found - expected).abs() < 1e-12, "{found} {expected}");
        }
        $(let $name = $name.view();)*
        let made = a.train_rows(&$ErasedBatch { $($name,)* }, &mut of_a).unwrap();
        let expected = b.train_rows(&$SpecialBatch { $($name,)* }, &mut of_b).unwrap();
        assert_eq!((made.n_steps, ROWS), (expected.n_steps, expected.n_steps));
        of_a.flush_model(&mut a).unwrap();
        of_b.flush_model(&mut b).unwrap();
        for (p, q) in a.parameters().iter().zip(b.parameters()) {
            for (found, expected) in p.values().iter().zip(q.values()) {
                let what = format!("{} {:?}", p.name, $rule);
                assert!((found - expected).abs() < 1e-12, "{what}: {found} {expected}");
            }
        }
    }};
}

fn all_agree<R: UpdateRule>(rule: &R) {
    agree!(
        rule, Linear, LinearSpecial, LinearBatch, LinearSpecialBatch, dims! { d: D },
        { x: csr(), y: labels([ROWS, 1]) }
    );
    agree!(
        rule, Classes, ClassesSpecial, ClassesBatch, ClassesSpecialBatch, dims! { d: D },
        { x: csr(), y: ids(5, 2) }
    );
    agree!(
        rule, Machine, MachineSpecial, MachineBatch, MachineSpecialBatch, dims! { d: D },
        { x: csr(), y: labels([ROWS, 1]) }
    );
    agree!(
        rule, Factors, FactorsSpecial, FactorsBatch, FactorsSpecialBatch,
        dims! { users: 6, items: 7 }, { user: ids(6, 1), item: ids(7, 2), y: labels([ROWS]) }
    );
}

#[test]
fn a_loop_for_the_rule_makes_the_steps_of_the_engine() {
    all_agree(&Sgd::default());
    all_agree(&Sgd { momentum: 0.9, ..Sgd::default() });
    all_agree(&AdaGrad::default());
    all_agree(&Ftrl { l1: 0.001, ..Ftrl::default() });
}

/// Under a rule that is not named both are the engine's.
#[test]
fn a_rule_that_is_not_named_has_the_engine_s_bits() {
    let data = Dataset::new(csr(), labels([ROWS]).values().to_vec()).unwrap();
    let mut trainer = Trainer::new(Adam::default()).epochs(2).progress(Progress::Silent);
    let mut a = Linear::new(dims! { d: D }, Seed(7)).unwrap();
    let mut b = LinearSpecial::new(dims! { d: D }, Seed(7)).unwrap();
    trainer.fit(&mut a, &data).unwrap();
    trainer.fit(&mut b, &data).unwrap();
    for (p, q) in a.parameters().iter().zip(b.parameters()) {
        assert_eq!(p.values(), q.values(), "{}", p.name);
    }
}

/// Columns of a table beyond 2³² rows are of another type, which not every form of a read takes.
#[test]
fn columns_of_u64_train_as_those_of_u32() {
    let (narrow, y) = (csr(), labels([ROWS, 1]));
    let nnz::formats::ColumnIdsView::U32(columns) = narrow.columns() else { panic!("not u32") };
    let columns: Vec<u64> = columns.iter().map(|column| u64::from(*column)).collect();
    let wide: Csr<f64> =
        Csr::new(D, narrow.indptr().to_vec(), columns, narrow.values().to_vec()).unwrap();
    let train = |x: &Csr<f64>| {
        let mut model = Linear::new(dims! { d: D }, Seed(7)).unwrap();
        let mut updater = Updater::for_model(AdaGrad::default(), &model).unwrap();
        for range in [0..ROWS, 3..4, 4..9] {
            let (x, y) = (x.rows(range.clone()).unwrap(), y.view().rows(range).unwrap());
            model.train_step(&LinearBatch { x, y }, &mut updater).unwrap();
        }
        model.train_rows(&LinearBatch { x: x.view(), y: y.view() }, &mut updater).unwrap();
        updater.flush_model(&mut model).unwrap();
        model.w.values().to_vec()
    };
    assert_eq!(train(&narrow), train(&wide));
}
