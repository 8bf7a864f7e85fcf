//! Updates of parameters on a GPU: one kernel a rule, made of its recurrence.
//!
//! Weights and states lie there in arrays of their own, and beside them what rows wait for. Which
//! step it is, and at what rate, is the updater's business, as on the host; the states, and up to
//! which step each row is settled, are the updater's again when the parameter comes back.

mod any;
pub(super) mod idle_products;
mod lazy_rows;
mod norms;
mod recurrence;
mod samples;
mod sums;
mod table;

pub(crate) use any::UpdaterOnGpu;
pub(crate) use lazy_rows::NamedRows;
pub(crate) use samples::CudaSamples;
pub(crate) use sums::{RowSums, StoredValues, Summed};
pub use table::CudaTable;

use self::recurrence::RecurrencePart;
use super::error::OptimizerError;
use super::update_kind::{IdleOf, StateOf};
use super::updater::Updater;
use crate::error::Result;
use nnz_arrays::device::cuda::{Cuda, CudaBuffer, CudaError, CudaSlice, Gpu, Unit, Word};
use nnz_arrays::formats::{Dense, DenseView, RowIdsView, RowSparseView, Shape};
use nnz_arrays::kernels::cuda::{CudaContext, GpuFloat};
use nnz_arrays::kernels::dense;
use nnz_arrays::parameter_memory::Table;
use nnz_device::cuda::text_of_files;
use nnz_device::cuda::{Blocks, Launch};
use nnz_optim::{
    IdleMap, LazyUpdate, MOST_NUMBERS, NAMES, Recurrence, RuleVisitor, Sgd, StateBlock, Step, Svrg,
    UpdateRule, with_rule,
};
use sparse_core::storage::Storage;
use std::fmt;
use std::sync::LazyLock;

/// What several texts of updates share.
const UPDATE_HEADER: (&str, &str) = ("optimizer/cuda/update.cuh", include_str!("update.cuh"));

static UPDATE_TEXT: LazyLock<String> = LazyLock::new(|| {
    text_of_files(&[UPDATE_HEADER, ("optimizer/cuda/update.cu", include_str!("update.cu"))])
});

const THREADS: u32 = 256;

const STATES: &str = "the states of an optimizer";

/// The gradient of a parameter on a GPU.
#[derive(Clone, Copy)]
pub enum CudaGradient<'a, T: GpuFloat> {
    /// A dense one, of the parameter's shape.
    Dense(DenseView<'a, T, Cuda>),
    /// One of rows, of the parameter's shape.
    RowSparse(RowSparseView<'a, T, Cuda>),
}

impl<T: GpuFloat> fmt::Debug for CudaGradient<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CudaGradient::Dense(_) => "Dense",
            CudaGradient::RowSparse(_) => "RowSparse",
        })
    }
}

impl<'a, T: GpuFloat> CudaGradient<'a, T> {
    /// The elements that it stores.
    pub(crate) fn values(&self) -> CudaSlice<'a, T> {
        match self {
            CudaGradient::Dense(of) => of.values(),
            CudaGradient::RowSparse(of) => of.values(),
        }
    }
}

impl<R: UpdateRule, T: GpuFloat> Updater<R, T> {
    /// Refuses a rule that has no kernel, and a mode that would cost more than it promises.
    ///
    /// # Errors
    ///
    /// [`OptimizerError::NoRecurrence`]; [`OptimizerError::IdleStepsOnGpu`];
    /// [`OptimizerError::WaitsTooLong`].
    pub fn check_for_gpu(&self) -> Result<()> {
        if R::RECURRENCE.is_none() {
            return Err(OptimizerError::NoRecurrence { rule: R::NAME }.into());
        }
        self.check_lazy_rows()
    }

    /// Makes room for the states of a parameter on a GPU, for what rows wait for, and for a
    /// gradient of all rows where the mode makes one: what applying its gradient would allocate or
    /// copy. So a step that lacks memory is refused before anything is updated.
    ///
    /// # Errors
    ///
    /// [`OptimizerError::NoSuchParameter`]; [`CudaError::OutOfMemory`].
    pub(crate) fn make_room_on_gpu(
        &mut self,
        parameter: usize,
        table: &mut CudaTable<T>,
        host: &Table<T>,
        gpu: &Gpu,
    ) -> Result<()> {
        if !table.turn_to(&self.tenant) {
            table.park();
            self.states_to_gpu(parameter, table, host, gpu)?;
        }
        self.lazy_rows_to_gpu(parameter, table, host, gpu)?;
        let spec = &self.record(parameter)?.spec;
        if self.mode == LazyUpdate::Dense && spec.gradient == Some(Storage::RowSparse) {
            table.whole.reset_on(gpu, *table.weights.shape())?;
        }
        if R::RECURRENCE.is_some_and(|rule| rule.norms.is_some()) {
            table.norms.make_room(gpu, table.weights.shape().size())?;
        }
        Ok(())
    }

