//! The scalar functions that kernels compute, in one place.
//!
//! The operator table writes an element-wise function as a formula; the functions that a formula
//! may call are listed once, in [`sparse_core::operators::scalar::FUNCTIONS`], with their value in
//! `f64`. Most are methods of `num_traits::Float`; [`ScalarFunctions`] has the others.

use nnz_device::simd::same_type;
use sparse_core::element::Float;
use sparse_core::operators::special;
use sparse_core::storage::ElementType;

/// The functions of formulas that `num_traits::Float` does not have. None overflows where its value
/// is finite.
#[diagnostic::on_unimplemented(
    message = "formulas of operators cannot be computed in `{Self}`",
    note = "they are computed in the accumulator of an element: `f32` or `f64`"
)]
pub trait ScalarFunctions: Float {
    /// -1, 0 or 1; 0 for NaN.
    fn sign(self) -> Self;

    /// The larger one; NaN stays NaN.
    fn at_least(self, bound: Self) -> Self;

    /// The smaller one; NaN stays NaN.
    fn at_most(self, bound: Self) -> Self;

    /// The first where this is not 0, else the second.
    fn select(self, first: Self, second: Self) -> Self;

    /// The remainder with the sign of the divisor; 0 where that is 0.
    fn modulo(self, divisor: Self) -> Self;

    /// The nearest integer, halves to the even one.
    fn rint(self) -> Self;

    /// The error function.
    fn error_function(self) -> Self;

    /// The inverse of the error function.
    fn inverse_error_function(self) -> Self;

    /// The gamma function.
    fn gamma_function(self) -> Self;

    /// The logarithm of its absolute value.
    fn log_gamma(self) -> Self;

    /// The derivative of that.
    fn digamma(self) -> Self;

    /// 1 / (1 + exp(-x)).
    fn sigmoid(self) -> Self;

    /// log(1 + exp(x)).
    fn softplus(self) -> Self;
}

impl<T: Float> ScalarFunctions for T {
    #[inline(always)]
    fn sign(self) -> T {
        if self > T::zero() {
            T::one()
        } else if self < T::zero() {
            -T::one()
        } else {
            T::zero()
        }
    }

    #[inline(always)]
    fn at_least(self, bound: T) -> T {
        if self < bound { bound } else { self }
    }

    #[inline(always)]
    fn at_most(self, bound: T) -> T {
        if self > bound { bound } else { self }
    }

    #[inline(always)]
    fn select(self, first: T, second: T) -> T {
        if self != T::zero() { first } else { second }
    }

    #[inline(always)]
    fn modulo(self, divisor: T) -> T {
        if divisor == T::zero() { T::zero() } else { self - (self / divisor).floor() * divisor }
    }

    #[inline(always)]
    fn rint(self) -> T {
        let rounded = self.round();
        if (self - self.trunc()).abs() == T::of(0.5) {
            // Half way between two integers: twice the nearest integer of half of it is even.
            T::of(2.0) * (rounded / T::of(2.0)).trunc()
        } else {
            rounded
        }
    }

    fn error_function(self) -> T {
        T::of(special::erf(self.as_f64()))
    }

    fn inverse_error_function(self) -> T {
        T::of(special::erfinv(self.as_f64()))
    }

    fn gamma_function(self) -> T {
        T::of(special::gamma(self.as_f64()))
    }

    fn log_gamma(self) -> T {
        T::of(special::gammaln(self.as_f64()))
    }

    fn digamma(self) -> T {
        T::of(special::digamma(self.as_f64()))
    }

    #[inline(always)]
    fn sigmoid(self) -> T {
        sigmoid_from(self, exp_of_minus_abs(self))
    }

    #[inline(always)]
    fn softplus(self) -> T {
        Softplus::of(self, exp_of_minus_abs(self)).value()
    }
}

/// Sigmoid and softplus with one exponential: that of the library. It is by a table, and so there a
/// little earlier than [`exp_of_nonpositive`], and each step of one row waits for it.
#[inline(always)]
pub(crate) fn sigmoid_and_softplus<T: Float>(x: T) -> (T, Softplus<T>) {
    let e = (-x.abs()).exp();
    (sigmoid_from(x, e), Softplus::of(x, e))
}

/// max(x, 0) + log(1 + exp(-|x|)), the logarithm of which may wait.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Softplus<T> {
    positive: T,
    /// exp(-|x|).
    e: T,
}

impl<T: Float> Softplus<T> {
    #[inline(always)]
    fn of(x: T, e: T) -> Self {
        Softplus { positive: x.at_least(T::zero()), e }
    }

    #[inline(always)]
    pub(crate) fn value(self) -> T {
        self.positive + ln_1p_of_unit(self.e)
    }

    /// Not less than the value, by less than 1; infinite or NaN if it is.
    #[inline(always)]
    pub(crate) fn bound(self) -> T {
        self.positive + self.e
    }
}

/// exp of what is never positive, so that nothing overflows.
#[inline(always)]
fn exp_of_minus_abs<T: Float>(x: T) -> T {
    exp_of_nonpositive(-x.abs())
}

