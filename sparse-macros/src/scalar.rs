//! Scalar formulas of the table as Rust.

use proc_macro2::TokenStream;
use quote::quote;
use sparse_core::formula::{self, BinaryOperator, Formula};
use sparse_core::operators::scalar::function;
use syn::Ident;

/// The formula `text` as a Rust expression over the float type `ty`; `variable` gives the
/// expression for each variable.
///
/// # Panics
///
/// If the table's formula is not well formed: its tests rule it out.
pub(crate) fn rust(
    text: &str,
    ty: &TokenStream,
    variable: &dyn Fn(&str) -> TokenStream,
) -> TokenStream {
    match formula::parse(text) {
        Ok(formula) => tokens(&formula, ty, variable),
        Err(message) => panic!("{message}"),
    }
}

/// The same of a formula that is parsed.
pub(crate) fn tokens(
    formula: &Formula,
    ty: &TokenStream,
    variable: &dyn Fn(&str) -> TokenStream,
) -> TokenStream {
    match formula {
        Formula::Number(number) => quote!(#ty::of(#number)),
        Formula::Name(name) => variable(name),
        Formula::Negate(inner) => {
            let inner = tokens(inner, ty, variable);
            quote!((-(#inner)))
        }
        Formula::Binary(operator, lhs, rhs) => {
            let (lhs, rhs) = (tokens(lhs, ty, variable), tokens(rhs, ty, variable));
            let indicator = |comparison: TokenStream| quote!((if #comparison { #ty::of(1.0) } else { #ty::of(0.0) }));
            match operator {
                BinaryOperator::Add => quote!((#lhs + #rhs)),
                BinaryOperator::Subtract => quote!((#lhs - #rhs)),
                BinaryOperator::Multiply => quote!((#lhs * #rhs)),
                BinaryOperator::Divide => quote!((#lhs / #rhs)),
                compare => {
                    let sign: TokenStream = match compare.symbol().parse() {
                        Ok(sign) => sign,
                        Err(error) => panic!("{error}"),
                    };
                    indicator(quote!(#lhs #sign #rhs))
                }
            }
        }
        Formula::Call(name, operands, _) => {
            let Some(known) = function(name) else { panic!("no scalar function `{name}`") };
            let method = Ident::new(known.method, proc_macro2::Span::call_site());
            let mut operands = operands.iter().map(|operand| tokens(operand, ty, variable));
            let receiver = operands.next();
            let rest: Vec<_> = operands.collect();
            quote!((#receiver).#method(#(#rest),*))
        }
    }
}
