//! Calls of kernels, one a value: what runs where nothing is fused.

use super::{Emit, chains, declared, numbers};
use crate::table;
use proc_macro2::{Ident, Literal, Span, TokenStream};
use quote::{format_ident, quote};
use sparse_core::ir::{Apply, Entry, IdsExtent, Kind, NamedList, ValueId};
use sparse_core::operators::{AttributeKind, Pattern};
use sparse_core::passes::{Destination, kernel_name};
use sparse_core::storage::ElementType;

/// The call of each value's kernel, or of the loop that computes several, made once for the three functions that have it.
pub(super) struct Calls<'a> {
    rt: &'a TokenStream,
    /// By value; nothing for what is declared, or computed on the way to another value.
    calls: Vec<TokenStream>,
}

impl<'a> Calls<'a> {
    pub(super) fn new(emit: &'a Emit<'_>) -> Self {
        let calls = emit.graph.ids().map(|id| call(emit, id).unwrap_or_default());
        Calls { rt: &emit.rt, calls: calls.collect() }
    }

    /// The calls of these values, in order. Names are brought in once: a path before each of them is most of the
    /// tokens of a call.
    ///
    /// ```text
    /// use {Cpu as __Cpu, Kernels as __Kernels, …};
    /// <__Cpu as __Kernels<f32>>::dot_csr_row_sparse(__buffer_0, __batch.x, __param_w.view(), __context);
    /// <__Cpu as __Kernels<f32>>::add_dense_dense(&mut __outputs.pred, __buffer_0.view(), __param_b.view(), __context);
    /// ```
    pub(super) fn of(&self, values: &[ValueId]) -> TokenStream {
        let mut tokens = self.names();
        tokens.extend(values.iter().map(|id| self.calls[id.0].clone()));
        tokens
    }

    /// The names that calls have.
    pub(super) fn names(&self) -> TokenStream {
        let rt = self.rt;
        quote! {
            #[allow(unused_imports)]
            use #rt::{
                Cpu as __Cpu, Kernels as __Kernels, check_ids as __check_ids, shape_of as __shape_of,
            };
        }
    }

    /// The call of one value's kernel, in terms of [`names`](Self::names).
    pub(super) fn one(&self, id: ValueId) -> &TokenStream {
        &self.calls[id.0]
    }
}

fn call(emit: &Emit<'_>, id: ValueId) -> Option<TokenStream> {
    let element = &emit.element;
    let apply = emit.graph.apply_of(id)?;
    let kernel = Ident::new(&kernel_name(emit.graph, id)?, Span::call_site());
    let out = written(emit, id)?;
    if let Some(chain) = emit.compiled.chains.of(id) {
        return chains::call(emit, chain, &out);
    }
    let signature = apply.operator.storage.get(apply.rule?)?.signature();
    if let Some(call) = declared::call(emit, id, apply, &signature, &out) {
        return Some(call);
    }
    let operands = apply.operands.iter().zip(&signature.operands);
    let operands = operands.map(|(operand, pattern)| match pattern {
        Pattern::Like => {
            let view = view(emit, *operand);
            quote!(__shape_of(&#view))
        }
        // A view of ids of any type.
        Pattern::Ids => {
            let view = view(emit, *operand);
            quote!(::core::convert::Into::into(#view))
        }
        _ => self::operand(emit, *operand),
    });
    let attributes = table::kernel_attributes(apply.operator, &signature)
        .into_iter()
        .map(|(name, kind)| attribute(emit, apply, name, kind));
    let check = check_ids(emit, apply);
    Some(quote! {
        #check
        <__Cpu as __Kernels<#element>>::#kernel(#out, #(#operands,)* #(#attributes,)* __context);
    })
}

/// Ids that the model computes are checked where they are read; those of a batch were when it came.
///
/// ```text
/// __check_ids("Nearest", "best", __buffer_0.view(), __param_w.view().shape()[0])?;
/// ```
fn check_ids(emit: &Emit<'_>, apply: &Apply) -> Option<TokenStream> {
    let model = emit.name.to_string();
    let (ids, extent) = emit.graph.ids_below(apply)?;
    let (place, _) = destination(emit, ids)?;
    let name = emit.graph.label(ids);
    let bound = match extent {
        IdsExtent::Axis(of, axis) => {
            let table = view(emit, of);
            quote!(__shape_of(&#table)[#axis])
        }
        IdsExtent::Size(size) => {
            let size = usize::try_from(size).unwrap_or(usize::MAX);
            quote!(#size)
        }
        IdsExtent::Named(name) => emit.constant(name)?,
    };
    Some(quote!(__check_ids(#model, #name, #place.view(), #bound)?;))
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

/// The array that a value is written to, as a reference.
pub(super) fn written(emit: &Emit<'_>, id: ValueId) -> Option<TokenStream> {
    Some(match destination(emit, id)? {
        (place, true) => place,
        (place, false) => quote!(&mut #place),
    })
}

/// Where a value is: an expression, and whether it is a reference already.
fn destination(emit: &Emit<'_>, id: ValueId) -> Option<(TokenStream, bool)> {
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

/// A number of type `f64`, be it none that has a literal.
pub(super) fn any_number(number: f64) -> TokenStream {
    match (number.is_finite(), number.is_nan(), number > 0.0) {
        (true, ..) => quote!(#number),
        (_, true, _) => quote!(::core::f64::NAN),
        (_, _, true) => quote!(::core::f64::INFINITY),
        _ => quote!(::core::f64::NEG_INFINITY),
    }
}

/// A number in the model's element type.
pub(super) fn number_of(emit: &Emit<'_>, number: f64) -> TokenStream {
    let (rt, element) = (&emit.rt, &emit.element);
    // A product of numbers may be beyond what each of them is in.
    let number = match emit.graph.element() {
        ElementType::F32 => f64::from(number as f32),
        _ => number,
    };
    if !number.is_finite() {
        return match (number.is_nan(), number > 0.0) {
            (true, _) => quote!(#element::NAN),
            (false, true) => quote!(#element::INFINITY),
            (false, false) => quote!(#element::NEG_INFINITY),
        };
    }
    let magnitude = match emit.graph.element() {
        // Rounded once, to the half.
        half if half.is_half() => return quote!(<#element as #rt::Float>::of(#number)),
        ElementType::F64 => Literal::f64_suffixed(number.abs()),
        _ => Literal::f32_suffixed(number.abs() as f32),
    };
    if number.is_sign_negative() { quote!((-#magnitude)) } else { quote!(#magnitude) }
}

/// The name of a buffer of the workspace.
pub(super) fn buffer(index: usize) -> Ident {
    format_ident!("__buffer_{index}")
}
