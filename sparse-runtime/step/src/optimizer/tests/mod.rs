//! The modes against one another, and against the recurrences written out.

mod exact;
mod initial;
mod levels;
mod runs_in_use;

use super::*;
use chacha20::ChaCha8Rng;
use nnz_arrays::formats::RowSparse;
use nnz_optim::{
    Adam, LazyUpdate, NAMES, RuleError, RuleVisitor, Sgd, StateBlock, UpdateRule, with_rule,
};
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use sparse_core::storage::Storage;

const N_ROWS: usize = 40;
const ROW_SIZE: usize = 3;

/// The rows hit in one step, with a gradient for each.
type Gradient = Vec<(usize, [f64; ROW_SIZE])>;

/// Random gradients that hit `share` of the rows.
fn gradients(seed: u64, steps: usize, share: f64) -> Vec<Gradient> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    (0..steps)
        .map(|_| {
            (0..N_ROWS)
                .filter_map(|row| {
                    let hit = random.random::<f64>() < share;
                    let grad = std::array::from_fn(|_| random.random::<f64>() - 0.5);
                    hit.then_some((row, grad))
                })
                .collect()
        })
        .collect()
}

fn initial() -> Vec<f64> {
    (0..N_ROWS * ROW_SIZE).map(|i| (i as f64 * 0.37).sin()).collect()
}

/// The textbook, with every row of the gradient written out, or with untouched rows left alone.
fn literal(rule: &Sgd, rates: &[f64], gradients: &[Gradient], only_touched: bool) -> Vec<f64> {
    let mut w = initial();
    let mut v = vec![0.0; w.len()];
    for (&rate, gradient) in rates.iter().zip(gradients) {
        let mut grad = vec![None; N_ROWS];
        for (row, values) in gradient {
            grad[*row] = Some(values);
        }
        for (i, (w, v)) in w.iter_mut().zip(&mut v).enumerate() {
            let grad = grad[i / ROW_SIZE];
            if only_touched && grad.is_none() {
                continue;
            }
            let g = grad.map_or(0.0, |values| values[i % ROW_SIZE]) * rule.rescale_grad;
            let clip = rule.clip_gradient.unwrap_or(f64::MAX);
            *v = rule.momentum * *v - rate * (g.clamp(-clip, clip) + rule.weight_decay * *w);
            *w += *v;
        }
    }
    w
}

fn updater<R: UpdateRule>(rule: &R, lazy_update: LazyUpdate) -> Updater<R, f64> {
    let mut rule = rule.clone();
    rule.set_lazy_update(lazy_update);
    let spec = ParameterSpec::new("w", N_ROWS, ROW_SIZE, Some(Storage::RowSparse));
    Updater::new(rule, vec![spec]).unwrap()
}

fn step<R: UpdateRule>(
    updater: &mut Updater<R, f64>,
    w: &mut [f64],
    rate: f64,
    gradient: &Gradient,
) {
    updater.set_learning_rate(rate).unwrap();
    updater.begin_step().unwrap();
    let mut rows = updater.rows(0, w).unwrap();
    for (row, grad) in gradient {
        rows.settle(*row);
        rows.update_row(*row, grad);
    }
    rows.finish();
    updater.end_step().unwrap();
}

/// Trains in a mode, with flushes after the steps that `flush` names.
fn train<R: UpdateRule>(
    updater: &mut Updater<R, f64>,
    rates: &[f64],
    gradients: &[Gradient],
    flush: impl Fn(usize) -> bool,
) -> Vec<f64> {
    let mut w = initial();
    for (t, (&rate, gradient)) in rates.iter().zip(gradients).enumerate() {
        step(updater, &mut w, rate, gradient);
        if flush(t) {
            updater.flush(0, &mut w).unwrap();
        }
    }
    updater.flush(0, &mut w).unwrap();
    w
}

#[track_caller]
fn close(found: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(found.len(), expected.len());
    let scale = expected.iter().fold(0.0f64, |max, x| max.max(x.abs()));
    for (i, (found, expected)) in found.iter().zip(expected).enumerate() {
        let error = (found - expected).abs();
        assert!(
            error <= tolerance * expected.abs().max(0.1 * scale),
            "value {i}: {found} instead of {expected}"
        );
    }
}

