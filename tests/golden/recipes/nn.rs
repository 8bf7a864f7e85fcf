//! Layers and losses.

use super::{Build, Given, Make, Recipe, apply, call};
use nnz::core::ir::{AttributeValue, Attributes, Graph, Place, ValueId};
use nnz::core::passes::infer_shapes;
use nnz::core::shapes::Dim;
use nnz::core::storage::Storage;

/// Operators of the reference that are not built yet.
pub(super) const NOT_BUILT: &[&str] = &[];

/// Operators of the reference that are not offered, and why.
pub(super) const NOT_OFFERED: &[(&str, &str)] = &[(
    "Dropout",
    "a result is a function of the batch and the parameters: nothing in a model is random",
)];

/// The operands that are ids.
pub(super) fn ids_of(op: &str) -> &'static [usize] {
    match op {
        "Embedding" | "_contrib_SparseEmbedding" => &[0],
        "SoftmaxOutput" | "SVMOutput" | "softmax_cross_entropy" => &[1],
        _ => &[],
    }
}

/// Operators by the reference's names.
pub(super) const RECIPES: &[(&str, Make)] = &[
    ("FullyConnected", |given| {
        // The shapes of the operands say both.
        given.integer("num_hidden");
        given.flag("no_bias");
        Some(Recipe::built(|graph, operands| call(graph, "fully_connected", operands)))
    }),
    ("L2Normalization", |_| {
        Some(Recipe::built(|graph, operands| {
            let mut by_rows = Attributes::default();
            by_rows.set("axis", AttributeValue::Integer(1));
            by_rows.set("keepdims", AttributeValue::Flag(true));
            let squares = apply(graph, "square_sum", operands, by_rows);
            let squares = with_number(graph, "add", squares, 1e-10);
            let norm = call(graph, "sqrt", &[squares]);
            call(graph, "divide", &[operands[0], norm])
        }))
    }),
    ("LinearRegressionOutput", |given| Some(regression(given, "squared_error", None))),
    ("MAERegressionOutput", |given| Some(regression(given, "absolute_error", None))),
    ("LogisticRegressionOutput", |given| Some(regression(given, "logistic", Some("sigmoid")))),
    ("MakeLoss", make_loss),
    ("Embedding", |given| Some(embedding(given, true))),
    ("_contrib_SparseEmbedding", |given| Some(embedding(given, false))),
    ("softmax_cross_entropy", |_| {
        Some(Recipe::built(|graph, operands| {
            let n = sizes(graph, operands[0])[0];
            let loss = call(graph, "softmax_cross_entropy", operands);
            with_number(graph, "multiply", loss, n)
        }))
    }),
    ("SVMOutput", |given| {
        let margin = given.number("margin").unwrap_or(1.0);
        let scale = given.number("regularization_coefficient").unwrap_or(1.0);
        let (name, power) = if given.flag("use_linear") {
            ("hinge", margin)
        } else {
            ("squared_hinge", margin * margin)
        };
        Some(Recipe::loss(identity(), move |graph, operands| {
            let shape = sizes(graph, operands[0]);
            let targets = one_hot(graph, operands[1], shape[1]);
            let score = with_number(graph, "divide", operands[0], margin);
            let loss = call(graph, name, &[score, targets]);
            with_number(graph, "multiply", loss, shape[0] * scale * power)
        }))
    }),
    ("SoftmaxOutput", softmax_output),
];

/// Rows of a table by ids. The reference clips ids for a dense table where `clips`, and refuses
/// them for a row_sparse one.
fn embedding(given: &Given<'_>, clips: bool) -> Recipe {
    // The shape of the table says both, and its gradient stores the rows of the ids whatever is
    // asked for.
    given.integer("input_dim");
    given.integer("output_dim");
    given.flag("sparse_grad");
    Recipe::built(move |graph, operands| {
        let mut clip = Attributes::default();
        clip.set("clip", AttributeValue::Flag(true));
        if clips && graph.storage(operands[1]) == Storage::Dense {
            apply(graph, "take", &[operands[1], operands[0]], clip)
        } else {
            call(graph, "embedding", operands)
        }
    })
}

