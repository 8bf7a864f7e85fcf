//! Lazy table rows on a GPU. The GPU has the last step of each row, and the maps of the steps that
//! rows may have missed. A kernel catches a row up before another one reads it.
//!
//! Maps are composed on the host, where the rule knows how, into products of consecutive steps
//! ([`Suffixes`]): a new step changes a few of them. The kernel composes nothing. It applies some
//! products one after the other, in `f64`: O(log₁₆ steps) for each weight.

use super::idle_products::{FAN, IdleProducts, LEVELS};
use super::recurrence::{self, RecurrencePart};
use super::{CudaTable, KernelWords, THREADS, lanes};
use crate::error::Result;
use crate::optimizer::OptimizerError;
use crate::optimizer::update_kind::{HistoryOf, IdleOf, StepOf};
use crate::optimizer::updater::Updater;
use nnz_arrays::device::cuda::{
    Cuda, CudaBuffer, CudaColumnIdsSlice, CudaError, CudaSlice, Gpu, Unit, Word,
};
use nnz_arrays::formats::IdsView;
use nnz_arrays::formats::cuda::ArrayArguments;
use nnz_arrays::kernels::cuda::GpuFloat;
use nnz_arrays::parameter_memory::Table;
use nnz_device::cuda::{Blocks, Launch};
use nnz_optim::{IdleMap, NAMES, Recurrence, RuleVisitor, Sgd, Step, Svrg, UpdateRule, with_rule};
use sparse_core::storage::ElementType;

/// Steps after which a table is settled as a whole: fewer than the levels have room for.
const MOST_STEPS: u64 = (FAN as u64).pow(LEVELS as u32) - 1;

const LAST: &str = "the last steps of rows";

const MAPS: &str = "the maps of steps";

/// What a GPU knows of the steps that rows of a table may have missed.
#[derive(Debug, Default)]
pub(super) struct LazyRows {
    /// Up to which step each row is settled, counted as the updater's record counts.
    last: CudaBuffer<u32>,
    /// The products of the maps of all steps since `base`, level after level.
    maps: CudaBuffer<f64>,
    /// How many maps level 0 has room for.
    room: usize,
    /// The step that counting begins with.
    base: u64,
    /// How many steps since are in `maps`.
    n_steps: usize,
}

impl LazyRows {
    /// A copy for a table with the same rows; the maps are copied there when they are needed.
    pub(super) fn copy(&self, gpu: &Gpu) -> Self {
        let mut copy = LazyRows::default();
        gpu.attempt(&mut copy.last, |last| last.assign(gpu, self.last.as_slice(), LAST));
        copy
    }

    /// Up to which step each row is settled, on the host.
    pub(super) fn last(&self) -> Result<Vec<u32>, CudaError> {
        self.last.to_host()
    }

    /// Knows nothing, of an updater that was not here before.
    pub(super) fn forget(&mut self) {
        (self.base, self.n_steps) = (0, 0);
        self.last = CudaBuffer::default();
    }
}

/// Rows of a table, by where a GPU has their numbers.
#[derive(Clone, Copy)]
pub(crate) enum NamedRows<'a> {
    /// All.
    All,
    /// The columns of the entries of a csr.
    Columns(CudaColumnIdsSlice<'a>),
    /// Ids, those beyond the table and negative ones for nothing.
    Ids(IdsView<'a, Cuda>),
    /// Those of a list.
    Listed(CudaSlice<'a, u64>),
    /// The first ones of a list, of which the GPU knows how many; there are so many at most.
    Counted(CudaSlice<'a, u64>, CudaSlice<'a, u32>, usize),
}

impl NamedRows<'_> {
    /// The type of the ids, and how many there are, of so many rows.
    fn ids(&self, n_rows: usize) -> (ElementType, usize) {
        match self {
            NamedRows::All => (ElementType::U64, n_rows),
            NamedRows::Columns(CudaColumnIdsSlice::U32(ids)) => (ElementType::U32, ids.len()),
            NamedRows::Columns(CudaColumnIdsSlice::U64(ids)) => (ElementType::U64, ids.len()),
            NamedRows::Ids(IdsView::U32(ids)) => (ElementType::U32, ids.values().len()),
            NamedRows::Ids(IdsView::U64(ids)) => (ElementType::U64, ids.values().len()),
            NamedRows::Ids(IdsView::I64(ids)) => (ElementType::I64, ids.values().len()),
            NamedRows::Listed(ids) => (ElementType::U64, ids.len()),
            NamedRows::Counted(_, _, most) => (ElementType::U64, *most),
        }
    }

    fn read_by<'l>(&self, launch: Launch<'l>) -> Launch<'l> {
        let uncounted = CudaSlice::<u32>::default();
        match self {
            NamedRows::All => launch.reads(CudaSlice::<u64>::default()).reads(uncounted),
            NamedRows::Columns(columns) => launch.columns(*columns).reads(uncounted),
            NamedRows::Ids(ids) => launch.ids(*ids).reads(uncounted),
            NamedRows::Listed(ids) => launch.reads(*ids).reads(uncounted),
            NamedRows::Counted(ids, number, _) => launch.reads(*ids).reads(*number),
        }
    }
}

