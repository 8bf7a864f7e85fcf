//! The analysis of a step that is one loop over rows of data.

use super::lookups::{Found, find_lookups};
use super::{Interaction, Linear, RowLoop, Term, Terms};
use crate::ir::{Apply, Graph, Kind, ValueId};
use crate::operators::{self, BinaryFamily, Link, RowUse, RowsRead};
use crate::passes::rows::{rows_added, rows_read_as};
use crate::shapes::{Dim, Dims, place_of};
use crate::storage::Storage;
use std::collections::{BTreeMap, BTreeSet};

/// The parts of the loop, or why the step is not one.
pub(super) fn row_loop(graph: &Graph) -> Result<RowLoop, String> {
    if graph.element().is_half() {
        return Err(format!(
            "the elements are `{}`, whose sums need another type",
            graph.element()
        ));
    }
    let [loss] = graph.losses[..] else {
        return Err(format!("the model has {} losses", graph.losses.len()));
    };
    let score_gradient = loss_gradient(graph, loss)?;
    let operands = graph.apply_of(loss).map_or(&[][..], |apply| &apply.operands);
    let [score, label, ..] = *operands else { return Err("the loss has no label".into()) };
    let row_weight = operands.get(2).copied();
    let found = find_terms(graph)?;
    let space = graph.shape(found.space);
    let columns = match (&found.terms, &space[..]) {
        (_, [_, columns]) => columns.clone(),
        (Terms::Lookups(_), [_]) => Dim::Size(1),
        _ => return Err(format!("`{}` is a vector", graph.label(found.space))),
    };
    let mut parts = RowLoop {
        terms: found.terms,
        columns,
        forward: Vec::new(),
        loss,
        score,
        label,
        row_weight,
        score_gradient,
        backward: Vec::new(),
        reductions: Vec::new(),
        softmax: Vec::new(),
        program: None,
    };
    let terms: BTreeSet<ValueId> = parts.terms.all().iter().map(|term| term.value).collect();
    let inside: BTreeSet<ValueId> = found.inside.iter().copied().collect();
    let gradients = graph.gradients.iter().map(|(parameter, gradient)| (*gradient, *parameter));
    // Of a gradient of several parameters the first one counts.
    let gradients: BTreeMap<ValueId, ValueId> = gradients.rev().collect();
    for id in graph.ids() {
        let Some(apply) = graph.apply_of(id) else {
            continue;
        };
        if terms.contains(&id) || [loss, score_gradient].contains(&id) || inside.contains(&id) {
            continue;
        }
        let gradient_of = gradients.get(&id);
        // Both lists are ascending.
        let is_in = |values: &[ValueId], id: &ValueId| values.binary_search(id).is_ok();
        let is_backward = |id: &ValueId| *id == score_gradient || is_in(&parts.backward, id);
        let is_forward = |id: &ValueId| terms.contains(id) || is_in(&parts.forward, id);
        let operator = apply.operator;
        match (rows_added(graph, apply), gradient_of, &mut parts.terms) {
            (Some((by, gradient, RowUse::Product)), Some(parameter), Terms::Linear(linear))
                if *parameter == linear.weight && by == linear.input =>
            {
                linear.product.gradient = gradient;
            }
            (
                Some((by, gradient, RowUse::Pairwise)),
                Some(parameter),
                Terms::Linear(Linear { input, interaction: Some(term), .. }),
            ) if term.factors == *parameter
                && by == *input
                && apply.operands.contains(parameter) =>
            {
                term.term.gradient = gradient;
            }
            (_, Some(parameter), _)
                if operator.undoes_broadcasting
                    && apply.operands[1] == *parameter
                    && is_backward(&apply.operands[0]) =>
            {
                parts.reductions.push((*parameter, id, apply.operands[0]));
            }
            (_, Some(parameter), _)
                if operator.converts_to == Some(Storage::Dense)
                    && is_backward(&apply.operands[0])
                    && graph.shape(*parameter) == space =>
            {
                return Err("a parameter has the batch's shape".into());
            }
            (_, None, _)
                if operator.link == Some(Link::Softmax)
                    && is_forward(&apply.operands[0])
                    && is_over_columns(apply, "axis")
                    && graph.outputs.iter().any(|output| output.value == id) =>
            {
                parts.softmax.push((id, apply.operands[0]));
            }
            _ if graph.shape(id) == space
                && is_element_wise(graph, apply, &space, |id| {
                    is_forward(id) || is_backward(id)
                }) =>
            {
                let backward = apply.operands.iter().any(is_backward);
                if backward { &mut parts.backward } else { &mut parts.forward }.push(id);
            }
            _ => {
                return Err(format!(
                    "`{}` (`{}`) is not element-wise over the rows",
                    graph.label(id),
                    operator.name
                ));
            }
        }
    }
    for term in parts.terms.all() {
        // Until it is found, a term's gradient is the term itself.
        if term.gradient != score_gradient && parts.backward.binary_search(&term.gradient).is_err()
        {
            return Err(format!(
                "the gradient of `{}` is not computed row by row",
                graph.label(term.value)
            ));
        }
    }
    if !terms.contains(&score) && parts.forward.binary_search(&score).is_err() {
        return Err("the scores are not computed from the product row by row".into());
    }
    if parts.reductions.len() + parts.terms.tables().len() != graph.gradients.len() {
        return Err("a parameter's gradient is not a sum over the rows".into());
    }
    Ok(parts)
}

