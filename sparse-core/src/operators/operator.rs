//! One row of the operator table, and what a row is made of.
//!
//! These types name each other, by the conditions under which a rule or a column applies: a condition
//! is a function of the operator. What is computed from them is in the files beside.

use super::{
    CsrPattern, IdsBelow, KernelModule, Kind, Link, MatrixProduct, Placement, RowNames, RowUse,
    RowsRead, Scaling, Weights,
};
use crate::attributes::Attributes;
use crate::formula::Formula;
use crate::shapes::Substitution;
use crate::storage::Storage;

/// One operator: a row of the table.
#[derive(Debug)]
pub struct Operator {
    /// The name in the language.
    pub name: &'static str,
    /// One sentence, for the documentation.
    pub summary: &'static str,
    /// The operands' names, in order. An operand called `like` lends its shape (and pattern) only: it is not
    /// read and has no gradient.
    pub operands: &'static [&'static str],
    /// How many of the last operands may be left out. Rules are written for each number of operands.
    pub optional: usize,
    /// For an operator that takes any number of operands, two by two: the operator that joins the result of the first two, and then
    /// each result so far, with the next operand.
    pub chain: Option<&'static str>,
    /// The operator that a chain of one operand is; the operand itself where there is none.
    pub chain_of_one: Option<&'static str>,
    /// The operator that gives the same with its two operands exchanged (`less` for `greater`): a number is made the right
    /// operand by it.
    pub mirror: Option<&'static str>,
    /// True where `f(f(x, y), z)` is `f(x, f(y, z))`, up to rounding, without attributes.
    pub is_associative: bool,
    /// Other names in the language.
    pub aliases: &'static [&'static str],
    /// Where an operand holds ids: the operand and axis whose extent they stay below.
    pub ids_below: Option<IdsBelow>,
    /// The attributes, in order.
    pub attributes: &'static [Attribute],
    /// The shape rule; see [`shapes`](crate::shapes) for the grammar.
    pub shape: &'static str,
    /// The storage rules. A combination that no rule covers is refused.
    pub storage: &'static [Rule],
    /// For each operand that has one, its gradient.
    pub gradient: &'static [Gradient],
    /// Which kernels carry it out.
    pub kind: Kind,
    /// Where kernels of its own are.
    pub kernels: KernelModule,
    /// The cost in what is stored, for kernels of their own; that of the families follows from their kind.
    pub cost: &'static str,
    /// What to write instead where a sparse operand is refused; `{}` stands for the operand, `{name}` for that of a name.
    pub alternative: Option<&'static str>,
    /// The operands that are weights of what the others hold. Penalties shrink a parameter that is
    /// used as one.
    pub weights: Weights,
    /// What makes predictions of scores: the function that the operator is of a score, or of a row of scores.
    pub link: Option<Link>,
    /// Where a csr result of a kernel of its own stores elements; of functions of elements it
    /// follows from their kind.
    pub csr_pattern: CsrPattern,
    /// The operator that computes the same at the places that a csr stores, and nowhere else: it
    /// takes the operands but `like`, and then that csr.
    pub at_pattern: Option<&'static str>,
    /// Of a function of two elements, the operator that computes it where the left operand stores
    /// an element, whatever the right one stores, and whatever it is at 0.
    pub where_stored: Option<&'static str>,
    /// True where it sums over the axes along which its operand was repeated to another: where
    /// there are none, it is its operand.
    pub undoes_broadcasting: bool,
    /// True of the sum of its two operands.
    pub is_sum: bool,
    /// True of the product of its two operands, element by element.
    pub is_product: bool,
    /// The numbers that are left out as the left and as the right operand: the result is the other
    /// operand.
    pub neutral: [Option<f64>; 2],
    /// The product with a number that it is.
    pub scaling: Scaling,
    /// The matrix product that it is.
    pub matrix_product: MatrixProduct,
    /// How it places elements that it does not change.
    pub placement: Placement,
    /// The storage type that it converts to, whose name it has.
    pub converts_to: Option<Storage>,
    /// The trait of `std::ops` that stands for it in Rust, and the method of that.
    pub std_trait: Option<(&'static str, &'static str)>,
    /// How a kernel of its own reads the rows of operands that may be row_sparse; the families read
    /// all rows.
    pub reads_rows: &'static [RowsRead],
    /// Which rows a row_sparse result of a kernel of its own stores; the families act within rows.
    pub result_rows: &'static [ResultRows],
    /// True for rows that the language does not offer: gradients of other rows.
    pub internal: bool,
}

/// An attribute of an operator: a value known at compile time.
#[derive(Debug)]
pub struct Attribute {
    /// The name in the language.
    pub name: &'static str,
    /// What values it takes.
    pub kind: AttributeKind,
    /// True where its integers are extents or bounds of parts, as which a constant of Rust can
    /// stand.
    pub is_extent: bool,
}

