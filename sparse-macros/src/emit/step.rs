//! `impl Model`: forward, loss, gradients, the training step, parameters by name.

use super::context::Emit;
use super::declarations::trained;
use super::kernels::Calls;
use super::losses::{no_loss, sum_of_losses};
use super::structs::from_tables;
use super::updates::{apply, settle, states, take_apart};
use super::{batch, fused, info, scattered, scores};
use proc_macro2::TokenStream;
use quote::quote;
use sparse_core::ir::ValueId;
use sparse_core::passes::{Fusion, RowProgram};
use sparse_core::storage::Storage;

/// The method that runs the row program of a model that has one.
pub(super) fn program(emit: &Emit<'_>) -> Option<TokenStream> {
    let program = emit.compiled.fusion.program().filter(|_| !emit.broken)?;
    Some(fused::method(emit, program))
}

/// ```text
/// impl Model for LinearRegression { … }
/// ```
pub(super) fn implementation(emit: &Emit<'_>) -> TokenStream {
    let (rt, element, name) = (&emit.rt, &emit.element, &emit.name);
    let (batch_type, outputs, grads) = (&emit.batch, &emit.outputs, &emit.grads);
    let constants = info::constants(emit);
    let (bind, input) = (batch::bind(emit), batch::input(emit));
    let check = batch::check_of_trait(emit);
    let train_rows = train_rows(emit);
    let clipped_step = clipped_step(emit);
    let from_tables = from_tables(emit);
    let linked_scores = scores::linked_scores(emit);
    let mut carrying = TokenStream::new();
    let (forward, loss, loss_and_grads, train_step, adjusted_step) = if emit.broken {
        let never = quote!(::core::unreachable!("the model has compile errors"));
        (never.clone(), never.clone(), never.clone(), never.clone(), never)
    } else {
        let calls = Calls::new(emit);
        let plan = &emit.compiled.plan;
        carrying = self::carrying(emit, &calls);
        (
            forward(emit, &calls),
            with_loss(emit, &calls, &plan.loss),
            loss_and_grads(emit, &calls),
            train_step(emit, &calls),
            adjusted_step(emit),
        )
    };
    let dense_outputs = emit.graph.outputs.iter().enumerate().filter_map(|(index, output)| {
        let field = emit.output_ident(&output.name);
        let numbers = emit.graph.value(output.value).element.is_float();
        (numbers && emit.graph.storage(output.value) == Storage::Dense)
            .then(|| quote!(#index => #rt::Some(self.__outputs.#field.view()),))
    });
    let gradients = trained(emit).into_iter().map(|(id, _)| {
        let (index, field) = (emit.index_of(id), emit.declared(id));
        quote!(#index => #rt::Some(::core::convert::Into::into(&mut self.__gradients.#field)),)
    });
    let parameters: Vec<_> = emit.graph.parameters().map(|id| emit.declared(id)).collect();
    quote! {
        #[allow(clippy::all, unused_variables, unused_mut)]
        #[automatically_derived]
        impl #rt::Model for #name {
            type Element = #element;
            type Batch<'a> = #batch_type<'a>;
            type Outputs = #outputs;
            type Gradients = #grads;

            #constants

            #from_tables

            fn dims(&self) -> &#rt::Dims {
                &self.__dims
            }

            #bind

            #input

            #check

            fn forward(&mut self, __batch: &#batch_type<'_>) -> #rt::Result<&#outputs> {
                #forward
            }

            fn loss(&mut self, __batch: &#batch_type<'_>) -> #rt::Result<#rt::f64> {
                #loss
            }

            fn loss_and_grads(&mut self, __batch: &#batch_type<'_>) -> #rt::Result<#rt::f64> {
                #loss_and_grads
            }

            #carrying

            fn outputs(&self) -> &#outputs {
                &self.__outputs
            }

            fn gradients(&self) -> &#grads {
                &self.__gradients
            }

            #[inline]
            fn train_step<__R: #rt::UpdateRule>(
                &mut self,
                __batch: &#batch_type<'_>,
                __updater: &mut #rt::Updater<__R, #element>,
            ) -> #rt::Result<#rt::f64> {
                #train_step
            }

            fn adjusted_step<__R: #rt::UpdateRule>(
                &mut self,
                __batch: &#batch_type<'_>,
                __updater: &mut #rt::Updater<__R, #element>,
                __adjust: impl ::core::ops::FnOnce(&mut Self) -> #rt::Result<()>,
            ) -> #rt::Result<#rt::f64> {
                #adjusted_step
            }

            #clipped_step

            fn gradient_mut(&mut self, __index: #rt::usize) -> #rt::Option<#rt::GradientMut<'_, #element>> {
                match __index {
                    #(#gradients)*
                    _ => #rt::None,
                }
            }

            #train_rows

            fn set_parallel(&mut self, __parallel: #rt::Parallel) {
                self.__context.parallel = __parallel;
            }

            fn dense_output(&self, __index: #rt::usize) -> #rt::Option<#rt::DenseView<'_, #element>> {
                match __index {
                    #(#dense_outputs)*
                    _ => #rt::None,
                }
            }

            #linked_scores

            fn parameters(&self) -> ::std::vec::Vec<#rt::ParameterRef<'_, #element>> {
                ::std::vec![#(self.#parameters.as_ref()),*]
            }

            fn parameters_mut(&mut self) -> ::std::vec::Vec<#rt::ParameterMut<'_, #element>> {
                ::std::vec![#(self.#parameters.as_mut()),*]
            }
        }
    }
}

