//! Fusion: which part of the training step becomes one loop.
//!
//! *Linear rows*: a product of a csr input with a parameter, then element-wise functions of
//! its rows, then a loss, is computed row by row: forward, loss gradient and (for a batch of one row)
//! update without a value of the batch's size in between. What does not fit says why, and runs kernels one after the
//! other, but for gradients of rows, which are [scattered](super::Scatter) into the update.

use super::scatter::{Scatter, scatter};
use crate::ir::{Graph, Kind, ValueId};
use crate::operators::{self, BinaryFamily};
use crate::shapes::{Dim, Dims};
use crate::storage::Storage;

/// What became of the training step.
#[derive(Clone, Debug, PartialEq)]
pub enum Fusion {
    /// Kernels one after the other, and why.
    None {
        /// Why it is not fused.
        reason: String,
    },
    /// Kernels one after the other, but gradients of rows go straight into the update.
    Scattered {
        /// Why it is not one loop.
        reason: String,
        /// The parameters whose gradients do.
        parameters: Vec<Scatter>,
    },
    /// One loop over the rows of a csr input.
    LinearRows(Box<LinearRows>),
}

/// The parts of a fused linear step. The *space* is the shape [rows, columns] of the product.
#[derive(Clone, Debug, PartialEq)]
pub struct LinearRows {
    /// The csr input.
    pub input: ValueId,
    /// The parameter it is multiplied with.
    pub weight: ValueId,
    /// The product.
    pub product: ValueId,
    /// The columns of the product.
    pub columns: Dim,
    /// Element-wise values computed from the product, in order.
    pub forward: Vec<ValueId>,
    /// The loss.
    pub loss: ValueId,
    /// The loss's scores: the product or one of `forward`.
    pub score: ValueId,
    /// The loss's label.
    pub label: ValueId,
    /// The weights of the rows, where the loss has any.
    pub row_weight: Option<ValueId>,
    /// The gradient with respect to the scores.
    pub score_gradient: ValueId,
    /// Element-wise values computed from it, in order.
    pub backward: Vec<ValueId>,
    /// The gradient with respect to the product: `score_gradient` or one of `backward`.
    pub product_gradient: ValueId,
    /// Dense parameters added to or multiplied with rows: the parameter, its gradient, and what it sums.
    pub reductions: Vec<(ValueId, ValueId, ValueId)>,
    /// Outputs that are the softmax of a value of the space: the output's value and its operand.
    pub softmax: Vec<(ValueId, ValueId)>,
    /// The second-order term of a factorization machine over the same input, where the rows have one column.
    pub interaction: Option<Interaction>,
}

/// A `pairwise_interaction` in the loop: read and updated in the same pass over the non-zeros as the product.
#[derive(Clone, Debug, PartialEq)]
pub struct Interaction {
    /// Its value, one number a row.
    pub value: ValueId,
    /// The parameter of factors.
    pub factors: ValueId,
    /// The columns of the parameter.
    pub size: Dim,
    /// The gradient with respect to the value: `score_gradient` or one of `backward`.
    pub gradient: ValueId,
}

impl Fusion {
    /// Whether the training step has something else than the value's kernel for it.
    pub fn computes(&self, graph: &Graph, id: ValueId) -> bool {
        // A graph with a value that does not fit into the loop is not fused.
        let in_loop = matches!(self, Fusion::LinearRows(_)) && graph.apply_of(id).is_some();
        in_loop
            || self.scattered().iter().any(|scatter| {
                scatter.skipped.contains(&id)
                    || scatter.lookups.iter().flatten().any(|it| *it == id)
            })
    }

    /// The parameters whose gradients are scattered into the update by a step that is not one loop.
    pub fn scattered(&self) -> &[Scatter] {
        match self {
            Fusion::Scattered { parameters, .. } => parameters,
            Fusion::None { .. } | Fusion::LinearRows(_) => &[],
        }
    }

    /// Why the training step is not one loop, if it is not.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Fusion::None { reason } | Fusion::Scattered { reason, .. } => Some(reason),
            Fusion::LinearRows(_) => None,
        }
    }
}

/// Finds the family that the training step belongs to.
pub fn fuse(graph: &Graph) -> Fusion {
    if graph.no_fuse {
        return Fusion::None { reason: "the model says `fuse = off`".into() };
    }
    if let Some(update) = graph.updates.first() {
        let state = graph.label(update.state);
        return Fusion::None { reason: format!("it updates the state `{state}`") };
    }
    match linear_rows(graph) {
        Ok(parts) => Fusion::LinearRows(Box::new(parts)),
        Err(reason) => match scatter(graph) {
            parameters if parameters.is_empty() => Fusion::None { reason },
            parameters => Fusion::Scattered { reason, parameters },
        },
    }
}

