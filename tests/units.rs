//! Models of a `csr<unit>` and of the same csr with values that are 1: they compute the same bits,
//! whatever the loop.
use nnz::data::{ColumnValues, synthetic};
use nnz::formats::{RowIdsView, Unit};
use nnz::model::{Model, RowIds};
use nnz::prelude::*;

/// Two models that differ in the elements of `x` alone.
macro_rules! twins {
    ($numbers:ident $units:ident { $($head:tt)* } { $($body:tt)* }) => {
        graph! {
            /// With values.
            pub model $numbers { $($head)* input x: csr[n, d]; $($body)* }
        }
        graph! {
            /// Without.
            pub model $units { $($head)* input x: csr<unit>[n, d]; $($body)* }
        }
    };
}

twins!(Logistic LogisticUnits {} {
    label y: dense[n, 1];
    param w: row_sparse[d, 1] = Normal { mean: 0.0, std: 0.1 };
    param b: dense[1] = Zeros;
    let score = dot(x, w) + b;
    loss logistic(score, y);
    output score;
});

twins!(Softmax SoftmaxUnits {} {
    label y: dense<u32>[n];
    param w: row_sparse[d, 17] = Normal { mean: 0.0, std: 0.1 };
    let score = dot(x, w);
    loss softmax_cross_entropy(score, y);
    output score;
});

twins!(Double DoubleUnits { dtype = f64; } {
    label y: dense[n, 1];
    param w: row_sparse[d, 1] = Normal { mean: 0.0, std: 0.1 };
    let score = tanh(dot(x, w));
    loss squared_error(score, y);
    output score;
});

twins!(Kernels KernelsUnits { fuse = off; } {
    label y: dense[n, 1];
    param w: row_sparse[d, 1] = Normal { mean: 0.0, std: 0.1 };
    param b: dense[1] = Zeros;
    let score = dot(x, w) + b;
    loss logistic(score, y);
    output score;
});

twins!(Machine MachineUnits {} {
    label y: dense[n, 1];
    param w: row_sparse[d, 1] = Zeros;
    param v: row_sparse[d, 4] = Normal { mean: 0.0, std: 0.1 };
    let score = dot(x, w) + pairwise_interaction(x, v);
    loss logistic(score, y);
    output score;
});

twins!(MachineKernels MachineKernelsUnits { fuse = off; } {
    label y: dense[n, 1];
    param w: row_sparse[d, 1] = Zeros;
    param v: row_sparse[d, 4] = Normal { mean: 0.0, std: 0.1 };
    let score = dot(x, w) + pairwise_interaction(x, v);
    loss logistic(score, y);
    output score;
});

// Products and bags that are scattered; a layer whose gradient is a product from the right; an
// operator without a kernel for patterns.
twins!(Deep DeepUnits {} {
    label y: dense[n, 1];
    param w: row_sparse[d, 1] = Zeros;
    param t: row_sparse[d, 8] = Normal { mean: 0.0, std: 0.1 };
    param u: row_sparse[d, 2] = Normal { mean: 0.0, std: 0.1 };
    param f: dense[4, d] = Normal { mean: 0.0, std: 0.1 };
    param h: dense[14, 1] = Normal { mean: 0.0, std: 0.5 };
    let bags = embedding_bag(x, t, mean = true, weighted = true);
    let plain = embedding_bag(x, u);
    let all = concat(concat(bags, plain, axis = 1), fully_connected(x, f), axis = 1);
    let score = dot(x, w) + dot(tanh(all), h) + sum(0.125 * x, axis = 1, keepdims = true);
    loss logistic(score, y);
    output score;
});

/// A click log with values, and the same without.
fn data() -> (Dataset, Dataset) {
    let log = synthetic::click_log(120, 300, 7, 5).unwrap();
    (log.clone(), log.into_units().unwrap())
}

