//! Whole graphs: their ids are judged as `graphs/…`.

use super::Kind::*;
use super::Reason;

pub(super) const REASONS: &[Reason] = &[Reason {
    patterns: &["graphs/*"],
    kinds: &[GradientRule, GradientSparser],
    why: "the gradient of a value of a graph is as sparse as the rules make it, also where several uses of the value are added",
}];