/// exp(x) for x ≤ 0; NaN stays NaN.
///
/// In `f32` inline, without a branch, so that loops over scores become vectors. The results are the
/// same on every machine.
#[inline(always)]
pub(crate) fn exp_of_nonpositive<T: Float>(x: T) -> T {
    match same_type::<T, f32>(&[x]) {
        Some([x]) => T::of(f64::from(exp_of_nonpositive_f32(*x))),
        _ => x.exp(),
    }
}

/// 2ⁿ · exp(r), with x = n · log 2 + r and |r| ≤ log 2 / 2. exp(r) is 1 + r + r² · q(r), with a
/// polynomial q interpolated at the five Chebyshev nodes of that interval (relative error of exp(r)
/// 1.1·10⁻⁸). In all a relative error below 2⁻²³, the last bit or two; 0 where the value is below
/// 2⁻¹²⁶, or almost.
#[inline(always)]
fn exp_of_nonpositive_f32(x: f32) -> f32 {
    /// From here down n is -127, and 2ⁿ comes out as 0.
    const LEAST: f32 = -88.0;
    /// 1.5 · 2²³, to which a number is added as an integer, and the bias of an exponent.
    const SHIFT: f32 = 12_582_912.0 + 127.0;
    /// log 2 in two parts: n times the first is exact.
    const LN_2: [f32; 2] = [0.693_359_4, -0.000_212_194_44];
    let x = if x < LEAST { LEAST } else { x };
    let shifted = x * std::f32::consts::LOG2_E + SHIFT;
    let n = shifted - SHIFT;
    let r = (x - n * LN_2[0]) - n * LN_2[1];
    let square = r * r;
    // Not by Horner's rule, where each term waits for the one before it.
    let low = 0.5 + 0.166_665_77 * r;
    let high = (0.041_666_555 + 0.008_363_179 * r) + 0.001_392_618_4 * square;
    let power = (1.0 + r) + square * (low + square * high);
    // The integer in the last bits of the sum becomes the exponent.
    power * f32::from_bits(shifted.to_bits() << 23)
}

#[inline(always)]
fn sigmoid_from<T: Float>(x: T, e: T) -> T {
    let numerator = if x >= T::zero() { T::one() } else { e };
    numerator / (T::one() + e)
}

/// log(1 + e) for e in [0, 1].
///
/// In `f32` 2 artanh(s) for s = e / (2 + e), at most 1/3: inline, since nothing but the reported
/// loss waits for it and a call would cost a fused step more than the value. artanh(s) / s is a
/// polynomial in s², interpolated at the five Chebyshev nodes of [0, 1/9] (relative error 4·10⁻⁹;
/// the series would take eight terms). In all a relative error below 2⁻²², the last bit or two.
#[inline(always)]
fn ln_1p_of_unit<T: Float>(e: T) -> T {
    if T::TYPE != ElementType::F32 {
        return e.ln_1p();
    }
    let s = e / (T::of(2.0) + e);
    let t = s * s;
    let mut sum = T::of(0.140_788_89);
    for coefficient in [0.139_825_79, 0.200_122_976, 0.333_331_61, 1.0] {
        sum = sum * t + T::of(coefficient);
    }
    T::of(2.0) * s * sum
}

