//! Layers and losses.

use super::{Build, Given, Recipe, apply};
use nnz::core::ir::{AttributeValue, Attributes, Graph, Place, ValueId};
use nnz::core::passes::infer_shapes;
use nnz::core::shapes::Dim;

/// Operators of the reference that are not built yet.
pub(super) const NOT_BUILT: &[&str] = &[
    "Cast",
    "Dropout",
    "Embedding",
    "SVMOutput",
    "SoftmaxOutput",
    "_contrib_SparseEmbedding",
    "softmax_cross_entropy",
];

pub(super) fn known(op: &str, given: &Given<'_>) -> Option<Recipe> {
    Some(match op {
        "FullyConnected" => {
            // The shapes of the operands say both.
            given.integer("num_hidden");
            given.flag("no_bias");
            Recipe::built(|graph, operands| call(graph, "fully_connected", operands))
        }
        "L2Normalization" => Recipe::built(|graph, operands| {
            let mut by_rows = Attributes::default();
            by_rows.set("axis", AttributeValue::Integer(1));
            by_rows.set("keepdims", AttributeValue::Flag(true));
            let squares = apply(graph, "square_sum", operands, by_rows);
            let squares = with_number(graph, "add", squares, 1e-10);
            let norm = call(graph, "sqrt", &[squares]);
            call(graph, "divide", &[operands[0], norm])
        }),
        "log_softmax" => match given.integer("axis") {
            None | Some(-1 | 1) => Recipe::built(|graph, operands| {
                // One number for each row, which is a column of the transpose.
                let total = call(graph, "logsumexp", operands);
                let turned = call(graph, "transpose", operands);
                let difference = call(graph, "subtract", &[turned, total]);
                call(graph, "transpose", &[difference])
            }),
            Some(0) => Recipe::built(|graph, operands| {
                let turned = call(graph, "transpose", operands);
                let total = call(graph, "logsumexp", &[turned]);
                call(graph, "subtract", &[operands[0], total])
            }),
            _ => return None,
        },
        "LinearRegressionOutput" => regression(given, "squared_error", None),
        "MAERegressionOutput" => regression(given, "absolute_error", None),
        "LogisticRegressionOutput" => regression(given, "logistic", Some("sigmoid")),
        "MakeLoss" => make_loss(given)?,
        _ => return None,
    })
}

/// A layer with a label for each score: the gradient of the loss, where the reference divides by the elements of a sample and
/// not by the samples.
fn regression(given: &Given<'_>, loss: &'static str, output: Option<&'static str>) -> Recipe {
    let scale = given.number("grad_scale").unwrap_or(1.0);
    Recipe::loss(output.map_or_else(identity, of_first), move |graph, operands| {
        let (mut score, label) = (operands[0], operands[1]);
        let shape = sizes(graph, score);
        let (n, row) = (shape[0], shape[1..].iter().product::<f64>());
        if sizes(graph, label).len() < shape.len() {
            // One score for each sample, which has a label of its own.
            let mut over = Attributes::default();
            over.set("axis", AttributeValue::Integer(1));
            score = apply(graph, "sum", &[score], over);
        }
        let loss = call(graph, loss, &[score, label]);
        with_number(graph, "multiply", loss, scale * n / row)
    })
}

fn make_loss(given: &Given<'_>) -> Option<Recipe> {
    let scale = given.number("grad_scale").unwrap_or(1.0);
    let threshold = given.number("valid_thresh").unwrap_or(0.0);
    let by = match given.get("normalization").as_str() {
        None | Some("null") => "null",
        Some("batch") => "batch",
        Some("valid") => "valid",
        _ => return None,
    };
    Some(Recipe::loss(identity(), move |graph, operands| {
        let sum = call(graph, "sum", operands);
        let sum = with_number(graph, "multiply", sum, scale);
        match by {
            "batch" => {
                let n = sizes(graph, operands[0])[0];
                with_number(graph, "divide", sum, n)
            }
            "valid" => {
                let valid = with_number(graph, "greater", operands[0], threshold);
                let valid = call(graph, "sum", &[valid]);
                call(graph, "divide", &[sum, valid])
            }
            _ => sum,
        }
    }))
}

fn identity() -> Build {
    Box::new(|_, operands| operands[0])
}

/// A function of the first operand.
fn of_first(name: &'static str) -> Build {
    Box::new(move |graph, operands| call(graph, name, &operands[..1]))
}

fn call(graph: &mut Graph, name: &str, operands: &[ValueId]) -> ValueId {
    apply(graph, name, operands, Attributes::default())
}

fn with_number(graph: &mut Graph, name: &str, value: ValueId, number: f64) -> ValueId {
    let number = graph.constant(number, Place::default());
    call(graph, name, &[value, number])
}

/// The extents of a value, which are numbers in recorded cases.
fn sizes(graph: &Graph, id: ValueId) -> Vec<f64> {
    let mut graph = graph.clone();
    infer_shapes(&mut graph);
    let shape = graph.shape(id).into_iter().map(|dim| match dim {
        Dim::Size(size) => size as f64,
        dim => panic!("the extent {dim} is not known"),
    });
    shape.collect()
}
