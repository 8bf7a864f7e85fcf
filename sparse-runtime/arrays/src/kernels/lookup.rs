//! What ids stand for along an axis.

#[cfg(feature = "cuda")]
use crate::device::cuda::Launch;
use crate::formats::{IdsView, Shape};
use sparse_core::shapes::place_of;

/// An axis of an array, and how ids are positions along it.
#[derive(Clone, Copy, Debug)]
pub struct Lookup {
    /// The number of elements before the axis.
    pub(crate) outer: usize,
    /// The extent of the axis.
    pub(crate) extent: usize,
    /// The number of elements after the axis.
    pub(crate) inner: usize,
    /// The place of the axis.
    pub(crate) axis: usize,
    clip: bool,
    wrap: bool,
}

impl Lookup {
    /// Along `axis` of an array of this shape; ids beyond its extent are clipped or wrapped.
    pub fn new(shape: &Shape, axis: i64, clip: bool, wrap: bool) -> Self {
        let axis = place_of(axis, shape.rank()).unwrap_or(0);
        Lookup {
            outer: shape[..axis].iter().product(),
            extent: shape.get(axis).copied().unwrap_or(1),
            inner: shape.get(axis + 1..).unwrap_or(&[]).iter().product(),
            axis,
            clip,
            wrap,
        }
    }

    /// What becomes of ids beyond the extent, as a launch takes it.
    #[cfg(feature = "cuda")]
    pub(crate) fn beyond_read_by<'l>(&self, launch: Launch<'l>) -> Launch<'l> {
        launch.size(usize::from(self.clip)).size(usize::from(self.wrap))
    }

    /// The position that an id stands for. `None` for one beyond the extent: those of a batch were
    /// checked, so that this can only be one that a model computes.
    #[inline]
    pub(crate) fn place(&self, ids: &IdsView<'_>, index: usize) -> Option<usize> {
        if self.extent == 0 || !(self.clip || self.wrap) {
            return ids.get(index).filter(|id| *id < self.extent);
        }
        let (id, extent) = (ids.number(index), self.extent as i128);
        Some(if self.wrap { id.rem_euclid(extent) } else { id.clamp(0, extent - 1) } as usize)
    }
}
