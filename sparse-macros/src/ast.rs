//! The tree: what the user wrote, with spans and nothing decided.

use proc_macro2::{Span, TokenStream};
use syn::{Attribute, Ident, Visibility};

/// One `model` of a `graph!`.
pub(crate) struct Model {
    pub(crate) docs: Vec<Attribute>,
    pub(crate) visibility: Visibility,
    pub(crate) name: Ident,
    pub(crate) declarations: Vec<Declaration>,
    /// The names of declarations that did not parse: known, so that their uses are not errors too.
    pub(crate) lost: Vec<Ident>,
    /// True where something did not parse.
    pub(crate) broken: bool,
}

/// One line of a model.
pub(crate) enum Declaration {
    Input(Input),
    Parameter(Parameter),
    Let(Let),
    Loss(Expression),
    Output { name: Ident, array: Option<ArrayType>, value: Expression },
    Option { name: Ident, value: Ident },
}

/// `input x: csr[n, d]` or `label y: dense[n, 1]`.
pub(crate) struct Input {
    pub(crate) docs: Vec<Attribute>,
    pub(crate) is_label: bool,
    pub(crate) name: Ident,
    pub(crate) array: ArrayType,
}

/// `param w: row_sparse[d, 1] = Normal { mean: 0.0, std: 0.01 }`.
pub(crate) struct Parameter {
    pub(crate) docs: Vec<Attribute>,
    pub(crate) frozen: bool,
    pub(crate) name: Ident,
    pub(crate) array: ArrayType,
    pub(crate) initializer: Initializer,
}

/// The initializer of a parameter: its name, and all of it as written.
pub(crate) struct Initializer {
    pub(crate) name: Ident,
    pub(crate) tokens: TokenStream,
}

/// `let pred = dot(x, w) + b`.
pub(crate) struct Let {
    pub(crate) name: Ident,
    pub(crate) array: Option<ArrayType>,
    pub(crate) value: Expression,
}

/// `csr<f64>[n, d]`.
pub(crate) struct ArrayType {
    pub(crate) storage: Ident,
    pub(crate) element: Option<Ident>,
    pub(crate) dims: Vec<Extent>,
    pub(crate) span: Span,
}

/// One extent of a type.
pub(crate) enum Extent {
    Name(Ident),
    Size(u64),
    Inferred,
}

/// An expression.
pub(crate) struct Expression {
    pub(crate) span: Span,
    pub(crate) kind: ExpressionKind,
}

/// What an expression is.
pub(crate) enum ExpressionKind {
    Name(Ident),
    Number(f64),
    /// Operators written as signs are calls by their names.
    Call {
        operator: Ident,
        operands: Vec<Expression>,
        /// `name = value`: attributes, and operands that are given by name.
        attributes: Vec<(Ident, AttributeText)>,
    },
    /// Something that was already reported.
    Broken,
}

/// The value of an attribute as written.
pub(crate) enum AttributeText {
    Word(Ident),
    Flag(bool),
    Integer(i64),
    Number(f64),
    /// `[0, _]`
    List(Vec<Option<i64>>),
    /// A value of the model that has no name, for an operand.
    Expression(Expression),
    Other,
}
