//! Arrays and operands on a GPU whose storage is known at run time only, and the element types that
//! kernels there compute in.

use super::CudaContext;
use crate::device::cuda::{Cuda, CudaError, Gpu};
use crate::formats::{
    Csr, CsrView, Dense, DenseView, IdsView, RowIdsView, RowSparse, RowSparseView, Shape,
};
use crate::kernels::Operand;
use sparse_core::element::{Float, Unit};
use sparse_core::ir::Attributes;
use sparse_core::operators::Operator;
use sparse_core::storage::Storage;
use std::fmt;

/// An element type that kernels of a GPU compute in.
#[diagnostic::on_unimplemented(
    message = "kernels of a GPU do not compute in `{Self}`",
    note = "they compute in `f32` and `f64`; arrays of other types can be there, and are cast on the host"
)]
pub trait GpuFloat: Float<Accumulator = Self> {
    /// The kernel of a name, compiled in the library and not where a model is.
    #[doc(hidden)]
    fn kernel(operator: &'static Operator, name: &str) -> Option<GpuKernel<Self>>;
}

/// An array on a GPU whose storage is known at run time only.
#[derive(Debug)]
pub enum GpuArray<T: GpuFloat> {
    /// A dense array.
    Dense(Dense<T, Cuda>),
    /// A csr matrix.
    Csr(Csr<T, Cuda>),
    /// A row_sparse array.
    RowSparse(RowSparse<T, Cuda>),
    /// A csr matrix that holds a pattern only.
    Unit(Csr<Unit, Cuda>),
    /// Integer ids of 32 bits.
    IdsU32(Dense<u32, Cuda>),
    /// Integer ids of 64 bits: what kernels write as positions and counts, too.
    IdsU64(Dense<u64, Cuda>),
    /// Integer ids of 64 bits with a sign.
    IdsI64(Dense<i64, Cuda>),
}

/// An operand of a kernel.
#[derive(Clone, Copy)]
pub enum GpuOperand<'a, T: GpuFloat> {
    /// A dense array, or the table of a parameter, of which all rows are there.
    Dense(DenseView<'a, T, Cuda>),
    /// A csr matrix.
    Csr(CsrView<'a, T, Cuda>),
    /// A row_sparse array.
    RowSparse(RowSparseView<'a, T, Cuda>),
    /// A csr matrix that holds a pattern only.
    Unit(CsrView<'a, Unit, Cuda>),
    /// Integer ids.
    Ids(IdsView<'a, Cuda>),
    /// A number.
    Number(f64),
}

impl<'a, T: GpuFloat> GpuOperand<'a, T> {
    /// As a dense array.
    pub fn dense(self) -> Option<DenseView<'a, T, Cuda>> {
        match self {
            GpuOperand::Dense(view) => Some(view),
            _ => None,
        }
    }
}

impl<T: GpuFloat> fmt::Debug for GpuOperand<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            GpuOperand::Dense(_) => "Dense",
            GpuOperand::Csr(_) => "Csr",
            GpuOperand::RowSparse(_) => "RowSparse",
            GpuOperand::Unit(_) => "Unit",
            GpuOperand::Ids(_) => "Ids",
            GpuOperand::Number(_) => "Number",
        })
    }
}

/// What a kernel is called with: its operator, the storage of its result, operands and attributes.
#[derive(Debug)]
pub struct Given<'g, 'a, T: GpuFloat> {
    /// The operator.
    pub operator: &'static Operator,
    /// The storage of the result.
    pub result: Storage,
    /// The operands, in the order of the operator's row.
    pub operands: &'g [GpuOperand<'a, T>],
    /// The attributes given.
    pub attributes: &'g Attributes,
}

/// Launches a kernel. `None` where an operand is not what the kernel takes, or a required attribute
/// is not given; nothing is launched then.
pub type GpuKernel<T> = fn(&mut GpuArray<T>, &Given<'_, '_, T>, &mut CudaContext) -> Option<()>;

/// No elements.
impl<T: GpuFloat> Default for GpuArray<T> {
    fn default() -> Self {
        GpuArray::Dense(Dense::default())
    }
}

/// The array of a kind, to be written: a new one where there is another.
macro_rules! becomes {
    ($name:ident, $Variant:ident, $Array:ty, $what:literal) => {
        #[doc = concat!("The ", $what, " that it is, or becomes.")]
        pub fn $name(&mut self) -> &mut $Array {
            if !matches!(self, GpuArray::$Variant(_)) {
                *self = GpuArray::$Variant(<$Array>::default());
            }
            match self {
                GpuArray::$Variant(array) => array,
                _ => unreachable!(),
            }
        }
    };
}

impl<T: GpuFloat> GpuArray<T> {
    becomes!(dense, Dense, Dense<T, Cuda>, "dense array");
    becomes!(csr, Csr, Csr<T, Cuda>, "csr matrix");
    becomes!(row_sparse, RowSparse, RowSparse<T, Cuda>, "row_sparse array");
    becomes!(ids_u64, IdsU64, Dense<u64, Cuda>, "array of ids of 64 bits");

