//! Gradients of dense parameters: sums over samples.

use super::samples::{Samples, elements_of};
use super::{FEW, are_few};
use crate::ir::{Apply, Graph, ValueId};
use crate::operators::{MatrixProduct, Total};
use std::collections::BTreeSet;

/// A term of the gradient of a dense parameter, for one sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DenseGradient {
    /// The products of all elements of two rows.
    Outer(ValueId, ValueId),
    /// A row.
    Row(ValueId),
    /// The sum of a row's elements over the axes that the parameter repeats along.
    Total(ValueId),
}

/// The terms of a gradient, in order, and with them the values `inside`. Without recursion: a sum
/// is as deep as it has terms.
pub(super) fn terms_of<'a>(
    graph: &'a Graph,
    sum: ValueId,
    inside: &mut BTreeSet<ValueId>,
) -> Vec<&'a Apply> {
    let (mut terms, mut next) = (Vec::new(), vec![sum]);
    while let Some(id) = next.pop() {
        inside.insert(id);
        match graph.apply_of(id) {
            Some(apply) if apply.operator.is_sum => {
                next.extend(apply.operands.iter().rev());
            }
            apply => terms.extend(apply),
        }
    }
    terms
}

impl Samples<'_> {
    /// The terms of a dense parameter's gradient. A gradient with several terms is made on the
    /// stack.
    pub(super) fn dense_gradient(
        &self,
        parameter: ValueId,
        terms: Vec<&Apply>,
    ) -> Result<Vec<DenseGradient>, String> {
        if terms.len() > 1 && !elements_of(self.graph, parameter).is_some_and(are_few) {
            let name = self.graph.label(parameter);
            return Err(format!(
                "the gradient of `{name}`, a sum, has more than {FEW} elements, or their number \
                 is not in the source"
            ));
        }
        terms.into_iter().map(|term| self.dense_term(parameter, term)).collect()
    }

    fn dense_term(&self, parameter: ValueId, apply: &Apply) -> Result<DenseGradient, String> {
        let name = self.graph.label(parameter);
        let refused = || {
            format!("the gradient of `{name}` (`{}`) is no sum over samples", apply.operator.name)
        };
        let of = |place: usize| apply.operands.get(place).copied().ok_or_else(refused);
        let flag = |name| apply.attributes.flag(name);
        let operator = apply.operator;
        if operator.matrix_product == MatrixProduct::ByFlags
            && flag("transpose_lhs")
            && !flag("transpose_rhs")
        {
            let (left, right) = (of(0)?, of(1)?);
            let (rows, columns) = (self.columns(left)?, self.columns(right)?);
            if self.is_parameter(parameter, &[&rows, &columns]) {
                return Ok(DenseGradient::Outer(left, right));
            }
        } else if operator.undoes_broadcasting || operator.total() == Some(Total::Sum) {
            let row = of(0)?;
            let inner = self.inner(row)?;
            let axes = apply.attributes.axes("axis").places(self.graph.shape(row).len());
            let over_samples = operator.undoes_broadcasting
                || axes.is_some_and(|axes| axes == [0]) && !flag("exclude");
            let same: Vec<_> = inner.iter().collect();
            if over_samples && self.is_parameter(parameter, &same) {
                return Ok(DenseGradient::Row(row));
            }
            if operator.undoes_broadcasting && self.broadcasts(parameter, &inner) {
                return Ok(DenseGradient::Total(row));
            }
        }
        Err(refused())
    }
}
