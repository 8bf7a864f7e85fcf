//! What operators mean, computed index by index in `f64` from dense arrays with a mark at what is
//! stored. Nothing here is shared with the kernels but the table's own formulas.

use super::given::Given;
use super::{layers, moved};
use sparse_core::ir::Attributes;
use sparse_core::operators::{BinaryFamily, Combine, Kind, Operator, Reduction};

/// An array, and what is stored of it.
#[derive(Clone, Debug)]
pub(crate) struct Naive {
    pub(crate) shape: Vec<usize>,
    pub(crate) values: Vec<f64>,
    pub(crate) stored: Vec<bool>,
    /// Rows repeat as wholes: a row_sparse array stores a repeated first axis everywhere or
    /// nowhere.
    by_rows: bool,
}

impl Naive {
    pub(crate) fn dense(shape: &[usize], values: Vec<f64>) -> Self {
        let stored = vec![true; values.len()];
        Naive { shape: shape.to_vec(), values, stored, by_rows: false }
    }

    pub(crate) fn of(given: &Given) -> Self {
        match given {
            Given::Scalar(number) => Naive::dense(&[], vec![*number]),
            Given::Ids(shape, ids) => {
                Naive::dense(shape, ids.iter().map(|id| f64::from(*id)).collect())
            }
            Given::Dense(shape, values) => Naive::dense(shape, values.clone()),
            Given::Table(shape, values) => {
                Naive { by_rows: true, ..Naive::dense(shape, values.clone()) }
            }
            Given::Csr(n_cols, rows) | Given::Unit(n_cols, rows) => {
                let shape = vec![rows.len(), *n_cols];
                let mut array = Naive::nothing(&shape, false);
                for (row, entries) in rows.iter().enumerate() {
                    for (column, value) in entries {
                        array.values[row * n_cols + column] = *value;
                        array.stored[row * n_cols + column] = true;
                    }
                }
                array
            }
            Given::RowSparse(shape, ids, values) => {
                let mut array = Naive::nothing(shape, true);
                let row: usize = shape[1..].iter().product();
                for (position, id) in ids.iter().enumerate() {
                    let (from, to) =
                        (position * row..(position + 1) * row, id * row..(id + 1) * row);
                    array.values[to.clone()].copy_from_slice(&values[from]);
                    array.stored[to].fill(true);
                }
                array
            }
        }
    }

    fn nothing(shape: &[usize], by_rows: bool) -> Self {
        let size = shape.iter().product();
        Naive { shape: shape.to_vec(), values: vec![0.0; size], stored: vec![false; size], by_rows }
    }

    /// The array repeated to a shape.
    pub(crate) fn repeated(&self, shape: &[usize]) -> Naive {
        let places: Vec<usize> = indices(shape).iter().map(|index| self.place(index)).collect();
        let rows_repeat =
            self.by_rows && (self.shape.len(), self.shape.first()) != (shape.len(), shape.first());
        let any = self.stored.contains(&true);
        Naive {
            shape: shape.to_vec(),
            values: places.iter().map(|place| self.values[*place]).collect(),
            stored: places
                .iter()
                .map(|place| if rows_repeat { any } else { self.stored[*place] })
                .collect(),
            by_rows: self.by_rows,
        }
    }

    /// An element.
    pub(crate) fn at(&self, index: &[usize]) -> f64 {
        self.values[self.row_major(index)]
    }

    /// An element, to be written.
    pub(crate) fn at_mut(&mut self, index: &[usize]) -> &mut f64 {
        let place = self.row_major(index);
        &mut self.values[place]
    }

    fn row_major(&self, index: &[usize]) -> usize {
        self.shape.iter().zip(index).fold(0, |place, (extent, i)| place * extent + i)
    }

    /// The place of the element that broadcasts to an index of a larger shape.
    fn place(&self, index: &[usize]) -> usize {
        let index = &index[index.len() - self.shape.len()..];
        self.shape
            .iter()
            .zip(index)
            .fold(0, |place, (extent, i)| place * extent + if *extent == 1 { 0 } else { *i })
    }

    pub(crate) fn transposed(&self) -> Naive {
        let (m, n) = (self.shape[0], self.shape[1]);
        let places: Vec<usize> = (0..m * n).map(|place| place % m * n + place / m).collect();
        Naive {
            shape: vec![n, m],
            values: places.iter().map(|place| self.values[*place]).collect(),
            stored: places.iter().map(|place| self.stored[*place]).collect(),
            by_rows: false,
        }
    }