    /// Applies the gradient of a parameter that is on a GPU, in the rule's mode: O(rows of the
    /// gradient); O(rows of the table) in mode `Dense`, and where idle steps forget those before
    /// and the rate has changed.
    ///
    /// `host` is the parameter's table there, in which its states may be.
    ///
    /// # Errors
    ///
    /// [`OptimizerError::NoSuchParameter`]; [`OptimizerError::GradientShape`] unless gradient and
    /// weights have the parameter's size; [`OptimizerError::NoRecurrence`];
    /// [`CudaError::OutOfMemory`] for the states.
    pub fn apply_on_gpu(
        &mut self,
        parameter: usize,
        table: &mut CudaTable<T>,
        host: &Table<T>,
        gradient: CudaGradient<'_, T>,
        context: &mut CudaContext,
    ) -> Result<()> {
        self.apply_scaled_on_gpu(parameter, table, host, gradient, 1.0, context)
    }

    /// The same, with the gradient multiplied by a factor.
    ///
    /// # Errors
    ///
    /// As [`apply_on_gpu`](Updater::apply_on_gpu).
    pub(crate) fn apply_scaled_on_gpu(
        &mut self,
        parameter: usize,
        table: &mut CudaTable<T>,
        host: &Table<T>,
        gradient: CudaGradient<'_, T>,
        factor: f64,
        context: &mut CudaContext,
    ) -> Result<()> {
        let gpu = context.gpu().clone();
        let found = match gradient {
            CudaGradient::Dense(of) => *of.shape(),
            CudaGradient::RowSparse(of) => *of.shape(),
        };
        let kernel = self.kernel_on_gpu(parameter, table, host, found, factor, &gpu)?;
        let ids = match gradient {
            CudaGradient::RowSparse(of) => match of.indices() {
                RowIdsView::All => None,
                RowIdsView::Listed(ids) => Some(ids),
            },
            CudaGradient::Dense(_) => None,
        };
        let rows = ids.map_or(NamedRows::All, NamedRows::Listed);
        self.settle_written_on_gpu(parameter, table, rows, &gpu)?;
        let (weights, states) = (&table.weights, &table.beside.states);
        match gradient {
            CudaGradient::Dense(all) => {
                kernel.launch(weights, states, None, Some(all.values()))?;
                kernel.end_by_norms(table)?;
            }
            CudaGradient::RowSparse(of) if self.mode == LazyUpdate::Dense => {
                dense::cuda::row_sparse(&mut table.whole, of, context);
                kernel.launch(weights, states, None, Some(table.whole.view().values()))?;
                kernel.end_by_norms(table)?;
            }
            CudaGradient::RowSparse(of) => {
                kernel.launch(weights, states, ids, Some(of.values()))?;
                self.settle_on_gpu(parameter, table, &kernel)?;
            }
        }
        self.parameters[parameter].finished = true;
        Ok(())
    }

