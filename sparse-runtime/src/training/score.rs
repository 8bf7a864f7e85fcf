//! A model at work on data, without learning.

use super::TrainError;
use super::epoch::EpochTotals;
use super::evaluated::{Reader, evaluate};
use super::measure::{Measure, Noted, first_output};
use super::report::ScoreReport;
use crate::data::{Batch, BatchOptions, Batches, DataSource, Labels, LastBatch, Order};
use crate::error::Result;
use crate::formats::{Dense, Shape};
use crate::metric::Metric;
use crate::model::{Extent, InputInfo, Model};

/// Rows that are evaluated at a time, unless more are asked for: enough to keep kernels busy, few enough to
/// stay in cache.
pub(super) const ROWS_AT_A_TIME: usize = 1024;

/// The mean loss over all rows of some data, and metrics of the first output against the first label.
///
/// The report has numbers only: a loss that is not finite is an error that names the samples, and so is a metric without a value, such as the AUC of
/// data of one class. [`Metric::evaluate`] is for metrics one by one.
///
/// Losses are weighted by the rows of their batches and summed in `f64`, so that the mean is the same for any
/// batch size, up to the rounding of the model's own arithmetic.
///
/// # Errors
///
/// [`TrainError::NoRows`], [`TrainError::ScoreNotFinite`], [`TrainError::NoValue`], a metric that does not fit the model, and whatever data and
/// model report.
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

/// [`score`] on data that errors call by this name.
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
    let measure = Measure::new::<M>(metrics)?;
    let mut batches = data.batches(M::INPUTS, &whole(batch_size, Labels::Required))?;
    batches.start_epoch(0)?;
    let mut scored = Scored { name, measure, totals: EpochTotals::default() };
    evaluate(model, &mut batches, true, &mut scored)?;
    let Scored { mut measure, totals, .. } = scored;
    if totals.n_rows == 0 {
        return Err(TrainError::NoRows.into());
    }
    let metrics = measure.take(name)?;
    Ok(ScoreReport { loss: totals.mean_loss(), metrics, n_rows: totals.n_rows })
}

/// How many samples each batch of a model has, where the model fixes it: by a number, or by a
/// dimension that a parameter or a state has too.
pub(super) fn fixed_batch<M: Model>(model: &M) -> Option<usize> {
    let fixed = |info: &InputInfo| match info.shape.first()? {
        Extent::Constant(n_rows) => Some(*n_rows),
        Extent::Named(name) => model.dims().get(name),
    };
    M::INPUTS.iter().find_map(fixed)
}

/// Refuses data that a model cannot be scored on, as far as its first row tells, which is scored: before an epoch is made whose evaluation would
/// tell.
///
/// # Errors
///
/// [`TrainError::NoRows`], and whatever data, model and metrics report of that row.
pub(super) fn check_source<M, S>(model: &mut M, data: &S, metrics: &[Box<dyn Metric>]) -> Result<()>
where
    M: Model,
    S: DataSource<M::Element>,
{
    let n_rows = fixed_batch(model).unwrap_or(1);
    match score_first(model, data, &whole(n_rows, Labels::Required), metrics)? {
        true => Ok(()),
        false => Err(TrainError::NoRows.into()),
    }
}

/// Scores the first batch of some data, in its order, and forgets what comes of it; whether there is one.
///
/// # Errors
///
/// Whatever data, model and metrics report of it.
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
    batches.start_epoch(0)?;
    let Some(batch) = batches.next_batch()? else { return Ok(false) };
    let bound = model.bind(&batch)?;
    model.loss(&bound)?;
    Measure::new::<M>(metrics)?.update(model, &batch)?;
    Ok(true)
}

/// The first output of a model for every row of some data, in order. Labels are not needed.
///
/// # Errors
///
/// [`TrainError::Output`] if the first output is not dense or has not a row for each row of a batch, and
/// whatever data and model report.
pub fn predict<M, S>(model: &mut M, data: &S, batch_size: usize) -> Result<Dense<M::Element>>
where
    M: Model,
    S: DataSource<M::Element>,
{
    let mut batches = data.batches(M::INPUTS, &whole(batch_size, Labels::Ignored))?;
    batches.start_epoch(0)?;
    let mut predicted = Predicted { values: Vec::new(), extents: vec![0] };
    evaluate(model, &mut batches, false, &mut predicted)?;
    let Predicted { values, extents } = predicted;
    Ok(Dense::new(Shape::try_new(&extents)?, values)?)
}

/// Losses and metrics of the batches so far.
struct Scored {
    /// What errors call the data.
    name: &'static str,
    measure: Measure,
    totals: EpochTotals,
}

impl<M: Model> Reader<M> for Scored {
    type Noted = (usize, usize, Option<Noted<M::Element>>);

    fn note<'b, B: Batch<'b, M::Element>>(&mut self, batch: &B) -> Result<Self::Noted> {
        Ok((batch.n_rows(), batch.n_padding(), self.measure.note(batch)?))
    }

    fn read(&mut self, model: &M, noted: Self::Noted, loss: f64) -> Result<()> {
        let (n_rows, n_padding, noted) = noted;
        if !loss.is_finite() {
            let (data, first) = (self.name, self.totals.n_rows);
            let last = first + (n_rows as u64).saturating_sub(1);
            return Err(TrainError::ScoreNotFinite { data, loss, first, last }.into());
        }
        self.totals.add(loss, n_rows, n_padding);
        noted.map_or(Ok(()), |noted| self.measure.update_noted(model, &noted))
    }
}

/// The first output of the batches so far.
struct Predicted<T> {
    values: Vec<T>,
    extents: Vec<usize>,
}

impl<M: Model> Reader<M> for Predicted<M::Element> {
    /// The rows of a batch, and how many of them are padding.
    type Noted = [usize; 2];

    fn note<'b, B: Batch<'b, M::Element>>(&mut self, batch: &B) -> Result<[usize; 2]> {
        Ok([batch.n_rows(), batch.n_padding()])
    }

    fn read(&mut self, model: &M, [n_rows, n_padding]: [usize; 2], _: f64) -> Result<()> {
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

/// All rows once, in order.
pub(super) fn whole(batch_size: usize, labels: Labels) -> BatchOptions {
    BatchOptions { batch_size, order: Order::Sequential, last_batch: LastBatch::Short, labels }
}