/// The sum, in `f64`, in an order that depends on the length only.
#[inline]
pub(crate) fn sum<T: Float>(values: &[T]) -> f64 {
    // Lanes, so that the additions do not wait for each other.
    let mut lanes = [0.0f64; 8];
    let mut chunks = values.chunks_exact(8);
    for chunk in &mut chunks {
        for (lane, value) in lanes.iter_mut().zip(chunk) {
            *lane += value.as_f64();
        }
    }
    let rest: f64 = chunks.remainder().iter().map(|value| value.as_f64()).sum();
    let [a, b, c, d, e, f, g, h] = lanes;
    ((a + b) + (c + d)) + ((e + f) + (g + h)) + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_logarithm_of_softplus() {
        let mut worst = 0.0f64;
        for step in 0..=200_000 {
            // Down to 2⁻¹⁰⁰, and 1 itself.
            for e in [step as f32 / 200_000.0, (-f64::from(step) / 2000.0).exp2() as f32] {
                let (found, exact) = (f64::from(ln_1p_of_unit(e)), f64::from(e).ln_1p());
                worst = worst.max((found - exact).abs() / exact.max(f64::MIN_POSITIVE));
            }
        }
        // Five roundings.
        assert!(worst < 5.0 * (-24f64).exp2(), "{worst}");
        assert_eq!(ln_1p_of_unit(0.0f32), 0.0);
        assert_eq!(ln_1p_of_unit(0.5f64), 0.5f64.ln_1p());
        assert!(ln_1p_of_unit(f32::NAN).is_nan());
    }

    #[test]
    fn exp_of_what_is_not_positive() {
        let mut worst = 0.0f64;
        for step in 0..=400_000 {
            let step = f64::from(step);
            // Down to 2⁻¹²⁶, and small ones.
            for x in [-step * 87.3 / 400_000.0, -(-step / 10_000.0).exp2()] {
                let x = x as f32;
                let exact = f64::from(x).exp();
                worst = worst.max((f64::from(exp_of_nonpositive(x)) - exact).abs() / exact);
            }
        }
        assert!(worst < (-23f64).exp2(), "{worst}");
        assert_eq!([0.0f32, -0.0].map(exp_of_nonpositive), [1.0, 1.0]);
        for x in [-87.5, -87.7, -88.0, -89.0, -1e4, f32::MIN, f32::NEG_INFINITY] {
            let found = exp_of_nonpositive(x);
            assert!((0.0..f32::MIN_POSITIVE).contains(&found), "{x}: {found}");
        }
        assert_eq!(exp_of_nonpositive(f32::NEG_INFINITY), 0.0);
        assert!(exp_of_nonpositive(f32::NAN).is_nan());
        assert_eq!(exp_of_nonpositive(-0.5f64), (-0.5f64).exp());
    }

    /// Each function that formulas may call, by the method that computes it.
    fn method<T: Float>(name: &str, x: &[T]) -> Option<T> {
        Some(match name {
            "abs" => x[0].abs(),
            "sign" => x[0].sign(),
            "at_least" => x[0].at_least(x[1]),
            "at_most" => x[0].at_most(x[1]),
            "select" => x[0].select(x[1], x[2]),
            "powf" => x[0].powf(x[1]),
            "hypot" => x[0].hypot(x[1]),
            "modulo" => x[0].modulo(x[1]),
            "round" => x[0].round(),
            "rint" => x[0].rint(),
            "ceil" => x[0].ceil(),
            "floor" => x[0].floor(),
            "trunc" => x[0].trunc(),
            "log2" => x[0].log2(),
            "log10" => x[0].log10(),
            "acos" => x[0].acos(),
            "acosh" => x[0].acosh(),
            "error_function" => x[0].error_function(),
            "inverse_error_function" => x[0].inverse_error_function(),
            "gamma_function" => x[0].gamma_function(),
            "log_gamma" => x[0].log_gamma(),
            "digamma" => x[0].digamma(),
            "sqrt" => x[0].sqrt(),
            "cbrt" => x[0].cbrt(),
            "exp" => x[0].exp(),
            "exp_m1" => x[0].exp_m1(),
            "ln" => x[0].ln(),
            "ln_1p" => x[0].ln_1p(),
            "sin" => x[0].sin(),
            "cos" => x[0].cos(),
            "tan" => x[0].tan(),
            "asin" => x[0].asin(),
            "atan" => x[0].atan(),
            "sinh" => x[0].sinh(),
            "cosh" => x[0].cosh(),
            "tanh" => x[0].tanh(),
            "asinh" => x[0].asinh(),
            "atanh" => x[0].atanh(),
            "sigmoid" => x[0].sigmoid(),
            "softplus" => x[0].softplus(),
            _ => return None,
        })
    }

    #[test]
    fn methods_are_the_functions_of_formulas() {
        for function in sparse_core::operators::scalar::FUNCTIONS {
            for x in [
                -40.0,
                -2.5,
                -1.5,
                -0.5,
                -0.25,
                -0.0,
                0.0,
                1e-9,
                0.5,
                0.75,
                2.5,
                3.0,
                90.0,
                f64::NAN,
            ] {
                let expected = (function.value)(&[x, 0.5, -2.0]);
                let exact = method(function.method, &[x, 0.5, -2.0]).expect(function.name);
                let single = method(function.method, &[x as f32, 0.5, -2.0]).expect(function.name);
                let expected_single = (function.value)(&[f64::from(x as f32), 0.5, -2.0]);
                assert!(close(exact, expected, 1e-12), "{} {x}", function.name);
                // An f32 near a pole of tan or below the smallest number of exp is not the question
                // here.
                if expected_single.abs() < 1e30 && expected_single.abs() > 1e-30 {
                    assert!(
                        close(f64::from(single), expected_single, 1e-5),
                        "{} {x}",
                        function.name
                    );
                }
            }
        }
    }

    fn close(found: f64, expected: f64, tolerance: f64) -> bool {
        found == expected
            || found.is_nan() && expected.is_nan()
            || (found - expected).abs() <= tolerance * expected.abs()
    }

    #[test]
    fn nothing_overflows() {
        for x in [-1e30f32, -200.0, 200.0, 1e30] {
            let (sigmoid, softplus) = sigmoid_and_softplus(x);
            let softplus = softplus.value();
            assert_eq!((sigmoid, softplus), (f32::from(u8::from(x > 0.0)), x.max(0.0)));
            assert_eq!((x.sigmoid(), x.softplus()), (sigmoid, softplus));
        }
    }

    #[test]
    fn long_sums_of_f32_are_accurate() {
        let values = vec![0.1f32; 1_000_003];
        assert!((sum(&values) - f64::from(0.1f32) * 1_000_003.0).abs() < 1e-3);
        assert_eq!(sum::<f32>(&[]), 0.0);
    }
}
