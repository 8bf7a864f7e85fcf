//! Steps that are one kernel on a GPU, against the same models with `fuse = off` and on the CPU,
//! and how many kernels they are.

use crate::device::gpu;
use nnz::core::inspect::PlanStep;
use nnz::core::update_rules::{LazyUpdate, UpdateRule};
use nnz::data::{BatchOptions, Batches, DataSource};
use nnz::model::OnGpu;
use nnz::optimizer::Updater;
use nnz::prelude::*;

twins! {
    /// One score without a bias.
    Plain, PlainOff {
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Normal { mean: 0.0, std: 0.5 };
        let score = dot(x, w);
        loss squared_error(score, y);
        output prediction = score;
    }

    /// One number a row.
    Vector, VectorOff {
        input x: csr[n, d];
        label y: dense[n];
        label v: dense[n];
        param w: row_sparse[d] = Normal { mean: 0.0, std: 0.5 };
        param b: dense[1] = Constant(0.25);
        let score = dot(x, w) + b;
        loss poisson(score, y, v);
        output rate = exp(score);
    }

    /// Ones, and a loss with an attribute.
    Pattern, PatternOff {
        input x: csr<unit>[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Normal { mean: 0.0, std: 0.5 };
        param b: dense[1] = Zeros;
        let score = b + dot(x, w);
        loss huber(score, y, delta = 0.5);
        output prediction = score;
    }

    /// Several scores, a bias for each, a weight for each row.
    Several, SeveralOff {
        input x: csr[n, d];
        label z: dense[n, 3];
        label v: dense[n];
        param w: row_sparse[d, 3] = Normal { mean: 0.0, std: 0.5 };
        param b: dense[3] = Constant(0.25);
        let score = dot(x, w) + b;
        loss logistic(score, z, v);
        output probability = sigmoid(score);
    }

    /// Several scores, one bias for all.
    Shared, SharedOff {
        input x: csr[n, d];
        label z: dense[n, 3];
        param w: row_sparse[d, 3] = Normal { mean: 0.0, std: 0.5 };
        param b: dense[1] = Constant(0.25);
        let score = dot(x, w) + b;
        loss squared_hinge(score, z);
        output prediction = score;
    }

    /// Classes.
    Classes, ClassesOff {
        input x: csr[n, d];
        label class: dense<u32>[n];
        param w: row_sparse[d, 5] = Normal { mean: 0.0, std: 0.5 };
        param b: dense[5] = Zeros;
        let score = dot(x, w) + b;
        loss softmax_cross_entropy(score, class);
        output probability = softmax(score);
    }

    /// Rows of targets, weighted.
    Targets, TargetsOff {
        input x: csr[n, d];
        label z: dense[n, 3];
        label v: dense[n];
        param w: row_sparse[d, 3] = Normal { mean: 0.0, std: 0.5 };
        let score = dot(x, w);
        loss softmax_cross_entropy(score, z, v);
        output score;
    }

    /// A factorization machine.
    Factors, FactorsOff {
        input x: csr[n, d];
        label y: dense[n, 1];
        label v: dense[n];
        param w: row_sparse[d, 1] = Normal { mean: 0.0, std: 0.5 };
        param f: row_sparse[d, 5] = Normal { mean: 0.0, std: 0.5 };
        param b: dense[1] = Constant(0.25);
        let score = dot(x, w) + b + pairwise_interaction(x, f);
        loss logistic(score, y, v);
        output probability = sigmoid(score);
    }

    /// One of ones, with many factors and without a bias.
    Ones, OnesOff {
        input x: csr<unit>[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Zeros;
        param f: row_sparse[d, 33] = Normal { mean: 0.0, std: 0.1 };
        let score = pairwise_interaction(x, f) + dot(x, w);
        loss squared_error(score, y);
        output prediction = score;
    }

    /// A wide part, whose gradient goes into its update, and a part that has kernels of its own.
    Deep, DeepOff {
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Zeros;
        param t: row_sparse[d, 3] = Normal { mean: 0.0, std: 0.5 };
        param h: dense[3, 1] = Normal { mean: 0.0, std: 0.5 };
        let score = dot(x, w) + dot(relu(dot(x, t)), h);
        loss logistic(score, y);
        output probability = sigmoid(score);
    }
}

graph! {
    /// In 64 bits, with labels that are a csr.
    model Wide {
        dtype = f64;
        input x: csr[n, d];
        label z: csr[n, 2];
        param w: row_sparse[d, 2] = Normal { mean: 0.0, std: 0.5 };
        param b: dense[2] = Constant(0.25);
        let score = dot(x, w) + b;
        loss logistic(score, z);
        output probability = sigmoid(score);
    }
}

pub(crate) const N_ROWS: usize = 7;
pub(crate) const N_COLS: usize = 40;

/// Rows without entries, the last of them in a batch of its own, a column that all others have, and
/// columns that no row has.
pub(crate) fn features(value: impl Fn(usize) -> f32) -> Csr {
    let row = |row: usize| {
        let entries = (0..8).map(|entry| (entry * 4, value(row * 8 + entry)));
        entries.skip(row % 3).take(if row % 4 == 2 { 0 } else { 8 }).collect::<Vec<_>>()
    };
    Csr::from_rows(N_COLS, (0..N_ROWS).map(row)).unwrap()
}

pub(crate) fn of_entry(entry: usize) -> f32 {
    entry as f32 * 0.03 - 0.7
}

fn data(x: Csr) -> Dataset {
    let labels = |width: usize| {
        let values = (0..N_ROWS * width).map(|at| (at * 5 % 3 % 2) as f32).collect();
        Dense::new([N_ROWS, width], values).unwrap()
    };
    Dataset::builder()
        .input("x", x)
        .label("y", labels(1))
        .label("z", labels(3))
        .label("v", Dense::from((0..N_ROWS).map(|row| row as f32 * 0.25).collect::<Vec<_>>()))
        .label("class", (0..N_ROWS as u32).map(|row| row * 3 % 5).collect::<Vec<_>>())
        .build()
        .unwrap()
}

/// The losses of some steps of at most so many rows, then the bits of all parameters.
pub(crate) fn trained<M: Model<Element = f32>, R: UpdateRule>(
    model: &mut M,
    data: &Dataset,
    rule: &R,
    batch_size: usize,
) -> (Vec<f64>, Vec<f32>) {
    let mut updater = Updater::for_model(rule.clone(), model).unwrap();
    let mut losses = Vec::new();
    for epoch in 0..2 {
        // What is not written in a step must not be missed by the next one.
        updater.set_records_outputs(epoch == 1);
        let options = BatchOptions { batch_size, ..BatchOptions::default() };
        let mut batches = data.batches(M::INPUTS, &options).unwrap();
        while let Some(batch) = batches.next_batch().unwrap() {
            let batch = model.bind(&batch).unwrap();
            losses.push(model.train_step(&batch, &mut updater).unwrap());
        }
    }
    updater.flush_model(model).unwrap();
    let values = model.parameters().iter().flat_map(|of| of.values().to_vec()).collect();
    (losses, values)
}

/// Holds a model to its twin without fusion, to the CPU, and to another run of itself.
pub(crate) fn hold<M: Model<Element = f32>, N: Model<Element = f32>, R: UpdateRule>(
    fused: &M,
    unfused: &N,
    data: &Dataset,
    rule: &R,
) {
    for batch_size in [1, 3, N_ROWS] {
        let what = format!("{} {} {batch_size}", M::NAME, R::NAME);
        let mut there = OnGpu::new(fused, &gpu()).unwrap();
        let (losses, values) = trained(&mut there, data, rule, batch_size);
        let again = trained(&mut OnGpu::new(fused, &gpu()).unwrap(), data, rule, batch_size);
        let off = trained(&mut OnGpu::new(unfused, &gpu()).unwrap(), data, rule, batch_size);
        let host = trained(&mut fused.clone(), data, rule, batch_size);
        let near = |a: f64, b: f64, bound: f64| (a - b).abs() <= bound * b.abs().max(1.0);
        for (at, loss) in losses.iter().enumerate() {
            assert_eq!(loss.to_bits(), again.0[at].to_bits(), "{what}");
            for other in [off.0[at], host.0[at]] {
                assert!(near(*loss, other, 1e-5), "{what}: {loss} {other}");
            }
        }
        for (at, value) in values.iter().enumerate() {
            assert_eq!(value.to_bits(), again.1[at].to_bits(), "{what}");
            let found = f64::from(*value);
            assert!(near(found, off.1[at].into(), 1e-5), "{what}: {found} {}", off.1[at]);
            assert!(near(found, host.1[at].into(), 1e-4), "{what}: {found} {}", host.1[at]);
        }
        let (lines, of_twin) = (there.kernels(), OnGpu::new(unfused, &gpu()).unwrap().kernels());
        assert!(
            lines.contains("in a step: ") && !of_twin.contains("in a step"),
            "{lines}{of_twin}"
        );
    }
}

macro_rules! hold_all {
    ($data:ident, $rule:expr, $($fused:ident $unfused:ident),*) => {
        $(hold(
            &$fused::new(dims! { d: N_COLS }, Seed(3)).unwrap(),
            &$unfused::new(dims! { d: N_COLS }, Seed(3)).unwrap(),
            &$data,
            &$rule,
        );)*
    };
}

#[test]
fn generalised_linear_models() {
    let data = data(features(of_entry));
    let rule = Sgd {
        learning_rate: 0.25,
        momentum: 0.5,
        lazy_update: LazyUpdate::Touched,
        ..Sgd::default()
    };
    hold_all!(data, rule, Plain PlainOff, Vector VectorOff, Several SeveralOff);
    // Rows that a step does not touch make it too, when the rate has changed.
    let rule = Ftrl { l1: 0.01, ..Ftrl::default() };
    hold_all!(data, rule, Shared SharedOff, Classes ClassesOff, Targets TargetsOff);
}

#[test]
fn patterns_and_models_of_which_a_part_is_linear() {
    let rule = AdaGrad { learning_rate: 0.25, ..AdaGrad::default() };
    let ones = data(features(|_| 1.0));
    hold_all!(ones, rule, Pattern PatternOff, Ones OnesOff);
    let data = data(features(of_entry));
    hold_all!(data, rule, Deep DeepOff);
}

#[test]
fn factorization_machines() {
    let data = data(features(of_entry));
    let rule = Sgd { learning_rate: 0.25, ..Sgd::default() };
    hold_all!(data, rule, Factors FactorsOff);
    let rule = Ftrl { l1: 0.01, ..Ftrl::default() };
    hold_all!(data, rule, Factors FactorsOff);
}

#[test]
fn in_64_bits_with_sparse_labels() {
    let x = Csr::from_coo(3, 4, [(0, 1, 1.0f64), (0, 3, -2.0), (2, 1, 0.5)]).unwrap();
    let z = Csr::from_coo(3, 2, [(0, 1, 1.0f64), (2, 0, 1.0)]).unwrap();
    let batch = WideBatch { x: x.view(), z: z.view() };
    let rule = AdaGrad { learning_rate: 0.25, ..AdaGrad::default() };
    let host = Wide::new(dims! { d: 4 }, Seed(3)).unwrap();
    hold_in_64_bits(host, &batch, rule, "linear_rows");
}

/// Three steps of a model in 64 bits on the host and on the GPU, where `kernel` computes its
/// scores: losses, outputs and parameters are those of the host.
pub fn hold_in_64_bits<M: Model<Element = f64>>(
    mut host: M,
    batch: &M::Batch<'_>,
    rule: impl UpdateRule,
    kernel: &str,
) {
    let near = |found: &[f64], expected: &[f64]| {
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-13, "{found} {expected}");
        }
    };
    let mut there = OnGpu::new(&host, &gpu()).unwrap();
    let mut on_cpu = Updater::for_model(rule.clone(), &host).unwrap();
    let mut on_gpu = Updater::for_model(rule, &there).unwrap();
    for _ in 0..3 {
        let expected = host.train_step(batch, &mut on_cpu).unwrap();
        near(&[there.train_step(batch, &mut on_gpu).unwrap()], &[expected]);
        for index in 0..M::OUTPUTS.len() {
            let (found, expected) = (there.dense_output(index), host.dense_output(index));
            near(found.unwrap().values(), expected.unwrap().values());
        }
    }
    let kernels = there.kernels();
    assert!(kernels.contains(&format!("= {kernel}: {kernel}, ")), "{kernels}");
    for (found, expected) in there.into_host().unwrap().parameters().iter().zip(host.parameters()) {
        near(found.values(), expected.values());
    }
}

