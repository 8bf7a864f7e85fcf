//! Layers: what they can be applied to, and what they mean, index by index.

use super::naive::Naive;
use sparse_core::ir::Attributes;

/// Shapes for an operator whose shape rule needs them.
pub(crate) fn shapes(operator: &str) -> Option<Vec<Vec<Vec<usize>>>> {
    // The shape of the ids, and of the table.
    const EMBEDDINGS: [[&[usize]; 2]; 7] = [
        [&[5, 2], &[9, 3]],
        [&[7], &[4, 1]],
        [&[], &[6, 2]],
        [&[4, 1], &[3]],
        [&[2, 3], &[5, 2, 2]],
        [&[0], &[3, 2]],
        [&[3], &[4, 0]],
    ];
    let shapes = EMBEDDINGS.iter().map(|[ids, table]| vec![ids.to_vec(), table.to_vec()]);
    (operator == "embedding").then(|| shapes.collect())
}

/// What a layer gives; `None` for another operator.
pub(crate) fn evaluate(
    operator: &str,
    attributes: &Attributes,
    operands: &[Naive],
) -> Option<Naive> {
    let at = |array: &Naive, row: usize, column: usize| array.values[row * array.shape[1] + column];
    let stored = |row: usize, column: usize| {
        let bags = &operands[0];
        bags.stored[row * bags.shape[1] + column]
    };
    let first = &operands[0];
    Some(match operator {
        "fully_connected" => {
            let (x, weight) = (first, &operands[1]);
            let (n, d, h) = (x.shape[0], x.shape[1], weight.shape[0]);
            grid(n, h, |i, j| {
                let product: f64 = (0..d).map(|l| at(x, i, l) * at(weight, j, l)).sum();
                product + operands.get(2).map_or(0.0, |bias| bias.values[j])
            })
        }
        "embedding" => {
            let (ids, table) = (first, &operands[1]);
            let row: usize = table.shape[1..].iter().product();
            let values = ids.values.iter().flat_map(|id| {
                let start = *id as usize * row;
                table.values[start..start + row].to_vec()
            });
            Naive::dense(&[&ids.shape, &table.shape[1..]].concat(), values.collect())
        }
        "embedding_bag" => {
            let table = &operands[1];
            let (n, v, k) = (first.shape[0], first.shape[1], table.shape[1]);
            grid(n, k, |i, f| {
                let terms = (0..v).map(|j| share(first, attributes, i, j) * at(table, j, f));
                terms.sum()
            })
        }
        "embedding_bag_gradient" => {
            let grad = &operands[1];
            let (n, v, k) = (first.shape[0], first.shape[1], grad.shape[1]);
            grid(v, k, |j, f| (0..n).map(|i| share(first, attributes, i, j) * at(grad, i, f)).sum())
        }
        "pairwise_interaction" => {
            let v = &operands[1];
            let (n, d, k) = (first.shape[0], first.shape[1], v.shape[1]);
            // Pair by pair.
            grid(n, 1, |row, _| {
                let pairs = (0..d).flat_map(|i| (0..i).map(move |j| (i, j)));
                let terms = pairs.map(|(i, j)| {
                    let inner: f64 = (0..k).map(|f| at(v, i, f) * at(v, j, f)).sum();
                    at(first, row, i) * at(first, row, j) * inner
                });
                terms.sum()
            })
        }
        "pairwise_interaction_gradient" => {
            let (v, grad) = (&operands[1], &operands[2]);
            let (n, d, k) = (first.shape[0], first.shape[1], v.shape[1]);
            grid(d, k, |i, f| {
                let others = |row: usize| (0..d).filter(move |j| *j != i).map(move |j| (row, j));
                let terms = (0..n).flat_map(others).map(|(row, j)| {
                    grad.values[row] * at(first, row, i) * at(first, row, j) * at(v, j, f)
                });
                terms.sum()
            })
        }
        "pairwise_interaction_slope" => {
            let (v, grad) = (&operands[1], &operands[2]);
            let (n, d, k) = (first.shape[0], first.shape[1], v.shape[1]);
            grid(n, d, |row, i| {
                if !stored(row, i) {
                    return 0.0;
                }
                let terms = (0..d).filter(|j| *j != i).map(|j| {
                    let inner: f64 = (0..k).map(|f| at(v, i, f) * at(v, j, f)).sum();
                    grad.values[row] * at(first, row, j) * inner
                });
                terms.sum()
            })
        }
        "read_rows" => {
            let (by, row_size) = (&operands[1], first.shape[1..].iter().product::<usize>());
            let (n, d) = (by.shape[0], by.shape[1]);
            let named = |row: usize| (0..n).any(|sample| by.stored[sample * d + row]);
            let each = first.values.iter().enumerate();
            let values = each.map(|(at, x)| if named(at / row_size) { *x } else { 0.0 });
            Naive::dense(&first.shape, values.collect())
        }
        "sampled_dot" => {
            let read = |array: &Naive, flag| {
                if attributes.flag(flag) { array.transposed() } else { array.clone() }
            };
            let (mut lhs, mut rhs) =
                (read(first, "transpose_lhs"), read(&operands[1], "transpose_rhs"));
            let like = &operands[2];
            // A vector on the left is a column, one on the right a row.
            if lhs.shape.len() == 1 {
                lhs.shape.push(1);
                rhs.shape.insert(0, 1);
            }
            grid(lhs.shape[0], rhs.shape[1], |i, j| {
                if like.stored[i * rhs.shape[1] + j] {
                    (0..lhs.shape[1]).map(|l| at(&lhs, i, l) * at(&rhs, l, j)).sum()
                } else {
                    0.0
                }
            })
        }
        _ => return None,
    })
}

fn grid(n: usize, m: usize, element: impl Fn(usize, usize) -> f64) -> Naive {
    let values = (0..n * m).map(|place| element(place / m, place % m));
    Naive::dense(&[n, m], values.collect())
}

/// What a column is multiplied by in the sum that a bag is.
fn share(bags: &Naive, attributes: &Attributes, bag: usize, column: usize) -> f64 {
    let v = bags.shape[1];
    let weight = |column: usize| match (bags.stored[bag * v + column], attributes.flag("weighted"))
    {
        (false, _) => 0.0,
        (true, true) => bags.values[bag * v + column],
        (true, false) => 1.0,
    };
    let total: f64 = (0..v).map(weight).sum();
    if !attributes.flag("mean") {
        weight(column)
    } else if total == 0.0 {
        0.0
    } else {
        weight(column) / total
    }
}
