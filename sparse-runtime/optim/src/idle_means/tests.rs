//! Idle steps of the rules like Adam against the same steps one by one.

use super::super::{
    AdaMax, Adam, AdamW, Ftml, Idle, IdleHistory, IdleMap, Nadam, RuleError, RuleVisitor,
    StateBlock, Step, UpdateRule, with_rule,
};
use sparse_core::element::Float;

const RULES: [&str; 5] = ["adam", "adamw", "nadam", "adamax", "ftml"];

type History<R, T> = IdleHistory<<<R as UpdateRule>::Step<T> as Step<T>>::Idle, T>;

/// Learning rates by the step.
const RATES: [fn(u64) -> f64; 5] = [
    |_| 0.1,
    |t| 0.2 / (1.0 + 0.01 * t as f64),
    // Warm-up.
    |t| 0.1 * (t as f64 / 1000.0).min(1.0),
    |t| 0.1 * 0.7f64.powi((t / 300) as i32),
    |t| 0.1 * (t as f64 * 0.01).cos().max(0.0),
];

/// Numbers that are the same in every run.
struct Numbers(u64);

impl Numbers {
    /// In [0, 1).
    fn next(&mut self) -> f64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.next()
    }

    fn one_of<V: Copy>(&mut self, of: &[V]) -> V {
        of[(self.next() * of.len() as f64) as usize]
    }
}

/// A weight and its state in `T`, and the same in `f64`, that idle steps were made on one by one.
struct Pair<R: UpdateRule, T: Float> {
    rule: R,
    rate: fn(u64) -> f64,
    clock: u64,
    settled: u64,
    history: History<R, T>,
    weight: T,
    state: <R::Step<T> as Step<T>>::State,
}

impl<R: UpdateRule, T: Float> Pair<R, T> {
    /// `adamw` shrinks the weight, and that of `ftml` is a quotient that is made anew at every
    /// step.
    const IS_MOVED_ALONE: bool = !matches!(R::NAME.as_bytes(), b"adamw" | b"ftml");

    fn new(mut rule: R, rate: fn(u64) -> f64, clock: u64) -> Self {
        // As they are in the type of the weight.
        for mut row in rule.hyperparameters() {
            if let Some(value) = row.get() {
                row.set(T::of(value).as_f64());
            }
        }
        let mut history = IdleHistory::default();
        history.skip(clock);
        let (weight, state) = (T::of(0.75), Default::default());
        Pair { rule, rate, clock, settled: clock, history, weight, state }
    }

    fn step<A: Float>(&self) -> R::Step<A> {
        self.rule.step((self.rate)(self.clock), 1.0, self.clock)
    }

    /// A step with a gradient, of a weight that waits for none.
    fn update(&mut self, grad: f64) {
        let step = self.step::<T>();
        step.update(&mut self.weight, &mut self.state, T::of(grad));
        self.push(&step, 1);
        self.settled = self.clock;
    }

    fn push(&mut self, step: &R::Step<T>, count: u64) {
        self.history.push_many(step.idle().map().expect("a closed form"), count);
        self.clock += count;
    }

    /// Some idle steps, and what they are to make of the weight: `(weight, path, state)`.
    fn idle(&mut self, gap: u64) -> (f64, f64, Vec<f64>) {
        let mut state = <R::Step<f64> as Step<f64>>::State::default();
        state.values_mut().zip(self.state.values()).for_each(|(to, from)| *to = from.as_f64());
        // A weight whose moves do not depend on it is not in them, and so what is too little for it
        // is not lost.
        let start = if Self::IS_MOVED_ALONE { self.weight.as_f64() } else { 0.0 };
        let (mut weight, mut path) = (self.weight.as_f64() - start, 0.0);
        let end = self.clock + gap;
        while self.clock < end {
            let (wide, own) = (self.step::<f64>(), self.step::<T>());
            // Steps that are alike are made without asking for each.
            let alike = self.clock > self.rule.counts_until()
                && (self.rate)(self.clock) == (self.rate)(end);
            let count = if alike { end - self.clock } else { 1 };
            for _ in 0..count {
                let before = weight;
                wide.update(&mut weight, &mut state, 0.0);
                path += (weight - before).abs();
            }
            self.push(&own, count);
        }
        (start + weight, path, state.values().collect())
    }

