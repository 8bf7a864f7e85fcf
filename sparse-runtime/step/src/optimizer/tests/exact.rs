//! Rows that wait for the steps that they missed, against rows that make each of them.

use super::*;

#[test]
fn exact_is_dense_over_1000_steps() {
    let gradients = gradients(7, 1000, 0.05);
    let flushes: [fn(usize) -> bool; 3] =
        [|_| false, |t| (t as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 58 == 0, |_| true];
    for momentum in [0.0, 0.9] {
        for weight_decay in [0.0, 0.01] {
            for kind in ["constant", "every step", "every 100 steps", "down to zero and up"] {
                let rule =
                    Sgd { momentum, weight_decay, clip_gradient: Some(0.4), ..Sgd::default() };
                let rates = rates(kind, 1000);
                let expected = literal(&rule, &rates, &gradients, false);
                let dense =
                    train(&mut updater(&rule, LazyUpdate::Dense), &rates, &gradients, |_| false);
                close(&dense, &expected, 1e-12);
                for flush in flushes {
                    let mut exact = updater(&rule, LazyUpdate::Exact);
                    let exact = train(&mut exact, &rates, &gradients, flush);
                    close(&exact, &dense, 1e-12);
                }
            }
        }
    }
}

/// What rules are tried with: penalties and momentum, each of those that a rule has.
fn settings() -> Vec<Vec<(&'static str, f64)>> {
    let mut settings = Vec::new();
    for decay in [0.0, 0.01] {
        for l1 in [0.0, 0.002] {
            for momentum in [0.0, 0.9] {
                for nesterov in [0.0, 1.0] {
                    let penalties = [("weight_decay", decay), ("l2", decay), ("l1", l1)];
                    let others =
                        [("momentum", momentum), ("nesterov", nesterov), ("clip_gradient", 0.4)];
                    settings.push([penalties, others].concat());
                }
            }
        }
    }
    settings
}

/// The rule with a setting, or `None` where something is to be set that it does not have. Of the
/// two names of an L2 penalty a rule has one.
fn with_setting<R: UpdateRule>(rule: &R, setting: &[(&'static str, f64)]) -> Option<R> {
    let mut rule = rule.clone();
    let mut has_l2 = false;
    for &(name, value) in setting {
        let is_l2 = name == "l2" || name == "weight_decay";
        match rule.set(name, value) {
            Ok(()) => has_l2 |= is_l2,
            Err(_) if value == 0.0 || is_l2 => {}
            Err(_) => return None,
        }
    }
    let penalised = setting.iter().any(|&(name, value)| name == "l2" && value > 0.0);
    (has_l2 || !penalised).then_some(rule)
}

/// Of every rule: exact updates are dense ones, weights and states, or are refused.
struct ExactIsDense;

impl RuleVisitor for ExactIsDense {
    /// The settings that have a closed form, of those that the rule has.
    type Output = (usize, usize);

    fn visit<R: UpdateRule>(self, rule: R) -> (usize, usize) {
        let gradients = gradients(12, 1000, 0.05);
        let (mut closed, mut all) = (0, 0);
        // Many steps along a mean are one up to a millionth of what they move a weight by.
        let along_mean = matches!(R::NAME, "adam" | "adamw" | "nadam");
        let tolerance = if along_mean { 1e-7 } else { 1e-12 };
        for rule in settings().iter().filter_map(|setting| with_setting(&rule, setting)) {
            all += 1;
            if let Err(error) = rule.check() {
                let none = matches!(
                    error,
                    RuleError::NoClosedForm { .. } | RuleError::CoupledDecay { .. }
                );
                assert!(none || matches!(error, RuleError::NeedsAllRows { .. }), "{error}");
                continue;
            }
            closed += 1;
            for kind in ["constant", "every step", "every 100 steps", "down to zero and up"] {
                let rates = rates(kind, 1000);
                let mut dense = updater(&rule, LazyUpdate::Dense);
                let expected = train(&mut dense, &rates, &gradients, |_| false);
                assert_ne!(expected, initial());
                for flush in [|_| false, |t| t % 137 == 0] {
                    let mut exact = updater(&rule, LazyUpdate::Exact);
                    close(&train(&mut exact, &rates, &gradients, flush), &expected, tolerance);
                    let values = |updater: &Updater<R, f64>| -> Vec<f64> {
                        let states = updater.states_apart(0).unwrap().iter();
                        states.flat_map(|block| block.values()).collect()
                    };
                    close(&values(&exact), &values(&dense), tolerance);
                }
            }
        }
        (closed, all)
    }
}

#[test]
fn exact_is_dense_by_every_rule() {
    for name in NAMES {
        let (closed, all) = with_rule(name, ExactIsDense).unwrap();
        let expected = match *name {
            // Momentum and an L1 penalty together have none.
            "sgd" => (12, 16),
            "adagrad" | "ftrl" => (4, 4),
            "group-adagrad" => (1, 1),
            "adadelta" => (2, 2),
            "dcasgd" => (4, 4),
            // A decay that the running means see has none.
            "rmsprop" => (1, 2),
            "centered-rmsprop" => (2, 4),
            "signum" => (3, 4),
            "adam" | "adamax" | "nadam" | "ftml" => (1, 2),
            // Its decay is beside the means.
            "adamw" => (2, 2),
            // Steps depend on norms of all rows.
            "lamb" => (0, 2),
            name => panic!("what closed forms has `{name}`?"),
        };
        assert_eq!((closed, all), expected, "{name}");
    }
}

/// As small as ε, so that the root does not say alone how far a step goes; also where rows are
/// caught up with in pieces.
#[test]
fn n16_adam_is_dense_by_default_where_gradients_vanish() {
    let small = gradients(13, 1500, 0.02);
    let small: Vec<Gradient> = small
        .into_iter()
        .map(|gradient| {
            let shrunk = |(row, grad): (usize, [f64; ROW_SIZE])| (row, grad.map(|g| 1e-6 * g));
            gradient.into_iter().map(shrunk).collect()
        })
        .collect();
    for (beta1, beta2) in [(0.9, 0.999), (0.99, 0.999), (0.999, 0.999), (0.9, 0.9)] {
        let rule = Adam { beta1, beta2, ..Adam::default() };
        for kind in ["constant", "every step"] {
            let rates = rates(kind, 1500);
            let dense = train(&mut updater(&rule, LazyUpdate::Dense), &rates, &small, |_| false);
            for flush in [|_| false, |t| t % 137 == 0] {
                let mut exact = updater(&rule, rule.lazy_update);
                close(&train(&mut exact, &rates, &small, flush), &dense, 1e-6);
            }
        }
    }
}
