//! The factor that makes the common norm of some gradients at most a bound.

use sparse_core::element::Float;

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
