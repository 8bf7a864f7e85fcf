//! The kernels of a GPU by name, for models that know them at run time only.
//!
//! Which there are, the operator table says: a rule is marked `on_gpu`. Operators that are a
//! formula have one kernel for all of them; the others a function for each rule, in
//! `kernels/<operator>/cuda.rs`.

mod families;

use self::families::{
    gradient_of_cross_entropy, gradient_of_loss, mean_cross_entropy, mean_loss, of_element,
    of_elements, reduction,
};
use super::{CudaContext, GpuFloat, Labels, LossOperands, ScalarFunction};
use crate::device::cuda::{Cuda, CudaError, Gpu};
use crate::formats::{
    Csr, CsrView, Dense, DenseView, IdsView, RowIdsView, RowSparse, RowSparseView, Shape,
};
use crate::kernels::Operand;
use sparse_core::element::Unit;
use sparse_core::ir::Attributes;
use sparse_core::operators::{GpuFamily, Operator};
use sparse_core::storage::Storage;

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
    /// As the labels of a loss.
    pub fn labels(self) -> Option<Labels<'a, T>> {
        match self {
            GpuOperand::Dense(labels) => Some(Labels::Dense(labels)),
            GpuOperand::Csr(labels) => Some(Labels::Csr(labels)),
            GpuOperand::Ids(labels) => Some(Labels::Classes(labels)),
            _ => None,
        }
    }

    /// As a dense array.
    pub fn dense(self) -> Option<DenseView<'a, T, Cuda>> {
        match self {
            GpuOperand::Dense(view) => Some(view),
            _ => None,
        }
    }
}

/// What a kernel is called with: its operator, the storage of its result, operands and attributes.
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

sparse_macros::gpu_kernel_table!();

/// The kernel of a name, which is that of the host's. `None` where GPUs have none.
pub(crate) fn kernel<T: GpuFloat>(operator: &'static Operator, name: &str) -> Option<GpuKernel<T>> {
    match operator.gpu_family(name)? {
        GpuFamily::OfRule => kernel_of_rule(name),
        GpuFamily::Unary => Some(of_element),
        GpuFamily::Binary => Some(of_elements),
        GpuFamily::Reduce => Some(reduction),
        GpuFamily::MeanLoss => Some(mean_loss),
        GpuFamily::LossGradient => Some(gradient_of_loss),
        GpuFamily::MeanCrossEntropy => Some(mean_cross_entropy),
        GpuFamily::CrossEntropyGradient => Some(gradient_of_cross_entropy),
    }
}

/// Calls a kernel of a GPU by its name, as [`call_kernel`](crate::kernels::call_kernel) does one of
/// the host: copies the operands there, and the result back, which is dense or ids where the host's
/// is. `None` where GPUs have no kernel of the name, or an operand is not what it takes.
///
/// # Errors
///
/// What failed on the GPU.
pub fn call_kernel<T: GpuFloat>(
    operator: &'static Operator,
    name: &str,
    result: Storage,
    operands: &[Operand<'_, T>],
    attributes: &Attributes,
    context: &mut CudaContext,
) -> Result<Option<crate::kernels::Array<T>>, CudaError> {
    let Some(kernel) = T::kernel(operator, name) else { return Ok(None) };
    let gpu = context.gpu().clone();
    let arrays = operands.iter().map(|operand| GpuArray::of_operand(&gpu, operand));
    let arrays = arrays.collect::<Result<Vec<_>, _>>()?;
    let operands: Vec<_> = operands
        .iter()
        .zip(&arrays)
        .map(|(operand, array)| match operand {
            Operand::Scalar(number) => GpuOperand::Number(number.as_f64()),
            _ => array.operand(),
        })
        .collect();
    let mut out = GpuArray::default();
    let given = Given { operator, result, operands: &operands, attributes };
    if kernel(&mut out, &given, context).is_none() {
        return Ok(None);
    }
    out.to_cpu()
}

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
    fn of_operand(gpu: &Gpu, operand: &Operand<'_, T>) -> Result<Self, CudaError> {
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
    fn operand(&self, index: usize) -> Option<GpuOperand<'a, T>> {
        self.operands.get(index).copied()
    }

    fn dense(&self, index: usize) -> Option<DenseView<'a, T, Cuda>> {
        self.operand(index)?.dense()
    }

    fn csr(&self, index: usize) -> Option<CsrView<'a, T, Cuda>> {
        match self.operand(index)? {
            GpuOperand::Csr(view) => Some(view),
            _ => None,
        }
    }

    fn unit(&self, index: usize) -> Option<CsrView<'a, Unit, Cuda>> {
        match self.operand(index)? {
            GpuOperand::Unit(view) => Some(view),
            _ => None,
        }
    }

    /// A table stores all rows.
    fn row_sparse(&self, index: usize) -> Option<RowSparseView<'a, T, Cuda>> {
        match self.operand(index)? {
            GpuOperand::RowSparse(view) => Some(view),
            GpuOperand::Dense(table) => Some(RowSparseView::all_on_gpu(table)),
            _ => None,
        }
    }

    fn ids(&self, index: usize) -> Option<IdsView<'a, Cuda>> {
        match self.operand(index)? {
            GpuOperand::Ids(ids) => Some(ids),
            _ => None,
        }
    }

    fn number(&self, index: usize) -> Option<f64> {
        match self.operand(index)? {
            GpuOperand::Number(number) => Some(number),
            _ => None,
        }
    }

    fn shape(&self, index: usize) -> Option<Shape> {
        Some(match self.operand(index)? {
            GpuOperand::Dense(view) => *view.shape(),
            GpuOperand::Csr(view) => [view.n_rows(), view.n_cols()].into(),
            GpuOperand::RowSparse(view) => *view.shape(),
            GpuOperand::Unit(view) => [view.n_rows(), view.n_cols()].into(),
            GpuOperand::Ids(ids) => *ids.shape(),
            GpuOperand::Number(_) => Shape::default(),
        })
    }

    fn scalar_function(&self) -> Option<ScalarFunction> {
        ScalarFunction::new(self.operator, self.attributes)
    }

    fn labels(&self, index: usize) -> Option<Labels<'a, T>> {
        self.operand(index)?.labels()
    }

    fn loss_operands(&self) -> Option<LossOperands<'a, T>> {
        let weights = match self.operands.len() {
            2 => None,
            _ => Some(self.dense(2)?),
        };
        Some(LossOperands { scores: self.dense(0)?, labels: self.labels(1)?, weights })
    }
}
