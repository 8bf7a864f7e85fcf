//! What holds of every rule in the list.

use super::*;

/// Runs `$body` for every rule, with `$rule` at its defaults.
macro_rules! for_each_rule {
    (|$rule:ident: $R:ident| $body:expr) => {{
        struct Each;
        impl RuleVisitor for Each {
            type Output = ();
            fn visit<$R: UpdateRule>(self, $rule: $R) {
                $body
            }
        }
        NAMES.iter().for_each(|name| with_rule(name, Each).unwrap());
    }};
}

#[test]
fn names_are_unique_and_known() {
    let mut names = NAMES.to_vec();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), NAMES.len());
    let error = with_rule_named("sdg").unwrap_err().to_string();
    assert!(error.starts_with("there is no update rule `sdg`: the rules are sgd, "), "{error}");
}

fn with_rule_named(name: &str) -> Result<(), UnknownRule> {
    struct Nothing;
    impl RuleVisitor for Nothing {
        type Output = ();
        fn visit<R: UpdateRule>(self, rule: R) {
            assert!(NAMES.contains(&R::NAME), "{rule:?}");
        }
    }
    with_rule(name, Nothing)
}

#[test]
fn the_default_is_refused_only_where_there_is_no_closed_form() {
    for_each_rule!(|rule: R| {
        let open = rule.step::<f64>(0.1, 1.0, 0).idle() == Idle::Open;
        let by_norms = <R::Step<f64> as Step<f64>>::BY_NORMS;
        for mode in [LazyUpdate::Exact, LazyUpdate::Touched, LazyUpdate::Dense] {
            let mut rule = rule.clone();
            rule.set_lazy_update(mode);
            assert_eq!(rule.lazy_update(), mode);
            let expected = match mode {
                LazyUpdate::Dense => None,
                _ if by_norms => Some(RuleError::NeedsAllRows { rule: R::NAME, mode }),
                LazyUpdate::Exact if open => Some(RuleError::NoClosedForm { rule: R::NAME }),
                _ => None,
            };
            assert_eq!(rule.check().err(), expected);
        }
    });
    let message = Lamb::default().check().unwrap_err().to_string();
    assert!(message.contains("cannot be `LazyUpdate::Exact`: choose `LazyUpdate::Dense`"));
    let message = Svrg { update_freq: 1, rule: Lamb::default() }.check().unwrap_err().to_string();
    assert!(message.starts_with("svrg: steps of `lamb` depend on norms"), "{message}");
    let sparse = Sgd { momentum: 0.9, l1: 0.1, ..Sgd::default() };
    let message = sparse.check().unwrap_err().to_string();
    assert!(message.contains("choose `LazyUpdate::Touched`"), "{message}");
}

#[test]
fn every_hyperparameter_is_set_by_name_and_held_to_its_bound() {
    for_each_rule!(|rule: R| {
        let mut rule = rule;
        rule.set_lazy_update(LazyUpdate::Dense);
        let names: Vec<_> = rule.hyperparameters().iter().map(|row| row.name).collect();
        assert!(names.contains(&"learning_rate") && names.contains(&"clip_gradient"));
        for (row, name) in names.iter().enumerate() {
            let mut other = rule.clone();
            let bound = other.hyperparameters()[row].bound;
            let is_choice = bound == Bound::Flag;
            let chosen = other.hyperparameters()[row].get() == Some(1.0);
            let opposite = f64::from(u8::from(!chosen));
            other.set(name, if is_choice { opposite } else { 0.0123 }).unwrap();
            assert_ne!(other, rule, "{name}");
            other.check().unwrap();
            // A choice cannot keep what it refuses.
            let refused = other.set(name, f64::NAN).and_then(|()| other.check()).unwrap_err();
            let expected = format!("{}: `{name}` is NaN, but must be {}", R::NAME, bound.words());
            assert_eq!(refused.to_string(), expected);
            assert_eq!(other.set(name, 0.5).is_err(), is_choice, "{name}");
        }
        let message = rule.set("momentun", 0.0).unwrap_err().to_string();
        assert!(message.contains("`momentun`, but `learning_rate`, "), "{message}");
    });
}

/// The states that a run of updates leaves, from a weight of 1.25.
fn trained<S: Step<f64>>(step: &S) -> (f64, S::State) {
    let (mut w, mut state) = (1.25, S::State::default());
    for grad in [0.75, -0.5, 0.125] {
        step.update(&mut w, &mut state, grad);
    }
    (w, state)
}

