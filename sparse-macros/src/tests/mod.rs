//! Expansions without a compiler run: what comes out is Rust, with the parts that the design
//! promises.

mod blocks;
mod constants;
mod diagnostics;
mod grown;
mod hygiene;
mod language;
mod large;
mod mistakes;
mod storage;

use crate::{expand, table};
use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use quote::{format_ident, quote};

fn pretty(tokens: TokenStream) -> String {
    let file = syn::parse2::<syn::File>(tokens).unwrap();
    prettyplease::unparse(&file)
}

fn linear_regression() -> TokenStream {
    quote! {
        /// Least squares.
        pub model LinearRegression {
            input x: csr[n, d];
            label y: dense[n, 1];
            param w: row_sparse[d, 1] = Normal { mean: 0.0, std: 0.01 };
            param b: dense[1] = Zeros;
            let pred = dot(x, w) + b;
            loss squared_error(pred, y);
            output pred;
        }
    }
}

/// What tokens from nowhere expand to.
fn expanded(tokens: TokenStream) -> TokenStream {
    expand::graph(tokens, |_| String::new())
}

#[test]
fn a_model_has_the_promised_items() {
    let text = pretty(expanded(linear_regression()));
    for part in [
        "pub struct LinearRegression {",
        "pub w: ::nnz::__private::Parameter<",
        "pub struct LinearRegressionBatch<'a> {",
        "pub x: ::nnz::__private::CsrView<'a, ::nnz::__private::f32>",
        "pub struct LinearRegressionOutputs {",
        "pub struct LinearRegressionGrads {",
        "pub w: ::nnz::__private::RowSparse<::nnz::__private::f32>",
        "impl ::nnz::__private::Model for LinearRegression",
        "::nnz::__private::linear::step",
        "squared_error::cpu::row",
        "/// Least squares.",
        "step: one loop over the rows of x",
    ] {
        assert!(text.contains(part), "no `{part}` in\n{text}");
    }
    assert!(!text.contains("unsafe"));
    assert!(!text.contains("compile_error"));
}

/// The documentation of an item has the table, that of a field its line.
#[test]
fn emitted_items_show_the_plan() {
    let text = pretty(expanded(linear_regression()));
    let line_before = |field: &str| {
        let (before, _) = text.split_once(field).unwrap();
        let table = before.rsplit_once("```text").unwrap().1;
        let row = table.split_once("```").unwrap().0.lines().skip(2);
        row.flat_map(str::split_whitespace).collect::<Vec<_>>().join(" ")
    };
    let private = "::nnz::__private";
    for (field, line) in [
        (
            format!("pub w: {private}::Parameter<"),
            "w [d, 1] row_sparse row_sparse 4·d parameter, decays",
        ),
        (format!("pub x: {private}::CsrView<"), "x [n, d] csr 8·nnz(x) + 8·n + 8 input"),
        (
            format!("pub pred: {private}::Dense<"),
            "pred [n, 1] dense 4·n output add_dense_dense(%4, b) *",
        ),
        (
            format!("pub w: {private}::RowSparse<"),
            "grad w [d, 1] row_sparse 12·columns(x) gradient dot_csr_transposed_dense(x, %7) *",
        ),
    ] {
        assert_eq!(line_before(&field), line, "{text}");
    }
    let (before, _) = text.split_once("pub struct LinearRegression {").unwrap();
    assert!(
        before.contains("\n# Plan\n") && before.contains("\nrows of w: a batch reads"),
        "{text}"
    );
    let constant = text.split_once("const PLAN").unwrap().1;
    assert!(constant.contains("\"dot_csr_row_sparse\""), "{text}");
}

/// A model with a fallback warns once, when it is first made; only under `fallback = warn`.
#[test]
fn fallbacks_are_told_once() {
    let model = |fallback: TokenStream| {
        pretty(expanded(quote! {
            pub model M {
                fallback = #fallback;
                input b: csr[n, d];
                output logarithm = log(b);
            }
        }))
    };
    let text = model(quote!(warn));
    assert!(text.contains("::nnz::__private::warn_of_fallbacks("), "{text}");
    assert!(text.contains("fallback: dense_csr(b)"), "{text}");
    assert!(!model(quote!(allow)).contains("warn_of_fallbacks"));
}

#[test]
fn expansion_is_the_same_every_time() {
    let once = expanded(linear_regression()).to_string();
    assert!((0..20).all(|_| expanded(linear_regression()).to_string() == once));
}

#[test]
fn a_broken_model_keeps_its_types_and_reports_each_error() {
    let text = pretty(expanded(quote! {
        model Broken {
            input x: csr[n, d];
            param w: row_sparse[d, 1] = Zeros;
            let a = lgo(x);
            let b = tanh(a);
            let c = dot(x, u);
            output b;
        }
    }));
    assert_eq!(text.matches("compile_error!").count(), 2, "{text}");
    assert!(
        text.contains("[NNZ0102] no operator or block is called `lgo`\\nhelp: write `log`"),
        "{text}"
    );
    assert!(text.contains("[NNZ0101] no value is called `u`"));
    assert!(text.contains("struct Broken {") && text.contains("fn train_step"));
}

#[test]
fn an_unfused_step_settles_computes_and_applies() {
    let text = pretty(expanded(quote! {
        pub model Two {
            fuse = off;
            input x: csr[n, d];
            label y: dense[n, 1];
            param w: row_sparse[d, 1] = Zeros;
            loss squared_error(dot(x, w), y);
        }
    }));
    let order = [
        "begin_step",
        "settle_read::<Self>",
        "loss_and_grads(self, __batch)",
        "apply_row_sparse",
        "end_step",
    ];
    let train = text.split_once("fn train_step").unwrap().1;
    let places: Vec<_> = order.iter().map(|part| train.find(part).unwrap()).collect();
    assert!(places.is_sorted(), "{train}");
}

