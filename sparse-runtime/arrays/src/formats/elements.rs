//! The elements of a dense array or of stored rows, starting at a cache line if the array allocated
//! its memory itself.

use super::memory::make_room;
use super::{FormatError, Shape};
use nnz_device::huge_pages::reserve_large;
use nnz_device::prefetch::LINE;
use std::ops::{Deref, DerefMut};

/// Smaller arrays stay in the L1 cache, where alignment matters little.
const SMALL: usize = 1024;

/// The elements of a [`Dense`](super::Dense) on the host, or of the rows of a
/// [`RowSparse`](super::RowSparse): a `Vec` whose first few elements are skipped, so that the rest
/// begins at a cache line. A row of 16 numbers is then one line, and not parts of two, as in memory
/// that an allocator returns for a large array.
///
/// A given `Vec` stays where it is. A `Vec` that is given away has its elements moved to the front:
/// `O(1)` if it was given and did not grow, otherwise `O(len)`.
///
/// Invariant: `start <= memory.len()`.
#[derive(Debug)]
pub struct Elements<T> {
    memory: Vec<T>,
    start: usize,
}

impl<T: Copy + Default> Elements<T> {
    /// `len` times an element. Zeros are not written: the system's zero pages serve them.
    pub(super) fn full(element: T, len: usize) -> Self {
        let memory = vec![element; len + padding::<T>(len)];
        let start = skipped(&memory, len);
        let mut elements = Elements { memory, start };
        elements.memory.truncate(start + len);
        elements
    }

    /// The number of elements becomes `len`. Those that were there may have other values, and so
    /// may new ones. Allocates only if there never were as many.
    pub(super) fn resize_for_overwrite(&mut self, len: usize) {
        if self.start.saturating_add(len) > self.memory.capacity() {
            // Not less than twice as many, so that growing row by row is linear.
            let len = len.max(self.memory.capacity().saturating_mul(2));
            *self = Elements::with_room(len);
        }
        self.memory.resize(self.start + len, T::default());
    }

    /// Becomes `len` zeros that begin a line. O(len).
    pub(crate) fn set_zeros(&mut self, len: usize) {
        self.memory.clear();
        self.start = skipped(&self.memory, len);
        if self.start.saturating_add(len) > self.memory.capacity() {
            // As in `resize_for_overwrite`.
            *self = Elements::with_room(len.max(self.memory.capacity().saturating_mul(2)));
        }
        self.memory.resize(self.start, T::default());
        self.memory.resize(self.start + len, T::default());
    }

    /// Of those that are there, so many are left.
    pub(super) fn truncate(&mut self, len: usize) {
        self.memory.truncate(self.start.saturating_add(len));
    }

    /// Becomes what `write` makes of their memory, which it gets empty: elements that begin where
    /// the memory does.
    pub(crate) fn rewrite<R>(&mut self, write: impl FnOnce(&mut Vec<T>) -> R) -> R {
        let mut memory = std::mem::take(self).memory;
        memory.clear();
        let result = write(&mut memory);
        *self = memory.into();
        result
    }

    /// Becomes a copy.
    pub(super) fn assign(&mut self, source: &[T]) {
        if self.start + source.len() > self.memory.capacity() {
            *self = Elements::with_room(source.len());
        }
        self.memory.truncate(self.start);
        self.memory.extend_from_slice(source);
    }

    /// Reserves memory for `len` elements in all, so that
    /// [`resize_for_overwrite`](Elements::resize_for_overwrite) to them neither panics nor ends the
    /// process. The elements may be lost.
    ///
    /// # Errors
    ///
    /// [`FormatError::OutOfMemory`]; the elements are as before.
    pub(super) fn make_room(
        &mut self,
        len: usize,
        what: &'static str,
        shape: Shape,
    ) -> Result<(), FormatError> {
        if self.start.saturating_add(len) > self.memory.capacity() {
            let mut memory = Vec::new();
            make_room(&mut memory, len + padding::<T>(len), what, shape)?;
            *self = Elements::in_room(memory, len);
        }
        Ok(())
    }

    /// None yet, and room for `len`, all of which will be written.
    fn with_room(len: usize) -> Self {
        let size = len + padding::<T>(len);
        let mut memory = Vec::new();
        reserve_large(&mut memory, size);
        memory.reserve(size);
        Elements::in_room(memory, len)
    }

