//! Positions of extremes on a GPU.

use super::Extreme;
use crate::device::cuda::{
    Blocks, Cuda, CudaBuffer, CudaError, CudaSlice, Gpu, Launch, Unit, Word,
};
use crate::formats::cuda::ArrayArguments;
use crate::formats::{CsrView, Dense, DenseView, RowSparseView, Shape};
use crate::kernels::cuda::{CudaContext, GpuFloat};

const THREADS: u32 = 256;

/// How many elements a part has at least, for each thread that works on it.
const LEAST_PART: usize = 64;

/// At most so many parts, of a grid's second axis.
const MOST_PARTS: usize = 1024;

/// At most so many warps go over the rows of a csr for one result.
const MOST_WARPS: usize = 2048;

const PARTS: &str = "the positions that win in parts of an array";

/// The position of the largest or smallest element of a dense array.
pub(in crate::kernels) fn position_dense<T: GpuFloat>(
    out: &mut Dense<u64, Cuda>,
    x: DenseView<'_, T, Cuda>,
    extreme: Extreme,
    context: &mut CudaContext,
) {
    let Extreme { result, axis, largest } = extreme;
    let CudaContext { gpu, partial, places, .. } = context;
    gpu.attempt(out, |out| {
        let out = out.reset_on(gpu, result)?;
        let mut parts = Parts { gpu, values: partial, positions: places, largest };
        let lines = Lines::along(x.shape(), axis);
        let n_parts = parts.of_lines(x.values(), lines, NumberedRows::default())?;
        parts.join::<T>(n_parts, Zeros::default(), NumberedRows::default(), out, out.len())
    });
}

/// The same of a csr matrix.
pub(in crate::kernels) fn position_csr<T: GpuFloat>(
    out: &mut Dense<u64, Cuda>,
    x: CsrView<'_, T, Cuda>,
    extreme: Extreme,
    context: &mut CudaContext,
) {
    let (n_rows, n_cols) = (x.n_rows(), x.n_cols());
    let Extreme { result, axis, largest } = extreme;
    let CudaContext { gpu, partial, places, occurrences, .. } = context;
    gpu.attempt(out, |out| {
        let words = words(T::TYPE.name(), x.columns().type_name());
        let kernel = |name| Ok::<_, CudaError>(Launch::new(gpu, gpu.kernel(&unit(&words), name)?));
        if axis == Some(0) {
            let out = out.zeros_on(gpu, result)?;
            occurrences.find(gpu, x)?;
            let columns = occurrences.columns();
            let launch = kernel("best_of_columns")?.reads(columns).reads(occurrences.runs());
            let launch = launch.reads(occurrences.entries()).reads(occurrences.rows());
            let launch = launch.reads(x.values()).size(n_rows).size(usize::from(largest));
            let blocks = Blocks::of(columns.len(), THREADS as usize, THREADS);
            // SAFETY: runs, entries and rows are those of `x`, of whose columns `out` has an
            // element each.
            return unsafe { launch.writes(out).size(columns.len()).launch(blocks) };
        }
        let out = out.reset_on(gpu, result)?;
        let n_warps = if axis.is_some() { n_rows } else { n_rows.min(MOST_WARPS) };
        let mut parts = Parts { gpu, values: partial, positions: places, largest };
        let (values, positions) = parts.room(n_warps)?;
        let launch = kernel("best_of_rows")?.csr(x).size(n_rows).size(n_cols);
        let launch = launch.size(usize::from(axis.is_none())).size(usize::from(largest));
        let launch = launch.writes(values).writes(positions).size(n_warps);
        // SAFETY: there is a value and a position for each warp.
        unsafe { launch.launch(Blocks::of(n_warps, THREADS as usize / 32, THREADS)) }?;
        let n_parts = if axis.is_some() { 1 } else { n_warps };
        parts.join::<T>(n_parts, Zeros::default(), NumberedRows::default(), out, out.len())
    });
}

/// The same of a row_sparse array.
pub(in crate::kernels) fn position_row_sparse<T: GpuFloat>(
    out: &mut Dense<u64, Cuda>,
    x: RowSparseView<'_, T, Cuda>,
    extreme: Extreme,
    context: &mut CudaContext,
) {
    let Extreme { result, axis, largest } = extreme;
    let CudaContext { gpu, partial, places, .. } = context;
    gpu.attempt(out, |out| {
        let (ids, n_stored) = x.stored_on_gpu();
        let (n_rows, row_size) = (x.shape().n_rows(), x.shape().row_size());
        let mut parts = Parts { gpu, values: partial, positions: places, largest };
        let lines = Lines::along(&x.shape().with_n_rows(n_stored), axis);
        if axis.unwrap_or(0) == 0 {
            let of_row = if axis.is_some() { 1 } else { row_size };
            let out = out.reset_on(gpu, result)?;
            let rows = NumberedRows { ids, of_row };
            let n_parts = parts.of_lines(x.values(), lines, rows)?;
            let zeros = Zeros { rows, n_stored, n_rows };
            return parts.join::<T>(n_parts, zeros, NumberedRows::default(), out, out.len());
        }
        let out = out.zeros_on(gpu, result)?;
        let n_parts = parts.of_lines(x.values(), lines, NumberedRows::default())?;
        let of_row = lines.number / n_stored.max(1);
        parts.join::<T>(n_parts, Zeros::default(), NumberedRows { ids, of_row }, out, lines.number)
    });
}

