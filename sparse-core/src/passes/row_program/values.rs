//! Values of a sample, each computed from other values of the sample and from dense parameters.

use super::samples::Samples;
use crate::ir::{Apply, Kind, ValueId};
use crate::operators::{self, BinaryFamily, KernelModule, Link, MatrixProduct, Placement, Total};
use crate::shapes::{Dim, place_of};
use crate::storage::Storage;

/// A value of a sample.
#[derive(Clone, Debug, PartialEq)]
pub struct RowValue {
    /// The value.
    pub value: ValueId,
    /// How the sample's row of it is computed.
    pub computed: RowComputed,
}

/// How a sample's row of a value is computed from rows of other values. Axes are those of the row:
/// 0 is the first one after that of the batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowComputed {
    /// Each element by the operator's formula; operands with extents of 1 repeat.
    ElementWise,
    /// The gradient of this loss of the table, with the loss.
    LossGradient(ValueId),
    /// A number in every place, or the same divided by the number of elements of the batch.
    Share {
        /// Whether it is divided.
        mean: bool,
    },
    /// x · w, or x · wᵀ, and a bias.
    Product {
        /// A row.
        x: ValueId,
        /// A dense parameter.
        w: ValueId,
        /// Whether it is read transposed.
        transposed: bool,
        /// A dense parameter that is added.
        bias: Option<ValueId>,
    },
    /// One row after the other, along an axis.
    Joined {
        /// The first row.
        first: ValueId,
        /// The second row.
        second: ValueId,
        /// The axis.
        axis: usize,
    },
    /// The first elements of a row, or the last, along an axis.
    Part {
        /// The row.
        of: ValueId,
        /// The axis.
        axis: usize,
        /// Whether they are the last.
        from_end: bool,
    },
    /// The sums of a row over some axes, or the means.
    Total {
        /// The row.
        of: ValueId,
        /// The axes, in order.
        axes: Vec<usize>,
        /// Whether they are means.
        mean: bool,
    },
    /// A row repeated along some axes of the result.
    Repeated {
        /// The row.
        of: ValueId,
        /// The axes, in order.
        axes: Vec<usize>,
        /// Whether each place has its share only: the elements are divided by their repetitions.
        shared: bool,
    },
    /// The same elements in the same order.
    Copy(ValueId),
    /// The softmax of a row with one axis.
    Softmax(ValueId),
}

