//! Update rules at work on parameters: state, catch-up, and the dense, exact and touched-rows updates.

use sparse_core::element::Float;
use sparse_core::update_rules::UpdateRule;
use std::marker::PhantomData;

/// An update rule at work on the parameters of one model.
#[derive(Clone, Debug)]
pub struct Updater<R: UpdateRule, T: Float> {
    rule: R,
    types: PhantomData<T>,
}
