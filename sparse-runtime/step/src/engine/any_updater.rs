//! An updater without the type of its rule: what a step under a rule needs of it.

use super::each_sample::Samples;
use super::hogwild;
use super::one_column;
use super::one_pass::OnePass;
use super::program::{Output, Program, Read, Source, TrainedDense, TrainedTable};
use super::sink::{Body, Sink};
use super::table_rows::TableRows;
use super::tables::Lent;
use crate::error::Result;
use crate::in_library_by_rule;
use crate::model::RowSteps;
use crate::optimizer::{
    Beside, DenseStates, General, OptimizerError, Plain, RowUpdater, UpdateKind, Updater, Weights,
    WithSlots,
};
use nnz_optim::UpdateRule;
use sparse_core::element::Float;
use sparse_core::passes::MOST_PARAMETERS;

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
pub trait Lender<T: Float<Accumulator = T>>: Sink<T> {
    /// As [`Updater::begin_steps`].
    fn begin_steps(&mut self, at_most: usize) -> Result<usize>;

    /// As [`Updater::end_steps`].
    fn end_steps(&mut self, made: usize) -> Result<()>;

    /// A step for each of the samples, which have begun: see [`Samples::steps`].
    fn step_samples(
        &mut self,
        program: &mut Program<'_, '_, T>,
        samples: &mut Samples<'_, '_, T>,
    ) -> Result<RowSteps>;

    /// Whether rows of a table have slots for sums beside their weights, so that a step on one
    /// sample is to be one on a batch: the form of the table stays.
    fn have_slots(&self, tables: &mut [TrainedTable<'_, T>]) -> bool;
}

#[expect(private_interfaces, reason = "only the engine calls the methods that lend")]
impl<R: UpdateRule, T: Float<Accumulator = T>> Lender<T> for Updater<R, T> {
    fn begin_steps(&mut self, at_most: usize) -> Result<usize> {
        Updater::begin_steps(self, at_most)
    }

    fn end_steps(&mut self, made: usize) -> Result<()> {
        Updater::end_steps(self, made)
    }

    fn step_samples(
        &mut self,
        program: &mut Program<'_, '_, T>,
        samples: &mut Samples<'_, '_, T>,
    ) -> Result<RowSteps> {
        if const { R::RACES } {
            return match program.tables.len().max(program.dense.len()) {
                ..=4 => hogwild::steps::<R, T, 4>(self, program, samples),
                5..=MOST_PARAMETERS => {
                    hogwild::steps::<R, T, MOST_PARAMETERS>(self, program, samples)
                }
                count => Err(OptimizerError::TooMany { count, most: MOST_PARAMETERS }.into()),
            };
        }
        let Program { reads, tables, dense, n_samples, .. } = program;
        let mut steps = RowSteps::default();
        let mut borrower = BySamples { reads, n_samples: *n_samples, samples, steps: &mut steps };
        lend(self, tables, dense, true, &mut borrower)?;
        Ok(steps)
    }

    fn have_slots(&self, tables: &mut [TrainedTable<'_, T>]) -> bool {
        tables.iter_mut().any(|TrainedTable { parameter, table, .. }| {
            Updater::keeps_slots(self, *parameter, &Weights::Table(table))
        })
    }
}

#[expect(private_interfaces, reason = "only the engine calls the methods that lend")]
impl<R: UpdateRule, T: Float<Accumulator = T>> Sink<T> for Updater<R, T> {
    fn records_outputs(&self) -> bool {
        Updater::records_outputs(self)
    }

    fn begin_step(&mut self) -> Result<()> {
        Updater::begin_step(self)
    }

    fn end_step(&mut self) -> Result<()> {
        Updater::end_step(self)
    }

    fn sum_samples(
        &mut self,
        program: &mut Program<'_, '_, T>,
        pass: &mut OnePass<'_, '_, T>,
    ) -> Option<Result<()>> {
        // Shared tables are lent to steps of one sample alone.
        if const { R::RACES } {
            return None;
        }
        let Program { reads, tables, dense, outputs, n_samples, .. } = program;
        let mut borrower = BySums { reads, n_samples: *n_samples, dense, outputs, pass };
        Some(lend(self, tables, &mut [], true, &mut borrower))
    }

    fn with_tables(
        &mut self,
        tables: &mut [TrainedTable<'_, T>],
        updates: bool,
        body: &mut Body<'_, T>,
    ) -> Result<()> {
        lend(self, tables, &mut [], updates, &mut AsObjects { body })
    }

    fn apply_dense(&mut self, parameter: usize, values: &mut [T], gradient: &[T]) -> Result<()> {
        Updater::apply_dense(self, parameter, values, gradient)
    }
}

/// What is done with rows of tables and states of dense parameters that an updater lends.
trait Borrower<R: UpdateRule, T: Float<Accumulator = T>> {
    /// Whether tables may have [slots](WithSlots).
    const SLOTS: bool = false;

    /// The samples, and the entries that name rows of a table, if it may have slots.
    fn entries_of(&self, table: usize) -> Option<(usize, usize)> {
        let _ = table;
        None
    }

    /// Each table is among `tables` or, with slots, among `slotted`.
    fn call<'t, K: UpdateKind, S: UpdateKind>(
        &mut self,
        tables: &mut Lent<'t, R, T, K>,
        slotted: &mut Lent<'t, R, T, S>,
        dense: &mut [TrainedDense<'_, T>],
        states: &mut [Option<DenseStates<R, T>>],
    ) -> Result<()>;
}

/// A step for each of some samples.
struct BySamples<'s, 'a, 'n, 'f, 'b, 'm, T: Float<Accumulator = T>> {
    reads: &'s [Read<'b, 'm, T>],
    n_samples: usize,
    samples: &'s mut Samples<'n, 'f, T>,
    steps: &'a mut RowSteps,
}

impl<R: UpdateRule, T: Float<Accumulator = T>> Borrower<R, T>
    for BySamples<'_, '_, '_, '_, '_, '_, T>
{
    fn call<'t, K: UpdateKind, S: UpdateKind>(
        &mut self,
        tables: &mut Lent<'t, R, T, K>,
        _: &mut Lent<'t, R, T, S>,
        dense: &mut [TrainedDense<'_, T>],
        states: &mut [Option<DenseStates<R, T>>],
    ) -> Result<()> {
        *self.steps = self.samples.steps(self.reads, self.n_samples, tables, dense, states)?;
        Ok(())
    }
}

/// One step on a batch by one thread.
struct BySums<'s, 'o, 'd, 'n, 'f, 'b, 'm, T: Float<Accumulator = T>> {
    reads: &'s [Read<'b, 'm, T>],
    n_samples: usize,
    dense: &'s [TrainedDense<'d, T>],
    outputs: &'s mut [Output<'o, T>],
    pass: &'s mut OnePass<'n, 'f, T>,
}

impl<R: UpdateRule, T: Float<Accumulator = T>> Borrower<R, T>
    for BySums<'_, '_, '_, '_, '_, '_, '_, T>
{
    const SLOTS: bool = true;

    fn entries_of(&self, table: usize) -> Option<(usize, usize)> {
        let is_of =
            |read: &&Read<'_, '_, T>| matches!(read.source, Source::Trained(of) if of == table);
        let mut reads = self.reads.iter().filter(is_of);
        let (read, None) = (reads.next()?, reads.next()) else { return None };
        // The form of tables that may have slots.
        one_column::entries_of(std::slice::from_ref(read), read.size)
            .map(|_| (self.n_samples, read.refs.n_entries()))
    }

    fn call<'t, K: UpdateKind, S: UpdateKind>(
        &mut self,
        tables: &mut Lent<'t, R, T, K>,
        slotted: &mut Lent<'t, R, T, S>,
        _: &mut [TrainedDense<'_, T>],
        _: &mut [Option<DenseStates<R, T>>],
    ) -> Result<()> {
        let tables = (tables, slotted);
        self.pass.run(self.reads, self.n_samples, tables, self.dense, self.outputs)
    }
}

/// Tables as objects.
struct AsObjects<'s, 'f, T> {
    body: &'s mut Body<'f, T>,
}

impl<R: UpdateRule, T: Float<Accumulator = T>> Borrower<R, T> for AsObjects<'_, '_, T> {
    const SLOTS: bool = true;

