//! Elements by their positions on a GPU. An id beyond the extent gives NaN.

mod csr_gradient;
mod gradient;

pub use csr_gradient::gradient_csr_ids_like_by_rows;
pub use gradient::{gradient_dense_ids_like, gradient_dense_ids_like_by_rows};

use super::cpu::taken;
use crate::device::cuda::{
    Blocks, Cuda, CudaBuffer, CudaError, CudaSlice, Gpu, Launch, Unit, Word,
};
use crate::formats::cuda::ArrayArguments;
use crate::formats::{Csr, CsrView, Dense, DenseView, IdsView, RowSparseView};
use crate::kernels::cuda::csr_rows::{self, Source};
use crate::kernels::cuda::{CudaContext, GpuFloat};
use crate::kernels::lookup::Lookup;

const THREADS: u32 = 256;

/// Of a dense array.
pub fn dense_ids<T: GpuFloat>(
    out: &mut Dense<T, Cuda>,
    x: DenseView<'_, T, Cuda>,
    ids: IdsView<'_, Cuda>,
    axis: i64,
    clip: bool,
    wrap: bool,
    context: &mut CudaContext,
) {
    row_sparse_ids_by_rows(out, RowSparseView::all_on_gpu(x), ids, axis, clip, wrap, context);
}

/// Rows of a row_sparse array; one that is not stored is zero.
pub fn row_sparse_ids_by_rows<T: GpuFloat>(
    out: &mut Dense<T, Cuda>,
    x: RowSparseView<'_, T, Cuda>,
    ids: IdsView<'_, Cuda>,
    axis: i64,
    clip: bool,
    wrap: bool,
    context: &mut CudaContext,
) {
    let gpu = context.gpu();
    let lookup = Lookup::new(x.shape(), axis, clip, wrap);
    gpu.attempt(out, |out| {
        let out = out.reset_on(gpu, taken(x.shape(), ids.shape(), lookup.axis))?;
        gather(gpu, out, x, ids, lookup)
    });
}

/// Rows of a csr matrix; for an id beyond its rows an empty one.
pub fn csr_ids_by_rows<T: GpuFloat>(
    out: &mut Csr<T, Cuda>,
    x: CsrView<'_, T, Cuda>,
    ids: IdsView<'_, Cuda>,
    axis: i64,
    clip: bool,
    wrap: bool,
    context: &mut CudaContext,
) {
    let lookup = Lookup::new(&[x.n_rows(), x.n_cols()].into(), axis, clip, wrap);
    let CudaContext { gpu, occurrences, places: wanted, .. } = context;
    gpu.attempt(out, |out| {
        places(gpu, wanted, ids, lookup)?;
        let (rows, shape) = (Source::wanted(x, wanted.as_slice()), [ids.len(), x.n_cols()]);
        csr_rows::write(gpu, out, shape, rows, occurrences.sums())
    });
}

/// Rows of a dense table: what `take` gives along the first axis.
pub fn embedding_ids_dense<T: GpuFloat>(
    out: &mut Dense<T, Cuda>,
    ids: IdsView<'_, Cuda>,
    weight: DenseView<'_, T, Cuda>,
    context: &mut CudaContext,
) {
    dense_ids(out, weight, ids, 0, false, false, context);
}

/// Rows of a row_sparse table; one that is not stored is zero.
pub fn embedding_ids_row_sparse<T: GpuFloat>(
    out: &mut Dense<T, Cuda>,
    ids: IdsView<'_, Cuda>,
    weight: RowSparseView<'_, T, Cuda>,
    context: &mut CudaContext,
) {
    row_sparse_ids_by_rows(out, weight, ids, 0, false, false, context);
}

/// Writes what is at the positions: an element of `out` for each element before the axis, each id,
/// and each element after the axis.
pub(in crate::kernels) fn gather<T: GpuFloat>(
    gpu: &Gpu,
    out: CudaSlice<'_, T>,
    x: RowSparseView<'_, T, Cuda>,
    ids: IdsView<'_, Cuda>,
    lookup: Lookup,
) -> Result<(), CudaError> {
    let words = words(T::TYPE.name(), ids.type_name());
    let launch = Launch::new(gpu, gpu.kernel(&unit(&words), "take")?).rows(x).ids(ids);
    let launch = launch.size(ids.len()).size(lookup.extent).size(lookup.inner);
    let launch = lookup.beyond_read_by(launch).writes(out).size(out.len());
    // SAFETY: positions are below the extent, rows that are stored below their number, and `out`
    // has an element for each of them.
    unsafe { launch.launch(Blocks::of(out.len(), THREADS as usize, THREADS)) }
}

/// The position that each id stands for; the extent for those that stand for none.
pub(in crate::kernels) fn places(
    gpu: &Gpu,
    out: &mut CudaBuffer<u64>,
    ids: IdsView<'_, Cuda>,
    lookup: Lookup,
) -> Result<(), CudaError> {
    places_of_lists(gpu, out, &[(ids, lookup)])
}

/// The same of several lists, one after the other.
pub fn places_of_lists(
    gpu: &Gpu,
    out: &mut CudaBuffer<u64>,
    lists: &[(IdsView<'_, Cuda>, Lookup)],
) -> Result<(), CudaError> {
    let n = lists.iter().map(|(ids, _)| ids.len()).sum();
    out.resize_for_overwrite(gpu, n, "the positions that ids stand for")?;
    let mut start = 0;
    for (ids, lookup) in lists {
        write_places(gpu, out.as_slice().run(start, ids.len()), *ids, *lookup)?;
        start += ids.len();
    }
    Ok(())
}

fn write_places(
    gpu: &Gpu,
    out: CudaSlice<'_, u64>,
    ids: IdsView<'_, Cuda>,
    lookup: Lookup,
) -> Result<(), CudaError> {
    let words = words("f32", ids.type_name());
    let launch = Launch::new(gpu, gpu.kernel(&unit(&words), "places")?).ids(ids);
    let launch = lookup.beyond_read_by(launch.size(ids.len()).size(lookup.extent));
    // SAFETY: there is a position for each id.
    unsafe { launch.writes(out).launch(Blocks::of(ids.len(), THREADS as usize, THREADS)) }
}

fn words(real: &'static str, id: &'static str) -> [(&'static str, Word); 2] {
    [("REAL", Word::Name(real)), ("ID", Word::Name(id))]
}

fn unit<'a>(words: &'a [(&'static str, Word)]) -> Unit<'a> {
    Unit { file: "kernels/take/take.cu", text: include_str!("../take.cu"), words }
}

/// Visits these units.
pub(crate) fn for_each_unit(visit: &mut dyn FnMut(&Unit<'_>)) {
    for id in ["u32", "u64", "i64"] {
        visit(&unit(&words("f32", id)));
    }
    gradient::for_each_unit(visit);
    csr_gradient::for_each_unit(visit);
}
