//! Clipping of the gradients of several parameters by their common norm.

use crate::error::Result;
use crate::model::any_model::{AnyModel, trained_gradient};
use crate::model::{GradientMut, Model};
use nnz_arrays::in_library;
use sparse_core::element::Float;

/// Multiplies the gradients of all parameters of a model by one factor, so that their common norm
/// is at most `max_norm`. O(elements stored).
///
/// # Errors
///
/// [`ModelError::NoGradient`](crate::model::ModelError::NoGradient), before anything is changed.
pub fn gradients<M: Model>(model: &mut M, max_norm: f64) -> Result<()> {
    gradients_of(model, max_norm)
}

/// [`gradients`] of a model without its type.
///
/// # Errors
///
/// As there.
pub fn gradients_of<T: Float>(model: &mut dyn AnyModel<T>, max_norm: f64) -> Result<()> {
    in_library!(<T> clip_all::<T> => (model: &mut dyn AnyModel<T>, max_norm: f64) -> Result<()>)
}

fn clip_all<T: Float>(model: &mut dyn AnyModel<T>, max_norm: f64) -> Result<()> {
    let mut squares = 0.0;
    let n_parameters = model.facts().parameters.len();
    let mut each = |change: &mut dyn FnMut(&mut [T])| -> Result<()> {
        for index in 0..n_parameters {
            match trained_gradient(model, index)? {
                Some(GradientMut::Dense(gradient)) => change(gradient.values_mut()),
                Some(GradientMut::RowSparse(gradient)) => change(gradient.values_mut()),
                None => {}
            }
        }
        Ok(())
    };
    each(&mut |values| squares += sum_of_squares(values))?;
    if squares.is_finite() {
        let factor = factor(max_norm, &[squares]);
        return each(&mut |values| scale(values, factor));
    }
    // Squares are beyond `f64` before elements are: of elements that are 1 at most they are not.
    let mut largest = 0.0f64;
    each(&mut |values| {
        largest = values.iter().map(|value| value.as_f64().abs()).fold(largest, f64::max)
    })?;
    each(&mut |values| scale(values, largest.recip()))?;
    squares = 0.0;
    each(&mut |values| squares += sum_of_squares(values))?;
    let factor = (max_norm / squares.sqrt()).min(largest);
    each(&mut |values| scale(values, factor))
}

/// The factor for the gradients of a step that makes their common norm at most `max_norm`: 1 if it
/// is already. `squares` are the [sums of squares](sum_of_squares) of the gradients.
///
/// ```
/// use nnz::optimizer::clip::{factor, sum_of_squares};
///
/// let (w, b) = ([3.0f32, 0.0], [4.0f32]);
/// assert_eq!(factor(2.5, &[sum_of_squares(&w), sum_of_squares(&b)]), 0.5);
/// assert_eq!(factor(7.0, &[sum_of_squares(&w)]), 1.0);
/// ```
pub fn factor(max_norm: f64, squares: &[f64]) -> f64 {
    let norm = squares.iter().sum::<f64>().sqrt();
    if norm > max_norm { max_norm / norm } else { 1.0 }
}

/// The sum of the squares of the stored elements, in `f64`. O(elements).
pub fn sum_of_squares<T: Float>(values: &[T]) -> f64 {
    let square = |value: &T| {
        let value = value.as_f64();
        value * value
    };
    values.iter().map(square).sum()
}

/// Multiplies the stored elements. O(elements), nothing by 1.
pub fn scale<T: Float>(values: &mut [T], factor: f64) {
    if factor != 1.0 {
        values.iter_mut().for_each(|value| *value = T::of(value.as_f64() * factor));
    }
}
