//! Kinds of updates that loops are compiled for, and the types that a rule has on a weight.

use nnz_optim::{IdleHistory, Step, UpdateRule};
use sparse_core::element::Float;
use std::marker::PhantomData;

/// What a weight carries from step to step under rule `R`, in the accumulator of `T`.
pub type StateOf<R, T> = <StepOf<R, T> as Step<<T as Float>::Accumulator>>::State;

/// One step of rule `R` on a weight of type `T`: arithmetic and state are in its accumulator.
pub(super) type StepOf<R, T> = <R as UpdateRule>::Step<<T as Float>::Accumulator>;

/// What idle steps of rule `R` do to a weight of type `T`.
pub(super) type IdleOf<R, T> = <StepOf<R, T> as Step<<T as Float>::Accumulator>>::Idle;

/// The idle steps of rule `R` on weights of type `T` so far.
pub(super) type HistoryOf<R, T> = IdleHistory<IdleOf<R, T>, <T as Float>::Accumulator>;

/// `change` on a weight in the accumulator, rounded once.
#[inline(always)]
pub(super) fn on_weight<T: Float>(weight: &mut T, change: impl FnOnce(&mut T::Accumulator)) {
    let mut wide = weight.widen();
    change(&mut wide);
    *weight = T::narrow(wide);
}

/// How much a [`RowUpdater`](super::RowUpdater) can be asked to do, known to the compiler:
/// [`General`], [`Beside`] or [`Plain`], the latter two [`WithSlots`] as well.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a kind of update",
    note = "the kinds are `Plain`, `Beside` and `General`, which the updater chooses"
)]
pub trait UpdateKind: sealed::Sealed + Copy + std::fmt::Debug + 'static {
    /// True where an update is `weight += factor · grad` and rows never need a catch-up.
    const PLAIN: bool;
    /// True where the states of a row lie beside its weights.
    const BESIDE: bool;
    /// True where a slot for the sum of a batch lies beside the weights of a row.
    const SLOTS: bool = false;
}

/// Any rule: settles rows where that is needed, carries state.
#[derive(Clone, Copy, Debug)]
pub struct General;

/// Any rule with state, which lies beside the weights of each row, in a
/// [`Table`](nnz_arrays::parameter_memory::Table).
#[derive(Clone, Copy, Debug)]
pub struct Beside;

/// A rule that is just `weight += factor · grad` (SGD without momentum, decay and clipping): a
/// load, a multiplication, an addition and a store for each weight.
#[derive(Clone, Copy, Debug)]
pub struct Plain;

/// The rows of another kind, each with a slot beside its weights, by which a batch finds the sum of
/// its gradients.
#[derive(Clone, Copy, Debug)]
pub struct WithSlots<K>(PhantomData<K>);

impl UpdateKind for WithSlots<Beside> {
    const PLAIN: bool = false;
    const BESIDE: bool = true;
    const SLOTS: bool = true;
}

impl UpdateKind for WithSlots<Plain> {
    const PLAIN: bool = true;
    const BESIDE: bool = false;
    const SLOTS: bool = true;
}

impl UpdateKind for General {
    const PLAIN: bool = false;
    const BESIDE: bool = false;
}

impl UpdateKind for Beside {
    const PLAIN: bool = false;
    const BESIDE: bool = true;
}

impl UpdateKind for Plain {
    const PLAIN: bool = true;
    const BESIDE: bool = false;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Beside {}
    impl Sealed for super::General {}
    impl Sealed for super::Plain {}
    impl Sealed for super::WithSlots<super::Beside> {}
    impl Sealed for super::WithSlots<super::Plain> {}
}
