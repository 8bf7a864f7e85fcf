//! Where what a batch adds to the gradients of parameters goes: into updates under a rule
//! ([`Updater`](crate::optimizer::Updater)), or into the gradients themselves
//! ([`GradientSink`](super::gradient_sink::GradientSink)).

use super::one_pass::OnePass;
use super::program::{Program, TrainedTable};
use super::table_rows::TableRows;
use crate::error::Result;
use sparse_core::element::Float;

/// What [`Sink::with_tables`] calls with the tables that it lends.
pub(super) type Body<'f, T> = dyn FnMut(&mut [Option<&mut dyn TableRows<T>>]) -> Result<()> + 'f;

/// What takes the sums over a batch.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not take gradients of `{T}`",
    note = "the engine gives them to an `Updater`, or collects them"
)]
#[expect(private_interfaces, reason = "only the engine calls the methods that lend")]
pub trait Sink<T: Float<Accumulator = T>> {
    /// Whether the outputs of the batch are computed as well.
    fn records_outputs(&self) -> bool;

    /// Before anything is read.
    fn begin_step(&mut self) -> Result<()>;

    /// After all sums were taken.
    fn end_step(&mut self) -> Result<()>;

    /// Reads, computes and sums all samples on one thread, and takes the sums of tables: see
    /// [`OnePass`]. `None` where the sink has no such pass, before anything is done.
    fn sum_samples(
        &mut self,
        program: &mut Program<'_, '_, T>,
        pass: &mut OnePass<'_, '_, T>,
    ) -> Option<Result<()>>;

    /// Calls `body` with the rows of tables, for a step that has begun. `updates` says whether it
    /// ends with this, or rows are only read.
    fn with_tables(
        &mut self,
        tables: &mut [TrainedTable<'_, T>],
        updates: bool,
        body: &mut Body<'_, T>,
    ) -> Result<()>;

    /// Takes the gradient of a dense parameter.
    fn apply_dense(&mut self, parameter: usize, values: &mut [T], gradient: &[T]) -> Result<()>;
}
