//! The kernels of a GPU by name, for models that know them at run time only.
//!
//! Which there are, the operator table says: a rule is marked `on_gpu`. Operators that are a formula have one kernel for all of them; the
//! others a function for each rule, in `kernels/<operator>/cuda.rs`.

use super::{CudaContext, GpuFloat, Labels, LossFunction, LossOperands, ScalarFunction, loss};
use crate::device::cuda::{Cuda, CudaError, Gpu};
use crate::formats::{
    Csr, CsrView, Dense, DenseView, IdsView, RowIdsView, RowSparse, RowSparseView, Shape,
};
use crate::kernels::binary::cuda::Number;
use crate::kernels::reduce::Over;
use crate::kernels::reduce::cuda::ReduceFunction;
use crate::kernels::{Operand, binary, reduce, softmax_cross_entropy, unary};
use sparse_core::element::Unit;
use sparse_core::ir::Attributes;
use sparse_core::operators::{BinaryFamily, Kind, Operator};
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
    /// Integer ids of 64 bits.
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

/// Launches a kernel. `None` where an operand is not what the kernel takes, or a required attribute is not given; nothing is launched then.
pub(crate) type GpuKernel<T> =
    fn(&mut GpuArray<T>, &Given<'_, '_, T>, &mut CudaContext) -> Option<()>;

sparse_macros::gpu_kernel_table!();

/// The kernel of a name, which is that of the host's. `None` where GPUs have none.
pub(crate) fn kernel<T: GpuFloat>(operator: &'static Operator, name: &str) -> Option<GpuKernel<T>> {
    if !operator.is_on_gpu(name) {
        return None;
    }
    match operator.kind {
        Kind::Kernel => kernel_of_rule(name),
        Kind::Unary(_) => Some(of_element),
        Kind::Binary(..) => Some(of_elements),
        Kind::Reduction(_) => Some(reduction),
        Kind::Loss { element: Some(_), .. } => Some(mean_loss),
        Kind::Loss { element: None, .. } => Some(mean_cross_entropy),
        Kind::LossGradient("softmax_cross_entropy") => Some(gradient_of_cross_entropy),
        Kind::LossGradient(_) => Some(gradient_of_loss),
        Kind::Declared(..) => None,
    }
}

/// Whether GPUs have a kernel of a name: what [`kernel`] says, for constants.
pub(crate) const fn is_on_gpu(name: &str) -> bool {
    let mut at = 0;
    while at < KERNELS.len() {
        if equal(KERNELS[at].as_bytes(), name.as_bytes()) {
            return true;
        }
        at += 1;
    }
    false
}

const fn equal(first: &[u8], second: &[u8]) -> bool {
    if first.len() != second.len() {
        return false;
    }
    let mut at = first.len();
    // The ends of names differ more than their starts.
    while at > 0 {
        at -= 1;
        if first[at] != second[at] {
            return false;
        }
    }
    true
}

