//! Element-wise functions of two operands, with broadcasting of dense operands.

use super::{BinaryFamily, Kind, Operator, Rule, gradient, rule};

pub(super) const ALL: &[&Operator] = &[&ADD, &SUBTRACT, &MULTIPLY, &DIVIDE];

/// A function with f(0, 0) = 0 that is not 0 elsewhere: two operands of one sparse storage keep it.
const UNION: &[Rule] = &[
    rule("dense dense -> dense"),
    rule("csr csr -> csr").same_shape(),
    rule("row_sparse row_sparse -> row_sparse").same_shape(),
    rule("csr dense -> dense"),
    rule("dense csr -> dense"),
    rule("row_sparse dense -> dense"),
    rule("dense row_sparse -> dense"),
    rule("dense scalar -> dense"),
    rule("scalar dense -> dense"),
];

const ADD: Operator = Operator {
    name: "add",
    summary: "The sum, element by element; a dense operand broadcasts. `a + b`.",
    operands: &["lhs", "rhs"],
    attributes: &[],
    shape: "broadcast",
    storage: UNION,
    gradient: &[gradient("lhs", "reduce_to(grad, lhs)"), gradient("rhs", "reduce_to(grad, rhs)")],
    kind: Kind::Binary(BinaryFamily::Union, "x + y"),
    alternative: None,
    internal: false,
};

const SUBTRACT: Operator = Operator {
    name: "subtract",
    summary: "The difference, element by element; a dense operand broadcasts. `a - b`.",
    operands: &["lhs", "rhs"],
    attributes: &[],
    shape: "broadcast",
    storage: UNION,
    gradient: &[gradient("lhs", "reduce_to(grad, lhs)"), gradient("rhs", "reduce_to(-grad, rhs)")],
    kind: Kind::Binary(BinaryFamily::Union, "x - y"),
    alternative: None,
    internal: false,
};

const MULTIPLY: Operator = Operator {
    name: "multiply",
    summary: "The product, element by element; a dense operand broadcasts. `a * b`. A sparse operand \
              keeps its pattern: only stored elements are multiplied.",
    operands: &["lhs", "rhs"],
    attributes: &[],
    shape: "broadcast",
    storage: &[
        rule("dense dense -> dense"),
        rule("csr csr -> csr").same_shape(),
        rule("row_sparse row_sparse -> row_sparse").same_shape(),
        rule("csr dense -> csr"),
        rule("dense csr -> csr"),
        rule("row_sparse dense -> row_sparse"),
        rule("dense row_sparse -> row_sparse"),
        rule("dense scalar -> dense"),
        rule("scalar dense -> dense"),
        rule("csr scalar -> csr"),
        rule("scalar csr -> csr"),
        rule("row_sparse scalar -> row_sparse"),
        rule("scalar row_sparse -> row_sparse"),
    ],
    gradient: &[
        gradient("lhs", "reduce_to(grad * rhs, lhs)"),
        gradient("rhs", "reduce_to(grad * lhs, rhs)"),
    ],
    kind: Kind::Binary(BinaryFamily::Intersection, "x * y"),
    alternative: None,
    internal: false,
};

const DIVIDE: Operator = Operator {
    name: "divide",
    summary: "The quotient, element by element; a dense operand broadcasts. `a / b`. A sparse dividend \
              keeps its pattern: only stored elements are divided.",
    operands: &["lhs", "rhs"],
    attributes: &[],
    shape: "broadcast",
    storage: &[
        rule("dense dense -> dense"),
        rule("csr dense -> csr"),
        rule("row_sparse dense -> row_sparse"),
        rule("dense scalar -> dense"),
        rule("scalar dense -> dense"),
        rule("csr scalar -> csr"),
        rule("row_sparse scalar -> row_sparse"),
    ],
    gradient: &[
        gradient("lhs", "reduce_to(grad / rhs, lhs)"),
        gradient("rhs", "reduce_to(-(grad * out / rhs), rhs)"),
    ],
    kind: Kind::Binary(BinaryFamily::Left, "x / y"),
    alternative: None,
    internal: false,
};
