use super::*;
use crate::compile::compile;
use crate::ir::{parse, print};
use crate::passes::{Fusion, differentiate, infer_shapes, infer_storage, separate_outputs};
use crate::shapes::Dim;

/// A graph before and after the pass, and the patterns that were rewritten.
fn run(text: &str) -> (Graph, Graph, Vec<&'static str>) {
    let mut graph = parse(text).unwrap();
    for pass in [infer_shapes, infer_storage, separate_outputs, differentiate] {
        let errors: Vec<_> = pass(&mut graph)
            .into_iter()
            .filter(|found| found.code.severity() == crate::diagnostics::Severity::Error)
            .collect();
        assert!(errors.is_empty(), "{errors:?}");
    }
    let before = graph.clone();
    let applied = simplify(&mut graph).iter().map(|row| row.pattern).collect();
    (before, graph, applied)
}

const DECLARED: &str = "\
model M f32
x = input csr f32 [n, d]
z = input csr f32 [n, d]
r = input row_sparse f32 [n, d]
a = input dense f32 [n, d]
b = input dense f32 [n, d]
g = input dense f32 [n, 2]
w = input row_sparse f32 [d, 2]
v = input dense f32 [d, 2]
q = input dense f32 [d, 64]
";

/// What is left of the values computed for the output `o`.
fn computed(lines: &str) -> (String, Vec<&'static str>) {
    let (before, after, applied) = run(&format!("{DECLARED}{lines}\noutput o = o"));
    let type_of = |graph: &Graph| {
        let id = graph.outputs[0].value;
        (graph.storage(id), graph.shape(id), graph.value(id).element)
    };
    assert_eq!(type_of(&before), type_of(&after), "{lines}");
    let printed = print(&after);
    let (_, values) = printed.split_once("v = input dense [d, 2]\n").unwrap_or(("", &printed));
    let values = values.split_once("[d, 64]\n").map_or(values, |(_, values)| values);
    let values = values.split_once("output ").map_or(values, |(values, _)| values);
    (values.trim().to_owned(), applied)
}

/// For each rewrite an instance, and what becomes of it.
const INSTANCES: &[(&str, &str)] = &[
    (
        "u = multiply(x, 2)\no = dot(u, w)",
        "%1 = dot(x, w): dense [n, 2]\no = multiply(%1, 2): dense [n, 2]",
    ),
    (
        "u = divide(x, 2)\no = dot(u, g, transpose_lhs = true)",
        "%1 = divide(g, 2): dense [n, 2]\no = dot(x, %1, transpose_lhs = true): row_sparse [d, 2]",
    ),
    (
        "u = negative(w)\no = dot(x, u)",
        "%1 = dot(x, w): dense [n, 2]\no = negative(%1): dense [n, 2]",
    ),
    (
        "u = dot(x, g, transpose_lhs = true)\no = multiply(u, 3)",
        "%1 = multiply(g, 3): dense [n, 2]\no = dot(x, %1, transpose_lhs = true): row_sparse [d, 2]",
    ),
    (
        "u = multiply(x, 2)\no = sum(u, axis = 1)",
        "%1 = sum(x, axis = [1]): dense [n]\no = multiply(%1, 2): dense [n]",
    ),
    ("u = multiply(x, 2)\no = mean(u)", "%1 = mean(x): dense []\no = multiply(%1, 2): dense []"),
    (
        "u = dot(a, v)\no = sum(u)",
        "%1 = sum(a, axis = [0], keepdims = true): dense [1, d]\n%2 = dot(%1, v): dense [1, 2]\no = sum(%2): dense []",
    ),
    ("u = multiply(x, 2)\no = multiply(u, 3)", "o = multiply(x, 6): csr [n, d]"),
    ("u = multiply(x, 2)\no = negative(u)", "o = multiply(x, -2): csr [n, d]"),
    ("u = negative(x)\no = multiply(u, 2)", "o = multiply(x, -2): csr [n, d]"),
    ("u = negative(a)\nt = negative(u)\no = tanh(t)", "o = tanh(a): dense [n, d]"),
    ("u = negative(b)\no = add(a, u)", "o = subtract(a, b): dense [n, d]"),
    ("u = negative(x)\no = add(u, z)", "o = subtract(z, x): csr [n, d]"),
    ("u = negative(b)\no = subtract(a, u)", "o = add(a, b): dense [n, d]"),
    (
        "u = dense(x)\nt = dense(u)\no = exp(t)",
        "u = dense(x): dense [n, d]\no = exp(u): dense [n, d]",
    ),
    ("u = read_rows(w, x)\no = dot(x, u)", "o = dot(x, w): dense [n, 2]"),
    ("u = csr(x)\no = tanh(u)", "o = tanh(x): csr [n, d]"),
    ("u = row_sparse(r)\no = tanh(u)", "o = tanh(r): row_sparse [n, d]"),
    ("u = csr(a)\nt = dense(u)\no = exp(t)", "o = exp(a): dense [n, d]"),
    (
        "u = row_sparse(x)\nt = dense(u)\no = exp(t)",
        "t = dense(x): dense [n, d]\no = exp(t): dense [n, d]",
    ),
];

