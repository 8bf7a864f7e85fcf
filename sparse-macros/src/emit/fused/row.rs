//! The row function: what happens between reading the parameters' rows and updating them.

use super::{Steps, corrects_scores, few, few_dense, nothing, width};
use crate::emit::Emit;
use crate::emit::kernels::{self, number, number_of};
use crate::emit::numbers;
use crate::emit::scores::{Recorded, recorded};
use crate::scalar;
use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};
use sparse_core::ir::{Apply, Kind, ValueId};
use sparse_core::operators::{self, LossLabel};
use sparse_core::passes::{LookupRead, RowLoop, Terms};
use sparse_core::shapes::{Dim, Dims};
use std::collections::BTreeSet;

/// `|row, s, saved| { … }`: the numbers of a row become the gradients with respect to them; returns the row's loss. Of steps of each
/// row, `|row, s, saved, (__dense_b,)|`: what it changes from row to row.
pub(super) fn row_function(emit: &Emit<'_>, parts: &RowLoop, steps: Steps) -> TokenStream {
    let (rt, graph) = (&emit.rt, emit.graph);
    let forward = chain(emit, parts, &parts.forward);
    let terms = parts.terms.all();
    let score = local(parts.score);
    let recorded = recorded(emit);
    let is_recorded = |id: ValueId| recorded.iter().filter(move |array| array.value == id);
    let element_outputs = terms.iter().map(|term| term.value).chain(parts.forward.iter().copied());
    let element_outputs =
        element_outputs.flat_map(|id| is_recorded(id).map(move |array| (array, id)));
    let softmax_outputs = parts
        .softmax
        .iter()
        .flat_map(|(id, operand)| is_recorded(*id).map(move |array| (array, *operand)));
    let record: Vec<_> = element_outputs
        .chain(softmax_outputs)
        .map(|(Recorded { variable, .. }, id)| {
            let value = local(id);
            quote!(#variable[__row * __columns + __j] = #value;)
        })
        .collect();
    let normalise = parts.softmax.iter().flat_map(|(id, _)| is_recorded(*id)).map(|array| {
        let variable = &array.variable;
        quote!(#rt::kernels::softmax::cpu::row(&mut #variable[__row * __columns..(__row + 1) * __columns]);)
    });
    let records = steps == Steps::One;
    let record = (records && !record.is_empty()).then(|| quote!(if __record { #(#record)* }));
    let normalise: Vec<_> = normalise.collect();
    let normalise =
        (records && !normalise.is_empty()).then(|| quote!(if __record { #(#normalise)* }));
    // Dense parameters as the last row left them, and their update by this one.
    let (read_dense, update_dense): (Vec<_>, Vec<_>) = match steps {
        Steps::One => Default::default(),
        Steps::EachRow => parts
            .reductions
            .iter()
            .map(|(id, _, _)| {
                let (values, dense) = (values_of(emit, *id), dense_of(emit, *id));
                let gradient = grad_of(emit, *id);
                let fresh = few(emit, *id).map(|count| {
                    let nothing = nothing(emit);
                    quote!(let #gradient = &mut [#nothing; #count];)
                });
                (quote!(#fresh let #values = #dense.values();), quote!(#dense.update(#gradient);))
            })
            .unzip(),
    };
    let kept = match steps {
        Steps::One => None,
        Steps::EachRow => {
            let few = few_dense(emit, parts);
            Some(quote!(, (#(#few,)*)))
        }
    };

    let Some(loss) = graph.apply_of(parts.loss) else { return TokenStream::new() };
    let (call, loss_type) = match may_be_later(parts, loss) {
        // Of a type of the loss's.
        true => (row_of_one(emit, loss), quote!(_)),
        false => (row_loss(emit, loss, &quote!(__s[..__columns])), quote!(__T)),
    };
    // Multiplied once for the whole row. A row that is all of its batch has all of the mean.
    let mean = match steps {
        Steps::One => quote!(__mean),
        Steps::EachRow => number_of(emit, 1.0),
    };
    let (share, weighted) = match parts.row_weight {
        Some(_) => (
            quote!(let __share = #mean * __row_weights[__row];),
            quote!(__loss * __row_weights[__row]),
        ),
        None => (quote!(let __share = #mean;), quote!(__loss)),
    };
    let width = width(emit, &parts.columns);

    let correct = corrects_scores(emit, parts).then(|| {
        quote!(if __R::CORRECTS {
            __samples.correct(__row, &mut __s[..__columns]);
        })
    });
    let gradient = local(parts.score_gradient);
    let needs_forward = needs_forward(emit, parts);
    let (save, again) = if needs_forward {
        (quote!(__saved.copy_from_slice(__s);), {
            let forward = chain(emit, parts, &parts.forward);
            let read = read_terms(parts, &format_ident!("__saved"));
            quote!(#read #forward)
        })
    } else {
        (TokenStream::new(), TokenStream::new())
    };
    let backward = chain(emit, parts, &parts.backward);
    let reductions = parts.reductions.iter().map(|(parameter, _, summed)| {
        let (variable, value) = (grad_of(emit, *parameter), local(*summed));
        let index = index_of(&graph.shape(*parameter), &parts.columns);
        match steps {
            Steps::One => quote!(#variable[#index] += #rt::Float::as_f64(#value);),
            Steps::EachRow => quote!(#variable[#index] += #value;),
        }
    });
    let read = read_terms(parts, &format_ident!("__s"));
    let write = terms.iter().enumerate().map(|(number, term)| {
        let (place, gradient) = (place(number), local(term.gradient));
        let share = share_of(&parts.terms, number);
        quote!(__s[#place] = #gradient #share;)
    });
    quote! {
        #[inline(always)]
        |__row: #rt::usize, __s: &mut [__T], __saved: &mut [__T] #kept| -> #loss_type {
            // Where the loop sees it.
            let __columns = #rt::linear::Width::columns(&#width);
            #save
            #(#read_dense)*
            for __j in 0..__columns {
                #read
                #forward
                #record
                __s[__j] = #score;
            }
            #normalise
            let __loss = #call;
            #correct
            #share
            for __j in 0..__columns {
                let #gradient = __s[__j] * __share;
                #again
                #backward
                #(#reductions)*
                #(#write)*
            }
            #(#update_dense)*
            #weighted
        }
    }
}

/// Where term number `number` is among the numbers of a row: a further one than the first is there only where each has one
/// column.
fn place(number: usize) -> TokenStream {
    match number {
        0 => quote!(__j),
        number => quote!(#number),
    }
}

/// `let __v4 = s[j]; let __v5 = s[1] * __of_mean;`
fn read_terms(parts: &RowLoop, from: &Ident) -> TokenStream {
    let terms = parts.terms.all();
    let read = terms.iter().enumerate().map(|(number, term)| {
        let (place, value) = (place(number), local(term.value));
        let share = share_of(&parts.terms, number);
        quote!(let #value = #from[#place] #share;)
    });
    quote!(#(#read)*)
}

/// `* __of_mean`, where a term is the mean of what the loop sums.
fn share_of(terms: &Terms, number: usize) -> Option<TokenStream> {
    let Terms::Lookups(lookups) = terms else { return None };
    let read = &lookups.get(number)?.read;
    matches!(read, LookupRead::Inner { mean: true, .. }).then(|| quote!(*__of_mean))
}

/// `let __of_mean = linear::share::<__T>(16);`: what a mean has of each element.
pub(super) fn of_mean(emit: &Emit<'_>, parts: &RowLoop) -> Option<TokenStream> {
    let rt = &emit.rt;
    let Terms::Lookups(lookups) = &parts.terms else { return None };
    // All inner products are of rows of one size.
    let size = lookups.iter().find_map(|lookup| match &lookup.read {
        LookupRead::Inner { size, mean: true, .. } => Some(width(emit, size)),
        _ => None,
    })?;
    Some(quote!(let __of_mean = #rt::linear::share::<__T>(#rt::linear::Width::columns(&#size));))
}

/// Whether the loop takes a loss of which a part is computed later: a sum over scores, of a row of a linear model or a factorization machine that
/// has one.
fn may_be_later(parts: &RowLoop, loss: &Apply) -> bool {
    let is_linear = matches!(&parts.terms, Terms::Linear(_));
    let is_sum = matches!(loss.operator.kind, operators::Kind::Loss { element: Some(_), .. });
    is_linear && is_sum && parts.columns == Dim::Size(1) && parts.row_weight.is_none()
}

/// `logistic::cpu::row_of_one(&mut s[0], label[row])`.
fn row_of_one(emit: &Emit<'_>, loss: &Apply) -> TokenStream {
    let (rt, module) = (&emit.rt, format_ident!("{}", loss.operator.name));
    let attributes = attributes(emit, loss);
    quote!(#rt::kernels::#module::cpu::row_of_one(&mut __s[0], __label[__row] #(, #attributes)*))
}

/// The attributes of a loss, in the order of its row.
fn attributes(emit: &Emit<'_>, loss: &Apply) -> Vec<TokenStream> {
    let attributes = loss.operator.attributes.iter();
    attributes
        .map(|attribute| kernels::attribute(emit, loss, attribute.name, attribute.kind))
        .collect()
}

/// `squared_error::cpu::row(&mut s[..columns], &label[…])`: the loss of a row, whose `scores` become its gradient.
pub(super) fn row_loss(emit: &Emit<'_>, loss: &Apply, scores: &TokenStream) -> TokenStream {
    let rt = &emit.rt;
    let module = format_ident!("{}", loss.operator.name);
    let label = loss.operands.get(1).map(|label| emit.graph.value(*label).element);
    let is_float = label.is_some_and(|element| element.is_float());
    let attributes = attributes(emit, loss);
    match (is_float, loss.operator.kind) {
        // Checked when the batch came: every id is a position.
        (false, _) => quote! {
            #rt::kernels::#module::cpu::row(
                &mut #scores, #rt::Id::index(__label[__row]).unwrap_or(#rt::usize::MAX) #(, #attributes)*)
        },
        (true, operators::Kind::Loss { label: LossLabel::Class, .. }) => quote! {
            #rt::kernels::#module::cpu::row_of_targets(
                &mut #scores, ::core::iter::Iterator::copied(
                    __label[__row * __columns..(__row + 1) * __columns].iter(),
                ) #(, #attributes)*)
        },
        _ => quote! {
            #rt::kernels::#module::cpu::row(
                &mut #scores, &__label[__row * __columns..(__row + 1) * __columns] #(, #attributes)*)
        },
    }
}

/// `let v5 = (v4 + b_values[j]);` for each value, in order.
fn chain(emit: &Emit<'_>, parts: &RowLoop, values: &[ValueId]) -> TokenStream {
    values
        .iter()
        .filter_map(|id| {
            let apply = emit.graph.apply_of(*id)?;
            let operands: Vec<TokenStream> =
                apply.operands.iter().map(|operand| element_of(emit, parts, *operand)).collect();
            let value = formula(emit, apply, &operands)?;
            let name = local(*id);
            Some(quote!(let #name: __T = #value;))
        })
        .collect()
}

/// `(v4 + b_values[j])`: the formula of an element-wise operator, of elements.
pub(in crate::emit) fn formula(
    emit: &Emit<'_>,
    apply: &Apply,
    operands: &[TokenStream],
) -> Option<TokenStream> {
    let (formula, names): (&str, [&str; 2]) = match apply.operator.kind {
        operators::Kind::Unary(formula) => (formula, ["x", ""]),
        operators::Kind::Binary(family, formula) if family.is_gradient() => {
            // The second variable is `x` or `y`, whichever the derivative is a formula in.
            let second = if apply.operator.operands[1] == "y" { "y" } else { "x" };
            (formula, ["g", second])
        }
        operators::Kind::Binary(_, formula) => (formula, ["x", "y"]),
        _ => return None,
    };
    Some(scalar::rust(formula, &quote!(__T), &|name| {
        match names.iter().position(|known| *known == name) {
            Some(index) => operands.get(index).cloned().unwrap_or_default(),
            // What an attribute lacks was reported.
            None => {
                if let Some(number) = numbers::attribute(emit, apply, name) {
                    let rt = &emit.rt;
                    return quote!(<__T as #rt::Float>::of(#number));
                }
                let number = apply.operator.number(&apply.attributes, name);
                kernels::number_of(emit, number.unwrap_or_default())
            }
        }
    }))
}

/// An operand of the chain at column `j` of the row.
fn element_of(emit: &Emit<'_>, parts: &RowLoop, id: ValueId) -> TokenStream {
    match &emit.graph.value(id).kind {
        Kind::Constant(_) | Kind::Named(_) => number(emit, id).unwrap_or_default(),
        Kind::Parameter { .. } => {
            let values = values_of(emit, id);
            let index = index_of(&emit.graph.shape(id), &parts.columns);
            quote!(#values[#index])
        }
        Kind::Input | Kind::Label => {
            let values = values_of(emit, id);
            quote!(#values[__row * __columns + __j])
        }
        Kind::Apply(_) => {
            let name = local(id);
            quote!(#name)
        }
    }
}

/// Where column `j` is in a parameter that repeats in every row.
pub(super) fn index_of(shape: &Dims, columns: &Dim) -> TokenStream {
    match shape.last() {
        Some(dim) if dim == columns => quote!(__j),
        _ => quote!(0),
    }
}

/// The declared arrays that the chains index.
pub(super) fn indexed(emit: &Emit<'_>, parts: &RowLoop) -> BTreeSet<ValueId> {
    parts
        .forward
        .iter()
        .chain(&parts.backward)
        .flat_map(|id| emit.graph.apply_of(*id))
        .flat_map(|apply| apply.operands.iter().copied())
        .filter(|id| {
            !matches!(
                emit.graph.value(*id).kind,
                Kind::Apply(_) | Kind::Constant(_) | Kind::Named(_)
            )
        })
        .collect()
}

/// Whether the backward chain reads values of the forward one, which are then computed again from the
/// saved products: cheaper than keeping them.
pub(super) fn needs_forward(emit: &Emit<'_>, parts: &RowLoop) -> bool {
    let terms = parts.terms.all().into_iter().map(|term| term.value);
    let forward: BTreeSet<ValueId> = terms.chain(parts.forward.iter().copied()).collect();
    let backward = parts.backward.iter().flat_map(|id| emit.graph.apply_of(*id));
    backward.flat_map(|apply| &apply.operands).any(|operand| forward.contains(operand))
}

pub(super) fn local(id: ValueId) -> Ident {
    format_ident!("__v{}", id.0)
}

pub(super) fn values_of(emit: &Emit<'_>, id: ValueId) -> Ident {
    format_ident!("__values_{}", emit.graph.label(id))
}

pub(super) fn grad_of(emit: &Emit<'_>, id: ValueId) -> Ident {
    format_ident!("__grad_{}", emit.graph.label(id))
}

pub(super) fn sums_of(emit: &Emit<'_>, id: ValueId) -> Ident {
    format_ident!("__sums_{}", emit.graph.label(id))
}

pub(super) fn dense_of(emit: &Emit<'_>, id: ValueId) -> Ident {
    format_ident!("__dense_{}", emit.graph.label(id))
}

pub(in crate::emit) fn out_of(name: &str) -> Ident {
    format_ident!("__out_{name}")
}
