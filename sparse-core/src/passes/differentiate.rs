//! Reverse-mode differentiation: gradients are formulas over the same operators, inferred by the
//! same rules.

use super::contributions::{Contribution, add_up};
use super::csr_patterns::GradientPlaces;
use super::dense_gradient::{dense_gradient, is_whole};
use super::dense_temporaries::{Temporaries, refuse_dense};
use super::gradient_faults::{check_losses, has_shape_of, no_gradient, wrong_shape};
use super::instantiate::derived;
use super::pass_on::{Use, pass_on, pass_on_stored, request_dense};
use super::separate::make_distinct;
use crate::diagnostics::{Code, Diagnostic};
use crate::formula::Formula;
use crate::ir::{Apply, Attributes, Graph, Kind, ValueId};
use crate::storage::Storage;

/// Appends the gradient of the sum of the losses with respect to every parameter that is not
/// frozen.
pub fn differentiate(graph: &mut Graph) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    let forward = graph.values.len();
    let trained: Vec<ValueId> = graph
        .parameters()
        .filter(|id| matches!(graph.value(*id).kind, Kind::Parameter { frozen: false, .. }))
        .collect();
    if graph.losses.is_empty() {
        return diagnostics;
    }
    let reaches = reached_from(graph, &trained);
    // Whether some gradient is missing for an error.
    let mut stopped = false;
    let mut contributions: Vec<Vec<Contribution>> = vec![Vec::new(); forward];
    let mut places = GradientPlaces::of(graph, &reaches);
    let mut temporaries = Vec::new();
    let mut every_row = Vec::new();
    for loss in graph.losses.clone() {
        let place = graph.value(loss).place;
        let one = graph.constant(1.0, place);
        contributions[loss.0].push(Contribution { gradient: one, user: loss });
    }
    for id in (0..forward).rev().map(ValueId) {
        if contributions[id.0].is_empty() || !reaches[id.0] {
            continue;
        }
        let mut total = add_up(graph, &contributions[id.0], &mut diagnostics);
        if graph.constant_of(total) == Some(0.0) {
            contributions[id.0].clear();
            continue;
        }
        if matches!(graph.value(id).kind, Kind::Parameter { .. }) {
            let every_row = &mut every_row;
            finish_parameter(graph, id, total, &contributions, every_row, &mut diagnostics);
            continue;
        }
        let Some(apply) = graph.apply_of(id).cloned() else {
            continue;
        };
        let ranks: Vec<usize> = apply.operands.iter().map(|id| graph.shape(*id).len()).collect();
        for (index, operand) in apply.operands.iter().enumerate() {
            if !reaches[operand.0] || apply.operator.lends_shape_only(index) {
                continue;
            }
            match apply.operator.gradient_of(index, &apply.attributes, &ranks) {
                // The result does not change with the operand.
                Some(Ok(Formula::Number(0.0))) => {}
                Some(Ok(formula)) => {
                    let first = graph.values.len();
                    let at = Use { formula: &formula, apply: &apply, out: id, operand: *operand };
                    let gradient = if places.are_known(*operand) {
                        pass_on_stored(graph, &at, &mut places, &mut total, &mut diagnostics)
                    } else {
                        pass_on(graph, &at, &mut total, &mut diagnostics)
                    };
                    let made = first..graph.values.len();
                    temporaries.push(Temporaries { made, out: id, operand: *operand });
                    match gradient {
                        Ok(gradient) if !has_shape_of(graph, &apply, gradient, *operand) => {
                            diagnostics.push(wrong_shape(graph, &apply, index, id, gradient));
                            stopped = true;
                        }
                        Ok(gradient) => {
                            request_dense(graph, gradient, *operand);
                            contributions[operand.0].push(Contribution { gradient, user: id });
                        }
                        Err(message) => {
                            let place = graph.value(id).place;
                            diagnostics.push(Diagnostic::new(Code::Internal, place, message));
                            stopped = true;
                        }
                    }
                }
                missing => {
                    let why = match missing {
                        Some(Err(why)) => why,
                        _ => "the operator has none",
                    };
                    diagnostics.push(no_gradient(graph, &apply, index, id, why));
                    stopped = true;
                }
            }
        }
    }
    let used = graph.ancestors(graph.losses.iter().copied());
    // What is broken may have been meant to read anything.
    let whole = graph.ids().all(|id| !used[id.0] || !graph.value(id).broken);
    let constant = check_losses(graph, &trained, &mut diagnostics);
    for parameter in trained {
        let (place, name) = (graph.value(parameter).place, graph.label(parameter));
        if !used[parameter.0] && !whole {
            continue;
        }
        if !used[parameter.0] {
            let message = format!("no loss depends on the parameter `{name}`");
            diagnostics
                .push(Diagnostic::new(Code::UnusedParameter, place, message).help(format!(
                    "use `{name}`, remove it, or declare it `param(frozen) {name}`"
                )));
        } else if contributions[parameter.0].is_empty() && !stopped {
            // Every use lets nothing through: the gradient is zero, and nothing of it is stored
            // that need not be.
            let none = Attributes::default();
            let zero = derived(graph, "zeros_like", vec![parameter], none, place, &mut diagnostics);
            graph.gradients.push((parameter, zero));
            if !constant {
                let message = format!("the gradient of the parameter `{name}` is always zero");
                let help = format!(
                    "each way from `{name}` to a loss passes an operator that is constant in steps, or stops gradients: \
                     declare it `param(frozen) {name}`, or compute the loss otherwise"
                );
                diagnostics.push(Diagnostic::new(Code::ZeroGradient, place, message).help(help));
            }
        }
    }
    graph.gradients.sort_by_key(|(parameter, _)| *parameter);
    if !stopped {
        diagnostics.extend(refuse_dense(graph, &temporaries, &reaches, &places));
    }
    make_distinct(graph, &mut diagnostics);
    diagnostics
}