/// The elements along an axis, for each place before and after it; or all of an array.
#[derive(Clone, Copy)]
struct Lines {
    extent: usize,
    inner: usize,
    number: usize,
}

impl Lines {
    fn along(shape: &Shape, axis: Option<usize>) -> Self {
        let Some(axis) = axis else {
            return Lines { extent: shape.size(), inner: 1, number: 1 };
        };
        let inner = shape[axis + 1..].iter().product();
        let outer: usize = shape[..axis].iter().product();
        Lines { extent: shape[axis], inner, number: outer * inner }
    }
}

/// Rows of a larger array, not its first ones but those of some numbers, and how many elements each
/// has.
#[derive(Clone, Copy, Default)]
struct NumberedRows<'a> {
    ids: CudaSlice<'a, u64>,
    of_row: usize,
}

/// Which rows of how many are stored; others are zeros.
#[derive(Clone, Copy, Default)]
struct Zeros<'a> {
    rows: NumberedRows<'a>,
    n_stored: usize,
    n_rows: usize,
}

/// Which elements win in parts of what each result is of.
struct Parts<'b> {
    gpu: &'b Gpu,
    values: &'b mut CudaBuffer<f64>,
    positions: &'b mut CudaBuffer<u64>,
    largest: bool,
}

impl Parts<'_> {
    fn room(&mut self, n: usize) -> Result<(CudaSlice<'_, f64>, CudaSlice<'_, u64>), CudaError> {
        self.values.resize_for_overwrite(self.gpu, n, PARTS)?;
        self.positions.resize_for_overwrite(self.gpu, n, PARTS)?;
        Ok((self.values.as_slice(), self.positions.as_slice()))
    }

    /// Finds those of lines. Gives how many parts each has.
    fn of_lines<T: GpuFloat>(
        &mut self,
        x: CudaSlice<'_, T>,
        lines: Lines,
        rows: NumberedRows<'_>,
    ) -> Result<usize, CudaError> {
        let Lines { extent, inner, number } = lines;
        // Threads that follow one another read elements that do.
        let lanes = if inner == 1 && extent > 1 { 32 } else { 1 };
        let part = extent.div_ceil(MOST_PARTS).max(LEAST_PART * lanes);
        let n_parts = extent.div_ceil(part);
        let (gpu, largest) = (self.gpu, usize::from(self.largest));
        let (values, positions) = self.room(number * n_parts)?;
        let words = words(T::TYPE.name(), "u32");
        let launch = Launch::new(gpu, gpu.kernel(&unit(&words), "best_of_parts")?).reads(x);
        let launch = launch.size(extent).size(inner).reads(rows.ids).size(rows.of_row);
        let launch = launch.size(largest).size(lanes).size(part);
        let launch = launch.writes(values).writes(positions).size(number);
        let blocks = Blocks::of(number, THREADS as usize / lanes, THREADS);
        // SAFETY: lines are all of `x`, and there is a value and a position for each part of each.
        unsafe { launch.launch(Blocks { y: n_parts, ..blocks }) }?;
        Ok(n_parts)
    }

    /// Writes what wins in all parts, and among the zeros, to results, or to those of some rows of
    /// a larger result.
    fn join<T: GpuFloat>(
        &self,
        n_parts: usize,
        zeros: Zeros<'_>,
        targets: NumberedRows<'_>,
        out: CudaSlice<'_, u64>,
        n_results: usize,
    ) -> Result<(), CudaError> {
        let words = words(T::TYPE.name(), "u32");
        let launch = Launch::new(self.gpu, self.gpu.kernel(&unit(&words), "best_of_all")?);
        let launch = launch.reads(self.values.as_slice()).reads(self.positions.as_slice());
        let launch = launch.size(n_parts).size(usize::from(self.largest));
        let launch = launch.reads(zeros.rows.ids).size(zeros.n_stored).size(zeros.n_rows);
        let launch = launch.size(zeros.rows.of_row).reads(targets.ids).size(targets.of_row);
        let launch = launch.writes(out).size(n_results);
        // SAFETY: there are so many parts of each result, and rows are below those of `out`.
        unsafe { launch.launch(Blocks::of(n_results, THREADS as usize / 32, THREADS)) }
    }
}

fn words(real: &'static str, column: &'static str) -> [(&'static str, Word); 2] {
    [("REAL", Word::Name(real)), ("COLUMN", Word::Name(column))]
}

fn unit<'a>(words: &'a [(&'static str, Word)]) -> Unit<'a> {
    Unit { file: "kernels/extremes/extremes.cu", text: include_str!("extremes.cu"), words }
}

/// Visits the unit.
pub(crate) fn for_each_unit(visit: &mut dyn FnMut(&Unit<'_>)) {
    for column in ["u32", "u64"] {
        visit(&unit(&words("f32", column)));
    }
}
