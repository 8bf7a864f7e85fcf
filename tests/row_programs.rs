//! Models that no family of loops was written for: each is one step by its row program, against the
//! same model unfused.

use nnz::core::update_rules::{NAMES, RuleVisitor, UpdateRule, with_rule};
use nnz::formats::Unit;
use nnz::model::GradientMut;
use nnz::optimizer::Updater;
use nnz::prelude::*;

twins! {
    /// A factorization machine with dense layers above.
    DeepMachine, DeepMachineUnfused {
        dtype = f64;
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Normal { mean: 0.0, std: 0.3 };
        param v: row_sparse[d, 4] = Normal { mean: 0.0, std: 0.3 };
        param h: dense[4, 3] = Normal { mean: 0.0, std: 0.3 };
        param g: dense[3, 1] = Normal { mean: 0.0, std: 0.3 };
        param b: dense[1] = Zeros;
        let deep = dot(relu(dot(embedding_bag(x, v, weighted = true), h)), g);
        let score = dot(x, w) + pairwise_interaction(x, v) + deep + b;
        loss logistic(score, y);
        output score;
    }

    /// A machine over two inputs.
    TwoMachines, TwoMachinesUnfused {
        dtype = f64;
        input x: csr[n, d];
        input z: csr<unit>[n, d];
        label y: dense[n, 1];
        param v: row_sparse[d, 4] = Normal { mean: 0.0, std: 0.3 };
        param u: row_sparse[d, 3] = Normal { mean: 0.0, std: 0.3 };
        let score = pairwise_interaction(x, v) - pairwise_interaction(z, v) + pairwise_interaction(z, u);
        loss squared_error(score, y);
        output score;
    }

    /// Factors of users and items, with features of both.
    Hybrid, HybridUnfused {
        dtype = f64;
        input user: dense<u32>[n];
        input of_user: csr[n, d];
        input item: dense<i64>[n];
        label y: dense[n];
        param p: row_sparse[users, k] = Normal { mean: 0.0, std: 0.3 };
        param f: row_sparse[d, k] = Normal { mean: 0.0, std: 0.3 };
        param q: row_sparse[items, k] = Normal { mean: 0.0, std: 0.3 };
        let score = sum((embedding(user, p) + dot(of_user, f)) * embedding(item, q), axis = 1);
        loss squared_error(score, y);
        output score;
    }

    /// Classes of bags, with extents that are known when the model is made.
    Classes, ClassesUnfused {
        dtype = f64;
        input x: csr[n, d];
        label y: dense<u32>[n];
        param t: row_sparse[d, k] = Normal { mean: 0.0, std: 0.3 };
        param a: dense[k, classes] = Normal { mean: 0.0, std: 0.3 };
        param b: dense[classes] = Zeros;
        let score = dot(embedding_bag(x, t, mean = true), a) + b;
        loss softmax_cross_entropy(score, y);
        output score;
    }

    /// Several labels a sample, given as a csr.
    Labels, LabelsUnfused {
        dtype = f64;
        input x: csr[n, d];
        label y: csr[n, 5];
        param t: row_sparse[d, k] = Normal { mean: 0.0, std: 0.3 };
        param a: dense[k, 5] = Normal { mean: 0.0, std: 0.3 };
        let score = dot(tanh(dot(x, t)), a);
        loss logistic(score, y);
        output score;
    }

    /// Two tasks with one table, weighted.
    Tasks, TasksUnfused {
        dtype = f64;
        input x: csr[n, d];
        label y: dense[n, 1];
        label z: dense[n, 1];
        label weight: dense[n];
        param t: row_sparse[d, 3] = Normal { mean: 0.0, std: 0.3 };
        param a: dense[3, 1] = Normal { mean: 0.0, std: 0.3 };
        param c: dense[3, 1] = Normal { mean: 0.0, std: 0.3 };
        let shared = tanh(dot(x, t));
        let score = dot(shared, a);
        let other = dot(shared, c);
        loss logistic(score, y, weight);
        loss 0.3 * squared_error(other, z) - mean(abs(other)) * 0.1;
        output score;
        output other;
    }

    /// Words near each other, and some that are not.
    SkipGram, SkipGramUnfused {
        dtype = f64;
        input word: dense<u32>[n];
        input context: dense<u32>[n];
        input negatives: dense<u32>[n, 5];
        param p: row_sparse[words, k] = Normal { mean: 0.0, std: 0.3 };
        param q: row_sparse[words, k] = Normal { mean: 0.0, std: 0.3 };
        let of_word = embedding(word, p);
        let score = sum(of_word * embedding(context, q), axis = 1, keepdims = true);
        let far = sum(embedding(negatives, q) * expand_dims(of_word, axis = 1), axis = 2);
        loss mean(softplus(-score)) + mean(sum(softplus(far), axis = 1));
        output score;
    }

    /// Which of two items a user prefers, with a loss written by hand.
    Bpr, BprUnfused {
        dtype = f64;
        input user: dense<u32>[n];
        input better: dense<u32>[n];
        input worse: dense<u32>[n];
        param p: row_sparse[users, 4] = Normal { mean: 0.0, std: 0.3 };
        param q: row_sparse[items, 4] = Normal { mean: 0.0, std: 0.3 };
        let of_user = embedding(user, p);
        let score = sum(of_user * (embedding(better, q) - embedding(worse, q)), axis = 1);
        loss mean(softplus(-score));
        output score;
    }

    /// A quantile, with a loss that is a sum over samples.
    Quantile, QuantileUnfused {
        dtype = f64;
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Normal { mean: 0.0, std: 0.3 };
        param b: dense[1] = Zeros;
        let score = dot(x, w) + b;
        let e = y - score;
        loss 0.01 * sum(maximum(0.9 * e, -0.1 * e));
        output score;
    }

    /// With a number that depends on the batch.
    Counted, CountedUnfused {
        dtype = f64;
        input x: csr[n, d];
        label y: dense[n, 1];
        param t: row_sparse[d, 3] = Normal { mean: 0.0, std: 0.3 };
        param a: dense[3, 1] = Normal { mean: 0.0, std: 0.3 };
        let score = dot(tanh(dot(x, t)), a) / n as f64;
        loss squared_error(score, y);
        output score;
    }

    /// Fields of ids through a layer, beside dense numbers.
    Fields, FieldsUnfused {
        dtype = f64;
        input ids: dense<u32>[n, 3];
        input numbers: dense[n, 2];
        label y: dense[n, 1];
        param t: row_sparse[words, 4] = Normal { mean: 0.0, std: 0.3 };
        param h: dense[14, 3] = Normal { mean: 0.0, std: 0.3 };
        param scale: dense[2] = Ones;
        param g: dense[3, 1] = Normal { mean: 0.0, std: 0.3 };
        let all = concat(flatten(embedding(ids, t)), numbers * scale, axis = 1);
        let score = dot(tanh(dot(all, h)), g);
        loss logistic(score, y);
        output score;
    }
}

