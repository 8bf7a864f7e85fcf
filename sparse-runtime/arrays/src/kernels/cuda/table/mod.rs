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
pub use super::array::{Given, GpuArray, GpuKernel, GpuOperand};

use super::{CudaContext, GpuFloat, Labels, LossOperands, ScalarFunction};
use crate::device::cuda::CudaError;
use crate::kernels::Operand;
use sparse_core::ir::Attributes;
use sparse_core::operators::{GpuFamily, Operator};
use sparse_core::storage::Storage;

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

impl GpuFloat for f32 {
    fn kernel(operator: &'static Operator, name: &str) -> Option<GpuKernel<f32>> {
        kernel(operator, name)
    }
}

impl GpuFloat for f64 {
    fn kernel(operator: &'static Operator, name: &str) -> Option<GpuKernel<f64>> {
        kernel(operator, name)
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

/// Operands of families of operators.
impl<'a, T: GpuFloat> Given<'_, 'a, T> {
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
