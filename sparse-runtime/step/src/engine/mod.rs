//! The engine: training steps by row programs, one engine for all models and rules.
//!
//! A *row program* ([`sparse_core::passes::RowProgram`]) says which table rows a sample reads, how
//! they are pooled, and what becomes of the pooled numbers. `graph!` emits it as a [`Program`] of
//! plain data and one [row function](RowFunction). The engine reads the rows, calls the function,
//! and updates the rows: sample by sample (`each_sample`), or with the sums over a
//! batch (`whole_batch`). The sums may also be all that is asked for: a [`Pass`] over a batch
//! makes steps, or gradients (`gradient_sink`).
//!
//! Nothing here is generic in the model, and only `table_rows` and `any_updater` are generic in
//! the rule: they are compiled in this crate for the rules of the library
//! ([`erased`]). What a program costs in a user's crate is its row function.

mod any_updater;
mod dense_sums;
mod each_sample;
mod few;
mod gradient_sink;
mod hogwild;
mod joint_sums;
mod kept_sums;
mod one_column;
mod one_pass;
mod one_row;
mod overlap;
mod pass;
mod pools;
mod program;
pub mod row_functions;
mod sample_rows;
mod sink;
mod table_reads;
mod table_rows;
mod tables;
mod terms;
mod whole_batch;

pub use self::any_updater::{AnyUpdater, erased};
pub(crate) use self::gradient_sink::GradientSink;
pub use self::pass::Pass;
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

/// Makes steps or gradients of a batch, as `pass` says.
///
/// Steps of samples end early after a loss that is infinite or NaN, and write outputs for a batch
/// of one sample only. A step on a batch, and gradients, give the mean of the samples' losses;
/// `parallel` threads share the work, and the bits do not depend on their number. O(elements read ·
/// cost of the rule) beside the row function; gradients also bring rows in order. Allocates nothing
/// once the largest batch was seen.
///
/// # Errors
///
/// [`ModelError::Extent`](crate::model::ModelError::Extent) for a table whose shape is not that of
/// its reads, [`ModelError::Lookup`](crate::model::ModelError::Lookup) for an id beyond a table.
pub fn run<T: Float<Accumulator = T>>(
    program: &mut Program<'_, '_, T>,
    pass: Pass<'_, T>,
    parallel: Parallel,
    scratch: &mut Scratch<T>,
    row_function: &RowFunction<'_, T>,
) -> Result<RowSteps> {
    in_library!(<T> run_by::<T> => (
        program: &mut Program<'_, '_, T>,
        pass: Pass<'_, T>,
        parallel: Parallel,
        scratch: &mut Scratch<T>,
        row_function: &RowFunction<'_, T>,
    ) -> Result<RowSteps>)
}

fn run_by<T: Float<Accumulator = T>>(
    program: &mut Program<'_, '_, T>,
    pass: Pass<'_, T>,
    parallel: Parallel,
    scratch: &mut Scratch<T>,
    row_function: &RowFunction<'_, T>,
) -> Result<RowSteps> {
    let loss = match pass {
        // With slots, a step on one sample leaves the form of the table as it is.
        Pass::EachSample(updater)
            if program.n_samples != 1 || !updater.have_slots(program.tables) =>
        {
            return each_sample::train(program, updater, scratch, row_function);
        }
        Pass::EachSample(updater) | Pass::Batch(updater) => {
            whole_batch::sum(program, updater, None, parallel, scratch, row_function)?
        }
        Pass::Clipped(updater, max_norm) => {
            whole_batch::sum(program, updater, Some(max_norm), parallel, scratch, row_function)?
        }
        Pass::Gradients => {
            let mut sink = std::mem::take(&mut scratch.gradient_sink);
            let loss = whole_batch::sum(program, &mut sink, None, parallel, scratch, row_function);
            scratch.gradient_sink = sink;
            loss?
        }
    };
    Ok(RowSteps { n_steps: 1, loss_sum: loss, last_loss: loss })
}
