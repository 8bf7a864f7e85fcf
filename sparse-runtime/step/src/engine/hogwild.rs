//! Steps of one sample each on tables that other threads update meanwhile, without locks.
//!
//! Each access to a shared row is a relaxed load or store of one number
//! ([`AnyHogwildRows`]). A sample's rows are therefore copied, and pooled from the copies. The
//! copies then become the gradients of their rows, each of which gets one update.

use super::each_sample::{Samples, update_dense};
use super::pools::{pool, scale};
use super::program::{Pool, Program, Read, Sample, TrainedDense, Values};
use super::sample_rows::OfRead;
use super::table_reads::{Layout, TableFacts, TableReads, Updates};
use super::tables::{Numbers, read_frozen};
use crate::error::Result;
use crate::model::RowSteps;
use crate::optimizer::{AnyHogwildRows, DenseStates, RowWeights, Updater};
use nnz_arrays::formats::{ColumnId, ColumnIdsView};
use nnz_arrays::with_column_ids;
use nnz_device::prefetch::{AHEAD, is_far};
use nnz_optim::UpdateRule;
use sparse_core::element::{Factor, Float};

/// Copies of the rows that a sample names, and then their gradients.
#[derive(Clone, Debug, Default)]
pub(super) struct Copies<T> {
    rows: Vec<T>,
    /// 0, 1, 2, …: the ids of copies.
    ids: Vec<u32>,
    /// The rows that a sample names of a table where it may name one twice, and the first element
    /// of each gradient.
    named: Vec<(usize, usize)>,
}

/// The rows of a shared table.
struct SharedRows<'a, R: UpdateRule, T: Float> {
    rows: AnyHogwildRows<'a, R, T>,
    facts: TableFacts,
}

/// A step for each of some samples, by a part that the updater has in shared tables.
///
/// # Errors
///
/// [`OptimizerError::NotShared`](crate::optimizer::OptimizerError::NotShared) of a table that is
/// not shared; as [`run`](super::run).
pub(super) fn steps<R: UpdateRule, T: Float<Accumulator = T>, const N: usize>(
    updater: &mut Updater<R, T>,
    program: &mut Program<'_, '_, T>,
    samples: &mut Samples<'_, '_, T>,
) -> Result<RowSteps> {
    let mut states: [Option<DenseStates<R, T>>; N] = [const { None }; N];
    for (states, dense) in states.iter_mut().zip(program.dense.iter_mut()) {
        *states = Some(updater.take_states(dense.parameter, dense.values)?);
    }
    let result = with_states::<R, T, N>(updater, program, samples, &mut states);
    for (states, dense) in states.into_iter().flatten().zip(program.dense.iter()) {
        updater.put_states(dense.parameter, states)?;
    }
    result
}

fn with_states<R: UpdateRule, T: Float<Accumulator = T>, const N: usize>(
    updater: &mut Updater<R, T>,
    program: &mut Program<'_, '_, T>,
    samples: &mut Samples<'_, '_, T>,
    states: &mut [Option<DenseStates<R, T>>],
) -> Result<RowSteps> {
    let parameters = program.tables.iter().map(|table| table.parameter);
    let rows = updater.hogwild_rows_in_order::<N>(parameters)?;
    let tables = rows.map(|rows| {
        let rows = rows?;
        let (n_rows, row_size) = (rows.n_rows(), rows.row_size());
        let facts = TableFacts {
            n_rows,
            row_size,
            is_large: is_far(n_rows * row_size * size_of::<T>()),
            only_adds: rows.is_plain(),
            catches_up: false,
        };
        Some(SharedRows { rows: AnyHogwildRows::of(rows), facts })
    });
    let mut layout = std::mem::take(&mut samples.numbers.layout);
    let facts = |table: usize| Some(tables.get(table)?.as_ref()?.facts);
    let result = layout.of(program.reads, facts).and_then(|()| {
        let all = Shared { reads: program.reads, layout: &layout, tables: &tables };
        all.step_all(program.n_samples, samples, program.dense, states)
    });
    samples.numbers.layout = layout;
    result
}

/// The tables of one call.
struct Shared<'s, 'a, 'b, 'm, R: UpdateRule, T: Float> {
    reads: &'s [Read<'b, 'm, T>],
    layout: &'s Layout,
    tables: &'s [Option<SharedRows<'a, R, T>>],
}

impl<R: UpdateRule, T: Float<Accumulator = T>> Shared<'_, '_, '_, '_, R, T> {
    fn step_all(
        &self,
        n_samples: usize,
        samples: &mut Samples<'_, '_, T>,
        dense: &mut [TrainedDense<'_, T>],
        states: &mut [Option<DenseStates<R, T>>],
    ) -> Result<RowSteps> {
        let Samples { range, records, numbers, row_function } = samples;
        let mut steps = RowSteps::default();
        for sample in range.clone() {
            if sample + AHEAD < n_samples {
                self.prefetch(sample + AHEAD, &mut numbers.ids);
            }
            self.read(sample, numbers)?;
            let loss = row_function(Sample {
                index: sample,
                numbers: &numbers.read,
                dense,
                gradients: &mut numbers.gradients,
                terms: &mut numbers.terms,
                outputs: records.then_some(&mut numbers.outputs),
                work: &mut numbers.work,
            });
            update_dense(dense, states, &numbers.terms);
            self.update(sample, numbers);
            if !steps.add(loss.as_f64()) {
                break;
            }
        }
        Ok(steps)
    }

    /// The rows of a table that is trained.
    fn rows_of(&self, of_table: &TableReads) -> Option<&SharedRows<'_, R, T>> {
        self.tables.get(of_table.table?)?.as_ref()
    }

