//! Stochastic variance-reduced gradient.

use super::reduced::{self, VarianceReduction, of_inner_rule};
use super::{InvalidHyperparameter, RuleError, Sgd, UpdateRule};
use serde::{Deserialize, Serialize};

/// Stochastic variance-reduced gradient (SVRG): any other rule, given gradients whose noise
/// vanishes as training converges, so that a constant learning rate reaches the optimum.
///
/// Before every epoch whose number is a multiple of `update_freq` a snapshot `w̃` of the parameters
/// is taken, and the mean `μ` of the gradients at `w̃` over all samples is computed. A step then
/// hands
///
/// ```text
/// g(w) - g(w̃) + μ
/// ```
///
/// of its batch to `rule`. Weight decay is the rule's own, and not in `g`. An idle step is a step
/// of the rule with gradient `μ`: k of them are one affine map where the rule is linear (SGD, with
/// momentum and weight decay). With another rule `LazyUpdate::Exact` is refused.
///
/// The mean is computed from zero at every snapshot. MXNet's `SVRGModule` adds it to what is left
/// of the one before; that variant has a name, `accumulates`, so that [`set`](UpdateRule::set) can
/// say why it is refused.
///
/// ```
/// use nnz::core::update_rules::{Sgd, Svrg, UpdateRule};
///
/// let rule = Sgd { learning_rate: 0.1, weight_decay: 1e-4, ..Sgd::default() };
/// let rule = Svrg { update_freq: 2, rule };
/// assert!(rule.check().is_ok());
///
/// let never = Svrg { update_freq: 0, ..rule };
/// let error = never.check().unwrap_err().to_string();
/// assert_eq!(error, "svrg: `update_freq` is 0, but must be a whole number, at least 1");
/// ```
///
/// Source: Johnson and Zhang, "Accelerating stochastic gradient descent using predictive variance
/// reduction", NIPS 2013. How to learn from sparse rows with it: Konečný, Liu, Richtárik and Takáč,
/// "Mini-batch semi-stochastic gradient descent in the proximal setting", 2015, where the rule is
/// SGD without momentum.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Svrg<R> {
    /// Epochs from snapshot to snapshot, at least 1; 2 by default. Each costs a pass over the data.
    pub update_freq: u64,
    /// The rule that corrected gradients are handed to.
    pub rule: R,
}

impl<R: Default> Default for Svrg<R> {
    fn default() -> Self {
        Svrg { update_freq: 2, rule: R::default() }
    }
}

impl<R: UpdateRule> UpdateRule for Svrg<R> {
    of_inner_rule!("svrg", learns: false);

    fn variance_reduction(&self) -> Option<VarianceReduction> {
        Some(VarianceReduction::Snapshot { update_freq: self.update_freq })
    }

    /// `update_freq` by its name as well, a whole number; any other is that of the rule within.
    ///
    /// # Errors
    ///
    /// [`RuleError::AccumulatingMean`] where `accumulates` is asked for.
    fn set(&mut self, name: &str, value: f64) -> Result<(), RuleError> {
        match name {
            "update_freq" => {
                // Beyond 2⁶³ epochs there is one snapshot, whatever the number.
                self.update_freq = value as u64;
                if self.update_freq as f64 == value {
                    Ok(())
                } else {
                    Err(invalid_update_freq(value).into())
                }
            }
            "accumulates" if value != 0.0 => Err(RuleError::AccumulatingMean { rule: Self::NAME }),
            "accumulates" => Ok(()),
            _ => self.rule.set(name, value),
        }
    }

    fn check(&self) -> Result<(), RuleError> {
        if self.update_freq == 0 {
            return Err(invalid_update_freq(0.0).into());
        }
        reduced::check::<Self, R>(self)
    }
}

fn invalid_update_freq(value: f64) -> InvalidHyperparameter {
    let bound = "a whole number, at least 1";
    InvalidHyperparameter { rule: Svrg::<Sgd>::NAME, name: "update_freq", value, bound }
}

#[cfg(test)]
mod tests {
    use super::super::{
        AdaGrad, Correction, GroupAdaGrad, Idle, IdleMap, LazyUpdate, ReducedState, Saga, Sgd,
        StateBlock, Step,
    };
    use super::*;

    #[test]
    fn settings_by_name() {
        let mut rule = Svrg::<Sgd>::default();
        rule.set("update_freq", 5.0).unwrap();
        rule.set("accumulates", 0.0).unwrap();
        rule.set("momentum", 0.5).unwrap();
        assert_eq!((rule.update_freq, rule.rule.momentum), (5, 0.5));
        let refused = rule.set("accumulates", 1.0).unwrap_err();
        assert_eq!(refused, RuleError::AccumulatingMean { rule: "svrg" });
        for value in [0.5, -1.0, f64::NAN] {
            let error = rule.set("update_freq", value).unwrap_err();
            assert!(matches!(error, RuleError::Hyperparameter(_)), "{error}");
        }
    }

