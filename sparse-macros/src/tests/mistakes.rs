//! Mistakes of somebody new: one error each, at its place, in words that mend it.

use super::diagnostics::said;
use sparse_core::diagnostics::Diagnostic;
use sparse_core::foreign_names::{FOREIGN_NAMES, Instead};

fn model(lines: &str) -> Vec<Diagnostic> {
    said(&format!(
        "model M {{ input x: csr[n, d]; input z: dense[n, d]; output o = x + dense(z) * 0; {lines} }}"
    ))
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
fn a_line_of_another_language_is_told_in_ours() {
    for (line, message, help) in [
        ("y = tanh(z); output y;", "`y` does not begin a declaration", "let y = …;"),
        ("let mut y = tanh(z); output y;", "values do not change", "leave `mut` out"),
        ("let (a, b) = tanh(z); output a; output b;", "expected identifier", ""),
        ("loss = sum(z);", "a loss has no name", "write `loss squared_error(…);`"),
        ("loss l = sum(z);", "a loss has no name", "write `loss squared_error(…);`"),
        ("output y = z % 2;", "expected `+`, `-`, `*`, `/` or a comparison", "modulo(x, y)"),
        ("output y = z ^ 2;", "expected `+`, `-`, `*`, `/` or a comparison", "power(x, y)"),
        ("output y = z && x;", "expected `+`, `-`, `*`, `/` or a comparison", "logical_and(x, y)"),
        ("output y = z @ z;", "expected `;`", "write `dot(x, y)`"),
        ("loss z @ z;", "expected `;`", "write `dot(x, y)`"),
        ("output y = concat([z, z]);", "expected a value", "without brackets: `concat(x, y)`"),
        ("output y = !z;", "expected a value", "logical_not(x)"),
        ("output y = if z > 0 { z } else { x };", "expected a value", "select("),
        (
            "block f(a) { a } output y = f(z);",
            "a block does not stand in a model",
            "beside the model",
        ),
        (
            "operator f(a) { each = g; } output y = f(z);",
            "an operator does not stand in a model",
            "beside the model",
        ),
        (
            "output a = tanh(z); output y = a;",
            "no value is called `a`",
            "write `let a = …;` and then",
        ),
        ("output y = matmul(z, z);", "`matmul`", "write `dot(x, y)`"),
        ("output y = cat(z, z);", "`cat`", "write `concat(x, z, axis = 1)`"),
        ("loss mse(x, z);", "`mse`", "write `squared_error(score, label)`"),
        ("output y = linear(z, z);", "`linear`", "write `nnz::blocks::linear(x, y, bias)`"),
        (
            "output y = sum(z, 0);",
            "`sum` takes 1 operand (x), but 2 are given",
            "write `sum(x, axis = …)`",
        ),
        (
            "output y = sum(z) / n;",
            "no value is called `n`",
            "`n` is a dimension: as a number write `n as f64`",
        ),
        (
            "output y = z * LAMBDA;",
            "no value is called `LAMBDA`",
            "write its path, such as `crate::LAMBDA`, or declare it in the model",
        ),
        (
            "const K; output y = z * K;",
            "`K` is an extent, and no value",
            "as a number write `K as f64`",
        ),
        (
            "input k: dense<i32>[n]; output y = take(z, k);",
            "no element type is called `i32`",
            "for ids `u32`, `u64` or `i64`",
        ),
        (
            "input csr[n, d] y; output t = tanh(y);",
            "the type of `csr` is missing",
            "input csr: dense[…]",
        ),
        ("pub input y: csr[n, d]; output t = tanh(y);", "expected a declaration", ""),
        ("let y = z; y += 1; output y;", "`y` does not begin a declaration", "begin with `const`"),
        ("dtype = f64; dtype = f64;", "`dtype` is given twice", "leave one of them out"),
        ("fuse = no;", "`fuse` cannot be `no`", "write one of `on`, `off`"),
        ("dtype = f128;", "`dtype` cannot be `f128`", "write one of `f32`, `f64`"),
        (
            "const K = 2; input y: dense[n, 2 * K]; output t = tanh(y);",
            "`2 * K` is no extent",
            "write `const NAME = 2 * K;`",
        ),
        ("dtyp = f64;", "`dtyp` does not begin a declaration", "write `dtype`"),
        ("output y = z[0];", "expected a value", "write `slice(x, begin = …, end = …)`"),
        ("output y = z as f32;", "expected a value", "leave `as` out"),
        ("output y = z ** 2;", "expected a value", "write `power(x, y)`"),
        ("output y = z.T;", "expected a value", "write `transpose(x)`"),
        (
            "output y = dot(z);",
            "`dot` takes 2 operands (lhs, rhs), but 1 is given",
            "write `dot(lhs, rhs)`",
        ),
        ("output y = tanh(target);", "no value is called `target`", "declared above are `x`, `z`"),
        ("fuse = on; fuse = off;", "`fuse` is given twice", "leave one of them out"),
        ("let gen = tanh(z); output y = gen;", "`gen` cannot be a name", "gen_"),
        ("output y = z * 1e39;", "the number is beyond the range of `f32`: 1e39", "dtype = f64"),
        (
            "output y = z * (1e30 * 1e30);",
            "what these numbers come to is beyond the range of `f32`: 1",
            "dtype = f64",
        ),
        ("output y = z + 1 / 0;", "beyond the range of `f32`: inf", ""),
        ("output y = z + 0 / 0;", "what these numbers come to is no number", ""),
        (
            "#![doc = \"About.\"] let y = tanh(z); output y;",
            "`#![doc]` has no effect on a part of a graph",
            "write `/// …` before",
        ),
    ] {
        let (text, found) = only(&model(line));
        let helped = found.contains(help) && found.is_empty() == help.is_empty();
        assert!(text.contains(message) && helped, "{line}: {text} {found}");
    }
}

#[test]
fn uses_of_a_name_that_cannot_be_one_are_no_errors_too() {
    for line in ["let r#type = tanh(z); output y = r#type;", "let __y = tanh(z); output y = __y;"] {
        let (text, _) = only(&model(line));
        assert!(text.starts_with("[NNZ0011]"), "{line}: {text}");
    }
}

/// Bags are converted, not the table.
#[test]
fn bags_that_are_dense_are_told_how_to_be_bags() {
    for (table, message) in [
        ("row_sparse", "`embedding_bag` of `dense` and `row_sparse`"),
        ("dense", "`embedding_bag` of `dense` and `dense` has no kernel"),
    ] {
        let (text, help) = only(&said(&format!(
            "model M {{ input z: dense[n, d]; param w: {table}[d, 2] = Zeros; output y = embedding_bag(z, w); }}"
        )));
        let way_out = "write `embedding_bag(csr(z), w)`";
        assert!(text.contains(message) && help.contains(way_out), "{text} {help}");
    }
}

/// Formulas of an operator have two names of their own.
#[test]
fn operands_have_names_that_mean_one_thing() {
    let of_f = "model M { input x: dense[n]; output y = f(x); }";
    for (operand, message) in [
        ("out", "`out` stands for the result"),
        ("grad", "`grad` stands for the gradient that arrives"),
    ] {
        let lines = format!("each = crate::g; gradient {operand} = {operand}; at_zero = 0;");
        let item = format!("operator f({operand}) {{ {lines} }}");
        let (text, help) = only(&said(&format!("{item} {of_f}")));
        assert!(text.contains(message) && help.contains("another name"), "{text}");
    }
    // Of an operator without formulas they are names like others.
    let plain = "operator f(grad) { each = crate::g; at_zero = 0; }";
    assert_eq!(said(&format!("{plain} {of_f}")), Vec::new());
    let twice = "operator f(x, x) { rule dense dense -> dense = crate::g; }";
    let (text, _) = only(&said(&format!("{twice} {of_f}")));
    assert!(text.contains("`x` names two operands"), "{text}");
}

/// A value that is called as a storage type is a value.
#[test]
fn values_called_as_storage_types_are_given_by_name() {
    let block = "block double(x) { x * 2 }";
    let model = "model M { input dense: csr[n, d]; output y = double(x = dense); }";
    assert_eq!(said(&format!("{block} {model}")), Vec::new());
}

/// A loss that does not parse takes no name away.
#[test]
fn a_broken_source_loses_only_the_broken_declaration() {
    let said = model("loss tanh[0]; let tanh = exp(z); output y = tanh;");
    assert!(only(&said).0.starts_with("[NNZ0012]"));
}

#[test]
fn inputs_of_broken_blocks_get_no_warning() {
    let (text, _) = only(&said(
        "block f(x) { x * w }
         model M { input x: dense[n]; param(frozen) w: dense[n] = Ones; output y = f(x); }",
    ));
    assert!(text.contains("no value is called `w`"), "{text}");
}

#[test]
fn an_item_that_ends_too_early_says_what_is_missing() {
    for (text, missing) in [
        ("model A", "expected `{` and the model's declarations"),
        ("model A (input x: dense[n]; output y = tanh(x);)", "expected `{` and the model's"),
        ("operator f[x] { each = g; }", "expected `(` and the operator's operands"),
        ("block f(x) (x * 2)", "expected `{` and the block's value"),
        ("block f", "expected `(` and the block's parameters"),
        ("block f(x)", "expected `{` and the block's value"),
        ("operator f(x)", "expected `{` and what computes the operator"),
        ("model A { input x: dense[n]; output y = tanh(x); } model B", "expected `{`"),
        ("model { input x: dense[n]; output y = tanh(x); }", "expected the name of the model"),
        (
            "model A<const K: usize> { input x: dense[K]; output y = tanh(x); }",
            "write `const K;` in it",
        ),
        ("fn f() {}", "items of Rust stand outside of `graph!`"),
    ] {
        let (found, _) = only(&said(text));
        assert!(found.contains(missing), "{text}: {found}");
    }
}

#[test]
fn uses_of_unparsed_declarations_are_no_errors() {
    let of_f = "model M { input x: dense[n]; output y = f(x); }";
    for (item, message) in [
        ("block f(x) -> dense { x * 2 }", "expected `{` and the block's value"),
        ("operator f { each = g; }", "expected `(` and the operator's operands"),
        ("operator f(x) { each = |x| x * 2.0; }", "[NNZ0605] expected the path of a function"),
        ("operator f(x) { each = 2.0; }", "[NNZ0605] expected the path of a function"),
    ] {
        let (text, _) = only(&said(&format!("{item} {of_f}")));
        assert!(text.contains(message), "{item}: {text}");
    }
}

#[test]
fn semicolons_between_items_say_nothing() {
    let plain = "{ input x: dense[n]; output y = tanh(x); }";
    assert_eq!(said(&format!("model A {plain}; model B {plain};")), Vec::new());
}

#[test]
fn a_shape_rule_has_no_sign() {
    let (text, help) = only(&said(
        "operator f(x) { rule dense -> dense = g; shape = \"[n] -> [n]\"; }
         model M { input x: dense[n]; output y = f(x); }",
    ));
    assert!(
        text.starts_with("[NNZ0603]") && help.contains("shape [n, k] -> [n];"),
        "{text} {help}"
    );
}

/// Types of two models would have one name, which is nothing for the compiler of Rust to say.
#[test]
fn two_models_have_two_names() {
    let plain = "{ input x: dense[n]; output y = tanh(x); }";
    for (first, second) in [("A", "A"), ("A", "ABatch"), ("AOutputs", "A"), ("r#A", "A")] {
        let (text, _) = only(&said(&format!("model {first} {plain} model {second} {plain}")));
        assert!(text.starts_with("[NNZ0103]"), "{text}");
    }
    let family = "{ input x: csr | dense[n, d]; output y = tanh(x); }";
    let (text, _) = only(&said(&format!("model A {family} model ACsr {plain}")));
    assert!(text.starts_with("[NNZ0103] the model `A` has a type `ACsr` already"), "{text}");
}

/// What a declared gradient has for a shape is asked where it is used, and not told by what comes
/// of it.
#[test]
fn a_gradient_has_the_shape_of_its_operand() {
    let declared =
        "operator o(x) { rule dense -> dense = f; shape [n, k] -> [n]; gradient x = grad; }";
    for (parameter, value) in [("dense[2]", "o(x * w)"), ("dense[4, 2]", "o(w)")] {
        let text = format!(
            "{declared} model M {{ input x: dense[4, 2]; label y: dense[4]; param w: {parameter} = Ones;
             loss squared_error({value}, y) + 0.0 * mean(x); }}"
        );
        let (text, help) = only(&said(&text));
        assert!(text.starts_with("[NNZ0604]") && text.contains("has shape [4]"), "{text}");
        assert!(help.contains("[4, 2]: change `gradient x = …;`"), "{help}");
    }
}

