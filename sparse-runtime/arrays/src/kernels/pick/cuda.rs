//! One element of each row on a GPU. An id beyond the extent gives NaN.

use super::cpu::picked;
use crate::device::cuda::{Blocks, Cuda, CudaError, CudaSlice, Gpu, Launch, Unit, Word};
use crate::formats::cuda::ArrayArguments;
use crate::formats::{CsrView, Dense, DenseView, IdsView, RowSparseView, Shape};
use crate::kernels::cuda::{CudaContext, GpuFloat};
use crate::kernels::lookup::Lookup;

const THREADS: u32 = 256;

/// Of a dense array.
pub fn dense_ids<T: GpuFloat>(
    out: &mut Dense<T, Cuda>,
    x: DenseView<'_, T, Cuda>,
    ids: IdsView<'_, Cuda>,
    axis: i64,
    keepdims: bool,
    clip: bool,
    wrap: bool,
    context: &mut CudaContext,
) {
    row_sparse_ids(out, RowSparseView::all_on_gpu(x), ids, axis, keepdims, clip, wrap, context);
}

/// Of a csr matrix.
pub fn csr_ids<T: GpuFloat>(
    out: &mut Dense<T, Cuda>,
    x: CsrView<'_, T, Cuda>,
    ids: IdsView<'_, Cuda>,
    axis: i64,
    keepdims: bool,
    clip: bool,
    wrap: bool,
    context: &mut CudaContext,
) {
    let gpu = context.gpu();
    let shape = Shape::from([x.n_rows(), x.n_cols()]);
    let lookup = Lookup::new(&shape, axis, clip, wrap);
    gpu.attempt(out, |out| {
        let out = out.reset_on(gpu, picked(&shape, lookup.axis, keepdims))?;
        let words = words(T::TYPE.name(), ids.type_name(), x.columns().type_name());
        let launch = Launch::new(gpu, gpu.kernel(&unit(&words), "pick_entry")?).csr(x);
        let launch = launch.size(x.n_cols()).ids(ids).size(lookup.extent).size(lookup.inner);
        let launch = lookup.beyond_read_by(launch).writes(out).size(out.len());
        // SAFETY: there is an id for each element of `out`, and positions are below the extent.
        unsafe { launch.launch(Blocks::of(out.len(), THREADS as usize, THREADS)) }
    });
}

/// Of a row_sparse array.
pub fn row_sparse_ids<T: GpuFloat>(
    out: &mut Dense<T, Cuda>,
    x: RowSparseView<'_, T, Cuda>,
    ids: IdsView<'_, Cuda>,
    axis: i64,
    keepdims: bool,
    clip: bool,
    wrap: bool,
    context: &mut CudaContext,
) {
    let gpu = context.gpu();
    let lookup = Lookup::new(x.shape(), axis, clip, wrap);
    gpu.attempt(out, |out| {
        let out = out.reset_on(gpu, picked(x.shape(), lookup.axis, keepdims))?;
        let words = words(T::TYPE.name(), ids.type_name(), "u32");
        let launch = Launch::new(gpu, gpu.kernel(&unit(&words), "pick")?).rows(x);
        let launch = launch.size(x.shape().row_size()).ids(ids);
        let launch = lookup.beyond_read_by(launch.size(lookup.extent).size(lookup.inner));
        let launch = launch.writes(out).size(out.len());
        // SAFETY: as above.
        unsafe { launch.launch(Blocks::of(out.len(), THREADS as usize, THREADS)) }
    });
}

/// The gradient: zeros, and each element where it was picked.
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
    let gpu = context.gpu();
    let lookup = Lookup::new(&like, axis, clip, wrap);
    gpu.attempt(out, |out| {
        let out = out.zeros_on(gpu, like)?;
        place(gpu, out, grad.values(), ids, lookup)
    });
}

/// Writes elements, or without any ones, to where the ids say, each to a place of its own.
pub(in crate::kernels) fn place<T: GpuFloat>(
    gpu: &Gpu,
    out: CudaSlice<'_, T>,
    values: CudaSlice<'_, T>,
    ids: IdsView<'_, Cuda>,
    lookup: Lookup,
) -> Result<(), CudaError> {
    let words = words(T::TYPE.name(), ids.type_name(), "u32");
    let launch = Launch::new(gpu, gpu.kernel(&unit(&words), "place_picked")?).reads(values);
    let launch = launch.ids(ids).size(lookup.extent).size(lookup.inner);
    let launch = lookup.beyond_read_by(launch).writes(out).size(ids.len());
    // SAFETY: there is an id for each element but those along the axis, where positions are below
    // the extent.
    unsafe { launch.launch(Blocks::of(ids.len(), THREADS as usize, THREADS)) }
}

fn words(real: &'static str, id: &'static str, column: &'static str) -> [(&'static str, Word); 3] {
    [("REAL", Word::Name(real)), ("ID", Word::Name(id)), ("COLUMN", Word::Name(column))]
}

fn unit<'a>(words: &'a [(&'static str, Word)]) -> Unit<'a> {
    Unit { file: "kernels/pick/pick.cu", text: include_str!("pick.cu"), words }
}

/// Visits the unit.
pub(crate) fn for_each_unit(visit: &mut dyn FnMut(&Unit<'_>)) {
    visit(&unit(&words("f32", "i64", "u32")));
}
