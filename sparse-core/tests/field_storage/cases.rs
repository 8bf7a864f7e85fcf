//! The graphs of the field cases S, as text, and what must hold of a compiled one.

use sparse_core::compile::Compiled;
use sparse_core::ir::ValueId;
use sparse_core::storage::Storage;

pub const DATA: &str = "\
x = input csr f32 [n, d]
y = label dense f32 [n, 1]
q = label dense f32 [n]
k = label dense f32 [n, 4]
";

/// The two ways to a csr that is computed from parameters.
pub const COMPUTED: [&str; 2] = [
    "s = param dense f32 [d] \"Ones\"\nz = multiply(x, s)\n",
    "a = param dense f32 [n, 4] \"Ones\"\nb = param row_sparse f32 [d, 4] \"Ones\"\n\
     z = sampled_dot(a, b, x, transpose_rhs = true)\n",
];

/// What is made of it: declarations, and lines that end in the prediction or the loss.
pub const CONTINUED: [&str; 17] = [
    "p = sum(z, axis = 1, keepdims = true)\nl = squared_error(p, y)",
    "p = mean(z, axis = 1, keepdims = true)\nl = squared_error(p, y)",
    "p = norm(z, axis = 1, keepdims = true)\nl = squared_error(p, y)",
    "p = square_sum(z, axis = 1, keepdims = true)\nl = squared_error(p, y)",
    "p = max(z, axis = 1, keepdims = true)\nl = squared_error(p, y)",
    "c = square(z)\nl = sum(c)",
    "c = relu(z)\nl = sum(c)",
    "c = multiply(z, x)\nl = sum(c)",
    "r = param row_sparse f32 [d] \"Ones\"\np = dot(z, r)\nl = squared_error(p, q)",
    "v = param row_sparse f32 [d, 4] \"Ones\"\np = dot(z, v)\nl = squared_error(p, k)",
    "r = param row_sparse f32 [d] \"Ones\"\nc = add(z, x)\np = dot(c, r)\nl = squared_error(p, q)",
    "r = param row_sparse f32 [d] \"Ones\"\nc = tanh(z)\np = dot(c, r)\nl = squared_error(p, q)",
    "r = param row_sparse f32 [d] \"Ones\"\nc = clip(z, lower = -1, upper = 1)\np = dot(c, r)\n\
     l = squared_error(p, q)",
    "r = param row_sparse f32 [d] \"Ones\"\nt = sum(z, axis = 1, keepdims = true)\nc = divide(z, t)\n\
     p = dot(c, r)\nl = squared_error(p, q)",
    "r = param dense f32 [d] \"Ones\"\np = dot(z, r)\nl = squared_error(p, q)",
    "v = param row_sparse f32 [d, 4] \"Ones\"\np = pairwise_interaction(z, v)\nl = squared_error(p, y)",
    "v = param row_sparse f32 [d, 4] \"Ones\"\np = embedding_bag(z, v, weighted = true)\n\
     l = squared_error(p, k)",
];

