//! Blocks on their way to other `graph!`s.

use super::{expanded, pretty};
use quote::quote;

#[test]
fn a_block_is_kept_with_what_it_calls() {
    let text = pretty(expanded(quote! {
        /// Two layers.
        pub block two(x, w, v) { linear(tanh(linear(x, w)), v) }
        block linear(x, w) { dot(x, w) }
        block other(x) { x }
    }));
    let two = text.split_once("macro_rules! __nnz_block_linear").unwrap().0;
    assert!(two.starts_with("/// Two layers.\n#[doc(hidden)]\n#[macro_export]"), "{text}");
    for part in ["block two(x, w, v)", "block linear(x, w)", "::nnz::graph!", "@ block $key two"] {
        assert!(two.replace("@block", "@ block").contains(part), "no `{part}` in\n{two}");
    }
    assert!(!two.contains("block other"));
    assert!(text.contains("as two;") && !text.contains("compile_error"), "{text}");
}

/// Everything else waits until the block is there.
#[test]
fn a_block_of_elsewhere_is_fetched() {
    let graph = quote! {
        use a::{linear, deep::two as second};
        model M { input x: csr[n, d]; output y = b::c(linear(x)); }
    };
    let fetch = |tokens: proc_macro2::TokenStream| expanded(tokens).to_string();
    assert!(fetch(graph.clone()).starts_with("a :: linear ! { \"linear\" use a ::"));
    let as_operand =
        quote! { model M { input x: csr[n, d]; output y = add(lhs = b::c(x), rhs = x); } };
    assert!(fetch(as_operand).starts_with("b :: c ! { \"b::c\""));
    let linear = quote!(@block "linear" linear { block linear(x) { x } });
    let deep = quote!(@block "second" two { block two(x) { x } });
    let by_path = quote!(@block "b::c" c { block c(x) { tanh(dense(x)) } });
    assert!(fetch(quote!(#linear #graph)).starts_with("a :: deep :: two ! { \"second\" @ block"));
    assert!(fetch(quote!(#deep #linear #graph)).starts_with("b :: c ! { \"b::c\""));
    let text = pretty(expanded(quote!(#by_path #deep #linear #graph)));
    assert!(text.contains("struct M {") && text.contains("tanh_dense"), "{text}");
}
