//! Which kernel of a GPU computes a value of a plan.

use super::arrays::{GpuArray, GpuOperand};
use crate::kernels::binary::cuda::Number;
use crate::kernels::cuda::{
    CudaContext, GpuFloat, LossFunction, LossOperands, ScalarFunction, loss, rows,
};
use crate::kernels::reduce::Over;
use crate::kernels::reduce::cuda::ReduceFunction;
use crate::kernels::{binary, dot, reduce, unary};
use sparse_core::inspect::{Operand, PlanTable, PlanValue};
use sparse_core::ir::Attributes;
use sparse_core::operators::{Kind, find};
use sparse_core::storage::Storage;

/// A kernel of a GPU, with what the plan says of a value.
#[derive(Clone, Copy, Debug)]
pub(super) enum Call {
    /// A function of each stored element.
    Unary(ScalarFunction),
    /// A function of two dense arrays.
    Binary(ScalarFunction),
    /// A function of each stored element and a number.
    WithNumber(ScalarFunction, Number),
    /// A reduction of a dense array.
    Reduce(ReduceFunction, Over),
    /// A sum to the shape of another array.
    SumTo,
    /// A loss of dense scores and labels.
    Loss(LossFunction),
    /// Its gradient.
    LossGradient(LossFunction),
    /// A csr by a dense matrix or a table.
    Product { transpose_rhs: bool },
    /// A csr, transposed, by a dense matrix.
    TransposedProduct { transpose_rhs: bool },
    /// Rows as dense.
    Scatter,
}

