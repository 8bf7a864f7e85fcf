//! What the reference's operators are in this language: one line each.

use crate::case::{number, storage};
use nnz::core::ir::{AttributeValue, Attributes, Graph, Place, ValueId};
use nnz::core::operators::find;
use nnz::core::passes::infer_shapes;
use nnz::core::storage::Storage;
use serde_json::{Map, Value};
use std::cell::RefCell;
use std::collections::BTreeSet;

/// Operators of the reference that are not built yet.
pub(crate) const NOT_BUILT: &[&str] = &[
    // of two operands
    "_equal",
    "_greater",
    "_greater_equal",
    "_hypot",
    "_lesser",
    "_lesser_equal",
    "_logical_and",
    "_logical_or",
    "_logical_xor",
    "_maximum",
    "_minimum",
    "_mod",
    "_not_equal",
    "_power",
    "_scatter_elemwise_div",
    "broadcast_equal",
    "broadcast_maximum",
    "broadcast_minimum",
    "broadcast_mod",
    "broadcast_power",
    // of an operand and a number
    "_contrib_quadratic",
    "_equal_scalar",
    "_greater_equal_scalar",
    "_greater_scalar",
    "_hypot_scalar",
    "_lesser_equal_scalar",
    "_lesser_scalar",
    "_logical_and_scalar",
    "_logical_or_scalar",
    "_maximum_scalar",
    "_minimum_scalar",
    "_mod_scalar",
    "_not_equal_scalar",
    "_power_scalar",
    "_rpower_scalar",
    "_scatter_minus_scalar",
    "_scatter_plus_scalar",
    "smooth_l1",
    // of one operand
    "BlockGrad",
    "Cast",
    "_contrib_gradientmultiplier",
    "_contrib_round_ste",
    "_contrib_sign_ste",
    "arccos",
    "arccosh",
    "ceil",
    "clip",
    "degrees",
    "erf",
    "erfinv",
    "fix",
    "floor",
    "gamma",
    "gammaln",
    "hard_sigmoid",
    "log10",
    "log2",
    "log_softmax",
    "logical_not",
    "make_loss",
    "ones_like",
    "radians",
    "rcbrt",
    "rint",
    "round",
    "rsqrt",
    "softsign",
    "trunc",
    "zeros_like",
    // reductions
    "_contrib_getnnz",
    "_square_sum",
    "argmax",
    "argmin",
    "max",
    "min",
    "nansum",
    "norm",
    "prod",
    // structure
    "Concat",
    "Dropout",
    "Flatten",
    "L2Normalization",
    "Reshape",
    "SliceChannel",
    "SwapAxis",
    "_contrib_edge_id",
    "_identity_with_attr_like_rhs",
    "_sparse_retain",
    "add_n",
    "expand_dims",
    "pick",
    "repeat",
    "reverse",
    "slice",
    "slice_axis",
    "slice_like",
    "sort",
    "stack",
    "take",
    "tile",
    "topk",
    "where",
    // creation
    "zeros",
    // layers and losses
    "Embedding",
    "FullyConnected",
    "LinearRegressionOutput",
    "LogisticRegressionOutput",
    "MAERegressionOutput",
    "MakeLoss",
    "SVMOutput",
    "SoftmaxOutput",
    "_contrib_SparseEmbedding",
    "softmax_cross_entropy",
];

/// What becomes of an operator.
pub(crate) enum Recipe {
    /// It is built.
    Built {
        /// Appends it to a graph.
        build: Build,
        /// What the compiler says to write where it refuses that.
        explicit: Option<Build>,
    },
    /// It is in the list; what of it is missing.
    NotBuilt(String),
}

impl Recipe {
    fn built(build: impl Fn(&mut Graph, &[ValueId]) -> ValueId + 'static) -> Self {
        Recipe::Built { build: Box::new(build), explicit: None }
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

    /// An axis, several, or all of them.
    fn axes(&self, name: &'static str) -> Option<Vec<i64>> {
        match self.get(name) {
            Value::Array(list) => list.iter().map(Value::as_i64).collect(),
            value => value.as_i64().map(|axis| vec![axis]),
        }
    }

    /// The first attribute that nobody looked at.
    fn unknown(&self) -> Option<&'a str> {
        let understood = self.understood.borrow();
        let mut names = self.attributes.into_iter().flat_map(Map::keys);
        names.find(|name| !understood.contains(name.as_str())).map(String::as_str)
    }
}

/// An operator by the reference's name. An attribute that is not understood is an error, like a name that is
/// neither known nor in the list.
pub(crate) fn recipe(op: &str, attributes: &Value) -> Result<Recipe, String> {
    if NOT_BUILT.contains(&op) {
        return Ok(Recipe::NotBuilt(op.to_owned()));
    }
    let given = Given::new(attributes);
    let recipe = known(op, &given).ok_or_else(|| format!("unknown operator `{op}`"))?;
    match given.unknown() {
        Some(name) => Err(format!("unknown attribute `{name}` of `{op}`")),
        None => Ok(recipe),
    }
}

