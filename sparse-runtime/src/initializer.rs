//! What parameters hold before the first step, as a pure function of seed and place.
//!
//! The value of element `(row, column)` of parameter number `p` depends on `(seed, p, row, column)` alone: not on the
//! size of the table, on the order of filling or on the number of threads. So a larger table starts with the same rows, a
//! part of a table held elsewhere is filled there, and a row can be made when it is first read.
//!
//! The bits come from SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014), used
//! as a counter: each row is one generator whose starting state is a hash of seed, parameter and row, and its k-th output
//! is computed without the ones before.

use rayon::prelude::*;
use sparse_core::element::Float;
use std::f64::consts::TAU;

/// The values that a parameter starts with.
///
/// ```
/// use sparse_runtime::initializer::{Initializer, Seed};
/// let normal = Initializer::Normal { mean: 0.0, std: 0.01 };
/// let small: Vec<f32> = normal.values(3, 2, Seed(42).stream(0))?;
/// let large: Vec<f32> = normal.values(1000, 2, Seed(42).stream(0))?;
/// assert_eq!(small, large[..6]);
/// # Ok::<(), sparse_runtime::initializer::InitializerError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
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

/// An initializer has senseless numbers.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
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

/// What all randomness of a model or a training run derives from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Seed(pub u64);

impl Seed {
    /// The randomness of parameter number `parameter`, counted in the order of declaration.
    pub fn stream(self, parameter: u64) -> Stream {
        Stream {
            key: mix(self.0 ^ mix(parameter.wrapping_add(GAMMA))),
        }
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
        let finite = |argument, value: f64| match value.is_finite() {
            true => Ok(()),
            false => Err(InitializerError::NotFinite { argument, value }),
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

/// Elements that one thread fills in one go: enough that handing them out costs nothing.
const SHARE: usize = 1 << 14;

/// Fills rows in parallel; `fill` gets the state of the row's generator.
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
    let rows = (SHARE / row_size).max(1);
    values
        .par_chunks_mut(rows * row_size)
        .enumerate()
        .for_each(|(share, values)| {
            for (i, row) in values.chunks_mut(row_size).enumerate() {
                fill(stream.row(first_row + (share * rows + i) as u64), row);
            }
        });
}
