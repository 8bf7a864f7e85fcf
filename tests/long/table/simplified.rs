//! Random graphs compute the same values and gradients, stored alike, with and without
//! simplification.

use super::given::{Numbers, operands};
use super::oracle::expand;
use sparse_core::compile::Compiled;
use sparse_core::diagnostics::Severity;
use sparse_core::ir::{Graph, Kind, parse, print};
use sparse_core::operators::Pattern;
use sparse_core::passes::{
    Bits, REWRITES, Rewrite, chains, decays, differentiate, fuse, infer_shapes, infer_storage,
    plan, rows, separate_outputs, simplify,
};
use sparse_core::shapes::Dim;
use sparse_core::storage::Storage;
use sparse_runtime::interpreter::evaluate;
use sparse_runtime::kernels::Array;
use std::collections::{BTreeSet, HashMap};

const DECLARED: &str = "\
model Random f64
x = input csr f64 [4, 5]
z = input csr f64 [4, 5]
r = input row_sparse f64 [4, 5]
a = input dense f64 [4, 5]
g = input dense f64 [4, 2]
w = param dense f64 [5, 2] \"\"
t = param row_sparse f64 [5, 2] \"\"
v = param dense f64 [4, 5] \"\"
";

/// Operators with `A` and `B` for values: those that rewrites are about more often than others.
const LINES: [&str; 24] = [
    "dot(A, B)",
    "dot(A, B)",
    "dot(A, B, transpose_lhs = true)",
    "dot(A, B, transpose_lhs = true)",
    "dot(A, B, transpose_rhs = true)",
    "multiply(A, 2)",
    "multiply(A, -0.3)",
    "multiply(0.5, A)",
    "divide(A, 3)",
    "negative(A)",
    "negative(A)",
    "negative(A)",
    "add(A, B)",
    "subtract(A, B)",
    "multiply(A, B)",
    "dense(A)",
    "csr(A)",
    "row_sparse(A)",
    "transpose(A)",
    "tanh(A)",
    "square(A)",
    "sum(A)",
    "mean(A)",
    "sum(A, axis = 1)",
];

#[test]
fn values_and_gradients_stay_what_they_are() {
    let mut applied = BTreeSet::new();
    let mut trained = 0;
    for seed in 0..600 {
        let text = random(&mut Numbers(seed));
        // Where no gradient is offered, or it would be dense, the dense parameters, or the values
        // alone.
        let values = text.replace("= param ", "= param(frozen) ");
        let values = values.split_once("loss ").map_or("", |(head, _)| head);
        let plain = compile_plain(&text).or_else(|| compile_plain(&freeze(&text, "t")));
        let plain = plain.inspect(|_| trained += 1);
        let plain = plain.or_else(|| compile_plain(values)).expect(&text);
        let mut simple = plain.graph.clone();
        let found = simplify(&mut simple);
        applied.extend(found.iter().map(|row| row.pattern));
        let simple = finish(simple);
        compare(&plain, &simple, &found, &mut Numbers(seed));
    }
    for row in REWRITES {
        assert!(applied.contains(row.pattern), "`{}` was never applied", row.pattern);
    }
    assert!(trained > 100, "{trained}");
}

/// A graph of a dozen operators, each of values that it has rules for.
fn random(numbers: &mut Numbers) -> String {
    let mut text = DECLARED.to_owned();
    let declared = ["x", "z", "r", "a", "g", "w", "t", "v"].map(str::to_owned);
    let mut names: Vec<String> = declared.to_vec();
    let pick = |names: &[String], numbers: &mut Numbers| {
        // The newer, the likelier.
        let at = numbers.below(names.len()).max(numbers.below(names.len()));
        names[at].clone()
    };
    // What a rewrite is about and few random expressions are.
    let planted: &[&str] = match numbers.below(4) {
        0 => &["dot(a, w)", "sum(q8)"],
        1 => &["multiply(x, 0.7)", "dot(q8, t)"],
        2 => &["read_rows(t, x)", "dot(x, q8)"],
        _ => &[],
    };
    for line in planted {
        let name = format!("q{}", names.len());
        text += &format!("{name} = {line}\n");
        names.push(name);
    }
    for _ in 0..60 {
        let line = LINES[numbers.below(LINES.len())];
        let line = line.replace('A', &pick(&names, numbers)).replace('B', &pick(&names, numbers));
        let name = format!("q{}", names.len());
        let longer = format!("{text}{name} = {line}\n");
        let new = parse(&longer).is_ok_and(|graph| {
            let made = graph.values.last().and_then(|value| value.name.as_deref());
            made == Some(&*name) && inferred(graph).is_some()
        });
        if new {
            text = longer;
            names.push(name);
        }
        if names.len() == 20 {
            break;
        }
    }
    let (loss, last) = (pick(&names[8..], numbers), names.last().unwrap());
    let graph = parse(&text).unwrap();
    let of_loss = graph.ids().find(|id| graph.value(*id).name.as_ref() == Some(&loss));
    let needed = graph.ancestors(of_loss);
    for parameter in graph.parameters().filter(|id| !needed[id.0]) {
        text = freeze(&text, &graph.label(parameter));
    }
    for (index, output) in [last, &pick(&names[8..], numbers)].into_iter().enumerate() {
        text += &format!("output o{index} = {output}\n");
    }
    text + &format!("s = square({loss})\nl = sum(s)\nloss l\n")
}

