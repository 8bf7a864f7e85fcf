//! Weight decay by use: which parameters the penalties of an update rule shrink.

use crate::ir::{Apply, Graph, Kind, ValueId};
use crate::operators::{self, Operator, Weights};
use crate::storage::Storage;

/// For each parameter in the order of declaration, whether weight decay and L1 shrink it: as
/// `param(decay)` or `param(no_decay)` say, else by its uses. It decays if it is used as a
/// [weight](Operator::weights): as a factor of a product, as a table of a look-up or a bag, or
/// multiplied with a csr. What is only added or multiplied by broadcasting (a bias, a scale, a
/// temperature) does not decay, whatever its storage and shape; nor does a frozen parameter.
///
/// Only what the loss is computed from is a use: the values of gradients are none.
pub fn decays(graph: &Graph) -> Vec<bool> {
    let weights = weights(graph);
    let decays = |id: ValueId| match graph.value(id).kind {
        Kind::Parameter { frozen: true, .. } => false,
        Kind::Parameter { decay: Some(decays), .. } => decays,
        _ => weights[id.0],
    };
    graph.parameters().map(decays).collect()
}

/// For each value, whether it is used as a weight, or a weight is computed from its elements.
fn weights(graph: &Graph) -> Vec<bool> {
    let of_batch = computed_from_the_batch(graph);
    let of_loss = graph.ancestors(graph.losses.iter().copied());
    let mut weights = vec![false; graph.values.len()];
    // Operands come first: a value is marked before its operands are reached.
    for id in graph.ids().rev().filter(|id| of_loss[id.0]) {
        let Some(apply) = graph.apply_of(id) else { continue };
        for (at, operand) in apply.operands.iter().enumerate() {
            let is_weight = is_weight(graph, apply, at)
                || weights[id.0] && !of_batch[id.0] && gives_elements(graph, id, apply, at);
            weights[operand.0] |= is_weight;
        }
    }
    weights
}

fn is_weight(graph: &Graph, apply: &Apply, at: usize) -> bool {
    let storage = |at: usize| graph.storage(apply.operands[at]);
    match apply.operator.weights {
        Weights::None => false,
        Weights::Operands(names) => names.contains(&apply.operator.operands[at]),
        Weights::BesideCsr => {
            let is_csr = |at: usize| storage(at) == Storage::Csr;
            !is_csr(at) && (0..apply.operands.len()).any(is_csr)
        }
        Weights::Tables => storage(at) == Storage::RowSparse,
    }
}

/// Whether the elements of a result are those of an operand, or functions of them: not where it is
/// broadcast, reduced, or a bias of an operator that has weights.
fn gives_elements(graph: &Graph, id: ValueId, apply: &Apply, at: usize) -> bool {
    let operator: &Operator = apply.operator;
    let has_its_shape = graph.shape(apply.operands[at]) == graph.shape(id);
    match operator.kind {
        operators::Kind::Reduction(_) => false,
        operators::Kind::Binary(..) => has_its_shape,
        _ => operator.weights == Weights::None && !operator.lends_shape_only(at),
    }
}

/// For each value, whether it depends on an input or a label.
fn computed_from_the_batch(graph: &Graph) -> Vec<bool> {
    let mut of_batch: Vec<bool> = Vec::with_capacity(graph.values.len());
    for id in graph.ids() {
        of_batch.push(match &graph.value(id).kind {
            Kind::Input | Kind::Label => true,
            Kind::Parameter { .. } | Kind::Constant(_) | Kind::Named(_) => false,
            Kind::Apply(apply) => apply.operands.iter().any(|operand| of_batch[operand.0]),
        });
    }
    of_batch
}

#[cfg(test)]
mod tests {
    use crate::compile::compile;
    use crate::ir::parse;

    const DECLARED: &str = "model M f32\nx = input csr f32 [n, 9]\nz = input dense f32 [n, 9]\n\
        ids = input dense u64 [n]\ny = label dense f32 [n, 1]\n";

    /// Which of the parameters `a`, `b`, … of the given types decay in a model whose score is `s`.
    fn decays_of<const N: usize>(types: [&str; N], lines: &str) -> [bool; N] {
        let names = ["a", "b", "c"];
        let declared =
            names.iter().zip(types).map(|(name, declared)| match declared.split_once(") ") {
                Some((word, array)) => format!("{name} = param{word}) {array} \"\"\n"),
                None => format!("{name} = param {declared} \"\"\n"),
            });
        let declared: String = declared.collect();
        let text = format!("{DECLARED}{declared}{lines}\nl = squared_error(s, y)\nloss l");
        let compiled = compile(parse(&text).unwrap());
        assert_eq!(compiled.errors().count(), 0, "{:?}", compiled.diagnostics);
        compiled.decays.try_into().unwrap()
    }

