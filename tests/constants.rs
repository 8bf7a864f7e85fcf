//! Dimensions and numbers that are constants of Rust, and dimensions as numbers.
use nnz::formats::{Csr, Dense};
use nnz::model::Extent;
use nnz::prelude::*;

const CLASSES: usize = 3;
const DELTA: f32 = 0.75;
const TWO: f64 = 2.0;

mod settings {
    pub(super) const PAIRS: usize = 2;
    pub(super) const LOWER: f32 = -0.5;
    pub(super) const FIELDS: usize = 4;
}

graph! {
    pub model Softmax {
        const CLASSES;
        input x: csr[n, d];
        label y: dense<u32>[n];
        param w: row_sparse[d, CLASSES] = Constant(0.5);
        let scores = dot(x, w);
        loss softmax_cross_entropy(scores, y);
        output probabilities = softmax(scores);
    }

    /// What is assumed of constants holds: `WIDTH` is 4, and `AGAIN` is `WIDTH`.
    pub model Assumed {
        const WIDTH: usize = 2 * settings::PAIRS;
        const AGAIN: usize = 4;
        input x: dense[n, WIDTH];
        input z: dense[n, AGAIN];
        param(frozen) w: dense[4, 1] = Ones;
        output sum = dot(x, w) + dot(z, w);
    }
}

graph! {
    /// Constants and fixed dimensions are numbers in initializers.
    pub model InInitializers {
        const CLASSES;
        const FIELDS: usize = 8;
        const PAIRS = FIELDS * (FIELDS - 1) / 2;
        input x: dense[n, d];
        param(frozen) fields: dense[] = Constant(FIELDS as f64);
        param(frozen) pairs: dense[] = Constant(PAIRS as f64);
        param(frozen) classes: dense[] = Constant(1.0 / CLASSES as f64);
        param w: row_sparse[d, 2] = Constant(1.0 / (d as f64).sqrt());
        output scaled = x * fields + pairs;
        output product = dot(x * classes, w);
    }
}

mod above {
    /// Not the one of the model.
    const A: usize = 100;
    const D: usize = 4;

    nnz::graph! {
        /// Constants of the constants above them; `A` is 2 · 3 + 1 from its own line on, `D` the
        /// module's.
        pub model Above {
            const BASE: usize = 3;
            const A = 2 * BASE + A / A;
            const B = if A > BASE { A - BASE } else { A };
            const D;
            const C: usize = [B, A, D].len() + D;
            input x: dense[n, A];
            param w: dense[A, B] = Ones;
            param v: dense[B, C] = Ones;
            param h: row_sparse[D, C] = Ones;
            input k: dense<u32>[n];
            label y: dense[n, C];
            let pred = dot(dot(x, w), v) + embedding(k, h);
            loss squared_error(pred, y);
            output pred;
        }
    }
}

/// Extents along which arrays are joined: sums of constants and numbers, in either order, also
/// where nothing names them.
macro_rules! joined {
    ($model:ident, $fuse:ident, [$($constants:tt)*], $user:tt, $item:tt, $both:tt) => {
        graph! {
            pub model $model {
                $($constants)*
                fuse = $fuse;
                input user: dense<u32>[n];
                input item: dense<u32>[n];
                input x: dense[n, 2];
                label y: dense[n, 1];
                param users: row_sparse[a, $user] = Normal { mean: 0.0, std: 0.5 };
                param items: row_sparse[b, $item] = Normal { mean: 0.0, std: 0.5 };
                param w: dense[$both, 4] = Normal { mean: 0.0, std: 0.5 };
                param v: dense[_, 1] = Normal { mean: 0.0, std: 0.5 };
                let pair = concat(embedding(user, users), embedding(item, items), axis = 1);
                let hidden = relu(dot(pair, w));
                let pred = dot(concat(x, hidden, pair, axis = 1), v);
                loss squared_error(pred, y);
                output pair;
            }
        }
    };
}

const ITEM: usize = 3;

joined!(Joined, on, [const USER = 2; const ITEM; const BOTH = ITEM + USER;], USER, ITEM, BOTH);
joined!(JoinedUnfused, off, [const USER = 2; const ITEM; const BOTH = ITEM + USER;], USER, ITEM, BOTH);
joined!(Numbers, on, [], 2, 3, 5);

