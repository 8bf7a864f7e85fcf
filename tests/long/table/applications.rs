//! Applications: for a row of the table, the shapes and attributes that it can be given.

use super::given::Numbers;
use super::moved;
use sparse_core::ir::{AttributeValue, Attributes, List, Number};
use sparse_core::operators::{AttributeKind, Given, Operator, Pattern, Signature};
use sparse_core::shapes::place_of;
use sparse_core::storage::Storage;
use std::collections::HashMap;

/// Shapes and attributes that fit each other and a rule.
#[derive(Clone, Debug)]
pub(crate) struct Application {
    /// The operands' shapes as they are stored.
    pub(crate) shapes: Vec<Vec<usize>>,
    pub(crate) attributes: Attributes,
}

/// Extents of the letters of a shape rule: square and not, one row, one column, none, and the
/// widths that kernels are compiled for.
const EXTENTS: [[usize; 3]; 14] = [
    [5, 4, 3],
    [3, 3, 3],
    [1, 6, 2],
    [6, 1, 1],
    [7, 5, 1],
    [2, 3, 4],
    [4, 3, 8],
    [9, 11, 16],
    [3, 2, 32],
    [5, 9, 21],
    [21, 18, 5],
    [0, 3, 2],
    [3, 0, 2],
    [3, 4, 0],
];

const SHAPES: [&[usize]; 10] =
    [&[5, 4], &[1, 6], &[6, 1], &[1, 1], &[0, 3], &[3, 0], &[5], &[4, 2, 3], &[2, 1, 2, 2], &[]];

/// Pairs of shapes that broadcast, none smaller than 1.
const PAIRS: [(&[usize], &[usize]); 16] = [
    (&[5, 4], &[5, 4]),
    (&[5, 4], &[4]),
    (&[5, 4], &[1]),
    (&[5, 4], &[]),
    (&[5, 4], &[1, 4]),
    (&[5, 4], &[5, 1]),
    (&[5, 4], &[1, 1]),
    (&[5, 1], &[1, 4]),
    (&[5, 1], &[4]),
    (&[5, 1], &[5, 1]),
    (&[3, 5, 4], &[5, 4]),
    (&[3, 5, 4], &[3, 1, 4]),
    (&[3, 5, 4], &[5, 1]),
    (&[3, 1, 2], &[4, 1]),
    (&[6], &[1]),
    (&[6], &[6]),
];

/// Everything that a rule can be applied to, in the sizes above.
pub(crate) fn applications(
    operator: &'static Operator,
    signature: &Signature,
    result: Storage,
) -> Vec<Application> {
    let mut applications = Vec::new();
    let (moved, candidates) = match moved::applications(operator.name) {
        Some(candidates) => (true, candidates),
        None => (false, candidates(operator, signature, result)),
    };
    for (mut attributes, choices) in candidates {
        if moved && result != signature.result {
            attributes.set("out", AttributeValue::Storage(result));
        }
        for shapes in choices {
            let fits =
                shapes.iter().zip(&signature.operands).all(|(shape, pattern)| match pattern {
                    Pattern::Array(Storage::Csr, _) | Pattern::Unit(_) => shape.len() == 2,
                    Pattern::Array(Storage::RowSparse, _) => !shape.is_empty(),
                    Pattern::Scalar => shape.is_empty(),
                    // Without classes there is no class id.
                    Pattern::Ids if moved => true,
                    Pattern::Ids => operator.shape == "embedding" || shapes[0].last() != Some(&0),
                    _ => true,
                });
            let same = shapes.windows(2).all(|pair| pair[0] == pair[1]);
            let axes = axes_fit(&attributes, shapes.iter().map(Vec::len).max().unwrap_or(0));
            // What a condition says of attributes; what it says of numbers is tried with each
            // number.
            let ranks: Vec<usize> = shapes.iter().map(Vec::len).collect();
            let holds = signature.condition.is_none_or(|condition| {
                let none = vec![None; shapes.len()];
                let (attributes, numbers) = (&attributes, &none[..]);
                signature.operands.contains(&Pattern::Scalar) || {
                    let (names, ranks) = (None, &ranks[..]);
                    (condition.holds)(&Given { operator, attributes, numbers, ranks, names })
                }
            });
            let axes = axes && holds;
            // A csr result has rank 2, whatever its operands are.
            let largest = shapes.iter().map(Vec::len).max().unwrap_or(0);
            let representable = match result {
                // A csr is made of a list of ids.
                Storage::Csr if moved => signature
                    .operands
                    .iter()
                    .zip(&shapes)
                    .all(|(pattern, shape)| *pattern != Pattern::Ids || shape.len() == 1),
                _ if moved => true,
                Storage::Csr => largest == 2,
                Storage::RowSparse => largest > 0,
                Storage::Dense => true,
            };
            if fits && axes && representable && (same || !signature.same_shape) {
                let attributes = attributes.clone();
                applications.push(Application { shapes, attributes });
            }
        }
    }
    applications
}

