//! The fused step: the row function that the runtime's loop over rows of data calls between reading and update.

mod call;
mod layers;
mod row;

use self::call::call;
pub(super) use self::layers::each_row as each_row_through_layers;
pub(super) use self::row::formula;
use self::row::{dense_of, grad_of, indexed, out_of, values_of};
use super::Emit;
use super::kernels::number_of;
use super::step::take_apart;
use proc_macro2::{Ident, TokenStream};
use quote::quote;
use sparse_core::ir::{Kind, ValueId};
use sparse_core::passes::{RowLoop, Terms};
use sparse_core::shapes::Dim;

/// For `pred = dot(x, w) + b; loss squared_error(pred, y); output pred`:
///
/// ```text
/// let label = batch.y.values();
/// let __values_b = __param_b.values();
/// __gradients.b.reset_for_overwrite([1]);
/// let __grad_b = __gradients.b.values_mut();
/// __grad_b.fill(-0.0f32);
/// if record { __outputs.pred.reset_for_overwrite([n_rows, columns]); }
/// let __out_pred = __outputs.pred.values_mut();
/// let mut __samples = updater.take_samples();
/// let loss = linear::step(batch.x, 0, __param_w.table_mut(), updater, linear::Fixed::<1>,
///     __context.parallel, __scratch, |row, s, saved| {
///         for j in 0..columns {
///             let __v4 = s[j];
///             let __v5 = (__v4 + __values_b[0]);
///             if record { __out_pred[row * columns + j] = __v5; }
///             s[j] = __v5;
///         }
///         let loss = squared_error::cpu::row(&mut s[..columns], &label[row * columns..(row + 1) * columns]);
///         if __R::CORRECTS { __samples.correct(row, &mut s[..columns]); }
///         let share = mean;
///         for j in 0..columns {
///             let __v8 = s[j] * share;
///             __grad_b[0] += __v8;
///             s[j] = __v8;
///         }
///         loss
///     });
/// updater.put_samples(__samples);
/// let loss = loss?;
/// updater.apply_dense(1, __param_b.values_mut(), __gradients.b.values())?;
/// ```
pub(super) fn all_rows(emit: &Emit<'_>, parts: &RowLoop) -> TokenStream {
    let (rt, element) = (&emit.rt, &emit.element);
    let n_rows = n_rows(emit, parts);
    let width = width(emit, &parts.columns);
    let (setup, outputs) = (setup(emit, parts, Steps::One), outputs(emit));
    let gradients = gradients(emit, parts, Steps::One);
    let dense_updates = parts.reductions.iter().map(|(parameter, _, _)| {
        let (index, field) = (emit.index_of(*parameter), emit.declared(*parameter));
        let local = emit.parameter_local(*parameter);
        quote!(updater.apply_dense(#index, #local.values_mut(), __gradients.#field.values())?;)
    });
    let take_apart = take_apart(emit);
    let step = call(emit, parts, Steps::One);
    let (take_samples, put_samples) = samples(emit, parts);
    quote! {
        #[allow(unused_imports)]
        use #rt::{Float as _, ScalarFunctions as _};
        type __T = #element;
        self.__check(batch, true)?;
        #take_apart
        updater.begin_step()?;
        let n_rows = #n_rows;
        let columns = #rt::linear::Width::columns(&#width);
        let record = updater.records_outputs();
        let mean = #rt::linear::share::<__T>(n_rows);
        #setup
        #gradients
        #outputs
        #take_samples
        let loss = #step;
        #put_samples
        let loss = loss?;
        #(#dense_updates)*
        updater.end_step()?;
        Ok(loss)
    }
}

/// What the row function is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Steps {
    /// One step of all rows of a batch.
    One,
    /// A step of each row.
    EachRow,
}

/// A step of each row of a batch. The dense parameters are updated by the row function:
///
/// ```text
/// while made.n_steps < n_rows && !made.diverged() {
///     let first = made.n_steps;
///     let count = updater.begin_steps(n_rows - first)?;
///     let mut __dense_b = updater.take_few::<1>(1, __param_b.values_mut())?;
///     let mut __few = (__dense_b,);
///     let steps = linear::steps(batch.x, first..first + count, 0, __param_w.table_mut(), updater,
///         linear::Fixed::<1>, __scratch, &mut __few, |row, s, saved, (__dense_b,)| {
///             let __grad_b = &mut [-0.0f32; 1];
///             let __values_b = __dense_b.values();
///             …
///             __dense_b.update(__grad_b);
///             loss
///         });
///     let (__dense_b,) = __few;
///     updater.put_few(1, __param_b.values_mut(), &__dense_b);
///     let steps = steps?;
///     updater.end_steps(steps.n_steps)?;
///     made.extend(steps);
/// }
/// ```
pub(super) fn each_row(emit: &Emit<'_>, parts: &RowLoop) -> TokenStream {
    let (rt, element) = (&emit.rt, &emit.element);
    let n_rows = n_rows(emit, parts);
    let setup = setup(emit, parts, Steps::EachRow);
    let gradients = gradients(emit, parts, Steps::EachRow);
    let take_apart = take_apart(emit);
    let steps = call(emit, parts, Steps::EachRow);
    let few_dense = few_dense(emit, parts);
    let (take_samples, put_samples) = samples(emit, parts);
    let reduced = || parts.reductions.iter().map(|(parameter, _, _)| *parameter);
    let take = reduced().map(|id| {
        let (index, local, dense) =
            (emit.index_of(id), emit.parameter_local(id), dense_of(emit, id));
        let take = match few(emit, id) {
            Some(count) => quote!(let #dense = updater.take_few::<#count>),
            None => quote!(let mut #dense = updater.take_dense),
        };
        quote!(#take(#index, #local.values_mut())?;)
    });
    let put = reduced().map(|id| {
        let (index, local, dense) =
            (emit.index_of(id), emit.parameter_local(id), dense_of(emit, id));
        match few(emit, id) {
            Some(_) => quote!(updater.put_few(#index, #local.values_mut(), &#dense);),
            None => quote!(updater.put_dense(#index, #dense);),
        }
    });
    quote! {
        #[allow(unused_imports)]
        use #rt::{Float as _, ScalarFunctions as _};
        type __T = #element;
        self.__check(batch, true)?;
        #take_apart
        let n_rows = #n_rows;
        #setup
        #gradients
        let mut made = #rt::RowSteps::default();
        while made.n_steps < n_rows && !made.diverged() {
            let first = made.n_steps;
            let count = updater.begin_steps(n_rows - first)?;
            #(#take)*
            #take_samples
            let mut __few = (#(#few_dense,)*);
            let steps = #steps;
            let (#(#few_dense,)*) = __few;
            #put_samples
            #(#put)*
            let steps = steps?;
            updater.end_steps(steps.n_steps)?;
            made.extend(steps);
        }
        Ok(made)
    }
}

/// Whether the derivatives of a row's loss by its scores can stand for all gradients of the row: these are a product of the row with
/// a parameter, and what is between product and scores depends on no parameter. Then a rule that corrects gradients corrects the derivatives.
pub(super) fn corrects_scores(emit: &Emit<'_>, parts: &RowLoop) -> bool {
    let Terms::Linear(linear) = &parts.terms else { return false };
    let reads_parameter = || {
        let backward = parts.backward.iter().flat_map(|id| emit.graph.apply_of(*id));
        let mut operands = backward.flat_map(|apply| &apply.operands);
        operands.any(|id| matches!(emit.graph.value(*id).kind, Kind::Parameter { .. }))
    };
    linear.interaction.is_none() && !row::needs_forward(emit, parts) && !reads_parameter()
}

/// What lends the samples of a rule that corrects gradients to the row function, and takes them back.
fn samples(emit: &Emit<'_>, parts: &RowLoop) -> (Option<TokenStream>, Option<TokenStream>) {
    let corrects = corrects_scores(emit, parts);
    (
        corrects.then(|| quote!(let mut __samples = updater.take_samples();)),
        corrects.then(|| quote!(updater.put_samples(__samples);)),
    )
}

/// The rows of the batch.
fn n_rows(emit: &Emit<'_>, parts: &RowLoop) -> TokenStream {
    match &parts.terms {
        Terms::Linear(linear) => {
            let input = emit.declared(linear.input);
            quote!(batch.#input.n_rows())
        }
        Terms::Lookups(_) => {
            let label = emit.declared(parts.label);
            quote!(batch.#label.shape()[0])
        }
    }
}

/// `linear::Fixed::<16>`, or `linear::Runtime(…)` of a width that is known when the model is made.
fn width(emit: &Emit<'_>, dim: &Dim) -> TokenStream {
    let rt = &emit.rt;
    let constant = match dim {
        Dim::Size(size) => {
            let size = *size as usize;
            Some(quote!(#size))
        }
        dim => emit.constant(&dim.to_string()),
    };
    match constant {
        Some(size) => quote!(#rt::linear::Fixed::<{ #size }>),
        None => {
            let extent = emit.fixed_extent(dim);
            quote!(#rt::linear::Runtime(#extent))
        }
    }
}

/// Slices that the row function indexes: the batch's, and parameters that do not change meanwhile.
fn setup(emit: &Emit<'_>, parts: &RowLoop, steps: Steps) -> TokenStream {
    let mut tokens = TokenStream::new();
    let label = emit.declared(parts.label);
    tokens.extend(quote!(let label = batch.#label.values();));
    if let Some(weight) = parts.row_weight {
        let weight = emit.declared(weight);
        tokens.extend(quote!(let row_weights = batch.#weight.values();));
    }
    for id in indexed(emit, parts) {
        if steps == Steps::EachRow && is_reduced(parts, id) {
            continue;
        }
        let variable = values_of(emit, id);
        tokens.extend(match emit.graph.value(id).kind {
            Kind::Parameter { .. } => {
                let local = emit.parameter_local(id);
                quote!(let #variable = #local.values();)
            }
            _ => {
                let field = emit.declared(id);
                quote!(let #variable = batch.#field.values();)
            }
        });
    }
    tokens
}

/// Whether a parameter is dense and trained: then it changes with every step.
fn is_reduced(parts: &RowLoop, id: ValueId) -> bool {
    parts.reductions.iter().any(|(parameter, _, _)| *parameter == id)
}

/// The elements of a parameter that are few enough to be kept in registers, if it is one of those.
fn few(emit: &Emit<'_>, parameter: ValueId) -> Option<usize> {
    const FEW: u64 = 32;
    let sizes = emit.graph.shape(parameter).iter().try_fold(1u64, |product, dim| match dim {
        Dim::Size(size) => product.checked_mul(*size),
        _ => None,
    });
    sizes.filter(|size| *size <= FEW).map(|size| size as usize)
}

/// The trained dense parameters that are [few] elements each: what the loop keeps in registers from row to row.
fn few_dense(emit: &Emit<'_>, parts: &RowLoop) -> Vec<Ident> {
    let reduced = parts.reductions.iter().map(|(parameter, _, _)| *parameter);
    reduced.filter(|id| few(emit, *id).is_some()).map(|id| dense_of(emit, id)).collect()
}

/// What a gradient is before anything is added to it: -0, to which adding is no work where the compiler sees it.
fn nothing(emit: &Emit<'_>) -> TokenStream {
    number_of(emit, -0.0)
}

/// The gradients that the row function adds to, but for those that it makes itself.
fn gradients(emit: &Emit<'_>, parts: &RowLoop, steps: Steps) -> TokenStream {
    let mut tokens = TokenStream::new();
    for (parameter, _, _) in &parts.reductions {
        let (field, variable) = (emit.declared(*parameter), grad_of(emit, *parameter));
        if steps == Steps::EachRow && few(emit, *parameter).is_some() {
            continue;
        }
        let nothing = nothing(emit);
        let shape = emit.graph.shape(*parameter);
        let extents = shape.iter().map(|dim| emit.fixed_extent(dim));
        tokens.extend(quote! {
            __gradients.#field.reset_for_overwrite([#(#extents),*]);
            let #variable = __gradients.#field.values_mut();
            #variable.fill(#nothing);
        });
    }
    tokens
}

/// The outputs that the row function writes.
fn outputs(emit: &Emit<'_>) -> TokenStream {
    let mut tokens = TokenStream::new();
    for output in &emit.graph.outputs {
        let (field, variable) = (emit.output_ident(&output.name), out_of(&output.name));
        let shape = match emit.graph.shape(output.value).len() {
            1 => quote!([n_rows]),
            _ => quote!([n_rows, columns]),
        };
        tokens.extend(quote! {
            if record {
                __outputs.#field.reset_for_overwrite(#shape);
            }
            let #variable = __outputs.#field.values_mut();
        });
    }
    tokens
}