/// The text with values that have no name numbered from 1.
fn counted(text: &str) -> String {
    let mut numbers: Vec<String> = Vec::new();
    let mut parts = text.split('%');
    let mut counted = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len());
        let (number, rest) = part.split_at(end);
        let at = numbers.iter().position(|known| known == number).unwrap_or_else(|| {
            numbers.push(number.to_owned());
            numbers.len() - 1
        });
        counted += &format!("%{}{rest}", at + 1);
    }
    counted
}

#[test]
fn each_rewrite_is_found_and_applied() {
    let mut seen = Vec::new();
    for (lines, expected) in INSTANCES {
        let (found, applied) = computed(lines);
        assert_eq!(counted(&found), *expected, "{lines}");
        seen.extend(applied);
    }
    for row in REWRITES {
        assert!(seen.contains(&row.pattern), "`{}` has no instance", row.pattern);
        assert!(!row.why.is_empty() && Parsed::of(row).is_some(), "`{}`", row.pattern);
    }
}

#[test]
fn rewrites_that_cost_more_or_say_something_else_are_left() {
    for lines in [
        // As wide a result as the rows are long; a dense factor; other users, who need the scaled
        // value anyway.
        "u = multiply(x, 2)\no = dot(u, q)",
        "u = multiply(a, 2)\no = dot(u, v)",
        "u = multiply(x, 2)\ns = dot(u, v)\nt = sum(u, axis = 1, keepdims = true)\no = add(s, t)",
        // The sums over one axis are not that of all.
        "u = dot(a, v)\no = sum(u, axis = 0)",
        "u = dot(x, v)\no = sum(u)",
        // 0 · ∞ is not 0; 10⁶⁰ is beyond f32.
        "u = multiply(x, 0)\no = dot(u, w)",
        "u = multiply(a, 1e30)\no = multiply(u, 1e30)",
        // An element that is stored and 0 stays stored.
        "u = dense(x)\nt = csr(u)\no = tanh(t)",
    ] {
        let (found, applied) = computed(lines);
        assert!(applied.is_empty(), "{lines}: {applied:?}: {found}");
    }
    let half = "model M f16\nx = input csr f16 [n, d]\nw = input dense f16 [d, 1]\nu = multiply(x, 0.001)\no = dot(u, w)\noutput o = o";
    assert!(run(half).2.is_empty());
}

