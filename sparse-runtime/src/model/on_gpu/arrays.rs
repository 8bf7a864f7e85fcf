//! Arrays on a GPU whose storage is known at run time only.

use crate::device::cuda::{Cuda, CudaError, Gpu};
use crate::formats::{Csr, CsrView, Dense, DenseView, RowSparse, RowSparseView, Shape};
use crate::kernels::cuda::GpuFloat;
use crate::model::InputView;
use sparse_core::element::Unit;

/// An array of a model's workspace, or an input of its batch.
#[derive(Debug)]
pub(super) enum GpuArray<T: GpuFloat> {
    Dense(Dense<T, Cuda>),
    Csr(Csr<T, Cuda>),
    RowSparse(RowSparse<T, Cuda>),
    Unit(Csr<Unit, Cuda>),
}

/// An operand of a kernel.
#[derive(Clone, Copy)]
pub(super) enum GpuOperand<'a, T: GpuFloat> {
    /// A dense array, or the table of a parameter, of which all rows are there.
    Dense(DenseView<'a, T, Cuda>),
    Csr(CsrView<'a, T, Cuda>),
    RowSparse(RowSparseView<'a, T, Cuda>),
    Unit(CsrView<'a, Unit, Cuda>),
    /// A number, which the call has.
    Number,
}

/// No elements.
impl<T: GpuFloat> Default for GpuArray<T> {
    fn default() -> Self {
        GpuArray::Dense(Dense::default())
    }
}

/// The array of a storage type, for a result: a new one where there is another.
macro_rules! result {
    ($name:ident, $Variant:ident) => {
        pub(super) fn $name(&mut self) -> &mut $Variant<T, Cuda> {
            if !matches!(self, GpuArray::$Variant(_)) {
                *self = GpuArray::$Variant($Variant::default());
            }
            match self {
                GpuArray::$Variant(array) => array,
                _ => unreachable!(),
            }
        }
    };
}

impl<T: GpuFloat> GpuArray<T> {
    result!(dense, Dense);
    result!(csr, Csr);
    result!(row_sparse, RowSparse);

    /// A copy of an input; `None` of ids, which no kernel of a model there reads.
    pub(super) fn of_input(gpu: &Gpu, input: InputView<'_, T>) -> Result<Option<Self>, CudaError> {
        Ok(Some(match input {
            InputView::Dense(array) => GpuArray::Dense(array.to_gpu(gpu)?),
            InputView::Csr(array) => GpuArray::Csr(array.to_gpu(gpu)?),
            InputView::Unit(array) => GpuArray::Unit(array.to_gpu(gpu)?),
            InputView::RowSparse(array) => GpuArray::RowSparse(array.to_owned().to_gpu(gpu)?),
            InputView::Ids(_) => return Ok(None),
        }))
    }

    pub(super) fn operand(&self) -> GpuOperand<'_, T> {
        match self {
            GpuArray::Dense(array) => GpuOperand::Dense(array.view()),
            GpuArray::Csr(array) => GpuOperand::Csr(array.view()),
            GpuArray::RowSparse(array) => GpuOperand::RowSparse(array.view()),
            GpuArray::Unit(array) => GpuOperand::Unit(array.view()),
        }
    }
}

impl<'a, T: GpuFloat> GpuOperand<'a, T> {
    pub(super) fn dense(self) -> Option<DenseView<'a, T, Cuda>> {
        if let GpuOperand::Dense(view) = self { Some(view) } else { None }
    }

    /// A table stores all rows.
    pub(super) fn row_sparse(self) -> Option<RowSparseView<'a, T, Cuda>> {
        match self {
            GpuOperand::RowSparse(view) => Some(view),
            GpuOperand::Dense(table) => Some(RowSparseView::all_on_gpu(table)),
            _ => None,
        }
    }

    /// The extents; none of a number.
    pub(super) fn shape(self) -> Shape {
        match self {
            GpuOperand::Dense(view) => *view.shape(),
            GpuOperand::Csr(view) => [view.n_rows(), view.n_cols()].into(),
            GpuOperand::RowSparse(view) => *view.shape(),
            GpuOperand::Unit(view) => [view.n_rows(), view.n_cols()].into(),
            GpuOperand::Number => Shape::default(),
        }
    }
}
