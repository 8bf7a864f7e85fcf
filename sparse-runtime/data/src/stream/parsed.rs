//! A parsed block of a stream.

use super::super::text::Chunk;
use super::super::{Place, Problem};
use super::binary_labels::Written;
use sparse_core::element::Float;

/// The samples of a block.
pub(super) struct Parsed<T: Float> {
    pub(super) unit: usize,
    pub(super) is_last: bool,
    pub(super) rows: Chunk<T>,
    pub(super) faults: Vec<(Place, Problem)>,
    /// How labels of binary losses are written; for kept samples this was recorded when they were
    /// parsed.
    pub(super) written: Vec<Written>,
    /// Whether an earlier epoch has [kept](super::epoch_cache) them.
    pub(super) is_cached: bool,
}
