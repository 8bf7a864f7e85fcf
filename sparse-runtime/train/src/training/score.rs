//! Scores and predictions of a model, without learning.

use super::TrainError;
use super::any_batches::AnyBatches;
use super::epoch_totals::EpochTotals;
use super::evaluation_batches::{EvaluationSink, evaluate};
use super::measure::{BatchLabels, Measure, first_output};
use super::report::ScoreReport;
use crate::error::Result;
use crate::metric::{Accumulator, Metric};
use nnz_arrays::formats::{Dense, Shape};
use nnz_arrays::in_library;
use nnz_data::{Batch, BatchOptions, DataSource, Labels, LastBatch, Order};
use nnz_step::model::{AnyModel, Dims, Extent, InputInfo, Model, ModelError, ModelFacts};
use sparse_core::element::Float;

/// The number of samples evaluated at a time, unless more are requested: enough to keep kernels
/// busy, few enough to stay in cache.
pub(super) const ROWS_AT_A_TIME: usize = 1024;

/// The mean loss over all samples of some data, and metrics of the first output against the first
/// label.
///
/// States of the model stay as they are, and every batch reads them so. With
/// [`InSequence`](nnz_data::InSequence) data each batch reads the states that the previous one
/// leaves, in batches of the size of training; after the call they are as before it.
///
/// The report holds finite numbers only: a loss that is not finite is an error that names the
/// samples, and so is a metric without a value, such as the AUC of data of one class.
/// [`Metric::evaluate`] computes single metrics.
///
/// Losses are weighted by the samples of their batches and summed in `f64`, so the mean is the same
/// for any batch size, up to the rounding of the model's own arithmetic.
///
/// # Errors
///
/// [`TrainError::NoRows`], [`TrainError::ScoreNotFinite`], [`TrainError::NoValue`], a metric that
/// does not fit the model, and any error of data and model.
pub fn score<M, S>(
    model: &mut M,
    data: &S,
    metrics: &[Box<dyn Metric>],
    batch_size: usize,
) -> Result<ScoreReport>
where
    M: Model,
    S: DataSource<M::Element>,
{
    score_on("the data", model, data, metrics, batch_size)
}

/// [`score`] with accumulators that the caller keeps: for metrics that are more than a number, such
/// as the bins of a [`SeenCalibration`](crate::metric::SeenCalibration), and for those that may
/// have no value. The report has the loss, and no metrics.
///
/// ```
/// use nnz::data::Dataset;
/// use nnz::formats::Csr;
/// use nnz::metric::{Auc, Metric};
/// use nnz::prelude::*;
/// use nnz::training::score_into;
///
/// graph! {
///     model Logistic {
///         input x: csr[n, d];
///         label y: dense[n, 1];
///         param w: row_sparse[d, 1] = Zeros;
///         let score = dot(x, w);
///         loss logistic(score, y);
///         output probability = sigmoid(score);
///     }
/// }
///
/// let data = Dataset::new(Csr::<f32>::zeros(2, 5), vec![1.0, 1.0])?;
/// let mut model = Logistic::new(dims! { d: 5 }, Seed(0))?;
/// let mut accumulators = vec![Auc.start()];
/// let report = score_into(&mut model, &data, &mut accumulators, 1024)?;
/// assert_eq!(report.n_rows, 2);
/// assert!(accumulators[0].value().is_err()); // no negative sample
/// # Ok::<(), nnz::Error>(())
/// ```
///
/// # Errors
///
/// As [`score`], but for metrics without a value. The accumulators are lost then: the vector is
/// empty.
pub fn score_into<M, S>(
    model: &mut M,
    data: &S,
    accumulators: &mut Vec<Box<dyn Accumulator>>,
    batch_size: usize,
) -> Result<ScoreReport>
where
    M: Model,
    S: DataSource<M::Element>,
{
    let facts = ModelFacts::of::<M>();
    let measure = Measure::of_accumulators(&facts, std::mem::take(accumulators))?;
    let scored = scored("the data", model, data, measure, batch_size)?;
    *accumulators = scored.measure.into_accumulators();
    let (loss, n_rows) = (scored.totals.mean_loss(), scored.totals.n_rows);
    Ok(ScoreReport { loss, metrics: Vec::new(), n_rows })
}

/// [`score`] on data with a name for errors.
pub(super) fn score_on<M, S>(
    name: &'static str,
    model: &mut M,
    data: &S,
    metrics: &[Box<dyn Metric>],
    batch_size: usize,
) -> Result<ScoreReport>
where
    M: Model,
    S: DataSource<M::Element>,
{
    let measure = Measure::new(&ModelFacts::of::<M>(), metrics)?;
    let Scored { mut measure, totals, .. } = scored(name, model, data, measure, batch_size)?;
    let metrics = measure.take(name)?;
    Ok(ScoreReport { loss: totals.mean_loss(), metrics, n_rows: totals.n_rows })
}

