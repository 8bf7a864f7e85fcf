//! Layers and losses.

use super::Reason;

pub(super) const REASONS: &[Reason] = &[];