/// Every combination of attributes that the rule allows, and the shapes for it.
fn candidates(
    operator: &'static Operator,
    signature: &Signature,
    result: Storage,
) -> Vec<(Attributes, Vec<Vec<Vec<usize>>>)> {
    let attributes = attributes(operator, signature, result).into_iter();
    attributes
        .map(|attributes| {
            let shapes = shapes(operator, &attributes, signature);
            (attributes, shapes)
        })
        .collect()
}

/// Every combination of attributes that the rule allows.
fn attributes(
    operator: &'static Operator,
    signature: &Signature,
    result: Storage,
) -> Vec<Attributes> {
    let mut combinations = vec![Attributes::default()];
    for (place, attribute) in operator.attributes.iter().enumerate() {
        let turned = (0..operator.operands.len())
            .find(|index| operator.transpose_flag(*index) == Some(attribute.name))
            .map(|index| signature.operands[index]);
        let values: Vec<Option<AttributeValue>> = match (attribute.kind, turned) {
            (AttributeKind::Storage, _) if result == signature.result => vec![None],
            (AttributeKind::Storage, _) => vec![Some(AttributeValue::Storage(result))],
            (AttributeKind::Axes, _) => {
                let axes = [0, 1, 2, -1, -2].map(|axis| Some(AttributeValue::Integer(axis)));
                let lists: [List; 3] = [[0, 1].into(), [2, 0].into(), List::default()];
                let lists = lists.map(|list| Some(AttributeValue::List(list)));
                [None].into_iter().chain(axes).chain(lists).collect()
            }
            (AttributeKind::Integer(_), _) => {
                integers(attribute.name).map(|value| Some(AttributeValue::Integer(value))).collect()
            }
            (AttributeKind::Number(_), _) => {
                let numbers = match attribute.name {
                    "delta" => [0.5, 1.0],
                    _ => NUMBERS[place % NUMBERS.len()],
                };
                numbers.map(|value| Some(AttributeValue::Number(Number(value)))).to_vec()
            }
            (AttributeKind::List, _) => vec![None],
            (AttributeKind::Flag, Some(Pattern::Array(storage, fixed)))
                if storage != Storage::Dense =>
            {
                vec![Some(AttributeValue::Flag(fixed))]
            }
            (AttributeKind::Flag, Some(Pattern::Unit(fixed))) => {
                vec![Some(AttributeValue::Flag(fixed))]
            }
            (AttributeKind::Flag, _) => vec![None, Some(AttributeValue::Flag(true))],
        };
        combinations = combinations
            .into_iter()
            .flat_map(|combination| {
                values.clone().into_iter().map(move |value| {
                    let mut combination = combination.clone();
                    if let Some(value) = value {
                        combination.set(attribute.name, value);
                    }
                    combination
                })
            })
            .collect();
    }
    combinations
}