    /// None yet, in memory that has room for `len` and their padding.
    fn in_room(mut memory: Vec<T>, len: usize) -> Self {
        let start = skipped(&memory, len);
        memory.resize(start, T::default());
        Elements { memory, start }
    }
}

/// How many elements more than `len` there must be so that `len` of them begin at a cache line.
fn padding<T>(len: usize) -> usize {
    if len.saturating_mul(size_of::<T>()) < SMALL { 0 } else { LINE / size_of::<T>() }
}

/// How many elements come before the first that begins a cache line, of memory with room for the
/// padding of `len` elements.
fn skipped<T>(memory: &[T], len: usize) -> usize {
    // A `Vec` is aligned to its elements, whose size divides a line.
    memory.as_ptr().align_offset(LINE).min(padding::<T>(len))
}

/// Where they are.
impl<T> From<Vec<T>> for Elements<T> {
    fn from(memory: Vec<T>) -> Self {
        Elements { memory, start: 0 }
    }
}

/// Moved to the front, unless they are there.
impl<T> From<Elements<T>> for Vec<T> {
    fn from(mut elements: Elements<T>) -> Vec<T> {
        elements.memory.drain(..elements.start);
        elements.memory
    }
}

impl<T> Default for Elements<T> {
    fn default() -> Self {
        Vec::new().into()
    }
}

impl<T: Copy + Default> From<&[T]> for Elements<T> {
    fn from(source: &[T]) -> Self {
        let mut copy = Elements::default();
        copy.assign(source);
        copy
    }
}

impl<T: Copy + Default> Clone for Elements<T> {
    fn clone(&self) -> Self {
        Elements::from(&**self)
    }
}

impl<T> Deref for Elements<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        &self.memory[self.start..]
    }
}

impl<T> DerefMut for Elements<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.memory[self.start..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begins_a_line<T>(elements: &[T]) -> bool {
        elements.as_ptr().addr().is_multiple_of(LINE)
    }

    #[test]
    fn large_runs_begin_a_line() {
        for len in [0, 1, 255, 256, 1000, 1 << 21] {
            let mut elements = Elements::full(2.0f32, len);
            assert!(elements.len() == len && elements.iter().all(|x| *x == 2.0));
            elements.iter_mut().zip(0..).for_each(|(x, i)| *x = i as f32);
            let copy = elements.clone();
            assert_eq!(copy[..], elements[..]);
            elements.resize_for_overwrite(3 * len + 300);
            assert_eq!(elements.len(), 3 * len + 300);
            assert!(begins_a_line(&elements));
            assert!(len < 256 || begins_a_line(&copy));
            assert_eq!(Vec::from(copy.clone()), copy[..]);
        }
    }

    #[test]
    fn memory_is_used_again() {
        let mut elements = Elements::full(1u64, 1000);
        let place = elements.as_ptr();
        elements.resize_for_overwrite(3);
        assert_eq!(elements[..], [1; 3]);
        elements.resize_for_overwrite(1000);
        elements.assign(&[7; 900]);
        assert_eq!((elements.as_ptr(), &elements[..]), (place, &[7; 900][..]));
    }

    #[test]
    fn zeros_begin_a_line_wherever_they_were_before() {
        let mut elements = Elements::from(vec![1.0f32; 5000]);
        for len in [4000, 300, 6000, 0, 12_000, 9000] {
            elements.set_zeros(len);
            assert!(elements.len() == len && elements.iter().all(|x| x.to_bits() == 0));
            assert!(len == 0 || begins_a_line(&elements));
            elements.fill(3.0);
        }
        let room = elements.memory.capacity();
        elements.rewrite(|memory| {
            assert!(memory.is_empty() && memory.capacity() == room);
            memory.extend([1.0, 2.0]);
        });
        assert_eq!(elements[..], [1.0, 2.0]);
    }

    #[test]
    fn a_vec_stays_where_it_is() {
        let vec = vec![1.0f32; 5000];
        let place = vec.as_ptr();
        let elements = Elements::from(vec);
        assert_eq!(elements.as_ptr(), place);
        let back = Vec::from(elements);
        assert_eq!(back.as_ptr(), place);
    }
}