/// A refused attempt leaves nothing behind: here it would take the constant `K` for 1.
#[test]
fn a_refused_rewrite_leaves_extents_as_they_were() {
    let mut text = parse(
        "model M f32\nx = param dense f32 [K] \"\"\nw = param dense f32 [K, 2] \"\"\nu = dot(x, w)\no = sum(u)\noutput o = o",
    )
    .unwrap();
    text.unify.declare_constant("K");
    let compiled = compile(text);
    assert!(compiled.errors().next().is_none(), "{:?}", compiled.diagnostics);
    assert_eq!(compiled.graph.shape(ValueId(0)), [Dim::Named("K".to_owned())]);
}

/// The same of any attempt, whatever refuses it.
#[test]
fn an_attempt_that_gives_nothing_changes_nothing() {
    let mut graph =
        parse("model M f32\nx = param dense f32 [K] \"\"\no = tanh(x)\noutput o = o").unwrap();
    graph.unify.declare_constant("K");
    assert!(infer_shapes(&mut graph).is_empty() && infer_storage(&mut graph).is_empty());
    let mut round = Round::new(&mut graph, &[]);
    let x = round.keep(ValueId(0));
    round.renamed.push(x);
    let constant = Dim::Named("K".to_owned());
    let mut unified = false;
    let made = round.try_build(ValueId(1), |graph| {
        graph.push(graph.value(x).clone());
        unified = graph.unify.unify(&constant, &Dim::Size(1));
        None
    });
    assert!(made.is_none() && unified);
    assert_eq!(round.graph.unify.resolve(&constant), constant);
    assert_eq!(round.graph.values.len(), 1);
}

#[test]
fn equal_values_become_one_and_keep_the_first_name() {
    let (found, _) = computed(
        "u = dot(x, w)\nt = dot(x, w)\ns = dot(x, w, transpose_lhs = false)\np = add(u, t)\no = add(p, s)",
    );
    assert_eq!(
        found,
        "u = dot(x, w): dense [n, 2]\np = add(u, u): dense [n, 2]\no = add(p, u): dense [n, 2]"
    );
    // A storage asked for is part of what a value is.
    let both = "u = dot(x, g, transpose_lhs = true)\nt = dot(x, g, transpose_lhs = true, out = dense)\no = add(u, t)";
    assert_eq!(computed(both).0.lines().count(), 3);
}

#[test]
fn unneeded_values_are_dropped_and_declarations_stay() {
    let (found, _) = computed("u = exp(a)\nt = tanh(u)\no = sin(a)");
    assert_eq!(found, "o = sin(a): dense [n, d]");
    let (_, after, _) = run(&format!("{DECLARED}u = exp(a)\no = sin(b)\noutput o = o"));
    assert_eq!(after.inputs().count(), 9);
}

#[test]
fn outputs_losses_and_gradients_have_places_of_their_own() {
    let text = "model M f32\na = input dense f32 [n, 2]\ny = label dense f32 [n, 2]\n\
                w = param dense f32 [n, 2] \"\"\nv = param dense f32 [n, 2] \"\"\nu = add(w, v)\ns = multiply(a, u)\n\
                l = squared_error(s, y)\nm = squared_error(s, y)\nt = tanh(s)\nq = tanh(s)\nk = negative(a)\nj = negative(k)\n\
                loss l\nloss m\noutput t = t\noutput q = q\noutput j = j";
    let (_, after, _) = run(text);
    let mut placed: Vec<ValueId> = roots(&after).collect();
    assert_eq!(placed.len(), 7);
    assert!(placed.iter().all(|id| after.apply_of(*id).is_some()), "{}", print(&after));
    placed.sort_unstable();
    placed.dedup();
    assert_eq!(placed.len(), 7, "{}", print(&after));
}