/// Nothing is said in the words of Rust of a name that two declarations have, and nothing of what
/// reads it.
#[test]
fn the_first_of_two_declarations_counts() {
    for second in
        ["input x: dense[n, d];", "param x: row_sparse[d, 1] = Zeros;", "label x: dense[n];"]
    {
        let text = format!("model M {{ input x: csr[n, d]; {second} output y = tanh(x); }}");
        let (tokens, report) = crate::expand::front(text.parse().unwrap(), |_| String::new());
        let (text, help) = only(report.diagnostics());
        assert!(text.starts_with("[NNZ0103]") && help.contains("`x_2`"), "{text} {help}");
        let fields = tokens.to_string().matches("pub x :").count();
        assert_eq!(fields, 1, "{second}");
    }
}

/// What a loss reads by a broken block is not known, so that no parameter is said to be unused.
#[test]
fn parameters_that_a_broken_block_may_read_are_no_errors() {
    let (text, _) = only(&said(
        "block f(x, w) { dot(x, w) + missing }
         model M { input x: csr[n, d]; label y: dense[n, 1]; param w: row_sparse[d, 1] = Zeros;
                   loss squared_error(f(x, w), y); }",
    ));
    assert!(text.contains("no value is called `missing`"), "{text}");
}

#[test]
fn an_operator_without_a_gradient_says_how_to_declare_one() {
    let (text, help) = only(&said(
        "operator f(x) { each = g; }
         model M { input x: csr[n, d]; label y: dense[n, 1]; param w: row_sparse[d, 1] = Zeros;
                   loss squared_error(f(dot(x, w)), y); }",
    ));
    assert!(text.starts_with("[NNZ0402] `f` has no gradient with respect to"), "{text}");
    assert!(help.starts_with("write `gradient x = …;` in the declaration of `f`"), "{help}");
}

