//! LAMB: Adam's step, made as long as the parameter's norm says.

use super::gradient::Preparation;
use super::means::{corrected_after, taken_up};
use super::rule::update_rule;
use super::{Idle, MOST_NUMBERS, Step};
use sparse_core::element::Float;

update_rule! {
    /// LAMB.
    ///
    /// With `g` the gradient, `t = 1, 2, …` the steps made, states `m` and `v` that start at 0, and
    /// |·| the Euclidean norm of a whole parameter:
    ///
    /// ```text
    /// q ← clip(rescale_grad · g)                             to ±clip_gradient
    /// m ← beta1 · m + (1 - beta1) · q
    /// v ← beta2 · v + (1 - beta2) · q²
    /// r ← m / (1 - beta1^t) / (√(v / (1 - beta2^t)) + epsilon) + weight_decay · w
    /// w ← w - learning_rate · |w| / |r| · r          1 for the quotient where either norm is 0
    /// ```
    ///
    /// `|w|` is first brought into `lower_bound` to `upper_bound`; without `bias_correction`
    /// neither `m` nor `v` is divided.
    ///
    /// A step depends on all weights of a parameter, and costs O(weights), whatever the gradient
    /// stores: `lazy_update` must be `Dense`. It is for dense layers in large batches; rows of a
    /// large table have Adam.
    ///
    /// Source: You et al., "Large batch optimization for deep learning: training BERT in 76
    /// minutes", ICLR 2020, algorithm 2; `LAMB` of MXNet.
    pub struct Lamb = "lamb" {
        /// Step size.
        learning_rate: f64 = 0.001, PositiveFinite;
        /// Fraction of the mean gradient kept from step to step.
        beta1: f64 = 0.9, BelowOne;
        /// Fraction of the mean square kept from step to step.
        beta2: f64 = 0.999, BelowOne;
        /// Keeps steps finite where gradients vanish.
        epsilon: f64 = 1e-6, PositiveFinite;
        /// L2 penalty: adds `weight_decay · w` to what Adam makes of the gradient.
        weight_decay: f64 = 0.0, AtLeastZero;
        /// The least that counts as the norm of the weights.
        lower_bound: f64 = 0.0, AtLeastZero;
        /// The most that counts as the norm of the weights.
        upper_bound: Option<f64> = None, Positive;
        /// Whether the means make up for their start at 0.
        bias_correction: bool = true, Flag;
    }
    step: LambStep;
    states: ["m", "v"];
    numbers: |step| [learning_rate: step.learning_rate, beta1: step.beta1, beta2: step.beta2, of_mean: step.of_mean, of_square: step.of_square, epsilon: step.epsilon, decay: step.decay, lower_bound: step.lower_bound, upper_bound: step.upper_bound];
    gradient: CLIPPED;
    recurrence: [
        m = "beta1 * m + (1 - beta1) * q",
        v = "beta2 * v + (1 - beta2) * q * q",
    ];
    norms: "m * of_mean / (sqrt(v * of_square) + epsilon) + decay * w",
        "learning_rate * select(direction_norm, select(max(min(weight_norm, upper_bound), lower_bound), max(min(weight_norm, upper_bound), lower_bound) / direction_norm, 1), 1)";
    counts: until_corrected;
}

impl Lamb {
    fn until_corrected(&self) -> u64 {
        if self.bias_correction { corrected_after(self.beta1.max(self.beta2)) } else { 0 }
    }
}

/// [`Lamb`] with its hyperparameters resolved for one step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LambStep<T> {
    learning_rate: T,
    beta1: T,
    beta2: T,
    /// What the means are multiplied with, for their start at zero.
    of_mean: T,
    of_square: T,
    epsilon: T,
    decay: T,
    lower_bound: T,
    upper_bound: T,
    preparation: Preparation<T>,
}

impl<T: Float> LambStep<T> {
    pub(super) fn resolve(rule: &Lamb, learning_rate: f64, penalty_scale: f64, clock: u64) -> Self {
        let steps = clock.saturating_add(1);
        let correction =
            |beta| if rule.bias_correction { T::of(1.0 / taken_up(beta, steps)) } else { T::one() };
        LambStep {
            learning_rate: T::of(learning_rate),
            beta1: T::of(rule.beta1),
            beta2: T::of(rule.beta2),
            of_mean: correction(rule.beta1),
            of_square: correction(rule.beta2),
            epsilon: T::of(rule.epsilon),
            decay: T::of(rule.weight_decay * penalty_scale),
            lower_bound: T::of(rule.lower_bound),
            upper_bound: T::of(rule.upper_bound.unwrap_or(f64::INFINITY)),
            preparation: Preparation::new(rule.rescale_grad, rule.clip_gradient),
        }
    }
}

impl<T: Float> Step<T> for LambStep<T> {
    /// m and v.
    type State = [T; 2];
    type Idle = ();

    #[inline(always)]
    fn update(&self, _: &mut T, state: &mut [T; 2], grad: T) {
        let grad = self.preparation.apply(grad);
        let mean = self.beta1 * state[0] + (T::one() - self.beta1) * grad;
        let square = self.beta2 * state[1] + (T::one() - self.beta2) * grad * grad;
        *state = [mean, square];
    }

    fn numbers(&self) -> [f64; MOST_NUMBERS] {
        self.resolved()
    }

    fn idle(&self) -> Idle<()> {
        Idle::Open
    }

    fn apply_idle(&self, (): &(), _: &mut T, _: &mut [T; 2]) {}

    const BY_NORMS: bool = true;

    #[inline(always)]
    fn direction(&self, weight: T, &[mean, square]: &[T; 2]) -> T {
        let deviation = (square * self.of_square).sqrt();
        mean * self.of_mean / (deviation + self.epsilon) + self.decay * weight
    }

    fn rate_by_norms(&self, weights: f64, directions: f64) -> T {
        let weights = weights.min(self.upper_bound.as_f64()).max(self.lower_bound.as_f64());
        let quotient = if weights == 0.0 || directions == 0.0 { 1.0 } else { weights / directions };
        T::of(self.learning_rate.as_f64() * quotient)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::UpdateRule;

    #[test]
    fn a_step_by_hand() {
        let rule = Lamb { weight_decay: 0.5, epsilon: 1e-300, ..Lamb::default() };
        let step = rule.step::<f64>(0.25, 1.0, 0);
        let mut state = [0.0; 2];
        step.update(&mut 4.0, &mut state, -3.0);
        // The first step of Adam is the sign of the gradient.
        assert!((step.direction(4.0, &state) - (-1.0 + 0.5 * 4.0)).abs() < 1e-12);
        assert_eq!(step.rate_by_norms(6.0, 2.0), 0.75);
        assert_eq!([step.rate_by_norms(0.0, 2.0), step.rate_by_norms(6.0, 0.0)], [0.25; 2]);
    }

    #[test]
    fn the_norm_of_the_weights_has_bounds() {
        let rule = Lamb { lower_bound: 2.0, upper_bound: Some(4.0), ..Lamb::default() };
        let step = rule.step::<f64>(0.5, 1.0, 0);
        let rates = [0.0, 3.0, 8.0].map(|weights| step.rate_by_norms(weights, 2.0));
        assert_eq!(rates, [0.5, 0.75, 1.0]);
    }
}
