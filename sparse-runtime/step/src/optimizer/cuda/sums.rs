//! Updates by a gradient that is a sum over samples which name table rows, or that of the
//! interactions of a factorization machine. The gradient is not made: the kernel that sums a row's
//! gradient ends in the rule's recurrence.

use super::{CudaTable, KernelWords, NamedRows, THREADS, UPDATE_HEADER};
use crate::error::Result;
use crate::optimizer::updater::Updater;
use nnz_arrays::device::cuda::{Cuda, CudaSlice, Gpu, Unit, Word};
use nnz_arrays::formats::DenseView;
use nnz_arrays::kernels::cuda::GpuFloat;
use nnz_arrays::kernels::cuda::occurrences::Occurrences;
use nnz_arrays::kernels::dot::cuda::{Groups, words as words_of_products};
use nnz_arrays::kernels::{dot, pairwise_interaction};
use nnz_arrays::parameter_memory::Table;
use nnz_device::cuda::text_of_files;
use nnz_device::cuda::{Blocks, Launch, MOST_SIDES};
use nnz_optim::{Adam, LazyUpdate, Recurrence, Sgd, Svrg, UpdateRule};
use sparse_core::element::Unit as Ones;
use sparse_core::storage::ElementType;
use std::sync::LazyLock;

/// A gradient that is not made: a row for each that the batch names, by the columns of a csr or by
/// ids.
pub(crate) struct RowSums<'a, T: GpuFloat> {
    /// Which rows are named, and where.
    pub(crate) occurrences: &'a Occurrences,
    /// What is summed up.
    pub(crate) of: Summed<'a, T>,
}

/// What a gradient is the sum of.
pub(crate) enum Summed<'a, T: GpuFloat> {
    /// Rows of right sides, each of which has the size of a row of the parameter.
    Rows {
        /// The factor of each entry of a csr; ones of ids.
        values: StoredValues<'a, T>,
        /// For each row of a csr what its values are multiplied by, unless that is 1.
        shares: CudaSlice<'a, f64>,
        /// The row of the right sides that each entry of a csr has; nothing of ids, which are as
        /// many as the rows.
        rows: CudaSlice<'a, u32>,
        /// The right sides, at most [`MOST_SIDES`], of which the rows are counted on from one to
        /// the next, with how many rows each has.
        right: Vec<(CudaSlice<'a, T>, usize)>,
    },
    /// Slopes of the interactions of the rows of a csr.
    Interactions {
        /// What the csr stores.
        values: StoredValues<'a, T>,
        /// The derivatives by the terms, one a row.
        right: DenseView<'a, T, Cuda>,
        /// For each row of the csr, the sums over its entries of each column of the parameter.
        factor_sums: CudaSlice<'a, f64>,
    },
}

/// What a csr stores.
#[derive(Clone, Copy)]
pub(crate) enum StoredValues<'a, T: GpuFloat> {
    /// Numbers.
    Numbers(CudaSlice<'a, T>),
    /// Ones, which take no memory.
    Units,
}

impl<T: GpuFloat> StoredValues<'_, T> {
    fn type_name(&self) -> &'static str {
        match self {
            StoredValues::Numbers(_) => T::TYPE.name(),
            StoredValues::Units => ElementType::Unit.name(),
        }
    }

    fn read_by<'l>(&self, launch: Launch<'l>) -> Launch<'l> {
        match self {
            StoredValues::Numbers(values) => launch.reads(*values),
            StoredValues::Units => launch.reads(CudaSlice::<Ones>::default()),
        }
    }
}

impl<R: UpdateRule, T: GpuFloat> Updater<R, T> {
    /// Whether [`apply_sums_on_gpu`](Updater::apply_sums_on_gpu) has a kernel for the rule and its
    /// mode: not for one with a state of whole rows, whose step needs the gradient of a row twice,
    /// nor where all rows make each step.
    pub(crate) fn takes_sums_on_gpu(&self) -> bool {
        self.mode != LazyUpdate::Dense && R::RECURRENCE.is_some_and(|rule| rule.row.is_none())
    }

