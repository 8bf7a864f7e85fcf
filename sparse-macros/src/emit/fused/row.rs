//! The row function: what happens between reading the parameters' rows and updating them.

use super::loss::{attributes, row_loss};
use super::names::{dense_of, grad_of, index_of, local, values_of};
use super::shape::{Steps, corrects_scores, few, few_dense, needs_forward, nothing, width};
use crate::emit::context::Emit;
use crate::emit::element_wise::formula;
use crate::emit::literals::number_of;
use crate::emit::operands::number;
use crate::emit::scores::{Recorded, recorded};
use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};
use sparse_core::ir::{Apply, Kind, ValueId};
use sparse_core::operators;
use sparse_core::passes::{LookupRead, RowLoop, Terms};
use sparse_core::shapes::Dim;

/// `|row, s, saved| { … }`: the numbers of a row become the gradients with respect to them; returns
/// the row's loss. Of steps of each row, `|row, s, saved, (__dense_b,)|`: what it changes from row
/// to row.
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
    let (call, loss_type) = if may_be_later(parts, loss) {
        // The loss has a type of its own.
        (row_of_one(emit, loss), quote!(_))
    } else {
        (row_loss(emit, loss, &quote!(__s[..__columns])), quote!(__T))
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

/// Where term number `number` is among the numbers of a row: a further one than the first is there
/// only where each has one column.
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

/// Whether the loop takes a loss of which a part is computed later: a sum over scores, of a row of
/// a linear model or a factorization machine that has one.
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
