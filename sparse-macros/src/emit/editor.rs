//! What an editor reads and the compiler does not: each use of a name in the model as a use of the
//! field that it names, so that hovering, finding uses and renaming work on it. A name that means
//! nothing may be one that is being typed: it is a use of a struct that has every name.

use super::context::Emit;
use super::declarations::trained;
use super::docs::row;
use crate::ast::{AttributeText, Declaration, Expression, ExpressionKind};
use proc_macro2::{Ident, Span, TokenStream};
use quote::quote;
use sparse_core::ir::ValueId;
use std::collections::{BTreeMap, BTreeSet};

/// rust-analyzer sets `rust_analyzer`; rustc drops the items before it looks into them. A `let`
/// that is no output is a field of `__Names`, with the type and the documentation that it would
/// have as an output.
///
/// ```text
/// #[allow(unexpected_cfgs)]
/// const _: () = {
///     #[cfg(rust_analyzer)]
///     struct __Names { score: Dense<f32> }
///     #[cfg(rust_analyzer)]
///     fn __uses(__names: &__Names, __model: &LinearRegression,
///         __batch: &LinearRegressionBatch<'_>, …) {
///         &__batch.x; &__model.w; &__grads.w; &__names.score; &__outputs.pred;
///     }
/// };
/// ```
pub(super) fn names(emit: &Emit<'_>) -> TokenStream {
    let (model, batch, outputs, grads) = (&emit.name, &emit.batch, &emit.outputs, &emit.grads);
    let uses = Uses::of(emit);
    let (fields, tokens) = (uses.computed(), &uses.tokens);
    let complete = uses.complete();
    quote! {
        #[allow(unexpected_cfgs)]
        const _: () = {
            #[cfg(rust_analyzer)]
            struct __Names { #(#fields,)* }
            #complete
            #[cfg(rust_analyzer)]
            fn __uses(
                __names: &__Names,
                __model: &#model,
                __batch: &#batch<'_>,
                __outputs: &#outputs,
                __grads: &#grads,
            ) {
                #tokens
            }
        };
    }
}

struct Uses<'a> {
    emit: &'a Emit<'a>,
    trained: BTreeSet<String>,
    outputs: BTreeSet<&'a str>,
    /// The names that no other field has.
    fields: BTreeMap<String, &'a Ident>,
    tokens: TokenStream,
    /// The names that mean nothing.
    unknown: Vec<&'a Ident>,
}

impl<'a> Uses<'a> {
    fn of(emit: &'a Emit<'a>) -> Self {
        let mut uses = Uses {
            emit,
            trained: trained(emit).iter().map(|(id, _)| emit.graph.label(*id)).collect(),
            outputs: emit.graph.outputs.iter().map(|output| output.name.as_str()).collect(),
            fields: BTreeMap::new(),
            tokens: TokenStream::new(),
            unknown: Vec::new(),
        };
        for declaration in &emit.model.declarations {
            uses.declare(declaration);
        }
        for declaration in &emit.model.declarations {
            match declaration {
                Declaration::Let(binding) => uses.expression(&binding.value),
                Declaration::Loss(value) | Declaration::Output { value, .. } => {
                    uses.expression(value);
                }
                _ => {}
            }
        }
        uses
    }

    fn declare(&mut self, declaration: &'a Declaration) {
        let Declaration::Let(binding) = declaration else { return };
        let word = binding.name.to_string();
        if self.is_output(&word) {
            self.name(&binding.name);
        } else {
            self.fields.insert(word, &binding.name);
        }
    }

    fn is_constant(&self, name: &Ident) -> bool {
        let mut declarations = self.emit.model.declarations.iter();
        declarations.any(|known| matches!(known, Declaration::Constant(one) if one.name == *name))
    }

    fn is_output(&self, word: &str) -> bool {
        self.outputs.contains(word)
    }

