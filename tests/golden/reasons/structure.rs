//! Operators that move elements.

use super::Reason;

pub(super) const REASONS: &[Reason] = &[];
