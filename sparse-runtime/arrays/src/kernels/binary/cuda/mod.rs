//! Element-wise functions of two operands on a GPU: of dense arrays, with broadcasting, and of an
//! array and a number.

mod sparse;

pub(crate) use sparse::with_unit as with_sparse_unit;
pub use sparse::{
    WithDense, csr_csr, csr_dense, csr_into_dense, row_sparse_csr, row_sparse_dense,
    row_sparse_into_dense, row_sparse_row_sparse,
};

use crate::device::cuda::{Blocks, Cuda, CudaError, Gpu, Launch, Unit, Word};
use crate::formats::{Dense, DenseView, MAX_RANK};
use crate::kernels::broadcast::{Walk, broadcast};
use crate::kernels::cuda::{CudaContext, GpuFloat, Pattern, ScalarFunction};

const THREADS: u32 = 256;

/// The operand of a function of an array and a number that is the number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// The first one.
    First(f64),
    /// The second one.
    Second(f64),
}

/// f of the elements of both.
pub fn dense_dense<T: GpuFloat>(
    out: &mut Dense<T, Cuda>,
    lhs: DenseView<'_, T, Cuda>,
    rhs: DenseView<'_, T, Cuda>,
    f: ScalarFunction,
    context: &mut CudaContext,
) {
    let gpu = context.gpu();
    gpu.attempt(out, |out| {
        let shape = broadcast(lhs.shape(), rhs.shape());
        let out = out.reset_on(gpu, shape)?;
        let walk = Walk::new(&shape, [lhs.shape(), rhs.shape()]);
        let rank = walk.extents().len() as u64;
        let launch = launch::<T>(gpu, f, rank, "binary")?;
        let launch = launch.reads(lhs.values()).reads(rhs.values()).record("walk", &walk.on_gpu());
        let launch = f.read_by(launch).writes(out).size(out.len());
        // SAFETY: both broadcast to the shape of `out`.
        unsafe { launch.launch(Blocks::of(out.len(), THREADS as usize, THREADS)) }
    });
}

/// f of every stored element and a number.
pub fn stored_number<T: GpuFloat, X: Pattern<T>>(
    out: &mut X::Array,
    x: X,
    number: Number,
    f: ScalarFunction,
    context: &mut CudaContext,
) {
    let gpu = context.gpu();
    gpu.attempt(out, |out| {
        let (x, out) = (x.stored(), x.give(gpu, out)?);
        let launch = match number {
            Number::First(number) => {
                launch::<T>(gpu, f, 1, "number_and_array")?.f64(number).reads(x)
            }
            Number::Second(number) => {
                launch::<T>(gpu, f, 1, "array_and_number")?.reads(x).f64(number)
            }
        };
        let launch = f.read_by(launch).writes(out).size(x.len());
        // SAFETY: `out` has the pattern of `x`, so that it has as many elements.
        unsafe { launch.launch(Blocks::of(x.len(), THREADS as usize, THREADS)) }
    });
}

fn launch<'a, T: GpuFloat>(
    gpu: &'a Gpu,
    f: ScalarFunction,
    rank: u64,
    name: &'static str,
) -> Result<Launch<'a>, CudaError> {
    let words = words(T::TYPE.name(), f, rank);
    Ok(Launch::new(gpu, gpu.kernel(&unit(&words), name)?))
}

fn words(real: &'static str, f: ScalarFunction, rank: u64) -> [(&'static str, Word); 5] {
    let [formula, first, second] = f.words();
    [("REAL", Word::Name(real)), ("RANK", Word::Number(rank)), formula, first, second]
}

fn unit<'a>(words: &'a [(&'static str, Word)]) -> Unit<'a> {
    Unit { file: "kernels/binary/binary.cu", text: include_str!("../binary.cu"), words }
}

/// The unit of a function of two operands.
pub(crate) fn with_unit(real: &'static str, f: ScalarFunction, visit: &mut dyn FnMut(&Unit<'_>)) {
    visit(&unit(&words(real, f, MAX_RANK as u64)));
}