    fn rows(&self) -> impl Iterator<Item = &[f64]> {
        let row: usize = self.shape.iter().skip(1).product();
        (0..self.shape.first().copied().unwrap_or(1))
            .map(move |i| &self.values[i * row..(i + 1) * row])
    }
}

/// All indices of a shape, row major.
pub(crate) fn indices(shape: &[usize]) -> Vec<Vec<usize>> {
    shape.iter().fold(vec![vec![]], |prefixes, extent| {
        let longer = prefixes.into_iter().flat_map(|prefix: Vec<usize>| {
            (0..*extent).map(move |i| prefix.iter().copied().chain([i]).collect())
        });
        longer.collect()
    })
}

fn broadcast(a: &[usize], b: &[usize]) -> Vec<usize> {
    let rank = a.len().max(b.len());
    let extent = |shape: &[usize], axis: usize| {
        (axis + shape.len()).checked_sub(rank).map_or(1, |axis| shape[axis])
    };
    (0..rank)
        .map(|axis| if extent(a, axis) == 1 { extent(b, axis) } else { extent(a, axis) })
        .collect()
}

/// What an operator gives; which elements must be stored is meant for sparse results of
/// element-wise operators. `None` for an operator that is not known here.
pub(crate) fn evaluate(
    operator: &Operator,
    attributes: &Attributes,
    operands: &[Naive],
) -> Option<Naive> {
    let element = |elements: &[f64]| operator.elementwise(attributes, elements).unwrap();
    Some(match operator.kind {
        // No row of the table is one.
        Kind::Declared(..) => return None,
        Kind::Unary(_) => {
            let x = &operands[0];
            let values = x.values.iter().map(|x| element(&[*x])).collect();
            Naive { values, ..x.clone() }
        }
        Kind::Binary(family, _) => binary(family, &element, &operands[0], &operands[1]),
        Kind::Reduction(reduction) => reduce(operator, reduction, attributes, &operands[0]),
        Kind::Loss { .. } => {
            let losses = losses(operator, attributes, &operands[0], &operands[1])?;
            let weighted = losses
                .iter()
                .enumerate()
                .map(|(row, loss)| loss * operands.get(2).map_or(1.0, |weight| weight.values[row]));
            Naive::dense(&[], vec![weighted.sum::<f64>() / losses.len().max(1) as f64])
        }
        Kind::LossGradient(loss) => {
            let mut gradient =
                loss_gradient(loss, operator, attributes, &operands[0], &operands[1])?;
            if let Some(weight) = operands.get(2) {
                let row: usize = gradient.shape.iter().skip(1).product();
                for (place, value) in gradient.values.iter_mut().enumerate() {
                    *value *= weight.values[place / row];
                }
            }
            gradient
        }
        Kind::Kernel => match operator.name {
            "dot" => dot(attributes, &operands[0], &operands[1]),
            "outer" => outer(&operands[0], &operands[1]),
            "reduce_to" => reduce_to(&operands[0], &operands[1].shape),
            "broadcast_like" => broadcast_like(&operands[0], &operands[1].shape, attributes),
            "broadcast_at" => {
                let like = &operands[1];
                let mut result = broadcast_like(&operands[0], &like.shape, attributes);
                let places = result.values.iter_mut().zip(&like.stored);
                places.filter(|(_, stored)| !**stored).for_each(|(value, _)| *value = 0.0);
                result.stored.clone_from(&like.stored);
                result
            }
            "zeros_like" => Naive::dense(&operands[0].shape, vec![0.0; operands[0].values.len()]),
            "transpose" => operands[0].transposed(),
            "logsumexp" => {
                let sums =
                    operands[0].rows().map(|row| row.iter().map(|x| x.exp()).sum::<f64>().ln());
                Naive::dense(&operands[0].shape[..1], sums.collect())
            }
            "dense" | "csr" | "row_sparse" => operands[0].clone(),
            name => {
                return layers::evaluate(name, attributes, operands)
                    .or_else(|| moved::evaluate(name, attributes, operands));
            }
        },
    })
}

