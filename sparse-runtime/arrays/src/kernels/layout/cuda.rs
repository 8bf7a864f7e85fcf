//! Changes of shape and order on a GPU, and elements placed among others.

use crate::device::cuda::{Blocks, Cuda, CudaError, CudaSlice, Gpu, Launch, Unit, Word};
use crate::formats::{Dense, DenseView, Shape};
use crate::kernels::cuda::{CudaContext, GpuFloat};
use crate::kernels::strided::Strided;

const THREADS: u32 = 256;

/// A copy in a shape of as many elements.
pub(in crate::kernels) fn copied_dense<T: GpuFloat>(
    out: &mut Dense<T, Cuda>,
    x: DenseView<'_, T, Cuda>,
    shape: Shape,
    context: &mut CudaContext,
) {
    let gpu = context.gpu();
    gpu.attempt(out, |out| out.assign_on(gpu, shape, x.values()));
}

/// The elements of a result of a shape, as they lie in an array.
pub(in crate::kernels) fn moved_dense<T: GpuFloat>(
    out: &mut Dense<T, Cuda>,
    x: DenseView<'_, T, Cuda>,
    (shape, along): (Shape, Strided),
    context: &mut CudaContext,
) {
    let gpu = context.gpu();
    gpu.attempt(out, |out| {
        let out = out.reset_on(gpu, shape)?;
        let launch = kernel::<T>(gpu, [along.axes(), 1], "gather_elements")?.reads(x.values());
        let launch = launch.record("strided", &along.on_gpu()).writes(out).size(out.len());
        // SAFETY: `along` has a position in `x` for each element of the result.
        unsafe { launch.launch(Blocks::of(out.len(), THREADS as usize, THREADS)) }
    });
}

/// Zeros of a shape, and the elements of arrays where each lies in it.
pub(in crate::kernels) fn placed<T: GpuFloat>(
    out: &mut Dense<T, Cuda>,
    shape: Shape,
    parts: &[(DenseView<'_, T, Cuda>, Strided)],
    context: &mut CudaContext,
) {
    let gpu = context.gpu();
    gpu.attempt(out, |out| {
        let covered: usize = parts.iter().map(|(x, _)| x.values().len()).sum();
        let out = if covered == shape.size() {
            out.reset_on(gpu, shape)?
        } else {
            out.zeros_on(gpu, shape)?
        };
        parts.iter().try_for_each(|(x, along)| place(gpu, out, x.values(), *along))
    });
}

fn place<T: GpuFloat>(
    gpu: &Gpu,
    out: CudaSlice<'_, T>,
    values: CudaSlice<'_, T>,
    along: Strided,
) -> Result<(), CudaError> {
    let launch = kernel::<T>(gpu, [along.axes(), 1], "place_elements")?.reads(values);
    let launch = launch.record("strided", &along.on_gpu()).writes(out).size(values.len());
    // SAFETY: `along` has a position of its own in the result for each element.
    unsafe { launch.launch(Blocks::of(values.len(), THREADS as usize, THREADS)) }
}

/// The sums of what was repeated, where `along` says how a result that repeats lies in an array of
/// a shape.
pub(in crate::kernels) fn summed_dense<T: GpuFloat>(
    out: &mut Dense<T, Cuda>,
    x: DenseView<'_, T, Cuda>,
    (shape, along): (Shape, Strided),
    context: &mut CudaContext,
) {
    let gpu = context.gpu();
    gpu.attempt(out, |out| {
        let [kept, repeated] = along.kept_and_repeated();
        let out = out.reset_on(gpu, shape)?;
        let axes = [kept.axes(), repeated.axes()];
        let launch = kernel::<T>(gpu, axes, "sum_repetitions")?.reads(x.values());
        let launch = launch.record("strided", &kept.on_gpu()).record("strided", &repeated.on_gpu());
        let launch = launch.size(repeated.size()).writes(out).size(out.len());
        // SAFETY: kept and repeated axes are all of `x`, and the kept ones those of the result.
        unsafe { launch.launch(Blocks::of(out.len(), THREADS as usize, THREADS)) }
    });
}

fn kernel<'a, T: GpuFloat>(
    gpu: &'a Gpu,
    axes: [usize; 2],
    name: &'static str,
) -> Result<Launch<'a>, CudaError> {
    Ok(Launch::new(gpu, gpu.kernel(&unit(&words(T::TYPE.name(), axes)), name)?))
}

fn words(real: &'static str, [rank, other]: [usize; 2]) -> [(&'static str, Word); 3] {
    [
        ("REAL", Word::Name(real)),
        ("RANK", Word::Number(rank as u64)),
        ("OTHER", Word::Number(other as u64)),
    ]
}

fn unit<'a>(words: &'a [(&'static str, Word)]) -> Unit<'a> {
    Unit { file: "kernels/layout/moved.cu", text: include_str!("moved.cu"), words }
}

/// Visits the units of few and of most axes.
pub(crate) fn for_each_unit(visit: &mut dyn FnMut(&Unit<'_>)) {
    visit(&unit(&words("f32", [1, 1])));
    visit(&unit(&words("f32", [12, 6])));
}
