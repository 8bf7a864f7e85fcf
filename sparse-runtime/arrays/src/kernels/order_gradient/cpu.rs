//! The gradient of `sort` and `topk` on the CPU.

use crate::formats::{Dense, DenseView, IdsView, Shape};
use crate::kernels::Context;
use crate::kernels::lookup::Lookup;
use sparse_core::element::Float;

/// Zeros, and each element at its position.
pub fn dense_ids_like<T: Float>(
    out: &mut Dense<T>,
    grad: DenseView<'_, T>,
    ids: IdsView<'_>,
    like: Shape,
    axis: i64,
    _context: &mut Context,
) {
    let lookup = Lookup::new(&like, axis, false, false);
    // The elements of `grad` for one position of the axes before it.
    let block = grad.shape()[lookup.axis..].iter().product::<usize>().max(1);
    out.reset(like);
    let out = out.values_mut();
    for (index, &value) in grad.values().iter().enumerate() {
        let (outer, inner) = (index / block, index % lookup.inner.max(1));
        if let Some(place) = lookup.place(&ids, index) {
            out[(outer * lookup.extent + place) * lookup.inner + inner] += value;
        }
    }
}