/// Fields of embeddings, the best of their sums, and a robust loss: with numbers, with constants of
/// the model, and with those of Rust.
macro_rules! fields {
    (
        $model:ident, [$($constants:tt)*], $fields:expr, $width:expr, $flat:tt, $delta:expr, $lower:expr, $upper:expr,
        $k:expr
    ) => {
        graph! {
            pub model $model {
                $($constants)*
                input x: csr[n, d];
                label y: dense[n, 1];
                param w: row_sparse[d, $flat] = Normal { mean: 0.0, std: 0.5 };
                param v: row_sparse[d, 1] = Normal { mean: 0.0, std: 0.5 };
                let small = clip(x, lower = $lower, upper = $upper);
                let fields = reshape(dot(small, w), shape = [0, $fields, $width]);
                let best = topk(sum(fields, axis = 1), k = $k, axis = 1);
                let part = slice_axis(best, axis = 1, begin = [0], end = [$k]);
                let pred = dot(x, v) + mean(part, axis = 1, keepdims = true) * 0.5;
                loss huber(pred, y, delta = $delta);
                output pred;
            }
        }
    };
}

fields!(FieldsNumbers, [], 4, 4, 16, 0.75, -0.5, 1.5, 3);
fields!(
    FieldsSeen,
    [const FIELDS: usize = 4; const FLAT = FIELDS * FIELDS; const D: f32 = 0.75; const K = 2;],
    FIELDS, FIELDS, FLAT, D, -0.5, D * 2.0, K + 1
);
fields!(
    FieldsOfRust,
    [const FLAT = settings::FIELDS * settings::FIELDS; const DELTA: f32; const CLASSES;],
    settings::FIELDS, settings::FIELDS, FLAT, DELTA, settings::LOWER, 2.0 * DELTA, CLASSES
);

/// One loop over rows, with numbers, or with constants and extents as numbers, in every precision.
macro_rules! scaled {
    ($model:ident, $dtype:ident, [$($constants:tt)*], $a:expr, $b:expr, $n:expr, $d:expr) => {
        graph! {
            pub model $model {
                $($constants)*
                dtype = $dtype;
                input x: csr[n, d];
                label y: dense[n, 1];
                param w: row_sparse[d, 1] = Normal { mean: 0.0, std: 0.5 };
                param b: dense[1] = Zeros;
                let pred = (dot(x * (1.0 / $d.sqrt()), w) * (1.0 / $a) / $b + b) / $n;
                loss squared_error(pred, y);
                output pred;
            }
        }
    };
}

scaled!(ScaledNumbers, f32, [], 3.0, 2.0, 3.0, 5.0);
scaled!(Scaled, f32, [const CLASSES;], CLASSES as f64, crate::constants::TWO, n as f32, (d as f64));
scaled!(ScaledNumbers64, f64, [], 3.0, 2.0, 3.0, 5.0);
scaled!(Scaled64, f64, [const CLASSES;], CLASSES as f64, crate::constants::TWO, n as f64, (d as f64));

graph! {
    /// What a block names of Rust, and what it is given.
    pub block robust(p, y, delta, k = 1) {
        huber(topk(p * crate::constants::TWO, k = k, axis = 1), y, delta = delta * 2.0)
    }

    pub model OfBlocks {
        const DELTA: f32;
        const ONE: usize = 1;
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 2] = Normal { mean: 0.0, std: 0.5 };
        loss robust(dot(x, w), y, DELTA, k = ONE);
    }

    pub model OfBlocksNumbers {
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 2] = Normal { mean: 0.0, std: 0.5 };
        loss huber(topk(dot(x, w) * 2.0, k = 1, axis = 1), y, delta = 1.5);
    }

    /// Constants that are numbers are numbers in initializers.
    pub model OfNumbers {
        const CLASSES;
        const HALF: f32 = 0.5;
        const TWICE = 4.0 * HALF;
        input x: dense[n, 2];
        param(frozen) w: dense[2] = Constant(f64::from(HALF) + f64::from(TWICE));
        output y = x * w + CLASSES as f64;
    }

    /// Ids are below a constant of Rust.
    pub model Hot {
        input ids: dense<u32>[n];
        output hot = one_hot(ids, depth = settings::FIELDS);
    }
}

mod elsewhere {
    nnz::graph! {
        use super::robust;

        /// A block that comes with its tokens: what it names of Rust is that of where it is
        /// written.
        pub model Fetched {
            input x: csr[n, d];
            label y: dense[n, 1];
            param w: row_sparse[d, 2] = Normal { mean: 0.0, std: 0.5 };
            loss robust(dot(x, w), y, super::DELTA);
        }
    }
}

