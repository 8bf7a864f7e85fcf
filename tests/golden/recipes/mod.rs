//! What the reference's operators are in this language: one line each.

use crate::golden::case::{Tensor, number, storage};
use crate::golden::reasons::Relaxes;
use crate::golden::tally::Outcome;
use nnz::core::ir::{AttributeValue, Attributes, Graph, List, Place, ValueId};
use nnz::core::operators::find;
use nnz::core::storage::Storage;
use serde_json::{Map, Value};
use std::cell::RefCell;
use std::collections::BTreeSet;

mod elementwise;
mod nn;
mod structure;

/// Operators of the reference that are not built yet.
fn not_built() -> impl Iterator<Item = &'static str> {
    [structure::NOT_BUILT, nn::NOT_BUILT].into_iter().flatten().copied()
}

/// What becomes of an operator.
pub(crate) enum Recipe {
    /// It is built.
    Built {
        /// Appends it to a graph.
        build: Build,
        /// What the compiler says to write where it refuses that.
        explicit: Option<Build>,
        /// Of a layer whose gradient is that of a loss and not of its output: the loss.
        loss: Option<Build>,
        /// Of an operator that reads which elements are stored and not what they are: the same of
        /// an array that is 1 there.
        of_pattern: Option<Build>,
    },
    /// It is in the list; what of it is missing.
    NotBuilt(String),
    /// It is not offered on purpose: why.
    NotOffered(&'static str),
}

impl Recipe {
    fn built(build: impl Fn(&mut Graph, &[ValueId]) -> ValueId + 'static) -> Self {
        Recipe::Built { build: Box::new(build), explicit: None, loss: None, of_pattern: None }
    }

    /// What becomes of a case of an operator that is not built.
    pub(crate) fn outcome(self) -> Outcome {
        match self {
            Recipe::NotOffered(why) => {
                Outcome::Reasons([(why, [Relaxes::Acceptance].into())].into())
            }
            Recipe::NotBuilt(what) => Outcome::NotBuilt(what),
            Recipe::Built { .. } => Outcome::Failed("a recipe that nobody made".into()),
        }
    }

    fn loss(build: Build, loss: impl Fn(&mut Graph, &[ValueId]) -> ValueId + 'static) -> Self {
        Recipe::Built { build, explicit: None, loss: Some(Box::new(loss)), of_pattern: None }
    }
}

/// Appends operators that compute something from operands.
pub(crate) type Build = Box<dyn Fn(&mut Graph, &[ValueId]) -> ValueId>;

/// The attributes of a case, each of which must be understood.
pub(crate) struct Given<'a> {
    attributes: Option<&'a Map<String, Value>>,
    understood: RefCell<BTreeSet<&'static str>>,
}

impl<'a> Given<'a> {
    pub(crate) fn new(attributes: &'a Value) -> Self {
        Given { attributes: attributes.as_object(), understood: RefCell::default() }
    }

    fn get(&self, name: &'static str) -> &'a Value {
        self.understood.borrow_mut().insert(name);
        self.attributes.and_then(|map| map.get(name)).unwrap_or(&Value::Null)
    }

    fn flag(&self, name: &'static str) -> bool {
        self.get(name).as_bool().unwrap_or(false)
    }

    fn storage(&self, name: &'static str) -> Option<Storage> {
        storage(self.get(name))
    }

    fn number(&self, name: &'static str) -> Option<f64> {
        number(self.get(name))
    }

    fn integer(&self, name: &'static str) -> Option<i64> {
        self.get(name).as_i64()
    }

    /// An axis, several, or all of them.
    fn axes(&self, name: &'static str) -> Option<Vec<i64>> {
        match self.get(name) {
            Value::Array(list) => list.iter().map(Value::as_i64).collect(),
            value => value.as_i64().map(|axis| vec![axis]),
        }
    }

    /// Lists of integers that are given, of which some may be open, under the same names.
    fn lists<const N: usize>(
        &self,
        names: [&'static str; N],
    ) -> Vec<(&'static str, AttributeValue)> {
        let entries = |value: &Value| match value {
            Value::Array(list) => Some(list.iter().map(Value::as_i64).collect::<Vec<_>>()),
            Value::Null => None,
            value => Some(vec![value.as_i64()]),
        };
        let given = names.map(|name| Some((name, entries(self.get(name))?)));
        given
            .into_iter()
            .flatten()
            .map(|(name, entries)| (name, AttributeValue::List(List::new(&entries))))
            .collect()
    }

    /// The first attribute that nobody looked at.
    fn unknown(&self) -> Option<&'a str> {
        let understood = self.understood.borrow();
        let mut names = self.attributes.into_iter().flat_map(Map::keys);
        names.find(|name| !understood.contains(name.as_str())).map(String::as_str)
    }
}

/// An operator by the reference's name. An attribute that is not understood is an error, like a
/// name that is neither known nor in the list.
pub(crate) fn recipe(op: &str, attributes: &Value) -> Result<Recipe, String> {
    if not_built().any(|name| name == op) {
        return Ok(Recipe::NotBuilt(op.to_owned()));
    }
    if let Some((_, why)) = nn::NOT_OFFERED.iter().find(|(name, _)| *name == op) {
        return Ok(Recipe::NotOffered(why));
    }
    let given = Given::new(attributes);
    let recipe = known(op, &given).ok_or_else(|| format!("unknown operator `{op}`"))?;
    match given.unknown() {
        Some(name) => Err(format!("unknown attribute `{name}` of `{op}`")),
        None => Ok(recipe),
    }
}

/// The operands that an operator of the reference reads as ids: ids are integers by type here.
pub(crate) fn ids_of(op: &str) -> &'static [usize] {
    match structure::ids_of(op) {
        [] => nn::ids_of(op),
        ids => ids,
    }
}

