//! Fusion: which part of the training step becomes one loop, and which element-wise operators do,
//! in whatever calls kernels ([`Chains`]).
//!
//! A *loop over rows of data* reads what each row names of the trained parameters (the product of a
//! csr input with one, rows that ids name), then computes element-wise functions of that, then a
//! loss: forward, loss gradient and (for a batch of one row) update without a value of the batch's
//! size in between. What does not fit says why, and runs kernels one after the other, but for
//! gradients of rows, which are [scattered](super::Scatter) into the update; what comes before that
//! may be one loop as well, by a [`RowProgram`].

mod chains;
mod lookups;
mod row_loop;
#[cfg(test)]
mod tests;

pub use chains::{Chain, ChainRead, Chains, Reach, chains};
pub use lookups::{Lookup, LookupRead, NamedRow};

use self::row_loop::row_loop;
use super::row_program::{RowProgram, row_program};
use super::scatter::{Pairwise, Scatter, scatter};
use crate::ir::{Graph, ValueId};
use crate::shapes::Dim;

/// What became of the training step.
#[derive(Clone, Debug, PartialEq)]
pub enum Fusion {
    /// Kernels one after the other, and why.
    None {
        /// Why it is not fused.
        reason: String,
    },
    /// Kernels one after the other, but gradients of rows go straight into the update.
    Scattered {
        /// Why it is not one loop.
        reason: String,
        /// The parameters whose gradients do.
        parameters: Vec<Scatter>,
        /// What a step does for one sample, or why it is not known.
        program: Result<Box<RowProgram>, String>,
    },
    /// One loop over the rows of data.
    RowLoop(Box<RowLoop>),
}

/// The parts of a step that is one loop. The *space* is the shape of the terms: `[rows, columns]`,
/// or `[rows]` with one number a row.
#[derive(Clone, Debug, PartialEq)]
pub struct RowLoop {
    /// What is read of the trained parameters.
    pub terms: Terms,
    /// The columns of the space, 1 where it has none.
    pub columns: Dim,
    /// Element-wise values computed from the terms, in order.
    pub forward: Vec<ValueId>,
    /// The loss.
    pub loss: ValueId,
    /// The loss's scores: a term or one of `forward`.
    pub score: ValueId,
    /// The loss's label.
    pub label: ValueId,
    /// The weights of the rows, where the loss has any.
    pub row_weight: Option<ValueId>,
    /// The gradient with respect to the scores.
    pub score_gradient: ValueId,
    /// Element-wise values computed from it, in order.
    pub backward: Vec<ValueId>,
    /// Dense parameters added to or multiplied with rows: the parameter, its gradient, and what it
    /// sums.
    pub reductions: Vec<(ValueId, ValueId, ValueId)>,
    /// Outputs that are the softmax of a value of the space: the output's value and its operand.
    pub softmax: Vec<(ValueId, ValueId)>,
    /// The same step as a row program, which makes gradients that are not applied at once. `None`
    /// of a csr's product alone, whose gradients are two kernels.
    pub program: Option<Box<RowProgram>>,
}

impl RowLoop {
    /// Whether a sample reads the product of a csr and nothing else.
    fn is_product(&self) -> bool {
        matches!(&self.terms, Terms::Linear(linear) if linear.interaction.is_none())
    }
}

/// A value of the space that is read of trained parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Term {
    /// The value.
    pub value: ValueId,
    /// The gradient with respect to it: `score_gradient` or one of `backward`.
    pub gradient: ValueId,
}

/// What a row of data reads of the trained parameters.
#[derive(Clone, Debug, PartialEq)]
pub enum Terms {
    /// The product of a csr input with a parameter.
    Linear(Linear),
    /// Rows that ids name, with one number each.
    Lookups(Vec<Lookup>),
}

impl Terms {
    /// The terms. Where the space has one column, term `i` is number `i` of a row; else there is
    /// one term.
    pub fn all(&self) -> Vec<Term> {
        match self {
            Terms::Linear(linear) => {
                let interaction = linear.interaction.iter().map(|interaction| interaction.term);
                std::iter::once(linear.product).chain(interaction).collect()
            }
            Terms::Lookups(lookups) => lookups.iter().map(|lookup| lookup.term).collect(),
        }
    }

