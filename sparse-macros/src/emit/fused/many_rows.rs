//! A step of many rows through dense layers: one pass over the rows of data, and then the updates.

use super::layers::{Values, add_term, columns, extent, list, n_rows, reads, setup, size, tables};
use super::names::local;
use super::shape::Steps;
use crate::emit::context::Emit;
use crate::emit::operands::written;
use crate::emit::scattered::updates;
use crate::emit::scores::recorded;
use crate::emit::updates::take_apart;
use proc_macro2::TokenStream;
use quote::quote;
use sparse_core::ir::ValueId;
use sparse_core::passes::{Layers, Scatter};

/// For `score = dot(relu(dot(embedding_bag(x, t), h) + b), g); loss logistic(score, y); output
/// score`:
///
/// ```text
/// __updater.begin_step()?;
/// let __values_h = layers::elements::<__T, { 16 * 32 }>("h", __param_h.values())?;
/// …
/// __buffer_2.reset_for_overwrite([__n_rows, 16]);
/// let __kept = [layers::Kept { rows: __buffer_2.values_mut(), columns: 16 }, …];
/// let (__loss, __sums) = layers::pass(__reads, __n_rows, [(0, __param_t.table_mut())],
///     __updater, __context.parallel,
///     __scratch, __kept, |__row, __place, __v8, __sums: &mut [__T; { 16 * 32 + 32 + … }],
///         __kept| {
///         let __v9: [__T; 32] = layers::product(&__v8, __values_h);
///         …
///         layers::add_outer(__sums, 0, &__v8, &__v16);
///         layers::add(__sums, { 16 * 32 }, &__v16);
///         layers::keep(__kept[0], __place, &__v17);
///         if __record { layers::keep(__kept[1], __place, &__v12); }
///         __loss
///     })?;
/// __gradients.h.reset_for_overwrite([16, 32]);
/// __gradients.h.values_mut().copy_from_slice(&__sums[0..][..{ 16 * 32 }]);
/// …
/// scatter::update(0, __param_t.table_mut(), __updater,
///     scatter::Bags { … added: __buffer_2.view() … }, …)?;
/// __updater.apply_dense(1, __param_h.values_mut(), __gradients.h.values())?;
/// __updater.end_step()?;
/// ```
pub(in crate::emit) fn many_rows(
    emit: &Emit<'_>,
    parts: &Layers,
    parameters: &[Scatter],
) -> TokenStream {
    let (rt, element) = (&emit.rt, &emit.element);
    let (n_rows, take_apart) = (n_rows(emit, parts), take_apart(emit));
    let setup = setup(emit, parts, Steps::One);
    let (reads, tables) = (reads(emit, parts), tables(emit, parts));
    let kept = kept(emit, parts);
    let reset = kept.iter().map(|kept| reset(emit, kept));
    let memory = kept.iter().map(|kept| memory(emit, kept));
    let row_function = row_function(emit, parts, &kept);
    let sums = parts.dense.iter().map(|(id, _)| {
        let (field, at, size) = (emit.declared(*id), at(emit, parts, *id), size(emit, *id));
        let shape = emit.graph.shape(*id);
        let extents = shape.iter().map(|dim| emit.fixed_extent(dim));
        quote! {
            __gradients.#field.reset_for_overwrite([#(#extents),*]);
            __gradients.#field.values_mut().copy_from_slice(&__sums[#at..][..#size]);
        }
    });
    let updates = updates(emit, parameters);
    quote! {
        #[allow(unused_imports)]
        use #rt::{Float as _, ScalarFunctions as _};
        type __T = #element;
        self.__check(__batch, true)?;
        #take_apart
        __updater.begin_step()?;
        let __n_rows = #n_rows;
        let __record = __updater.records_outputs();
        let __mean = #rt::linear::share::<__T>(__n_rows);
        #setup
        #(#reset)*
        let (__loss, __sums) = #rt::layers::pass(
            #reads,
            __n_rows,
            #tables,
            __updater,
            __context.parallel,
            __scratch,
            [#(#memory),*],
            #row_function,
        )?;
        #(#sums)*
        #updates
        __updater.end_step()?;
        #rt::Ok(__loss)
    }
}

