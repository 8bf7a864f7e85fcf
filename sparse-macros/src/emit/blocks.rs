//! Blocks: their tokens are kept in a macro, which hands them to the `graph!` that names them.

use crate::ast::{Block, Import, Source};
use crate::paths;
use crate::resolve::callees;
use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use std::collections::BTreeSet;
use syn::Visibility;

/// Has a block put in front of the `graph!` that names it:
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
///         ::nnz::graph! { @block $key linear { block linear(x, w, b) { dot(x, w) + b } } $($rest)* }
///     };
/// }
/// pub use __nnz_block_linear_91b0… as linear;
/// ```
///
/// The block has the name, the visibility and the place in the modules that it is written with. The macro's own name is
/// never written by anyone; a macro that other crates may use is at the root of its crate, where one name is one macro.
pub(crate) fn blocks(source: &Source) -> TokenStream {
    let mut names = BTreeSet::new();
    // A second one of a name was reported.
    let blocks = source.blocks.iter().filter(|block| names.insert(block.name.to_string()));
    blocks.map(|block| self::block(source, block)).collect()
}

fn block(source: &Source, block: &Block) -> TokenStream {
    let Block { docs, visibility, name, .. } = block;
    let graph = paths::graph();
    let content = content(source, block);
    let hash = content.to_string().bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let kept = format_ident!("__nnz_block_{name}_{hash:016x}");
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

/// A block and what it calls, in the order of declaration.
fn content(source: &Source, block: &Block) -> TokenStream {
    let mut wanted: BTreeSet<String> = BTreeSet::new();
    let mut open = vec![block];
    while let Some(next) = open.pop() {
        if wanted.insert(next.name.to_string()) {
            for key in callees(next).into_iter().map(|callee| callee.key()) {
                match source.blocks.iter().find(|known| known.name == key) {
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
    let blocks = source.blocks.iter().filter(|known| wanted.contains(&known.name.to_string()));
    let blocks = blocks.filter(|block| !block.broken).map(|block| &block.tokens);
    quote!(#(#packages)* #(#blocks)*)
}
