//! The loss of counts on the CPU.

use crate::formats::{CsrView, Dense, DenseView};
use crate::kernels::Context;
use crate::kernels::rows::element_loss;
use sparse_core::element::Float;

element_loss!(element);

/// exp(score) - label · score.
#[inline(always)]
fn element<T: Float>(score: T, label: T) -> (T, T) {
    let mean = score.exp();
    (mean - label * score, mean - label)
}