/// Functions of a table `w` that are read by rows, and how many parameters are.
pub const BY_ROWS: [(&str, usize); 26] = [
    ("u = relu(w)\np = dot(x, u)", 1),
    ("u = square(w)\nc = square(x)\np = dot(c, u)", 1),
    ("m = input dense f32 [d, 1]\nu = multiply(w, m)\np = dot(x, u)", 1),
    ("m = input dense f32 [d, 1]\nc = relu(w)\nu = multiply(m, c)\np = dot(x, u)", 1),
    ("u = relu(w)\ng = tanh(u)\nh = multiply(g, 3)\np = dot(x, h)", 1),
    ("v = param row_sparse f32 [d, 1] \"Ones\"\nu = maximum(w, v)\np = dot(x, u)", 2),
    (
        "v = param row_sparse f32 [d, 1] \"Ones\"\ng = multiply(w, v)\nu = add(g, w)\np = dot(x, u)",
        2,
    ),
    ("u = square_sum(w, axis = 1, keepdims = true)\np = dot(x, u)", 1),
    ("u = tanh(w)\np = embedding_bag(x, u)", 1),
    ("u = tanh(w)\np = pairwise_interaction(x, u)", 1),
    ("i = input dense u32 [n]\nu = tanh(w)\np = embedding(i, u)", 1),
    ("i = input dense u32 [n]\nu = tanh(w)\np = take(u, i)", 1),
    // Of a table and of rows that are computed.
    (
        "h = input dense f32 [n, 1]\nt = dot(x, h, transpose_lhs = true)\nu = add(t, w)\np = dot(x, u)",
        1,
    ),
    (
        "i = input dense u32 [n]\nv = param row_sparse f32 [d, 1] \"Ones\"\nt = retain(v, i)\nu = multiply(t, w)\np = dot(x, u)",
        2,
    ),
    // Reading rows commutes with what acts on the columns of each row.
    (
        "v = param row_sparse f32 [d, 4] \"Ones\"\nc = dot(x, w)\nu = slice(v, begin = [_, 0], end = [_, 1])\ne = dot(x, u)\np = add(c, e)",
        2,
    ),
    (
        "v = param row_sparse f32 [d, 4] \"Ones\"\nc = dot(x, w)\nu = slice_axis(v, axis = 1, begin = 3)\ne = embedding_bag(x, u)\np = add(c, e)",
        2,
    ),
    (
        "v = param row_sparse f32 [d, 4] \"Ones\"\nu = concat(v, w, axis = 1)\ne = dot(x, u)\np = sum(e, axis = 1, keepdims = true)",
        2,
    ),
    (
        "v = param row_sparse f32 [d, 4] \"Ones\"\nu = concat(w, v, axis = -1)\np = pairwise_interaction(x, u)",
        2,
    ),
    (
        "i = input dense u32 [n]\nv = param row_sparse f32 [d, 4] \"Ones\"\nu = concat(w, v, axis = 1)\ne = embedding(i, u)\np = sum(e, axis = 1, keepdims = true)",
        2,
    ),
    (
        "i = input dense u32 [n]\nv = param row_sparse f32 [d, 4] \"Ones\"\nc = dot(x, w)\nu = slice(v, begin = [_, 1], end = [_, 3])\ng = tanh(u)\ne = embedding(i, g)\nh = sum(e, axis = 1, keepdims = true)\np = add(c, h)",
        2,
    ),
    (
        "i = input dense u32 [n]\nv = param row_sparse f32 [d, 4] \"Ones\"\nc = dot(x, w)\nu = slice(v, begin = [_, _], step = [_, -2])\ne = take(u, i)\nh = norm(e, axis = 1, keepdims = true)\np = add(c, h)",
        2,
    ),
    (
        "m = param dense f32 [1, 3] \"Ones\"\nu = dot(w, m)\ne = dot(x, u)\np = sum(e, axis = 1, keepdims = true)",
        1,
    ),
    (
        "m = param dense f32 [3] \"Ones\"\nu = tanh(w)\nv = param row_sparse f32 [d] \"Ones\"\ng = outer(v, m)\nh = multiply(g, 2)\nc = concat(h, u, axis = 1)\ne = dot(x, c)\np = sum(e, axis = 1, keepdims = true)",
        2,
    ),
    (
        "v = param row_sparse f32 [d, 1] \"Ones\"\nu = concat(w, v, axis = 1)\nc = slice_axis(u, axis = 1, begin = 1, end = 2)\ng = slice_axis(u, axis = 1, begin = 0, end = 1)\nh = multiply(c, g)\np = dot(x, h)",
        2,
    ),
    (
        "v = param row_sparse f32 [d, 2] \"Ones\"\nu = slice_like(v, w, axes = [1])\nc = add(u, w)\np = dot(x, c)",
        2,
    ),
    (
        "v = param row_sparse f32 [d, 2, 3] \"Ones\"\ni = input dense u32 [n]\nc = dot(x, w)\nu = slice(v, begin = [_, 0, 1], end = [_, 1, 3])\ne = embedding(i, u)\nh = sum(e, axis = [1, 2])\ng = expand_dims(h, axis = 1)\np = add(c, g)",
        2,
    ),
];

