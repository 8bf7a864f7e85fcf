//! Scalar functions of the operator table, as kernels of a GPU take them.

use crate::device::cuda::{Launch, Word};
use nnz_device::cuda::{formula_of_numbers, numbers};
use sparse_core::ir::{AttributeValue, Attributes, Number};
use sparse_core::operators::{Kind, Operator, find};

/// How many attributes that are numbers a kernel takes: as many as the prelude's `numbers` has.
const MOST_NUMBERS: usize = 4;

/// The function of an element-wise operator with its attributes: what a CPU kernel takes as a
/// closure.
///
/// ```
/// use nnz::core::ir::Attributes;
/// use nnz::core::operators::find;
/// use nnz::kernels::cuda::ScalarFunction;
/// let of = |name| ScalarFunction::new(find(name)?, &Attributes::default());
/// assert!(of("tanh").is_some() && of("multiply").is_some());
/// // A product of matrices is no function of elements.
/// assert!(of("dot").is_none());
/// ```
#[derive(Clone, Copy, Debug)]
pub struct ScalarFunction {
    operator: &'static Operator,
    formula: &'static str,
    operands: [&'static str; 2],
    numbers: Numbers,
}

/// The attributes of an operator that are numbers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Numbers([f64; MOST_NUMBERS]);

impl Numbers {
    /// `None` where a required one is not given.
    pub(crate) fn new(operator: &Operator, attributes: &Attributes) -> Option<Self> {
        let mut given = [0.0; MOST_NUMBERS];
        for (position, name) in numbers(operator).enumerate() {
            *given.get_mut(position)? = operator.number(attributes, name)?;
        }
        Some(Numbers(given))
    }

    /// As a launch takes them.
    pub fn read_by<'l>(&self, launch: Launch<'l>) -> Launch<'l> {
        launch.record("numbers", &self.0.map(f64::to_bits))
    }
}

impl ScalarFunction {
    /// The function of an operator; `None` for one that is not element-wise, and where a required
    /// attribute is not given.
    pub fn new(operator: &'static Operator, attributes: &Attributes) -> Option<Self> {
        let (formula, operands) = match operator.kind {
            Kind::Unary(formula) => (formula, ["x", "y"]),
            Kind::Binary(family, formula) if family.is_gradient() => {
                (formula, ["g", operator.operands[1]])
            }
            Kind::Binary(_, formula) => (formula, ["x", "y"]),
            _ => return None,
        };
        let numbers = Numbers::new(operator, attributes)?;
        Some(ScalarFunction { operator, formula, operands, numbers })
    }

    /// Of two elements the first one times a number.
    pub(crate) fn first_times(number: f64) -> Option<Self> {
        let operator = find("scale_gradient")?;
        let mut attributes = Attributes::default();
        attributes.set("factor", AttributeValue::Number(Number(number)));
        let numbers = Numbers::new(operator, &attributes)?;
        let (formula, operands) = ("x * factor", ["x", "y"]);
        Some(ScalarFunction { operator, formula, operands, numbers })
    }

    /// The words of a text: the formula, and its variables in the order of the operands.
    pub(crate) fn words(&self) -> [(&'static str, Word); 3] {
        [
            ("FORMULA", Word::Formula(self.operator, self.formula)),
            ("FIRST", Word::Name(self.operands[0])),
            ("SECOND", Word::Name(self.operands[1])),
        ]
    }

    /// A function of a text by this name, of one element or of two, with the attributes in it.
    /// `None` where one of these is not finite.
    pub fn function(&self, name: &str) -> Option<String> {
        let Numbers(numbers) = &self.numbers;
        numbers.iter().all(|number| number.is_finite()).then_some(())?;
        let formula = formula_of_numbers(self.operator, self.formula, numbers);
        let [first, second] = self.operands;
        let second = match self.operator.kind {
            Kind::Unary(_) => String::new(),
            _ => format!(", REAL {second}"),
        };
        Some(format!("__device__ inline REAL {name}(REAL {first}{second}) {{ return {formula}; }}"))
    }

    /// The attributes, as a launch takes them.
    pub(crate) fn read_by<'l>(&self, launch: Launch<'l>) -> Launch<'l> {
        self.numbers.read_by(launch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sparse_core::operators::{AttributeKind, all};

    #[test]
    fn every_element_wise_operator_has_one() {
        for operator in all() {
            let is_element_wise = matches!(operator.kind, Kind::Unary(_) | Kind::Binary(..));
            let mut attributes = Attributes::default();
            for attribute in operator.attributes {
                if attribute.kind == AttributeKind::Number(None) {
                    attributes.set(attribute.name, AttributeValue::Number(Number(0.5)));
                }
            }
            let function = ScalarFunction::new(operator, &attributes);
            assert_eq!(function.is_some(), is_element_wise, "{}", operator.name);
        }
    }
}
