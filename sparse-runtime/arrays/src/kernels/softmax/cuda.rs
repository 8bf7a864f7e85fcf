//! Softmax on a GPU, its logarithm and its gradient: a warp for all elements along the axis.

use crate::device::cuda::{Blocks, Cuda, CudaError, Gpu, Launch, Unit, Word};
use crate::formats::{Dense, DenseView};
use crate::kernels::cuda::{CudaContext, GpuFloat};
use crate::kernels::lookup::Lookup;

const THREADS: u32 = 256;

/// The softmax along an axis.
pub fn dense<T: GpuFloat>(
    out: &mut Dense<T, Cuda>,
    x: DenseView<'_, T, Cuda>,
    axis: i64,
    context: &mut CudaContext,
) {
    of_lines(out, x, axis, false, context);
}

/// The logarithm of the softmax along an axis.
pub fn log_softmax_dense<T: GpuFloat>(
    out: &mut Dense<T, Cuda>,
    x: DenseView<'_, T, Cuda>,
    axis: i64,
    context: &mut CudaContext,
) {
    of_lines(out, x, axis, true, context);
}

/// The softmax, or its logarithm.
fn of_lines<T: GpuFloat>(
    out: &mut Dense<T, Cuda>,
    x: DenseView<'_, T, Cuda>,
    axis: i64,
    logarithm: bool,
    context: &mut CudaContext,
) {
    let gpu = context.gpu();
    gpu.attempt(out, |out| {
        let to = out.reset_on(gpu, *x.shape())?;
        let launch = kernel::<T>(gpu, "softmax")?.reads(x.values());
        let launch = launch.size(usize::from(logarithm)).writes(to);
        // SAFETY: `out` has the shape of `x`.
        unsafe { along(launch, x, axis) }
    });
}

/// The gradient along an axis: y · (g - Σ g y).
pub fn gradient_dense_dense<T: GpuFloat>(
    out: &mut Dense<T, Cuda>,
    grad: DenseView<'_, T, Cuda>,
    y: DenseView<'_, T, Cuda>,
    axis: i64,
    context: &mut CudaContext,
) {
    let gpu = context.gpu();
    gpu.attempt(out, |out| {
        let to = out.reset_on(gpu, *y.shape())?;
        let launch = kernel::<T>(gpu, "softmax_gradient")?;
        let launch = launch.reads(grad.values()).reads(y.values()).writes(to);
        // SAFETY: all have the shape of `y`.
        unsafe { along(launch, y, axis) }
    });
}

/// The logarithm of the sum of exponentials of each row. `-inf` for a row without elements.
pub fn logsumexp_dense<T: GpuFloat>(
    out: &mut Dense<T, Cuda>,
    x: DenseView<'_, T, Cuda>,
    context: &mut CudaContext,
) {
    let gpu = context.gpu();
    gpu.attempt(out, |out| {
        let (n_rows, row_size) = (x.shape().n_rows(), x.shape().row_size());
        let to = out.reset_on(gpu, [n_rows].into())?;
        let launch = kernel::<T>(gpu, "logsumexp")?.reads(x.values()).writes(to);
        let launch = launch.size(row_size).size(n_rows);
        // SAFETY: there is an element of `out` for each row.
        unsafe { launch.launch(Blocks::of(n_rows, THREADS as usize / 32, THREADS)) }
    });
}

/// Launches a kernel over all lines along an axis.
///
/// # Safety
///
/// The arrays that the launch has must be of the shape given.
unsafe fn along<T: GpuFloat>(
    launch: Launch<'_>,
    of: DenseView<'_, T, Cuda>,
    axis: i64,
) -> Result<(), CudaError> {
    let Lookup { outer, extent, inner, .. } = Lookup::new(of.shape(), axis, false, false);
    let n_lines = outer * inner;
    let launch = launch.size(extent).size(inner).size(n_lines);
    // SAFETY: lines are the places before and after the axis; the rest the caller sees to.
    unsafe { launch.launch(Blocks::of(n_lines, THREADS as usize / 32, THREADS)) }
}

fn kernel<'a, T: GpuFloat>(gpu: &'a Gpu, name: &'static str) -> Result<Launch<'a>, CudaError> {
    Ok(Launch::new(gpu, gpu.kernel(&unit(&[("REAL", Word::Name(T::TYPE.name()))]), name)?))
}

fn unit<'a>(words: &'a [(&'static str, Word)]) -> Unit<'a> {
    Unit { file: "kernels/softmax/softmax.cu", text: include_str!("softmax.cu"), words }
}

/// Visits the unit.
pub(crate) fn for_each_unit(visit: &mut dyn FnMut(&Unit<'_>)) {
    visit(&unit(&[("REAL", Word::Name("f32"))]));
}
