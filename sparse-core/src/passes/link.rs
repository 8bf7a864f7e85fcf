//! Link functions of outputs: metrics see the score in place of the first output.
//!
//! In f32 a sigmoid is 1 from a score of 17.5 on, so that the output no longer has the order of the
//! scores. The score is therefore kept until the next batch, in a buffer of its own, and no loop
//! computes it on the way to the output without storing it.

use crate::ir::{Graph, ValueId};
use crate::operators::Link;
use crate::shapes::place_of;
use crate::storage::Storage;

/// The link that gives the first output of a model with a loss, and the score that it is of: a
/// dense value that is computed, with the shape of the output. `None` of any other output.
pub fn linked_score(graph: &Graph) -> Option<(Link, ValueId)> {
    // Metrics are measured beside the loss.
    let output = graph.outputs.first().filter(|_| !graph.losses.is_empty())?;
    let apply = graph.apply_of(output.value)?;
    let (link, score) = (apply.operator.link?, *apply.operands.first()?);
    let is_computed = graph.apply_of(score).is_some();
    let is_by_rows = match link {
        Link::Sigmoid | Link::Exp => true,
        Link::Softmax => {
            let axis = apply.operator.integer(&apply.attributes, "axis");
            graph.shape(score).len() == 2 && axis.is_none_or(|axis| place_of(axis, 2) == Some(1))
        }
    };
    let is_dense = graph.storage(score) == Storage::Dense && graph.value(score).element.is_float();
    (is_computed && is_by_rows && is_dense).then_some((link, score))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::compile;
    use crate::ir::parse;
    use crate::passes::Destination;

    const MODEL: &str = "\
model M f32
x = input csr f32 [n, d]
y = label dense f32 [n, 1]
w = param row_sparse f32 [d, 1] \"Zeros\"
s = dot(x, w)
";

    #[test]
    fn n4_the_score_of_a_link_is_stored_and_kept() {
        let scores = [
            ("l = logistic(s, y)\nloss l\np = sigmoid(s)\noutput p = p", "s"),
            // On the way to the output alone: else one loop without it.
            ("l = logistic(s, y)\nloss l\nt = multiply(s, 2)\np = sigmoid(t)\noutput p = p", "t"),
            ("l = poisson(s, y)\nloss l\np = exp(s)\noutput p = p", "s"),
        ];
        for (rest, expected) in scores {
            let compiled = compile(parse(&format!("{MODEL}{rest}")).unwrap());
            assert!(compiled.errors().next().is_none(), "{:?}", compiled.diagnostics);
            let (graph, plan) = (&compiled.graph, &compiled.plan);
            let (_, score) = linked_score(graph).unwrap();
            assert_eq!(graph.label(score), expected);
            let place = plan.destinations[score.0].unwrap();
            assert!(matches!(place, Destination::Buffer(_)));
            let at = plan.all.iter().position(|id| *id == score).unwrap();
            let later = plan.all[at + 1..].iter().filter_map(|id| plan.destinations[id.0]);
            assert!(later.into_iter().all(|written| written != place), "{rest}");
        }
    }

    #[test]
    fn outputs_that_are_no_links_have_no_score() {
        let others = [
            "l = logistic(s, y)\nloss l\noutput s = s",
            "l = logistic(s, y)\nloss l\np = tanh(s)\noutput p = p",
            // Nothing is measured without a loss.
            "p = sigmoid(s)\noutput p = p",
            // Over the samples.
            "l = logistic(s, y)\nloss l\np = softmax(s, axis = 0)\noutput p = p",
        ];
        for rest in others {
            let compiled = compile(parse(&format!("{MODEL}{rest}")).unwrap());
            assert!(compiled.errors().next().is_none(), "{:?}", compiled.diagnostics);
            assert_eq!(linked_score(&compiled.graph), None, "{rest}");
        }
    }
}
