//! Training with corrected gradients equals the same with dense vectors, whichever way the step
//! takes.

mod pieces;
mod rates;
mod resume;

use nnz::core::update_rules::UpdateRule;
use nnz::data::{Batch, BatchOptions, Batches, DataSource, Labels, Order};
use nnz::model::GradientMut;
use nnz::prelude::*;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};

graph! {
    /// Generalised linear: the derivatives of the samples are kept.
    model Linear {
        dtype = f64;
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Normal { mean: 0.0, std: 0.3 };
        param b: dense[1] = Zeros;
        let score = 0.5 * (dot(x, w) + b);
        loss logistic(score, y);
        output probability = sigmoid(score);
    }

    /// The same, step by step: the gradient at the snapshot is computed anew.
    model Unfused {
        dtype = f64;
        fuse = off;
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Normal { mean: 0.0, std: 0.3 };
        param b: dense[1] = Zeros;
        let score = 0.5 * (dot(x, w) + b);
        loss logistic(score, y);
        output probability = sigmoid(score);
    }

    /// Not linear, with a parameter that is never trained.
    model Machine {
        dtype = f64;
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Zeros;
        param v: row_sparse[d, 3] = Normal { mean: 0.0, std: 0.3 };
        param(frozen) shift: dense[1] = Constant(0.25);
        let score = dot(x, w) + pairwise_interaction(x, v) + shift;
        loss logistic(score, y);
    }
}

const D: usize = 60;
const N: usize = 37;

/// Rows of up to five of the columns, one of them without any, and labels.
fn data() -> Dataset<f64> {
    rows(0..N)
}

/// The rows of these numbers.
fn rows(numbers: impl IntoIterator<Item = usize>) -> Dataset<f64> {
    rows_of(numbers, |i| (0..i % 6).map(|k| (i * i + 17 * k + k * k) % D).collect())
}

/// The rows of these numbers, each with the columns that `columns` gives for it.
fn rows_of(
    numbers: impl IntoIterator<Item = usize>,
    columns: impl Fn(usize) -> Vec<usize>,
) -> Dataset<f64> {
    let mut text = String::new();
    for i in numbers {
        text += if i * 7 % 5 < 2 { "1" } else { "-1" };
        let mut columns = columns(i);
        columns.sort_unstable();
        columns.dedup();
        for column in columns {
            text += &format!(" {column}:{}", ((i + column) as f64 * 0.37).sin());
        }
        text += "\n";
    }
    libsvm::Reader::new()
        .element::<f64>()
        .n_features(D)
        .read_bytes("rows", text.as_bytes())
        .unwrap()
}

/// How a run is made, by a trainer and by hand.
#[derive(Clone)]
struct Plan {
    rule: Sgd,
    schedule: Schedule,
    batch_size: usize,
    epochs: u64,
}

fn options(plan: &Plan) -> BatchOptions {
    let order = Order::Shuffled { seed: 5 };
    let labels = Labels::Required;
    BatchOptions { batch_size: plan.batch_size, order, last_batch: LastBatch::Short, labels }
}

fn trainer<R: UpdateRule>(plan: &Plan, rule: R) -> Trainer<'static, R> {
    Trainer::new(rule)
        .batch_size(plan.batch_size)
        .epochs(plan.epochs)
        .schedule(plan.schedule.clone())
        .seed(5)
        .decay_all()
        .progress(Progress::Silent)
}

type Vectors = Vec<Vec<f64>>;

fn parameters<M: Model<Element = f64>>(model: &M) -> Vectors {
    model.parameters().iter().map(|parameter| parameter.values().to_vec()).collect()
}

