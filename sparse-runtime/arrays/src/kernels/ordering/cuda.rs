//! Elements in order on a GPU.
//!
//! Tiles of 1024 elements are sorted by blocks, then runs are merged, in O(size · log² of the
//! extent of the axis); of the first `k` only these go on from a merge to the next. Takes memory
//! for a position of 8 bytes an element, where the extent is larger than a tile for two.
//!
//! In the gradient, what goes to one place is added in its order; ids beyond the extent have no
//! place. O(size of `grad` · bits of a position / 4 + size of the result), by a sort of the places.

use super::{First, Ranking};
use crate::device::cuda::{
    Blocks, Cuda, CudaBuffer, CudaError, CudaSlice, Gpu, Launch, Unit, Word,
};
use crate::formats::cuda::ArrayArguments;
use crate::formats::{Dense, DenseView, IdsView, Shape};
use crate::kernels::cuda::{CudaContext, GpuFloat};
use crate::kernels::lookup::Lookup;
use sparse_core::element::Element;

// As in the text.
const THREADS: u32 = 256;
const TILE: usize = 1024;

const PLACES: &str = "the positions of elements in order";

/// The first elements in order.
pub(in crate::kernels) fn elements_dense<T: GpuFloat>(
    out: &mut Dense<T, Cuda>,
    x: DenseView<'_, T, Cuda>,
    ranking: Ranking,
    context: &mut CudaContext,
) {
    in_order(out, x, ranking, context, |gpu| {
        Ok(kernel::<T>(gpu, "write_ranked")?.reads(x.values()))
    });
}

/// Their positions.
pub(in crate::kernels) fn positions_dense<T: GpuFloat>(
    out: &mut Dense<u64, Cuda>,
    x: DenseView<'_, T, Cuda>,
    ranking: Ranking,
    context: &mut CudaContext,
) {
    in_order(out, x, ranking, context, |gpu| kernel::<T>(gpu, "write_positions"));
}

/// Ranks the elements, and launches what writes something of the first `k` of each line, given
/// where they are.
fn in_order<T: GpuFloat, E: Element>(
    out: &mut Dense<E, Cuda>,
    x: DenseView<'_, T, Cuda>,
    ranking: Ranking,
    context: &mut CudaContext,
    write: impl FnOnce(&Gpu) -> Result<Launch<'_>, CudaError>,
) {
    let CudaContext { gpu, places, list, .. } = context;
    gpu.attempt(out, |out| {
        let out = out.reset_on(gpu, ranking.shape())?;
        if out.is_empty() {
            return Ok(());
        }
        let lines = Lines::new(ranking);
        let ranked = lines.rank(gpu, x, [places, list])?;
        let launch = write(gpu)?.reads(ranked);
        let launch = launch.size(lines.extent).size(lines.inner).size(lines.k);
        // SAFETY: there are `k` elements of `out` for each line, and as many positions below the
        // extent.
        unsafe { launch.writes(out).size(out.len()).launch(each(out.len())) }
    });
}

/// Zeros, and each element at its position.
pub fn order_gradient_dense_ids_like<T: GpuFloat>(
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
        let words = gradient_words(T::TYPE.name(), ids.type_name());
        let unit = gradient_unit(&words);
        let kernel = |name| Ok::<_, CudaError>(Launch::new(gpu, gpu.kernel(&unit, name)?));
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

/// The elements along an axis, for each place before and after it, and how many of them are wanted
/// in which order.
struct Lines {
    extent: usize,
    inner: usize,
    number: usize,
    k: usize,
    largest: usize,
}

impl Lines {
    fn new(ranking: Ranking) -> Self {
        let Lookup { outer, extent, inner, .. } = ranking.lines();
        let largest = usize::from(ranking.first == First::Largest);
        Lines { extent, inner, number: outer * inner, k: ranking.k.min(extent), largest }
    }

    /// Writes for each line, which has `extent` places, the positions of its first `k` elements.
    fn rank<'b, T: GpuFloat>(
        &self,
        gpu: &Gpu,
        x: DenseView<'_, T, Cuda>,
        [to, other]: [&'b mut CudaBuffer<u64>; 2],
    ) -> Result<CudaSlice<'b, u64>, CudaError> {
        let &Lines { extent, inner, number, k, largest } = self;
        let (n, width) = (number * extent, extent.next_power_of_two().min(TILE));
        to.resize_for_overwrite(gpu, n, PLACES)?;
        if extent > TILE {
            other.resize_for_overwrite(gpu, n, PLACES)?;
        }
        let (mut to, mut other) = (to.as_slice(), other.as_slice());
        let launch = kernel::<T>(gpu, "sort_tiles")?.reads(x.values());
        let launch = launch.size(extent).size(inner).size(number).size(width).size(largest);
        let tiles = Blocks::of(number * extent.div_ceil(width), TILE / width, THREADS);
        // SAFETY: a line has `extent` elements of `x`, and as many places.
        unsafe { launch.size(k).writes(to).launch(tiles) }?;
        let mut run = width;
        while run < extent {
            let launch = kernel::<T>(gpu, "merge_runs")?.reads(x.values());
            let launch = launch.size(extent).size(inner).size(run).size(largest).size(k);
            // SAFETY: as above; the first `k` places of each run were written, with positions below
            // the extent.
            unsafe { launch.reads(to).writes(other).size(n).launch(each(n)) }?;
            std::mem::swap(&mut to, &mut other);
            run = run.saturating_mul(2);
        }
        Ok(to)
    }
}

fn each(n: usize) -> Blocks {
    Blocks::of(n, THREADS as usize, THREADS)
}

fn kernel<'a, T: GpuFloat>(gpu: &'a Gpu, name: &'static str) -> Result<Launch<'a>, CudaError> {
    Ok(Launch::new(gpu, gpu.kernel(&unit(&[("REAL", Word::Name(T::TYPE.name()))]), name)?))
}

fn unit<'a>(words: &'a [(&'static str, Word)]) -> Unit<'a> {
    Unit { file: "kernels/ordering/sort.cu", text: include_str!("sort.cu"), words }
}

fn gradient_words(real: &'static str, id: &'static str) -> [(&'static str, Word); 2] {
    [("REAL", Word::Name(real)), ("ID", Word::Name(id))]
}

fn gradient_unit<'a>(words: &'a [(&'static str, Word)]) -> Unit<'a> {
    let text = include_str!("order_gradient.cu");
    Unit { file: "kernels/ordering/order_gradient.cu", text, words }
}

/// Visits the units.
pub(crate) fn for_each_unit(visit: &mut dyn FnMut(&Unit<'_>)) {
    visit(&gradient_unit(&gradient_words("f32", "u64")));
    for real in ["f32", "f64"] {
        visit(&unit(&[("REAL", Word::Name(real))]));
    }
}
