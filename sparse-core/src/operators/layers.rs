//! Layers: products with a table that batches read by rows, a second-order interaction, and the
//! product at a pattern that gradients of sparse values are made of.

use super::write::{
    DEFAULTS, all_rows, flag, gradient, gradient_when, no_gradient, rows_by, rows_by_ids, rule,
    shared, storage,
};
use super::{
    Condition, CsrPattern, IdsBelow, MatrixProduct, Operator, ResultRows, RowNames, RowUse, Rule,
    Weights,
};
use crate::storage::Storage::Dense;

pub(super) const ALL: &[&Operator] = &[
    &FULLY_CONNECTED,
    &EMBEDDING,
    &EMBEDDING_BAG,
    &EMBEDDING_BAG_GRADIENT,
    &PAIRWISE_INTERACTION,
    &PAIRWISE_INTERACTION_GRADIENT,
    &PAIRWISE_INTERACTION_SLOPE,
    &SAMPLED_DOT,
];

const FULLY_CONNECTED: Operator = Operator {
    cost: "O(n · d · h) for a dense x, O(nnz · h) for a csr; h is the number of rows stored of a row_sparse weight.",
    name: "fully_connected",
    matrix_product: MatrixProduct::WithTransposed("dot"),
    summary: "A layer of h units: x · weightᵀ, and `bias` added to every row. A unit whose row a row_sparse weight does not store gives its \
              bias. The gradient of the weight has a row for every unit: it is dense.",
    operands: &["x", "weight", "bias"],
    optional: 1,
    shape: "[n, d] [h, d] [h] -> [n, h]",
    storage: &[
        rule("dense dense -> dense").on_gpu(),
        rule("csr dense -> dense").on_gpu().of_units(),
        rule("dense row_sparse -> dense").on_gpu(),
        rule("csr row_sparse -> dense").on_gpu().of_units(),
        rule("dense dense dense -> dense").on_gpu(),
        rule("csr dense dense -> dense").on_gpu().of_units(),
        rule("dense row_sparse dense -> dense").on_gpu(),
        rule("csr row_sparse dense -> dense").on_gpu().of_units(),
    ],
    gradient: &[
        gradient("x", "dot(grad, weight)"),
        gradient("weight", "dot(grad, x, transpose_lhs = true, out = dense)"),
        gradient("bias", "sum(grad, axis = 0)"),
    ],
    alternative: Some(
        "accept the cost with `dense(…)` around the operand, or write `dot(x, w)` with a row_sparse `w` of shape [d, h], which a csr \
         `x` reads by rows",
    ),
    weights: Weights::Operands(&["x", "weight"]),
    reads_rows: &[all_rows("weight")],
    ..DEFAULTS
};

const EMBEDDING: Operator = Operator {
    cost: "O(ids · size of a row); of a row_sparse table that is not a parameter each look-up costs O(log of its rows) more.",
    name: "embedding",
    summary: "For each id the row of a table: the shape of `ids`, then that of a row. A row that a row_sparse table does not store is \
              zero. Of a row_sparse parameter a batch reads and writes only the rows of its ids.",
    operands: &["ids", "weight"],
    ids_below: Some(IdsBelow { ids: "ids", of: "weight", axis: 0 }),
    shape: "embedding",
    storage: &[rule("ids dense -> dense").on_gpu(), rule("ids row_sparse -> dense").on_gpu()],
    gradient: &[
        no_gradient("ids", "ids are data"),
        gradient("weight", "take_gradient(grad, ids, weight)"),
    ],
    weights: Weights::Operands(&["weight"]),
    reads_rows: &[rows_by_ids("weight", "ids", RowUse::Each)],
    kernels: shared("take"),
    ..DEFAULTS
};

