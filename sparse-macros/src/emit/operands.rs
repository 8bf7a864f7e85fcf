//! Values and attributes as what emitted code calls them: arrays, views, numbers, arguments.

use super::context::Emit;
use super::literals::{any_number, number_of};
use super::numbers;
use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};
use sparse_core::ir::{Apply, Entry, Kind, NamedList, ValueId};
use sparse_core::operators::AttributeKind;
use sparse_core::passes::Destination;

/// The array that a value is written to, as a reference.
pub(super) fn written(emit: &Emit<'_>, id: ValueId) -> Option<TokenStream> {
    Some(match destination(emit, id)? {
        (place, true) => place,
        (place, false) => quote!(&mut #place),
    })
}

/// Where a value is: an expression, and whether it is a reference already.
pub(super) fn destination(emit: &Emit<'_>, id: ValueId) -> Option<(TokenStream, bool)> {
    Some(match emit.compiled.plan.destinations[id.0]? {
        Destination::Buffer(index) => {
            let buffer = buffer(index);
            (quote!(#buffer), true)
        }
        Destination::Output(index) => {
            let field = emit.output_ident(&emit.graph.outputs[index].name);
            (quote!(__outputs.#field), false)
        }
        Destination::Gradient(index) => {
            let field = emit.declared(emit.graph.gradients[index].0);
            (quote!(__gradients.#field), false)
        }
    })
}

/// A value as an operand: a view, or a number.
pub(super) fn operand(emit: &Emit<'_>, id: ValueId) -> TokenStream {
    number(emit, id).unwrap_or_else(|| view(emit, id))
}

/// The number that a value is, in the model's element type; of one that is known with the batch its
/// [variable](numbers::variables).
pub(super) fn number(emit: &Emit<'_>, id: ValueId) -> Option<TokenStream> {
    match emit.graph.value(id).kind {
        Kind::Constant(number) => Some(number_of(emit, number)),
        Kind::Named(_) => {
            let variable = numbers::variable(id);
            Some(quote!(#variable))
        }
        _ => None,
    }
}

/// A value that is an array, as a view.
pub(super) fn view(emit: &Emit<'_>, id: ValueId) -> TokenStream {
    match &emit.graph.value(id).kind {
        Kind::Input | Kind::Label => {
            let field = emit.declared(id);
            quote!(__batch.#field)
        }
        Kind::Parameter { .. } => {
            let local = emit.parameter_local(id);
            quote!(#local.view())
        }
        Kind::Constant(_) | Kind::Named(_) => quote!(::core::unreachable!()),
        Kind::Apply(_) => match destination(emit, id) {
            Some((place, _)) => quote!(#place.view()),
            None => quote!(::core::unreachable!()),
        },
    }
}

/// The value of an attribute as the kernel takes it.
pub(super) fn attribute(
    emit: &Emit<'_>,
    apply: &Apply,
    name: &str,
    kind: AttributeKind,
) -> TokenStream {
    let rt = &emit.rt;
    let (operator, given) = (apply.operator, &apply.attributes);
    let list = |list: Option<NamedList>| match list {
        Some(list) => {
            let entries = list.entries().map(|entry| match entry {
                Some(Entry::Integer(value)) => quote!(#rt::Some(#value)),
                Some(Entry::Named(name)) => {
                    let value = numbers::extent(emit, name);
                    quote!(#rt::Some(#value))
                }
                None => quote!(#rt::None),
            });
            quote!(#rt::Some(#rt::List::new(&[#(#entries),*])))
        }
        None => quote!(#rt::None),
    };
    match kind {
        AttributeKind::Flag => {
            let flag = given.flag(name);
            quote!(#flag)
        }
        AttributeKind::Axes => {
            let axes = list(given.entries(name));
            quote!(#rt::Axes(#axes))
        }
        AttributeKind::List => list(given.entries(name)),
        // What a required attribute lacks was reported.
        AttributeKind::Integer(_) if given.name(name).is_some() => {
            given.name(name).and_then(|name| numbers::extent(emit, name)).unwrap_or_default()
        }
        AttributeKind::Integer(_) => {
            let integer = operator.integer(given, name).unwrap_or_default();
            quote!(#integer)
        }
        AttributeKind::Number(_) => numbers::attribute(emit, apply, name)
            .unwrap_or_else(|| any_number(operator.number(given, name).unwrap_or_default())),
        AttributeKind::Storage => quote!(#rt::None),
    }
}

/// The name of a buffer of the workspace.
pub(super) fn buffer(index: usize) -> Ident {
    format_ident!("__buffer_{index}")
}