#[test]
fn an_idle_map_is_an_update_with_gradient_zero() {
    for_each_rule!(|rule: R| {
        for penalty in [0.0, 0.1] {
            for momentum in [0.0, 0.5] {
                let mut rule = rule.clone();
                for (name, value) in [
                    ("weight_decay", penalty),
                    ("l1", penalty),
                    ("l2", penalty),
                    ("momentum", momentum),
                ] {
                    // A rule that has no such hyperparameter is tried without.
                    let _ = rule.set(name, value);
                }
                let step = rule.step::<f64>(0.25, 1.0, 0);
                let optional = <R::Step<f64> as Step<f64>>::OPTIONAL_STATE;
                assert!(optional || step.uses_state());
                assert!(step.gradient_factor().is_none() || !step.uses_state());
                let (w, state) = trained(&step);
                let (mut w_updated, mut updated) = (w, state);
                step.update(&mut w_updated, &mut updated, 0.0);
                let (mut w_mapped, mut mapped) = (w, state);
                match step.idle() {
                    Idle::Nothing => {}
                    Idle::Closed(map) => {
                        step.apply_idle(&map, &mut w_mapped, &mut mapped);
                        hold_idle_formulas::<R>(&step, &map, (w, state), (w_mapped, mapped));
                        for map in [map, IdleMap::IDENTITY] {
                            let mut numbers = Vec::new();
                            map.write(&mut numbers);
                            assert_eq!(IdleMap::read(&numbers), Some(map));
                            numbers.push(1.0);
                            assert_eq!(<R::Step<f64> as Step<f64>>::Idle::read(&numbers), None);
                        }
                    }
                    Idle::Open => {
                        let same = w == w_updated && state.values().eq(updated.values());
                        assert!(!same, "{rule:?}");
                        continue;
                    }
                }
                let mut pairs = vec![(w_updated, w_mapped)];
                if step.uses_state() {
                    pairs.extend(updated.values().zip(mapped.values()));
                }
                for (a, b) in pairs {
                    assert!((a - b).abs() < 1e-15, "{rule:?}: {a} {b}");
                }
            }
        }
    });
}

/// The formulas of a run of idle steps say what the step makes of its map.
fn hold_idle_formulas<R: UpdateRule>(
    step: &R::Step<f64>,
    map: &<R::Step<f64> as Step<f64>>::Idle,
    start: (f64, <R::Step<f64> as Step<f64>>::State),
    end: (f64, <R::Step<f64> as Step<f64>>::State),
) {
    let recurrence = R::RECURRENCE.expect("every rule of the list has formulas");
    // Of maps that forget the others, a step without gradient is all; those along a mean have no
    // formulas.
    let forgets = <<R::Step<f64> as Step<f64>>::Idle as IdleMap>::FORGETS;
    let along_mean = matches!(R::NAME, "adam" | "adamw" | "nadam");
    assert_eq!(recurrence.idle.is_none(), forgets || along_mean, "{}", R::NAME);
    if recurrence.idle.is_none() {
        return;
    }
    let mut numbers = Vec::new();
    map.write(&mut numbers);
    assert_eq!(recurrence.idle.map(|idle| idle.numbers.len()), Some(numbers.len()));
    let (mut w, mut state) = (start.0, Vec::from_iter(start.1.values()));
    recurrence.idle_steps(R::STATES, &step.numbers(), &numbers, &mut w, &mut state).unwrap();
    let mut pairs = vec![(w, end.0)];
    if step.uses_state() {
        pairs.extend(state.iter().copied().zip(end.1.values()));
    }
    for (found, expected) in pairs {
        assert!((found - expected).abs() < 1e-15, "{}: {found} {expected}", R::NAME);
    }
}

#[test]
fn a_mean_that_is_too_small_to_be_stored_keeps_its_sign() {
    let step = Signum::default().step::<f64>(0.25, 1.0, 0);
    let map = SignMap { scale: 1.0, shift: 0.5, keep: 0.0 };
    let recurrence = Signum::RECURRENCE.unwrap();
    for mean in [-2.0, 0.0] {
        let (mut w, mut state) = (1.0, [mean]);
        let mut numbers = Vec::new();
        map.write(&mut numbers);
        recurrence
            .idle_steps(Signum::STATES, &step.numbers(), &numbers, &mut w, &mut state)
            .unwrap();
        let (mut expected, mut kept) = (1.0, [mean]);
        step.apply_idle(&map, &mut expected, &mut kept);
        assert_eq!((w, state), (expected, kept));
    }
}

