//! Sources that are longer, or nested deeper, than any that a person writes: they compile, or are
//! refused with a code.

use super::diagnostics::said;
use crate::report::Report;
use crate::{expand, parse, resolve};
use sparse_core::alternatives::compile_variants;
use sparse_core::diagnostics::Code;

/// Runs with the stack that rustc has, or an eighth less.
fn on_stack<T: Send + 'static>(run: impl FnOnce() -> T + Send + 'static) -> T {
    const RUSTC: usize = 7 << 20;
    std::thread::Builder::new().stack_size(RUSTC).spawn(run).unwrap().join().unwrap()
}

/// The codes that the front end gives.
fn codes(graph: String) -> Vec<Code> {
    on_stack(move || said(&graph).iter().map(|one| one.code).collect())
}

fn of(expression: &str) -> Vec<Code> {
    codes(format!("model M {{ input x: dense[n, 2]; output y = {expression}; }}"))
}

fn nested(before: &str, after: &str, levels: usize) -> String {
    format!("{}x{}", before.repeat(levels), after.repeat(levels))
}

#[test]
fn eight_hundred_nested_parentheses_are_an_error() {
    let nests = [
        ("(", ")", 495),
        ("tanh(", ")", 495),
        ("maximum(x, ", ")", 495),
        ("(x + (", ") * x)", 245),
        ("- ", "", 495),
    ];
    for (before, after, deep) in nests {
        assert_eq!(of(&nested(before, after, deep)), [], "{before}");
        for deeper in [800, 10_000] {
            assert_eq!(of(&nested(before, after, deeper)), [Code::TooDeep], "{before}");
        }
    }
    for (before, after) in [
        ("[", "]"),
        ("{", "}"),
        ("return ", ""),
        ("|x| ", ""),
        ("x = ", ""),
        ("!", ""),
        ("x < ", ""),
    ] {
        assert_eq!(of(&nested(before, after, 800)), [Code::TooDeep], "{before}");
    }
}

#[test]
fn deep_sources_keep_their_errors_and_their_rust() {
    let deep = |inner: &str| format!("{}{inner}{}", "(".repeat(100), ")".repeat(100));
    assert_eq!(of(&deep("x, x")), [Code::UnsupportedExpression]);
    assert_eq!(of(&deep("x x")), [Code::Syntax]);
    assert_eq!(of(&deep("unknown")), [Code::UnknownName]);
    assert!(of(&nested("tanh(", ", x)", 100)).iter().all(|code| *code == Code::OperandCount));
    assert_eq!(of(&nested("sum(", ", axis = 1, keepdims = true)", 100)), []);
    let text = format!(
        "model M {{ const K: usize = {}; input x: dense[n, K]; param w: dense[K] = Constant({}); loss sum(x * w); }}",
        deep("LENGTH + 1"),
        deep("crate::START"),
    );
    let tokens = expand::graph(text.parse().unwrap(), |_| String::new()).to_string();
    assert!(tokens.contains("((LENGTH + 1))") && tokens.contains("((crate :: START))"));
    assert!(!tokens.contains("__nest") && !tokens.contains("compile_error"));
}

/// What is said of a model before and by its compilation, and the operators of the last value:
/// nothing is emitted.
fn compiled(graph: &str) -> (Vec<Code>, usize) {
    let mut report = Report::default();
    let source = parse::source_of_depth(graph.parse().unwrap(), &mut report).unwrap();
    let mut library = resolve::library(&source, &mut report);
    resolve::check_blocks(&mut library, &mut report);
    let (graph, _) = resolve::resolve(&source.models[0], &library, &mut report);
    let mut codes: Vec<Code> = report.diagnostics().iter().map(|one| one.code).collect();
    if !codes.is_empty() {
        return (codes, 0);
    }
    let compiled = compile_variants(graph);
    codes.extend(compiled.diagnostics.iter().map(|one| one.code));
    let graph = &compiled.variants[0].model.graph;
    (codes, graph.ids().filter(|id| graph.apply_of(*id).is_some()).count())
}

/// A sum leans to the left: it is as deep as it has terms.
#[test]
fn a_sum_of_ten_thousand_terms_compiles() {
    let sum = " + x".repeat(9_999);
    let sum = format!("model M {{ input x: dense[n, 2]; output y = x{sum}; }}");
    assert_eq!(compiled(&sum), (vec![], 9_999));
    assert_eq!(of(&format!("x{}", " + x".repeat(20_000))), [Code::TooDeep]);
    assert_eq!(of(&format!("x{}", "?".repeat(10_000))), [Code::UnsupportedExpression]);
    assert_eq!(of(&format!("x{} +", " + x".repeat(10_000))), [Code::Syntax]);
}

/// It took 43 s: time grew with the square of the terms.
#[test]
fn a_thousand_functions_of_one_product_compile() {
    let functions: String = (2..1_002).map(|scale| format!(" + relu({scale}.0 * s)")).collect();
    let (codes, applied) = compiled(&format!(
        "model M {{ input x: csr[n, d]; label y: dense[n, 1]; param w: row_sparse[d, 1] = Zeros;
         let s = dot(x, w); loss squared_error(s{functions}, y); }}"
    ));
    assert!(codes.is_empty() && applied > 4_000, "{codes:?}, {applied}");
}

/// The table of the plan is as wide as the name.
#[test]
fn a_name_of_65_536_letters_is_a_name() {
    let name = "w".repeat(65_536);
    let text = format!(
        "model M {{ input x: dense[n, 2]; param {name}: dense[2] = Ones; output y = x * {name}; }}"
    );
    assert_eq!(codes(text), []);
}

#[test]
fn blocks_that_call_blocks_are_refused_where_they_are_too_deep() {
    let chain = |blocks: usize, first: usize| {
        let block = |at: usize| {
            let called = if first == 0 { at.saturating_sub(1) } else { at + 1 };
            if at == first {
                format!("block b{at}(x) {{ tanh(x) }}\n")
            } else {
                format!("block b{at}(x) {{ b{called}(x) + 1.0 }}\n")
            }
        };
        let text: String = (0..blocks).map(block).collect();
        let outermost = if first == 0 { blocks - 1 } else { 0 };
        let model = format!("model M {{ input x: dense[n, 2]; output y = b{outermost}(x); }}");
        on_stack(move || compiled(&format!("{text}{model}")).0)
    };
    assert_eq!(chain(480, 0), []);
    for first in [0, 1_999] {
        assert_eq!(chain(2_000, first), [Code::TooDeep]);
    }
}

#[test]
fn formulas_of_gradients_are_refused_where_they_are_too_deep() {
    let gradient = |terms: usize| {
        codes(format!(
            "operator twice(x) {{ rule dense -> dense = crate::twice; gradient x = grad{}; }}",
            " + grad".repeat(terms)
        ))
    };
    assert_eq!(gradient(400), []);
    assert_eq!(gradient(600), [Code::TooDeep]);
}