fn binary(family: BinaryFamily, f: &dyn Fn(&[f64]) -> f64, lhs: &Naive, rhs: &Naive) -> Naive {
    let with_number = lhs.shape.is_empty() != rhs.shape.is_empty();
    let shape = broadcast(&lhs.shape, &rhs.shape);
    let (lhs, rhs) = (lhs.repeated(&shape), rhs.repeated(&shape));
    let each = lhs.values.iter().zip(&rhs.values);
    let values: Vec<f64> = each.map(|(x, y)| f(&[*x, *y])).collect();
    let stored = lhs.stored.iter().zip(&rhs.stored).map(|(x, y)| match family {
        // A number is stored nowhere.
        BinaryFamily::Union if !with_number => x | y,
        BinaryFamily::SlopedGradient | BinaryFamily::Left => *x,
        _ => x & y,
    });
    Naive { shape, values, stored: stored.collect(), by_rows: false }
}

fn dot(attributes: &Attributes, lhs: &Naive, rhs: &Naive) -> Naive {
    let read = |array: &Naive, flag| {
        if attributes.flag(flag) { array.transposed() } else { array.clone() }
    };
    let (lhs, rhs) = (read(lhs, "transpose_lhs"), read(rhs, "transpose_rhs"));
    // Of a vector the inner axis is the only one.
    let (inner, rest) = (lhs.shape.len() - 1, rhs.shape.get(1..).unwrap());
    let shape: Vec<usize> = lhs.shape[..inner].iter().chain(rest).copied().collect();
    let element = |index: &Vec<usize>| {
        let (row, column) = index.split_at(inner);
        let term = |l: usize| lhs.at(&[row, &[l]].concat()) * rhs.at(&[&[l], column].concat());
        (0..rhs.shape[0]).map(term).sum()
    };
    Naive::dense(&shape, indices(&shape).iter().map(element).collect())
}

fn outer(lhs: &Naive, rhs: &Naive) -> Naive {
    let shape = [lhs.shape[0], rhs.shape[0]];
    let element = |index: &Vec<usize>| lhs.at(&index[..1]) * rhs.at(&index[1..]);
    Naive::dense(&shape, indices(&shape).iter().map(element).collect())
}

fn reduce(operator: &Operator, reduction: Reduction, attributes: &Attributes, x: &Naive) -> Naive {
    let rank = x.shape.len();
    let axes = attributes.axes("axis");
    let gone = |place: usize| axes.contain(place, rank) != attributes.flag("exclude");
    let kept: Vec<usize> =
        (0..rank).map(|place| if gone(place) { 1 } else { x.shape[place] }).collect();
    let start = match reduction.combine {
        Combine::Sum => 0.0,
        Combine::Product => 1.0,
        Combine::Largest => f64::NEG_INFINITY,
        Combine::Smallest => f64::INFINITY,
    };
    let formula = |text: &str, names: &[(&str, f64)]| {
        let variable =
            |name: &str| names.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
        operator.scalar(text, attributes, &variable).unwrap()
    };
    let mut results = Naive::dense(&kept, vec![start; kept.iter().product()]);
    for (index, value) in indices(&x.shape).iter().zip(&x.values) {
        let (place, mapped) = (results.place(index), formula(reduction.map, &[("x", *value)]));
        let result = &mut results.values[place];
        *result = match reduction.combine {
            Combine::Sum => *result + mapped,
            Combine::Product => *result * mapped,
            Combine::Largest => result.max(mapped),
            Combine::Smallest => result.min(mapped),
        };
    }
    let n: usize = (0..rank).filter(|place| gone(*place)).map(|place| x.shape[place]).product();
    for result in &mut results.values {
        *result = formula(reduction.finish, &[("s", *result), ("n", n as f64)]);
    }
    if !attributes.flag("keepdims") {
        results.shape =
            (0..rank).filter(|place| !gone(*place)).map(|place| x.shape[place]).collect();
    }
    results
}

fn reduce_to(x: &Naive, shape: &[usize]) -> Naive {
    let mut sums = Naive::dense(shape, vec![0.0; shape.iter().product()]);
    for (index, value) in indices(&x.shape).iter().zip(&x.values) {
        let place = sums.place(index);
        sums.values[place] += value;
    }
    sums
}

