//! Graph to tokens, one concern a file. Every emitter shows its output in the comment above it.

mod assumptions;
mod batch;
mod blocks;
mod chains;
mod constants;
mod context;
mod declarations;
mod declared;
mod docs;
mod editor;
mod element_wise;
mod fused;
mod info;
mod kernels;
mod literals;
mod losses;
mod nest;
mod numbers;
mod operands;
mod plan;
mod scattered;
mod scores;
mod specialized;
mod step;
mod structs;
mod types;
mod updates;
mod variants;

pub(crate) use blocks::{blocks, fetch};
pub(crate) use specialized::check_specialized;
pub(crate) use types::Types;

use crate::ast::{Model, Operator};
use crate::report::Report;
use crate::resolve::Unnamed;
use context::{Emit, Source};
use proc_macro2::TokenStream;
use quote::quote;
use sparse_core::alternatives::{Variant, Variants, split, variant_name};
use sparse_core::compile::Compiled;
use sparse_core::inspect::PlanTable;
use sparse_core::ir::{Assumption, Graph, NumberCondition};
use sparse_core::passes::{Chains, Fusion, Plan};

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

/// All items of one model, and what its variants have in common. A broken model has the same types
/// and signatures; its bodies are never run, because the build fails.
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
    if broken { items(&PlanTable::empty(&compiled.graph.name)) } else { compiled.inspect(items) }
}
