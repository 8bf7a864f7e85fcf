//! Builder of graphs: values are appended through these functions only.

use super::{Apply, Attributes, Graph, Kind, Place, Value, ValueId};
use crate::formula::Formula;
use crate::operators::{self, Operator, Placement};
use crate::shapes::Dims;
use crate::storage::{ElementType, Storage};

impl Graph {
    /// Appends a declared value.
    pub fn declare(
        &mut self,
        kind: Kind,
        name: &str,
        storage: Storage,
        element: ElementType,
        shape: Dims,
        place: Place,
    ) -> ValueId {
        self.push(Value {
            kind,
            name: Some(name.to_owned()),
            place,
            element,
            shape: Some(shape),
            storage: Some(storage),
            annotation: None,
            inserted: false,
            broken: false,
        })
    }

    /// Appends a number.
    pub fn constant(&mut self, number: f64, place: Place) -> ValueId {
        self.number(Formula::Number(number), place)
    }

    /// Appends a number that is seen, or known later: a formula in names of dimensions and
    /// constants of Rust.
    pub fn number(&mut self, number: Formula, place: Place) -> ValueId {
        let element = self.element();
        self.push(Value {
            kind: match number.folded() {
                Formula::Number(number) => Kind::Constant(number),
                formula => Kind::Named(formula),
            },
            name: None,
            place,
            element,
            shape: Some(Vec::new()),
            storage: Some(Storage::Dense),
            annotation: None,
            inserted: false,
            broken: false,
        })
    }

    /// Appends an operator application, after the rewrites that need no inference: arithmetic on
    /// numbers, `transpose` inside `dot`, `transpose(transpose(x))`, multiplication by 1, addition
    /// of 0.
    pub fn apply(
        &mut self,
        mut operator: &'static Operator,
        mut operands: Vec<ValueId>,
        mut attributes: Attributes,
        place: Place,
    ) -> ValueId {
        // Two by two, the results so far on the left.
        if let Some(join) = operator.chain.filter(|_| operands.len() > 2).and_then(operators::find)
        {
            let rest = operands.split_off(2);
            let first = self.apply(operator, operands, attributes.clone(), place);
            return rest.into_iter().fold(first, |joined, next| {
                self.apply(join, vec![joined, next], attributes.clone(), place)
            });
        }
        if operator.chain.is_some() && operands.len() == 1 {
            return match operator.chain_of_one.and_then(operators::find) {
                Some(of_one) => self.apply(of_one, operands, attributes, place),
                None => operands[0],
            };
        }
        if let Some(number) = self.fold(operator, &operands, &attributes) {
            return self.number(number, place);
        }
        if let Some(mirror) = operator.mirror.and_then(operators::find)
            && self.is_number(operands[0])
        {
            operands.swap(0, 1);
            operator = mirror;
        }
        if operator.placement == Placement::Transposed
            && let Some(transposed) = self.transposed_by(operands[0])
        {
            return transposed;
        }
        for (side, neutral) in operator.neutral.iter().enumerate() {
            if neutral.is_some() && self.constant_of(operands[side]) == *neutral {
                return operands[1 - side];
            }
        }
        for (index, operand) in operands.iter_mut().enumerate() {
            let Some(flag) = operator.transpose_flag(index) else {
                continue;
            };
            if let Some(transposed) = self.transposed_by(*operand) {
                *operand = transposed;
                attributes.flip(flag);
            }
        }
        let element = self.element();
        let broken = operands.iter().any(|operand| self.value(*operand).broken);
        self.push(Value {
            kind: Kind::Apply(Apply { operator, operands, attributes, rule: None }),
            name: None,
            place,
            element,
            shape: None,
            storage: None,
            annotation: None,
            inserted: false,
            broken,
        })
    }

    /// The matrix that a value is the transpose of, if it is one.
    fn transposed_by(&self, id: ValueId) -> Option<ValueId> {
        let apply = self.apply_of(id)?;
        (apply.operator.placement == Placement::Transposed).then(|| apply.operands[0])
    }

    /// Appends a value as it is.
    pub fn push(&mut self, value: Value) -> ValueId {
        self.values.push(value);
        ValueId(self.values.len() - 1)
    }

    /// The value of an element-wise operator whose operands are all numbers.
    fn fold(
        &self,
        operator: &Operator,
        operands: &[ValueId],
        attributes: &Attributes,
    ) -> Option<Formula> {
        let numbers: Vec<Formula> =
            operands.iter().map(|operand| self.number_of(*operand)).collect::<Option<_>>()?;
        operator.elementwise_of(attributes, &numbers).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operators::find;

    #[test]
    fn operators_that_change_nothing_are_left_out() {
        let mut graph = Graph::new("M", ElementType::F32);
        let (place, shape) = (Place(0), vec![crate::shapes::Dim::Size(2); 2]);
        let x = graph.declare(Kind::Input, "x", Storage::Csr, ElementType::F32, shape, place);
        let (zero, one) = (graph.constant(0.0, place), graph.constant(1.0, place));
        let mut apply = |name, operands: [ValueId; 2]| {
            graph.apply(find(name).unwrap(), operands.to_vec(), Attributes::default(), place)
        };
        for (name, operands) in [
            ("add", [x, zero]),
            ("add", [zero, x]),
            ("subtract", [x, zero]),
            ("multiply", [x, one]),
            ("multiply", [one, x]),
        ] {
            assert_eq!(apply(name, operands), x, "{name}");
        }
        assert_ne!(apply("subtract", [zero, x]), x);
        assert_ne!(apply("add", [x, one]), x);
    }
}