impl Call {
    /// The kernel of a value; `None` where there is none on a GPU.
    pub(super) fn of(plan: &PlanTable<'_>, value: &PlanValue<'_>) -> Option<Self> {
        let how = value.computed?;
        let operator = find(how.operator)?;
        let attributes = Attributes::from(how.attributes);
        let storages: Vec<Option<Storage>> = how
            .operands
            .iter()
            .map(|operand| match operand {
                Operand::Value(position) | Operand::Shape(position) => {
                    plan.values.get(*position as usize).map(|value| value.storage)
                }
                Operand::Number(_) => None,
            })
            .collect();
        let all_dense = value.storage == Storage::Dense
            && storages.iter().all(|storage| *storage == Some(Storage::Dense));
        let number = |number| ScalarFunction::new(operator, &attributes).map(|f| (f, number));
        match (operator.kind, how.operands) {
            (Kind::Unary(_), _) => ScalarFunction::new(operator, &attributes).map(Call::Unary),
            (Kind::Binary(..), [Operand::Number(lhs), _]) => {
                number(Number::First(*lhs)).map(|(f, number)| Call::WithNumber(f, number))
            }
            (Kind::Binary(..), [_, Operand::Number(rhs)]) => {
                number(Number::Second(*rhs)).map(|(f, number)| Call::WithNumber(f, number))
            }
            (Kind::Binary(..), _) if all_dense => {
                ScalarFunction::new(operator, &attributes).map(Call::Binary)
            }
            (Kind::Reduction(_), _) if all_dense => {
                let over = Over {
                    axis: attributes.axes("axis"),
                    keepdims: attributes.flag("keepdims"),
                    exclude: attributes.flag("exclude"),
                };
                ReduceFunction::new(operator, &attributes).map(|f| Call::Reduce(f, over))
            }
            (Kind::Loss { .. }, _) if all_dense => {
                LossFunction::new(operator, &attributes).map(Call::Loss)
            }
            (Kind::LossGradient(_), _) if all_dense => {
                LossFunction::new(operator, &attributes).map(Call::LossGradient)
            }
            (Kind::Kernel, operands) => {
                let [first, second] = [0, 1].map(|index| storages.get(index).copied().flatten());
                let transpose_rhs = attributes.flag("transpose_rhs");
                match (operator.name, first?, second) {
                    ("dot", Storage::Csr, Some(rhs)) => {
                        // Of a row_sparse operand all rows must be there.
                        let is_table = is_declared(plan, operands.get(1)?);
                        match attributes.flag("transpose_lhs") {
                            true if rhs == Storage::Dense => {
                                Some(Call::TransposedProduct { transpose_rhs })
                            }
                            false if rhs == Storage::Dense || is_table => {
                                Some(Call::Product { transpose_rhs })
                            }
                            _ => None,
                        }
                    }
                    ("reduce_to", Storage::Dense, Some(_)) if value.storage == Storage::Dense => {
                        Some(Call::SumTo)
                    }
                    ("dense", Storage::RowSparse, None) => Some(Call::Scatter),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// The names of the kernels that are launched, in order.
    pub(super) fn kernels(&self) -> &'static str {
        match self {
            Call::Unary(_) => "unary",
            Call::Binary(_) => "binary",
            Call::WithNumber(_, Number::First(_)) => "number_and_array",
            Call::WithNumber(_, Number::Second(_)) => "array_and_number",
            Call::Reduce(..) | Call::SumTo => "reduce_parts, combine_parts",
            Call::Loss(_) => "loss_parts, loss_mean",
            Call::LossGradient(_) => "loss_gradient",
            Call::Product { .. } => "csr_dense or csr_column",
            Call::TransposedProduct { .. } => "a sort by columns, csr_transposed_dense",
            Call::Scatter => "scatter_rows",
        }
    }

    /// Launches it; `None` where an operand is not what [`Call::of`] was told.
    pub(super) fn launch<T: GpuFloat>(
        &self,
        out: &mut GpuArray<T>,
        result: Storage,
        operands: &[GpuOperand<'_, T>],
        context: &mut CudaContext,
    ) -> Option<()> {
        let operand = |index: usize| operands.get(index).copied();
        match *self {
            Call::Unary(f) => match operand(0)? {
                GpuOperand::Csr(x) => unary::cuda::stored(out.csr(), x, f, context),
                x if result == Storage::RowSparse => {
                    unary::cuda::stored(out.row_sparse(), x.row_sparse()?, f, context);
                }
                x => unary::cuda::stored(out.dense(), x.dense()?, f, context),
            },
            Call::Binary(f) => {
                let (lhs, rhs) = (operand(0)?.dense()?, operand(1)?.dense()?);
                binary::cuda::dense_dense(out.dense(), lhs, rhs, f, context);
            }
            Call::WithNumber(f, number) => {
                let x = match number {
                    Number::First(_) => operand(1)?,
                    Number::Second(_) => operand(0)?,
                };
                match x {
                    GpuOperand::Csr(x) => {
                        binary::cuda::stored_number(out.csr(), x, number, f, context);
                    }
                    x if result == Storage::RowSparse => {
                        let x = x.row_sparse()?;
                        binary::cuda::stored_number(out.row_sparse(), x, number, f, context);
                    }
                    x => binary::cuda::stored_number(out.dense(), x.dense()?, number, f, context),
                }
            }
            Call::Reduce(f, over) => {
                reduce::cuda::dense(out.dense(), operand(0)?.dense()?, over, f, context);
            }
            Call::SumTo => {
                let (x, like) = (operand(0)?.dense()?, operand(1)?.shape());
                reduce::cuda::sum_to(out.dense(), x, like, context);
            }
            Call::Loss(f) => loss::mean(out.dense(), of_loss(operands)?, f, context),
            Call::LossGradient(f) => loss::gradient(out.dense(), of_loss(operands)?, f, context),
            Call::Product { transpose_rhs } => {
                let (out, rhs) = (out.dense(), operand(1)?.dense()?);
                match operand(0)? {
                    GpuOperand::Csr(x) => dot::cuda::csr_dense(out, x, rhs, transpose_rhs, context),
                    GpuOperand::Unit(x) => {
                        dot::cuda::csr_dense(out, x, rhs, transpose_rhs, context);
                    }
                    _ => return None,
                }
            }
            Call::TransposedProduct { transpose_rhs } => {
                let rhs = operand(1)?.dense()?;
                macro_rules! product {
                    ($x:expr) => {
                        match result {
                            Storage::RowSparse => dot::cuda::csr_transposed_dense(
                                out.row_sparse(),
                                $x,
                                rhs,
                                transpose_rhs,
                                context,
                            ),
                            _ => dot::cuda::csr_transposed_dense(
                                out.dense(),
                                $x,
                                rhs,
                                transpose_rhs,
                                context,
                            ),
                        }
                    };
                }
                match operand(0)? {
                    GpuOperand::Csr(x) => product!(x),
                    GpuOperand::Unit(x) => product!(x),
                    _ => return None,
                }
            }
            Call::Scatter => rows::scatter(out.dense(), operand(0)?.row_sparse()?, context),
        }
        Some(())
    }
}

fn is_declared(plan: &PlanTable<'_>, operand: &Operand) -> bool {
    match operand {
        Operand::Value(position) => {
            plan.values.get(*position as usize).is_some_and(|value| value.computed.is_none())
        }
        _ => false,
    }
}

fn of_loss<'a, T: GpuFloat>(operands: &[GpuOperand<'a, T>]) -> Option<LossOperands<'a, T>> {
    let (scores, labels) = match operands {
        [scores, labels, ..] => (scores.dense()?, labels.dense()?),
        _ => return None,
    };
    let weights = match operands.get(2) {
        Some(weights) => Some(weights.dense()?),
        None => None,
    };
    Some(LossOperands { scores, labels, weights })
}
