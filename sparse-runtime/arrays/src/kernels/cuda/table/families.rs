//! Launches of kernels that a family of operators has in common.

use super::{Given, GpuArray, GpuOperand};
use crate::device::cuda::Cuda;
use crate::formats::RowSparse;
use crate::kernels::binary::cuda::Number;
use crate::kernels::cuda::{CudaContext, GpuFloat, LossFunction, ScalarFunction, loss};
use crate::kernels::reduce::Over;
use crate::kernels::reduce::cuda::ReduceFunction;
use crate::kernels::{binary, reduce, softmax_cross_entropy, unary};
use sparse_core::operators::{BinaryFamily, Kind};
use sparse_core::storage::Storage;

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

pub(super) fn of_element<T: GpuFloat>(
    out: &mut GpuArray<T>,
    given: &Given<'_, '_, T>,
    context: &mut CudaContext,
) -> Option<()> {
    let f = given.scalar_function()?;
    of_stored!(out, given, 0, |to, x| unary::cuda::stored(to, x, f, context));
    Some(())
}

pub(super) fn of_elements<T: GpuFloat>(
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

/// Launches a function of the elements of two arrays whose result stores rows. Operands by whose
/// rows it does are row_sparse or tables, which store all rows, as an operand that is dense by the
/// rule does.
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

pub(super) fn reduction<T: GpuFloat>(
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

pub(super) fn mean_loss<T: GpuFloat>(
    out: &mut GpuArray<T>,
    given: &Given<'_, '_, T>,
    context: &mut CudaContext,
) -> Option<()> {
    let f = LossFunction::new(given.operator, given.attributes)?;
    loss::mean(out.dense(), given.loss_operands()?, f, context);
    Some(())
}

pub(super) fn gradient_of_loss<T: GpuFloat>(
    out: &mut GpuArray<T>,
    given: &Given<'_, '_, T>,
    context: &mut CudaContext,
) -> Option<()> {
    let f = LossFunction::new(given.operator, given.attributes)?;
    loss::gradient(out.dense(), given.loss_operands()?, f, context);
    Some(())
}

pub(super) fn mean_cross_entropy<T: GpuFloat>(
    out: &mut GpuArray<T>,
    given: &Given<'_, '_, T>,
    context: &mut CudaContext,
) -> Option<()> {
    softmax_cross_entropy::cuda::mean(out.dense(), given.loss_operands()?, context);
    Some(())
}

pub(super) fn gradient_of_cross_entropy<T: GpuFloat>(
    out: &mut GpuArray<T>,
    given: &Given<'_, '_, T>,
    context: &mut CudaContext,
) -> Option<()> {
    softmax_cross_entropy::cuda::gradient(out.dense(), given.loss_operands()?, context);
    Some(())
}
