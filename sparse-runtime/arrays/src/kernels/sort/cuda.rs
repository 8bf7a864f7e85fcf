//! Sorting on a GPU, and the first elements and positions in order.
//!
//! Tiles of 1024 elements are sorted by blocks, then runs are merged, in O(size · log² of the extent of the axis); of the first `k` only
//! these go on from a merge to the next. Takes memory for a position of 8 bytes an element, where the extent is larger than a tile for two.

use crate::device::cuda::{
    Blocks, Cuda, CudaBuffer, CudaError, CudaSlice, Gpu, Launch, Unit, Word,
};
use crate::formats::{Dense, DenseView};
use crate::kernels::cuda::{CudaContext, GpuFloat};
use crate::kernels::lookup::Lookup;
use crate::kernels::order::{First, chosen};
use sparse_core::element::Element;

// As in the text.
const THREADS: u32 = 256;
const TILE: usize = 1024;

const PLACES: &str = "the positions of elements in order";

/// Along an axis.
pub fn dense<T: GpuFloat>(
    out: &mut Dense<T, Cuda>,
    x: DenseView<'_, T, Cuda>,
    axis: i64,
    descending: bool,
    context: &mut CudaContext,
) {
    let first = if descending { First::Largest } else { First::Smallest };
    elements(out, x, axis, usize::MAX, first, context);
}

/// The first `k` elements in order along an axis; a `k` beyond the extent is the extent.
pub(in crate::kernels) fn elements<T: GpuFloat>(
    out: &mut Dense<T, Cuda>,
    x: DenseView<'_, T, Cuda>,
    axis: i64,
    k: usize,
    first: First,
    context: &mut CudaContext,
) {
    in_order(out, x, axis, k, first, context, |gpu| {
        Ok(kernel::<T>(gpu, "write_ranked")?.reads(x.values()))
    });
}

/// Their positions.
pub(in crate::kernels) fn positions<T: GpuFloat>(
    out: &mut Dense<u64, Cuda>,
    x: DenseView<'_, T, Cuda>,
    axis: i64,
    k: usize,
    first: First,
    context: &mut CudaContext,
) {
    in_order(out, x, axis, k, first, context, |gpu| kernel::<T>(gpu, "write_positions"));
}

/// Ranks the elements, and launches what writes something of the first `k` of each line, given where they are.
fn in_order<T: GpuFloat, E: Element>(
    out: &mut Dense<E, Cuda>,
    x: DenseView<'_, T, Cuda>,
    axis: i64,
    k: usize,
    first: First,
    context: &mut CudaContext,
    write: impl FnOnce(&Gpu) -> Result<Launch<'_>, CudaError>,
) {
    let CudaContext { gpu, places, list, .. } = context;
    gpu.attempt(out, |out| {
        let out = out.reset_on(gpu, chosen(x.shape(), axis, k))?;
        if out.is_empty() {
            return Ok(());
        }
        let lines = Lines::new(x, axis, k, first);
        let ranked = lines.rank(gpu, x, [places, list])?;
        let launch = write(gpu)?.reads(ranked);
        let launch = launch.size(lines.extent).size(lines.inner).size(lines.k);
        // SAFETY: there are `k` elements of `out` for each line, and as many positions below the
        // extent.
        unsafe { launch.writes(out).size(out.len()).launch(each(out.len())) }
    });
}

/// The elements along an axis, for each place before and after it, and how many of them are wanted in which order.
struct Lines {
    extent: usize,
    inner: usize,
    number: usize,
    k: usize,
    largest: usize,
}

impl Lines {
    fn new<T: GpuFloat>(x: DenseView<'_, T, Cuda>, axis: i64, k: usize, first: First) -> Self {
        let Lookup { outer, extent, inner, .. } = Lookup::new(x.shape(), axis, false, false);
        let largest = usize::from(first == First::Largest);
        Lines { extent, inner, number: outer * inner, k: k.min(extent), largest }
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
    Unit { file: "kernels/sort/sort.cu", text: include_str!("sort.cu"), words }
}

/// Visits the unit.
pub(crate) fn for_each_unit(visit: &mut dyn FnMut(&Unit<'_>)) {
    for real in ["f32", "f64"] {
        visit(&unit(&[("REAL", Word::Name(real))]));
    }
}
