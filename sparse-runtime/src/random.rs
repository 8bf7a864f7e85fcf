//! Random numbers that are the same on every machine: ChaCha8, with the seed as its key and a purpose as its stream.

use chacha20::ChaCha8Rng;
use chacha20::rand_core::{Rng, SeedableRng};

/// What random numbers are for, each with its own stream of a seed. Epochs of shuffled rows count from stream 0 up, these
/// from the last one down.
#[derive(Clone, Copy)]
pub(crate) enum Purpose {
    Csr,
    ClickLog,
    RowSparse,
}

impl Purpose {
    pub(crate) fn generator(self, seed: u64) -> ChaCha8Rng {
        generator(seed, u64::MAX - self as u64)
    }
}

/// The generator of one stream: those of one seed are independent.
pub(crate) fn generator(seed: u64, stream: u64) -> ChaCha8Rng {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    let mut generator = ChaCha8Rng::from_seed(key);
    generator.set_stream(stream);
    generator
}

/// A number below `bound`, which is not 0, by multiplication: the bias is below `bound / 2^64`.
#[inline]
pub(crate) fn below(generator: &mut ChaCha8Rng, bound: u64) -> u64 {
    ((u128::from(generator.next_u64()) * u128::from(bound)) >> 64) as u64
}

/// The same of half as many random bits, and without a bias (Lemire, "Fast random integer generation in an interval", 2019).
#[inline]
pub(crate) fn below_u32(generator: &mut ChaCha8Rng, bound: u32) -> u32 {
    let mut product = u64::from(generator.next_u32()) * u64::from(bound);
    // Of the numbers that come to one result there may be one too many.
    if (product as u32) < bound {
        let n_surplus = bound.wrapping_neg() % bound;
        while (product as u32) < n_surplus {
            product = u64::from(generator.next_u32()) * u64::from(bound);
        }
    }
    (product >> 32) as u32
}

/// Uniform in (0, 1), never 0 or 1, with 23 bits: exact in `f32` and `f64`.
pub(crate) fn uniform(generator: &mut ChaCha8Rng) -> f64 {
    (f64::from(generator.next_u32() >> 9) + 0.5) / f64::from(1u32 << 23)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By their remainders: of 3 · 2³⁰ every third number would come twice as often as the others if none were drawn again.
    #[test]
    fn numbers_below_a_bound_are_equally_likely() {
        for bound in [1, 3, 7, 99, 3 << 30, u32::MAX] {
            let (mut generator, mut counts) = (generator(1, 2), [0i32; 3]);
            for _ in 0..90_000 {
                let number = below_u32(&mut generator, bound);
                assert!(number < bound);
                counts[(number % 3) as usize] += 1;
            }
            // Five standard deviations.
            let is_even = counts.iter().all(|count| (count - 30_000).abs() < 710);
            assert_eq!(is_even, bound.is_multiple_of(3), "{bound}: {counts:?}");
        }
    }
}