const ROWS: usize = 24;
const D: usize = 9;

/// Ids of which some are equal to those of another number.
fn ids<I: nnz::core::element::Element>(
    below: usize,
    other: usize,
    of: impl Fn(usize) -> I,
) -> Dense<I> {
    let id = |row: usize| (row * 5 + other * (row % 3)) % below;
    Dense::new([ROWS], (0..ROWS).map(|row| of(id(row))).collect()).unwrap()
}

/// Some ids a sample, which may be equal.
fn several(below: usize, count: usize) -> Dense<u32> {
    let id = |place: usize| ((place * 7 + place / 4) % below) as u32;
    Dense::new([ROWS, count], (0..ROWS * count).map(id).collect()).unwrap()
}

fn values(columns: usize, number: usize) -> Dense<f64> {
    let value = |place: usize| ((place * 7 + number * 3) % 3 % 2) as f64;
    Dense::new([ROWS, columns], (0..ROWS * columns).map(value).collect()).unwrap()
}

fn vector(number: usize) -> Dense<f64> {
    values(1, number).reshape([ROWS]).unwrap()
}

/// Sparse rows, some of them empty.
fn csr<V: nnz::core::element::Stored>(
    columns: usize,
    number: usize,
    of: impl Fn(f64) -> V,
) -> Csr<V> {
    let has = |row: usize, column: usize| !(row * 3 + column * (number + 1) * 5).is_multiple_of(4);
    let value = |row: usize, column: usize| 0.25 * (1 + (row + column * 3 + number) % 5) as f64;
    let row = |row: usize| {
        let columns = (0..columns).filter(|column| row % 5 != number && has(row, *column));
        columns.map(|column| (column, of(value(row, column)))).collect::<Vec<_>>()
    };
    Csr::from_rows(columns, (0..ROWS).map(row).collect::<Vec<_>>()).unwrap()
}

