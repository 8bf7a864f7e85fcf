//! Shapes and attributes for the rows whose shape rule needs them.

use crate::ir::{AttributeValue, Attributes, List};
use crate::operators::Signature;
use crate::shapes::{Dim, Dims};

/// For an operator that cannot be applied to matrices of named extents without attributes: what it
/// can be applied to, under a rule.
pub(super) fn of(operator: &str, signature: &Signature) -> Option<(Vec<Dims>, Attributes)> {
    let list = |entries: &[Option<i64>]| AttributeValue::List(List::new(entries));
    let by_rows = signature.condition.is_some();
    let cut = if by_rows { [Some(1), None] } else { [None, Some(1)] };
    let (shapes, attributes): (&[&[i64]], Vec<_>) = match operator {
        "slice" => (&[&[5, 4]], vec![("begin", list(&cut))]),
        "slice_gradient" if by_rows => (&[&[4, 4], &[5, 4]], vec![("begin", list(&cut))]),
        "slice_gradient" => (&[&[5, 3], &[5, 4]], vec![("begin", list(&cut))]),
        "slice_axis" => (&[&[5, 4]], vec![("begin", AttributeValue::Integer(1))]),
        "slice_axis_gradient" => {
            let axis = AttributeValue::Integer(if by_rows { 0 } else { 1 });
            let part: &[&[i64]] = if by_rows { &[&[4, 4], &[5, 4]] } else { &[&[5, 3], &[5, 4]] };
            (part, vec![("axis", axis), ("begin", AttributeValue::Integer(1))])
        }
        "slice_like" => (&[&[5, 4], &[3, 4]], vec![]),
        "slice_like_gradient" => (&[&[3, 4], &[5, 4]], vec![]),
        "take" => (&[&[5, 4], &[3]], vec![]),
        "take_gradient" if by_rows => (&[&[3, 4], &[3], &[5, 4]], vec![]),
        "take_gradient" => (&[&[5, 3], &[3], &[5, 4]], vec![("axis", AttributeValue::Integer(1))]),
        "pick" => (&[&[5, 4], &[5]], vec![]),
        "pick_gradient" => (&[&[5], &[5], &[5, 4]], vec![]),
        "one_hot" => (&[&[5]], vec![("depth", AttributeValue::Integer(4))]),
        "reshape" => (&[&[5, 4]], vec![("shape", list(&[Some(2), None]))]),
        "reshape_like" => (&[&[5, 4], &[2, 10]], vec![]),
        "permute" => (&[&[5, 4]], vec![("axes", list(&[Some(1), Some(0)]))]),
        "tile" => (&[&[5, 4]], vec![("reps", list(&[Some(2), Some(1)]))]),
        "tile_gradient" => (&[&[10, 4], &[5, 4]], vec![("reps", list(&[Some(2), Some(1)]))]),
        "repeat" => (&[&[5, 4]], vec![("repeats", AttributeValue::Integer(2))]),
        "repeat_gradient" => (&[&[10, 4], &[5, 4]], vec![("repeats", AttributeValue::Integer(2))]),
        "stack" => (&[&[5, 4], &[5, 4]], vec![]),
        "stack_next" => (&[&[2, 5, 4], &[5, 4]], vec![]),
        "topk" | "topk_ids" => (&[&[5, 4]], vec![("k", AttributeValue::Integer(2))]),
        "order_gradient" => (&[&[5, 2], &[5, 2], &[5, 4]], vec![]),
        "concat" => (&[&[5, 4], &[3, 4]], vec![]),
        "fully_connected" => (&[&[5, 4], &[3, 4], &[3]], vec![]),
        "read_rows" => (&[&[9, 3], &[5, 9]], vec![]),
        "embedding" => (&[&[5, 2], &[9, 3]], vec![]),
        "embedding_bag" => (&[&[5, 9], &[9, 3]], vec![]),
        "embedding_bag_gradient" => (&[&[5, 9], &[5, 3]], vec![]),
        "pairwise_interaction" => (&[&[5, 9], &[9, 3]], vec![]),
        "pairwise_interaction_gradient" | "pairwise_interaction_slope" => {
            (&[&[5, 9], &[9, 3], &[5, 1]], vec![])
        }
        "sampled_dot" => (&[&[5, 2], &[2, 4], &[5, 4]], vec![]),
        _ => return None,
    };
    let dims = |shape: &&[i64]| shape.iter().map(|extent| Dim::Size(*extent as u64)).collect();
    Some((shapes.iter().map(dims).collect(), Attributes::from(&attributes[..])))
}
