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
pub const BY_ROWS: [(&str, usize); 24] = [
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
