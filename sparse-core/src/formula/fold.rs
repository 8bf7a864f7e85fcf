//! Constant folding of scalar formulas.

use super::Formula;
use super::scalar::value;

impl Formula {
    /// A scalar formula whose parts without names are numbers.
    #[must_use]
    pub fn folded(self) -> Formula {
        if let Formula::Number(_) | Formula::Name(_) = self {
            return self;
        }
        if let Ok(number) = value(&self, &|_| None) {
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
}
