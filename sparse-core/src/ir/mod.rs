//! The intermediate representation: a model as values in order of computation.
//!
//! Invariant: a value's operands come before it. Passes append values or rebuild the list; they
//! never leave a hole. The representation knows no tokens: [`Place`] is an opaque number that the
//! front end turns back into a span, and that derived values inherit.

mod build;
mod text;

pub use crate::attributes::{AttributeValue, Attributes, Axes, Entry, List, NamedList, Number};
pub use text::{parse, print};

use crate::attributes::place_of;
use crate::formula::Formula;
use crate::operators::{self, Operator};
use crate::shapes::{Assumed, Dims, Substitution};
use crate::storage::{ElementType, Storage};

/// A position in [`Graph::values`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ValueId(pub usize);

/// A place in the user's source, which the front end turns into a span.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place(pub u32);

/// The treatment of an operator without a rule for its operands' storage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fallback {
    /// An error at the operator.
    #[default]
    Deny,
    /// Operands are made dense, with a warning at the operator.
    Warn,
    /// Operands are made dense; the plan shows it.
    Allow,
}

/// A model.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    /// The model's name.
    pub name: String,
    /// The place of its name.
    pub place: Place,
    /// The element type of arithmetic; `f32` where it is `None`.
    pub element: Option<ElementType>,
    /// The treatment of operators without a storage rule.
    pub fallback: Fallback,
    /// False where the source says `fuse = off`.
    pub no_fuse: bool,
    /// True where gradients of dense parameters may be csr. A caller that reads gradients and
    /// updates nothing sets it; a model's source cannot.
    pub keeps_csr_gradients: bool,
    /// The values, operands first.
    pub values: Vec<Value>,
    /// Inputs and labels that may have one of several storage types; until a
    /// [variant](crate::alternatives) is chosen they have the first.
    pub alternatives: Vec<Alternatives>,
    /// The operators that the user declares, which gradient formulas may call.
    pub operators: Vec<&'static Operator>,
    /// The losses, added up.
    pub losses: Vec<ValueId>,
    /// The places of the `loss` declarations, as far as they are known.
    pub loss_places: Vec<Place>,
    /// The outputs.
    pub outputs: Vec<Output>,
    /// The updates of states after a training step.
    pub updates: Vec<Update>,
    /// Annotations of names whose value has a name, or a declaration, of its own.
    pub claims: Vec<Claim>,
    /// The gradient of each parameter that has one, in the order of declaration.
    pub gradients: Vec<(ValueId, ValueId)>,
    /// Extents to be inferred.
    pub unify: Substitution,
    /// The assumptions about constants of Rust that are extents.
    pub assumptions: Vec<Assumption>,
    /// The assumptions about constants of Rust that are numbers.
    pub conditions: Vec<NumberCondition>,
}

/// An assumption about constants of Rust that are extents, checked by emitted code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assumption {
    /// The relation that must hold.
    pub assumed: Assumed,
    /// The operator or declaration that needs it, in words.
    pub user: String,
    /// The place of that.
    pub place: Place,
}

/// An assumption about constants of Rust that are numbers, checked by emitted code.
#[derive(Clone, Debug, PartialEq)]
pub struct NumberCondition {
    /// A formula that must not be 0: a [constant expression](Formula::is_constant) in names of
    /// constants.
    pub condition: Formula,
    /// The error message, with what to write instead.
    pub text: String,
    /// The place of the operator.
    pub place: Place,
}

/// One value.
#[derive(Clone, Debug)]
pub struct Value {
    /// How it comes about.
    pub kind: Kind,
    /// The user's name for it.
    pub name: Option<String>,
    /// The place of the expression.
    pub place: Place,
    /// The type of its elements.
    pub element: ElementType,
    /// Its shape; declared for inputs and parameters, inferred for the others.
    pub shape: Option<Dims>,
    /// Its storage; declared for inputs and parameters, inferred for the others.
    pub storage: Option<Storage>,
    /// The type annotation of a `let`, to be checked.
    pub annotation: Option<Annotation>,
    /// True for a conversion that a fallback inserted: the source does not have it.
    pub inserted: bool,
    /// True for a value that already has an error: its users say nothing more.
    pub broken: bool,
}

/// The storage types that an input may have: `csr | dense[n, d]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alternatives {
    /// The input or label.
    pub value: ValueId,
    /// More than one, in the order of the source.
    pub storages: Vec<Storage>,
}

