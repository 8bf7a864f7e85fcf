//! The gradient of `take` on a GPU. What arrives at equal ids is added in their order. Ids beyond
//! the extent have no place to add to.
//!
//! O(ids · bits of a position / 4 + size of `grad`), by a sort of the ids.

#![allow(clippy::too_many_arguments, reason = "the attributes of the row, one by one")]

use super::{THREADS, places as find_places};
use crate::device::cuda::{Blocks, Cuda, Launch, Unit, Word};
use crate::formats::{Dense, DenseView, IdsView, Shape};
use crate::kernels::cuda::{CudaContext, GpuFloat, Rows};
use crate::kernels::lookup::Lookup;

/// Rows: those taken are made.
pub fn gradient_dense_ids_like_by_rows<T: GpuFloat, O: Rows<T>>(
    out: &mut O,
    grad: DenseView<'_, T, Cuda>,
    ids: IdsView<'_, Cuda>,
    like: Shape,
    axis: i64,
    clip: bool,
    wrap: bool,
    context: &mut CudaContext,
) {
    let gpu = &context.gpu().clone();
    let lookup = Lookup::new(&like, axis, clip, wrap);
    let CudaContext { occurrences, places, .. } = context;
    gpu.attempt(out, |out| {
        find_places(gpu, places, ids, lookup)?;
        occurrences.find_ids(gpu, places.as_slice(), lookup.extent)?;
        let rows = occurrences.columns();
        let (sums, targets) = out.make_room(gpu, like, rows)?;
        let words = words(T::TYPE.name());
        let n = rows.len() * lookup.outer * lookup.inner;
        let launch = Launch::new(gpu, gpu.kernel(&unit(&words), "take_gradient")?)
            .reads(occurrences.runs())
            .reads(occurrences.entries())
            .reads(targets)
            .reads(grad.values())
            .size(ids.len())
            .size(lookup.extent)
            .size(lookup.outer)
            .size(lookup.inner)
            .writes(sums)
            .size(n);
        // SAFETY: runs and entries are those of the ids, each of which has its elements of `grad`;
        // positions are below the extent, and where they are ranks there is one element before the
        // axis.
        unsafe { launch.launch(Blocks::of(n, THREADS as usize, THREADS)) }
    });
}

/// Along any axis.
pub fn gradient_dense_ids_like<T: GpuFloat>(
    out: &mut Dense<T, Cuda>,
    grad: DenseView<'_, T, Cuda>,
    ids: IdsView<'_, Cuda>,
    like: Shape,
    axis: i64,
    clip: bool,
    wrap: bool,
    context: &mut CudaContext,
) {
    gradient_dense_ids_like_by_rows(out, grad, ids, like, axis, clip, wrap, context);
}

fn words(real: &'static str) -> [(&'static str, Word); 1] {
    [("REAL", Word::Name(real))]
}

fn unit<'a>(words: &'a [(&'static str, Word)]) -> Unit<'a> {
    let text = include_str!("../gradient.cu");
    Unit { file: "kernels/take/gradient.cu", text, words }
}

/// Visits the unit.
pub(super) fn for_each_unit(visit: &mut dyn FnMut(&Unit<'_>)) {
    visit(&unit(&words("f32")));
}