/// Other graphs in which a csr is computed from parameters, `z = x * s`.
pub const OTHERS: [&str; 22] = [
    "c = transpose(z)\nr = param dense f32 [n] \"Ones\"\np = dot(c, r)\nl = norm(p)",
    "t = sum(z)\nl = square(t)",
    "t = sum(z, axis = 0)\nl = square_sum(t)",
    "t = norm(z, ord = 1)\nl = square(t)",
    "p = min(z, axis = 1, keepdims = true)\nl = squared_error(p, y)",
    "p = nansum(z, axis = 1, keepdims = true)\nl = squared_error(p, y)",
    "c = hypot(z, x)\nl = sum(c)",
    "c = maximum(z, x)\nt = sum(c, axis = 1)\nl = squared_error(t, q)",
    "c = subtract(z, x)\ng = square(c)\nl = mean(g)",
    "c = power(z, 3)\nl = sum(c)",
    "t = norm(z, axis = 1, keepdims = true)\nc = divide(z, t)\nl = sum(c)",
    "c = multiply(z, z)\np = sum(c, axis = 1, keepdims = true)\nl = squared_error(p, y)",
    "i = input dense u32 [m]\nc = retain(z, i)\nl = square_sum(c)",
    "v = input csr f32 [4, d]\nc = multiply(v, s)\ng = concat(c, v)\nl = square_sum(g)",
    "v = input csr f32 [4, d]\nc = multiply(v, s)\ng = slice_axis(c, axis = 0, begin = 1)\nl = square_sum(g)",
    "i = input dense u32 [m]\nc = take(z, i)\nl = square_sum(c)",
    "w = param dense f32 [7, d] \"Ones\"\nv = param dense f32 [7] \"Ones\"\nc = fully_connected(z, w, v)\nl = square_sum(c)",
    "c = dense(z)\ng = exp(c)\nl = sum(g)",
    "g = input dense f32 [n, d]\nc = add(z, g)\nl = square_sum(c)",
    "g = param dense f32 [3, n] \"Ones\"\nc = dot(g, z, out = dense)\nl = square_sum(c)",
    "c = sqrt(z)\nl = sum(c)",
    "c = row_sparse(z)\nv = param dense f32 [d, 4] \"Ones\"\np = dot(c, v)\nl = square_sum(p)",
];

/// The ways to a row_sparse value `t` of [d, 4] that is computed from parameters.
pub const COMPUTED_ROWS: [&str; 5] = [
    "g = param dense f32 [4, n] \"Ones\"\n\
     t = dot(x, g, transpose_lhs = true, transpose_rhs = true)\n",
    "g = param dense f32 [n, 4] \"Ones\"\nt = dot(x, g, transpose_lhs = true)\n",
    "w = param row_sparse f32 [d, 4] \"Ones\"\ni = input dense u32 [m]\nt = retain(w, i)\n",
    "s = param dense f32 [d] \"Ones\"\nz = multiply(x, s)\nh = input dense f32 [n, 4]\n\
     t = dot(z, h, transpose_lhs = true)\n",
    "w = param row_sparse f32 [d, 4] \"Ones\"\ni = input dense u32 [m]\nu = retain(w, i)\n\
     g = param dense f32 [n, 4] \"Ones\"\nv = dot(x, g, transpose_lhs = true)\nt = add(u, v)\n",
];