/// Weights the other way round are what users of other libraries write.
#[test]
fn weights_that_are_the_other_way_round_say_so() {
    for (weight, loss, expected) in [
        (
            "row_sparse[1, d]",
            "dot(x, w)",
            "write `dot(x, w, transpose_rhs = true)`, or declare `w` with the shape [d, 1]",
        ),
        (
            "dense[d, 1]",
            "dot(z, w, transpose_rhs = true)",
            "leave `transpose_rhs` out, or declare `w` with the shape [1, d]",
        ),
        (
            "dense[d, 1]",
            "fully_connected(z, w)",
            "write `dot(z, w)`, or declare `w` with the shape [1, d]",
        ),
    ] {
        let (text, help) = only(&said(&format!(
            "model M {{ input x: csr[n, d]; input z: dense[n, d]; label y: dense[n, 1]; param w: {weight} = Zeros;
                       loss squared_error({loss}, y); output o = sum(x) + sum(z); }}"
        )));
        assert!(text.starts_with("[NNZ0201]"), "{text}");
        assert_eq!(help, expected, "{text}");
    }
}

/// A weight of a loss is told by what it is.
#[test]
fn a_number_is_no_weight_of_rows() {
    let (text, help) = only(&said(
        "model M { input x: csr[n, d]; label y: dense[n, 1]; param w: row_sparse[d, 1] = Zeros;
                   loss squared_error(dot(x, w), y, 2.0); }",
    ));
    assert!(
        text.starts_with("[NNZ0202]") && help.contains("`input weight: dense[n];`"),
        "{text} {help}"
    );
    assert!(help.ends_with("write `2.0 * squared_error(…)`"), "{help}");
}