/// Marks the inputs of an operator that are ids, which are dense here.
pub(crate) fn mark_ids<'a>(op: &str, inputs: impl Iterator<Item = &'a mut Tensor>) {
    let mut inputs: Vec<&mut Tensor> = inputs.collect();
    for &index in ids_of(op) {
        let shape = inputs.first().map(|first| first.shape.clone());
        let Some(tensor) = inputs.get_mut(index) else { return };
        // A label for each score is a target and no class.
        if op == "SoftmaxOutput" && shape.as_ref() == Some(&tensor.shape) {
            return;
        }
        if tensor.stype() != Storage::Dense {
            **tensor = tensor.expanded();
        }
        tensor.holds_ids = true;
    }
}

/// Makes the recipe of an operator from its attributes; `None` where they are not understood.
type Make = fn(&Given<'_>) -> Option<Recipe>;

/// The operators that are listed, and why some are not offered.
pub(crate) fn listed() -> impl Iterator<Item = &'static str> {
    let not_offered = nn::NOT_OFFERED.iter().map(|(op, _)| *op);
    named().map(|(op, _)| op).chain(not_built()).chain(not_offered)
}

/// Every operator that has a recipe in a table.
fn named() -> impl Iterator<Item = (&'static str, Make)> {
    let tables = [&[("dot", dot as Make)], elementwise::RECIPES, structure::RECIPES, nn::RECIPES];
    tables.into_iter().flatten().copied()
}

fn known(op: &str, given: &Given<'_>) -> Option<Recipe> {
    match named().find(|(name, _)| *name == op) {
        Some((_, make)) => make(given),
        None => elementwise::by_name(op, given),
    }
}

fn dot(given: &Given<'_>) -> Option<Recipe> {
    let mut attributes = Attributes::default();
    for (name, theirs) in [("transpose_lhs", "transpose_a"), ("transpose_rhs", "transpose_b")] {
        attributes.set(name, AttributeValue::Flag(given.flag(theirs)));
    }
    let Some(out) = given.storage("forward_stype") else {
        return Some(Recipe::built(move |graph, operands| {
            apply(graph, "dot", operands, attributes.clone())
        }));
    };
    let mut requested = attributes.clone();
    requested.set("out", AttributeValue::Storage(out));
    Some(Recipe::Built {
        build: Box::new(move |graph, operands| apply(graph, "dot", operands, requested.clone())),
        explicit: Some(Box::new(move |graph, operands| {
            let product = apply(graph, "dot", operands, attributes.clone());
            apply(graph, out.name(), &[product], Attributes::default())
        })),
        loss: None,
        of_pattern: None,
    })
}

/// An operator of the table. Operators that are given in the wrong number are left to the compiler.
fn apply(graph: &mut Graph, name: &str, operands: &[ValueId], attributes: Attributes) -> ValueId {
    let operator = find(name).unwrap_or_else(|| panic!("no operator `{name}`"));
    let arity = operator.required()..=operator.operands.len();
    let fits = operator.chain.is_some() || arity.contains(&operands.len());
    assert!(fits, "{} operands of `{name}`", operands.len());
    graph.apply(operator, operands.to_vec(), attributes, Place::default())
}

fn call(graph: &mut Graph, name: &str, operands: &[ValueId]) -> ValueId {
    apply(graph, name, operands, Attributes::default())
}

fn built(build: Build) -> Option<Recipe> {
    Some(Recipe::Built { build, explicit: None, loss: None, of_pattern: None })
}

fn plain(name: &'static str) -> Build {
    Box::new(move |graph, operands| apply(graph, name, operands, Attributes::default()))
}

/// An operator with attributes.
fn with(name: &'static str, attributes: &[(&'static str, AttributeValue)]) -> Build {
    let attributes = Attributes::from(attributes);
    Box::new(move |graph, operands| apply(graph, name, operands, attributes.clone()))
}

#[test]
fn the_lists_are_up_to_date() {
    for op in not_built() {
        let given = Given::new(&Value::Null);
        assert!(known(op, &given).is_none(), "`{op}` is built and listed as not built");
    }
}
