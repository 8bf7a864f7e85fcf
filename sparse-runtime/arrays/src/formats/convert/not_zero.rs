//! What is not zero of a dense matrix, found a block at a time.

use crate::formats::{ColumnId, CsrBuffers};
use nnz_device::simd::{Lanes, Loop};
#[cfg(target_arch = "x86_64")]
use nnz_device::simd::{same_type, x86};
use sparse_core::element::Element;

/// Appends what is not zero of a dense matrix.
pub(super) struct NotZero<'a, I, T> {
    pub(super) parts: &'a mut CsrBuffers<I, T>,
    pub(super) values: &'a [T],
    pub(super) n_rows: usize,
    pub(super) n_cols: usize,
}

/// Of no type of elements: the compiler makes the comparisons of a block into vectors by itself.
impl<I: ColumnId, T: Element> Loop<f32> for NotZero<'_, I, T> {
    #[inline(always)]
    unsafe fn run<L: Lanes<f32>>(self) {
        let NotZero { parts, values, n_rows, n_cols } = self;
        for row in 0..n_rows {
            let row = &values[row * n_cols..(row + 1) * n_cols];
            let (blocks, rest) = row.as_chunks::<BLOCK>();
            for (block, elements) in blocks.iter().enumerate() {
                // SAFETY: the processor has the instructions of `L`.
                let places = unsafe { places::<L, T>(elements) };
                if places != 0 {
                    append_block(parts, block * BLOCK, elements, places);
                }
            }
            for (column, &value) in rest.iter().enumerate() {
                if value != T::default() {
                    parts.push(I::from_index(blocks.len() * BLOCK + column), value);
                }
            }
            parts.finish_row();
        }
    }
}

/// As many elements as a word has bits.
const BLOCK: usize = 64;

/// A word that says where a block is not zero.
///
/// # Safety
///
/// The processor has the instructions of `L`.
#[inline(always)]
unsafe fn places<L: Lanes<f32>, T: Element>(elements: &[T; BLOCK]) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if L::COUNT == 16
        && let Some(elements) = same_type(elements)
        && let Some(elements) = elements.first_chunk()
    {
        // SAFETY: of sixteen lanes are the vectors of AVX-512.
        return unsafe { x86::places_not_zero(elements) };
    }
    let mut any = false;
    for &element in elements {
        any |= element != T::default();
    }
    // Most blocks have nothing, which is known sooner than the word.
    if !any {
        return 0;
    }
    let mut places = 0;
    for (at, &element) in elements.iter().enumerate() {
        places |= u64::from(element != T::default()) << at;
    }
    places
}

/// Appends what is not zero of a block, whose first column is given: the ones of `places`, which
/// are counted off.
#[inline(always)]
fn append_block<I: ColumnId, T: Element>(
    parts: &mut CsrBuffers<I, T>,
    first: usize,
    elements: &[T; BLOCK],
    mut places: u64,
) {
    parts.columns.reserve(BLOCK);
    parts.values.reserve(BLOCK);
    while places != 0 {
        let at = places.trailing_zeros() as usize;
        parts.push(I::from_index(first + at), elements[at]);
        places &= places - 1;
    }
}