/// Calls a kernel of a GPU by its name, as [`call_kernel`](crate::kernels::call_kernel) does one of the host: copies the operands there, and
/// the result back, which is dense or ids where the host's is. `None` where GPUs have no kernel of the name, or an operand is not what
/// it takes.
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
        pub(crate) fn $name(&mut self) -> &mut $Array {
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

/// Rows of csr matrices of the host, one after the other, on their way to a GPU.
#[derive(Debug)]
pub(crate) struct Staged<T: GpuFloat> {
    numbers: Csr<T>,
    units: Csr<Unit>,
}

/// None.
impl<T: GpuFloat> Default for Staged<T> {
    fn default() -> Self {
        Staged { numbers: Csr::default(), units: Csr::default() }
    }
}

impl<T: GpuFloat> GpuArray<T> {
    becomes!(dense, Dense, Dense<T, Cuda>, "dense array");
    becomes!(csr, Csr, Csr<T, Cuda>, "csr matrix");
    becomes!(row_sparse, RowSparse, RowSparse<T, Cuda>, "row_sparse array");
    becomes!(unit, Unit, Csr<Unit, Cuda>, "pattern");
    becomes!(ids_u32, IdsU32, Dense<u32, Cuda>, "array of ids of 32 bits");
    becomes!(ids_u64, IdsU64, Dense<u64, Cuda>, "array of ids of 64 bits");
    becomes!(ids_i64, IdsI64, Dense<i64, Cuda>, "array of ids of 64 bits with a sign");

    /// A copy of an array of the host; of a number no elements.
    fn of_operand(gpu: &Gpu, operand: &Operand<'_, T>) -> Result<Self, CudaError> {
        let mut array = GpuArray::default();
        array.assign(gpu, operand, &mut Staged::default())?;
        Ok(array)
    }

    /// Becomes a copy of an array of the host, in its memory if there is room; of a number no elements.
    pub(crate) fn assign(
        &mut self,
        gpu: &Gpu,
        from: &Operand<'_, T>,
        staged: &mut Staged<T>,
    ) -> Result<(), CudaError> {
        match from {
            Operand::Dense(array) => self.dense().assign_from_host(gpu, *array),
            Operand::Csr(array) => {
                staged.numbers.assign_csr(*array);
                self.csr().assign_from_host(gpu, &staged.numbers)
            }
            Operand::Unit(array) => {
                staged.units.assign_csr(*array);
                self.unit().assign_from_host(gpu, &staged.units)
            }
            Operand::RowSparse(array) => match array.indices() {
                RowIdsView::All => {
                    let table = DenseView::table(*array.shape(), array.values());
                    self.dense().assign_from_host(gpu, table)
                }
                RowIdsView::Listed(_) => {
                    *self = GpuArray::RowSparse(array.to_owned().to_gpu(gpu)?);
                    Ok(())
                }
            },
            Operand::Ids(IdsView::U32(ids)) => self.ids_u32().assign_from_host(gpu, *ids),
            Operand::Ids(IdsView::U64(ids)) => self.ids_u64().assign_from_host(gpu, *ids),
            Operand::Ids(IdsView::I64(ids)) => self.ids_i64().assign_from_host(gpu, *ids),
            Operand::Scalar(_) => {
                *self = GpuArray::default();
                Ok(())
            }
        }
    }

    fn to_cpu(&self) -> Result<Option<crate::kernels::Array<T>>, CudaError> {
        use crate::kernels::Array;
        Ok(Some(match self {
            GpuArray::Dense(array) => Array::Dense(array.to_cpu()?),
            GpuArray::Csr(array) => Array::Csr(array.to_cpu()?),
            GpuArray::RowSparse(array) => Array::RowSparse(array.to_cpu()?),
            // No kernel gives one.
            _ => return Ok(None),
        }))
    }

    /// Borrowed.
    pub(crate) fn operand(&self) -> GpuOperand<'_, T> {
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
        match self.operand(index)? {
            GpuOperand::Dense(view) => Some(view),
            _ => None,
        }
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
        match self.operand(index)? {
            GpuOperand::Dense(labels) => Some(Labels::Dense(labels)),
            GpuOperand::Csr(labels) => Some(Labels::Csr(labels)),
            GpuOperand::Ids(labels) => Some(Labels::Classes(labels)),
            _ => None,
        }
    }

    fn loss_operands(&self) -> Option<LossOperands<'a, T>> {
        let weights = match self.operands.len() {
            2 => None,
            _ => Some(self.dense(2)?),
        };
        Some(LossOperands { scores: self.dense(0)?, labels: self.labels(1)?, weights })
    }
}

