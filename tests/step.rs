//! The fused step against the unfused one, and both against arithmetic by hand. In f64, where what
//! the orders of sums leave of a difference stays far below that of a wrong formula.

use nnz::optimizer::Updater;
use nnz::prelude::*;
use nnz::table::Table;

graph! {
    /// Fused.
    pub model Fused {
        dtype = f64;
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Normal { mean: 0.0, std: 0.5 };
        param b: dense[1] = Constant(0.25);
        let score = 2.0 * tanh(dot(x, w) + b);
        loss logistic(score, y);
        output score;
        output p = sigmoid(score);
    }

    /// The same, unfused.
    pub model Unfused {
        fuse = off;
        dtype = f64;
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Normal { mean: 0.0, std: 0.5 };
        param b: dense[1] = Constant(0.25);
        let score = 2.0 * tanh(dot(x, w) + b);
        loss logistic(score, y);
        output score;
        output p = sigmoid(score);
    }
}

graph! {
    /// A factorization machine, fused.
    pub model Machine {
        dtype = f64;
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Normal { mean: 0.0, std: 0.5 };
        param v: row_sparse[d, 3] = Normal { mean: 0.0, std: 0.5 };
        param b: dense[1] = Constant(0.25);
        let second = pairwise_interaction(x, v);
        let score = tanh(dot(x, w) + b) + 0.5 * second * second;
        loss squared_error(score, y);
        output score;
        output second;
    }

    /// The same, unfused.
    pub model UnfusedMachine {
        fuse = off;
        dtype = f64;
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Normal { mean: 0.0, std: 0.5 };
        param v: row_sparse[d, 3] = Normal { mean: 0.0, std: 0.5 };
        param b: dense[1] = Constant(0.25);
        let second = pairwise_interaction(x, v);
        let score = tanh(dot(x, w) + b) + 0.5 * second * second;
        loss squared_error(score, y);
        output score;
        output second;
    }
}

graph! {
    /// Factors whose number is in the source: rows of them are vectors of sixteen.
    model Sixteens {
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Normal { mean: 0.0, std: 0.5 };
        param v: row_sparse[d, 32] = Normal { mean: 0.0, std: 0.2 };
        loss logistic(dot(x, w) + pairwise_interaction(x, v), y);
    }

    /// Factors whose number is known when the model is made.
    model AnyFactors {
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Normal { mean: 0.0, std: 0.5 };
        param v: row_sparse[d, k] = Normal { mean: 0.0, std: 0.2 };
        loss logistic(dot(x, w) + pairwise_interaction(x, v), y);
    }
}

fn data() -> (Csr<f64>, Dense<f64>) {
    let x = Csr::from_rows(
        6,
        [vec![(0, 1.0), (3, 2.0)], vec![], vec![(3, -1.0), (5, 0.5)], vec![(1, 0.0), (2, 4.0)]],
    )
    .unwrap();
    (x, Dense::new([4, 1], vec![1.0, 0.0, -1.0, 0.5]).unwrap())
}

