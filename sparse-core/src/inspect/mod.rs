//! Plans of models: the compiler's decisions as plain data, shown as a table, in Graphviz's
//! language or as SVG.
//!
//! `graph!` emits a [`PlanTable`] as a constant: borrowed slices, nothing rendered. Whoever asks
//! for text or a picture has it made from the constant then. The same code writes the table into
//! the documentation of what is emitted.

mod bind;
mod bytes;
mod describe;
mod graphviz;
mod layout;
mod svg;
#[cfg(test)]
mod tests;
mod text;

pub use bind::{BoundPlan, Measure, Memory, Sizes};
pub use bytes::Bytes;

use crate::formula::{self, scalar};
use crate::ir::AttributeValue;
use crate::operators::{self, Link};
use crate::storage::{ElementType, Storage};
use std::fmt;

/// What the compiler decided of a model: one entry for each value, operands first.
///
/// [`Display`](fmt::Display) is the table. [`bind`](PlanTable::bind) fills dimensions in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlanTable<'a> {
    /// The model's name.
    pub name: &'a str,
    /// The element type of arithmetic.
    pub element: ElementType,
    /// Everything that is declared or computed, numbers in the source left out.
    pub values: &'a [PlanValue<'a>],
    /// Which rows of each parameter a batch reads and writes, in the order of declaration.
    pub rows: &'a [PlanRows<'a>],
    /// What the loss is the sum of.
    pub losses: &'a [Operand],
    /// What became of the training step.
    pub step: PlanStep<'a>,
    /// True where the model says `fallback = warn`.
    pub warns: bool,
}

/// One value of a plan. Other values are named by their position in [`PlanTable::values`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlanValue<'a> {
    /// The name in the source, or nothing.
    pub name: &'a str,
    /// Its number in the graph, which is the name of what has none: `%7`.
    pub number: u32,
    /// What it is needed for.
    pub part: Part,
    /// Its storage type.
    pub storage: Storage,
    /// The type of its elements.
    pub element: ElementType,
    /// Its shape.
    pub shape: &'a [Extent<'a>],
    /// How much of it is stored.
    pub stored: Stored<'a>,
    /// The gradient of a trained parameter.
    pub gradient: Option<u32>,
    /// How it is computed, unless it is declared.
    pub computed: Option<Computed<'a>>,
    /// Where it is written to.
    pub written: Option<Written<'a>>,
}

/// What a value is needed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// A batch's data, needed for everything.
    Input,
    /// A batch's data, needed for the loss only.
    Label,
    /// A trained parameter.
    Parameter,
    /// A parameter that is not trained.
    Frozen,
    /// A parameter that is not trained, with an update in the source.
    State,
    /// Computed for the outputs.
    Forward,
    /// Computed for the loss.
    Loss,
    /// Computed for the updates of states.
    Update,
    /// Computed for the gradients.
    Gradient,
    /// Computed for nothing, so that it is not computed.
    Unused,
}

/// An extent of a shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent<'a> {
    /// Fixed in the source.
    Constant(usize),
    /// A named dimension.
    Named(&'a str),
}

/// How much of a value is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored<'a> {
    /// Every element.
    All,
    /// Every row, and its id.
    AllRows,
    /// As many entries (csr) or rows (row_sparse) as this value: itself, or the one whose pattern
    /// it has.
    As(u32),
    /// One row for each column that occurs in these csr values, or each id in these arrays of ids.
    Distinct(&'a [u32]),
}

/// How a value is computed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Computed<'a> {
    /// The operator.
    pub operator: &'a str,
    /// The kernel that `forward`, `loss` and `loss_and_grads` call.
    pub kernel: &'a str,
    /// What a GPU launches for it: the kernel of the same name, or the one that operators of its
    /// kind share. Nothing where GPUs have none, so that the model is not moved there.
    pub on_gpu: Option<&'a str>,
    /// The operands, in order.
    pub operands: &'a [Operand],
    /// The attributes that the source gives it.
    pub attributes: &'a [(&'static str, AttributeValue)],
    /// Whether the training step computes it in its one loop instead.
    pub fused: bool,
    /// Whether a fallback inserted it: a conversion that the source does not have.
    pub fallback: bool,
}