/// Trains both and compares losses, predictions and parameters, bit for bit.
macro_rules! same_bits {
    ($numbers:ident, $units:ident, $data:expr, $rule:expr) => {
        for batch_size in [1, 8] {
            let (with, without) = &$data;
            let mut a = $numbers::new(dims! { d: 300 }, Seed(3)).unwrap();
            let mut b = $units::new(dims! { d: 300 }, Seed(3)).unwrap();
            let trainer =
                || Trainer::new($rule).batch_size(batch_size).epochs(2).progress(Progress::Silent);
            let context = format!("{} {:?} {batch_size}", stringify!($units), $rule);
            let losses = [
                trainer().fit(&mut a, with).unwrap().last().unwrap().loss,
                trainer().fit(&mut b, without).unwrap().last().unwrap().loss,
            ];
            assert_eq!(losses[0], losses[1], "{context}");
            for (p, q) in a.parameters().iter().zip(b.parameters()) {
                assert_eq!(p.values(), q.values(), "{context}: {}", p.name);
                assert!(p.values().iter().any(|value| *value != 0.0), "{context}: {}", p.name);
            }
            // The data with values is a pattern too.
            let predicted = trainer().predict(&mut a, with).unwrap();
            assert_eq!(trainer().predict(&mut b, without).unwrap(), predicted, "{context}");
            assert_eq!(trainer().predict(&mut b, with).unwrap(), predicted, "{context}");
        }
    };
}

/// The same for every update rule.
macro_rules! same_bits_by_every_rule {
    ($numbers:ident, $units:ident, $data:expr) => {
        same_bits!($numbers, $units, $data, Sgd { learning_rate: 0.1, ..Sgd::default() });
        same_bits!(
            $numbers,
            $units,
            $data,
            Sgd { learning_rate: 0.1, momentum: 0.9, weight_decay: 1e-3, ..Sgd::default() }
        );
        same_bits!($numbers, $units, $data, AdaGrad { learning_rate: 0.1, ..AdaGrad::default() });
        same_bits!($numbers, $units, $data, Ftrl { l1: 1e-3, ..Ftrl::default() });
        let adam = Adam { lazy_update: LazyUpdate::Touched, ..Adam::default() };
        same_bits!($numbers, $units, $data, adam.clone());
    };
}

#[test]
fn one_loop_of_one_column() {
    same_bits_by_every_rule!(Logistic, LogisticUnits, data());
}

#[test]
fn one_loop_of_several_columns() {
    let (with, without) = data();
    let classes = |data: Dataset| data.into_classes().unwrap().0;
    same_bits_by_every_rule!(
        Softmax,
        SoftmaxUnits,
        (classes(with.clone()), classes(without.clone()))
    );
}

#[test]
fn one_loop_in_f64() {
    let (with, _) = data();
    let x = with.features().unwrap().cast::<f64>();
    let y = (0..x.n_rows()).map(|row| (row % 3) as f64 - 1.0).collect();
    let with = Dataset::new(x, y).unwrap();
    let without = with.clone().into_units().unwrap();
    same_bits_by_every_rule!(Double, DoubleUnits, (with.clone(), without.clone()));
}

#[test]
fn one_loop_of_a_factorization_machine() {
    same_bits_by_every_rule!(Machine, MachineUnits, data());
}

#[test]
fn kernels_one_after_the_other() {
    same_bits_by_every_rule!(Kernels, KernelsUnits, data());
    same_bits_by_every_rule!(MachineKernels, MachineKernelsUnits, data());
}

#[test]
fn rows_gathered_and_scattered() {
    same_bits_by_every_rule!(Deep, DeepUnits, data());
}

