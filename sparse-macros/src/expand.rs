//! `graph!` in one function.

use crate::report::Report;
use crate::{emit, parse, resolve};
use proc_macro2::TokenStream;
use sparse_core::compile::compile;

/// Expands all models. A model with an error still gives its types, so that code that uses it is checked.
pub(crate) fn graph(input: TokenStream) -> TokenStream {
    let (mut tokens, report) = front(input);
    tokens.extend(report.into_tokens());
    tokens
}

/// The items of all models, and what there is to say of them.
pub(crate) fn front(input: TokenStream) -> (TokenStream, Report) {
    let mut report = Report::default();
    let models = parse::models(input, &mut report);
    let mut tokens = TokenStream::new();
    for model in &models {
        let before = report.n_errors();
        let graph = resolve::resolve(model, &mut report);
        let resolved = report.n_errors() == before && !model.broken;
        let compiled = if resolved { compile(graph) } else { emit::uncompiled(graph) };
        let broken = !resolved || compiled.errors().next().is_some();
        report.extend(compiled.diagnostics.iter().cloned());
        tokens.extend(emit::model(model, &compiled, broken));
    }
    (tokens, report)
}
