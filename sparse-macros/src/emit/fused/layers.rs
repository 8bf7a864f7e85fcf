//! Steps of one row through dense layers: the reads of the row, and the row function that goes from
//! what is read to its gradients.

use super::loss::row_loss;
use super::names::{dense_of, index_of, local, values_of};
use super::shape::Steps;
use crate::emit::context::Emit;
use crate::emit::element_wise::formula;
use crate::emit::literals::number_of;
use crate::emit::nest::balanced;
use crate::emit::operands::number;
use crate::emit::scattered::of_bags;
use crate::emit::scores::{Recorded, recorded};
use crate::emit::updates::take_apart;
use proc_macro2::TokenStream;
use quote::{ToTokens as _, quote};
use sparse_core::ir::{Apply, Kind, ValueId};
use sparse_core::passes::{DenseGradient, Layers, NamedRows, RowComputed, RowValue, RowsRead};
use sparse_core::shapes::Dim;
use std::collections::BTreeSet;

/// For `score = dot(relu(dot(embedding_bag(x, t), h) + b), g); loss logistic(score, y); output
/// score`:
///
/// ```text
/// let __label = __batch.y.values();
/// let __reads = layers::Bags::<_, 0, 16, false, false> { csr: __batch.x };
/// while __made.n_steps < __n_rows && !__made.diverged() {
///     let __first = __made.n_steps;
///     let __count = __updater.begin_steps(__n_rows - __first)?;
///     let mut __dense_h = __updater.take_fixed::<{ 16 * 32 }>(1, __param_h.values_mut())?;
///     …
///     let __steps = layers::steps(__reads, __first..__first + __count, [(0,
///         __param_t.table_mut())], __updater,
///         |__row, __v8| {
///             let __values_h = __dense_h.values();
///             …
///             let __v9: [__T; 32] = layers::product(&__v8, __values_h);
///             let mut __v10 = [0.0; 32];
///             for __j in 0..__v10.len() { __v10[__j] = (__v9[__j] + __values_b[__j]); }
///             …
///             let mut __v14 = __v12;
///             let __loss = logistic::cpu::row(&mut __v14[..],
///                 &__label[__row * __columns..(__row + 1) * __columns]);
///             let __v15: [__T; 32] = layers::transposed_product(&__v14, __values_g);
///             …
///             if __record { __out_score.copy_from_slice(&__v12); }
///             __dense_h.update_outer(&__v8, &__v16);
///             __dense_b.update(&__v16);
///             …
///             (__loss, __v17)
///         });
///     __updater.put_fixed(1, __dense_h)?;
///     …
///     let __steps = __steps?;
///     __updater.end_steps(__steps.n_steps)?;
///     __made.extend(__steps);
/// }
/// ```
pub(in crate::emit) fn each_row(emit: &Emit<'_>, parts: &Layers) -> TokenStream {
    let (rt, element) = (&emit.rt, &emit.element);
    let (setup, outputs) = (setup(emit, parts, Steps::EachRow), outputs(emit));
    let n_rows = n_rows(emit, parts);
    let (reads, tables) = (reads(emit, parts), tables(emit, parts));
    let dense = || parts.dense.iter().map(|(id, _)| *id);
    let take = dense().map(|id| {
        let (index, local) = (emit.index_of(id), emit.parameter_local(id));
        let (dense, size) = (dense_of(emit, id), size(emit, id));
        quote!(let mut #dense = __updater.take_fixed::<#size>(#index, #local.values_mut())?;)
    });
    let put = dense().map(|id| {
        let (index, dense) = (emit.index_of(id), dense_of(emit, id));
        quote!(__updater.put_fixed(#index, #dense)?;)
    });
    let row_function = row_function(emit, parts);
    let take_apart = take_apart(emit);
    quote! {
        #[allow(unused_imports)]
        use #rt::{Float as _, ScalarFunctions as _};
        type __T = #element;
        self.__check(__batch, true)?;
        #take_apart
        let __n_rows = #n_rows;
        // Of a batch of one row, who wants outputs has them.
        let __record = __n_rows == 1 && __updater.records_outputs();
        #setup
        #outputs
        let __reads = #reads;
        let mut __made = <#rt::RowSteps as ::core::default::Default>::default();
        while __made.n_steps < __n_rows && !__made.diverged() {
            let __first = __made.n_steps;
            let __count = __updater.begin_steps(__n_rows - __first)?;
            #(#take)*
            let __steps = #rt::layers::steps(
                __reads,
                __first..__first + __count,
                #tables,
                __updater,
                #row_function,
            );
            #(#put)*
            let __steps = __steps?;
            __updater.end_steps(__steps.n_steps)?;
            __made.extend(__steps);
        }
        #rt::Ok(__made)
    }
}

/// What a row of data reads: `layers::Bags::<…> { csr: __batch.x }`, or several of them in pairs of
/// pairs. Of a table that is read more than once `layers::Together::<_, 0, 16> { reads:
/// (layers::Bags::<…> { … }, layers::Taken::<…> { … }) }`; what nothing goes back to is
/// `layers::Stopped::<_, 0, 16> { read: … }`, or of a parameter that is not trained
/// `layers::Frozen::<_, _, 16>::new(…, __param_t.values())`.
pub(super) fn reads(emit: &Emit<'_>, parts: &Layers) -> TokenStream {
    let rt = &emit.rt;
    let tables = parts.reads_by_table().enumerate().map(|(place, reads)| match reads {
        [read] => self::read(emit, place, read).unwrap_or_default(),
        reads => {
            let size = reads.first().map(|read| extent(emit, &columns(emit, read.value)));
            let reads =
                nested(reads.iter().map(|read| self::read(emit, place, read).unwrap_or_default()));
            quote!(#rt::layers::Together::<_, #place, #size> { reads: #reads })
        }
    });
    let frozen = parts.frozen.iter().map(|read| {
        let (local, size) =
            (emit.parameter_local(read.table), extent(emit, &columns(emit, read.value)));
        let read = named(emit, 0, read).unwrap_or_default();
        quote!(#rt::layers::Frozen::<_, _, #size>::new(#read, #local.values()))
    });
    nested(tables.chain(frozen))
}

/// `((first, second), third)`: pairs of pairs.
fn nested(items: impl Iterator<Item = TokenStream>) -> TokenStream {
    let items: Vec<TokenStream> = items.collect();
    balanced(&items, |left, right| quote!((#left, #right))).unwrap_or_else(|| quote!(()))
}

/// What it reads that of: `[(0, __param_t.table_mut())]`.
pub(super) fn tables(emit: &Emit<'_>, parts: &Layers) -> TokenStream {
    let tables = parts.reads_by_table().filter_map(|reads| {
        let table = reads.first()?.table;
        let (index, local) = (emit.index_of(table), emit.parameter_local(table));
        Some(quote!((#index, #local.table_mut())))
    });
    quote!([#(#tables),*])
}

/// The rows of the batch.
pub(super) fn n_rows(emit: &Emit<'_>, parts: &Layers) -> TokenStream {
    let label = loss_of(emit, parts).map(|loss| emit.declared(loss.operands[1]));
    quote!(__batch.#label.shape()[0])
}

fn loss_of<'a>(emit: &'a Emit<'_>, parts: &Layers) -> Option<&'a Apply> {
    emit.graph.apply_of(parts.loss)
}

/// The elements of a row of a value.
pub(super) fn columns(emit: &Emit<'_>, id: ValueId) -> Dim {
    emit.graph.shape(id).get(1).cloned().unwrap_or(Dim::Size(1))
}

/// An extent that the source has.
pub(super) fn extent(emit: &Emit<'_>, dim: &Dim) -> TokenStream {
    let extent = emit.fixed_extent(dim);
    quote!({ #extent })
}

/// The elements of a parameter.
pub(super) fn size(emit: &Emit<'_>, parameter: ValueId) -> TokenStream {
    let shape = emit.graph.shape(parameter);
    let extents = shape.iter().map(|dim| extent(emit, dim));
    quote!({ 1usize #(* #extents)* })
}

/// What the row_sparse parameter at a place is read by.
fn read(emit: &Emit<'_>, place: usize, read: &RowsRead) -> Option<TokenStream> {
    if read.gradient.is_some() {
        return named(emit, place, read);
    }
    let (rt, size) = (&emit.rt, extent(emit, &columns(emit, read.value)));
    let read = named(emit, 0, read)?;
    Some(quote!(#rt::layers::Stopped::<_, #place, #size> { read: #read }))
}

/// What names rows of the parameter at a place.
fn named(emit: &Emit<'_>, place: usize, read: &RowsRead) -> Option<TokenStream> {
    let rt = &emit.rt;
    let apply = emit.graph.apply_of(read.value)?;
    let size = extent(emit, &columns(emit, read.value));
    Some(match NamedRows::read(emit.graph, apply, read.table)? {
        NamedRows::Product { csr } => {
            let csr = emit.declared(csr);
            quote!(#rt::layers::Product::<_, #place, #size> { csr: __batch.#csr })
        }
        NamedRows::Bags { bags } => {
            let bags = emit.declared(bags);
            let [mean, weighted] = of_bags(emit, apply);
            quote!(#rt::layers::Bags::<_, #place, #size, #mean, #weighted> { csr: __batch.#bags })
        }
        NamedRows::Ids { ids } => {
            let ids = emit.declared(ids);
            quote!(#rt::layers::Taken::<_, #place, #size> { ids: __batch.#ids.values() })
        }
    })
}

/// What the values computed read that is declared.
fn declared_operands(emit: &Emit<'_>, parts: &Layers) -> BTreeSet<ValueId> {
    parts
        .values
        .iter()
        .filter(|value| value.computed != RowComputed::Loss)
        .flat_map(|value| emit.graph.apply_of(value.value))
        .flat_map(|apply| apply.operands.iter().copied())
        .filter(|id| {
            !matches!(
                emit.graph.value(*id).kind,
                Kind::Apply(_) | Kind::Constant(_) | Kind::Named(_)
            )
        })
        .collect()
}

fn is_trained(parts: &Layers, id: ValueId) -> bool {
    parts.dense.iter().any(|(parameter, _)| *parameter == id)
}

/// Arrays that the row function reads and that no row changes.
pub(super) fn setup(emit: &Emit<'_>, parts: &Layers, steps: Steps) -> TokenStream {
    let rt = &emit.rt;
    let operands = loss_of(emit, parts).map_or(&[][..], |loss| &loss.operands);
    let names = [(1, quote!(__label)), (2, quote!(__row_weights))];
    let of_loss = names.iter().filter_map(|(place, name)| {
        let field = emit.declared(*operands.get(*place)?);
        Some(quote!(let #name = __batch.#field.values();))
    });
    let changes = |id: &ValueId| steps == Steps::EachRow && is_trained(parts, *id);
    let fixed = declared_operands(emit, parts).into_iter().filter(|id| !changes(id));
    let fixed = fixed.map(|id| {
        let (variable, field) = (values_of(emit, id), emit.declared(id));
        match emit.graph.value(id).kind {
            Kind::Parameter { .. } => {
                let (local, size) = (emit.parameter_local(id), size(emit, id));
                let name = emit.graph.label(id);
                quote!(let #variable = #rt::layers::elements::<__T, #size>(#name, #local.values())?;)
            }
            _ => quote!(let #variable = __batch.#field.values();),
        }
    });
    quote!(#(#of_loss)* #(#fixed)*)
}

/// The outputs of a batch of one row, and the scores of the first.
fn outputs(emit: &Emit<'_>) -> TokenStream {
    let outputs = recorded(emit).into_iter().map(|Recorded { value, variable, array }| {
        let columns = emit.graph.shape(value).get(1).map(|dim| extent(emit, dim));
        quote! {
            if __record {
                #array.reset_for_overwrite([1, #columns]);
            }
            let #variable = #array.values_mut();
        }
    });
    quote!(#(#outputs)*)
}

/// `|row, __v8| { … (loss, __v17) }`
fn row_function(emit: &Emit<'_>, parts: &Layers) -> TokenStream {
    let (rt, graph) = (&emit.rt, emit.graph);
    let (numbers, gradients) =
        (list(parts, |read| Some(read.value)), list(parts, |read| read.gradient));
    let values = Values::of(emit, parts, Steps::EachRow);
    let record = recorded(emit).into_iter().map(|Recorded { value, variable, .. }| {
        let value = local(value);
        quote!(#variable.copy_from_slice(&#value);)
    });
    let record = (!graph.outputs.is_empty()).then(|| {
        let for_outputs = &values.for_outputs;
        quote!(if __record { #for_outputs #(#record)* })
    });
    let updates = parts.dense.iter().map(|(id, terms)| {
        let dense = dense_of(emit, *id);
        match terms[..] {
            [DenseGradient::Outer(left, right)] => {
                let (left, right) = (local(left), local(right));
                quote!(#dense.update_outer(&#left, &#right);)
            }
            [DenseGradient::Row(row)] => {
                let row = local(row);
                quote!(#dense.update(&#row);)
            }
            [DenseGradient::Total(row)] => {
                let row = local(row);
                quote!(#dense.update(&#rt::layers::total(&#row));)
            }
            _ => {
                let (zero, size) = (number_of(emit, 0.0), size(emit, *id));
                let (sums, first) = (quote!(&mut __gradient), quote!(0));
                let add = terms.iter().map(|term| add_term(emit, *term, &sums, &first));
                quote!({
                    let mut __gradient = [#zero; #size];
                    #(#add)*
                    #dense.update(&__gradient);
                })
            }
        }
    });
    let computed = &values.computed;
    quote! {
        #[inline(always)]
        |__row: #rt::usize, #numbers| {
            #computed
            #record
            #(#updates)*
            (__loss, #gradients)
        }
    }
}

/// `layers::add_outer(__sums, 0, &__v8, &__v16);`: adds to the elements from `first` on.
pub(super) fn add_term(
    emit: &Emit<'_>,
    term: DenseGradient,
    sums: &TokenStream,
    first: &TokenStream,
) -> TokenStream {
    let rt = &emit.rt;
    match term {
        DenseGradient::Outer(left, right) => {
            let (left, right) = (local(left), local(right));
            quote!(#rt::layers::add_outer(#sums, #first, &#left, &#right);)
        }
        DenseGradient::Row(row) => {
            let row = local(row);
            quote!(#rt::layers::add(#sums, #first, &#row);)
        }
        DenseGradient::Total(row) => {
            let row = local(row);
            quote!(#rt::layers::add(#sums, #first, &#rt::layers::total(&#row));)
        }
    }
}

/// `(__v8, (__v9, ()))`: a value for each read, in the order of the [reads], `()` where it has
/// none.
pub(super) fn list(parts: &Layers, of: fn(&RowsRead) -> Option<ValueId>) -> TokenStream {
    let value = |read: &RowsRead| of(read).map_or(quote!(()), |id| local(id).into_token_stream());
    let tables = parts.reads_by_table().map(|reads| match reads {
        [read] => value(read),
        reads => nested(reads.iter().map(value)),
    });
    let frozen = parts.frozen.iter().map(value);
    nested(tables.chain(frozen))
}

/// The values of a row of data.
pub(super) struct Values {
    /// Those that the loss and the gradients need.
    pub(super) computed: TokenStream,
    /// Those that outputs alone need.
    pub(super) for_outputs: TokenStream,
}

impl Values {
    pub(super) fn of(emit: &Emit<'_>, parts: &Layers, steps: Steps) -> Self {
        let graph = emit.graph;
        let declared = declared_operands(emit, parts).into_iter().filter_map(|id| {
            let variable = values_of(emit, id);
            match graph.value(id).kind {
                Kind::Parameter { .. } => {
                    (steps == Steps::EachRow && is_trained(parts, id)).then(|| {
                        let dense = dense_of(emit, id);
                        quote!(let #variable = #dense.values();)
                    })
                }
                _ => {
                    let (name, columns) = (local(id), extent(emit, &columns(emit, id)));
                    Some(quote!(let #name = &#variable.as_chunks::<#columns>().0[__row];))
                }
            }
        });
        let trained = graph.gradients.iter().map(|(_, gradient)| *gradient);
        let needed = graph.ancestors(graph.losses.iter().copied().chain(trained));
        let (values, for_outputs): (Vec<_>, Vec<_>) =
            parts.values.iter().partition(|value| needed[value.value.0]);
        let values = values.into_iter().map(|value| self::value(emit, parts, value, steps));
        let for_outputs = for_outputs.into_iter().map(|it| self::value(emit, parts, it, steps));
        Values {
            computed: quote!(#(#declared)* #(#values)*),
            for_outputs: quote!(#(#for_outputs)*),
        }
    }
}

/// A row of a value, as an array.
fn value(emit: &Emit<'_>, parts: &Layers, value: &RowValue, steps: Steps) -> Option<TokenStream> {
    let rt = &emit.rt;
    let (name, columns) = (local(value.value), columns(emit, value.value));
    let apply = emit.graph.apply_of(value.value)?;
    let extent = extent(emit, &columns);
    let array = |value: TokenStream| quote!(let #name: [__T; #extent] = #value;);
    Some(match value.computed {
        RowComputed::ElementWise => {
            let operands: Vec<_> =
                apply.operands.iter().map(|operand| element_of(emit, *operand, &columns)).collect();
            let (formula, zero) = (formula(emit, apply, &operands)?, number_of(emit, 0.0));
            quote! {
                let mut #name = [#zero; #extent];
                for __j in 0..#name.len() {
                    #name[__j] = #formula;
                }
            }
        }
        RowComputed::Loss => {
            let loss = loss_of(emit, parts)?;
            let score = local(loss.operands[0]);
            let call = row_loss(emit, loss, &quote!(#name[..]));
            let weight = loss.operands.get(2).map(|_| quote!(__row_weights[__row]));
            // A row that is all of its batch has all of the mean.
            let share = match (steps, &weight) {
                (Steps::One, None) => Some(quote!(__mean)),
                (Steps::One, Some(weight)) => Some(quote!(__mean * #weight)),
                (Steps::EachRow, weight) => weight.clone(),
            };
            let share = share.map(|share| {
                quote! {
                    let __share = #share;
                    for __derivative in &mut #name {
                        *__derivative *= __share;
                    }
                }
            });
            let weighted = weight.map(|weight| quote!(let __loss = __loss * #weight;));
            quote! {
                let mut #name = #score;
                let __columns = #extent;
                let __loss = #call;
                #weighted
                #share
            }
        }
        RowComputed::Product { x, w, transposed, bias } => {
            let (x, w) = (local(x), values_of(emit, w));
            let product = if transposed {
                quote!(#rt::layers::transposed_product(&#x, #w))
            } else {
                quote!(#rt::layers::product(&#x, #w))
            };
            array(match bias.map(|bias| values_of(emit, bias)) {
                None => product,
                Some(bias) => quote!(#rt::layers::plus(#product, #bias)),
            })
        }
        RowComputed::Joined(first, second) => {
            let (first, second) = (local(first), local(second));
            array(quote!(#rt::layers::joined(&#first, &#second)))
        }
        RowComputed::Part { of, from_end } => {
            let of = local(of);
            array(quote!(#rt::layers::part(&#of, #from_end)))
        }
        RowComputed::Total { of, mean } => {
            let row = local(of);
            array(if mean {
                quote!(#rt::layers::mean(&#row))
            } else {
                quote!(#rt::layers::total(&#row))
            })
        }
        RowComputed::Repeated { of, shared } => {
            let row = local(of);
            array(if shared {
                quote!(#rt::layers::shares(#row[0]))
            } else {
                quote!([#row[0]; #extent])
            })
        }
        RowComputed::Copy(row) => {
            let row = local(row);
            array(quote!(#rt::layers::copied(&#row)))
        }
        RowComputed::Softmax(row) => {
            let row = local(row);
            quote! {
                let mut #name = #rt::layers::copied(&#row);
                #rt::kernels::softmax::cpu::row(&mut #name);
            }
        }
    })
}

/// An operand's element that element `j` of a row of so many columns is computed from.
fn element_of(emit: &Emit<'_>, id: ValueId, wide: &Dim) -> TokenStream {
    match &emit.graph.value(id).kind {
        Kind::Constant(_) | Kind::Named(_) => number(emit, id).unwrap_or_default(),
        Kind::Parameter { .. } => {
            let (values, index) = (values_of(emit, id), index_of(&emit.graph.shape(id), wide));
            quote!(#values[#index])
        }
        _ => {
            let (name, index) = (local(id), index_of(&vec![columns(emit, id)], wide));
            quote!(#name[#index])
        }
    }
}