/// For each value, whether a gradient passes from it to one of the given ones: not where each way
/// from there passes an operand whose changes its operator does not see, as that of
/// `stop_gradient`.
fn reached_from(graph: &Graph, roots: &[ValueId]) -> Vec<bool> {
    let mut reached = vec![false; graph.values.len()];
    for root in roots {
        reached[root.0] = true;
    }
    for id in graph.ids() {
        reached[id.0] |= graph.apply_of(id).is_some_and(|apply| {
            let operands = apply.operands.iter().enumerate();
            operands.into_iter().any(|(index, id)| reached[id.0] && passes(graph, apply, index))
        });
    }
    reached
}

/// Whether an operator has a gradient with respect to an operand that is not always zero.
fn passes(graph: &Graph, apply: &Apply, index: usize) -> bool {
    let ranks: Vec<usize> = apply.operands.iter().map(|id| graph.shape(*id).len()).collect();
    let gradient = apply.operator.gradient_of(index, &apply.attributes, &ranks);
    !apply.operator.lends_shape_only(index) && gradient != Some(Ok(Formula::Number(0.0)))
}

fn finish_parameter(
    graph: &mut Graph,
    parameter: ValueId,
    total: ValueId,
    contributions: &[Vec<Contribution>],
    every_row: &mut Vec<bool>,
    diagnostics: &mut Vec<Diagnostic>,
) {
    if graph.value(total).broken {
        return;
    }
    let mut total = total;
    let cast = match graph.storage(parameter) {
        // Entries are rows with zeros in them.
        Storage::RowSparse => Some("row_sparse"),
        // Every step reads all of it: one more pass over it.
        Storage::Dense if !graph.keeps_csr_gradients => Some("dense"),
        Storage::Dense | Storage::Csr => None,
    };
    if let Some(cast) = cast.filter(|_| graph.storage(total) == Storage::Csr) {
        let (place, none) = (graph.value(total).place, Attributes::default());
        total = derived(graph, cast, vec![total], none, place, diagnostics);
    }
    if graph.storage(parameter) == Storage::RowSparse && is_whole(graph, total, every_row) {
        diagnostics.push(dense_gradient(graph, parameter, contributions));
        return;
    }
    graph.gradients.push((parameter, total));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{parse, print};
    use crate::passes::{infer_shapes, infer_storage};

    fn run(text: &str) -> (String, Vec<String>) {
        let mut graph = parse(text).unwrap();
        for diagnostics in
            [infer_shapes::infer_shapes(&mut graph), infer_storage::infer_storage(&mut graph)]
        {
            assert!(diagnostics.is_empty(), "{diagnostics:?}");
        }
        let diagnostics = differentiate(&mut graph).iter().map(Diagnostic::text).collect();
        (print(&graph), diagnostics)
    }

    const LINEAR: &str = "\
model M f32
x = input csr f32 [n, d]
y = label dense f32 [n, 1]
w = param row_sparse f32 [d, 1] \"Zeros\"
b = param dense f32 [1] \"Zeros\"
s = dot(x, w)
";

    #[test]
    fn linear_regression_has_a_row_sparse_gradient() {
        let (printed, diagnostics) =
            run(&format!("{LINEAR}pred = add(s, b)\nl = squared_error(pred, y)\nloss l"));
        assert!(diagnostics.is_empty(), "{diagnostics:?}");
        let backward = printed.split_once("l = ").unwrap().1;
        assert_eq!(
            backward,
            "squared_error(pred, y): dense []\n\
             %8 = squared_error_gradient(pred, y): dense [n, 1]\n\
             %9 = reduce_to(%8, b): dense [1]\n\
             %10 = dot(x, %8, transpose_lhs = true): row_sparse [d, 1]\n\
             loss l\n\
             grad w = %10\n\
             grad b = %9\n"
        );
    }

    #[test]
    fn gradients_of_several_uses_are_added() {
        let (printed, diagnostics) = run(&format!(
            "{LINEAR}t = dot(x, w)\nu = add(s, t)\npred = add(u, b)\nl = squared_error(pred, y)\nloss l"
        ));
        assert!(diagnostics.is_empty(), "{diagnostics:?}");
        assert!(printed.contains("= add(%"), "{printed}");
        assert!(printed.lines().any(|line| line.starts_with("grad w")));
    }

    /// Penalties in other words than `sum(square(w))`: their gradients are row_sparse, with all
    /// rows in them.
    #[test]
    fn a_gradient_of_every_row_is_as_a_dense_one() {
        for penalty in ["r = square_sum(w)", "r = norm(w)", "q = abs(w)\nr = norm(q, ord = 1)"] {
            let (_, diagnostics) = run(&format!(
                "{LINEAR}{penalty}\npred = add(s, b)\nl = squared_error(pred, y)\nm = add(l, r)\nloss m"
            ));
            assert_eq!(diagnostics.len(), 1, "{penalty}: {diagnostics:?}");
            assert!(
                diagnostics[0].starts_with("[NNZ0401] the gradient of `w` would be dense"),
                "{diagnostics:?}"
            );
            assert!(
                diagnostics[0].contains("`m` (add)") && diagnostics[0].contains("`r` ("),
                "{diagnostics:?}"
            );
        }
        // A weight by classes, which each row of data reads whole: its gradient comes as csr.
        let (_, diagnostics) = run("\
model M f32
x = input csr f32 [n, d]
y = label dense f32 [n, 3]
w = param row_sparse f32 [3, d] \"Zeros\"
s = dot(x, w, transpose_rhs = true)
l = squared_error(s, y)
loss l");
        assert_eq!(diagnostics.len(), 1, "{diagnostics:?}");
        assert!(
            diagnostics[0].contains("`s` (dot) gives every row of `w` a gradient"),
            "{diagnostics:?}"
        );
        // By rows that a batch reads it is not.
        let (_, diagnostics) = run(&format!(
            "{LINEAR}q = square_sum(w, axis = 1, keepdims = true)\nr = dot(x, q)\nt = add(s, r)\npred = add(t, b)\n\
             l = squared_error(pred, y)\nloss l"
        ));
        assert!(diagnostics.is_empty(), "{diagnostics:?}");
    }

    #[test]
    fn a_dense_gradient_of_a_row_sparse_parameter_names_the_use() {
        let (_, diagnostics) = run(&format!(
            "{LINEAR}q = square(w)\nr = sum(q)\npred = add(s, b)\nl = squared_error(pred, y)\nm = add(l, r)\nloss m"
        ));
        assert_eq!(diagnostics.len(), 1, "{diagnostics:?}");
        assert!(
            diagnostics[0]
                .starts_with(
                    "[NNZ0401] the gradient of `w` would be dense: each step would write 4·d bytes. From the loss it comes \
                     through `m` (add), `r` (sum) and `q` (square); `r` (sum) gives every row of `q` a gradient\nhelp: "
                ),
            "{diagnostics:?}"
        );
    }

    #[test]
    fn parameters_that_no_loss_needs_are_reported() {
        let (_, diagnostics) = run(&format!("{LINEAR}l = squared_error(s, y)\nloss l"));
        assert_eq!(diagnostics.len(), 1);
        assert!(diagnostics[0].starts_with("[NNZ0403] no loss depends on the parameter `b`"));
    }

    #[test]
    fn a_product_that_a_csr_masks_is_made_at_its_pattern() {
        let (printed, diagnostics) = run("\
model M f32
x = input csr f32 [n, d]
y = label dense f32 [n, 2]
a = param dense f32 [d] \"Zeros\"
w = param dense f32 [d, 2] \"Zeros\"
z = multiply(x, a)
s = dot(z, w)
l = squared_error(s, y)
loss l");
        assert!(diagnostics.is_empty(), "{diagnostics:?}");
        let sampled = "sampled_dot(%8, w, x, transpose_rhs = true): csr [n, d]";
        assert!(printed.contains(sampled), "{printed}");
    }

    #[test]
    fn scalars_pass_through() {
        let (printed, diagnostics) = run(&format!(
            "{LINEAR}h = multiply(s, 0.5)\npred = subtract(h, b)\nl = squared_error(pred, y)\nloss l"
        ));
        assert!(diagnostics.is_empty(), "{diagnostics:?}");
        assert!(printed.contains("= multiply(%10, 0.5): dense [n, 1]"), "{printed}");
        assert!(printed.contains("= negative(%10): dense [n, 1]"), "{printed}");
    }

    #[test]
    fn gradients_of_dense_intermediates_are_dense() {
        let (printed, diagnostics) = run("\
model M f32
x = input csr f32 [n, d]
y = label dense f32 [n, 1]
w = param dense f32 [d, 1] \"Zeros\"
u = exp(w)
s = dot(x, u)
l = squared_error(s, y)
loss l");
        assert!(diagnostics.is_empty(), "{diagnostics:?}");
        assert!(printed.contains("transpose_lhs = true): dense [d, 1]"), "{printed}");
        assert!(printed.contains("exp_gradient("), "{printed}");
    }

    /// Every step reads all of a dense parameter, so that a gradient by entries is written out.
    #[test]
    fn gradients_of_dense_parameters_are_not_csr() {
        let (printed, diagnostics) = run("\
model M f32
x = input csr f32 [n, d]
y = label dense f32 [n, 3]
w = param dense f32 [3, d] \"Zeros\"
s = dot(x, w, transpose_rhs = true)
l = squared_error(s, y)
loss l");
        assert!(diagnostics.is_empty(), "{diagnostics:?}");
        let (_, gradient) = printed.split_once("grad w = ").unwrap();
        let definition = format!("{} = dense(", gradient.trim());
        assert!(printed.contains(&definition), "{printed}");
    }

    /// The gradient of `w`, which is converted before it is multiplied.
    fn of_converted(lines: &str) -> String {
        let (printed, diagnostics) = run(&format!(
            "model M f32\nx = input csr f32 [n, d]\ny = label dense f32 [n, 1]\nw = param dense f32 [d, 1] \"Zeros\"\n\
             {lines}\nl = squared_error(s, y)\nloss l"
        ));
        assert!(diagnostics.is_empty(), "{diagnostics:?}");
        let (_, gradient) = printed.split_once("grad w = ").unwrap();
        let definition = format!("{} = ", gradient.trim());
        printed.lines().find(|line| line.starts_with(&definition)).unwrap().to_owned()
    }

    #[test]
    fn conversions_pass_sparse_gradients_on() {
        for lines in [
            "u = csr(w)\nv = dense(u)\ns = dot(x, v)",
            "u = row_sparse(w)\nv = dense(u)\ns = dot(x, v)",
            "u = row_sparse(w)\nq = square(u)\nv = dense(q)\ns = dot(x, v)",
        ] {
            let gradient = of_converted(lines);
            assert!(gradient.ends_with("row_sparse [d, 1]"), "{lines}: {gradient}");
        }
        // What computes the gradient further takes it dense.
        let gradient = of_converted("q = exp(w)\nu = row_sparse(q)\nv = dense(u)\ns = dot(x, v)");
        assert!(
            gradient.contains("exp_gradient(") && gradient.ends_with(": dense [d, 1]"),
            "{gradient}"
        );
    }

    #[test]
    fn a_sparse_gradient_of_a_dense_value_is_made_dense_where_no_kernel_takes_it() {
        for cast in ["csr", "row_sparse"] {
            let (printed, diagnostics) = run(&format!(
                "model M f32\nw = param dense f32 [d, 2] \"Ones\"\nh = tanh(w)\nu = {cast}(h)\nl = square_sum(u)\nloss l"
            ));
            assert!(diagnostics.is_empty(), "{diagnostics:?}");
            assert!(printed.contains("= dense(%"), "{printed}");
            assert!(printed.contains("= tanh_gradient(%"), "{printed}");
        }
    }

    #[test]
    fn entries_and_rows_of_a_gradient_are_added_as_rows() {
        let gradient = of_converted(
            "u = csr(w)\nv = dense(u)\nh = dot(x, v)\nz = square(u)\nr = dot(x, v)\nt = sum(z)\np = add(h, r)\n\
             s = add(p, t)",
        );
        assert!(
            gradient.contains("= add(") && gradient.ends_with("row_sparse [d, 1]"),
            "{gradient}"
        );
    }

    #[test]
    fn a_gradient_of_entries_is_one_of_rows_where_the_parameter_is() {
        let (printed, diagnostics) = run("\
model M f32
x = input csr f32 [d, k]
w = param row_sparse f32 [d, k] \"Zeros\"
u = dense(w)
v = multiply(x, u)
q = square(v)
l = sum(q)
loss l");
        assert!(diagnostics.is_empty(), "{diagnostics:?}");
        let (_, gradient) = printed.split_once("grad w = ").unwrap();
        let definition = format!("{} = row_sparse(%", gradient.trim());
        let line = printed.lines().find(|line| line.starts_with(&definition));
        assert!(line.is_some_and(|line| line.ends_with(": row_sparse [d, k]")), "{printed}");
    }

    #[test]
    fn a_parameter_may_be_a_loss_itself() {
        let (printed, diagnostics) = run("model M f32\nb = param dense f32 [] \"Zeros\"\nloss b");
        assert!(diagnostics.is_empty(), "{diagnostics:?}");
        assert!(printed.contains("= broadcast_like(1, b): dense []"), "{printed}");
    }
}
