//! The syntax tree: the user's source, with spans and nothing decided.

use crate::arithmetic::Arithmetic;
use proc_macro2::{Span, TokenStream};
use sparse_core::ir::NamedList;
use std::rc::Rc;
use syn::{Attribute, Ident, Path, Visibility};

/// Everything in one `graph!`.
#[derive(Default)]
pub(crate) struct Source {
    pub(crate) models: Vec<Model>,
    pub(crate) blocks: Vec<Block>,
    pub(crate) operators: Vec<Operator>,
    /// The names of blocks and operators that did not parse.
    pub(crate) lost: Vec<Ident>,
    /// Blocks and operators of elsewhere that were fetched.
    pub(crate) packages: Vec<Package>,
    /// Blocks and operators of elsewhere that are named.
    pub(crate) imports: Vec<Import>,
}

impl Source {
    /// Something of elsewhere whose tokens are not here yet.
    pub(crate) fn unfetched(&self) -> Option<&Import> {
        let fetched = |key: &str| self.packages.iter().any(|package| package.key == key);
        self.imports.iter().find(|import| !fetched(&import.key))
    }
}

/// `block linear(x, w, b = 0.0) { dot(x, w) + b }`.
pub(crate) struct Block {
    pub(crate) docs: Vec<Attribute>,
    pub(crate) visibility: Visibility,
    pub(crate) name: Ident,
    pub(crate) parameters: Vec<BlockParameter>,
    pub(crate) body: Vec<Statement>,
    /// The definition without documentation and visibility, to be kept for other crates.
    pub(crate) tokens: TokenStream,
    /// True where something did not parse.
    pub(crate) broken: bool,
}

/// `operator scaled(x, y) { rule dense dense -> dense = crate::scaled; gradient x = grad * y; }`.
pub(crate) struct Operator {
    pub(crate) docs: Vec<Attribute>,
    pub(crate) visibility: Visibility,
    pub(crate) name: Ident,
    pub(crate) operands: Vec<Ident>,
    pub(crate) rules: Vec<OperatorRule>,
    /// The shape rule, as text, and where it is.
    pub(crate) shape: Option<(Span, String)>,
    pub(crate) gradients: Vec<(Ident, Expression)>,
    /// `reads v by columns(x);`: tables of which some rows are read.
    pub(crate) reads: Vec<(Ident, RowNames)>,
    /// `stores by columns(x);`: the table rows of a row_sparse result.
    pub(crate) stores: Option<(Span, RowNames)>,
    /// The function of each element.
    pub(crate) each: Option<Function>,
    /// Its derivative.
    pub(crate) derivative: Option<Function>,
    pub(crate) at_zero: Option<f64>,
    pub(crate) slope_at_zero: Option<f64>,
    /// The definition without documentation and visibility, to be kept for other crates.
    pub(crate) tokens: TokenStream,
    /// True where something did not parse.
    pub(crate) broken: bool,
}

/// `rule csr dense -> dense = crate::product`.
pub(crate) struct OperatorRule {
    pub(crate) span: Span,
    /// The storage types, as text.
    pub(crate) signature: String,
    pub(crate) function: Function,
}

/// `columns(x)` or `ids(x)`: names of table rows.
pub(crate) struct RowNames {
    pub(crate) by_ids: bool,
    pub(crate) operand: Ident,
}

/// The path of a function in Rust.
pub(crate) struct Function {
    pub(crate) span: Span,
    pub(crate) path: TokenStream,
}

/// A parameter of a block, with its default.
pub(crate) struct BlockParameter {
    pub(crate) name: Ident,
    pub(crate) default: Option<AttributeText>,
}

/// A line of a block: a `let`, or the value of the block, which is the last.
pub(crate) struct Statement {
    pub(crate) binding: Option<(Ident, Option<ArrayType>)>,
    pub(crate) value: Expression,
    /// As it is written, for messages.
    pub(crate) text: String,
}

/// A block of elsewhere, as its macro gave it: what it needs comes with it.
pub(crate) struct Package {
    /// What it is called where it is used: `linear` after `use blocks::linear;`, or
    /// `blocks::linear`.
    pub(crate) key: String,
    /// Its name in `source`.
    pub(crate) name: String,
    pub(crate) source: Source,
    /// As it came.
    pub(crate) tokens: TokenStream,
}

/// `use blocks::linear;`, or `blocks::linear(…)` in an expression.
#[derive(Clone)]
pub(crate) struct Import {
    pub(crate) key: String,
    pub(crate) path: Path,
}

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

impl Model {
    /// `specialize`, and the rules that it names.
    pub(crate) fn specialized(&self) -> Option<(&Ident, &[syn::Path])> {
        self.declarations.iter().find_map(|declaration| match declaration {
            Declaration::Specialize { name, rules } => Some((name, &rules[..])),
            _ => None,
        })
    }
}

/// One line of a model.
pub(crate) enum Declaration {
    Input(Input),
    Parameter(Parameter),
    Let(Let),
    Loss(Expression),
    Output {
        docs: Vec<Attribute>,
        name: Ident,
        array: Option<ArrayType>,
        value: Expression,
    },
    /// `update mean = 0.9 * mean + 0.1 * now`.
    Update {
        name: Ident,
        value: Expression,
    },
    Option {
        name: Ident,
        value: Ident,
    },
    /// `specialize = [Sgd, Ftrl]`.
    Specialize {
        name: Ident,
        rules: Vec<syn::Path>,
    },
    Constant(Constant),
}