/// Losses and metrics of all samples, of which there is at least one.
fn scored<M, S>(
    name: &'static str,
    model: &mut M,
    data: &S,
    measure: Measure,
    batch_size: usize,
) -> Result<Scored>
where
    M: Model,
    S: DataSource<M::Element>,
{
    let mut batches = data.batches(M::INPUTS, &whole(batch_size, Labels::Required))?;
    score_batches(name, model, (&mut batches, S::IN_SEQUENCE), measure)
}

/// [`scored`], compiled once for elements of a type.
fn score_batches<T: Float>(
    name: &'static str,
    model: &mut dyn AnyModel<T>,
    batches: (&mut dyn AnyBatches<T>, bool),
    measure: Measure,
) -> Result<Scored> {
    in_library!(<T> score_each::<T> => (
        name: &'static str,
        model: &mut dyn AnyModel<T>,
        batches: (&mut dyn AnyBatches<T>, bool),
        measure: Measure,
    ) -> Result<Scored>)
}

fn score_each<T: Float>(
    name: &'static str,
    model: &mut dyn AnyModel<T>,
    batches: (&mut dyn AnyBatches<T>, bool),
    measure: Measure,
) -> Result<Scored> {
    batches.0.start_epoch(0)?;
    let mut scored = Scored { name, measure, totals: EpochTotals::default() };
    evaluate(model, batches, true, &mut scored)?;
    if scored.totals.n_rows == 0 {
        return Err(TrainError::NoRows.into());
    }
    Ok(scored)
}

/// The number of samples of each batch of a model, if the model fixes it: by a number, or by a
/// dimension that a parameter or a state has too.
pub(super) fn fixed_batch<T: Float>(model: &dyn AnyModel<T>) -> Option<usize> {
    let facts = model.facts();
    fixing_input(facts.inputs, model.dims()).map(|(_, _, n_rows)| n_rows)
}

/// The input that fixes the samples of a batch, the dimension by which it does, and their number.
fn fixing_input(
    inputs: &'static [InputInfo],
    dims: &Dims,
) -> Option<(&'static str, Option<&'static str>, usize)> {
    let fixed = |info: &InputInfo| match info.shape.first()? {
        Extent::Constant(n_rows) => Some((info.name, None, *n_rows)),
        Extent::Named(dim) => dims.get(dim).map(|n_rows| (info.name, Some(*dim), n_rows)),
    };
    inputs.iter().find_map(fixed)
}

/// Refuses, before the first step, batches of another size than the model fixes, and data whose
/// last batch is shorter.
///
/// # Errors
///
/// [`ModelError::BatchSize`]. For data of unknown length the refusal comes with such a batch.
pub(super) fn check_batch_size<T: Float>(
    model: &dyn AnyModel<T>,
    n_rows: Option<usize>,
    options: &BatchOptions,
) -> Result<()> {
    let facts = model.facts();
    let fixing = fixing_input(facts.inputs, model.dims());
    let (Some((input, dim, expected)), Some(n_rows)) = (fixing, n_rows) else {
        return Ok(());
    };
    let is_short = options.last_batch == LastBatch::Short;
    let first = if is_short { options.batch_size.min(n_rows) } else { options.batch_size };
    let last = if is_short { n_rows.checked_rem(first).unwrap_or(0) } else { 0 };
    let mut sizes = [first, last].into_iter().filter(|size| *size > 0);
    match sizes.find(|size| *size != expected) {
        Some(found) => Err(ModelError::batch_size(facts.name, input, dim, found, expected).into()),
        None => Ok(()),
    }
}

/// Refuses data on which a model cannot be scored, by scoring its first sample: before an epoch
/// whose evaluation would fail.
///
/// # Errors
///
/// [`TrainError::NoRows`], and any error of data, model and metrics for that sample.
pub(super) fn check_source<M, S>(model: &mut M, data: &S, metrics: &[Box<dyn Metric>]) -> Result<()>
where
    M: Model,
    S: DataSource<M::Element>,
{
    let n_rows = fixed_batch(&*model).unwrap_or(1);
    if score_first(model, data, &whole(n_rows, Labels::Required), metrics)? {
        Ok(())
    } else {
        Err(TrainError::NoRows.into())
    }
}

/// Scores the first batch of some data, in its order, and drops the result. Returns whether there
/// is one.
///
/// # Errors
///
/// Any error of data, model and metrics for that batch.
pub(super) fn score_first<M, S>(
    model: &mut M,
    data: &S,
    options: &BatchOptions,
    metrics: &[Box<dyn Metric>],
) -> Result<bool>
where
    M: Model,
    S: DataSource<M::Element>,
{
    let options = BatchOptions { order: Order::Sequential, ..*options };
    let mut batches = data.batches(M::INPUTS, &options)?;
    score_next(model, &mut batches, metrics)
}

