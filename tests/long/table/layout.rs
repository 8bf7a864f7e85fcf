//! The same elements in another shape or order, and repeated: what these operators can be applied
//! to, and from where in the operand each element of a result comes.

use super::moved::{Given, Shapes, array, at, axis, flag, list, single};
use super::naive::{Naive, indices};
use sparse_core::ir::{AttributeValue, Attributes};
use sparse_core::shapes::place_of;

/// Attributes and shapes.
pub(crate) fn applications(operator: &str) -> Option<Vec<(Given, Vec<Shapes>)>> {
    let pair = |a: &[usize], b: &[usize]| vec![a.to_vec(), b.to_vec()];
    Some(match operator {
        "reshape" => {
            let shape = |entries: &[Option<i64>]| vec![("shape", list(entries))];
            vec![
                (shape(&[Some(2), None]), single(&[vec![5, 4], vec![6], vec![3, 2, 2]])),
                (shape(&[Some(0), Some(2), Some(-1)]), single(&[vec![5, 4], vec![3, 2, 2]])),
            ]
        }
        "reshape_like" => {
            vec![(vec![], vec![pair(&[5, 4], &[4, 5]), pair(&[6], &[1, 6, 1])])]
        }
        "flatten" => vec![(vec![], single(&[vec![5, 4], vec![3, 2, 2], vec![4]]))],
        "expand_dims" => {
            vec![(vec![], single(&[vec![5, 4], vec![]])), (at(-1), single(&[vec![2, 3]]))]
        }
        "squeeze" => vec![(vec![], single(&[vec![5, 1], vec![1, 3, 1], vec![2]]))],
        "permute" => {
            let axes = vec![("axes", list(&[Some(2), Some(0), Some(1)]))];
            let inverse = [&axes[..], &flag("inverse")].concat();
            vec![(axes, single(&[vec![3, 2, 4]])), (inverse, single(&[vec![3, 2, 4]]))]
        }
        "swap_axes" => vec![(vec![], single(&[vec![5, 4], vec![3, 2, 4]]))],
        "reverse" => vec![
            (vec![], single(&[vec![5, 4], vec![6], vec![0, 3]])),
            (at(0), single(&[vec![5, 4], vec![3, 2, 2]])),
        ],
        "tile" => {
            vec![(vec![("reps", list(&[Some(2), Some(3)]))], single(&[vec![5, 4], vec![1, 3]]))]
        }
        "tile_gradient" => {
            vec![(vec![("reps", list(&[Some(2), Some(3)]))], vec![pair(&[6, 9], &[3, 3])])]
        }
        "repeat" | "repeat_gradient" => {
            let repeats = [&at(1)[..], &[("repeats", AttributeValue::Integer(3))]].concat();
            let sum = vec![vec![5, 12], vec![5, 4]];
            let shapes = if operator == "repeat" { vec![sum[1..].to_vec()] } else { vec![sum] };
            vec![(repeats, shapes)]
        }
        "stack" => vec![
            (vec![], vec![pair(&[5, 4], &[5, 4]), pair(&[], &[]), pair(&[3, 0], &[3, 0])]),
            (at(1), vec![pair(&[5, 4], &[5, 4]), pair(&[3], &[3])]),
            (at(-1), vec![pair(&[3, 2, 2], &[3, 2, 2]), pair(&[3], &[3])]),
        ],
        "stack_next" => vec![
            (vec![], vec![pair(&[2, 5, 4], &[5, 4]), pair(&[2], &[])]),
            (at(1), vec![pair(&[5, 3, 4], &[5, 4])]),
            (at(-1), vec![pair(&[3, 2, 2], &[3, 2])]),
        ],
        _ => return None,
    })
}