/// A rule that corrects gradients has the formulas of the rule that gets them.
#[test]
fn the_formulas_of_a_corrected_rule_are_its_update() {
    let plain = Sgd { learning_rate: 0.25, ..Sgd::default() };
    let decay = Sgd { weight_decay: 0.125, ..plain.clone() };
    let momentum = Sgd { momentum: 0.5, nesterov: true, ..decay.clone() };
    let clipped = Sgd { clip_gradient: Some(0.25), rescale_grad: 0.5, ..momentum.clone() };
    for rule in [plain, decay, momentum, clipped] {
        let rule = Svrg { update_freq: 1, rule };
        let step = rule.step::<f64>(0.25, 1.0, 0);
        for correction in [
            Correction::Gather { share: 0.5 },
            Correction::Apply { share: 0.0 },
            Correction::Apply { share: 0.25 },
        ] {
            hold_formulas::<Svrg<Sgd>>(&rule, &step.with_correction(correction));
        }
        let Idle::Closed(map) = step.idle() else { panic!("{rule:?} has a closed form") };
        let map = map.power(3);
        let start = (1.5, ReducedState { inner: [-0.5], mean: 0.75 });
        let (mut w, mut state) = start;
        step.apply_idle(&map, &mut w, &mut state);
        hold_idle_formulas::<Svrg<Sgd>>(&step, &map, start, (w, state));
    }
    let adagrad = Svrg { update_freq: 1, rule: AdaGrad::default() };
    hold_formulas::<Svrg<AdaGrad>>(&adagrad, &adagrad.step(0.25, 1.0, 0));
    assert!(Svrg::<GroupAdaGrad>::RECURRENCE.is_none());
}

/// The statement of each rule says what a reader of the page and a command line need.
#[test]
fn what_a_rule_carries_has_names_and_what_is_set_has_meanings() {
    for_each_rule!(|rule: R| {
        let state = <<R::Step<f64> as Step<f64>>::State as Default>::default();
        assert_eq!(state.values().count(), R::STATES.len(), "{}", R::NAME);
        assert!(R::ABOUT.contains("```text") && R::ABOUT.contains("Source"), "{}", R::NAME);
        let mut rule = rule;
        for row in rule.hyperparameters() {
            assert!(row.meaning.trim().ends_with('.'), "{}: {}", R::NAME, row.name);
        }
    });
}

#[test]
fn clipping_and_rescaling_come_before_everything() {
    for_each_rule!(|rule: R| {
        let mut clipping = rule.clone();
        clipping.set("clip_gradient", 0.5).unwrap();
        clipping.set("rescale_grad", 0.25).unwrap();
        for (grad, prepared) in [(1.0, 0.25), (8.0, 0.5), (-3.0, -0.5)] {
            let (mut a, mut b) = ((1.0, Default::default()), (1.0, Default::default()));
            clipping.step::<f64>(0.1, 1.0, 0).update(&mut a.0, &mut a.1, grad);
            rule.step::<f64>(0.1, 1.0, 0).update(&mut b.0, &mut b.1, prepared);
            assert_eq!(a.0, b.0, "{}", R::NAME);
            assert!(a.1.values().eq(b.1.values()), "{}", R::NAME);
        }
    });
}

/// The two statements of a recurrence, in Rust and as formulas, agree wherever a rule's
/// hyperparameters lead.
#[test]
fn the_formulas_of_a_rule_are_its_update() {
    for_each_rule!(|rule: R| {
        let other = |row: &Hyperparameter<'_>| match row.bound {
            Bound::Flag => 1.0 - row.get().unwrap(),
            _ => 0.125,
        };
        let others: Vec<_> =
            rule.clone().hyperparameters().iter().map(|row| (row.name, other(row))).collect();
        // Defaults, each hyperparameter by itself, then all of them.
        let changed = (0..=others.len() + 1).map(|only| {
            let mut rule = rule.clone();
            for (row, (name, value)) in others.iter().enumerate() {
                if only == row || only > others.len() {
                    rule.set(name, *value).unwrap();
                }
            }
            rule
        });
        for rule in changed {
            for (rate, penalty, clock) in [(0.25, 1.0, 0), (0.5, 0.0, 3), (0.0, 1.0, 1)] {
                hold_formulas::<R>(&rule, &rule.step::<f64>(rate, penalty, clock));
            }
        }
    });
}

