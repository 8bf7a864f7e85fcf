//! The end of a step that depends on norms of a whole parameter, on a GPU.

use super::recurrence::{self, RecurrencePart};
use super::{CudaTable, StepKernel, THREADS};
use nnz_arrays::device::cuda::{CudaBuffer, CudaError, Gpu, Unit, Word};
use nnz_arrays::kernels::cuda::GpuFloat;
use nnz_device::cuda::{Blocks, Launch};
use nnz_optim::{Recurrence, UpdateRule};

/// The lanes of a group, whose sums are two numbers.
const LANES: usize = 32;

/// Enough blocks to read at the memory's speed; their sums are added up by one group.
const MOST_BLOCKS: usize = 128;

/// The groups that sum a parameter of so many weights.
fn groups(n: usize) -> usize {
    n.div_ceil(THREADS as usize).clamp(1, MOST_BLOCKS) * (THREADS as usize / LANES)
}

/// The sums of all groups, and the rate behind them.
#[derive(Debug, Default)]
pub(super) struct Norms(CudaBuffer<f64>);

impl Norms {
    /// Makes room for those of so many weights.
    pub(super) fn make_room(&mut self, gpu: &Gpu, n: usize) -> Result<(), CudaError> {
        self.0.resize_for_overwrite(gpu, 2 * groups(n) + 1, "the norms of a parameter")
    }
}

impl StepKernel<'_> {
    /// Moves all weights by norms, where the rule does that.
    pub(super) fn end_by_norms<T: GpuFloat>(&self, table: &CudaTable<T>) -> Result<(), CudaError> {
        let Some(words) = &self.norms else { return Ok(()) };
        let unit = unit(words);
        let values = table.weights.view().values();
        let (states, sums) = (table.beside.states.as_slice(), table.norms.0.as_slice());
        let (n, groups) = (values.len(), groups(values.len()));
        let numbers = self.numbers.map(f64::to_bits);
        let launch = |name| {
            let kernel = self.gpu.kernel(&unit, name)?;
            Ok::<_, CudaError>(Launch::new(self.gpu, kernel).record("rule_step", &numbers))
        };
        let blocks = Blocks::of(groups * LANES, THREADS as usize, THREADS);
        // SAFETY: there are states for each weight, and two sums for each group.
        unsafe {
            launch("squares")?.reads(values).reads(states).writes(sums).size(n).launch(blocks)?;
        }
        // SAFETY: there is a place behind the sums of the groups.
        unsafe {
            let block = Blocks::of(LANES, LANES, LANES as u32);
            launch("rate_by_norms")?.writes(sums).size(groups).launch(block)?;
        }
        let blocks = Blocks::of(n, THREADS as usize, THREADS);
        let launch = launch("move_by_norms")?.reads(states).reads(sums).writes(values);
        // SAFETY: as above.
        unsafe { launch.size(groups).size(n).launch(blocks) }
    }
}

/// The words of a rule that moves weights by norms.
pub(super) fn words<R: UpdateRule, T: GpuFloat>(
    rule: Recurrence,
) -> Option<[(&'static str, Word); 4]> {
    let part = recurrence::word::<R>;
    rule.norms?;
    Some([
        ("REAL", Word::Name(T::TYPE.name())),
        ("STATES", Word::Number(R::STATES.len() as u64)),
        ("DIRECTION", part(RecurrencePart::Direction)),
        ("RATE", part(RecurrencePart::Rate)),
    ])
}

pub(super) fn unit<'a>(words: &'a [(&'static str, Word)]) -> Unit<'a> {
    Unit {
        file: "optimizer/cuda/update_by_norms.cu",
        text: include_str!("update_by_norms.cu"),
        words,
    }
}