/// The gradients of a batch at some parameters, dense; 0 for a frozen one.
fn gradients<M: Model<Element = f64>>(
    model: &mut M,
    at: &Vectors,
    batch: &M::Batch<'_>,
) -> Vectors {
    for (mut parameter, values) in model.parameters_mut().into_iter().zip(at) {
        parameter.values_mut().copy_from_slice(values);
    }
    model.loss_and_grads(batch).unwrap();
    let dense = |(index, values): (usize, &Vec<f64>)| match model.gradient_mut(index) {
        Some(GradientMut::Dense(gradient)) => gradient.values().to_vec(),
        Some(GradientMut::RowSparse(gradient)) => gradient.to_dense().unwrap().values().to_vec(),
        None => vec![0.0; values.len()],
    };
    at.iter().enumerate().map(dense).collect()
}

/// `to += factor · from`.
fn add(to: &mut Vectors, factor: f64, from: &Vectors) {
    for (to, from) in to.iter_mut().flatten().zip(from.iter().flatten()) {
        *to += factor * from;
    }
}

/// The old gradients of a run by hand.
enum Old {
    /// Those at a snapshot, taken every so many epochs.
    Snapshot(u64),
    /// Those of each sample when it was last seen.
    LastSeen,
}

/// The parameters after a run with dense vectors, or after so many steps of it.
fn by_hand<M: Model<Element = f64>>(
    model: &M,
    data: &Dataset<f64>,
    plan: &Plan,
    old: &Old,
    steps: u64,
) -> Vectors {
    let mut model = model.clone();
    let zeros = |like: &Vectors| -> Vectors { like.iter().map(|v| vec![0.0; v.len()]).collect() };
    let frozen: Vec<bool> = M::PARAMETERS.iter().map(|info| info.gradient.is_none()).collect();
    let mut w = parameters(&model);
    let (mut velocity, mut mean, mut snapshot) = (zeros(&w), zeros(&w), w.clone());
    let mut last_seen = vec![zeros(&w); N];
    let one = BatchOptions { batch_size: 1, ..BatchOptions::default() };
    let mut batches = data.batches(M::INPUTS, &options(plan)).unwrap();
    let mut step = 0;
    for epoch in 0..plan.epochs {
        if let Old::Snapshot(update_freq) = old
            && epoch % update_freq == 0
        {
            (snapshot, mean) = (w.clone(), zeros(&w));
            let mut rows = data.batches(M::INPUTS, &one).unwrap();
            while let Some(row) = rows.next_batch().unwrap() {
                let bound = model.bind(&row).unwrap();
                add(&mut mean, 1.0 / N as f64, &gradients(&mut model, &w, &bound));
            }
        }
        batches.start_epoch(epoch).unwrap();
        while let Some(batch) = batches.next_batch().unwrap() {
            let bound = model.bind(&batch).unwrap();
            let n_rows = nnz::model::BatchSource::n_rows(&batch);
            let mut difference = gradients(&mut model, &w, &bound);
            match old {
                Old::Snapshot(_) => {
                    add(&mut difference, -1.0, &gradients(&mut model, &snapshot, &bound));
                }
                Old::LastSeen => {
                    let mut rows = data.batches(M::INPUTS, &one).unwrap();
                    for id in (0..n_rows).map(|row| batch.row_id(row).unwrap()) {
                        rows.seek(nnz::data::Position { epoch: 0, batch: id }).unwrap();
                        let row = rows.next_batch().unwrap().unwrap();
                        let bound = model.bind(&row).unwrap();
                        let new = gradients(&mut model, &w, &bound);
                        let known = std::mem::replace(&mut last_seen[id as usize], new);
                        add(&mut difference, -1.0 / n_rows as f64, &known);
                    }
                }
            }
            let rate = plan.rule.learning_rate * plan.schedule.factor(step, epoch);
            let (momentum, decay) = (plan.rule.momentum, plan.rule.weight_decay);
            for parameter in (0..w.len()).filter(|parameter| !frozen[*parameter]) {
                let gradient = difference[parameter].iter().zip(&mean[parameter]);
                let weights = w[parameter].iter_mut().zip(&mut velocity[parameter]);
                for ((w, v), (difference, mean)) in weights.zip(gradient) {
                    let change = rate * (difference + mean + decay * *w);
                    *v = momentum * *v - change;
                    *w += if plan.rule.nesterov { momentum * *v - change } else { *v };
                }
            }
            if let Old::LastSeen = old {
                add(&mut mean, n_rows as f64 / N as f64, &difference);
            }
            step += 1;
            if step == steps {
                return w;
            }
        }
    }
    w
}