    fn prefetch(&self, sample: usize, buffer: &mut Vec<u64>) {
        for of_table in &self.layout.tables {
            let rows = self.rows_of(of_table);
            let Some(shared) = rows.filter(|rows| rows.facts.is_large) else { continue };
            for read in &self.reads[of_table.reads()] {
                let ids = read.refs.of_sample(sample, buffer).0;
                with_column_ids!(ids, |ids| {
                    ids.iter().for_each(|id| shared.rows.prefetch(id.at()));
                });
            }
        }
    }

    /// Copies the rows that a sample names, and pools them.
    fn read(&self, sample: usize, numbers: &mut Numbers<T>) -> Result<()> {
        let Numbers { read: of_sample, sums, ids: buffer, copies, .. } = numbers;
        copies.rows.clear();
        for of_table in &self.layout.tables {
            let (shared, size) = (self.rows_of(of_table), of_table.facts.row_size);
            for (read, place) in of_table.of(self.reads, self.layout) {
                let numbers = &mut of_sample[place.numbers..][..read.size];
                let sums = &mut sums[place.sums..][..place.n_sums];
                let Some(shared) = shared else {
                    let of = OfRead { numbers, sums, ids: buffer };
                    // SAFETY: `Layout` has compared the read with the rows.
                    unsafe { read_frozen(of_table.facts, read, sample, of)? };
                    continue;
                };
                let (ids, values) = read.refs.of_sample(sample, buffer);
                read.refs.check(sample, ids, shared.facts.n_rows)?;
                let count = ids.len();
                let first = copies.extend(count, size);
                let own = &mut copies.rows[first..];
                with_column_ids!(ids, |ids| {
                    for (id, copy) in ids.iter().zip(own.chunks_exact_mut(size.max(1))) {
                        // SAFETY: the ids are columns of a csr, which `Layout` has compared with
                        // the rows, or were compared just now; rows have `size` elements.
                        unsafe { shared.rows.read(id.at(), copy) };
                    }
                });
                let weights = RowWeights::of_values(own, size);
                let named = (ColumnIdsView::U32(&copies.ids[..count]), values);
                // SAFETY: there are as many copies as ids; `Layout` has compared the read.
                unsafe { pool(read, sample, named, (weights, size), numbers, sums) };
            }
        }
        Ok(())
    }

    /// Updates the rows that a sample has read, each once.
    fn update(&self, sample: usize, numbers: &mut Numbers<T>) {
        let Numbers { gradients, sums, ids: buffer, copies, .. } = numbers;
        let Copies { rows: copies, named, .. } = copies;
        let mut first = 0;
        for of_table in &self.layout.tables {
            let Some(shared) = self.rows_of(of_table) else { continue };
            let size = shared.facts.row_size;
            let in_parts = of_table.updates == Updates::InParts;
            named.clear();
            for (read, place) in of_table.of(self.reads, self.layout) {
                let (ids, values) = read.refs.of_sample(sample, buffer);
                let own = first..first + ids.len() * size;
                first = own.end;
                if !read.has_gradient {
                    continue;
                }
                let gradient = &mut gradients[place.gradients..][..read.size];
                scale(read, sample, ids.len(), gradient);
                let sums = sums[place.sums..].get(..size).unwrap_or_default();
                become_gradients(read.pool, values, gradient, sums, size, &mut copies[own.clone()]);
                with_column_ids!(ids, |ids| {
                    let firsts = own.step_by(size.max(1));
                    for (id, first) in ids.iter().zip(firsts) {
                        if in_parts {
                            // SAFETY: the sample was read.
                            unsafe { shared.rows.update(id.at(), &copies[first..first + size]) };
                        } else {
                            named.push((id.at(), first));
                        }
                    }
                });
            }
            // A row that is named twice has one update, by the sum of its gradients.
            named.sort_unstable();
            for same in named.chunk_by(|one, next| one.0 == next.0) {
                let (row, into) = same[0];
                for (_, from) in &same[1..] {
                    for column in 0..size {
                        let gradient = copies[from + column];
                        copies[into + column] += gradient;
                    }
                }
                // SAFETY: the sample was read.
                unsafe { shared.rows.update(row, &copies[into..into + size]) };
            }
        }
    }
}

impl<T: Float> Copies<T> {
    /// Room for some more rows, whose ids are below `count`: where the first one begins.
    fn extend(&mut self, count: usize, row_size: usize) -> usize {
        let known = self.ids.len();
        self.ids.extend((known..count).map(|id| id as u32));
        let first = self.rows.len();
        self.rows.resize(first + count * row_size, T::zero());
        first
    }
}

/// Replaces the copy of each row by the gradient with respect to it, given that of the numbers that
/// the rows were pooled to, and the sum of the rows of an interaction.
fn become_gradients<T: Float<Accumulator = T>>(
    pool: Pool,
    values: Values<'_, T>,
    gradient: &[T],
    sums: &[T],
    size: usize,
    copies: &mut [T],
) {
    let value = |place: usize| match values {
        Values::Each(values) => values[place],
        Values::Ones => T::one(),
    };
    for (place, copy) in copies.chunks_exact_mut(size.max(1)).enumerate() {
        match pool {
            Pool::Rows => copy.copy_from_slice(&gradient[place * size..][..size]),
            Pool::Bag { weighted: false, .. } => copy.copy_from_slice(gradient),
            Pool::Product | Pool::Bag { .. } => {
                for (copy, gradient) in copy.iter_mut().zip(gradient) {
                    *copy = Factor::<T>::times(value(place), *gradient);
                }
            }
            Pool::Pairs => {
                let share = Factor::<T>::times(value(place), gradient[0]);
                for (copy, sum) in copy.iter_mut().zip(sums) {
                    *copy = share * (*sum - value(place) * *copy);
                }
            }
        }
    }
}
