//! Slices: parts of arrays by positions along each axis, and parts put back among zeros.

pub(super) mod cpu;
#[cfg(feature = "cuda")]
pub(super) mod cuda;

use super::strided::Strided;
use crate::formats::{MAX_RANK, Shape};
use sparse_core::ir::{Axes, List};
use sparse_core::shapes::{Span, place_of};
use std::ops::Range;

/// Positions along each axis of an array.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlicedPart {
    shape: Shape,
    spans: [Span; MAX_RANK],
}

impl SlicedPart {
    /// The whole array.
    fn whole(shape: Shape) -> Self {
        let mut spans = [Span::all(1); MAX_RANK];
        for (span, &extent) in spans.iter_mut().zip(shape.iter()) {
            *span = Span::all(extent);
        }
        SlicedPart { shape, spans }
    }

    /// The first two as the `spans` of the kernels of a GPU: starts, steps and numbers.
    #[cfg(feature = "cuda")]
    pub(crate) fn on_gpu(&self) -> [u64; 6] {
        let [rows, columns, ..] = self.spans;
        let numbers = |of: Span| [of.start as u64, of.step as u64, of.len as u64];
        let ([a, b, c], [d, e, f]) = (numbers(rows), numbers(columns));
        [a, d, b, e, c, f]
    }

    /// The shape of the whole array.
    #[cfg(feature = "cuda")]
    pub(crate) fn whole_shape(&self) -> Shape {
        self.shape
    }

    /// The shape of the part.
    pub(crate) fn extents(&self) -> Shape {
        let mut extents = [1; MAX_RANK];
        for (extent, span) in extents.iter_mut().zip(&self.spans) {
            *extent = span.len;
        }
        Shape::new(&extents[..self.shape.rank()])
    }

    /// Where the elements of the part lie in the array, or in a row of it.
    pub(crate) fn strided(&self, axes: Range<usize>) -> Strided {
        let mut steps = [1; MAX_RANK];
        for axis in (axes.start..axes.end.saturating_sub(1)).rev() {
            steps[axis] = steps[axis + 1] * self.shape[axis + 1];
        }
        let start = axes.clone().map(|axis| self.spans[axis].start * steps[axis]).sum();
        axes.fold(Strided::at(start), |strided, axis| {
            strided
                .axis(self.spans[axis].len, self.spans[axis].step as isize * steps[axis] as isize)
        })
    }

    /// Whether rows are kept whole.
    fn keeps_rows_whole(&self) -> bool {
        (1..self.shape.rank()).all(|axis| self.spans[axis].is_all(self.shape[axis]))
    }
}

/// `begin:end:step` of each axis.
pub(super) fn slice(
    shape: Shape,
    begin: Option<List>,
    end: Option<List>,
    step: Option<List>,
) -> SlicedPart {
    let [begin, end, step] = [begin, end, step].map(Option::unwrap_or_default);
    let mut part = SlicedPart::whole(shape);
    for axis in 0..shape.rank() {
        let (begin, end, step) = (begin.get(axis), end.get(axis), step.get(axis));
        part.spans[axis] = Span::new(begin, end, step, shape[axis]);
    }
    part
}

/// `begin:end:step` of one axis.
pub(super) fn slice_axis(
    shape: Shape,
    axis: i64,
    begin: Option<List>,
    end: Option<List>,
    step: Option<List>,
) -> SlicedPart {
    let [begin, end, step] = [begin, end, step].map(|list| list.and_then(|list| list.get(0)));
    let mut part = SlicedPart::whole(shape);
    if let Some(axis) = place_of(axis, shape.rank()) {
        part.spans[axis] = Span::new(begin, end, step, shape[axis]);
    }
    part
}

/// As many as another array has along some axes, the first or the last ones.
pub(super) fn slice_like(shape: Shape, like: Shape, axes: Axes, from_end: bool) -> SlicedPart {
    let mut part = SlicedPart::whole(shape);
    for axis in (0..shape.rank()).filter(|axis| axes.contain(*axis, shape.rank())) {
        let wanted = like.get(axis).copied().unwrap_or(shape[axis]);
        part.spans[axis] = Span::at_end(wanted, shape[axis], from_end);
    }
    part
}

/// Where [`slice`] took the part from.
pub(super) fn slice_gradient(
    _part: Shape,
    like: Shape,
    begin: Option<List>,
    end: Option<List>,
    step: Option<List>,
) -> SlicedPart {
    slice(like, begin, end, step)
}

/// Where [`slice_axis`] took the part from.
pub(super) fn slice_axis_gradient(
    _part: Shape,
    like: Shape,
    axis: i64,
    begin: Option<List>,
    end: Option<List>,
    step: Option<List>,
) -> SlicedPart {
    slice_axis(like, axis, begin, end, step)
}

/// Where [`slice_like`] took the part from.
pub(super) fn slice_like_gradient(
    part: Shape,
    like: Shape,
    axes: Axes,
    from_end: bool,
) -> SlicedPart {
    slice_like(like, part, axes, from_end)
}
