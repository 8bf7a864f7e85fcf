//! Graph to tokens, one concern a file. Every emitter shows its output in the comment above it.

mod assumptions;
mod batch;
mod blocks;
mod chains;
mod constants;
mod declared;
mod docs;
mod editor;
mod fused;
mod info;
mod kernels;
mod numbers;
mod plan;
mod scattered;
mod scores;
mod step;
mod structs;
mod types;
mod variants;

pub(crate) use blocks::{blocks, fetch};
pub(crate) use types::Types;

use crate::ast::{Declaration, Model, Operator};
use crate::paths;
use crate::report::Report;
use crate::resolve::Unnamed;
use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote};
use sparse_core::alternatives::{Variant, Variants, in_words, split, variant_name};
use sparse_core::compile::Compiled;
use sparse_core::inspect::PlanTable;
use sparse_core::ir::{Assumption, Graph, Kind, NumberCondition, ValueId};
use sparse_core::passes::{Chains, Fusion, Plan};
use sparse_core::shapes::Dim;
use sparse_core::storage::{ElementType, Storage};
use std::collections::BTreeMap;
use syn::Ident;

/// A graph that the passes have not seen, because its names do not resolve: good for its types.
pub(crate) fn uncompiled(graph: &Graph) -> Variants {
    let compiled = |graph| Compiled {
        graph,
        rows: Vec::new(),
        decays: Vec::new(),
        fusion: Fusion::None { reason: String::new() },
        chains: Chains::default(),
        plan: Plan::default(),
        diagnostics: Vec::new(),
    };
    let variants = split(graph).into_iter().map(|Variant { storages, mut model }| {
        model.name = variant_name(graph, &storages);
        Variant { storages, model: compiled(model) }
    });
    Variants { variants: variants.collect(), fingerprint: 0, diagnostics: Vec::new() }
}

/// All items of one model, and what its variants have in common. A broken model has the same types and signatures; its bodies
/// are never run, because the build fails.
pub(crate) fn model(
    model: &Model,
    unnamed: &[Unnamed],
    compiled: &Variants,
    operators: &[&Operator],
    broken: bool,
    report: &Report,
) -> TokenStream {
    let fingerprint = compiled.fingerprint;
    let mut assumed: Vec<&Assumption> = Vec::new();
    let mut needed: Vec<&NumberCondition> = Vec::new();
    let mut tokens = TokenStream::new();
    for variant in &compiled.variants {
        let assumptions = variant.model.graph.assumptions.iter();
        let new: Vec<_> = assumptions.filter(|assumption| !assumed.contains(assumption)).collect();
        let conditions = variant.model.graph.conditions.iter();
        let conditions: Vec<_> = conditions.filter(|known| !needed.contains(known)).collect();
        let assumptions = (&new[..], &conditions[..]);
        let source = Source { model, unnamed, operators };
        tokens.extend(items(&source, variant, assumptions, fingerprint, broken, report));
        assumed.extend(new);
        needed.extend(conditions);
    }
    tokens.extend(variants::variants(model, compiled, broken));
    tokens
}

/// What a model is emitted from, besides its graph.
struct Source<'a> {
    model: &'a Model,
    /// The constants of Rust that have no name in the model.
    unnamed: &'a [Unnamed],
    /// The operators that are declared, by the position that their rows have.
    operators: &'a [&'a Operator],
}

/// The items of a model that has one storage type for each input.
fn items(
    source: &Source<'_>,
    variant: &Variant<Compiled>,
    (assumptions, conditions): (&[&Assumption], &[&NumberCondition]),
    fingerprint: u64,
    broken: bool,
    report: &Report,
) -> TokenStream {
    let compiled = &variant.model;
    let items = |plan: &PlanTable<'_>| {
        let emit = Emit::new(source, variant, plan, fingerprint, broken);
        let structs = structs::structs(&emit);
        let inherent = structs::inherent(&emit);
        let implementation = step::implementation(&emit);
        let measure = plan::measure(&emit);
        let assumptions = assumptions::assumptions(&emit, assumptions, conditions, report);
        let names = editor::names(&emit);
        quote!(#assumptions #structs #inherent #implementation #measure #names)
    };
    match broken {
        true => items(&PlanTable::empty(&compiled.graph.name)),
        false => compiled.inspect(items),
    }
}