fn linear_rows(graph: &Graph) -> Result<LinearRows, String> {
    if graph.element().is_half() {
        return Err(format!(
            "the elements are `{}`, whose sums need another type",
            graph.element()
        ));
    }
    let [loss] = graph.losses[..] else {
        return Err(format!("the model has {} losses", graph.losses.len()));
    };
    let loss_apply = graph.apply_of(loss).ok_or("the loss is not computed")?;
    let operators::Kind::Loss { gradient, .. } = loss_apply.operator.kind else {
        return Err(format!(
            "the loss is computed by `{}`, not by a loss of the table",
            loss_apply.operator.name
        ));
    };
    let (score, label) = (loss_apply.operands[0], loss_apply.operands[1]);
    let row_weight = loss_apply.operands.get(2).copied();
    let product = find_product(graph)?;
    let Some(product_apply) = graph.apply_of(product) else {
        return Err("no product".into());
    };
    let (input, weight) = (product_apply.operands[0], product_apply.operands[1]);
    let space = graph.shape(product);
    let [_, columns] = &space[..] else {
        return Err(format!("`{}` is a vector", graph.label(product)));
    };
    let score_gradient = graph
        .ids()
        .find(|id| {
            graph.apply_of(*id).is_some_and(|apply| {
                apply.operator.name == gradient && apply.operands == loss_apply.operands
            })
        })
        .ok_or("the gradient of the loss is scaled")?;
    let is_data = |id: ValueId| matches!(graph.value(id).kind, Kind::Label | Kind::Input);
    if !is_data(label) {
        return Err("the label is computed".into());
    }
    if graph.storage(label) != Storage::Dense {
        return Err(format!("the label is `{}`", graph.storage(label)));
    }
    if row_weight.is_some_and(|weight| !is_data(weight)) {
        return Err("the weights of the rows are not data".into());
    }
    let mut parts = LinearRows {
        input,
        weight,
        product,
        columns: columns.clone(),
        forward: Vec::new(),
        loss,
        score,
        label,
        row_weight,
        score_gradient,
        backward: Vec::new(),
        product_gradient: score_gradient,
        reductions: Vec::new(),
        softmax: Vec::new(),
        interaction: find_interaction(graph, input, &space)?,
    };
    let mut weight_gradient = None;
    let mut factors_gradient = None;
    for id in graph.ids() {
        let Some(apply) = graph.apply_of(id) else {
            continue;
        };
        let is_interaction = parts.interaction.as_ref().is_some_and(|term| term.value == id);
        if [product, loss, score_gradient].contains(&id) || is_interaction {
            continue;
        }
        let gradient_of = graph.gradients.iter().find(|(_, gradient)| *gradient == id);
        let is_backward = |id: &ValueId| *id == score_gradient || parts.backward.contains(id);
        match (apply.operator.name, gradient_of) {
            ("dot", Some((parameter, _)))
                if *parameter == weight
                    && apply.operands[0] == input
                    && apply.attributes.flag("transpose_lhs")
                    && is_backward(&apply.operands[1]) =>
            {
                weight_gradient = Some(apply.operands[1]);
            }
            ("pairwise_interaction_gradient", Some((parameter, _)))
                if parts.interaction.as_ref().is_some_and(|term| term.factors == *parameter)
                    && apply.operands[..2] == [input, *parameter]
                    && is_backward(&apply.operands[2]) =>
            {
                factors_gradient = Some(apply.operands[2]);
            }
            ("reduce_to", Some((parameter, _)))
                if apply.operands[1] == *parameter && is_backward(&apply.operands[0]) =>
            {
                parts.reductions.push((*parameter, id, apply.operands[0]));
            }
            ("dense", Some((parameter, _)))
                if is_backward(&apply.operands[0]) && graph.shape(*parameter) == space =>
            {
                return Err("a parameter has the batch's shape".into());
            }
            ("softmax", None)
                if in_space(&parts, apply.operands[0], false)
                    && apply.operator.integer(&apply.attributes, "axis") != Some(0)
                    && graph.outputs.iter().any(|output| output.value == id) =>
            {
                parts.softmax.push((id, apply.operands[0]));
            }
            _ if graph.shape(id) == space && is_element_wise(graph, &parts, id, &space) => {
                let backward =
                    apply.operands.iter().any(|operand| in_space(&parts, *operand, true));
                if backward { &mut parts.backward } else { &mut parts.forward }.push(id);
            }
            (name, _) => {
                return Err(format!(
                    "`{}` (`{name}`) is not element-wise over the rows",
                    graph.label(id)
                ));
            }
        }
    }
    parts.product_gradient = weight_gradient.ok_or_else(|| {
        format!(
            "the gradient of `{}` is not a product with `{}`",
            graph.label(weight),
            graph.label(input)
        )
    })?;
    if let Some(term) = &mut parts.interaction {
        term.gradient = factors_gradient.ok_or_else(|| {
            format!(
                "the gradient of `{}` is not that of one interaction",
                graph.label(term.factors)
            )
        })?;
    }
    if score != product && !parts.forward.contains(&score) {
        return Err("the scores are not computed from the product row by row".into());
    }
    let by_rows = 1 + usize::from(parts.interaction.is_some());
    if parts.reductions.len() + by_rows != graph.gradients.len() {
        return Err("a parameter's gradient is not a sum over the rows".into());
    }
    Ok(parts)
}

