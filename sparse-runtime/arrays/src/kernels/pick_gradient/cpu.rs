//! The gradient of `pick` on the CPU.

use crate::formats::{Dense, DenseView, IdsView, Shape};
use crate::kernels::Context;
use crate::kernels::lookup::Lookup;
use sparse_core::element::Float;

/// Zeros, and each element where it was picked.
pub fn dense_ids_like<T: Float>(
    out: &mut Dense<T>,
    grad: DenseView<'_, T>,
    ids: IdsView<'_>,
    like: Shape,
    axis: i64,
    clip: bool,
    wrap: bool,
    _context: &mut Context,
) {
    let lookup = Lookup::new(&like, axis, clip, wrap);
    out.reset(like);
    let out = out.values_mut();
    for (index, &value) in grad.values().iter().enumerate() {
        let (outer, inner) = (index / lookup.inner, index % lookup.inner);
        if let Some(place) = lookup.place(&ids, index) {
            out[(outer * lookup.extent + place) * lookup.inner + inner] += value;
        }
    }
}
