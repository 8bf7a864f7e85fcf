//! The second-order term of dense rows, and its gradients, on a GPU. Every element is an entry, a 0
//! too.

use super::THREADS;
use crate::device::cuda::{Blocks, Cuda, CudaError, CudaSlice, Gpu, Launch, Unit, Word};
use crate::formats::{Dense, DenseView};
use crate::kernels::cuda::{CudaContext, GpuFloat, lanes};

/// The term of each row.
pub(super) fn interaction<T: GpuFloat>(
    out: &mut Dense<T, Cuda>,
    x: DenseView<'_, T, Cuda>,
    v: DenseView<'_, T, Cuda>,
    context: &mut CudaContext,
) {
    let gpu = context.gpu();
    gpu.attempt(out, |out| {
        let out = out.reset_on(gpu, [x.shape().n_rows(), 1].into())?;
        interact(gpu, CudaSlice::default(), out, x, v)
    });
}

/// The gradient with respect to the table.
pub(in crate::kernels) fn gradient<T: GpuFloat>(
    out: &mut Dense<T, Cuda>,
    x: DenseView<'_, T, Cuda>,
    v: DenseView<'_, T, Cuda>,
    grad: DenseView<'_, T, Cuda>,
    context: &mut CudaContext,
) {
    let CudaContext { gpu, partial: sums, .. } = context;
    gpu.attempt(out, |out| {
        let (n_rows, width) = (x.shape().n_rows(), v.shape().row_size());
        sums.resize_for_overwrite(gpu, n_rows * width, super::SUMS)?;
        interact(gpu, sums.as_slice(), CudaSlice::default(), x, v)?;
        let to = out.reset_on(gpu, *v.shape())?;
        let launch = kernel::<T>(gpu, "dense_interaction_gradient")?;
        let launch = launch.reads(x.values()).size(n_rows).size(x.shape().row_size());
        let launch = launch.reads(v.values()).reads(sums.as_slice()).reads(grad.values());
        let launch = launch.writes(to).size(width).size(to.len());
        // SAFETY: each row of `x` has sums and an element of `grad`; `to` has the size of the
        // table, which has a row for each column of `x`.
        unsafe { launch.launch(Blocks::of(to.len(), THREADS as usize, THREADS)) }
    });
}

/// The gradient with respect to the elements.
pub(in crate::kernels) fn slope<T: GpuFloat>(
    out: &mut Dense<T, Cuda>,
    x: DenseView<'_, T, Cuda>,
    v: DenseView<'_, T, Cuda>,
    grad: DenseView<'_, T, Cuda>,
    context: &mut CudaContext,
) {
    let CudaContext { gpu, partial: sums, .. } = context;
    gpu.attempt(out, |out| {
        let (n_rows, width) = (x.shape().n_rows(), v.shape().row_size());
        sums.resize_for_overwrite(gpu, n_rows * width, super::SUMS)?;
        interact(gpu, sums.as_slice(), CudaSlice::default(), x, v)?;
        let to = out.reset_on(gpu, *x.shape())?;
        let lanes = lanes(width);
        let launch = kernel::<T>(gpu, "dense_interaction_slope")?;
        let launch = launch.reads(x.values()).size(x.shape().row_size()).reads(v.values());
        let launch = launch.reads(sums.as_slice()).reads(grad.values()).writes(to);
        let launch = launch.size(to.len()).size(width).size(lanes);
        // SAFETY: as above, and `to` has the size of `x`.
        unsafe { launch.launch(Blocks::of(to.len(), THREADS as usize / lanes, THREADS)) }
    });
}

fn interact<T: GpuFloat>(
    gpu: &Gpu,
    sums: CudaSlice<'_, f64>,
    out: CudaSlice<'_, T>,
    x: DenseView<'_, T, Cuda>,
    v: DenseView<'_, T, Cuda>,
) -> Result<(), CudaError> {
    let (n_rows, n_cols) = (x.shape().n_rows(), x.shape().row_size());
    let launch = kernel::<T>(gpu, "dense_interaction")?.reads(x.values()).reads(v.values());
    let launch = launch.writes(sums).writes(out);
    let launch = launch.size(n_rows).size(n_cols).size(v.shape().row_size());
    // SAFETY: the table has a row for each column of `x`; `sums` and `out` have room for each row
    // of `x`, where they are there.
    unsafe { launch.launch(Blocks::of(n_rows, THREADS as usize / 32, THREADS)) }
}

fn kernel<'a, T: GpuFloat>(gpu: &'a Gpu, name: &'static str) -> Result<Launch<'a>, CudaError> {
    Ok(Launch::new(gpu, gpu.kernel(&unit(&words(T::TYPE.name())), name)?))
}

fn words(real: &'static str) -> [(&'static str, Word); 1] {
    [("REAL", Word::Name(real))]
}

fn unit<'a>(words: &'a [(&'static str, Word)]) -> Unit<'a> {
    let text = include_str!("../dense_interaction.cu");
    Unit { file: "kernels/pairwise_interaction/dense_interaction.cu", text, words }
}

/// Visits the unit.
pub(super) fn for_each_unit(visit: &mut dyn FnMut(&Unit<'_>)) {
    visit(&unit(&words("f32")));
}