/// Whether a step of many rows is [one pass](many_rows), where constants of Rust decide.
pub(in crate::emit) fn condition(emit: &Emit<'_>, parts: &Layers) -> TokenStream {
    let (rt, elements) = (&emit.rt, elements(emit, parts));
    quote!(const { #rt::layers::are_few(#elements) })
}

/// The elements of all gradients of dense parameters.
fn elements(emit: &Emit<'_>, parts: &Layers) -> TokenStream {
    let sizes = parts.dense.iter().map(|(id, _)| size(emit, *id));
    quote!({ 0usize #(+ #sizes)* })
}

/// Where the gradient of a dense parameter begins among them.
fn at(emit: &Emit<'_>, parts: &Layers, parameter: ValueId) -> TokenStream {
    let before = parts.dense.iter().map(|(id, _)| *id).take_while(|id| *id != parameter);
    let sizes = before.map(|id| size(emit, id));
    quote!({ 0usize #(+ #sizes)* })
}

/// A value of which a row is kept for each row of data.
struct BatchArray {
    value: ValueId,
    /// Whether an update needs it, and not outputs alone.
    always: bool,
}

/// What the updates of tables are made of, the outputs, and the scores of the first.
fn kept(emit: &Emit<'_>, parts: &Layers) -> Vec<BatchArray> {
    let mut kept: Vec<BatchArray> = Vec::new();
    let gradients = parts.reads.iter().filter_map(|read| read.gradient);
    let gradients = gradients.map(|value| BatchArray { value, always: true });
    let outputs = recorded(emit).into_iter();
    let outputs = outputs.map(|output| BatchArray { value: output.value, always: false });
    for value in gradients.chain(outputs) {
        if kept.iter().all(|known| known.value != value.value) {
            kept.push(value);
        }
    }
    kept
}

fn reset(emit: &Emit<'_>, kept: &BatchArray) -> Option<TokenStream> {
    let out = written(emit, kept.value)?;
    let rest = emit.graph.shape(kept.value).get(1).map(|dim| extent(emit, dim));
    let reset = quote!((#out).reset_for_overwrite([__n_rows, #rest]););
    Some(if kept.always { reset } else { quote!(if __record { #reset }) })
}

fn memory(emit: &Emit<'_>, kept: &BatchArray) -> Option<TokenStream> {
    let (rt, out) = (&emit.rt, written(emit, kept.value)?);
    let columns = extent(emit, &columns(emit, kept.value));
    let rows = if kept.always {
        quote!((#out).values_mut())
    } else {
        quote!(if __record { (#out).values_mut() } else { &mut [] })
    };
    Some(quote!(#rt::layers::Kept { rows: #rows, columns: #columns }))
}

/// `|row, place, __v8, sums, kept| { … loss }`
fn row_function(emit: &Emit<'_>, parts: &Layers, kept: &[BatchArray]) -> TokenStream {
    let rt = &emit.rt;
    let numbers = list(parts, |read| Some(read.value));
    let Values { computed, for_outputs } = Values::of(emit, parts, Steps::One);
    let add = parts.dense.iter().flat_map(|(id, terms)| {
        let at = at(emit, parts, *id);
        terms.iter().map(move |term| add_term(emit, *term, &quote!(__sums), &at))
    });
    let keep = |(place, kept): (usize, &BatchArray)| {
        let value = local(kept.value);
        quote!(#rt::layers::keep(__kept[#place], __place, &#value);)
    };
    let always = kept.iter().enumerate().filter(|(_, kept)| kept.always).map(keep);
    let recorded: Vec<_> =
        kept.iter().enumerate().filter(|(_, kept)| !kept.always).map(keep).collect();
    let record = (!recorded.is_empty()).then(|| quote!(if __record { #for_outputs #(#recorded)* }));
    let (elements, n_kept) = (elements(emit, parts), kept.len());
    quote! {
        #[inline(always)]
        |
            __row: #rt::usize,
            __place: #rt::usize,
            #numbers,
            __sums: &mut [__T; #elements],
            __kept: &mut [&mut [__T]; #n_kept],
        | {
            #computed
            #(#add)*
            #(#always)*
            #record
            __loss
        }
    }
}