    #[test]
    fn a_step_by_hand() {
        let rule = Svrg { update_freq: 1, rule: Sgd { learning_rate: 0.5, ..Sgd::default() } };
        let step = rule.step::<f64>(0.5, 1.0, 0);
        let (mut w, mut state) = (2.0, ReducedState::default());
        // The mean of three samples, of which two have this weight.
        for grad in [3.0, 6.0] {
            step.with_correction(Correction::Gather { share: 1.0 / 3.0 })
                .update(&mut w, &mut state, grad);
        }
        assert_eq!((w, state.mean), (2.0, 3.0));
        step.update(&mut w, &mut state, 1.0);
        assert_eq!((w, state.mean), (2.0 - 0.5 * (1.0 + 3.0), 3.0));
        // The mean is that of the snapshot, whatever gradients come after it.
        step.with_correction(Correction::Apply { share: 0.5 }).update(&mut w, &mut state, -2.0);
        assert_eq!((w, state.mean), (0.0 - 0.5 * (-2.0 + 3.0), 3.0));
    }

    /// A pass that overflows leaves nothing behind for the next one.
    #[test]
    fn a_mean_that_is_not_finite_ends_with_it() {
        type OfSgd = <Svrg<Sgd> as UpdateRule>::Step<f64>;
        for (mean, factor, scaled) in
            [(3.0, 0.5, 1.5), (3.0, 0.0, 0.0), (f64::INFINITY, 0.0, 0.0), (f64::NAN, 0.0, 0.0)]
        {
            let mut state = ReducedState { inner: [1.0], mean };
            OfSgd::scale_mean(&mut state, factor);
            assert_eq!((state.inner, state.mean), ([1.0], scaled));
        }
    }

    /// k steps with the mean gradient alone, one by one, are the k-th power of the map.
    #[test]
    fn idle_steps_are_steps_with_the_mean_gradient() {
        let plain = Sgd { learning_rate: 0.25, ..Sgd::default() };
        let decay = Sgd { weight_decay: 0.125, ..plain.clone() };
        let momentum = Sgd { momentum: 0.5, ..decay.clone() };
        let nesterov = Sgd { nesterov: true, ..momentum.clone() };
        let clipped = Sgd { clip_gradient: Some(0.25), rescale_grad: 0.5, ..momentum.clone() };
        for rule in [plain, decay, momentum, nesterov, clipped] {
            let step = Svrg { update_freq: 1, rule }.step::<f64>(0.25, 1.0, 0);
            let Idle::Closed(map) = step.idle() else { panic!("{step:?} is not closed") };
            let start = (1.5, ReducedState { inner: [-0.5], mean: 0.75 });
            let (mut w, mut state) = start;
            for k in 1..50 {
                step.update(&mut w, &mut state, 0.0);
                let (mut w_mapped, mut mapped) = start;
                step.apply_idle(&map.power(k), &mut w_mapped, &mut mapped);
                assert!((w - w_mapped).abs() < 1e-13, "{step:?}: {w} {w_mapped}");
                let far = |(a, b): (f64, f64)| (a - b).abs() > 1e-13;
                assert!(!state.values().zip(mapped.values()).any(far), "{step:?}");
            }
        }
    }

    #[test]
    fn rules_without_a_closed_form_or_with_a_state_of_rows_are_refused() {
        let mut adagrad = Svrg::<AdaGrad>::default();
        assert_eq!(adagrad.check(), Err(RuleError::NoClosedForm { rule: "svrg" }));
        adagrad.set_lazy_update(LazyUpdate::Dense);
        adagrad.check().unwrap();
        let by_row = Saga::<GroupAdaGrad>::default().check().unwrap_err();
        assert_eq!(by_row, RuleError::StateOfRow { rule: "saga", inner: "group-adagrad" });
        let penalised = Svrg { update_freq: 1, rule: Sgd { l1: 0.1, ..Sgd::default() } };
        assert_eq!(penalised.check(), Err(RuleError::NoClosedForm { rule: "svrg" }));
        let message =
            Svrg { update_freq: 1, rule: Sgd { momentum: 1.0, ..Sgd::default() } }.check();
        assert_eq!(
            message.unwrap_err().to_string(),
            "svrg: `momentum` is 1, but must be in [0, 1)"
        );
        assert_eq!(<Svrg<Sgd> as UpdateRule>::STATES, ["velocity", "mean gradient"]);
    }
}
