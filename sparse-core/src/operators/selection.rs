//! Elements and rows chosen by ids or by a condition: they are moved, nothing is computed.
//!
//! Ids are data: a result does not change with them in small steps. Ids of a batch are checked
//! against the extent that they index; `clip` and `wrap` say instead what becomes of ids beyond it.

use super::write::{
    DEFAULTS, all_rows, flag, gradient, integer, no_gradient, required_extent, rows_by,
    rows_by_ids, rule, shared, storage,
};
use super::{Condition, CsrPattern, IdsBelow, Operator, ResultRows, RowNames, RowUse, Weights};
use crate::storage::Storage::Dense;

pub(super) const ALL: &[&Operator] =
    &[&RETAIN, &READ_ROWS, &TAKE, &PICK, &ONE_HOT, &SELECT, &TAKE_GRADIENT, &PICK_GRADIENT];

const RETAIN: Operator = Operator {
    name: "retain",
    cost: "O(ids + values kept), of a csr O(rows + entries kept).",
    summary: "The rows of a list, as they are; the others are not stored. A row that was not stored before is not stored after.",
    operands: &["x", "ids"],
    ids_below: Some(IdsBelow { ids: "ids", of: "x", axis: 0 }),
    shape: "any any -> x",
    storage: &[
        rule("dense ids -> row_sparse").on_gpu(),
        rule("csr ids -> csr").on_gpu(),
        rule("row_sparse ids -> row_sparse").on_gpu(),
    ],
    gradient: &[gradient("x", "retain(grad, ids)"), gradient("ids", "0")],
    reads_rows: &[rows_by_ids("x", "ids", RowUse::AsTheyAre)],
    result_rows: &[ResultRows::Read],
    csr_pattern: CsrPattern::OfOperands,
    ..DEFAULTS
};

const READ_ROWS: Operator = Operator {
    name: "read_rows",
    cost: "O(nnz of `by` + values kept).",
    summary: "The rows of a table that the columns of the csr `by` name, as they are; the others are not stored. Functions of a table that is \
              read by rows are computed for these.",
    operands: &["x", "by"],
    shape: "[d, k] [n, d] -> [d, k] | [d] [n, d] -> [d]",
    storage: &[
        rule("dense csr -> row_sparse").on_gpu().of_units(),
        rule("row_sparse csr -> row_sparse").on_gpu().of_units(),
    ],
    gradient: &[gradient("x", "read_rows(grad, by)"), gradient("by", "0")],
    reads_rows: &[rows_by("x", "by", RowUse::AsTheyAre)],
    result_rows: &[ResultRows::Read],
    internal: true,
    ..DEFAULTS
};

const TAKE: Operator = Operator {
    name: "take",
    cost: "O(size of the result); of a csr O(ids + entries of the rows taken).",
    summary: "The elements at the positions `ids` along an axis, which is replaced by the axes of the ids: the rows of a table. \
              With `clip` ids beyond the ends are the ends, with `wrap` they count on from the other end.",
    operands: &["x", "ids"],
    ids_below: Some(IdsBelow { ids: "ids", of: "x", axis: 0 }),
    attributes: &[integer("axis", 0), flag("clip"), flag("wrap")],
    shape: "take",
    storage: &[
        rule("dense ids -> dense").on_gpu(),
        rule("csr ids -> csr").on_gpu().only(&Condition::ALONG_ROWS),
        rule("row_sparse ids -> dense").on_gpu().only(&Condition::ALONG_ROWS),
    ],
    gradient: &[
        gradient("x", "take_gradient(grad, ids, x, axis = axis, clip = clip, wrap = wrap)"),
        gradient("ids", "0"),
    ],
    weights: Weights::Operands(&["x"]),
    csr_pattern: CsrPattern::OfOperands,
    reads_rows: &[
        rows_by_ids("x", "ids", RowUse::Each)
            .only("(axis == 0) + (axis + x_rank == 0) and !clip and !wrap"),
        all_rows("x"),
    ],
    ..DEFAULTS
};

