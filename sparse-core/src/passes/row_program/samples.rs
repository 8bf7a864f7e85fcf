//! Values that have a row for each sample, and the extents of such a row.

use crate::ir::{Graph, Kind, ValueId};
use crate::shapes::Dim;
use crate::storage::Storage;
use std::collections::BTreeSet;

/// The graph of a step, and the extent that its batches have.
pub(super) struct Samples<'a> {
    pub(super) graph: &'a Graph,
    /// The number of samples.
    pub(super) batch: Dim,
    /// A declared value whose first extent it is.
    pub(super) declared: ValueId,
    /// The extents that parameters fix.
    fixed: BTreeSet<String>,
}

impl<'a> Samples<'a> {
    /// The samples are what the losses are means or sums over.
    pub(super) fn of(graph: &'a Graph) -> Result<Self, String> {
        let fixed: BTreeSet<String> = (graph.parameters())
            .flat_map(|parameter| graph.shape(parameter))
            .filter_map(|dim| match dim {
                Dim::Named(name) => Some(name),
                _ => None,
            })
            .collect();
        let batch = summed_extent(graph).ok_or("the model has no loss over samples")?;
        match &batch {
            Dim::Named(name) if !graph.unify.is_constant(name) && !fixed.contains(name) => {}
            _ => return Err("the number of samples is fixed".into()),
        }
        let is_declared = |id: &ValueId| {
            matches!(graph.value(*id).kind, Kind::Input | Kind::Label)
                && graph.shape(*id).first() == Some(&batch)
        };
        match graph.ids().find(is_declared) {
            Some(declared) => Ok(Samples { graph, batch, declared, fixed }),
            None => Err("no input has a row for each sample of a batch".into()),
        }
    }

    /// The extents of a sample's row of a dense value, which are known once the model is made.
    pub(super) fn inner(&self, id: ValueId) -> Result<Vec<Dim>, String> {
        let label = || self.graph.label(id);
        let shape = self.graph.shape(id);
        let Some((_, inner)) = shape.split_first().filter(|(first, _)| **first == self.batch)
        else {
            return Err(format!("`{}` has no row for each sample", label()));
        };
        let is_float = self.graph.value(id).element.is_float();
        if self.graph.storage(id) != Storage::Dense || !is_float {
            return Err(format!("rows of `{}` are not dense numbers", label()));
        }
        for dim in inner {
            match dim {
                Dim::Size(0) => return Err(format!("rows of `{}` are empty", label())),
                Dim::Size(_) => {}
                Dim::Named(name)
                    if self.graph.unify.is_constant(name) || self.fixed.contains(name) => {}
                _ => {
                    return Err(format!(
                        "the extent `{dim}` of `{}` differs from batch to batch",
                        label()
                    ));
                }
            }
        }
        Ok(inner.to_vec())
    }

    /// [`inner`](Self::inner) of a value whose rows have one axis at most: its extent.
    pub(super) fn columns(&self, id: ValueId) -> Result<Dim, String> {
        match &self.inner(id)?[..] {
            [] => Ok(Dim::Size(1)),
            [columns] => Ok(columns.clone()),
            _ => Err(format!("rows of `{}` have several axes", self.graph.label(id))),
        }
    }

    /// Whether a value is a dense parameter with these extents, up to extents of 1.
    pub(super) fn is_parameter(&self, id: ValueId, wanted: &[&Dim]) -> bool {
        let is_parameter = matches!(self.graph.value(id).kind, Kind::Parameter { .. });
        let shape = self.graph.shape(id);
        let counted = |dim: &&Dim| **dim != Dim::Size(1);
        is_parameter
            && self.graph.storage(id) == Storage::Dense
            && shape.iter().filter(counted).eq(wanted.iter().copied().filter(counted))
    }
}

/// The first extent of what the losses are computed from.
fn summed_extent(graph: &Graph) -> Option<Dim> {
    let mut next = graph.losses.clone();
    while let Some(id) = next.pop() {
        match graph.shape(id).first() {
            Some(dim) => return Some(dim.clone()),
            None => {
                next.extend(
                    graph.apply_of(id).into_iter().flat_map(|apply| apply.operands.iter().rev()),
                );
            }
        }
    }
    None
}

/// The elements of a parameter, if its extents are numbers.
pub(super) fn elements_of(graph: &Graph, parameter: ValueId) -> Option<usize> {
    graph.shape(parameter).iter().try_fold(1usize, |size, dim| match dim {
        Dim::Size(extent) => Some(size.saturating_mul(usize::try_from(*extent).ok()?)),
        _ => None,
    })
}