const EMBEDDING_BAG: Operator = Operator {
    cost: "O(nnz · k).",
    name: "embedding_bag",
    summary: "For each row of `bags` the sum of the table's rows that its stored columns name, whatever the stored values are; with `weighted` each \
              multiplied by its value; with `mean` divided by the number of stored entries, or by the sum of their values. A bag \
              without entries gives zeros, and so does one whose values sum to 0.",
    operands: &["bags", "table"],
    attributes: &[flag("mean"), flag("weighted")],
    shape: "[n, v] [v, k] -> [n, k]",
    storage: &[
        rule("csr dense -> dense").on_gpu().of_units(),
        rule("csr row_sparse -> dense").on_gpu().of_units(),
    ],
    gradient: &[
        gradient_when(
            "weighted > mean",
            "bags",
            "sampled_dot(grad, table, bags, transpose_rhs = true)",
        ),
        no_gradient("bags", "only the values of a weighted sum have one"),
        gradient("table", "embedding_bag_gradient(bags, grad, mean = mean, weighted = weighted)"),
    ],
    alternative: Some("bags are the rows of a csr: write `embedding_bag(csr({bags}), {table})`"),
    weights: Weights::Operands(&["table"]),
    reads_rows: &[rows_by("table", "bags", RowUse::Bags)],
    ..DEFAULTS
};

const EMBEDDING_BAG_GRADIENT: Operator = Operator {
    cost: "O(nnz · k), and of a dense result its size.",
    name: "embedding_bag_gradient",
    summary: "The gradient of `embedding_bag` with respect to its table. It stores the columns that occur in `bags`.",
    operands: &["bags", "grad"],
    attributes: &[flag("mean"), flag("weighted"), storage("out")],
    shape: "[n, v] [n, k] -> [v, k]",
    storage: &[rule("csr dense -> row_sparse").on_gpu().or_on_request(Dense).of_units()],
    gradient: &[
        no_gradient("bags", "second derivatives are not offered"),
        no_gradient("grad", "second derivatives are not offered"),
    ],
    result_rows: &[ResultRows::Added {
        by: RowNames::Columns("bags"),
        what: RowUse::Bags,
        of: "grad",
        when: None,
    }],
    internal: true,
    kernels: shared("embedding_bag"),
    ..DEFAULTS
};

const PAIRWISE_INTERACTION: Operator = Operator {
    cost: "O(nnz · k), forward and backward.",
    name: "pairwise_interaction",
    summary: "The second-order term of a factorization machine, the products of all pairs of features weighted by the products of \
              their rows of `v`: ½ Σ_f [(Σ_i x_i v_if)² - Σ_i x_i² v_if²] for each row of x.",
    operands: &["x", "v"],
    shape: "[n, d] [d, k] -> [n, 1]",
    storage: &[
        rule("csr dense -> dense").on_gpu().of_units(),
        rule("csr row_sparse -> dense").on_gpu().of_units(),
        rule("dense dense -> dense").on_gpu(),
    ],
    gradient: &[
        gradient("x", "pairwise_interaction_slope(x, v, grad)"),
        gradient("v", "pairwise_interaction_gradient(x, v, grad)"),
    ],
    weights: Weights::Operands(&["v"]),
    reads_rows: &[rows_by("v", "x", RowUse::Pairwise)],
    ..DEFAULTS
};

const PAIRWISE_INTERACTION_GRADIENT: Operator = Operator {
    cost: "O(nnz · k), and of a dense result its size.",
    name: "pairwise_interaction_gradient",
    summary: "The gradient of `pairwise_interaction` with respect to v: Σ grad · x_i · (Σ_j x_j v_j - x_i v_i) over the rows of x. It stores the \
              columns that occur in x.",
    operands: &["x", "v", "grad"],
    attributes: &[storage("out")],
    shape: "[n, d] [d, k] [n, 1] -> v",
    storage: &[
        rule("csr dense dense -> row_sparse").on_gpu().or_on_request(Dense).of_units(),
        rule("csr row_sparse dense -> row_sparse").on_gpu().or_on_request(Dense).of_units(),
        rule("dense dense dense -> dense").on_gpu(),
    ],
    gradient: SECOND,
    internal: true,
    reads_rows: &[rows_by("v", "x", RowUse::Otherwise)],
    result_rows: &[ResultRows::Added {
        by: RowNames::Columns("x"),
        what: RowUse::Pairwise,
        of: "grad",
        when: None,
    }],
    kernels: shared("pairwise_interaction"),
    ..DEFAULTS
};

