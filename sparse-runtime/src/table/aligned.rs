//! Zeroed memory whose first element starts a cache line.

use std::ops::{Deref, DerefMut};

/// Bytes of a cache line.
const LINE: usize = 64;

/// A run of elements that starts at a multiple of 64 bytes, so that a row of 64 bytes is one cache line and not parts
/// of two.
///
/// Made from zero pages of the system, like a zeroed `Vec`: memory that nobody has written is not there yet. (An
/// allocation with the alignment in its layout would be written with zeros.)
///
/// Invariant: `start + len <= memory.len()`.
#[derive(Debug)]
pub(crate) struct Aligned<T> {
    memory: Vec<T>,
    start: usize,
    len: usize,
}

impl<T: Copy + Default> Aligned<T> {
    /// `len` times `zero`, whose bits must be all zero for the memory to be lazy.
    ///
    /// # Panics
    ///
    /// If the memory cannot be addressed or had, as `Vec` does.
    pub(crate) fn new(zero: T, len: usize) -> Self {
        let padding = if len == 0 { 0 } else { LINE / size_of::<T>().max(1) };
        let memory = vec![zero; len + padding];
        let misaligned = memory.as_ptr().addr() % LINE;
        // `Vec` aligns to the element, whose size divides a line.
        let start = ((LINE - misaligned) % LINE / size_of::<T>().max(1)).min(padding);
        Aligned { memory, start, len }
    }
}

impl<T: Copy + Default> Clone for Aligned<T> {
    fn clone(&self) -> Self {
        let mut copy = Aligned::new(T::default(), self.len);
        copy.copy_from_slice(self);
        copy
    }
}

impl<T> Deref for Aligned<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: the invariant, which `new` establishes: `start` is at most the padding, and nothing changes the three.
        unsafe { self.memory.get_unchecked(self.start..self.start + self.len) }
    }
}

impl<T> DerefMut for Aligned<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`.
        unsafe { self.memory.get_unchecked_mut(self.start..self.start + self.len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_start_a_line_and_are_zero() {
        for len in [0, 1, 3, 1000, 1 << 16] {
            let mut run = Aligned::new(0.0f32, len);
            assert_eq!(run.len(), len);
            assert!(run.iter().all(|x| *x == 0.0));
            if let Some(last) = run.last_mut() {
                *last = 1.0;
                assert_eq!(run.as_ptr().addr() % LINE, 0);
                let copy = run.clone();
                assert_eq!(copy.as_ptr().addr() % LINE, 0);
                assert_eq!(copy[..], run[..]);
            }
        }
        assert_eq!(Aligned::new(0u64, 9).as_ptr().addr() % LINE, 0);
    }
}
