//! Reads: table rows that a sample names.

use super::super::scatter::{NamedRows, Scatter};
use super::samples::Samples;
use crate::ir::{Apply, Graph, Kind, ValueId};

/// Rows of a table that a sample names, pooled to one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Read {
    /// The parameter.
    pub table: ValueId,
    /// The value.
    pub value: ValueId,
    /// What names the rows, and how they are pooled.
    pub rows: NamedRows,
    /// The gradient with respect to the value. `None` where nothing goes back to it: behind
    /// `stop_gradient`, or for a frozen table.
    pub gradient: Option<ValueId>,
}

/// The frozen parameter whose rows a value reads, if it is one.
pub(super) fn frozen_table(graph: &Graph, apply: &Apply) -> Option<ValueId> {
    let is_frozen =
        |id: &ValueId| matches!(graph.value(*id).kind, Kind::Parameter { frozen: true, .. });
    let table = apply.operands.iter().copied().find(is_frozen)?;
    NamedRows::read(graph, apply, table).map(|_| table)
}

/// How bags are pooled: whether they are means, and whether rows are weighted.
fn of_bags(apply: &Apply) -> [bool; 2] {
    ["mean", "weighted"].map(|flag| apply.attributes.flag(flag))
}

impl Samples<'_> {
    /// The reads of a trained table.
    pub(super) fn reads(&self, scatter: &Scatter) -> Result<Vec<Read>, String> {
        let (graph, table) = (self.graph, scatter.parameter);
        let name = graph.label(table);
        let lookups = scatter.lookups.as_deref();
        let lookups = lookups.ok_or(format!("not all that reads `{name}` names its rows"))?;
        let reads = lookups.iter().map(|value| self.read(scatter, *value));
        let reads = reads.collect::<Result<Vec<_>, _>>()?;
        let n_gradients = reads.iter().filter(|read| read.gradient.is_some()).count();
        if n_gradients != scatter.terms.len() {
            return Err(format!(
                "the gradient of `{name}` has {} term{}, and {n_gradients} belong to rows that \
                 are read",
                scatter.terms.len(),
                if scatter.terms.len() == 1 { "" } else { "s" },
            ));
        }
        Ok(reads)
    }

    fn read(&self, scatter: &Scatter, value: ValueId) -> Result<Read, String> {
        let (graph, table) = (self.graph, scatter.parameter);
        let named = |value: ValueId| {
            let apply = graph.apply_of(value)?;
            Some((NamedRows::read(graph, apply, table)?, of_bags(apply)))
        };
        let added = |term: &ValueId| {
            let apply = graph.apply_of(*term)?;
            let (rows, added) = NamedRows::added(graph, apply)?;
            Some(((rows, of_bags(apply)), added))
        };
        let own = named(value).ok_or("rows are not named")?;
        let mut terms = scatter.terms.iter().filter_map(added).filter(|(rows, _)| *rows == own);
        // Nothing goes back to what is read for `stop_gradient` alone.
        let gradient = terms.next().map(|(_, gradient)| gradient);
        let lookups = scatter.lookups.iter().flatten();
        let n_lookups = lookups.filter(|it| named(**it) == Some(own)).count();
        if terms.next().is_some() || gradient.is_some() && n_lookups != 1 {
            return Err(format!("the gradient of `{}` is not known apart", graph.label(value)));
        }
        self.check_names(own.0)?;
        self.inner(value)?;
        if let Some(gradient) = gradient {
            self.inner(gradient)?;
        }
        Ok(Read { table, value, rows: own.0, gradient })
    }

    /// A value that reads rows of a frozen table.
    pub(super) fn read_frozen(
        &self,
        table: ValueId,
        value: ValueId,
        apply: &Apply,
    ) -> Result<Read, String> {
        let rows = NamedRows::read(self.graph, apply, table).ok_or("rows are not named")?;
        self.check_names(rows)?;
        self.inner(value)?;
        Ok(Read { table, value, rows, gradient: None })
    }

    /// Refuses rows that a computed value names, or that are not named sample by sample.
    fn check_names(&self, rows: NamedRows) -> Result<(), String> {
        let by = rows.by();
        let label = || self.graph.label(by);
        if !matches!(self.graph.value(by).kind, Kind::Input | Kind::Label) {
            return Err(format!("`{}`, which names rows, is computed", label()));
        }
        match self.graph.shape(by).first() {
            Some(dim) if *dim == self.batch => Ok(()),
            _ => Err(format!("`{}`, which names rows, has no row for each sample", label())),
        }
    }
}
