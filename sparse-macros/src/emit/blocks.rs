//! Blocks and operators: their tokens are kept in a macro, which hands them to the `graph!` that
//! names them.

use crate::ast::{Block, Callee, Import, Operator, Source};
use crate::paths;
use crate::resolve::{callees, callees_of_operator};
use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote};
use std::collections::BTreeSet;
use syn::{Ident, Visibility};

/// Has a block or an operator put in front of the `graph!` that names it:
///
/// ```text
/// nnz::blocks::linear! { "linear" use nnz::blocks::linear; pub model … }
/// ```
pub(crate) fn fetch(import: &Import, input: TokenStream) -> TokenStream {
    let Import { key, path } = import;
    quote!(#path! { #key #input })
}

/// ```text
/// #[macro_export]
/// macro_rules! __nnz_block_linear_91b0… {
///     ($key:tt $($rest:tt)*) => {
///         ::nnz::graph! { @block $key linear { block linear(x, w, b) { dot(x,
///             w) + b } } $($rest)* }
///     };
/// }
/// pub use __nnz_block_linear_91b0… as linear;
/// ```
///
/// The block has the name, the visibility and the place in the modules that it is written with. The
/// macro's own name is never written by anyone; a macro that other crates may use is at the root of
/// its crate, where one name is one macro: so its name has what the block is, where it is written,
/// and in which expansion: a macro may write one block in several modules.
pub(crate) fn blocks(source: &Source, place: fn(Span) -> String) -> TokenStream {
    let mut names = BTreeSet::new();
    let blocks = source.blocks.iter().map(Exported::Block);
    let all = blocks.chain(source.operators.iter().map(Exported::Operator));
    // A second one of a name was reported.
    let all = all.filter(|kept| names.insert(kept.name().to_string()));
    all.map(|item| kept(source, item, place)).collect()
}

/// What is kept in a macro.
#[derive(Clone, Copy)]
enum Exported<'a> {
    Block(&'a Block),
    Operator(&'a Operator),
}

impl<'a> Exported<'a> {
    fn name(self) -> &'a Ident {
        match self {
            Exported::Block(block) => &block.name,
            Exported::Operator(operator) => &operator.name,
        }
    }

    /// What it calls, by the names that it uses.
    fn callees(self) -> Vec<String> {
        let callees = match self {
            Exported::Block(block) => callees(block),
            Exported::Operator(operator) => callees_of_operator(operator),
        };
        callees.into_iter().map(Callee::key).collect()
    }
}

fn kept(source: &Source, item: Exported<'_>, place: fn(Span) -> String) -> TokenStream {
    let (word, docs, visibility, name) = match item {
        Exported::Block(Block { docs, visibility, name, .. }) => ("block", docs, visibility, name),
        Exported::Operator(Operator { docs, visibility, name, .. }) => {
            ("operator", docs, visibility, name)
        }
    };
    let graph = paths::graph();
    let content = content(source, item);
    let unique = format!("{content} {}", place(name.span()));
    let hash = unique.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let kept = format_ident!("__nnz_{word}_{name}_{hash:016x}");
    let export = match visibility {
        Visibility::Public(_) => quote!(#[doc(hidden)] #[macro_export]),
        _ => quote!(#[allow(unused_macros)]),
    };
    quote! {
        #(#docs)*
        #export
        macro_rules! #kept {
            ($key:tt $($rest:tt)*) => {
                #graph! { @block $key #name { #content } $($rest)* }
            };
        }
        #[doc(inline)]
        #[allow(unused_imports)]
        #visibility use #kept as #name;
    }
}

/// A block or an operator and what it calls, in the order of declaration.
fn content(source: &Source, item: Exported<'_>) -> TokenStream {
    let mut wanted: BTreeSet<String> = BTreeSet::new();
    let mut open = vec![item];
    while let Some(next) = open.pop() {
        if wanted.insert(next.name().to_string()) {
            for key in next.callees() {
                let block = source.blocks.iter().find(|known| known.name == key);
                let operator = source.operators.iter().find(|known| known.name == key);
                match block.map(Exported::Block).or(operator.map(Exported::Operator)) {
                    Some(called) => open.push(called),
                    None => {
                        wanted.insert(key);
                    }
                }
            }
        }
    }
    let packages = source.packages.iter().filter(|package| wanted.contains(&package.key));
    let packages = packages.map(|package| {
        let (key, name, tokens) =
            (&package.key, format_ident!("{}", package.name), &package.tokens);
        quote!(@block #key #name #tokens)
    });
    let is_wanted = |name: &Ident| wanted.contains(&name.to_string());
    let operators = source.operators.iter().filter(|known| is_wanted(&known.name));
    let operators = operators.filter(|known| !known.broken).map(|known| &known.tokens);
    let blocks = source.blocks.iter().filter(|known| is_wanted(&known.name));
    let blocks = blocks.filter(|block| !block.broken).map(|block| &block.tokens);
    quote!(#(#packages)* #(#operators)* #(#blocks)*)
}
