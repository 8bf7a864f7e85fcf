//! Terms of row gradients in a list: what the reads of a table add to its gradient over a batch.

use super::program::{Pool, Refs};
use super::table_reads::TableFacts;
use super::table_rows::TableRows;
use crate::autotune::Stage;
use crate::column_partition::{Bounds, RowPart};
use crate::linear::{Scratch, row_of};
use crate::scatter_gradient::{Visit, Visited, WORK_OF_A_TERM, run_within, sample_of, sum_of_size};
use nnz_arrays::formats::{CsrView, IdsView};
use nnz_arrays::kernels::{Parallel, embedding_bag};
use nnz_arrays::{with_column_ids, with_ids};
use sparse_core::element::{Factor, Float, Id};
use std::ops::Range;

/// What a read adds to the gradient of its table, sample by sample.
#[derive(Clone, Copy, Debug)]
pub struct Term<'b, 'k, T: Float> {
    /// What names the rows.
    pub(super) refs: Refs<'b, T>,
    /// How the rows were pooled.
    pub(super) pool: Pool,
    /// The gradients of the read's numbers.
    pub(super) gradients: OfSamples<'k, T>,
    /// Of an interaction: the sums of its rows.
    pub(super) sums: OfSamples<'k, T>,
}

/// Some numbers of each sample, among others.
#[derive(Clone, Copy, Debug)]
pub(super) struct OfSamples<'a, T> {
    /// All numbers, sample by sample.
    pub(super) all: &'a [T],
    /// The numbers of a sample among which these are.
    pub(super) stride: usize,
    /// The first of these.
    pub(super) first: usize,
    /// How many these are.
    pub(super) size: usize,
}

impl<'a, T> OfSamples<'a, T> {
    #[inline(always)]
    fn of(&self, sample: usize) -> &'a [T] {
        let first = sample * self.stride + self.first;
        self.all.get(first..first + self.size).unwrap_or_default()
    }
}

/// Updates a table by the gradient that is the sum of `terms`. The rows that these name were caught
/// up in this step. O(elements of the terms + rows touched · cost of the rule); `parallel` threads
/// share the work of a large batch, and the bits do not depend on their number.
pub(super) fn update<T: Float<Accumulator = T>>(
    rows: &mut dyn TableRows<T>,
    terms: &[Term<'_, '_, T>],
    parameter: usize,
    parallel: Parallel,
    scratch: &mut Scratch<T>,
) {
    let TableFacts { n_rows, row_size, .. } = rows.facts();
    let begun = scratch.autotune.begin(Stage::Update(parameter), parallel, terms.work(row_size));
    let (row_scratch, parts) = scratch.of_parameter(parameter);
    let sample = |place, of| terms.sample(place, of);
    let bounds = (begun.n_parts > 1).then(|| Bounds::of(begun.n_parts, n_rows, &sample));
    match bounds.filter(|bounds| bounds.are_even) {
        None => {
            let (sums, weights) = rows.sums_and_weights();
            sum_of_size(sums, terms, weights, &(0..n_rows), row_size, row_scratch);
            rows.apply_sums();
        }
        Some(bounds) => {
            RowPart::resize(parts, begun.n_parts, n_rows, row_size);
            rows.update_parts(parts, &|place, part, weights| {
                let RowPart { sums, scratch, .. } = part;
                sum_of_size(sums, terms, weights, &bounds.of_part(place), row_size, scratch);
            });
        }
    }
    scratch.autotune.end(begun);
}

/// The sums of `terms` by rows, on this thread: what [`update`] updates by.
pub(super) fn sum<T: Float<Accumulator = T>>(
    rows: &mut dyn TableRows<T>,
    terms: &[Term<'_, '_, T>],
    scratch: &mut Scratch<T>,
) {
    let TableFacts { n_rows, row_size, .. } = rows.facts();
    let (sums, weights) = rows.sums_and_weights();
    // A step that panicked may have left some.
    sums.clear();
    sum_of_size(sums, terms, weights, &(0..n_rows), row_size, &mut scratch.rows);
}

