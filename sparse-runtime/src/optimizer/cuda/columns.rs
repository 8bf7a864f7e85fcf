//! Steps of parameters whose gradient is csrᵀ · dense, or that of the interactions of a factorization machine, without making that: the kernel
//! that sums up what a column gets ends in the rule's recurrence.

use super::{CudaTable, THREADS, Words};
use crate::device::cuda::{Blocks, Cuda, CudaSlice, Gpu, Launch, Unit, Word, text_of};
use crate::error::Result;
use crate::formats::DenseView;
use crate::kernels::cuda::GpuFloat;
use crate::kernels::cuda::occurrences::Occurrences;
use crate::kernels::dot::cuda::{Groups, words as words_of_products};
use crate::optimizer::updater::Updater;
use crate::table::Table;
use sparse_core::element::Unit as Ones;
use sparse_core::storage::ElementType;
use sparse_core::update_rules::{Adam, LazyUpdate, Recurrence, Sgd, UpdateRule};

/// A gradient that is not made: a row for each column that occurs in the csr.
#[derive(Clone, Copy)]
pub(crate) struct ColumnSums<'a, T: GpuFloat> {
    /// What the csr stores.
    pub(crate) values: StoredValues<'a, T>,
    /// Which columns occur in it, and where.
    pub(crate) occurrences: &'a Occurrences,
    /// Of csrᵀ · dense the dense side: as many rows as the csr has, each of the size of a row of the parameter. Of interactions the derivatives
    /// by their terms, one a row.
    pub(crate) right: DenseView<'a, T, Cuda>,
    /// Of interactions, for each row of the csr, the sums over its entries of each column of the parameter.
    pub(crate) factor_sums: Option<CudaSlice<'a, f64>>,
}

/// What a csr stores.
#[derive(Clone, Copy)]
pub(crate) enum StoredValues<'a, T: GpuFloat> {
    /// Numbers.
    Numbers(CudaSlice<'a, T>),
    /// Ones, which take no memory.
    Units(CudaSlice<'a, Ones>),
}

impl<T: GpuFloat> StoredValues<'_, T> {
    fn type_name(&self) -> &'static str {
        match self {
            StoredValues::Numbers(_) => T::TYPE.name(),
            StoredValues::Units(_) => ElementType::Unit.name(),
        }
    }
}

impl<R: UpdateRule, T: GpuFloat> Updater<R, T> {
    /// Whether [`apply_columns_on_gpu`](Updater::apply_columns_on_gpu) has a kernel for the rule and its mode: not for one with a state of
    /// whole rows, whose step needs the gradient of a row twice, nor where all rows make each step.
    pub(crate) fn takes_columns_on_gpu(&self) -> bool {
        self.mode != LazyUpdate::Dense && R::RECURRENCE.is_some_and(|rule| rule.row.is_none())
    }

    /// Applies a gradient that is not made, where [`takes_columns_on_gpu`](Updater::takes_columns_on_gpu): otherwise as
    /// [`apply_on_gpu`](Updater::apply_on_gpu), with the same bits.
    ///
    /// # Errors
    ///
    /// As [`apply_on_gpu`](Updater::apply_on_gpu).
    pub(crate) fn apply_columns_on_gpu(
        &mut self,
        parameter: usize,
        table: &mut CudaTable<T>,
        host: &Table<T>,
        of: ColumnSums<'_, T>,
        gpu: &Gpu,
    ) -> Result<()> {
        let shape = *table.weights.shape();
        let kernel = self.kernel_on_gpu(parameter, table, host, shape, 1.0, gpu)?;
        let (most, columns, number) = of.occurrences.columns_asked_for();
        let groups = Groups::for_columns(kernel.row_size);
        let words = words(&kernel.words, of.values.type_name(), groups);
        let found = match of.factor_sums {
            Some(_) => gpu.kernel(&unit_of_factors(&words), "update_of_factors")?,
            None => gpu.kernel(&unit(&words), "update_of_columns")?,
        };
        let launch = Launch::new(gpu, found)
            .reads(of.occurrences.runs())
            .reads(of.occurrences.entries())
            .reads(of.occurrences.rows())
            .reads(columns)
            .reads(number);
        let launch = match of.values {
            StoredValues::Numbers(values) => launch.reads(values),
            StoredValues::Units(values) => launch.reads(values),
        };
        let launch = launch.reads(of.right.values());
        let launch = match of.factor_sums {
            Some(sums) => launch.reads(sums),
            None => launch,
        };
        let launch = launch
            .record("rule_step", &kernel.numbers.map(f64::to_bits))
            .writes(table.weights.view().values())
            .writes(table.states.as_slice());
        let blocks = match of.factor_sums {
            Some(_) => Blocks::of(most * kernel.row_size, THREADS as usize, THREADS),
            None => groups.blocks(most, kernel.row_size),
        };
        // SAFETY: runs, entries and rows are those of the csr, whose rows are those of the right side and of the sums; columns are below the
        // rows of the table, each once, as many as their number says, and there are states for each element of the table.
        unsafe { launch.size(kernel.row_size).launch(blocks) }?;
        self.settle_on_gpu(parameter, table, &kernel)?;
        self.parameters[parameter].finished = true;
        Ok(())
    }
}

/// The words of sums and of a recurrence whose states are those of each weight.
fn words(of: &Words, value: &'static str, groups: Groups) -> [(&'static str, Word); 8] {
    let [real, states, named, recurrence, ..] = of.words;
    // No column is read.
    let real_name = match real.1 {
        Word::Name(name) => name,
        _ => "",
    };
    let [_, value, id, lanes, steps] =
        words_of_products(real_name, value, ElementType::U32.name(), groups);
    [real, value, id, lanes, steps, states, named, recurrence]
}

fn unit<'a>(words: &'a [(&'static str, Word)]) -> Unit<'a> {
    let text = text_of!(
        "kernels/dot/dot.cuh",
        "optimizer/cuda/update.cuh",
        "optimizer/cuda/update_of_columns.cu"
    );
    Unit { file: "optimizer/cuda/update_of_columns.cu", text, words }
}

fn unit_of_factors<'a>(words: &'a [(&'static str, Word)]) -> Unit<'a> {
    let text = text_of!(
        "kernels/pairwise_interaction/pairwise_interaction.cuh",
        "optimizer/cuda/update.cuh",
        "optimizer/cuda/update_of_factors.cu"
    );
    Unit { file: "optimizer/cuda/update_of_factors.cu", text, words }
}

/// Visits units of one column and of many, with and without states.
pub(super) fn for_each_unit(visit: &mut dyn FnMut(&Unit<'_>)) {
    fn of<R: UpdateRule>(rule: Option<Recurrence>, visit: &mut dyn FnMut(&Unit<'_>)) {
        let Some(rule) = rule else { return };
        for (width, value) in
            [(1, ElementType::F32), (7, ElementType::Unit), (64, ElementType::F32)]
        {
            let of_rule = Words::new::<R, f32>(rule, width, !R::STATES.is_empty());
            let words = words(&of_rule, value.name(), Groups::for_columns(width));
            visit(&unit(&words));
            visit(&unit_of_factors(&words));
        }
    }
    of::<Sgd>(Sgd::RECURRENCE, visit);
    of::<Adam>(Adam::RECURRENCE, visit);
}