/// What the emitters share.
struct Emit<'a> {
    model: &'a Model,
    compiled: &'a Compiled,
    /// Which variant of the model it is, in words.
    variant: Option<String>,
    /// The operators that are declared, by the position that their rows have.
    operators: &'a [&'a Operator],
    /// What checkpoints of the model have.
    fingerprint: u64,
    graph: &'a Graph,
    /// The parameters, in the order of declaration.
    parameters: Vec<ValueId>,
    /// The plan as data; empty for a broken model.
    plan: &'a PlanTable<'a>,
    broken: bool,
    /// The runtime's path.
    rt: TokenStream,
    /// The element type of arithmetic.
    element: TokenStream,
    /// Of the model or of its variant, at the user's token.
    name: Ident,
    batch: Ident,
    outputs: Ident,
    grads: Ident,
    /// The inputs and parameters by name: comparing an identifier makes a string of it.
    declarations: BTreeMap<String, &'a Declaration>,
    /// The dimensions that parameters fix, in order of first use.
    fixed: Vec<String>,
    /// The constants of Rust, and their values: those that are declared, those without a name in
    /// the model, and extents that follow from them.
    constants: Vec<(String, TokenStream)>,
}

impl<'a> Emit<'a> {
    fn new(
        source: &Source<'a>,
        variant: &'a Variant<Compiled>,
        plan: &'a PlanTable<'a>,
        fingerprint: u64,
        broken: bool,
    ) -> Self {
        let rt = paths::runtime();
        let &Source { model, unnamed, operators } = source;
        let compiled = &variant.model;
        let graph = &compiled.graph;
        let mut fixed = Vec::new();
        for parameter in graph.parameters() {
            for dim in graph.shape(parameter) {
                if let Dim::Named(name) = dim
                    && !graph.unify.is_constant(&name)
                    && !fixed.contains(&name)
                {
                    fixed.push(name);
                }
            }
        }
        let declarations = model.declarations.iter().filter_map(|declaration| match declaration {
            Declaration::Input(input) => Some((input.name.to_string(), declaration)),
            Declaration::Parameter(parameter) => Some((parameter.name.to_string(), declaration)),
            _ => None,
        });
        let is_variant = !variant.storages.is_empty();
        let name = match is_variant {
            true => Ident::new(&graph.name, model.name.span()),
            false => model.name.clone(),
        };
        Emit {
            model,
            compiled,
            variant: is_variant.then(|| in_words(graph, &variant.storages)),
            operators,
            fingerprint,
            graph,
            parameters: graph.parameters().collect(),
            plan,
            broken,
            constants: constants::constants(model, unnamed, &graph.unify, &rt),
            rt,
            element: element_type(graph.element()),
            batch: format_ident!("{name}Batch"),
            outputs: format_ident!("{name}Outputs"),
            grads: format_ident!("{name}Grads"),
            name,
            // Of a name that is declared twice the first one counts.
            declarations: declarations.rev().collect(),
            fixed,
        }
    }

    /// The user's own token of a declared name: its span carries hovering and renaming.
    fn ident(&self, name: &str) -> Ident {
        match self.declarations.get(name) {
            Some(Declaration::Input(input)) => input.name.clone(),
            Some(Declaration::Parameter(parameter)) => parameter.name.clone(),
            _ => Ident::new(name, Span::call_site()),
        }
    }

    /// The user's own token of an output.
    fn output_ident(&self, wanted: &str) -> Ident {
        self.model
            .declarations
            .iter()
            .find_map(|declaration| match declaration {
                Declaration::Output { name, .. } if name == wanted => Some(name.clone()),
                _ => None,
            })
            .unwrap_or_else(|| Ident::new(wanted, Span::call_site()))
    }

    /// The token of a declared value.
    fn declared(&self, id: ValueId) -> Ident {
        self.ident(&self.graph.label(id))
    }

