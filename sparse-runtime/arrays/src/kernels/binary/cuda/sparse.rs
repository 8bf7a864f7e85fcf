//! Element-wise functions of two operands on a GPU, of which one or both are sparse.
//!
//! A sparse operand is read as if repeated: its elements are looked up, in O(log entries of a row)
//! or O(log rows).

use super::THREADS;
use crate::device::cuda::{Blocks, Cuda, CudaError, CudaSlice, Gpu, Launch, Unit, Word};
use crate::formats::cuda::ArrayArguments;
use crate::formats::{Csr, CsrView, Dense, DenseView, RowSparse, RowSparseView, Shape};
use crate::kernels::broadcast::{Walk, broadcast, strides};
use crate::kernels::cuda::csr_rows::{self, Source};
use crate::kernels::cuda::row_lists::{self, Stored, Values};
use crate::kernels::cuda::{CudaContext, GpuFloat, ScalarFunction};
use sparse_core::operators::BinaryFamily;

/// A function of a sparse operand and a dense one, and which of them is the sparse one.
#[derive(Clone, Copy, Debug)]
pub struct WithDense {
    /// The function.
    pub f: ScalarFunction,
    /// Whether the sparse operand is the first one.
    pub sparse_first: bool,
}

/// Of two csr matrices of one shape: which entries the result has, its family says.
pub fn csr_csr<'a, T: GpuFloat>(
    out: &mut Csr<T, Cuda>,
    lhs: CsrView<'a, T, Cuda>,
    rhs: CsrView<'a, T, Cuda>,
    family: BinaryFamily,
    f: ScalarFunction,
    context: &mut CudaContext,
) {
    let name = match family {
        BinaryFamily::Union | BinaryFamily::Dense => "Union",
        BinaryFamily::Intersection | BinaryFamily::Gradient => "Intersection",
        BinaryFamily::Left | BinaryFamily::SlopedGradient => "Left",
    };
    let shape = [lhs.n_rows(), lhs.n_cols()];
    csr_rows::make(out, shape, Source::combined(name, lhs, rhs, f), context);
}

/// Of two row_sparse arrays of one shape, likewise.
pub fn row_sparse_row_sparse<'a, T: GpuFloat>(
    out: &mut RowSparse<T, Cuda>,
    lhs: RowSparseView<'a, T, Cuda>,
    rhs: RowSparseView<'a, T, Cuda>,
    family: BinaryFamily,
    f: ScalarFunction,
    context: &mut CudaContext,
) {
    let stored = match family {
        BinaryFamily::Union | BinaryFamily::Dense => Stored::Either(lhs, rhs, 0),
        BinaryFamily::Intersection | BinaryFamily::Gradient => Stored::Both(lhs, rhs),
        BinaryFamily::Left | BinaryFamily::SlopedGradient => Stored::Of(lhs),
    };
    row_lists::make(out, *lhs.shape(), stored, Values::Of(lhs, rhs, f), context);
}

/// The rows that the left operand stores, with the entries of a csr, or zeros.
pub fn row_sparse_csr<'a, T: GpuFloat>(
    out: &mut RowSparse<T, Cuda>,
    lhs: RowSparseView<'a, T, Cuda>,
    rhs: CsrView<'a, T, Cuda>,
    f: ScalarFunction,
    context: &mut CudaContext,
) {
    row_lists::make(out, *lhs.shape(), Stored::Of(lhs), Values::WithCsr(lhs, rhs, f), context);
}

/// All elements of a csr and a dense array.
pub fn csr_into_dense<T: GpuFloat>(
    out: &mut Dense<T, Cuda>,
    sparse: CsrView<'_, T, Cuda>,
    dense: DenseView<'_, T, Cuda>,
    f: WithDense,
    context: &mut CudaContext,
) {
    let gpu = context.gpu();
    let of_sparse = Shape::from([sparse.n_rows(), sparse.n_cols()]);
    gpu.attempt(out, |out| {
        let shape = broadcast(&of_sparse, dense.shape());
        let walk = Walk::new(&shape, [&of_sparse, dense.shape()]);
        let out = out.reset_on(gpu, shape)?;
        let words = f.words(T::TYPE.name(), walk.extents().len(), sparse.columns().type_name());
        let launch = Launch::new(gpu, gpu.kernel(&unit(&words), "csr_into_dense")?).csr(sparse);
        let launch = launch.size(sparse.n_cols()).reads(dense.values());
        let launch = f.f.read_by(launch.record("walk", &walk.on_gpu()));
        let launch = launch.writes(out).size(out.len());
        // SAFETY: both broadcast to the shape of `out`.
        unsafe { launch.launch(Blocks::of(out.len(), THREADS as usize, THREADS)) }
    });
}

/// All elements of a row_sparse array and a dense one.
pub fn row_sparse_into_dense<T: GpuFloat>(
    out: &mut Dense<T, Cuda>,
    sparse: RowSparseView<'_, T, Cuda>,
    dense: DenseView<'_, T, Cuda>,
    f: WithDense,
    context: &mut CudaContext,
) {
    let gpu = context.gpu();
    gpu.attempt(out, |out| {
        let shape = broadcast(sparse.shape(), dense.shape());
        let out = out.reset_on(gpu, shape)?;
        f.rows(gpu, out, None, &shape, sparse, dense)
    });
}

