//! The one expression grammar of the operator table.
//!
//! Gradients are formulas over operators (`dot(grad, rhs, transpose_rhs = !transpose_rhs)`); element-wise
//! functions are formulas over scalars (`1 / (1 + exp(-x))`). Both are this grammar; who reads a formula
//! decides what a call means.

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
    const ALL: [BinaryOperator; 10] = [
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

    fn binding(self) -> u8 {
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

/// Parses a formula.
///
/// # Errors
///
/// What was expected, and where, in words: formulas are written by the authors of operators.
pub fn parse(text: &str) -> Result<Formula, String> {
    let mut parser = Parser { text, at: 0 };
    let formula = parser.expression(0)?;
    match parser.peek() {
        None => Ok(formula),
        Some(other) => Err(format!("`{text}`: unexpected `{other}` at {}", parser.at)),
    }
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

    /// A scalar formula whose parts without names are numbers.
    #[must_use]
    pub fn folded(self) -> Formula {
        if let Formula::Number(_) | Formula::Name(_) = self {
            return self;
        }
        if let Ok(number) = crate::operators::scalar::value(&self, &|_| None) {
            return Formula::Number(number);
        }
        let inner = |formula: Box<Formula>| Box::new(formula.folded());
        match self {
            Formula::Negate(of_it) => Formula::Negate(inner(of_it)),
            Formula::Binary(operator, lhs, rhs) => {
                Formula::Binary(operator, inner(lhs), inner(rhs))
            }
            Formula::Call(name, operands, attributes) => {
                let operands = operands.into_iter().map(Formula::folded).collect();
                Formula::Call(name, operands, attributes)
            }
            other => other,
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

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Parser<'a> {
    fn peek(&mut self) -> Option<char> {
        let rest = &self.text[self.at..];
        let trimmed = rest.trim_start();
        self.at += rest.len() - trimmed.len();
        trimmed.chars().next()
    }

    fn eat(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        if found {
            self.at += wanted.len_utf8();
        }
        found
    }

    fn expect(&mut self, wanted: char) -> Result<(), String> {
        if self.eat(wanted) {
            return Ok(());
        }
        Err(format!("`{}`: expected `{wanted}` at {}", self.text, self.at))
    }

    fn word(&mut self) -> &'a str {
        self.peek();
        let rest = &self.text[self.at..];
        let is_part = |c: char| c.is_alphanumeric() || "_.:".contains(c);
        // An expression of Rust is a name in braces.
        let end = match rest.starts_with('{') {
            true => rest.find('}').map_or(rest.len(), |end| end + 1),
            false => rest.find(|c: char| !is_part(c)).unwrap_or(rest.len()),
        };
        self.at += end;
        &rest[..end]
    }

    fn expression(&mut self, least: u8) -> Result<Formula, String> {
        let mut lhs = if self.eat('-') {
            Formula::Negate(Box::new(self.expression(4)?))
        } else {
            self.atom()?
        };
        loop {
            self.peek();
            let rest = &self.text[self.at..];
            let found =
                BinaryOperator::ALL.into_iter().find(|sign| rest.starts_with(sign.symbol()));
            let Some(operator) = found else { return Ok(lhs) };
            if operator.binding() <= least {
                return Ok(lhs);
            }
            self.at += operator.symbol().len();
            let rhs = self.expression(operator.binding())?;
            lhs = Formula::Binary(operator, Box::new(lhs), Box::new(rhs));
        }
    }

    fn atom(&mut self) -> Result<Formula, String> {
        if self.eat('(') {
            let inner = self.expression(0)?;
            self.expect(')')?;
            return Ok(inner);
        }
        let start = self.at;
        let word = self.word();
        if word.starts_with(|c: char| c.is_ascii_digit()) {
            return word.parse().map(Formula::Number).map_err(|_| self.bad(start, "a number"));
        }
        if word.is_empty() {
            return Err(self.bad(start, "an expression"));
        }
        if !self.eat('(') {
            return Ok(Formula::Name(word.to_owned()));
        }
        let (mut operands, mut attributes) = (Vec::new(), Vec::new());
        while !self.eat(')') {
            match self.attribute()? {
                Some(attribute) => attributes.push(attribute),
                None => operands.push(self.expression(0)?),
            }
            if !self.eat(',') {
                self.expect(')')?;
                break;
            }
        }
        Ok(Formula::Call(word.to_owned(), operands, attributes))
    }

    /// `name = value`, if that is what comes next.
    fn attribute(&mut self) -> Result<Option<(String, AttributeFormula)>, String> {
        self.peek();
        let start = self.at;
        let name = self.word();
        self.peek();
        let compares = self.text[self.at..].starts_with("==");
        if name.is_empty() || compares || !self.eat('=') {
            self.at = start;
            return Ok(None);
        }
        let negated = self.eat('!');
        let minus = if self.eat('-') { -1.0 } else { 1.0 };
        let value_start = self.at;
        let value = match (negated, self.word()) {
            (_, "") => return Err(self.bad(value_start, "a value")),
            (true, flag) => AttributeFormula::Not(flag.to_owned()),
            (false, "true") => AttributeFormula::Flag(true),
            (false, "false") => AttributeFormula::Flag(false),
            (false, word) => match word.parse::<f64>() {
                Ok(number) => AttributeFormula::Number(minus * number),
                Err(_) => AttributeFormula::Same(word.to_owned()),
            },
        };
        Ok(Some((name.to_owned(), value)))
    }

    fn bad(&self, at: usize, wanted: &str) -> String {
        format!("`{}`: expected {wanted} at {at}", self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn precedence_and_attributes() {
        let show = |text: &str| parse(text).unwrap().to_string();
        assert_eq!(show("1 - y*y"), "(1 - (y * y))");
        assert_eq!(show("a - b - c"), "((a - b) - c)");
        assert_eq!(show("-x * 2 > 0"), "((-(x) * 2) > 0)");
        assert_eq!(
            show("dot(grad, rhs, transpose_rhs = !transpose_rhs, transpose_lhs = true)"),
            "dot(grad, rhs, transpose_rhs = !transpose_rhs, transpose_lhs = true)"
        );
        assert_eq!(show("1 / (1 + exp(-x))"), "(1 / (1 + exp(-(x))))");
        assert_eq!(show("x >= 1 - y"), "(x >= (1 - y))");
        assert_eq!(show("f(x == 1, axis = -1)"), "f((x == 1), axis = -1)");
    }

    #[test]
    fn parts_without_names_are_folded_and_names_are_replaced() {
        let formula = parse("x / sqrt(2 + 2) + crate::K * {2 * L}").unwrap();
        assert_eq!(formula.names(), ["x", "crate::K", "{2 * L}"]);
        assert_eq!(formula.clone().folded().bare(), "(x / 2) + (crate::K * {2 * L})");
        let number = |name: &str| (name != "x").then_some(Formula::Number(3.0));
        assert_eq!(formula.with(&number).folded().bare(), "(x / 2) + 9");
        assert_eq!(parse("2 * 3 > 5").unwrap().folded(), Formula::Number(1.0));
        assert!(parse("min(max(0, L), U) == 0").unwrap().is_constant());
        assert!(!parse("pow(2, K)").unwrap().is_constant());
    }

    #[test]
    fn nonsense_is_refused_with_a_place() {
        assert_eq!(parse("1 +").unwrap_err(), "`1 +`: expected an expression at 3");
        assert_eq!(parse("f(x").unwrap_err(), "`f(x`: expected `)` at 3");
        assert_eq!(parse("x y").unwrap_err(), "`x y`: unexpected `y` at 2");
    }
}
