//! Diagnostics as compile errors at the user's tokens.

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote_spanned};
use sparse_core::diagnostics::{Code, Diagnostic, Severity};
use sparse_core::ir::Place;
use std::rc::Rc;

/// Collects what there is to say, and which span each place of the graph stands for.
#[derive(Default)]
pub(crate) struct Report {
    places: Vec<(Span, Rc<str>)>,
    diagnostics: Vec<Diagnostic>,
}

impl Report {
    /// A place that stands for a span.
    pub(crate) fn place(&mut self, span: Span) -> Place {
        self.place_in(span, &Rc::from(""))
    }

    /// A place that stands for a span, with words on a second place: a macro has one span an error.
    pub(crate) fn place_in(&mut self, span: Span, words: &Rc<str>) -> Place {
        self.places.push((span, words.clone()));
        Place(self.places.len() as u32 - 1)
    }

    /// Says something at a span.
    pub(crate) fn error(&mut self, code: Code, span: Span, message: String, help: Option<String>) {
        let place = self.place(span);
        self.error_at(code, place, message, help);
    }

    /// Says something at a place.
    pub(crate) fn error_at(
        &mut self,
        code: Code,
        place: Place,
        message: String,
        help: Option<String>,
    ) {
        let diagnostic = Diagnostic::new(code, place, message);
        self.diagnostics.push(Diagnostic { help, ..diagnostic });
    }

    /// A syntax error of `syn`, with our code.
    pub(crate) fn syntax(&mut self, error: &syn::Error) {
        for part in error.clone() {
            self.error(Code::Syntax, part.span(), part.to_string(), None);
        }
    }

    /// Takes over the diagnostics of the passes.
    pub(crate) fn extend(&mut self, diagnostics: impl IntoIterator<Item = Diagnostic>) {
        self.diagnostics.extend(diagnostics);
    }

    /// What there is to say so far.
    #[cfg(test)]
    pub(crate) fn diagnostics(&self) -> &[Diagnostic] {
        &self.diagnostics
    }

    /// The span that a place stands for.
    pub(crate) fn span(&self, place: Place) -> Span {
        self.places.get(place.0 as usize).map_or_else(Span::call_site, |(span, _)| *span)
    }

    /// A diagnostic as printed, with the words of its place.
    pub(crate) fn text(&self, diagnostic: &Diagnostic) -> String {
        match self.places.get(diagnostic.place.0 as usize) {
            Some((_, words)) if !words.is_empty() => {
                let message = format!("{}\n{words}", diagnostic.message);
                Diagnostic { message, ..diagnostic.clone() }.text()
            }
            _ => diagnostic.text(),
        }
    }

    /// How many things stop the build so far.
    pub(crate) fn n_errors(&self) -> usize {
        let errors = self.diagnostics.iter();
        errors.filter(|diagnostic| diagnostic.code.severity() == Severity::Error).count()
    }

    /// Errors as `compile_error!`, each at its span; warnings as uses of deprecated items, which is
    /// how a macro warns on stable Rust.
    pub(crate) fn into_tokens(self) -> TokenStream {
        let mut tokens = TokenStream::new();
        for (index, diagnostic) in self.diagnostics.iter().enumerate() {
            let (span, text) = (self.span(diagnostic.place), self.text(diagnostic));
            tokens.extend(match diagnostic.code.severity() {
                Severity::Error => quote_spanned! {span=> ::core::compile_error!(#text); },
                Severity::Warning => {
                    let name = format_ident!("warning_{index}", span = span);
                    quote_spanned! {span=>
                        const _: () = {
                            #[deprecated(note = #text)]
                            #[allow(non_upper_case_globals)]
                            const #name: () = ();
                            #name
                        };
                    }
                }
            });
        }
        tokens
    }
}
