//! The step by a row program: the program as plain data, and the row function.

mod extents;
mod losses;
mod values;

use self::extents::{elements, is_on_stack};
use self::values::Values;
use super::names::{local, values_of};
use crate::emit::context::Emit;
use crate::emit::literals::number_of;
use crate::emit::scattered::of_bags;
use crate::emit::scores::{Recorded, recorded};
use crate::emit::updates::take_apart;
use proc_macro2::TokenStream;
use quote::quote;
use sparse_core::ir::{Kind, ValueId};
use sparse_core::passes::{DenseGradient, NamedRows, Read, RowProgram};
use sparse_core::storage::Storage;

/// For `score = dot(relu(dot(embedding_bag(x, t), h) + b), g); loss logistic(score, y); output
/// score`:
///
/// ```text
/// fn __run(&mut self, __batch: &DeepBatch<'_>, __pass: engine::Pass<'_, f32>)
///     -> Result<RowSteps> {
///     self.__check(__batch, true)?;
///     let Self { … } = self;
///     let __n_samples = __batch.y.shape()[0];
///     let __count = __pass.samples_of_mean(__n_samples);
///     let __record = __pass.records_outputs(__n_samples);
///     let __label_14 = __batch.y.values();
///     let __reads = [engine::Read {
///         source: engine::Source::Trained(0), refs: engine::Refs::Csr(__batch.x),
///         pool: engine::Pool::Bag { mean: false, weighted: false }, size: 16,
///         has_gradient: true,
///     }];
///     let __row_function = |__sample: engine::Sample<'_, f32>| {
///         let engine::Sample { index: __row, numbers: __numbers, … } = __sample;
///         simd::wide(|| {
///             let (__v8, __numbers) = __numbers.split_at(16);
///             let __values_h = &*__dense[0].values;
///             …
///             let mut __v9 = [0.0; 32];
///             row_functions::product(&__v8[..], __values_h, &mut __v9[..]);
///             …
///             let (__out, __gradients) = __gradients.split_at_mut(16);
///             __out.copy_from_slice(&__v17[..]);
///             __loss
///         })
///     };
///     engine::run(&mut engine::Program { … }, __pass, …, &__row_function)
/// }
/// ```
pub(in crate::emit) fn method(emit: &Emit<'_>, program: &RowProgram) -> TokenStream {
    let (rt, element, batch) = (&emit.rt, &emit.element, &emit.batch);
    let take_apart = take_apart(emit);
    let n_samples = n_samples(emit, program);
    let setup = values::setup(emit, program);
    let outputs = outputs(emit);
    let reads = program.reads.iter().chain(&program.frozen).map(|it| read(emit, program, it));
    let tables = program.reads_by_table().filter_map(|reads| {
        let table = reads.first()?.table;
        let (index, local) = (emit.index_of(table), emit.parameter_local(table));
        let field = emit.declared(table);
        Some(quote! {
            #rt::engine::TrainedTable {
                parameter: #index,
                shape: *#local.shape(),
                table: #local.table_mut(),
                gradient: &mut __gradients.#field,
            }
        })
    });
    let dense = program.dense.iter().map(|(id, terms)| dense(emit, *id, terms));
    let reset = program.dense.iter().map(|(id, _)| {
        let field = emit.declared(*id);
        let shape = emit.graph.shape(*id);
        let extents = shape.iter().map(|dim| emit.fixed_extent(dim));
        quote!(__gradients.#field.reset_for_overwrite([#(#extents),*]);)
    });
    let row_function = row_function(emit, program);
    let work = values::work(emit, program);
    let body = quote! {
        #[allow(unused_imports)]
        use #rt::{Float as _, ScalarFunctions as _};
        type __T = #element;
        self.__check(__batch, true)?;
        #take_apart
        let __n_samples = #n_samples;
        // The samples that a mean is of.
        let __count = __pass.samples_of_mean(__n_samples);
        let __record = __pass.records_outputs(__n_samples);
        #(#reset)*
        #outputs
        #setup
        let __reads = [#(#reads),*];
        let __row_function = #row_function;
        #rt::engine::run(
            &mut #rt::engine::Program {
                n_samples: __n_samples,
                reads: &__reads,
                tables: &mut [#(#tables),*],
                dense: &mut [#(#dense),*],
                outputs: &mut __arrays,
                work: #work,
            },
            __pass,
            __context.parallel,
            __scratch,
            &__row_function,
        )
    };
    quote! {
        #[allow(clippy::all, unused_variables, unused_mut, unused_parens, unused_braces)]
        fn __run(
            &mut self,
            __batch: &#batch<'_>,
            __pass: #rt::engine::Pass<'_, #element>,
        ) -> #rt::Result<#rt::RowSteps> {
            #body
        }
    }
}

