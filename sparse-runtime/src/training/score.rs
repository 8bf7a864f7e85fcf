//! A model at work on data, without learning.

use super::TrainError;
use super::epoch::EpochTotals;
use super::measure::{Measure, first_output};
use super::report::ScoreReport;
use crate::data::{Batch, BatchOptions, Batches, DataSource, Labels, LastBatch, Order};
use crate::error::Result;
use crate::formats::{Dense, Shape};
use crate::metric::Metric;
use crate::model::{BatchSource, Model};

/// Rows that are evaluated at a time, unless more are asked for: enough to keep kernels busy, few enough to
/// stay in cache.
pub(super) const ROWS_AT_A_TIME: usize = 1024;

/// The mean loss over all rows of some data, and metrics of the first output against the first label.
///
/// Losses are weighted by the rows of their batches and summed in `f64`, so that the mean is the same for any
/// batch size, up to the rounding of the model's own arithmetic.
///
/// # Errors
///
/// [`TrainError::NoRows`], a metric that does not fit the model, and whatever data and model report.
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
    let mut measure = Measure::new::<M>(metrics)?;
    let mut batches = data.batches(M::INPUTS, &whole(batch_size, Labels::Required))?;
    let mut totals = EpochTotals::default();
    batches.start_epoch(0)?;
    while let Some(batch) = batches.next_batch()? {
        let bound = model.bind(&batch)?;
        let loss = model.loss(&bound)?;
        totals.add(loss, batch.n_rows(), batch.n_padding());
        measure.update(model, &batch)?;
    }
    if totals.n_rows == 0 {
        return Err(TrainError::NoRows.into());
    }
    Ok(ScoreReport { loss: totals.mean_loss(), metrics: measure.take(), n_rows: totals.n_rows })
}

/// Refuses data that a model cannot be scored on, as far as its first row tells, which is scored: before an epoch is made whose evaluation would
/// tell.
///
/// # Errors
///
/// [`TrainError::NoRows`], and whatever data and model report of that row.
pub(super) fn check_source<M, S>(model: &mut M, data: &S) -> Result<()>
where
    M: Model,
    S: DataSource<M::Element>,
{
    let mut batches = data.batches(M::INPUTS, &whole(1, Labels::Required))?;
    batches.start_epoch(0)?;
    let Some(batch) = batches.next_batch()? else { return Err(TrainError::NoRows.into()) };
    let bound = model.bind(&batch)?;
    model.loss(&bound).map(drop)
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
    let mut values = Vec::new();
    let mut extents = vec![0];
    batches.start_epoch(0)?;
    while let Some(batch) = batches.next_batch()? {
        let bound = model.bind(&batch)?;
        model.forward(&bound)?;
        let output = first_output(model, batch.n_rows(), "predictions")?;
        let n_rows = batch.n_rows() - batch.n_padding().min(batch.n_rows());
        values.extend_from_slice(output.rows(0..n_rows)?.values());
        let n_rows_before = extents[0];
        extents.clear();
        extents.extend_from_slice(output.shape());
        extents[0] = n_rows_before + n_rows;
    }
    Ok(Dense::new(Shape::try_new(&extents)?, values)?)
}

/// All rows once, in order.
pub(super) fn whole(batch_size: usize, labels: Labels) -> BatchOptions {
    BatchOptions { batch_size, order: Order::Sequential, last_batch: LastBatch::Short, labels }
}