/// Losses and parameters of some steps, as bits.
macro_rules! steps {
    ($model:ident, $batch:ident, $element:ty) => {{
        let rows = vec![vec![(0_usize, 1.0), (2, -2.0)], vec![(1, 0.5)], vec![(0, 1.5), (3, 2.0)]];
        let x = Csr::<$element>::from_rows(5, rows).unwrap();
        let y = Dense::<$element>::new([3, 1], vec![1.0, -1.0, 0.5]).unwrap();
        let mut model = $model::new(dims! { d: 5 }, Seed(3)).unwrap();
        let rule = AdaGrad { learning_rate: 0.1, ..AdaGrad::default() };
        let mut updater = nnz::optimizer::Updater::for_model(rule, &model).unwrap();
        let batch = $batch { x: x.view(), y: y.view() };
        let mut bits = Vec::new();
        for _ in 0..10 {
            bits.push(model.train_step(&batch, &mut updater).unwrap().to_bits());
        }
        model.forward(&batch).unwrap();
        for index in 0..$model::OUTPUTS.len() {
            let output = model.dense_output(index).unwrap();
            bits.extend(output.values().iter().map(|value| f64::from(*value).to_bits()));
        }
        for parameter in model.parameters() {
            bits.extend(parameter.values().iter().map(|value| f64::from(*value).to_bits()));
        }
        bits
    }};
}

#[test]
fn l8_attributes_that_are_constants_train_as_the_numbers_do() {
    let numbers = steps!(FieldsNumbers, FieldsNumbersBatch, f32);
    assert_eq!(numbers, steps!(FieldsSeen, FieldsSeenBatch, f32));
    assert_eq!(numbers, steps!(FieldsOfRust, FieldsOfRustBatch, f32));
    let of_blocks = steps!(OfBlocksNumbers, OfBlocksNumbersBatch, f32);
    assert_eq!(of_blocks, steps!(OfBlocks, OfBlocksBatch, f32));
    use elsewhere::{Fetched, FetchedBatch};
    assert_eq!(of_blocks, steps!(Fetched, FetchedBatch, f32));
}

#[test]
fn l8_dimensions_as_numbers_train_as_the_numbers_do_in_one_loop() {
    assert_eq!(steps!(ScaledNumbers, ScaledNumbersBatch, f32), steps!(Scaled, ScaledBatch, f32));
    let numbers = steps!(ScaledNumbers64, ScaledNumbers64Batch, f64);
    assert_eq!(numbers, steps!(Scaled64, Scaled64Batch, f64));
    let step =
        |plan: String| plan.lines().find(|line| line.starts_with("step")).unwrap().to_owned();
    let plan = Scaled::PLAN.to_string();
    assert_eq!(step(plan.clone()), step(ScaledNumbers::PLAN.to_string()));
    assert!(step(plan.clone()).contains("one loop over the rows of x"), "{plan}");
}

