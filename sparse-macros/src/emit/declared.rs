//! Calls of the user's functions: the kernels of declared operators. What they are given and give
//! is written out as a type, so that a function of another one is an error of Rust's compiler at
//! its path.

use super::context::{Emit, array_name};
use super::operands;
use crate::ast::Function;
use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use sparse_core::ir::{Apply, Kind, ValueId};
use sparse_core::operators::{self, DeclaredKernel, Pattern, ResultRows, RowNames, Signature};
use sparse_core::shapes::Dim;
use sparse_core::storage::Storage;
use syn::Ident;

/// The call for a value, if a declared operator computes it. `out` is a reference to where the
/// value is written.
pub(super) fn call(
    emit: &Emit<'_>,
    id: ValueId,
    apply: &Apply,
    signature: &Signature,
    out: &TokenStream,
) -> Option<TokenStream> {
    let operators::Kind::Declared(index, kernel) = apply.operator.kind else { return None };
    let operator = emit.operators[index];
    match kernel {
        DeclaredKernel::OfRule => {
            let rule = operator.rules.get(apply.rule?)?;
            Some(of_rule(emit, id, apply, signature, &rule.function, out))
        }
        DeclaredKernel::Each => Some(each(emit, apply, signature, operator.each.as_ref()?, out)),
        DeclaredKernel::EachGradient(sloped) => {
            let function = operator.derivative.as_ref()?;
            Some(each_gradient(emit, apply, signature, function, sloped, out))
        }
    }
}

