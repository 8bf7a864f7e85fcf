//! Gradient formulas computed at the places that a sparse value stores, and nowhere else.
//!
//! The gradient of a sparse value is read where
//! [`GradientPlaces`](super::csr_patterns::GradientPlaces) says. A formula for it is made of
//! operators that compute each element by itself: of these each has the places of its operands.
//! Products and repetitions have an operator that computes them at given places
//! ([`Operator::at_pattern`](crate::operators::Operator::at_pattern)). What is left is computed as
//! it stands.

use super::instantiate::{Scope, Step, attributes, called, derived, instantiate, step};
use crate::diagnostics::Diagnostic;
use crate::formula::Formula;
use crate::ir::{Attributes, Graph, Place, ValueId};
use crate::operators::{BinaryFamily, Kind, Operator};
use crate::storage::Storage;

/// What a part of a formula is.
#[derive(Clone, Copy, Debug)]
enum Operand {
    /// A number, or a dense array that is repeated to the shape of the pattern.
    Repeated(ValueId),
    /// A dense array of its shape.
    Dense(ValueId),
    /// An array of its shape and storage, right at its places.
    Stored(ValueId),
    /// Something else, which an operator makes a part of.
    Other(ValueId),
}

/// Appends a formula as a sparse value that is right at the places which `pattern` stores.
pub(super) fn instantiate_at(
    graph: &mut Graph,
    formula: &Formula,
    scope: &Scope<'_>,
    pattern: ValueId,
    place: Place,
    diagnostics: &mut Vec<Diagnostic>,
) -> Result<ValueId, String> {
    let mut at = AtPattern { graph, scope, pattern, place, diagnostics };
    let part = at.part(formula)?;
    Ok(match part {
        Operand::Other(id) => id,
        part => at.stored(part),
    })
}

impl Operand {
    fn id(&self) -> ValueId {
        match *self {
            Operand::Repeated(id)
            | Operand::Dense(id)
            | Operand::Stored(id)
            | Operand::Other(id) => id,
        }
    }
}

struct AtPattern<'a> {
    graph: &'a mut Graph,
    scope: &'a Scope<'a>,
    pattern: ValueId,
    place: Place,
    diagnostics: &'a mut Vec<Diagnostic>,
}

