//! The kernels of a GPU by name: a function for each rule that is marked `on_gpu`, unless a family
//! has kernels of its own.
//!
//! Emits, for `dot`'s second rule:
//!
//! ```text
//! pub(crate) fn kernel_of_rule<T: GpuFloat>(name: &str) -> Option<GpuKernel<T>> {
//!     Some(match name {
//!         "dot_csr_dense" => |out, given, context| {
//!             crate::kernels::dot::cuda::csr_dense(out.dense(), given.csr(0)?, given.dense(1)?,
//!                 given.attributes.flag("transpose_rhs"), context);
//!             Some(())
//!         },
//!         …
//!         _ => return None,
//!     })
//! }
//! ```

use super::{Kernel, all_kernels, attribute_value, ident};
use proc_macro2::TokenStream;
use quote::quote;
use sparse_core::operators::{Kind, Pattern, ResultRows, Signature};
use sparse_core::storage::Storage;

/// The function from names to kernels.
pub(crate) fn gpu_kernels() -> TokenStream {
    let kernels = all_kernels();
    let of_rules =
        |kernel: &&Kernel| kernel.operator.kind == Kind::Kernel && kernel.signature.on_gpu;
    let arms = kernels.iter().filter(of_rules).map(arm);
    quote! {
        /// The kernel of a rule by the name that it has on every device; `None` where GPUs have
        /// none, and for operators that are a formula.
        pub(crate) fn kernel_of_rule<T: GpuFloat>(name: &str) -> Option<GpuKernel<T>> {
            Some(match name {
                #(#arms)*
                _ => return None,
            })
        }
    }
}

/// A rule as a GPU has it: one function serves all of its results and patterns, being generic in
/// them.
pub(super) struct GpuRule {
    /// The operands as the function takes them.
    pub(super) operands: Vec<Pattern>,
    signature: Signature,
}

impl GpuRule {
    /// What lends its shape is given as that, unless the result has its pattern: it is the only csr
    /// of a rule whose result is one, or lends its rows.
    pub(super) fn of(kernel: &Kernel) -> Self {
        let Kernel { operator, signature, .. } = kernel;
        let is_csr = |pattern: &Pattern| matches!(pattern, Pattern::Array(Storage::Csr, _));
        let n_csr = signature.operands.iter().filter(|of| is_csr(of)).count();
        let is_rows = |pattern: &Pattern| *pattern == Pattern::Array(Storage::RowSparse, false);
        let lends_rows = operator.result_rows.contains(&ResultRows::Like);
        let lends_pattern = |of: &Pattern| match signature.result {
            Storage::Csr => is_csr(of) && n_csr == 1,
            Storage::RowSparse => is_rows(of) && lends_rows,
            Storage::Dense => false,
        };
        let operand = |(index, pattern): (usize, &Pattern)| {
            let shape_only = operator.lends_shape_only(index) && !lends_pattern(pattern);
            if shape_only { Pattern::Like } else { *pattern }
        };
        let operands = signature.operands.iter().enumerate().map(operand).collect();
        GpuRule { operands, signature: signature.clone() }
    }

    /// The function's name.
    pub(super) fn function(&self) -> String {
        let as_csr = |pattern: &Pattern| match pattern {
            Pattern::Unit(transposed) => Pattern::Array(Storage::Csr, *transposed),
            other => *other,
        };
        let operands = self.operands.iter().map(as_csr).collect();
        Signature { operands, ..self.signature.clone() }.kernel(self.signature.result)
    }
}

fn arm(kernel: &Kernel) -> TokenStream {
    let (operator, signature, rule) = (kernel.operator, &kernel.signature, GpuRule::of(kernel));
    let function = ident(&rule.function());
    let operands = rule.operands.iter().enumerate().map(|(index, pattern)| {
        let accessor = ident(match pattern {
            Pattern::Scalar => "number",
            Pattern::Ids => "ids",
            Pattern::Unit(_) => "unit",
            Pattern::Like => "shape",
            Pattern::Array(storage, _) => storage.name(),
        });
        quote!(given.#accessor(#index)?)
    });
    let attributes = kernel.attributes();
    let attributes = attributes
        .iter()
        .map(|(name, kind)| attribute_value(name, *kind, &quote!(given.attributes)));
    let (name, module) = (kernel.name().to_string(), ident(operator.name));
    let out = ident(if signature.gives_ids { "ids_u64" } else { kernel.result.name() });
    quote! {
        #name => |out, given, context| {
            crate::kernels::#module::cuda::#function(out.#out(), #(#operands,)* #(#attributes,)* context);
            Some(())
        },
    }
}
