//! What the passes decide: which operands a fallback converts, and which gradients are computed.

use super::Kind::*;
use super::Reason;

pub(super) const REASONS: &[Reason] = &[
    Reason {
        patterns: &["dot.cc.*", "dot.cr.*", "dot.dr.*", "dot.rc.*", "dot.rr.*"],
        kinds: &[Sparser, GradientSparser],
        why: "a fallback converts as few operands as possible, and what kernels for the others give stays sparse",
    },
    Reason {
        patterns: &["dot.c*"],
        kinds: &[GradientRefused],
        why: "the reference declares a dense gradient of the csr operand and never computes it; it is computed here, on conversions where they are needed",
    },
];