/// Launches a function of stored elements, of operand `index`, by the storage of the result.
macro_rules! of_stored {
    ($out:ident, $given:ident, $index:expr, |$to:ident, $x:ident| $launch:expr) => {
        match $given.result {
            Storage::Dense => {
                let ($to, $x) = ($out.dense(), $given.dense($index)?);
                $launch
            }
            Storage::Csr => {
                let ($to, $x) = ($out.csr(), $given.csr($index)?);
                $launch
            }
            Storage::RowSparse => {
                let ($to, $x) = ($out.row_sparse(), $given.row_sparse($index)?);
                $launch
            }
        }
    };
}

fn of_element<T: GpuFloat>(
    out: &mut GpuArray<T>,
    given: &Given<'_, '_, T>,
    context: &mut CudaContext,
) -> Option<()> {
    let f = given.scalar_function()?;
    of_stored!(out, given, 0, |to, x| unary::cuda::stored(to, x, f, context));
    Some(())
}

fn of_elements<T: GpuFloat>(
    out: &mut GpuArray<T>,
    given: &Given<'_, '_, T>,
    context: &mut CudaContext,
) -> Option<()> {
    let f = given.scalar_function()?;
    let (number, index) = match (given.number(0), given.number(1)) {
        (Some(number), _) => (Number::First(number), 1),
        (_, Some(number)) => (Number::Second(number), 0),
        (None, None) => return of_arrays(out, given, f, context),
    };
    of_stored!(out, given, index, |to, x| {
        binary::cuda::stored_number(to, x, number, f, context);
    });
    Some(())
}

/// Launches a function of the elements of two arrays: what they and the result are says which.
fn of_arrays<T: GpuFloat>(
    out: &mut GpuArray<T>,
    given: &Given<'_, '_, T>,
    f: ScalarFunction,
    context: &mut CudaContext,
) -> Option<()> {
    use GpuOperand::{Csr, Dense, RowSparse};
    let Kind::Binary(family, _) = given.operator.kind else { return None };
    let (lhs, rhs) = (given.operand(0)?, given.operand(1)?);
    let with = |sparse_first| binary::cuda::WithDense { f, sparse_first };
    match (lhs, rhs, given.result) {
        // The table of a parameter is dense, and row_sparse for a result that is.
        (Dense(x), Dense(y), Storage::Dense) => {
            binary::cuda::dense_dense(out.dense(), x, y, f, context);
        }
        (Csr(x), Csr(y), _) => binary::cuda::csr_csr(out.csr(), x, y, family, f, context),
        (Csr(x), Dense(y), Storage::Csr) => {
            binary::cuda::csr_dense(out.csr(), x, y, with(true), context);
        }
        (Dense(x), Csr(y), Storage::Csr) => {
            binary::cuda::csr_dense(out.csr(), y, x, with(false), context);
        }
        (Csr(x), Dense(y), _) => {
            binary::cuda::csr_into_dense(out.dense(), x, y, with(true), context);
        }
        (Dense(x), Csr(y), Storage::Dense) => {
            binary::cuda::csr_into_dense(out.dense(), y, x, with(false), context);
        }
        (RowSparse(_) | Dense(_), Csr(y), _) => {
            binary::cuda::row_sparse_csr(out.row_sparse(), given.row_sparse(0)?, y, f, context);
        }
        (RowSparse(x), Dense(y), Storage::Dense) => {
            binary::cuda::row_sparse_into_dense(out.dense(), x, y, with(true), context);
        }
        (Dense(x), RowSparse(y), Storage::Dense) => {
            binary::cuda::row_sparse_into_dense(out.dense(), y, x, with(false), context);
        }
        (_, _, Storage::RowSparse) => return of_rows(out.row_sparse(), given, family, f, context),
        _ => return None,
    }
    Some(())
}

