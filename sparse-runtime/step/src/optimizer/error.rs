//! Errors of updates.

use nnz_arrays::formats::Shape;

/// An update that does not fit the parameters. Every variant names the parameter.
#[derive(Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum OptimizerError {
    /// The states of a parameter lie beside its weights, and its weights were lent without them.
    #[error(
        "the optimizer's state of parameter `{parameter}` lies in its table: lend `table_mut()`, not `values_mut()`"
    )]
    StatesInTable {
        /// The parameter.
        parameter: String,
    },
    /// The table of a parameter was replaced by one of another form.
    #[error(
        "parameter `{parameter}` has {n_rows} rows of {expected} elements, but its table was replaced by one of as many elements in other \
         rows: write to its values, `set_values`"
    )]
    RowSize {
        /// The parameter.
        parameter: String,
        /// The elements of one of its rows.
        expected: usize,
        /// Its rows.
        n_rows: usize,
    },
    /// States beside the weights of a slice, or for a rule without any.
    #[error(
        "`{rule}` keeps no state beside the weights of parameter `{parameter}`: ask for `General` rows"
    )]
    NotBeside {
        /// The parameter.
        parameter: String,
        /// The rule.
        rule: &'static str,
    },
    /// A rule without formulas cannot run on a GPU.
    #[cfg(feature = "cuda")]
    #[error(
        "`{rule}` has no recurrence as formulas, of which a kernel of a GPU could be made: train on the host, or by another rule"
    )]
    NoRecurrence {
        /// The rule.
        rule: &'static str,
    },
    /// Table rows that miss idle steps cannot be on a GPU under this rule.
    #[cfg(feature = "cuda")]
    #[error(
        "{rule}: steps without a gradient change rows, and the rule has no formulas by which a GPU could catch up with them later: with these \
         hyperparameters choose `LazyUpdate::Touched`, which changes only the rows of a batch, or `LazyUpdate::Dense`, which changes all rows at \
         every step"
    )]
    IdleStepsOnGpu {
        /// The rule.
        rule: &'static str,
    },
    /// Table rows have missed more steps than a GPU counts.
    #[cfg(feature = "cuda")]
    #[error(
        "rows of parameter `{parameter}` have waited for {steps} steps, but on a GPU for {most} at most: bring them up to date on the host \
         before, by `Updater::flush_model`"
    )]
    WaitsTooLong {
        /// The parameter.
        parameter: String,
        /// The steps since all its rows were up to date.
        steps: u64,
        /// The maximum.
        most: u64,
    },
    /// A step of a rule that corrects gradients was not prepared.
    #[error(
        "`{rule}` corrects gradients by a mean gradient, which nobody has prepared for this step: train with `Trainer::fit` or `Trainer::fit_epochs`"
    )]
    NotPrepared {
        /// The rule.
        rule: &'static str,
    },
    /// A batch has a sample without kept derivatives.
    #[error("row {id} of the data is in a batch, but the data is said to have {n_samples} rows")]
    NoSuchSample {
        /// The number of the sample.
        id: usize,
        /// The number of samples.
        n_samples: usize,
    },
    /// Hogwild steps cannot update a parameter that is not shared.
    #[error(
        "parameter `{parameter}`: threads share it without locks only where it is multiplied with a csr input in a step that is one loop: train with `{rule}` by `Trainer::fit`"
    )]
    NotShared {
        /// The parameter.
        parameter: String,
        /// The rule.
        rule: &'static str,
    },
    /// A parameter is lent outside of a step.
    #[error(
        "parameter `{parameter}` is lent to a step, but none was begun: call `begin_step` before, and `end_step` when all parameters are updated"
    )]
    OutsideStep {
        /// The parameter.
        parameter: String,
    },
    /// The number of derivatives kept for each sample differs from the model's scores.
    #[error(
        "{kept} derivatives are kept for each sample, but a row of this model has {found} scores: go on with the model that they are of, or begin a run anew"
    )]
    OtherDerivatives {
        /// The number kept for each sample.
        kept: usize,
        /// The scores of a sample.
        found: usize,
    },
    /// More steps ended than have begun.
    #[error(
        "{made} steps end, but {begun} were begun: call `begin_step` before each `end_step`, and end by `end_steps` no more than `begin_steps` returned"
    )]
    NotBegun {
        /// The number of steps to end.
        made: u64,
        /// The number of pending steps.
        begun: u64,
    },
    /// The values and states of one parameter were returned as those of another.
    #[error(
        "what was taken out of parameter {taken}, with {found} states, cannot be put back to parameter `{parameter}`, which has {expected}: \
         put back what `take_dense` of the same parameter gave"
    )]
    OtherSteps {
        /// The parameter to which they were returned.
        parameter: String,
        /// Its states.
        expected: usize,
        /// The position from which they were taken.
        taken: usize,
        /// The states.
        found: usize,
    },
    /// There is no parameter at this position.
    #[error("parameter {index} does not exist: the updater has {n_parameters} parameters")]
    NoSuchParameter {
        /// The position.
        index: usize,
        /// The number of parameters.
        n_parameters: usize,
    },
    /// The updater belongs to another model.
    #[error(
        "the updater was made for other parameters than those of model `{model}`: make it by `Updater::for_model`"
    )]
    OtherModel {
        /// The model.
        model: &'static str,
    },
    /// A parameter has weights that follow from no state of the rule.
    #[error(
        "parameter `{parameter}` has weights that are not 0, but no state of `{rule}` gives such a weight unless {} is above 0 for this \
         parameter, and its first step would forget them: set one of them, or start from zeros{}",
        one_of(hyperparameters),
        if *decays { "" } else { "; the parameter has no weight decay, so that penalties do not count" }
    )]
    NoState {
        /// The parameter.
        parameter: String,
        /// The rule.
        rule: &'static str,
        /// The rule's hyperparameters, one of which must be above 0.
        hyperparameters: &'static [&'static str],
        /// Whether penalties apply to the parameter.
        decays: bool,
    },
    /// The updater holds states of another model that still exists.
    #[error(
        "parameter `{parameter}` is of another model than the one that this updater has trained, whose states and missed steps it keeps: make an \
         updater for each model, by `Trainer::updater` or `Updater::for_model`"
    )]
    OtherTable {
        /// The parameter.
        parameter: String,
    },
    /// A parameter has more elements than can be addressed.
    #[error("parameter `{parameter}`: {n_rows} rows of {row_size} elements cannot be addressed")]
    TooLarge {
        /// The parameter.
        parameter: String,
        /// Its rows.
        n_rows: usize,
        /// The elements of a row.
        row_size: usize,
    },
    /// The system has no memory for the states of a rule.
    #[error(
        "no memory for parameter `{parameter}` with the states of the rule `{rule}`: {n_rows} rows take {bytes} bytes: use fewer features (or fewer \
         bits of hashes), or a rule with fewer states, such as `sgd`"
    )]
    OutOfMemory {
        /// The parameter.
        parameter: String,
        /// The rule.
        rule: &'static str,
        /// The parameter's rows.
        n_rows: usize,
        /// The bytes of weights and states.
        bytes: usize,
    },
    /// The number of values differs from the parameter's.
    #[error("parameter `{parameter}` has {expected} values, but {found} were given")]
    ValueCount {
        /// The parameter.
        parameter: String,
        /// Its number of values.
        expected: usize,
        /// The values given.
        found: usize,
    },
    /// A gradient has another shape than its parameter.
    #[error(
        "the gradient of parameter `{parameter}` has shape {found}, but the parameter has {n_rows} rows of {row_size} elements"
    )]
    GradientShape {
        /// The parameter.
        parameter: String,
        /// Its rows.
        n_rows: usize,
        /// The elements of a row.
        row_size: usize,
        /// The gradient's shape.
        found: Shape,
    },
    /// A row_sparse gradient for a parameter whose gradient is declared dense.
    #[error(
        "parameter `{parameter}` was given a row_sparse gradient, but its gradient was declared dense: rows without a gradient would not be caught up"
    )]
    GradientStorage {
        /// The parameter.
        parameter: String,
    },
    /// A table row out of range.
    #[error("parameter `{parameter}` has {n_rows} rows, but row {row} was asked for")]
    RowOutOfRange {
        /// The parameter.
        parameter: String,
        /// The row.
        row: usize,
        /// The number of rows.
        n_rows: usize,
    },
    /// An update of a frozen parameter.
    #[error("parameter `{parameter}` is frozen and cannot be updated")]
    Frozen {
        /// The parameter.
        parameter: String,
    },
    /// Two handles on one parameter.
    #[error("the rows of one parameter were asked for twice at once, in {indices:?}")]
    Repeated {
        /// The positions.
        indices: Vec<usize>,
    },
    /// More parameters than one loop trains.
    #[error("a step trains {count} parameters of one kind in one loop, which are more than {most}")]
    TooMany {
        /// The tables, or the dense parameters.
        count: usize,
        /// The most there may be.
        most: usize,
    },
    /// A `Plain` handle for a rule that does more.
    #[error(
        "parameter `{parameter}`: rule `{rule}` does more here than add a multiple of the gradient: ask for `General` rows"
    )]
    NotPlain {
        /// The parameter.
        parameter: String,
        /// The rule.
        rule: &'static str,
    },
    /// In `LazyUpdate::Dense` a step ended before all rows were updated.
    #[error(
        "parameter `{parameter}`: the step ended, but the rows without a gradient were not updated: call `RowUpdater::finish`, or use `LazyUpdate::Exact`"
    )]
    Unfinished {
        /// The parameter.
        parameter: String,
    },
    /// The state of another updater, or an invalid one.
    #[error("the optimizer state does not fit: {problem}")]
    Snapshot {
        /// The fault.
        problem: String,
    },
    /// An invalid learning rate.
    #[error("the learning rate is {value}, but must be at least 0 and finite")]
    LearningRate {
        /// The rate.
        value: f64,
    },
    /// An invalid scale of a parameter's learning rate or weight decay.
    #[error(
        "parameter `{parameter}`: the scale of its {what} is {value}, but must be at least 0 and finite"
    )]
    Scale {
        /// The parameter.
        parameter: String,
        /// The quantity that it scales.
        what: &'static str,
        /// The scale.
        value: f64,
    },
}

sparse_core::debug_of_errors!(OptimizerError);

/// Names in backticks, joined by *or*.
fn one_of(names: &[&str]) -> String {
    let quoted: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    quoted.join(" or ")
}