/// Steps of a fused model and of its unfused twin: losses, outputs and parameters, which are looked
/// at between steps too.
macro_rules! twins_agree {
    ($fused:ident, $fused_batch:ident; $unfused:ident, $unfused_batch:ident; $rule:expr) => {{
        let (x, y) = data();
        let rule = $rule;
        let mut fused = $fused::new(dims! { d: 6 }, Seed(7)).unwrap();
        let mut unfused = $unfused::new(dims! { d: 6 }, Seed(7)).unwrap();
        let mut a = Updater::for_model(rule.clone(), &fused).unwrap();
        let mut b = Updater::for_model(rule.clone(), &unfused).unwrap();
        for step in 0..12 {
            let rows = if step % 3 == 0 { 0..4 } else { step % 4..step % 4 + 1 };
            let (x, y) = (x.view().rows(rows.clone()).unwrap(), y.view().rows(rows).unwrap());
            let loss = fused.train_step(&$fused_batch { x, y }, &mut a).unwrap();
            let other = unfused.train_step(&$unfused_batch { x, y }, &mut b).unwrap();
            assert!((loss - other).abs() < 1e-12, "{rule:?}: {loss} {other}");
            for index in 0..2 {
                let (p, q) =
                    (fused.dense_output(index).unwrap(), unfused.dense_output(index).unwrap());
                assert_eq!(p.shape(), q.shape());
                close(p.values(), q.values());
            }
            if step % 5 == 4 {
                a.flush_model(&mut fused).unwrap();
                b.flush_model(&mut unfused).unwrap();
                for (p, q) in fused.parameters().iter().zip(unfused.parameters()) {
                    close(p.values(), q.values());
                }
            }
        }
        a.flush_model(&mut fused).unwrap();
        b.flush_model(&mut unfused).unwrap();
        for (p, q) in fused.parameters().iter().zip(unfused.parameters()) {
            close(p.values(), q.values());
        }
    }};
}

#[track_caller]
fn close(found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len());
    for (p, q) in found.iter().zip(expected) {
        assert!((p - q).abs() < 1e-12, "{p} {q}");
    }
}

#[test]
fn fused_equals_unfused() {
    for lazy_update in [LazyUpdate::Exact, LazyUpdate::Touched, LazyUpdate::Dense] {
        for (momentum, weight_decay) in [(0.0, 0.0), (0.0, 0.1), (0.9, 0.1)] {
            let rule = Sgd { momentum, weight_decay, lazy_update, ..Sgd::default() };
            let linear = Sgd { learning_rate: 0.3, ..rule.clone() };
            twins_agree!(Fused, FusedBatch; Unfused, UnfusedBatch; linear.clone());
            // The loss is of the eighth degree in the factors: larger steps leave for infinity.
            let machine = Sgd { learning_rate: 0.1, ..rule };
            twins_agree!(Machine, MachineBatch; UnfusedMachine, UnfusedMachineBatch; machine.clone());
        }
    }
}

/// A width that the compiler knows, and vectors of as many elements as the processor has, change no
/// bit.
#[test]
fn factors_in_sixteens_get_the_bits_of_others() {
    fn hold<R: nnz::optimizer::UpdateRule>(rule: R) {
        let data = nnz::data::synthetic::click_log(300, 64, 5, 3).unwrap();
        for batch_size in [1, 7] {
            let trainer = || {
                let trainer = Trainer::new(rule.clone()).batch_size(batch_size).epochs(2);
                trainer.progress(Progress::Silent)
            };
            let mut known = Sixteens::new(dims! { d: 64 }, Seed(7)).unwrap();
            let mut any = AnyFactors::new(dims! { d: 64, k: 32 }, Seed(7)).unwrap();
            trainer().fit(&mut known, &data).unwrap();
            trainer().fit(&mut any, &data).unwrap();
            assert!(known.v.values().iter().all(|v| v.is_finite()));
            for (p, q) in known.parameters().iter().zip(any.parameters()) {
                let bits = |values: &[f32]| values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
                assert_eq!(bits(p.values()), bits(q.values()), "{}, {batch_size}", R::NAME);
            }
        }
    }
    let penalised =
        Sgd { learning_rate: 0.05, momentum: 0.9, weight_decay: 0.01, l1: 1e-3, ..Sgd::default() };
    hold(Sgd { learning_rate: 0.05, ..Sgd::default() });
    hold(Sgd { l1: 0.0, ..penalised.clone() });
    hold(Sgd { momentum: 0.0, ..penalised });
    hold(AdaGrad { learning_rate: 0.05, ..AdaGrad::default() });
    hold(AdaGrad { learning_rate: 0.05, l1: 0.01, clip_gradient: Some(0.1), ..AdaGrad::default() });
    hold(Ftrl { l1: 0.01, ..Ftrl::default() });
    hold(Adam { lazy_update: LazyUpdate::Touched, ..Adam::default() });
}