fn rates(kind: &str, steps: usize) -> Vec<f64> {
    (0..steps)
        .map(|t| match kind {
            "constant" => 0.1,
            "every step" => 0.2 / (1.0 + 0.01 * t as f64),
            "every 100 steps" => 0.2 * 0.7f64.powi(t as i32 / 100),
            "down to zero and up" => 0.1 * ((t as f64 * 0.01).cos().max(0.0)),
            _ => unreachable!(),
        })
        .collect()
}

/// More steps than were begun would be steps without a gradient that no row ever catches up with.
#[test]
fn steps_that_were_not_begun_do_not_end() {
    for lazy_update in [LazyUpdate::Exact, LazyUpdate::Touched] {
        let rule = Sgd { momentum: 0.9, weight_decay: 0.1, lazy_update, ..Sgd::default() };
        let spec = ParameterSpec::new("w", 3, 1, Some(Storage::RowSparse));
        let mut updater = Updater::<_, f64>::new(rule, vec![spec]).unwrap();
        let refused = |result: crate::Result<()>, made, begun| match result.unwrap_err() {
            crate::Error::Optimizer(error) => {
                assert_eq!(error, OptimizerError::NotBegun { made, begun });
            }
            other => panic!("{other}"),
        };
        refused(updater.end_step(), 1, 0);
        refused(updater.end_steps(7), 7, 0);
        updater.end_steps(0).unwrap();
        updater.begin_step().unwrap();
        refused(updater.end_steps(2), 2, 1);
        updater.end_steps(1).unwrap();
        refused(updater.end_step(), 1, 0);
        let begun = updater.begin_steps(5).unwrap();
        refused(updater.end_steps(begun + 1), begun as u64 + 1, begun as u64);
        refused(updater.end_steps(usize::MAX), u64::MAX, begun as u64);
        updater.end_steps(begun).unwrap();
        assert_eq!(updater.clock(), 1 + begun as u64);
        // However many are asked for, they are counted.
        let begun = updater.begin_steps(usize::MAX).unwrap();
        assert!(begun <= 1 << 30, "{begun}");
        updater.end_step().unwrap();
        let mut w = [1.0; 3];
        updater.flush(0, &mut w).unwrap();
        assert!(w.iter().all(|w| w.is_finite()));
    }
}

#[test]
fn touched_leaves_other_rows_alone() {
    let gradients = gradients(8, 300, 0.1);
    for (momentum, weight_decay) in [(0.0, 0.1), (0.9, 0.0), (0.9, 0.1)] {
        let rule = Sgd { momentum, weight_decay, rescale_grad: 0.5, ..Sgd::default() };
        let rates = rates("every 100 steps", 300);
        let touched =
            train(&mut updater(&rule, LazyUpdate::Touched), &rates, &gradients, |_| false);
        close(&touched, &literal(&rule, &rates, &gradients, true), 1e-13);
        // The modes differ here, or the test would show nothing.
        let dense = literal(&rule, &rates, &gradients, false);
        assert!(touched.iter().zip(&dense).any(|(a, b)| (a - b).abs() > 1e-3));
    }
}

#[test]
fn a_full_history_flushes_by_itself() {
    let gradients = gradients(9, 400, 0.05);
    let rule = Sgd { momentum: 0.9, weight_decay: 0.01, ..Sgd::default() };
    let rates = rates("every step", 400);
    let mut exact = updater(&rule, LazyUpdate::Exact);
    exact.max_runs = 16;
    let mut w = initial();
    for (t, (&rate, gradient)) in rates.iter().zip(&gradients).enumerate() {
        step(&mut exact, &mut w, rate, gradient);
        assert!(exact.groups[0].history.n_runs() <= 17, "step {t}");
    }
    exact.flush(0, &mut w).unwrap();
    close(&w, &literal(&rule, &rates, &gradients, false), 1e-12);
}

