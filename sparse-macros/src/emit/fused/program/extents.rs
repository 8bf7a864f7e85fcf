//! Extents of rows, as expressions of Rust.

use crate::emit::context::Emit;
use proc_macro2::TokenStream;
use quote::quote;
use sparse_core::shapes::Dim;

/// The longest row that is an array on the stack.
const LONGEST: u64 = 1024;

/// The number of elements of an array with these extents, each a number, a constant of Rust, or
/// fixed when the model is made.
pub(super) fn elements(emit: &Emit<'_>, dims: &[Dim]) -> TokenStream {
    if let Some(size) = known(dims) {
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        return quote!(#size);
    }
    let extents = dims.iter().filter(|dim| **dim != Dim::Size(1)).map(|dim| extent(emit, dim));
    quote!((1usize #(* #extents)*))
}

/// An extent.
pub(super) fn extent(emit: &Emit<'_>, dim: &Dim) -> TokenStream {
    let extent = emit.fixed_extent(dim);
    quote!({ #extent })
}

/// Whether a row with these extents is an array on the stack: its length is a constant, and short
/// where the macro sees it.
pub(super) fn is_on_stack(emit: &Emit<'_>, dims: &[Dim]) -> bool {
    let is_constant = |dim: &Dim| match dim {
        Dim::Size(_) => true,
        Dim::Named(name) => emit.graph.unify.is_constant(name),
        Dim::Unknown(_) => false,
    };
    dims.iter().all(is_constant) && known(dims).is_none_or(|size| size <= LONGEST)
}

/// The product of extents that are all numbers.
fn known(dims: &[Dim]) -> Option<u64> {
    dims.iter().try_fold(1u64, |product, dim| match dim {
        Dim::Size(size) => product.checked_mul(*size),
        _ => None,
    })
}

/// Loops over all places of an array with these extents, in order: `__i0`, `__i1`, ….
pub(super) fn loops(emit: &Emit<'_>, dims: &[Dim], body: TokenStream) -> TokenStream {
    dims.iter().enumerate().rev().fold(body, |body, (axis, dim)| {
        let (index, extent) = (index(axis), extent(emit, dim));
        quote!(for #index in 0..(#extent) { #body })
    })
}

/// The place of an element of an array with extents `dims`, at the indices of [`loops`]. `axis_of`
/// says which loop an axis of the array follows; none where it has one place.
pub(super) fn place(
    emit: &Emit<'_>,
    dims: &[Dim],
    axis_of: impl Fn(usize) -> Option<usize>,
) -> TokenStream {
    let mut place = quote!(0);
    for (axis, dim) in dims.iter().enumerate() {
        let extent = extent(emit, dim);
        place = match axis_of(axis) {
            Some(of_loop) => {
                let index = index(of_loop);
                quote!((#place * #extent + #index))
            }
            None => place,
        };
    }
    place
}

fn index(axis: usize) -> proc_macro2::Ident {
    quote::format_ident!("__i{axis}")
}
