//! One step on a batch: the samples read and computed by threads, then the updates by sums.
//!
//! The samples of a batch are cut into runs. A free thread reads a run's samples, calls the row
//! function, and adds up the terms of the gradients of dense parameters: a few samples in the
//! elements' own type, and those sums in `f64`. The calling thread takes the runs in order, so that
//! the bits do not depend on the number of threads. The gradients of reads are kept for all samples
//! of the batch, and go into the updates of tables as [terms](super::terms).

use super::any_updater::AnyUpdater;
use super::pools::pool;
use super::program::{DenseTerm, Pool, Program, Read, RowFunction, Sample, Source, TrainedDense};
use super::table_rows::TableRows;
use super::terms::{self, OfSamples, Term};
use crate::error::Result;
use crate::linear::Scratch;
use crate::optimizer::RowWeights;
use crate::paces::Stage;
use crate::row_parts::{MAX_SLOTS, in_turn};
use nnz_arrays::kernels::Parallel;
use nnz_device::prefetch::AHEAD;
use nnz_device::simd;
use nnz_device::thread_pool;
use sparse_core::element::Float;
use sparse_core::passes::MOST_PARAMETERS;
use std::ops::Range;

/// Samples in a run.
const SAMPLES_IN_RUN: usize = 64;

/// Samples whose terms are added in the elements' own type: an element of a sum is then off by 4
/// units in the last place at most.
const SAMPLES_IN_ELEMENTS: usize = 8;

/// What a run is made with.
#[derive(Clone, Debug, Default)]
pub(crate) struct Run<T> {
    read: Vec<T>,
    /// Of the run's samples.
    gradients: Vec<T>,
    /// Of a few samples.
    terms: Vec<T>,
    /// The sums of the terms of all samples of the run.
    totals: Vec<f64>,
    /// Of the run's samples.
    outputs: Vec<T>,
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
    gradients: Vec<T>,
    sums: Vec<T>,
    totals: Vec<f64>,
    /// Ids of a signed type.
    ids: Vec<u64>,
    later: Vec<u64>,
}

