//! Half the squared error on the CPU.

use crate::formats::{CsrView, Dense, DenseView};
use crate::kernels::Context;
use crate::kernels::rows::element_loss;
use sparse_core::element::Float;

element_loss!(element);

/// ½ (score - label)².
#[inline(always)]
fn element<T: Float>(score: T, label: T) -> (T, T) {
    let error = score - label;
    (T::of(0.5) * error * error, error)
}