/// Scores the first batch.
fn score_next<T: Float>(
    model: &mut dyn AnyModel<T>,
    batches: &mut dyn AnyBatches<T>,
    metrics: &[Box<dyn Metric>],
) -> Result<bool> {
    fn next<T: Float>(
        model: &mut dyn AnyModel<T>,
        batches: &mut dyn AnyBatches<T>,
        metrics: &[Box<dyn Metric>],
    ) -> Result<bool> {
        batches.start_epoch(0)?;
        batches.visit_next(&mut |batch| {
            model.loss(batch)?;
            Measure::new(&model.facts(), metrics)?.update(model, batch)
        })
    }
    in_library!(<T> next::<T> => (
        model: &mut dyn AnyModel<T>,
        batches: &mut dyn AnyBatches<T>,
        metrics: &[Box<dyn Metric>],
    ) -> Result<bool>)
}

/// The first output of a model for every sample, in order. Labels are not needed. States are read
/// as by [`score`].
///
/// # Errors
///
/// [`TrainError::Output`] if the first output is not dense or has not one row for each sample of a
/// batch, and any error of data and model.
pub fn predict<M, S>(model: &mut M, data: &S, batch_size: usize) -> Result<Dense<M::Element>>
where
    M: Model,
    S: DataSource<M::Element>,
{
    let mut batches = data.batches(M::INPUTS, &whole(batch_size, labels_to_predict::<M, S>()))?;
    predict_batches(model, (&mut batches, S::IN_SEQUENCE))
}

/// [`predict`], compiled once for elements of a type.
fn predict_batches<T: Float>(
    model: &mut dyn AnyModel<T>,
    batches: (&mut dyn AnyBatches<T>, bool),
) -> Result<Dense<T>> {
    in_library!(<T> predict_each::<T> => (
        model: &mut dyn AnyModel<T>,
        batches: (&mut dyn AnyBatches<T>, bool),
    ) -> Result<Dense<T>>)
}

fn predict_each<T: Float>(
    model: &mut dyn AnyModel<T>,
    batches: (&mut dyn AnyBatches<T>, bool),
) -> Result<Dense<T>> {
    batches.0.start_epoch(0)?;
    let mut predicted = Predicted { values: Vec::new(), extents: vec![0] };
    evaluate(model, batches, false, &mut predicted)?;
    let Predicted { values, extents } = predicted;
    Ok(Dense::new(Shape::try_new(&extents)?, values)?)
}

/// Losses and metrics of the batches so far.
struct Scored {
    /// The name of the data in errors.
    name: &'static str,
    measure: Measure,
    totals: EpochTotals,
}

impl<T: Float> EvaluationSink<T> for Scored {
    type PendingBatch = (usize, usize, Option<BatchLabels<T>>);

    fn receive_batch(&mut self, batch: &dyn Batch<'_, T>) -> Result<Self::PendingBatch> {
        Ok((batch.n_rows(), batch.n_padding(), self.measure.copy_labels(batch)?))
    }

    fn receive_outputs(
        &mut self,
        model: &dyn AnyModel<T>,
        pending: Self::PendingBatch,
        loss: f64,
    ) -> Result<()> {
        let (n_rows, n_padding, pending) = pending;
        if !loss.is_finite() {
            let (data, first) = (self.name, self.totals.n_rows);
            let last = first + (n_rows as u64).saturating_sub(1);
            return Err(TrainError::ScoreNotFinite { data, loss, first, last }.into());
        }
        self.totals.add(loss, n_rows, n_padding);
        pending.map_or(Ok(()), |pending| self.measure.update_from_labels(model, &pending))
    }
}

/// The first output of the batches so far.
struct Predicted<T> {
    values: Vec<T>,
    extents: Vec<usize>,
}

impl<T: Float> EvaluationSink<T> for Predicted<T> {
    /// The samples of a batch, and how many of them are padding.
    type PendingBatch = [usize; 2];

    fn receive_batch(&mut self, batch: &dyn Batch<'_, T>) -> Result<[usize; 2]> {
        Ok([batch.n_rows(), batch.n_padding()])
    }

    fn receive_outputs(
        &mut self,
        model: &dyn AnyModel<T>,
        [n_rows, n_padding]: [usize; 2],
        _: f64,
    ) -> Result<()> {
        let output = first_output(model, n_rows, "predictions")?;
        let n_rows = n_rows - n_padding.min(n_rows);
        self.values.extend_from_slice(output.rows(0..n_rows)?.values());
        let n_rows_before = self.extents[0];
        self.extents.clear();
        self.extents.extend_from_slice(output.shape());
        self.extents[0] = n_rows_before + n_rows;
        Ok(())
    }
}

/// Whether predictions need labels: where carried states are computed from them.
pub(super) fn labels_to_predict<M: Model, S: DataSource<M::Element>>() -> Labels {
    if M::STATES_READ_LABELS && S::IN_SEQUENCE { Labels::Required } else { Labels::Ignored }
}

/// All samples once, in order.
pub(super) fn whole(batch_size: usize, labels: Labels) -> BatchOptions {
    BatchOptions { batch_size, order: Order::Sequential, last_batch: LastBatch::Short, labels }
}
