//! FTRL-proximal: follow the regularised leader, with weights that are exactly zero.

use super::gradient::Preparation;
use super::rule::update_rule;
use super::{Idle, IdleMap, MOST_NUMBERS, Step};
use sparse_core::element::Float;

update_rule! {
    /// FTRL-proximal with a rate for each weight.
    ///
    /// With `g` the gradient, `q = clip(rescale_grad · g)` to ±`clip_gradient`, and states `z` and
    /// `n`:
    ///
    /// ```text
    /// z ← -w · (beta / learning_rate + l2) - sign(w) · l1
    ///                                 where z = n = 0: the state that gives w
    /// z ← z + q - (√(n + q²) - √n) / learning_rate · w
    /// n ← n + q²
    /// w ← 0                                                                  where |z| ≤ l1
    ///     (sign(z) · l1 - z) / ((beta + √n) / learning_rate + l2)            elsewhere
    /// ```
    ///
    /// The weight follows from `z` and `n`: an idle step (`g = 0`) computes it again, which changes
    /// it only if it was not computed at the present rate. So k idle steps are the last one.
    ///
    /// A weight that was drawn or loaded, and never had a gradient, has `z = n = 0`. It stays as it
    /// is, to the bit, until its first gradient; that step starts from the `z` that gives it. With
    /// `beta = l2 = 0` no state gives a weight but 0: then a parameter that is not 0 is refused. So
    /// is one without weight decay where `beta = 0`, since `l2` does not count for it.
    ///
    /// The rate of a weight falls by itself, as `n` grows. Of another `learning_rate` than that of
    /// the steps before, `z` would mean another weight: a falling one would take all weights to 0.
    /// A trainer refuses schedules with it.
    ///
    /// Source: McMahan et al., "Ad click prediction: a view from the trenches", KDD 2013, algorithm
    /// 1; `learning_rate` is its α, `l1` and `l2` its λ₁ and λ₂. A parameter with weight-decay
    /// scale 0 (a bias) has neither penalty.
    pub struct Ftrl = "ftrl" {
        /// Step size (α).
        learning_rate: f64 = 0.1, PositiveFinite;
        /// Keeps the first steps small (β).
        beta: f64 = 1.0, AtLeastZero;
        /// L1 penalty (λ₁): weights of little use are exactly 0.
        l1: f64 = 0.0, AtLeastZero;
        /// L2 penalty (λ₂).
        l2: f64 = 0.0, AtLeastZero;
    }
    step: FtrlStep;
    states: ["z", "n"];
    one_rate: true;
    gives_weights: ["beta", "l2"];
    numbers: |step| [inverse_rate: step.leader.inverse_rate, offset: step.leader.offset, l1: step.leader.l1];
    gradient: CLIPPED;
    recurrence: [
        squares = "n + q * q",
        root = "sqrt(squares)",
        implied = "select(w, select(q, -(w * offset) - sign(w) * l1, 0), 0)",
        start = "select(abs(z) + n, z, implied)",
        sum = "start + q - (root - sqrt(n)) * inverse_rate * w",
        leader = "select(abs(sum) <= l1, 0, (sign(sum) * l1 - sum) / (root * inverse_rate + offset))",
        led = "select(abs(sum) + squares, leader, w)",
        z = "select(inverse_rate, sum, z)",
        n = "select(inverse_rate, squares, n)",
        w = "select(inverse_rate, led, w)",
    ];
}

/// [`Ftrl`] with its hyperparameters resolved for one step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FtrlStep<T> {
    leader: Leader<T>,
    preparation: Preparation<T>,
}

impl<T: Float> FtrlStep<T> {
    pub(super) fn resolve(rule: &Ftrl, learning_rate: f64, penalty_scale: f64, _: u64) -> Self {
        FtrlStep {
            leader: Leader {
                // At rate 0 no weight moves, and 1 / 0 is not to be multiplied with.
                inverse_rate: T::of(if learning_rate > 0.0 { learning_rate.recip() } else { 0.0 }),
                offset: T::of(rule.beta / learning_rate + rule.l2 * penalty_scale),
                l1: T::of(rule.l1 * penalty_scale),
            },
            preparation: Preparation::new(rule.rescale_grad, rule.clip_gradient),
        }
    }
}

