//! Zeroed memory whose first element starts a cache line.

#[cfg(target_os = "linux")]
use nnz_device::huge_pages::LARGE_PAGE;
use nnz_device::mapped_pages::MappedRanges;
#[cfg(target_os = "linux")]
use nnz_device::mapped_pages::mapped_ranges;
use nnz_device::memory;
use nnz_device::prefetch::LINE;
use std::ops::{Deref, DerefMut, Range};
use std::sync::Arc;

/// A run of elements that starts at a multiple of 64 bytes, so that a row of 64 bytes is one cache
/// line and not parts of two.
///
/// Made from zero pages of the system, like a zeroed `Vec`: memory that nobody has written is not
/// there yet. (An allocation with the alignment in its layout would be written with zeros.) On
/// Linux a large run asks for [large pages](nnz_device::huge_pages). What is written first in such
/// a page makes all of its 2 MiB resident.
///
/// The memory may be shared with others, or be that of a mapped file: then it is copied before the
/// first write, and clones share it.
///
/// Invariants: `start + len` elements lie in `memory`, which starts at a multiple of `T`'s
/// alignment; `T` is a number, of which all bits zero are one, and all bits are a number.
#[derive(Debug)]
pub struct Aligned<T> {
    memory: Memory<T>,
    start: usize,
    len: usize,
}

#[derive(Debug)]
enum Memory<T> {
    Own(Owned<T>),
    /// Read by several runs, written by none.
    Shared(Arc<Owned<T>>),
    /// A file that nobody changes while it is mapped: saving a model puts a new file in its place.
    #[cfg(target_os = "linux")]
    File(Arc<memmap2::Mmap>),
}

#[derive(Debug)]
enum Owned<T> {
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
    pub fn new(zero: T, len: usize) -> Self {
        #[cfg(target_os = "linux")]
        if let Some(run) = Aligned::on_pages(len, memmap2::Advice::HugePage) {
            return run;
        }
        Aligned::on_heap(zero, len)
    }

    /// [`new`](Self::new) in pages of the usual size, for a run of which little is written.
    ///
    /// # Panics
    ///
    /// As there.
    pub fn on_small_pages(zero: T, len: usize) -> Self {
        #[cfg(target_os = "linux")]
        if let Some(run) = Aligned::on_pages(len, memmap2::Advice::NoHugePage) {
            return run;
        }
        Aligned::on_heap(zero, len)
    }

    fn on_heap(zero: T, len: usize) -> Self {
        let padding = if len == 0 { 0 } else { LINE / size_of::<T>().max(1) };
        let bytes = len.saturating_add(padding).saturating_mul(size_of::<T>());
        // A panic can be caught, where there is no memory the usual allocation ends the process.
        if bytes <= isize::MAX as usize {
            assert!(
                memory::is_there_for::<u8>(bytes),
                "there is no memory for a table of {bytes} bytes"
            );
        }
        let memory = vec![zero; len.saturating_add(padding)];
        let misaligned = memory.as_ptr().addr() % LINE;
        // `Vec` panics beyond the address space, and aligns to the element, whose size divides a
        // line.
        let start = ((LINE - misaligned) % LINE / size_of::<T>().max(1)).min(padding);
        Aligned { memory: Memory::Own(Owned::Heap(memory)), start, len }
    }

    /// `None` for a run that is too small to gain by it, and where the system has none to give:
    /// then `Vec` has its say.
    #[cfg(target_os = "linux")]
    fn on_pages(len: usize, advice: memmap2::Advice) -> Option<Self> {
        let bytes = len.checked_mul(size_of::<T>())?;
        if bytes < 2 * LARGE_PAGE {
            return None;
        }
        let memory = memmap2::MmapMut::map_anon(bytes.checked_add(LARGE_PAGE)?).ok()?;
        // A system without large pages says so; small ones will do.
        let _ = memory.advise(advice);
        let misaligned = memory.as_ptr().addr() % LARGE_PAGE;
        let start = (LARGE_PAGE - misaligned) % LARGE_PAGE / size_of::<T>();
        Some(Aligned { memory: Memory::Own(Owned::Pages(memory)), start, len })
    }

    /// `len` elements of a mapped file, from a byte on; `None` where they do not lie there as they
    /// do in memory: past its end, at an address that is no multiple of their alignment, or on a
    /// machine that has its bytes the other way round.
    #[cfg(target_os = "linux")]
    pub fn of_file(file: &Arc<memmap2::Mmap>, byte: usize, len: usize) -> Option<Self> {
        let end = len.checked_mul(size_of::<T>())?.checked_add(byte)?;
        // The mapping starts at a page.
        let lies_well = byte.is_multiple_of(size_of::<T>()) && cfg!(target_endian = "little");
        (lies_well && end <= file.len()).then(|| Aligned {
            memory: Memory::File(Arc::clone(file)),
            start: byte / size_of::<T>(),
            len,
        })
    }

