//! A batch as a whole: the samples read and computed by threads, then the sums given to a
//! [`Sink`], which updates by them or collects them.
//!
//! The samples of a batch are cut into runs. A free thread reads a run's samples, calls the row
//! function, and adds up the terms of the gradients of dense parameters: a few samples in the
//! elements' own type, and those sums in `f64`. The calling thread takes the runs in order, so that
//! the bits do not depend on the number of threads. The gradients of reads are kept for all samples
//! of the batch, and go into the [sums of tables](super::kept_sums).

use super::dense_sums::add_terms;
use super::kept_sums;
use super::one_pass::{OnePass, takes_one_pass};
use super::pools::pool;
use super::program::{Output, Pool, Program, Read, RowFunction, Sample, Source, TrainedDense};
use super::sink::Sink;
use super::table_reads::TableFacts;
use super::table_rows::TableRows;
use crate::autotune::Stage;
use crate::column_partition::{MAX_SLOTS, in_turn};
use crate::error::Result;
use crate::linear::Scratch;
use crate::optimizer::RowWeights;
use nnz_arrays::kernels::Parallel;
use nnz_device::prefetch::AHEAD;
use nnz_device::thread_pool;
use sparse_core::element::Float;
use sparse_core::passes::MOST_PARAMETERS;
use std::ops::Range;

/// Samples in a run.
pub(super) const SAMPLES_IN_RUN: usize = 64;

/// Samples whose terms are added in the elements' own type: an element of a sum is then off by 4
/// units in the last place at most.
pub(super) const SAMPLES_IN_ELEMENTS: usize = 8;

/// What a run is made with.
#[derive(Clone, Debug, Default)]
pub(crate) struct Run<T> {
    read: Vec<T>,
    /// Of the run's samples.
    gradients: Vec<T>,
    /// Of a few samples.
    pub(super) terms: Vec<T>,
    /// The sums of the terms of all samples of the run.
    pub(super) totals: Vec<f64>,
    /// Of the run's samples.
    pub(super) outputs: Vec<T>,
    /// Of the run's samples.
    sums: Vec<T>,
    /// Of one sample.
    pairs: Vec<T>,
    work: Vec<T>,
    ids: Vec<u64>,
    loss: f64,
}

/// What a batch keeps of all its samples.
#[derive(Clone, Debug, Default)]
pub(crate) struct Kept<T> {
    pub(super) gradients: Vec<T>,
    pub(super) sums: Vec<T>,
    pub(super) totals: Vec<f64>,
    /// Ids of a signed type.
    ids: Vec<u64>,
    later: Vec<u64>,
}

/// The numbers of a sample, by what they are for.
#[derive(Clone, Copy)]
pub(crate) struct Sizes {
    read: usize,
    pub(super) gradients: usize,
    pub(super) terms: usize,
    totals: usize,
    pub(super) outputs: usize,
    pub(super) sums: usize,
    pairs: usize,
    work: usize,
}

impl Sizes {
    fn of<T: Float>(program: &Program<'_, '_, T>, records: bool) -> Self {
        let reads = program.reads;
        let pairs = program.sums();
        Sizes {
            read: reads.iter().map(|read| read.size).sum(),
            gradients: reads.iter().filter(|it| it.has_gradient).map(|it| it.size).sum(),
            terms: program.terms(),
            totals: program.dense.iter().map(|dense| dense.values.len()).sum(),
            outputs: if records { program.outputs.iter().map(|it| it.size).sum() } else { 0 },
            sums: pairs / 2,
            pairs,
            work: program.work,
        }
    }
}

impl<T: Float> Run<T> {
    fn make_room(&mut self, sizes: &Sizes) {
        let zero = T::zero();
        self.read.resize(sizes.read, zero);
        self.gradients.resize(SAMPLES_IN_RUN * sizes.gradients, zero);
        self.terms.resize(SAMPLES_IN_ELEMENTS * sizes.terms, zero);
        self.totals.resize(sizes.totals, 0.0);
        self.outputs.resize(SAMPLES_IN_RUN * sizes.outputs, zero);
        self.sums.resize(SAMPLES_IN_RUN * sizes.sums, zero);
        self.pairs.resize(sizes.pairs, zero);
        self.work.resize(sizes.work, zero);
    }
}

