//! SAGA: variance reduction by the gradients last seen.

use super::reduced::{self, VarianceReduction, of_inner_rule};
use super::{RuleError, UpdateRule};
use serde::{Deserialize, Serialize};

/// SAGA: any other rule, given gradients whose noise vanishes as training converges, without passes
/// over the data in between.
///
/// What each sample's loss was derived to when it was last seen is kept, `αᵢ`, and the mean `μ` of
/// the gradients that follow from it. A step hands
///
/// ```text
/// g(w) - g(α) + μ
/// ```
///
/// of its batch to `rule`, then puts the new derivatives in the place of the old ones, and into
/// `μ`. All start at 0. Idle steps are those of [`Svrg`](super::Svrg).
///
/// The memory is one number for each sample and column of the scores. That is enough where the
/// gradient of a sample is its features times such a number: models that are generalised linear in
/// csr features, of data whose rows are known by number.
///
/// Source: Defazio, Bach and Lacoste-Julien, "SAGA: a fast incremental gradient method with support
/// for non-strongly convex composite objectives", NIPS 2014.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Saga<R> {
    /// The rule that corrected gradients are handed to.
    pub rule: R,
}

impl<R: UpdateRule> UpdateRule for Saga<R> {
    of_inner_rule!("saga", learns: true);

    fn variance_reduction(&self) -> Option<VarianceReduction> {
        Some(VarianceReduction::LastSeen)
    }

    fn check(&self) -> Result<(), RuleError> {
        reduced::check::<Self, R>(self)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Correction, ReducedState, Sgd, Step};
    use super::*;

    #[test]
    fn a_step_by_hand() {
        let rule = Saga { rule: Sgd { learning_rate: 0.5, ..Sgd::default() } };
        let step = rule.step::<f64>(0.5, 1.0, 0);
        let (mut w, mut state) = (2.0, ReducedState { mean: 3.0, ..ReducedState::default() });
        // A new gradient takes the place of the old one in the mean, after the step.
        step.with_correction(Correction::Apply { share: 0.5 }).update(&mut w, &mut state, -2.0);
        assert_eq!((w, state.mean), (2.0 - 0.5 * (-2.0 + 3.0), 3.0 + 0.5 * -2.0));
    }
}
