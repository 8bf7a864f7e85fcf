//! Elements repeated to a larger shape, on a GPU.

use super::cpu::{share, with_axes};
use crate::device::cuda::{Blocks, Cuda, CudaError, CudaSlice, Gpu, Launch, Unit, Word};
use crate::formats::cuda::ArrayArguments;
use crate::formats::{CsrView, Dense, DenseView, MAX_RANK, RowSparse, RowSparseView, Shape};
use crate::kernels::broadcast::Walk;
use crate::kernels::cuda::row_lists::store_rows_of;
use crate::kernels::cuda::{CudaContext, GpuFloat};
use crate::kernels::reduce::Over;
use sparse_core::ir::Axes;

const THREADS: u32 = 256;

/// A dense array repeated to a shape.
pub fn dense_like<T: GpuFloat>(
    out: &mut Dense<T, Cuda>,
    x: DenseView<'_, T, Cuda>,
    like: Shape,
    axis: Axes,
    exclude: bool,
    mean: bool,
    context: &mut CudaContext,
) {
    let gpu = context.gpu();
    gpu.attempt(out, |out| {
        let out = out.reset_on(gpu, like)?;
        let source = with_axes(x.shape(), &like, Over { axis, keepdims: false, exclude });
        let share = share(like.size(), x.shape().size(), mean);
        repeat(gpu, out, x.values(), Walk::new(&like, [&source]), share)
    });
}

/// A row_sparse array repeated to a shape: its rows, repeated. Where other axes become rows, every
/// row is stored if anything is.
pub fn row_sparse_like<T: GpuFloat>(
    out: &mut RowSparse<T, Cuda>,
    x: RowSparseView<'_, T, Cuda>,
    like: Shape,
    axis: Axes,
    exclude: bool,
    mean: bool,
    context: &mut CudaContext,
) {
    let gpu = context.gpu();
    gpu.attempt(out, |out| {
        let source = with_axes(x.shape(), &like, Over { axis, keepdims: false, exclude });
        let share = share(like.size(), x.shape().size(), mean);
        let (rows, n_stored) = (source.n_rows(), x.stored_on_gpu().1);
        let keeps_rows = source.rank() == like.rank() && rows == like.n_rows();
        if keeps_rows && rows == x.shape().n_rows() {
            let out = store_rows_of(gpu, out, like, x)?;
            // What is stored is an array of its own.
            let [like, source] = [like, source].map(|shape| shape.with_n_rows(n_stored));
            return repeat(gpu, out, x.values(), Walk::new(&like, [&source]), share);
        }
        let n_rows = if n_stored > 0 { like.n_rows() } else { 0 };
        let out = store_rows_of(gpu, out, like, RowSparseView::numbers_on_gpu(n_rows))?;
        let walk = Walk::new(&like, [&source]);
        let launch = kernel::<T>(gpu, walk.extents().len() as u64, "repeat_stored")?.rows(x);
        let launch = launch.size(x.shape().row_size().max(1)).record("walk", &walk.on_gpu());
        let launch = launch.f64(share).writes(out).size(out.len());
        // SAFETY: `x` broadcasts to the shape of the result, of which `out` has all rows or none.
        unsafe { launch.launch(Blocks::of(out.len(), THREADS as usize, THREADS)) }
    });
}

/// A number repeated to a shape.
pub fn scalar_like<T: GpuFloat>(
    out: &mut Dense<T, Cuda>,
    x: f64,
    like: Shape,
    _axis: Axes,
    _exclude: bool,
    mean: bool,
    context: &mut CudaContext,
) {
    let gpu = context.gpu();
    gpu.attempt(out, |out| {
        let out = out.reset_on(gpu, like)?;
        fill(gpu, out, x * share::<f64>(like.size(), 1, mean))
    });
}

/// Writes a number everywhere.
pub(in crate::kernels) fn fill<T: GpuFloat>(
    gpu: &Gpu,
    out: CudaSlice<'_, T>,
    number: f64,
) -> Result<(), CudaError> {
    let launch = kernel::<T>(gpu, 1, "fill")?.f64(number).writes(out).size(out.len());
    // SAFETY: the size is that of `out`.
    unsafe { launch.launch(Blocks::of(out.len(), THREADS as usize, THREADS)) }
}

/// Writes for each entry of a csr the element of an array that is repeated to it, given by how much
/// its position grows from row to row and from column to column.
pub(in crate::kernels) fn repeat_at_pattern<T: GpuFloat>(
    gpu: &Gpu,
    out: CudaSlice<'_, T>,
    x: CudaSlice<'_, T>,
    [row_step, column_step]: [usize; 2],
    share: f64,
    like: CsrView<'_, T, Cuda>,
) -> Result<(), CudaError> {
    let words = words_at_pattern(T::TYPE.name(), like.columns().type_name());
    let launch = Launch::new(gpu, gpu.kernel(&unit_at_pattern(&words), "repeat_at_pattern")?);
    let launch = launch.reads(like.starts()).reads(like.ends()).columns(like.columns()).reads(x);
    let launch = launch.size(row_step).size(column_step).f64(share).writes(out).size(like.n_rows());
    // SAFETY: `x` broadcasts to the shape of `like`, whose pattern `out` has.
    unsafe { launch.launch(Blocks::of(like.n_rows(), THREADS as usize / 32, THREADS)) }
}

/// Writes the elements that a walk through the result finds in an array.
fn repeat<T: GpuFloat>(
    gpu: &Gpu,
    out: CudaSlice<'_, T>,
    x: CudaSlice<'_, T>,
    walk: Walk<1>,
    share: f64,
) -> Result<(), CudaError> {
    let launch = kernel::<T>(gpu, walk.extents().len() as u64, "repeat")?.reads(x);
    let launch = launch.record("walk", &walk.on_gpu()).f64(share).writes(out).size(out.len());
    // SAFETY: the array broadcasts to the shape of `out`.
    unsafe { launch.launch(Blocks::of(out.len(), THREADS as usize, THREADS)) }
}

fn kernel<'a, T: GpuFloat>(
    gpu: &'a Gpu,
    rank: u64,
    name: &'static str,
) -> Result<Launch<'a>, CudaError> {
    Ok(Launch::new(gpu, gpu.kernel(&unit(&words(T::TYPE.name(), rank)), name)?))
}

fn words(real: &'static str, rank: u64) -> [(&'static str, Word); 2] {
    [("REAL", Word::Name(real)), ("RANK", Word::Number(rank))]
}

fn unit<'a>(words: &'a [(&'static str, Word)]) -> Unit<'a> {
    let text = include_str!("broadcast_like.cu");
    Unit { file: "kernels/broadcast_like/broadcast_like.cu", text, words }
}

fn words_at_pattern(real: &'static str, id: &'static str) -> [(&'static str, Word); 2] {
    [("REAL", Word::Name(real)), ("ID", Word::Name(id))]
}

fn unit_at_pattern<'a>(words: &'a [(&'static str, Word)]) -> Unit<'a> {
    let text = include_str!("at_pattern.cu");
    Unit { file: "kernels/broadcast_like/at_pattern.cu", text, words }
}

/// Visits the unit of the highest rank, and that of patterns.
pub(crate) fn for_each_unit(visit: &mut dyn FnMut(&Unit<'_>)) {
    visit(&unit(&words("f32", MAX_RANK as u64)));
    visit(&unit_at_pattern(&words_at_pattern("f32", "u64")));
}