    /// A copy of an array of the host; of a number no elements.
    pub(super) fn of_operand(gpu: &Gpu, operand: &Operand<'_, T>) -> Result<Self, CudaError> {
        Ok(match operand {
            Operand::Dense(array) => GpuArray::Dense(array.to_gpu(gpu)?),
            Operand::Csr(array) => GpuArray::Csr(array.to_gpu(gpu)?),
            Operand::Unit(array) => GpuArray::Unit(array.to_gpu(gpu)?),
            Operand::RowSparse(array) => match array.indices() {
                RowIdsView::All => {
                    GpuArray::Dense(DenseView::table(*array.shape(), array.values()).to_gpu(gpu)?)
                }
                RowIdsView::Listed(_) => GpuArray::RowSparse(array.to_owned().to_gpu(gpu)?),
            },
            Operand::Ids(IdsView::U32(ids)) => GpuArray::IdsU32(ids.to_gpu(gpu)?),
            Operand::Ids(IdsView::U64(ids)) => GpuArray::IdsU64(ids.to_gpu(gpu)?),
            Operand::Ids(IdsView::I64(ids)) => GpuArray::IdsI64(ids.to_gpu(gpu)?),
            Operand::Scalar(_) => GpuArray::default(),
        })
    }

    /// A copy on the host, when everything asked for before is done; `None` of what no kernel
    /// gives.
    pub fn to_cpu(&self) -> Result<Option<crate::kernels::Array<T>>, CudaError> {
        use crate::kernels::Array;
        Ok(Some(match self {
            GpuArray::Dense(array) => Array::Dense(array.to_cpu()?),
            GpuArray::Csr(array) => Array::Csr(array.to_cpu()?),
            GpuArray::RowSparse(array) => Array::RowSparse(array.to_cpu()?),
            GpuArray::IdsU64(ids) => Array::Ids(ids.to_cpu()?.into()),
            // No kernel gives one.
            _ => return Ok(None),
        }))
    }

    /// Borrowed.
    pub fn operand(&self) -> GpuOperand<'_, T> {
        match self {
            GpuArray::Dense(array) => GpuOperand::Dense(array.view()),
            GpuArray::Csr(array) => GpuOperand::Csr(array.view()),
            GpuArray::RowSparse(array) => GpuOperand::RowSparse(array.view()),
            GpuArray::Unit(array) => GpuOperand::Unit(array.view()),
            GpuArray::IdsU32(ids) => GpuOperand::Ids(ids.view().into()),
            GpuArray::IdsU64(ids) => GpuOperand::Ids(ids.view().into()),
            GpuArray::IdsI64(ids) => GpuOperand::Ids(ids.view().into()),
        }
    }
}

/// An operand by its position, where it is of a storage type.
impl<'a, T: GpuFloat> Given<'_, 'a, T> {
    pub(in crate::kernels) fn operand(&self, index: usize) -> Option<GpuOperand<'a, T>> {
        self.operands.get(index).copied()
    }

    pub(in crate::kernels) fn dense(&self, index: usize) -> Option<DenseView<'a, T, Cuda>> {
        self.operand(index)?.dense()
    }

    pub(in crate::kernels) fn csr(&self, index: usize) -> Option<CsrView<'a, T, Cuda>> {
        match self.operand(index)? {
            GpuOperand::Csr(view) => Some(view),
            _ => None,
        }
    }

    pub(in crate::kernels) fn unit(&self, index: usize) -> Option<CsrView<'a, Unit, Cuda>> {
        match self.operand(index)? {
            GpuOperand::Unit(view) => Some(view),
            _ => None,
        }
    }

    /// A table stores all rows.
    pub(in crate::kernels) fn row_sparse(
        &self,
        index: usize,
    ) -> Option<RowSparseView<'a, T, Cuda>> {
        match self.operand(index)? {
            GpuOperand::RowSparse(view) => Some(view),
            GpuOperand::Dense(table) => Some(RowSparseView::all_on_gpu(table)),
            _ => None,
        }
    }

    pub(in crate::kernels) fn ids(&self, index: usize) -> Option<IdsView<'a, Cuda>> {
        match self.operand(index)? {
            GpuOperand::Ids(ids) => Some(ids),
            _ => None,
        }
    }

    pub(in crate::kernels) fn number(&self, index: usize) -> Option<f64> {
        match self.operand(index)? {
            GpuOperand::Number(number) => Some(number),
            _ => None,
        }
    }

    pub(in crate::kernels) fn shape(&self, index: usize) -> Option<Shape> {
        Some(match self.operand(index)? {
            GpuOperand::Dense(view) => *view.shape(),
            GpuOperand::Csr(view) => [view.n_rows(), view.n_cols()].into(),
            GpuOperand::RowSparse(view) => *view.shape(),
            GpuOperand::Unit(view) => [view.n_rows(), view.n_cols()].into(),
            GpuOperand::Ids(ids) => *ids.shape(),
            GpuOperand::Number(_) => Shape::default(),
        })
    }
}
