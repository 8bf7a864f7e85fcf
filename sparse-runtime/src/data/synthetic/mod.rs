//! Data that is made up: for examples, tests and measurements. The same seed gives the same bytes on every machine.

mod click_log;
mod random_csr;

pub use click_log::click_log;
pub use random_csr::random_csr;

use super::order::generator;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::Rng;

/// The generators of this module, each with its own stream of a seed.
#[derive(Clone, Copy)]
enum Stream {
    RandomCsr,
    ClickLog,
}

impl Stream {
    fn generator(self, seed: u64) -> ChaCha8Rng {
        generator(seed, u64::MAX - self as u64)
    }
}

/// Uniform in (0, 1), never 0 or 1, with 23 bits: exact in `f32` and `f64`.
fn uniform(generator: &mut ChaCha8Rng) -> f64 {
    (f64::from(generator.next_u32() >> 9) + 0.5) / f64::from(1u32 << 23)
}
