//! The front and the back of the compiler: [`graph!`], and the macros by which the runtime follows
//! the operator table. Everything between the tree and the tokens is `sparse-core`. Users depend on
//! `nnz`, which re-exports the macro: emitted code names `::nnz`.
#![forbid(unsafe_code)]

mod arithmetic;
mod ast;
mod emit;
mod expand;
mod parse;
mod paths;
mod report;
mod resolve;
mod scalar;
mod table;
#[cfg(test)]
mod tests;

use proc_macro::TokenStream;

#[doc = include_str!("graph.md")]
#[proc_macro]
pub fn graph(input: TokenStream) -> TokenStream {
    expand::graph(input.into(), place).into()
}

/// Where a token is written: file, line, column, and in which expansion. A macro that is used twice
/// writes each of its tokens in two places, and says nothing else of it.
fn place(span: proc_macro2::Span) -> String {
    let call = format!("{:?}", proc_macro2::Span::call_site().unwrap());
    // `#7 bytes(…)`: the number is that of the expansion in its crate.
    let expansion = call.split(' ').next().unwrap_or_default();
    let span = span.unwrap();
    format!("{}:{}:{} {expansion}", span.file(), span.line(), span.column())
}

/// Expands, inside the runtime, to the kernel trait and its implementations: one method for each
/// rule of the operator table. A rule without a kernel breaks the runtime's build.
#[doc(hidden)]
#[proc_macro]
pub fn kernel_table(_: TokenStream) -> TokenStream {
    table::kernels().into()
}

/// Expands, inside the runtime, to the kernels of a GPU by name: those of the rules that are marked
/// `on_gpu`. A rule so marked without a kernel breaks the runtime's build.
#[doc(hidden)]
#[proc_macro]
pub fn gpu_kernel_table(_: TokenStream) -> TokenStream {
    table::gpu_kernels().into()
}

/// Expands, inside the runtime, to the modules of operators whose kernels several of them share.
#[doc(hidden)]
#[proc_macro]
pub fn kernel_modules(_: TokenStream) -> TokenStream {
    table::kernel_modules().into()
}

/// Expands, inside the runtime, to the macro-free operators: a trait and its implementations for
/// each operator.
#[doc(hidden)]
#[proc_macro]
pub fn operator_traits(_: TokenStream) -> TokenStream {
    table::operators().into()
}

/// Expands, inside the runtime, to the operators' documentation: a module a family.
#[doc(hidden)]
#[proc_macro]
pub fn operator_pages(_: TokenStream) -> TokenStream {
    table::pages().into()
}