/// ```text
/// {
///     let __out: &mut Dense<f32> = __buffer_0;
///     let __shape = [shape_of(&__batch.x)[0], 3usize];
///     __out.reset(__shape);
///     let __function: fn(&mut Dense<f32>, CsrView<'_, f32>, DenseView<'_, f32>) = crate::scaled;
///     __function(__out, __batch.x, __param_w.view());
///     check_result("M", "scaled", &__out.view(), &__shape)?;
/// }
/// ```
fn of_rule(
    emit: &Emit<'_>,
    id: ValueId,
    apply: &Apply,
    signature: &Signature,
    function: &Function,
    out: &TokenStream,
) -> TokenStream {
    let (rt, element, model) = (&emit.rt, &emit.element, emit.name.to_string());
    let name = apply.operator.name;
    let result = emit.array(signature.result);
    let types = signature.operands.iter().map(|pattern| match pattern {
        Pattern::Array(storage, _) => {
            let view = Ident::new(&format!("{}View", array_name(*storage)), Span::call_site());
            quote!(#rt::#view<'_, #element>)
        }
        Pattern::Scalar => element.clone(),
        Pattern::Ids => quote!(#rt::IdsView<'_>),
        Pattern::Like => quote!(#rt::Shape),
        Pattern::Unit(_) => quote!(#rt::CsrView<'_, #rt::Unit>),
    });
    let operands = apply.operands.iter().zip(&signature.operands).map(|(operand, pattern)| {
        let operand = operands::operand(emit, *operand);
        match pattern {
            Pattern::Ids => quote!(::core::convert::Into::into(#operand)),
            _ => operand,
        }
    });
    let shape = emit.graph.shape(id);
    let rank = shape.len();
    let extents = shape.iter().map(|dim| extent(emit, apply, dim));
    // A sparse result is made whole by the function; a dense one has its place before.
    let reset = (signature.result == Storage::Dense).then(|| quote!(__out.reset(__shape);));
    let path = &function.path;
    let stored = rows_stored(emit, apply, signature.result);
    quote! {{
        let __out: &mut #result = #out;
        let __shape: [#rt::usize; #rank] = [#(#extents),*];
        #reset
        let __function: fn(&mut #result, #(#types),*) = #path;
        __function(__out, #(#operands),*);
        #rt::check_result(#model, #name, &__out.view(), &__shape)?;
        #stored
    }}
}

/// The check of the table rows that a result stores, where its operator says which.
///
/// ```text
/// check_rows_stored("M", "scaled_gradient", __out.view(), InputView::Csr(__batch.x))?;
/// ```
fn rows_stored(emit: &Emit<'_>, apply: &Apply, result: Storage) -> Option<TokenStream> {
    let names = apply.operator.result_rows.iter().find_map(|rows| match rows {
        ResultRows::Named(names) => Some(names),
        _ => None,
    });
    let names = names.filter(|_| result == Storage::RowSparse)?;
    let operand = *apply.operands.get(apply.operator.operand_index(names.operand())?)?;
    let (rt, model, name) = (&emit.rt, emit.name.to_string(), apply.operator.name);
    let view = operands::operand(emit, operand);
    let view = match names {
        RowNames::Columns(_) => quote!(#rt::InputView::Csr(#view)),
        RowNames::Ids(_) => quote!(#rt::InputView::Ids(::core::convert::Into::into(#view))),
    };
    Some(quote!(#rt::check_rows_stored(#model, #name, __out.view(), #view)?;))
}

/// An extent of a result: of the source, or of an operand that has it.
fn extent(emit: &Emit<'_>, apply: &Apply, dim: &Dim) -> TokenStream {
    if let Some(extent) = emit.fixed_extent(dim) {
        return extent;
    }
    let rt = &emit.rt;
    let arrays = apply.operands.iter().filter(|id| !emit.graph.is_number(**id));
    let found = arrays.into_iter().find_map(|id| {
        let axis = emit.graph.shape(*id).iter().position(|known| known == dim)?;
        let view = operands::operand(emit, *id);
        Some(quote!(#rt::shape_of(&#view)[#axis]))
    });
    // The letters of a result are those of operands.
    found.unwrap_or_else(|| quote!(0usize))
}

/// ```text
/// kernels::unary::cpu::csr(__buffer_0, __batch.x, |__x: f32| -> f32 { crate::mish(__x) },
///     __context);
/// ```
fn each(
    emit: &Emit<'_>,
    apply: &Apply,
    signature: &Signature,
    function: &Function,
    out: &TokenStream,
) -> TokenStream {
    let (rt, function) = (&emit.rt, closure(emit, function));
    let kernel = Ident::new(&signature.kernel(signature.result), Span::call_site());
    let operand = operands::operand(emit, apply.operands[0]);
    quote!(#rt::kernels::unary::cpu::#kernel(#out, #operand, #function, __context);)
}

/// A function of one element.
fn closure(emit: &Emit<'_>, Function { span, path }: &Function) -> TokenStream {
    let element = &emit.element;
    quote_spanned!(*span=> |__x: #element| -> #element { #path(__x) })
}

/// ```text
/// kernels::binary::cpu::gradient_csr_csr(__buffer_1, __buffer_0.view(), __batch.x, |__g,
///     __x| __g * d(__x), __context);
/// ```
fn each_gradient(
    emit: &Emit<'_>,
    apply: &Apply,
    signature: &Signature,
    function: &Function,
    sloped: bool,
    out: &TokenStream,
) -> TokenStream {
    let (rt, element, function) = (&emit.rt, &emit.element, closure(emit, function));
    let product = quote! {
        <#element as #rt::Float>::narrow(
            <#element as #rt::Float>::widen(__g) * <#element as #rt::Float>::widen((#function)(__x)),
        )
    };
    let [grad, operand] = [0, 1].map(|at| operands::operand(emit, apply.operands[at]));
    let rule = signature.kernel(signature.result);
    if signature.operands[0] == Pattern::Scalar {
        return quote! {{
            let __g: #element = #grad;
            #rt::kernels::unary::cpu::dense(#out, #operand, |__x: #element| #product, __context);
        }};
    }
    let kernel = match (rule.as_str(), sloped) {
        ("dense_dense", _) => rule,
        (_, false) => format!("gradient_{rule}"),
        (_, true) => format!("sloped_gradient_{rule}"),
    };
    let kernel = Ident::new(&kernel, Span::call_site());
    quote! {
        #rt::kernels::binary::cpu::#kernel(
            #out, #grad, #operand, |__g: #element, __x: #element| #product, __context);
    }
}

/// What declarations say of functions at 0, asked of the functions when a model is made.
///
/// ```text
/// check_at_zero("M", "mish", "the value", 0.0, crate::mish(0.0))?;
/// ```
pub(super) fn checks(emit: &Emit<'_>) -> TokenStream {
    let rt = &emit.rt;
    let model = emit.name.to_string();
    let used = emit.graph.values.iter().filter_map(|value| match &value.kind {
        Kind::Apply(apply) => match apply.operator.kind {
            operators::Kind::Declared(index, kernel) => Some((index, kernel, apply.operator.name)),
            _ => None,
        },
        _ => None,
    });
    let mut seen = Vec::new();
    let mut tokens = TokenStream::new();
    for (index, kernel, name) in used {
        if seen.contains(&(index, kernel)) {
            continue;
        }
        seen.push((index, kernel));
        let operator = emit.operators[index];
        let (what, claimed, function) = match kernel {
            DeclaredKernel::OfRule => continue,
            DeclaredKernel::Each => ("at_zero", operator.at_zero, &operator.each),
            DeclaredKernel::EachGradient(_) => {
                ("slope_at_zero", operator.slope_at_zero, &operator.derivative)
            }
        };
        // Another claim decides nothing.
        let (Some(0.0), Some(function)) = (claimed, function) else { continue };
        let (element, function) = (&emit.element, closure(emit, function));
        tokens.extend(quote! {
            #rt::check_at_zero(#model, #name, #what, (#function)(<#element as #rt::Float>::of(0.0)))?;
        });
    }
    tokens
}
