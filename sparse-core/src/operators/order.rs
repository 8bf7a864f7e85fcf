//! Sorting, positions and counts; positions and counts are ids.

use super::write::{
    DEFAULTS, all_rows, axes, extent, flag, gradient, integer, no_gradient, planned, rule, shared,
};
use super::{Operator, Rule};

pub(super) const ALL: &[&Operator] =
    &[&ARGMAX, &ARGMIN, &COUNT_STORED, &SORT, &ARGSORT, &TOPK, &TOPK_IDS, &ORDER_GRADIENT];

const POSITIONS: &[Rule] = &[
    rule("dense -> ids").on_gpu(),
    rule("csr -> ids").on_gpu(),
    rule("row_sparse -> ids").on_gpu(),
];

const ARGMAX: Operator = Operator {
    name: "argmax",
    cost: "O(stored elements + size of the result).",
    summary: "The position of the largest element along an axis, or in the whole array, row major; of equal ones the first. An element \
              that is not stored is a 0; the first NaN is larger than any number.",
    attributes: &[axes("axis"), flag("keepdims")],
    shape: "position",
    storage: POSITIONS,
    gradient: &[gradient("x", "0")],
    reads_rows: &[all_rows("x")],
    kernels: planned("extremes", "position"),
    ..DEFAULTS
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
    storage: &[rule("csr -> ids").of_units().on_gpu(), rule("row_sparse -> ids").on_gpu()],
    gradient: &[gradient("x", "0")],
    alternative: Some("a dense array stores every element: its size is its shape"),
    reads_rows: &[all_rows("x")],
    ..DEFAULTS
};

const SORT: Operator = Operator {
    name: "sort",
    cost: "O(size · log of the extent of the axis).",
    summary: "The elements along an axis in ascending order, or with `descending` in descending order. NaN is larger than any number.",
    attributes: &[integer("axis", -1), flag("descending")],
    shape: "along",
    storage: &[rule("dense -> dense").on_gpu()],
    gradient: &[gradient(
        "x",
        "order_gradient(grad, argsort(x, axis = axis, descending = descending), x, axis = axis)",
    )],
    alternative: Some(
        "an element that is not stored is a 0 and has its place in the order: accept the cost with `sort(dense({}))`",
    ),
    kernels: planned("ordering", "elements"),
    ..DEFAULTS
};

const ARGSORT: Operator = Operator {
    name: "argsort",
    summary: "For each place of the sorted array the position along the axis that its element comes from, as `sort` orders them; equal \
              ones are in the order of their positions.",
    storage: &[rule("dense -> ids").on_gpu()],
    gradient: &[gradient("x", "0")],
    alternative: Some(
        "an element that is not stored is a 0 and has its place in the order: accept the cost with `argsort(dense({}))`",
    ),
    kernels: planned("ordering", "positions"),
    ..SORT
};

const TOPK: Operator = Operator {
    name: "topk",
    cost: "O(size + size of the result · log k).",
    summary: "The `k` largest elements along an axis, the largest first, or with `smallest` the smallest ones, the smallest first. NaN \
              is larger than any number.",
    attributes: &[extent("k", 1), integer("axis", -1), flag("smallest")],
    shape: "topk",
    storage: &[rule("dense -> dense").on_gpu()],
    gradient: &[gradient(
        "x",
        "order_gradient(grad, topk_ids(x, k = k, axis = axis, smallest = smallest), x, axis = axis)",
    )],
    alternative: Some(
        "an element that is not stored is a 0 and has its place in the order: accept the cost with `topk(dense({}))`",
    ),
    kernels: planned("ordering", "elements"),
    ..DEFAULTS
};

const TOPK_IDS: Operator = Operator {
    name: "topk_ids",
    summary: "The positions along an axis of the elements that `topk` gives; of equal ones the first.",
    storage: &[rule("dense -> ids").on_gpu()],
    gradient: &[gradient("x", "0")],
    alternative: Some(
        "an element that is not stored is a 0 and has its place in the order: accept the cost with `topk_ids(dense({}))`",
    ),
    kernels: planned("ordering", "positions"),
    ..TOPK
};

const ORDER_GRADIENT: Operator = Operator {
    name: "order_gradient",
    cost: "O(size of the result).",
    summary: "The gradient of `sort` and `topk`: zeros in the shape of `like`, and each element where it came from along the axis.",
    operands: &["grad", "ids", "like"],
    attributes: &[integer("axis", -1)],
    shape: "any any any -> like",
    storage: &[rule("dense ids like -> dense").on_gpu()],
    gradient: &[no_gradient("grad", "second derivatives are not offered"), gradient("ids", "0")],
    internal: true,
    kernels: shared("ordering"),
    ..DEFAULTS
};
