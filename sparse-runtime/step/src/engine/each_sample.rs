//! A step for each sample: read, row function, update.

use super::any_updater::{AnyUpdater, DenseRows};
use super::overlap;
use super::pools::{pool, scale};
use super::program::{DenseTerm, Pool, Program, Read, RowFunction, Sample, Source, TrainedDense};
use super::table_rows::{TableRows, add, add_pairs};
use crate::error::Result;
use crate::linear::Scratch;
use crate::model::RowSteps;
use crate::optimizer::RowWeights;
use nnz_arrays::formats::ColumnIdsView;
use nnz_device::prefetch::AHEAD;
use sparse_core::element::Float;
use std::ops::Range;

/// The numbers of one sample, and what stays the same from sample to sample.
#[derive(Clone, Debug, Default)]
pub(crate) struct Numbers<T> {
    /// The numbers that are read.
    read: Vec<T>,
    gradients: Vec<T>,
    terms: Vec<T>,
    outputs: Vec<T>,
    work: Vec<T>,
    /// Of interactions: the sums of their rows, and scratch.
    sums: Vec<T>,
    /// Ids of a signed type.
    ids: Vec<u64>,
    others: Vec<u64>,
}

impl<T: Float<Accumulator = T>> Numbers<T> {
    pub(super) fn make_room(&mut self, program: &Program<'_, '_, T>) {
        let zero = T::zero();
        let reads = program.reads;
        let of_gradients = reads.iter().filter(|read| read.has_gradient).map(|read| read.size);
        self.read.resize(reads.iter().map(|read| read.size).sum(), zero);
        self.gradients.resize(of_gradients.sum(), zero);
        self.terms.resize(program.terms(), zero);
        self.outputs.resize(program.outputs.iter().map(|output| output.size).sum(), zero);
        self.work.resize(program.work, zero);
        self.sums.resize(program.sums(), zero);
    }
}

pub(super) fn train<T: Float<Accumulator = T>>(
    program: &mut Program<'_, '_, T>,
    updater: &mut dyn AnyUpdater<T>,
    scratch: &mut Scratch<T>,
    row_function: &RowFunction<'_, T>,
) -> Result<RowSteps> {
    let records = program.n_samples == 1 && updater.records_outputs();
    let numbers = &mut scratch.numbers;
    numbers.make_room(program);
    let mut made = RowSteps::default();
    while made.n_steps < program.n_samples && !made.diverged() {
        let first = made.n_steps;
        let count = updater.begin_steps(program.n_samples - first)?;
        let mut steps = RowSteps::default();
        let Program { reads, tables, dense, n_samples, .. } = program;
        let of_tables: &[Read<'_, '_, T>] = reads;
        let n_samples = *n_samples;
        updater.lend(tables, dense, true, &mut |tables, dense, states| {
            let mut steps_of =
                Steps { reads: of_tables, n_samples, tables, dense, states, records };
            steps_of.check()?;
            for sample in first..first + count {
                let loss = steps_of.step(sample, numbers, row_function)?;
                if !steps.add(loss.as_f64()) {
                    break;
                }
            }
            Ok(())
        })?;
        updater.end_steps(steps.n_steps)?;
        made.extend(steps);
    }
    if records {
        program.write_outputs(0, &numbers.outputs);
    }
    Ok(made)
}

/// What the steps of a call share.
struct Steps<'s, 't, 'u, 'd, 'b, 'm, T: Float<Accumulator = T>> {
    reads: &'s [Read<'b, 'm, T>],
    n_samples: usize,
    tables: &'s mut [Option<&'t mut (dyn TableRows<T> + 't)>],
    dense: &'s mut [TrainedDense<'d, T>],
    states: &'s mut [Option<&'u mut (dyn DenseRows<T> + 'u)>],
    records: bool,
}

impl<T: Float<Accumulator = T>> Steps<'_, '_, '_, '_, '_, '_, T> {
    /// What the unchecked accesses rely on.
    fn check(&self) -> Result<()> {
        for read in self.reads {
            let (n_rows, row_size) = match read.source {
                Source::Trained(table) => self.shape(table),
                Source::Frozen(values, row_size) => (values.len() / row_size.max(1), row_size),
            };
            read.check(n_rows, row_size)?;
        }
        Ok(())
    }