/// The values that the texts of foreign names are written in.
const VALUES: [(&str, &str); 20] = [
    ("z", "input z: dense[n, 4];"),
    ("x", "input x: dense[n, 4];"),
    ("y", "param(frozen) y: dense[4, 3] = Ones;"),
    ("left", "input left: dense[n, 2, 4];"),
    ("right", "input right: dense[n, 4, 3];"),
    ("p", "input p: dense[n, 4];"),
    ("q", "input q: dense[n, 4];"),
    ("mask", "param(frozen) mask: dense[4] = Ones;"),
    ("kept", "input kept: dense[n, 4];"),
    ("bias", "param(frozen) bias: dense[1] = Zeros;"),
    ("ids", "input ids: dense<u32>[n];"),
    ("table", "param(frozen) table: row_sparse[d, 3] = Ones;"),
    ("weight", "param(frozen) weight: row_sparse[d, 1] = Ones;"),
    ("bags", "input bags: csr[n, d];"),
    ("score", "input score: dense[n, 1];"),
    ("target", "input target: dense[n, 1];"),
    ("better", "input better: dense[n, 1];"),
    ("worse", "input worse: dense[n, 1];"),
    ("logits", "input logits: dense[n, 3];"),
    ("label", "label label: dense[n, 1];"),
];

