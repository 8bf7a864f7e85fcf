//! Operator specs: the type of a row of the operator table, and the types of its columns.
//!
//! The types refer to each other: a rule or a column may have a condition, and a condition is a
//! function of the operator. The files beside compute with them.

use super::{
    CsrPattern, IdsBelow, KernelModule, Kind, Link, MatrixProduct, Placement, RowNames, RowUse,
    RowsRead, Scaling, Weights,
};
use crate::attributes::Attributes;
use crate::formula::Formula;
use crate::shapes::Substitution;
use crate::storage::Storage;

/// An operator spec: one row of the operator table.
#[derive(Debug)]
pub struct Operator {
    /// The name in the language, unique in the table.
    pub name: &'static str,
    /// One sentence, for the documentation.
    pub summary: &'static str,
    /// The operands' names, in order. Of an operand called `like` only the shape (and the pattern)
    /// is read; it has no gradient.
    pub operands: &'static [&'static str],
    /// How many of the last operands may be left out. Rules are written for each number of
    /// operands.
    pub optional: usize,
    /// The operator that joins the result so far with the next operand, for an operator that takes
    /// any number of operands.
    pub chain: Option<&'static str>,
    /// The operator that a chain of one operand is; the operand itself where there is none.
    pub chain_of_one: Option<&'static str>,
    /// The operator that gives the same result with exchanged operands (`less` for `greater`). It
    /// makes a number the right operand.
    pub mirror: Option<&'static str>,
    /// True where `f(f(x, y), z)` is `f(x, f(y, z))`, up to rounding, without attributes.
    pub is_associative: bool,
    /// Other names in the language.
    pub aliases: &'static [&'static str],
    /// The operand and axis whose extent bounds the ids in an operand.
    pub ids_below: Option<IdsBelow>,
    /// The attributes, in order.
    pub attributes: &'static [Attribute],
    /// The shape rule; see [`shapes`](crate::shapes) for the grammar.
    pub shape: &'static str,
    /// The storage rules. A combination of storage types without a rule is a compile error.
    pub storage: &'static [Rule],
    /// The gradients, or the reasons why there are none, by operand.
    pub gradient: &'static [Gradient],
    /// The kernels that compute it.
    pub kind: Kind,
    /// Where kernels of its own are.
    pub kernels: KernelModule,
    /// The cost in stored elements, of an operator with a kernel of its own. The cost of other
    /// operators follows from their kind.
    pub cost: &'static str,
    /// Code to write where a sparse operand is refused. `{}` stands for the operand, `{name}` for
    /// the operand of that name.
    pub alternative: Option<&'static str>,
    /// The operands that are weights. Weight decay and L1 shrink a parameter that is used as one.
    pub weights: Weights,
    /// The link function that it is: predictions as a function of scores.
    pub link: Option<Link>,
    /// The sparsity pattern of a csr result, for operators with a kernel of their own. The pattern
    /// of element-wise functions follows from their kind.
    pub csr_pattern: CsrPattern,
    /// The operator that computes the same at the entries of a csr only. It takes the operands
    /// without `like`, and then that csr.
    pub at_pattern: Option<&'static str>,
    /// Of a function of two elements, the operator that computes it where the left operand stores
    /// an element, whatever the right one stores, and whatever it is at 0.
    pub where_stored: Option<&'static str>,
    /// True for a sum over the axes along which the first operand was broadcast from the shape of
    /// the second. With equal shapes the result is the first operand.
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
    /// How a kernel of its own, or a function of the user's, reads the table rows of operands that
    /// may be row_sparse. Other kinds read all rows.
    pub reads_rows: &'static [RowsRead],
    /// Which table rows a row_sparse result of a kernel of its own, or of a function of the user's,
    /// stores. Other kinds act within rows.
    pub result_rows: &'static [ResultRows],
    /// True for an operator that the language does not offer: the gradient of another operator.
    pub internal: bool,
}

/// An attribute of an operator: a value known at compile time.
#[derive(Debug)]
pub struct Attribute {
    /// The name in the language.
    pub name: &'static str,
    /// The type of its values.
    pub kind: AttributeKind,
    /// True where its integers are extents or bounds of slices. A constant of Rust may stand for
    /// such an integer.
    pub is_extent: bool,
}

/// The type of an attribute's values, with its default.
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
    /// Conditions joined by `and`, or none: flags (`transpose_rhs`, `!transpose_rhs`), conditions
    /// on attributes (`ord == 1`) and on the ranks of operands (`rhs_rank == 1`).
    pub when: Option<&'static str>,
    /// A formula over operators in `grad`, `out`, the operands and the attributes that are numbers,
    /// or why there is none. `0` says that the result does not change with the operand, almost
    /// everywhere.
    pub formula: Result<&'static str, &'static str>,
    /// True for a surrogate: training uses it in place of the derivative.
    pub is_surrogate: bool,
}

/// A storage rule, as written in the operator spec.
///
/// Patterns of operands, in order: `dense`, `csr`, `row_sparse`; `csr'` is a csr that the operator
/// reads transposed; `scalar` a number known at compile time; `ids` a dense array of integer ids. A
/// dense operand may be transposed or not: its kernel is told; `like` any array, of which the shape
/// alone is read. A result may be `ids` too: positions or counts, as a dense array of `u64`.
#[derive(Debug)]
pub struct Rule {
    pub(super) text: &'static str,
    pub(super) on_request: Option<Storage>,
    pub(super) same_shape: bool,
    pub(super) of_units: bool,
    pub(super) on_gpu: bool,
    pub(super) condition: Option<&'static Condition>,
}

/// A condition under which a rule applies, beyond the storage of the operands.
#[derive(Debug)]
pub struct Condition {
    /// The condition in words, which follow the rule: `where f(0) = 0`.
    pub text: &'static str,
    /// The end of the kernel's name, where another rule covers the same operands unconditionally.
    pub suffix: &'static str,
    /// The test of an application.
    pub holds: fn(&Given<'_>) -> bool,
}

/// The application that a condition tests.
#[derive(Clone, Copy, Debug)]
pub struct Given<'a> {
    /// The operator.
    pub operator: &'static Operator,
    /// The attributes given.
    pub attributes: &'a Attributes,
    /// For each operand the number that it is, if any: a value, or a formula in names.
    pub numbers: &'a [Option<Formula>],
    /// The operands' ranks.
    pub ranks: &'a [usize],
    /// The table that tells constants of Rust from extents among the names; none without names.
    pub names: Option<&'a Substitution>,
}

impl PartialEq for Condition {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Condition {}

/// The table rows that a row_sparse result stores. The first entry whose condition holds applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultRows {
    /// Any rows: all of them, or some that depend on values.
    All,
    /// None.
    Nothing,
    /// Those that the operator reads [as they are](RowUse::AsTheyAre).
    Read,
    /// Those that the operand `like` stores.
    Like,
    /// Some of those that are named, computed in a way of their own.
    Named(RowNames),
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