    /// Catches up with the steps since the last, and holds the weight to what they made one by one.
    fn hold(&mut self, (weight, path, state): (f64, f64, Vec<f64>)) {
        let steps = (self.settled, self.clock);
        let (step, map) = (self.step::<T>(), self.history.since(self.settled));
        if !step.try_idle(&map, &mut self.weight, &mut self.state) {
            step.idle_in_pieces(&self.history, steps, &mut self.weight, &mut self.state);
        }
        self.settled = self.clock;
        let ulp = T::epsilon().as_f64();
        let found = self.weight.as_f64();
        // A weight of `ftml` is a quotient that is made anew at every step, and does not stay to
        // the bit.
        let made_anew =
            if R::NAME == "ftml" { f64::EPSILON * (steps.1 - steps.0) as f64 } else { 0.0 };
        let allowed = (4.0 * ulp + made_anew) * weight.abs() + 1e-6 * path;
        assert!(
            (found - weight).abs() <= allowed,
            "{:?}, steps {steps:?}: {found} instead of {weight}, after a way of {path}: {} times what is allowed",
            self.rule,
            (found - weight).abs() / allowed
        );
        // A weight of `ftml` without a gradient waits for its distance as well.
        if R::NAME == "ftml"
            && self.state.values().next().is_some_and(|distance| distance.is_zero())
        {
            return;
        }
        for (found, expected) in self.state.values().zip(state) {
            let found = found.as_f64();
            // What is too small for the type is not there.
            let least = T::min_positive_value().as_f64();
            let off = (found - expected).abs();
            let near = off <= (1e-9 + 4.0 * ulp) * expected.abs() + least;
            assert!(near, "{:?}, steps {steps:?}: {found} and {expected}", self.rule);
        }
    }
}

/// Any betas, epsilons, gradients, rates and gaps.
struct AnyGap;

impl RuleVisitor for AnyGap {
    type Output = ();

    fn visit<R: UpdateRule>(self, rule: R) {
        hold_gaps::<R, f64>(&rule, 60);
        hold_gaps::<R, f32>(&rule, 60);
    }
}

fn hold_gaps<R: UpdateRule, T: Float>(rule: &R, cases: usize) {
    let mut numbers = Numbers(R::NAME.len() as u64 + size_of::<T>() as u64);
    let mut held = 0;
    while held < cases {
        let mut rule = rule.clone();
        let beta = numbers.between(0.0, 0.999);
        rule.set("beta1", numbers.one_of(&[0.0, 0.5, 0.9, 0.9, 0.99, 0.999, beta])).unwrap();
        rule.set("beta2", numbers.one_of(&[0.9, 0.99, 0.999, 0.999, 0.9999])).unwrap();
        let _ = rule.set("epsilon", numbers.one_of(&[1e-8, 1e-8, 1e-3, 1e-12]));
        let decay = if R::NAME == "adamw" { numbers.one_of(&[0.0, 0.01, 0.5]) } else { 0.0 };
        rule.set("weight_decay", decay).unwrap();
        if rule.check().is_err() {
            // Weights that move farther at every step.
            assert_eq!(R::NAME, "adamax");
            continue;
        }
        held += 1;
        let clock = numbers.one_of(&[0, 1, 10, 300, 5_000, 49_000]);
        let mut pair = Pair::<R, T>::new(rule, numbers.one_of(&RATES), clock);
        for _ in 0..3 {
            let size = 10f64.powf(numbers.between(-7.0, 1.0));
            for _ in 0..1 + (3.0 * numbers.next()) as usize {
                pair.update(size * numbers.between(-1.0, 1.0));
            }
            let gap = 10f64.powf(numbers.between(0.0, 2.8)) as u64;
            let expected = pair.idle(gap);
            pair.hold(expected);
        }
    }
}

#[test]
fn n16_idle_steps_of_adam_and_its_kin_are_those_one_by_one() {
    RULES.iter().for_each(|name| with_rule(name, AnyGap).unwrap());
}

/// From the first step on, while every step has another rate.
struct FirstSteps;

impl RuleVisitor for FirstSteps {
    type Output = ();

    fn visit<R: UpdateRule>(self, mut rule: R) {
        rule.set("weight_decay", if R::NAME == "adamw" { 0.01 } else { 0.0 }).unwrap();
        let mut numbers = Numbers(5);
        let mut pair = Pair::<R, f32>::new(rule, RATES[2], 0);
        while pair.clock < 50_000 {
            pair.update(1e-3 * numbers.between(-1.0, 1.0));
            let expected = pair.idle(10f64.powf(numbers.between(0.0, 3.5)) as u64);
            pair.hold(expected);
        }
    }
}

#[test]
fn n16_the_first_50_000_steps_are_caught_up_with() {
    ["adam", "nadam"].iter().for_each(|name| with_rule(name, FirstSteps).unwrap());
}

/// A weight that waits for `gap` steps after one gradient.
fn hold_long<R: UpdateRule, T: Float>(rule: R, grad: f64, gap: u64) {
    let mut pair = Pair::<R, T>::new(rule, RATES[0], 1 << 20);
    pair.update(grad);
    let expected = pair.idle(gap);
    pair.hold(expected);
}