/// Two tables on one history, one of which is left out of most steps: those are idle steps for it.
#[test]
fn a_table_left_out_of_a_step_is_idle() {
    let gradients = gradients(10, 200, 0.2);
    let rule = Sgd { momentum: 0.8, weight_decay: 0.02, ..Sgd::default() };
    let rates = rates("every step", 200);
    let spec = |name| ParameterSpec::new(name, N_ROWS, ROW_SIZE, Some(Storage::RowSparse));
    let mut updater = Updater::<_, f64>::new(rule.clone(), vec![spec("a"), spec("b")]).unwrap();
    updater.max_runs = 16;
    let (mut a, mut b) = (initial(), initial());
    let mut b_gradients = Vec::new();
    for (t, (&rate, gradient)) in rates.iter().zip(&gradients).enumerate() {
        updater.set_learning_rate(rate).unwrap();
        updater.begin_step().unwrap();
        let b_is_in = t % 50 == 30;
        b_gradients.push(if b_is_in { gradient.clone() } else { Vec::new() });
        let handles = if b_is_in { 2 } else { 1 };
        let mut tables = [&mut a, &mut b];
        for (index, w) in tables.iter_mut().enumerate().take(handles) {
            let mut rows = updater.rows(index, &mut **w).unwrap();
            for (row, grad) in gradient {
                rows.accumulate(*row).copy_from_slice(grad);
            }
            rows.apply_accumulated();
            rows.finish();
        }
        updater.end_step().unwrap();
    }
    updater.flush(0, &mut a).unwrap();
    updater.flush(1, &mut b).unwrap();
    close(&a, &literal(&rule, &rates, &gradients, false), 1e-12);
    close(&b, &literal(&rule, &rates, &b_gradients, false), 1e-12);
    // Nothing but the run that goes on.
    assert_eq!(updater.groups[0].history.n_runs(), 1);
}

#[test]
fn a_batch_of_repeated_rows_is_summed_before_the_update() {
    let rule = Sgd { momentum: 0.9, weight_decay: 0.1, clip_gradient: Some(0.5), ..Sgd::default() };
    let [mut once, mut summed] = [(); 2].map(|()| (updater(&rule, LazyUpdate::Exact), initial()));
    for t in 0..20 {
        let row = (t * 7) % 5;
        step(&mut once.0, &mut once.1, 0.1, &vec![(row, [0.75, -3.0, 0.25])]);
        summed.0.set_learning_rate(0.1).unwrap();
        summed.0.begin_step().unwrap();
        let mut rows = summed.0.rows(0, &mut summed.1).unwrap();
        for part in [[0.5, -1.0, 0.5], [0.25, -2.0, -0.25]] {
            rows.settle(row);
            for (sum, part) in rows.accumulate(row).iter_mut().zip(part) {
                *sum += part;
            }
        }
        rows.apply_accumulated();
        rows.finish();
        summed.0.end_step().unwrap();
    }
    assert_eq!(once.1, summed.1);
}

#[test]
fn a_plain_handle_does_what_a_general_one_does() {
    let rule = Sgd { learning_rate: 0.3, ..Sgd::default() };
    let [mut plain, mut general] = [(); 2].map(|()| (updater(&rule, LazyUpdate::Exact), initial()));
    assert!(plain.0.is_plain(0));
    for gradient in &gradients(11, 50, 0.2) {
        general.0.begin_step().unwrap();
        let mut rows = general.0.rows(0, &mut general.1).unwrap();
        for (row, grad) in gradient {
            rows.settle(*row);
            (0..ROW_SIZE).for_each(|column| rows.update(*row, column, grad[column]));
        }
        rows.finish();
        general.0.end_step().unwrap();

        plain.0.begin_step().unwrap();
        let [mut rows] = plain.0.rows_of::<Plain, 1>([(0, &mut plain.1)]).unwrap();
        for (row, grad) in gradient {
            rows.prefetch(*row);
            rows.settle(*row);
            rows.update_row(*row, grad);
        }
        rows.finish();
        plain.0.end_step().unwrap();
    }
    assert_eq!(plain.1, general.1);
    assert_ne!(plain.1, initial());

    let decayed = Sgd { weight_decay: 0.1, ..rule };
    let mut updater = updater(&decayed, LazyUpdate::Exact);
    assert!(!updater.is_plain(0));
    let error = updater.rows_of::<Plain, 1>([(0, &mut initial())]).err().unwrap();
    assert!(error.to_string().contains("ask for `General` rows"), "{error}");
}