#[test]
fn modes_and_rules_that_need_the_gradient_have_it() {
    let data = data(features(of_entry));
    hold_all!(data, GroupAdaGrad { learning_rate: 0.25, ..GroupAdaGrad::default() }, Several SeveralOff);
    let rule = Adam { lazy_update: LazyUpdate::Dense, ..Adam::default() };
    hold_all!(data, rule, Several SeveralOff, Factors FactorsOff);
}

/// The kernels of a step, in the order of their launches, but for the search for the columns of a
/// csr or for ids, which is as long as their numbers are wide: of that only its end.
pub(crate) fn kernels_of_step<M: Model<Element = f32>>(
    model: &M,
    data: &Dataset,
    records: bool,
    max_norm: Option<f64>,
) -> Vec<&'static str> {
    let mut there = OnGpu::new(model, &gpu()).unwrap();
    let rule = Sgd { learning_rate: 0.25, ..Sgd::default() };
    let mut updater = Updater::for_model(rule, &there).unwrap();
    updater.set_records_outputs(records);
    let options = BatchOptions { batch_size: N_ROWS, ..BatchOptions::default() };
    let mut batches = data.batches(M::INPUTS, &options).unwrap();
    let batch = batches.next_batch().unwrap().unwrap();
    let batch = there.bind(&batch).unwrap();
    let gpu = there.gpu().clone();
    let launched = gpu.trace(|| {
        match max_norm {
            Some(norm) => there.clipped_step(&batch, &mut updater, norm),
            None => there.train_step(&batch, &mut updater),
        }
        .unwrap();
    });
    let search = [
        "number_entries",
        "number_ids",
        "places",
        "count_digits",
        "move_by_digit",
        "sum_up",
        "add_totals",
        "mark_runs",
    ];
    launched.into_iter().filter(|name| !search.contains(name)).collect()
}

