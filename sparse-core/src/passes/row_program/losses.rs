//! The losses of a step: losses of the table, means and sums over samples, and what is made of
//! these by sums and products with numbers.

use super::samples::Samples;
use crate::ir::{Apply, Kind, ValueId};
use crate::operators::{self, Scaling, Total};
use crate::storage::Storage;
use std::collections::BTreeSet;

/// A loss that is computed sample by sample.
#[derive(Clone, Debug, PartialEq)]
pub struct BaseLoss {
    /// The loss.
    pub value: ValueId,
    /// What a sample contributes.
    pub of: LossOf,
    /// The value that is the gradient with respect to the scores, for a loss of the table whose
    /// gradient is needed.
    pub gradient: Option<ValueId>,
}

/// What a sample contributes to a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossOf {
    /// A loss of the operator table, of the sample's scores and labels.
    Table,
    /// The mean of the sample's elements of a value. The loss is the mean over samples.
    Mean(ValueId),
    /// The sum of the sample's elements of a value. The loss is the sum over samples.
    Sum(ValueId),
}

/// The losses that are computed sample by sample, in order, and those that are computed from these.
pub(super) fn losses(samples: &Samples<'_>) -> Result<(Vec<BaseLoss>, Vec<ValueId>), String> {
    let graph = samples.graph;
    let (mut base, mut combined) = (Vec::new(), Vec::new());
    if graph.losses.is_empty() {
        return Err("the model has no loss".into());
    }
    let (mut seen, mut next) = (BTreeSet::new(), graph.losses.clone());
    while let Some(id) = next.pop() {
        if !seen.insert(id) || graph.is_number(id) {
            continue;
        }
        let apply = graph.apply_of(id).ok_or("a loss is not computed")?;
        if let Some(loss) = base_loss(samples, id, apply)? {
            base.push(loss);
        } else if is_combination(samples, apply) {
            combined.push(id);
            next.extend(&apply.operands);
        } else {
            return Err(format!(
                "the loss `{}` (`{}`) is neither a loss of the table, nor a mean or sum over \
                 samples, nor a sum of these",
                graph.label(id),
                apply.operator.name
            ));
        }
    }
    base.sort_unstable_by_key(|loss| loss.value);
    combined.sort_unstable();
    Ok((base, combined))
}

fn base_loss(
    samples: &Samples<'_>,
    id: ValueId,
    apply: &Apply,
) -> Result<Option<BaseLoss>, String> {
    let graph = samples.graph;
    if let operators::Kind::Loss { gradient, .. } = apply.operator.kind {
        check_data(samples, apply)?;
        let is_gradient = |other: &ValueId| {
            graph.apply_of(*other).is_some_and(|other| {
                other.operator.is_called(gradient) && other.operands == apply.operands
            })
        };
        let gradient = graph.ids().find(is_gradient);
        return Ok(Some(BaseLoss { value: id, of: LossOf::Table, gradient }));
    }
    let Some((total, of)) = apply.operator.total().zip(apply.operands.first().copied()) else {
        return Ok(None);
    };
    let rank = graph.shape(of).len();
    let axes = apply.attributes.axes("axis").places(rank);
    let is_whole = axes.is_some_and(|axes| axes.len() == rank) && !apply.attributes.flag("exclude");
    if !is_whole || rank == 0 {
        return Ok(None);
    }
    samples.inner(of)?;
    let of = match total {
        Total::Mean => LossOf::Mean(of),
        Total::Sum => LossOf::Sum(of),
    };
    Ok(Some(BaseLoss { value: id, of, gradient: None }))
}

/// Refuses labels and weights of samples that are not data with a row for each sample.
fn check_data(samples: &Samples<'_>, apply: &Apply) -> Result<(), String> {
    let graph = samples.graph;
    let is_data = |id: ValueId| matches!(graph.value(id).kind, Kind::Label | Kind::Input);
    let label = *apply.operands.get(1).ok_or("the loss has no label")?;
    if !is_data(label) {
        return Err(format!("the label `{}` is computed", graph.label(label)));
    }
    if graph.storage(label) == Storage::RowSparse {
        return Err(format!("the label `{}` is `row_sparse`", graph.label(label)));
    }
    if let Some(weight) = apply.operands.get(2).filter(|weight| !is_data(**weight)) {
        return Err(format!("the weights of samples `{}` are computed", graph.label(*weight)));
    }
    let scores = *apply.operands.first().ok_or("the loss has no scores")?;
    samples.columns(scores)?;
    for data in &apply.operands[1..] {
        if graph.shape(*data).first() != Some(&samples.batch) {
            return Err(format!("`{}` has no row for each sample", graph.label(*data)));
        }
    }
    Ok(())
}

/// Whether a loss is a sum or difference of losses, or the product of one with a number.
fn is_combination(samples: &Samples<'_>, apply: &Apply) -> bool {
    let is_scalar = |id: &ValueId| samples.graph.shape(*id).is_empty();
    let n_numbers = apply.operands.iter().filter(|id| samples.graph.is_number(**id)).count();
    let adds = matches!(
        apply.operator.kind,
        operators::Kind::Binary(_, "x + y") | operators::Kind::Binary(_, "x - y")
    );
    let scales = match apply.operator.scaling {
        Scaling::None => false,
        Scaling::Always => true,
        Scaling::ByRight => samples.graph.is_number(apply.operands[1]),
        Scaling::ByEither => n_numbers == 1,
    };
    let negates = matches!(apply.operator.kind, operators::Kind::Unary("-x"));
    (adds || scales || negates)
        && apply.operands.iter().all(|id| is_scalar(id) || samples.graph.is_number(*id))
}
