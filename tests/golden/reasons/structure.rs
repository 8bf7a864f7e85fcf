//! Operators that move elements.

use super::Kind::*;
use super::Reason;

pub(super) const REASONS: &[Reason] = &[
    Reason {
        patterns: &["slice.*", "slice_axis.*", "slice_like.*", "concat.*", "SliceChannel.*"],
        kinds: &[Rule, GradientRule, Sparser, GradientSparser],
        why: "parts and joins of csr and row_sparse arrays keep the storage, along any axis and with any step, and so do their gradients",
    },
    Reason {
        patterns: &["identity_with_attr_like_rhs.*"],
        kinds: &[Rule],
        why: "to take the storage of another array is a conversion, and there is one for each pair of storage types",
    },
    Reason {
        patterns: &["take.*"],
        kinds: &[Rule, GradientRule, Sparser, GradientSparser],
        why: "rows are taken of csr and row_sparse arrays as they are, also where ids are checked, and the gradient stores the rows taken",
    },
    Reason {
        patterns: &["pick.*", "retain.*"],
        kinds: &[Rule, GradientRule, Sparser, GradientSparser],
        why: "elements and rows of sparse arrays are looked up in what is stored",
    },
    Reason {
        patterns: &["retain.*"],
        kinds: &[Accepted],
        why: "rows of a list are kept of an array of any storage",
    },
    Reason {
        patterns: &["where.*"],
        kinds: &[Rule, GradientRule, GradientSparser],
        why: "a row_sparse condition is read as it is, and the gradient of what a sparse condition chooses is as sparse",
    },
    Reason {
        patterns: &["argmax.*", "argmin.*"],
        kinds: &[Rule],
        why: "positions of extremes are found in what is stored",
    },
    Reason {
        patterns: &["transpose.c*"],
        kinds: &[Rule, GradientRule, Sparser],
        why: "the transpose of a csr is a csr",
    },
];
