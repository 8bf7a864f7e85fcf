//! The values of one sample, each a row: an array on the stack, or a part of the scratch memory.

use super::extents::{elements, extent, loops, place};
use super::{declared_operands, declared_values, losses, on_stack, trained_place};
use crate::emit::context::Emit;
use crate::emit::element_wise::formula;
use crate::emit::fused::names::{local, values_of};
use crate::emit::literals::number_of;
use crate::emit::operands::number;
use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};
use sparse_core::ir::{Apply, Kind, ValueId};
use sparse_core::passes::{LossOf, RowComputed, RowProgram, RowValue};
use sparse_core::shapes::{Dim, Dims};
use sparse_core::storage::Storage;

/// The values of a sample.
pub(super) struct Values {
    /// The declared arrays, as rows of the sample.
    pub(super) declared: TokenStream,
    /// Those that the losses and the gradients need.
    pub(super) computed: TokenStream,
    /// Those that outputs alone need.
    pub(super) for_outputs: TokenStream,
}

impl Values {
    pub(super) fn of(emit: &Emit<'_>, program: &RowProgram) -> Self {
        let graph = emit.graph;
        let declared = declared_operands(emit, program);
        let declared = declared.into_iter().map(|id| declared_values(emit, program, id));
        let labels = csr_labels(emit, program).map(|(loss, label)| {
            let (name, size) = (losses::label(loss), elements(emit, &graph.shape(label)[1..]));
            let rt = &emit.rt;
            quote! {
                let (__label, __work) = __work.split_at_mut(#size);
                #rt::engine::row_functions::densify(#name, __row, __label);
                let #name = &__label[..];
            }
        });
        let trained = graph.gradients.iter().map(|(_, gradient)| *gradient);
        let needed = graph.ancestors(graph.losses.iter().copied().chain(trained));
        let (values, for_outputs): (Vec<_>, Vec<_>) =
            program.values.iter().partition(|value| needed[value.value.0]);
        let values = values.into_iter().map(|value| self::value(emit, value));
        let for_outputs = for_outputs.into_iter().map(|value| self::value(emit, value));
        Values {
            declared: quote!(#(#declared)* #(#labels)*),
            computed: quote!(#(#values)*),
            for_outputs: quote!(#(#for_outputs)*),
        }
    }
}

/// The losses of the table whose labels are csr, with these.
fn csr_labels(emit: &Emit<'_>, program: &RowProgram) -> impl Iterator<Item = (ValueId, ValueId)> {
    let losses = program.losses.iter().filter(|loss| loss.of == LossOf::Table);
    let labels = losses.filter_map(|loss| {
        let label = *emit.graph.apply_of(loss.value)?.operands.get(1)?;
        (emit.graph.storage(label) == Storage::Csr).then_some((loss.value, label))
    });
    labels.collect::<Vec<_>>().into_iter()
}

/// What the row function captures: arrays of the batch, parameters that no step changes, and
/// numbers.
pub(super) fn setup(emit: &Emit<'_>, program: &RowProgram) -> TokenStream {
    let (rt, graph) = (&emit.rt, emit.graph);
    let of_losses = program.losses.iter().filter(|loss| loss.of == LossOf::Table).map(|loss| {
        let operands = graph.apply_of(loss.value).map_or(&[][..], |apply| &apply.operands);
        let label = operands.get(1).map(|id| {
            let (name, field) = (losses::label(loss.value), emit.declared(*id));
            match graph.storage(*id) {
                Storage::Csr => quote!(let #name = __batch.#field;),
                _ => quote!(let #name = __batch.#field.values();),
            }
        });
        let weights = operands.get(2).map(|id| {
            let (name, field) = (losses::weights(loss.value), emit.declared(*id));
            quote!(let #name = __batch.#field.values();)
        });
        quote!(#label #weights)
    });
    let declared = declared_operands(emit, program).into_iter().filter_map(|id| {
        let (variable, field) = (values_of(emit, id), emit.declared(id));
        match graph.value(id).kind {
            Kind::Parameter { .. } => trained_place(program, id).is_none().then(|| {
                let local = emit.parameter_local(id);
                quote!(let #variable = #local.values();)
            }),
            _ => Some(quote!(let #variable = __batch.#field.values();)),
        }
    });
    let shares = program.values.iter().filter_map(|value| {
        let RowComputed::Share { mean } = value.computed else { return None };
        let of = *graph.apply_of(value.value)?.operands.first()?;
        let (name, number) = (share_of(value.value), number(emit, of)?);
        let size = elements(emit, &graph.shape(value.value)[1..]);
        let share =
            mean.then(|| quote!(* #rt::engine::row_functions::share::<__T>(__count * #size)));
        Some(quote!(let #name: __T = #number #share;))
    });
    quote! {
        #(#of_losses)*
        #(#declared)*
        #(#shares)*
        let __mean = #rt::linear::share::<__T>(__count);
    }
}

fn share_of(id: ValueId) -> Ident {
    format_ident!("__share_{}", id.0)
}

/// The numbers of scratch that the row function needs.
pub(super) fn work(emit: &Emit<'_>, program: &RowProgram) -> TokenStream {
    let graph = emit.graph;
    let values = program.values.iter().map(|value| value.value);
    let values = values.filter(|id| !on_stack(emit, *id));
    let scores = program.losses.iter().filter(|loss| loss.of == LossOf::Table);
    let scores = scores
        .filter(|loss| loss.gradient.is_none())
        .filter_map(|loss| graph.apply_of(loss.value)?.operands.first().copied());
    let labels = csr_labels(emit, program).map(|(_, label)| label);
    let sizes = values.chain(scores).chain(labels);
    let sizes = sizes.map(|id| elements(emit, &graph.shape(id)[1..]));
    quote!(0usize #(+ #sizes)*)
}

/// Memory for a row, zeros on the stack; else it may hold anything.
fn memory(emit: &Emit<'_>, id: ValueId) -> TokenStream {
    let (name, size) = (local(id), elements(emit, &emit.graph.shape(id)[1..]));
    let zero = number_of(emit, 0.0);
    if on_stack(emit, id) {
        quote!(let mut #name = [#zero; #size];)
    } else {
        quote!(let (#name, __work) = __work.split_at_mut(#size);)
    }
}

fn value(emit: &Emit<'_>, value: &RowValue) -> Option<TokenStream> {
    let (rt, graph) = (&emit.rt, emit.graph);
    let id = value.value;
    let (name, memory) = (local(id), memory(emit, id));
    let shape = graph.shape(id);
    let inner = &shape[1..];
    let apply = graph.apply_of(id)?;
    let copied = |of: ValueId| {
        let of = local(of);
        quote!(#name[..].copy_from_slice(&#of[..]);)
    };
    let body = match &value.computed {
        RowComputed::ElementWise => element_wise(emit, apply, &name, inner)?,
        RowComputed::LossGradient(loss) => {
            let of_loss = graph.apply_of(*loss)?;
            let (copy, size) = (copied(of_loss.operands[0]), elements(emit, inner));
            let call = losses::of_table(emit, *loss, of_loss, &quote!(#name));
            let weight = of_loss.operands.get(2).map(|_| {
                let weights = losses::weights(*loss);
                quote!(* #weights[__row])
            });
            let loss = local(*loss);
            return Some(quote! {
                #memory
                #copy
                let __columns = #size;
                let #loss: __T = #call;
                let __share = __mean #weight;
                for __derivative in &mut #name[..] {
                    *__derivative *= __share;
                }
            });
        }
        RowComputed::Share { .. } => {
            let share = share_of(id);
            quote!(#name[..].fill(#share);)
        }
        RowComputed::Product { x, w, transposed, bias } => {
            let (x, w) = (local(*x), values_of(emit, *w));
            let function =
                format_ident!("{}", if *transposed { "transposed_product" } else { "product" });
            let bias = bias.map(|bias| {
                let bias = values_of(emit, bias);
                quote!(#rt::engine::row_functions::add(&mut #name[..], #bias);)
            });
            quote! {
                #rt::engine::row_functions::#function(&#x[..], #w, &mut #name[..]);
                #bias
            }
        }
        RowComputed::Joined { first, second, axis } => {
            let block = |id: &ValueId| {
                let (name, shape) = (local(*id), graph.shape(*id));
                let size = elements(emit, &shape[1 + axis..]);
                quote!((&#name[..], #size))
            };
            let (first, second) = (block(first), block(second));
            quote!(#rt::engine::row_functions::join(#first, #second, &mut #name[..]);)
        }
        RowComputed::Part { of, axis, from_end } => {
            let (row, of_shape) = (local(*of), graph.shape(*of));
            let (of, part) =
                (elements(emit, &of_shape[1 + axis..]), elements(emit, &inner[*axis..]));
            quote! {
                #rt::engine::row_functions::part(
                    &#row[..], #of, #part, #from_end, &mut #name[..],
                );
            }
        }
        RowComputed::Total { of, axes, mean } => total(emit, &name, *of, axes, *mean),
        RowComputed::Repeated { of, axes, shared } => {
            repeated(emit, &name, *of, inner, axes, *shared)
        }
        RowComputed::Copy(of) => copied(*of),
        RowComputed::Softmax(of) => {
            let copy = copied(*of);
            quote!(#copy #rt::kernels::softmax::cpu::row(&mut #name[..]);)
        }
    };
    Some(quote!(#memory #body))
}

/// Each element by a formula.
fn element_wise(
    emit: &Emit<'_>,
    apply: &Apply,
    name: &Ident,
    inner: &[Dim],
) -> Option<TokenStream> {
    let operands: Vec<Operand> =
        apply.operands.iter().map(|id| Operand::of(emit, *id, inner)).collect();
    let is_flat = operands.iter().all(|operand| operand.is_flat(inner));
    if is_flat {
        let elements: Vec<_> = operands.iter().map(|operand| operand.at_flat(inner)).collect();
        let formula = formula(emit, apply, &elements)?;
        // Slices of one length, for the compiler.
        let slices = operands.iter().filter_map(|operand| operand.slice(inner));
        return Some(quote! {
            {
                let __length = #name.len();
                #(#slices)*
                for __j in 0..__length {
                    #name[__j] = #formula;
                }
            }
        });
    }
    let elements: Vec<_> = operands.iter().map(|operand| operand.at(emit, inner)).collect();
    let formula = formula(emit, apply, &elements)?;
    let body = loops(emit, inner, quote!(#name[__k] = #formula; __k += 1;));
    Some(quote!({ let mut __k = 0usize; #body }))
}

/// An operand of an element-wise function.
enum Operand {
    Number(TokenStream),
    /// The variable of a row or a parameter, and its extents beside that of the batch.
    Row(Ident, Dims),
}

impl Operand {
    fn of(emit: &Emit<'_>, id: ValueId, inner: &[Dim]) -> Self {
        let shape = emit.graph.shape(id);
        match emit.graph.value(id).kind {
            Kind::Constant(_) | Kind::Named(_) => {
                Operand::Number(number(emit, id).unwrap_or_default())
            }
            Kind::Parameter { .. } => {
                let own = &shape[shape.len().saturating_sub(inner.len())..];
                Operand::Row(values_of(emit, id), own.to_vec())
            }
            _ => Operand::Row(local(id), shape[1..].to_vec()),
        }
    }

    fn is_one(dims: &[Dim]) -> bool {
        dims.iter().all(|dim| *dim == Dim::Size(1))
    }

    /// Whether it has an element at each place, or one in all.
    fn is_flat(&self, inner: &[Dim]) -> bool {
        match self {
            Operand::Number(_) => true,
            Operand::Row(_, dims) => Self::is_one(dims) || self.is_whole(inner),
        }
    }

    fn is_whole(&self, inner: &[Dim]) -> bool {
        let counted = |dims: &[Dim]| -> Vec<Dim> {
            dims.iter().filter(|dim| **dim != Dim::Size(1)).cloned().collect()
        };
        matches!(self, Operand::Row(_, dims) if counted(dims) == counted(inner))
    }

    fn at_flat(&self, inner: &[Dim]) -> TokenStream {
        match self {
            Operand::Number(number) => number.clone(),
            Operand::Row(name, _) if self.is_whole(inner) => quote!(#name[__j]),
            Operand::Row(name, _) => quote!(#name[0]),
        }
    }

    fn slice(&self, inner: &[Dim]) -> Option<TokenStream> {
        match self {
            Operand::Row(name, _) if self.is_whole(inner) => {
                Some(quote!(let #name = &#name[..__length];))
            }
            _ => None,
        }
    }

    fn at(&self, emit: &Emit<'_>, inner: &[Dim]) -> TokenStream {
        match self {
            Operand::Number(number) => number.clone(),
            Operand::Row(name, dims) => {
                let before = inner.len() - dims.len();
                let axis_of = |axis: usize| (dims[axis] != Dim::Size(1)).then_some(before + axis);
                let place = place(emit, dims, axis_of);
                quote!(#name[#place])
            }
        }
    }
}

/// Sums over axes, or means.
fn total(emit: &Emit<'_>, name: &Ident, of: ValueId, axes: &[usize], mean: bool) -> TokenStream {
    let rt = &emit.rt;
    let (row, shape) = (local(of), emit.graph.shape(of));
    let dims = &shape[1..];
    if axes.len() == dims.len() {
        let function = format_ident!("{}", if mean { "mean" } else { "total" });
        return quote!(#name[0] = #rt::engine::row_functions::#function(&#row[..]););
    }
    let zero = number_of(emit, 0.0);
    let kept: Vec<usize> = (0..dims.len()).filter(|axis| !axes.contains(axis)).collect();
    let kept_dims: Vec<Dim> = kept.iter().map(|axis| dims[*axis].clone()).collect();
    let place = place(emit, &kept_dims, |axis| kept.get(axis).copied());
    let body = loops(emit, dims, quote!(#name[#place] += #row[__k]; __k += 1;));
    let share = mean.then(|| {
        let count = product(emit, dims, axes);
        quote! {
            for __mean_of in &mut #name[..] {
                *__mean_of /= <__T as #rt::Float>::of(#count as #rt::f64);
            }
        }
    });
    quote! {
        {
            #name[..].fill(#zero);
            let mut __k = 0usize;
            #body
            #share
        }
    }
}

/// A row repeated along axes.
fn repeated(
    emit: &Emit<'_>,
    name: &Ident,
    of: ValueId,
    inner: &[Dim],
    axes: &[usize],
    shared: bool,
) -> TokenStream {
    let (rt, row) = (&emit.rt, local(of));
    let share = shared.then(|| {
        let count = product(emit, inner, axes);
        quote!(* #rt::engine::row_functions::share::<__T>(#count))
    });
    if axes.len() == inner.len() {
        return quote!({ let __one = #row[0] #share; #name[..].fill(__one); });
    }
    let kept: Vec<usize> = (0..inner.len()).filter(|axis| !axes.contains(axis)).collect();
    let kept_dims: Vec<Dim> = kept.iter().map(|axis| inner[*axis].clone()).collect();
    let place = place(emit, &kept_dims, |axis| kept.get(axis).copied());
    let body = loops(emit, inner, quote!(#name[__k] = #row[#place] #share; __k += 1;));
    quote!({ let mut __k = 0usize; #body })
}

/// The product of some extents.
fn product(emit: &Emit<'_>, dims: &[Dim], axes: &[usize]) -> TokenStream {
    let extents = axes.iter().map(|axis| extent(emit, &dims[*axis]));
    quote!((1usize #(* #extents)*))
}

/// Adds the sums of a row over the axes along which a parameter repeats.
pub(super) fn add_total(emit: &Emit<'_>, row: ValueId, parameter: &Dims) -> TokenStream {
    let (name, shape) = (local(row), emit.graph.shape(row));
    let dims = &shape[1..];
    let own = &parameter[parameter.len().saturating_sub(dims.len())..];
    let before = dims.len() - own.len();
    let place = place(emit, own, |axis| (own[axis] != Dim::Size(1)).then_some(before + axis));
    let body = loops(emit, dims, quote!(__out[#place] += #name[__k]; __k += 1;));
    quote!({ let mut __k = 0usize; #body })
}
