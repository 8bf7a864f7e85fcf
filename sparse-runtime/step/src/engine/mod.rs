//! The engine: training steps by row programs, one engine for all models and rules.
//!
//! A *row program* ([`sparse_core::passes::RowProgram`]) says which table rows a sample reads, how
//! they are pooled, and what becomes of the pooled numbers. `graph!` emits it as a [`Program`] of
//! plain data and one [row function](RowFunction). The engine reads the rows, calls the function,
//! and updates the rows: sample by sample (`each_sample`), or with the sums over a
//! batch (`whole_batch`).
//!
//! Nothing here is generic in the model, and only `table_rows` and `any_updater` are generic in
//! the rule: they are compiled in this crate for the rules of the library
//! ([`erased`]). What a program costs in a user's crate is its row function.

mod any_updater;
mod dense_sums;
mod each_sample;
mod one_column;
mod one_pass;
mod one_row;
mod overlap;
mod pools;
mod program;
pub mod row_functions;
mod sample_rows;
mod table_reads;
mod table_rows;
mod tables;
mod terms;
mod whole_batch;

pub use self::any_updater::{AnyUpdater, erased};
pub use self::program::{
    DenseTerm, Output, Pool, Program, Read, Refs, RowFunction, Sample, Source, TrainedDense,
    TrainedTable,
};
pub(crate) use self::tables::Numbers;
pub(crate) use self::whole_batch::{Kept, Run};
pub use nnz_device::simd::wide;
pub use sparse_core::passes::are_few;

use crate::error::Result;
use crate::linear::Scratch;
use crate::model::RowSteps;
use nnz_arrays::in_library;
use nnz_arrays::kernels::Parallel;
use sparse_core::element::Float;

/// Trains on a batch: with `each`, a step for each of its samples, in order; else one step.
///
/// Steps of samples end early after a loss that is infinite or NaN, and write outputs for a batch
/// of one sample only. A step on a batch gives the mean of the samples' losses; `parallel` threads
/// share its work, and the bits do not depend on their number. O(elements read · cost of the rule)
/// beside the row function. Allocates nothing once the largest batch was seen.
///
/// # Errors
///
/// [`ModelError::Extent`](crate::model::ModelError::Extent) for a table whose shape is not that of
/// its reads, [`ModelError::Lookup`](crate::model::ModelError::Lookup) for an id beyond a table.
pub fn train<T: Float<Accumulator = T>>(
    program: &mut Program<'_, '_, T>,
    updater: &mut dyn AnyUpdater<T>,
    each: bool,
    parallel: Parallel,
    scratch: &mut Scratch<T>,
    row_function: &RowFunction<'_, T>,
) -> Result<RowSteps> {
    in_library!(<T> train_by::<T> => (
        program: &mut Program<'_, '_, T>,
        updater: &mut dyn AnyUpdater<T>,
        each: bool,
        parallel: Parallel,
        scratch: &mut Scratch<T>,
        row_function: &RowFunction<'_, T>,
    ) -> Result<RowSteps>)
}

fn train_by<T: Float<Accumulator = T>>(
    program: &mut Program<'_, '_, T>,
    updater: &mut dyn AnyUpdater<T>,
    each: bool,
    parallel: Parallel,
    scratch: &mut Scratch<T>,
    row_function: &RowFunction<'_, T>,
) -> Result<RowSteps> {
    // With slots, a step on one sample leaves the form of the table as it is.
    if each && (program.n_samples != 1 || !updater.have_slots(program.tables)) {
        return each_sample::train(program, updater, scratch, row_function);
    }
    let loss = whole_batch::train(program, updater, parallel, scratch, row_function)?;
    Ok(RowSteps { n_steps: 1, loss_sum: loss, last_loss: loss })
}
