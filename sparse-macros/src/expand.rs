//! `graph!` in one function.

use crate::{emit, parse, report::Report, resolve};
use proc_macro2::TokenStream;
use sparse_core::compile::compile;

/// Expands all models. A model with an error still gives its types, so that code that uses it is checked.
pub(crate) fn graph(input: TokenStream) -> TokenStream {
    let mut report = Report::default();
    let models = parse::models(input, &mut report);
    let mut tokens = TokenStream::new();
    for model in &models {
        let before = report.has_errors();
        let graph = resolve::resolve(model, &mut report);
        let broken = report.has_errors() && !before || before;
        let compiled = if broken {
            emit::uncompiled(graph)
        } else {
            compile(graph)
        };
        let broken = broken || compiled.errors().next().is_some();
        report.extend(compiled.diagnostics.iter().cloned());
        tokens.extend(emit::model(model, &compiled, broken));
    }
    tokens.extend(report.into_tokens());
    tokens
}