const PAIRWISE_INTERACTION_SLOPE: Operator = Operator {
    cost: "O(nnz · k).",
    name: "pairwise_interaction_slope",
    summary: "The gradient of `pairwise_interaction` with respect to what x stores: grad · v_i · (Σ_j x_j v_j - x_i v_i).",
    operands: &["x", "v", "grad"],
    shape: "[n, d] [d, k] [n, 1] -> x",
    storage: &[
        rule("csr dense dense -> csr").on_gpu(),
        rule("csr row_sparse dense -> csr").on_gpu(),
        rule("dense dense dense -> dense").on_gpu(),
    ],
    gradient: SECOND,
    internal: true,
    reads_rows: &[rows_by("v", "x", RowUse::Otherwise)],
    csr_pattern: CsrPattern::Operand("x"),
    kernels: shared("pairwise_interaction"),
    ..DEFAULTS
};

const SECOND: &[super::Gradient] = &[
    no_gradient("x", "second derivatives are not offered"),
    no_gradient("v", "second derivatives are not offered"),
    no_gradient("grad", "second derivatives are not offered"),
];

/// A table that is read by rows has no products with its columns.
const BY_ROWS: Condition = Condition {
    text: "where lhs is not read transposed",
    suffix: "",
    holds: |given| !given.attributes.flag("transpose_lhs"),
};

const SAMPLED: &[Rule] = &[
    rule("dense dense csr -> csr").on_gpu(),
    rule("dense row_sparse csr -> csr").on_gpu().only(&BY_ROWS),
    rule("dense row_sparse' csr -> csr").on_gpu().only(&BY_ROWS),
    rule("dense dense row_sparse -> row_sparse").on_gpu(),
];

const SAMPLED_DOT: Operator = Operator {
    cost: "O(stored elements of `like` · k): the dense product is never made.",
    name: "sampled_dot",
    summary: "The product of two matrices, either read transposed on request, or the outer product of two vectors, at the places that \
              `like` stores, a csr or a row_sparse array; its values are not read. \
              The gradient with respect to a csr is made of it, and the predictions of a matrix factorization at known ratings.",
    operands: &["lhs", "rhs", "like"],
    attributes: &[flag("transpose_lhs"), flag("transpose_rhs")],
    shape: "[m, k] [k, n] [m, n] -> like | [m] [n] [m, n] -> like",
    storage: SAMPLED,
    gradient: &[
        gradient_when("lhs_rank == 1", "lhs", "dot(grad * pattern(like), rhs)"),
        gradient_when(
            "lhs_rank == 1",
            "rhs",
            "dot(grad * pattern(like), lhs, transpose_lhs = true)",
        ),
        gradient_when(
            "!transpose_lhs",
            "lhs",
            "dot(grad * pattern(like), rhs, transpose_rhs = !transpose_rhs)",
        ),
        gradient_when(
            "transpose_lhs",
            "lhs",
            "dot(rhs, grad * pattern(like), transpose_lhs = transpose_rhs, transpose_rhs = true)",
        ),
        gradient_when(
            "!transpose_rhs",
            "rhs",
            "dot(lhs, grad * pattern(like), transpose_lhs = !transpose_lhs, out = dense)",
        ),
        gradient_when(
            "transpose_rhs",
            "rhs",
            "dot(grad * pattern(like), lhs, transpose_lhs = true, transpose_rhs = transpose_lhs)",
        ),
    ],
    result_rows: &[ResultRows::Like],
    alternative: Some("`like` is a csr, and `lhs` is dense"),
    weights: Weights::Operands(&["lhs", "rhs"]),
    csr_pattern: CsrPattern::Operand("like"),
    reads_rows: &[
        rows_by("rhs", "like", RowUse::Otherwise).only("transpose_rhs"),
        rows_by("rhs", "like", RowUse::Otherwise).only("rhs_rank == 1"),
        all_rows("rhs"),
    ],
    ..DEFAULTS
};