#[test]
fn l8_the_plan_has_the_values_of_constants() {
    let attributes = |operator: &str| {
        let values = FieldsOfRust::PLAN.values.iter();
        let mut found =
            values.filter_map(|value| value.computed.filter(|how| how.operator == operator));
        found
            .next()
            .unwrap()
            .attributes
            .iter()
            .map(|(_, value)| value.to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(attributes("huber"), ["0.75"]);
    assert_eq!(attributes("clip"), ["-0.5", "1.5"]);
    assert_eq!(attributes("reshape"), ["[0, 4, 4]"]);
    assert_eq!(attributes("topk"), ["1", "3"]);
}

#[test]
fn l8_constants_that_are_numbers_are_numbers_in_initializers() {
    let mut model = OfNumbers::new(dims! {}, Seed(1)).unwrap();
    let x = Dense::full([1, 2], 2.0);
    assert_eq!(model.forward(&OfNumbersBatch { x: x.view() }).unwrap().y.values(), [8.0; 2]);
}

#[test]
fn l8_ids_stay_below_a_constant_of_rust() {
    let mut model = Hot::new(dims! {}, Seed(1)).unwrap();
    let ids = Dense::new([2], vec![0_u32, 3]).unwrap();
    let outputs = model.forward(&HotBatch { ids: ids.view() }).unwrap();
    assert_eq!(outputs.hot.shape(), [2, 4].into());
    let beyond = Dense::new([2], vec![0_u32, 4]).unwrap();
    let error = model.forward(&HotBatch { ids: beyond.view() }).unwrap_err();
    assert!(error.to_string().contains('4'), "{error}");
}

#[test]
fn arrays_of_constant_extents_are_joined() {
    let plan = Joined::PLAN.to_string();
    assert!(plan.contains("[n, 5]") && plan.contains("[n, 11]"), "{plan}");
    let (user, item) = ([0_u32, 2, 2, 1], [1_u32, 0, 3, 3]);
    let x = Dense::new([4, 2], (0..8).map(|i| i as f32 / 4.0 - 1.0).collect()).unwrap();
    let y = Dense::new([4, 1], vec![1.0, -1.0, 0.5, 0.0]).unwrap();
    let ids = |ids: [u32; 4]| Dense::new([4], ids.to_vec()).unwrap();
    let (user, item) = (ids(user), ids(item));
    macro_rules! trained {
        ($model:ident, $batch:ident) => {{
            let mut model = $model::new(dims! { a: 3, b: 4 }, Seed(1)).unwrap();
            let mut updater = nnz::optimizer::Updater::for_model(Sgd::default(), &model).unwrap();
            let batch = $batch {
                user: user.view().into(),
                item: item.view().into(),
                x: x.view(),
                y: y.view(),
            };
            for _ in 0..5 {
                model.train_step(&batch, &mut updater).unwrap();
            }
            let pair = model.forward(&batch).unwrap().pair.values().to_vec();
            let parameters = model.parameters();
            (parameters.iter().map(|p| p.values().to_vec()).collect::<Vec<_>>(), pair)
        }};
    }
    let (numbers, pair) = trained!(Numbers, NumbersBatch);
    assert_eq!((numbers.clone(), pair.clone()), trained!(Joined, JoinedBatch));
    let (unfused, _) = trained!(JoinedUnfused, JoinedUnfusedBatch);
    for (a, b) in unfused.iter().flatten().zip(numbers.iter().flatten()) {
        assert!((a - b).abs() < 1e-6, "{a} {b}");
    }
    assert_eq!(pair.len(), 20);
}

/// Parts, repetitions and other shapes of axes whose extents are constants, with gradients through
/// all of them.
macro_rules! derived {
    ($model:ident, $fuse:ident, [$($constants:tt)*], $wide:tt, $deep:tt, $inner:tt, $flat:tt) => {
        graph! {
            pub model $model {
                $($constants)*
                fuse = $fuse;
                input x: csr[n, d];
                input z: dense[n, $inner];
                label y: dense[n, 1];
                param w: row_sparse[d, $wide] = Normal { mean: 0.0, std: 0.5 };
                param v: dense[$flat, 1] = Normal { mean: 0.0, std: 0.5 };
                param u: dense[_, 1] = Normal { mean: 0.0, std: 0.5 };
                let hidden = dot(x, w);
                let inner = slice(hidden, begin = [0, 1], end = [_, -1]) * z;
                let odd = slice_axis(hidden, axis = 1, begin = 1, step = 2);
                let alike = slice_like(hidden, z);
                let cube = reshape(repeat(hidden, repeats = $deep, axis = 1), shape = [0, _, $deep]);
                let flat = flatten(tile(cube, reps = [1, 1, 2]));
                let best = topk(hidden, k = 2, axis = 1);
                let all = concat(inner, odd, alike, best, axis = 1);
                let pred = dot(flat, v) + dot(all, u);
                loss squared_error(pred, y);
                output all;
                output flat;
            }
        }
    };
}

derived!(Derived, on, [const WIDE = 2 * settings::PAIRS + 1; const INNER = 3; const FLAT = WIDE * 6;], WIDE, 3, INNER, FLAT);
derived!(DerivedUnfused, off, [const WIDE = 2 * settings::PAIRS + 1; const INNER = 3; const FLAT = WIDE * 6;], WIDE, 3, INNER, FLAT);
derived!(DerivedNumbers, on, [], 5, 3, 3, 30);

#[test]
fn parts_and_repetitions_of_constant_extents() {
    let plan = Derived::PLAN.to_string();
    assert!(["[n, 15]", "[n, 30]", "[n, 2]"].iter().all(|shape| plan.contains(shape)), "{plan}");
    let x = Csr::new(4, vec![0, 2, 3, 5], vec![0_u32, 2, 1, 0, 3], vec![1.0, -2.0, 0.5, 1.5, 1.0]);
    let x = x.unwrap();
    let z = Dense::new([3, 3], (0..9).map(|i| i as f32 / 4.0 - 1.0).collect()).unwrap();
    let y = Dense::new([3, 1], vec![1.0, -1.0, 0.5]).unwrap();
    macro_rules! trained {
        ($model:ident, $batch:ident) => {{
            let mut model = $model::new(dims! { d: 4 }, Seed(1)).unwrap();
            let sgd = Sgd { learning_rate: 0.01, ..Sgd::default() };
            let mut updater = nnz::optimizer::Updater::for_model(sgd, &model).unwrap();
            let batch = $batch { x: x.view(), z: z.view(), y: y.view() };
            for _ in 0..5 {
                model.train_step(&batch, &mut updater).unwrap();
            }
            let outputs = model.forward(&batch).unwrap();
            let shapes = [*outputs.all.shape(), *outputs.flat.shape()];
            assert_eq!(shapes, [[3, 3 + 2 + 3 + 2].into(), [3, 30].into()]);
            let outputs = [outputs.all.values().to_vec(), outputs.flat.values().to_vec()];
            let parameters = model.parameters();
            let parameters = parameters.iter().map(|p| p.values().to_vec());
            parameters.chain(outputs).collect::<Vec<_>>()
        }};
    }
    let numbers = trained!(DerivedNumbers, DerivedNumbersBatch);
    assert!(numbers.iter().flatten().all(|value| value.is_finite()));
    assert_eq!(numbers, trained!(Derived, DerivedBatch));
    let unfused = trained!(DerivedUnfused, DerivedUnfusedBatch);
    for (a, b) in unfused.iter().flatten().zip(numbers.iter().flatten()) {
        assert!((a - b).abs() < 1e-5, "{a} {b}");
    }
}

#[test]
fn constants_name_those_above_them() {
    let model = above::Above::new(dims! {}, Seed(1)).unwrap();
    let shapes = [*model.w.shape(), *model.v.shape(), *model.h.shape()];
    assert_eq!(shapes, [[7, 4].into(), [4, 7].into(), [4, 7].into()]);
    assert!(matches!(above::Above::INPUTS[0].shape, [Extent::Named("n"), Extent::Constant(7)]));
    assert!(above::Above::PLAN.to_string().contains("[4, 7]"), "{}", above::Above::PLAN);
}

#[test]
fn a_constant_is_not_asked_for() {
    let model = Softmax::new(dims! { d: 5 }, Seed(1)).unwrap();
    assert_eq!(*model.w.shape(), [5, 3].into());
    assert!(Softmax::new(dims! { d: 5, CLASSES: 3 }, Seed(1)).is_err());
    assert!(matches!(Softmax::PARAMETERS[0].shape, [Extent::Named("d"), Extent::Constant(3)]));
    assert!(Softmax::PLAN.to_string().contains("[n, 3]"), "{}", Softmax::PLAN);
}

#[test]
fn constants_train() {
    let x = Csr::new(5, vec![0, 2, 3], vec![0_u32, 2, 1], vec![1.0, 2.0, 3.0]).unwrap();
    let y = Dense::new([2], vec![0_u32, 2]).unwrap();
    let mut model = Softmax::new(dims! { d: 5 }, Seed(1)).unwrap();
    let batch = SoftmaxBatch { x: x.view(), y: y.view() };
    let loss = model.loss_and_grads(&batch).unwrap();
    assert!((loss - 3_f64.ln()).abs() < 1e-6, "{loss}");
    let mut updater = nnz::optimizer::Updater::for_model(Sgd::default(), &model).unwrap();
    assert!((model.train_step(&batch, &mut updater).unwrap() - loss).abs() < 1e-6);
}

#[test]
fn what_is_assumed_is_computed_with() {
    let (x, z) = (Dense::full([2, 4], 1.0), Dense::full([2, 4], 0.5));
    let mut model = Assumed::new(dims! {}, Seed(1)).unwrap();
    let batch = AssumedBatch { x: x.view(), z: z.view() };
    assert_eq!(model.forward(&batch).unwrap().sum.values(), [6.0, 6.0]);
    let narrow = Dense::full([2, 3], 1.0);
    let batch = AssumedBatch { x: narrow.view(), z: z.view() };
    assert!(model.forward(&batch).is_err());
}

#[test]
fn l6_constants_and_fixed_dimensions_are_numbers_in_initializers() {
    let x = Dense::full([1, 4], 1.0);
    let mut model = InInitializers::new(dims! { d: 4 }, Seed(1)).unwrap();
    let outputs = model.forward(&InInitializersBatch { x: x.view() }).unwrap();
    assert_eq!(outputs.scaled.values(), [36.0; 4]);
    assert!((outputs.product.values()[0] - 2.0 / 3.0).abs() < 1e-6);
}