#[test]
fn l7_foreign_names_are_told_and_what_is_proposed_compiles() {
    let blocks = "block linear(x, w, b = 0.0) { dot(x, w) + b }
        block factorization_machine(x, w, v, b = 0.0) { linear(x, w, b) + pairwise_interaction(x, v) }";
    let mut wrong = Vec::new();
    for (name, instead) in FOREIGN_NAMES {
        let (message, help) = only(&model(&format!("output y = {name}(z);")));
        let expected = format!("[NNZ0102] no operator or block is called `{name}`\n");
        if !message.starts_with(&expected) {
            wrong.push(format!("{name}: {message}: {help}"));
            continue;
        }
        let Instead::Write(text) = instead else {
            assert!(help.contains("docs/operators/README.md"), "{name}: {help}");
            continue;
        };
        assert_eq!(help, format!("write `{text}`"));
        let words: Vec<&str> = text.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
        let class = words.contains(&"class").then_some("label class: dense<u32>[n];");
        let used = VALUES.iter().filter(|(value, _)| words.contains(value));
        let declared: String = used.map(|(_, line)| *line).chain(class).collect();
        // A loss needs something to train.
        let of_labels = words.contains(&"label") || words.contains(&"class");
        let line = if of_labels {
            let text = text.replace("score,", "score * k,").replace("logits,", "logits * k,");
            format!("param k: dense[1] = Ones; loss {text};")
        } else {
            format!("output o = {text};")
        };
        let text = format!("{blocks} model M {{ {declared} {line} }}").replace("nnz::blocks::", "");
        let said = said(&text);
        if !said.is_empty() {
            let said: Vec<String> = said.iter().map(Diagnostic::text).collect();
            wrong.push(format!("{name}: `{text}` says {said:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn l1_weights_of_samples_belong_to_the_loss() {
    for (loss, text) in [
        ("squared_error(dot(z, w), y) * weight", "[NNZ0404]"),
        ("weight * squared_error(dot(z, w), y)", "[NNZ0404]"),
        ("mean(squared_error(dot(z, w), y) * weight)", "[NNZ0409]"),
        ("sum(2 * (weight * squared_error(dot(z, w), y)))", "[NNZ0409]"),
    ] {
        for weight in ["n", "n, 1"] {
            let (found, help) = only(&said(&format!(
                "model M {{ input z: dense[n, d]; input weight: dense[{weight}]; label y: dense[n, 1];
                           param w: dense[d, 1] = Zeros; loss {loss}; }}"
            )));
            assert!(found.starts_with(text), "{found}");
            assert!(help.contains("squared_error(dot(z, w), y, weight = weight)"), "{help}");
        }
    }
    let with_weight = said(
        "model M { input z: dense[n, d]; input weight: dense[n]; label y: dense[n, 1]; param w: dense[d, 1] = Zeros;
                   loss 2 * squared_error(dot(z, w), y, weight = weight); }",
    );
    assert_eq!(with_weight, Vec::new());
}

#[test]
fn l5_no_gradient_reaches_a_label_through_stop_gradient() {
    for target in
        ["reward + 0.9 * stop_gradient(next)", "stop_gradient(reward + next)", "sign(next)"]
    {
        let model = |target: &str| {
            said(&format!(
                "model M {{ input z: dense[n, d]; input x: dense[n, d]; input reward: dense[n, 1];
                           param w: dense[d, 1] = Ones; let next = dot(x, w);
                           loss squared_error(dot(z, w), {target}); output o = sum(reward); }}"
            ))
        };
        assert_eq!(model(target), Vec::new(), "{target}");
        let (text, _) = only(&model("reward + next"));
        assert!(text.starts_with("[NNZ0402]"), "{text}");
    }
}

