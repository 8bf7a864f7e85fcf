//! `dense`: every element, row major.

use super::Shape;
use crate::device::{Cpu, Device};
use sparse_core::element::Element;

/// A dense array: every element, row major.
///
/// Invariant: the buffer holds exactly `shape.size()` elements.
#[derive(Clone)]
pub struct Dense<T: Element = f32, D: Device = Cpu> {
    shape: Shape,
    values: D::Buffer<T>,
}

/// A borrowed dense array, row major and contiguous.
#[derive(Clone, Copy)]
pub struct DenseView<'a, T: Element = f32, D: Device = Cpu> {
    shape: Shape,
    values: D::Slice<'a, T>,
}
