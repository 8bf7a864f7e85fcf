//! Matrix products on a GPU.
//!
//! Of a csr the entries are read once for each tile of 256 columns of the result. The order of a
//! sum is that of the entries, but for a product with one column, which is summed by the lanes of a
//! group, and then over them.

mod stored;

pub use stored::{
    ProductOfColumns, csr_row_sparse_transposed, csr_transposed_row_sparse, dense_csr,
    dense_csr_transposed, dense_row_sparse, dense_row_sparse_transposed, row_sparse_dense,
    row_sparse_transposed_dense, row_sparse_transposed_row_sparse,
};
pub(in crate::kernels) use stored::{
    add_to_rows, at_pattern, at_pattern_by_stored_rows, at_rows, outer,
};

use super::cpu::{by_rows, product_shape};
use crate::device::cuda::{
    Blocks, Cuda, CudaBuffer, CudaError, CudaSlice, Gpu, Launch, Unit, Word, text_of,
};
use crate::formats::cuda::ArrayArguments;
use crate::formats::{CsrView, Dense, DenseView, RowSparseView, Shape};
use crate::kernels::cuda::occurrences::Occurrences;
use crate::kernels::cuda::{CudaContext, GpuFloat, Rows};
use sparse_core::element::{Factor, Stored};

/// What texts of products share: its name and its text.
pub const HEADER: (&str, &str) = ("kernels/dot/dot.cuh", include_str!("../dot.cuh"));

const THREADS: u32 = 256;

/// The largest number of columns of a group's lane.
const MOST_STEPS: usize = 8;

/// The extents of a tile of a product of dense matrices, whose threads are those of a block.
const TILE: usize = 16;

/// How many terms a part of a sum has at least, where there are few tiles.
const LEAST_PART: usize = 1 << 10;

/// As many blocks keep a GPU busy.
const BUSY: usize = 256;

/// Dense by dense.
pub fn dense_dense<T: GpuFloat>(
    out: &mut Dense<T, Cuda>,
    lhs: DenseView<'_, T, Cuda>,
    rhs: DenseView<'_, T, Cuda>,
    transpose_lhs: bool,
    transpose_rhs: bool,
    context: &mut CudaContext,
) {
    let gpu = &context.gpu().clone();
    let partial = &mut context.partial;
    gpu.attempt(out, |out| {
        let left = Matrix::left(lhs, transpose_lhs);
        let right = Matrix::new(rhs, transpose_rhs);
        let shape = product_shape(left.n_rows, right.n_cols, lhs.shape(), rhs.shape());
        multiply(gpu, out.reset_on(gpu, shape)?, left, right, Lists::default(), partial)
    });
}

/// Which columns of the left side, rows of the right one, and columns of the result a product is
/// of, where they are not the first ones.
#[derive(Clone, Copy, Default)]
struct Lists<'a> {
    of_left: CudaSlice<'a, u64>,
    of_right: CudaSlice<'a, u64>,
    columns: CudaSlice<'a, u64>,
    /// The width of a result whose columns are listed.
    width: usize,
}

/// Writes the product of two dense matrices.
fn multiply<T: GpuFloat>(
    gpu: &Gpu,
    out: CudaSlice<'_, T>,
    left: Matrix<'_, T>,
    right: Matrix<'_, T>,
    lists: Lists<'_>,
    partial: &mut CudaBuffer<f64>,
) -> Result<(), CudaError> {
    let (n_rows, n_summed, n_cols) = (left.n_rows, left.n_cols, right.n_cols);
    let n = n_rows * n_cols;
    let tiles = n_rows.div_ceil(TILE) * n_cols.div_ceil(TILE);
    let parts = (BUSY / tiles.max(1)).clamp(1, n_summed.div_ceil(LEAST_PART).max(1));
    let part = n_summed.div_ceil(parts).max(1);
    let sums = match parts {
        1 => CudaSlice::default(),
        _ => {
            partial.resize_for_overwrite(gpu, parts * n, "parts of a product")?;
            partial.as_slice()
        }
    };
    let Lists { of_left, of_right, columns, .. } = lists;
    let listed = [of_left, of_right, columns].iter().any(|list| !list.is_empty());
    let width = if lists.width > 0 { lists.width } else { n_cols };
    let words = words_of_dense(T::TYPE.name(), listed);
    let kernel =
        |name| Ok::<_, CudaError>(Launch::new(gpu, gpu.kernel(&unit_of_dense(&words), name)?));
    let launch = right.read_by(left.read_by(kernel("dense_dense")?));
    let launch = launch.reads(of_left).reads(of_right).reads(columns).size(width);
    let launch = launch.writes(sums).writes(out);
    let launch = launch.size(n_rows).size(n_summed).size(n_cols).size(part);
    // SAFETY: the columns of the left side are the rows of the right one, those listed are below
    // the extents, and there is a sum for each part and element of `out`.
    unsafe { launch.launch(Blocks { x: tiles, y: parts, threads: THREADS }) }?;
    if parts == 1 {
        return Ok(());
    }
    let launch = kernel("add_parts")?.reads(sums).size(parts).size(n_cols).reads(columns);
    let launch = launch.size(width).writes(out).size(n);
    // SAFETY: as above.
    unsafe { launch.launch(Blocks::of(n, THREADS as usize, THREADS)) }
}