/// What an operator gives.
pub(crate) fn evaluate(
    operator: &str,
    attributes: &Attributes,
    operands: &[Naive],
) -> Option<Naive> {
    let x = &operands[0];
    let rank = x.shape.len();
    // The operand at another index than that of the result.
    let from = |shape: &[usize], place: &dyn Fn(&[usize], usize) -> usize| {
        array(shape, |index| {
            x.at(&(0..rank).map(|axis| place(index, axis)).collect::<Vec<usize>>())
        })
    };
    // The other way: elements added up where they come from.
    let back = |place: &dyn Fn(&[usize], usize) -> usize| {
        let mut sums = array(&operands[1].shape, |_| 0.0);
        for (index, value) in indices(&x.shape).iter().zip(&x.values) {
            let source: Vec<usize> = (0..rank).map(|axis| place(index, axis)).collect();
            *sums.at_mut(&source) += value;
        }
        sums
    };
    let repeats = attributes.integer("repeats").unwrap_or(1) as usize;
    let repeated = |shape: &[usize]| place_of(attributes.integer("axis").unwrap_or(0), shape.len());
    Some(match operator {
        // The elements stay in their order, row major.
        "reshape" | "reshape_like" | "flatten" | "expand_dims" | "squeeze" => x.clone(),
        "permute" => {
            let axes = attributes.list("axes").unwrap();
            let axes: Vec<usize> = axes.values().map(|axis| axis as usize).collect();
            // Axis i of the result is axis `order[i]` of the operand.
            let order: Vec<usize> = if attributes.flag("inverse") {
                (0..rank).map(|to| axes.iter().position(|at| *at == to).unwrap()).collect()
            } else {
                axes
            };
            let shape: Vec<usize> = order.iter().map(|axis| x.shape[*axis]).collect();
            from(&shape, &|index, axis| index[order.iter().position(|at| *at == axis).unwrap()])
        }
        "swap_axes" => {
            let axis = |name, default| {
                place_of(attributes.integer(name).unwrap_or(default), rank).unwrap()
            };
            let (first, second) = (axis("first", 0), axis("second", 1));
            let other = |axis: usize| match axis {
                axis if axis == first => second,
                axis if axis == second => first,
                axis => axis,
            };
            let shape: Vec<usize> = (0..rank).map(|axis| x.shape[other(axis)]).collect();
            from(&shape, &|index, axis| index[other(axis)])
        }
        "reverse" => {
            let axes = attributes.axes("axis");
            from(&x.shape, &|index, axis| {
                if axes.contain(axis, rank) { x.shape[axis] - 1 - index[axis] } else { index[axis] }
            })
        }
        "tile" => {
            let reps = attributes.list("reps").unwrap();
            let reps = reps.values().map(|reps| reps as usize);
            let shape: Vec<usize> = x.shape.iter().zip(reps).map(|(n, reps)| n * reps).collect();
            from(&shape, &|index, axis| index[axis] % x.shape[axis])
        }
        "tile_gradient" => back(&|index, axis| index[axis] % operands[1].shape[axis]),
        "repeat" => {
            let (mut shape, repeated) = (x.shape.clone(), repeated(&x.shape));
            shape[repeated.unwrap()] *= repeats;
            from(&shape, &|index, axis| {
                if repeated == Some(axis) { index[axis] / repeats } else { index[axis] }
            })
        }
        "repeat_gradient" => {
            let repeated = repeated(&x.shape);
            back(&|index, axis| {
                if repeated == Some(axis) { index[axis] / repeats } else { index[axis] }
            })
        }
        "stack" | "stack_next" => {
            let next = operator == "stack_next";
            let mut shape = operands[1].shape.clone();
            let axis = if next {
                axis(attributes, &x.shape)
            } else {
                place_of(attributes.integer("axis").unwrap_or(0), rank + 1).unwrap()
            };
            let stacked = if next { x.shape[axis] } else { 1 };
            shape.insert(axis, stacked + 1);
            array(&shape, |index| {
                let mut one = index.to_vec();
                one.remove(axis);
                if index[axis] >= stacked {
                    operands[1].at(&one)
                } else if next {
                    x.at(index)
                } else {
                    x.at(&one)
                }
            })
        }
        _ => return None,
    })
}
