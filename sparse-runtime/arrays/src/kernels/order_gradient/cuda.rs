//! The gradient of `sort` and `topk` on a GPU. What goes to one place is added in its order; ids beyond the extent have no place.
//!
//! O(size of `grad` · bits of a position / 4 + size of the result), by a sort of the places.

use crate::device::cuda::{Blocks, Cuda, CudaError, Launch, Unit, Word};
use crate::formats::{Dense, DenseView, IdsView, Shape};
use crate::kernels::cuda::{CudaContext, GpuFloat};
use crate::kernels::lookup::Lookup;

const THREADS: u32 = 256;

/// Zeros, and each element at its position.
pub fn dense_ids_like<T: GpuFloat>(
    out: &mut Dense<T, Cuda>,
    grad: DenseView<'_, T, Cuda>,
    ids: IdsView<'_, Cuda>,
    like: Shape,
    axis: i64,
    context: &mut CudaContext,
) {
    let CudaContext { gpu, occurrences, places, .. } = context;
    let lookup = Lookup::new(&like, axis, false, false);
    let (n, size) = (grad.values().len(), like.size());
    let block = grad.shape()[lookup.axis..].iter().product::<usize>().max(1);
    gpu.attempt(out, |out| {
        let out = out.zeros_on(gpu, like)?;
        let words = words(T::TYPE.name(), ids.type_name());
        let unit = unit(&words);
        let kernel = |name| Ok::<_, CudaError>(Launch::new(gpu, gpu.kernel(&unit, name)?));
        let each = |n: usize| Blocks::of(n, THREADS as usize, THREADS);
        places.resize_for_overwrite(gpu, n, "the places of elements in a gradient")?;
        let launch = kernel("places_of_elements")?.ids(ids).size(block).size(lookup.extent);
        let launch = launch.size(lookup.inner).size(size).writes(places.as_slice());
        // SAFETY: there is an id and a place for each element.
        unsafe { launch.size(n).launch(each(n)) }?;
        occurrences.find_ids(gpu, places.as_slice(), size)?;
        let found = occurrences.columns();
        let launch = kernel("put_back")?.reads(found).reads(occurrences.runs());
        let launch = launch.reads(occurrences.entries()).reads(grad.values()).writes(out);
        // SAFETY: runs and entries are those of the elements of `grad`, and places below the size
        // of `out`.
        unsafe { launch.size(found.len()).launch(each(found.len())) }
    });
}

fn words(real: &'static str, id: &'static str) -> [(&'static str, Word); 2] {
    [("REAL", Word::Name(real)), ("ID", Word::Name(id))]
}

fn unit<'a>(words: &'a [(&'static str, Word)]) -> Unit<'a> {
    let text = include_str!("order_gradient.cu");
    Unit { file: "kernels/order_gradient/order_gradient.cu", text, words }
}

/// Visits the unit.
pub(crate) fn for_each_unit(visit: &mut dyn FnMut(&Unit<'_>)) {
    visit(&unit(&words("f32", "u64")));
}