    /// The rows of a table, and the elements of a row.
    fn shape(&self, table: usize) -> (usize, usize) {
        let table = self.tables.get(table).and_then(Option::as_ref);
        table.map_or((0, 0), |table| table.shape())
    }

    /// One step: returns the loss of the sample.
    fn step(
        &mut self,
        sample: usize,
        numbers: &mut Numbers<T>,
        row_function: &RowFunction<'_, T>,
    ) -> Result<T> {
        self.prefetch(sample, numbers);
        self.read(sample, numbers)?;
        let loss = row_function(Sample {
            index: sample,
            numbers: &numbers.read,
            dense: self.dense,
            gradients: &mut numbers.gradients,
            terms: &mut numbers.terms,
            outputs: self.records.then_some(&mut numbers.outputs),
            work: &mut numbers.work,
        });
        self.update_dense(&numbers.terms);
        self.update_tables(sample, numbers);
        self.tables.iter_mut().flatten().for_each(|table| table.advance());
        Ok(loss)
    }

    /// Prefetches the rows of a later sample.
    #[inline(always)]
    fn prefetch(&mut self, sample: usize, numbers: &mut Numbers<T>) {
        self.reads.iter().for_each(|read| read.refs.prefetch(sample));
        let later = sample + AHEAD;
        if later >= self.n_samples {
            return;
        }
        for read in self.reads {
            if let Source::Trained(table) = read.source
                && let Some(table) = self.tables.get_mut(table).and_then(Option::as_mut)
                && table.is_large()
            {
                table.prefetch(read.refs.of_sample(later, &mut numbers.ids).0);
            }
        }
    }

    /// Catches up and pools the rows that a sample names.
    #[inline(always)]
    fn read(&mut self, sample: usize, numbers: &mut Numbers<T>) -> Result<()> {
        let Numbers { read: of_sample, sums, ids: buffer, .. } = numbers;
        let (mut rest, mut rest_of_sums) = (&mut of_sample[..], &mut sums[..]);
        for read in self.reads {
            let (numbers, others) = rest.split_at_mut(read.size);
            rest = others;
            numbers.fill(T::zero());
            let (ids, values) = read.refs.of_sample(sample, buffer);
            let (rows, n_rows, row_size) = match read.source {
                Source::Frozen(values, row_size) => {
                    let n_rows = values.len() / row_size.max(1);
                    (RowWeights::of_values(values, row_size), n_rows, row_size)
                }
                Source::Trained(table) => {
                    let Some(table) = self.tables.get_mut(table).and_then(Option::as_mut) else {
                        continue;
                    };
                    let (n_rows, row_size) = table.shape();
                    read.refs.check(sample, ids, n_rows)?;
                    if table.catches_up() {
                        // SAFETY: compared just now, or with the columns of the csr before.
                        unsafe { table.catch_up(ids, read.has_gradient) };
                    }
                    (table.weights(), n_rows, row_size)
                }
            };
            if let Source::Frozen(..) = read.source {
                read.refs.check(sample, ids, n_rows)?;
            }
            let sums = match read.pool {
                Pool::Pairs => {
                    let (sums, others) =
                        std::mem::take(&mut rest_of_sums).split_at_mut(2 * row_size);
                    rest_of_sums = others;
                    sums
                }
                _ => &mut [],
            };
            // SAFETY: the ids are below the rows, as above; `check` has compared the read.
            unsafe { pool(read, sample, (ids, values), (rows, row_size), numbers, sums) };
        }
        Ok(())
    }

    #[inline(always)]
    fn update_dense(&mut self, terms: &[T]) {
        let mut rest = terms;
        for (dense, states) in self.dense.iter_mut().zip(&mut *self.states) {
            let (term, others) = rest.split_at(dense.term.size(dense.values.len()));
            rest = others;
            let Some(states) = states else { continue };
            match dense.term {
                DenseTerm::Whole => states.update(dense.values, term),
                DenseTerm::Outer(rows, _) => {
                    let (left, right) = term.split_at(rows);
                    states.update_outer(dense.values, left, right);
                }
            }
        }
    }

