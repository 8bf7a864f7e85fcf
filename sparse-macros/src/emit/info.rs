//! The constants of the `Model` trait: inputs, parameters and outputs as data.

use super::context::Emit;
use super::declarations::named_inputs;
use proc_macro2::TokenStream;
use quote::quote;
use sparse_core::ir::{Apply, Graph, Kind, ValueId};
use sparse_core::operators::{self, LossLabel};
use sparse_core::passes::{RowSet, row_dimensions as row_dimensions_of};
use sparse_core::shapes::Dim;
use sparse_core::storage::{ElementType, Storage};

/// ```text
/// const NAME: &'static str = "LinearRegression";
/// const PLAN: Plan = …;
/// const INPUTS: &'static [InputInfo] = &[InputInfo { name: "x", … }, …];
/// ```
pub(super) fn constants(emit: &Emit<'_>) -> TokenStream {
    let (rt, graph) = (&emit.rt, emit.graph);
    let name = emit.name.to_string();
    let plan = super::plan::constant(emit);
    let fingerprint = emit.fingerprint;
    let applies = graph.ids().filter_map(|id| graph.apply_of(id));
    let losses: Vec<&Apply> = applies
        .filter(|apply| matches!(apply.operator.kind, operators::Kind::Loss { .. }))
        .collect();
    let inputs = named_inputs(emit).map(|id| input(emit, id, &losses));
    let parameters = graph.parameters().map(|id| parameter(emit, id));
    let outputs = graph.outputs.iter().map(|output| {
        let (name, storage) = (&output.name, storage(emit, graph.storage(output.value)));
        let element = element(emit, graph.value(output.value).element);
        quote!(#rt::OutputInfo { name: #name, storage: #storage, element: #element })
    });
    let writes_states = !graph.updates.is_empty();
    let read_labels =
        updates_read_labels(graph).then(|| quote!(const STATES_READ_LABELS: #rt::bool = true;));
    let row_dimensions = row_dimensions(emit);
    quote! {
        const NAME: &'static #rt::str = #name;
        const PLAN: #rt::Plan = #plan;
        const FINGERPRINT: #rt::u64 = #fingerprint;
        const INPUTS: &'static [#rt::InputInfo] = &[#(#inputs),*];
        const PARAMETERS: &'static [#rt::ParameterInfo] = &[#(#parameters),*];
        const OUTPUTS: &'static [#rt::OutputInfo] = &[#(#outputs),*];
        const WRITES_STATES: #rt::bool = #writes_states;
        #read_labels
        #row_dimensions
    }
}

/// The dimensions that number table rows and nothing else, of those that a model is made with.
fn row_dimensions(emit: &Emit<'_>) -> Option<TokenStream> {
    let rt = &emit.rt;
    let mut names = row_dimensions_of(emit.graph, &emit.compiled.rows);
    names.retain(|name| emit.fixed.contains(name));
    (!names.is_empty())
        .then(|| quote!(const ROW_DIMENSIONS: &'static [&'static #rt::str] = &[#(#names),*];))
}

/// Whether a state becomes something that is computed from a label.
pub(super) fn updates_read_labels(graph: &Graph) -> bool {
    let read = graph.ancestors(graph.updates.iter().map(|update| update.value));
    graph.ids().any(|id| read[id.0] && matches!(graph.value(id).kind, Kind::Label))
}

fn input(emit: &Emit<'_>, id: ValueId, losses: &[&Apply]) -> TokenStream {
    let (rt, value) = (&emit.rt, emit.graph.value(id));
    let name = emit.graph.label(id);
    let role = match value.kind {
        Kind::Label => quote!(Label),
        _ => quote!(Input),
    };
    let (storage, element) = (storage(emit, emit.graph.storage(id)), element(emit, value.element));
    let shape = shape(emit, id);
    let label = match label_kind(emit, id, losses) {
        LossLabel::Real => quote!(Real),
        LossLabel::Binary => quote!(Binary),
        LossLabel::Count => quote!(Count),
        LossLabel::Class => quote!(Class),
    };
    quote! {
        #rt::InputInfo {
            name: #name,
            role: #rt::InputRole::#role,
            storage: #storage,
            element: #element,
            shape: #shape,
            label: #rt::LabelKind::#label,
        }
    }
}

/// What the loss that reads a label says of it.
fn label_kind(emit: &Emit<'_>, id: ValueId, losses: &[&Apply]) -> LossLabel {
    losses
        .iter()
        .filter(|apply| apply.operands.get(1) == Some(&id))
        .find_map(|apply| match apply.operator.kind {
            // Targets: a number for each class.
            operators::Kind::Loss { label: LossLabel::Class, .. }
                if emit.graph.value(id).element.is_float() =>
            {
                Some(LossLabel::Count)
            }
            operators::Kind::Loss { label, .. } => Some(label),
            _ => None,
        })
        .unwrap_or(LossLabel::Real)
}

fn parameter(emit: &Emit<'_>, id: ValueId) -> TokenStream {
    let rt = &emit.rt;
    let name = emit.graph.label(id);
    let gradient = match emit.gradient_storage(id) {
        Some(gradient) => {
            let gradient = storage(emit, gradient);
            quote!(#rt::Some(#gradient))
        }
        None => quote!(#rt::None),
    };
    let (storage, shape) = (storage(emit, emit.graph.storage(id)), shape(emit, id));
    let index = emit.index_of(id);
    let rows = index.and_then(|index| emit.compiled.rows.get(index));
    let reads = rows.map_or(quote!(#rt::RowSet::All), |rows| row_set(emit, &rows.reads));
    let writes = match rows.and_then(|rows| rows.writes.as_ref()) {
        Some(writes) => row_set(emit, writes),
        None => quote!(#rt::RowSet::Of(&[])),
    };
    let decays = index.and_then(|index| emit.compiled.decays.get(index)).copied().unwrap_or(false);
    let is_state = emit.graph.updates.iter().any(|update| update.state == id);
    quote! {
        #rt::ParameterInfo {
            name: #name,
            storage: #storage,
            gradient: #gradient,
            shape: #shape,
            reads: #reads,
            writes: #writes,
            decays: #decays,
            is_state: #is_state,
        }
    }
}

/// ```text
/// RowSet::Of(&[0])
/// ```
fn row_set(emit: &Emit<'_>, set: &RowSet) -> TokenStream {
    let rt = &emit.rt;
    match set {
        RowSet::All => quote!(#rt::RowSet::All),
        RowSet::Columns(inputs) => {
            let positions = named_inputs(emit).enumerate();
            let positions = positions.filter(|(_, id)| inputs.contains(id)).map(|(at, _)| at);
            quote!(#rt::RowSet::Of(&[#(#positions),*]))
        }
    }
}

pub(super) fn storage(emit: &Emit<'_>, storage: Storage) -> TokenStream {
    let rt = &emit.rt;
    match storage {
        Storage::Dense => quote!(#rt::Storage::Dense),
        Storage::Csr => quote!(#rt::Storage::Csr),
        Storage::RowSparse => quote!(#rt::Storage::RowSparse),
    }
}

pub(super) fn element(emit: &Emit<'_>, element: ElementType) -> TokenStream {
    let (rt, variant) = (&emit.rt, super::plan::variant(element));
    quote!(#rt::ElementType::#variant)
}

fn shape(emit: &Emit<'_>, id: ValueId) -> TokenStream {
    let rt = &emit.rt;
    let extents = emit.graph.shape(id).into_iter().map(|dim| match dim {
        Dim::Size(size) => {
            let size = size as usize;
            quote!(#rt::Extent::Constant(#size))
        }
        other => {
            let name = other.to_string();
            match emit.constant(&name) {
                Some(value) => quote!(#rt::Extent::Constant(#value)),
                None => quote!(#rt::Extent::Named(#name)),
            }
        }
    });
    quote!(&[#(#extents),*])
}