/// Csr by dense.
pub fn csr_dense<T: GpuFloat, V: Factor<T>>(
    out: &mut Dense<T, Cuda>,
    lhs: CsrView<'_, V, Cuda>,
    rhs: DenseView<'_, T, Cuda>,
    transpose_rhs: bool,
    context: &mut CudaContext,
) {
    by_stored_rows(out, lhs, RowSparseView::all_on_gpu(rhs), transpose_rhs, context);
}

/// Csr by row_sparse: rows that the right side does not store are zero.
pub fn csr_row_sparse<T: GpuFloat, V: Factor<T>>(
    out: &mut Dense<T, Cuda>,
    lhs: CsrView<'_, V, Cuda>,
    rhs: RowSparseView<'_, T, Cuda>,
    context: &mut CudaContext,
) {
    by_stored_rows(out, lhs, rhs, false, context);
}

/// Csr by rows, which must all be stored to be read transposed.
fn by_stored_rows<T: GpuFloat, V: Factor<T>>(
    out: &mut Dense<T, Cuda>,
    lhs: CsrView<'_, V, Cuda>,
    rhs: RowSparseView<'_, T, Cuda>,
    transpose_rhs: bool,
    context: &mut CudaContext,
) {
    let gpu = context.gpu();
    gpu.attempt(out, |out| {
        let (rows, n_stored) = rhs.stored_on_gpu();
        let right = Matrix::of(rhs.shape(), rhs.values(), transpose_rhs);
        // Without a list all are stored, which are the rows of what may be read transposed.
        let n_stored = if rows.is_empty() && n_stored > 0 { right.n_rows } else { n_stored };
        let (n_rows, n_cols) = (lhs.n_rows(), right.n_cols);
        let out = out.reset_on(gpu, by_rows(n_rows, n_cols, rhs.shape()))?;
        if n_cols == 1 {
            let groups = Groups::for_entries(lhs.values().len(), n_rows);
            let launch = product::<T, V>(gpu, lhs, groups, "csr_column")?.csr(lhs);
            let launch = launch.reads(rows).size(n_stored).reads(rhs.values());
            let launch = launch.writes(out).size(n_rows);
            // SAFETY: rows that are stored are below their number, and `out` has an element for
            // each row.
            return unsafe { launch.launch(groups.blocks(n_rows, 1)) };
        }
        let target = Target { columns: CudaSlice::default(), row_step: n_cols, column_step: 1 };
        sum_stored_rows(gpu, out, lhs, (rows, n_stored), right, target)
    });
}

/// Where the elements of a result lie in memory: steps from row to row and from column to column,
/// and which columns they are if not the first ones.
#[derive(Clone, Copy)]
struct Target<'a> {
    columns: CudaSlice<'a, u64>,
    row_step: usize,
    column_step: usize,
}