    /// Updates the rows that the sample names, each once.
    #[inline(always)]
    fn update_tables(&mut self, sample: usize, numbers: &mut Numbers<T>) {
        let Numbers { gradients, sums, ids: buffer, others, .. } = numbers;
        let (mut gradients, mut sums) = (&mut gradients[..], &mut sums[..]);
        let mut first = 0;
        while let Some(Read { source: Source::Trained(table), .. }) = self.reads.get(first) {
            let same = |read: &&Read<'_, '_, T>| matches!(read.source, Source::Trained(of) if of == *table);
            let reads = &self.reads[first..];
            let reads = &reads[..reads.iter().take_while(same).count()];
            first += reads.len();
            let Some(rows) = self.tables.get_mut(*table).and_then(Option::as_mut) else { continue };
            let in_parts = rows.only_adds() && !overlap::depend_on_weights(reads)
                || !overlap::may_overlap(reads)
                || are_apart(reads, sample, buffer, others);
            for read in reads {
                let n_sums = if read.pool == Pool::Pairs { 2 * rows.shape().1 } else { 0 };
                let (of_read, rest) = std::mem::take(&mut sums).split_at_mut(n_sums);
                sums = rest;
                if !read.has_gradient {
                    continue;
                }
                let (gradient, rest) = std::mem::take(&mut gradients).split_at_mut(read.size);
                gradients = rest;
                update(rows, in_parts, read, sample, gradient, of_read, buffer);
            }
            if !in_parts {
                rows.apply_sums();
            }
        }
    }
}

/// Updates the rows of one read, or adds to their sums.
#[inline(always)]
fn update<T: Float<Accumulator = T>>(
    rows: &mut &mut dyn TableRows<T>,
    in_parts: bool,
    read: &Read<'_, '_, T>,
    sample: usize,
    gradient: &mut [T],
    sums: &mut [T],
    buffer: &mut Vec<u64>,
) {
    use super::program::Values;
    let (_, row_size) = rows.shape();
    let (ids, values) = read.refs.of_sample(sample, buffer);
    scale(read, sample, ids.len(), gradient);
    // SAFETY, of all below: the sample was read, which has compared the ids with the rows; a row
    // is named once where `in_parts`, or the rule only adds.
    match read.pool {
        Pool::Rows => {
            for (place, gradient) in gradient.chunks_exact_mut(row_size.max(1)).enumerate() {
                let id = one_of(ids, place);
                if in_parts {
                    // SAFETY: as above.
                    unsafe { rows.update(id, Values::Ones, gradient) };
                } else {
                    // SAFETY: as above.
                    unsafe { add(rows.sums(), id, Values::Ones, gradient) };
                }
            }
        }
        Pool::Pairs => {
            let (sums, scratch) = sums.split_at_mut(row_size);
            let gradient = gradient[0];
            if in_parts {
                // SAFETY: as above.
                unsafe { rows.update_pairs(ids, values, sums, scratch, gradient) };
            } else {
                let (by_rows, weights) = rows.sums_and_weights();
                // SAFETY: as above; nothing writes the weights meanwhile.
                unsafe { add_pairs(by_rows, weights, ids, values, sums, gradient) };
            }
        }
        Pool::Product | Pool::Bag { .. } => {
            let values = match read.pool {
                Pool::Bag { weighted: false, .. } => Values::Ones,
                _ => values,
            };
            if in_parts {
                // SAFETY: as above.
                unsafe { rows.update(ids, values, gradient) };
            } else {
                // SAFETY: as above.
                unsafe { add(rows.sums(), ids, values, gradient) };
            }
        }
    }
}

/// One of several ids.
#[inline(always)]
fn one_of(ids: ColumnIdsView<'_>, place: usize) -> ColumnIdsView<'_> {
    let range: Range<usize> = place..place + 1;
    match ids {
        ColumnIdsView::U32(ids) => ColumnIdsView::U32(ids.get(range).unwrap_or_default()),
        ColumnIdsView::U64(ids) => ColumnIdsView::U64(ids.get(range).unwrap_or_default()),
    }
}

/// Whether no row is named twice by the reads that have gradients.
fn are_apart<T: Float>(
    reads: &[Read<'_, '_, T>],
    sample: usize,
    buffer: &mut Vec<u64>,
    others: &mut Vec<u64>,
) -> bool {
    let updated = || reads.iter().filter(|read| read.has_gradient);
    updated().enumerate().all(|(place, read)| {
        let ids = read.refs.of_sample(sample, buffer).0;
        let mut before = updated().take(place);
        let repeats = read.refs.may_repeat() && overlap::repeats(ids);
        let meets =
            before.any(|other| overlap::have_common(ids, other.refs.of_sample(sample, others).0));
        !repeats && !meets
    })
}
