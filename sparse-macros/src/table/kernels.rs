//! The kernel trait: one method for each rule of the table, and its CPU implementation.
//!
//! Emits, for `dot`'s second rule:
//!
//! ```text
//! #[diagnostic::on_unimplemented(message = "…", note = "…")]
//! pub trait Kernels<T: Float>: Device {
//!     /// `dot`: `csr dense -> dense`.
//!     fn dot_csr_dense(out: &mut Dense<T, Self>, lhs: CsrView<'_, T, Self>, rhs: DenseView<'_,
//!         T, Self>,
//!         transpose_rhs: bool, context: &mut Context);
//! }
//! impl Kernels<f32> for Cpu {
//!     fn dot_csr_dense(…) { crate::kernels::dot::cpu::csr_dense(out, lhs, rhs, transpose_rhs,
//!         context) }
//! }
//! ```

use super::{
    Kernel, all_kernels, array, attribute_type, attribute_value, ident, result_type, view,
};
use crate::scalar;
use proc_macro2::TokenStream;
use quote::quote;
use sparse_core::operators::{AttributeKind, BinaryFamily, Kind, Operator, Pattern, Reduction};
use sparse_core::storage::Storage;

/// The trait, its implementations, and `call_kernel`.
pub(crate) fn kernels() -> TokenStream {
    let kernels = all_kernels();
    let (this, generic) = (quote!(Self), quote!(T));
    let declarations = kernels.iter().map(|kernel| {
        let signature = signature(kernel, &this, &generic);
        let doc = format!(
            "`{}`: `{} -> {}`. {}",
            kernel.operator.name,
            kernel
                .rule_name()
                .replace("_into_dense", "")
                .replace('_', " ")
                .replace("row sparse", "row_sparse"),
            kernel.result,
            kernel.operator.summary
        );
        quote!(#[doc = #doc] #signature;)
    });
    let bodies = |element: TokenStream| -> TokenStream {
        kernels
            .iter()
            .map(|kernel| {
                let (signature, body) = (signature(kernel, &this, &element), body(kernel));
                quote!(#signature { type E = #element; type T = <E as Float>::Accumulator; #body })
            })
            .collect()
    };
    let implementations = super::elements().map(|(feature, element)| {
        let bodies = bodies(quote!(#element));
        quote!(#feature impl Kernels<#element> for Cpu { #bodies })
    });
    let arms = kernels.iter().map(arm);
    quote! {
        /// The kernels of a device: one method for each rule of the operator table, called with
        /// operands that fit the rule and each other. Not generic in the user's crate: kernels are
        /// compiled here.
        #[diagnostic::on_unimplemented(
            message = "there are no kernels for elements of `{T}` on `{Self}`",
            note = "operators compute in floats, on the device `Cpu`; the halves need the feature `half`"
        )]
        #[allow(clippy::too_many_arguments)]
        pub trait Kernels<T: Float>: Device {
            #(#declarations)*
        }

        #[allow(
            clippy::too_many_arguments,
            clippy::redundant_closure,
            clippy::approx_constant,
            clippy::eq_op,
            clippy::neg_multiply,
            dead_code,
            unused_variables
        )]
        const _: () = {
            #(#implementations)*
        };

        /// Calls a kernel by name, for executors that know it only at run time. The result replaces
        /// `out`, in its allocations where that has the storage of the result. `None` where no
        /// kernel has the name or an operand is not what the kernel takes; `out` is then what it
        /// was.
        pub fn call_kernel<T: Float>(
            name: &str,
            out: &mut Array<T>,
            operands: &[Operand<'_, T>],
            attributes: &Attributes,
            context: &mut Context,
        ) -> Option<()>
        where
            Cpu: Kernels<T>,
        {
            match name {
                #(#arms)*
                _ => None,
            }
        }
    }
}

fn signature(kernel: &Kernel, device: &TokenStream, element: &TokenStream) -> TokenStream {
    let (name, out) = (kernel.name(), result_type(kernel, device, element));
    let operands = kernel.operator.operands.iter().zip(&kernel.signature.operands).map(
        |(operand, pattern)| {
            let (operand, view) = (ident(operand), view(*pattern, device, element));
            quote!(#operand: #view)
        },
    );
    let attributes = kernel.attributes();
    let attributes = attributes.iter().map(|(attribute, kind)| {
        let (attribute, kind) = (ident(attribute), attribute_type(*kind));
        quote!(#attribute: #kind)
    });
    quote! {
        fn #name(
            out: &mut #out,
            #(#operands,)*
            #(#attributes,)*
            context: &mut Context,
        )
    }
}

/// The call of the function that computes the rule on the CPU.
fn body(kernel: &Kernel) -> TokenStream {
    let operator = kernel.operator;
    let given = &operator.operands[..kernel.signature.operands.len()];
    let operands: Vec<_> = given.iter().map(|operand| ident(operand)).collect();
    let attributes: Vec<_> = kernel.attributes().iter().map(|(name, _)| ident(name)).collect();
    let rule = ident(&kernel.function);
    let family = |module: &str| {
        let module = ident(module);
        quote!(crate::kernels::#module::cpu::#rule(out, #(#operands,)* #(#attributes,)* context))
    };
    match operator.kind {
        Kind::Kernel | Kind::Loss { .. } => family(operator.name),
        Kind::LossGradient(loss) => {
            let (module, rule) = (ident(loss), ident(&format!("gradient_{}", kernel.function)));
            quote!(crate::kernels::#module::cpu::#rule(out, #(#operands,)* #(#attributes,)* context))
        }
        Kind::Declared(..) => panic!("`{}` is declared, and has no kernel here", operator.name),
        Kind::Unary(formula) => {
            let formula =
                scalar::rust(formula, &quote!(T), &variable(operator, &[("x", quote!(x))]));
            let operand = &operands[0];
            let f = rounded(&formula, &["x"], quote!());
            quote!(crate::kernels::unary::cpu::#rule(out, #operand, #f, context))
        }
        Kind::Reduction(reduction) => {
            let Reduction { map, combine, finish } = reduction;
            let combine = ident(&format!("{combine:?}"));
            let map = scalar::rust(map, &quote!(T), &variable(operator, &[("x", quote!(x))]));
            let finish = scalar::rust(
                finish,
                &quote!(T),
                &variable(operator, &[("s", quote!(s)), ("n", quote!(n))]),
            );
            let operand = &operands[0];
            quote! {{
                // In f64, whatever the elements are.
                type T = f64;
                crate::kernels::reduce::cpu::#rule(
                    out, #operand, crate::kernels::reduce::Over { axis, keepdims, exclude },
                    crate::kernels::reduce::#combine, |x: f64| #map, |s: f64, n: f64| #finish, context)
            }}
        }
        Kind::Binary(family, formula) => binary(kernel, family, formula, &operands),
    }
}

/// The variables of a formula as Rust: those given, and the attributes that are numbers.
fn variable<'a>(
    operator: &'static Operator,
    known: &'a [(&'a str, TokenStream)],
) -> impl Fn(&str) -> TokenStream + 'a {
    move |name| match known.iter().find(|(variable, _)| *variable == name) {
        Some((_, tokens)) => tokens.clone(),
        None => {
            let attribute = ident(name);
            match operator.attribute(name).map(|attribute| attribute.kind) {
                Some(AttributeKind::Number(_)) => quote!(T::of(#attribute)),
                Some(AttributeKind::Integer(_)) => quote!(T::of(#attribute as f64)),
                _ => panic!("the formula of `{}` names `{name}`", operator.name),
            }
        }
    }
}

fn binary(
    kernel: &Kernel,
    family: BinaryFamily,
    formula: &str,
    operands: &[syn::Ident],
) -> TokenStream {
    // A gradient's formula is in `g` and in `x` or `y`; the others' in `x` and `y`.
    let names = if family.is_gradient() { ["g", kernel.operator.operands[1]] } else { ["x", "y"] };
    let known = [(names[0], quote!(first)), (names[1], quote!(second))];
    let formula = scalar::rust(formula, &quote!(T), &variable(kernel.operator, &known));
    let patterns = &kernel.signature.operands;
    let storage = |pattern: Pattern| match pattern {
        Pattern::Array(storage, _) => storage.name(),
        _ => "dense",
    };
    let (lhs, rhs) = (&operands[0], &operands[1]);
    if patterns[0] == Pattern::Scalar {
        let rule = ident(storage(patterns[1]));
        let f = rounded(&formula, &["second"], quote!(let first = E::widen(#lhs);));
        return quote!(crate::kernels::unary::cpu::#rule(out, #rhs, #f, context));
    }
    if patterns[1] == Pattern::Scalar {
        let rule = ident(storage(patterns[0]));
        let f = rounded(&formula, &["first"], quote!(let second = E::widen(#rhs);));
        return quote!(crate::kernels::unary::cpu::#rule(out, #lhs, #f, context));
    }
    let dense = Pattern::Array(Storage::Dense, false);
    let rule = &kernel.function;
    let rule = match (family, patterns.iter().all(|pattern| *pattern == dense)) {
        (_, true) => ident(rule),
        (BinaryFamily::Dense, _) => ident(rule),
        (BinaryFamily::Union, _) => ident(&format!("union_{rule}")),
        (BinaryFamily::Intersection, _) => ident(&format!("intersection_{rule}")),
        (BinaryFamily::Left, _) => ident(&format!("left_{rule}")),
        (BinaryFamily::Gradient, _) => ident(&format!("gradient_{rule}")),
        (BinaryFamily::SlopedGradient, _) => ident(&format!("sloped_gradient_{rule}")),
    };
    let f = rounded(&formula, &["first", "second"], quote!());
    quote!(crate::kernels::binary::cpu::#rule(out, #lhs, #rhs, #f, context))
}

/// A formula as a function of elements: computed in their accumulator `T`, rounded once.
fn rounded(formula: &TokenStream, variables: &[&str], before: TokenStream) -> TokenStream {
    let variables: Vec<_> = variables.iter().map(|variable| ident(variable)).collect();
    quote! {
        |#(#variables: E),*| {
            #(let #variables = E::widen(#variables);)*
            #before
            E::narrow(#formula)
        }
    }
}

/// One arm of `call_kernel`.
fn arm(kernel: &Kernel) -> TokenStream {
    let (name, storage) = (kernel.name(), array(kernel.result));
    let text = name.to_string();
    let operands = kernel.signature.operands.iter().enumerate().map(|(index, pattern)| {
        let accessor = ident(match pattern {
            Pattern::Scalar => "scalar",
            Pattern::Ids => "ids",
            Pattern::Unit(_) => "unit",
            Pattern::Like => return quote!(operands.get(#index)?.shape()),
            Pattern::Array(storage, _) => storage.name(),
        });
        quote!(operands.get(#index)?.#accessor()?)
    });
    let places = (0..kernel.signature.operands.len()).map(syn::Index::from);
    let attributes = kernel.attributes();
    let attributes = attributes
        .iter()
        .map(|(attribute, kind)| attribute_value(attribute, *kind, &quote!(attributes)));
    let variant = if kernel.signature.gives_ids { ident("Ids") } else { storage.clone() };
    let number = kernel.signature.operands.len();
    if kernel.signature.gives_ids {
        return quote! {
            #text if operands.len() == #number => {
                let operands = (#(#operands,)*);
                let mut result = match out {
                    Array::Ids(Ids::U64(reused)) => std::mem::take(reused),
                    _ => Dense::default(),
                };
                Cpu::#name(&mut result, #(operands.#places,)* #(#attributes,)* context);
                *out = Array::Ids(result.into());
                Some(())
            }
        };
    }
    quote! {
        #text if operands.len() == #number => {
            let operands = (#(#operands,)*);
            let mut result = match out {
                Array::#variant(reused) => std::mem::take(reused),
                _ => #storage::default(),
            };
            Cpu::#name(&mut result, #(operands.#places,)* #(#attributes,)* context);
            *out = Array::#variant(result);
            Some(())
        }
    }
}
