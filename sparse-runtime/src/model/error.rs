//! What can be wrong between a model and a batch.

use crate::formats::Shape;

/// A batch does not fit the model, or the model cannot do what is asked.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// An extent of a batch is not what the model's dimensions or the batch's other arrays say.
    #[error(
        "model `{model}`: `{input}` has extent {found} on axis {axis}, but {expected} is needed"
    )]
    Extent {
        /// The model.
        model: &'static str,
        /// The input or label.
        input: &'static str,
        /// The axis.
        axis: usize,
        /// The extent it has.
        found: usize,
        /// The extent that is needed.
        expected: usize,
    },
    /// An array of a batch has another rank than declared.
    #[error("model `{model}`: `{input}` has shape {shape}, but {expected} dimensions are declared")]
    Rank {
        /// The model.
        model: &'static str,
        /// The input or label.
        input: &'static str,
        /// The shape it has.
        shape: Shape,
        /// The rank declared.
        expected: usize,
    },
    /// A class id is not below the number of classes.
    #[error(
        "model `{model}`: `{input}` holds class {id} in row {row} of the batch, but there are {classes} classes, \
         0 to {}", classes.saturating_sub(1)
    )]
    ClassId {
        /// The model.
        model: &'static str,
        /// The label.
        input: &'static str,
        /// The row of the batch.
        row: usize,
        /// The class id.
        id: u32,
        /// The number of classes.
        classes: usize,
    },
    /// The model declares no loss.
    #[error(
        "model `{model}` has no loss: add `loss squared_error(prediction, label);` to train it"
    )]
    NoLoss {
        /// The model.
        model: &'static str,
    },
    /// A data set has no row_sparse columns: such inputs are put into a batch by hand.
    #[error(
        "input {index} is `row_sparse`, which data sets do not hold: put it into the batch by hand"
    )]
    RowSparseInput {
        /// The input's position.
        index: usize,
    },
}

impl ModelError {
    // Kept out of line, so that the checks of a hot step are a comparison and a jump.
    #[cold]
    pub(crate) fn extent(
        model: &'static str,
        input: &'static str,
        axis: usize,
        found: usize,
        expected: usize,
    ) -> Self {
        ModelError::Extent { model, input, axis, found, expected }
    }

    #[cold]
    pub(crate) fn rank(
        model: &'static str,
        input: &'static str,
        shape: Shape,
        expected: usize,
    ) -> Self {
        ModelError::Rank { model, input, shape, expected }
    }
}
