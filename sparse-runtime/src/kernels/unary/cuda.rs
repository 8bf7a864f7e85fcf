//! Element-wise functions of one operand on a GPU.

use crate::device::cuda::{Blocks, Cuda, CudaError, CudaSlice, Gpu, Launch, Unit, Word};
use crate::formats::{Csr, CsrView, Dense, DenseView, RowSparse, RowSparseView};
use crate::kernels::cuda::{CudaContext, GpuFloat, ScalarFunction};

const THREADS: u32 = 256;

/// f of every element.
pub fn dense<T: GpuFloat>(
    out: &mut Dense<T, Cuda>,
    x: DenseView<'_, T, Cuda>,
    f: ScalarFunction,
    context: &mut CudaContext,
) {
    let gpu = context.gpu();
    gpu.attempt(out, |out| {
        let out = out.reset_on(gpu, *x.shape())?;
        each(gpu, out, x.values(), f)
    });
}

/// f of every stored element.
pub fn csr<T: GpuFloat>(
    out: &mut Csr<T, Cuda>,
    x: CsrView<'_, T, Cuda>,
    f: ScalarFunction,
    context: &mut CudaContext,
) {
    let gpu = context.gpu();
    gpu.attempt(out, |out| {
        let out = out.take_pattern(gpu, x)?;
        each(gpu, out, x.values(), f)
    });
}

/// f of every element of the stored rows.
pub fn row_sparse<T: GpuFloat>(
    out: &mut RowSparse<T, Cuda>,
    x: RowSparseView<'_, T, Cuda>,
    f: ScalarFunction,
    context: &mut CudaContext,
) {
    let gpu = context.gpu();
    gpu.attempt(out, |out| {
        let out = out.take_rows(gpu, x)?;
        each(gpu, out, x.values(), f)
    });
}

fn each<T: GpuFloat>(
    gpu: &Gpu,
    out: CudaSlice<'_, T>,
    x: CudaSlice<'_, T>,
    f: ScalarFunction,
) -> Result<(), CudaError> {
    let words = words(T::TYPE.name(), f);
    let unit = unit(&words);
    let launch = Launch::new(gpu, gpu.kernel(&unit, "unary")?).reads(x);
    let launch = f.read_by(launch).writes(out).size(x.len());
    // SAFETY: `out` has as many elements as `x`.
    unsafe { launch.launch(Blocks::of(x.len(), THREADS as usize, THREADS)) }
}

fn words(real: &'static str, f: ScalarFunction) -> [(&'static str, Word); 3] {
    let [formula, first, _] = f.words();
    [("REAL", Word::Name(real)), formula, first]
}

fn unit<'a>(words: &'a [(&'static str, Word)]) -> Unit<'a> {
    Unit { file: "kernels/unary/unary.cu", text: include_str!("unary.cu"), words }
}

/// The unit of a function of one operand.
pub(crate) fn with_unit(real: &'static str, f: ScalarFunction, visit: &mut dyn FnMut(&Unit<'_>)) {
    visit(&unit(&words(real, f)));
}
