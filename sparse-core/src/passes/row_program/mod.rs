//! Row programs: what a training step does for one sample of a batch.
//!
//! A sample *reads* table rows that the batch names (products with a csr, bags, interactions,
//! embeddings). Its *values* are computed from these, from the sample's data and from dense
//! parameters, up to the *losses*; gradients go back to the reads and to the dense parameters. A
//! program is found once, here. The plan, the emitted row function and the engine follow it.

mod dense;
mod losses;
mod reads;
mod samples;
#[cfg(test)]
mod tests;
mod values;

pub use self::dense::DenseGradient;
pub use self::losses::{BaseLoss, LossOf};
pub use self::reads::Read;
pub use self::values::{RowComputed, RowValue};

use super::scatter::Scatter;
use crate::ir::{Graph, ValueId};
use samples::Samples;
use std::collections::BTreeSet;

/// What a training step does for one sample.
#[derive(Clone, Debug, PartialEq)]
pub struct RowProgram {
    /// The reads of trained tables. Those of one table are neighbours.
    pub reads: Vec<Read>,
    /// The reads of frozen tables.
    pub frozen: Vec<Read>,
    /// The values of a sample, operands first: gradients of losses among them.
    pub values: Vec<RowValue>,
    /// The losses that all others are computed from.
    pub losses: Vec<BaseLoss>,
    /// The losses that are computed from other losses, in order: sums of these, and products with
    /// numbers.
    pub combined: Vec<ValueId>,
    /// The trained dense parameters, and the terms of their gradients.
    pub dense: Vec<(ValueId, Vec<DenseGradient>)>,
    /// The value whose first extent is that of the batch: one that is declared.
    pub samples: ValueId,
}

/// The most reads of a sample. The row function has all of them in it.
const MOST_READS: usize = 1024;

/// The most tables, and the most dense parameters, that a program trains: the engine lends all of
/// them at once.
pub const MOST_PARAMETERS: usize = 128;

/// The most elements of dense parameters that [`are_few`].
pub const FEW: usize = 1 << 12;

/// Whether dense parameters with this number of elements stay in a cache, so that each sample reads
/// them there. The product of a whole batch with a larger one is a kernel's work.
pub const fn are_few(elements: usize) -> bool {
    elements <= FEW
}

impl RowProgram {
    /// The reads of each trained table.
    pub fn reads_by_table(&self) -> impl DoubleEndedIterator<Item = &[Read]> + use<'_> {
        self.reads.chunk_by(|one, next| one.table == next.table)
    }

    /// Whether the trained dense parameters [are few](are_few) elements, if their extents are
    /// numbers.
    pub fn are_few(&self, graph: &Graph) -> Option<bool> {
        let mut elements = 0usize;
        for (parameter, _) in &self.dense {
            elements = elements.saturating_add(samples::elements_of(graph, *parameter)?);
        }
        Some(are_few(elements))
    }
}

/// Finds the program of a step, or says what is in the way. `tables` are the parameters whose
/// gradients are sums of rows that the batch names.
pub(super) fn row_program(graph: &Graph, tables: &[Scatter]) -> Result<RowProgram, String> {
    if graph.element().is_half() {
        return Err(format!(
            "the elements are `{}`, whose sums need another type",
            graph.element()
        ));
    }
    let samples = Samples::of(graph)?;
    check_count(tables.iter().flat_map(|table| &table.lookups).map(Vec::len).sum())?;
    let (losses, combined) = losses::losses(&samples)?;
    let mut program = RowProgram {
        reads: Vec::new(),
        frozen: Vec::new(),
        values: Vec::new(),
        losses,
        combined,
        dense: Vec::new(),
        samples: samples.declared,
    };
    // The values that the updates replace.
    let mut inside: BTreeSet<ValueId> = program.combined.iter().copied().collect();
    inside.extend(program.losses.iter().map(|loss| loss.value));
    for table in tables {
        program.reads.extend(samples.reads(table)?);
        inside.extend(&table.skipped);
    }
    if program.reads.is_empty() {
        return Err("no table is trained by the rows that a batch names".into());
    }
    let mut dense = Vec::new();
    let in_tables: BTreeSet<ValueId> = tables.iter().map(|table| table.parameter).collect();
    for (parameter, gradient) in &graph.gradients {
        if !in_tables.contains(parameter) {
            dense.push((*parameter, dense::terms_of(graph, *gradient, &mut inside)));
        }
    }
    let read: BTreeSet<ValueId> = program.reads.iter().map(|read| read.value).collect();
    for id in graph.ids() {
        let Some(apply) = graph.apply_of(id) else { continue };
        if inside.contains(&id) || read.contains(&id) {
            continue;
        }
        if let Some(table) = reads::frozen_table(graph, apply) {
            program.frozen.push(samples.read_frozen(table, id, apply)?);
            continue;
        }
        let of_loss = program.losses.iter().find(|loss| loss.gradient == Some(id));
        let computed = match of_loss {
            Some(loss) => {
                samples.inner(id)?;
                RowComputed::LossGradient(loss.value)
            }
            None => samples.computed(id, apply)?,
        };
        program.values.push(RowValue { value: id, computed });
    }
    check_count(program.reads.len() + program.frozen.len())?;
    let n_parameters = tables.len().max(dense.len());
    if n_parameters > MOST_PARAMETERS {
        return Err(format!(
            "the step trains {n_parameters} parameters of one kind, which are more than \
             {MOST_PARAMETERS}"
        ));
    }
    for (parameter, terms) in dense {
        program.dense.push((parameter, samples.dense_gradient(parameter, terms)?));
    }
    Ok(program)
}

fn check_count(n_reads: usize) -> Result<(), String> {
    if n_reads <= MOST_READS {
        return Ok(());
    }
    Err(format!("a sample has {n_reads} reads of parameters, which are more than {MOST_READS}"))
}