impl<T: Float<Accumulator = T>> Term<'_, '_, T> {
    #[inline(always)]
    fn visit(&self, within: &Range<usize>, row_size: usize, visit: &mut impl Visit<T>) {
        match self.refs {
            Refs::Csr(csr) => self.visit_csr(csr, within, visit),
            Refs::Units(csr) => self.visit_csr(csr, within, visit),
            Refs::Ids(ids, n_ids) => with_ids!(IdsView, ids, |ids| {
                for (sample, ids) in ids.values().chunks_exact(n_ids.max(1)).enumerate() {
                    let gradients = self.gradients.of(sample).chunks_exact(row_size.max(1));
                    for (id, gradient) in ids.iter().zip(gradients) {
                        if let Some(id) = id.index().filter(|id| within.contains(id)) {
                            visit.alike(&[id as u64], T::one(), gradient);
                        }
                    }
                }
            }),
        }
    }

    #[inline(always)]
    fn visit_csr<V: Factor<T>>(
        &self,
        csr: CsrView<'_, V>,
        within: &Range<usize>,
        visit: &mut impl Visit<T>,
    ) {
        with_column_ids!(csr.columns(), |ids| {
            for sample in 0..csr.n_rows() {
                let gradient = self.gradients.of(sample);
                let (ids, values) = run_within(row_of(csr, ids, sample), csr, within);
                match self.pool {
                    Pool::Product => visit.each(ids, values, T::one(), gradient),
                    Pool::Bag { mean, weighted } => {
                        let share = match (mean, weighted) {
                            (true, false) => share_of(csr.ends()[sample] - csr.starts()[sample]),
                            _ => embedding_bag::cpu::share::<T, V>(csr, sample, mean, weighted),
                        };
                        if weighted {
                            visit.each(ids, values, share, gradient);
                        } else {
                            visit.alike(ids, share, gradient);
                        }
                    }
                    Pool::Pairs => {
                        let gradient = gradient.first().copied().unwrap_or(T::zero());
                        visit.pairs(ids, values, gradient, self.sums.of(sample));
                    }
                    // Rows of a csr are pooled.
                    Pool::Rows => {}
                }
            }
        });
    }

    fn sample(&self, place: usize, of: usize) -> usize {
        match self.refs {
            Refs::Csr(csr) => sample_of(csr, place, of),
            Refs::Units(csr) => sample_of(csr, place, of),
            Refs::Ids(ids, _) => with_ids!(IdsView, ids, |ids| {
                let ids = ids.values();
                ids.get(place * ids.len() / of).and_then(|id| id.index()).unwrap_or(0)
            }),
        }
    }
}

impl<T: Float<Accumulator = T>> Visited<T> for &[Term<'_, '_, T>] {
    fn are_distinct(&self) -> bool {
        false
    }

    #[inline(always)]
    fn visit(&self, within: &Range<usize>, row_size: usize, visit: &mut impl Visit<T>) {
        for term in self.iter() {
            term.visit(within, row_size, visit);
        }
    }

    fn sample(&self, place: usize, of: usize) -> usize {
        // Of any, as often as its terms are more work.
        let mut work = place * self.work(1) / of;
        for term in self.iter() {
            let own = of_term(term, 1);
            if work < own {
                return term.sample(place, of);
            }
            work -= own;
        }
        0
    }

    fn work(&self, row_size: usize) -> usize {
        self.iter().fold(0usize, |work, term| work.saturating_add(of_term(term, row_size)))
    }
}

/// What a mean of `count` rows has of each.
#[inline(always)]
fn share_of<T: Float>(count: u64) -> T {
    if count == 0 { T::zero() } else { T::one() / T::of(count as f64) }
}

fn of_term<T: Float>(term: &Term<'_, '_, T>, row_size: usize) -> usize {
    term.refs.n_entries().saturating_mul(row_size.saturating_add(WORK_OF_A_TERM))
}
