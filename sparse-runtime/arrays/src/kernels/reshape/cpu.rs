//! The same elements under another shape on the CPU.

use crate::formats::{Dense, DenseView, MAX_RANK, Shape};
use crate::kernels::Context;
use sparse_core::element::Float;
use sparse_core::ir::List;

/// A copy under the other shape.
pub fn dense<T: Float>(
    out: &mut Dense<T>,
    x: DenseView<'_, T>,
    shape: Option<List>,
    _context: &mut Context,
) {
    out.reset_for_overwrite(reshaped(x.shape(), shape));
    out.values_mut().copy_from_slice(x.values());
}

/// The shape asked for, what is left open filled in.
pub(crate) fn reshaped(of: &Shape, shape: Option<List>) -> Shape {
    let list = shape.unwrap_or_default();
    let mut dims = [1; MAX_RANK];
    let mut open = None;
    for (place, entry) in list.entries().iter().enumerate() {
        match entry {
            Some(0) => dims[place] = of.get(place).copied().unwrap_or(1),
            Some(extent) if *extent > 0 => dims[place] = *extent as usize,
            _ => open = Some(place),
        }
    }
    let known: usize = dims.iter().product();
    if let Some(place) = open {
        dims[place] = of.size().checked_div(known).unwrap_or(0);
    }
    Shape::new(&dims[..list.len()])
}
