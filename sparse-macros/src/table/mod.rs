//! Macros that follow the operator table: kernels by name, and the macro-free operators.

mod gpu;
mod kernels;
mod modules;
mod operations;
mod pages;

pub(crate) use gpu::gpu_kernels;
pub(crate) use kernels::kernels;
pub(crate) use modules::kernel_modules;
pub(crate) use operations::operators;
pub(crate) use pages::pages;

use proc_macro2::{Span, TokenStream};
use quote::quote;
use sparse_core::operators::{AttributeKind, Operator, Pattern, Signature};
use sparse_core::storage::Storage;
use syn::Ident;

/// One kernel: an operator, one of its rules, and one of the rule's results.
struct Kernel {
    operator: &'static Operator,
    /// That of the rule, or of the same for patterns.
    signature: Signature,
    result: Storage,
    /// The name of the function: that of a rule serves patterns too, and is generic in what a csr
    /// stores.
    function: String,
}

/// Every kernel of the table.
fn all_kernels() -> Vec<Kernel> {
    let mut kernels = Vec::new();
    for operator in sparse_core::operators::all() {
        for rule in operator.storage {
            let of_rule = rule.signature();
            for signature in rule.signatures() {
                for result in signature.results() {
                    let (signature, function) = (signature.clone(), of_rule.kernel(result));
                    kernels.push(Kernel { operator, signature, result, function });
                }
            }
        }
    }
    kernels
}

impl Kernel {
    /// The rule's part of the name: `csr_transposed_dense`.
    fn rule_name(&self) -> String {
        self.signature.kernel(self.result)
    }

    /// The whole name: `dot_csr_transposed_dense`.
    fn name(&self) -> Ident {
        ident(&format!("{}_{}", self.operator.name, self.rule_name()))
    }

    /// The attributes that the kernel is told: a transposition that the rule fixes is not one of
    /// them, nor is the storage asked for.
    fn attributes(&self) -> Vec<(&'static str, AttributeKind)> {
        kernel_attributes(self.operator, &self.signature)
    }
}

/// The attributes that the kernel of a rule is told.
pub(crate) fn kernel_attributes(
    operator: &'static Operator,
    signature: &Signature,
) -> Vec<(&'static str, AttributeKind)> {
    let fixed = |flag: &str| {
        (0..signature.operands.len()).any(|index| {
            operator.transpose_flag(index) == Some(flag)
                && signature.operands[index] != Pattern::Array(Storage::Dense, false)
        })
    };
    operator
        .attributes
        .iter()
        .filter(|attribute| attribute.kind != AttributeKind::Storage && !fixed(attribute.name))
        .map(|attribute| (attribute.name, attribute.kind))
        .collect()
}

/// The types of elements that are written out where generic code would not do, each with the
/// condition under which the runtime has it.
fn elements() -> impl Iterator<Item = (TokenStream, TokenStream)> {
    let half = quote!(#[cfg(feature = "half")]);
    [
        (quote!(), quote!(f32)),
        (quote!(), quote!(f64)),
        (half.clone(), quote!(sparse_core::element::f16)),
        (half, quote!(sparse_core::element::bf16)),
    ]
    .into_iter()
}

fn ident(name: &str) -> Ident {
    Ident::new(name, Span::call_site())
}

/// The owned array type of a kernel's result, for a device and an element type.
fn result_type(kernel: &Kernel, device: &TokenStream, element: &TokenStream) -> TokenStream {
    let array = array(kernel.result);
    if kernel.signature.gives_ids {
        quote!(#array<u64, #device>)
    } else {
        quote!(#array<#element, #device>)
    }
}

/// The owned array type of a storage.
fn array(storage: Storage) -> Ident {
    ident(match storage {
        Storage::Dense => "Dense",
        Storage::Csr => "Csr",
        Storage::RowSparse => "RowSparse",
    })
}

/// The view type of an operand, for a device and an element type.
fn view(pattern: Pattern, device: &TokenStream, element: &TokenStream) -> TokenStream {
    view_for(pattern, &quote!('_), device, element)
}

/// The same of a lifetime with a name.
fn view_for(
    pattern: Pattern,
    lifetime: &TokenStream,
    device: &TokenStream,
    element: &TokenStream,
) -> TokenStream {
    match pattern {
        Pattern::Scalar => quote!(#element),
        Pattern::Ids => quote!(IdsView<#lifetime, #device>),
        Pattern::Like => quote!(Shape),
        Pattern::Unit(_) => quote!(CsrView<#lifetime, Unit, #device>),
        Pattern::Array(storage, _) => {
            let name = ident(&format!("{}View", array(storage)));
            quote!(#name<#lifetime, #element, #device>)
        }
    }
}

/// The Rust type of an attribute.
fn attribute_type(kind: AttributeKind) -> TokenStream {
    match kind {
        AttributeKind::Flag => quote!(bool),
        AttributeKind::Axes => quote!(Axes),
        AttributeKind::Integer(_) => quote!(i64),
        AttributeKind::Number(_) => quote!(f64),
        AttributeKind::List => quote!(Option<List>),
        AttributeKind::Storage => quote!(Option<Storage>),
    }
}

/// An attribute of a call that knows its attributes at run time, in a function that returns `None`
/// where a required one is not given.
fn attribute_value(name: &str, kind: AttributeKind, attributes: &TokenStream) -> TokenStream {
    match kind {
        AttributeKind::Axes => quote!(#attributes.axes(#name)),
        AttributeKind::List => quote!(#attributes.list(#name)),
        AttributeKind::Integer(None) => quote!(#attributes.integer(#name)?),
        AttributeKind::Integer(Some(default)) => {
            quote!(#attributes.integer(#name).unwrap_or(#default))
        }
        AttributeKind::Number(None) => quote!(#attributes.number(#name)?),
        AttributeKind::Number(Some(default)) => {
            quote!(#attributes.number(#name).unwrap_or(#default))
        }
        AttributeKind::Storage => quote!(#attributes.storage(#name)),
        AttributeKind::Flag => quote!(#attributes.flag(#name)),
    }
}
