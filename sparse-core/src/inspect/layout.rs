//! A layered drawing of a graph: layers by longest path, order by barycenters, places by least
//! squares.
//!
//! After Sugiyama, Tagawa and Toda (1981). An edge over several layers passes through a dummy in
//! each layer between, so that no edge crosses a box; all edges of one source share their dummies.
//! Everything is deterministic.

/// What to lay out: boxes in an order in which operands come before their users.
pub(super) struct Diagram {
    /// The width of each box.
    pub(super) widths: Vec<f64>,
    /// The height of every box.
    pub(super) height: f64,
    /// Whether a box is to stand right of those of its layer that are not.
    pub(super) right: Vec<bool>,
    /// From operand to user, each pair once.
    pub(super) edges: Vec<(usize, usize)>,
}

/// Where everything is.
pub(super) struct Layout {
    /// The centre of each box.
    pub(super) boxes: Vec<Point>,
    /// Lines from the bottom of a box or a dummy to the top of one.
    pub(super) lines: Vec<Line>,
    /// The extent of all boxes.
    pub(super) size: Point,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Point {
    pub(super) x: f64,
    pub(super) y: f64,
}

/// One piece of an edge.
pub(super) struct Line {
    pub(super) from: Point,
    pub(super) to: Point,
    /// Whether it goes on straight down through a layer after `to`, to this height; else it ends at
    /// a box.
    pub(super) through: Option<f64>,
    /// Whether it leads to boxes on the right only.
    pub(super) right: bool,
}

/// Between boxes of a layer, and between layers.
const GAP: f64 = 26.0;
const LAYER_GAP: f64 = 46.0;
const SWEEPS: usize = 24;

/// A box, or the place of a passing edge.
struct Item {
    layer: usize,
    width: f64,
    right: bool,
    is_box: bool,
    above: Vec<usize>,
    below: Vec<usize>,
}

pub(super) fn layout(diagram: &Diagram) -> Layout {
    let items = items(diagram);
    let layers = ordered(&items);
    let x = places(&items, &layers);
    let left =
        (items.iter().zip(&x)).map(|(item, x)| x - item.width / 2.0).fold(f64::INFINITY, f64::min);
    let right = (items.iter().zip(&x)).map(|(item, x)| x + item.width / 2.0).fold(left, f64::max);
    let step = diagram.height + LAYER_GAP;
    let place = |index: usize| Point {
        x: x[index] - left,
        y: items[index].layer as f64 * step + diagram.height / 2.0,
    };
    let mut lines = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let mut above = item.above.clone();
        above.sort_by(|a, b| x[*a].total_cmp(&x[*b]));
        for (port, from) in above.iter().enumerate() {
            // Edges into a box end side by side.
            let spread = item.width * ((port + 1) as f64 / (above.len() + 1) as f64 - 0.5) * 0.7;
            let (start, end) = (place(*from), place(index));
            lines.push(Line {
                from: Point { y: start.y + diagram.height / 2.0, ..start },
                to: Point { x: end.x + spread, y: end.y - diagram.height / 2.0 },
                through: (!item.is_box).then_some(end.y + diagram.height / 2.0),
                right: item.right,
            });
        }
    }
    Layout {
        boxes: (0..diagram.widths.len()).map(place).collect(),
        lines,
        size: Point { x: right - left, y: (layers.len() as f64 * step - LAYER_GAP).max(0.0) },
    }
}

/// Boxes first, in their order, then dummies.
fn items(diagram: &Diagram) -> Vec<Item> {
    let n = diagram.widths.len();
    let mut users: Vec<Vec<usize>> = vec![Vec::new(); n];
    let mut layer = vec![0; n];
    let mut is_source = vec![true; n];
    for (from, to) in &diagram.edges {
        users[*from].push(*to);
        is_source[*to] = false;
    }
    for from in 0..n {
        for to in &users[from] {
            layer[*to] = layer[*to].max(layer[from] + 1);
        }
    }
    // What is declared stands just above its first user.
    for source in (0..n).filter(|index| is_source[*index]) {
        let first = users[source].iter().map(|user| layer[*user]).min();
        layer[source] = first.map_or(0, |first| first - 1);
    }
    let mut items: Vec<Item> = (0..n)
        .map(|index| Item {
            layer: layer[index],
            width: diagram.widths[index],
            right: diagram.right[index],
            is_box: true,
            above: Vec::new(),
            below: Vec::new(),
        })
        .collect();
    for from in 0..n {
        let last = users[from].iter().map(|user| layer[*user]).max().unwrap_or(0);
        let mut end = from;
        for next in layer[from] + 1..=last {
            for user in users[from].iter().filter(|user| layer[**user] == next) {
                items[end].below.push(*user);
                items[*user].above.push(end);
            }
            if next < last {
                let mut rest = users[from].iter().filter(|user| layer[**user] > next);
                let right = rest.all(|user| diagram.right[*user]);
                let dummy = items.len();
                items[end].below.push(dummy);
                items.push(Item {
                    layer: next,
                    width: 2.0,
                    right,
                    is_box: false,
                    above: vec![end],
                    below: Vec::new(),
                });
                end = dummy;
            }
        }
    }
    items
}