/// A layer with a label for each score: the gradient of the loss, where the reference divides by
/// the elements of a sample and not by the samples.
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

fn softmax_output(given: &Given<'_>) -> Option<Recipe> {
    let scale = given.number("grad_scale").unwrap_or(1.0);
    let smooth = given.number("smooth_alpha").unwrap_or(0.0);
    let class = given.integer("ignore_label").unwrap_or(-1);
    let ignored = given.flag("use_ignore").then_some(class);
    let valid = match given.get("normalization").as_str() {
        None | Some("null") => None,
        Some("batch") => Some(false),
        Some("valid") => Some(true),
        _ => return None,
    };
    // Of matrices there is only one way.
    given.flag("preserve_shape");
    if given.flag("multi_output") {
        return Some(softmax_of_positions(scale));
    }
    Some(Recipe::loss(of_first("softmax"), move |graph, operands| {
        let shape = sizes(graph, operands[0]);
        let (score, mut label) = (operands[0], operands[1]);
        let weight = ignored.map(|class| {
            let classes = one_hot(graph, label, shape[1]);
            let attributes = [
                ("axis", AttributeValue::Integer(1)),
                ("begin", AttributeValue::List([class].into())),
                ("end", AttributeValue::List([class + 1].into())),
            ];
            let ignored = apply(graph, "slice_axis", &[classes], Attributes::from(&attributes[..]));
            let over = Attributes::from(&attributes[..1]);
            let ignored = apply(graph, "sum", &[ignored], over);
            let one = graph.constant(1.0, Place::default());
            call(graph, "subtract", &[one, ignored])
        });
        if smooth > 0.0 {
            let others = smooth / (shape[1] - 1.0);
            let classes = one_hot(graph, label, shape[1]);
            let classes = with_number(graph, "multiply", classes, 1.0 - smooth - others);
            label = with_number(graph, "add", classes, others);
        }
        let given: Vec<ValueId> = [score, label].into_iter().chain(weight).collect();
        let loss = call(graph, "softmax_cross_entropy", &given);
        // The mean over the rows is that over the batch.
        let factor = if valid == Some(false) { scale } else { scale * shape[0] };
        let loss = with_number(graph, "multiply", loss, factor);
        match (valid, weight) {
            (Some(true), Some(weight)) => {
                let valid = call(graph, "sum", &[weight]);
                call(graph, "divide", &[loss, valid])
            }
            (Some(true), None) => with_number(graph, "divide", loss, shape[0]),
            _ => loss,
        }
    }))
}

/// A softmax along axis 1 of three, and the cross entropy of each position, divided by their
/// number.
fn softmax_of_positions(scale: f64) -> Recipe {
    let along = || Attributes::from(&[("axis", AttributeValue::Integer(1))][..]);
    let output: Build =
        Box::new(move |graph, operands| apply(graph, "softmax", &operands[..1], along()));
    Recipe::loss(output, move |graph, operands| {
        let positions = sizes(graph, operands[0])[2];
        let log = apply(graph, "log_softmax", &operands[..1], along());
        let picked = apply(graph, "pick", &[log, operands[1]], along());
        let sum = call(graph, "sum", &[picked]);
        let loss = call(graph, "negative", &[sum]);
        with_number(graph, "multiply", loss, scale / positions)
    })
}

/// For each class id a row of 0 and 1.
fn one_hot(graph: &mut Graph, ids: ValueId, depth: f64) -> ValueId {
    let mut attributes = Attributes::default();
    attributes.set("depth", AttributeValue::Integer(depth as i64));
    attributes.set("out", AttributeValue::Storage(Storage::Dense));
    apply(graph, "one_hot", &[ids], attributes)
}

fn identity() -> Build {
    Box::new(|_, operands| operands[0])
}

/// A function of the first operand.
fn of_first(name: &'static str) -> Build {
    Box::new(move |graph, operands| call(graph, name, &operands[..1]))
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