/// Some rows of three weights, several steps each.
fn hold_formulas<R: UpdateRule>(rule: &R, step: &R::Step<f64>) {
    let recurrence = R::RECURRENCE.expect("every rule of the list has formulas");
    let by_row = <<R::Step<f64> as Step<f64>>::State as StateBlock<f64>>::BY_ROW;
    assert_eq!(recurrence.row.is_some(), by_row, "{}", R::NAME);
    assert_eq!(recurrence.norms.is_some(), <R::Step<f64> as Step<f64>>::BY_NORMS, "{}", R::NAME);
    assert!(recurrence.numbers.len() <= MOST_NUMBERS, "{}", R::NAME);
    let mut number = 1.0f64;
    let mut next = || {
        number = (number * 997.0 + 0.37) % 5.0;
        number - 2.5
    };
    for _ in 0..2 {
        let mut weights = [next(), 0.0, next()];
        let mut states = [<R::Step<f64> as Step<f64>>::State::default(); 3];
        let mut by_formula = weights.map(|weight| (weight, 0.0));
        let mut kept = vec![vec![0.0; R::STATES.len()]; 3];
        for step_number in 0..3 {
            let grads = [next(), 0.0, if step_number == 2 { -40.0 } else { next() }];
            let terms: f64 = grads.iter().map(|grad| step.row_term(*grad)).sum();
            if by_row {
                step.begin_row(&mut states[0], terms / 3.0);
            }
            for (place, grad) in grads.iter().enumerate() {
                let state = &mut states[if by_row { 0 } else { place }];
                step.update(&mut weights[place], state, *grad);
                by_formula[place].1 = *grad;
            }
            if <R::Step<f64> as Step<f64>>::BY_NORMS {
                let along = [0, 1, 2].map(|place| step.direction(weights[place], &states[place]));
                let norm = |of: [f64; 3]| of.map(|x| x * x).iter().sum::<f64>().sqrt();
                let rate = step.rate_by_norms(norm(weights), norm(along));
                weights.iter_mut().zip(along).for_each(|(weight, along)| *weight -= rate * along);
            }
            recurrence.step(R::STATES, &step.numbers(), &mut by_formula, &mut kept).unwrap();
            let mut pairs: Vec<_> =
                weights.iter().copied().zip(by_formula.map(|of| of.0)).collect();
            if step.uses_state() {
                for (state, kept) in states.iter().zip(&kept) {
                    pairs.extend(state.values().zip(kept.iter().copied()));
                }
            }
            for (found, expected) in pairs {
                let near = (found - expected).abs() <= 1e-12 * expected.abs().max(1.0);
                assert!(near || found == expected, "{rule:?}: {found} and {expected}");
            }
        }
    }
}

/// A rule with hyperparameters that are not those of its default, as a text and back.
fn keeps_its_settings<R: UpdateRule + serde::Serialize + serde::de::DeserializeOwned>() {
    let mut rule = R::default();
    rule.set_lazy_update(LazyUpdate::Touched);
    for (name, value) in [("rescale_grad", 0.375), ("clip_gradient", 2.5)] {
        rule.set(name, value).unwrap();
    }
    let text = serde_json::to_string(&rule).unwrap();
    assert!(text.contains("\"lazy_update\":\"touched\""), "{text}");
    assert_eq!(serde_json::from_str::<R>(&text).unwrap(), rule);
    // What is not said is as by default, and what there is not is an error.
    assert_eq!(serde_json::from_str::<R>("{}").unwrap(), R::default());
    let error = serde_json::from_str::<R>("{\"learning_rat\": 1}").unwrap_err().to_string();
    assert!(error.contains("unknown field `learning_rat`, expected"), "{error}");
}

#[test]
fn settings_of_every_rule_are_kept_in_a_text() {
    macro_rules! each {
        ($($Rule:ident),* $(,)?) => {
            $(keeps_its_settings::<$Rule>();)*
        };
    }
    crate::for_built_in_rules!(each);
    let text = r#"{"update_freq": 3, "rule": {"momentum": 0.5}}"#;
    let rule: Svrg<Sgd> = serde_json::from_str(text).unwrap();
    assert_eq!(rule, Svrg { update_freq: 3, rule: Sgd { momentum: 0.5, ..Sgd::default() } });
    assert!(serde_json::from_str::<Saga<Sgd>>(r#"{"update_freq": 3}"#).is_err());
    let saga = Saga { rule: Sgd { learning_rate: 0.25, ..Sgd::default() } };
    let text = serde_json::to_string(&saga).unwrap();
    assert_eq!(serde_json::from_str::<Saga<Sgd>>(&text).unwrap(), saga);
}
