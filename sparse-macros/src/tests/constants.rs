//! Constants and dimensions as numbers: in attributes and in expressions.

use super::diagnostics::said;
use super::{expanded, pretty};
use sparse_core::diagnostics::Diagnostic;

/// What a graph expands to, on one line with single blanks.
fn text(graph: &str) -> String {
    let said = said(graph);
    assert_eq!(said, Vec::new(), "{graph}");
    let pretty = pretty(expanded(graph.parse().unwrap()));
    pretty.split_whitespace().collect::<Vec<_>>().join(" ")
}

const INPUTS: &str =
    "input x: csr[n, d]; input z: dense[n, 8]; output o = tanh(z); output p = sum(x, axis = 1);";

fn model(lines: &str) -> String {
    format!("model M {{ {INPUTS} {lines} }}")
}

/// Two graphs whose plans and kernels are the same.
#[track_caller]
fn same(lines: &str, literal: &str) {
    let (found, expected) = (text(&model(lines)), text(&model(literal)));
    let kernels = |text: &str| text.split_once("::plan::*;").unwrap().1.to_owned();
    assert!(kernels(&found) == kernels(&expected), "{lines}");
}

#[test]
fn l8_attributes_take_constants_of_the_model_as_if_their_values_stood_there() {
    for (constants, lines, literal) in [
        (
            "const FIELDS: usize = 2;",
            "output a = reshape(z, shape = [0, FIELDS, 4]);",
            "output a = reshape(z, shape = [0, 2, 4]);",
        ),
        (
            "const K = 2;",
            "output a = topk(z, k = 2 * K - 1, axis = K - 1);",
            "output a = topk(z, k = 3, axis = 1);",
        ),
        (
            "const B = 2; const E: i64 = -1;",
            "output a = slice(z, begin = [_, B], end = [_, E]);",
            "output a = slice(z, begin = [_, 2], end = [_, -1]);",
        ),
        (
            "const LOW: f32 = 0.5; const HIGH = 2.0;",
            "output a = clip(x, lower = -LOW, upper = HIGH * 2.0);",
            "output a = clip(x, lower = -0.5, upper = 4.0);",
        ),
        (
            "const KEEP: bool = true; const AXIS = 1;",
            "output a = sum(z, axis = [AXIS], keepdims = KEEP);",
            "output a = sum(z, axis = [1], keepdims = true);",
        ),
        ("const S: f64 = 0.25;", "output a = z * S + 2.0 * S;", "output a = z * 0.25 + 0.5;"),
        ("const K = 4;", "output a = z / K as f64;", "output a = z / 4.0;"),
        ("const K = 4;", "output a = z * (1.0 / (K as f32).sqrt());", "output a = z * 0.5;"),
    ] {
        same(&format!("{constants} {lines}"), literal);
    }
}

#[test]
fn l8_constants_of_rust_are_written_where_the_kernel_takes_the_number() {
    let emitted = text(
        "model M { const DELTA: f32; const FIELDS; input p: dense[n, 1]; label y: dense[n, 1]; input z: dense[n, 8];
           param w: dense[8, 1] = Zeros;
           loss huber(p + dot(z, w), y, delta = 2.0 * DELTA); output a = reshape(z, shape = [0, FIELDS, 4]);
           output b = clip(z, lower = crate::LOW, upper = 3); }",
    );
    for part in [
        "const __NUMBER: ::nnz::__private::f64 = (2.0 * DELTA) as ::nnz::__private::f64;",
        "const __EXTENT: ::nnz::__private::usize = FIELDS;",
        "= (crate::LOW) as ::nnz::__private::f64;",
        // What is needed of them.
        "`huber` needs `delta > 0`, and `delta` is `2.0 * DELTA`",
        "[NNZ0212] `reshape` needs `FIELDS * 4` to be `8`",
    ] {
        assert!(emitted.contains(part), "no `{part}` in\n{emitted}");
    }
    // Dense, it may be moved from zero.
    assert!(!emitted.contains("keeps `csr`"), "{emitted}");
}