/// What a csr stores, and a dense array there.
pub fn csr_dense<T: GpuFloat>(
    out: &mut Csr<T, Cuda>,
    sparse: CsrView<'_, T, Cuda>,
    dense: DenseView<'_, T, Cuda>,
    f: WithDense,
    context: &mut CudaContext,
) {
    let CudaContext { gpu, occurrences, .. } = context;
    let of_sparse = Shape::from([sparse.n_rows(), sparse.n_cols()]);
    let shape = broadcast(&of_sparse, dense.shape());
    let extents = [shape.n_rows(), shape.row_size()];
    gpu.attempt(out, |out| {
        if shape == of_sparse {
            let to = out.take_pattern(gpu, sparse)?;
            crate::kernels::casts::cuda::numbers(gpu, to, sparse.values())?;
        } else {
            let repeated = Source::repeated(sparse, extents);
            csr_rows::write(gpu, out, extents, repeated, occurrences.sums())?;
        }
        let [row_step, column_step, ..] = strides(dense.shape(), &shape);
        let out = out.view();
        let words = f.words(T::TYPE.name(), 1, out.columns().type_name());
        let launch = Launch::new(gpu, gpu.kernel(&unit(&words), "entries_with_dense")?);
        let launch = launch.reads(out.starts()).reads(out.ends()).columns(out.columns());
        let launch = launch.reads(dense.values()).size(row_step).size(column_step);
        let launch = f.f.read_by(launch).writes(out.values()).size(out.n_rows());
        // SAFETY: the dense operand broadcasts to the shape of the result.
        unsafe { launch.launch(Blocks::of(out.n_rows(), THREADS as usize / 32, THREADS)) }
    });
}

/// The rows that a row_sparse array stores, and a dense array there. Where rows are repeated, all
/// of the result's are stored, or none.
pub fn row_sparse_dense<T: GpuFloat>(
    out: &mut RowSparse<T, Cuda>,
    sparse: RowSparseView<'_, T, Cuda>,
    dense: DenseView<'_, T, Cuda>,
    f: WithDense,
    context: &mut CudaContext,
) {
    let CudaContext { gpu, occurrences, list, .. } = context;
    let shape = broadcast(sparse.shape(), dense.shape());
    gpu.attempt(out, |out| {
        let repeats =
            (sparse.shape().rank(), sparse.shape().n_rows()) != (shape.rank(), shape.n_rows());
        let (_, n_stored) = sparse.stored_on_gpu();
        let stored = if repeats && n_stored > 0 {
            Stored::Of(RowSparseView::numbers_on_gpu(shape.n_rows()))
        } else {
            Stored::Of(sparse)
        };
        stored.find(shape.n_rows(), list, occurrences, gpu)?;
        let list = occurrences.columns();
        let out = out.store_rows(gpu, shape, list)?;
        f.rows(gpu, out, Some(list), &shape, sparse, dense)
    });
}

impl WithDense {
    /// All elements of a shape, or those of a list of its rows.
    fn rows<T: GpuFloat>(
        &self,
        gpu: &Gpu,
        out: CudaSlice<'_, T>,
        list: Option<CudaSlice<'_, u64>>,
        shape: &Shape,
        sparse: RowSparseView<'_, T, Cuda>,
        dense: DenseView<'_, T, Cuda>,
    ) -> Result<(), CudaError> {
        let walk = Walk::new(shape, [sparse.shape(), dense.shape()]);
        let words = self.words(T::TYPE.name(), walk.extents().len(), "u32");
        let launch = Launch::new(gpu, gpu.kernel(&unit(&words), "rows_with_dense")?);
        let launch = launch.reads(list.unwrap_or_default()).size(shape.row_size()).rows(sparse);
        let launch = launch.size(sparse.shape().row_size()).reads(dense.values());
        let launch = self.f.read_by(launch.record("walk", &walk.on_gpu()));
        let launch = launch.writes(out).size(out.len());
        // SAFETY: both broadcast to the shape, whose rows those listed are; `out` has an element
        // for each.
        unsafe { launch.launch(Blocks::of(out.len(), THREADS as usize, THREADS)) }
    }

    fn words(
        &self,
        real: &'static str,
        rank: usize,
        id: &'static str,
    ) -> [(&'static str, Word); 7] {
        let [formula, first, second] = self.f.words();
        [
            ("REAL", Word::Name(real)),
            ("RANK", Word::Number(rank as u64)),
            ("ID", Word::Name(id)),
            ("SPARSE", Word::Number(if self.sparse_first { 1 } else { 2 })),
            formula,
            first,
            second,
        ]
    }
}

fn unit<'a>(words: &'a [(&'static str, Word)]) -> Unit<'a> {
    Unit { file: "kernels/binary/sparse.cu", text: include_str!("../sparse.cu"), words }
}

/// The unit of a function of two operands.
pub(crate) fn with_unit(f: ScalarFunction, visit: &mut dyn FnMut(&Unit<'_>)) {
    let of = WithDense { f, sparse_first: true };
    visit(&unit(&of.words("f32", crate::formats::MAX_RANK, "u32")));
}