    /// The same elements, which clones share from now on. O(1).
    pub fn into_shared(self) -> Self {
        let memory = match self.memory {
            Memory::Own(owned) => Memory::Shared(Arc::new(owned)),
            shared => shared,
        };
        Aligned { memory, ..self }
    }

    /// Ranges of bytes, ascending and disjoint, outside of which every bit is zero: those
    /// in pages that were never touched. All bytes of a small run and of a file.
    pub(super) fn mapped_bytes(&self) -> impl Iterator<Item = Range<usize>> + use<T> {
        let start = self.as_ptr().addr();
        let addresses = start..start + size_of_val(&self[..]);
        let ranges = match self.owned() {
            #[cfg(target_os = "linux")]
            Some(Owned::Pages(_)) => mapped_ranges(addresses),
            _ => MappedRanges::all(addresses),
        };
        ranges.map(move |range| range.start - start..range.end - start)
    }

    /// `None` of a mapped file.
    fn owned(&self) -> Option<&Owned<T>> {
        match &self.memory {
            Memory::Own(owned) => Some(owned),
            Memory::Shared(owned) => Some(owned),
            #[cfg(target_os = "linux")]
            Memory::File(_) => None,
        }
    }

    fn copied(&self) -> Self {
        let mut copy = Aligned::new(T::default(), self.len);
        copy.copy_from_slice(self);
        copy
    }

    #[cold]
    #[inline(never)]
    fn make_own(&mut self) {
        *self = self.copied();
    }
}

impl<T: Copy + Default> Clone for Aligned<T> {
    fn clone(&self) -> Self {
        let memory = match &self.memory {
            Memory::Own(_) => return self.copied(),
            Memory::Shared(shared) => Memory::Shared(Arc::clone(shared)),
            #[cfg(target_os = "linux")]
            Memory::File(file) => Memory::File(Arc::clone(file)),
        };
        Aligned { memory, start: self.start, len: self.len }
    }
}

impl<T> Owned<T> {
    #[inline(always)]
    fn as_ptr(&self) -> *const T {
        match self {
            Owned::Heap(memory) => memory.as_ptr(),
            #[cfg(target_os = "linux")]
            Owned::Pages(memory) => memory.as_ptr().cast(),
        }
    }
}

impl<T> Deref for Aligned<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        let first = match &self.memory {
            Memory::Own(owned) => owned.as_ptr(),
            Memory::Shared(owned) => owned.as_ptr(),
            #[cfg(target_os = "linux")]
            Memory::File(file) => file.as_ptr().cast(),
        };
        // SAFETY: the invariant, which `new` and `of_file` establish and nothing changes.
        unsafe { std::slice::from_raw_parts(first.add(self.start), self.len) }
    }
}

impl<T: Copy + Default> DerefMut for Aligned<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        if !matches!(self.memory, Memory::Own(_)) {
            self.make_own();
        }
        let first = match &mut self.memory {
            Memory::Own(Owned::Heap(memory)) => memory.as_mut_ptr(),
            #[cfg(target_os = "linux")]
            Memory::Own(Owned::Pages(memory)) => memory.as_mut_ptr().cast(),
            // There is none any more.
            _ => return &mut [],
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

    #[test]
    #[should_panic(expected = "capacity overflow")]
    fn a_run_beyond_the_address_space_is_refused() {
        Aligned::new(0u8, usize::MAX - 3);
    }

    #[test]
    #[should_panic(expected = "there is no memory for a table of ")]
    fn a_run_that_does_not_fit_in_memory_can_be_caught() {
        Aligned::new(0u64, 1 << 45);
    }

    #[test]
    fn shared_runs_are_copied_before_they_are_written() {
        for len in [3, (1 << 20) + 7] {
            let mut run = Aligned::new(0.0f32, len);
            run[1] = 5.0;
            let shared = run.into_shared();
            let mut other = shared.clone().into_shared();
            assert_eq!(other.as_ptr(), shared.as_ptr());
            other[2] = 7.0;
            assert_ne!(other.as_ptr(), shared.as_ptr());
            assert_eq!((&shared[..3], &other[..3]), (&[0.0, 5.0, 0.0][..], &[0.0, 5.0, 7.0][..]));
        }
    }
}
