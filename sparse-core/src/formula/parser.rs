//! Parser of formulas, by precedence climbing.

use super::{AttributeFormula, BinaryOperator, Formula};

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
        let end = if rest.starts_with('{') {
            rest.find('}').map_or(rest.len(), |end| end + 1)
        } else {
            rest.find(|c: char| !is_part(c)).unwrap_or(rest.len())
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
    fn formulas_parse_by_precedence() {
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