#[test]
fn a_step_is_a_kernel_for_the_loss_and_one_for_each_update() {
    let data = data(features(of_entry));
    let fused = Several::new(dims! { d: N_COLS }, Seed(3)).unwrap();
    let unfused = SeveralOff::new(dims! { d: N_COLS }, Seed(3)).unwrap();
    assert!(matches!(Several::PLAN.step, PlanStep::LinearRows { .. }));
    assert_eq!(
        kernels_of_step(&fused, &data, false, None),
        [
            "linear_rows",
            "mean_of_parts",
            "reduce_parts",
            "combine_parts",
            "write_runs",
            "update_of_sums",
            "update"
        ]
    );
    // Scores are written where the output is computed from them.
    assert_eq!(
        kernels_of_step(&fused, &data, true, None),
        [
            "linear_rows",
            "mean_of_parts",
            "unary",
            "reduce_parts",
            "combine_parts",
            "write_runs",
            "update_of_sums",
            "update"
        ]
    );
    // A norm is that of a gradient that is there.
    let clipped = [
        &[
            "linear_rows",
            "mean_of_parts",
            "reduce_parts",
            "combine_parts",
            "write_runs",
            "csr_transposed_dense",
        ][..],
        &["reduce_parts", "reduce_parts", "update", "update"],
    ];
    assert_eq!(kernels_of_step(&fused, &data, false, Some(1.0)), clipped.concat());
    let unfused_step = [
        &["csr_dense", "binary", "loss_parts", "mean_of_parts", "loss_gradient"][..],
        &[
            "reduce_parts",
            "combine_parts",
            "write_runs",
            "csr_transposed_dense",
            "update",
            "update",
        ],
    ];
    assert_eq!(kernels_of_step(&unfused, &data, false, None), unfused_step.concat());
}

#[test]
fn a_factorization_machine_looks_for_columns_once() {
    let data = data(features(of_entry));
    let fused = Factors::new(dims! { d: N_COLS }, Seed(3)).unwrap();
    let unfused = FactorsOff::new(dims! { d: N_COLS }, Seed(3)).unwrap();
    let fused_step = [
        &["linear_rows", "mean_of_parts", "reduce_parts", "combine_parts"][..],
        &["write_runs", "update_of_sums", "update_of_factors", "update"],
    ];
    assert_eq!(kernels_of_step(&fused, &data, false, None), fused_step.concat());
    let unfused_step = kernels_of_step(&unfused, &data, false, None);
    assert_eq!(unfused_step.iter().filter(|name| **name == "write_runs").count(), 2);
    // Sums are made with the gradient that reads them.
    let clipped = kernels_of_step(&fused, &data, false, Some(1.0));
    assert!(clipped.contains(&"interaction") && clipped.contains(&"interaction_gradient"));
}
