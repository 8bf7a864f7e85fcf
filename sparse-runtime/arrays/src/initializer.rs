//! Initial values of parameters, as a pure function of seed and position.
//!
//! The value of element `(row, column)` of parameter number `p` depends on `(seed, p, row, column)`
//! alone: not on the size of the table, the order of filling or the number of threads. A larger
//! table therefore starts with the same rows. A part of a table on another machine is filled there,
//! and a row can be made when it is first read.
//!
//! The bits come from SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number
//! generators", 2014), used as a counter: each row is one generator whose starting state is a hash
//! of seed, parameter and row, and its k-th output is computed without the ones before.

use crate::in_library;
use crate::parameter_memory::Table;
use nnz_device::thread_pool::{self, MAX_PARTS};
use serde::{Deserialize, Serialize};
use sparse_core::element::Float;
use std::f64::consts::TAU;

/// The initial values of a parameter.
///
/// ```
/// use nnz::initializer::{Initializer, Seed};
/// let normal = Initializer::Normal { mean: 0.0, std: 0.01 };
/// let small: Vec<f32> = normal.values(3, 2, Seed(42).stream(0))?;
/// let large: Vec<f32> = normal.values(1000, 2, Seed(42).stream(0))?;
/// assert_eq!(small, large[..6]);
/// # Ok::<(), nnz::initializer::InitializerError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Initializer {
    /// 0 everywhere. The memory is not touched before it is first read or written.
    Zeros,
    /// 1 everywhere.
    Ones,
    /// One value everywhere.
    Constant(f64),
    /// Independent normal values.
    Normal {
        /// Their mean.
        mean: f64,
        /// Their standard deviation, ≥ 0.
        std: f64,
    },
    /// Independent values, uniform in `[low, high)` before they are rounded to the element type.
    Uniform {
        /// The smallest value.
        low: f64,
        /// The bound above.
        high: f64,
    },
}

/// An initializer has invalid numbers.
#[derive(Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum InitializerError {
    /// A number is NaN or infinite.
    #[error("`{argument}` of the initializer is {value}, but must be finite")]
    NotFinite {
        /// Which number.
        argument: &'static str,
        /// Its value.
        value: f64,
    },
    /// A standard deviation is negative.
    #[error("`std` of the initializer `Normal` is {std}, but must not be negative")]
    NegativeDeviation {
        /// The value given.
        std: f64,
    },
    /// The bounds are the wrong way round.
    #[error("`low` of the initializer `Uniform` is {low}, above `high`, {high}: swap them")]
    BoundsReversed {
        /// The lower bound given.
        low: f64,
        /// The upper bound given.
        high: f64,
    },
}

sparse_core::debug_of_errors!(InitializerError);

/// The seed of all randomness of a model or a training run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Seed(pub u64);

impl Seed {
    /// The randomness of parameter number `parameter`, counted in the order of declaration.
    pub fn stream(self, parameter: u64) -> Stream {
        Stream { key: mix(self.0 ^ mix(parameter.wrapping_add(GAMMA))) }
    }
}

/// The randomness of one parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream {
    key: u64,
}

impl Stream {
    /// The starting state of a row's generator.
    #[inline]
    fn row(self, row: u64) -> u64 {
        mix(self.key ^ mix(row.wrapping_add(GAMMA)))
    }
}