fn forward(emit: &Emit<'_>, calls: &Calls<'_>) -> TokenStream {
    let rt = &emit.rt;
    let calls = calls.of(&emit.compiled.plan.forward);
    let take_apart = take_apart(emit);
    quote! {
        self.__check(__batch, false)?;
        {
            #take_apart
            #calls
        }
        #rt::Ok(&self.__outputs)
    }
}

fn with_loss(emit: &Emit<'_>, calls: &Calls<'_>, values: &[ValueId]) -> TokenStream {
    if emit.graph.losses.is_empty() {
        return no_loss(emit);
    }
    let rt = &emit.rt;
    let calls = calls.of(values);
    let take_apart = take_apart(emit);
    let losses = sum_of_losses(emit);
    quote! {
        self.__check(__batch, true)?;
        #take_apart
        #calls
        #rt::Ok(#losses)
    }
}

/// Gradients by the row program, where the model has one whose dense parameters are few.
///
/// ```text
/// self.__run(__batch, engine::Pass::Gradients).map(|__made| __made.last_loss)
/// ```
fn loss_and_grads(emit: &Emit<'_>, calls: &Calls<'_>) -> TokenStream {
    let by_kernels = || with_loss(emit, calls, &emit.compiled.plan.all);
    let Some(program) = emit.compiled.fusion.program() else { return by_kernels() };
    let rt = &emit.rt;
    let by_program = quote! {
        self.__run(__batch, #rt::engine::Pass::Gradients).map(|__made| __made.last_loss)
    };
    if_few(emit, program, by_program, by_kernels)
}

/// What a model does whose dense parameters are few elements, or else what others do: chosen at run
/// time where constants of Rust decide.
fn if_few(
    emit: &Emit<'_>,
    program: &RowProgram,
    by_program: TokenStream,
    otherwise: impl FnOnce() -> TokenStream,
) -> TokenStream {
    match program.are_few(emit.graph) {
        Some(true) => by_program,
        Some(false) => otherwise(),
        None => {
            let (are_few, otherwise) = (fused::are_few(emit, program), otherwise());
            quote!(if #are_few { #by_program } else { #otherwise })
        }
    }
}

/// What computes outputs, or outputs and loss, and then writes the states; nothing of a model
/// without states.
///
/// ```text
/// fn forward_carrying(&mut self, __batch: &CentredBatch<'_>) -> Result<&CentredOutputs> {
///     self.__check(__batch, false)?;
///     let Self { … } = self;
///     …
///     __param_centre.values_mut().copy_from_slice(__buffer_3.view().values());
///     Ok(&self.__outputs)
/// }
/// ```
fn carrying(emit: &Emit<'_>, calls: &Calls<'_>) -> TokenStream {
    let (rt, batch_type, outputs) = (&emit.rt, &emit.batch, &emit.outputs);
    if emit.graph.updates.is_empty() {
        return TokenStream::new();
    }
    let (take_apart, updates) = (take_apart(emit), states(emit));
    let forward = calls.of(&emit.compiled.plan.forward_carrying);
    let labels = info::updates_read_labels(emit.graph);
    let loss = if emit.graph.losses.is_empty() {
        no_loss(emit)
    } else {
        let loss = calls.of(&emit.compiled.plan.loss_carrying);
        let losses = sum_of_losses(emit);
        quote! {
            self.__check(__batch, true)?;
            #take_apart
            #loss
            let __loss = #losses;
            #updates
            #rt::Ok(__loss)
        }
    };
    quote! {
        fn forward_carrying(&mut self, __batch: &#batch_type<'_>) -> #rt::Result<&#outputs> {
            self.__check(__batch, #labels)?;
            {
                #take_apart
                #forward
                #updates
            }
            #rt::Ok(&self.__outputs)
        }

        fn loss_carrying(&mut self, __batch: &#batch_type<'_>) -> #rt::Result<#rt::f64> {
            #loss
        }
    }
}

fn train_step(emit: &Emit<'_>, calls: &Calls<'_>) -> TokenStream {
    if emit.graph.losses.is_empty() {
        return no_loss(emit);
    }
    match &emit.compiled.fusion {
        Fusion::RowLoop(parts) => fused::all_rows(emit, parts),
        Fusion::Scattered { parameters, program, .. } => {
            let step = || scattered::step(emit, calls, parameters);
            let Ok(program) = program else { return step() };
            let one_sample = one_sample_as_rows(emit, program);
            let step = if_few(emit, program, by_program(emit), step);
            quote!(#one_sample #step)
        }
        Fusion::None { .. } => unfused(emit, None),
    }
}

/// Before a step on a batch: one sample is a step of samples.
///
/// ```text
/// if __batch.y.shape()[0] == 1 {
///     let __pass = engine::Pass::EachSample(engine::erased(__updater));
///     return self.__run(__batch, __pass).map(|__made| __made.last_loss);
/// }
/// ```
fn one_sample_as_rows(emit: &Emit<'_>, program: &RowProgram) -> TokenStream {
    let (rt, n_samples) = (&emit.rt, fused::n_samples(emit, program));
    quote! {
        if #n_samples == 1 {
            let __pass = #rt::engine::Pass::EachSample(#rt::engine::erased(__updater));
            return self.__run(__batch, __pass).map(|__made| __made.last_loss);
        }
    }
}

/// A step on a batch by the row program.
fn by_program(emit: &Emit<'_>) -> TokenStream {
    let rt = &emit.rt;
    quote! {
        self.__run(__batch, #rt::engine::Pass::Batch(#rt::engine::erased(__updater)))
            .map(|__made| __made.last_loss)
    }
}

/// A step whose gradients are made whole, whatever the fusion.
fn adjusted_step(emit: &Emit<'_>) -> TokenStream {
    if emit.graph.losses.is_empty() {
        no_loss(emit)
    } else {
        unfused(emit, Some(quote!(__adjust(self)?;)))
    }
}

/// The step by gradients that are clipped by their norm, where a row program makes it: gradients
/// stay sums by rows.
///
/// ```text
/// self.__run(__batch, engine::Pass::Clipped(engine::erased(__updater), __max_norm))
///     .map(|__made| __made.last_loss)
/// ```
fn clipped_step(emit: &Emit<'_>) -> Option<TokenStream> {
    let (rt, element, batch_type) = (&emit.rt, &emit.element, &emit.batch);
    let program = emit.compiled.fusion.program().filter(|_| !emit.broken)?;
    let by_program = quote! {
        let __pass = #rt::engine::Pass::Clipped(#rt::engine::erased(__updater), __max_norm);
        self.__run(__batch, __pass).map(|__made| __made.last_loss)
    };
    let by_gradients = || {
        quote! {
            self.adjusted_step(__batch, __updater, |__model| {
                #rt::clip_gradients(__model, __max_norm)
            })
        }
    };
    let body = if_few(emit, program, by_program, by_gradients);
    Some(quote! {
        fn clipped_step<__R: #rt::UpdateRule>(
            &mut self,
            __batch: &#batch_type<'_>,
            __updater: &mut #rt::Updater<__R, #element>,
            __max_norm: #rt::f64,
        ) -> #rt::Result<#rt::f64> {
            #body
        }
    })
}

/// The method that makes a step of each row, where the step is one loop.
fn train_rows(emit: &Emit<'_>) -> Option<TokenStream> {
    let (rt, element, batch_type) = (&emit.rt, &emit.element, &emit.batch);
    if emit.broken || emit.graph.losses.is_empty() || counts_samples(emit) {
        return None;
    }
    let (body, corrects) = match &emit.compiled.fusion {
        Fusion::RowLoop(parts) => {
            let steps = fused::each_row(emit, parts);
            let on_shared_tables = parts.program.is_some().then(|| on_shared_tables(emit));
            (quote!(#on_shared_tables #steps), fused::corrects_scores(emit, parts))
        }
        Fusion::Scattered { program: Ok(_), .. } => {
            let pass = quote!(#rt::engine::Pass::EachSample(#rt::engine::erased(__updater)));
            (quote!(self.__run(__batch, #pass)), false)
        }
        Fusion::Scattered { program: Err(_), .. } | Fusion::None { .. } => return None,
    };
    Some(quote! {
        const TRAINS_ROWS: #rt::bool = true;
        const CORRECTS_SCORES: #rt::bool = #corrects;

        #[inline]
        fn train_rows<__R: #rt::UpdateRule>(
            &mut self,
            __batch: &#batch_type<'_>,
            __updater: &mut #rt::Updater<__R, #element>,
        ) -> #rt::Result<#rt::RowSteps> {
            #body
        }
    })
}

/// Before steps of samples by a loop that takes tables of its own: tables that threads share are
/// trained by the row program. Nothing is compiled for other rules.
///
/// ```text
/// if const { <__R as UpdateRule>::RACES } {
///     return self.__run(__batch, engine::Pass::EachSample(engine::erased(__updater)));
/// }
/// ```
fn on_shared_tables(emit: &Emit<'_>) -> TokenStream {
    let rt = &emit.rt;
    quote! {
        if const { <__R as #rt::UpdateRule>::RACES } {
            return self.__run(__batch, #rt::engine::Pass::EachSample(#rt::engine::erased(__updater)));
        }
    }
}

/// Whether a number depends on the number of samples (`n as f64`): in a step of each sample that
/// is 1, but the numbers of a call are those of its batch.
fn counts_samples(emit: &Emit<'_>) -> bool {
    let is_of_batch = |name: &&str| {
        emit.fixed_index(name).is_none() && emit.constants.iter().all(|(known, _)| known != name)
    };
    let mut numbers = emit.graph.ids().filter_map(|id| emit.graph.number_of(id));
    numbers.any(|number| number.names().iter().any(is_of_batch))
}

/// `adjust` stands between the gradients and the updates.
///
/// ```text
/// __updater.begin_step()?;
/// __updater.settle_read::<Self>(0, __param_w.values_mut(), __batch)?;
/// let __loss = self.loss_and_grads(__batch)?;
/// __adjust(self)?;
/// __updater.apply_row_sparse(0, __param_w.values_mut(), __gradients.w.view())?;
/// __updater.apply_dense(1, __param_b.values_mut(), __gradients.b.values())?;
/// __updater.end_step()?;
/// Ok(__loss)
/// ```
fn unfused(emit: &Emit<'_>, adjust: Option<TokenStream>) -> TokenStream {
    let settle = trained(emit).into_iter().map(|(id, storage)| settle(emit, id, storage));
    let apply = trained(emit).into_iter().map(|(id, storage)| apply(emit, id, storage));
    let (rt, updates) = (&emit.rt, states(emit));
    let take_apart = take_apart(emit);
    quote! {
        self.__check(__batch, true)?;
        __updater.begin_step()?;
        {
            #take_apart
            #(#settle)*
        }
        let __loss = <Self as #rt::Model>::loss_and_grads(self, __batch)?;
        #adjust
        #take_apart
        #updates
        #(#apply)*
        __updater.end_step()?;
        #rt::Ok(__loss)
    }
}