/// An operand.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Operand {
    /// A value, by position.
    Value(u32),
    /// A value that lends its shape only.
    Shape(u32),
    /// A number in the source.
    Number(f64),
    /// A number that is known with the batch: a formula in names of dimensions and constants of
    /// Rust.
    Named {
        /// The formula.
        text: &'static str,
        /// The constants in it, with their values.
        constants: &'static [(&'static str, f64)],
    },
}

impl Operand {
    /// A formula before the values of constants are seen.
    pub(crate) fn named(text: &str) -> Self {
        Operand::Named { text: crate::attributes::interned(text), constants: &[] }
    }

    /// The number that an operand is, once the extents in it are known. `None` of a value, and of a
    /// formula with an extent that is not.
    pub fn number(&self, extent: &dyn Fn(&str) -> Option<usize>) -> Option<f64> {
        match self {
            Operand::Value(_) | Operand::Shape(_) => None,
            Operand::Number(number) => Some(*number),
            Operand::Named { text, constants } => {
                let constant = |name: &str| {
                    let found = constants.iter().find(|(known, _)| *known == name);
                    found.map(|(_, value)| *value)
                };
                let known = |name: &str| constant(name).or(extent(name).map(|size| size as f64));
                scalar::value(&formula::parse(text).ok()?, &known).ok()
            }
        }
    }
}

/// Where a value is written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written<'a> {
    /// A buffer of the workspace; several values may use it, one after the other.
    Buffer(u32),
    /// The output of this name.
    Output(&'a str),
    /// The gradient of this parameter.
    Gradient(u32),
    /// Nowhere: the loop that computes this value has it on the way.
    Within(u32),
}

/// Which rows of a parameter a batch reads and writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanRows<'a> {
    /// The parameter.
    pub parameter: u32,
    /// The rows that the forward pass reads.
    pub reads: PlanRowSet<'a>,
    /// The rows that the gradient stores, if there is one.
    pub writes: Option<PlanRowSet<'a>>,
    /// Whether weight decay and L1 shrink it.
    pub decays: bool,
}

/// A set of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanRowSet<'a> {
    /// Every row.
    All,
    /// The columns that occur in these csr values of the batch, or the ids in these arrays of ids.
    Columns(&'a [u32]),
}

/// What became of the training step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanStep<'a> {
    /// The model has no loss.
    None,
    /// Kernels one after the other, and why.
    Unfused {
        /// Why it is not fused.
        reason: &'a str,
    },
    /// Kernels one after the other, but gradients of rows go straight into the update.
    Scattered {
        /// Why it is not one loop.
        reason: &'a str,
        /// The parameters whose gradients do.
        parameters: &'a [u32],
        /// Why a step of one row is not one loop; nothing where it is.
        one_row: Option<&'a str>,
        /// Whether a step of more rows is one as well, up to the updates. Nothing where constants
        /// of Rust decide.
        many_rows: Option<bool>,
        /// What a sample reads in that loop.
        reads: &'a [PlanRead],
    },
    /// One loop over the rows of a csr input.
    LinearRows {
        /// The input.
        input: u32,
        /// The parameter it is multiplied with.
        weight: u32,
        /// The parameter of the interaction, where there is one.
        factors: Option<u32>,
        /// The loss.
        loss: &'a str,
    },
    /// One loop over rows of data whose ids name the rows that they read.
    LookupRows {
        /// What is read of trained parameters, each of which is read once, and updated.
        reads: &'a [PlanLookup],
        /// The loss.
        loss: &'a str,
    },
}

/// Table rows that a sample reads in a loop over samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanRead {
    /// The parameter.
    pub table: u32,
    /// What names the rows: a csr by its columns, or ids.
    pub by: u32,
    /// How the rows become numbers.
    pub pool: PlanPool,
}

/// How the table rows that a sample names become numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanPool {
    /// Their sum.
    Sum {
        /// Whether each is multiplied by its value.
        weighted: bool,
        /// Whether it is a mean.
        mean: bool,
    },
    /// One after the other.
    Rows,
    /// The sum of the products of all pairs of them.
    Pairs,
}

/// A number that each row of data reads of trained parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanLookup {
    /// The value that has it for each row.
    pub value: u32,
    /// The gradient with respect to that.
    pub gradient: u32,
    /// What is read.
    pub read: PlanLookupRead,
}