impl Samples<'_> {
    pub(super) fn computed(&self, id: ValueId, apply: &Apply) -> Result<RowComputed, String> {
        let inner = self.inner(id)?;
        let (operator, flag) = (apply.operator, |name| apply.attributes.flag(name));
        let refused = || {
            let (label, name) = (self.graph.label(id), operator.name);
            Err(format!(
                "`{label}` (`{name}`) is not computed from rows of samples and dense parameters"
            ))
        };
        let &first = apply.operands.first().ok_or("an operator has no operands")?;
        let second = apply.operands.get(1).copied();
        if is_scalar_function(apply) {
            let fits = |operand: &ValueId| self.is_operand(*operand, &inner);
            let fit = apply.operands.iter().all(fits);
            return if fit { Ok(RowComputed::ElementWise) } else { refused() };
        }
        if let Some(w) = second
            && operator.matrix_product != MatrixProduct::None
        {
            return self.product(apply, first, w, &inner)?.map_or_else(refused, Ok);
        }
        if operator.undoes_broadcasting && second.is_some() {
            let of = self.inner(first)?;
            if of == inner {
                return Ok(RowComputed::Copy(first));
            }
            let axes = repeated_axes(&inner, &of);
            return match axes {
                Some(axes) => Ok(RowComputed::Total { of: first, axes, mean: false }),
                None => refused(),
            };
        }
        match (operator.placement, second) {
            (Placement::Joined, Some(second)) => {
                let axis = self.inner_axis(id, apply, "axis");
                self.inner(first)?;
                self.inner(second)?;
                return axis
                    .map_or_else(refused, |axis| Ok(RowComputed::Joined { first, second, axis }));
            }
            (Placement::PartLike, Some(like)) => {
                let rank = self.graph.shape(id).len();
                let axes = apply.attributes.axes("axes").places(rank);
                let axis =
                    axes.filter(|axes| axes.len() == 1).and_then(|axes| axes[0].checked_sub(1));
                self.inner(first)?;
                self.inner(like)?;
                let from_end = flag("from_end");
                return axis.map_or_else(refused, |axis| {
                    Ok(RowComputed::Part { of: first, axis, from_end })
                });
            }
            (Placement::RepeatedLike, Some(_)) => return self.repeated(id, apply, first),
            _ => {}
        }
        if let Some(total) = operator.total() {
            let rank = self.graph.shape(first).len();
            let Some(places) = apply.attributes.axes("axis").places(rank) else { return refused() };
            let axes: Vec<usize> =
                (1..rank).filter(|axis| places.contains(axis) != flag("exclude")).collect();
            self.inner(first)?;
            if places.contains(&0) != flag("exclude") {
                return refused();
            }
            let axes = axes.into_iter().map(|axis| axis - 1).collect();
            return Ok(RowComputed::Total { of: first, axes, mean: total == Total::Mean });
        }
        let keeps_order = matches!(
            operator.kernels,
            KernelModule::Planned { module: "layout", kernel: "copied" }
        ) || operator.converts_to == Some(Storage::Dense);
        if keeps_order {
            self.inner(first)?;
            return Ok(RowComputed::Copy(first));
        }
        if operator.link == Some(Link::Softmax)
            && inner.len() == 1
            && self.inner_axis(id, apply, "axis") == Some(0)
        {
            self.inner(first)?;
            return Ok(RowComputed::Softmax(first));
        }
        refused()
    }

    /// The axis of a row that an attribute names; `None` for that of the batch.
    fn inner_axis(&self, id: ValueId, apply: &Apply, attribute: &str) -> Option<usize> {
        let rank = self.graph.shape(id).len();
        let axis = apply.operator.integer(&apply.attributes, attribute)?;
        place_of(axis, rank)?.checked_sub(1)
    }

    /// A value repeated to the shape of another one.
    fn repeated(&self, id: ValueId, apply: &Apply, of: ValueId) -> Result<RowComputed, String> {
        let shape = self.graph.shape(id);
        let refused = || {
            let (label, name) = (self.graph.label(id), apply.operator.name);
            Err(format!("`{label}` (`{name}`) repeats more than a row of a sample"))
        };
        let Some(places) = apply.attributes.axes("axis").places(shape.len()) else {
            return refused();
        };
        let shared = apply.attributes.flag("mean");
        if self.graph.is_number(of) {
            let is_whole = places.len() == shape.len();
            return if is_whole { Ok(RowComputed::Share { mean: shared }) } else { refused() };
        }
        self.inner(of)?;
        if places.contains(&0) != apply.attributes.flag("exclude") {
            return refused();
        }
        let is_repeated = |axis: &usize| places.contains(axis) != apply.attributes.flag("exclude");
        let axes = (1..shape.len()).filter(is_repeated).map(|axis| axis - 1).collect();
        Ok(RowComputed::Repeated { of, axes, shared })
    }

    /// The product of rows with a dense parameter `w`; `None` where the parameter does not fit.
    fn product(
        &self,
        apply: &Apply,
        x: ValueId,
        w: ValueId,
        result: &[Dim],
    ) -> Result<Option<RowComputed>, String> {
        let columns = match result {
            [] => Dim::Size(1),
            [columns] => columns.clone(),
            _ => return Ok(None),
        };
        let flag = |name| apply.attributes.flag(name);
        let (transposed, bias, fits) = match apply.operator.matrix_product {
            MatrixProduct::ByFlags if !flag("transpose_lhs") => {
                let (inner, transposed) = (self.columns(x)?, flag("transpose_rhs"));
                let extents = if transposed { [&columns, &inner] } else { [&inner, &columns] };
                (transposed, None, self.is_parameter(w, &extents))
            }
            // Of a number a row and a vector: the gradient of a product with that.
            MatrixProduct::Outer => {
                let is_number = self.columns(x)? == Dim::Size(1);
                (true, None, is_number && self.is_parameter(w, &[&columns]))
            }
            MatrixProduct::WithTransposed(_) => {
                let (inner, bias) = (self.columns(x)?, apply.operands.get(2).copied());
                let is_bias = |bias| self.is_parameter(bias, &[&columns]);
                let fits = self.is_parameter(w, &[&columns, &inner]) && bias.is_none_or(is_bias);
                (true, bias, fits)
            }
            _ => return Ok(None),
        };
        Ok(fits.then_some(RowComputed::Product { x, w, transposed, bias }))
    }

    /// Whether each element of a row with these extents has its element of an operand.
    fn is_operand(&self, id: ValueId, inner: &[Dim]) -> bool {
        match self.graph.value(id).kind {
            Kind::Constant(_) | Kind::Named(_) => true,
            Kind::Parameter { .. } => self.broadcasts(id, inner),
            _ => {
                let fits = |(own, dim): (&Dim, &Dim)| own == dim || *own == Dim::Size(1);
                self.inner(id)
                    .is_ok_and(|own| own.len() == inner.len() && own.iter().zip(inner).all(fits))
            }
        }
    }

    /// Whether a dense parameter repeats to rows with these extents.
    pub(super) fn broadcasts(&self, parameter: ValueId, inner: &[Dim]) -> bool {
        let shape = self.graph.shape(parameter);
        let is_parameter = matches!(self.graph.value(parameter).kind, Kind::Parameter { .. });
        if !is_parameter || self.graph.storage(parameter) != Storage::Dense {
            return false;
        }
        let (before, own) = shape.split_at(shape.len().saturating_sub(inner.len()));
        let aligned = &inner[inner.len() - own.len()..];
        before.iter().all(|dim| *dim == Dim::Size(1))
            && own.iter().zip(aligned).all(|(own, dim)| own == dim || *own == Dim::Size(1))
    }
}

/// The axes of rows `of` along which rows with extents `inner` repeat; `None` where they do not.
fn repeated_axes(inner: &[Dim], of: &[Dim]) -> Option<Vec<usize>> {
    if inner.len() != of.len() {
        return None;
    }
    let mut axes = Vec::new();
    for (axis, (own, dim)) in inner.iter().zip(of).enumerate() {
        match own {
            _ if own == dim => {}
            Dim::Size(1) => axes.push(axis),
            _ => return None,
        }
    }
    Some(axes)
}

/// Whether an operator is a function of the elements at one place, given by a formula.
fn is_scalar_function(apply: &Apply) -> bool {
    match apply.operator.kind {
        operators::Kind::Unary(_) => true,
        operators::Kind::Binary(family, _) => matches!(
            family,
            BinaryFamily::Union
                | BinaryFamily::Intersection
                | BinaryFamily::Left
                | BinaryFamily::Gradient
                | BinaryFamily::SlopedGradient
        ),
        _ => false,
    }
}