    /// The kernel of this step of a parameter, whose gradient has a shape and is multiplied by a
    /// factor; there is room for all it needs then.
    fn kernel_on_gpu<'g>(
        &mut self,
        parameter: usize,
        table: &mut CudaTable<T>,
        host: &Table<T>,
        found: Shape,
        factor: f64,
        gpu: &'g Gpu,
    ) -> Result<StepKernel<'g>> {
        let record = self.record(parameter)?;
        let (step, row_size) = (self.groups[record.group].step, record.spec.row_size);
        if [&found, table.weights.shape()].map(Shape::size) != [record.size; 2] {
            return Err(OptimizerError::GradientShape {
                parameter: record.spec.name.to_string(),
                n_rows: record.spec.n_rows,
                row_size,
                found,
            }
            .into());
        }
        self.make_room_on_gpu(parameter, table, host, gpu)?;
        let Some(rule) = R::RECURRENCE else {
            return Err(OptimizerError::NoRecurrence { rule: R::NAME }.into());
        };
        let words = KernelWords::new::<R, T>(rule, row_size, step.uses_state());
        let norms = norms::words::<R, T>(rule);
        Ok(StepKernel { words, norms, numbers: step.numbers(), factor, row_size, gpu })
    }

    /// After a step of some rows: the others make it too, where it makes up for all before it and
    /// they have not made it yet.
    fn settle_on_gpu(
        &self,
        parameter: usize,
        table: &mut CudaTable<T>,
        kernel: &StepKernel<'_>,
    ) -> Result<(), CudaError> {
        let group = self.parameters[parameter].group;
        let settles = self.mode == LazyUpdate::Exact
            && <IdleOf<R, T> as IdleMap>::FORGETS
            && self.groups[group].step.idle().changes();
        if settles && table.beside.settled != Some(kernel.numbers) {
            kernel.launch(&table.weights, &table.beside.states, None, None)?;
            table.beside.settled = Some(kernel.numbers);
        }
        Ok(())
    }

    /// Copies the states of a parameter to where its weights are: zeros where it has none yet,
    /// nothing where the rule uses none.
    fn states_to_gpu(
        &self,
        parameter: usize,
        table: &mut CudaTable<T>,
        host: &Table<T>,
        gpu: &Gpu,
    ) -> Result<()> {
        let record = self.record(parameter)?;
        let states = self.states(parameter, host)?;
        let n_values = StateOf::<R, T>::default().values().count();
        let n_blocks = record.states_of_row() * record.spec.n_rows;
        if !self.groups[record.group].step.uses_state() {
            table.beside.states = CudaBuffer::default();
        } else if states.is_empty() {
            table.beside.states.resize_for_overwrite(gpu, n_blocks * n_values, STATES)?;
            // The zero of every float has no bits.
            table.beside.states.fill_bytes(0)?;
        } else {
            let values: Vec<T> = states.iter().flat_map(|state| state.values()).collect();
            table.beside.states.assign_from_host(gpu, &values, STATES)?;
        }
        table.beside.owner = Some(self.tenant.as_owner());
        table.beside.settled = None;
        table.beside.lazy_rows.forget();
        Ok(())
    }

    /// Takes the states of a parameter back from a GPU, where rows may wait for steps that they
    /// missed: they are those that [`states`](Updater::states) gives, and the next step there
    /// begins with; a [`flush`](Updater::flush) brings rows up to date. O(values).
    ///
    /// `host` is the parameter's table on the host, whose states they become if they lie there.
    ///
    /// # Errors
    ///
    /// [`OptimizerError::NoSuchParameter`]; [`OptimizerError::ValueCount`] unless both tables have
    /// the parameter's size; what failed on the GPU.
    pub fn states_from_gpu(
        &mut self,
        parameter: usize,
        table: &mut CudaTable<T>,
        host: &mut Table<T>,
    ) -> Result<()> {
        let size = self.record(parameter)?.size;
        let found = [table.weights.shape().size(), host.len()];
        if let Some(other) = found.into_iter().find(|found| *found != size) {
            return Err(self.wrong_count(parameter, other));
        }
        if !table.turn_to(&self.tenant) {
            return Ok(());
        }
        // They are taken from here again, since they may be changed meanwhile.
        table.beside.owner = None;
        let mut values = table.beside.states.to_host()?.into_iter();
        let n_values = StateOf::<R, T>::default().values().count().max(1);
        let states = (0..values.len() / n_values).map(|_| {
            let mut state = StateOf::<R, T>::default();
            state.values_mut().zip(&mut values).for_each(|(place, value)| *place = value);
            state
        });
        let states: Vec<_> = states.collect();
        let record = &mut self.parameters[parameter];
        if record.beside {
            host.set_states(&self.tenant, &states)
        } else {
            record.states = states
        }
        if !self.has_lazy_rows(parameter) {
            let record = &mut self.parameters[parameter];
            record.base = self.clock;
            record.touched.give_up();
            return Ok(());
        }
        let last = table.beside.lazy_rows.last()?;
        let record = &mut self.parameters[parameter];
        if last.len() != record.spec.n_rows {
            // Nothing was asked of it since rows wait.
            return Ok(());
        }
        if record.touched.is_complete() {
            record.touched.reserve(record.spec.n_rows);
            let rows = last.iter().enumerate().filter(|(_, last)| **last != 0);
            rows.for_each(|(row, _)| record.touched.add(row));
        }
        record.counts = true;
        if Self::has_last_beside(record) {
            host.set_last(&self.tenant, &last)
        } else {
            record.last = last
        }
        Ok(())
    }
}

