//! Backward step of one operator: the gradient of one of its operands.

use super::at_pattern::instantiate_at;
use super::csr_patterns::GradientPlaces;
use super::instantiate::{Scope, derived, instantiate};
use crate::diagnostics::Diagnostic;
use crate::formula::Formula;
use crate::ir::{Apply, AttributeValue, Attributes, Graph, Kind, ValueId};
use crate::storage::Storage;

/// A use of a value: the formula of its gradient, the operator that uses it, and the result of
/// that.
#[derive(Clone, Copy)]
pub(super) struct Use<'a> {
    pub(super) formula: &'a Formula,
    pub(super) apply: &'a Apply,
    pub(super) out: ValueId,
    pub(super) operand: ValueId,
}

/// Appends what an operator passes on of the gradient `total` that arrives at its result `out`.
/// Where that is dense, as a computed `h` is in `row_sparse(h)`, and no kernel takes a gradient
/// that arrives sparse, it is made dense: the value itself takes as much memory.
pub(super) fn pass_on(
    graph: &mut Graph,
    at: &Use<'_>,
    total: &mut ValueId,
    diagnostics: &mut Vec<Diagnostic>,
) -> Result<ValueId, String> {
    let Use { formula, apply, out, .. } = *at;
    let place = graph.value(out).place;
    let (values, mut refused) = (graph.values.len(), Vec::new());
    let scope = Scope { apply, grad: *total, out };
    let as_it_is = instantiate(graph, formula, &scope, place, &mut refused)?;
    let dense = |id| graph.storage(id) == Storage::Dense;
    if refused.is_empty() || dense(*total) || !dense(out) {
        diagnostics.extend(refused);
        return Ok(as_it_is);
    }
    graph.values.truncate(values);
    *total = derived(graph, "dense", vec![*total], Attributes::default(), place, diagnostics);
    let scope = Scope { apply, grad: *total, out };
    instantiate(graph, formula, &scope, place, diagnostics)
}

/// Appends what an operator passes on to a sparse operand whose gradient is read at some places
/// only: an array that stores these.
pub(super) fn pass_on_stored(
    graph: &mut Graph,
    at: &Use<'_>,
    places: &mut GradientPlaces,
    total: &mut ValueId,
    diagnostics: &mut Vec<Diagnostic>,
) -> Result<ValueId, String> {
    let Use { formula, apply, out, operand } = *at;
    let place = graph.value(out).place;
    let Some(pattern) = places.pattern(graph, operand, place, diagnostics) else {
        return pass_on(graph, at, total, diagnostics);
    };
    let (values, mut refused) = (graph.values.len(), Vec::new());
    let scope = Scope { apply, grad: *total, out };
    let found = instantiate_at(graph, formula, &scope, pattern, place, &mut refused)?;
    if refused.is_empty() {
        return Ok(found);
    }
    graph.values.truncate(values);
    let whole = pass_on(graph, at, total, diagnostics)?;
    if graph.storage(whole) != Storage::Dense || graph.shape(whole) != graph.shape(pattern) {
        return Ok(whole);
    }
    let operands = vec![whole, pattern];
    Ok(derived(graph, "broadcast_at", operands, Attributes::default(), place, diagnostics))
}

/// The gradient of a dense value that is computed, such as `exp(w)` in `dot(x, exp(w))`, is read by
/// operators that take it dense: where a kernel offers that, it is asked for. A parameter's
/// gradient stays as sparse as it is.
pub(super) fn request_dense(graph: &mut Graph, gradient: ValueId, operand: ValueId) {
    // A conversion passes its gradient on as it is: what is converted decides.
    let mut source = operand;
    while let Some(apply) = graph.apply_of(source)
        && apply.operator.converts_to.is_some()
    {
        source = apply.operands[0];
    }
    let computed = graph.storage(operand) == Storage::Dense
        && graph.apply_of(source).is_some()
        && graph.storage(source) != Storage::RowSparse;
    // Just appended, so that nothing relies on its storage yet.
    let newest = gradient.0 + 1 == graph.values.len();
    if !computed || !newest || graph.storage(gradient) == Storage::Dense {
        return;
    }
    let value = &mut graph.values[gradient.0];
    let Kind::Apply(apply) = &mut value.kind else { return };
    let offered = apply
        .rule
        .and_then(|rule| apply.operator.storage.get(rule))
        .is_some_and(|rule| rule.signature().on_request == Some(Storage::Dense));
    if offered && apply.operator.attribute("out").is_some() {
        apply.attributes.set("out", AttributeValue::Storage(Storage::Dense));
        value.storage = Some(Storage::Dense);
    }
}
