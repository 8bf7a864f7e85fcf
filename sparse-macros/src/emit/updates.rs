//! Updates of parameters and states, and the bindings of a model's fields that they write.

use super::context::Emit;
use super::{numbers, operands};
use proc_macro2::TokenStream;
use quote::quote;
use sparse_core::ir::ValueId;
use sparse_core::storage::Storage;

/// ```text
/// let Self { w: __param_w, b: __param_b, __workspace: (buffer_0,), __outputs, __gradients,
///     __context, .. }
///     = self;
/// ```
pub(super) fn take_apart(emit: &Emit<'_>) -> TokenStream {
    let parameters = emit.graph.parameters().map(|id| {
        let (field, local) = (emit.declared(id), emit.parameter_local(id));
        quote!(#field: #local)
    });
    let buffers = (0..emit.compiled.plan.buffers.len()).map(operands::buffer);
    let numbers = numbers::variables(emit);
    quote! {
        let Self {
            #(#parameters,)*
            __workspace: (#(#buffers,)*),
            __outputs,
            __gradients,
            __scratch,
            __context,
            __extents,
            ..
        } = self;
        #numbers
    }
}

/// What brings the rows of a parameter that a batch reads up to date.
///
/// ```text
/// __updater.settle_read::<Self>(0, __param_w.values_mut(), __batch)?;
/// ```
pub(super) fn settle(emit: &Emit<'_>, id: ValueId, storage: Storage) -> Option<TokenStream> {
    // Dense gradients leave nothing to settle.
    if storage != Storage::RowSparse {
        return None;
    }
    let (index, local) = (emit.index_of(id)?, emit.parameter_local(id));
    Some(quote!(__updater.settle_read::<Self>(#index, #local.values_mut(), __batch)?;))
}

/// The update of a parameter by its whole gradient.
///
/// ```text
/// __updater.apply_dense(1, __param_b.values_mut(), __gradients.b.values())?;
/// ```
pub(super) fn apply(emit: &Emit<'_>, id: ValueId, storage: Storage) -> Option<TokenStream> {
    let (index, field) = (emit.index_of(id)?, emit.declared(id));
    let local = emit.parameter_local(id);
    Some(match storage {
        Storage::RowSparse => quote! {
            __updater.apply_row_sparse(#index, #local.values_mut(), __gradients.#field.view())?;
        },
        _ => quote! {
            __updater.apply_dense(#index, #local.values_mut(), __gradients.#field.values())?;
        },
    })
}

/// States become what was computed from the states and parameters as they were.
///
/// ```text
/// __param_mean.values_mut().copy_from_slice(__buffer_3.view().values());
/// ```
pub(super) fn states(emit: &Emit<'_>) -> TokenStream {
    let writes = emit.graph.updates.iter().map(|update| {
        let (state, value) =
            (emit.parameter_local(update.state), operands::operand(emit, update.value));
        quote!(#state.values_mut().copy_from_slice(#value.values());)
    });
    quote!(#(#writes)*)
}