/// The weight as a function of its state.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Leader<T> {
    /// 1 / learning_rate, or 0 where that is 0: then nothing moves.
    inverse_rate: T,
    /// beta / learning_rate + l2.
    offset: T,
    l1: T,
}

impl<T: Float> Leader<T> {
    /// The weight with state `z` and `root = √n`, which was `before`: it stays so where both are 0,
    /// for then it has had no gradient.
    #[inline(always)]
    fn weight(&self, before: T, z: T, root: T) -> T {
        let weight = (self.l1.copysign(z) - z) / (root * self.inverse_rate + self.offset);
        // Written so that NaN stays NaN. `z = 0` is within, so that 0 / 0 is never the result.
        let weight = if z.abs() <= self.l1 { T::zero() } else { weight };
        if z.is_zero() & root.is_zero() { before } else { weight }
    }

    /// The `z` that gives a weight where `n` is 0.
    #[inline(always)]
    fn implied(&self, weight: T) -> T {
        let z = -(weight * self.offset) - self.l1.copysign(weight);
        if weight.is_zero() { T::zero() } else { z }
    }
}

/// The last of some idle steps, or none: each computes the weight anew from a state that they all
/// leave alone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LeaderMap<T>(Option<Leader<T>>);

impl<T: Float> IdleMap for LeaderMap<T> {
    const IDENTITY: Self = LeaderMap(None);
    const FORGETS: bool = true;

    #[inline]
    fn after(&self, first: &Self) -> Self {
        LeaderMap(self.0.or(first.0))
    }

    /// Whether there is one, then its numbers.
    fn write(&self, numbers: &mut Vec<f64>) {
        let parts = |leader: Leader<T>| [leader.inverse_rate, leader.offset, leader.l1];
        numbers.push(if self.0.is_some() { 1.0 } else { 0.0 });
        numbers.extend(self.0.map_or([T::zero(); 3], parts).map(T::as_f64));
    }

    fn read(numbers: &[f64]) -> Option<Self> {
        let &[is_some, inverse_rate, offset, l1] = numbers else { return None };
        let leader =
            Leader { inverse_rate: T::of(inverse_rate), offset: T::of(offset), l1: T::of(l1) };
        Some(LeaderMap((is_some != 0.0).then_some(leader)))
    }

    /// A weight that has had no gradient stays as it is.
    fn spares_fresh(&self) -> bool {
        true
    }
}

impl<T: Float> Step<T> for FtrlStep<T> {
    /// z and n.
    type State = [T; 2];
    type Idle = LeaderMap<T>;

    /// Both states are sums over gradients, from the [implied](Step::implied_state) ones on, and
    /// the weight follows from them.
    const CHANGES_ADD: bool = true;

    #[inline(always)]
    fn update(&self, weight: &mut T, state: &mut [T; 2], grad: T) {
        // The same for all weights of a step.
        if self.leader.inverse_rate.is_zero() {
            return;
        }
        let grad = self.preparation.apply(grad);
        let [z, n] = *state;
        let is_fresh = z.is_zero() & n.is_zero() & !grad.is_zero();
        let z = if is_fresh { self.leader.implied(*weight) } else { z };
        let n_after = n + grad * grad;
        let root = n_after.sqrt();
        let z_after = z + grad - (root - n.sqrt()) * self.leader.inverse_rate * *weight;
        *state = [z_after, n_after];
        *weight = self.leader.weight(*weight, z_after, root);
    }

    fn implied_state(&self, weight: T) -> Option<[T; 2]> {
        if self.leader.inverse_rate.is_zero() {
            return Some([T::zero(); 2]);
        }
        let is_given = weight.is_zero() || !self.leader.offset.is_zero();
        is_given.then(|| [self.leader.implied(weight), T::zero()])
    }

    fn numbers(&self) -> [f64; MOST_NUMBERS] {
        self.resolved()
    }

    fn idle(&self) -> Idle<LeaderMap<T>> {
        if self.leader.inverse_rate.is_zero() {
            return Idle::Nothing;
        }
        Idle::Closed(LeaderMap(Some(self.leader)))
    }

