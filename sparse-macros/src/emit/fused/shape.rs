//! The shape of a row loop: what it steps, how wide it is, what it reads, and what stays in
//! registers.

use super::names::dense_of;
use crate::emit::context::Emit;
use crate::emit::literals::number_of;
use proc_macro2::{Ident, TokenStream};
use quote::quote;
use sparse_core::ir::{Kind, ValueId};
use sparse_core::passes::{LookupRead, RowLoop, Terms};
use sparse_core::shapes::Dim;
use std::collections::BTreeSet;

/// What the row function is for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Steps {
    /// One step of all rows of a batch.
    One,
    /// A step of each row.
    EachRow,
}

/// Whether the derivatives of a row's loss by its scores can stand for all gradients of the row:
/// these are a product of the row with a parameter, and what is between product and scores depends
/// on no parameter. Then a rule that corrects gradients corrects the derivatives.
pub(in crate::emit) fn corrects_scores(emit: &Emit<'_>, parts: &RowLoop) -> bool {
    let Terms::Linear(linear) = &parts.terms else { return false };
    let reads_parameter = || {
        let backward = parts.backward.iter().flat_map(|id| emit.graph.apply_of(*id));
        let mut operands = backward.flat_map(|apply| &apply.operands);
        operands.any(|id| matches!(emit.graph.value(*id).kind, Kind::Parameter { .. }))
    };
    linear.interaction.is_none() && !needs_forward(emit, parts) && !reads_parameter()
}

/// Whether the backward chain reads values of the forward one, which are then computed again from
/// the saved products: cheaper than keeping them.
pub(super) fn needs_forward(emit: &Emit<'_>, parts: &RowLoop) -> bool {
    let terms = parts.terms.all().into_iter().map(|term| term.value);
    let forward: BTreeSet<ValueId> = terms.chain(parts.forward.iter().copied()).collect();
    let backward = parts.backward.iter().flat_map(|id| emit.graph.apply_of(*id));
    backward.flat_map(|apply| &apply.operands).any(|operand| forward.contains(operand))
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

/// `linear::Fixed::<16>`, or `linear::Runtime(…)` of a width that is known when the model is made.
pub(super) fn width(emit: &Emit<'_>, dim: &Dim) -> TokenStream {
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

/// The elements of a parameter that are few enough to be kept in registers, if it is one of those.
pub(super) fn few(emit: &Emit<'_>, parameter: ValueId) -> Option<usize> {
    const FEW: u64 = 32;
    let sizes = emit.graph.shape(parameter).iter().try_fold(1u64, |product, dim| match dim {
        Dim::Size(size) => product.checked_mul(*size),
        _ => None,
    });
    sizes.filter(|size| *size <= FEW).map(|size| size as usize)
}

/// The trained dense parameters that are [few] elements each: what the loop keeps in registers from
/// row to row.
pub(super) fn few_dense(emit: &Emit<'_>, parts: &RowLoop) -> Vec<Ident> {
    let reduced = parts.reductions.iter().map(|(parameter, _, _)| *parameter);
    reduced.filter(|id| few(emit, *id).is_some()).map(|id| dense_of(emit, id)).collect()
}

/// What a gradient is before anything is added to it: -0, to which adding is no work where the
/// compiler sees it.
pub(super) fn nothing(emit: &Emit<'_>) -> TokenStream {
    number_of(emit, -0.0)
}