/// Writes the product of a csr and rows of a matrix, of which those of these numbers are stored,
/// or, without numbers, so many.
fn sum_stored_rows<T: GpuFloat, V: Factor<T>>(
    gpu: &Gpu,
    out: CudaSlice<'_, T>,
    lhs: CsrView<'_, V, Cuda>,
    (rows, n_stored): (CudaSlice<'_, u64>, usize),
    right: Matrix<'_, T>,
    target: Target<'_>,
) -> Result<(), CudaError> {
    let (n_rows, n_cols) = (lhs.n_rows(), right.n_cols);
    let groups = Groups::for_columns(n_cols);
    let launch = product::<T, V>(gpu, lhs, groups, "csr_dense")?.csr(lhs);
    let launch = right.read_by(launch.reads(rows).size(n_stored)).reads(target.columns);
    let launch = launch.size(target.row_step).size(target.column_step);
    let launch = launch.writes(out).size(n_rows).size(n_cols);
    // SAFETY: rows that are stored are below their number, and `out` has an element for each row
    // and column, where the target says.
    unsafe { launch.launch(groups.blocks(n_rows, n_cols)) }
}

/// Csr, transposed, by dense: of the rows of the result those are made that are columns which
/// occur.
pub fn csr_transposed_dense<T: GpuFloat, V: Factor<T>, O: Rows<T>>(
    out: &mut O,
    lhs: CsrView<'_, V, Cuda>,
    rhs: DenseView<'_, T, Cuda>,
    transpose_rhs: bool,
    context: &mut CudaContext,
) {
    let gpu = &context.gpu().clone();
    gpu.attempt(out, |out| {
        let right = Matrix::new(rhs, transpose_rhs);
        let occurrences = &mut context.occurrences;
        occurrences.find(gpu, lhs)?;
        let shape = by_rows(lhs.n_cols(), right.n_cols, rhs.shape());
        let (sums, targets) = out.make_room(gpu, shape, occurrences.columns())?;
        let factors = Factors::of(lhs.values());
        sum_columns(gpu, sums, factors, occurrences, right, [right.n_cols, 1], targets)
    });
}

/// What the rows of a right side are multiplied by, entry by entry.
#[derive(Clone, Copy)]
struct Factors<'a, V: Stored> {
    values: CudaSlice<'a, V>,
    /// For each row of the csr what its values are multiplied by, unless that is 1.
    shares: CudaSlice<'a, f64>,
}

impl<'a, V: Stored> Factors<'a, V> {
    fn of(values: CudaSlice<'a, V>) -> Self {
        Factors { values, shares: CudaSlice::default() }
    }
}

/// Writes sums of rows of a right side, one for each column that occurs in a csr of these values,
/// or of none but ones, multiplied by the shares of its rows: a row of the result each, those of
/// the numbers of `targets`, or, without, one after the other.
pub(in crate::kernels) fn sum_shares<T: GpuFloat, V: Factor<T>>(
    gpu: &Gpu,
    out: CudaSlice<'_, T>,
    values: CudaSlice<'_, V>,
    shares: CudaSlice<'_, f64>,
    occurrences: &Occurrences,
    right: DenseView<'_, T, Cuda>,
    targets: CudaSlice<'_, u64>,
) -> Result<(), CudaError> {
    let (factors, right) = (Factors { values, shares }, Matrix::new(right, false));
    sum_columns(gpu, out, factors, occurrences, right, [right.n_cols, 1], targets)
}

/// Writes sums of rows of a matrix, one for each column that occurs in a csr of these values, where
/// the steps say: a row of the result each, those of the numbers of `targets`, or, without, one
/// after the other.
fn sum_columns<T: GpuFloat, V: Factor<T>>(
    gpu: &Gpu,
    out: CudaSlice<'_, T>,
    factors: Factors<'_, V>,
    occurrences: &Occurrences,
    right: Matrix<'_, T>,
    [out_row, out_column]: [usize; 2],
    targets: CudaSlice<'_, u64>,
) -> Result<(), CudaError> {
    let (n_runs, n_cols) = (occurrences.columns().len(), right.n_cols);
    let groups = Groups::for_columns(n_cols);
    let words = words(T::TYPE.name(), V::TYPE.name(), "u32", groups);
    let launch = Launch::new(gpu, gpu.kernel(&unit(&words), "csr_transposed_dense")?)
        .reads(occurrences.runs())
        .reads(occurrences.entries())
        .reads(occurrences.rows())
        .reads(targets)
        .reads(factors.values)
        .reads(factors.shares);
    let launch = right.read_by(launch).size(out_row).size(out_column);
    let launch = launch.writes(out).size(n_runs).size(n_cols);
    // SAFETY: runs, entries and rows are those of the csr, whose rows are those of the right side
    // and of the shares, and `out` has a row for each column that occurs, where `targets` and the
    // steps say.
    unsafe { launch.launch(groups.blocks(n_runs, n_cols)) }
}

