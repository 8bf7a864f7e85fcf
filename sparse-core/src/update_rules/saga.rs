//! SAGA: variance reduction by the gradients last seen.

use super::reduced::{self, VarianceReduction, of_inner_rule};
use super::{RuleError, UpdateRule};

/// SAGA: any other rule, given gradients whose noise vanishes as training converges, without passes over the data in between.
///
/// What each sample's loss was derived to when it was last seen is kept, `αᵢ`, and the mean `μ` of the gradients that follow from it. A step
/// hands
///
/// ```text
/// g(w) - g(α) + μ
/// ```
///
/// of its batch to `rule`, then puts the new derivatives in the place of the old ones, and into `μ`. All start at 0. Idle steps are those of
/// [`Svrg`](super::Svrg).
///
/// The memory is one number for each sample and column of the scores. That is enough where the gradient of a sample is its features times
/// such a number: models that are generalised linear in csr features, of data whose rows are known by number.
///
/// Source: Defazio, Bach and Lacoste-Julien, "SAGA: a fast incremental gradient method with support for non-strongly convex composite
/// objectives", NIPS 2014.
#[derive(Clone, Debug, Default, PartialEq)]
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
