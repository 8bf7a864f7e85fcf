//! Element-wise functions of one operand on a GPU.

use crate::device::cuda::{Blocks, Cuda, CudaError, CudaSlice, Gpu, Launch, Unit, Word};
use crate::formats::{Csr, CsrView, Dense, DenseView, RowSparse, RowSparseView};
use crate::kernels::cuda::{CudaContext, ScalarFunction};
use sparse_core::element::Float;

const THREADS: u32 = 256;

/// f of every element.
pub fn dense<T: Float>(
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
pub fn csr<T: Float>(
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
pub fn row_sparse<T: Float>(
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

fn each<T: Float>(
    gpu: &Gpu,
    out: CudaSlice<'_, T>,
    x: CudaSlice<'_, T>,
    f: ScalarFunction,
) -> Result<(), CudaError> {
    let [formula, first, _] = f.words();
    let words = [("REAL", Word::Name(T::TYPE.name())), formula, first];
    let unit =
        Unit { file: "kernels/unary/unary.cu", text: include_str!("unary.cu"), words: &words };
    let launch = Launch::new(gpu, gpu.kernel(&unit, "unary")?).reads(x);
    let launch = f.read_by(launch).writes(out).size(x.len());
    // SAFETY: `out` has as many elements as `x`.
    unsafe { launch.launch(Blocks::of(x.len(), THREADS as usize, THREADS)) }
}
