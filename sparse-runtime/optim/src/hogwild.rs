//! Rules whose steps several threads make at once on the same weights.

use super::{Hyperparameter, LazyUpdate, RuleError, UpdateRule, VarianceReduction};
use sparse_core::element::Float;

/// Another rule, for steps that threads make at once on weights and states which they share without
/// locks: what Hogwild training gives to the steps of its threads. The step is that of the other
/// rule. A type of its own, so that loops for it are compiled where somebody asks for it, and
/// nowhere else.
///
/// Source: Niu, Recht, Ré and Wright, "Hogwild!: a lock-free approach to parallelizing stochastic
/// gradient descent", NIPS 2011.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Racing<R>(pub R);

impl<R: UpdateRule> UpdateRule for Racing<R> {
    const NAME: &'static str = R::NAME;
    const ABOUT: &'static str = R::ABOUT;
    const STATES: &'static [&'static str] = R::STATES;
    const CORRECTS: bool = R::CORRECTS;
    const RACES: bool = true;
    const ONE_RATE: bool = R::ONE_RATE;
    const GIVES_WEIGHTS: &'static [&'static str] = R::GIVES_WEIGHTS;

    type Step<T: Float> = R::Step<T>;

    fn hyperparameters(&mut self) -> Vec<Hyperparameter<'_>> {
        self.0.hyperparameters()
    }

    fn learning_rate(&self) -> f64 {
        self.0.learning_rate()
    }

    fn counts_until(&self) -> u64 {
        self.0.counts_until()
    }

    fn variance_reduction(&self) -> Option<VarianceReduction> {
        self.0.variance_reduction()
    }

    fn lazy_update(&self) -> LazyUpdate {
        self.0.lazy_update()
    }

    fn set_lazy_update(&mut self, lazy_update: LazyUpdate) {
        self.0.set_lazy_update(lazy_update);
    }

    fn step<T: Float>(&self, learning_rate: f64, penalty_scale: f64, clock: u64) -> Self::Step<T> {
        self.0.step(learning_rate, penalty_scale, clock)
    }

    fn set(&mut self, name: &str, value: f64) -> Result<(), RuleError> {
        self.0.set(name, value)
    }

    fn check(&self) -> Result<(), RuleError> {
        self.0.check()
    }
}