impl<R: UpdateRule, T: GpuFloat> Updater<R, T> {
    /// Refuses a rule by which rows wait, of which there are no formulas to catch up with, and rows
    /// that have waited longer than steps are counted here.
    pub(super) fn check_lazy_rows(&self) -> Result<()> {
        for record in (0..self.parameters.len()).filter(|at| self.has_lazy_rows(*at)) {
            if !R::CATCHES_UP_ON_GPU {
                return Err(OptimizerError::IdleStepsOnGpu { rule: R::NAME }.into());
            }
            let record = &self.parameters[record];
            let steps = self.clock.saturating_sub(record.base);
            if steps > MOST_STEPS {
                let (parameter, most) = (record.spec.name.to_string(), MOST_STEPS);
                return Err(OptimizerError::WaitsTooLong { parameter, steps, most }.into());
            }
        }
        Ok(())
    }

    /// Whether rows of a parameter wait for idle steps.
    pub(crate) fn has_lazy_rows(&self, parameter: usize) -> bool {
        !<IdleOf<R, T> as IdleMap>::FORGETS
            && self
                .parameters
                .get(parameter)
                .is_some_and(|record| record.lazy && self.groups[record.group].active)
    }

    /// Makes a GPU know of each row up to which step it is settled, and of the steps that it may
    /// have missed. O(1) a step, and O(values) where 2²⁰ were made since a flush.
    pub(super) fn lazy_rows_to_gpu(
        &mut self,
        parameter: usize,
        table: &mut CudaTable<T>,
        host: &Table<T>,
        gpu: &Gpu,
    ) -> Result<()> {
        if !self.has_lazy_rows(parameter) {
            return Ok(());
        }
        let record = &self.parameters[parameter];
        if table.beside.lazy_rows.last.len() != record.spec.n_rows {
            if !record.counts {
                table.beside.lazy_rows.last.resize_for_overwrite(gpu, record.spec.n_rows, LAST)?;
                table.beside.lazy_rows.last.fill_bytes(0)?;
            } else {
                let mut last = Vec::with_capacity(record.spec.n_rows);
                self.visit_settled(parameter, host, |step| last.push(step));
                table.beside.lazy_rows.last.assign_from_host(gpu, &last, LAST)?;
            }
            table.beside.lazy_rows.n_steps = 0;
            self.on_gpu[parameter] = IdleProducts::default();
        }
        self.maps_to_gpu(parameter, &mut table.beside.lazy_rows, gpu)?;
        if self.clock - self.parameters[parameter].base >= MOST_STEPS {
            self.settle_table_on_gpu(parameter, table, gpu)?;
        }
        Ok(())
    }