    fn name(&mut self, name: &Ident) {
        let word = name.to_string();
        self.tokens.extend(match self.emit.declarations.get(&word) {
            Some(Declaration::Parameter(_)) if self.trained.contains(&word) => {
                quote!(&__model.#name; &__grads.#name;)
            }
            Some(Declaration::Parameter(_)) => quote!(&__model.#name;),
            Some(_) => quote!(&__batch.#name;),
            None if self.is_output(&word) => quote!(&__outputs.#name;),
            None if self.fields.contains_key(&word) => quote!(&__names.#name;),
            // It means nothing, or is a word of an operator.
            None => TokenStream::new(),
        });
    }

    /// The fields of `__Names`. Of a value that is not there, as it has errors or is the same as
    /// another, nothing is known.
    fn computed(&self) -> impl Iterator<Item = TokenStream> {
        let (emit, graph) = (self.emit, self.emit.graph);
        let named = graph.values.iter().enumerate().filter(|(_, value)| value.storage.is_some());
        let ids: BTreeMap<&str, ValueId> =
            named.filter_map(|(at, value)| Some((value.name.as_deref()?, ValueId(at)))).collect();
        self.fields.iter().map(move |(word, name)| match ids.get(word.as_str()) {
            Some(&id) if !emit.broken => {
                let ty = emit.array_of(graph.storage(id), graph.value(id).element);
                let row = row(emit, id);
                quote!(#[doc = #row] #name: #ty)
            }
            _ => quote!(#name: ()),
        })
    }

    /// What there is to complete a name that means nothing, where there is one.
    ///
    /// ```text
    /// #[cfg(rust_analyzer)]
    /// struct __Declared { x: (), y: (), w: (), score: (), pred: () }
    /// #[cfg(rust_analyzer)]
    /// fn __completes(__declared: &__Declared) {
    ///     &__declared.sco;
    /// }
    /// ```
    fn complete(&self) -> Option<TokenStream> {
        if self.unknown.is_empty() {
            return None;
        }
        let declared = self.emit.declarations.keys().map(|word| self.emit.ident(word));
        let outputs = self.outputs.iter().map(|word| self.emit.output_ident(word));
        let computed = self.fields.values().map(|name| (*name).clone());
        let names: BTreeSet<Ident> = declared.chain(outputs).chain(computed).collect();
        // Without their places: nothing at a declaration is one of these fields.
        let fields = names.into_iter().map(|mut name| {
            name.set_span(Span::call_site());
            name
        });
        let unknown = &self.unknown;
        Some(quote! {
            #[cfg(rust_analyzer)]
            struct __Declared { #(#fields: (),)* }
            #[cfg(rust_analyzer)]
            fn __completes(__declared: &__Declared) {
                #(&__declared.#unknown;)*
            }
        })
    }

    fn is_known(&self, name: &Ident) -> bool {
        let word = name.to_string();
        self.emit.declarations.contains_key(&word)
            || self.is_output(&word)
            || self.fields.contains_key(&word)
    }

    /// Without recursion: a sum is as deep as it has terms.
    fn expression(&mut self, expression: &'a Expression) {
        let mut next = vec![expression];
        while let Some(expression) = next.pop() {
            self.one(expression);
            next.extend(expression.parts().rev());
        }
    }

    /// What an expression is, without its [parts](Expression::parts).
    fn one(&mut self, expression: &'a Expression) {
        match &expression.kind {
            ExpressionKind::Name(name) if self.is_known(name) => self.name(name),
            // `self` is a path, but names no field.
            ExpressionKind::Name(name) if syn::parse_str::<Ident>(&name.to_string()).is_err() => {}
            ExpressionKind::Name(name) if self.is_constant(name) => {}
            ExpressionKind::Name(name) => self.unknown.push(name),
            ExpressionKind::Call { attributes, .. } => {
                for (_, value) in attributes {
                    if let AttributeText::Word(word) = value {
                        self.name(word);
                    }
                }
            }
            ExpressionKind::Number(_)
            | ExpressionKind::Arithmetic(_)
            | ExpressionKind::Attribute(_)
            | ExpressionKind::Broken => {}
        }
    }
}