#[test]
fn a_scaled_table_is_read_by_rows_and_fused() {
    let text = "model M f32\nx = input csr f32 [n, d]\ny = label dense f32 [n, 1]\nw = param row_sparse f32 [d, 1] \"\"\n\
                h = multiply(w, 0.5)\ns = dot(x, h)\nl = squared_error(s, y)\nloss l\noutput s = s";
    let compiled = compile(parse(text).unwrap());
    assert!(compiled.errors().next().is_none(), "{:?}", compiled.diagnostics);
    assert!(matches!(compiled.fusion, Fusion::RowLoop(_)), "{:?}", compiled.fusion);
    let read = crate::passes::RowSet::Columns([ValueId(0)].into());
    assert_eq!(compiled.rows[0].reads, read);
    let gradient = "= dot(x, %8, transpose_lhs = true): row_sparse [d, 1]";
    assert!(print(&compiled.graph).contains(gradient), "{}", print(&compiled.graph));
}

/// Two products of the same are one, which the fused family asks for.
#[test]
fn an_expression_written_twice_is_fused_once() {
    let text = "model M f32\nx = input csr f32 [n, d]\ny = label dense f32 [n, 1]\nw = param row_sparse f32 [d, 1] \"\"\n\
                s = dot(x, w)\nt = dot(x, w)\np = sigmoid(t)\nunused = exp(t)\nl = logistic(s, y)\nloss l\noutput p = p";
    let compiled = compile(parse(text).unwrap());
    assert!(matches!(compiled.fusion, Fusion::RowLoop(_)), "{:?}", compiled.fusion);
}

/// And so are their gradients: what goes back through a product is one sum.
#[test]
fn an_expression_written_twice_has_one_gradient() {
    let text = "model M f32\nx = input csr f32 [n, d]\ny = label dense f32 [n, 1]\nw = param row_sparse f32 [d, 1] \"\"\n\
                s = dot(x, w)\nt = dot(x, w)\nu = dot(x, w)\na = multiply(s, t)\np = multiply(a, u)\n\
                l = logistic(p, y)\nloss l";
    let graph = compile(parse(text).unwrap()).graph;
    let products = graph.ids().filter_map(|id| graph.apply_of(id));
    let products = products.filter(|apply| apply.operator.name == "dot").count();
    assert_eq!(products, 2, "{}", print(&graph));
    assert!(matches!(compile(parse(text).unwrap()).fusion, Fusion::RowLoop(_)));
}

#[test]
fn the_pass_is_idempotent_and_deterministic() {
    for (lines, _) in INSTANCES {
        let text = format!("{DECLARED}{lines}\noutput o = o");
        let (_, mut once, _) = run(&text);
        let printed = print(&once);
        assert!(simplify(&mut once).is_empty());
        assert_eq!(print(&once), printed);
        assert_eq!(print(&run(&text).1), printed);
    }
}

/// Products are taken where a literal would be, so that steps stay one loop.
#[test]
fn l8_a_factor_that_is_known_later_is_moved_as_a_number_is() {
    let of_extent = "k = number 1 / sqrt(d)\nu = multiply(x, k)\no = dot(u, w)";
    let (found, applied) = computed(of_extent);
    let is_moved = |product: &str, scaled: &str| {
        found.contains(product) && found.ends_with(scaled) && !found.contains("multiply(x")
    };
    assert!(is_moved("= dot(x, w): dense [n, 2]", ", k): dense [n, 2]"), "{found}");
    assert_eq!(applied, ["dot(scaled(x), w, transpose_lhs = false)"]);
    let (found, _) = computed("k = number crate::K\nu = divide(x, k)\no = sum(u)");
    assert!(found.contains("= sum(x)") && found.ends_with(", k): dense []"), "{found}");
    let two = "k = number 1 / sqrt(d)\nl = number crate::L\nu = multiply(a, k)\no = multiply(u, l)";
    let (found, _) = computed(two);
    assert!(found.contains("number ") && found.matches("= multiply(").count() == 1, "{found}");
    // What may be beyond every number is not moved.
    let (_, applied) = computed("k = number exp(d)\nu = multiply(x, k)\no = dot(u, w)");
    assert!(applied.is_empty(), "{applied:?}");
}
