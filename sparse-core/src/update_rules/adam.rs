//! Adam: momentum and a rate for each weight, both corrected for their start at zero.

use super::gradient::Preparation;
use super::{Bound, Hyperparameter, Idle, LazyUpdate, Step, UpdateRule};
use crate::element::Float;

/// Adam.
///
/// With `g` the gradient, `t = 1, 2, …` the steps made, and states `m` and `v` that start at 0:
///
/// ```text
/// q ← clip(rescale_grad · g + weight_decay · w)          to ±clip_gradient
/// m ← beta1 · m + (1 - beta1) · q
/// v ← beta2 · v + (1 - beta2) · q²
/// w ← w - learning_rate · √(1 - beta2^t) / (1 - beta1^t) · m / (√v + epsilon)
/// ```
///
/// Idle steps (`g = 0`) have no closed form: a weight moves on by a series of `m / (√v + epsilon)`. So `lazy_update` must
/// be chosen: [`LazyUpdate::Touched`] changes the rows of a batch only, [`LazyUpdate::Dense`] all rows at every step.
/// `t` counts steps, not the updates of a row.
///
/// Source: Kingma and Ba, "Adam: a method for stochastic optimization", ICLR 2015, algorithm 1 in the order of computation
/// at the end of its section 2 (where `epsilon` is called ε̂).
#[derive(Clone, Debug, PartialEq)]
pub struct Adam {
    /// Step size, > 0.
    pub learning_rate: f64,
    /// Fraction of the mean gradient kept from step to step, in [0, 1).
    pub beta1: f64,
    /// Fraction of the mean square kept from step to step, in [0, 1).
    pub beta2: f64,
    /// Keeps steps finite where gradients vanish, > 0.
    pub epsilon: f64,
    /// L2 penalty: adds `weight_decay · w` to the gradient, ≥ 0.
    pub weight_decay: f64,
    /// Clips each element of the rescaled and decayed gradient to ±this, > 0.
    pub clip_gradient: Option<f64>,
    /// Multiplies the gradient before clipping.
    pub rescale_grad: f64,
    /// How row_sparse gradients are applied. The default, `Exact`, is refused: choose `Touched` or `Dense`.
    pub lazy_update: LazyUpdate,
}

impl Default for Adam {
    fn default() -> Self {
        Adam {
            learning_rate: 0.001,
            beta1: 0.9,
            beta2: 0.999,
            epsilon: 1e-8,
            weight_decay: 0.0,
            clip_gradient: None,
            rescale_grad: 1.0,
            lazy_update: LazyUpdate::Exact,
        }
    }
}

impl UpdateRule for Adam {
    const NAME: &'static str = "adam";
    type Step<T: Float> = AdamStep<T>;

    fn hyperparameters(&mut self) -> Vec<Hyperparameter<'_>> {
        vec![
            Hyperparameter::number("learning_rate", &mut self.learning_rate, Bound::PositiveFinite),
            Hyperparameter::number("beta1", &mut self.beta1, Bound::BelowOne),
            Hyperparameter::number("beta2", &mut self.beta2, Bound::BelowOne),
            Hyperparameter::number("epsilon", &mut self.epsilon, Bound::PositiveFinite),
            Hyperparameter::number("weight_decay", &mut self.weight_decay, Bound::AtLeastZero),
            Hyperparameter::optional("clip_gradient", &mut self.clip_gradient, Bound::Positive),
            Hyperparameter::number("rescale_grad", &mut self.rescale_grad, Bound::Finite),
        ]
    }

    fn learning_rate(&self) -> f64 {
        self.learning_rate
    }

    fn counts_until(&self) -> u64 {
        // Infinite of a beta of 1, of which `u64` has its largest number.
        (NOTHING_LEFT / (1.0 - self.beta1.max(self.beta2))).ceil() as u64
    }

    fn lazy_update(&self) -> LazyUpdate {
        self.lazy_update
    }

    fn set_lazy_update(&mut self, lazy_update: LazyUpdate) {
        self.lazy_update = lazy_update;
    }

    fn step<T: Float>(&self, learning_rate: f64, penalty_scale: f64, clock: u64) -> AdamStep<T> {
        let steps = clock.saturating_add(1);
        let correction = taken_up(self.beta2, steps).sqrt() / taken_up(self.beta1, steps);
        AdamStep {
            rate: T::of(learning_rate * correction),
            keep_mean: T::of(self.beta1),
            take_mean: T::of(1.0 - self.beta1),
            keep_square: T::of(self.beta2),
            take_square: T::of(1.0 - self.beta2),
            epsilon: T::of(self.epsilon),
            decay: T::of(self.weight_decay * penalty_scale),
            preparation: Preparation::new(self.rescale_grad, self.clip_gradient),
        }
    }
}