#[track_caller]
fn assert_close(found: &Vectors, expected: &Vectors) {
    for (found, expected) in found.iter().flatten().zip(expected.iter().flatten()) {
        assert!((found - expected).abs() < 1e-10, "{found} is not {expected}");
    }
}

/// Without and with momentum and decay, at a constant rate and at one that changes with every step;
/// one row a batch and several.
fn plans() -> Vec<Plan> {
    let plain = Sgd { learning_rate: 0.3, ..Sgd::default() };
    let decay = Sgd { weight_decay: 0.02, ..plain.clone() };
    let momentum = Sgd { momentum: 0.8, ..decay.clone() };
    let nesterov = Sgd { nesterov: true, ..momentum.clone() };
    let unit = ScheduleUnit::Step;
    let falling = Schedule::InverseScaling { decay: 0.05, power: 1.0, unit };
    let mut plans = Vec::new();
    for rule in [plain, decay, momentum, nesterov] {
        for schedule in [Schedule::Constant, falling.clone()] {
            for batch_size in [1, 5] {
                plans.push(Plan {
                    rule: rule.clone(),
                    schedule: schedule.clone(),
                    batch_size,
                    epochs: 4,
                });
            }
        }
    }
    plans
}

fn svrg_equals_dense_vectors<M: Model<Element = f64>>(
    new: impl Fn() -> M,
    corrects_scores: bool,
    plans: impl IntoIterator<Item = Plan>,
) {
    assert_eq!(M::CORRECTS_SCORES, corrects_scores);
    let data = data();
    for plan in plans {
        for update_freq in [1, 3] {
            let mut model = new();
            let expected = by_hand(&model, &data, &plan, &Old::Snapshot(update_freq), u64::MAX);
            let mut trainer = trainer(&plan, Svrg { update_freq, rule: plan.rule.clone() });
            trainer.fit(&mut model, &data).unwrap();
            assert_close(&parameters(&model), &expected);
        }
    }
}

/// Ends a run within an epoch: all rows are settled then, also those that no step has touched.
struct StopAt(nnz::data::Position);

impl nnz::training::Callback for StopAt {
    fn next_batch(&self, n_batches: u64) -> Option<u64> {
        (n_batches < self.0.batch).then_some(self.0.batch)
    }

    fn batch(&mut self, moment: &nnz::training::Moment<'_>) -> nnz::Result<ControlFlow<()>> {
        if moment.position() == self.0 {
            Ok(ControlFlow::Break(()))
        } else {
            Ok(ControlFlow::Continue(()))
        }
    }
}

/// Panics where [`StopAt`] ends the run.
struct PanicAt(StopAt);

impl nnz::training::Callback for PanicAt {
    fn next_batch(&self, n_batches: u64) -> Option<u64> {
        self.0.next_batch(n_batches)
    }

    fn batch(&mut self, moment: &nnz::training::Moment<'_>) -> nnz::Result<ControlFlow<()>> {
        let flow = self.0.batch(moment)?;
        assert!(flow.is_continue(), "on purpose");
        Ok(flow)
    }
}

/// Rows of a run that is ended between the same two batches are all settled.
fn caught_panics_settle<M: Model<Element = f64>, R: UpdateRule>(
    new: impl Fn() -> M,
    rule: impl Fn(Sgd) -> R,
) {
    let data = data();
    for plan in plans().split_off(8) {
        let at = || StopAt(nnz::data::Position { epoch: 1, batch: 4 });
        let (mut ended, mut caught) = (new(), new());
        trainer(&plan, rule(plan.rule.clone())).callback(at()).fit(&mut ended, &data).unwrap();
        let mut trainer = trainer(&plan, rule(plan.rule.clone())).callback(PanicAt(at()));
        let result = catch_unwind(AssertUnwindSafe(|| trainer.fit(&mut caught, &data)));
        assert!(result.is_err());
        assert_eq!(parameters(&caught), parameters(&ended));
    }
}

