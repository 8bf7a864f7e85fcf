//! The requirements of a model on the labels of a stream.

use nnz_step::model::LabelKind;

/// The requirements of the model on a label.
#[derive(Clone, Debug)]
pub(super) struct LabelCheck {
    pub(super) column: usize,
    pub(super) declared: &'static str,
    pub(super) kind: LabelKind,
}