/// Numbers for the first attribute that is one, the second, …: some make a function 0 at 0, some do
/// not.
const NUMBERS: [[f64; 2]; 3] = [[-0.5, 0.0], [0.5, -0.25], [0.0, 0.25]];

/// Integers for an attribute.
fn integers(name: &str) -> impl Iterator<Item = i64> + use<> {
    let values: &[i64] = match name {
        "ord" => &[2, 1],
        _ => &[0, 1, 2, -1, -2],
    };
    values.iter().copied()
}

/// Whether an axis, or all of a list, are axes of an array of a rank.
fn axes_fit(attributes: &Attributes, rank: usize) -> bool {
    match attributes.get("axis") {
        Some(AttributeValue::Integer(axis)) => place_of(axis, rank).is_some(),
        Some(AttributeValue::List(list)) => {
            let mut places: Vec<_> = list.values().map(|axis| place_of(axis, rank)).collect();
            places.sort_unstable();
            places.iter().all(Option::is_some) && places.windows(2).all(|pair| pair[0] != pair[1])
        }
        _ => true,
    }
}

fn shapes(
    operator: &'static Operator,
    attributes: &Attributes,
    signature: &Signature,
) -> Vec<Vec<Vec<usize>>> {
    let scalar = |index: usize| signature.operands[index] == Pattern::Scalar;
    let n = signature.operands.len();
    let rule = operator.shape.split(" where ").next().unwrap();
    if rule == "broadcast" {
        let both = PAIRS.iter().flat_map(|(a, b)| [[a, b], [b, a]]);
        let mut pairs: Vec<_> =
            both.map(|pair| pair.map(|shape| shape.to_vec()).to_vec()).collect();
        if (0..n).any(scalar) {
            pairs = SHAPES.map(|shape| vec![shape.to_vec(); n]).to_vec();
            pairs
                .iter_mut()
                .for_each(|pair| (0..n).filter(|i| scalar(*i)).for_each(|i| pair[i].clear()));
        }
        pairs.dedup();
        return pairs;
    }
    if rule == "reduce" {
        return SHAPES.map(|shape| vec![shape.to_vec()]).to_vec();
    }
    match operator.name {
        "reduce_to" => {
            let smaller = PAIRS.iter().filter(|(large, small)| broadcasts(small, large));
            return smaller.map(|(large, small)| vec![large.to_vec(), small.to_vec()]).collect();
        }
        "embedding" => return super::layers::shapes(operator.name).unwrap(),
        "broadcast_like" | "broadcast_at" => {
            return SHAPES
                .iter()
                .flat_map(|like| reductions(like, attributes, scalar(0)))
                .collect();
        }
        _ => {}
    }
    if rule.starts_with("same") {
        let words: Vec<&str> = rule.split_whitespace().collect();
        let shaped = SHAPES.iter().map(|shape| {
            let shape_of = |index: usize| match (scalar(index), words[index]) {
                (true, _) => Vec::new(),
                // One for each row of the first operand.
                (_, "rows") => shape[..shape.len().min(1)].to_vec(),
                _ => shape.to_vec(),
            };
            (0..n).map(shape_of).collect()
        });
        // Numbers have no extents, and neither has what must have the same.
        let same = |shapes: &Vec<Vec<usize>>| {
            (1..n).all(|index| words[index] != "same" || shapes[index] == shapes[0])
        };
        return shaped.filter(same).collect();
    }
    let each = rule.split('|').flat_map(|rule| {
        EXTENTS.iter().map(move |extents| by_letters(operator, rule, attributes, extents))
    });
    let each = each.map(|mut shapes| {
        shapes.truncate(n);
        shapes
    });
    // A vector is not read transposed.
    let turned =
        |index: usize| operator.transpose_flag(index).is_some_and(|flag| attributes.flag(flag));
    each.filter(|shapes| (0..n).all(|index| shapes[index].len() > 1 || !turned(index))).collect()
}

