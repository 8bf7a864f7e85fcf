//! The absolute error on the CPU.

use crate::formats::{CsrView, Dense, DenseView};
use crate::kernels::Context;
use crate::kernels::rows::element_loss;
use crate::kernels::scalar::ScalarFunctions;
use sparse_core::element::Float;

element_loss!(element);

/// |score - label|. Where they are equal every slope in [-1, 1] is one; it is 0.
#[inline(always)]
fn element<T: Float>(score: T, label: T) -> (T, T) {
    let error = score - label;
    (error.abs(), error.sign())
}
