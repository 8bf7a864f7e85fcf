//! What stands side by side in a `graph!`: models, blocks, operators, imports.

use super::delimited::group;
use super::{attributes, blocks, operators};
use crate::ast::{Import, Model, Package, Source};
use crate::report::Report;
use proc_macro2::{Delimiter, TokenStream, TokenTree};
use quote::ToTokens;
use sparse_core::diagnostics::nearest;
use syn::ext::IdentExt;
use syn::parse::ParseStream;
use syn::{Ident, ItemUse, LitStr, Path, Token, UseTree, Visibility};

/// The words that begin an item, for suggestions.
pub(super) const ITEMS: [&str; 4] = ["model", "block", "operator", "use"];

/// Parses one item into `source`.
pub(super) fn item(
    stream: ParseStream<'_>,
    source: &mut Source,
    report: &mut Report,
) -> syn::Result<()> {
    if stream.peek(Token![@]) {
        source.packages.push(package(stream, report)?);
        return Ok(());
    }
    if stream.peek(Token![use]) {
        return imports(stream, source);
    }
    let docs = attributes::documentation_of_item(stream, report)?;
    let visibility: Visibility = stream.parse()?;
    let expected = format!("expected `{}`", ITEMS.join("`, `"));
    let word: Ident = stream.parse().map_err(|error| {
        syn::Error::new(
            error.span(),
            format!("{expected}; items of Rust stand outside of `graph!`"),
        )
    })?;
    match word.to_string().as_str() {
        "model" => {
            let name =
                |error: syn::Error| syn::Error::new(error.span(), "expected the name of the model");
            let name: Ident = stream.parse().map_err(name)?;
            if stream.peek(Token![<]) {
                return Err(stream.error(
                    "a model has no parameters: for a dimension that is a constant of Rust write `const K;` in it; \
                     one that is known when the model is made needs no declaration",
                ));
            }
            let body =
                group(stream, Delimiter::Brace, name.span(), "`{` and the model's declarations")?;
            let before = report.n_errors();
            let (declarations, lost) =
                super::declarations(body.stream(), &mut source.imports, report);
            let broken = report.n_errors() > before;
            source.models.push(Model { docs, visibility, name, declarations, lost, broken });
        }
        "block" => {
            let name = stream.fork().parse::<Ident>().ok();
            let block = blocks::block(stream, docs, visibility, &mut source.imports, report);
            source.blocks.push(block.inspect_err(|_| source.lost.extend(name))?);
        }
        "operator" => {
            let imports = &mut source.imports;
            let name = stream.fork().parse::<Ident>().ok();
            let operator = operators::operator(stream, docs, visibility, imports, report);
            source.operators.push(operator.inspect_err(|_| source.lost.extend(name))?);
        }
        other => {
            let message = match nearest(other, ITEMS) {
                Some(known) => format!("expected `{known}`, found `{other}`"),
                None => format!("{expected}, found `{other}`"),
            };
            return Err(syn::Error::new(word.span(), message));
        }
    }
    Ok(())
}

/// To the end of what may have been an item.
pub(super) fn skip(stream: ParseStream<'_>) -> syn::Result<()> {
    while !stream.is_empty() {
        match stream.parse::<TokenTree>()? {
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => break,
            TokenTree::Punct(punct) if punct.as_char() == ';' => break,
            _ => {}
        }
    }
    Ok(())
}

/// `use blocks::{linear, factorization_machine as fm};`.
fn imports(stream: ParseStream<'_>, source: &mut Source) -> syn::Result<()> {
    let item: ItemUse = stream.parse()?;
    let leading = item.leading_colon;
    let start = Path { leading_colon: leading, segments: Default::default() };
    flatten(&item.tree, &start, &mut source.imports)
}

fn flatten(tree: &UseTree, before: &Path, imports: &mut Vec<Import>) -> syn::Result<()> {
    let longer = |name: &Ident| {
        let mut path = before.clone();
        path.segments.push(name.clone().into());
        path
    };
    match tree {
        UseTree::Path(tree) => flatten(&tree.tree, &longer(&tree.ident), imports)?,
        UseTree::Name(tree) => {
            let key = tree.ident.unraw().to_string();
            imports.push(Import { key, path: longer(&tree.ident) });
        }
        UseTree::Rename(tree) => {
            let key = tree.rename.unraw().to_string();
            imports.push(Import { key, path: longer(&tree.ident) });
        }
        UseTree::Group(tree) => {
            for tree in &tree.items {
                flatten(tree, before, imports)?;
            }
        }
        UseTree::Glob(tree) => {
            let message =
                "blocks and operators are imported by name: write `use path::{block, block};`";
            return Err(syn::Error::new_spanned(tree, message));
        }
    }
    Ok(())
}

/// `@block "key" name { … }`, which the macro of a block puts in front of the `graph!` that names
/// it.
fn package(stream: ParseStream<'_>, report: &mut Report) -> syn::Result<Package> {
    stream.parse::<Token![@]>()?;
    stream.parse::<Ident>()?;
    let key: LitStr = stream.parse()?;
    let name: Ident = stream.parse()?;
    let body = group(stream, Delimiter::Brace, name.span(), "the blocks of a package")?;
    let tokens: TokenStream = body.to_token_stream();
    let source = super::source(body.stream(), report);
    Ok(Package { key: key.value(), name: name.to_string(), source, tokens })
}