/// Computes all samples, and gives what they add to the gradients of parameters to `sink`, clipped
/// to the common norm `max_norm` if there is one. The mean of their losses.
pub(super) fn sum<T: Float<Accumulator = T>>(
    program: &mut Program<'_, '_, T>,
    sink: &mut dyn Sink<T>,
    max_norm: Option<f64>,
    parallel: Parallel,
    scratch: &mut Scratch<T>,
    row_function: &RowFunction<'_, T>,
) -> Result<f64> {
    sink.begin_step()?;
    let records = sink.records_outputs();
    let sizes = Sizes::of(program, records);
    // For batches of one sample, which are not to allocate after this one either.
    scratch.numbers.make_room(program);
    let begun = scratch.autotune.begin(Stage::Rows, parallel, work_of(program, sizes));
    let n_parts = begun.n_parts;
    let Scratch { kept, engine_runs, numbers, .. } = scratch;
    let n_slots = if n_parts == 1 { 1 } else { (4 * n_parts).min(MAX_SLOTS) };
    engine_runs.resize_with(n_slots.max(engine_runs.len()), Run::default);
    engine_runs[..n_slots].iter_mut().for_each(|run| run.make_room(&sizes));
    kept.totals.clear();
    kept.totals.resize(sizes.totals, 0.0);
    let mut loss = None;
    if n_parts == 1 && takes_one_pass(program.reads) {
        let (totals, run) = (&mut kept.totals, &mut engine_runs[0]);
        let mut pass = OnePass { numbers, run, totals, sizes, row_function, max_norm, loss: 0.0 };
        let summed = sink.sum_samples(program, &mut pass).transpose()?;
        loss = summed.map(|()| pass.loss);
    }
    let loss = match loss {
        Some(loss) => loss,
        None => {
            let threads = &mut [(); thread_pool::MAX_PARTS][..n_parts];
            let slots = &mut engine_runs[..n_slots];
            let loss = pass(program, sink, threads, kept, slots, row_function, sizes)?;
            kept_sums::tables(program, sink, max_norm, parallel, scratch, sizes)?;
            loss
        }
    };
    kept_sums::dense(program, sink, &scratch.kept.totals)?;
    scratch.autotune.end(begun);
    sink.end_step()?;
    Ok(loss / program.n_samples.max(1) as f64)
}

