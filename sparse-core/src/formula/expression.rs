//! Formulas: numbers, names, signs and calls.

use std::fmt;

/// A parsed formula.
#[derive(Clone, Debug, PartialEq)]
pub enum Formula {
    /// A number.
    Number(f64),
    /// An operand, `grad`, `out`, or a scalar variable.
    Name(String),
    /// Unary minus.
    Negate(Box<Formula>),
    /// `lhs operator rhs`.
    Binary(BinaryOperator, Box<Formula>, Box<Formula>),
    /// `name(operands, attribute = value)`.
    Call(String, Vec<Formula>, Vec<(String, AttributeFormula)>),
}

/// An infix operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BinaryOperator {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
    /// `>`: 1 where it holds, 0 where it does not.
    Greater,
    /// `<`
    Less,
    /// `>=`
    GreaterEqual,
    /// `<=`
    LessEqual,
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
}

impl BinaryOperator {
    /// All signs, the longer before those that they begin with.
    pub(super) const ALL: [BinaryOperator; 10] = [
        BinaryOperator::GreaterEqual,
        BinaryOperator::LessEqual,
        BinaryOperator::Equal,
        BinaryOperator::NotEqual,
        BinaryOperator::Add,
        BinaryOperator::Subtract,
        BinaryOperator::Multiply,
        BinaryOperator::Divide,
        BinaryOperator::Greater,
        BinaryOperator::Less,
    ];

    /// The comparison of two numbers that the sign is; `None` for arithmetic.
    pub fn comparison(self) -> Option<fn(f64, f64) -> bool> {
        Some(match self {
            BinaryOperator::Greater => |x, y| x > y,
            BinaryOperator::Less => |x, y| x < y,
            BinaryOperator::GreaterEqual => |x, y| x >= y,
            BinaryOperator::LessEqual => |x, y| x <= y,
            BinaryOperator::Equal => |x, y| x == y,
            BinaryOperator::NotEqual => |x, y| x != y,
            _ => return None,
        })
    }

    /// The sign.
    pub fn symbol(self) -> &'static str {
        match self {
            BinaryOperator::Add => "+",
            BinaryOperator::Subtract => "-",
            BinaryOperator::Multiply => "*",
            BinaryOperator::Divide => "/",
            BinaryOperator::Greater => ">",
            BinaryOperator::Less => "<",
            BinaryOperator::GreaterEqual => ">=",
            BinaryOperator::LessEqual => "<=",
            BinaryOperator::Equal => "==",
            BinaryOperator::NotEqual => "!=",
        }
    }

    /// The operator of the table that the sign stands for in a formula over operators.
    pub fn operator_name(self) -> &'static str {
        match self {
            BinaryOperator::Add => "add",
            BinaryOperator::Subtract => "subtract",
            BinaryOperator::Multiply => "multiply",
            BinaryOperator::Divide => "divide",
            BinaryOperator::Greater => "greater",
            BinaryOperator::Less => "less",
            BinaryOperator::GreaterEqual => "greater_equal",
            BinaryOperator::LessEqual => "less_equal",
            BinaryOperator::Equal => "equal",
            BinaryOperator::NotEqual => "not_equal",
        }
    }

    pub(super) fn binding(self) -> u8 {
        match self {
            _ if self.comparison().is_some() => 1,
            BinaryOperator::Add | BinaryOperator::Subtract => 2,
            _ => 3,
        }
    }
}

/// The sign that stands for an operator of the table in a formula: `<` for `less`.
pub fn sign_of(operator: &str) -> Option<&'static str> {
    let sign = BinaryOperator::ALL.into_iter().find(|sign| sign.operator_name() == operator);
    sign.map(BinaryOperator::symbol)
}

/// The value of an attribute in a formula.
#[derive(Clone, Debug, PartialEq)]
pub enum AttributeFormula {
    /// The attribute of this name of the operator whose gradient this is.
    Same(String),
    /// The opposite of that flag.
    Not(String),
    /// `true` or `false`.
    Flag(bool),
    /// A number.
    Number(f64),
}

impl fmt::Display for Formula {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Formula::Number(value) => write!(f, "{value}"),
            Formula::Name(name) => f.write_str(name),
            Formula::Negate(inner) => write!(f, "-({inner})"),
            Formula::Binary(operator, lhs, rhs) => write!(f, "({lhs} {} {rhs})", operator.symbol()),
            Formula::Call(name, operands, attributes) => {
                write!(f, "{name}(")?;
                for (i, operand) in operands.iter().enumerate() {
                    write!(f, "{}{operand}", if i > 0 { ", " } else { "" })?;
                }
                for (attribute, value) in attributes {
                    match value {
                        AttributeFormula::Same(name) => write!(f, ", {attribute} = {name}")?,
                        AttributeFormula::Not(name) => write!(f, ", {attribute} = !{name}")?,
                        AttributeFormula::Flag(flag) => write!(f, ", {attribute} = {flag}")?,
                        AttributeFormula::Number(number) => write!(f, ", {attribute} = {number}")?,
                    }
                }
                f.write_str(")")
            }
        }
    }
}

impl Formula {
    /// The formula with others in place of names: of those that `of` knows.
    #[must_use]
    pub fn with(&self, of: &dyn Fn(&str) -> Option<Formula>) -> Formula {
        let inner = |formula: &Formula| Box::new(formula.with(of));
        match self {
            Formula::Number(_) => self.clone(),
            Formula::Name(name) => of(name).unwrap_or_else(|| self.clone()),
            Formula::Negate(of_it) => Formula::Negate(inner(of_it)),
            Formula::Binary(operator, lhs, rhs) => {
                Formula::Binary(*operator, inner(lhs), inner(rhs))
            }
            Formula::Call(name, operands, attributes) => {
                let operands = operands.iter().map(|operand| operand.with(of)).collect();
                Formula::Call(name.clone(), operands, attributes.clone())
            }
        }
    }

    /// The names in it, each once, in the order of first use.
    pub fn names(&self) -> Vec<&str> {
        let (mut names, mut open) = (Vec::new(), vec![self]);
        while let Some(formula) = open.pop() {
            match formula {
                Formula::Number(_) => {}
                Formula::Name(name) if names.contains(&name.as_str()) => {}
                Formula::Name(name) => names.push(name.as_str()),
                Formula::Negate(inner) => open.push(inner),
                Formula::Binary(_, lhs, rhs) => open.extend([&**rhs, &**lhs]),
                Formula::Call(_, operands, _) => open.extend(operands.iter().rev()),
            }
        }
        names
    }

    /// Whether Rust can compute it while it compiles: arithmetic, comparisons, and functions that
    /// are choices among numbers.
    pub fn is_constant(&self) -> bool {
        const CHOICES: [&str; 4] = ["max", "min", "abs", "select"];
        match self {
            Formula::Number(_) | Formula::Name(_) => true,
            Formula::Negate(inner) => inner.is_constant(),
            Formula::Binary(_, lhs, rhs) => lhs.is_constant() && rhs.is_constant(),
            Formula::Call(name, operands, _) => {
                CHOICES.contains(&name.as_str()) && operands.iter().all(Formula::is_constant)
            }
        }
    }

    /// The text without the parentheses around all of it.
    pub fn bare(&self) -> String {
        let text = self.to_string();
        match self {
            Formula::Binary(..) => text[1..text.len() - 1].to_owned(),
            _ => text,
        }
    }
}
