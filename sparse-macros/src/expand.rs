//! Expansion of `graph!`, in one function.

use crate::report::Report;
use crate::{emit, parse, resolve};
use proc_macro2::{Span, TokenStream};
use sparse_core::alternatives::compile_variants;

/// Expands all models. A model with an error still gives its types, so that code that uses it is
/// checked.
///
/// `place` says where a token is written, and in which expansion, which the compiler of Rust alone
/// knows.
pub(crate) fn graph(input: TokenStream, place: fn(Span) -> String) -> TokenStream {
    let (mut tokens, report) = front(input, place);
    tokens.extend(report.into_tokens());
    tokens
}

/// The items of all models, and what there is to say of them.
pub(crate) fn front(input: TokenStream, place: fn(Span) -> String) -> (TokenStream, Report) {
    let mut report = Report::default();
    let Some(source) = parse::source_of_depth(input.clone(), &mut report) else {
        return (TokenStream::new(), report);
    };
    if let Some(import) = source.unfetched() {
        // What there is to say is said when everything is there.
        return (emit::fetch(import, input), Report::default());
    }
    let mut library = resolve::library(&source, &mut report);
    resolve::check_blocks(&mut library, &mut report);
    let mut tokens: TokenStream = emit::blocks(&source, place);
    let operators = library.operators();
    let mut types = emit::Types::default();
    for model in &source.models {
        let before = report.n_errors();
        let (graph, unnamed) = resolve::resolve(model, &library, &mut report);
        let resolved = report.n_errors() == before && !model.broken;
        let compiled = if resolved { compile_variants(graph) } else { emit::uncompiled(&graph) };
        report.extend(compiled.diagnostics.iter().cloned());
        if !types.take(model, &compiled, &mut report) {
            continue;
        }
        emit::check_specialized(model, &compiled, resolved, &mut report);
        let broken = !resolved || report.n_errors() > before;
        tokens.extend(emit::model(model, &unnamed, &compiled, &operators, broken, &report));
    }
    (tokens, report)
}
