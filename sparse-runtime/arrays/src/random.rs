//! Random numbers that are the same on every machine: ChaCha8, with the seed as its key and a
//! purpose as its stream, and generators seeded by it.

use chacha20::ChaCha8Rng;
use chacha20::rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// The purposes of random numbers, each with its own stream of a seed. Epochs of shuffled samples
/// count from stream 0 up, these from the last one down.
#[derive(Clone, Copy, Debug)]
pub enum Purpose {
    /// A random csr.
    Csr,
    /// A made-up log of clicks.
    ClickLog,
    /// A random row_sparse array.
    RowSparse,
}

impl Purpose {
    /// The generator of this purpose.
    pub fn generator(self, seed: u64) -> ChaCha8Rng {
        generator(seed, u64::MAX - self as u64)
    }
}

/// The generator of one stream: those of one seed are independent.
pub fn generator(seed: u64, stream: u64) -> ChaCha8Rng {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    let mut generator = ChaCha8Rng::from_seed(key);
    generator.set_stream(stream);
    generator
}

/// A number below `bound`, which is not 0, by multiplication: the bias is below `bound / 2^64`.
#[inline]
pub fn below(generator: &mut impl Rng, bound: u64) -> u64 {
    ((u128::from(generator.next_u64()) * u128::from(bound)) >> 64) as u64
}

/// A number below each of two bounds, which are not 0, without a bias (Brackett-Rozinsky and
/// Lemire, "Batched ranged random integer generation", 2024).
#[inline]
fn below_both(generator: &mut impl Rng, bounds: [u32; 2]) -> [u32; 2] {
    let bounds = bounds.map(u64::from);
    let mut draw = || {
        let first = u128::from(generator.next_u64()) * u128::from(bounds[0]);
        let second = u128::from(first as u64) * u128::from(bounds[1]);
        (second as u64, [(first >> 64) as u32, (second >> 64) as u32])
    };
    let n_results = bounds[0] * bounds[1];
    let (mut rest, mut numbers) = draw();
    // Of the numbers that come to one result there may be one too many.
    if rest < n_results {
        let n_surplus = n_results.wrapping_neg() % n_results;
        while rest < n_surplus {
            (rest, numbers) = draw();
        }
    }
    numbers
}

/// Shuffles items by Fisher and Yates. Its numbers come from xoshiro256++, which is faster than
/// ChaCha8 and is seeded by the [generator] of seed and stream. O(items).
pub fn shuffle<T>(items: &mut [T], seed: u64, stream: u64) {
    let mut start = [0; 32];
    generator(seed, stream).fill_bytes(&mut start);
    let mut generator = Xoshiro256PlusPlus::from_seed(start);
    // So many are left to be put in order: the last of them gets its place's item from any of them.
    let mut len = items.len();
    while len > 1 {
        match u32::try_from(len) {
            Ok(bound) => {
                let [last, last_but_one] = below_both(&mut generator, [bound, bound - 1]);
                items.swap(len - 1, last as usize);
                items.swap(len - 2, last_but_one as usize);
                len -= 2;
            }
            Err(_) => {
                items.swap(len - 1, below(&mut generator, len as u64) as usize);
                len -= 1;
            }
        }
    }
}

/// Uniform in (0, 1), never 0 or 1, with 23 bits: exact in `f32` and `f64`.
pub fn uniform(generator: &mut ChaCha8Rng) -> f64 {
    (f64::from(generator.next_u32() >> 9) + 0.5) / f64::from(1u32 << 23)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By remainders: without rejection, every third number below 3 · 2³⁰ would occur twice as
    /// often as the others.
    #[test]
    fn numbers_below_two_bounds_are_equally_likely() {
        for bounds in [[1, 3], [3, 1], [7, 99], [3 << 30, 3 << 30], [u32::MAX, u32::MAX - 2]] {
            let (mut generator, mut counts) = (generator(1, 2), [[0i32; 3]; 3]);
            for _ in 0..90_000 {
                let numbers = below_both(&mut generator, bounds);
                assert!(numbers[0] < bounds[0] && numbers[1] < bounds[1]);
                let [row, column] = numbers.map(|number| (number % 3) as usize);
                counts[row][column] += 1;
            }
            let [rows, columns] = bounds.map(|bound| if bound < 3 { 1 } else { 3 });
            // Of small bounds by their own shares of remainders.
            let share = |bound: u32, remainder: u32| match bound {
                0..100 => f64::from((bound + 2 - remainder) / 3) / f64::from(bound),
                _ => 1.0 / 3.0,
            };
            for row in 0..rows {
                for column in 0..columns {
                    let share = share(bounds[0], row) * share(bounds[1], column);
                    let (mean, variance) = (90_000.0 * share, 90_000.0 * share * (1.0 - share));
                    let count = f64::from(counts[row as usize][column as usize]);
                    // Five standard deviations.
                    assert!(
                        (count - mean).abs() <= 5.0 * variance.sqrt(),
                        "{bounds:?}: {counts:?}"
                    );
                }
            }
        }
    }
}
