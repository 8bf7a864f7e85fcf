//! An updater without the type of its rule.

use super::program::{TrainedDense, TrainedTable};
use super::table_rows::TableRows;
use crate::error::Result;
use crate::optimizer::{
    Beside, DenseStates, General, OptimizerError, Plain, RowUpdater, UpdateKind, Updater, Weights,
};
use nnz_optim::{BuiltIn, UpdateRule, for_built_in_rules};
use sparse_core::element::Float;
use sparse_core::passes::MOST_PARAMETERS;
use sparse_core::storage::ElementType;
use std::any::{Any, TypeId};

/// What [`Lender::lend`] calls with the parameters that it lends.
type Body<'f, T> = dyn FnMut(
        &mut [Option<&mut dyn TableRows<T>>],
        &mut [TrainedDense<'_, T>],
        &mut [Option<&mut dyn DenseRows<T>>],
    ) -> Result<()>
    + 'f;

/// An [`Updater`] without the type of its rule. Only that implements it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an updater of parameters of `{T}`",
    note = "pass an `Updater`: a trainer makes it of a rule and a model"
)]
pub trait AnyUpdater<T: Float<Accumulator = T>>: Lender<T> {}

impl<R: UpdateRule, T: Float<Accumulator = T>> AnyUpdater<T> for Updater<R, T> {}

/// The methods of [`AnyUpdater`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an updater of parameters of `{T}`",
    note = "pass an `Updater`: a trainer makes it of a rule and a model"
)]
#[expect(private_interfaces, reason = "only the engine calls the methods that lend")]
pub trait Lender<T: Float<Accumulator = T>> {
    /// As [`Updater::records_outputs`].
    fn records_outputs(&self) -> bool;

    /// As [`Updater::begin_step`].
    fn begin_step(&mut self) -> Result<()>;

    /// As [`Updater::end_step`].
    fn end_step(&mut self) -> Result<()>;

    /// As [`Updater::begin_steps`].
    fn begin_steps(&mut self, at_most: usize) -> Result<usize>;

    /// As [`Updater::end_steps`].
    fn end_steps(&mut self, made: usize) -> Result<()>;

