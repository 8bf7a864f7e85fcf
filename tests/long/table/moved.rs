//! Operators that move elements: what they can be applied to, and what they mean, index by index.

use super::naive::{Naive, indices};
use super::{layout, order};
use sparse_core::ir::{AttributeValue, Attributes, List};
use sparse_core::shapes::place_of;

pub(crate) type Shapes = Vec<Vec<usize>>;
pub(crate) type Given = Vec<(&'static str, AttributeValue)>;

/// Attributes and shapes for an operator whose shape rule needs them.
pub(crate) fn applications(operator: &str) -> Option<Vec<(Attributes, Vec<Shapes>)>> {
    let applications: Vec<(Given, Vec<Shapes>)> = match operator {
        "slice" => slices().into_iter().map(|(given, shapes)| (given, single(&shapes))).collect(),
        "slice_gradient" => with_part(slices(), slice_spans),
        "slice_axis" => {
            axis_slices().into_iter().map(|(given, shapes)| (given, single(&shapes))).collect()
        }
        "slice_axis_gradient" => with_part(axis_slices(), axis_spans),
        "slice_like" => parts_of(),
        "slice_like_gradient" => {
            let turned = |mut shapes: Shapes| {
                shapes.reverse();
                shapes
            };
            let parts = parts_of().into_iter();
            // With some axes given, `like` may have any extents along the others.
            let fits = |shapes: &Shapes| {
                shapes[0].len() == shapes[1].len()
                    && shapes[0].iter().zip(&shapes[1]).all(|(part, whole)| part <= whole)
            };
            parts
                .map(|(given, shapes)| {
                    let axes = Attributes::from(&given[..]).axes("axes");
                    let whole = |shapes: &Shapes| {
                        (0..shapes[1].len()).all(|at| {
                            axes.contain(at, shapes[1].len()) || shapes[0][at] == shapes[1][at]
                        })
                    };
                    let shapes = shapes.into_iter().map(turned).filter(fits).filter(whole);
                    (given, shapes.collect())
                })
                .collect()
        }
        "concat" => {
            let pair = |a: &[usize], b: &[usize]| vec![a.to_vec(), b.to_vec()];
            vec![
                (vec![], vec![pair(&[5, 4], &[3, 4]), pair(&[2], &[3]), pair(&[0, 3], &[2, 3])]),
                (at(0), vec![pair(&[1, 2, 3], &[2, 2, 3]), pair(&[3, 0], &[2, 0])]),
                (
                    at(1),
                    vec![
                        pair(&[5, 4], &[5, 1]),
                        pair(&[3, 0], &[3, 2]),
                        pair(&[2, 1, 3], &[2, 2, 3]),
                    ],
                ),
                (
                    at(-1),
                    vec![
                        pair(&[5, 4], &[5, 3]),
                        pair(&[2, 2, 1], &[2, 2, 3]),
                        pair(&[4, 2], &[4, 0]),
                    ],
                ),
            ]
        }
        "retain" => vec![(vec![], chosen(&[&[5, 4], &[6], &[3, 2, 2], &[3, 0]], |_| vec![3]))],
        "take" => vec![
            (vec![], chosen(&[&[5, 4], &[6], &[3, 2, 2], &[3, 0], &[1, 1]], |_| vec![4])),
            (vec![], chosen(&[&[5, 4], &[6]], |_| vec![2, 3])),
            (vec![], chosen(&[&[5, 4]], |_| vec![])),
            (at(1), chosen(&[&[5, 4], &[3, 2, 2]], |_| vec![3])),
            (at(-1), chosen(&[&[5, 4], &[6]], |_| vec![0])),
            (flag("clip"), chosen(&[&[5, 4]], |_| vec![7])),
            (flag("wrap"), chosen(&[&[5, 4]], |_| vec![7])),
        ],
        "take_gradient" => {
            let takes = self::applications("take")?.into_iter();
            let turned = takes.map(|(attributes, shapes)| {
                let shapes = shapes.into_iter().map(|shapes| {
                    let axis = axis(&attributes, &shapes[0]);
                    let mut taken = shapes[0].clone();
                    taken.splice(axis..=axis, shapes[1].clone());
                    vec![taken, shapes[1].clone(), shapes[0].clone()]
                });
                (attributes.clone(), shapes.collect())
            });
            return Some(turned.collect());
        }
        "pick" | "pick_gradient" => {
            let shapes: [&[usize]; 5] = [&[5, 4], &[6], &[3, 2, 4], &[0, 3], &[1, 1]];
            let without = |axis: usize| {
                move |shape: &[usize]| {
                    let mut shape = shape.to_vec();
                    shape.remove(axis.min(shape.len() - 1));
                    shape
                }
            };
            let keep = |shape: &[usize]| {
                let mut shape = shape.to_vec();
                shape[0] = 1;
                shape
            };
            let mut kept = at(0);
            kept.push(("keepdims", AttributeValue::Flag(true)));
            let picks = vec![
                (vec![], chosen(&shapes, without(9))),
                (at(0), chosen(&shapes[..3], without(0))),
                (at(1), chosen(&[&[3, 2, 4], &[4, 5]], without(1))),
                (kept, chosen(&shapes[..3], keep)),
            ];
            if operator == "pick" {
                picks
            } else {
                let turned = |(given, shapes): (Given, Vec<Shapes>)| {
                    let given = given.into_iter().filter(|(name, _)| *name == "axis").collect();
                    let turn = |shapes: Shapes| {
                        vec![shapes[1].clone(), shapes[1].clone(), shapes[0].clone()]
                    };
                    (given, shapes.into_iter().map(turn).collect())
                };
                picks.into_iter().map(turned).collect()
            }
        }
        "one_hot" => {
            let depth = |depth| vec![("depth", AttributeValue::Integer(depth))];
            vec![(depth(3), single(&[vec![4], vec![0]]))]
        }
        _ => layout::applications(operator).or_else(|| order::applications(operator))?,
    };
    let applications = applications.into_iter();
    Some(applications.map(|(given, shapes)| (Attributes::from(&given[..]), shapes)).collect())
}

pub(crate) fn at(axis: i64) -> Given {
    vec![("axis", AttributeValue::Integer(axis))]
}

/// Shapes, each with that of its ids.
fn chosen(shapes: &[&[usize]], ids: impl Fn(&[usize]) -> Vec<usize>) -> Vec<Shapes> {
    shapes.iter().map(|shape| vec![shape.to_vec(), ids(shape)]).collect()
}

pub(crate) fn flag(name: &'static str) -> Given {
    vec![(name, AttributeValue::Flag(true))]
}

/// What ids stay below.
pub(crate) fn bound(
    operator: &str,
    attributes: &Attributes,
    shapes: &[Vec<usize>],
) -> Option<usize> {
    Some(match operator {
        "retain" => shapes[0][0],
        "take" => shapes[0][axis(attributes, &shapes[0])],
        "take_gradient" => shapes[2][axis(attributes, &shapes[2])],
        "pick" => shapes[0][axis_or(attributes, &shapes[0], -1)],
        "order_gradient" => shapes[2][axis_or(attributes, &shapes[2], -1)],
        "pick_gradient" => shapes[2][axis_or(attributes, &shapes[2], -1)],
        "one_hot" => attributes.integer("depth").unwrap() as usize,
        _ => return None,
    })
}

pub(crate) fn single(shapes: &[Vec<usize>]) -> Vec<Shapes> {
    shapes.iter().map(|shape| vec![shape.clone()]).collect()
}

pub(crate) fn list(entries: &[Option<i64>]) -> AttributeValue {
    AttributeValue::List(List::new(entries))
}

/// Slices by lists, and the shapes that they fit.
fn slices() -> Vec<(Given, Vec<Vec<usize>>)> {
    let shapes = || vec![vec![5, 4], vec![6, 1], vec![3, 2, 4], vec![0, 3], vec![3, 0], vec![7]];
    let matrices = || vec![vec![5, 4], vec![1, 6], vec![4, 2, 3], vec![3, 0]];
    let (begin, end, step) = ("begin", "end", "step");
    vec![
        (vec![], shapes()),
        (vec![(begin, list(&[Some(1)]))], shapes()),
        (vec![(begin, list(&[Some(-2)])), (end, list(&[Some(10)]))], shapes()),
        (vec![(begin, list(&[Some(1)])), (end, list(&[Some(1)]))], shapes()),
        (vec![(begin, list(&[None, Some(1)])), (end, list(&[None, Some(3)]))], matrices()),
        (vec![(begin, list(&[Some(1), Some(1)])), (end, list(&[Some(4), None]))], matrices()),
        (vec![(step, list(&[Some(2), Some(3)]))], matrices()),
        (vec![(step, list(&[Some(-1)]))], shapes()),
        (
            vec![(begin, list(&[Some(3)])), (end, list(&[Some(0)])), (step, list(&[Some(-2)]))],
            shapes(),
        ),
        (vec![(step, list(&[None, Some(-1)]))], matrices()),
        (vec![(begin, list(&[None, Some(-1)])), (step, list(&[Some(-2), Some(-2)]))], matrices()),
        (vec![(begin, list(&[None, None, Some(1)]))], vec![vec![2, 3, 4]]),
    ]
}

fn axis_slices() -> Vec<(Given, Vec<Vec<usize>>)> {
    let integer = AttributeValue::Integer;
    let of = |axis, begin, end, step: Option<i64>| -> Given {
        let mut given = at(axis);
        given.extend([("begin", integer(begin)), ("end", integer(end))]);
        given.extend(step.map(|step| ("step", integer(step))));
        given
    };
    let shapes = || vec![vec![5, 4], vec![1, 6], vec![3, 2, 4], vec![3, 0]];
    vec![
        (vec![], vec![vec![4], vec![2, 3]]),
        (vec![("begin", integer(-2))], shapes()),
        (of(0, 1, 3, None), shapes()),
        (of(1, 0, 2, None), shapes()),
        (of(-1, -3, -1, None), shapes()),
        (of(0, 0, 5, Some(2)), shapes()),
        (of(1, 3, 0, Some(-1)), shapes()),
    ]
}

/// Shapes with those of parts of them.
fn parts_of() -> Vec<(Given, Vec<Shapes>)> {
    let pair = |a: &[usize], b: &[usize]| vec![a.to_vec(), b.to_vec()];
    let all = || {
        vec![
            pair(&[5, 4], &[3, 4]),
            pair(&[5, 4], &[2, 1]),
            pair(&[4], &[4]),
            pair(&[3, 2, 2], &[0, 2, 1]),
        ]
    };
    let (axes, last) =
        (|axis| ("axes", AttributeValue::Integer(axis)), ("from_end", AttributeValue::Flag(true)));
    vec![
        (vec![], all()),
        (vec![last], all()),
        (vec![axes(0)], vec![pair(&[5, 4], &[2, 9]), pair(&[5, 4], &[3, 4]), pair(&[5, 4], &[3])]),
        (
            vec![axes(1), last],
            vec![pair(&[5, 4], &[5, 3]), pair(&[2, 4, 3], &[2, 1, 3]), pair(&[3, 2], &[3, 0])],
        ),
        (vec![axes(-1)], vec![pair(&[5, 4], &[5, 3])]),
    ]
}

/// For gradients: the shape of the part before that of the whole.
fn with_part(
    slices: Vec<(Given, Vec<Vec<usize>>)>,
    spans: fn(&Attributes, &[usize]) -> Vec<Vec<usize>>,
) -> Vec<(Given, Vec<Shapes>)> {
    let with_part = |(given, shapes): (Given, Vec<Vec<usize>>)| {
        let attributes = Attributes::from(&given[..]);
        let shapes = shapes.into_iter().map(|shape| {
            let part = spans(&attributes, &shape).iter().map(Vec::len).collect();
            vec![part, shape]
        });
        (given, shapes.collect())
    };
    slices.into_iter().map(with_part).collect()
}

/// The positions of `begin:end:step`, by counting.
fn positions(begin: Option<i64>, end: Option<i64>, step: Option<i64>, extent: usize) -> Vec<usize> {
    let (extent, step) = (extent as i64, step.unwrap_or(1));
    let place = |bound: i64| if bound < 0 { bound + extent } else { bound };
    let begin = begin.map(place).unwrap_or(if step > 0 { 0 } else { extent - 1 });
    let end = end.map(place).unwrap_or(if step > 0 { extent } else { -1 });
    let begin = if step > 0 { begin.max(0) } else { begin.min(extent - 1) };
    std::iter::successors(Some(begin), |at| Some(at + step))
        .take_while(|at| (0..extent).contains(at) && if step > 0 { *at < end } else { *at > end })
        .map(|at| at as usize)
        .collect()
}

fn slice_spans(attributes: &Attributes, shape: &[usize]) -> Vec<Vec<usize>> {
    let [begin, end, step] =
        ["begin", "end", "step"].map(|name| attributes.list(name).unwrap_or_default());
    let axes = shape.iter().enumerate();
    axes.map(|(axis, extent)| positions(begin.get(axis), end.get(axis), step.get(axis), *extent))
        .collect()
}

fn axis_spans(attributes: &Attributes, shape: &[usize]) -> Vec<Vec<usize>> {
    let [begin, end, step] =
        ["begin", "end", "step"].map(|name| attributes.list(name).and_then(|list| list.get(0)));
    let cut = axis(attributes, shape);
    let axes = shape.iter().enumerate();
    axes.map(|(axis, extent)| {
        if axis == cut { positions(begin, end, step, *extent) } else { (0..*extent).collect() }
    })
    .collect()
}

fn like_spans(attributes: &Attributes, shape: &[usize], like: &[usize]) -> Vec<Vec<usize>> {
    let axes = attributes.axes("axes");
    let each = shape.iter().enumerate().map(|(axis, &extent)| {
        if !axes.contain(axis, shape.len()) {
            return (0..extent).collect();
        }
        let start = if attributes.flag("from_end") { extent - like[axis] } else { 0 };
        (start..start + like[axis]).collect()
    });
    each.collect()
}

pub(crate) fn axis(attributes: &Attributes, shape: &[usize]) -> usize {
    axis_or(attributes, shape, 0)
}

pub(crate) fn axis_or(attributes: &Attributes, shape: &[usize], default: i64) -> usize {
    place_of(attributes.integer("axis").unwrap_or(default), shape.len()).unwrap()
}

/// The index in an array of the element at an index of what was taken from it.
fn taken_from(index: &[usize], axis: usize, ids: &Naive) -> Vec<usize> {
    let rank = ids.shape.len();
    let mut source = index[..axis].to_vec();
    source.push(ids.at(&index[axis..axis + rank]) as usize);
    source.extend(&index[axis + rank..]);
    source
}

/// The index in an array of the element that was picked for an index of the ids.
fn picked_from(index: &[usize], axis: usize, ids: &Naive, rank: usize) -> Vec<usize> {
    let mut source = index.to_vec();
    if index.len() < rank {
        source.insert(axis, 0);
    }
    source[axis] = ids.at(index) as usize;
    source
}

/// Where an element of a part comes from.
fn source(index: &[usize], spans: &[Vec<usize>]) -> Vec<usize> {
    index.iter().zip(spans).map(|(i, span)| span[*i]).collect()
}

/// An array from what its element at each index is.
pub(crate) fn array(shape: &[usize], element: impl Fn(&[usize]) -> f64) -> Naive {
    Naive::dense(shape, indices(shape).iter().map(|index| element(index)).collect())
}

fn part(x: &Naive, spans: &[Vec<usize>]) -> Naive {
    let shape: Vec<usize> = spans.iter().map(Vec::len).collect();
    array(&shape, |index| x.at(&source(index, spans)))
}

fn placed(part: &Naive, shape: &[usize], spans: &[Vec<usize>]) -> Naive {
    let mut whole = Naive::dense(shape, vec![0.0; shape.iter().product()]);
    for (index, value) in indices(&part.shape).iter().zip(&part.values) {
        *whole.at_mut(&source(index, spans)) += value;
    }
    whole
}

/// What an operator gives.
pub(crate) fn evaluate(
    operator: &str,
    attributes: &Attributes,
    operands: &[Naive],
) -> Option<Naive> {
    let x = &operands[0];
    let shape_of = |index: usize| &operands[index].shape[..];
    Some(match operator {
        "slice" => part(x, &slice_spans(attributes, &x.shape)),
        "slice_axis" => part(x, &axis_spans(attributes, &x.shape)),
        "slice_like" => part(x, &like_spans(attributes, &x.shape, shape_of(1))),
        "slice_gradient" => placed(x, shape_of(1), &slice_spans(attributes, shape_of(1))),
        "slice_axis_gradient" => placed(x, shape_of(1), &axis_spans(attributes, shape_of(1))),
        "slice_like_gradient" => {
            placed(x, shape_of(1), &like_spans(attributes, shape_of(1), &x.shape))
        }
        "retain" => array(&x.shape, |index| {
            let kept = operands[1].values.contains(&(index[0] as f64));
            if kept { x.at(index) } else { 0.0 }
        }),
        "take" => {
            let (axis, ids) = (axis(attributes, &x.shape), &operands[1]);
            let mut shape = x.shape.clone();
            shape.splice(axis..=axis, ids.shape.clone());
            array(&shape, |index| x.at(&taken_from(index, axis, ids)))
        }
        "take_gradient" => {
            let (axis, ids) = (axis(attributes, shape_of(2)), &operands[1]);
            let mut sums = array(shape_of(2), |_| 0.0);
            for (index, value) in indices(&x.shape).iter().zip(&x.values) {
                *sums.at_mut(&taken_from(index, axis, ids)) += value;
            }
            sums
        }
        "pick" => {
            let (axis, ids) = (axis_or(attributes, &x.shape, -1), &operands[1]);
            let from = |index: &[usize]| x.at(&picked_from(index, axis, ids, x.shape.len()));
            let found = array(&ids.shape, from);
            let mut shape = x.shape.clone();
            if attributes.flag("keepdims") {
                shape[axis] = 1;
            } else {
                shape.remove(axis);
            }
            Naive::dense(&shape, found.values)
        }
        "pick_gradient" => {
            let (axis, ids) = (axis_or(attributes, shape_of(2), -1), &operands[1]);
            let mut sums = array(shape_of(2), |_| 0.0);
            for (index, value) in indices(&x.shape).iter().zip(&x.values) {
                *sums.at_mut(&picked_from(index, axis, ids, shape_of(2).len())) += value;
            }
            sums
        }
        "one_hot" => {
            let depth = attributes.integer("depth").unwrap() as usize;
            array(&[x.shape[0], depth], |index| f64::from(x.values[index[0]] as usize == index[1]))
        }
        "select" => {
            let each = x.values.iter().zip(&operands[1].values).zip(&operands[2].values);
            let each = each.map(|((condition, x), y)| if *condition != 0.0 { *x } else { *y });
            Naive::dense(&x.shape, each.collect())
        }
        "concat" => {
            let (axis, mut shape) = (axis(attributes, &x.shape), x.shape.clone());
            shape[axis] += shape_of(1)[axis];
            array(&shape, |index| match index[axis].checked_sub(x.shape[axis]) {
                None => x.at(index),
                Some(rest) => {
                    let mut index = index.to_vec();
                    index[axis] = rest;
                    operands[1].at(&index)
                }
            })
        }
        _ => {
            return layout::evaluate(operator, attributes, operands)
                .or_else(|| order::evaluate(operator, attributes, operands));
        }
    })
}
