//! Errors between a model and a batch.

use nnz_arrays::formats::{IdsView, Shape};
use sparse_core::storage::ElementType;

/// A batch does not fit the model, or the model does not support a call.
#[derive(Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// An extent of a batch differs from the model's dimensions or the batch's other arrays.
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
        /// The extent that it must have.
        expected: usize,
    },
    /// A batch has other features than the dimension that the model was made with.
    #[error(
        "model `{model}`: `{input}` has {found} columns, but `{dim}` is {expected} in this model: {}",
        width_help(*found, *expected, dim)
    )]
    Features {
        /// The model.
        model: &'static str,
        /// The input or label.
        input: &'static str,
        /// The dimension, as the model's parameters name it.
        dim: &'static str,
        /// The columns it has.
        found: usize,
        /// The columns that the model was made for.
        expected: usize,
    },
    /// A batch has another number of samples than the model requires.
    #[error(
        "model `{model}`: the batch has {found} samples (`{input}`), but the model fixes {expected}{}: train with \
         `.batch_size({expected})` and `.last_batch(LastBatch::Discard)`, which leaves out samples that do not fill a batch, \
         and predict or evaluate a multiple of {expected} samples",
        dim.map(|dim| format!(" (`{dim}`)")).unwrap_or_default()
    )]
    BatchSize {
        /// The model.
        model: &'static str,
        /// The input or label.
        input: &'static str,
        /// The dimension, as a parameter or a state names it; `None` where it is a number or a
        /// constant.
        dim: Option<&'static str>,
        /// The samples of the batch.
        found: usize,
        /// The samples that the model requires.
        expected: usize,
    },
    /// A batch has no label, which the loss or the update of a state needs.
    #[error(
        "model `{model}`: the batch has no label `{label}`, from which the loss, or a state, is computed: give one for each of the {n_rows} samples \
         (in data, `Dataset::new(features, labels)`), or call `forward` or `predict`, which need none"
    )]
    NoLabel {
        /// The model.
        model: &'static str,
        /// The label.
        label: &'static str,
        /// The samples of the batch.
        n_rows: usize,
    },
    /// A model has values that no kernel of a GPU computes.
    #[cfg(feature = "cuda")]
    #[error(
        "model `{model}` cannot be moved to a GPU, which has no kernel for `{missing}`: train it on the host"
    )]
    NotOnGpu {
        /// The model.
        model: &'static str,
        /// The kernels of its plan, or a value.
        missing: String,
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
    /// An id is negative, or not below the number of classes, rows or positions that it indexes.
    #[error(
        "model `{model}`: `{name}` holds id {id} in row {row} of the batch, but ids must be 0 or more and below {bound} here"
    )]
    Id {
        /// The model.
        model: &'static str,
        /// The input, label or value.
        name: &'static str,
        /// The sample of the batch.
        row: usize,
        /// The id, which may be negative.
        id: String,
        /// The bound on ids.
        bound: usize,
    },
    /// An id beyond a table, in a step that is one loop.
    #[error("row {row} of the batch names row {id} of a parameter that has {n_rows} rows")]
    Lookup {
        /// The sample of the batch.
        row: usize,
        /// The id.
        id: usize,
        /// The bound on ids.
        n_rows: usize,
    },
    /// Ids of a batch have another type than declared.
    #[error(
        "model `{model}`: `{input}` is declared with ids of type `{declared}`, but the batch has `{found}`: \
         convert it, or declare `{input}: dense<{found}>[…]`"
    )]
    IdType {
        /// The model.
        model: &'static str,
        /// The input or label.
        input: &'static str,
        /// The type declared.
        declared: ElementType,
        /// The type it has.
        found: ElementType,
    },
    /// The model has fewer parameters than the position.
    #[error("model `{model}` has {known} parameters, but parameter {index} is asked for")]
    NoParameter {
        /// The model.
        model: &'static str,
        /// The position.
        index: usize,
        /// The number of parameters.
        known: usize,
    },
    /// The function of a declared operator gave an array of another shape than the operator's shape
    /// rule.
    #[error(
        "model `{model}`: the function of the operator `{operator}` gave an array of shape {found}, but its shape rule says {expected}"
    )]
    ResultShape {
        /// The model.
        model: &'static str,
        /// The operator.
        operator: &'static str,
        /// The shape that the function gave.
        found: Box<Shape>,
        /// The shape of the rule.
        expected: Box<Shape>,
    },
    /// A declared function is not 0 at 0, although its operator says so.
    #[error(
        "model `{model}`: the operator `{operator}` says `{what} = 0`, but its function gives {found} at 0: leave the line out"
    )]
    NotZero {
        /// The model.
        model: &'static str,
        /// The operator.
        operator: &'static str,
        /// The line of the declaration: `at_zero` or `slope_at_zero`.
        what: &'static str,
        /// The value of the function.
        found: f64,
    },
    /// The loss or the gradients of a batch depend on table rows that it is not said to read.
    #[error(
        "model `{model}` reads table rows of `{parameter}` that its batch does not name: of the operators that read it, correct the line \
         `reads {parameter} by …`, or leave it out"
    )]
    OtherRowsRead {
        /// The model.
        model: &'static str,
        /// The parameter.
        parameter: &'static str,
    },
    /// A row_sparse result, or a gradient, stores a table row that nothing names.
    #[error(
        "model `{model}`: the {what} `{of}` stores the table row {row}, which its batch does not name: correct the line `stores by …` of the \
         operator, or leave it out"
    )]
    OtherRowStored {
        /// The model.
        model: &'static str,
        /// What stores it: the result of an operator, or the gradient of a parameter.
        what: &'static str,
        /// The name of that.
        of: &'static str,
        /// The row.
        row: u64,
    },
    /// The model declares no loss.
    #[error(
        "model `{model}` has no loss: add `loss squared_error(prediction, label);` to train it"
    )]
    NoLoss {
        /// The model.
        model: &'static str,
    },
    /// The model was written by hand without a step whose gradients can be changed before the
    /// update.
    #[error(
        "model `{model}` has no `adjusted_step`: implement it, to clip gradients by their norm or to train with a rule that corrects them"
    )]
    NoAdjustedStep {
        /// The model.
        model: &'static str,
    },
    /// The model was written by hand without the gradient of a parameter that is trained.
    #[error(
        "model `{model}` gives no gradient of parameter `{parameter}`, which is trained: implement \
         `Model::gradient_mut`, to train on workers, to clip gradients by their norm, to look at \
         them, or to train with a rule that corrects them"
    )]
    NoGradient {
        /// The model.
        model: &'static str,
        /// The parameter.
        parameter: &'static str,
    },
    /// The model was written by hand with states, but without methods that carry them without
    /// learning.
    #[error(
        "model `{model}` says `WRITES_STATES`, but has no `forward_carrying` and `loss_carrying`: implement them, to predict or to \
         evaluate data in sequence"
    )]
    NotCarrying {
        /// The model.
        model: &'static str,
    },
    /// No evaluation was requested, or the model has none.
    #[error(
        "model `{model}` has begun no evaluation: call `begin_evaluation` before each `end_evaluation`, of a model that says `TAKES_BATCHES`, or \
         `loss` or `forward` with the batch"
    )]
    NotBegun {
        /// The model.
        model: &'static str,
    },
    /// A step on a batch that was not taken.
    #[error(
        "model `{model}` has taken no batch for this step: call `take_batch` before each `step_on_taken`, of a model that says \
         `TAKES_BATCHES`, or `train_step` with the batch"
    )]
    NoBatchTaken {
        /// The model.
        model: &'static str,
    },
    /// A sample of entries does not fit the model's output.
    #[error(
        "model `{model}` cannot score a row of entries: its one input must be csr and its first output dense; give `forward` a batch"
    )]
    NotARow {
        /// The model.
        model: &'static str,
    },
    /// The model cannot be made of existing tables.
    #[error(
        "model `{model}` cannot be made of tables: implement `Model::from_tables`, as `graph!` does"
    )]
    NotFromTables {
        /// The model.
        model: &'static str,
    },
    /// The step of the model is not one loop over the samples of a batch.
    #[error(
        "model `{model}` makes no steps row by row in one call: give `train_step` batches of one row"
    )]
    NotByRows {
        /// The model.
        model: &'static str,
    },
    /// A data set has no row_sparse columns: put such inputs into a batch by hand.
    #[error(
        "input {index} is `row_sparse`, which data sets do not hold: put it into the batch by hand"
    )]
    RowSparseInput {
        /// The input's position.
        index: usize,
    },
}