fn broadcast_like(x: &Naive, shape: &[usize], attributes: &Attributes) -> Naive {
    let mut source = x.clone();
    let axes = attributes.axes("axis");
    let gone = |place: usize| axes.contain(place, shape.len()) != attributes.flag("exclude");
    let removed = (0..shape.len()).filter(|place| gone(*place)).count();
    if x.shape.len() < shape.len() && x.shape.len() + removed == shape.len() {
        (0..shape.len())
            .filter(|place| gone(*place))
            .for_each(|place| source.shape.insert(place, 1));
    }
    let mut result = source.repeated(shape);
    if attributes.flag("mean") {
        let repetitions = result.values.len() as f64 / x.values.len() as f64;
        result.values.iter_mut().for_each(|value| *value /= repetitions);
    }
    result
}

/// The loss of each row, straight from its definition.
fn losses(
    operator: &Operator,
    attributes: &Attributes,
    score: &Naive,
    label: &Naive,
) -> Option<Vec<f64>> {
    let rows = score.rows().zip(label.rows());
    if operator.name == "softmax_cross_entropy" {
        let classes = label.shape.len() == 1;
        let row = |(score, label): (&[f64], &[f64])| {
            let log_total = score.iter().map(|s| s.exp()).sum::<f64>().ln();
            if classes {
                log_total - score[label[0] as usize]
            } else {
                label.iter().zip(score).map(|(t, s)| t * (log_total - s)).sum()
            }
        };
        return Some(rows.map(row).collect());
    }
    let number = |name| operator.number(attributes, name).unwrap();
    let sign = |t: f64| if t >= 0.5 { 1.0 } else { -1.0 };
    let element = |s: f64, t: f64| match operator.name {
        "squared_error" => Some((s - t).powi(2) / 2.0),
        "absolute_error" => Some((s - t).abs()),
        "huber" => {
            let (e, delta) = ((s - t).abs(), number("delta"));
            Some(if e <= delta { e * e / 2.0 } else { delta * (e - delta / 2.0) })
        }
        "logistic" => Some((1.0 + s.exp()).ln() - t.max(0.0) * s),
        "hinge" => Some((1.0 - sign(t) * s).max(0.0)),
        "squared_hinge" => Some((1.0 - sign(t) * s).max(0.0).powi(2)),
        "poisson" => Some(s.exp() - t * s),
        _ => None,
    };
    rows.map(|(score, label)| score.iter().zip(label).map(|(s, t)| element(*s, *t)).sum()).collect()
}

/// The gradient of the mean, element by element.
fn loss_gradient(
    loss: &str,
    operator: &Operator,
    attributes: &Attributes,
    score: &Naive,
    label: &Naive,
) -> Option<Naive> {
    let n = score.shape.first().copied().unwrap_or(1) as f64;
    let number = |name| operator.number(attributes, name).unwrap();
    if loss == "softmax_cross_entropy" {
        let k = score.shape[1];
        let probabilities = score.rows().flat_map(|row| {
            let total: f64 = row.iter().map(|score| score.exp()).sum();
            row.iter().map(move |score| score.exp() / total)
        });
        let (mut values, classes): (Vec<f64>, _) =
            (probabilities.collect(), label.shape.len() == 1);
        for (row, probabilities) in values.chunks_exact_mut(k.max(1)).enumerate() {
            let target = |column: usize| {
                if classes {
                    f64::from(u8::from(label.values[row] as usize == column))
                } else {
                    label.values[row * k + column]
                }
            };
            let mass: f64 = (0..k).map(target).sum();
            for (column, p) in probabilities.iter_mut().enumerate() {
                *p = (*p * mass - target(column)) / n;
            }
        }
        return Some(Naive::dense(&score.shape, values));
    }
    let sign = |t: f64| if t >= 0.5 { 1.0 } else { -1.0 };
    let element = |s: f64, t: f64| match loss {
        "squared_error" => Some(s - t),
        "absolute_error" => Some(if s == t { 0.0 } else { (s - t).signum() }),
        "huber" => Some((s - t).clamp(-number("delta"), number("delta"))),
        "logistic" => Some(1.0 / (1.0 + (-s).exp()) - t.max(0.0)),
        "hinge" => Some(if sign(t) * s < 1.0 { -sign(t) } else { 0.0 }),
        "squared_hinge" => Some(-2.0 * sign(t) * (1.0 - sign(t) * s).max(0.0)),
        "poisson" => Some(s.exp() - t),
        _ => None,
    };
    let each = score.values.iter().zip(&label.values);
    let values = each.map(|(s, t)| element(*s, *t).map(|value| value / n));
    Some(Naive::dense(&score.shape, values.collect::<Option<_>>()?))
}
