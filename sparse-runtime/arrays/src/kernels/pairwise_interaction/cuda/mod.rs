//! The second-order term of a factorization machine on a GPU, and its gradients, in `f64`.

mod dense;

use crate::device::cuda::{Blocks, Cuda, CudaError, CudaSlice, Gpu, Launch, Unit, Word, text_of};
use crate::formats::cuda::ArrayArguments;
use crate::formats::{Csr, CsrView, Dense, DenseView, RowSparseView};
use crate::kernels::cuda::{CudaContext, GpuFloat, Rows, lanes};
use sparse_core::element::Factor;

/// What texts of interactions share: its name and its text.
pub const HEADER: (&str, &str) = (
    "kernels/pairwise_interaction/pairwise_interaction.cuh",
    include_str!("../pairwise_interaction.cuh"),
);

const THREADS: u32 = 256;
const SUMS: &str = "sums over the rows of a batch";

/// Of a csr with a dense table.
pub fn csr_dense<T: GpuFloat, V: Factor<T>>(
    out: &mut Dense<T, Cuda>,
    x: CsrView<'_, V, Cuda>,
    v: DenseView<'_, T, Cuda>,
    context: &mut CudaContext,
) {
    csr_row_sparse(out, x, RowSparseView::all_on_gpu(v), context);
}

/// Of a csr with a row_sparse table; a row that is not stored is zero.
pub fn csr_row_sparse<T: GpuFloat, V: Factor<T>>(
    out: &mut Dense<T, Cuda>,
    x: CsrView<'_, V, Cuda>,
    v: RowSparseView<'_, T, Cuda>,
    context: &mut CudaContext,
) {
    let gpu = context.gpu();
    gpu.attempt(out, |out| {
        let out = out.reset_on(gpu, [x.n_rows(), 1].into())?;
        interact(gpu, CudaSlice::default(), out, x, v)
    });
}

/// Of a dense matrix with a dense table.
pub fn dense_dense<T: GpuFloat>(
    out: &mut Dense<T, Cuda>,
    x: DenseView<'_, T, Cuda>,
    v: DenseView<'_, T, Cuda>,
    context: &mut CudaContext,
) {
    dense::interaction(out, x, v, context);
}

/// The gradient with respect to the table: a row for each column that occurs in a csr.
pub fn gradient_csr_dense_dense<T: GpuFloat, V: Factor<T>, O: Rows<T>>(
    out: &mut O,
    x: CsrView<'_, V, Cuda>,
    v: DenseView<'_, T, Cuda>,
    grad: DenseView<'_, T, Cuda>,
    context: &mut CudaContext,
) {
    gradient_csr_row_sparse_dense(out, x, RowSparseView::all_on_gpu(v), grad, context);
}

/// The gradient with respect to the table, of a dense matrix.
pub fn gradient_dense_dense_dense<T: GpuFloat>(
    out: &mut Dense<T, Cuda>,
    x: DenseView<'_, T, Cuda>,
    v: DenseView<'_, T, Cuda>,
    grad: DenseView<'_, T, Cuda>,
    context: &mut CudaContext,
) {
    dense::gradient(out, x, v, grad, context);
}

/// The gradient with respect to what a csr stores, at its pattern.
pub fn slope_csr_dense_dense<T: GpuFloat>(
    out: &mut Csr<T, Cuda>,
    x: CsrView<'_, T, Cuda>,
    v: DenseView<'_, T, Cuda>,
    grad: DenseView<'_, T, Cuda>,
    context: &mut CudaContext,
) {
    slope_csr_row_sparse_dense(out, x, RowSparseView::all_on_gpu(v), grad, context);
}

/// The gradient with respect to a dense matrix.
pub fn slope_dense_dense_dense<T: GpuFloat>(
    out: &mut Dense<T, Cuda>,
    x: DenseView<'_, T, Cuda>,
    v: DenseView<'_, T, Cuda>,
    grad: DenseView<'_, T, Cuda>,
    context: &mut CudaContext,
) {
    dense::slope(out, x, v, grad, context);
}

