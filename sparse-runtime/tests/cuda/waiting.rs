//! Rows that wait on a GPU for steps that they missed, against the same on the CPU.

use crate::device::gpu;
use crate::near;
use nnz_optim::{
    Adam, Hyperparameter, LazyUpdate, NAMES, Recurrence, RuleVisitor, Sgd, StateBlock, Step,
    UpdateRule, with_rule,
};
use sparse_core::element::Float;
use sparse_core::storage::Storage;
use sparse_runtime::formats::{Dense, RowSparse};
use sparse_runtime::kernels::cuda::{CudaContext, GpuFloat};
use sparse_runtime::optimizer::cuda::{CudaGradient, CudaTable};
use sparse_runtime::optimizer::{OptimizerError, ParameterSpec, Updater};
use sparse_runtime::table::Table;

const N_ROWS: usize = 23;

fn updater<R: UpdateRule, T: GpuFloat>(rule: &R, width: usize) -> Updater<R, T> {
    let spec = ParameterSpec::new("w", N_ROWS, width, Some(Storage::RowSparse));
    Updater::new(rule.clone(), vec![spec]).unwrap()
}

fn initial<T: GpuFloat>(width: usize) -> Table<T> {
    let values: Vec<_> = (0..N_ROWS * width).map(|at| T::of((at as f64 * 0.37).sin())).collect();
    Table::from_values(width, &values)
}

/// The gradient of step `t`: of one or two rows, in some steps of none, one of which only the last
/// steps have.
fn gradient<T: GpuFloat>(t: usize, width: usize, n_steps: usize) -> RowSparse<T> {
    let mut rows = match t % 7 {
        6 => vec![],
        _ => vec![(t * t * 7 % 11) as u64, (11 + t * 5 % 9) as u64],
    };
    if t + 2 > n_steps {
        rows.push(N_ROWS as u64 - 1);
    }
    let values = (0..rows.len() * width).map(|at| T::of(((t + 3 * at) as f64 * 0.7).sin()));
    RowSparse::new([N_ROWS, width], rows, values.collect()).unwrap()
}

/// The rate of step `t`.
fn rate(kind: &str, t: usize) -> f64 {
    match kind {
        "constant" => 0.1,
        "every step" => 0.2 / (1.0 + 0.01 * t as f64),
        "every 50 steps" => 0.2 * 0.7f64.powi(t as i32 / 50),
        // At rate 0 nothing is idle, so that nobody has waited before.
        "up and down" => 0.1 * ((t as f64 * 0.01 + 2.0).sin().max(0.0)),
        _ => unreachable!(),
    }
}

/// A table on a GPU, and the table of the host that it comes back to.
struct There<T: GpuFloat> {
    context: CudaContext,
    table: CudaTable<T>,
    host: Table<T>,
}

impl<T: GpuFloat> There<T> {
    fn new(host: Table<T>) -> Self {
        let context = CudaContext::new(&gpu());
        let mut there = There { context, table: CudaTable::default(), host };
        there.go();
        there
    }

    fn go(&mut self) {
        let values = Dense::new([N_ROWS, self.host.row_size()], self.host.values().to_vec());
        self.table = CudaTable::new(values.unwrap().to_gpu(self.context.gpu()).unwrap());
    }

    fn step<R: UpdateRule>(&mut self, updater: &mut Updater<R, T>, gradient: &RowSparse<T>) {
        let gradient = gradient.to_gpu(self.context.gpu()).unwrap();
        let gradient = CudaGradient::RowSparse(gradient.view());
        updater.check_for_gpu().unwrap();
        updater.apply_on_gpu(0, &mut self.table, &self.host, gradient, &mut self.context).unwrap();
    }

    /// Weights and states as they are, where rows may wait.
    fn come_back<R: UpdateRule>(&mut self, updater: &mut Updater<R, T>) {
        updater.states_from_gpu(0, &mut self.table, &mut self.host).unwrap();
        let weights = self.table.weights.to_cpu().unwrap();
        self.host.values_mut().copy_from_slice(weights.values());
    }
}

/// Weights and states at the end of some steps, of which there are those of `moves` after which the
/// table comes back to the host and goes there again.
fn on_gpu<R: UpdateRule, T: GpuFloat>(
    rule: &R,
    kind: &str,
    (width, n_steps): (usize, usize),
    moves: impl Fn(usize) -> bool,
) -> Vec<T> {
    let mut updater = updater::<R, T>(rule, width);
    let mut there = There::new(initial(width));
    for t in 0..n_steps {
        updater.set_learning_rate(rate(kind, t)).unwrap();
        updater.begin_step().unwrap();
        there.step(&mut updater, &gradient(t, width, n_steps));
        updater.end_step().unwrap();
        if moves(t) {
            there.come_back(&mut updater);
            there.go();
        }
    }
    there.come_back(&mut updater);
    updater.flush(0, &mut there.host).unwrap();
    values(&updater, &there.host)
}