sparse_core::debug_of_errors!(ModelError);

/// The help for a batch of another width than a model.
fn width_help(found: usize, expected: usize, dim: &str) -> String {
    if found < expected {
        format!(
            "read the data with `n_features({expected})`, which counts features that do not occur in it, or make the model with \
             `dims! {{ {dim}: {found} }}`"
        )
    } else {
        format!(
            "make the model with `dims! {{ {dim}: {found} }}`, or leave features from {expected} on out of the data"
        )
    }
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
    pub(crate) fn features(
        model: &'static str,
        input: &'static str,
        dim: &'static str,
        found: usize,
        expected: usize,
    ) -> Self {
        ModelError::Features { model, input, dim, found, expected }
    }

    /// A batch of another number of samples than the model fixes.
    #[cold]
    pub fn batch_size(
        model: &'static str,
        input: &'static str,
        dim: Option<&'static str>,
        found: usize,
        expected: usize,
    ) -> Self {
        ModelError::BatchSize { model, input, dim, found, expected }
    }

    #[cold]
    pub(crate) fn no_label(model: &'static str, label: &'static str, n_rows: usize) -> Self {
        ModelError::NoLabel { model, label, n_rows }
    }

    #[cold]
    pub(crate) fn id(
        model: &'static str,
        name: &'static str,
        ids: IdsView<'_>,
        position: usize,
        bound: usize,
    ) -> Self {
        let row = position / ids.shape().row_size().max(1);
        ModelError::Id { model, name, row, id: ids.number(position).to_string(), bound }
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
