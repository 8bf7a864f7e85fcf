//! Matrix products on a GPU.
//!
//! Those with one operand that is a csr and one that is dense. Of a csr the entries are read once for each tile of 256 columns of the
//! result. The order of a sum is that of the entries, but for a product with one column, which is summed by the lanes of a group, and
//! then over them.

use super::cpu::by_rows;
use crate::device::cuda::{
    Blocks, Cuda, CudaColumnIdsSlice, CudaError, CudaSlice, Gpu, Launch, Unit, Word,
};
use crate::formats::{CsrView, Dense, DenseView};
use crate::kernels::cuda::{CudaContext, GpuFloat, Rows};
use sparse_core::element::Factor;

const THREADS: u32 = 256;

/// The largest number of columns of a group's lane.
const MOST_STEPS: usize = 8;

/// Csr by dense.
pub fn csr_dense<T: GpuFloat, V: Factor<T>>(
    out: &mut Dense<T, Cuda>,
    lhs: CsrView<'_, V, Cuda>,
    rhs: DenseView<'_, T, Cuda>,
    transpose_rhs: bool,
    context: &mut CudaContext,
) {
    let gpu = context.gpu();
    gpu.attempt(out, |out| {
        let right = Right::new(rhs, transpose_rhs);
        let (n_rows, n_cols) = (lhs.n_rows(), right.n_cols);
        let out = out.reset_on(gpu, by_rows(n_rows, n_cols, rhs.shape()))?;
        if n_cols == 1 {
            return column(gpu, out, lhs, rhs.values());
        }
        let groups = Groups::for_columns(n_cols);
        let launch = product::<T, V>(gpu, lhs, groups, "csr_dense")?;
        let launch = launch.reads(lhs.starts()).reads(lhs.ends());
        let launch = with_columns(launch, lhs.columns()).reads(lhs.values());
        let launch = right.read_by(launch).writes(out).size(n_rows).size(n_cols);
        // SAFETY: ids are below the number of rows of the right side, and `out` has an element for each row and column.
        unsafe { launch.launch(groups.blocks(n_rows, n_cols)) }
    });
}

/// Csr, transposed, by dense: of the rows of the result those are made that are columns which occur.
pub fn csr_transposed_dense<T: GpuFloat, V: Factor<T>, O: Rows<T>>(
    out: &mut O,
    lhs: CsrView<'_, V, Cuda>,
    rhs: DenseView<'_, T, Cuda>,
    transpose_rhs: bool,
    context: &mut CudaContext,
) {
    let gpu = &context.gpu().clone();
    gpu.attempt(out, |out| {
        let right = Right::new(rhs, transpose_rhs);
        let occurrences = &mut context.occurrences;
        occurrences.find(gpu, lhs)?;
        let (columns, n_cols) = (occurrences.columns(), right.n_cols);
        let shape = by_rows(lhs.n_cols(), n_cols, rhs.shape());
        let (sums, targets) = out.make_room(gpu, shape, columns)?;
        let groups = Groups::for_columns(n_cols);
        let launch = product::<T, V>(gpu, lhs, groups, "csr_transposed_dense")?
            .reads(occurrences.runs())
            .reads(occurrences.entries())
            .reads(occurrences.rows())
            .reads(targets)
            .reads(lhs.values());
        let launch = right.read_by(launch).writes(sums).size(columns.len()).size(n_cols);
        // SAFETY: runs, entries and rows are those of `lhs`, whose rows are those of the right side, and `sums` has a row for each
        // column that occurs, where `targets` says.
        unsafe { launch.launch(groups.blocks(columns.len(), n_cols)) }
    });
}

/// A product with one column, whose elements lie side by side, read transposed or not.
fn column<T: GpuFloat, V: Factor<T>>(
    gpu: &Gpu,
    out: CudaSlice<'_, T>,
    lhs: CsrView<'_, V, Cuda>,
    right: CudaSlice<'_, T>,
) -> Result<(), CudaError> {
    let n_rows = lhs.n_rows();
    // As many lanes as an average row has entries.
    let lanes = lhs.values().len().div_ceil(n_rows.max(1)).next_power_of_two().clamp(1, 32);
    let groups = Groups { lanes, steps: 1 };
    let launch = product::<T, V>(gpu, lhs, groups, "csr_column")?.reads(lhs.starts());
    let launch = with_columns(launch.reads(lhs.ends()), lhs.columns()).reads(lhs.values());
    let launch = launch.reads(right).writes(out).size(n_rows);
    // SAFETY: ids are below the number of elements of the right side, and `out` has an element for each row.
    unsafe { launch.launch(groups.blocks(n_rows, 1)) }
}

