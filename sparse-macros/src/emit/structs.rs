//! The types of a model: itself, its batch, its outputs, its gradients; and how it is made.

use super::constants;
use super::context::{Emit, element_type};
use super::declarations::{has_no_inputs, named_inputs, trained};
use super::docs::{documentation, gradient_row, plan, row};
use super::variants::which;
use crate::ast::Declaration;
use proc_macro2::{Ident, Span, TokenStream};
use quote::{quote, quote_spanned};
use sparse_core::ir::{Kind, ValueId};
use sparse_core::shapes::Dim;
use sparse_core::storage::Storage;
use std::collections::BTreeSet;
use syn::Attribute;

/// ```text
/// pub struct LinearRegression { pub w: Parameter<RowSparse<f32>, RowSparse<f32>>, …, __private }
/// pub struct LinearRegressionBatch<'a> { pub x: CsrView<'a, f32>, pub y: DenseView<'a, f32> }
/// pub struct LinearRegressionOutputs { pub pred: Dense<f32> }
/// pub struct LinearRegressionGrads { pub w: RowSparse<f32>, pub b: Dense<f32> }
/// ```
pub(super) fn structs(emit: &Emit<'_>) -> TokenStream {
    let (rt, element, graph) = (&emit.rt, &emit.element, emit.graph);
    let (name, batch, outputs, grads) = (&emit.name, &emit.batch, &emit.outputs, &emit.grads);
    let visibility = &emit.model.visibility;
    let docs = documentation(&emit.model.docs, &format!("The model `{name}`."));
    let (plan, which) = (plan(emit), which(emit));
    let parameters = graph.parameters().map(|id| {
        let (field, ty) = (emit.declared(id), parameter_type(emit, id));
        let is_state = graph.updates.iter().any(|update| update.state == id);
        let kind = if is_state { "state" } else { "parameter" };
        let docs = documentation(attributes_of(emit, id), &format!("The {kind} `{field}`."));
        let row = row(emit, id);
        quote!(#docs #[doc = ""] #[doc = #row] pub #field: #ty)
    });
    let workspace = workspace_type(emit);
    let n_fixed = emit.fixed.len();
    let batch_fields = named_inputs(emit).map(|id| {
        let (field, ty) = (emit.declared(id), view_type(emit, id));
        let docs = documentation(attributes_of(emit, id), &format!("`{field}` of the batch."));
        let row = row(emit, id);
        quote!(#docs #[doc = ""] #[doc = #row] pub #field: #ty)
    });
    // A batch without a view has to name its lifetime all the same.
    let lifetime = has_no_inputs(emit)
        .then(|| quote!(#[doc(hidden)] pub __lifetime: ::core::marker::PhantomData<&'a ()>));
    let output_fields = graph.outputs.iter().map(|output| {
        let field = emit.output_ident(&output.name);
        let ty = emit.array_of(graph.storage(output.value), graph.value(output.value).element);
        let row = row(emit, output.value);
        let docs =
            documentation(output_docs(emit, &output.name), &format!("The output `{field}`."));
        quote!(#docs #[doc = ""] #[doc = #row] pub #field: #ty)
    });
    let grad_fields = trained(emit).into_iter().map(|(id, storage)| {
        let (field, ty) = (emit.declared(id), emit.array(storage));
        let row = gradient_row(emit, id, storage);
        quote!(#[doc = #row] pub #field: #ty)
    });
    let (batch_doc, outputs_doc, grads_doc) = (
        format!(
            "One batch of [`{name}`]: a view for each input and label. Labels are read for the loss only."
        ),
        format!("The outputs of [`{name}`]."),
        format!("The gradients of [`{name}`]; the types show the derived storage."),
    );
    quote! {
        #docs
        #which
        #plan
        #[derive(#rt::Clone)]
        #visibility struct #name {
            #(#parameters,)*
            __dims: #rt::Dims,
            __extents: [#rt::usize; #n_fixed],
            __workspace: #workspace,
            __outputs: #outputs,
            __gradients: #grads,
            __scratch: #rt::linear::Scratch<#element>,
            __context: #rt::Context,
        }

        #[doc = #batch_doc]
        #[derive(#rt::Clone, #rt::Copy, #rt::Debug, #rt::Default)]
        #visibility struct #batch<'a> {
            #(#batch_fields,)*
            #lifetime
        }

        #[doc = #outputs_doc]
        #[derive(#rt::Clone, #rt::Debug, #rt::Default)]
        #visibility struct #outputs { #(#output_fields,)* }

        #[doc = #grads_doc]
        #[derive(#rt::Clone, #rt::Debug, #rt::Default)]
        #visibility struct #grads { #(#grad_fields,)* }

        /// The parameters.
        #[automatically_derived]
        impl ::core::fmt::Debug for #name {
            fn fmt(&self, __f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                #rt::debug_model(self, __f)
            }
        }
    }
}

/// ```text
/// impl LinearRegression {
///     pub fn new(__dims: Dims, __seed: Seed) -> Result<Self> { … }
///     fn __check(&self, __batch: &LinearRegressionBatch<'_>, __labels: bool) -> Result<()> { … }
/// }
/// ```
pub(super) fn inherent(emit: &Emit<'_>) -> TokenStream {
    let (rt, name, fixed) = (&emit.rt, &emit.name, &emit.fixed);
    let visibility = &emit.model.visibility;
    let parameters = emit.graph.parameters().enumerate().map(|(index, id)| {
        let (field, name, index) = (emit.declared(id), emit.graph.label(id), index as u64);
        let shape = parameter_shape(emit, id);
        let initializer = initializer(emit, id);
        quote! {
            #field: #rt::Parameter::new(#name, #shape, &#initializer, __seed.stream(#index))?
        }
    });
    let value = value(emit, parameters);
    let check = super::batch::check(emit);
    let program = super::step::program(emit);
    let doc = if fixed.is_empty() {
        "Makes the model. It has no dimensions: pass `dims! {}`.".to_owned()
    } else {
        format!(
            "Makes the model: `{name}::new(dims! {{ {} }}, Seed(42))`.",
            fixed.iter().map(|dim| format!("{dim}: …")).collect::<Vec<_>>().join(", ")
        )
    };
    let log = super::plan::log(emit);
    let at_zero = super::declared::checks(emit);
    let body = if emit.broken {
        quote!(::core::unreachable!("the model has compile errors"))
    } else {
        quote! {
            #at_zero
            let __model = #value;
            #log
            #rt::Ok(__model)
        }
    };
    quote! {
        #[allow(clippy::all, unused_variables)]
        impl #name {
            #[doc = #doc]
            ///
            /// # Errors
            ///
            #[doc = " A dimension that is missing, unknown or too large to address; an initializer that makes no"]
            /// sense.
            #visibility fn new(__dims: #rt::Dims, __seed: #rt::Seed) -> #rt::OuterResult<Self> {
                #body
            }

            #check

            #program
        }
    }
}

/// ```text
/// fn from_tables(__dims: Dims, __table: &mut MakeTable<'_, f32>) -> Result<Self> {
///     Ok(LinearRegression {
///         w: Parameter::from_table("w", [__dims…, 1], __table("w", [__dims…, 1].into())?)?, …
///     })
/// }
/// ```
pub(super) fn from_tables(emit: &Emit<'_>) -> TokenStream {
    let (rt, element) = (&emit.rt, &emit.element);
    let parameters = emit.graph.parameters().map(|id| {
        let (field, name) = (emit.declared(id), emit.graph.label(id));
        let shape = parameter_shape(emit, id);
        quote! {
            #field: #rt::Parameter::from_table(#name, #shape, __table(#name, ::core::convert::Into::into(#shape))?)?
        }
    });
    let body = if emit.broken {
        quote!(::core::unreachable!("the model has compile errors"))
    } else {
        let value = value(emit, parameters);
        quote!(#rt::Ok(#value))
    };
    quote! {
        fn from_tables(
            __dims: #rt::Dims,
            __table: &mut #rt::MakeTable<'_, #element>,
        ) -> #rt::Result<Self> {
            #body
        }
    }
}

/// `{ dims.check("LinearRegression", &["d"])?; let __extents = …;
/// LinearRegression { w: …, __extents, … } }`
fn value(emit: &Emit<'_>, parameters: impl Iterator<Item = TokenStream>) -> TokenStream {
    let name = &emit.name;
    let (text, fixed) = (name.to_string(), &emit.fixed);
    let extents = fixed.iter().map(|name| quote!(__dims.get(#name).unwrap_or_default()));
    let workspace = workspace_value(emit);
    quote! {{
        __dims.check(#text, &[#(#fixed),*])?;
        #[allow(unused_variables)]
        let __extents = [#(#extents),*];
        #name {
            #(#parameters,)*
            __extents,
            __workspace: #workspace,
            __outputs: ::core::default::Default::default(),
            __gradients: ::core::default::Default::default(),
            __scratch: ::core::default::Default::default(),
            __context: ::core::default::Default::default(),
            __dims,
        }
    }}
}

/// `[__extents[0], 1]`
fn parameter_shape(emit: &Emit<'_>, id: ValueId) -> TokenStream {
    let shape = emit.graph.shape(id);
    let shape = shape.iter().map(|dim| emit.fixed_extent(dim).unwrap_or_else(|| quote!(0)));
    quote!([#(#shape),*])
}

/// `(Dense<f32>, RowSparse<f32>,)`: a tuple, so that no private type needs a name.
fn workspace_type(emit: &Emit<'_>) -> TokenStream {
    let buffers = &emit.compiled.plan.buffers;
    let buffers = buffers.iter().map(|buffer| emit.array_of(buffer.storage, buffer.element));
    quote!((#(#buffers,)*))
}

fn workspace_value(emit: &Emit<'_>) -> TokenStream {
    let buffers =
        emit.compiled.plan.buffers.iter().map(|_| quote!(::core::default::Default::default()));
    quote!((#(#buffers,)*))
}

fn parameter_type(emit: &Emit<'_>, id: ValueId) -> TokenStream {
    let rt = &emit.rt;
    let stored = emit.array(emit.graph.storage(id));
    let gradient = emit.array(emit.gradient_storage(id).unwrap_or(emit.graph.storage(id)));
    quote!(#rt::Parameter<#stored, #gradient>)
}

fn view_type(emit: &Emit<'_>, id: ValueId) -> TokenStream {
    let rt = &emit.rt;
    let element = element_type(emit.graph.value(id).element);
    match emit.graph.storage(id) {
        Storage::Dense => quote!(#rt::DenseView<'a, #element>),
        Storage::Csr => quote!(#rt::CsrView<'a, #element>),
        Storage::RowSparse => quote!(#rt::RowSparseView<'a, #element>),
    }
}

fn attributes_of<'a>(emit: &Emit<'a>, id: ValueId) -> &'a [Attribute] {
    match emit.declarations.get(&emit.graph.label(id)) {
        Some(Declaration::Input(input)) => &input.docs,
        Some(Declaration::Parameter(parameter)) => &parameter.docs,
        _ => &[],
    }
}

fn output_docs<'a>(emit: &Emit<'a>, wanted: &str) -> &'a [Attribute] {
    let mut declarations = emit.model.declarations.iter();
    let docs = declarations.find_map(|declaration| match declaration {
        Declaration::Output { docs, name, .. } if name == wanted => Some(docs.as_slice()),
        _ => None,
    });
    docs.unwrap_or_default()
}

/// `Initializer::Normal { mean: 0.0, std: 0.01 }`, at the user's span.
fn initializer(emit: &Emit<'_>, id: ValueId) -> TokenStream {
    let rt = &emit.rt;
    let written = match emit.declarations.get(&emit.graph.label(id)) {
        Some(Declaration::Parameter(parameter)) => Some(&parameter.initializer),
        _ => None,
    };
    match written {
        Some(initializer) if matches!(emit.graph.value(id).kind, Kind::Parameter { .. }) => {
            let (tokens, span) = (&initializer.tokens, initializer.name.span());
            let tokens = quote_spanned!(span=> { #[allow(clippy::enum_glob_use)] use #rt::Initializer::*; #tokens });
            with_extents(emit, &initializer.tokens, tokens)
        }
        _ => quote!(#rt::Initializer::Zeros),
    }
}

/// An initializer in which the model's constants and fixed dimensions are numbers: of
/// `Constant(FIELDS as f64)`
///
/// ```text
/// { const __ABOVE: usize = 8; { const FIELDS: usize = __ABOVE;
///     { use Initializer::*; Constant(FIELDS as f64) } } }
/// ```
///
/// A constant is an item, because a `let` of a name that is a constant of the module is a pattern.
fn with_extents(emit: &Emit<'_>, written: &TokenStream, tokens: TokenStream) -> TokenStream {
    let rt = &emit.rt;
    let mut words = BTreeSet::new();
    constants::collect_words(written.clone(), &mut words);
    words.into_iter().fold(tokens, |tokens, word| {
        let name = Ident::new(&word, Span::call_site());
        if let Some((ty, value)) = typed(emit, &word) {
            return quote! {{
                const __ABOVE: #ty = #value;
                {
                    #[allow(dead_code, non_upper_case_globals)]
                    const #name: #ty = __ABOVE;
                    #tokens
                }
            }};
        }
        // One in scope has its name there.
        if emit.graph.unify.is_constant(&word) {
            return tokens;
        }
        let Some(value) = emit.fixed_extent(&Dim::Named(word.clone())) else { return tokens };
        quote!({ #[allow(unused_variables)] let #name: #rt::usize = #value; #tokens })
    })
}

/// The type and the value of a constant that the model declares with a value.
fn typed(emit: &Emit<'_>, word: &str) -> Option<(TokenStream, TokenStream)> {
    let declared = emit.model.declarations.iter().find_map(|declaration| match declaration {
        Declaration::Constant(constant) if constant.name == word => Some(constant),
        _ => None,
    });
    let declared = declared.filter(|constant| !constant.is_in_scope())?;
    let (_, value) = emit.constants.iter().find(|(known, _)| known == word)?;
    Some((constants::type_of(emit.model, declared, &emit.rt), value.clone()))
}
