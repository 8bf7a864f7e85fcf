//! The examples on the pages of the catalogue, through the front end.

use crate::expand;
use sparse_core::diagnostics::{Code, Diagnostic};

pub(super) fn said(graph: &str) -> Vec<Diagnostic> {
    let (_, report) = expand::front(graph.parse().unwrap(), |_| String::new());
    report.diagnostics().to_vec()
}

#[test]
fn examples_give_their_code_and_are_mended() {
    let mut wrong = Vec::new();
    for code in Code::ALL {
        for example in code.examples() {
            let said = said(example.text);
            let found: Vec<Code> = said.iter().map(|diagnostic| diagnostic.code).collect();
            let holds = if example.is_wrong { found == [*code] } else { found.is_empty() };
            if !holds {
                let said: Vec<String> = said.iter().map(Diagnostic::text).collect();
                wrong.push(format!("{}:\n{}says {said:#?}", code.code(), example.text));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn independent_errors_of_a_pass_are_all_said_and_followers_are_not() {
    let codes = |text: &str| said(text).iter().map(|one| one.code.code()).collect::<Vec<_>>();
    // Parse: each of the lines is wrong by itself; `b` and `w` stay known.
    let parse = "model M {
        input x: csr[n, 2 * d];
        let a = x[0];
        let b = tanh(a)
        param w: row_sparse[d, 1];
        param(fixed) v: row_sparse[d, 1] = Normal { std: 1.0 };
        output dot(b, w);
        output c = dot(b, w);
    }";
    let mut found = codes(parse);
    found.sort_unstable();
    assert_eq!(
        found,
        ["NNZ0007", "NNZ0008", "NNZ0009", "NNZ0012", "NNZ0013", "NNZ0014", "NNZ0015"]
    );
    let names = "model M {
        input x: csr[n, d];
        let a = lgo(x);
        let b = tanh(a);
        let c = dot(b, u);
        let e = clip(c, lower = 0);
        let f = sum(x, axes = 1);
        output g = h + e + f;
        let h = exp(a);
    }";
    assert_eq!(codes(names), ["NNZ0102", "NNZ0101", "NNZ0109", "NNZ0105", "NNZ0112"]);
    let shapes = "model M {
        input x: csr[n, d];
        param v: row_sparse[e, 1] = Zeros;
        param u: dense[d, 2, 2] = Zeros;
        let a = dot(x, v);
        let b = tanh(a);
        output c = dot(x, u) + b;
        output s = sum(x, axis = 3);
    }";
    assert_eq!(codes(shapes), ["NNZ0201", "NNZ0202", "NNZ0205"]);
    let storage = "model M {
        input x: csr[n, d];
        input r: row_sparse[n, d];
        let a = log(x);
        let b = a + r;
        output c = exp(b);
        output t = x + r;
    }";
    assert_eq!(codes(storage), ["NNZ0301", "NNZ0301"]);
}

/// Suggestions name what is near, wherever a name is looked up.
#[test]
fn misspelt_words_are_mended() {
    for (line, mended) in [
        ("imput z: csr[n, d];", "input"),
        ("input z: row_sprase[n, d];", "row_sparse"),
        ("fallback = wran;", "warn"),
        ("input z: dense<u23>[n];", "u32"),
        ("param w: dense[d] = Zerso;", "Zeros"),
        ("param w: dense[d] = Normal { mena: 0.0, std: 1.0 };", "mean"),
        ("output z = tahn(x);", "tanh"),
        ("output z = sum(x, aixs = 0);", "axis"),
        ("output z = dot(x, x, transpose_rhs = true, out = desne);", "dense"),
    ] {
        let text = format!("model M {{ input x: csr[n, d]; {line} output y = tanh(x); }}");
        let help = said(&text)[0].help.clone().unwrap_or_default();
        assert!(help.contains(&format!("`{mended}`")), "{line}: {help}");
    }
}

/// What looks odd is refused with a place, or means what it says: nothing makes the macro panic.
#[test]
fn odd_numbers_and_names_are_refused_or_mean_what_they_say() {
    let of_x = |lines: &str| {
        said(&format!("model M {{ input x: csr[n, d]; output y = tanh(x); {lines} }}"))
            .iter()
            .map(|one| one.code.code())
            .collect::<Vec<_>>()
    };
    assert_eq!(of_x("output z = x * 1e39;"), ["NNZ0012"]);
    assert_eq!(of_x("output z = x * 1e999;"), ["NNZ0012"]);
    assert_eq!(of_x("input z: csr[n, r#type]; output t = tanh(z);"), ["NNZ0013"]);
    assert_eq!(of_x("let _ = tanh(x);"), ["NNZ0011"]);
    assert_eq!(of_x("output z = x * 1e30 * 1e30;"), [""; 0]);
    assert_eq!(of_x("dtype = f64; output z = x * 1e39;"), [""; 0]);
    assert_eq!(of_x("; output z = sum(x, axis = (1));"), [""; 0]);
    assert_eq!(of_x("param w: dense[2] = Ones; loss sum(w); loss 1.0 / 2.0;"), ["NNZ0407"]);
    assert_eq!(of_x("param w: dense[2] = Ones; loss sum(w); loss 0.0 / 0.0;"), ["NNZ0012"]);
    let said_of = |lines: &str| {
        let text = format!("model M {{ input x: csr[n, d]; output y = tanh(x); {lines} }}");
        said(&text).iter().map(Diagnostic::text).collect::<Vec<_>>().join("\n")
    };
    assert!(said_of("let _ = tanh(x);").starts_with("[NNZ0011] `_` is no name"));
    for (number, called) in [("dense(3)", "dense"), ("sum(3)", "sum")] {
        let said = said_of(&format!("output z = {number};"));
        assert!(
            said.starts_with(&format!("[NNZ0315] `{called}` is computed of arrays, and 3 is")),
            "{said}"
        );
    }
    for call in ["sum::<f32>(x)", "x.sum::<f32>()", "blocks::<f32>::sum(x)"] {
        let said = said_of(&format!("output z = {call};"));
        assert!(said.starts_with("[NNZ0012] ") && said.contains("no type parameters"), "{said}");
    }
    assert_eq!(
        said("model r#type { input x: csr | dense[n, d]; output y = tanh(x); }"),
        Vec::new()
    );
}
