//! What code emitted by `graph!` calls beside kernels: checks of a batch, and small conveniences. Not part of
//! the public interface.

use crate::error::Result;
use crate::formats::{DenseView, Shape};
use crate::model::{Model, ModelError};
use sparse_core::element::Float;
use std::fmt;

/// Compares one extent of a batch.
///
/// # Errors
///
/// [`ModelError::Extent`].
#[inline(always)]
pub fn check_extent(
    model: &'static str,
    input: &'static str,
    axis: usize,
    found: usize,
    expected: usize,
) -> Result<()> {
    if found == expected {
        return Ok(());
    }
    Err(ModelError::extent(model, input, axis, found, expected).into())
}

/// Compares the rank of a batch's array.
///
/// # Errors
///
/// [`ModelError::Rank`].
#[inline(always)]
pub fn check_rank(
    model: &'static str,
    input: &'static str,
    shape: &Shape,
    expected: usize,
) -> Result<()> {
    if shape.rank() == expected {
        return Ok(());
    }
    Err(ModelError::rank(model, input, *shape, expected).into())
}

/// Checks that class ids are below the number of classes. O(ids).
///
/// # Errors
///
/// [`ModelError::ClassId`], naming the first one that is not.
#[inline]
pub fn check_ids(
    model: &'static str,
    input: &'static str,
    ids: DenseView<'_, u32>,
    classes: usize,
) -> Result<()> {
    match ids.values().iter().position(|id| *id as usize >= classes) {
        None => Ok(()),
        Some(row) => {
            let id = ids.values()[row];
            Err(ModelError::ClassId { model, input, row, id, classes }.into())
        }
    }
}

/// The one element of a loss.
#[inline]
pub fn scalar_of<T: Float>(loss: DenseView<'_, T>) -> f64 {
    loss.values().first().map_or(f64::NAN, |value| value.as_f64())
}

/// A model's `Debug`: its name, its dimensions, its parameters' shapes.
pub fn debug_model<M: Model>(model: &M, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut out = f.debug_struct(M::NAME);
    out.field("dims", &format_args!("{}", model.dims()));
    for parameter in model.parameters() {
        out.field(parameter.name, &parameter.shape);
    }
    out.finish()
}

/// One log line for each conversion that `fallback = warn` inserted.
pub fn log_fallbacks(model: &str, messages: &[&str]) {
    for message in messages {
        tracing::warn!(model, "{message}");
    }
}
