//! The squared hinge loss on the CPU.

use crate::formats::{CsrView, Dense, DenseView};
use crate::kernels::Context;
use crate::kernels::hinge::cpu::side;
use crate::kernels::rows::element_loss;
use sparse_core::element::Float;

element_loss!(element);

/// max(0, 1 - t · score)².
#[inline(always)]
fn element<T: Float>(score: T, label: T) -> (T, T) {
    let target = side(label);
    let short = T::one() - target * score;
    if short <= T::zero() {
        return (T::zero(), T::zero());
    }
    (short * short, T::of(-2.0) * target * short)
}