#[test]
fn the_plan_says_what_a_pattern_costs() {
    let plan = LogisticUnits::PLAN;
    let text = plan.to_string();
    assert!(plan.is_fused(), "{text}");
    let line = |start: &str| text.lines().find(|line| line.starts_with(start)).unwrap();
    assert!(line("x ").contains("csr<unit>"), "{text}");
    assert!(line("x ").contains(" 4·nnz(x) + 8·n + 8 "), "{text}");
    assert!(text.contains("dot_unit_row_sparse(x, w) *"), "{text}");
    assert!(!text.contains("csr_unit"), "{text}");
    // Where the ones are written out, a line says so.
    let text = DeepUnits::PLAN.to_string();
    assert_eq!(text.matches("csr_unit(x)").count(), 1, "{text}");
    // Two entries of 4 bytes, and the bounds of one row.
    let x = Csr::pattern(3, vec![0, 2], vec![0u32, 2]).unwrap();
    let y = Dense::from_rows(&[[1.0]]);
    let batch = LogisticUnitsBatch { x: x.view(), y: y.view() };
    let model = LogisticUnits::new(dims! { d: 3 }, Seed(0)).unwrap();
    let text = model.plan().bind(&batch).to_string();
    assert!(text.lines().any(|line| line.starts_with("x ") && line.contains(" 24 ")), "{text}");
}

#[test]
fn rows_of_a_pattern_name_rows_of_parameters() {
    let x = Csr::pattern(5, vec![0, 2, 3], vec![1u32, 4, 1]).unwrap();
    let model = MachineUnits::new(dims! { d: 5 }, Seed(0)).unwrap();
    let batch = MachineUnitsBatch { x: x.view(), ..Default::default() };
    let mut rows = RowIds::new();
    for index in 0..2 {
        let found = model.rows_read(&batch, index, &mut rows).unwrap();
        assert!(matches!(found, RowIdsView::Listed([1, 4])));
    }
    let narrow = MachineUnits::new(dims! { d: 4 }, Seed(0)).unwrap();
    assert!(narrow.rows_written(&batch, 0, &mut rows).is_err());
}

#[test]
fn values_that_are_not_1_are_named() {
    let x = Csr::from_rows(300, [vec![(2, 1.0f32)], vec![(0, 1.0), (17, 2.5)]]).unwrap();
    let data = Dataset::new(x.clone(), vec![1.0, 0.0]).unwrap();
    let mut model = LogisticUnits::new(dims! { d: 300 }, Seed(3)).unwrap();
    let mut trainer = Trainer::new(Sgd::default()).progress(Progress::Silent);
    let error = trainer.fit(&mut model, &data).unwrap_err();
    assert_eq!(
        error.to_string(),
        "row 1 of the input (column 0) stores 2.5 in column 17 (numbered from 0), but `x` is declared `csr<unit>`, whose values \
         are all 1: leave `<unit>` out, or make every stored value 1 by `csr.cast::<Unit>()`"
    );
    assert!(data.clone().into_units().is_err());
    // As it says.
    let data = Dataset::<f32>::builder()
        .input("x", x.cast::<Unit>())
        .label("y", vec![1.0f32, 0.0])
        .build()
        .unwrap();
    trainer.fit(&mut model, &data).unwrap();
    assert!(matches!(data.columns()[0].values(), ColumnValues::Unit(x) if x.nnz() == 3));
    assert_eq!((data.n_features(), data.features().is_none()), (300, true));
    // A model of numbers takes numbers.
    let mut numbers = Logistic::new(dims! { d: 300 }, Seed(3)).unwrap();
    let error = trainer.fit(&mut numbers, &data).unwrap_err().to_string();
    assert!(
        error.starts_with("`x` is declared with elements `f32`, but the input `x` has `unit`"),
        "{error}"
    );
}

#[test]
fn patterns_are_written_and_read_as_ones() {
    let (with, without) = data();
    let write = |data: &Dataset| {
        let mut text = Vec::new();
        libsvm::write_to("memory", &mut text, data).unwrap();
        text
    };
    assert_eq!(write(&with), write(&without));
    let (first, second) = without.split(0.5, 1).unwrap();
    assert_eq!((first.n_rows() + second.n_rows(), first.n_features()), (120, 300));
}