/// The numbers of a sample, by what they are for.
#[derive(Clone, Copy)]
struct Sizes {
    read: usize,
    gradients: usize,
    terms: usize,
    totals: usize,
    outputs: usize,
    sums: usize,
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

pub(super) fn train<T: Float<Accumulator = T>>(
    program: &mut Program<'_, '_, T>,
    updater: &mut dyn AnyUpdater<T>,
    parallel: Parallel,
    scratch: &mut Scratch<T>,
    row_function: &RowFunction<'_, T>,
) -> Result<f64> {
    updater.begin_step()?;
    let records = updater.records_outputs();
    let sizes = Sizes::of(program, records);
    // For batches of one sample, which are not to allocate after this one either.
    scratch.numbers.make_room(program);
    let loss = pass(program, updater, parallel, scratch, row_function, sizes)?;
    update(program, updater, parallel, scratch, sizes)?;
    updater.end_step()?;
    Ok(loss / program.n_samples.max(1) as f64)
}

/// The losses of all samples, added up; keeps what the updates need.
fn pass<T: Float<Accumulator = T>>(
    program: &mut Program<'_, '_, T>,
    updater: &mut dyn AnyUpdater<T>,
    parallel: Parallel,
    scratch: &mut Scratch<T>,
    row_function: &RowFunction<'_, T>,
    sizes: Sizes,
) -> Result<f64> {
    let (n_samples, work) = (program.n_samples, work_of(program, sizes));
    let Scratch { paces, kept, engine_runs, .. } = scratch;
    let begun = paces.begin(Stage::Rows, parallel, work);
    let n_parts = begun.n_parts;
    let mut total = 0.0;
    let Program { reads, tables, dense, outputs, .. } = program;
    let reads: &[Read<'_, '_, T>] = reads;
    updater.lend(tables, &mut [], false, &mut |tables, _, _| {
        catch_up(reads, n_samples, tables, [&mut kept.ids, &mut kept.later])?;
        let mut lent = tables.iter_mut();
        let weights: [Option<(RowWeights<'_, T>, usize, bool)>; MOST_PARAMETERS] =
            std::array::from_fn(|_| {
                let table = lent.next()?.as_mut()?;
                let (size, large) = (table.shape().1, table.is_large());
                Some((table.weights(), size, large))
            });
        let weights = &weights[..];
        let n_slots = if n_parts == 1 { 1 } else { (4 * n_parts).min(MAX_SLOTS) };
        engine_runs.resize_with(n_slots.max(engine_runs.len()), Run::default);
        engine_runs[..n_slots].iter_mut().for_each(|run| run.make_room(&sizes));
        kept.gradients.resize(n_samples * sizes.gradients, T::zero());
        kept.sums.resize(n_samples * sizes.sums, T::zero());
        kept.totals.clear();
        kept.totals.resize(sizes.totals, 0.0);
        let samples_of =
            |run: usize| run * SAMPLES_IN_RUN..n_samples.min((run + 1) * SAMPLES_IN_RUN);
        let dense: &[TrainedDense<'_, T>] = dense;
        total = 0.0;
        in_turn(
            &mut [(); thread_pool::MAX_PARTS][..n_parts],
            n_samples.div_ceil(SAMPLES_IN_RUN),
            &mut engine_runs[..n_slots],
            |(), run, slot| {
                let samples = samples_of(run);
                one_run(reads, n_samples, dense, weights, samples, sizes, slot, row_function);
            },
            |run, slot| {
                let samples = samples_of(run);
                total += slot.loss;
                kept.totals.iter_mut().zip(&slot.totals).for_each(|(sum, of_run)| *sum += of_run);
                put(&mut kept.gradients, &slot.gradients, &samples, sizes.gradients);
                put(&mut kept.sums, &slot.sums, &samples, sizes.sums);
                let mut before = 0;
                for output in outputs.iter_mut().filter(|_| sizes.outputs > 0) {
                    for (place, sample) in samples.clone().enumerate() {
                        let from = place * sizes.outputs + before;
                        output.values[sample * output.size..][..output.size]
                            .copy_from_slice(&slot.outputs[from..][..output.size]);
                    }
                    before += output.size;
                }
            },
        );
        Ok(())
    })?;
    paces.end(begun);
    Ok(total)
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
            (Some(table), _) => table.shape(),
            (None, Source::Frozen(values, row_size)) => (values.len() / row_size.max(1), row_size),
            (None, Source::Trained(_)) => (0, 0),
        };
        read.check(n_rows, row_size)?;
        let catches_up = table.as_ref().is_some_and(|table| table.catches_up());
        if !catches_up && !read.refs.are_ids() {
            continue;
        }
        let mut table = table;
        for sample in 0..n_samples {
            let ids = read.refs.of_sample(sample, buffer).0;
            read.refs.check(sample, ids, n_rows)?;
            if let Some(table) = table.as_mut().filter(|_| catches_up) {
                let later = sample + AHEAD;
                if later < n_samples && table.is_large() {
                    table.prefetch(read.refs.of_sample(later, of_later).0);
                }
                // SAFETY: compared just now, or with the columns of the csr.
                unsafe { table.catch_up(ids, false) };
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
        numbers.fill(T::zero());
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

/// Adds the terms of a few samples to the sums: first up in the elements' own type.
fn add_terms<T: Float<Accumulator = T>>(
    dense: &[TrainedDense<'_, T>],
    terms: &[T],
    size: usize,
    totals: &mut [f64],
) {
    if size == 0 {
        return;
    }
    simd::wide(
        #[inline(always)]
        || {
            let (mut first, mut totals) = (0, totals);
            for dense in dense {
                let (own, others) = std::mem::take(&mut totals).split_at_mut(dense.values.len());
                totals = others;
                match dense.term {
                    DenseTerm::Whole => {
                        add_row(
                            own,
                            terms,
                            size,
                            first,
                            #[inline(always)]
                            |_| T::one(),
                        );
                    }
                    DenseTerm::Outer(rows, columns) => {
                        for (row, totals) in own.chunks_exact_mut(columns.max(1)).enumerate() {
                            add_row(
                                totals,
                                terms,
                                size,
                                first + rows,
                                #[inline(always)]
                                |sample| sample[first + row],
                            );
                        }
                    }
                }
                first += dense.term.size(dense.values.len());
            }
        },
    );
}

/// Adds to each total the sum, over samples, of a factor times its term, of those that begin at
/// `first` of each sample.
#[inline(always)]
fn add_row<T: Float<Accumulator = T>>(
    totals: &mut [f64],
    terms: &[T],
    size: usize,
    first: usize,
    factor: impl Fn(&[T]) -> T,
) {
    let (chunks, rest) = totals.as_chunks_mut::<8>();
    let mut at = first;
    for totals in chunks {
        let mut few = [T::zero(); 8];
        for sample in terms.chunks_exact(size) {
            let factor = factor(sample);
            for (few, term) in few.iter_mut().zip(&sample[at..at + 8]) {
                *few += factor * *term;
            }
        }
        totals.iter_mut().zip(few).for_each(|(total, few)| *total += few.as_f64());
        at += 8;
    }
    for (place, total) in rest.iter_mut().enumerate() {
        let mut few = T::zero();
        for sample in terms.chunks_exact(size) {
            few += factor(sample) * sample[at + place];
        }
        *total += few.as_f64();
    }
}

/// The updates of tables and dense parameters, by what the pass has kept.
fn update<T: Float<Accumulator = T>>(
    program: &mut Program<'_, '_, T>,
    updater: &mut dyn AnyUpdater<T>,
    parallel: Parallel,
    scratch: &mut Scratch<T>,
    sizes: Sizes,
) -> Result<()> {
    let kept = std::mem::take(&mut scratch.kept);
    let result = update_by(program, updater, parallel, scratch, sizes, &kept);
    scratch.kept = kept;
    result
}

fn update_by<T: Float<Accumulator = T>>(
    program: &mut Program<'_, '_, T>,
    updater: &mut dyn AnyUpdater<T>,
    parallel: Parallel,
    scratch: &mut Scratch<T>,
    sizes: Sizes,
    kept: &Kept<T>,
) -> Result<()> {
    let Program { reads, tables, .. } = program;
    let reads: &[Read<'_, '_, T>] = reads;
    let parameters = tables.iter().map(|table| table.parameter);
    let mut indices = [0; MOST_PARAMETERS];
    indices.iter_mut().zip(parameters).for_each(|(index, parameter)| *index = parameter);
    updater.lend(tables, &mut [], true, &mut |tables, _, _| {
        let (mut first_gradient, mut first_sum, mut first) = (0, 0, 0);
        while let Some(Read { source: Source::Trained(table), .. }) = reads.get(first) {
            let is_of_table =
                |read: &&Read<'_, '_, T>| matches!(read.source, Source::Trained(of) if of == *table);
            let of_table = &reads[first..];
            let of_table = &of_table[..of_table.iter().take_while(is_of_table).count()];
            first += of_table.len();
            let Some(rows) = tables.get_mut(*table).and_then(Option::as_mut) else { continue };
            let row_size = rows.shape().1;
            let terms = of_table.iter().filter_map(|read| {
                let size = if read.has_gradient { read.size } else { 0 };
                let of_sums = if read.pool == Pool::Pairs { row_size } else { 0 };
                let term = Term {
                    refs: read.refs,
                    pool: read.pool,
                    gradients: OfSamples {
                        all: &kept.gradients,
                        stride: sizes.gradients,
                        first: first_gradient,
                        size,
                    },
                    sums: OfSamples {
                        all: &kept.sums,
                        stride: sizes.sums,
                        first: first_sum,
                        size: of_sums,
                    },
                };
                first_gradient += size;
                first_sum += of_sums;
                read.has_gradient.then_some(term)
            });
            with_terms(terms, |terms| {
                terms::update(&mut **rows, terms, indices[*table], parallel, scratch);
            });
        }
        Ok(())
    })?;
    let mut totals = &kept.totals[..];
    for TrainedDense { parameter, values, gradient, .. } in program.dense.iter_mut() {
        let (own, others) = totals.split_at(values.len());
        totals = others;
        gradient.iter_mut().zip(own).for_each(|(gradient, total)| *gradient = T::of(*total));
        updater.apply_dense(*parameter, values, gradient)?;
    }
    Ok(())
}

/// Calls `body` with terms as a list, on the stack where they are few.
fn with_terms<'b, 'k, T: Float, O>(
    mut terms: impl Iterator<Item = Term<'b, 'k, T>>,
    body: impl FnOnce(&[Term<'b, 'k, T>]) -> O,
) -> O {
    const FEW: usize = 16;
    let first: [Option<Term<'b, 'k, T>>; FEW] = std::array::from_fn(|_| terms.next());
    let rest: Vec<Term<'b, 'k, T>> = terms.collect();
    if rest.is_empty()
        && let Some(one) = first[0]
    {
        let count = first.iter().flatten().count();
        let list = first.map(|term| term.unwrap_or(one));
        return body(&list[..count]);
    }
    let all: Vec<Term<'b, 'k, T>> = first.into_iter().flatten().chain(rest).collect();
    body(&all)
}