/// The gradient of a loss of the table with respect to its scores, where labels and weights of rows
/// are data.
fn loss_gradient(graph: &Graph, loss: ValueId) -> Result<ValueId, String> {
    let apply = graph.apply_of(loss).ok_or("the loss is not computed")?;
    let operators::Kind::Loss { gradient, .. } = apply.operator.kind else {
        let name = apply.operator.name;
        return Err(format!("the loss is computed by `{name}`, not by a loss of the table"));
    };
    let is_data = |id: ValueId| matches!(graph.value(id).kind, Kind::Label | Kind::Input);
    let label = *apply.operands.get(1).ok_or("the loss has no label")?;
    if !is_data(label) {
        return Err("the label is computed".into());
    }
    if graph.storage(label) != Storage::Dense {
        return Err(format!("the label is `{}`", graph.storage(label)));
    }
    if apply.operands.get(2).is_some_and(|weight| !is_data(*weight)) {
        return Err("the weights of the rows are not data".into());
    }
    let is_gradient =
        |other: &Apply| other.operator.is_called(gradient) && other.operands == apply.operands;
    graph
        .ids()
        .find(|id| graph.apply_of(*id).is_some_and(is_gradient))
        .ok_or_else(|| "the gradient of the loss is scaled".into())
}

/// The terms: of a product, or of lookups where there is no product.
fn find_terms(graph: &Graph) -> Result<Found, String> {
    let Some(product) = find_product(graph)? else {
        return find_lookups(graph);
    };
    let operands = graph.apply_of(product).map_or(&[][..], |apply| &apply.operands);
    let [input, weight, ..] = *operands else {
        return Err("no product".into());
    };
    let interaction = find_interaction(graph, input, &graph.shape(product))?;
    let product_term = Term { value: product, gradient: product };
    let terms = Terms::Linear(Linear { input, weight, product: product_term, interaction });
    Ok(Found { terms, space: product, inside: Vec::new() })
}

/// The one product of a csr input with a trained parameter, if there is any.
fn find_product(graph: &Graph) -> Result<Option<ValueId>, String> {
    let mut products = graph.ids().filter(|id| {
        graph.apply_of(*id).is_some_and(|apply| {
            let Some((table, csr, RowUse::Product)) = rows_read_as(graph, apply) else {
                return false;
            };
            matches!(graph.value(csr).kind, Kind::Input)
                && matches!(graph.value(table).kind, Kind::Parameter { frozen: false, .. })
        })
    });
    let product = products.next();
    match products.next() {
        None => Ok(product),
        Some(_) => Err("the model has several products of a csr input with a parameter".into()),
    }
}

/// The second-order term over the same input, if there is one; its gradient is filled in later.
fn find_interaction(
    graph: &Graph,
    input: ValueId,
    space: &Dims,
) -> Result<Option<Interaction>, String> {
    let mut terms = graph.ids().filter_map(|id| {
        let apply = graph.apply_of(id)?;
        let is_pairwise = |read: &RowsRead| read.what == RowUse::Pairwise;
        apply.operator.reads_rows.iter().any(is_pairwise).then_some((id, apply))
    });
    let Some((value, apply)) = terms.next() else {
        return Ok(None);
    };
    if terms.next().is_some() {
        return Err("the model has several interactions".into());
    }
    let factors = apply.operands[1];
    let is_trained = matches!(graph.value(factors).kind, Kind::Parameter { frozen: false, .. });
    if apply.operands[0] != input || !is_trained || space.get(1) != Some(&Dim::Size(1)) {
        return Err(format!(
            "`{}` is not an interaction of the input of the product with a trained parameter",
            graph.label(value)
        ));
    }
    let size = graph.shape(factors)[1].clone();
    Ok(Some(Interaction { term: Term { value, gradient: value }, factors, size }))
}

/// Whether an attribute names the columns of a value that has rows and columns, or nothing.
fn is_over_columns(apply: &Apply, axis: &str) -> bool {
    let axis = apply.operator.integer(&apply.attributes, axis);
    axis.is_none_or(|axis| place_of(axis, 2) == Some(1))
}

/// Whether an operator is a scalar function of values of the space at the same place, numbers, and
/// dense parameters and inputs that the loop can index.
fn is_element_wise(
    graph: &Graph,
    apply: &Apply,
    space: &Dims,
    is_in_space: impl Fn(&ValueId) -> bool,
) -> bool {
    is_scalar_function(apply)
        && apply.operands.iter().all(|operand| {
            is_in_space(operand)
                || graph.is_number(*operand)
                || is_indexable(graph, *operand, space)
        })
}

/// Whether an operator is a function of the elements at one place, given by a formula.
fn is_scalar_function(apply: &Apply) -> bool {
    match apply.operator.kind {
        operators::Kind::Unary(_) => true,
        operators::Kind::Binary(family, _) => {
            matches!(
                family,
                BinaryFamily::Union
                    | BinaryFamily::Intersection
                    | BinaryFamily::Left
                    | BinaryFamily::Gradient
                    | BinaryFamily::SlopedGradient
            )
        }
        _ => false,
    }
}

/// A dense parameter that repeats in every row, or a dense input of the batch's shape.
fn is_indexable(graph: &Graph, id: ValueId, space: &Dims) -> bool {
    if graph.storage(id) != Storage::Dense {
        return false;
    }
    let shape = graph.shape(id);
    let across = |extent: &Dim| *extent == Dim::Size(1) || space.get(1) == Some(extent);
    match graph.value(id).kind {
        Kind::Parameter { .. } => match shape.as_slice() {
            [] => true,
            [columns] => across(columns),
            [rows, columns] => *rows == Dim::Size(1) && across(columns),
            _ => false,
        },
        Kind::Input => shape == *space,
        _ => false,
    }
}