#[test]
fn fault_a_panic_that_is_caught_leaves_no_row_of_corrected_steps_waiting() {
    let linear = || Linear::new(dims! { d: D }, Seed(1)).unwrap();
    caught_panics_settle(linear, |rule| Svrg { update_freq: 2, rule });
    caught_panics_settle(linear, |rule| Saga { rule });
    let unfused = || Unfused::new(dims! { d: D }, Seed(1)).unwrap();
    caught_panics_settle(unfused, |rule| Svrg { update_freq: 2, rule });
}

#[test]
fn a_run_that_is_ended_within_an_epoch_equals_dense_vectors() {
    let data = data();
    for plan in plans() {
        let n_batches = N.div_ceil(plan.batch_size) as u64;
        for (epoch, batch) in [(0, 1), (0, 3), (1, 2), (2, 1), (3, 5)] {
            let stop = || StopAt(nnz::data::Position { epoch, batch });
            let steps = epoch * n_batches + batch;
            let mut model = Linear::new(dims! { d: D }, Seed(1)).unwrap();
            let expected = by_hand(&model, &data, &plan, &Old::Snapshot(2), steps);
            let rule = Svrg { update_freq: 2, rule: plan.rule.clone() };
            trainer(&plan, rule).callback(stop()).fit(&mut model, &data).unwrap();
            assert_close(&parameters(&model), &expected);
            let mut model = Linear::new(dims! { d: D }, Seed(1)).unwrap();
            let expected = by_hand(&model, &data, &plan, &Old::LastSeen, steps);
            let rule = Saga { rule: plan.rule.clone() };
            trainer(&plan, rule).callback(stop()).fit(&mut model, &data).unwrap();
            assert_close(&parameters(&model), &expected);
        }
    }
}

#[test]
fn svrg_of_a_linear_model() {
    svrg_equals_dense_vectors(|| Linear::new(dims! { d: D }, Seed(1)).unwrap(), true, plans());
}

/// Of rows that are too long to be taken many at a time. The first data has none of the last
/// columns.
#[test]
fn svrg_of_long_rows_and_of_other_data_with_the_same_updater() {
    let long = |first: usize, n_columns: usize| {
        rows_of(first..first + N, |i| (0..36).map(|k| (i + k) % n_columns).collect())
    };
    // Without a velocity that goes on, and steps that are counted.
    let is_fresh = |plan: &Plan| (plan.rule.momentum, &plan.schedule) == (0.0, &Schedule::Constant);
    for plan in plans().into_iter().filter(is_fresh) {
        let mut model = Linear::new(dims! { d: D }, Seed(1)).unwrap();
        let mut trainer = trainer(&plan, Svrg { update_freq: 1, rule: plan.rule.clone() });
        let mut updater = trainer.updater(&model).unwrap();
        for data in [long(0, D - 20), long(N, D)] {
            let expected = by_hand(&model, &data, &plan, &Old::Snapshot(1), u64::MAX);
            trainer.fit_epochs(&mut model, &mut updater, &data, 0..plan.epochs).unwrap();
            assert_close(&parameters(&model), &expected);
        }
    }
}

#[test]
fn svrg_step_by_step() {
    // With decay, and with all there is.
    let plans = plans().into_iter().skip(6).step_by(7);
    svrg_equals_dense_vectors(|| Unfused::new(dims! { d: D }, Seed(1)).unwrap(), false, plans);
}

#[test]
fn svrg_of_a_factorization_machine() {
    // Without decay, and with momentum.
    let plans = plans().into_iter().skip(2).step_by(7);
    svrg_equals_dense_vectors(|| Machine::new(dims! { d: D }, Seed(1)).unwrap(), false, plans);
}