    fn maps_to_gpu(
        &mut self,
        parameter: usize,
        lazy_rows: &mut LazyRows,
        gpu: &Gpu,
    ) -> Result<(), CudaError> {
        let record = &self.parameters[parameter];
        let history: &HistoryOf<R, T> = &self.groups[record.group].history;
        let products = &mut self.on_gpu[parameter];
        products.reach(history, record.base, self.clock);
        let n_steps = products.of.len();
        if lazy_rows.base != record.base || lazy_rows.n_steps > n_steps {
            (lazy_rows.base, lazy_rows.n_steps) = (record.base, 0);
        }
        if lazy_rows.n_steps == n_steps {
            return Ok(());
        }
        let size = IdleOf::<R, T>::NUMBERS.len();
        let of_level = |steps: usize, level: usize| steps / FAN.pow(level as u32);
        if lazy_rows.room < n_steps {
            let room = n_steps.next_power_of_two().max(LEAST_ROOM);
            let of_levels: usize = (0..LEVELS).map(|level| of_level(room, level)).sum();
            lazy_rows.maps.resize_for_overwrite(gpu, of_levels * size, MAPS)?;
            (lazy_rows.room, lazy_rows.n_steps) = (room, 0);
        }
        let mut start = 0;
        for level in 0..LEVELS {
            let (known, maps) = (of_level(lazy_rows.n_steps, level), products.of.level(level));
            if known < maps.len() {
                // Those of a block that was not finished go on to its new end.
                let first = known - known % FAN;
                let mut numbers = Vec::with_capacity((maps.len() - first) * size);
                maps[first..].iter().for_each(|map| map.write(&mut numbers));
                lazy_rows.maps.write_run((start + first) * size, &numbers, MAPS)?;
            }
            start += of_level(lazy_rows.room, level);
        }
        lazy_rows.n_steps = n_steps;
        Ok(())
    }

    /// Brings rows up to date before they are read. There is [room](Updater::make_room_on_gpu) for
    /// all that it takes, as of a step that was begun.
    ///
    /// # Errors
    ///
    /// A launch that was refused.
    pub(crate) fn settle_read_on_gpu(
        &mut self,
        parameter: usize,
        table: &mut CudaTable<T>,
        rows: NamedRows<'_>,
        gpu: &Gpu,
    ) -> Result<()> {
        match rows {
            NamedRows::All => self.settle_table_on_gpu(parameter, table, gpu),
            rows => self.settle_rows_on_gpu(parameter, table, rows, false, gpu),
        }
    }

    /// Brings rows up to date that are updated after it, and notes that they are.
    pub(super) fn settle_written_on_gpu(
        &mut self,
        parameter: usize,
        table: &mut CudaTable<T>,
        rows: NamedRows<'_>,
        gpu: &Gpu,
    ) -> Result<()> {
        if self.has_lazy_rows(parameter) {
            self.settle_rows_on_gpu(parameter, table, rows, true, gpu)
        } else {
            Ok(())
        }
    }

    fn settle_rows_on_gpu(
        &mut self,
        parameter: usize,
        table: &mut CudaTable<T>,
        rows: NamedRows<'_>,
        updated: bool,
        gpu: &Gpu,
    ) -> Result<()> {
        let (n_rows, now) = (self.parameters[parameter].spec.n_rows, self.now(parameter));
        let (id, n) = rows.ids(n_rows);
        let words = self.settle_words(parameter, id)?;
        let launch = Launch::new(gpu, gpu.kernel(&unit(&words), "settle_rows")?);
        let launch = rows.read_by(launch).writes(table.beside.lazy_rows.last.as_slice());
        let launch = launch.size(now).size(now + usize::from(updated));
        let (launch, each) = self.missed(parameter, table, launch);
        // SAFETY: ids beyond the rows are left out, as many as there are are read, and each row is
        // settled by one group. There are maps of all steps that a row can have missed, and states
        // for each element of the table.
        unsafe { launch.size(n_rows).size(n).launch(Blocks::of(n, each, THREADS)) }?;
        Ok(())
    }