/// The losses of all samples, added up; keeps what the sums of tables need.
fn pass<T: Float<Accumulator = T>>(
    program: &mut Program<'_, '_, T>,
    sink: &mut dyn Sink<T>,
    threads: &mut [()],
    kept: &mut Kept<T>,
    slots: &mut [Run<T>],
    row_function: &RowFunction<'_, T>,
    sizes: Sizes,
) -> Result<f64> {
    let mut total = 0.0;
    let Program { n_samples, reads, tables, dense, outputs, .. } = program;
    let (n_samples, reads): (usize, &[Read<'_, '_, T>]) = (*n_samples, reads);
    sink.with_tables(tables, false, &mut |tables| {
        catch_up(reads, n_samples, tables, [&mut kept.ids, &mut kept.later])?;
        let mut lent = tables.iter_mut();
        let weights: [Option<(RowWeights<'_, T>, usize, bool)>; MOST_PARAMETERS] =
            std::array::from_fn(|_| {
                let table = lent.next()?.as_mut()?;
                let TableFacts { row_size: size, is_large: large, .. } = table.facts();
                Some((table.weights(), size, large))
            });
        let weights = &weights[..];
        kept.gradients.resize(n_samples * sizes.gradients, T::zero());
        kept.sums.resize(n_samples * sizes.sums, T::zero());
        let dense: &[TrainedDense<'_, T>] = dense;
        total = 0.0;
        in_turn(
            threads,
            n_samples.div_ceil(SAMPLES_IN_RUN),
            slots,
            |(), run, slot| {
                let samples = samples_of(run, n_samples);
                one_run(reads, n_samples, dense, weights, samples, sizes, slot, row_function);
            },
            |run, slot| {
                let samples = samples_of(run, n_samples);
                total += slot.loss;
                kept.totals.iter_mut().zip(&slot.totals).for_each(|(sum, of_run)| *sum += of_run);
                put(&mut kept.gradients, &slot.gradients, &samples, sizes.gradients);
                put(&mut kept.sums, &slot.sums, &samples, sizes.sums);
                write_outputs(outputs, &slot.outputs, samples, sizes.outputs);
            },
        );
        Ok(())
    })?;
    Ok(total)
}

/// The samples of a run of a batch.
pub(super) fn samples_of(run: usize, n_samples: usize) -> Range<usize> {
    run * SAMPLES_IN_RUN..n_samples.min((run + 1) * SAMPLES_IN_RUN)
}

/// Puts the outputs of a run's samples where those of the batch lie; nothing where they are not
/// recorded.
pub(super) fn write_outputs<T: Copy>(
    outputs: &mut [Output<'_, T>],
    of_run: &[T],
    samples: Range<usize>,
    size: usize,
) {
    let mut before = 0;
    for output in outputs.iter_mut().filter(|_| size > 0) {
        for (place, sample) in samples.clone().enumerate() {
            let from = place * size + before;
            output.values[sample * output.size..][..output.size]
                .copy_from_slice(&of_run[from..][..output.size]);
        }
        before += output.size;
    }
}

/// Puts the numbers of a run's samples where those of the batch lie.
fn put<T: Copy>(all: &mut [T], of_run: &[T], samples: &Range<usize>, size: usize) {
    all[samples.start * size..samples.end * size].copy_from_slice(&of_run[..samples.len() * size]);
}

/// The work of a pass, in about a quarter of a nanosecond.
fn work_of<T: Float>(program: &Program<'_, '_, T>, sizes: Sizes) -> usize {
    let of_read = |read: &Read<'_, '_, T>| read.refs.n_entries().saturating_mul(read.size + 15);
    let of_sample = 2 * (sizes.totals + sizes.work) + sizes.read;
    let reads = program.reads.iter().map(of_read).fold(0, usize::saturating_add);
    program.n_samples.saturating_mul(of_sample).saturating_add(reads)
}

/// Compares the tables with the reads, and catches up all rows that the batch reads.
fn catch_up<T: Float<Accumulator = T>>(
    reads: &[Read<'_, '_, T>],
    n_samples: usize,
    tables: &mut [Option<&mut dyn TableRows<T>>],
    [buffer, of_later]: [&mut Vec<u64>; 2],
) -> Result<()> {
    for read in reads {
        let table = match read.source {
            Source::Trained(table) => tables.get_mut(table).and_then(Option::as_mut),
            Source::Frozen(..) => None,
        };
        let (n_rows, row_size) = match (&table, read.source) {
            (Some(table), _) => (table.facts().n_rows, table.facts().row_size),
            (None, Source::Frozen(values, row_size)) => (values.len() / row_size.max(1), row_size),
            (None, Source::Trained(_)) => (0, 0),
        };
        read.check(n_rows, row_size)?;
        let facts = table.as_ref().map_or(TableFacts::default(), |table| table.facts());
        let catches_up = facts.catches_up;
        if !catches_up && !read.refs.are_ids() {
            continue;
        }
        let mut table = table;
        for sample in 0..n_samples {
            let ids = read.refs.of_sample(sample, buffer).0;
            read.refs.check(sample, ids, n_rows)?;
            if let Some(table) = table.as_mut().filter(|_| catches_up) {
                let later = sample + AHEAD;
                if later < n_samples && facts.is_large {
                    table.prefetch(read.refs.of_sample(later, of_later).0);
                }
                // SAFETY: compared just now, or with the columns of the csr.
                unsafe { table.catch_up(ids) };
            }
        }
    }
    Ok(())
}

/// The samples of a run.
#[allow(clippy::too_many_arguments)]
fn one_run<T: Float<Accumulator = T>>(
    reads: &[Read<'_, '_, T>],
    n_samples: usize,
    dense: &[TrainedDense<'_, T>],
    weights: &[Option<(RowWeights<'_, T>, usize, bool)>],
    samples: Range<usize>,
    sizes: Sizes,
    run: &mut Run<T>,
    row_function: &RowFunction<'_, T>,
) {
    let Run { read, gradients, terms, totals, outputs, sums, pairs, work, ids, loss } = run;
    totals.fill(0.0);
    *loss = 0.0;
    let n_in_run = samples.len();
    for (place, sample) in samples.enumerate() {
        prefetch(reads, n_samples, weights, sample, ids);
        let sums = &mut sums[place * sizes.sums..][..sizes.sums];
        read_sample(reads, weights, sample, read, sums, pairs, ids);
        let few = place % SAMPLES_IN_ELEMENTS;
        *loss += row_function(Sample {
            index: sample,
            numbers: read,
            dense,
            gradients: &mut gradients[place * sizes.gradients..][..sizes.gradients],
            terms: &mut terms[few * sizes.terms..][..sizes.terms],
            outputs: (sizes.outputs > 0)
                .then(|| &mut outputs[place * sizes.outputs..][..sizes.outputs]),
            work,
        })
        .as_f64();
        if few == SAMPLES_IN_ELEMENTS - 1 || place == n_in_run - 1 {
            add_terms(dense, &terms[..(few + 1) * sizes.terms], sizes.terms, totals);
        }
    }
}

/// Prefetches the rows of a later sample.
#[inline(always)]
fn prefetch<T: Float>(
    reads: &[Read<'_, '_, T>],
    n_samples: usize,
    weights: &[Option<(RowWeights<'_, T>, usize, bool)>],
    sample: usize,
    ids: &mut Vec<u64>,
) {
    reads.iter().for_each(|read| read.refs.prefetch(sample));
    let later = sample + AHEAD;
    if later >= n_samples {
        return;
    }
    for read in reads {
        if let Source::Trained(table) = read.source
            && let Some((rows, _, true)) = weights[table]
        {
            let ids = read.refs.of_sample(later, ids).0;
            nnz_arrays::with_column_ids!(ids, |ids| rows.prefetch_each(ids));
        }
    }
}

/// Pools the rows that a sample names.
#[inline(always)]
fn read_sample<T: Float<Accumulator = T>>(
    reads: &[Read<'_, '_, T>],
    weights: &[Option<(RowWeights<'_, T>, usize, bool)>],
    sample: usize,
    numbers: &mut [T],
    sums: &mut [T],
    pairs: &mut [T],
    ids: &mut Vec<u64>,
) {
    let (mut rest, mut rest_of_sums) = (numbers, sums);
    for read in reads {
        let (numbers, others) = std::mem::take(&mut rest).split_at_mut(read.size);
        rest = others;
        let (rows, row_size) = match read.source {
            Source::Frozen(values, row_size) => (RowWeights::of_values(values, row_size), row_size),
            Source::Trained(table) => match weights[table] {
                Some((rows, row_size, _)) => (rows, row_size),
                None => continue,
            },
        };
        let named = read.refs.of_sample(sample, ids);
        let is_pairs = read.pool == Pool::Pairs;
        let of_read = if is_pairs { &mut pairs[..2 * row_size] } else { &mut [][..] };
        // SAFETY: `catch_up` has compared the ids and the read with the rows, which nothing writes
        // before all are read.
        unsafe { pool(read, sample, named, (rows, row_size), numbers, of_read) };
        if is_pairs {
            let (own, others) = std::mem::take(&mut rest_of_sums).split_at_mut(row_size);
            rest_of_sums = others;
            own.copy_from_slice(&of_read[..row_size]);
        }
    }
}