/// What is made of it.
pub const CONTINUED_ROWS: [&str; 44] = [
    "l = norm(t)",
    "l = norm(t, ord = 1)",
    "p = norm(t, axis = 1)\nl = sum(p)",
    "p = norm(t, axis = 0)\nl = sum(p)",
    "l = sum(t)",
    "p = mean(t)\nl = square(p)",
    "p = sum(t, axis = 0)\nl = square_sum(p)",
    "p = sum(t, axis = 1)\nl = square_sum(p)",
    "p = mean(t, axis = 1, keepdims = true)\nl = square_sum(p)",
    "p = square_sum(t, axis = 1)\nl = sum(p)",
    "p = square_sum(t, axis = 1)\nc = sqrt(p)\nl = sum(c)",
    "p = square_sum(t, axis = 1)\nc = power(p, 0.5)\nl = sum(c)",
    "l = max(t)",
    "p = max(t, axis = 1)\nl = sum(p)",
    "p = min(t, axis = 0)\nl = sum(p)",
    "p = nansum(t, axis = 1)\nl = square_sum(p)",
    "c = square(t)\nl = sum(c)",
    "c = tanh(t)\ng1 = relu(c)\nl = mean(g1)",
    "c = sin(t)\ng1 = abs(c)\nh1 = clip(g1, lower = 0, upper = 0.4)\nl = sum(h1)",
    "c = multiply(t, t)\nl = sum(c)",
    "p = norm(t, axis = 1, keepdims = true)\nc = divide(t, p)\nr = param dense f32 [d, 4] \"Ones\"\ng1 = multiply(c, r)\nl = sum(g1)",
    "c = sin(t)\ng1 = hypot(c, t)\nl = sum(g1)",
    "c = square(t)\ng1 = maximum(c, t)\nl = norm(g1)",
    "c = power(t, 3)\nl = sum(c)",
    "c = slice_axis(t, axis = 1, begin = 1)\nl = norm(c)",
    "c = tanh(t)\ng1 = concat(t, c, axis = 1)\nl = norm(g1)",
    "m1 = param dense f32 [4, 3] \"Ones\"\nc = dot(t, m1)\nl = norm(c)",
    "m1 = param dense f32 [4, 3] \"Ones\"\nc = dot(t, m1)\np = sum(c, axis = 0)\nl = square_sum(p)",
    "m1 = param dense f32 [d, 3] \"Ones\"\nc = dot(t, m1, transpose_lhs = true)\nl = square_sum(c)",
    "m1 = param dense f32 [3, d] \"Ones\"\nc = dot(m1, t)\nl = square_sum(c)",
    "c = tanh(t)\ng1 = dot(t, c, transpose_lhs = true)\nl = square_sum(g1)",
    "c = dot(x, t)\nl = squared_error(c, k)",
    "c = tanh(t)\ng1 = dot(x, c)\nl = squared_error(g1, k)",
    "c = pairwise_interaction(x, t)\nl = squared_error(c, y)",
    "j = input dense u32 [n]\nc = embedding(j, t)\nl = squared_error(c, k)",
    "j = input dense u32 [n]\nc = square(t)\ng1 = take(c, j)\nl = squared_error(g1, k)",
    "j = input dense u32 [n]\nc = retain(t, j)\nl = norm(c)",
    "c = csr(t)\ng1 = sin(c)\nl = sum(g1)",
    "c = csr(t)\ng1 = slice_axis(c, axis = 1, begin = 1)\nh1 = tanh(g1)\nl = sum(h1)",
    "c = csr(t)\ng1 = row_sparse(c)\nh1 = sin(g1)\nl = sum(h1)",
    "v1 = param row_sparse f32 [4, 2] \"Ones\"\nc = csr(t)\ng1 = dot(c, v1)\nl = square_sum(g1)",
    "c = dense(t)\ng1 = exp(c)\nl = sum(g1)",
    "r = input dense f32 [d, 4]\nc = add(t, r)\nl = norm(c)",
    "c = multiply(t, 2)\ng1 = subtract(t, c)\nl = norm(g1)",
];