/// How a value comes about.
#[derive(Clone, Debug)]
pub enum Kind {
    /// A batch's data, needed for everything.
    Input,
    /// A batch's data, needed for the loss only.
    Label,
    /// A parameter.
    Parameter {
        /// The initializer as written.
        initializer: String,
        /// True where it is not trained.
        frozen: bool,
        /// Whether penalties shrink it, where the declaration says so; else its uses do.
        decay: Option<bool>,
    },
    /// A number in the source.
    Constant(f64),
    /// A number that is known later: a formula in names of dimensions and constants of Rust.
    Named(Formula),
    /// An operator's result.
    Apply(Apply),
}

/// An operator applied to operands.
#[derive(Clone, Debug)]
pub struct Apply {
    /// The operator spec.
    pub operator: &'static Operator,
    /// The operands.
    pub operands: Vec<ValueId>,
    /// The attributes given.
    pub attributes: Attributes,
    /// The position of the storage rule that inference chose.
    pub rule: Option<usize>,
}

/// The bound of ids: they are smaller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdsExtent {
    /// The extent of a value along an axis.
    Axis(ValueId, usize),
    /// A number.
    Size(u64),
    /// A constant of Rust.
    Named(&'static str),
}

/// A declared type of a `let`.
#[derive(Clone, Debug, PartialEq)]
pub struct Annotation {
    /// The storage.
    pub storage: Storage,
    /// The shape.
    pub shape: Dims,
    /// The element type, if given.
    pub element: Option<ElementType>,
    /// Where it is written.
    pub place: Place,
}

/// An annotation of a name whose value is not made for it: of an output, or of a second name.
#[derive(Clone, Debug)]
pub struct Claim {
    /// The name that is annotated.
    pub name: String,
    /// The value it stands for.
    pub value: ValueId,
    /// The annotation.
    pub annotation: Annotation,
    /// The position of the output that has the name, if one has.
    pub output: Option<usize>,
}

/// An output.
#[derive(Clone, Debug)]
pub struct Output {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: ValueId,
    /// Where it is declared.
    pub place: Place,
}

/// The next value of a state, a parameter that is not trained.
#[derive(Clone, Copy, Debug)]
pub struct Update {
    /// The state.
    pub state: ValueId,
    /// Its next value, computed from the states before the step.
    pub value: ValueId,
    /// Where it is written.
    pub place: Place,
}

impl Graph {
    /// An empty model.
    pub fn new(name: &str, element: ElementType) -> Self {
        Graph { name: name.to_owned(), element: Some(element), ..Graph::default() }
    }

    /// The element type of arithmetic, `f32` unless said otherwise.
    pub fn element(&self) -> ElementType {
        self.element.unwrap_or(ElementType::F32)
    }

    /// The value of an id.
    pub fn value(&self, id: ValueId) -> &Value {
        &self.values[id.0]
    }

