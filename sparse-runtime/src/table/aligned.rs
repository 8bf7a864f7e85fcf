//! Zeroed memory whose first element starts a cache line.

#[cfg(target_os = "linux")]
use crate::large_pages::LARGE_PAGE;
use std::ops::{Deref, DerefMut};

/// Bytes of a cache line.
const LINE: usize = 64;

/// A run of elements that starts at a multiple of 64 bytes, so that a row of 64 bytes is one cache line and not parts
/// of two.
///
/// Made from zero pages of the system, like a zeroed `Vec`: memory that nobody has written is not there yet. (An
/// allocation with the alignment in its layout would be written with zeros.) On Linux a large run asks for
/// [large pages](crate::large_pages). What is written first in such a page makes all of its 2 MiB resident.
///
/// Invariants: `start + len` elements lie in `memory`, which starts at a multiple of `T`'s alignment; `T` is a number, of which
/// all bits zero are one.
#[derive(Debug)]
pub(crate) struct Aligned<T> {
    memory: Memory<T>,
    start: usize,
    len: usize,
}

#[derive(Debug)]
enum Memory<T> {
    Heap(Vec<T>),
    /// Zeros from the system, which are zeros of `T`.
    #[cfg(target_os = "linux")]
    Pages(memmap2::MmapMut),
}

impl<T: Copy + Default> Aligned<T> {
    /// `len` times `zero`, whose bits must all be zero.
    ///
    /// # Panics
    ///
    /// If the memory cannot be addressed or had, as `Vec` does.
    pub(crate) fn new(zero: T, len: usize) -> Self {
        #[cfg(target_os = "linux")]
        if let Some(run) = Aligned::on_large_pages(len) {
            return run;
        }
        let padding = if len == 0 { 0 } else { LINE / size_of::<T>().max(1) };
        let memory = vec![zero; len + padding];
        let misaligned = memory.as_ptr().addr() % LINE;
        // `Vec` aligns to the element, whose size divides a line.
        let start = ((LINE - misaligned) % LINE / size_of::<T>().max(1)).min(padding);
        Aligned { memory: Memory::Heap(memory), start, len }
    }

    /// `None` for a run that is too small to gain by it, and where the system has none to give: then `Vec` has its say.
    #[cfg(target_os = "linux")]
    fn on_large_pages(len: usize) -> Option<Self> {
        let bytes = len.checked_mul(size_of::<T>())?;
        if bytes < 2 * LARGE_PAGE {
            return None;
        }
        let memory = memmap2::MmapMut::map_anon(bytes.checked_add(LARGE_PAGE)?).ok()?;
        // A system without large pages says so; small ones will do.
        let _ = memory.advise(memmap2::Advice::HugePage);
        let misaligned = memory.as_ptr().addr() % LARGE_PAGE;
        let start = (LARGE_PAGE - misaligned) % LARGE_PAGE / size_of::<T>();
        Some(Aligned { memory: Memory::Pages(memory), start, len })
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
        let first = match &self.memory {
            Memory::Heap(memory) => memory.as_ptr(),
            #[cfg(target_os = "linux")]
            Memory::Pages(memory) => memory.as_ptr().cast(),
        };
        // SAFETY: the invariant, which `new` establishes and nothing changes.
        unsafe { std::slice::from_raw_parts(first.add(self.start), self.len) }
    }
}

impl<T> DerefMut for Aligned<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        let first = match &mut self.memory {
            Memory::Heap(memory) => memory.as_mut_ptr(),
            #[cfg(target_os = "linux")]
            Memory::Pages(memory) => memory.as_mut_ptr().cast(),
        };
        // SAFETY: as in `deref`.
        unsafe { std::slice::from_raw_parts_mut(first.add(self.start), self.len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_start_a_line_and_are_zero() {
        for len in [0, 1, 3, 1000, 1 << 16, (1 << 20) + 7] {
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