    #[inline]
    fn apply_idle(&self, map: &LeaderMap<T>, weight: &mut T, state: &mut [T; 2]) {
        if let Some(leader) = map.0 {
            *weight = leader.weight(*weight, state[0], state[1].sqrt());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::UpdateRule;

    #[test]
    fn two_steps_by_hand() {
        let rule = Ftrl { beta: 2.0, l1: 0.5, l2: 0.25, ..Ftrl::default() };
        let step = rule.step::<f64>(0.5, 1.0, 0);
        let (mut w, mut state) = (0.0, [0.0; 2]);
        step.update(&mut w, &mut state, 3.0);
        assert_eq!(state, [3.0, 9.0]);
        assert_eq!(w, (0.5 - 3.0) / ((2.0 + 3.0) / 0.5 + 0.25));
        let before = w;
        step.update(&mut w, &mut state, -4.0);
        let z = 3.0 - 4.0 - (5.0 - 3.0) / 0.5 * before;
        assert_eq!(state, [z, 25.0]);
        assert!(z.abs() <= 0.5 && w == 0.0, "{z} {w}");
    }

    #[test]
    fn n2_a_weight_without_state_moves_by_one_step_from_the_state_that_gives_it() {
        let rule = Ftrl { beta: 2.0, l1: 0.5, l2: 0.25, ..Ftrl::default() };
        for (penalty_scale, start) in [(1.0, 0.75), (0.0, -1.5), (1.0, 1e-9), (1.0, -0.0)] {
            let step = rule.step::<f64>(0.5, penalty_scale, 0);
            let (l1, offset) = (0.5 * penalty_scale, 4.0 + 0.25 * penalty_scale);
            // Steps without a gradient leave it as it is, to the bit.
            let (mut w, mut state) = (start, [0.0; 2]);
            step.update(&mut w, &mut state, 0.0);
            let Idle::Closed(map) = step.idle() else { panic!("steps change weights") };
            step.apply_idle(&map, &mut w, &mut state);
            assert_eq!((f64::to_bits(w), state), (start.to_bits(), [0.0; 2]));
            let z = if start == 0.0 { 0.0 } else { -start * offset - l1 * start.signum() };
            assert_eq!(step.implied_state(start), Some([z, 0.0]));
            let given = step.leader.weight(9.0, z, 0.0);
            assert!(start == 0.0 || (given - start).abs() <= 1e-15, "{given} for {start}");
            step.update(&mut w, &mut state, 3.0);
            let z: f64 = z + 3.0 - 3.0 / 0.5 * start;
            let expected = if z.abs() <= l1 { 0.0 } else { (l1 * z.signum() - z) / (6.0 + offset) };
            assert_eq!(state, [z, 9.0]);
            assert!((w - expected).abs() <= 1e-15, "{w} is not {expected}");
        }
    }

    #[test]
    fn n2_without_beta_and_l2_no_state_gives_a_weight() {
        let rule = Ftrl { beta: 0.0, l2: 0.25, ..Ftrl::default() };
        let step = |penalty_scale| rule.step::<f32>(0.1, penalty_scale, 0);
        assert!(step(1.0).implied_state(1.0).is_some());
        assert_eq!(step(0.0).implied_state(1.0), None);
        assert_eq!(step(0.0).implied_state(0.0), Some([0.0; 2]));
    }

    #[test]
    fn at_rate_zero_nothing_moves() {
        let step = Ftrl::default().step::<f32>(0.0, 1.0, 0);
        let (mut w, mut state) = (0.5, [1.0, 2.0]);
        step.update(&mut w, &mut state, 3.0);
        assert_eq!((w, state, step.idle()), (0.5, [1.0, 2.0], Idle::Nothing));
    }

    #[test]
    fn a_gradient_that_is_no_number_shows() {
        let step = Ftrl { l1: 1.0, ..Ftrl::default() }.step::<f32>(0.1, 1.0, 0);
        let mut w = 0.5;
        step.update(&mut w, &mut [0.0; 2], f32::NAN);
        assert!(w.is_nan());
    }
}