/// Models of all sorts, of the data above: `i` and `j` are ids of samples, `x` is a csr, `k` has
/// four columns.
pub const MODELS: [&str; 22] = [
    // Two tables, and a second-order term by hand.
    "w = param row_sparse f32 [d, 1] \"\"\nv = param row_sparse f32 [d, 4] \"\"\na = dot(x, w)\nb = dot(x, v)\nc = square(b)\n\
     e = square(x)\ng = square(v)\nh = dot(e, g)\no = subtract(c, h)\nr = sum(o, axis = 1, keepdims = true)\np = add(a, r)\n\
     l = squared_error(p, y)",
    // A table of rank 3.
    "f = param row_sparse f32 [d, 2, 3] \"\"\ne = embedding(i, f)\nc = tanh(e)\np = sum(c, axis = [1, 2])\nl = squared_error(p, q)",
    // A part of a table of rank 3, scaled.
    "f = param row_sparse f32 [d, 2, 3] \"\"\ng = slice(f, begin = [_, 1], end = [_, 2])\nh = multiply(g, 0.5)\nc = sin(h)\n\
     e = take(c, i)\np = norm(e, axis = [1, 2])\nl = squared_error(p, q)",
    // Bags of a function of a table.
    "v = param row_sparse f32 [d, 4] \"\"\nu = tanh(v)\np = embedding_bag(x, u, mean = true)\nl = squared_error(p, k)",
    // Csr by csr, by element.
    "s = param dense f32 [d] \"\"\na = param dense f32 [n, 1] \"\"\nz = multiply(x, s)\nu = multiply(x, a)\nc = multiply(z, u)\n\
     e = tanh(c)\ng = subtract(e, z)\nl = square_sum(g)",
    // Attention over the entries of a sample.
    "a = param dense f32 [n, 4] \"\"\nv = param row_sparse f32 [d, 4] \"\"\nz = sampled_dot(a, v, x, transpose_rhs = true)\n\
     c = square(z)\nt = sum(c, axis = 1, keepdims = true)\nb = add(t, 1)\ng = divide(c, b)\np = dot(g, v)\nl = squared_error(p, k)",
    // Group lasso on the rows that a batch reads.
    "v = param row_sparse f32 [d, 4] \"\"\np = dot(x, v)\na = squared_error(p, k)\nt = retain(v, i)\ng = norm(t, axis = 1)\n\
     b = sum(g)\nc = multiply(b, 0.1)\nl = add(a, c)",
    // L1 on the rows of a function of a table.
    "v = param row_sparse f32 [d, 4] \"\"\nu = tanh(v)\np = embedding(i, u)\na = squared_error(p, k)\nt = retain(u, i)\n\
     b = norm(t, ord = 1)\nl = add(a, b)",
    // Masks of rows and of columns.
    "m = input dense f32 [d, 1]\nr = input dense f32 [4]\nv = param row_sparse f32 [d, 4] \"\"\nu = multiply(v, m)\nt = multiply(u, r)\n\
     p = dot(x, t)\nl = squared_error(p, k)",
    // One table, read in three ways.
    "v = param row_sparse f32 [d, 4] \"\"\na = dot(x, v)\nb = embedding(i, v)\nc = embedding_bag(x, v)\ne = add(a, b)\n\
     p = add(e, c)\nl = squared_error(p, k)",
    // There and back: an autoencoder with tied weights.
    "v = param row_sparse f32 [d, 4] \"\"\nh = dot(x, v)\nt = dot(x, h, transpose_lhs = true)\ng = tanh(t)\np = dot(x, g)\n\
     l = squared_error(p, k)",
    // Statistics of columns: over axis 0, over axis 1, over all.
    "g = param dense f32 [n, 4] \"\"\nt = dot(x, g, transpose_lhs = true)\na = mean(t, axis = 0)\nb = square_sum(a)\nc = sum(t, axis = 1)\n\
     e = square_sum(c)\no = norm(t)\nh = add(b, e)\nl = add(h, o)",
    // A chain of functions of a table.
    "v = param row_sparse f32 [d, 4] \"\"\na = sin(v)\nb = tanh(a)\nc = square(b)\ne = log1p(c)\ng = multiply(e, v)\np = embedding(i, g)\n\
     l = squared_error(p, k)",
    // Sums of tables.
    "v = param row_sparse f32 [d, 4] \"\"\nu = param row_sparse f32 [d, 4] \"\"\na = add(v, u)\nb = multiply(v, u)\nc = subtract(a, b)\n\
     p = dot(x, c)\nl = squared_error(p, k)",
    // Parts of embeddings, joined.
    "v = param row_sparse f32 [d, 3] \"\"\nu = param row_sparse f32 [d, 4] \"\"\na = slice(v, begin = [_, 0], end = [_, 2])\n\
     b = slice(u, begin = [_, 1], end = [_, 3])\nc = concat(a, b, axis = 1)\np = embedding_bag(x, c, weighted = true)\nl = squared_error(p, k)",
    // A factorization machine of two joined tables.
    "v = param row_sparse f32 [d, 3] \"\"\nu = param row_sparse f32 [d, 1] \"\"\nc = concat(v, u, axis = 1)\na = pairwise_interaction(x, c)\n\
     b = dot(x, u)\np = add(a, b)\nl = squared_error(p, y)",
    // Weighted samples, gathered by columns.
    "s = param dense f32 [d] \"\"\nh = param dense f32 [n, 4] \"\"\nz = multiply(x, s)\nt = dot(z, h, transpose_lhs = true)\nu = tanh(t)\n\
     p = dot(x, u)\nl = squared_error(p, k)",
    // Samples of norm 1.
    "s = param dense f32 [d] \"\"\nv = param row_sparse f32 [d, 4] \"\"\nz = multiply(x, s)\na = norm(z, axis = 1, keepdims = true)\n\
     b = add(a, 1)\nc = divide(z, b)\np = dot(c, v)\nl = squared_error(p, k)",
    // Samples chosen, and turned.
    "s = param dense f32 [d] \"\"\nz = multiply(x, s)\nc = take(z, i)\ng = transpose(c)\nh = param dense f32 [n] \"\"\np = dot(g, h)\n\
     l = square_sum(p)",
    // The largest of what is stored.
    "s = param dense f32 [d] \"\"\nz = multiply(x, s)\na = max(z, axis = 1)\nb = squared_error(a, q)\nh = param dense f32 [n, 4] \"\"\n\
     t = dot(z, h, transpose_lhs = true)\nc = max(t)\nl = add(b, c)",
    // A table times a small matrix, read by ids.
    "v = param row_sparse f32 [d, 2] \"\"\nm = param dense f32 [2, 4] \"\"\nb = param dense f32 [4] \"\"\nu = dot(v, m)\nc = tanh(u)\n\
     e = embedding(i, c)\np = add(e, b)\nl = squared_error(p, k)",
    // Roots of a table of positive numbers.
    "v = param row_sparse f32 [d, 4] \"\"\nu = square(v)\nc = power(u, 0.5)\ng = power(c, 1)\np = dot(x, g)\nl = squared_error(p, k)",
];

