//! Constructors of columns, by which operator specs are written: attributes, rules, gradients.

use super::{
    Attribute, AttributeKind, Condition, CsrPattern, Gradient, KernelModule, Kind, MatrixProduct,
    Operator, Placement, ResultRows, RowNames, RowUse, RowsRead, Rule, Scaling, Weights,
};

/// The columns of a row that does not say otherwise.
pub(super) const DEFAULTS: Operator = Operator {
    name: "",
    summary: "",
    operands: &["x"],
    optional: 0,
    chain: None,
    chain_of_one: None,
    mirror: None,
    is_associative: false,
    aliases: &[],
    ids_below: None,
    attributes: &[],
    shape: "same -> same",
    storage: &[],
    gradient: &[],
    kind: Kind::Kernel,
    kernels: KernelModule::Own,
    cost: "",
    alternative: None,
    weights: Weights::None,
    link: None,
    csr_pattern: CsrPattern::Unknown,
    at_pattern: None,
    where_stored: None,
    undoes_broadcasting: false,
    is_sum: false,
    is_product: false,
    neutral: [None, None],
    scaling: Scaling::None,
    matrix_product: MatrixProduct::None,
    placement: Placement::Other,
    converts_to: None,
    std_trait: None,
    reads_rows: &[],
    result_rows: &[],
    internal: false,
};

/// A flag attribute.
pub(super) const fn flag(name: &'static str) -> Attribute {
    Attribute { name, kind: AttributeKind::Flag, is_extent: false }
}

/// A storage attribute.
pub(super) const fn storage(name: &'static str) -> Attribute {
    Attribute { name, kind: AttributeKind::Storage, is_extent: false }
}

/// An attribute for axes.
pub(super) const fn axes(name: &'static str) -> Attribute {
    Attribute { name, kind: AttributeKind::Axes, is_extent: false }
}

/// An integer attribute with its default.
pub(super) const fn integer(name: &'static str, default: i64) -> Attribute {
    Attribute { name, kind: AttributeKind::Integer(Some(default)), is_extent: false }
}

/// An integer that must be given.
pub(super) const fn required_integer(name: &'static str) -> Attribute {
    Attribute { name, kind: AttributeKind::Integer(None), is_extent: false }
}

/// A number that must be given.
pub(super) const fn number(name: &'static str) -> Attribute {
    Attribute { name, kind: AttributeKind::Number(None), is_extent: false }
}

/// A number with its default.
pub(super) const fn number_or(name: &'static str, default: f64) -> Attribute {
    Attribute { name, kind: AttributeKind::Number(Some(default)), is_extent: false }
}

/// An integer that is an extent, with its default.
pub(super) const fn extent(name: &'static str, default: i64) -> Attribute {
    integer(name, default).of_extents()
}

/// An extent that must be given.
pub(super) const fn required_extent(name: &'static str) -> Attribute {
    required_integer(name).of_extents()
}

/// A list of extents, or of bounds of parts.
pub(super) const fn extents(name: &'static str) -> Attribute {
    list(name).of_extents()
}

/// A list attribute.
pub(super) const fn list(name: &'static str) -> Attribute {
    Attribute { name, kind: AttributeKind::List, is_extent: false }
}

/// A storage rule.
pub(super) const fn rule(signature: &'static str) -> Rule {
    Rule::new(signature)
}

/// A gradient formula.
pub(super) const fn gradient(operand: &'static str, formula: &'static str) -> Gradient {
    Gradient { operand, when: None, formula: Ok(formula), is_surrogate: false }
}

/// A formula that training uses in place of the derivative.
pub(super) const fn surrogate(operand: &'static str, formula: &'static str) -> Gradient {
    Gradient { operand, when: None, formula: Ok(formula), is_surrogate: true }
}

/// A gradient formula under a flag.
pub(super) const fn gradient_when(
    when: &'static str,
    operand: &'static str,
    formula: &'static str,
) -> Gradient {
    Gradient { operand, when: Some(when), formula: Ok(formula), is_surrogate: false }
}

/// An operand that has no gradient, and why.
pub(super) const fn no_gradient(operand: &'static str, why: &'static str) -> Gradient {
    Gradient { operand, when: None, formula: Err(why), is_surrogate: false }
}

/// Rows that the columns of a csr name.
pub(super) const fn rows_by(table: &'static str, by: &'static str, what: RowUse) -> RowsRead {
    RowsRead { table, by: Some(RowNames::Columns(by)), when: None, what }
}

/// Rows that ids name.
pub(super) const fn rows_by_ids(table: &'static str, ids: &'static str, what: RowUse) -> RowsRead {
    RowsRead { table, by: Some(RowNames::Ids(ids)), when: None, what }
}

/// All rows.
pub(super) const fn all_rows(table: &'static str) -> RowsRead {
    RowsRead { table, by: None, when: None, what: RowUse::Otherwise }
}

impl RowsRead {
    /// The same under a condition.
    pub(super) const fn only(self, when: &'static str) -> Self {
        RowsRead { when: Some(when), ..self }
    }
}

/// The rows that these operands store, each computed by itself.
pub(super) const fn within_rows(of: &'static [&'static str]) -> ResultRows {
    ResultRows::Within { of, when: None, unless: None }
}

/// The same unless a condition holds.
pub(super) const fn within_rows_unless(
    of: &'static [&'static str],
    unless: &'static Condition,
) -> ResultRows {
    ResultRows::Within { of, when: None, unless: Some(unless) }
}

/// Kernels in a module of several operators.
pub(super) const fn shared(module: &'static str) -> KernelModule {
    KernelModule::Shared(module)
}

/// Kernels of several operators that are given a plan.
pub(super) const fn planned(module: &'static str, kernel: &'static str) -> KernelModule {
    KernelModule::Planned { module, kernel }
}
