//! Operators that move elements.

use super::Kind::*;
use super::Reason;

pub(super) const REASONS: &[Reason] = &[Reason {
    patterns: &["transpose.c*"],
    kinds: &[Rule, GradientRule, Sparser],
    why: "the transpose of a csr is a csr",
}];