#[test]
fn l8_mistakes_of_somebody_new_are_told_with_the_text_to_write() {
    for (lines, text, expected) in [
        (
            "param w: row_sparse[d, 1] = Zeros; output y = dot(w, x);",
            "[NNZ0201]",
            "write `dot(x, w)`",
        ),
        (
            "input q: csr[n d]; output y = tanh(q);",
            "[NNZ0013]",
            "write a comma between extents: `[n, d]`",
        ),
        ("output y = max(0, 1 - z);", "[NNZ0104]", "write `maximum(x, y)` of two values"),
        ("output y = min(z, 1);", "[NNZ0104]", "write `minimum(x, y)` of two values"),
        ("output y = select(z > 0, z, 0.0);", "[NNZ0202]", "write `zeros_like(z)` for the number"),
        (
            "output y = select(z > 0, 0.5, z);",
            "[NNZ0202]",
            "write `0.5 * ones_like(z)` for the number",
        ),
        (
            "output y = z[:, 0];",
            "[NNZ0012] a part of an array is taken by an operator",
            "write `slice(z, begin = [_, 0], end = [_, 1])`",
        ),
        (
            "for i in 0..10 { let y = z; }",
            "a loop does not stand in a model",
            "with what repeats as a `block`",
        ),
        (
            "for i in 0..10 { let y = z; } output p = tanh(z);",
            "a loop does not",
            "write each round out",
        ),
    ] {
        let (found, help) = only(&said(&format!(
            "model M {{ input x: csr[n, d]; input z: dense[n, d]; output o = sum(x) + sum(z); {lines} }}"
        )));
        assert!(found.contains(text), "{lines}: {found}");
        assert!(help.contains(expected), "{lines}: {help}");
    }
    let (text, _) = only(&said("model M { input q: csr<n, d>; output y = tanh(q); }"));
    assert!(text.contains("extents stand in square brackets: `csr[n, …]`"), "{text}");
    let (text, help) = only(&said(
        "model M { input a: csr[n, n]; input x: csr[n, d]; param w: row_sparse[d, 1] = Zeros; output y = dot(dot(a, x), w); }",
    ));
    assert!(text.starts_with("[NNZ0301]"), "{text}");
    assert!(
        help.starts_with("write `dot(a, dot(x, w))`, which is the same product; or write"),
        "{help}"
    );
}