/// What a number is read of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanLookupRead {
    /// A row of one element.
    Element(PlanNamedRow),
    /// The inner product of rows of two parameters, or the mean of what that sums.
    Inner {
        /// One row.
        left: PlanNamedRow,
        /// The other.
        right: PlanNamedRow,
        /// Whether it is the mean.
        mean: bool,
    },
}

/// A trained parameter, and the ids that name its rows: one for each row of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanNamedRow {
    /// The parameter.
    pub table: u32,
    /// The ids.
    pub ids: u32,
}

impl PlanLookup {
    /// The parameters with their ids: one, or the two of an inner product.
    pub fn rows(&self) -> impl Iterator<Item = PlanNamedRow> + use<> {
        let (first, second) = match self.read {
            PlanLookupRead::Element(row) => (row, None),
            PlanLookupRead::Inner { left, right, .. } => (left, Some(right)),
        };
        std::iter::once(first).chain(second)
    }
}

/// A conversion that a fallback inserted.
#[derive(Clone, Debug, PartialEq)]
pub struct FallbackNote<'a> {
    /// The operators that needed it; none where an annotation asked for it.
    pub operators: String,
    /// What the result is called.
    pub name: String,
    /// What is converted.
    pub operand: String,
    /// Its storage type.
    pub from: Storage,
    /// The storage type it is converted to.
    pub to: Storage,
    /// Its shape.
    pub shape: &'a [Extent<'a>],
    /// What the result takes.
    pub bytes: Bytes,
    /// What the operand takes.
    pub instead_of: Bytes,
}

/// ``fallback: `add` converts `b` from csr to dense [n, d]: 4·n·d bytes instead of 8·nnz(b) + 8·n +
/// 8``
impl fmt::Display for FallbackNote<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.operators.as_str() {
            "" => write!(f, "fallback: the annotation of `{}`", self.name)?,
            operators => write!(f, "fallback: `{operators}`")?,
        }
        write!(
            f,
            " converts `{}` from {} to {} {}: {} bytes instead of {}",
            self.operand,
            self.from,
            self.to,
            Sizes::default().shape(self.shape),
            self.bytes,
            self.instead_of
        )
    }
}

impl<'a> PlanTable<'a> {
    /// A plan without values: of a model that no compiler has seen.
    pub const fn empty(name: &'a str) -> Self {
        PlanTable {
            name,
            element: ElementType::F32,
            values: &[],
            rows: &[],
            losses: &[],
            step: PlanStep::None,
            warns: false,
        }
    }

    /// How a value is called: by its name in the source, as the output or gradient that it is, or
    /// by its number.
    pub fn label(&self, position: u32) -> String {
        let Some(value) = self.values.get(position as usize) else {
            return "?".to_owned();
        };
        match (value.name, value.written) {
            ("", Some(Written::Output(name))) if self.value(name).is_none() => name.to_owned(),
            ("", Some(Written::Gradient(parameter))) => format!("grad {}", self.label(parameter)),
            ("", _) => format!("%{}", value.number),
            (name, _) => name.to_owned(),
        }
    }

    /// The value of a name.
    pub fn value(&self, name: &str) -> Option<&'a PlanValue<'a>> {
        self.values.iter().find(|value| value.name == name)
    }

    /// The score that the output of this name is a link of, by position, as
    /// [`linked_score`](crate::passes::linked_score) of the graph: that of the first output, which
    /// is kept until the next batch.
    pub fn linked_score(&self, output: &str) -> Option<(Link, usize)> {
        let written = Some(Written::Output(output));
        let output = self.values.iter().find(|value| value.written == written)?;
        let computed = output.computed.filter(|_| !self.losses.is_empty())?;
        let link = operators::find(computed.operator)?.link?;
        let [Operand::Value(score)] = *computed.operands else { return None };
        let of = self.values.get(score as usize)?;
        let axis = computed.attributes.iter().find(|(name, _)| *name == "axis");
        let is_by_rows = match (link, axis) {
            (Link::Sigmoid | Link::Exp, _) => true,
            (Link::Softmax, None) => of.shape.len() == 2,
            (Link::Softmax, Some((_, axis))) => {
                let last = [AttributeValue::Integer(1), AttributeValue::Integer(-1)];
                of.shape.len() == 2 && last.contains(axis)
            }
        };
        let is_stored = matches!(of.written, Some(Written::Buffer(_) | Written::Output(_)));
        (is_by_rows && is_stored && of.storage == Storage::Dense).then_some((link, score as usize))
    }

