//! Shapes of reductions: the axes of `axis` removed, or kept as 1.

use crate::attributes::{Attributes, place_of};
use crate::shapes::{Dim, Dims, ShapeError};

/// The shape of a reduction of `dims`.
pub(super) fn infer(attributes: &Attributes, dims: &Dims) -> Result<Dims, ShapeError> {
    let axes = attributes.axes("axis");
    if let Some(list) = &axes.0
        && let Some(axis) = list.values().find(|axis| place_of(*axis, dims.len()).is_none())
    {
        return Err(ShapeError::Axis { axis, found: dims.clone() });
    }
    let (keep, exclude) = (attributes.flag("keepdims"), attributes.flag("exclude"));
    let each = dims.iter().enumerate().filter_map(|(place, dim)| {
        let reduced = axes.contain(place, dims.len()) != exclude;
        if reduced { keep.then_some(Dim::Size(1)) } else { Some(dim.clone()) }
    });
    Ok(each.collect())
}
