//! The modules of operators whose kernels several of them share.
//!
//! Emits, for `slice`, whose row says `kernels: planned("slicing", "part")`:
//!
//! ```text
//! pub mod slice {
//!     pub mod cpu {
//!         /// `slice`: `csr -> csr`.
//!         pub fn csr<T: Float>(out: &mut Csr<T, Cpu>, x: CsrView<'_, T, Cpu>,
//!             begin: Option<List>, end: Option<List>, step: Option<List>, context: &mut Context) {
//!             let plan = slicing::slice(Shape::from([x.n_rows(), x.n_cols()]), begin, end, step);
//!             slicing::cpu::part_csr(out, x, plan, context)
//!         }
//!         …
//!     }
//!     #[cfg(feature = "cuda")]
//!     pub mod cuda { … }
//! }
//! ```
//!
//! and for `order_gradient`, whose row says `kernels: shared("ordering")`, modules that re-export
//! `ordering::cpu::order_gradient_dense_ids_like` as `dense_ids_like`.

use super::gpu::GpuRule;
use super::{Kernel, all_kernels, attribute_type, ident, result_type, view_for};
use proc_macro2::TokenStream;
use quote::quote;
use sparse_core::operators::{KernelModule, Kind, Operator, Pattern, Signature, all};
use sparse_core::storage::Storage;
use std::collections::BTreeSet;

/// One module for each operator that has none of its own.
pub(crate) fn kernel_modules() -> TokenStream {
    let kernels = all_kernels();
    let shares = |operator: &&Operator| {
        operator.kind == Kind::Kernel && operator.kernels != KernelModule::Own
    };
    let modules = all().filter(shares).map(|operator| {
        let rules = || kernels.iter().filter(move |kernel| kernel.operator == operator);
        let (name, docs) =
            (ident(operator.name), format!("`{}`: {}", operator.name, operator.summary));
        let mut known = BTreeSet::new();
        let cpu: Vec<_> = rules()
            .filter(|kernel| known.insert(kernel.function.clone()))
            .map(|kernel| Function::on_cpu(kernel).tokens(kernel))
            .collect();
        let mut known = BTreeSet::new();
        let cuda: Vec<_> = rules()
            .filter(|kernel| kernel.signature.on_gpu)
            .map(|kernel| (kernel, Function::on_gpu(kernel)))
            .filter(|(_, function)| known.insert(function.name.clone()))
            .map(|(kernel, function)| function.tokens(kernel))
            .collect();
        let cuda = (!cuda.is_empty()).then(|| {
            quote! {
                /// On a GPU.
                #[cfg(feature = "cuda")]
                pub mod cuda {
                    #[allow(unused_imports)]
                    use super::super::{prelude::*, prelude::cuda::*};
                    #(#cuda)*
                }
            }
        });
        quote! {
            #[doc = #docs]
            pub mod #name {
                /// On the CPU.
                pub mod cpu {
                    #[allow(unused_imports)]
                    use super::super::prelude::*;
                    #(#cpu)*
                }
                #cuda
            }
        }
    });
    quote!(#(#modules)*)
}

/// A function of a kernel on one device.
struct Function {
    name: String,
    operands: Vec<Pattern>,
    signature: Signature,
    on_gpu: bool,
    device: TokenStream,
    float: TokenStream,
    context: TokenStream,
    module: TokenStream,
}

impl Function {
    fn on_cpu(kernel: &Kernel) -> Self {
        Function {
            name: kernel.function.clone(),
            operands: kernel.signature.operands.clone(),
            signature: kernel.signature.clone(),
            on_gpu: false,
            device: quote!(Cpu),
            float: quote!(Float),
            context: quote!(Context),
            module: quote!(cpu),
        }
    }

    fn on_gpu(kernel: &Kernel) -> Self {
        let rule = GpuRule::of(kernel);
        Function {
            name: rule.function(),
            operands: rule.operands,
            signature: kernel.signature.clone(),
            on_gpu: true,
            device: quote!(Cuda),
            float: quote!(GpuFloat),
            context: quote!(CudaContext),
            module: quote!(cuda),
        }
    }

    fn tokens(&self, kernel: &Kernel) -> TokenStream {
        let device = &self.module;
        match kernel.operator.kernels {
            KernelModule::Own => TokenStream::new(),
            KernelModule::Shared(module) => {
                let operator = kernel.operator.name;
                let stem = operator.strip_prefix(&format!("{module}_")).unwrap_or(operator);
                let (module, name) = (ident(module), ident(&self.name));
                let shared = ident(&format!("{stem}_{}", self.name));
                quote!(pub use crate::kernels::#module::#device::#shared as #name;)
            }
            KernelModule::Planned { module, kernel: shared } => {
                self.planned(kernel, module, shared)
            }
        }
    }

    fn planned(&self, kernel: &Kernel, module: &str, shared: &str) -> TokenStream {
        let operator = kernel.operator;
        let Function { device, float, context, module: on, .. } = self;
        let is_array = |index: &usize| !operator.lends_shape_only(*index);
        let arrays: Vec<usize> = (0..self.operands.len()).filter(is_array).collect();
        let given = arrays.iter().map(|index| self.operands[*index]).collect();
        let shared_rule = Signature { operands: given, ..self.signature.clone() };
        let shared = ident(&format!("{shared}_{}", shared_rule.kernel(kernel.result)));
        let several = self.on_gpu && arrays.len() > 1;
        let lifetime = if several { quote!('a) } else { quote!('_) };
        let declared = several.then(|| quote!('a,));
        let operands: Vec<_> = self.operands.iter().zip(operator.operands).collect();
        let parameters = operands.iter().map(|(pattern, name)| {
            // Views on a GPU are invariant: those that are used together have one lifetime.
            let ty = view_for(**pattern, &lifetime, device, &quote!(T));
            let name = ident(name);
            quote!(#name: #ty)
        });
        let shapes = operands.iter().map(|(pattern, name)| shape(**pattern, name, operator));
        let arrays = arrays.iter().map(|index| ident(operator.operands[*index]));
        let attributes = kernel.attributes();
        let names: Vec<_> = attributes.iter().map(|(name, _)| ident(name)).collect();
        let kinds = attributes.iter().map(|(_, kind)| attribute_type(*kind));
        let (module, plan, name) = (ident(module), ident(operator.name), ident(&self.name));
        let out = result_type(kernel, device, &quote!(T));
        let docs = format!(
            "`{}`: {} -> {}.",
            operator.name,
            self.name
                .replace("row_sparse", "row-sparse")
                .replace('_', " ")
                .replace("row-sparse", "row_sparse"),
            kernel.result
        );
        quote! {
            #[doc = #docs]
            pub fn #name<#declared T: #float>(
                out: &mut #out,
                #(#parameters,)*
                #(#names: #kinds,)*
                context: &mut #context,
            ) {
                let plan = crate::kernels::#module::#plan(#(#shapes,)* #(#names,)*);
                crate::kernels::#module::#on::#shared(out, #(#arrays,)* plan, context);
            }
        }
    }
}

/// The shape of an operand.
fn shape(pattern: Pattern, name: &str, operator: &Operator) -> TokenStream {
    let operand = ident(name);
    match pattern {
        Pattern::Like => quote!(#operand),
        Pattern::Array(Storage::Csr, _) => {
            quote!(Shape::from([#operand.n_rows(), #operand.n_cols()]))
        }
        Pattern::Array(..) => quote!(*#operand.shape()),
        Pattern::Ids | Pattern::Scalar | Pattern::Unit(_) => {
            panic!("no plan of `{}` is made of `{name}`", operator.name)
        }
    }
}
