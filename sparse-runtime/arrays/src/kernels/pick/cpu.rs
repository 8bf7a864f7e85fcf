//! One element of each row on the CPU. An id beyond the extent (only a model can compute one) gives
//! NaN.

#![allow(clippy::too_many_arguments, reason = "the attributes of the row, one by one")]

use crate::formats::{CsrView, Dense, DenseView, Extents, IdsView, MAX_RANK, RowSparseView, Shape};
use crate::kernels::Context;
use crate::kernels::lookup::Lookup;
use sparse_core::element::Float;

/// Of a dense array.
pub fn dense_ids<T: Float>(
    out: &mut Dense<T>,
    x: DenseView<'_, T>,
    ids: IdsView<'_>,
    axis: i64,
    keepdims: bool,
    clip: bool,
    wrap: bool,
    _context: &mut Context,
) {
    let lookup = Lookup::new(x.shape(), axis, clip, wrap);
    each(out, x.shape(), &ids, lookup, keepdims, |outer, place, inner| {
        x.values()[(outer * lookup.extent + place) * lookup.inner + inner]
    });
}

/// Of a csr matrix.
pub fn csr_ids<T: Float>(
    out: &mut Dense<T>,
    x: CsrView<'_, T>,
    ids: IdsView<'_>,
    axis: i64,
    keepdims: bool,
    clip: bool,
    wrap: bool,
    _context: &mut Context,
) {
    let shape = x.extents();
    let lookup = Lookup::new(&shape, axis, clip, wrap);
    each(out, &shape, &ids, lookup, keepdims, |outer, place, inner| {
        let (row, column) = if lookup.axis == 0 { (place, inner) } else { (outer, place) };
        let found = x.row(row).and_then(|(ids, values)| values.get(ids.find(column)?).copied());
        found.unwrap_or(T::zero())
    });
}

/// Of a row_sparse array.
pub fn row_sparse_ids<T: Float>(
    out: &mut Dense<T>,
    x: RowSparseView<'_, T>,
    ids: IdsView<'_>,
    axis: i64,
    keepdims: bool,
    clip: bool,
    wrap: bool,
    _context: &mut Context,
) {
    let lookup = Lookup::new(x.shape(), axis, clip, wrap);
    let row_size = x.shape().row_size().max(1);
    each(out, x.shape(), &ids, lookup, keepdims, |outer, place, inner| {
        let at = (outer * lookup.extent + place) * lookup.inner + inner;
        x.row(at / row_size).map_or(T::zero(), |row| row[at % row_size])
    });
}

/// The gradient: zeros, and each element where it was picked.
pub fn gradient_dense_ids_like<T: Float>(
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

/// The element that `element` gives for each id.
fn each<T: Float>(
    out: &mut Dense<T>,
    shape: &Shape,
    ids: &IdsView<'_>,
    lookup: Lookup,
    keepdims: bool,
    element: impl Fn(usize, usize, usize) -> T,
) {
    out.reset_for_overwrite(picked(shape, lookup.axis, keepdims));
    for (index, out) in out.values_mut().iter_mut().enumerate() {
        let (outer, inner) = (index / lookup.inner, index % lookup.inner);
        *out = match lookup.place(ids, index) {
            Some(place) => element(outer, place, inner),
            None => T::nan(),
        };
    }
}

/// The shape without an axis, or with it as 1.
pub(super) fn picked(shape: &Shape, gone: usize, keepdims: bool) -> Shape {
    let (mut dims, mut rank) = ([1; MAX_RANK], 0);
    for (axis, &extent) in shape.iter().enumerate() {
        if axis != gone || keepdims {
            dims[rank] = if axis == gone { 1 } else { extent };
            rank += 1;
        }
    }
    Shape::new(&dims[..rank])
}