#[test]
fn saga_equals_dense_vectors() {
    let data = data();
    for plan in plans() {
        let mut model = Linear::new(dims! { d: D }, Seed(1)).unwrap();
        let expected = by_hand(&model, &data, &plan, &Old::LastSeen, u64::MAX);
        trainer(&plan, Saga { rule: plan.rule.clone() }).fit(&mut model, &data).unwrap();
        assert_close(&parameters(&model), &expected);
    }
}

/// A run that goes on with the updater of the last one is one run, also in between two snapshots.
#[test]
fn a_run_can_be_continued_at_any_epoch() {
    let (data, plan) = (data(), plans().remove(5));
    let rule = Svrg { update_freq: 3, rule: plan.rule.clone() };
    let (mut whole, mut parts) =
        [(); 2].map(|()| Unfused::new(dims! { d: D }, Seed(1)).unwrap()).into();
    trainer(&plan, rule.clone()).fit(&mut whole, &data).unwrap();
    let mut trainer = trainer(&plan, rule);
    let mut updater = trainer.updater(&parts).unwrap();
    for epochs in [0..1, 1..3, 3..4] {
        trainer.fit_epochs(&mut parts, &mut updater, &data, epochs).unwrap();
    }
    assert_eq!(parameters(&parts), parameters(&whole));
}

#[test]
fn metrics_callbacks_and_progressive_loss_are_those_of_any_run() {
    let (data, plan) = (data(), plans().remove(0));
    let mut told = Vec::new();
    let mut model = Linear::new(dims! { d: D }, Seed(1)).unwrap();
    let before = nnz::training::score(&mut model, &data, &[], 10).unwrap();
    let report = Trainer::new(Svrg { update_freq: 1, rule: plan.rule })
        .epochs(8)
        .metric(LogLoss)
        .evaluation(&data)
        .progress(Progress::Silent)
        .callback(|epoch: &nnz::training::EpochReport| {
            told.push(epoch.epoch);
            if told.len() == 6 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
        .fit(&mut model, &data)
        .unwrap();
    assert!(report.stopped && report.epochs.len() == 6);
    let last = report.last().unwrap();
    assert_eq!(last.n_rows, N as u64);
    // Losses are those just before each step, in which the full gradient has no part.
    let (_, log_loss) = last.metrics[0];
    assert!((last.loss - log_loss).abs() < 1e-12, "{} {log_loss}", last.loss);
    assert!(last.evaluation.as_ref().unwrap().loss < 0.8 * before.loss);
}

#[test]
fn what_cannot_be_done_is_refused() {
    let data = data();
    let mut linear = Linear::new(dims! { d: D }, Seed(1)).unwrap();
    let plan = plans().remove(0);
    let svrg = Svrg { update_freq: 2, rule: plan.rule.clone() };
    let never = trainer(&plan, Svrg { update_freq: 0, ..svrg.clone() });
    let error = never.updater(&linear).unwrap_err().to_string();
    assert!(error.contains("`update_freq` is 0"), "{error}");

    let mut machine = Machine::new(dims! { d: D }, Seed(1)).unwrap();
    let saga = Saga { rule: plan.rule.clone() };
    let error = trainer(&plan, saga).fit(&mut machine, &data).unwrap_err().to_string();
    assert!(error.contains("`Machine`") && error.contains("use `Svrg`"), "{error}");

    let mut clipped = trainer(&plan, svrg.clone()).clip_norm(1.0);
    let error = clipped.fit(&mut linear, &data).unwrap_err().to_string();
    assert!(error.contains("`clip_norm` cannot be used with `svrg`"), "{error}");

    // A step by hand, for which nobody has prepared a mean gradient.
    let mut updater = nnz::optimizer::Updater::for_model(svrg, &linear).unwrap();
    let mut batches = data.batches(Linear::INPUTS, &BatchOptions::default()).unwrap();
    let batch = batches.next_batch().unwrap().unwrap();
    let bound = linear.bind(&batch).unwrap();
    let error = linear.train_step(&bound, &mut updater).unwrap_err().to_string();
    assert!(error.contains("nobody has prepared"), "{error}");
}