/// The gradient with respect to the table: a row for each column that occurs.
pub fn gradient_csr_row_sparse_dense<T: GpuFloat, V: Factor<T>, O: Rows<T>>(
    out: &mut O,
    x: CsrView<'_, V, Cuda>,
    v: RowSparseView<'_, T, Cuda>,
    grad: DenseView<'_, T, Cuda>,
    context: &mut CudaContext,
) {
    let gpu = &context.gpu().clone();
    let CudaContext { occurrences, partial: sums, .. } = context;
    gpu.attempt(out, |out| {
        let width = v.shape().row_size();
        sums.resize_for_overwrite(gpu, x.n_rows() * width, SUMS)?;
        interact(gpu, sums.as_slice(), CudaSlice::default(), x, v)?;
        occurrences.find(gpu, x)?;
        let columns = occurrences.columns();
        let (to, targets) = out.make_room(gpu, *v.shape(), columns)?;
        let n = columns.len() * width;
        let words = words(T::TYPE.name(), V::TYPE.name(), x.columns().type_name());
        let launch = Launch::new(gpu, gpu.kernel(&unit(&words), "interaction_gradient")?)
            .reads(occurrences.runs())
            .reads(occurrences.entries())
            .reads(occurrences.rows())
            .reads(columns)
            .reads(targets)
            .reads(x.values())
            .rows(v)
            .reads(sums.as_slice())
            .reads(grad.values())
            .writes(to)
            .size(width)
            .size(n);
        // SAFETY: runs, entries and rows are those of `x`, each of whose rows has sums and an
        // element of `grad`; `to` has a row for each column that occurs, where `targets` says.
        unsafe { launch.launch(Blocks::of(n, THREADS as usize, THREADS)) }
    });
}

/// The gradient with respect to what a csr stores, at its pattern.
pub fn slope_csr_row_sparse_dense<T: GpuFloat>(
    out: &mut Csr<T, Cuda>,
    x: CsrView<'_, T, Cuda>,
    v: RowSparseView<'_, T, Cuda>,
    grad: DenseView<'_, T, Cuda>,
    context: &mut CudaContext,
) {
    let CudaContext { gpu, partial: sums, .. } = context;
    gpu.attempt(out, |out| {
        let width = v.shape().row_size();
        sums.resize_for_overwrite(gpu, x.n_rows() * width, SUMS)?;
        interact(gpu, sums.as_slice(), CudaSlice::default(), x, v)?;
        let to = out.take_pattern(gpu, x)?;
        let words = words(T::TYPE.name(), T::TYPE.name(), x.columns().type_name());
        let launch = Launch::new(gpu, gpu.kernel(&unit(&words), "interaction_slopes")?);
        let launch = launch.csr(x).rows(v).reads(sums.as_slice()).reads(grad.values());
        let launch = launch.writes(to).size(x.n_rows()).size(width).size(lanes(width));
        // SAFETY: each row of `x` has sums and an element of `grad`, and `to` an element for each
        // of its entries.
        unsafe { launch.launch(Blocks::of(x.n_rows(), THREADS as usize / 32, THREADS)) }
    });
}

fn interact<T: GpuFloat, V: Factor<T>>(
    gpu: &Gpu,
    sums: CudaSlice<'_, f64>,
    out: CudaSlice<'_, T>,
    x: CsrView<'_, V, Cuda>,
    v: RowSparseView<'_, T, Cuda>,
) -> Result<(), CudaError> {
    let words = words(T::TYPE.name(), V::TYPE.name(), x.columns().type_name());
    let launch = Launch::new(gpu, gpu.kernel(&unit(&words), "interaction")?).csr(x).rows(v);
    let launch = launch.writes(sums).writes(out).size(x.n_rows()).size(v.shape().row_size());
    // SAFETY: rows that are stored are below their number; `sums` and `out` have room for each row
    // of `x`, where they are there.
    unsafe { launch.launch(Blocks::of(x.n_rows(), THREADS as usize / 32, THREADS)) }
}

fn words(real: &'static str, value: &'static str, id: &'static str) -> [(&'static str, Word); 3] {
    [("REAL", Word::Name(real)), ("VALUE", Word::Name(value)), ("ID", Word::Name(id))]
}

fn unit<'a>(words: &'a [(&'static str, Word)]) -> Unit<'a> {
    let text = text_of!(
        "kernels/pairwise_interaction/pairwise_interaction.cuh",
        "kernels/pairwise_interaction/pairwise_interaction.cu"
    );
    Unit { file: "kernels/pairwise_interaction/pairwise_interaction.cu", text, words }
}

/// Visits these units.
pub(crate) fn for_each_unit(visit: &mut dyn FnMut(&Unit<'_>)) {
    visit(&unit(&words("f32", "f32", "u32")));
    visit(&unit(&words("f32", "unit", "u64")));
    dense::for_each_unit(visit);
}