/// The samples of the batch.
pub(in crate::emit) fn n_samples(emit: &Emit<'_>, program: &RowProgram) -> TokenStream {
    let field = emit.declared(program.samples);
    match emit.graph.storage(program.samples) {
        Storage::Csr => quote!(__batch.#field.n_rows()),
        _ => quote!(__batch.#field.shape()[0]),
    }
}

/// Whether the trained dense parameters are few elements, where the macro does not see all extents.
pub(in crate::emit) fn are_few(emit: &Emit<'_>, program: &RowProgram) -> TokenStream {
    let rt = &emit.rt;
    let sizes = program.dense.iter().map(|(id, _)| elements(emit, &emit.graph.shape(*id)));
    quote!({
        let __extents = &self.__extents;
        #rt::engine::are_few(0usize #(+ #sizes)*)
    })
}

/// The arrays of outputs, in `__arrays`.
fn outputs(emit: &Emit<'_>) -> TokenStream {
    let rt = &emit.rt;
    let (resets, arrays): (Vec<_>, Vec<_>) = recorded(emit)
        .into_iter()
        .map(|Recorded { value, array, .. }| {
            let shape = emit.graph.shape(value);
            let inner: Vec<_> = shape.iter().skip(1).map(|dim| emit.fixed_extent(dim)).collect();
            let size = elements(emit, &shape[1..]);
            (
                quote!(if __record { #array.reset_for_overwrite([__n_samples #(, #inner)*]); }),
                quote! {
                    #rt::engine::Output {
                        values: if __record { #array.values_mut() } else { &mut [] },
                        size: #size,
                    }
                },
            )
        })
        .unzip();
    quote! {
        #(#resets)*
        let mut __arrays = [#(#arrays),*];
    }
}

/// `engine::Read { … }`.
fn read(emit: &Emit<'_>, program: &RowProgram, read: &Read) -> TokenStream {
    let rt = &emit.rt;
    let by = read.rows.by();
    let names = emit.declared(by);
    let is_unit = emit.graph.value(by).element == sparse_core::storage::ElementType::Unit;
    let of_csr = if is_unit {
        quote!(#rt::engine::Refs::Units(__batch.#names))
    } else {
        quote!(#rt::engine::Refs::Csr(__batch.#names))
    };
    let apply = emit.graph.apply_of(read.value);
    let (refs, pool) = match read.rows {
        NamedRows::Product { .. } => (of_csr, quote!(Product)),
        NamedRows::Pairs { .. } => (of_csr, quote!(Pairs)),
        NamedRows::Bags { .. } => {
            let [mean, weighted] = apply.map(|apply| of_bags(emit, apply)).unwrap_or_default();
            (of_csr, quote!(Bag { mean: #mean, weighted: #weighted }))
        }
        NamedRows::Ids { .. } => {
            let n_ids = elements(emit, &emit.graph.shape(by)[1..]);
            let ids = quote! {
                #rt::engine::Refs::Ids(::core::convert::From::from(__batch.#names), #n_ids)
            };
            (ids, quote!(Rows))
        }
    };
    let size = elements(emit, &emit.graph.shape(read.value)[1..]);
    let has_gradient = read.gradient.is_some();
    let place = program.reads_by_table().position(|reads| reads[0].table == read.table);
    let source = match place {
        Some(place) => quote!(Trained(#place)),
        None => {
            let local = emit.parameter_local(read.table);
            let row_size = elements(emit, &emit.graph.shape(read.table)[1..]);
            quote!(Frozen(#local.values(), #row_size))
        }
    };
    quote! {
        #rt::engine::Read {
            source: #rt::engine::Source::#source,
            refs: #refs,
            pool: #rt::engine::Pool::#pool,
            size: #size,
            has_gradient: #has_gradient,
        }
    }
}

/// `engine::TrainedDense { … }`.
fn dense(emit: &Emit<'_>, parameter: ValueId, terms: &[DenseGradient]) -> TokenStream {
    let rt = &emit.rt;
    let (index, local) = (emit.index_of(parameter), emit.parameter_local(parameter));
    let field = emit.declared(parameter);
    let term = match terms {
        [DenseGradient::Outer(left, right)] => {
            let size = |id: &ValueId| elements(emit, &emit.graph.shape(*id)[1..]);
            let (left, right) = (size(left), size(right));
            quote!(Outer(#left, #right))
        }
        _ => quote!(Whole),
    };
    quote! {
        #rt::engine::TrainedDense {
            parameter: #index,
            values: #local.values_mut(),
            gradient: __gradients.#field.values_mut(),
            term: #rt::engine::DenseTerm::#term,
        }
    }
}

/// `|sample| { … loss }`
fn row_function(emit: &Emit<'_>, program: &RowProgram) -> TokenStream {
    let (rt, graph) = (&emit.rt, emit.graph);
    let numbers = program.reads.iter().chain(&program.frozen).map(|read| {
        let (value, size) = (local(read.value), elements(emit, &graph.shape(read.value)[1..]));
        quote!(let (#value, __numbers) = __numbers.split_at(#size);)
    });
    let Values { declared, computed, for_outputs } = Values::of(emit, program);
    let gradients = program.reads.iter().filter_map(|read| read.gradient).map(|id| {
        let (value, size) = (local(id), elements(emit, &graph.shape(id)[1..]));
        quote! {
            let (__out, __gradients) = __gradients.split_at_mut(#size);
            __out.copy_from_slice(&#value[..]);
        }
    });
    let terms = program.dense.iter().map(|(id, terms)| self::terms(emit, *id, terms));
    let record = recorded(emit).into_iter().map(|Recorded { value, .. }| {
        let (value, size) = (local(value), elements(emit, &graph.shape(value)[1..]));
        quote! {
            let (__out, __outputs) = __outputs.split_at_mut(#size);
            __out.copy_from_slice(&#value[..]);
        }
    });
    let record: Vec<_> = record.collect();
    let record = (!record.is_empty())
        .then(|| quote!(if let #rt::Some(__outputs) = __outputs { #for_outputs #(#record)* }));
    let loss = losses::loss(emit, program);
    quote! {
        |__sample: #rt::engine::Sample<'_, __T>| -> __T {
            let #rt::engine::Sample {
                index: __row,
                numbers: __numbers,
                dense: __dense,
                gradients: __gradients,
                terms: __terms,
                outputs: __outputs,
                work: __work,
            } = __sample;
            #rt::engine::wide(
                #[inline(always)]
                || {
                    #(#numbers)*
                    #declared
                    #computed
                    #(#terms)*
                    #(#gradients)*
                    #record
                    #loss
                },
            )
        }
    }
}

/// What a dense parameter's gradient is made of, written into `__terms`.
fn terms(emit: &Emit<'_>, parameter: ValueId, terms: &[DenseGradient]) -> TokenStream {
    let rt = &emit.rt;
    let copied = |id: ValueId| {
        let (value, size) = (local(id), elements(emit, &emit.graph.shape(id)[1..]));
        quote! {
            let (__out, __terms) = __terms.split_at_mut(#size);
            __out.copy_from_slice(&#value[..]);
        }
    };
    if let [DenseGradient::Outer(left, right)] = terms {
        let (left, right) = (copied(*left), copied(*right));
        return quote!(#left #right);
    }
    if let [DenseGradient::Row(row)] = terms {
        return copied(*row);
    }
    let shape = emit.graph.shape(parameter);
    let (size, zero) = (elements(emit, &shape), number_of(emit, 0.0));
    let add = terms.iter().map(|term| match term {
        DenseGradient::Outer(left, right) => {
            let (left, right) = (local(*left), local(*right));
            quote!(#rt::engine::row_functions::add_outer(__out, &#left[..], &#right[..]);)
        }
        DenseGradient::Row(row) => {
            let row = local(*row);
            quote!(#rt::engine::row_functions::add(__out, &#row[..]);)
        }
        DenseGradient::Total(row) => values::add_total(emit, *row, &shape),
    });
    quote! {
        let (__out, __terms) = __terms.split_at_mut(#size);
        __out.fill(#zero);
        #(#add)*
    }
}

/// Whether a declared value changes from sample to sample of one call: a trained dense parameter.
fn trained_place(program: &RowProgram, id: ValueId) -> Option<usize> {
    program.dense.iter().position(|(parameter, _)| *parameter == id)
}

/// The declared operands of the values of a program, each once.
fn declared_operands(emit: &Emit<'_>, program: &RowProgram) -> Vec<ValueId> {
    let is_declared = |id: &ValueId| {
        matches!(emit.graph.value(*id).kind, Kind::Input | Kind::Label | Kind::Parameter { .. })
    };
    let computed = program.values.iter().filter(|value| {
        !matches!(value.computed, sparse_core::passes::RowComputed::LossGradient(_))
    });
    let mut operands: Vec<ValueId> = computed
        .flat_map(|value| emit.graph.apply_of(value.value))
        .flat_map(|apply| {
            let operands = apply.operands.iter().enumerate();
            operands.filter(|(at, _)| !apply.operator.lends_shape_only(*at)).map(|(_, id)| *id)
        })
        .filter(is_declared)
        .collect();
    operands.sort_unstable();
    operands.dedup();
    operands
}

/// The elements of a declared value that the row function indexes.
fn declared_values(emit: &Emit<'_>, program: &RowProgram, id: ValueId) -> TokenStream {
    let variable = values_of(emit, id);
    match (emit.graph.value(id).kind.clone(), trained_place(program, id)) {
        (Kind::Parameter { .. }, Some(place)) => {
            let size = elements(emit, &emit.graph.shape(id));
            quote!(let #variable = &__dense[#place].values[..#size];)
        }
        (Kind::Parameter { .. }, None) => {
            let size = elements(emit, &emit.graph.shape(id));
            quote!(let #variable = &#variable[..#size];)
        }
        _ => {
            let (value, size) = (local(id), elements(emit, &emit.graph.shape(id)[1..]));
            quote!(let #value = &#variable[__row * #size..(__row + 1) * #size];)
        }
    }
}

/// Whether a row with these extents is an array on the stack.
fn on_stack(emit: &Emit<'_>, id: ValueId) -> bool {
    is_on_stack(emit, &emit.graph.shape(id)[1..])
}