/// The one product of a csr input with a parameter.
fn find_product(graph: &Graph) -> Result<ValueId, String> {
    let mut products = graph.ids().filter(|id| {
        graph.apply_of(*id).is_some_and(|apply| {
            apply.operator.name == "dot"
                && !apply.attributes.flag("transpose_lhs")
                && !apply.attributes.flag("transpose_rhs")
                && graph.storage(apply.operands[0]) == Storage::Csr
                && matches!(graph.value(apply.operands[0]).kind, Kind::Input)
                && matches!(
                    graph.value(apply.operands[1]).kind,
                    Kind::Parameter { frozen: false, .. }
                )
        })
    });
    let product = products.next().ok_or("no product of a csr input with a trained parameter")?;
    match products.next() {
        None => Ok(product),
        Some(_) => Err("the model has several products of a csr input with a parameter".into()),
    }
}

/// The second-order term over the same input, if there is one; its gradient is filled in later.
fn find_interaction(
    graph: &Graph,
    input: ValueId,
    space: &Dims,
) -> Result<Option<Interaction>, String> {
    let mut terms = graph.ids().filter_map(|id| {
        let apply = graph.apply_of(id)?;
        (apply.operator.name == "pairwise_interaction").then_some((id, apply))
    });
    let Some((value, apply)) = terms.next() else {
        return Ok(None);
    };
    if terms.next().is_some() {
        return Err("the model has several interactions".into());
    }
    let factors = apply.operands[1];
    let is_trained = matches!(graph.value(factors).kind, Kind::Parameter { frozen: false, .. });
    if apply.operands[0] != input || !is_trained || space[1] != Dim::Size(1) {
        return Err(format!(
            "`{}` is not an interaction of the input of the product with a trained parameter",
            graph.label(value)
        ));
    }
    let size = graph.shape(factors)[1].clone();
    Ok(Some(Interaction { value, factors, size, gradient: value }))
}

/// Whether a value is one of the loop's, forward or backward.
fn in_space(parts: &LinearRows, id: ValueId, backward: bool) -> bool {
    if backward {
        id == parts.score_gradient || parts.backward.contains(&id)
    } else {
        id == parts.product
            || parts.interaction.as_ref().is_some_and(|term| term.value == id)
            || parts.forward.contains(&id)
    }
}

/// Whether a value is a scalar function of values of the space at the same place, numbers, and dense
/// parameters and inputs that the loop can index.
fn is_element_wise(graph: &Graph, parts: &LinearRows, id: ValueId, space: &Dims) -> bool {
    let Some(apply) = graph.apply_of(id) else {
        return false;
    };
    let scalar = match apply.operator.kind {
        operators::Kind::Unary(_) => true,
        operators::Kind::Binary(family, _) => {
            matches!(
                family,
                BinaryFamily::Union
                    | BinaryFamily::Intersection
                    | BinaryFamily::Left
                    | BinaryFamily::Gradient
                    | BinaryFamily::SlopedGradient
            )
        }
        _ => false,
    };
    scalar
        && apply.operands.iter().all(|operand| {
            in_space(parts, *operand, false)
                || in_space(parts, *operand, true)
                || graph.constant_of(*operand).is_some()
                || is_indexable(graph, *operand, space)
        })
}