#[track_caller]
fn close(found: &[f64], expected: &[f64], what: &str) {
    assert_eq!(found.len(), expected.len());
    for (p, q) in found.iter().zip(expected) {
        assert!((p - q).abs() < 1e-10, "{what}: {p} {q}");
    }
}

fn same_parameters<A, B, R: UpdateRule>(
    (a, of_a): (&mut A, &mut Updater<R, f64>),
    (b, of_b): (&mut B, &mut Updater<R, f64>),
    what: &str,
) where
    A: Model<Element = f64>,
    B: Model<Element = f64>,
{
    of_a.flush_model(a).unwrap();
    of_b.flush_model(b).unwrap();
    for (p, q) in a.parameters().iter().zip(b.parameters()) {
        close(p.values(), q.values(), &format!("{what}, {}", p.name));
    }
}

/// The gradients of the last `loss_and_grads`: the same rows, and the same numbers.
fn same_gradients<A, B>(a: &mut A, b: &mut B, what: &str)
where
    A: Model<Element = f64>,
    B: Model<Element = f64>,
{
    for (index, parameter) in A::PARAMETERS.iter().enumerate() {
        let what = format!("{what}, gradient of {}", parameter.name);
        match (a.gradient_mut(index), b.gradient_mut(index)) {
            (Some(GradientMut::RowSparse(a)), Some(GradientMut::RowSparse(b))) => {
                assert_eq!((a.shape(), a.indices()), (b.shape(), b.indices()), "{what}");
                close(a.values(), b.values(), &what);
            }
            (Some(GradientMut::Dense(a)), Some(GradientMut::Dense(b))) => {
                assert_eq!(a.shape(), b.shape(), "{what}");
                close(a.values(), b.values(), &what);
            }
            (None, None) => {}
            _ => panic!("{what}: storage types differ"),
        }
    }
}

/// Gradients of whole batches and of others. Then steps: of whole batches, of single samples and of
/// some, clipped ones, and single samples in one call.
macro_rules! agree {
    ($rule:expr, $fused:ident, $unfused:ident, $batch:ident, $unfused_batch:ident, $dims:expr, { $($name:ident: $array:expr),* $(,)? }) => {{
        let (rule, what) = ($rule, format!("{} {:?}", $fused::NAME, $rule));
        $(let $name = $array;)*
        let (mut a, mut b) = ($fused::new($dims, Seed(7)).unwrap(), $unfused::new($dims, Seed(7)).unwrap());
        let mut of_a = Updater::for_model(rule.clone(), &a).unwrap();
        let mut of_b = Updater::for_model(rule.clone(), &b).unwrap();
        for range in [2..5, 0..ROWS, 5..6] {
            $(let $name = $name.view().rows(range.clone()).unwrap();)*
            let found = a.loss_and_grads(&$batch { $($name,)* }).unwrap();
            let expected = b.loss_and_grads(&$unfused_batch { $($name,)* }).unwrap();
            close(&[found], &[expected], &what);
            close(a.outputs().score.values(), b.outputs().score.values(), &what);
            same_gradients(&mut a, &mut b, &what);
        }
        for range in [0..ROWS, 3..4, 0..1, 4..9, 5..6, 1..2, 9..ROWS] {
            $(let $name = $name.view().rows(range.clone()).unwrap();)*
            let found = a.train_step(&$batch { $($name,)* }, &mut of_a).unwrap();
            let expected = b.train_step(&$unfused_batch { $($name,)* }, &mut of_b).unwrap();
            close(&[found], &[expected], &what);
            close(a.outputs().score.values(), b.outputs().score.values(), &what);
        }
        for (range, norm) in [(0..ROWS, 0.05), (4..9, 1e6), (2..3, 0.01)] {
            $(let $name = $name.view().rows(range.clone()).unwrap();)*
            let found = a.clipped_step(&$batch { $($name,)* }, &mut of_a, norm).unwrap();
            let batch = $unfused_batch { $($name,)* };
            close(&[found], &[b.clipped_step(&batch, &mut of_b, norm).unwrap()], &what);
            close(a.outputs().score.values(), b.outputs().score.values(), &what);
        }
        same_parameters((&mut a, &mut of_a), (&mut b, &mut of_b), &format!("{what}, clipped"));
        $(let $name = $name.view();)*
        let made = a.train_rows(&$batch { $($name,)* }, &mut of_a).unwrap();
        assert_eq!(made.n_steps, ROWS, "{what}");
        for row in 0..ROWS {
            $(let $name = $name.rows(row..row + 1).unwrap();)*
            b.train_step(&$unfused_batch { $($name,)* }, &mut of_b).unwrap();
        }
        same_parameters((&mut a, &mut of_a), (&mut b, &mut of_b), &what);
    }};
}