    /// A parameter as a local variable of an emitted function. No local has a name of the user's: a parameter may
    /// be called `batch` or `loss`.
    fn parameter_local(&self, id: ValueId) -> Ident {
        format_ident!("__param_{}", self.graph.label(id))
    }

    /// The number of a parameter, by which the updater knows it.
    fn index_of(&self, parameter: ValueId) -> Option<usize> {
        self.parameters.binary_search(&parameter).ok()
    }

    /// The storage of a parameter's gradient; `None` for a frozen one.
    fn gradient_storage(&self, parameter: ValueId) -> Option<Storage> {
        let frozen =
            matches!(self.graph.value(parameter).kind, Kind::Parameter { frozen: true, .. });
        let gradients = &self.graph.gradients;
        let derived = gradients.binary_search_by_key(&parameter, |(known, _)| *known).ok();
        let derived = derived.map(|place| self.graph.storage(gradients[place].1));
        // A csr one is an error, and its gradient one that there is.
        let declared = match self.graph.storage(parameter) {
            Storage::Csr => Storage::RowSparse,
            storage => storage,
        };
        match (frozen, derived) {
            (true, _) => None,
            // Without a loss nothing is trained.
            (false, None) if self.graph.losses.is_empty() => None,
            (false, None) => Some(declared),
            (false, derived) => derived,
        }
    }

    /// `Dense<f32>`, `Csr<f32>`, `RowSparse<f32>`.
    fn array(&self, storage: Storage) -> TokenStream {
        self.array_of(storage, self.graph.element())
    }

    /// The same for any type of elements: `Dense<u64>`.
    fn array_of(&self, storage: Storage, element: ElementType) -> TokenStream {
        let (rt, element, name) = (&self.rt, element_type(element), array_name(storage));
        quote!(#rt::#name<#element>)
    }

    /// A dimension that is a constant of Rust, as an expression at the user's tokens.
    ///
    /// ```text
    /// { const __EXTENT: usize = CLASSES; __EXTENT }
    /// ```
    fn constant(&self, wanted: &str) -> Option<TokenStream> {
        let rt = &self.rt;
        let (_, value) = self.constants.iter().find(|(name, _)| *name == wanted)?;
        Some(quote!({ const __EXTENT: #rt::usize = #value; __EXTENT }))
    }

    /// The position of a dimension among the fixed ones.
    fn fixed_index(&self, name: &str) -> Option<usize> {
        self.fixed.iter().position(|known| known == name)
    }

    /// An extent that is known once the model is made, in terms of `__extents`.
    fn fixed_extent(&self, dim: &Dim) -> Option<TokenStream> {
        match dim {
            Dim::Size(size) => {
                let size = usize::try_from(*size).ok()?;
                Some(quote!(#size))
            }
            Dim::Named(name) if self.graph.unify.is_constant(name) => self.constant(name),
            Dim::Named(name) => {
                let index = self.fixed_index(name)?;
                Some(quote!(__extents[#index]))
            }
            Dim::Unknown(_) => None,
        }
    }
}

/// Items in a nest as deep as the logarithm of their number, in order: rustc follows the types of a nest to a depth of 128.
fn balanced(
    items: &[TokenStream],
    join: impl Fn(TokenStream, TokenStream) -> TokenStream + Copy,
) -> Option<TokenStream> {
    match items {
        [] => None,
        [item] => Some(item.clone()),
        items => {
            let (left, right) = items.split_at(items.len().div_ceil(2));
            Some(join(balanced(left, join)?, balanced(right, join)?))
        }
    }
}

/// The arrays of a storage type, by their name in Rust.
fn array_name(storage: Storage) -> Ident {
    let name = match storage {
        Storage::Dense => "Dense",
        Storage::Csr => "Csr",
        Storage::RowSparse => "RowSparse",
    };
    Ident::new(name, Span::call_site())
}

/// The Rust type of an element, by a path: a user's type may have the name of one of Rust's own.
fn element_type(element: ElementType) -> TokenStream {
    let (rt, name) = (paths::runtime(), Ident::new(element.name(), Span::call_site()));
    match element {
        ElementType::Unit => quote!(#rt::Unit),
        _ => quote!(#rt::#name),
    }
}