/// A dense parameter that repeats in every row, or a dense input of the batch's shape.
fn is_indexable(graph: &Graph, id: ValueId, space: &Dims) -> bool {
    if graph.storage(id) != Storage::Dense {
        return false;
    }
    let shape = graph.shape(id);
    match graph.value(id).kind {
        Kind::Parameter { .. } => match shape.as_slice() {
            [] => true,
            [columns] => *columns == Dim::Size(1) || *columns == space[1],
            [rows, columns] => {
                *rows == Dim::Size(1) && (*columns == Dim::Size(1) || *columns == space[1])
            }
            _ => false,
        },
        Kind::Input => shape == *space,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::compile;
    use crate::ir::parse;

    fn run(text: &str) -> Fusion {
        let compiled = compile(parse(text).unwrap());
        assert!(compiled.errors().next().is_none(), "{:?}", compiled.diagnostics);
        compiled.fusion
    }

    const LINEAR: &str = "\
model M f32
x = input csr f32 [n, d]
y = label dense f32 [n, 1]
w = param row_sparse f32 [d, 1] \"\"
b = param dense f32 [1] \"\"
s = dot(x, w)
pred = add(s, b)
";

    #[test]
    fn a_linear_model_is_one_loop() {
        let Fusion::LinearRows(parts) =
            run(&format!("{LINEAR}p = sigmoid(pred)\nl = logistic(pred, y)\nloss l\noutput p = p"))
        else {
            panic!("not fused")
        };
        assert_eq!(parts.forward.len(), 2);
        assert!(parts.backward.is_empty());
        assert_eq!(parts.product_gradient, parts.score_gradient);
        assert_eq!(parts.reductions.len(), 1);
    }

    #[test]
    fn element_wise_chains_are_part_of_the_loop() {
        let Fusion::LinearRows(parts) = run(&format!(
            "{LINEAR}h = tanh(pred)\ng = multiply(h, 2)\nl = squared_error(g, y)\nloss l\noutput g = g"
        )) else {
            panic!("not fused")
        };
        assert_eq!((parts.forward.len(), parts.backward.len()), (3, 2));
        assert!(parts.backward.contains(&parts.product_gradient));
    }

    #[test]
    fn weights_of_rows_are_part_of_the_loop_where_they_are_data() {
        let head = LINEAR.replace("w = param", "v = label dense f32 [n]\nw = param");
        let Fusion::LinearRows(parts) = run(&format!("{head}l = hinge(pred, y, v)\nloss l")) else {
            panic!("not fused")
        };
        assert_eq!(parts.row_weight, Some(ValueId(2)));
        let unfused = run(&format!("{head}u = square(v)\nl = hinge(pred, y, u)\nloss l"));
        assert_eq!(unfused.reason(), Some("the weights of the rows are not data"));
        let csr = LINEAR.replace("label dense", "label csr");
        let unfused = run(&format!("{csr}l = poisson(pred, y)\nloss l"));
        assert_eq!(unfused.reason(), Some("the label is `csr`"));
    }

    #[test]
    fn an_interaction_is_part_of_the_loop() {
        let text =
            LINEAR.replace("b = param", "v = param row_sparse f32 [d, 4] \"\"\nb = param").replace(
                "pred = add(s, b)",
                "q = pairwise_interaction(x, v)\nt = add(s, q)\npred = add(t, b)",
            );
        let Fusion::LinearRows(parts) = run(&format!("{text}l = logistic(pred, y)\nloss l")) else {
            panic!("not fused")
        };
        let term = parts.interaction.unwrap();
        assert_eq!((term.size, term.gradient), (Dim::Size(4), parts.score_gradient));
        assert_eq!((parts.forward.len(), parts.reductions.len()), (2, 1));
    }

    #[test]
    fn what_is_not_fused_says_why() {
        let text =
            format!("{LINEAR}l = squared_error(pred, y)\nm = mean(pred)\nt = add(l, m)\nloss t");
        let because = "the loss is computed by `add`, not by a loss of the table";
        assert_eq!(run(&text).reason(), Some(because));
        assert!(matches!(run(&text), Fusion::Scattered { .. }));
        let mut off = parse(&text).unwrap();
        off.no_fuse = true;
        assert_eq!(
            compile(off).fusion,
            Fusion::None { reason: "the model says `fuse = off`".into() }
        );
    }
}
