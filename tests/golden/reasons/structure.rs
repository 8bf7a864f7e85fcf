//! Operators that move elements.

use super::Kind::*;
use super::Reason;

pub(super) const REASONS: &[Reason] = &[
    Reason {
        patterns: &["slice.*", "slice_axis.*", "slice_like.*", "concat.*"],
        kinds: &[Rule, GradientRule, Sparser, GradientSparser],
        why: "parts and joins of csr and row_sparse arrays keep the storage, along any axis and with any step, and so do their gradients",
    },
    Reason {
        patterns: &["identity_with_attr_like_rhs.*"],
        kinds: &[Rule],
        why: "to take the storage of another array is a conversion, and there is one for each pair of storage types",
    },
    Reason {
        patterns: &["transpose.c*"],
        kinds: &[Rule, GradientRule, Sparser],
        why: "the transpose of a csr is a csr",
    },
];