    /// The conversions that a fallback inserted.
    pub fn fallbacks(&self) -> impl Iterator<Item = &'a PlanValue<'a>> + use<'a> {
        let inserted = |value: &&PlanValue<'_>| value.computed.is_some_and(|how| how.fallback);
        self.values.iter().filter(inserted)
    }

    /// Whether the training step is one loop.
    pub fn is_fused(&self) -> bool {
        matches!(self.step, PlanStep::LinearRows { .. } | PlanStep::LookupRows { .. })
    }

    /// The plan with some sizes filled in.
    pub fn bind(self, sizes: Sizes) -> BoundPlan<'a> {
        BoundPlan::new(self, sizes)
    }

    /// The graph in Graphviz's language: colours by storage type, gradients outlined in another
    /// colour, conversions of a fallback dashed.
    pub fn to_dot(&self) -> String {
        graphviz::dot(self, &Sizes::default())
    }

    /// The graph as a picture: values in layers, operands above their users.
    pub fn to_svg(&self) -> String {
        svg::svg(self, &Sizes::default())
    }

    /// One value's line of the table under its head, columns without an entry left out.
    pub fn line(&self, position: u32) -> String {
        text::line(self, position)
    }

    /// What is to be said of a value that a fallback inserted.
    pub fn fallback(&self, position: u32) -> Option<FallbackNote<'a>> {
        let value = self.values.get(position as usize)?;
        value.computed.filter(|how| how.fallback)?;
        let source = value.reads().next()?;
        let users = self.values.iter().filter(|user| user.reads().any(|read| read == position));
        let mut operators: Vec<&str> = Vec::new();
        for operator in users.filter_map(|user| Some(user.computed?.operator)) {
            if value.storage == Storage::Dense && !operators.contains(&operator) {
                operators.push(operator);
            }
        }
        let sizes = Sizes::default();
        Some(FallbackNote {
            operators: operators.join(", "),
            name: self.label(position),
            operand: self.label(source),
            from: self.values.get(source as usize)?.storage,
            to: value.storage,
            shape: value.shape,
            bytes: bytes::bytes(self, position, &sizes),
            instead_of: bytes::bytes(self, source, &sizes),
        })
    }

    /// Whether ids come from the columns of csr values, or else from arrays of ids.
    fn are_csr(&self, inputs: &[u32]) -> bool {
        let storage = |input: &u32| self.values.get(*input as usize).map(|value| value.storage);
        inputs.iter().all(|input| storage(input) == Some(Storage::Csr))
    }

    fn positions(&self) -> impl Iterator<Item = u32> + use<> {
        0..self.values.len() as u32
    }
}

impl fmt::Display for PlanTable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&text::table(self, &Sizes::default()))
    }
}

impl PlanValue<'_> {
    /// The values that it is computed from, by position; without those that lend their shape only.
    pub fn reads(&self) -> impl Iterator<Item = u32> {
        let operands = self.computed.map_or(&[][..], |how| how.operands);
        operands.iter().filter_map(|operand| match operand {
            Operand::Value(position) => Some(*position),
            Operand::Shape(_) | Operand::Number(_) | Operand::Named { .. } => None,
        })
    }

    /// Whether it belongs to the gradients.
    pub fn is_gradient(&self) -> bool {
        self.part == Part::Gradient
    }
}

/// The colour of a storage type, one for every picture.
const fn colour(storage: Storage) -> &'static str {
    match storage {
        Storage::Dense => "#f4f4f2",
        Storage::Csr => "#cfe3f7",
        Storage::RowSparse => "#d3efd0",
    }
}

/// Outlines: of what is declared or computed forward, of gradients, and of conversions by a
/// fallback.
const FORWARD: &str = "#3f4a54";
const GRADIENT: &str = "#b4530f";
const FALLBACK: &str = "#c01c28";