    /// Brings all rows up to date, from which they are counted then.
    fn settle_table_on_gpu(
        &mut self,
        parameter: usize,
        table: &mut CudaTable<T>,
        gpu: &Gpu,
    ) -> Result<()> {
        let (n_rows, now) = (self.parameters[parameter].spec.n_rows, self.now(parameter));
        if now > 1 {
            let words = self.settle_words(parameter, ElementType::U64)?;
            let launch = Launch::new(gpu, gpu.kernel(&unit(&words), "settle_table")?);
            let launch = launch.writes(table.beside.lazy_rows.last.as_slice()).size(now);
            let (launch, each) = self.missed(parameter, table, launch);
            // SAFETY: as above, of each row once.
            unsafe { launch.size(n_rows).launch(Blocks::of(n_rows, each, THREADS)) }?;
        }
        self.parameters[parameter].base = self.clock;
        self.forget_history(self.parameters[parameter].group);
        Ok(self.maps_to_gpu(parameter, &mut table.beside.lazy_rows, gpu)?)
    }

    /// What `last` is of a row that is up to date.
    fn now(&self, parameter: usize) -> usize {
        (self.clock - self.parameters[parameter].base) as usize + 1
    }

    /// The arguments that both kernels have, and how many rows a block has.
    fn missed<'l>(
        &self,
        parameter: usize,
        table: &CudaTable<T>,
        launch: Launch<'l>,
    ) -> (Launch<'l>, usize) {
        let record = &self.parameters[parameter];
        let step = self.groups[record.group].step;
        let launch = launch
            .reads(table.beside.lazy_rows.maps.as_slice())
            .size(table.beside.lazy_rows.room)
            .record("map_tails", &self.on_gpu[parameter].tails())
            .record("rule_step", &step.numbers().map(f64::to_bits))
            .writes(table.weights.view().values())
            .writes(table.beside.states.as_slice())
            .size(record.spec.row_size);
        (launch, THREADS as usize / lanes(record.spec.row_size))
    }

    fn settle_words(&self, parameter: usize, id: ElementType) -> Result<[(&'static str, Word); 9]> {
        let Some(rule) = R::RECURRENCE else {
            return Err(OptimizerError::NoRecurrence { rule: R::NAME }.into());
        };
        let record = &self.parameters[parameter];
        let uses_state = self.groups[record.group].step.uses_state();
        Ok(words::<R, T, IdleOf<R, T>>(rule, record.spec.row_size, uses_state, id))
    }
}

/// Room for so many steps at least.
const LEAST_ROOM: usize = 1 << 10;

fn words<R: UpdateRule, T: GpuFloat, M: IdleMap>(
    rule: Recurrence,
    row_size: usize,
    uses_state: bool,
    id: ElementType,
) -> [(&'static str, Word); 9] {
    let [real, states, named, ..] = KernelWords::new::<R, T>(rule, row_size, uses_state).words;
    [
        real,
        states,
        named,
        ("NUMBERS", Word::Number(M::NUMBERS.len() as u64)),
        ("IDLE", recurrence::word::<R>(RecurrencePart::Idle)),
        ("ID", Word::Name(id.name())),
        ("LANES", Word::Number(lanes(row_size) as u64)),
        ("FAN", Word::Number(FAN as u64)),
        ("LEVELS", Word::Number(LEVELS as u64)),
    ]
}

fn unit<'a>(words: &'a [(&'static str, Word)]) -> Unit<'a> {
    Unit { file: "optimizer/cuda/settle.cu", text: include_str!("settle.cu"), words }
}

/// Visits a unit of each rule by which rows wait.
pub(super) fn for_each_unit(visit: &mut dyn FnMut(&Unit<'_>)) {
    struct Visit<'a>(&'a mut dyn FnMut(&Unit<'_>));
    impl RuleVisitor for Visit<'_> {
        type Output = ();
        fn visit<R: UpdateRule>(self, _: R) {
            let Some(rule) = R::RECURRENCE.filter(|rule| rule.idle.is_some()) else { return };
            for (row_size, uses_state, id) in
                [(1, true, ElementType::U32), (16, false, ElementType::I64)]
            {
                if uses_state || StepOf::<R, f32>::OPTIONAL_STATE {
                    (self.0)(&unit(&words::<R, f32, IdleOf<R, f32>>(
                        rule, row_size, uses_state, id,
                    )));
                }
            }
        }
    }
    for name in NAMES {
        // The names are those of rules.
        let _ = with_rule(name, Visit(visit));
    }
    Visit(visit).visit(Svrg::<Sgd>::default());
}