/// Models that are refused: the code, and the value whose operator is told.
pub const REFUSED: [(&str, &str, &str); 9] = [
    ("s = param dense f32 [d] \"\"\nz = multiply(x, s)\nc = exp(z)\nl = sum(c)", "NNZ0301", "c"),
    (
        "s = param dense f32 [d] \"\"\nz = multiply(x, s)\nc = softmax(z)\nl = square_sum(c)",
        "NNZ0301",
        "c",
    ),
    (
        "s = param dense f32 [d] \"\"\nz = multiply(x, s)\nc = pick(z, i)\nl = squared_error(c, q)",
        "NNZ0301",
        "c",
    ),
    (
        "v = param row_sparse f32 [d, 4] \"\"\nm = input dense u32 [d]\nt = retain(v, i)\nc = pick(t, m)\nl = sum(c)",
        "NNZ0301",
        "c",
    ),
    (
        "v = param row_sparse f32 [d, 4] \"\"\nc = norm(v)\na = dot(x, v)\nb = squared_error(a, k)\nl = add(b, c)",
        "NNZ0401",
        "c",
    ),
    (
        "v = param row_sparse f32 [d, 4] \"\"\nu = relu(v)\nc = sum(u, axis = 0)\nl = square_sum(c)",
        "NNZ0401",
        "c",
    ),
    (
        "v = param row_sparse f32 [d, 4] \"\"\nu = tanh(v)\nc = concat(u, v, axis = 1)\nl = norm(c)",
        "NNZ0401",
        "l",
    ),
    (
        "v = param row_sparse f32 [d, 4] \"\"\nc = power(v, 0)\np = dot(x, c)\nl = squared_error(p, k)",
        "NNZ0301",
        "c",
    ),
    (
        "v = param row_sparse f32 [d, 4] \"\"\nc = reshape(v, shape = [0, 2, 2])\ne = embedding(i, c)\np = norm(e, axis = [1, 2])\nl = squared_error(p, q)",
        "NNZ0301",
        "c",
    ),
];