    /// All ids, operands first.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = ValueId> + use<> {
        (0..self.values.len()).map(ValueId)
    }

    /// The operator application that a value is.
    pub fn apply_of(&self, id: ValueId) -> Option<&Apply> {
        match &self.values[id.0].kind {
            Kind::Apply(apply) => Some(apply),
            _ => None,
        }
    }

    /// The operator of a name: of the table, or declared by the user.
    pub fn operator(&self, name: &str) -> Option<&'static Operator> {
        let declared = self.operators.iter().copied().find(|operator| operator.is_called(name));
        declared.or_else(|| operators::find(name))
    }

    /// The number that a value is.
    pub fn constant_of(&self, id: ValueId) -> Option<f64> {
        match self.values[id.0].kind {
            Kind::Constant(number) => Some(number),
            _ => None,
        }
    }

    /// Whether a value is a number, seen or not.
    pub fn is_number(&self, id: ValueId) -> bool {
        matches!(self.values[id.0].kind, Kind::Constant(_) | Kind::Named(_))
    }

    /// The number that a value is, seen or not.
    pub fn number_of(&self, id: ValueId) -> Option<Formula> {
        match &self.values[id.0].kind {
            Kind::Constant(number) => Some(Formula::Number(*number)),
            Kind::Named(formula) => Some(formula.clone()),
            _ => None,
        }
    }

    /// The parameters, in the order of declaration.
    pub fn parameters(&self) -> impl Iterator<Item = ValueId> {
        self.ids().filter(|id| matches!(self.values[id.0].kind, Kind::Parameter { .. }))
    }

    /// The inputs and labels, in the order of declaration.
    pub fn inputs(&self) -> impl Iterator<Item = ValueId> {
        self.ids().filter(|id| matches!(self.values[id.0].kind, Kind::Input | Kind::Label))
    }

    /// Keeps what was assumed of constants for the sake of `user`.
    pub fn keep_assumptions(&mut self, user: &str, place: Place) {
        let assumed = self.unify.take_assumed().into_iter();
        let of_user = || user.to_owned();
        self.assumptions.extend(assumed.map(|assumed| Assumption {
            assumed,
            user: of_user(),
            place,
        }));
        for (condition, text) in self.unify.take_conditions() {
            self.keep_condition(condition, format!("`{user}` needs {text}"), place);
        }
    }

    /// Keeps what must hold of numbers that are constants of Rust, once at each place.
    pub fn keep_condition(&mut self, condition: Formula, text: String, place: Place) {
        let is_known =
            |known: &NumberCondition| known.place == place && known.condition == condition;
        if !self.conditions.iter().any(is_known) {
            self.conditions.push(NumberCondition { condition, text, place });
        }
    }

    /// The shape of a value, as far as it is known.
    pub fn shape(&self, id: ValueId) -> Dims {
        self.unify.resolve_all(self.values[id.0].shape.as_deref().unwrap_or_default())
    }

    /// The storage of a value; dense before inference.
    pub fn storage(&self, id: ValueId) -> Storage {
        self.values[id.0].storage.unwrap_or(Storage::Dense)
    }

    /// The ids that an operator reads, and what they must stay below; `None` where an attribute
    /// says what becomes of ids beyond.
    pub fn ids_below(&self, apply: &Apply) -> Option<(ValueId, IdsExtent)> {
        let below = apply.operator.ids_checked(&apply.attributes)?;
        let operand = |name| apply.operands.get(apply.operator.operand_index(name)?).copied();
        // Some operators read ids or numbers, which have no bound.
        let ids = operand(below.ids).filter(|ids| self.value(*ids).element.is_id())?;
        let Some(of) = operand(below.of) else {
            if let Some(name) = apply.attributes.name(below.of) {
                return Some((ids, IdsExtent::Named(name)));
            }
            let size = apply.operator.integer(&apply.attributes, below.of)?;
            return Some((ids, IdsExtent::Size(u64::try_from(size).ok()?)));
        };
        let axis = apply.operator.integer(&apply.attributes, "axis").unwrap_or(below.axis);
        Some((ids, IdsExtent::Axis(of, place_of(axis, self.shape(of).len())?)))
    }

    /// How messages and the plan call a value: its name, its number, or `%7`.
    pub fn label(&self, id: ValueId) -> String {
        let value = self.value(id);
        match (&value.name, &value.kind) {
            (Some(name), _) => name.clone(),
            (None, Kind::Constant(number)) => number.to_string(),
            (None, Kind::Named(formula)) => formula.bare(),
            (None, _) => format!("%{}", id.0),
        }
    }

    /// How messages describe a value: its name, or the expression that makes it, of which what is
    /// nested deeply is left out.
    pub fn describe(&self, id: ValueId) -> String {
        self.describe_within(id, 3)
    }

    fn describe_within(&self, id: ValueId, levels: usize) -> String {
        let value = self.value(id);
        match (&value.name, &value.kind) {
            // Rows of a table that a pass reads go by its name.
            (None, Kind::Apply(apply))
                if apply.operator.internal
                    && apply.operator.result_rows.contains(&operators::ResultRows::Read) =>
            {
                self.describe_within(apply.operands[0], levels)
            }
            (None, Kind::Apply(apply)) if levels == 0 => format!("{}(…)", apply.operator.name),
            (None, Kind::Apply(apply)) => {
                let operands = apply.operands.iter();
                let operands: Vec<String> =
                    operands.map(|operand| self.describe_within(*operand, levels - 1)).collect();
                format!("{}({})", apply.operator.name, operands.join(", "))
            }
            _ => self.label(id),
        }
    }

    /// Every value that the given ones are computed from, themselves included.
    pub fn ancestors(&self, roots: impl IntoIterator<Item = ValueId>) -> Vec<bool> {
        let mut needed = vec![false; self.values.len()];
        let mut stack: Vec<ValueId> = roots.into_iter().collect();
        while let Some(id) = stack.pop() {
            if !std::mem::replace(&mut needed[id.0], true) {
                stack.extend(self.apply_of(id).into_iter().flat_map(|apply| &apply.operands));
            }
        }
        needed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each value is used twice by the next, so that the whole expression has 2⁶⁰ parts.
    #[test]
    fn descriptions_leave_out_deep_nesting() {
        let mut text = String::from("model M f32\nx = input dense f32 [n]\n%1 = tanh(x)\n");
        for line in 2..62 {
            text += &format!("%{line} = multiply(%{}, %{})\n", line - 1, line - 1);
        }
        let mut graph = parse(&text).unwrap();
        graph.values[1..].iter_mut().for_each(|value| value.name = None);
        let inner = "multiply(multiply(…), multiply(…))";
        let two = format!("multiply({inner}, {inner})");
        assert_eq!(graph.describe(ValueId(61)), format!("multiply({two}, {two})"));
        assert_eq!(graph.describe(ValueId(1)), "tanh(x)");
    }
}