/// e^-this is less than half of the last bit of 1.
const NOTHING_LEFT: f64 = 38.0;

/// 1 - beta^steps: what a mean that starts at 0 has taken up. 1 after [`NOTHING_LEFT`] / (1 - beta) steps, as beta^steps <
/// e^-((1 - beta) steps).
fn taken_up(beta: f64, steps: u64) -> f64 {
    if (1.0 - beta) * steps as f64 >= NOTHING_LEFT {
        return 1.0;
    }
    // Beyond that many steps the power is 0 for any beta below 1 - 1e-8.
    1.0 - beta.powi(i32::try_from(steps).unwrap_or(i32::MAX))
}

/// [`Adam`] with its hyperparameters resolved for one step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdamStep<T> {
    /// The learning rate, corrected for the start at zero.
    rate: T,
    keep_mean: T,
    take_mean: T,
    keep_square: T,
    take_square: T,
    epsilon: T,
    decay: T,
    preparation: Preparation<T>,
}

impl<T: Float> Step<T> for AdamStep<T> {
    /// m and v.
    type State = [T; 2];
    type Idle = ();

    #[inline(always)]
    fn uses_state(&self) -> bool {
        true
    }

    #[inline(always)]
    fn update(&self, weight: &mut T, state: &mut [T; 2], grad: T) {
        let grad = self.preparation.rescaled(grad) + self.decay * *weight;
        let grad = self.preparation.clipped(grad);
        let mean = self.keep_mean * state[0] + self.take_mean * grad;
        let square = self.keep_square * state[1] + self.take_square * grad * grad;
        *state = [mean, square];
        *weight -= self.rate * mean / (square.sqrt() + self.epsilon);
    }

    fn idle(&self) -> Idle<()> {
        Idle::Open
    }

    fn apply_idle(&self, (): &(), _: &mut T, _: &mut [T; 2]) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_step_is_the_learning_rate_against_the_gradient() {
        let rule = Adam { epsilon: 1e-30, ..Adam::default() };
        let step = rule.step::<f64>(0.125, 1.0, 0);
        for grad in [1e-6, -3.0, 700.0] {
            let (mut w, mut state) = (1.0, [0.0; 2]);
            step.update(&mut w, &mut state, grad);
            assert!((w - (1.0 - 0.125 * f64::signum(grad))).abs() < 1e-12, "{w}");
        }
    }

    #[test]
    fn equal_gradients_make_equal_steps() {
        let rule = Adam { epsilon: 1e-30, ..Adam::default() };
        let (mut w, mut state) = (0.0, [0.0; 2]);
        for clock in 0..1000 {
            rule.step::<f64>(0.01, 1.0, clock).update(&mut w, &mut state, 0.37);
            assert!((w + 0.01 * (clock + 1) as f64).abs() < 1e-10, "{clock}: {w}");
        }
    }

    #[test]
    fn the_count_ends_where_nothing_is_left_to_correct() {
        let rule = Adam::default();
        let until = rule.counts_until();
        assert!((30_000..50_000).contains(&until), "{until}");
        let step = |clock| rule.step::<f64>(0.25, 1.0, clock);
        assert_eq!(step(until), step(u64::MAX));
        assert_ne!(step(until / 2), step(u64::MAX));
        for steps in [1, 1000, until - 2, until - 1, until, until + 1] {
            assert_eq!(taken_up(0.999, steps), 1.0 - 0.999f64.powi(steps as i32), "{steps}");
        }
    }

    #[test]
    fn after_very_many_steps_there_is_nothing_to_correct() {
        let step = Adam::default().step::<f64>(0.25, 1.0, u64::MAX);
        assert_eq!(step.rate, 0.25);
    }
}