fn on_cpu<R: UpdateRule, T: GpuFloat>(
    rule: &R,
    kind: &str,
    (width, n_steps): (usize, usize),
) -> Vec<T> {
    let (mut updater, mut table) = (updater::<R, T>(rule, width), initial(width));
    for t in 0..n_steps {
        updater.set_learning_rate(rate(kind, t)).unwrap();
        updater.begin_step().unwrap();
        let gradient = gradient(t, width, n_steps);
        updater.apply_row_sparse(0, &mut table, gradient.view()).unwrap();
        updater.end_step().unwrap();
    }
    updater.flush(0, &mut table).unwrap();
    values(&updater, &table)
}

fn values<R: UpdateRule, T: GpuFloat>(updater: &Updater<R, T>, table: &Table<T>) -> Vec<T> {
    let states = updater.states(0, table).unwrap();
    table.values().iter().copied().chain(states.iter().flat_map(StateBlock::values)).collect()
}

/// Settings that a rule has, of penalties and momentum; none of a rule whose rows a GPU cannot
/// catch up with.
fn settings<R: UpdateRule>(rule: &R) -> Vec<R> {
    let mut rules = Vec::new();
    if rule.check().is_ok() && updater::<R, f32>(rule, 1).check_for_gpu().is_err() {
        return rules;
    }
    for [decay, l1, momentum, nesterov] in [
        [0.01, 0.0, 0.0, 0.0],
        [0.0, 0.002, 0.0, 0.0],
        [0.01, 0.002, 0.0, 0.0],
        [0.0, 0.0, 0.9, 0.0],
        [0.01, 0.0, 0.9, 1.0],
    ] {
        let mut rule = rule.clone();
        let set =
            [("weight_decay", decay), ("l1", l1), ("momentum", momentum), ("nesterov", nesterov)];
        // Of a rule that has no such hyperparameter another setting is this one.
        let has_all =
            set.iter().all(|(name, value)| rule.set(name, *value).is_ok() || *value == 0.0);
        if has_all && rule.check().is_ok() {
            rules.push(rule);
        }
    }
    if rules.is_empty() && rule.check().is_ok() {
        rules.push(rule.clone());
    }
    rules
}

/// As on the CPU, up to `tolerance` of the largest value, and the same bits again where the table
/// has moved.
struct AsOnCpu;

impl RuleVisitor for AsOnCpu {
    type Output = usize;

    fn visit<R: UpdateRule>(self, rule: R) -> usize {
        let rules = settings(&rule);
        for rule in &rules {
            for kind in ["constant", "every step", "every 50 steps", "up and down"] {
                // More steps than a level has in a block of the next but one.
                let size = (3, 300);
                let expected = on_cpu::<R, f64>(rule, kind, size);
                let found = on_gpu::<R, f64>(rule, kind, size, |_| false);
                near(&format!("{rule:?} {kind}"), &found, &expected, 1e-12);
            }
            let size = (40, 90);
            let expected = on_cpu::<R, f32>(rule, "every 50 steps", size);
            let found = on_gpu::<R, f32>(rule, "every 50 steps", size, |_| false);
            near(&format!("{rule:?}"), &found, &expected, 1e-5);
            let moved = on_gpu::<R, f32>(rule, "every 50 steps", size, |t| t % 40 == 17);
            let bits = |values: &[f32]| Vec::from_iter(values.iter().map(|value| value.to_bits()));
            assert_eq!(bits(&found), bits(&moved), "{rule:?}");
        }
        rules.len()
    }
}

#[test]
fn rows_are_caught_up_with_as_on_the_cpu_by_every_rule() {
    for name in NAMES {
        let found = with_rule(name, AsOnCpu).unwrap();
        let expected = match *name {
            "sgd" => 5,
            "adagrad" => 3,
            "signum" => 2,
            "dcasgd" => 2,
            "adadelta" | "rmsprop" | "centered-rmsprop" | "group-adagrad" | "ftrl" => 1,
            "adamax" | "ftml" => 1,
            // Steps along a mean are for the host, and those of lamb have no closed form.
            _ => 0,
        };
        assert_eq!(found, expected, "{name}");
    }
}