#[test]
fn n16_a_row_that_waits_a_million_steps_is_caught_up_with() {
    // Most of the way is where ε is as large as the root.
    hold_long::<_, f64>(Adam { beta1: 0.999, ..Adam::default() }, 1e-6, 1_000_000);
    hold_long::<_, f32>(AdamW::default(), 1e-7, 1_000_000);
    hold_long::<_, f64>(Nadam::default(), 0.1, 100_000);
    hold_long::<_, f64>(AdaMax { beta2: 0.999_99, ..AdaMax::default() }, 0.1, 100_000);
    hold_long::<_, f64>(Ftml::default(), 0.1, 100_000);
}

/// Where `β₁` is above `√β₂` the mean outlives its root, and the way has an end by ε alone.
#[test]
fn n16_a_mean_that_outlives_its_root_is_followed_step_by_step() {
    let rule = Adam { beta1: 0.99, beta2: 0.9, ..Adam::default() };
    hold_long::<_, f64>(rule.clone(), 1e-3, 3_000);
    hold_long::<_, f32>(rule, 1e-3, 3_000);
    hold_long::<_, f64>(Adam { beta2: 0.0, ..Adam::default() }, 1e-3, 500);
}

/// With the defaults one map is enough for any weight, so that a row costs the same however long it
/// waits.
#[test]
fn n16_with_the_defaults_no_row_is_caught_up_with_in_pieces() {
    let mut history = History::<Adam, f64>::default();
    let rule = Adam::default();
    for clock in 0..3_000 {
        history.push(rule.step::<f64>(0.1, 1.0, clock).idle().map().unwrap());
    }
    let step = rule.step::<f64>(0.1, 1.0, 3_000);
    for from in [0, 1, 50, 2_000, 2_900, 2_998, 2_999] {
        for size in [0.0, 1e-30, 1e-12, 1e-8, 3e-8, 1e-7, 1e-5, 0.1, 1e9] {
            let (mut weight, mut state) = (1.0, [size, size * size * 1e-3]);
            assert!(step.try_idle(&history.since(from), &mut weight, &mut state), "{from}, {size}");
        }
    }
}

#[test]
fn n16_decay_that_the_means_see_is_refused_and_adamw_is_named() {
    Adam::default().check().unwrap();
    AdamW::default().check().unwrap();
    let error = Adam { weight_decay: 0.1, ..Adam::default() }.check().unwrap_err();
    assert_eq!(error, RuleError::CoupledDecay { rule: "adam" });
    assert!(error.to_string().contains("`AdamW`"), "{error}");
    let error = Nadam { weight_decay: 0.1, ..Nadam::default() }.check().unwrap_err();
    assert_eq!(error, RuleError::CoupledDecay { rule: "nadam" });
    // Whose weights move farther at every step without a gradient.
    let error = AdaMax { beta2: 0.5, ..AdaMax::default() }.check().unwrap_err();
    assert_eq!(error, RuleError::NoClosedForm { rule: "adamax" });
}

#[test]
fn n16_weights_that_had_no_gradient_stay() {
    let step = Adam::default().step::<f64>(0.1, 1.0, 7);
    let Idle::Closed(map) = step.idle() else { panic!("a closed form") };
    let map = map.power(1_000_000);
    assert!(map.spares_fresh());
    let (mut weight, mut state) = (0.75, [0.0; 2]);
    assert!(step.try_idle(&map, &mut weight, &mut state));
    assert_eq!((weight, state), (0.75, [0.0; 2]));
}

/// A loop over rows looks a run up; what it finds is what the map of all steps says.
#[test]
fn a_tabulated_run_is_that_of_the_map() {
    fn hold<A: Float>(rule: &Adam) {
        let map = rule.step::<A>(0.01, 1.0, u64::MAX).idle().map().unwrap();
        let mut history = IdleHistory::<_, A>::default();
        history.push_many(map, 300_000);
        let mut found = 0;
        for count in (0..1030).chain([2047, 2048, 5000, 77_777, 1 << 18, 299_999]) {
            let runs = history.newest_runs();
            let run = match runs.first.get(count as usize) {
                Some(run) => Some(*run),
                None => history.newest_spent_run(count),
            };
            let Some(run) = run else { continue };
            assert_eq!(run, history.since(300_000 - count).run(&map), "{rule:?}, {count}");
            found += 1;
        }
        assert!(found >= 1024, "{found}");
    }
    for beta1 in [0.0, 0.5, 0.9, 0.95, 0.96, 0.99] {
        hold::<f32>(&Adam { beta1, ..Adam::default() });
        hold::<f64>(&Adam { beta1, ..Adam::default() });
    }
}
