//! The gradients of dense parameters over a batch: sums of what its samples give.

use super::program::{DenseTerm, TrainedDense};
use nnz_device::simd;
use sparse_core::element::Float;

/// Adds the terms of a few samples to the sums: first up in the elements' own type.
pub(super) fn add_terms<T: Float<Accumulator = T>>(
    dense: &[TrainedDense<'_, T>],
    terms: &[T],
    size: usize,
    totals: &mut [f64],
) {
    if size == 0 {
        return;
    }
    simd::wide(
        #[inline(always)]
        || {
            let (mut first, mut totals) = (0, totals);
            for dense in dense {
                let (own, others) = std::mem::take(&mut totals).split_at_mut(dense.values.len());
                totals = others;
                match dense.term {
                    DenseTerm::Whole => {
                        add_row(
                            own,
                            terms,
                            size,
                            first,
                            #[inline(always)]
                            |_| T::one(),
                        );
                    }
                    DenseTerm::Outer(rows, columns) => {
                        for (row, totals) in own.chunks_exact_mut(columns.max(1)).enumerate() {
                            add_row(
                                totals,
                                terms,
                                size,
                                first + rows,
                                #[inline(always)]
                                |sample| sample[first + row],
                            );
                        }
                    }
                }
                first += dense.term.size(dense.values.len());
            }
        },
    );
}

/// Adds to each total the sum, over samples, of a factor times its term, of those that begin at
/// `first` of each sample.
#[inline(always)]
fn add_row<T: Float<Accumulator = T>>(
    totals: &mut [f64],
    terms: &[T],
    size: usize,
    first: usize,
    factor: impl Fn(&[T]) -> T,
) {
    let (chunks, rest) = totals.as_chunks_mut::<8>();
    let mut at = first;
    for totals in chunks {
        let mut few = [T::zero(); 8];
        for sample in terms.chunks_exact(size) {
            let factor = factor(sample);
            for (few, term) in few.iter_mut().zip(&sample[at..at + 8]) {
                *few += factor * *term;
            }
        }
        totals.iter_mut().zip(few).for_each(|(total, few)| *total += few.as_f64());
        at += 8;
    }
    for (place, total) in rest.iter_mut().enumerate() {
        let mut few = T::zero();
        for sample in terms.chunks_exact(size) {
            few += factor(sample) * sample[at + place];
        }
        *total += few.as_f64();
    }
}