/// A table is settled as a whole before it has waited for more steps than a GPU counts, and one
/// that has waited longer is not taken there.
#[test]
fn the_steps_that_rows_wait_for_have_a_bound() {
    const MOST: u64 = (1 << 20) - 1;
    let rule = Sgd { momentum: 0.5, weight_decay: 1e-7, ..Sgd::default() };
    let mut on_gpu = updater::<Sgd, f64>(&rule, 1);
    let mut on_cpu = on_gpu.clone();
    let (mut table, mut there) = (initial(1), There::new(initial(1)));
    let mut step = |t: usize, idle: u64, on_gpu: &mut Updater<Sgd, f64>| {
        for updater in [&mut on_cpu, &mut *on_gpu] {
            for _ in 0..idle {
                updater.begin_step().unwrap();
                updater.end_step().unwrap();
            }
            updater.begin_step().unwrap();
        }
        let gradient = gradient(t, 1, 100);
        on_cpu.apply_row_sparse(0, &mut table, gradient.view()).unwrap();
        there.step(on_gpu, &gradient);
        on_cpu.end_step().unwrap();
        on_gpu.end_step().unwrap();
    };
    for (t, idle) in [(0, 5), (1, MOST - 7), (2, 0), (3, 40)] {
        step(t, idle, &mut on_gpu);
    }
    there.come_back(&mut on_gpu);
    on_cpu.flush(0, &mut table).unwrap();
    on_gpu.flush(0, &mut there.host).unwrap();
    near("settled as a whole", there.host.values(), table.values(), 1e-9);
    for _ in 0..=MOST {
        on_gpu.begin_step().unwrap();
        on_gpu.end_step().unwrap();
    }
    let error = on_gpu.check_for_gpu().unwrap_err();
    assert!(
        matches!(
            &error,
            sparse_runtime::model::Error::Optimizer(OptimizerError::WaitsTooLong { parameter, steps, most: MOST })
                if parameter == "w" && *steps == MOST + 1
        ),
        "{error}"
    );
    on_gpu.flush(0, &mut there.host).unwrap();
    on_gpu.check_for_gpu().unwrap();
}

/// A rule of somebody who has formulas of its steps, and none of idle ones.
#[derive(Clone, Debug, Default, PartialEq)]
struct Bare(Sgd);

impl UpdateRule for Bare {
    const NAME: &'static str = "bare";
    const RECURRENCE: Option<Recurrence> = match Sgd::RECURRENCE {
        Some(recurrence) => Some(Recurrence { idle: None, ..recurrence }),
        None => None,
    };

    type Step<T: Float> = <Sgd as UpdateRule>::Step<T>;

    fn hyperparameters(&mut self) -> Vec<Hyperparameter<'_>> {
        self.0.hyperparameters()
    }

    fn learning_rate(&self) -> f64 {
        self.0.learning_rate
    }

    fn lazy_update(&self) -> LazyUpdate {
        self.0.lazy_update
    }

    fn set_lazy_update(&mut self, lazy_update: LazyUpdate) {
        self.0.lazy_update = lazy_update;
    }

    fn step<T: Float>(&self, learning_rate: f64, penalty_scale: f64, clock: u64) -> Self::Step<T> {
        self.0.step(learning_rate, penalty_scale, clock)
    }
}

/// Whose map has more than formulas are told, and does not hold for every weight.
#[test]
fn n16_adam_is_refused_where_rows_would_wait_on_a_gpu() {
    let error = updater::<Adam, f32>(&Adam::default(), 1).check_for_gpu().unwrap_err();
    assert!(
        matches!(
            &error,
            sparse_runtime::model::Error::Optimizer(OptimizerError::IdleStepsOnGpu {
                rule: "adam"
            })
        ),
        "{error}"
    );
    let touched = Adam { lazy_update: LazyUpdate::Touched, ..Adam::default() };
    updater::<Adam, f32>(&touched, 1).check_for_gpu().unwrap();
}

/// Whether a rule is refused where rows wait for its idle steps, and whether it says so; `None` of
/// one by which rows do not wait.
struct Refused;

impl RuleVisitor for Refused {
    type Output = Option<(bool, bool)>;

    fn visit<R: UpdateRule>(self, mut rule: R) -> Self::Output {
        for (name, value) in [("weight_decay", 0.01), ("momentum", 0.5)] {
            let mut changed = rule.clone();
            if changed.set(name, value).is_ok() && changed.check().is_ok() {
                rule = changed;
            }
        }
        let idle = rule.step::<f64>(rule.learning_rate(), 1.0, 0).idle();
        if rule.check().is_err() || !idle.changes() {
            return None;
        }
        let refused = updater::<R, f32>(&rule, 1).check_for_gpu().is_err();
        Some((refused, !R::CATCHES_UP_ON_GPU))
    }
}

#[test]
fn a_gpu_refuses_the_rules_whose_idle_steps_it_cannot_catch_up_with_and_no_others() {
    let rules = || NAMES.iter().filter_map(|name| with_rule(name, Refused).ok().flatten());
    assert!(rules().all(|(refused, said)| refused == said));
    assert!(rules().any(|(refused, _)| refused) && rules().any(|(refused, _)| !refused));
}

#[test]
fn a_rule_without_formulas_of_idle_steps_is_refused_where_rows_would_wait() {
    let rule = Bare(Sgd { momentum: 0.5, ..Sgd::default() });
    let error = updater::<Bare, f32>(&rule, 1).check_for_gpu().unwrap_err();
    assert!(error.to_string().contains("choose `LazyUpdate::Touched`"), "{error}");
    updater::<Bare, f32>(&Bare::default(), 1).check_for_gpu().unwrap();
}