fn known(op: &str, given: &Given<'_>) -> Option<Recipe> {
    let built: Build = match op {
        "dot" => {
            let mut attributes = Attributes::default();
            for (name, theirs) in
                [("transpose_lhs", "transpose_a"), ("transpose_rhs", "transpose_b")]
            {
                attributes.set(name, AttributeValue::Flag(given.flag(theirs)));
            }
            let Some(out) = given.storage("forward_stype") else {
                return Some(Recipe::built(move |graph, operands| {
                    apply(graph, "dot", operands, attributes.clone())
                }));
            };
            let mut requested = attributes.clone();
            requested.set("out", AttributeValue::Storage(out));
            return Some(Recipe::Built {
                build: Box::new(move |graph, operands| {
                    apply(graph, "dot", operands, requested.clone())
                }),
                explicit: Some(Box::new(move |graph, operands| {
                    let product = apply(graph, "dot", operands, attributes.clone());
                    apply(graph, out.name(), &[product], Attributes::default())
                })),
            });
        }
        "elemwise_add" | "broadcast_add" | "_grad_add" => plain("add"),
        "elemwise_sub" | "broadcast_sub" => plain("subtract"),
        "elemwise_mul" | "broadcast_mul" => plain("multiply"),
        "elemwise_div" | "broadcast_div" => plain("divide"),
        "_plus_scalar" => with_number("add", given, false)?,
        "_minus_scalar" => with_number("subtract", given, false)?,
        "_rminus_scalar" => with_number("subtract", given, true)?,
        "_mul_scalar" => with_number("multiply", given, false)?,
        "_div_scalar" => with_number("divide", given, false)?,
        "_rdiv_scalar" => with_number("divide", given, true)?,
        "_copy" => Box::new(|_, operands| operands[0]),
        "sum" | "mean" => reduction(if op == "sum" { "sum" } else { "mean" }, given),
        "transpose" => plain("transpose"),
        "cast_storage" | "assign" => match given.storage("stype")? {
            Storage::Dense => plain("dense"),
            Storage::Csr => plain("csr"),
            Storage::RowSparse => plain("row_sparse"),
        },
        "softmax" => match given.get("axis").as_i64() {
            None | Some(-1 | 1) => plain("softmax"),
            Some(0) => Box::new(|graph, operands| {
                let turned = apply(graph, "transpose", operands, Attributes::default());
                let softmax = apply(graph, "softmax", &[turned], Attributes::default());
                apply(graph, "transpose", &[softmax], Attributes::default())
            }),
            _ => return None,
        },
        "Activation" => match given.get("act_type").as_str()? {
            "relu" => plain("relu"),
            "sigmoid" => plain("sigmoid"),
            "tanh" => plain("tanh"),
            "softrelu" => plain("softplus"),
            "softsign" => return Some(Recipe::NotBuilt("softsign".to_owned())),
            _ => return None,
        },
        // The unary family has the reference's names.
        _ => plain(UNARY.iter().find(|name| **name == op)?),
    };
    Some(Recipe::Built { build: built, explicit: None })
}

/// Functions of one operand that are called the same.
const UNARY: &[&str] = &[
    "abs",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctanh",
    "cbrt",
    "cos",
    "cosh",
    "exp",
    "expm1",
    "log",
    "log1p",
    "negative",
    "reciprocal",
    "relu",
    "sigmoid",
    "sign",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "tan",
    "tanh",
];

/// An operator of the table. Operators that are given in the wrong number are left to the compiler.
fn apply(graph: &mut Graph, name: &str, operands: &[ValueId], attributes: Attributes) -> ValueId {
    let operator = find(name).unwrap_or_else(|| panic!("no operator `{name}`"));
    assert_eq!(operands.len(), operator.operands.len(), "operands of `{name}`");
    graph.apply(operator, operands.to_vec(), attributes, Place::default())
}

fn plain(name: &'static str) -> Build {
    Box::new(move |graph, operands| apply(graph, name, operands, Attributes::default()))
}

/// An operand and a number, the number first where `turned`.
fn with_number(name: &'static str, given: &Given<'_>, turned: bool) -> Option<Build> {
    let scalar = number(given.get("scalar"))?;
    Some(Box::new(move |graph, operands| {
        let scalar = graph.constant(scalar, Place::default());
        let operands = if turned { [scalar, operands[0]] } else { [operands[0], scalar] };
        apply(graph, name, &operands, Attributes::default())
    }))
}

/// A reduction over one axis is one operator, over all of them as well; over others it is one after the other.
fn reduction(name: &'static str, given: &Given<'_>) -> Build {
    let (axes, keepdims) = (given.axes("axis"), given.flag("keepdims"));
    let exclude = given.flag("exclude");
    Box::new(move |graph, operands| {
        // Which axes all others are depends on the rank, which a value that is computed has only after this pass.
        // What it finds wrong it finds again.
        let _ = infer_shapes(graph);
        let rank = graph.shape(operands[0]).len();
        let place = |axis: &i64| (if *axis < 0 { axis + rank as i64 } else { *axis }) as usize;
        let listed: BTreeSet<usize> = axes.iter().flatten().map(place).collect();
        let reduced: Vec<usize> =
            (0..rank).filter(|axis| axes.is_none() || listed.contains(axis) != exclude).collect();
        let mut attributes = Attributes::default();
        attributes.set("keepdims", AttributeValue::Flag(keepdims));
        if reduced.len() == rank {
            return apply(graph, name, operands, attributes);
        }
        // From the last, so that the places of the others stay.
        reduced.into_iter().rev().fold(operands[0], |value, axis| {
            let mut attributes = attributes.clone();
            attributes.set("axis", AttributeValue::Axis(axis as i64));
            apply(graph, name, &[value], attributes)
        })
    })
}

#[test]
fn the_lists_are_of_different_operators_and_up_to_date() {
    for op in NOT_BUILT {
        let given = Given::new(&Value::Null);
        assert!(known(op, &given).is_none(), "`{op}` is built and listed as not built");
        assert!(
            find(op).is_none() || *op == "softmax_cross_entropy",
            "`{op}` is in the operator table: give it a recipe"
        );
    }
    for op in UNARY {
        assert!(find(op).is_some(), "`{op}` is not in the operator table");
    }
}