/// `[m, k] [k, n] -> …`: the letters in the order in which they occur, an operand read transposed
/// turned.
fn by_letters(
    operator: &Operator,
    rule: &str,
    attributes: &Attributes,
    extents: &[usize],
) -> Vec<Vec<usize>> {
    let operands = rule.split("->").next().unwrap();
    let mut letters: HashMap<&str, usize> = HashMap::new();
    let mut shapes: Vec<Vec<usize>> = Vec::new();
    for (index, pattern) in operands.replace("rows", "[rows]").split('[').skip(1).enumerate() {
        let pattern = pattern.trim().trim_end_matches(']');
        if pattern == "rows" {
            shapes.push(shapes[0][..1].to_vec());
            continue;
        }
        let names = pattern.split(',').map(str::trim);
        let names: Vec<&str> = names.map(|name| letter(rule, name)).collect();
        let names = names.into_iter();
        let mut shape: Vec<usize> = names
            .map(|name| {
                if let Ok(size) = name.parse() {
                    return size;
                }
                let next = extents[letters.len() % extents.len()];
                *letters.entry(name).or_insert(next)
            })
            .collect();
        if operator.transpose_flag(index).is_some_and(|flag| attributes.flag(flag)) {
            shape.reverse();
        }
        shapes.push(shape);
    }
    shapes
}

/// The letter as a part of the rule, which lives longer than a copy.
fn letter<'a>(rule: &'a str, name: &str) -> &'a str {
    let start = rule.find(name).unwrap();
    &rule[start..start + name.len()]
}

fn broadcasts(small: &[usize], large: &[usize]) -> bool {
    small.len() <= large.len()
        && small.iter().rev().zip(large.iter().rev()).all(|(s, l)| s == l || *s == 1)
}

/// The shapes that `like` is reduced to: with the axis gone or kept; without an axis, all that
/// broadcast to it.
fn reductions(like: &[usize], attributes: &Attributes, scalar: bool) -> Vec<Vec<Vec<usize>>> {
    if scalar {
        return vec![vec![Vec::new(), like.to_vec()]];
    }
    let axes = attributes.axes("axis");
    let reduced: Vec<Vec<usize>> = if axes.0.is_none() && !attributes.flag("exclude") {
        let smaller = PAIRS.iter().filter(|(large, _)| *large == like);
        let smaller =
            smaller.map(|(_, small)| small.to_vec()).filter(|small| broadcasts(small, like));
        smaller.chain([vec![], vec![1; like.len()], like.to_vec()]).collect()
    } else if axes_fit(attributes, like.len()) {
        let gone = |place: &usize| axes.contain(*place, like.len()) != attributes.flag("exclude");
        let removed = (0..like.len()).filter(|place| !gone(place)).map(|place| like[place]);
        let kept = (0..like.len()).map(|place| if gone(&place) { 1 } else { like[place] });
        vec![removed.collect(), kept.collect()]
    } else {
        Vec::new()
    };
    reduced.into_iter().map(|shape| vec![shape, like.to_vec()]).collect()
}

/// The extent that ids stay below: that which the row says, or the columns of the scores.
pub(crate) fn classes(
    operator: &Operator,
    attributes: &Attributes,
    shapes: &[Vec<usize>],
) -> usize {
    let below = operator.ids_below.and_then(|below| {
        let shape = shapes.get(operator.operand_index(below.of)?)?;
        Some(shape[place_of(below.axis, shape.len())?])
    });
    moved::bound(operator.name, attributes, shapes)
        .or(below)
        .unwrap_or_else(|| shapes[0].last().copied().unwrap_or(1))
        .max(1)
}

/// A seed of its own for each application.
pub(crate) fn numbers(text: &str) -> Numbers {
    Numbers(text.bytes().fold(7, |seed: u64, byte| seed.wrapping_mul(31).wrapping_add(byte.into())))
}
