//! Elements in order, positions and counts, and what is normalised along an axis: what these
//! operators can be applied to, and what they mean, element by element.

use super::moved::{Given, Shapes, array, at, axis_or, flag, single};
use super::naive::{Naive, indices};
use sparse_core::ir::{AttributeValue, Attributes};

/// Attributes and shapes.
pub(crate) fn applications(operator: &str) -> Option<Vec<(Given, Vec<Shapes>)>> {
    let some = || vec![vec![5, 4], vec![6], vec![3, 2, 4], vec![1, 1]];
    let matrices = || vec![vec![5, 4], vec![3, 2, 4], vec![1, 6]];
    let empty = || vec![vec![0, 3], vec![3, 0]];
    Some(match operator {
        "argmax" | "argmin" | "count_stored" => {
            let shapes = || single(&[vec![5, 4], vec![1, 6], vec![6, 1], vec![2, 3, 2]]);
            vec![(vec![], shapes()), (at(0), shapes()), (at(1), shapes())]
        }
        "sort" | "argsort" => vec![
            (vec![], single(&[some(), empty()].concat())),
            (flag("descending"), single(&some())),
            (at(0), single(&[matrices(), empty()].concat())),
            ([at(1), flag("descending")].concat(), single(&matrices())),
        ],
        "topk" | "topk_ids" => {
            let k = |k| vec![("k", AttributeValue::Integer(k))];
            vec![
                (vec![], single(&[some(), vec![vec![0, 3]]].concat())),
                (k(3), single(&[vec![5, 4], vec![6], vec![3, 2, 3]])),
                ([k(2), at(0)].concat(), single(&[vec![5, 4], vec![3, 2, 4], vec![2, 1]])),
                ([k(2), at(1), flag("smallest")].concat(), single(&[vec![5, 4], vec![3, 2, 4]])),
            ]
        }
        "order_gradient" => {
            let of = |part: &[usize], whole: &[usize]| {
                vec![part.to_vec(), part.to_vec(), whole.to_vec()]
            };
            vec![
                (vec![], vec![of(&[5, 2], &[5, 4]), of(&[6], &[6]), of(&[3, 0], &[3, 0])]),
                (at(0), vec![of(&[2, 4], &[5, 4]), of(&[1, 2, 4], &[3, 2, 4])]),
                (at(1), vec![of(&[3, 2, 4], &[3, 5, 4])]),
            ]
        }
        "softmax" | "log_softmax" => vec![
            (vec![], single(&[some(), empty()].concat())),
            (at(0), single(&[some(), empty()].concat())),
            (at(1), single(&matrices())),
        ],
        "softmax_gradient" => {
            let twice = |shape: Vec<usize>| vec![shape.clone(), shape];
            let pairs = |shapes: Vec<Vec<usize>>| shapes.into_iter().map(twice).collect();
            vec![
                (vec![], pairs([some(), empty()].concat())),
                (at(0), pairs(some())),
                (at(1), pairs(matrices())),
            ]
        }
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
    let axis = |shape: &[usize]| axis_or(attributes, shape, -1);
    // The elements along the axis through an index.
    let along = |x: &Naive, index: &[usize]| -> Vec<f64> {
        let axis = axis(&x.shape);
        let at = |position| {
            let mut index = index.to_vec();
            index[axis] = position;
            x.at(&index)
        };
        (0..x.shape[axis]).map(at).collect()
    };
    Some(match operator {
        "argmax" | "argmin" | "count_stored" => {
            let axes = attributes.axes("axis");
            let gone = |at: usize| axes.contain(at, x.shape.len());
            let kept: Vec<usize> =
                (0..x.shape.len()).map(|at| if gone(at) { 1 } else { x.shape[at] }).collect();
            // The elements that each result is of, in order.
            let mut groups: Vec<Vec<usize>> = vec![Vec::new(); kept.iter().product()];
            for (place, index) in indices(&x.shape).iter().enumerate() {
                let group = index.iter().zip(&kept).fold(0, |group, (i, extent)| {
                    group * extent + if *extent == 1 { 0 } else { *i }
                });
                groups[group].push(place);
            }
            let largest = operator == "argmax";
            let result = |group: &Vec<usize>| {
                if operator == "count_stored" {
                    return group.iter().filter(|place| x.stored[**place]).count() as f64;
                }
                let values: Vec<f64> = group.iter().map(|place| x.values[*place]).collect();
                let extreme =
                    values.iter().copied().reduce(if largest { f64::max } else { f64::min });
                values.iter().position(|value| Some(*value) == extreme).unwrap_or(0) as f64
            };
            Naive::dense(&kept, groups.iter().map(result).collect())
        }
        "sort" | "argsort" | "topk" | "topk_ids" => {
            let (axis, mut shape) = (axis(&x.shape), x.shape.clone());
            let largest_first = if operator.starts_with("topk") {
                shape[axis] = attributes.integer("k").unwrap_or(1) as usize;
                !attributes.flag("smallest")
            } else {
                attributes.flag("descending")
            };
            array(&shape, |index| {
                let values = along(x, index);
                let before = |a: usize, b: usize| {
                    if largest_first {
                        values[a] > values[b] || values[a] == values[b] && a < b
                    } else {
                        values[a] < values[b] || values[a] == values[b] && a < b
                    }
                };
                // The one that as many come before as its place says.
                let rank = |at: &usize| (0..values.len()).filter(|b| before(*b, *at)).count();
                let position = (0..values.len()).find(|at| rank(at) == index[axis]).unwrap();
                match operator {
                    "sort" | "topk" => values[position],
                    _ => position as f64,
                }
            })
        }
        "order_gradient" => {
            let whole = &operands[2].shape;
            let mut sums = array(whole, |_| 0.0);
            for (place, index) in indices(&x.shape).iter().enumerate() {
                let mut source = index.clone();
                source[axis(whole)] = operands[1].values[place] as usize;
                *sums.at_mut(&source) += x.values[place];
            }
            sums
        }
        "softmax" | "log_softmax" => array(&x.shape, |index| {
            let total: f64 = along(x, index).iter().map(|x| x.exp()).sum();
            if operator == "softmax" { x.at(index).exp() / total } else { x.at(index) - total.ln() }
        }),
        // The Jacobian of softmax, written out, times the gradient that arrives.
        "softmax_gradient" => {
            let y = &operands[1];
            array(&x.shape, |index| {
                let (at, of) = (index[axis(&x.shape)], y.at(index));
                let derivative =
                    |(j, y): (usize, f64)| if j == at { of * (1.0 - of) } else { -of * y };
                let derivatives = along(y, index).into_iter().enumerate().map(derivative);
                derivatives.zip(along(x, index)).map(|(derivative, g)| derivative * g).sum()
            })
        }
        _ => return None,
    })
}