/// The kernel of a rule, at a step.
struct StepKernel<'a> {
    words: KernelWords,
    /// Of a kernel of its own, where the step ends by norms.
    norms: Option<[(&'static str, Word); 4]>,
    numbers: [f64; MOST_NUMBERS],
    /// What gradients are multiplied by.
    factor: f64,
    row_size: usize,
    gpu: &'a Gpu,
}

impl StepKernel<'_> {
    /// The step of the rows given, or of all; without a gradient it is 0.
    fn launch<T: GpuFloat>(
        &self,
        weights: &Dense<T, Cuda>,
        states: &CudaBuffer<T>,
        rows: Option<CudaSlice<'_, u64>>,
        gradient: Option<CudaSlice<'_, T>>,
    ) -> Result<(), CudaError> {
        let of_row = self.words.of_row;
        let values = weights.view().values();
        let row_size = self.row_size.max(1);
        let n_rows = rows.map_or(values.len() / row_size, |rows| rows.len());
        let kernel =
            self.gpu.kernel(&self.words.unit(), if of_row { "update_of_row" } else { "update" })?;
        let launch = Launch::new(self.gpu, kernel)
            .reads(rows.unwrap_or_default())
            .reads(gradient.unwrap_or_default())
            .f64(self.factor)
            .record("rule_step", &self.numbers.map(f64::to_bits))
            .writes(values)
            .writes(states.as_slice())
            .size(self.row_size);
        let (n, each) = if of_row {
            (n_rows, THREADS as usize / self.words.lanes)
        } else {
            (n_rows * row_size, THREADS as usize)
        };
        // SAFETY: rows are below those of the table, each once; there is a gradient for each of
        // their elements, and there are states for each element or row of the table.
        unsafe { launch.size(n).launch(Blocks::of(n, each, THREADS)) }
    }
}

/// The lanes that have a row.
fn lanes(row_size: usize) -> usize {
    row_size.max(1).next_power_of_two().min(32)
}

/// The words of a rule's kernel.
struct KernelWords {
    of_row: bool,
    lanes: usize,
    words: [(&'static str, Word); 7],
}

impl KernelWords {
    fn new<R: UpdateRule, T: GpuFloat>(
        rule: Recurrence,
        row_size: usize,
        uses_state: bool,
    ) -> Self {
        let n_states = R::STATES.len();
        let lanes = lanes(row_size);
        let part = recurrence::word::<R>;
        KernelWords {
            of_row: rule.row.is_some(),
            lanes,
            words: [
                ("REAL", Word::Name(T::TYPE.name())),
                ("STATES", Word::Number(if uses_state { n_states as u64 } else { 0 })),
                ("NAMED", Word::Number(n_states.max(1) as u64)),
                ("RECURRENCE", part(RecurrencePart::Weight)),
                ("LANES", Word::Number(lanes as u64)),
                ("TERM", part(RecurrencePart::Term)),
                ("ROW", part(RecurrencePart::Row)),
            ],
        }
    }

    fn unit(&self) -> Unit<'_> {
        if self.of_row {
            Unit {
                file: "optimizer/cuda/update_of_row.cu",
                text: include_str!("update_of_row.cu"),
                words: &self.words,
            }
        } else {
            // The last words are about rows.
            Unit { file: "optimizer/cuda/update.cu", text: &UPDATE_TEXT, words: &self.words[..4] }
        }
    }
}

/// Visits the unit of each rule that is known by name.
pub fn for_each_unit(visit: &mut dyn FnMut(&Unit<'_>)) {
    struct Visit<'a>(&'a mut dyn FnMut(&Unit<'_>));
    impl RuleVisitor for Visit<'_> {
        type Output = ();
        fn visit<R: UpdateRule>(self, _: R) {
            if let Some(rule) = R::RECURRENCE {
                (self.0)(&KernelWords::new::<R, f32>(rule, 16, true).unit());
                if let Some(words) = norms::words::<R, f32>(rule) {
                    (self.0)(&norms::unit(&words));
                }
            }
        }
    }
    for name in NAMES {
        // The names are those of rules.
        let _ = with_rule(name, Visit(visit));
    }
    Visit(visit).visit(Svrg::<Sgd>::default());
    sums::for_each_unit(visit);
    lazy_rows::for_each_unit(visit);
}
