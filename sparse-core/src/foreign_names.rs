//! Names that operators have in PyTorch, TensorFlow, JAX, NumPy and MXNet, with what to write here.
//!
//! A text is an expression of this language. Its names stand for the caller's values: `x` and `z`
//! for matrices of one shape, `y` for one that fits a product, `left` and `right` for stacks of
//! matrices, `score` and `label` for a loss, `logits` and `class` for one of classes, `ids` and
//! `table` for look-ups, `bags` for a csr.

/// What to write in place of a name of another library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instead {
    /// This expression.
    Write(&'static str),
    /// No operator does it. The sentence says what models do about it.
    Nothing(&'static str),
}

/// What to write in place of a name of another library, if it is known.
///
/// ```
/// # mod nnz { pub use sparse_core as core; }
/// use nnz::core::foreign_names::{Instead, instead_of};
///
/// assert_eq!(instead_of("matmul"), Some(Instead::Write("dot(x, y)")));
/// assert_eq!(instead_of("dot"), None);
/// ```
pub fn instead_of(name: &str) -> Option<Instead> {
    FOREIGN_NAMES.iter().find(|(known, _)| *known == name).map(|(_, instead)| *instead)
}

use Instead::{Nothing, Write};

/// One row a name.
pub const FOREIGN_NAMES: &[(&str, Instead)] = &[
    // Products.
    ("matmul", Write("dot(x, y)")),
    ("mm", Write("dot(x, y)")),
    ("mv", Write("dot(x, y)")),
    ("spmm", Write("dot(x, y)")),
    ("gemm", Write("dot(x, y)")),
    ("sparse_dense_matmul", Write("dot(x, y)")),
    ("bmm", Write("sum(expand_dims(left, axis = 3) * expand_dims(right, axis = 1), axis = 2)")),
    (
        "batch_dot",
        Write("sum(expand_dims(left, axis = 3) * expand_dims(right, axis = 1), axis = 2)"),
    ),
    (
        "batch_matmul",
        Write("sum(expand_dims(left, axis = 3) * expand_dims(right, axis = 1), axis = 2)"),
    ),
    ("inner", Write("sum(x * z, axis = 1)")),
    ("vdot", Write("sum(x * z)")),
    (
        "einsum",
        Nothing(
            "write the product as `dot(x, y)`, or as `sum(x * y, axis = …)` of arrays that broadcast",
        ),
    ),
    ("tensordot", Nothing("write the product as `dot(x, y)` of reshaped arrays")),
    ("linear", Write("nnz::blocks::linear(x, y, bias)")),
    ("Linear", Write("nnz::blocks::linear(x, y, bias)")),
    ("dense_layer", Write("nnz::blocks::linear(x, y, bias)")),
    ("addmm", Write("dot(x, y) + bias")),
    ("FullyConnected", Write("dot(x, y) + bias")),
    ("factorization_machine", Write("nnz::blocks::factorization_machine(bags, weight, table)")),
    ("cosine_similarity", Write("sum(x * z, axis = 1) / (norm(x, axis = 1) * norm(z, axis = 1))")),
    ("conv1d", Nothing("there are no convolutions")),
    ("conv2d", Nothing("there are no convolutions")),
    ("Convolution", Nothing("there are no convolutions")),
    // Look-ups.
    ("embedding_lookup", Write("embedding(ids, table)")),
    ("Embedding", Write("embedding(ids, table)")),
    ("SparseEmbedding", Write("embedding(ids, table)")),
    ("EmbeddingBag", Write("embedding_bag(bags, table)")),
    ("embedding_lookup_sparse", Write("embedding_bag(bags, table)")),
    ("safe_embedding_lookup_sparse", Write("embedding_bag(bags, table)")),
    ("gather", Write("take(table, ids)")),
    ("index_select", Write("take(table, ids)")),
    ("take_along_axis", Write("pick(x, ids)")),
    ("gather_nd", Write("take(table, ids)")),
    ("batch_take", Write("pick(x, ids)")),
    ("choose_element_0index", Write("pick(x, ids)")),
    ("onehot", Write("one_hot(ids, depth = 4)")),
    ("sparse_retain", Write("retain(table, ids)")),
    ("scatter", Nothing("a table is written by its gradient, or by `update` of a `state`")),
    ("scatter_add", Nothing("a table is written by its gradient, or by `update` of a `state`")),
    ("index_add", Nothing("a table is written by its gradient, or by `update` of a `state`")),
    // Shapes and parts.
    ("cat", Write("concat(x, z, axis = 1)")),
    ("concatenate", Write("concat(x, z, axis = 1)")),
    ("hstack", Write("concat(x, z, axis = 1)")),
    ("column_stack", Write("concat(x, z, axis = 1)")),
    ("vstack", Write("concat(y, y, axis = 0)")),
    ("view", Write("reshape(x, shape = [_, 2, 2])")),
    ("view_as", Write("reshape(x, shape = [_, 2, 2])")),
    ("unsqueeze", Write("expand_dims(x, axis = 1)")),
    ("newaxis", Write("expand_dims(x, axis = 1)")),
    ("Flatten", Write("flatten(x)")),
    ("ravel", Write("flatten(x)")),
    ("t", Write("transpose(x)")),
    ("swapaxes", Write("swap_axes(x, first = 0, second = 1)")),
    ("SwapAxis", Write("swap_axes(x, first = 0, second = 1)")),
    ("moveaxis", Write("permute(left, axes = [1, 0, 2])")),
    ("flip", Write("reverse(x, axis = 1)")),
    ("fliplr", Write("reverse(x, axis = 1)")),
    ("flipud", Write("reverse(x, axis = 0)")),
    ("narrow", Write("slice_axis(x, axis = 1, begin = [0], end = [2])")),
    ("split", Write("slice_axis(x, axis = 1, begin = [0], end = [2])")),
    ("chunk", Write("slice_axis(x, axis = 1, begin = [0], end = [2])")),
    ("dynamic_slice", Write("slice_axis(x, axis = 1, begin = [0], end = [2])")),
    ("expand", Nothing("dense operands broadcast by themselves; `tile(x, reps = …)` makes copies")),
    (
        "broadcast_to",
        Nothing("dense operands broadcast by themselves; `tile(x, reps = …)` makes copies"),
    ),
    ("repeat_interleave", Write("repeat(x, repeats = 2, axis = 1)")),
    ("pad", Nothing("write `concat(x, zeros, axis = 1)` with a `param(frozen) zeros`")),
    ("tril", Write("x * mask")),
    ("triu", Write("x * mask")),
    ("upper_triangle", Write("x * mask")),
    ("diag", Write("sum(x * mask, axis = 1)")),
    ("diagonal", Write("sum(x * mask, axis = 1)")),
    ("trace", Write("sum(x * mask)")),
    (
        "arange",
        Nothing("declare `input place: dense<u32>[n, …]`, or `param(frozen)` filled from Rust"),
    ),
    (
        "range",
        Nothing("declare `input place: dense<u32>[n, …]`, or `param(frozen)` filled from Rust"),
    ),
    ("eye", Nothing("declare `param(frozen) identity: …` and fill it from Rust")),
    ("zeros", Write("zeros_like(x)")),
    ("ones", Write("ones_like(x)")),
    ("full", Write("0.5 * ones_like(x)")),
    ("full_like", Write("0.5 * ones_like(x)")),
    // Functions of elements.
    ("pow", Write("power(x, 2)")),
    ("neg", Write("-x")),
    ("mul", Write("x * z")),
    ("sub", Write("x - z")),
    ("div", Write("x / z")),
    ("true_divide", Write("x / z")),
    ("floor_divide", Write("floor(x / z)")),
    ("fmod", Write("x - z * trunc(x / z)")),
    ("remainder", Write("modulo(x, z)")),
    ("addcmul", Write("x + 0.5 * z * z")),
    ("lerp", Write("x + 0.5 * (z - x)")),
    ("sgn", Write("sign(x)")),
    ("fabs", Write("abs(x)")),
    ("absolute", Write("abs(x)")),
    ("clamp", Write("clip(x, lower = -1, upper = 1)")),
    ("clip_by_value", Write("clip(x, lower = -1, upper = 1)")),
    ("clamp_min", Write("maximum(x, 0)")),
    ("clamp_max", Write("minimum(x, 0)")),
    ("where", Write("select(x > 0, x, z)")),
    ("cond", Write("select(x > 0, x, z)")),
    ("heaviside", Write("greater(x, 0)")),
    ("gt", Write("greater(x, z)")),
    ("ge", Write("greater_equal(x, z)")),
    ("lt", Write("less(x, z)")),
    ("le", Write("less_equal(x, z)")),
    ("eq", Write("equal(x, z)")),
    ("ne", Write("not_equal(x, z)")),
    ("isnan", Write("not_equal(x, x)")),
    ("nan_to_num", Write("select(equal(x, x), x, zeros_like(x))")),
    ("inverse", Write("reciprocal(x)")),
    ("exp2", Write("exp(0.6931471805599453 * x)")),
    ("logaddexp", Write("maximum(x, z) + log1p(exp(-abs(x - z)))")),
    ("sinc", Write("select(equal(x, 0), ones_like(x), sin(x) / (x + equal(x, 0)))")),
    ("erfc", Write("1 - erf(x)")),
    ("lgamma", Write("gammaln(x)")),
    ("detach", Write("stop_gradient(x)")),
    ("BlockGrad", Write("stop_gradient(x)")),
    ("identity", Write("x")),
    (
        "cast",
        Nothing("element types are declared: `dense<f64>[n, d]`, or `dtype = f64` for the model"),
    ),
    (
        "astype",
        Nothing("element types are declared: `dense<f64>[n, d]`, or `dtype = f64` for the model"),
    ),
    ("todense", Write("dense(bags)")),
    ("to_dense", Write("dense(bags)")),
    ("cast_storage", Write("dense(bags)")),
    ("tostype", Write("dense(bags)")),
    ("to_sparse", Write("csr(x)")),
    ("to_sparse_csr", Write("csr(x)")),
    // Activations.
    ("Activation", Write("relu(x)")),
    ("LeakyReLU", Write("maximum(x, 0.01 * x)")),
    ("leaky_relu", Write("maximum(x, 0.01 * x)")),
    ("prelu", Write("maximum(x, 0.25 * x)")),
    ("relu6", Write("clip(x, lower = 0, upper = 6)")),
    ("hardtanh", Write("clip(x, lower = -1, upper = 1)")),
    ("hard_tanh", Write("clip(x, lower = -1, upper = 1)")),
    ("hardswish", Write("x * clip(x + 3, lower = 0, upper = 6) / 6")),
    ("elu", Write("maximum(x, 0) + expm1(minimum(x, 0))")),
    ("celu", Write("maximum(x, 0) + expm1(minimum(x, 0))")),
    (
        "selu",
        Write("1.0507009873554805 * maximum(x, 0) + 1.7580993408473766 * expm1(minimum(x, 0))"),
    ),
    ("gelu", Write("0.5 * x * (1 + erf(0.7071067811865476 * x))")),
    ("silu", Write("x * sigmoid(x)")),
    ("swish", Write("x * sigmoid(x)")),
    ("mish", Write("x * tanh(softplus(x))")),
    ("logsigmoid", Write("-softplus(-x)")),
    ("log_sigmoid", Write("-softplus(-x)")),
    ("expit", Write("sigmoid(x)")),
    ("logit", Write("log(x / (1 - x))")),
    ("softmin", Write("softmax(-x)")),
    (
        "logcumsumexp",
        Nothing(
            "there are no cumulative sums: order samples in Rust, and give what is summed as an input",
        ),
    ),
    ("softshrink", Write("sign(x) * maximum(abs(x) - 0.5, 0)")),
    ("hardshrink", Write("x * (abs(x) > 0.5)")),
    ("tanhshrink", Write("x - tanh(x)")),
    ("threshold", Write("x * (x > 0.5)")),
    ("log_softmax_with_temperature", Write("log_softmax(x / 0.5)")),
    ("SoftmaxActivation", Write("softmax(x)")),
    (
        "glu",
        Write(
            "slice_axis(x, axis = 1, begin = [0], end = [2]) * sigmoid(slice_axis(x, axis = 1, begin = [2], end = [4]))",
        ),
    ),
    // Reductions and order.
    ("sum_axis", Write("sum(x, axis = 1)")),
    ("reduce_sum", Write("sum(x, axis = 1)")),
    ("reduce_mean", Write("mean(x, axis = 1)")),
    ("reduce_max", Write("max(x, axis = 1)")),
    ("reduce_min", Write("min(x, axis = 1)")),
    ("reduce_prod", Write("prod(x, axis = 1)")),
    ("amax", Write("max(x, axis = 1)")),
    ("amin", Write("min(x, axis = 1)")),
    ("average", Write("mean(x, axis = 1)")),
    ("reduce_logsumexp", Write("logsumexp(x)")),
    ("log_sum_exp", Write("logsumexp(x)")),
    ("any", Write("max(not_equal(x, 0), axis = 1)")),
    ("all", Write("min(not_equal(x, 0), axis = 1)")),
    ("count_nonzero", Write("sum(not_equal(x, 0), axis = 1)")),
    ("nnz", Write("count_stored(bags, axis = 1)")),
    ("std", Write("sqrt(mean(square(x - mean(x, axis = 1, keepdims = true)), axis = 1))")),
    ("var", Write("mean(square(x - mean(x, axis = 1, keepdims = true)), axis = 1)")),
    ("variance", Write("mean(square(x - mean(x, axis = 1, keepdims = true)), axis = 1)")),
    ("l2_norm", Write("norm(x, axis = 1)")),
    ("vector_norm", Write("norm(x, axis = 1)")),
    ("l1_norm", Write("norm(x, axis = 1, ord = 1)")),
    ("l2_normalize", Write("x / norm(x, axis = 1, keepdims = true)")),
    ("normalize", Write("x / norm(x, axis = 1, keepdims = true)")),
    ("L2Normalization", Write("x / norm(x, axis = 1, keepdims = true)")),
    ("cdist", Nothing("write `norm(x - z, axis = 1)` for the distances of pairs of rows")),
    ("pairwise_distance", Write("norm(x - z, axis = 1)")),
    (
        "cumsum",
        Nothing(
            "there are no cumulative sums: order samples in Rust, and give what is summed as an input",
        ),
    ),
    (
        "cumprod",
        Nothing(
            "there are no cumulative products: order samples in Rust, and give what is multiplied as an input",
        ),
    ),
    ("top_k", Write("topk(x, k = 2)")),
    ("median", Nothing("sort with `sort(x, axis = 1)` and cut out the middle with `slice_axis`")),
    (
        "unique",
        Nothing("distinct ids are found by the library: a batch reads each row of a table once"),
    ),
    ("segment_sum", Write("embedding_bag(bags, table)")),
    ("scan", Nothing("loops are written out: a model is one expression for each sample")),
    // Layers with a state or randomness of their own.
    (
        "layer_norm",
        Write(
            "(x - mean(x, axis = 1, keepdims = true)) / sqrt(mean(square(x - mean(x, axis = 1, keepdims = true)), axis = 1, \
         keepdims = true) + 0.00001)",
        ),
    ),
    (
        "LayerNorm",
        Write(
            "(x - mean(x, axis = 1, keepdims = true)) / sqrt(mean(square(x - mean(x, axis = 1, keepdims = true)), axis = 1, \
         keepdims = true) + 0.00001)",
        ),
    ),
    ("rms_norm", Write("x / sqrt(mean(square(x), axis = 1, keepdims = true) + 0.00001)")),
    (
        "batch_norm",
        Write(
            "(x - mean(x, axis = 0)) / sqrt(mean(square(x - mean(x, axis = 0)), axis = 0) + 0.00001)",
        ),
    ),
    (
        "BatchNorm",
        Write(
            "(x - mean(x, axis = 0)) / sqrt(mean(square(x - mean(x, axis = 0)), axis = 0) + 0.00001)",
        ),
    ),
    ("dropout", Write("x * kept")),
    ("Dropout", Write("x * kept")),
    ("rand", Nothing("nothing is drawn in a model: give what is drawn as an input")),
    ("randn", Nothing("nothing is drawn in a model: give what is drawn as an input")),
    ("rnn", Nothing("loops are written out: a model is one expression for each sample")),
    ("gru", Nothing("loops are written out: a model is one expression for each sample")),
    ("lstm", Nothing("loops are written out: a model is one expression for each sample")),
    ("attention", Write("dot(softmax(dot(x, x, transpose_rhs = true)), x)")),
    (
        "scaled_dot_product_attention",
        Write("dot(softmax(0.5 * dot(x, x, transpose_rhs = true)), x)"),
    ),
    // Losses.
    ("mse", Write("squared_error(score, label)")),
    ("mse_loss", Write("squared_error(score, label)")),
    ("MSELoss", Write("squared_error(score, label)")),
    ("mean_squared_error", Write("squared_error(score, label)")),
    ("l2_loss", Write("squared_error(score, label)")),
    ("LinearRegressionOutput", Write("squared_error(score, label)")),
    ("mae", Write("absolute_error(score, label)")),
    ("l1_loss", Write("absolute_error(score, label)")),
    ("L1Loss", Write("absolute_error(score, label)")),
    ("mean_absolute_error", Write("absolute_error(score, label)")),
    ("MAERegressionOutput", Write("absolute_error(score, label)")),
    ("huber_loss", Write("huber(score, label, delta = 1.0)")),
    ("smooth_l1_loss", Write("huber(score, label, delta = 1.0)")),
    ("log_cosh", Write("mean(softplus(2 * (score - target)) - (score - target))")),
    ("quantile_loss", Write("mean(maximum(0.9 * (target - score), -0.1 * (target - score)))")),
    ("pinball_loss", Write("mean(maximum(0.9 * (target - score), -0.1 * (target - score)))")),
    ("bce", Write("logistic(score, label)")),
    ("bce_loss", Write("logistic(score, label)")),
    ("BCELoss", Write("logistic(score, label)")),
    ("bce_with_logits", Write("logistic(score, label)")),
    ("BCEWithLogitsLoss", Write("logistic(score, label)")),
    ("binary_cross_entropy", Write("logistic(score, label)")),
    ("binary_cross_entropy_with_logits", Write("logistic(score, label)")),
    ("binary_crossentropy", Write("logistic(score, label)")),
    ("sigmoid_cross_entropy", Write("logistic(score, label)")),
    ("sigmoid_cross_entropy_with_logits", Write("logistic(score, label)")),
    ("sigmoid_binary_cross_entropy", Write("logistic(score, label)")),
    ("LogisticRegressionOutput", Write("logistic(score, label)")),
    ("log_loss", Write("logistic(score, label)")),
    ("logistic_loss", Write("logistic(score, label)")),
    ("hinge_loss", Write("hinge(score, label)")),
    ("SVMOutput", Write("hinge(score, label)")),
    ("poisson_nll_loss", Write("poisson(score, label)")),
    ("poisson_loss", Write("poisson(score, label)")),
    ("cross_entropy", Write("softmax_cross_entropy(logits, class)")),
    ("CrossEntropyLoss", Write("softmax_cross_entropy(logits, class)")),
    ("nll_loss", Write("softmax_cross_entropy(logits, class)")),
    ("categorical_crossentropy", Write("softmax_cross_entropy(logits, class)")),
    ("sparse_categorical_crossentropy", Write("softmax_cross_entropy(logits, class)")),
    ("softmax_cross_entropy_with_logits", Write("softmax_cross_entropy(logits, class)")),
    ("softmax_cross_entropy_with_integer_labels", Write("softmax_cross_entropy(logits, class)")),
    ("SoftmaxOutput", Write("softmax_cross_entropy(logits, class)")),
    ("kl_div", Write("sum(p * (log(p) - log(q)), axis = 1)")),
    ("kl_divergence", Write("sum(p * (log(p) - log(q)), axis = 1)")),
    ("entropy", Write("-sum(p * log(p), axis = 1)")),
    ("rank_loss", Write("mean(softplus(worse - better))")),
    ("bpr_loss", Write("mean(softplus(worse - better))")),
    ("pairwise_logistic", Write("mean(softplus(worse - better))")),
    ("margin_ranking_loss", Write("mean(maximum(1 - (better - worse), 0))")),
    ("triplet_loss", Write("mean(maximum(1 - (better - worse), 0))")),
    ("triplet_margin_loss", Write("mean(maximum(1 - (better - worse), 0))")),
    ("focal_loss", Write("mean(square(1 - sigmoid(score)) * softplus(-score))")),
    ("ctc_loss", Nothing("there are no losses over sequences")),
    ("MakeLoss", Write("make_loss(mean(x))")),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn l7_names_are_no_operators_of_ours_and_stand_once() {
        let mut seen = BTreeSet::new();
        for (name, _) in FOREIGN_NAMES {
            assert!(crate::operators::find(name).is_none(), "`{name}` is an operator");
            assert!(seen.insert(name), "`{name}` stands twice");
        }
        assert!(seen.len() >= 150, "{} names", seen.len());
    }
}
