//! The loss of a row, of which what nobody waits for is computed later, for several rows together.
//!
//! A loop over steps of one row needs the derivative of a row's loss at once, the loss itself only
//! in a sum that is reported. Where that has a logarithm, its terms show in the time of a short
//! row; of many rows they are vectors.

use nnz_device::simd::wide;
use sparse_core::element::Float;

/// What a row function gives of the loss of a row of one score.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not the loss of a row",
    note = "`graph!` writes what gives it: a number, or one of which a part is computed later"
)]
pub trait RowLoss<A: Float>: Copy + Default {
    /// Whether the loss is worth to be computed later, by itself.
    const LATER: bool;

    /// The loss. To the bits of [`kernels::<loss>::cpu::row`](super::logistic::cpu::row), whenever
    /// it is asked.
    fn now(self) -> A;

    /// Whether [`now`](Self::now) is finite, without asking.
    fn is_finite(self) -> bool;
}

impl<A: Float> RowLoss<A> for A {
    const LATER: bool = false;

    #[inline(always)]
    fn now(self) -> A {
        self
    }

    #[inline(always)]
    fn is_finite(self) -> bool {
        num_traits::Float::is_finite(self)
    }
}

/// Losses that are computed together: a few vectors.
const LOSSES_PER_BLOCK: usize = 16;

/// The losses of rows, to be summed up in `f64` in the order in which they come.
#[derive(Debug)]
pub struct Losses<A, L> {
    waiting: [L; LOSSES_PER_BLOCK],
    n_waiting: usize,
    sum: f64,
    last: A,
}

impl<A: Float, L: RowLoss<A>> Default for Losses<A, L> {
    fn default() -> Self {
        Losses::new()
    }
}

impl<A: Float, L: RowLoss<A>> Losses<A, L> {
    /// No losses.
    #[inline(always)]
    pub fn new() -> Self {
        let waiting = [L::default(); LOSSES_PER_BLOCK];
        Losses { waiting, n_waiting: 0, sum: 0.0, last: A::zero() }
    }

    /// Adds the loss of a sample.
    #[inline(always)]
    pub fn add(&mut self, loss: L) {
        if !L::LATER {
            self.last = loss.now();
            self.sum += self.last.as_f64();
            return;
        }
        self.waiting[self.n_waiting] = loss;
        self.n_waiting += 1;
        if self.n_waiting == LOSSES_PER_BLOCK {
            self.add_waiting();
        }
    }

    /// A function of its own, so that the registers of the loop are the loop's.
    #[inline(never)]
    fn add_waiting(&mut self) {
        let losses = wide(
            #[inline(always)]
            || {
                self.waiting.map(
                    #[inline(always)]
                    |loss| loss.now(),
                )
            },
        );
        for loss in &losses[..self.n_waiting] {
            self.sum += loss.as_f64();
            self.last = *loss;
        }
        self.n_waiting = 0;
    }

    /// The sum, and the last loss; 0 of none.
    #[inline(always)]
    pub fn finish(mut self) -> (f64, f64) {
        if L::LATER {
            self.add_waiting();
        }
        (self.sum, self.last.as_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::{logistic, squared_error};

    /// Sum and last loss of rows of one score, each by itself and together.
    fn hold<A: Float<Accumulator = A>, L: RowLoss<A>>(
        scores: &[A],
        row: impl Fn(&mut [A]) -> A,
        row_of_one: impl Fn(&mut A) -> L,
    ) {
        let (mut losses, mut sum, mut last) = (Losses::new(), 0.0, 0.0);
        for score in scores {
            let (mut expected, mut found) = ([*score], *score);
            let (loss, later) = (row(&mut expected), row_of_one(&mut found));
            assert_eq!(found.as_f64().to_bits(), expected[0].as_f64().to_bits(), "{score:?}");
            assert_eq!(later.now().as_f64().to_bits(), loss.as_f64().to_bits(), "{score:?}");
            assert_eq!(later.is_finite(), num_traits::Float::is_finite(loss), "{score:?}");
            losses.add(later);
            sum += loss.as_f64();
            last = loss.as_f64();
        }
        let (found, last_found) = losses.finish();
        assert_eq!((found.to_bits(), last_found.to_bits()), (sum.to_bits(), f64::to_bits(last)));
    }

    fn hold_all<A: Float<Accumulator = A>>() {
        let at = |k: usize| A::of(((k * 37) % 101) as f64 / 7.0 - 6.0);
        for count in [0, 1, 2, 15, 16, 17, 100] {
            let scores: Vec<A> = (0..count).map(at).collect();
            for label in [-1.0, 0.0, 0.25, 1.0].map(A::of) {
                let row = |scores: &mut [A]| logistic::cpu::row(scores, &[label]);
                hold(&scores, row, |score| logistic::cpu::row_of_one(score, label));
                let row = |scores: &mut [A]| squared_error::cpu::row(scores, &[label]);
                hold(&scores, row, |score| squared_error::cpu::row_of_one(score, label));
            }
        }
        let bounds = [A::max_value(), A::min_value(), A::infinity(), A::neg_infinity(), A::nan()];
        for extreme in bounds {
            for label in [0.0, 1.0, f64::NAN, f64::INFINITY].map(A::of) {
                let row = |scores: &mut [A]| logistic::cpu::row(scores, &[label]);
                hold(&[extreme], row, |score| logistic::cpu::row_of_one(score, label));
            }
        }
    }

    #[test]
    fn losses_that_are_computed_later_are_the_same() {
        hold_all::<f32>();
        hold_all::<f64>();
    }
}