/// Launches a function of the elements of two arrays whose result stores rows. Operands by whose rows it does are row_sparse or tables,
/// which store all rows, as an operand that is dense by the rule does.
fn of_rows<T: GpuFloat>(
    out: &mut RowSparse<T, Cuda>,
    given: &Given<'_, '_, T>,
    family: BinaryFamily,
    f: ScalarFunction,
    context: &mut CudaContext,
) -> Option<()> {
    use BinaryFamily::{Gradient, Intersection, Left, SlopedGradient};
    let with = |sparse_first| binary::cuda::WithDense { f, sparse_first };
    let (first, second) = (given.dense(0), given.dense(1));
    // Of two tables any has the rows, unless it is repeated.
    let first_has_rows = given.shape(0)?.size() >= given.shape(1)?.size();
    match (family, first, second) {
        (Left | SlopedGradient | Intersection | Gradient, None, Some(y)) => {
            binary::cuda::row_sparse_dense(out, given.row_sparse(0)?, y, with(true), context);
        }
        (Left | SlopedGradient, Some(_), Some(y)) => {
            binary::cuda::row_sparse_dense(out, given.row_sparse(0)?, y, with(true), context);
        }
        (Intersection | Gradient, Some(_), Some(y)) if first_has_rows => {
            binary::cuda::row_sparse_dense(out, given.row_sparse(0)?, y, with(true), context);
        }
        (Intersection | Gradient, Some(x), _) => {
            binary::cuda::row_sparse_dense(out, given.row_sparse(1)?, x, with(false), context);
        }
        _ => {
            let (x, y) = (given.row_sparse(0)?, given.row_sparse(1)?);
            binary::cuda::row_sparse_row_sparse(out, x, y, family, f, context);
        }
    }
    Some(())
}

fn reduction<T: GpuFloat>(
    out: &mut GpuArray<T>,
    given: &Given<'_, '_, T>,
    context: &mut CudaContext,
) -> Option<()> {
    let attributes = given.attributes;
    let over = Over {
        axis: attributes.axes("axis"),
        keepdims: attributes.flag("keepdims"),
        exclude: attributes.flag("exclude"),
    };
    let f = ReduceFunction::new(given.operator, attributes)?;
    match (given.operand(0)?, given.result) {
        (_, Storage::RowSparse) => {
            reduce::cuda::row_sparse_by_rows(
                out.row_sparse(),
                given.row_sparse(0)?,
                over,
                f,
                context,
            );
        }
        (GpuOperand::Csr(x), _) => reduce::cuda::csr(out.dense(), x, over, f, context),
        (GpuOperand::RowSparse(x), _) => reduce::cuda::row_sparse(out.dense(), x, over, f, context),
        _ => reduce::cuda::dense(out.dense(), given.dense(0)?, over, f, context),
    }
    Some(())
}

fn mean_loss<T: GpuFloat>(
    out: &mut GpuArray<T>,
    given: &Given<'_, '_, T>,
    context: &mut CudaContext,
) -> Option<()> {
    let f = LossFunction::new(given.operator, given.attributes)?;
    loss::mean(out.dense(), given.loss_operands()?, f, context);
    Some(())
}

fn gradient_of_loss<T: GpuFloat>(
    out: &mut GpuArray<T>,
    given: &Given<'_, '_, T>,
    context: &mut CudaContext,
) -> Option<()> {
    let f = LossFunction::new(given.operator, given.attributes)?;
    loss::gradient(out.dense(), given.loss_operands()?, f, context);
    Some(())
}

fn mean_cross_entropy<T: GpuFloat>(
    out: &mut GpuArray<T>,
    given: &Given<'_, '_, T>,
    context: &mut CudaContext,
) -> Option<()> {
    softmax_cross_entropy::cuda::mean(out.dense(), given.loss_operands()?, context);
    Some(())
}

fn gradient_of_cross_entropy<T: GpuFloat>(
    out: &mut GpuArray<T>,
    given: &Given<'_, '_, T>,
    context: &mut CudaContext,
) -> Option<()> {
    softmax_cross_entropy::cuda::gradient(out.dense(), given.loss_operands()?, context);
    Some(())
}