    /// The parameters that are read, each once.
    pub fn tables(&self) -> Vec<ValueId> {
        match self {
            Terms::Linear(linear) => {
                let factors = linear.interaction.iter().map(|interaction| interaction.factors);
                std::iter::once(linear.weight).chain(factors).collect()
            }
            Terms::Lookups(lookups) => {
                lookups.iter().flat_map(|lookup| lookup.read.rows()).map(|row| row.table).collect()
            }
        }
    }
}

/// The product of a csr input with a parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct Linear {
    /// The csr input.
    pub input: ValueId,
    /// The parameter it is multiplied with.
    pub weight: ValueId,
    /// The product.
    pub product: Term,
    /// The second-order term of a factorization machine over the same input, where the rows have
    /// one column.
    pub interaction: Option<Interaction>,
}

/// A `pairwise_interaction` in the loop: read and updated in the same pass over the non-zeros as
/// the product.
#[derive(Clone, Debug, PartialEq)]
pub struct Interaction {
    /// Its value, one number a row.
    pub term: Term,
    /// The parameter of factors.
    pub factors: ValueId,
    /// The columns of the parameter.
    pub size: Dim,
}

impl Fusion {
    /// The row program of the step, where it has one: it makes the step, or only gradients that are
    /// not applied at once.
    pub fn program(&self) -> Option<&RowProgram> {
        match self {
            Fusion::None { .. } => None,
            Fusion::Scattered { program, .. } => program.as_deref().ok(),
            Fusion::RowLoop(parts) => parts.program.as_deref(),
        }
    }

    /// For each value, whether the training step has something else than its kernel for it.
    pub fn computed(&self, graph: &Graph) -> Vec<bool> {
        // A graph with a value that does not fit into the loop is not fused.
        let is_loop = matches!(self, Fusion::RowLoop(_));
        let mut computed: Vec<bool> =
            graph.ids().map(|id| is_loop && graph.apply_of(id).is_some()).collect();
        for scatter in self.scattered() {
            for id in scatter.skipped.iter().chain(scatter.lookups.iter().flatten()) {
                computed[id.0] = true;
            }
        }
        computed
    }

    /// The parameters whose gradients are scattered into the update by a step that is not one loop.
    pub fn scattered(&self) -> &[Scatter] {
        match self {
            Fusion::Scattered { parameters, .. } => parameters,
            Fusion::None { .. } | Fusion::RowLoop(_) => &[],
        }
    }

    /// The parameters whose gradients a training step never makes.
    pub fn updated_in_place(&self) -> Vec<ValueId> {
        match self {
            Fusion::None { .. } => Vec::new(),
            Fusion::Scattered { parameters, .. } => {
                parameters.iter().map(|scatter| scatter.parameter).collect()
            }
            Fusion::RowLoop(parts) => parts.terms.tables(),
        }
    }

    /// Whether what comes before the updates is one loop over rows of data through dense layers,
    /// whatever the batch. Nothing where constants of Rust decide.
    pub fn through_layers(&self, graph: &Graph) -> Option<bool> {
        match self {
            Fusion::Scattered { program: Ok(program), .. } => program.are_few(graph),
            _ => Some(false),
        }
    }

    /// Why the training step is not one loop, if it is not.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Fusion::None { reason } | Fusion::Scattered { reason, .. } => Some(reason),
            Fusion::RowLoop(_) => None,
        }
    }
}

/// Finds the family that the training step belongs to.
pub fn fuse(graph: &Graph) -> Fusion {
    if graph.no_fuse {
        return Fusion::None { reason: "the model says `fuse = off`".into() };
    }
    if let Some(update) = graph.updates.first() {
        let state = graph.label(update.state);
        return Fusion::None { reason: format!("it updates the state `{state}`") };
    }
    let program = || row_program(graph, &scatter(graph, Pairwise::Included));
    match row_loop(graph) {
        Ok(mut parts) => {
            if !parts.is_product() {
                parts.program = program().ok().map(Box::new);
            }
            Fusion::RowLoop(Box::new(parts))
        }
        Err(reason) => {
            let program = program();
            match scatter(graph, Pairwise::Excluded) {
                parameters if parameters.is_empty() && program.is_err() => Fusion::None { reason },
                parameters => {
                    Fusion::Scattered { reason, parameters, program: program.map(Box::new) }
                }
            }
        }
    }
}
