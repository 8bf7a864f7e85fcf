//! The model that is emitted, as all emitters see it: its graph, its names and its types.

use super::constants;
use crate::ast::{Declaration, Model, Operator};
use crate::paths;
use crate::resolve::Unnamed;
use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote};
use sparse_core::alternatives::{Variant, in_words};
use sparse_core::compile::Compiled;
use sparse_core::inspect::PlanTable;
use sparse_core::ir::{Graph, Kind, ValueId};
use sparse_core::shapes::Dim;
use sparse_core::storage::{ElementType, Storage};
use std::collections::BTreeMap;

/// What a model is emitted from, besides its graph.
pub(super) struct Source<'a> {
    pub(super) model: &'a Model,
    /// The constants of Rust that have no name in the model.
    pub(super) unnamed: &'a [Unnamed],
    /// The operators that are declared, by the position that their rows have.
    pub(super) operators: &'a [&'a Operator],
}

/// What the emitters share.
pub(super) struct Emit<'a> {
    pub(super) model: &'a Model,
    pub(super) compiled: &'a Compiled,
    /// Which variant of the model it is, in words.
    pub(super) variant: Option<String>,
    /// The operators that are declared, by the position that their rows have.
    pub(super) operators: &'a [&'a Operator],
    /// What checkpoints of the model have.
    pub(super) fingerprint: u64,
    pub(super) graph: &'a Graph,
    /// The parameters, in the order of declaration.
    pub(super) parameters: Vec<ValueId>,
    /// The plan as data; empty for a broken model.
    pub(super) plan: &'a PlanTable<'a>,
    pub(super) broken: bool,
    /// The runtime's path.
    pub(super) rt: TokenStream,
    /// The element type of arithmetic.
    pub(super) element: TokenStream,
    /// Of the model or of its variant, at the user's token.
    pub(super) name: Ident,
    pub(super) batch: Ident,
    pub(super) outputs: Ident,
    pub(super) grads: Ident,
    /// The inputs and parameters by name: comparing an identifier makes a string of it.
    pub(super) declarations: BTreeMap<String, &'a Declaration>,
    /// The dimensions that parameters fix, in order of first use.
    pub(super) fixed: Vec<String>,
    /// The constants of Rust, and their values: those that are declared, those without a name in
    /// the model, and extents that follow from them.
    pub(super) constants: Vec<(String, TokenStream)>,
}

impl<'a> Emit<'a> {
    pub(super) fn new(
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
        let name = if is_variant {
            Ident::new(&graph.name, model.name.span())
        } else {
            model.name.clone()
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
    pub(super) fn ident(&self, name: &str) -> Ident {
        match self.declarations.get(name) {
            Some(Declaration::Input(input)) => input.name.clone(),
            Some(Declaration::Parameter(parameter)) => parameter.name.clone(),
            _ => Ident::new(name, Span::call_site()),
        }
    }

    /// The user's own token of an output.
    pub(super) fn output_ident(&self, wanted: &str) -> Ident {
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
    pub(super) fn declared(&self, id: ValueId) -> Ident {
        self.ident(&self.graph.label(id))
    }

    /// A parameter as a local variable of an emitted function. No local has a name of the user's: a
    /// parameter may be called `batch` or `loss`.
    pub(super) fn parameter_local(&self, id: ValueId) -> Ident {
        format_ident!("__param_{}", self.graph.label(id))
    }

    /// The number of a parameter, by which the updater knows it.
    pub(super) fn index_of(&self, parameter: ValueId) -> Option<usize> {
        self.parameters.binary_search(&parameter).ok()
    }

    /// The storage of a parameter's gradient; `None` for a frozen one.
    pub(super) fn gradient_storage(&self, parameter: ValueId) -> Option<Storage> {
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
    pub(super) fn array(&self, storage: Storage) -> TokenStream {
        self.array_of(storage, self.graph.element())
    }

    /// The same for any type of elements: `Dense<u64>`.
    pub(super) fn array_of(&self, storage: Storage, element: ElementType) -> TokenStream {
        let (rt, element, name) = (&self.rt, element_type(element), array_name(storage));
        quote!(#rt::#name<#element>)
    }

    /// A dimension that is a constant of Rust, as an expression at the user's tokens.
    ///
    /// ```text
    /// { const __EXTENT: usize = CLASSES; __EXTENT }
    /// ```
    pub(super) fn constant(&self, wanted: &str) -> Option<TokenStream> {
        let rt = &self.rt;
        let (_, value) = self.constants.iter().find(|(name, _)| *name == wanted)?;
        Some(quote!({ const __EXTENT: #rt::usize = #value; __EXTENT }))
    }

    /// The position of a dimension among the fixed ones.
    pub(super) fn fixed_index(&self, name: &str) -> Option<usize> {
        self.fixed.iter().position(|known| known == name)
    }

    /// An extent that is known once the model is made, in terms of `__extents`.
    pub(super) fn fixed_extent(&self, dim: &Dim) -> Option<TokenStream> {
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

/// The arrays of a storage type, by their name in Rust.
pub(super) fn array_name(storage: Storage) -> Ident {
    let name = match storage {
        Storage::Dense => "Dense",
        Storage::Csr => "Csr",
        Storage::RowSparse => "RowSparse",
    };
    Ident::new(name, Span::call_site())
}

/// The Rust type of an element, by a path: a user's type may have the name of one of Rust's own.
pub(super) fn element_type(element: ElementType) -> TokenStream {
    let (rt, name) = (paths::runtime(), Ident::new(element.name(), Span::call_site()));
    match element {
        ElementType::Unit => quote!(#rt::Unit),
        _ => quote!(#rt::#name),
    }
}