impl Declaration {
    /// The name of the value, constant or output that it declares.
    pub(crate) fn name(&self) -> Option<&Ident> {
        match self {
            Declaration::Input(input) => Some(&input.name),
            Declaration::Parameter(parameter) => Some(&parameter.name),
            Declaration::Let(binding) => Some(&binding.name),
            Declaration::Output { name, .. } => Some(name),
            Declaration::Constant(constant) => Some(&constant.name),
            Declaration::Loss(_)
            | Declaration::Update { .. }
            | Declaration::Option { .. }
            | Declaration::Specialize { .. } => None,
        }
    }
}

/// `const CLASSES;`, a constant in scope, or `const CLASSES: usize = 2 * PAIRS;`.
pub(crate) struct Constant {
    pub(crate) name: Ident,
    /// The type, where it is written: a `usize` is an extent.
    pub(crate) ty: Option<Ident>,
    /// The value as it is written; the name itself of one in scope.
    pub(crate) value: TokenStream,
    /// The value, where it is arithmetic.
    pub(crate) arithmetic: Option<Arithmetic>,
}

impl Constant {
    /// Whether it is a constant in scope under its own name.
    pub(crate) fn is_in_scope(&self) -> bool {
        matches!(&self.arithmetic, Some(Arithmetic::Name(name)) if *name == self.name)
    }
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
    /// Whether it decays, by `param(decay)` or `param(no_decay)`.
    pub(crate) decay: Option<bool>,
    /// True for `state`, which is frozen and has an update.
    pub(crate) is_state: bool,
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

/// `csr<f64>[n, d]`, or of an input `csr | dense[n, d]`.
pub(crate) struct ArrayType {
    pub(crate) storage: Ident,
    /// What the storage may be instead.
    pub(crate) alternatives: Vec<Ident>,
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

/// An expression. Its first operand may be as deep as a source has terms, `a + b + c`: walks follow
/// it by loops. Clones share operands.
#[derive(Clone)]
pub(crate) struct Expression {
    pub(crate) span: Span,
    pub(crate) kind: ExpressionKind,
}

impl Expression {
    /// What it is computed from, in order.
    pub(crate) fn parts(&self) -> impl DoubleEndedIterator<Item = &Expression> {
        let (operands, attributes): (&[Expression], &[_]) = match &self.kind {
            ExpressionKind::Call { operands, attributes, .. } => (operands, attributes),
            _ => (&[], &[]),
        };
        operands.iter().chain(attributes.iter().filter_map(|(_, text)| match text {
            AttributeText::Expression(value) | AttributeText::Arithmetic(_, Some(value)) => {
                Some(value)
            }
            _ => None,
        }))
    }
}

impl ExpressionKind {
    /// What it is computed from, taken out unless others share it.
    fn take_operands(&mut self, taken: &mut Vec<Expression>) {
        let ExpressionKind::Call { operands, attributes, .. } = self else { return };
        taken.extend(Rc::get_mut(operands).into_iter().flat_map(|operands| operands.drain(..)));
        for (_, text) in attributes.drain(..) {
            if let AttributeText::Expression(value) | AttributeText::Arithmetic(_, Some(value)) =
                text
            {
                taken.push(value);
            }
        }
    }
}

/// Without recursion, whatever the depth.
impl Drop for Expression {
    fn drop(&mut self) {
        let mut inner = Vec::new();
        self.kind.take_operands(&mut inner);
        while let Some(mut expression) = inner.pop() {
            expression.kind.take_operands(&mut inner);
        }
    }
}

/// What an expression is.
#[derive(Clone)]
pub(crate) enum ExpressionKind {
    Name(Ident),
    Number(f64),
    /// `crate::SCALE`, or `d as f64`.
    Arithmetic(Rc<Arithmetic>),
    /// Operators written as signs are calls by their names.
    Call {
        callee: Callee,
        operands: Rc<Vec<Expression>>,
        /// `name = value`: attributes, and operands that are given by name.
        attributes: Vec<(Ident, AttributeText)>,
    },
    /// A flag or a list, which is no value: a parameter of a block may be given one.
    Attribute(Box<AttributeText>),
    /// Something that was already reported.
    Broken,
}

/// What is called: an operator, a block, or a block by its path.
#[derive(Clone)]
pub(crate) struct Callee {
    /// The name, the last of the path.
    pub(crate) name: Ident,
    /// The path of more than a name.
    pub(crate) path: Option<String>,
}

impl Callee {
    /// As the user wrote it.
    pub(crate) fn key(&self) -> String {
        self.path.clone().unwrap_or_else(|| self.name.to_string())
    }
}

/// The value of an attribute as written.
#[derive(Clone)]
pub(crate) enum AttributeText {
    Word(Ident),
    Flag(bool),
    Integer(i64),
    Number(f64),
    /// `[0, _]`
    List(Vec<Option<i64>>),
    /// A value of the model that has no name, for an operand.
    Expression(Expression),
    /// `K + 1` or `crate::DELTA`; for an operand the value that it is there.
    Arithmetic(Rc<Arithmetic>, Option<Expression>),
    /// A list in which some entries are arithmetic: `[0, FIELDS, _]`.
    Entries(Vec<Option<Rc<Arithmetic>>>),
    /// A constant of Rust, resolved: its name in the graph.
    Named(String),
    /// A list with constants of Rust, resolved.
    NamedList(NamedList),
    Other,
}