fn all_agree<R: UpdateRule>(rule: &R) {
    let x = || csr(D, 0, |value| value);
    agree!(
        rule, DeepMachine, DeepMachineUnfused, DeepMachineBatch, DeepMachineUnfusedBatch,
        dims! { d: D }, { x: x(), y: values(1, 0) }
    );
    agree!(
        rule, TwoMachines, TwoMachinesUnfused, TwoMachinesBatch, TwoMachinesUnfusedBatch,
        dims! { d: D }, { x: x(), z: csr(D, 1, |_| Unit), y: values(1, 0) }
    );
    agree!(
        rule, Hybrid, HybridUnfused, HybridBatch, HybridUnfusedBatch,
        dims! { users: 5, items: 7, d: D, k: 3 }, {
            user: ids(5, 0, |id| id as u32),
            of_user: x(),
            item: ids(7, 1, |id| id as i64),
            y: vector(0),
        }
    );
    agree!(
        rule, Classes, ClassesUnfused, ClassesBatch, ClassesUnfusedBatch,
        dims! { d: D, k: 3, classes: 4 }, { x: x(), y: ids(4, 0, |id| id as u32) }
    );
    agree!(
        rule, Labels, LabelsUnfused, LabelsBatch, LabelsUnfusedBatch,
        dims! { d: D, k: 3 }, { x: x(), y: csr(5, 2, |_| 1.0) }
    );
    agree!(
        rule, Tasks, TasksUnfused, TasksBatch, TasksUnfusedBatch,
        dims! { d: D }, { x: x(), y: values(1, 0), z: values(1, 1), weight: vector(2) }
    );
    agree!(
        rule, SkipGram, SkipGramUnfused, SkipGramBatch, SkipGramUnfusedBatch,
        dims! { words: 9, k: 3 }, {
            word: ids(9, 0, |id| id as u32),
            context: ids(9, 1, |id| id as u32),
            negatives: several(9, 5),
        }
    );
    agree!(
        rule, Bpr, BprUnfused, BprBatch, BprUnfusedBatch, dims! { users: 5, items: 7 }, {
            user: ids(5, 0, |id| id as u32),
            better: ids(7, 0, |id| id as u32),
            worse: ids(7, 1, |id| id as u32),
        }
    );
    agree!(
        rule, Quantile, QuantileUnfused, QuantileBatch, QuantileUnfusedBatch,
        dims! { d: D }, { x: x(), y: values(1, 0) }
    );
    agree!(
        rule, Fields, FieldsUnfused, FieldsBatch, FieldsUnfusedBatch,
        dims! { words: 9 }, { ids: several(9, 3), numbers: values(2, 0), y: values(1, 1) }
    );
}

/// A rule in each of its modes.
struct EveryMode;

impl RuleVisitor for EveryMode {
    type Output = ();

    fn visit<R: UpdateRule>(self, rule: R) {
        for lazy_update in [LazyUpdate::Exact, LazyUpdate::Touched, LazyUpdate::Dense] {
            let mut rule = rule.clone();
            rule.set_lazy_update(lazy_update);
            if rule.check().is_ok() {
                all_agree(&rule);
            }
        }
    }
}