/// The dense values of all rows of a table that no operator of the source asks for: those that
/// gradients alone are made of, as large as a row_sparse value of the source or of as many rows,
/// where the source has no dense value of the same extents.
pub fn whole_tables(compiled: &Compiled) -> Vec<String> {
    let graph = &compiled.graph;
    let outputs = graph.outputs.iter().map(|output| output.value);
    let updates = graph.updates.iter().map(|update| update.value);
    let forward = graph.ancestors(outputs.chain(updates).chain(graph.losses.iter().copied()));
    let of_source = |id: &ValueId| forward[id.0] || graph.apply_of(*id).is_none();
    let is = |id: &ValueId, storage| graph.storage(*id) == storage;
    let is_table = |id: &ValueId| {
        let shape = graph.shape(*id);
        let mut tables = graph.ids().filter(|id| of_source(id) && is(id, Storage::RowSparse));
        tables.any(|table| {
            let rows = graph.shape(table);
            let named = rows[0].to_string().parse::<u64>().is_err();
            rows == shape || named && shape.first() == rows.first()
        })
    };
    let given = |id: &ValueId| {
        let sorted = |id| {
            let mut extents: Vec<String> =
                graph.shape(id).iter().map(|dim| dim.to_string()).collect();
            extents.retain(|extent| extent != "1");
            extents.sort();
            extents
        };
        let extents = sorted(*id);
        let mut given = graph.ids().filter(|id| of_source(id) && is(id, Storage::Dense));
        given.any(|other| sorted(other) == extents)
    };
    let temporary =
        |id: &ValueId| is(id, Storage::Dense) && is_table(id) && !of_source(id) && !given(id);
    graph.ids().filter(temporary).map(|id| graph.describe(id)).collect()
}

/// The dense values, of as many elements as a csr has places, that no operator of the source asks
/// for: those that gradients alone are made of, where the source has no value of this shape that is
/// dense or stored by rows.
pub fn dense_temporaries(compiled: &Compiled) -> Vec<String> {
    let graph = &compiled.graph;
    let outputs = graph.outputs.iter().map(|output| output.value);
    let updates = graph.updates.iter().map(|update| update.value);
    let forward = graph.ancestors(outputs.chain(updates).chain(graph.losses.iter().copied()));
    let is = |id: ValueId, storage| graph.storage(id) == storage;
    let of_source = |id: &ValueId| forward[id.0] || graph.apply_of(*id).is_none();
    let as_large = |id: ValueId, storage| {
        let shape = graph.shape(id);
        graph.ids().filter(of_source).any(|other| is(other, storage) && graph.shape(other) == shape)
    };
    let temporary = |id: &ValueId| {
        !of_source(id)
            && is(*id, Storage::Dense)
            && graph.shape(*id).len() == 2
            && as_large(*id, Storage::Csr)
            && !as_large(*id, Storage::Dense)
            && !as_large(*id, Storage::RowSparse)
    };
    graph.ids().filter(temporary).map(|id| graph.describe(id)).collect()
}
