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

/// Calls what it is given with all numbers, part by part.
pub(crate) type Parts<'p, T> = dyn FnMut(&mut dyn FnMut(&mut [T])) + 'p;

/// Multiplies all numbers by one factor, so that their common norm is at most `max_norm`. `each` is
/// called up to five times. O(numbers).
pub(crate) fn scale_to<T: Float>(max_norm: f64, each: &mut Parts<'_, T>) {
    let mut squares = 0.0;
    each(&mut |values| squares += sum_of_squares(values));
    if squares.is_finite() {
        let factor = factor(max_norm, &[squares]);
        return each(&mut |values| scale(values, factor));
    }
    // Squares are beyond `f64` before elements are: of elements that are 1 at most they are not.
    let mut largest = 0.0f64;
    each(&mut |values| {
        largest = values.iter().map(|value| value.as_f64().abs()).fold(largest, f64::max)
    });
    each(&mut |values| scale(values, largest.recip()));
    squares = 0.0;
    each(&mut |values| squares += sum_of_squares(values));
    let factor = (max_norm / squares.sqrt()).min(largest);
    each(&mut |values| scale(values, factor));
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