/// The odd number next to 2⁶⁴ divided by the golden ratio: SplitMix64's step.
const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// SplitMix64's output function, a bijection.
#[inline]
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Output `k` of the generator that starts at `state`, as a number in `[0, 1)` on a grid of 2⁻⁵³.
#[inline]
fn uniform(state: u64, k: u64) -> f64 {
    let bits = mix(state.wrapping_add(GAMMA.wrapping_mul(k.wrapping_add(1))));
    (bits >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}

/// Two independent standard normal values from outputs `2k` and `2k + 1` (Box and Muller, 1958).
#[inline]
fn normal_pair(state: u64, k: u64) -> (f64, f64) {
    // 1 - u is in (0, 1], so that the logarithm is finite.
    let radius = (-2.0 * (1.0 - uniform(state, 2 * k)).ln()).sqrt();
    let (sin, cos) = (TAU * uniform(state, 2 * k + 1)).sin_cos();
    (radius * cos, radius * sin)
}

impl Initializer {
    /// Checks the numbers.
    ///
    /// # Errors
    ///
    /// [`InitializerError`] for NaN, infinite numbers, a negative deviation or reversed bounds.
    pub fn check(&self) -> Result<(), InitializerError> {
        let finite = |argument, value: f64| {
            if value.is_finite() {
                Ok(())
            } else {
                Err(InitializerError::NotFinite { argument, value })
            }
        };
        match *self {
            Initializer::Zeros | Initializer::Ones => Ok(()),
            Initializer::Constant(value) => finite("Constant", value),
            Initializer::Normal { mean, std } => {
                finite("mean", mean)?;
                finite("std", std)?;
                if std < 0.0 {
                    return Err(InitializerError::NegativeDeviation { std });
                }
                Ok(())
            }
            Initializer::Uniform { low, high } => {
                finite("low", low)?;
                finite("high", high)?;
                if low > high {
                    return Err(InitializerError::BoundsReversed { low, high });
                }
                finite("high - low", high - low)
            }
        }
    }

    /// A table of `n_rows` rows of `row_size` elements.
    ///
    /// # Errors
    ///
    /// As [`check`](Initializer::check).
    ///
    /// # Panics
    ///
    /// If the table cannot be addressed, as `Vec` does.
    pub fn values<T: Float>(
        &self,
        n_rows: usize,
        row_size: usize,
        stream: Stream,
    ) -> Result<Vec<T>, InitializerError> {
        self.check()?;
        let size = n_rows.saturating_mul(row_size);
        Ok(match *self {
            // A literal zero is asked of the system as zero pages: nothing is written.
            Initializer::Zeros => vec![T::zero(); size],
            Initializer::Ones => vec![T::one(); size],
            Initializer::Constant(value) => vec![T::of(value); size],
            Initializer::Normal { .. } | Initializer::Uniform { .. } => {
                let mut values = vec![T::zero(); size];
                self.fill(0, row_size, &mut values, stream)?;
                values
            }
        })
    }

    /// The initial values of a parameter, in its memory. Otherwise like [`values`](Self::values).
    pub fn table<T: Float>(
        &self,
        n_rows: usize,
        row_size: usize,
        stream: Stream,
    ) -> Result<Table<T>, InitializerError> {
        let initializer = self;
        in_library!(<T> Initializer::new_table::<T> => (
            initializer: &Initializer,
            n_rows: usize,
            row_size: usize,
            stream: Stream,
        ) -> Result<Table<T>, InitializerError>)
    }

    fn new_table<T: Float>(
        &self,
        n_rows: usize,
        row_size: usize,
        stream: Stream,
    ) -> Result<Table<T>, InitializerError> {
        let mut table = Table::zeros(n_rows, row_size);
        match self {
            // Nothing is written, so that nothing is mapped.
            Initializer::Zeros => self.check()?,
            _ => self.fill(0, row_size, table.values_mut(), stream)?,
        }
        Ok(table)
    }

    /// Fills the rows from `first_row` on, as many as `values` holds.
    ///
    /// # Errors
    ///
    /// As [`check`](Initializer::check).
    pub fn fill<T: Float>(
        &self,
        first_row: u64,
        row_size: usize,
        values: &mut [T],
        stream: Stream,
    ) -> Result<(), InitializerError> {
        self.check()?;
        match *self {
            Initializer::Zeros => values.fill(T::zero()),
            Initializer::Ones => values.fill(T::one()),
            Initializer::Constant(value) => values.fill(T::of(value)),
            Initializer::Normal { mean, std } => {
                fill_rows(first_row, row_size, values, stream, |state, row| {
                    for (k, pair) in row.chunks_mut(2).enumerate() {
                        let (even, odd) = normal_pair(state, k as u64);
                        for (value, standard) in pair.iter_mut().zip([even, odd]) {
                            *value = T::of(mean + std * standard);
                        }
                    }
                });
            }
            Initializer::Uniform { low, high } => {
                fill_rows(first_row, row_size, values, stream, |state, row| {
                    for (k, value) in row.iter_mut().enumerate() {
                        *value = T::of(low + (high - low) * uniform(state, k as u64));
                    }
                });
            }
        }
        Ok(())
    }
}

/// The least number of elements of a part: fewer do not pay for another thread.
const ELEMENTS_PER_PART: usize = 1 << 14;

/// Fills table rows in parts of whole rows, on the threads of the [pool](thread_pool). `fill` gets
/// the state of the row's generator, so that the values do not depend on the parts.
fn fill_rows<T: Float>(
    first_row: u64,
    row_size: usize,
    values: &mut [T],
    stream: Stream,
    fill: impl Fn(u64, &mut [T]) + Sync,
) {
    if row_size == 0 {
        return;
    }
    let n_rows = values.len().div_ceil(row_size);
    let n_parts = (values.len() / ELEMENTS_PER_PART).clamp(1, MAX_PARTS);
    let rows_per_part = n_rows.div_ceil(n_parts).max(1);
    let mut parts: Vec<_> = values.chunks_mut(rows_per_part * row_size).collect();
    thread_pool::each(&mut parts, |part, values| {
        for (i, row) in values.chunks_mut(row_size).enumerate() {
            fill(stream.row(first_row + (part * rows_per_part + i) as u64), row);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    const NORMAL: Initializer = Initializer::Normal { mean: 1.0, std: 2.0 };
    const UNIFORM: Initializer = Initializer::Uniform { low: -1.0, high: 3.0 };

    #[test]
    fn initializers_are_kept_in_a_text() {
        let text = r#"["zeros","ones",{"constant":0.5},{"normal":{"mean":1.0,"std":2.0}},{"uniform":{"low":-1.0,"high":3.0}}]"#;
        let all =
            [Initializer::Zeros, Initializer::Ones, Initializer::Constant(0.5), NORMAL, UNIFORM];
        assert_eq!(serde_json::from_str::<Vec<Initializer>>(text).unwrap(), all);
        assert_eq!(serde_json::to_string(&all).unwrap(), text);
    }

    fn values(
        initializer: Initializer,
        n_rows: usize,
        row_size: usize,
        parameter: u64,
    ) -> Vec<f64> {
        initializer.values(n_rows, row_size, Seed(7).stream(parameter)).unwrap()
    }

    /// Mean, variance and kurtosis.
    fn moments(values: &[f64]) -> (f64, f64, f64) {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let central = |power| values.iter().map(|x| (x - mean).powi(power)).sum::<f64>() / n;
        (mean, central(2), central(4) / central(2).powi(2))
    }

    fn correlation(left: &[f64], right: &[f64]) -> f64 {
        let ((left_mean, left_var, _), (right_mean, right_var, _)) =
            (moments(left), moments(right));
        let products = left.iter().zip(right).map(|(x, y)| (x - left_mean) * (y - right_mean));
        products.sum::<f64>() / left.len() as f64 / (left_var * right_var).sqrt()
    }

    #[test]
    fn the_generator_is_splitmix64() {
        // the outputs that are published for seed 1234567
        let published =
            [6457827717110365317u64, 3203168211198807973, 9817491932198370423, 4593380528125082431];
        for (k, bits) in published.into_iter().enumerate() {
            assert_eq!(uniform(1234567, k as u64), (bits >> 11) as f64 / (1u64 << 53) as f64);
        }
    }

    #[test]
    fn values_depend_on_their_place_alone() {
        for initializer in [NORMAL, UNIFORM] {
            let table = values(initializer, 20_000, 3, 0);
            assert_eq!(values(initializer, 20, 3, 0), table[..60]);
            let mut part = vec![0.0; 30];
            initializer.fill(19_990, 3, &mut part, Seed(7).stream(0)).unwrap();
            assert_eq!(part, table[3 * 19_990..]);
            let wider = values(initializer, 20, 5, 0);
            for row in 0..20 {
                assert_eq!(wider[5 * row..5 * row + 3], table[3 * row..3 * row + 3]);
            }
            // So few elements are one part, which the calling thread fills.
            let mut on_one_thread = vec![0.0; 3 * 20_000];
            for (part, values) in on_one_thread.chunks_mut(3 * 1000).enumerate() {
                initializer.fill(1000 * part as u64, 3, values, Seed(7).stream(0)).unwrap();
            }
            assert_eq!(on_one_thread, table);
        }
    }

    #[test]
    fn normal_values_have_their_moments() {
        for row_size in [1, 2, 5] {
            let (mean, variance, kurtosis) =
                moments(&values(NORMAL, 200_000 / row_size, row_size, 0));
            // five standard errors for n = 200 000: σ/√n, σ²·√(2/n), √(24/n)
            assert!((mean - 1.0).abs() < 0.023, "{mean}");
            assert!((variance - 4.0).abs() < 0.064, "{variance}");
            assert!((kurtosis - 3.0).abs() < 0.055, "{kurtosis}");
        }
        let within =
            values(NORMAL, 200_000, 1, 1).iter().filter(|&&x| (x - 1.0).abs() < 2.0).count() as f64
                / 200_000.0;
        assert!((within - 0.682_689).abs() < 0.0053, "{within}");
    }

    #[test]
    fn uniform_values_fill_their_range_evenly() {
        let values = values(UNIFORM, 100_000, 1, 0);
        let mut counts = [0.0f64; 16];
        for &value in &values {
            assert!((-1.0..3.0).contains(&value));
            counts[((value + 1.0) * 4.0) as usize] += 1.0;
        }
        let expected = values.len() as f64 / 16.0;
        let chi_squared: f64 = counts.iter().map(|n| (n - expected).powi(2) / expected).sum();
        // the 0.001 and 0.999 quantiles for 15 degrees of freedom
        assert!((3.48..37.7).contains(&chi_squared), "{chi_squared}");
    }

    #[test]
    fn places_are_independent() {
        let pairs = values(NORMAL, 100_000, 2, 0);
        let left: Vec<f64> = pairs.iter().copied().step_by(2).collect();
        let right: Vec<f64> = pairs.iter().copied().skip(1).step_by(2).collect();
        let other_parameter = values(NORMAL, 100_000, 1, 1);
        let other_seed: Vec<f64> = NORMAL.values(100_000, 1, Seed(8).stream(0)).unwrap();
        for (name, one, other) in [
            ("columns", &left[..], &right[..]),
            ("rows", &left[1..], &left[..99_999]),
            ("parameters", &left[..], &other_parameter[..]),
            ("seeds", &left[..], &other_seed[..]),
        ] {
            let correlation = correlation(one, other);
            // five standard errors
            assert!(correlation.abs() < 0.016, "{name}: {correlation}");
        }
    }

    #[test]
    fn constants() {
        assert_eq!(values(Initializer::Zeros, 2, 2, 0), [0.0; 4]);
        assert_eq!(values(Initializer::Ones, 2, 2, 0), [1.0; 4]);
        assert_eq!(values(Initializer::Constant(0.5), 2, 2, 0), [0.5; 4]);
        assert_eq!(values(Initializer::Normal { mean: 3.0, std: 0.0 }, 2, 1, 0), [3.0; 2]);
        assert!(values(NORMAL, 5, 0, 0).is_empty());
    }

    #[test]
    fn senseless_numbers_are_errors() {
        let error = |initializer: Initializer| initializer.check().unwrap_err().to_string();
        assert_eq!(
            error(Initializer::Normal { mean: 0.0, std: -1.0 }),
            "`std` of the initializer `Normal` is -1, but must not be negative"
        );
        assert_eq!(
            error(Initializer::Uniform { low: 1.0, high: 0.0 }),
            "`low` of the initializer `Uniform` is 1, above `high`, 0: swap them"
        );
        assert!(error(Initializer::Normal { mean: 0.0, std: f64::NAN }).contains("`std`"));
        assert!(error(Initializer::Constant(f64::INFINITY)).contains("finite"));
        assert!(error(Initializer::Uniform { low: f64::MIN, high: f64::MAX }).contains("finite"));
    }
}
