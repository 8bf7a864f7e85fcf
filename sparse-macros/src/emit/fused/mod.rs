//! The fused step: the row function that the runtime's loop over rows of data calls between reading
//! and update.

mod call;
mod loss;
mod names;
mod program;
mod row;
mod shape;

pub(super) use self::program::{are_few, method, n_samples};
pub(super) use self::shape::corrects_scores;

use self::call::call;
use self::names::{dense_of, grad_of, sums_of, values_of};
use self::shape::{Steps, few, few_dense, indexed, nothing, of_mean, width};
use super::context::Emit;
use super::scores::{Recorded, recorded};
use super::updates::take_apart;
use proc_macro2::TokenStream;
use quote::quote;
use sparse_core::ir::{Kind, ValueId};
use sparse_core::passes::{RowLoop, Terms};

/// For `pred = dot(x, w) + b; loss squared_error(pred, y); output pred`:
///
/// ```text
/// let __label = __batch.y.values();
/// let __values_b = __param_b.values();
/// __gradients.b.reset_for_overwrite([1]);
/// let mut __sums_b = __updater.take_sums(1, __gradients.b.values().len());
/// let __grad_b = &mut __sums_b[..];
/// if __record { __outputs.pred.reset_for_overwrite([__n_rows, __columns]); }
/// let __out_pred = __outputs.pred.values_mut();
/// let mut __samples = __updater.take_samples();
/// let __loss = linear::step(__batch.x, 0, __param_w.table_mut(), __updater, linear::Fixed::<1>,
///     __context.parallel, __scratch, |__row, __s, __saved| {
///         for __j in 0..__columns {
///             let __v4 = __s[__j];
///             let __v5 = (__v4 + __values_b[0]);
///             if __record { __out_pred[__row * __columns + __j] = __v5; }
///             __s[__j] = __v5;
///         }
///         let __loss = squared_error::cpu::row(&mut __s[..__columns],
///             &__label[__row * __columns..(__row + 1) * __columns]);
///         if __R::CORRECTS { __samples.correct(__row, &mut __s[..__columns]); }
///         let __share = __mean;
///         for __j in 0..__columns {
///             let __v8 = __s[__j] * __share;
///             __grad_b[0] += Float::as_f64(__v8);
///             __s[__j] = __v8;
///         }
///         __loss
///     });
/// __updater.put_samples(__samples);
/// __updater.put_sums(1, __sums_b, __gradients.b.values_mut());
/// let __loss = __loss?;
/// __updater.apply_dense(1, __param_b.values_mut(), __gradients.b.values())?;
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
        quote!(__updater.apply_dense(#index, #local.values_mut(), __gradients.#field.values())?;)
    });
    let take_apart = take_apart(emit);
    let step = call(emit, parts, Steps::One);
    let (take_samples, put_samples) = samples(emit, parts);
    let put_sums = parts.reductions.iter().map(|(parameter, _, _)| {
        let (index, field) = (emit.index_of(*parameter), emit.declared(*parameter));
        let sums = sums_of(emit, *parameter);
        quote!(__updater.put_sums(#index, #sums, __gradients.#field.values_mut());)
    });
    quote! {
        #[allow(unused_imports)]
        use #rt::{Float as _, ScalarFunctions as _};
        type __T = #element;
        self.__check(__batch, true)?;
        #take_apart
        __updater.begin_step()?;
        let __n_rows = #n_rows;
        let __columns = #rt::linear::Width::columns(&#width);
        let __record = __updater.records_outputs();
        let __mean = #rt::linear::share::<__T>(__n_rows);
        #setup
        #gradients
        #outputs
        #take_samples
        let __loss = #step;
        #put_samples
        #(#put_sums)*
        let __loss = __loss?;
        #(#dense_updates)*
        __updater.end_step()?;
        #rt::Ok(__loss)
    }
}

/// A step of each row of a batch. The dense parameters are updated by the row function:
///
/// ```text
/// while __made.n_steps < __n_rows && !__made.diverged() {
///     let __first = __made.n_steps;
///     let __count = __updater.begin_steps(__n_rows - __first)?;
///     let mut __dense_b = __updater.take_few::<1>(1, __param_b.values_mut())?;
///     let mut __few = (__dense_b,);
///     let __steps = linear::steps(__batch.x, __first..__first + __count, 0,
///         __param_w.table_mut(), __updater,
///         linear::Fixed::<1>, __scratch, &mut __few, |__row, __s, __saved, (__dense_b,)| {
///             let __grad_b = &mut [-0.0f32; 1];
///             let __values_b = __dense_b.values();
///             …
///             __dense_b.update(__grad_b);
///             __loss
///         });
///     let (__dense_b,) = __few;
///     __updater.put_few(1, __param_b.values_mut(), &__dense_b);
///     let __steps = __steps?;
///     __updater.end_steps(__steps.n_steps)?;
///     __made.extend(__steps);
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
            Some(count) => quote!(let #dense = __updater.take_few::<#count>),
            None => quote!(let mut #dense = __updater.take_dense),
        };
        quote!(#take(#index, #local.values_mut())?;)
    });
    let put = reduced().map(|id| {
        let (index, local, dense) =
            (emit.index_of(id), emit.parameter_local(id), dense_of(emit, id));
        match few(emit, id) {
            Some(_) => quote!(__updater.put_few(#index, #local.values_mut(), &#dense);),
            None => quote!(__updater.put_dense(#index, #dense)?;),
        }
    });
    quote! {
        #[allow(unused_imports)]
        use #rt::{Float as _, ScalarFunctions as _};
        type __T = #element;
        self.__check(__batch, true)?;
        #take_apart
        let __n_rows = #n_rows;
        #setup
        #gradients
        let mut __made = <#rt::RowSteps as ::core::default::Default>::default();
        while __made.n_steps < __n_rows && !__made.diverged() {
            let __first = __made.n_steps;
            let __count = __updater.begin_steps(__n_rows - __first)?;
            #(#take)*
            #take_samples
            let mut __few = (#(#few_dense,)*);
            let __steps = #steps;
            let (#(#few_dense,)*) = __few;
            #put_samples
            #(#put)*
            let __steps = __steps?;
            __updater.end_steps(__steps.n_steps)?;
            __made.extend(__steps);
        }
        #rt::Ok(__made)
    }
}

/// What lends the samples of a rule that corrects gradients to the row function, and takes them
/// back.
fn samples(emit: &Emit<'_>, parts: &RowLoop) -> (Option<TokenStream>, Option<TokenStream>) {
    let corrects = corrects_scores(emit, parts);
    (
        corrects.then(|| quote!(let mut __samples = __updater.take_samples();)),
        corrects.then(|| quote!(__updater.put_samples(__samples);)),
    )
}

/// The rows of the batch.
fn n_rows(emit: &Emit<'_>, parts: &RowLoop) -> TokenStream {
    match &parts.terms {
        Terms::Linear(linear) => {
            let input = emit.declared(linear.input);
            quote!(__batch.#input.n_rows())
        }
        Terms::Lookups(_) => {
            let label = emit.declared(parts.label);
            quote!(__batch.#label.shape()[0])
        }
    }
}

/// Slices that the row function indexes: the batch's, and parameters that do not change meanwhile.
fn setup(emit: &Emit<'_>, parts: &RowLoop, steps: Steps) -> TokenStream {
    let mut tokens = TokenStream::new();
    let label = emit.declared(parts.label);
    tokens.extend(quote!(let __label = __batch.#label.values();));
    tokens.extend(of_mean(emit, parts));
    if let Some(weight) = parts.row_weight {
        let weight = emit.declared(weight);
        tokens.extend(quote!(let __row_weights = __batch.#weight.values();));
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
                quote!(let #variable = __batch.#field.values();)
            }
        });
    }
    tokens
}

/// Whether a parameter is dense and trained: then it changes with every step.
fn is_reduced(parts: &RowLoop, id: ValueId) -> bool {
    parts.reductions.iter().any(|(parameter, _, _)| *parameter == id)
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
        tokens.extend(quote!(__gradients.#field.reset_for_overwrite([#(#extents),*]);));
        // Over the rows of a batch in `f64`, of one row in the gradient itself.
        tokens.extend(match steps {
            Steps::One => {
                let (index, sums) = (emit.index_of(*parameter), sums_of(emit, *parameter));
                quote! {
                    let mut #sums = __updater.take_sums(#index, __gradients.#field.values().len());
                    let #variable = &mut #sums[..];
                }
            }
            Steps::EachRow => quote! {
                let #variable = __gradients.#field.values_mut();
                #variable.fill(#nothing);
            },
        });
    }
    tokens
}

/// The outputs that the row function writes, and the scores of the first.
fn outputs(emit: &Emit<'_>) -> TokenStream {
    let mut tokens = TokenStream::new();
    for Recorded { value, variable, array } in recorded(emit) {
        let shape = match emit.graph.shape(value).len() {
            1 => quote!([__n_rows]),
            _ => quote!([__n_rows, __columns]),
        };
        tokens.extend(quote! {
            if __record {
                #array.reset_for_overwrite(#shape);
            }
            let #variable = #array.values_mut();
        });
    }
    tokens
}