impl AtPattern<'_> {
    fn part(&mut self, formula: &Formula) -> Result<Operand, String> {
        let (name, operands, given) = match step(self.graph, formula, self.scope, self.place)? {
            Step::Value(id) => return Ok(self.classify(id)),
            Step::Call(call) => call,
        };
        let operator = called(self.graph, self.scope, name)?;
        let attributes = attributes(operator, given, self.scope)?;
        let each = match operator.kind {
            Kind::Unary(_) => true,
            Kind::Binary(..) => operands.len() == 2,
            Kind::Declared(_, kernel) => kernel != crate::operators::DeclaredKernel::OfRule,
            _ => false,
        };
        if each {
            let parts = operands.iter().map(|operand| self.part(operand));
            let parts = parts.collect::<Result<Vec<_>, _>>()?;
            return Ok(self.each(operator, &parts, attributes));
        }
        if let (true, [inner, like]) = (operator.undoes_broadcasting, &operands[..]) {
            let part = self.part(inner)?;
            let like = instantiate(self.graph, like, self.scope, self.place, self.diagnostics)?;
            if self.graph.shape(part.id()) == self.graph.shape(like) {
                return Ok(part);
            }
            let operands = vec![part.id(), like];
            return Ok(self.call(operator, operands, attributes));
        }
        let mut values = Vec::new();
        for operand in operands {
            let scope = self.scope;
            values.push(instantiate(self.graph, operand, scope, self.place, self.diagnostics)?);
        }
        if let Some(part) = self.given_places(operator, &values, &attributes) {
            return Ok(part);
        }
        Ok(self.call(operator, values, attributes))
    }

    /// By the operator that computes the same at the places of a pattern, where it has a rule for
    /// the operands.
    fn given_places(
        &mut self,
        operator: &'static Operator,
        operands: &[ValueId],
        attributes: &Attributes,
    ) -> Option<Operand> {
        let at_pattern = self.graph.operator(operator.at_pattern?)?;
        let given = operands.iter().enumerate();
        let given = given.filter(|(index, _)| !operator.lends_shape_only(*index));
        let mut operands: Vec<ValueId> = given.map(|(_, id)| *id).collect();
        operands.push(self.pattern);
        let mut kept = Attributes::default();
        for (name, value) in attributes.iter() {
            if let Some(known) = at_pattern.attribute(name) {
                kept.set(known.name, value);
            }
        }
        let (values, mut refused) = (self.graph.values.len(), Vec::new());
        let mark = self.graph.unify.mark();
        let id = derived(self.graph, at_pattern.name, operands, kept, self.place, &mut refused);
        // Nor does a fallback make an operand dense for it.
        let converts = self.graph.values[values..].iter().any(|value| value.inserted);
        let fits = refused.is_empty() && !converts && self.has_shape(id);
        if fits {
            self.graph.unify.keep(mark);
        } else {
            self.graph.values.truncate(values);
            self.graph.unify.undo(mark);
        }
        fits.then_some(Operand::Stored(id))
    }

    /// A function of each element.
    fn each(
        &mut self,
        operator: &'static Operator,
        parts: &[Operand],
        with: Attributes,
    ) -> Operand {
        use BinaryFamily as Family;
        let is_stored = |part: &Operand| matches!(part, Operand::Stored(_));
        let is_small = |part: &Operand| matches!(part, Operand::Repeated(_));
        let family = match operator.kind {
            Kind::Binary(family, _) => Some(family),
            _ => None,
        };
        if parts.iter().all(is_small) || parts.iter().any(|part| matches!(part, Operand::Other(_)))
        {
            return self.call(operator, parts.iter().map(Operand::id).collect(), with);
        }
        match (parts, family) {
            ([one], _) => {
                let stored = self.stored(*one);
                self.call(operator, vec![stored], with)
            }
            ([lhs, rhs], Some(Family::Intersection)) if is_stored(lhs) || is_stored(rhs) => {
                self.call(operator, vec![lhs.id(), rhs.id()], with)
            }
            ([lhs, rhs], Some(Family::Intersection)) => {
                let stored = self.stored(*lhs);
                self.call(operator, vec![stored, rhs.id()], with)
            }
            ([lhs, rhs], Some(Family::Left)) => {
                let stored = self.stored(*lhs);
                let by_places = operator.where_stored.filter(|_| is_stored(rhs));
                let by_places = by_places.and_then(|name| self.graph.operator(name));
                self.call(by_places.unwrap_or(operator), vec![stored, rhs.id()], with)
            }
            ([lhs, rhs], Some(Family::Dense)) => {
                // Of a number, a function may keep zeros; if not, it is computed where something
                // is stored.
                let number = self.graph.number_of(rhs.id());
                let stored = self.stored(*lhs);
                let Some(number) = number else {
                    let rhs = self.stored(*rhs);
                    return self.call(operator, vec![stored, rhs], with);
                };
                let zero = Formula::Number(0.0);
                let stays = operator.elementwise_of(&with, &[zero.clone(), number]) == Ok(zero);
                let by_places = operator.where_stored.filter(|_| !stays);
                let by_places = by_places.and_then(|name| self.graph.operator(name));
                self.call(by_places.unwrap_or(operator), vec![stored, rhs.id()], with)
            }
            (parts, _) => {
                let parts = parts.iter().map(|part| self.stored(*part)).collect();
                self.call(operator, parts, with)
            }
        }
    }

    /// A part in the storage of the pattern.
    fn stored(&mut self, part: Operand) -> ValueId {
        match part {
            Operand::Stored(id) | Operand::Other(id) => id,
            Operand::Repeated(id) | Operand::Dense(id) => {
                let (none, operands) = (Attributes::default(), vec![id, self.pattern]);
                derived(self.graph, "broadcast_at", operands, none, self.place, self.diagnostics)
            }
        }
    }

    fn call(
        &mut self,
        operator: &'static Operator,
        operands: Vec<ValueId>,
        attributes: Attributes,
    ) -> Operand {
        let (place, said) = (self.place, &mut *self.diagnostics);
        let id = derived(self.graph, operator.name, operands, attributes, place, said);
        self.classify(id)
    }

    fn classify(&mut self, id: ValueId) -> Operand {
        let (own, wanted) = (self.graph.shape(id), self.graph.shape(self.pattern));
        let repeats = own.len() <= wanted.len() && {
            let pairs = own.iter().rev().zip(wanted.iter().rev());
            let one = crate::shapes::Dim::Size(1);
            pairs.into_iter().all(|(own, wanted)| own == wanted || *own == one)
        };
        let (storage, pattern) = (self.graph.storage(id), self.graph.storage(self.pattern));
        match storage {
            Storage::Dense if own == wanted => Operand::Dense(id),
            Storage::Dense if repeats => Operand::Repeated(id),
            _ if storage == pattern && own == wanted => Operand::Stored(id),
            // The gradient of a conversion: entries are rows with zeros in them.
            Storage::Csr | Storage::RowSparse if own == wanted => {
                let (none, place) = (Attributes::default(), self.place);
                let cast = pattern.name();
                Operand::Stored(derived(self.graph, cast, vec![id], none, place, self.diagnostics))
            }
            _ => Operand::Other(id),
        }
    }

    fn has_shape(&self, id: ValueId) -> bool {
        !self.graph.value(id).broken && self.graph.shape(id) == self.graph.shape(self.pattern)
    }
}