    /// Applies a gradient that is not made, where
    /// [`takes_sums_on_gpu`](Updater::takes_sums_on_gpu): otherwise as
    /// [`apply_on_gpu`](Updater::apply_on_gpu), with the same bits, but for those of a sum over
    /// several right sides, which is one sum.
    ///
    /// # Errors
    ///
    /// As [`apply_on_gpu`](Updater::apply_on_gpu).
    pub(crate) fn apply_sums_on_gpu(
        &mut self,
        parameter: usize,
        table: &mut CudaTable<T>,
        host: &Table<T>,
        sums: &RowSums<'_, T>,
        gpu: &Gpu,
    ) -> Result<()> {
        let shape = *table.weights.shape();
        let kernel = self.kernel_on_gpu(parameter, table, host, shape, 1.0, gpu)?;
        let row_size = kernel.row_size;
        let (most, named, number) = sums.occurrences.columns_asked_for();
        let rows = NamedRows::Counted(named, number, most);
        self.settle_written_on_gpu(parameter, table, rows, gpu)?;
        let groups = Groups::for_columns(row_size);
        let n_sides = match &sums.of {
            Summed::Rows { right, .. } => right.len(),
            Summed::Interactions { .. } => 1,
        };
        let (Summed::Rows { values, .. } | Summed::Interactions { values, .. }) = &sums.of;
        let words = words(&kernel.words, values.type_name(), groups, n_sides);
        let found = match &sums.of {
            Summed::Rows { .. } => gpu.kernel(&unit(&words), "update_of_sums")?,
            Summed::Interactions { .. } => {
                gpu.kernel(&unit_of_factors(&words), "update_of_factors")?
            }
        };
        let launch = Launch::new(gpu, found)
            .reads(sums.occurrences.runs())
            .reads(sums.occurrences.entries());
        let (launch, blocks) = match &sums.of {
            Summed::Rows { shares, rows, right, .. } => {
                let launch = values.read_by(launch.reads(*rows).reads(named).reads(number));
                let launch = launch.reads(*shares).sides(right);
                (launch, groups.blocks(most, row_size))
            }
            Summed::Interactions { right, factor_sums, .. } => {
                let launch = launch.reads(sums.occurrences.rows()).reads(named).reads(number);
                let launch = values.read_by(launch).reads(right.values()).reads(*factor_sums);
                (launch, Blocks::of(most * row_size, THREADS as usize, THREADS))
            }
        };
        let launch = launch
            .record("rule_step", &kernel.numbers.map(f64::to_bits))
            .writes(table.weights.view().values())
            .writes(table.beside.states.as_slice());
        // SAFETY: runs, entries and rows are those of a csr or of ids, whose rows are those of the
        // right sides, of the shares and of the sums; the rows named are below those of the table,
        // each once, as many as their number says, and there are states for each element of it.
        unsafe { launch.size(row_size).launch(blocks) }?;
        self.settle_on_gpu(parameter, table, &kernel)?;
        self.parameters[parameter].finished = true;
        Ok(())
    }
}

/// The words of sums and of a recurrence whose states are those of each weight.
fn words(
    of: &KernelWords,
    value: &'static str,
    groups: Groups,
    n_sides: usize,
) -> [(&'static str, Word); 9] {
    let [real, states, named, recurrence, ..] = of.words.clone();
    // No column is read.
    let real_name = match real.1 {
        Word::Name(name) => name,
        _ => "",
    };
    let [_, value, id, lanes, steps] =
        words_of_products(real_name, value, ElementType::U32.name(), groups);
    let sides = ("SIDES", Word::Number(n_sides as u64));
    [real, value, id, lanes, steps, states, named, recurrence, sides]
}

fn unit<'a>(words: &'a [(&'static str, Word)]) -> Unit<'a> {
    const FILE: &str = "optimizer/cuda/update_of_sums.cu";
    static TEXT: LazyLock<String> = LazyLock::new(|| {
        text_of_files(&[
            dot::cuda::HEADER,
            UPDATE_HEADER,
            (FILE, include_str!("update_of_sums.cu")),
        ])
    });
    Unit { file: FILE, text: &TEXT, words }
}

fn unit_of_factors<'a>(words: &'a [(&'static str, Word)]) -> Unit<'a> {
    const FILE: &str = "optimizer/cuda/update_of_factors.cu";
    static TEXT: LazyLock<String> = LazyLock::new(|| {
        let own = (FILE, include_str!("update_of_factors.cu"));
        text_of_files(&[pairwise_interaction::cuda::HEADER, UPDATE_HEADER, own])
    });
    // The last word is about right sides.
    Unit { file: FILE, text: &TEXT, words: &words[..8] }
}

/// Visits units of one column and of many, of one right side and of most, with and without states.
pub(super) fn for_each_unit(visit: &mut dyn FnMut(&Unit<'_>)) {
    fn of<R: UpdateRule>(rule: Option<Recurrence>, visit: &mut dyn FnMut(&Unit<'_>)) {
        let Some(rule) = rule else { return };
        for (width, value, n_sides) in [
            (1, ElementType::F32, 1),
            (7, ElementType::Unit, MOST_SIDES),
            (64, ElementType::F32, 1),
        ] {
            let of_rule = KernelWords::new::<R, f32>(rule, width, !R::STATES.is_empty());
            let words = words(&of_rule, value.name(), Groups::for_columns(width), n_sides);
            visit(&unit(&words));
            visit(&unit_of_factors(&words));
        }
    }
    of::<Sgd>(Sgd::RECURRENCE, visit);
    of::<Adam>(Adam::RECURRENCE, visit);
    of::<Svrg<Sgd>>(Svrg::<Sgd>::RECURRENCE, visit);
}