    /// Calls `body` with rows of tables and states of dense parameters, for steps that have begun.
    /// `updates` says whether these end with it, or rows are only read.
    fn lend(
        &mut self,
        tables: &mut [TrainedTable<'_, T>],
        dense: &mut [TrainedDense<'_, T>],
        updates: bool,
        body: &mut Body<'_, T>,
    ) -> Result<()>;

    /// As [`Updater::apply_dense`].
    fn apply_dense(&mut self, parameter: usize, values: &mut [T], gradient: &[T]) -> Result<()>;
}

/// The states of a dense parameter under a rule.
pub(crate) trait DenseRows<T> {
    /// One step: every value by its gradient. O(values).
    fn update(&mut self, values: &mut [T], gradient: &[T]);

    /// One step with a gradient that is not made: the products of all elements of `left` with all
    /// of `right`. O(values).
    fn update_outer(&mut self, values: &mut [T], left: &[T], right: &[T]);
}

impl<R: UpdateRule, T: Float<Accumulator = T>> DenseRows<T> for DenseStates<R, T> {
    fn update(&mut self, values: &mut [T], gradient: &[T]) {
        DenseStates::update(self, values, gradient);
    }

    fn update_outer(&mut self, values: &mut [T], left: &[T], right: &[T]) {
        DenseStates::update_outer(self, values, left, right);
    }
}

#[expect(private_interfaces, reason = "only the engine calls the methods that lend")]
impl<R: UpdateRule, T: Float<Accumulator = T>> Lender<T> for Updater<R, T> {
    fn records_outputs(&self) -> bool {
        Updater::records_outputs(self)
    }

    fn begin_step(&mut self) -> Result<()> {
        Updater::begin_step(self)
    }

    fn end_step(&mut self) -> Result<()> {
        Updater::end_step(self)
    }

    fn begin_steps(&mut self, at_most: usize) -> Result<usize> {
        Updater::begin_steps(self, at_most)
    }

    fn end_steps(&mut self, made: usize) -> Result<()> {
        Updater::end_steps(self, made)
    }

    fn lend(
        &mut self,
        tables: &mut [TrainedTable<'_, T>],
        dense: &mut [TrainedDense<'_, T>],
        updates: bool,
        body: &mut Body<'_, T>,
    ) -> Result<()> {
        match tables.len().max(dense.len()) {
            ..=4 => lend_dense::<R, T, 4>(self, tables, dense, updates, body),
            5..=16 => lend_dense::<R, T, 16>(self, tables, dense, updates, body),
            17..=MOST_PARAMETERS => {
                lend_dense::<R, T, MOST_PARAMETERS>(self, tables, dense, updates, body)
            }
            count => Err(OptimizerError::TooMany { count, most: MOST_PARAMETERS }.into()),
        }
    }

    fn apply_dense(&mut self, parameter: usize, values: &mut [T], gradient: &[T]) -> Result<()> {
        Updater::apply_dense(self, parameter, values, gradient)
    }
}

/// Takes the states of dense parameters out, and puts them back.
fn lend_dense<R: UpdateRule, T: Float<Accumulator = T>, const N: usize>(
    updater: &mut Updater<R, T>,
    tables: &mut [TrainedTable<'_, T>],
    dense: &mut [TrainedDense<'_, T>],
    updates: bool,
    body: &mut Body<'_, T>,
) -> Result<()> {
    let mut states: [Option<DenseStates<R, T>>; N] = [const { None }; N];
    for (states, dense) in states.iter_mut().zip(dense.iter_mut()) {
        *states = Some(updater.take_states(dense.parameter, dense.values)?);
    }
    let result = lend_tables::<R, T, N>(updater, tables, dense, &mut states, updates, body);
    for (states, dense) in states.into_iter().flatten().zip(dense.iter()) {
        updater.put_states(dense.parameter, states)?;
    }
    result
}

fn lend_tables<R: UpdateRule, T: Float<Accumulator = T>, const N: usize>(
    updater: &mut Updater<R, T>,
    tables: &mut [TrainedTable<'_, T>],
    dense: &mut [TrainedDense<'_, T>],
    states: &mut [Option<DenseStates<R, T>>; N],
    updates: bool,
    body: &mut Body<'_, T>,
) -> Result<()> {
    let is_plain = |table: &TrainedTable<'_, T>| updater.is_plain(table.parameter);
    let is_beside = |table: &mut TrainedTable<'_, T>| {
        updater.is_beside(table.parameter, &Weights::Table(table.table))
    };
    // The first condition is known to the compiler, which makes nothing of what then cannot happen.
    if Updater::<R, T>::OPTIONAL_STATE && tables.iter().all(is_plain) {
        lend_as::<R, T, Plain, N>(updater, tables, dense, states, updates, body)
    } else if Updater::<R, T>::OPTIONAL_STATE && !tables.iter_mut().all(is_beside) {
        lend_as::<R, T, General, N>(updater, tables, dense, states, updates, body)
    } else {
        lend_as::<R, T, Beside, N>(updater, tables, dense, states, updates, body)
    }
}

fn lend_as<R: UpdateRule, T: Float<Accumulator = T>, K: UpdateKind, const N: usize>(
    updater: &mut Updater<R, T>,
    tables: &mut [TrainedTable<'_, T>],
    dense: &mut [TrainedDense<'_, T>],
    states: &mut [Option<DenseStates<R, T>>; N],
    updates: bool,
    body: &mut Body<'_, T>,
) -> Result<()> {
    let tables = tables.iter_mut().map(|table| (table.parameter, &mut *table.table));
    let mut rows: [Option<RowUpdater<'_, R, T, K>>; N] = updater.rows_in_order::<K, N>(tables)?;
    let mut lent = rows.iter_mut();
    let mut lent: [Option<&mut dyn TableRows<T>>; N] = std::array::from_fn(|_| {
        lent.next().and_then(Option::as_mut).map(|rows| rows as &mut dyn TableRows<T>)
    });
    let mut states = states.iter_mut();
    let mut states: [Option<&mut dyn DenseRows<T>>; N] = std::array::from_fn(|_| {
        states.next().and_then(Option::as_mut).map(|states| states as &mut dyn DenseRows<T>)
    });
    body(&mut lent, dense, &mut states)?;
    if updates {
        rows.into_iter().flatten().for_each(RowUpdater::finish);
    }
    Ok(())
}

/// An updater without the type of its rule. For a rule of the library this is compiled in the
/// library: a crate that calls it compiles nothing of the rule's loops.
///
/// # Errors
///
/// [`OptimizerError::NotBuiltIn`] for a rule of another crate that says it is one of the library.
#[inline]
pub fn erased<R: UpdateRule, T: Float<Accumulator = T>>(
    updater: &mut Updater<R, T>,
) -> Result<&mut (dyn AnyUpdater<T> + 'static)> {
    macro_rules! try_built_in {
        ($($Rule:ident),* $(,)?) => {
            $(
                // Constants of their own, so that nothing is compiled for what they exclude.
                if const { matches!(R::BUILT_IN, Some(BuiltIn::$Rule)) && is_f32::<T>() } {
                    return of_library::<_, T, Updater<nnz_optim::$Rule, f32>, f32>(updater);
                }
                if const { matches!(R::BUILT_IN, Some(BuiltIn::$Rule)) && is_f64::<T>() } {
                    return of_library::<_, T, Updater<nnz_optim::$Rule, f64>, f64>(updater);
                }
            )*
        };
    }
    for_built_in_rules!(try_built_in);
    if const { R::BUILT_IN.is_none() } {
        return Ok(updater);
    }
    Err(OptimizerError::NotBuiltIn { rule: R::NAME }.into())
}

const fn is_f32<T: Float>() -> bool {
    matches!(T::TYPE, ElementType::F32)
}

const fn is_f64<T: Float>() -> bool {
    matches!(T::TYPE, ElementType::F64)
}

/// An updater of a rule of the library, of which the library has the methods.
trait InLibrary<T: Float<Accumulator = T>> {
    fn erase(&mut self) -> &mut (dyn AnyUpdater<T> + 'static);
}

macro_rules! in_library {
    ($($Rule:ident),* $(,)?) => {
        $(
            in_library!($Rule: f32);
            in_library!($Rule: f64);
        )*
    };
    ($Rule:ident: $T:ty) => {
        impl InLibrary<$T> for Updater<nnz_optim::$Rule, $T> {
            #[inline(never)]
            fn erase(&mut self) -> &mut (dyn AnyUpdater<$T> + 'static) {
                self
            }
        }
    };
}

for_built_in_rules!(in_library);

/// `updater` as the type `L` that it has, erased, with the element type `T` that `E` is.
fn of_library<U, T, L, E>(updater: &mut U) -> Result<&mut (dyn AnyUpdater<T> + 'static)>
where
    U: Any + UpdaterName,
    T: Float<Accumulator = T>,
    E: Float<Accumulator = E>,
    L: InLibrary<E> + Any,
{
    let Some(updater) = (updater as &mut dyn Any).downcast_mut::<L>() else {
        return Err(OptimizerError::NotBuiltIn { rule: U::RULE }.into());
    };
    let erased = updater.erase();
    if TypeId::of::<dyn AnyUpdater<E>>() != TypeId::of::<dyn AnyUpdater<T>>() {
        return Err(OptimizerError::NotBuiltIn { rule: U::RULE }.into());
    }
    // SAFETY: the two are one type.
    Ok(unsafe {
        std::mem::transmute::<&mut (dyn AnyUpdater<E> + 'static), &mut (dyn AnyUpdater<T> + 'static)>(
            erased,
        )
    })
}

/// The name of the rule of an updater, for messages.
trait UpdaterName {
    const RULE: &'static str;
}

impl<R: UpdateRule, T: Float> UpdaterName for Updater<R, T> {
    const RULE: &'static str = R::NAME;
}