#[test]
fn weight_decay_is_scaled_by_parameter() {
    let rule = Sgd { learning_rate: 0.5, weight_decay: 0.1, ..Sgd::default() };
    let mut exempt = ParameterSpec::new("b", 2, 1, Some(Storage::Dense));
    exempt.weight_decay_scale = 0.0;
    let decayed = ParameterSpec::new("w", 2, 1, Some(Storage::Dense));
    let mut updater = Updater::<_, f64>::new(rule, vec![exempt, decayed]).unwrap();
    let (mut b, mut w) = ([2.0, 2.0], [2.0, 2.0]);
    updater.begin_step().unwrap();
    updater.apply_dense(0, &mut b, &[1.0, 0.0]).unwrap();
    updater.apply_dense(1, &mut w, &[1.0, 0.0]).unwrap();
    updater.end_step().unwrap();
    assert_eq!(b, [1.5, 2.0]);
    assert_eq!(w, [2.0 - 0.5 * (1.0 + 0.1 * 2.0), 2.0 - 0.5 * 0.1 * 2.0]);
    assert_eq!(updater.clock(), 1);
}

#[test]
fn state_is_kept_only_where_the_rule_has_some() {
    let plain = updater(&Sgd::default(), LazyUpdate::Exact);
    assert!(plain.states_apart(0).unwrap().is_empty());
    let rule = Sgd { momentum: 0.5, ..Sgd::default() };
    let mut frozen = ParameterSpec::new("frozen", 3, 1, None);
    frozen.weight_decay_scale = 0.5;
    let mut updater = Updater::<_, f64>::new(
        rule,
        vec![ParameterSpec::new("w", 2, 1, Some(Storage::Dense)), frozen],
    )
    .unwrap();
    assert!(updater.states_apart(1).unwrap().is_empty());
    updater.set_learning_rate(1.0).unwrap();
    for _ in 0..2 {
        updater.begin_step().unwrap();
        updater.apply_dense(0, &mut [0.0, 0.0], &[1.0, -2.0]).unwrap();
        updater.end_step().unwrap();
    }
    assert_eq!(updater.states_apart(0).unwrap(), [[-1.5], [3.0]]);
    updater.flush(1, &mut [1.0, 2.0, 3.0]).unwrap();
}

#[test]
fn what_does_not_fit_is_refused_by_name() {
    let spec = |name, gradient| ParameterSpec::new(name, 4, 2, gradient);
    let mut updater = Updater::<_, f32>::new(
        Sgd::default(),
        vec![spec("w", Some(Storage::RowSparse)), spec("b", Some(Storage::Dense)), spec("f", None)],
    )
    .unwrap();
    updater.begin_step().unwrap();
    let mut w = [0.0; 8];
    let message = |result: crate::Result<()>| result.unwrap_err().to_string();
    assert_eq!(
        message(updater.rows(3, &mut w).map(drop)),
        "parameter 3 does not exist: the updater has 3 parameters"
    );
    assert_eq!(
        message(updater.rows(0, &mut w[1..]).map(drop)),
        "parameter `w` has 8 values, but 7 were given"
    );
    assert_eq!(
        message(updater.apply_dense(2, &mut w, &[0.0; 8])),
        "parameter `f` is frozen and cannot be updated"
    );
    assert_eq!(
        message(updater.settle_rows(0, &mut w, [0, 4])),
        "parameter `w` has 4 rows, but row 4 was asked for"
    );
    assert_eq!(
        message(updater.apply_dense(1, &mut w, &[0.0; 6])),
        "the gradient of parameter `b` has shape [6], but the parameter has 4 rows of 2 elements"
    );
    assert_eq!(
        message(updater.set_learning_rate(f64::NAN)),
        "the learning rate is NaN, but must be at least 0 and finite"
    );
    let mut v = [0.0; 8];
    let twice = updater.rows_of::<General, 2>([(0, &mut w[..]), (0, &mut v[..])]);
    assert!(message(twice.map(drop)).contains("twice"));
    assert!(Updater::<_, f32>::new(Sgd { learning_rate: -1.0, ..Sgd::default() }, vec![]).is_err());
    let huge = ParameterSpec::new("huge", usize::MAX, 2, Some(Storage::Dense));
    assert!(
        message(Updater::<_, f32>::new(Sgd::default(), vec![huge]).map(drop)).contains("`huge`")
    );
    let mut odd = spec("odd", None);
    odd.weight_decay_scale = f64::NAN;
    assert!(message(Updater::<_, f32>::new(Sgd::default(), vec![odd]).map(drop)).contains("`odd`"));
}

