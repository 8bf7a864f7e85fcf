//! The fused step of linear rows: the row function that the runtime's loop calls between product and update.

use super::Emit;
use super::kernels::number_of;
use super::step::take_apart;
use crate::scalar;
use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};
use sparse_core::ir::{Apply, Kind, ValueId};
use sparse_core::operators::{self, LossLabel};
use sparse_core::passes::LinearRows;
use sparse_core::shapes::{Dim, Dims};
use std::collections::BTreeSet;

/// For `pred = dot(x, w) + b; loss squared_error(pred, y); output pred`:
///
/// ```text
/// let label = batch.y.values();
/// let __values_b = __param_b.values();
/// __gradients.b.reset([1]);
/// let __grad_b = __gradients.b.values_mut();
/// if record { __outputs.pred.reset_for_overwrite([n_rows, columns]); }
/// let __out_pred = __outputs.pred.values_mut();
/// let loss = linear::step(batch.x, 0, __param_w.table_mut(), updater, linear::Fixed::<1>, __scratch,
///     |row, s, saved| {
///         for j in 0..columns {
///             let __v4 = s[j];
///             let __v5 = (__v4 + __values_b[0]);
///             if record { __out_pred[row * columns + j] = __v5; }
///             s[j] = __v5;
///         }
///         let loss = squared_error::cpu::row(&mut s[..columns], &label[row * columns..(row + 1) * columns]);
///         let share = mean;
///         for j in 0..columns {
///             let __v8 = s[j] * share;
///             __grad_b[0] += __v8;
///             s[j] = __v8;
///         }
///         loss
///     })?;
/// updater.apply_dense(1, __param_b.values_mut(), __gradients.b.values())?;
/// ```
pub(super) fn linear_rows(emit: &Emit<'_>, parts: &LinearRows) -> TokenStream {
    let (rt, element) = (&emit.rt, &emit.element);
    let input = emit.declared(parts.input);
    let width = width(emit, &parts.columns);
    let (setup, outputs) = (setup(emit, parts, Steps::One), outputs(emit));
    let gradients = gradients(emit, parts);
    let dense_updates = parts.reductions.iter().map(|(parameter, _, _)| {
        let (index, field) = (emit.index_of(*parameter), emit.declared(*parameter));
        let local = emit.parameter_local(*parameter);
        quote!(updater.apply_dense(#index, #local.values_mut(), __gradients.#field.values())?;)
    });
    let take_apart = take_apart(emit);
    let step = call(emit, parts, Steps::One);
    quote! {
        #[allow(unused_imports)]
        use #rt::{Float as _, ScalarFunctions as _};
        type T = #element;
        self.__check(batch, true)?;
        #take_apart
        updater.begin_step()?;
        let n_rows = batch.#input.n_rows();
        let columns = #rt::linear::Width::columns(&#width);
        let record = updater.records_outputs();
        let mean = #rt::linear::share::<T>(n_rows);
        #setup
        #gradients
        #outputs
        let loss = #step?;
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
///     let mut __dense_b = updater.take_dense(1, __param_b.values_mut())?;
///     let steps = linear::steps(batch.x, first..first + count, 0, __param_w.table_mut(), updater,
///         linear::Fixed::<1>, __scratch, |row, s, saved| {
///             let __values_b = __dense_b.values();
///             …
///             __dense_b.update(__grad_b);
///             loss
///         });
///     updater.put_dense(1, __dense_b);
///     let steps = steps?;
///     updater.end_steps(steps.n_steps)?;
///     made.extend(steps);
/// }
/// ```
pub(super) fn each_row(emit: &Emit<'_>, parts: &LinearRows) -> TokenStream {
    let (rt, element) = (&emit.rt, &emit.element);
    let input = emit.declared(parts.input);
    let width = width(emit, &parts.columns);
    let setup = setup(emit, parts, Steps::EachRow);
    let gradients = gradients(emit, parts);
    let take_apart = take_apart(emit);
    let steps = call(emit, parts, Steps::EachRow);
    let reduced = || parts.reductions.iter().map(|(parameter, _, _)| *parameter);
    let take = reduced().map(|id| {
        let (index, local, dense) =
            (emit.index_of(id), emit.parameter_local(id), dense_of(emit, id));
        quote!(let mut #dense = updater.take_dense(#index, #local.values_mut())?;)
    });
    let put = reduced().map(|id| {
        let (index, dense) = (emit.index_of(id), dense_of(emit, id));
        quote!(updater.put_dense(#index, #dense);)
    });
    quote! {
        #[allow(unused_imports)]
        use #rt::{Float as _, ScalarFunctions as _};
        type T = #element;
        self.__check(batch, true)?;
        #take_apart
        let n_rows = batch.#input.n_rows();
        let columns = #rt::linear::Width::columns(&#width);
        let mean = #rt::linear::share::<T>(1);
        #setup
        #gradients
        let mut made = #rt::RowSteps::default();
        while made.n_steps < n_rows && !made.diverged() {
            let first = made.n_steps;
            let count = updater.begin_steps(n_rows - first)?;
            #(#take)*
            let steps = #steps;
            #(#put)*
            let steps = steps?;
            updater.end_steps(steps.n_steps)?;
            made.extend(steps);
        }
        Ok(made)
    }
}

/// The call of the runtime's loop.
fn call(emit: &Emit<'_>, parts: &LinearRows, steps: Steps) -> TokenStream {
    let rt = &emit.rt;
    let (input, weight) = (emit.declared(parts.input), emit.parameter_local(parts.weight));
    let weight_index = emit.index_of(parts.weight);
    let row = row_function(emit, parts, steps);
    let (function, range) = match steps {
        Steps::One => (format_ident!("step"), None),
        Steps::EachRow => (format_ident!("steps"), Some(quote!(first..first + count,))),
    };
    match &parts.interaction {
        None => {
            let width = width(emit, &parts.columns);
            quote! {
                #rt::linear::#function(
                    batch.#input,
                    #range
                    #weight_index,
                    #weight.table_mut(),
                    updater,
                    #width,
                    __scratch,
                    #row,
                )
            }
        }
        Some(term) => {
            let (index, factors) =
                (emit.index_of(term.factors), emit.parameter_local(term.factors));
            let size = width(emit, &term.size);
            quote! {
                #rt::interaction::#function(
                    batch.#input,
                    #range
                    (#weight_index, #weight.table_mut()),
                    (#index, #factors.table_mut()),
                    updater,
                    #size,
                    __scratch,
                    #row,
                )
            }
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
fn setup(emit: &Emit<'_>, parts: &LinearRows, steps: Steps) -> TokenStream {
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
fn is_reduced(parts: &LinearRows, id: ValueId) -> bool {
    parts.reductions.iter().any(|(parameter, _, _)| *parameter == id)
}

/// The gradients that the row function adds to, zero.
fn gradients(emit: &Emit<'_>, parts: &LinearRows) -> TokenStream {
    let mut tokens = TokenStream::new();
    for (parameter, _, _) in &parts.reductions {
        let (field, variable) = (emit.declared(*parameter), grad_of(emit, *parameter));
        let shape = emit.graph.shape(*parameter);
        let extents = shape.iter().map(|dim| emit.fixed_extent(dim));
        tokens.extend(quote! {
            __gradients.#field.reset([#(#extents),*]);
            let #variable = __gradients.#field.values_mut();
        });
    }
    tokens
}

/// The outputs that the row function writes.
fn outputs(emit: &Emit<'_>) -> TokenStream {
    let mut tokens = TokenStream::new();
    for output in &emit.graph.outputs {
        let (field, variable) = (emit.output_ident(&output.name), out_of(&output.name));
        tokens.extend(quote! {
            if record {
                __outputs.#field.reset_for_overwrite([n_rows, columns]);
            }
            let #variable = __outputs.#field.values_mut();
        });
    }
    tokens
}

fn row_function(emit: &Emit<'_>, parts: &LinearRows, steps: Steps) -> TokenStream {
    let (rt, graph) = (&emit.rt, emit.graph);
    let forward = chain(emit, parts, &parts.forward);
    let product = local(parts.product);
    let score = local(parts.score);
    let is_output = |id: ValueId| graph.outputs.iter().filter(move |output| output.value == id);
    let term_value = parts.interaction.iter().map(|term| term.value);
    let element_outputs =
        std::iter::once(parts.product).chain(term_value).chain(parts.forward.iter().copied());
    let element_outputs =
        element_outputs.flat_map(|id| is_output(id).map(move |output| (output, id)));
    let softmax_outputs = parts
        .softmax
        .iter()
        .flat_map(|(id, operand)| is_output(*id).map(move |output| (output, *operand)));
    let record: Vec<_> = element_outputs
        .chain(softmax_outputs)
        .map(|(output, id)| {
            let (variable, value) = (out_of(&output.name), local(id));
            quote!(#variable[row * columns + j] = #value;)
        })
        .collect();
    let normalise = parts.softmax.iter().flat_map(|(id, _)| is_output(*id)).map(|output| {
        let variable = out_of(&output.name);
        quote!(#rt::kernels::softmax::cpu::row(&mut #variable[row * columns..(row + 1) * columns]);)
    });
    let records = steps == Steps::One;
    let record = (records && !record.is_empty()).then(|| quote!(if record { #(#record)* }));
    let normalise: Vec<_> = normalise.collect();
    let normalise =
        (records && !normalise.is_empty()).then(|| quote!(if record { #(#normalise)* }));
    // Dense parameters as the last row left them, and their update by this one.
    let (read_dense, update_dense): (Vec<_>, Vec<_>) = match steps {
        Steps::One => Default::default(),
        Steps::EachRow => parts
            .reductions
            .iter()
            .map(|(id, _, _)| {
                let (values, dense) = (values_of(emit, *id), dense_of(emit, *id));
                let gradient = grad_of(emit, *id);
                (quote!(let #values = #dense.values();), quote!(#dense.update(#gradient);))
            })
            .unzip(),
    };

    let Some(loss) = graph.apply_of(parts.loss) else { return TokenStream::new() };
    let call = row_loss(emit, loss, graph.value(parts.label).element.is_float());
    // Multiplied once for the whole row.
    let (share, weighted) = match parts.row_weight {
        Some(_) => (quote!(let share = mean * row_weights[row];), quote!(loss * row_weights[row])),
        None => (quote!(let share = mean;), quote!(loss)),
    };

    let gradient = local(parts.score_gradient);
    let needs_forward = needs_forward(emit, parts);
    let (save, again) = if needs_forward {
        (quote!(saved.copy_from_slice(s);), {
            let forward = chain(emit, parts, &parts.forward);
            let term = parts.interaction.as_ref().map(|term| {
                let value = local(term.value);
                quote!(let #value = saved[1];)
            });
            quote!(let #product = saved[j]; #term #forward)
        })
    } else {
        (TokenStream::new(), TokenStream::new())
    };
    let backward = chain(emit, parts, &parts.backward);
    let reductions = parts.reductions.iter().map(|(parameter, _, summed)| {
        let (variable, value) = (grad_of(emit, *parameter), local(*summed));
        let index = index_of(&graph.shape(*parameter), &parts.columns);
        quote!(#variable[#index] += #value;)
    });
    let result = local(parts.product_gradient);
    // The second number of a row: the interaction, then its gradient.
    let term = parts.interaction.as_ref().map(|term| {
        let value = local(term.value);
        quote!(let #value = s[1];)
    });
    let term_result = parts.interaction.as_ref().map(|term| {
        let gradient = local(term.gradient);
        quote!(s[1] = #gradient;)
    });
    quote! {
        #[inline(always)]
        |row: usize, s: &mut [T], saved: &mut [T]| -> T {
            #save
            #(#read_dense)*
            for j in 0..columns {
                let #product = s[j];
                #term
                #forward
                #record
                s[j] = #score;
            }
            #normalise
            let loss = #call;
            #share
            for j in 0..columns {
                let #gradient = s[j] * share;
                #again
                #backward
                #(#reductions)*
                #term_result
                s[j] = #result;
            }
            #(#update_dense)*
            #weighted
        }
    }
}

/// `squared_error::cpu::row(s, &label[…])`: the loss of a row, whose scores become its gradient.
fn row_loss(emit: &Emit<'_>, loss: &Apply, is_float: bool) -> TokenStream {
    let rt = &emit.rt;
    let module = format_ident!("{}", loss.operator.name);
    let attributes = loss
        .operator
        .attributes
        .iter()
        .map(|attribute| super::kernels::attribute(emit, loss, attribute.name, attribute.kind));
    match (is_float, loss.operator.kind) {
        // Checked when the batch came: every id is a position.
        (false, _) => quote! {
            #rt::kernels::#module::cpu::row(
                &mut s[..columns], #rt::Id::index(label[row]).unwrap_or(usize::MAX) #(, #attributes)*)
        },
        (true, operators::Kind::Loss { label: LossLabel::Class, .. }) => quote! {
            #rt::kernels::#module::cpu::row_of_targets(
                &mut s[..columns], label[row * columns..(row + 1) * columns].iter().copied() #(, #attributes)*)
        },
        _ => quote! {
            #rt::kernels::#module::cpu::row(
                &mut s[..columns], &label[row * columns..(row + 1) * columns] #(, #attributes)*)
        },
    }
}

/// `let v5 = (v4 + b_values[j]);` for each value, in order.
fn chain(emit: &Emit<'_>, parts: &LinearRows, values: &[ValueId]) -> TokenStream {
    values
        .iter()
        .filter_map(|id| {
            let apply = emit.graph.apply_of(*id)?;
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
            let operands: Vec<TokenStream> =
                apply.operands.iter().map(|operand| element_of(emit, parts, *operand)).collect();
            let value = scalar::rust(formula, &|name| {
                let index = usize::from(name != names[0]);
                operands.get(index).cloned().unwrap_or_default()
            });
            let name = local(*id);
            Some(quote!(let #name: T = #value;))
        })
        .collect()
}

/// An operand of the chain at column `j` of the row.
fn element_of(emit: &Emit<'_>, parts: &LinearRows, id: ValueId) -> TokenStream {
    match &emit.graph.value(id).kind {
        Kind::Constant(number) => number_of(emit, *number),
        Kind::Parameter { .. } => {
            let values = values_of(emit, id);
            let index = index_of(&emit.graph.shape(id), &parts.columns);
            quote!(#values[#index])
        }
        Kind::Input | Kind::Label => {
            let values = values_of(emit, id);
            quote!(#values[row * columns + j])
        }
        Kind::Apply(_) => {
            let name = local(id);
            quote!(#name)
        }
    }
}

/// Where column `j` is in a parameter that repeats in every row.
fn index_of(shape: &Dims, columns: &Dim) -> TokenStream {
    match shape.last() {
        Some(dim) if dim == columns => quote!(j),
        _ => quote!(0),
    }
}

/// The declared arrays that the chains index.
fn indexed(emit: &Emit<'_>, parts: &LinearRows) -> BTreeSet<ValueId> {
    parts
        .forward
        .iter()
        .chain(&parts.backward)
        .flat_map(|id| emit.graph.apply_of(*id))
        .flat_map(|apply| apply.operands.iter().copied())
        .filter(|id| !matches!(emit.graph.value(*id).kind, Kind::Apply(_) | Kind::Constant(_)))
        .collect()
}

/// Whether the backward chain reads values of the forward one, which are then computed again from the
/// saved products: cheaper than keeping them.
fn needs_forward(emit: &Emit<'_>, parts: &LinearRows) -> bool {
    parts
        .backward
        .iter()
        .flat_map(|id| emit.graph.apply_of(*id))
        .flat_map(|apply| &apply.operands)
        .any(|operand| {
            let is_term = parts.interaction.as_ref().is_some_and(|term| term.value == *operand);
            *operand == parts.product || is_term || parts.forward.contains(operand)
        })
}

fn local(id: ValueId) -> Ident {
    format_ident!("__v{}", id.0)
}

fn values_of(emit: &Emit<'_>, id: ValueId) -> Ident {
    format_ident!("__values_{}", emit.graph.label(id))
}

fn grad_of(emit: &Emit<'_>, id: ValueId) -> Ident {
    format_ident!("__grad_{}", emit.graph.label(id))
}

fn dense_of(emit: &Emit<'_>, id: ValueId) -> Ident {
    format_ident!("__dense_{}", emit.graph.label(id))
}

fn out_of(name: &str) -> Ident {
    format_ident!("__out_{name}")
}
