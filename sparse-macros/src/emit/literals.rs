//! Numbers as literals of Rust.

use super::context::Emit;
use proc_macro2::{Literal, TokenStream};
use quote::quote;
use sparse_core::storage::ElementType;

/// A number of type `f64`, be it none that has a literal.
pub(super) fn any_number(number: f64) -> TokenStream {
    match (number.is_finite(), number.is_nan(), number > 0.0) {
        (true, ..) => quote!(#number),
        (_, true, _) => quote!(::core::f64::NAN),
        (_, _, true) => quote!(::core::f64::INFINITY),
        _ => quote!(::core::f64::NEG_INFINITY),
    }
}

/// A number in the model's element type.
pub(super) fn number_of(emit: &Emit<'_>, number: f64) -> TokenStream {
    let (rt, element) = (&emit.rt, &emit.element);
    // A product of numbers may be beyond what each of them is in.
    let number = match emit.graph.element() {
        ElementType::F32 => f64::from(number as f32),
        _ => number,
    };
    if !number.is_finite() {
        return match (number.is_nan(), number > 0.0) {
            (true, _) => quote!(#element::NAN),
            (false, true) => quote!(#element::INFINITY),
            (false, false) => quote!(#element::NEG_INFINITY),
        };
    }
    let magnitude = match emit.graph.element() {
        // Rounded once, to the half.
        half if half.is_half() => return quote!(<#element as #rt::Float>::of(#number)),
        ElementType::F64 => Literal::f64_suffixed(number.abs()),
        _ => Literal::f32_suffixed(number.abs() as f32),
    };
    if number.is_sign_negative() { quote!((-#magnitude)) } else { quote!(#magnitude) }
}