#[test]
fn parameters_are_lent_within_a_step_alone() {
    let spec = |name, gradient| ParameterSpec::new(name, 4, 1, Some(gradient));
    let specs = vec![spec("w", Storage::RowSparse), spec("b", Storage::Dense)];
    let mut updater = Updater::<_, f32>::new(Sgd::default(), specs).unwrap();
    let (mut w, mut b) = ([1.0; 4], [1.0; 4]);
    let gradient = RowSparse::new([4, 1], vec![2], vec![1.0]).unwrap();
    for _ in 0..2 {
        let results = [
            updater.rows(0, &mut w).map(drop),
            updater.rows_as::<Plain>(0, &mut w).map(drop),
            updater.rows_of::<General, 1>([(0, &mut w)]).map(drop),
            updater.apply_row_sparse(0, &mut w, gradient.view()),
            updater.apply_dense(1, &mut b, &[1.0; 4]),
            updater.take_dense(1, &mut b).map(drop),
            updater.take_few::<4>(1, &mut b).map(drop),
            updater.take_states(1, &mut b).map(drop),
        ];
        for (result, name) in results.into_iter().zip(["w", "w", "w", "w", "b", "b", "b", "b"]) {
            let error = result.unwrap_err();
            let is_refusal = matches!(
                &error,
                crate::Error::Optimizer(OptimizerError::OutsideStep { parameter }) if parameter == name
            );
            assert!(is_refusal, "{error}");
        }
        // Rows are brought up to date at any time.
        updater.settle_rows(0, &mut w, [1]).unwrap();
        updater.begin_step().unwrap();
        updater.apply_row_sparse(0, &mut w, gradient.view()).unwrap();
        updater.apply_dense(1, &mut b, &[0.0; 4]).unwrap();
        updater.end_step().unwrap();
    }
    assert_eq!((w, b), ([1.0, 1.0, 1.0 - 0.01 - 0.01, 1.0], [1.0; 4]));
}

#[test]
fn a_dense_step_must_be_finished() {
    let mut updater = updater(&Sgd::default(), LazyUpdate::Dense);
    updater.begin_step().unwrap();
    let mut w = initial();
    updater.rows(0, &mut w).unwrap().update(0, 0, 1.0);
    assert!(updater.end_step().unwrap_err().to_string().contains("`w`"));
    updater.rows(0, &mut w).unwrap().finish();
    updater.end_step().unwrap();
}

#[test]
fn tables_without_rows_or_columns() {
    for (n_rows, row_size) in [(0, 3), (3, 0), (0, 0)] {
        for lazy_update in [LazyUpdate::Exact, LazyUpdate::Touched, LazyUpdate::Dense] {
            let rule = Sgd { momentum: 0.9, lazy_update, ..Sgd::default() };
            let spec = ParameterSpec::new("w", n_rows, row_size, Some(Storage::RowSparse));
            let mut updater = Updater::<_, f32>::new(rule, vec![spec]).unwrap();
            for _ in 0..2 {
                updater.begin_step().unwrap();
                let mut rows = updater.rows(0, &mut []).unwrap();
                for row in 0..n_rows {
                    rows.settle(row);
                    rows.accumulate(row);
                }
                rows.apply_accumulated();
                rows.finish();
                updater.end_step().unwrap();
            }
            updater.flush(0, &mut []).unwrap();
        }
    }
}

proptest! {
    /// Any sequence of hits, rates and flushes.
    #[test]
    fn exact_is_dense(
        seed: u64,
        share in 0.0..0.3f64,
        momentum in prop_oneof![Just(0.0), 0.1..0.95f64],
        weight_decay in prop_oneof![Just(0.0), 0.0..0.2f64],
        changes in proptest::collection::vec((0.0..0.3f64, 1usize..20), 1..12),
        flush_every in 1usize..60,
        max_runs in 1usize..20,
    ) {
        let rule = Sgd { momentum, weight_decay, ..Sgd::default() };
        let rates: Vec<f64> = changes.iter().flat_map(|&(rate, n)| vec![rate; n]).collect();
        let gradients = gradients(seed, rates.len(), share);
        let mut exact = updater(&rule, LazyUpdate::Exact);
        exact.max_runs = max_runs;
        let exact = train(&mut exact, &rates, &gradients, |t| t % flush_every == 0);
        close(&exact, &literal(&rule, &rates, &gradients, false), 1e-11);
    }
}