/// What values an attribute takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AttributeKind {
    /// `true` or `false`; `false` where it is not given.
    Flag,
    /// An axis or a list of axes, negative from the end; all axes where it is not given.
    Axes,
    /// An integer, with its default; one without must be given.
    Integer(Option<i64>),
    /// A number, with its default; one without must be given.
    Number(Option<f64>),
    /// A list of integers, of which some may be left open (`_`); absent where it is not given.
    List,
    /// A storage type for the result; the rule decides where it is not given.
    Storage,
}

impl AttributeKind {
    /// True where a call must give it.
    pub fn is_required(self) -> bool {
        matches!(self, AttributeKind::Integer(None) | AttributeKind::Number(None))
    }
}

/// The gradient with respect to one operand.
#[derive(Debug)]
pub struct Gradient {
    /// The operand.
    pub operand: &'static str,
    /// What must hold, joined by `and`, or nothing: flags (`transpose_rhs`, `!transpose_rhs`), conditions on attributes (`ord == 1`)
    /// and on the ranks of operands (`rhs_rank == 1`).
    pub when: Option<&'static str>,
    /// A formula over operators in `grad`, `out`, the operands and the attributes that are numbers, or why there is none.
    /// `0` says that the result does not change with the operand, almost everywhere.
    pub formula: Result<&'static str, &'static str>,
    /// True where it is not the derivative, but what training is told in place of it.
    pub is_surrogate: bool,
}

/// One line of an operator's storage rules, as written in its row.
///
/// Patterns of operands, in order: `dense`, `csr`, `row_sparse`; `csr'` is a csr that the operator reads
/// transposed; `scalar` a number known at compile time; `ids` a dense array of integer ids. A dense operand may be
/// transposed or not: its kernel is told; `like` any array, of which the shape alone is read. A result may be `ids` too: positions
/// or counts, as a dense array of `u64`.
#[derive(Debug)]
pub struct Rule {
    pub(super) text: &'static str,
    pub(super) on_request: Option<Storage>,
    pub(super) same_shape: bool,
    pub(super) of_units: bool,
    pub(super) on_gpu: bool,
    pub(super) condition: Option<&'static Condition>,
}

/// When a rule applies, beyond the storage of the operands.
#[derive(Debug)]
pub struct Condition {
    /// In words, to follow the rule: `where f(0) = 0`.
    pub text: &'static str,
    /// What the kernel's name ends with, where another rule covers the same operands without the condition.
    pub suffix: &'static str,
    /// Whether it holds.
    pub holds: fn(&Given<'_>) -> bool,
}

/// What a condition is about.
#[derive(Clone, Copy, Debug)]
pub struct Given<'a> {
    /// The operator.
    pub operator: &'static Operator,
    /// The attributes given.
    pub attributes: &'a Attributes,
    /// For each operand the number that it is, if it is one: seen, or a formula in names.
    pub numbers: &'a [Option<Formula>],
    /// The operands' ranks.
    pub ranks: &'a [usize],
    /// Which names in numbers are constants of Rust: the others are extents. Nothing without names.
    pub names: Option<&'a Substitution>,
}

impl PartialEq for Condition {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Condition {}

/// Which rows a row_sparse result stores. The first entry whose condition holds is the one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultRows {
    /// Any: every row, or those that values tell.
    All,
    /// None.
    Nothing,
    /// Those that the operator reads [as they are](RowUse::AsTheyAre).
    Read,
    /// Those that the operand `like` stores.
    Like,
    /// Those that one of these operands stores, at other places.
    Moved(&'static [&'static str]),
    /// Those that are named: something is added to each of them.
    Added {
        /// What names them.
        by: RowNames,
        /// How what is added is made.
        what: RowUse,
        /// The operand that it is made of.
        of: &'static str,
        /// What must hold, as in [`Gradient::when`](super::Gradient::when).
        when: Option<&'static str>,
    },
    /// Those that one of these operands stores. The operator acts within rows: it computes each row
    /// of the result from the rows of these operands at the same place, and from nothing else that
    /// is stored by rows. Reading some rows commutes with it.
    Within {
        /// The operands.
        of: &'static [&'static str],
        /// What must hold, as in [`Gradient::when`](super::Gradient::when).
        when: Option<&'static str>,
        /// What must not hold.
        unless: Option<&'static Condition>,
    },
}

impl Attribute {
    /// The same, whose integers are extents or bounds of parts.
    pub(super) const fn of_extents(self) -> Self {
        Attribute { is_extent: true, ..self }
    }

    /// Whether a constant of Rust can stand for it, whose value the compiler does not see.
    pub fn may_be_named(&self) -> bool {
        self.is_extent || matches!(self.kind, AttributeKind::Number(_))
    }
}