#[test]
fn l8_a_constant_of_rust_that_decides_the_storage_is_assumed_to_keep_zeros() {
    let emitted = text(&model("output a: csr[n, d] = clip(x, lower = crate::LOW, upper = 1.0);"));
    let needed = "[NNZ0212] `clip` keeps `csr` only where it is 0 at 0, which is so where `min(max(0, crate::LOW), 1) == 0`; \
                  write `clip(dense(x), lower = crate::LOW, upper = 1)` to accept the cost";
    assert!(emitted.contains(needed), "{emitted}");
    assert!(emitted.contains("::core::assert!"), "{emitted}");
    // Products keep zeros whatever the number is.
    let emitted = text(&model("output a: csr[n, d] = x * crate::SCALE;"));
    assert!(!emitted.contains("keeps `csr`"), "{emitted}");
}

#[test]
fn l8_dimensions_are_numbers_in_expressions() {
    let emitted = text(
        "model M { input x: csr[n, d]; label y: dense[n, 1]; param w: row_sparse[d, 1] = Zeros; const K;
           let p = dot(x, w) * (1.0 / (d as f64).sqrt()) / n as f32;
           loss squared_error(p, y); output p; output q = p * (K as f64); }",
    );
    for part in [
        "(__extents[0usize] as ::nnz::__private::f64)).sqrt()",
        "(__batch.x.n_rows() as ::nnz::__private::f64)",
        "= (K) as ::nnz::__private::f64;",
        // The step is one loop, as with numbers.
        "::nnz::__private::linear::step",
    ] {
        assert!(emitted.contains(part), "no `{part}` in\n{emitted}");
    }
}

#[test]
fn l8_blocks_are_given_constants_and_name_those_of_rust_by_paths() {
    let blocks =
        "block robust(p, y, delta, k = 1) { huber(topk(p, k = k + 1), y, delta = delta * 2.0) }
                  block own(p) { p * crate::SCALE }";
    let emitted = text(&format!(
        "{blocks} model M {{ const DELTA: f32; const K: usize = 2; input z: dense[n, 8]; label y: dense[n, 3];
           param w: dense[8, 8] = Zeros; let p = own(dot(z, w));
           loss robust(p, y, DELTA, k = K); output p; }}"
    ));
    assert!(emitted.contains("= (DELTA * 2.0) as ::nnz::__private::f64;"), "{emitted}");
    assert!(emitted.contains("= (crate::SCALE) as ::nnz::__private::f64;"), "{emitted}");
    same("const K = 2; output a = topk(z, k = K + 1);", "output a = topk(z, k = 3);");
    // What other crates are handed names the crate that it is written in; what is called is fetched
    // by its own path.
    let exported = expanded("pub block own(p) { crate::twice(p * crate::SCALE) }".parse().unwrap());
    assert!(exported.to_string().starts_with("crate :: twice !"), "{exported}");
    let exported = expanded("pub block own(p) { tanh(p * crate::SCALE) }".parse().unwrap());
    assert!(exported.to_string().contains("p * $ crate :: SCALE"), "{exported}");
    let (text, help) = only(&said("pub block own(p) { p * settings::SCALE }"));
    assert!(
        text.contains("the path `settings::SCALE` means something only in this module"),
        "{text}"
    );
    assert!(help.contains("write the path from the root, `crate::…`"), "{help}");
}

/// The one thing that is said, with its help.
#[track_caller]
fn only(said: &[Diagnostic]) -> (String, String) {
    match said {
        [one] => (one.text(), one.help.clone().unwrap_or_default()),
        other => panic!("{:#?}", other.iter().map(Diagnostic::text).collect::<Vec<_>>()),
    }
}

