//! Formulas of element-wise operators as expressions of Rust.

use super::context::Emit;
use super::literals::number_of;
use super::numbers;
use crate::scalar;
use proc_macro2::TokenStream;
use quote::quote;
use sparse_core::ir::Apply;
use sparse_core::operators;

/// `(v4 + b_values[j])`: the formula of an element-wise operator, of elements.
pub(super) fn formula(
    emit: &Emit<'_>,
    apply: &Apply,
    operands: &[TokenStream],
) -> Option<TokenStream> {
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
    Some(scalar::rust(formula, &quote!(__T), &|name| {
        match names.iter().position(|known| *known == name) {
            Some(index) => operands.get(index).cloned().unwrap_or_default(),
            // What an attribute lacks was reported.
            None => {
                if let Some(number) = numbers::attribute(emit, apply, name) {
                    let rt = &emit.rt;
                    return quote!(<__T as #rt::Float>::of(#number));
                }
                let number = apply.operator.number(&apply.attributes, name);
                number_of(emit, number.unwrap_or_default())
            }
        }
    }))
}
