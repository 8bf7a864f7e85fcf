//! Numbers of moderate size, products with which may be taken at another place.

use crate::formula::{Formula, scalar};
use crate::ir::{Graph, ValueId};

/// Whether a product with a number may be taken at another place: neither a zero, which loses what
/// is not finite, nor so large or small that it leaves the range of the elements.
fn is_moderate(number: f64) -> bool {
    (number as f32).is_normal()
}

/// The same of a value that is a number. One with names is taken to be [moderate](is_moderate)
/// where it is so for extents and constants of every size that models have.
pub(super) fn is_moderate_number(graph: &Graph, id: ValueId) -> bool {
    graph.number_of(id).is_some_and(|number| is_usual(&number))
}

/// Whether a formula is moderate for numbers of every size that models have.
pub(super) fn is_usual(formula: &Formula) -> bool {
    const SAMPLES: [f64; 4] = [1.0, 3.0, 1e3, 1e6];
    SAMPLES.iter().all(|sample| scalar::value(formula, &|_| Some(*sample)).is_ok_and(is_moderate))
}
