//! Reductions, and their inverse, broadcasting.

use super::{Kind, Operator, Rule, axis, flag, gradient, rule};

pub(super) const ALL: &[&Operator] = &[&SUM, &MEAN, &REDUCE_TO, &BROADCAST_LIKE];

/// Reductions read what is stored and give a dense result.
const REDUCTION: &[Rule] =
    &[rule("dense -> dense"), rule("csr -> dense"), rule("row_sparse -> dense")];

const SUM: Operator = Operator {
    name: "sum",
    summary: "The sum over an axis, or over everything.",
    operands: &["x"],
    attributes: &[axis("axis"), flag("keepdims")],
    shape: "reduce",
    storage: REDUCTION,
    gradient: &[gradient("x", "broadcast_like(grad, x, axis = axis)")],
    kind: Kind::Kernel,
    alternative: None,
    internal: false,
};

const MEAN: Operator = Operator {
    name: "mean",
    summary: "The mean over an axis, or over everything; elements that are not stored count as zeros.",
    operands: &["x"],
    attributes: &[axis("axis"), flag("keepdims")],
    shape: "reduce",
    storage: REDUCTION,
    gradient: &[gradient("x", "broadcast_like(grad, x, axis = axis, mean = true)")],
    kind: Kind::Kernel,
    alternative: None,
    internal: false,
};

const REDUCE_TO: Operator = Operator {
    name: "reduce_to",
    summary: "Sums `x` over the axes along which `like` was broadcast to it: the gradient of \
              broadcasting. The identity where the shapes are equal.",
    operands: &["x", "like"],
    attributes: &[],
    shape: "any any -> like",
    storage: &[
        rule("dense dense -> dense"),
        rule("dense csr -> dense"),
        rule("dense row_sparse -> dense"),
        rule("csr dense -> dense"),
        rule("csr csr -> csr").same_shape(),
        rule("row_sparse dense -> dense"),
        rule("row_sparse row_sparse -> row_sparse").same_shape(),
        rule("row_sparse csr -> row_sparse").same_shape(),
        rule("csr row_sparse -> csr").same_shape(),
    ],
    gradient: &[gradient("x", "broadcast_like(grad, x)")],
    kind: Kind::Kernel,
    alternative: None,
    internal: true,
};

const BROADCAST_LIKE: Operator = Operator {
    name: "broadcast_like",
    summary: "Repeats `x` to the shape of `like`, the reduced `axis` put back: the gradient of a \
              reduction. With `mean`, divided by the number of repetitions.",
    operands: &["x", "like"],
    attributes: &[axis("axis"), flag("mean")],
    shape: "any any -> like",
    storage: &[
        rule("dense dense -> dense"),
        rule("dense csr -> dense"),
        rule("dense row_sparse -> dense"),
        rule("scalar dense -> dense"),
        rule("scalar csr -> dense"),
        rule("scalar row_sparse -> dense"),
    ],
    gradient: &[super::no_gradient("x", "second derivatives of reductions are not offered")],
    kind: Kind::Kernel,
    alternative: None,
    internal: true,
};