    /// Tables that have slots keep them.
    fn entries_of(&self, _: usize) -> Option<(usize, usize)> {
        Some((1, 1))
    }

    fn call<'t, K: UpdateKind, S: UpdateKind>(
        &mut self,
        tables: &mut Lent<'t, R, T, K>,
        slotted: &mut Lent<'t, R, T, S>,
        _: &mut [TrainedDense<'_, T>],
        _: &mut [Option<DenseStates<R, T>>],
    ) -> Result<()> {
        let mut lent = tables.iter_mut().zip(slotted);
        let mut objects: [Option<&mut dyn TableRows<T>>; MOST_PARAMETERS] =
            std::array::from_fn(|_| match lent.next()? {
                (Some(rows), _) => Some(rows as &mut dyn TableRows<T>),
                (None, Some(rows)) => Some(rows as &mut dyn TableRows<T>),
                (None, None) => None,
            });
        (self.body)(&mut objects)
    }
}

/// Lends the rows of tables and the states of dense parameters.
fn lend<R: UpdateRule, T: Float<Accumulator = T>>(
    updater: &mut Updater<R, T>,
    tables: &mut [TrainedTable<'_, T>],
    dense: &mut [TrainedDense<'_, T>],
    updates: bool,
    borrower: &mut impl Borrower<R, T>,
) -> Result<()> {
    match tables.len().max(dense.len()) {
        ..=4 => lend_dense::<R, T, 4>(updater, tables, dense, updates, borrower),
        5..=MOST_PARAMETERS => {
            lend_dense::<R, T, MOST_PARAMETERS>(updater, tables, dense, updates, borrower)
        }
        count => Err(OptimizerError::TooMany { count, most: MOST_PARAMETERS }.into()),
    }
}

/// Takes the states of dense parameters out, and puts them back.
fn lend_dense<R: UpdateRule, T: Float<Accumulator = T>, const N: usize>(
    updater: &mut Updater<R, T>,
    tables: &mut [TrainedTable<'_, T>],
    dense: &mut [TrainedDense<'_, T>],
    updates: bool,
    borrower: &mut impl Borrower<R, T>,
) -> Result<()> {
    let mut states: [Option<DenseStates<R, T>>; N] = [const { None }; N];
    for (states, dense) in states.iter_mut().zip(dense.iter_mut()) {
        *states = Some(updater.take_states(dense.parameter, dense.values)?);
    }
    let result = lend_tables(updater, tables, dense, &mut states, updates, borrower);
    for (states, dense) in states.into_iter().flatten().zip(dense.iter()) {
        updater.put_states(dense.parameter, states)?;
    }
    result
}

fn lend_tables<R: UpdateRule, T: Float<Accumulator = T>, B: Borrower<R, T>, const N: usize>(
    updater: &mut Updater<R, T>,
    tables: &mut [TrainedTable<'_, T>],
    dense: &mut [TrainedDense<'_, T>],
    states: &mut [Option<DenseStates<R, T>>; N],
    updates: bool,
    borrower: &mut B,
) -> Result<()> {
    let is_plain = |table: &TrainedTable<'_, T>| updater.is_plain(table.parameter);
    let is_beside = |table: &mut TrainedTable<'_, T>| {
        updater.is_beside(table.parameter, &Weights::Table(table.table))
    };
    macro_rules! lend_as {
        ($K:ty, $S:ty) => {
            if const { B::SLOTS } {
                lend_as::<R, T, $K, $S, B, N>(updater, tables, dense, states, updates, borrower)
            } else {
                lend_as::<R, T, $K, $K, B, N>(updater, tables, dense, states, updates, borrower)
            }
        };
    }
    // The first condition is known to the compiler, which makes nothing of what then cannot happen.
    if Updater::<R, T>::OPTIONAL_STATE && tables.iter().all(is_plain) {
        lend_as!(Plain, WithSlots<Plain>)
    } else if Updater::<R, T>::OPTIONAL_STATE && !tables.iter_mut().all(is_beside) {
        lend_as!(General, General)
    } else {
        lend_as!(Beside, WithSlots<Beside>)
    }
}

fn lend_as<R, T, K, S, B, const N: usize>(
    updater: &mut Updater<R, T>,
    tables: &mut [TrainedTable<'_, T>],
    dense: &mut [TrainedDense<'_, T>],
    states: &mut [Option<DenseStates<R, T>>; N],
    updates: bool,
    borrower: &mut B,
) -> Result<()>
where
    R: UpdateRule,
    T: Float<Accumulator = T>,
    K: UpdateKind,
    S: UpdateKind,
    B: Borrower<R, T>,
{
    let (n_tables, n_dense) = (tables.len(), dense.len());
    let mut n_entries = [None; N];
    if S::SLOTS {
        for (place, table) in tables.iter_mut().enumerate() {
            n_entries[place] = borrower.entries_of(place).and_then(|counts| {
                let wants = updater.wants_slots(table.parameter, table.table, counts);
                wants.then_some(counts.1)
            });
        }
    }
    let tables = tables.iter_mut().zip(n_entries);
    let tables = tables.map(|(table, n)| (table.parameter, &mut *table.table, n));
    let (mut rows, mut slotted) = updater.rows_in_order::<K, S, N>(tables)?;
    let states = &mut states[..n_dense];
    borrower.call(&mut rows[..n_tables], &mut slotted[..n_tables], dense, states)?;
    if updates {
        rows.into_iter().flatten().for_each(RowUpdater::finish);
        slotted.into_iter().flatten().for_each(RowUpdater::finish);
    }
    Ok(())
}

/// An updater without the type of its rule, whose loops are then those that
/// [the library has](crate::in_library).
#[inline]
pub fn erased<R: UpdateRule, T: Float<Accumulator = T>>(
    updater: &mut Updater<R, T>,
) -> &mut (dyn AnyUpdater<T> + 'static) {
    in_library_by_rule!(<R, T> as_any::<R, T> => (
        updater: &mut Updater<R, T>,
    ) -> &mut (dyn AnyUpdater<T> + 'static))
}

fn as_any<R: UpdateRule, T: Float<Accumulator = T>>(
    updater: &mut Updater<R, T>,
) -> &mut (dyn AnyUpdater<T> + 'static) {
    updater
}