/// The items of each layer from left to right, with few crossings.
fn ordered(items: &[Item]) -> Vec<Vec<usize>> {
    let n_layers = items.iter().map(|item| item.layer + 1).max().unwrap_or(0);
    let mut layers: Vec<Vec<usize>> = vec![Vec::new(); n_layers];
    for (index, item) in items.iter().enumerate() {
        layers[item.layer].push(index);
    }
    for layer in &mut layers {
        layer.sort_by_key(|index| items[*index].right);
    }
    let mut best = (crossings(items, &layers), layers.clone());
    for sweep in 0..SWEEPS {
        let down = sweep % 2 == 0;
        let order: Vec<usize> = if down {
            (1..n_layers).collect()
        } else {
            (0..n_layers.saturating_sub(1)).rev().collect()
        };
        for layer in order {
            let next = if down { layer - 1 } else { layer + 1 };
            let mut place = vec![0.0; items.len()];
            for (position, index) in layers[next].iter().enumerate() {
                place[*index] = position as f64;
            }
            let mut keyed: Vec<(bool, f64, usize)> = layers[layer]
                .iter()
                .enumerate()
                .map(|(position, index)| {
                    let item = &items[*index];
                    let neighbours = if down { &item.above } else { &item.below };
                    let sum: f64 = neighbours.iter().map(|index| place[*index]).sum();
                    let mean = match neighbours.len() {
                        0 => position as f64,
                        count => sum / count as f64,
                    };
                    (item.right, mean, *index)
                })
                .collect();
            keyed.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
            layers[layer] = keyed.into_iter().map(|(_, _, index)| index).collect();
        }
        let count = crossings(items, &layers);
        if count < best.0 {
            best = (count, layers.clone());
        }
    }
    best.1
}

fn crossings(items: &[Item], layers: &[Vec<usize>]) -> usize {
    let mut place = vec![0; items.len()];
    for layer in layers {
        for (position, index) in layer.iter().enumerate() {
            place[*index] = position;
        }
    }
    let mut count = 0;
    for layer in layers {
        let edges: Vec<(usize, usize)> = layer
            .iter()
            .flat_map(|index| items[*index].below.iter().map(|to| (place[*index], place[*to])))
            .collect();
        for (index, a) in edges.iter().enumerate() {
            let crosses =
                |b: &&(usize, usize)| (a.0 < b.0 && a.1 > b.1) || (a.0 > b.0 && a.1 < b.1);
            count += edges[index + 1..].iter().filter(crosses).count();
        }
    }
    count
}

/// The centre of each item: as near to the mean of its neighbours as its layer's order allows.
fn places(items: &[Item], layers: &[Vec<usize>]) -> Vec<f64> {
    let mut x = vec![0.0; items.len()];
    let apart = |a: usize, b: usize| (items[a].width + items[b].width) / 2.0 + GAP;
    for layer in layers {
        for pair in layer.windows(2) {
            x[pair[1]] = x[pair[0]] + apart(pair[0], pair[1]);
        }
    }
    for sweep in 0..4 * SWEEPS {
        let mut order: Vec<usize> = (0..layers.len()).collect();
        if sweep % 2 == 1 {
            order.reverse();
        }
        for layer in order {
            let layer = &layers[layer];
            let (mut wanted, mut weights) = (Vec::new(), Vec::new());
            for index in layer {
                let item = &items[*index];
                let (mut sum, mut weight) = (0.0, 0.0);
                for neighbour in item.above.iter().chain(&item.below) {
                    let pull = pull(item, &items[*neighbour]);
                    sum += pull * x[*neighbour];
                    weight += pull;
                }
                wanted.push(if weight > 0.0 { sum / weight } else { x[*index] });
                weights.push(f64::max(weight, 0.1));
            }
            let gaps: Vec<f64> = layer.windows(2).map(|pair| apart(pair[0], pair[1])).collect();
            for (index, place) in layer.iter().zip(nearest(&wanted, &weights, &gaps)) {
                x[*index] = place;
            }
        }
    }
    x
}

/// How much two linked items want to be above each other: long edges are to be straight.
fn pull(a: &Item, b: &Item) -> f64 {
    match (a.is_box, b.is_box) {
        (true, true) => 1.0,
        (false, false) => 8.0,
        _ => 2.0,
    }
}

/// The places nearest to the wanted ones in the weighted sum of squares that are at least the gaps
/// apart: after subtracting the gaps, isotonic regression by pooling neighbours that violate the
/// order.
fn nearest(wanted: &[f64], weights: &[f64], gaps: &[f64]) -> Vec<f64> {
    let mut offset = 0.0;
    let mut offsets = Vec::with_capacity(wanted.len());
    // Mean, weight and number of the members of each pool.
    let mut pools: Vec<(f64, f64, usize)> = Vec::new();
    for (index, (wanted, weight)) in wanted.iter().zip(weights).enumerate() {
        if index > 0 {
            offset += gaps[index - 1];
        }
        offsets.push(offset);
        let mut pool = (wanted - offset, *weight, 1);
        while let Some(last) = pools.pop_if(|last| last.0 > pool.0) {
            let weight = last.1 + pool.1;
            pool = ((last.0 * last.1 + pool.0 * pool.1) / weight, weight, last.2 + pool.2);
        }
        pools.push(pool);
    }
    let means = pools.iter().flat_map(|pool| std::iter::repeat_n(pool.0, pool.2));
    means.zip(offsets).map(|(mean, offset)| mean + offset).collect()
}