const TAKE_GRADIENT: Operator = Operator {
    name: "take_gradient",
    cost: "O(size of `grad`); where the result is dense O(size of the result) more; of a csr O(rows of the result + entries · log entries).",
    summary: "The gradient of `take`: each element is added to where it was taken from. Along the first axis the rows taken are \
              stored.",
    operands: &["grad", "ids", "like"],
    attributes: &[integer("axis", 0), flag("clip"), flag("wrap"), storage("out")],
    shape: "any any any -> like",
    storage: &[
        rule("dense ids like -> row_sparse")
            .on_gpu()
            .only(&Condition::ALONG_ROWS)
            .or_on_request(Dense),
        rule("dense ids like -> dense").on_gpu(),
        rule("csr ids like -> csr").on_gpu().only(&Condition::ALONG_ROWS),
    ],
    gradient: &[no_gradient("grad", "second derivatives are not offered"), gradient("ids", "0")],
    result_rows: &[
        ResultRows::Added {
            by: RowNames::Ids("ids"),
            what: RowUse::Each,
            of: "grad",
            when: Some("(axis == 0) + (axis + like_rank == 0) and !clip and !wrap"),
        },
        ResultRows::All,
    ],
    internal: true,
    kernels: shared("take"),
    ..DEFAULTS
};

const PICK: Operator = Operator {
    name: "pick",
    cost: "O(ids), of a csr O(ids · log of a row), of a row_sparse array O(ids · log rows stored).",
    summary: "One element of each row (or along another axis): that at the position which `ids` says, an id for each row. `clip` and \
              `wrap` are as in `take`.",
    operands: &["x", "ids"],
    ids_below: Some(IdsBelow { ids: "ids", of: "x", axis: -1 }),
    attributes: &[integer("axis", -1), flag("keepdims"), flag("clip"), flag("wrap")],
    shape: "pick",
    storage: &[
        rule("dense ids -> dense").on_gpu(),
        rule("csr ids -> dense").on_gpu(),
        rule("row_sparse ids -> dense").on_gpu(),
    ],
    gradient: &[
        gradient("x", "pick_gradient(grad, ids, x, axis = axis, clip = clip, wrap = wrap)"),
        gradient("ids", "0"),
    ],
    reads_rows: &[all_rows("x")],
    ..DEFAULTS
};

const PICK_GRADIENT: Operator = Operator {
    name: "pick_gradient",
    cost: "O(size of the result).",
    summary: "The gradient of `pick`: zeros, and each element where it was picked.",
    operands: &["grad", "ids", "like"],
    attributes: &[integer("axis", -1), flag("clip"), flag("wrap")],
    shape: "any any any -> like",
    storage: &[rule("dense ids like -> dense").on_gpu()],
    gradient: &[no_gradient("grad", "second derivatives are not offered"), gradient("ids", "0")],
    internal: true,
    kernels: shared("pick"),
    ..DEFAULTS
};

const ONE_HOT: Operator = Operator {
    name: "one_hot",
    cost: "O(ids); where the result is dense O(ids · depth).",
    summary: "For each id a row of `depth` columns with a 1 in the column of the id.",
    operands: &["ids"],
    ids_below: Some(IdsBelow { ids: "ids", of: "depth", axis: 0 }),
    attributes: &[required_extent("depth"), storage("out")],
    shape: "one_hot",
    storage: &[rule("ids -> csr").on_gpu().or_on_request(Dense)],
    gradient: &[gradient("ids", "0")],
    csr_pattern: CsrPattern::Ids("ids"),
    ..DEFAULTS
};

const SELECT: Operator = Operator {
    name: "select",
    cost: "O(size).",
    summary: "`x` where the condition is not 0, else `y` (`where` in other languages). What a sparse condition does not store is 0, \
              like a stored 0.",
    operands: &["condition", "x", "y"],
    shape: "same same same -> same",
    storage: &[
        rule("dense dense dense -> dense").on_gpu(),
        rule("csr dense dense -> dense").on_gpu(),
        rule("row_sparse dense dense -> dense").on_gpu(),
    ],
    gradient: &[
        gradient("condition", "0"),
        gradient("x", "grad * (condition != 0)"),
        gradient("y", "grad - grad * (condition != 0)"),
    ],
    reads_rows: &[all_rows("condition")],
    ..DEFAULTS
};
