//! Element-wise functions of one operand on a GPU.

use crate::device::cuda::{Blocks, Launch, Unit, Word};
use crate::kernels::cuda::{CudaContext, GpuFloat, Pattern, ScalarFunction};

const THREADS: u32 = 256;

/// f of every stored element.
pub fn stored<T: GpuFloat, X: Pattern<T>>(
    out: &mut X::Array,
    x: X,
    f: ScalarFunction,
    context: &mut CudaContext,
) {
    let gpu = context.gpu();
    gpu.attempt(out, |out| {
        let (x, out) = (x.stored(), x.give(gpu, out)?);
        let words = words(T::TYPE.name(), f);
        let unit = unit(&words);
        let launch = Launch::new(gpu, gpu.kernel(&unit, "unary")?).reads(x);
        let launch = f.read_by(launch).writes(out).size(x.len());
        // SAFETY: `out` has the pattern of `x`, so that it has as many elements.
        unsafe { launch.launch(Blocks::of(x.len(), THREADS as usize, THREADS)) }
    });
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
