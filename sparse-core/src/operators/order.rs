//! Positions and counts: results are ids.

use super::{Operator, ROW, Rule, axes, flag, gradient, rule};

pub(super) const ALL: &[&Operator] = &[&ARGMAX, &ARGMIN, &COUNT_STORED];

const POSITIONS: &[Rule] = &[rule("dense -> ids"), rule("csr -> ids"), rule("row_sparse -> ids")];

const ARGMAX: Operator = Operator {
    name: "argmax",
    cost: "O(stored elements + size of the result).",
    summary: "The position of the largest element along an axis, or in the whole array, row major; of equal ones the first. An element \
              that is not stored is a 0; the first NaN is larger than any number.",
    attributes: &[axes("axis"), flag("keepdims")],
    shape: "position",
    storage: POSITIONS,
    gradient: &[gradient("x", "0")],
    ..ROW
};

const ARGMIN: Operator = Operator {
    name: "argmin",
    summary: "The position of the smallest element along an axis, or in the whole array, row major; of equal ones the first. An \
              element that is not stored is a 0; the first NaN is smaller than any number.",
    ..ARGMAX
};

const COUNT_STORED: Operator = Operator {
    name: "count_stored",
    cost: "O(stored elements + size of the result).",
    summary: "How many elements are stored, stored zeros among them, along an axis or in the whole array.",
    attributes: &[axes("axis"), flag("keepdims")],
    shape: "position",
    storage: &[rule("csr -> ids"), rule("row_sparse -> ids")],
    gradient: &[gradient("x", "0")],
    alternative: Some("a dense array stores every element: its size is its shape"),
    ..ROW
};