#[test]
fn l8_an_attribute_that_is_no_constant_says_what_to_write() {
    for (lines, message, help) in [
        (
            "output a = huber(z, z, delta = DELTA);",
            "[NNZ0106] the attribute `delta` of `huber`: no constant is called `DELTA`",
            "write its path, such as `crate::DELTA`, or declare it in the model: `const DELTA;`",
        ),
        (
            "output a = reshape(z, shape = [0, FIELDS, 4]);",
            "no constant is called `FIELDS`",
            "declare it in the model: `const FIELDS;`",
        ),
        ("const KAY = 3; output a = topk(z, k = KAI + 1);", "called `KAI`", "; write `KAY`"),
        (
            "const K = 1.5; output a = topk(z, k = K);",
            "[NNZ0106] the attribute `k` of `topk` has another kind of value: `K` is 1.5",
            "write an integer",
        ),
        ("output a = topk(z, k = 1.5);", "another kind of value: 1.5", "write an integer"),
        (
            "const F = 1.5; output a = reshape(z, shape = [0, F, 4]);",
            "another kind of value: `F` is 1.5",
            "its entries are integers",
        ),
        (
            "const F: f32; output a = reshape(z, shape = [0, F, 4]);",
            "another kind of value: `F` is `f32`",
            "declare `const F: usize`",
        ),
        (
            "const D = true; output a = clip(z, lower = D, upper = 2);",
            "another kind of value: `D` is true",
            "write a number",
        ),
        (
            "output a = topk(z, k = d);",
            "`d` is a dimension, which is known with the model or a batch",
            "write an integer such as `0` or `-1`; for a constant of Rust in its place declare `const d;`",
        ),
        ("output a = topk(z, k = z);", "`z` is a value", "for a constant write its name"),
        (
            "output a = sum(z, axis = crate::AXIS);",
            "the macro does not see the value of `crate::AXIS`",
            "declare the constant with its value in the model: `const AXIS: usize = 1;`",
        ),
        (
            "const KEEP: bool; output a = sum(z, axis = 1, keepdims = KEEP);",
            "the macro does not see the value of `KEEP`",
            "`const KEEP: bool = true;`",
        ),
        ("const K = 9; output a = topk(z, k = K);", "`k` is 9, more than the 8", ""),
        ("const K: i64 = -8; output a = reshape(z, shape = [0, K]);", "-8 is no extent", ""),
        (
            "const K: usize = -8; output a = reshape(z, shape = [0, 8]);",
            "the constant `K` is -8, which is no `usize`",
            "`const K: i64 = -8;`",
        ),
        (
            "const D: f32 = 1; output a = z * D;",
            "the constant `D` is 1, which is no `f32`",
            "`const D: i64 = 1;`",
        ),
        ("const D = -1.0; output a = huber(z, z, delta = D);", "`delta` is -1", ""),
        (
            "const K: f32 = 3.0; input b: dense[n, K]; output a = tanh(b);",
            "the constant `K` is a number, and no extent",
            "declare it as one: `const K: usize`",
        ),
        (
            "output a = z / (q as f64);",
            "no constant and no dimension is called `q`",
            "write its path, such as `crate::q`",
        ),
        (
            "label y: dense[m]; output a = z / (m as f64) + sum(y) * 0;",
            "the dimension `m` is known from labels alone",
            "declare an input that has the extent `m`",
        ),
        ("output a = (z + 1) as f32;", "expected a value", "leave `as` out"),
        (
            "output a = exp(x * crate::ONE);",
            "`exp` of a `csr` value would be dense",
            "write `expm1(multiply(x, crate::ONE))`",
        ),
    ] {
        let (text, found) = only(&said(&model(lines)));
        assert!(text.contains(message) && found.contains(help), "{lines}: {text}\n{found}");
    }
}

#[test]
fn l8_a_part_in_brackets_is_one_mistake_with_the_call_that_takes_it() {
    for (part, call) in [
        ("z[0, :]", "slice(z, begin = [0, _], end = [1, _])"),
        ("z[:, 0]", "slice(z, begin = [_, 0], end = [_, 1])"),
        ("tanh(z[:, 1:3])", "slice(z, begin = [_, 1], end = [_, 3])"),
        ("z[.., -1] + 1", "slice(z, begin = [_, -1], end = [_, _])"),
        ("z[1:3]", "slice(z, begin = [1], end = [3])"),
        ("z[::2, :]", "slice(z, begin = [_, _], end = [_, _], step = [2, _])"),
        ("z[i, :]", "with an entry for each axis"),
        ("(z + 1)[0, :]", "slice(x, begin = [0, _], end = [1, _])"),
    ] {
        for line in [format!("output a = {part};"), format!("let a = {part}; output b = a;")] {
            let (text, help) = only(&said(&model(&line)));
            let one = "[NNZ0012] a part of an array is taken by an operator";
            assert!(text.starts_with(one), "{line}: {text}");
            assert!(help.contains(call), "{line}: {help}");
        }
    }
}