#[test]
fn fused_equals_unfused_by_every_rule() {
    for name in NAMES {
        with_rule(name, EveryMode).unwrap();
    }
}

#[test]
fn rows_catch_up_on_idle_steps() {
    for lazy_update in [LazyUpdate::Exact, LazyUpdate::Touched, LazyUpdate::Dense] {
        let rule = Sgd { momentum: 0.9, weight_decay: 0.1, lazy_update, ..Sgd::default() };
        all_agree(&rule);
        all_agree(&Sgd { momentum: 0.0, ..rule });
    }
}

/// A sample that is a batch of its own has another `n`.
#[test]
fn numbers_of_the_batch_are_not_those_of_a_sample() {
    const { assert!(!Counted::TRAINS_ROWS && Tasks::TRAINS_ROWS) };
    let (x, y) = (csr(D, 0, |value| value), values(1, 0));
    let mut a = Counted::new(dims! { d: D }, Seed(7)).unwrap();
    let mut b = CountedUnfused::new(dims! { d: D }, Seed(7)).unwrap();
    let mut of_a = Updater::for_model(AdaGrad::default(), &a).unwrap();
    let mut of_b = Updater::for_model(AdaGrad::default(), &b).unwrap();
    for range in [0..ROWS, 3..4, 4..9, 5..6] {
        let (x, y) = (x.rows(range.clone()).unwrap(), y.view().rows(range).unwrap());
        let found = a.train_step(&CountedBatch { x, y }, &mut of_a).unwrap();
        let expected = b.train_step(&CountedUnfusedBatch { x, y }, &mut of_b).unwrap();
        close(&[found], &[expected], "counted");
    }
    same_parameters((&mut a, &mut of_a), (&mut b, &mut of_b), "counted");
}

#[test]
fn each_model_is_one_step() {
    for plan in [
        DeepMachine::PLAN,
        TwoMachines::PLAN,
        Hybrid::PLAN,
        Classes::PLAN,
        Labels::PLAN,
        Tasks::PLAN,
        SkipGram::PLAN,
        Bpr::PLAN,
        Quantile::PLAN,
        Fields::PLAN,
    ] {
        let text = plan.to_string();
        assert!(text.contains("step: one loop over the samples"), "{text}");
    }
}

/// The rows that a table lacks are refused by name of the sample, before a step is made.
#[test]
fn ids_beyond_a_table_are_refused() {
    let mut model = Bpr::new(dims! { users: 5, items: 7 }, Seed(7)).unwrap();
    let mut updater = Updater::for_model(AdaGrad::default(), &model).unwrap();
    let (user, item) = (ids(5, 0, |id| id as u32), ids(9, 0, |id| id as u32));
    let batch = BprBatch { user: user.view(), better: item.view(), worse: item.view() };
    assert!(model.train_step(&batch, &mut updater).is_err());
    assert!(model.train_rows(&batch, &mut updater).is_err());
}

/// Columns of a table beyond 2³² rows are of another type, which not every form of a read takes.
#[test]
fn columns_of_u64_train_as_those_of_u32() {
    let (narrow, y) = (csr(D, 0, |value| value), values(1, 0));
    let nnz::formats::ColumnIdsView::U32(columns) = narrow.columns() else { panic!("not u32") };
    let columns: Vec<u64> = columns.iter().map(|column| u64::from(*column)).collect();
    let wide: Csr<f64> =
        Csr::new(D, narrow.indptr().to_vec(), columns, narrow.values().to_vec()).unwrap();
    let train = |x: &Csr<f64>| {
        let mut model = Quantile::new(dims! { d: D }, Seed(7)).unwrap();
        let mut updater = Updater::for_model(AdaGrad::default(), &model).unwrap();
        for range in [0..ROWS, 3..4, 4..9] {
            let (x, y) = (x.rows(range.clone()).unwrap(), y.view().rows(range).unwrap());
            model.train_step(&QuantileBatch { x, y }, &mut updater).unwrap();
        }
        model.train_rows(&QuantileBatch { x: x.view(), y: y.view() }, &mut updater).unwrap();
        updater.flush_model(&mut model).unwrap();
        model.w.values().to_vec()
    };
    assert_eq!(train(&narrow), train(&wide));
}
