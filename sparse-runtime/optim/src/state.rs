//! What a weight, or a row of weights, carries from step to step.

use super::reduced::ReducedState;
use sparse_core::element::Float;
use std::fmt::Debug;

/// A fixed number of values that a weight carries: `()`, or an array. They lie in the same memory
/// as the weights, which is zero before anybody has written it, so that there are no other states
/// than these. A rule may [mean](crate::Step::implied_state) something else by zeros.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the state of a weight of `{T}`",
    note = "a weight carries nothing, `()`, or a fixed number of values: `[{T}; 2]`"
)]
pub trait StateBlock<T>: sealed::Sealed + Copy + Default + Debug + Send + Sync + 'static {
    /// True where all weights of a row share one state, see [`OfRow`].
    const BY_ROW: bool = false;

    /// The values, in order, as checkpoints write them.
    fn values(&self) -> impl Iterator<Item = T>;
    /// The values, for loading.
    fn values_mut<'a>(&'a mut self) -> impl Iterator<Item = &'a mut T>
    where
        T: 'a;
}

mod sealed {
    /// Of types whose bits may all be zero.
    pub trait Sealed {}
    impl Sealed for () {}
    impl<T: super::Float, const N: usize> Sealed for [T; N] {}
    impl<S: Sealed> Sealed for super::OfRow<S> {}
    impl<S: Sealed, T: super::Float> Sealed for super::ReducedState<S, T> {}
}

/// A state that the weights of a row share. A step changes it once, by
/// [`Step::begin_row`](crate::Step::begin_row); idle steps of such a rule change nothing, or have
/// no closed form.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(transparent)]
pub struct OfRow<S>(pub S);

impl<T, S: StateBlock<T>> StateBlock<T> for OfRow<S> {
    const BY_ROW: bool = true;

    fn values(&self) -> impl Iterator<Item = T> {
        self.0.values()
    }

    fn values_mut<'a>(&'a mut self) -> impl Iterator<Item = &'a mut T>
    where
        T: 'a,
    {
        self.0.values_mut()
    }
}

impl<T> StateBlock<T> for () {
    fn values(&self) -> impl Iterator<Item = T> {
        std::iter::empty()
    }

    fn values_mut<'a>(&'a mut self) -> impl Iterator<Item = &'a mut T>
    where
        T: 'a,
    {
        std::iter::empty()
    }
}

impl<T: Float, const N: usize> StateBlock<T> for [T; N]
where
    [T; N]: Default,
{
    fn values(&self) -> impl Iterator<Item = T> {
        self.iter().copied()
    }

    fn values_mut<'a>(&'a mut self) -> impl Iterator<Item = &'a mut T>
    where
        T: 'a,
    {
        self.iter_mut()
    }
}
