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
    let list = shape.unwrap_or_default();
    let mut dims = [1; MAX_RANK];
    let mut open = None;
    for (place, entry) in list.entries().iter().enumerate() {
        match entry {
            Some(0) => dims[place] = x.shape().get(place).copied().unwrap_or(1),
            Some(extent) if *extent > 0 => dims[place] = *extent as usize,
            _ => open = Some(place),
        }
    }
    let known: usize = dims.iter().product();
    if let Some(place) = open {
        dims[place] = x.values().len().checked_div(known).unwrap_or(0);
    }
    let shape = Shape::new(&dims[..list.len()]);
    out.reset_for_overwrite(shape);
    out.values_mut().copy_from_slice(x.values());
}