    const BIAS: &str = "dense f32 [1]";

    #[test]
    fn n5_factors_of_a_product_decay_whatever_their_storage_and_shape() {
        for (weight, lines) in [
            ("row_sparse f32 [9, 1]", "s = dot(x, a)"),
            ("dense f32 [9, 1]", "s = dot(x, a)"),
            ("dense f32 [9, 1]", "s = dot(z, a)"),
            ("dense f32 [9]", "t = dot(x, a)\ns = expand_dims(t, axis = 1)"),
            ("row_sparse f32 [9]", "t = dot(x, a)\ns = expand_dims(t, axis = 1)"),
            ("dense f32 [1, 9]", "s = fully_connected(z, a)"),
            ("row_sparse f32 [9, 4]", "s = pairwise_interaction(x, a)"),
        ] {
            assert_eq!(decays_of([weight], lines), [true], "{weight}: {lines}");
        }
    }

    #[test]
    fn n5_tables_of_lookups_and_bags_decay_and_so_does_what_a_csr_is_multiplied_with() {
        for (weight, lines) in [
            ("row_sparse f32 [9, 1]", "s = embedding(ids, a)"),
            ("dense f32 [9, 1]", "s = take(a, ids)"),
            ("dense f32 [9, 1]", "s = embedding_bag(x, a)"),
            ("dense f32 [9]", "t = multiply(x, a)\ns = sum(t, axis = 1, keepdims = true)"),
        ] {
            assert_eq!(decays_of([weight], lines), [true], "{weight}: {lines}");
        }
    }

    #[test]
    fn n5_operands_of_broadcasting_do_not_decay() {
        for shape in ["", "1", "1, 1"] {
            let bias = format!("dense f32 [{shape}]");
            let lines = "t = dot(x, a)\nu = multiply(t, c)\ns = add(u, b)";
            assert_eq!(decays_of(["dense f32 [9, 1]", &bias, &bias], lines), [true, false, false]);
        }
        let lines = "t = multiply(z, b)\ns = dot(t, a)";
        assert_eq!(decays_of(["dense f32 [9, 1]", "dense f32 [9]"], lines), [true, false]);
        let lines = "s = fully_connected(z, a, b)";
        assert_eq!(decays_of(["dense f32 [1, 9]", BIAS], lines), [true, false]);
    }

    #[test]
    fn n5_functions_of_a_weight_are_weights_but_its_norm_and_scale_are_none() {
        for lines in ["t = relu(a)\ns = dot(x, t)", "t = square(a)\ns = embedding(ids, t)"] {
            assert_eq!(decays_of(["row_sparse f32 [9, 1]"], lines), [true], "{lines}");
        }
        // The scale of a row is none, though it is read by rows as its weights are.
        let lines = "t = multiply(a, b)\nu = dot(x, t)\ns = sum(u, axis = 1, keepdims = true)";
        let types = ["row_sparse f32 [9, 4]", "dense f32 [9, 1]"];
        assert_eq!(decays_of(types, lines), [true, false]);
        for lines in [
            "t = tanh(a)\ns = dot(x, t)",
            "t = transpose(a)\nu = multiply(t, t)\ns = dot(x, u, transpose_rhs = true)",
        ] {
            assert_eq!(decays_of(["dense f32 [9, 1]"], lines), [true], "{lines}");
        }
        let lines = "t = multiply(a, b)\nq = norm(c)\nu = divide(t, q)\ns = dot(z, u)";
        let types = ["dense f32 [9, 1]", BIAS, "dense f32 [3]"];
        assert_eq!(decays_of(types, lines), [true, false, false]);
    }

    #[test]
    fn n5_a_declaration_overrules_the_use_and_leaves_the_fingerprint() {
        let lines = "t = dot(x, a)\ns = add(t, b)";
        let (weight, bias) = ("dense f32 [9, 1]", "dense f32 [1]");
        assert_eq!(decays_of([weight, bias], lines), [true, false]);
        let types = ["(no_decay) dense f32 [9, 1]", "(decay) dense f32 [1]"];
        assert_eq!(decays_of(types, lines), [false, true]);
        let types = ["(frozen) dense f32 [9, 1]", bias];
        assert_eq!(decays_of(types, lines), [false, false]);

        let compiled = |word: &str| {
            let text =
                format!("{DECLARED}a = param{word} {weight} \"\"\ns = dot(x, a)\noutput s = s");
            compile(parse(&text).unwrap()).fingerprint()
        };
        assert_eq!(compiled("(no_decay)"), compiled(""));
        assert_ne!(compiled("(frozen)"), compiled(""));
    }
}
