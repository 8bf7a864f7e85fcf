//! One step on a batch by one thread: each sample is read and computed, and adds to the sums of the
//! rows that it names, which are then in a cache. Updates follow by the sums.
//!
//! The sums are those that [threads](super::whole_batch) make, to the bit: the samples add to each
//! row in their order.

use super::dense_sums::add_terms;
use super::joint_sums;
use super::one_column;
use super::one_row;
use super::program::{Output, Read, RowFunction, Sample, Source, TrainedDense};
use super::sample_rows;
use super::tables::{Lent, Numbers, Tables};
use super::whole_batch::{
    Run, SAMPLES_IN_ELEMENTS, SAMPLES_IN_RUN, Sizes, samples_of, write_outputs,
};
use crate::error::Result;
use crate::optimizer::{RowUpdater, UpdateKind, clip};
use nnz_optim::UpdateRule;
use sparse_core::element::Float;

/// What the pass needs that depends on no rule, and what comes of it.
pub(crate) struct OnePass<'s, 'f, T: Float> {
    pub(super) numbers: &'s mut Numbers<T>,
    pub(super) run: &'s mut Run<T>,
    /// The sums of the terms of dense parameters.
    pub(super) totals: &'s mut [f64],
    pub(super) sizes: Sizes,
    pub(super) row_function: &'s RowFunction<'f, T>,
    /// What the common norm of all sums is clipped to, if it is.
    pub(super) max_norm: Option<f64>,
    /// The sum of the samples' losses.
    pub(super) loss: f64,
}

/// Whether a batch takes one pass: some table has rows that one pass finds in a cache, and none has
/// two reads with a gradient, of which threads add up one after the other.
pub(super) fn takes_one_pass<T: Float>(reads: &[Read<'_, '_, T>]) -> bool {
    let is_short = |read: &Read<'_, '_, T>| {
        let read = std::slice::from_ref(read);
        one_row::ids_of(read).is_some() || one_column::entries_of(read, read[0].size).is_some()
    };
    reads.iter().any(is_short) && has_one_gradient_by_table(reads)
}

fn has_one_gradient_by_table<T: Float>(reads: &[Read<'_, '_, T>]) -> bool {
    let trained = |read: &Read<'_, '_, T>| match read.source {
        Source::Trained(table) if read.has_gradient => Some(table),
        _ => None,
    };
    let mut before = None;
    reads.iter().filter_map(trained).all(|table| before.replace(table) != Some(table))
}

impl<T: Float<Accumulator = T>> OnePass<'_, '_, T> {
    /// The step but for dense parameters. `slotted` are tables of one column whose rows have a slot
    /// for their sum beside the weight; they are not among `tables`.
    #[inline(never)]
    pub(super) fn run<'t, R: UpdateRule, K: UpdateKind, S: UpdateKind>(
        &mut self,
        reads: &[Read<'_, '_, T>],
        n_samples: usize,
        (tables, slotted): (&mut Lent<'t, R, T, K>, &mut Lent<'t, R, T, S>),
        dense: &[TrainedDense<'_, T>],
        outputs: &mut [Output<'_, T>],
    ) -> Result<()> {
        let mut layout = std::mem::take(&mut self.numbers.layout);
        let mut joint = std::mem::take(&mut self.numbers.joint);
        let facts = |table: usize| {
            let plain = tables.get(table).and_then(Option::as_ref).map(sample_rows::facts);
            let with_slots = slotted.get(table).and_then(Option::as_ref).map(sample_rows::facts);
            plain.or(with_slots)
        };
        // A step that panicked may have left some.
        let clear = |rows: &mut RowUpdater<'_, R, T, K>| rows.sums_mut().clear();
        let clear_slotted = |rows: &mut RowUpdater<'_, R, T, S>| rows.sums_mut().clear();
        let result = layout.of(reads, facts).and_then(|()| {
            tables.iter_mut().flatten().for_each(clear);
            slotted.iter_mut().flatten().for_each(clear_slotted);
            // A norm adds up squares table by table, as threads do.
            if self.max_norm.is_none() {
                layout.find_groups(reads);
            }
            joint_sums::make_room(&mut joint, &layout);
            let joint = &mut joint[..];
            let mut of_call = Tables::new(reads, &layout, n_samples, tables, slotted, joint, false);
            self.sum_all(&mut of_call, dense, outputs)
        });
        if result.is_ok() {
            if let Some(max_norm) = self.max_norm {
                let totals = &mut *self.totals;
                clip::scale_to(max_norm, &mut |visit| {
                    for (plain, with_slots) in tables.iter_mut().zip(slotted.iter_mut()) {
                        match (plain, with_slots) {
                            (Some(rows), _) => visit(rows.sums_mut().values_mut()),
                            (None, Some(rows)) => visit(rows.sums_mut().values_mut()),
                            (None, None) => {}
                        }
                    }
                    visit(totals);
                });
            }
            joint_sums::apply(&mut joint, &layout, tables, slotted);
            tables.iter_mut().flatten().for_each(RowUpdater::apply_settled);
            slotted.iter_mut().flatten().for_each(RowUpdater::apply_settled);
        } else {
            tables.iter_mut().flatten().for_each(clear);
            slotted.iter_mut().flatten().for_each(clear_slotted);
            joint_sums::clear(&mut joint);
        }
        (self.numbers.layout, self.numbers.joint) = (layout, joint);
        result
    }

    #[inline(always)]
    fn sum_all<R: UpdateRule, K: UpdateKind, S: UpdateKind>(
        &mut self,
        of_call: &mut Tables<'_, '_, '_, '_, R, T, K, S>,
        dense: &[TrainedDense<'_, T>],
        outputs: &mut [Output<'_, T>],
    ) -> Result<()> {
        let OnePass { numbers, run, totals, sizes, row_function, loss, .. } = self;
        let n_samples = of_call.n_samples;
        for place in 0..n_samples.div_ceil(SAMPLES_IN_RUN) {
            let samples = samples_of(place, n_samples);
            let (n_in_run, mut loss_of_run) = (samples.len(), 0.0);
            run.totals.fill(0.0);
            for (place, sample) in samples.clone().enumerate() {
                of_call.read(sample, numbers)?;
                let few = place % SAMPLES_IN_ELEMENTS;
                loss_of_run += row_function(Sample {
                    index: sample,
                    numbers: &numbers.read,
                    dense,
                    gradients: &mut numbers.gradients,
                    terms: &mut run.terms[few * sizes.terms..][..sizes.terms],
                    outputs: (sizes.outputs > 0)
                        .then(|| &mut run.outputs[place * sizes.outputs..][..sizes.outputs]),
                    work: &mut numbers.work,
                })
                .as_f64();
                if few == SAMPLES_IN_ELEMENTS - 1 || place == n_in_run - 1 {
                    let terms = &run.terms[..(few + 1) * sizes.terms];
                    add_terms(dense, terms, sizes.terms, &mut run.totals);
                }
                of_call.add(sample, numbers);
            }
            *loss += loss_of_run;
            totals.iter_mut().zip(&run.totals).for_each(|(sum, of_run)| *sum += of_run);
            write_outputs(outputs, &run.outputs, samples, sizes.outputs);
        }
        Ok(())
    }
}