/// The launch of a product whose left side stores `V`.
fn product<'a, T: GpuFloat, V: Factor<T>>(
    gpu: &'a Gpu,
    lhs: CsrView<'_, V, Cuda>,
    groups: Groups,
    name: &'static str,
) -> Result<Launch<'a>, CudaError> {
    let words = words(T::TYPE.name(), V::TYPE.name(), lhs.columns().type_name(), groups);
    Ok(Launch::new(gpu, gpu.kernel(&unit(&words), name)?))
}

/// The words of a text about sums of products.
pub fn words(
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
    let text = text_of!("kernels/dot/dot.cuh", "kernels/dot/dot.cu");
    Unit { file: "kernels/dot/dot.cu", text, words }
}

fn words_of_dense(real: &'static str, listed: bool) -> [(&'static str, Word); 2] {
    [("REAL", Word::Name(real)), ("LISTED", Word::Number(u64::from(listed)))]
}

fn unit_of_dense<'a>(words: &'a [(&'static str, Word)]) -> Unit<'a> {
    Unit { file: "kernels/dot/dense.cu", text: include_str!("../dense.cu"), words }
}

/// Visits one of each kind of these units: what is held to compile without spills.
pub(crate) fn for_each_unit(visit: &mut dyn FnMut(&Unit<'_>)) {
    for listed in [false, true] {
        visit(&unit_of_dense(&words_of_dense("f32", listed)));
    }
    for n_cols in [1, 7, 32, 64, 256] {
        for (real, value, id) in
            [("f32", "f32", "u32"), ("f32", "unit", "u64"), ("f64", "f64", "u32")]
        {
            visit(&unit(&words(real, value, id, Groups::for_columns(n_cols))));
        }
    }
}

/// A matrix, read transposed or not: its elements, its extents, and its steps in memory.
#[derive(Clone, Copy)]
struct Matrix<'a, T: GpuFloat> {
    values: CudaSlice<'a, T>,
    n_rows: usize,
    n_cols: usize,
    row_step: usize,
    column_step: usize,
}

impl<'a, T: GpuFloat> Matrix<'a, T> {
    /// A vector is one column.
    fn new(array: DenseView<'a, T, Cuda>, transposed: bool) -> Self {
        Matrix::of(array.shape(), array.values(), transposed)
    }

    /// The left side of a product: a vector is one row of it.
    fn left(array: DenseView<'a, T, Cuda>, transposed: bool) -> Self {
        Matrix::new(array, transposed || array.shape().rank() == 1)
    }

    fn of(shape: &Shape, values: CudaSlice<'a, T>, transposed: bool) -> Self {
        let (n_rows, n_cols) = (shape.n_rows(), shape.row_size());
        if transposed {
            Matrix { values, n_rows: n_cols, n_cols: n_rows, row_step: 1, column_step: n_cols }
        } else {
            Matrix { values, n_rows, n_cols, row_step: n_cols, column_step: 1 }
        }
    }

    fn read_by<'l>(&self, launch: Launch<'l>) -> Launch<'l> {
        launch.reads(self.values).size(self.row_step).size(self.column_step)
    }
}

/// Groups of lanes, each of which makes the elements of a row of the result.
#[derive(Clone, Copy, Debug)]
pub struct Groups {
    /// The lanes that have a row of the result.
    pub lanes: usize,
    /// How many columns each lane has.
    pub steps: usize,
}

impl Groups {
    /// As many lanes as there are columns, then as many columns a lane as that leaves; both powers
    /// of two, so that there are few kernels to compile.
    pub fn for_columns(n_cols: usize) -> Self {
        let lanes = n_cols.next_power_of_two().min(32);
        Groups { lanes, steps: n_cols.div_ceil(lanes).next_power_of_two().clamp(1, MOST_STEPS) }
    }

    /// As many lanes as a row has entries on average, which share one column.
    pub fn for_entries(n_entries: usize, n_rows: usize) -> Self {
        let lanes = n_entries.div_ceil(n_rows.max(1));
        Groups { lanes: lanes.next_power_of_two().clamp(1, 32), steps: 1 }
    }

    /// How many columns a group has at most.
    pub const MOST_COLUMNS: usize = 32 * MOST_STEPS;

    /// The blocks of a group for each row and tile of columns.
    pub fn blocks(self, n_rows: usize, n_cols: usize) -> Blocks {
        let of_rows = Blocks::of(n_rows, THREADS as usize / self.lanes, THREADS);
        Blocks { y: n_cols.div_ceil(self.lanes * self.steps), ..of_rows }
    }
}