/// rustc follows the types of a nest to a depth of 128.
#[test]
fn a_nest_of_many_reads_is_as_deep_as_the_logarithm_of_their_number() {
    fn depth(tokens: TokenStream) -> usize {
        let inner = tokens.into_iter().map(|token| match token {
            TokenTree::Group(group) => 1 + depth(group.stream()),
            _ => 0,
        });
        inner.max().unwrap_or(0)
    }
    let deepest = |products: usize| {
        let named = |letter| (0..products).map(move |place| format_ident!("{letter}{place}"));
        let (x, z): (Vec<_>, Vec<_>) = (named("x").collect(), named("z").collect());
        let w: Vec<_> = named("w").collect();
        let text = expanded(quote! {
            model M {
                #(input #x: csr[n, d];)*
                #(input #z: csr[n, d];)*
                input q: dense[n, 5000];
                label y: dense[n, 1];
                #(param #w: row_sparse[d, 1] = Zeros;)*
                param h: dense[5000, 1] = Zeros;
                let once = dot(q, h) #(+ dot(#z, #w))*;
                loss squared_error(once #(+ dot(#x, #w))*, y);
            }
        });
        let printed = text.to_string();
        for part in ["engine :: Read", "scatter_gradient :: Both"] {
            assert!(printed.contains(part), "{part}");
        }
        depth(text)
    };
    assert!(deepest(64) <= deepest(4) + 4);
}

#[test]
fn the_tables_are_rust() {
    let kernels = pretty(table::kernels());
    assert!(kernels.contains("fn dot_csr_transposed_dense_into_dense("));
    assert!(kernels.contains("crate::kernels::dot::cpu::csr_transposed_dense_into_dense("));
    let operators = pretty(table::operators());
    assert!(operators.contains("impl<T: Float> Dot<&Dense<T>> for Transposed<&Csr<T>>"));
    assert!(operators.contains("impl std::ops::Mul<f32> for &Csr<f32>"));
    assert!(!operators.contains("squared_error_gradient"));
}

/// No local of emitted code has a name that a user could give.
#[test]
fn parameters_may_be_called_anything() {
    let text = pretty(expanded(quote! {
        pub model Names {
            input batch: csr[n, d];
            label label: dense[n, 1];
            param loss: row_sparse[d, 1] = Zeros;
            param record: dense[1] = Zeros;
            let context = dot(batch, loss) + record;
            loss squared_error(context, label);
            output updater = context;
        }
    }));
    assert!(text.contains("record: __param_record") && text.contains("__out_updater"), "{text}");
}

/// Nor has a type or a type's parameter: a constant of the user's may be made of types of any name.
#[test]
fn types_may_be_called_anything() {
    let model = linear_regression();
    let text = expanded(quote!(#model)).to_string();
    assert!(text.contains("type __T =") && text.contains("< __R :"), "{text}");
    assert!(!text.contains("type T =") && !text.contains("< R :"), "{text}");
}

/// What a macro was given as `$k:literal` comes in a group without parentheses.
#[test]
fn fragments_of_macros_are_what_they_hold() {
    let fragment = |tokens| TokenTree::Group(Group::new(Delimiter::None, tokens));
    let (size, axis) = (fragment(quote!(3)), fragment(quote!(-1)));
    let text = expanded(quote! {
        model M { input x: dense[n, #size]; output y = sum(x, axis = #axis); }
    });
    assert!(!text.to_string().contains("compile_error"), "{text}");
}

/// For an editor, each name in an expression is a use of the field that it names.
#[test]
fn an_editor_is_told_of_every_use() {
    let text = pretty(expanded(quote! {
        pub model Names {
            input x: csr[n, d];
            label y: dense[n, 1];
            label v: dense[n];
            param w: row_sparse[d, 1] = Zeros;
            param(frozen) scale: dense[1] = Ones;
            let score = dot(x, w) * scale;
            let pred = score;
            loss squared_error(pred, y, weight = v);
            output pred;
        }
    }));
    let (_, names) = text.split_once("#[cfg(rust_analyzer)]").unwrap();
    for part in [
        "`dense[n, 1]` of `f32`",
        "score: ::nnz::__private::Dense<::nnz::__private::f32>,",
        "&__batch.x;",
        "&__model.w;",
        "&__grads.w;",
        "&__model.scale;",
        "&__names.score;",
        "&__outputs.pred;",
        "&__batch.y;",
        "&__batch.v;",
    ] {
        assert!(names.contains(part), "no `{part}`: {names}");
    }
    assert!(!names.contains("__grads.scale"), "{names}");
    assert!(!names.contains("__Declared"), "{names}");
}

/// A name that is being typed means nothing yet. The rest of the model has it beside every name
/// that it may become.
#[test]
fn an_editor_is_told_of_what_may_be_meant() {
    let text = pretty(expanded(quote! {
        pub model Names {
            input x: csr[n, d];
            label y: dense[n, 1];
            param weights: row_sparse[d, 1] = Zeros;
            let score = dot(x, wei) * self;
            loss squared_error(score, y);
            output pred = score;
        }
    }));
    let (_, names) = text.split_once("struct __Declared").unwrap();
    for part in ["weights: (),", "x: (),", "y: (),", "score: (),", "pred: (),", "&__declared.wei;"]
    {
        assert!(names.contains(part), "no `{part}`: {names}");
    }
    assert!(!names.contains("__declared.self"), "{names}");
}