#[test]
fn the_plan_says_what_was_fused() {
    let (fused, unfused) = (Fused::PLAN.to_string(), Unfused::PLAN.to_string());
    assert!(fused.contains("step: one loop over the rows of x"), "{fused}");
    let machine = Machine::PLAN.to_string();
    assert!(machine.contains("step: one loop over the rows of x"), "{machine}");
    assert!(unfused.contains("step: not fused (the model says `fuse = off`)"), "{unfused}");
}

#[test]
fn a_batch_that_does_not_fit_is_a_typed_error() {
    let (x, y) = data();
    let mut model = Fused::new(dims! { d: 7 }, Seed(7)).unwrap();
    let batch = FusedBatch { x: x.view(), y: y.view() };
    assert_eq!(
        model.loss(&batch).unwrap_err().to_string(),
        "model `Fused`: `x` has 6 columns, but `d` is 7 in this model: read the data with `n_features(7)`, \
         which counts features that do not occur in it, or make the model with `dims! { d: 6 }`"
    );
    let mut model = Fused::new(dims! { d: 6 }, Seed(7)).unwrap();
    let short = y.view().rows(0..3).unwrap();
    let batch = FusedBatch { x: x.view(), y: short };
    assert_eq!(
        model.loss(&batch).unwrap_err().to_string(),
        "model `Fused`: `y` has extent 3 on axis 0, but 4 is needed"
    );
    // Predictions read no labels.
    assert_eq!(*model.forward(&batch).unwrap().p.shape(), [4, 1].into());
    let error = Fused::new(dims! { e: 6 }, Seed(7)).unwrap_err();
    assert!(error.to_string().contains("needs the dimension `d`"), "{error}");
}

graph! {
    /// Names that emitted code might use itself.
    pub model Names {
        dtype = f64;
        input batch: csr[n, d];
        label label: dense[n, 1];
        param loss: row_sparse[d, 1] = Zeros;
        param record: dense[1] = Zeros;
        let context = dot(batch, loss) + record;
        loss squared_error(context, label);
        output updater = context;
    }
}

#[test]
fn any_names_will_do() {
    let (x, y) = data();
    let mut model = Names::new(dims! { d: 6 }, Seed(1)).unwrap();
    let mut updater = Updater::for_model(Sgd::default(), &model).unwrap();
    let batch = NamesBatch { batch: x.view(), label: y.view() };
    let first = model.train_step(&batch, &mut updater).unwrap();
    let second = model.train_step(&batch, &mut updater).unwrap();
    assert!(second < first);
}

/// Types that emitted code might call its own so.
type T = [u8; 1];
type R = [u8; 1];

graph! {
    pub model Types {
        const ONE: usize = size_of::<T>();
        const ALSO_ONE: usize = size_of::<R>();
        input x: csr[n, d];
        label y: dense[n, ONE];
        param w: row_sparse[d, ONE] = Zeros;
        param(frozen) b: dense[ALSO_ONE] = Ones;
        loss squared_error(dot(x, w) + b, y);
    }
}

#[test]
fn constants_of_any_types_will_do() {
    assert!(Types::PLAN.is_fused());
}

#[test]
fn a_table_in_the_place_of_another_has_its_form() {
    let (x, y) = data();
    let batch = FusedBatch { x: x.view(), y: y.view() };
    for (n_rows, row_size, expected) in
        [(1, 6, "6 rows of 1 elements"), (3, 1, "has 6 values, but 3 were given")]
    {
        let mut model = Fused::new(dims! { d: 6 }, Seed(1)).unwrap();
        *model.w.table_mut() = Table::zeros(n_rows, row_size);
        let mut updater = Updater::for_model(AdaGrad::default(), &model).unwrap();
        let error = model.train_step(&batch, &mut updater).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}