/// The launch of a product whose left side stores `V`.
fn product<'a, T: GpuFloat, V: Factor<T>>(
    gpu: &'a Gpu,
    lhs: CsrView<'_, V, Cuda>,
    groups: Groups,
    name: &'static str,
) -> Result<Launch<'a>, CudaError> {
    let id = match lhs.columns() {
        CudaColumnIdsSlice::U32(_) => "u32",
        CudaColumnIdsSlice::U64(_) => "u64",
    };
    let words = words(T::TYPE.name(), V::TYPE.name(), id, groups);
    Ok(Launch::new(gpu, gpu.kernel(&unit(&words), name)?))
}

fn words(
    real: &'static str,
    value: &'static str,
    id: &'static str,
    groups: Groups,
) -> [(&'static str, Word); 5] {
    [
        ("REAL", Word::Name(real)),
        ("VALUE", Word::Name(value)),
        ("ID", Word::Name(id)),
        ("LANES", Word::Number(groups.lanes as u64)),
        ("STEPS", Word::Number(groups.steps as u64)),
    ]
}

fn unit<'a>(words: &'a [(&'static str, Word)]) -> Unit<'a> {
    Unit { file: "kernels/dot/dot.cu", text: include_str!("dot.cu"), words }
}

/// Visits one of each kind of these units: what is held to compile without spills.
pub(crate) fn for_each_unit(visit: &mut dyn FnMut(&Unit<'_>)) {
    for n_cols in [1, 7, 32, 64, 256] {
        for (real, value, id) in
            [("f32", "f32", "u32"), ("f32", "unit", "u64"), ("f64", "f64", "u32")]
        {
            visit(&unit(&words(real, value, id, Groups::for_columns(n_cols))));
        }
    }
}

fn with_columns<'a>(launch: Launch<'a>, columns: CudaColumnIdsSlice<'_>) -> Launch<'a> {
    match columns {
        CudaColumnIdsSlice::U32(ids) => launch.reads(ids),
        CudaColumnIdsSlice::U64(ids) => launch.reads(ids),
    }
}

/// The right side of a product: a matrix, read transposed or not. A vector is one column.
#[derive(Clone, Copy)]
struct Right<'a, T: GpuFloat> {
    values: CudaSlice<'a, T>,
    n_cols: usize,
    row_step: usize,
    column_step: usize,
}

impl<'a, T: GpuFloat> Right<'a, T> {
    fn new(array: DenseView<'a, T, Cuda>, transposed: bool) -> Self {
        let (n_rows, n_cols) = (array.shape().n_rows(), array.shape().row_size());
        let values = array.values();
        match transposed {
            false => Right { values, n_cols, row_step: n_cols, column_step: 1 },
            true => Right { values, n_cols: n_rows, row_step: 1, column_step: n_cols },
        }
    }

    fn read_by<'l>(&self, launch: Launch<'l>) -> Launch<'l> {
        launch.reads(self.values).size(self.row_step).size(self.column_step)
    }
}

/// Groups of lanes, each of which makes the elements of a row of the result.
#[derive(Clone, Copy)]
struct Groups {
    lanes: usize,
    /// How many columns each lane has.
    steps: usize,
}

impl Groups {
    /// As many lanes as there are columns, then as many columns a lane as that leaves; both powers of two, so that there are few
    /// kernels to compile.
    fn for_columns(n_cols: usize) -> Self {
        let lanes = n_cols.next_power_of_two().min(32);
        Groups { lanes, steps: n_cols.div_ceil(lanes).next_power_of_two().clamp(1, MOST_STEPS) }
    }

    fn blocks(self, n_rows: usize, n_cols: usize) -> Blocks {
        let of_rows = Blocks::of(n_rows, THREADS as usize / self.lanes, THREADS);
        Blocks { y: n_cols.div_ceil(self.lanes * self.steps), ..of_rows }
    }
}
