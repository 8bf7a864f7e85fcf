//! What the variants of a model have in common: one name, and one set of parameters.

use super::context::{Emit, array_name, element_type};
use super::docs::documentation;
use crate::ast::Model;
use crate::paths;
use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote};
use sparse_core::alternatives::{Variant, Variants, in_words};
use sparse_core::compile::Compiled;
use sparse_core::ir::Graph;
use syn::ext::IdentExt;

/// Which variant a model is, for its documentation.
pub(super) fn which(emit: &Emit<'_>) -> TokenStream {
    let Some(words) = &emit.variant else { return TokenStream::new() };
    let name = &emit.model.name;
    let text = format!("The variant of [`{name}`] where {words}.");
    // A program may use one of them only.
    quote!(#[doc = ""] #[doc = #text] #[allow(dead_code)])
}

/// ```text
/// /// A scorer.
/// pub type Scorer<X> = <(X,) as __ScorerVariant>::Model;
/// pub trait __ScorerVariant { type Model; }
/// impl __ScorerVariant for (Csr<f32>,) { type Model = ScorerCsr; }
/// impl __ScorerVariant for (Dense<f32>,) { type Model = ScorerDense; }
/// impl From<ScorerCsr> for ScorerDense { … }
/// impl From<ScorerDense> for ScorerCsr { … }
/// ```
pub(super) fn variants(model: &Model, compiled: &Variants, broken: bool) -> TokenStream {
    let variants = &compiled.variants;
    if variants.len() < 2 {
        return TokenStream::new();
    }
    let (rt, visibility, name) = (paths::runtime(), &model.visibility, &model.name);
    let family = format_ident!("__{}Variant", name.unraw());
    let inputs: Vec<String> =
        variants[0].storages.iter().map(|(id, _)| variants[0].model.graph.label(*id)).collect();
    // Type parameters are capitals; two inputs that differ in nothing else keep their names.
    let clash = |name: &String| {
        inputs.iter().filter(|other| other.to_uppercase() == name.to_uppercase()).count() > 1
    };
    let inputs: Vec<Ident> = inputs
        .iter()
        .map(|name| if clash(name) { name.clone() } else { name.to_uppercase() })
        .map(|name| Ident::new(&name, Span::call_site()))
        .collect();
    let docs = documentation(&model.docs, &format!("The model `{name}`."));
    let table = table(model, variants);
    let alternatives: Vec<String> =
        variants.iter().map(|variant| format!("`{}`", applied(model, variant))).collect();
    let message = format!("the model `{name}` has no variant for `{{Self}}`");
    let note = format!("its variants are {}", alternatives.join(", "));
    let chosen = variants.iter().map(|variant| {
        let graph = &variant.model.graph;
        let (element, ty) = (element_type(graph.element()), self::name(graph));
        let arrays = variant.storages.iter().map(|(_, storage)| array_name(*storage));
        quote! {
            #[automatically_derived]
            impl #family for (#(#rt::#arrays<#element>,)*) {
                type Model = #ty;
            }
        }
    });
    let pairs = variants.iter().flat_map(|from| variants.iter().map(move |to| (from, to)));
    let conversions = pairs
        .filter(|(from, to)| from.storages != to.storages)
        .map(|(from, to)| conversion(&from.model, &to.model, broken));
    quote! {
        #docs
        #[doc = ""]
        #[doc = #table]
        #[allow(dead_code, non_camel_case_types)]
        #visibility type #name<#(#inputs),*> = <(#(#inputs,)*) as #family>::Model;

        #[doc(hidden)]
        #[allow(dead_code)]
        #[diagnostic::on_unimplemented(message = #message, note = #note)]
        #visibility trait #family {
            type Model;
        }

        #(#chosen)*
        #(#conversions)*
    }
}

/// The name of a variant.
fn name(graph: &Graph) -> Ident {
    Ident::new(&graph.name, Span::call_site())
}

/// `Scorer<Csr>`.
fn applied(model: &Model, variant: &Variant<Compiled>) -> String {
    let arrays: Vec<String> =
        variant.storages.iter().map(|(_, storage)| array_name(*storage).to_string()).collect();
    format!("{}<{}>", model.name, arrays.join(", "))
}

/// The variants, for the documentation of the model.
fn table(model: &Model, variants: &[Variant<Compiled>]) -> String {
    let mut text = String::from(
        "Compiled for each storage type of its inputs. The variants have the same parameters: one becomes another by `From`, \
         without a copy, and loads its checkpoints.\n\n| model | where |\n|---|---|\n",
    );
    for variant in variants {
        let (graph, applied) = (&variant.model.graph, applied(model, variant));
        let words = in_words(graph, &variant.storages);
        text.push_str(&format!("| [`{applied}`]({}) | {words} |\n", graph.name));
    }
    text
}

/// The parameters move; what a batch leaves behind does not.
///
/// ```text
/// impl From<ScorerCsr> for ScorerDense {
///     fn from(__model: ScorerCsr) -> Self {
///         ScorerDense { w: same_parameter(__model.w), __dims: __model.__dims, …,
///             __workspace: Default::default(), … }
///     }
/// }
/// ```
fn conversion(from: &Compiled, to: &Compiled, broken: bool) -> TokenStream {
    let rt = paths::runtime();
    let (source, result) = (name(&from.graph), name(&to.graph));
    let parameters = to.graph.parameters().map(|id| {
        let field = Ident::new(&to.graph.label(id), Span::call_site());
        quote!(#field: #rt::same_parameter(__model.#field))
    });
    let buffers = to.plan.buffers.iter().map(|_| quote!(::core::default::Default::default()));
    let body = if broken {
        quote!(::core::unreachable!("the model has compile errors"))
    } else {
        quote! {
            #result {
                #(#parameters,)*
                __dims: __model.__dims,
                __extents: __model.__extents,
                __workspace: (#(#buffers,)*),
                __outputs: ::core::default::Default::default(),
                __gradients: ::core::default::Default::default(),
                __scratch: __model.__scratch,
                __context: __model.__context,
            }
        }
    };
    quote! {
        /// The same parameters, moved.
        #[automatically_derived]
        #[allow(unused_variables)]
        impl ::core::convert::From<#source> for #result {
            fn from(__model: #source) -> Self {
                #body
            }
        }
    }
}
