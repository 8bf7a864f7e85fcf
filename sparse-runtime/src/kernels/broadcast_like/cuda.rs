//! Elements repeated to a larger shape, on a GPU.

use super::cpu::{share, with_axes};
use crate::device::cuda::{Blocks, Cuda, CudaError, Gpu, Launch, Unit, Word};
use crate::formats::{Dense, DenseView, MAX_RANK, Shape};
use crate::kernels::broadcast::Walk;
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
        let walk = Walk::new(&like, [&source]);
        let launch = kernel::<T>(gpu, walk.extents().len() as u64, "repeat")?.reads(x.values());
        let launch = launch.record("walk", &walk.on_gpu());
        let launch = launch.f64(share(like.size(), x.shape().size(), mean)).writes(out);
        let n = out.len();
        // SAFETY: `x` broadcasts to the shape of `out`.
        unsafe { launch.size(n).launch(Blocks::of(n, THREADS as usize, THREADS)) }
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
        let number = x * share::<f64>(like.size(), 1, mean);
        let launch = kernel::<T>(gpu, 1, "fill")?.f64(number).writes(out).size(out.len());
        // SAFETY: the size is that of `out`.
        unsafe { launch.launch(Blocks::of(out.len(), THREADS as usize, THREADS)) }
    });
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

/// Visits the unit of the highest rank.
pub(crate) fn for_each_unit(visit: &mut dyn FnMut(&Unit<'_>)) {
    visit(&unit(&words("f32", MAX_RANK as u64)));
}