/// The model with a parameter that is not trained.
fn freeze(text: &str, parameter: &str) -> String {
    text.replace(&format!("{parameter} = param "), &format!("{parameter} = param(frozen) "))
}

fn inferred(mut graph: Graph) -> Option<Graph> {
    let passes: [fn(&mut Graph) -> _; 3] = [infer_shapes, infer_storage, separate_outputs];
    let error =
        |found: &sparse_core::diagnostics::Diagnostic| found.code.severity() == Severity::Error;
    let refused = passes.into_iter().any(|pass| pass(&mut graph).iter().any(error));
    (!refused).then_some(graph)
}

/// The pipeline without the pass under test.
fn compile_plain(text: &str) -> Option<Compiled> {
    let mut graph = inferred(parse(text).ok()?)?;
    let found = differentiate(&mut graph);
    let refused = found.iter().any(|found| found.code.severity() == Severity::Error);
    (!refused).then(|| finish(graph))
}

fn finish(graph: Graph) -> Compiled {
    let (rows, decays, fusion) = (rows(&graph), decays(&graph), fuse(&graph));
    let chains = chains(&graph, &fusion);
    let plan = plan(&graph, &fusion, &chains);
    Compiled { graph, rows, decays, fusion, chains, plan, diagnostics: Vec::new() }
}

/// Rewrites that say so, and none, leave the bits alone.
fn compare(plain: &Compiled, simple: &Compiled, applied: &[&Rewrite], numbers: &mut Numbers) {
    let rounded = applied.iter().any(|row| row.bits == Bits::Rounded);
    let tolerance = if rounded { 1e-12 } else { 0.0 };
    let both = || format!("{}\n{}", print(&plain.graph), print(&simple.graph));
    let graph = &plain.graph;
    let mut inputs: HashMap<String, Array<f64>> = HashMap::new();
    for id in graph.inputs().chain(graph.parameters()) {
        let shape = graph.shape(id).into_iter().map(|dim| match dim {
            Dim::Size(size) => size as usize,
            other => panic!("{other}"),
        });
        let parameter = matches!(graph.value(id).kind, Kind::Parameter { .. });
        let storage = if parameter { Storage::Dense } else { graph.storage(id) };
        let shape: Vec<usize> = shape.collect();
        let given = operands(Pattern::Array(storage, false), &shape, 1, true, numbers);
        let given = &given[numbers.below(given.len())];
        inputs.insert(graph.label(id), given.array().unwrap());
    }
    let run = |compiled| evaluate(compiled, &inputs).unwrap_or_else(|e| panic!("{e}\n{}", both()));
    let (expected, found) = (run(plain), run(simple));
    let roots = |compiled: &Compiled| {
        let graph = &compiled.graph;
        let outputs = graph.outputs.iter().map(|output| output.value);
        let gradients = graph.gradients.iter().map(|(_, gradient)| *gradient);
        outputs.chain(gradients).chain(graph.losses.clone()).collect::<Vec<_>>()
    };
    let (of_plain, of_simple) = (roots(plain), roots(simple));
    assert_eq!(of_plain.len(), of_simple.len(), "{}", both());
    for (expected_id, id) in of_plain.into_iter().zip(of_simple) {
        let (expected, found) = (expected.get(expected_id).unwrap(), found.get(id).unwrap());
        assert_eq!(expected.storage(), found.storage(), "{}", both());
        let (expected, found) = (expand(expected, "plain"), expand(found, "simplified"));
        assert_eq!(expected.1, found.1, "what is stored: {}", both());
        for (expected, found) in expected.0.into_iter().zip(found.0) {
            let close = (expected - found).abs() <= tolerance * (1.0 + expected.abs());
            assert!(close, "{found} is not {expected}: {}", both());
        }
    }
}
