//! Special functions in `f64`, for the scalar formulas that name them.
//!
//! The error and gamma functions are those of `libm`; the inverse error function and the digamma
//! function are here, each to about the accuracy of `f64`.

/// The error function, 2/√π ∫₀ˣ exp(-t²) dt.
pub fn erf(x: f64) -> f64 {
    libm::erf(x)
}

/// The gamma function; infinite at 0, not a number at the negative integers.
pub fn gamma(x: f64) -> f64 {
    libm::tgamma(x)
}

/// The logarithm of the absolute value of the gamma function.
pub fn gammaln(x: f64) -> f64 {
    libm::lgamma(x)
}

/// The inverse of the error function on (-1, 1): infinite at its ends, not a number beyond.
///
/// A start by Winitzki's formula (error below 2·10⁻³), then Halley's method, which triples the
/// number of right digits in each step.
pub fn erfinv(x: f64) -> f64 {
    if x.is_nan() || x.abs() > 1.0 {
        return f64::NAN;
    }
    if x.abs() == 1.0 {
        return x * f64::INFINITY;
    }
    if x == 0.0 {
        return x;
    }
    // With the complement, which keeps its digits near 1.
    let tail = 1.0 - x.abs();
    let a = 0.147;
    let log = (tail * (1.0 + x.abs())).ln();
    let half = 2.0 / (std::f64::consts::PI * a) + log / 2.0;
    let mut y = ((half * half - log / a).sqrt() - half).sqrt();
    for _ in 0..4 {
        let error = tail - libm::erfc(y);
        let slope = std::f64::consts::FRAC_2_SQRT_PI * (-y * y).exp();
        let step = -error / slope;
        y -= -step / (1.0 + y * step);
    }
    y.copysign(x)
}

/// The derivative of the logarithm of the gamma function: reflection for negative numbers,
/// recurrence up to 10, then the asymptotic series with Bernoulli numbers.
pub fn digamma(x: f64) -> f64 {
    if x == x.floor() && x <= 0.0 {
        return f64::NAN;
    }
    if x < 0.0 {
        let pi = std::f64::consts::PI;
        return digamma(1.0 - x) - pi / (pi * x).tan();
    }
    let (mut x, mut sum) = (x, 0.0);
    while x < 10.0 {
        sum -= 1.0 / x;
        x += 1.0;
    }
    let r = 1.0 / (x * x);
    // B₂/2, B₄/4, … of the series ln x - 1/2x - Σ B₂ₖ / (2k x²ᵏ).
    let series = r
        * (1.0 / 12.0
            - r * (1.0 / 120.0
                - r * (1.0 / 252.0
                    - r * (1.0 / 240.0 - r * (1.0 / 132.0 - r * (691.0 / 32760.0))))));
    sum + x.ln() - 0.5 / x - series
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: f64, expected: f64) {
        assert!((found - expected).abs() <= 4e-15 * (1.0 + expected.abs()), "{found} {expected}");
    }

    #[test]
    fn the_inverse_error_function_is_one() {
        for x in [1e-300, 1e-9, 0.1, 0.3, 0.5, 0.9, 0.999, 1.0 - 1e-9] {
            let y = erfinv(x);
            assert!((erf(y) - x).abs() <= 4e-16 * (1.0 + x), "erf(erfinv({x})) = {}", erf(y));
            assert_eq!(erfinv(-x), -y);
        }
        near(erfinv(0.5), 0.476_936_276_204_469_9);
        assert_eq!(
            (erfinv(0.0), erfinv(1.0), erfinv(-1.0)),
            (0.0, f64::INFINITY, f64::NEG_INFINITY)
        );
        assert!(erfinv(1.5).is_nan());
    }

    #[test]
    fn digamma_at_known_points() {
        const EULER: f64 = 0.577_215_664_901_532_9;
        near(digamma(1.0), -EULER);
        near(digamma(0.5), -EULER - 2.0 * std::f64::consts::LN_2);
        near(digamma(2.0), 1.0 - EULER);
        near(digamma(-0.5), 0.036_489_973_978_576_52);
        near(digamma(100.0), 4.600_161_852_738_087);
        assert!(digamma(-3.0).is_nan());
    }
}
