//! Huge pages. A processor caches the addresses of a few thousand pages, so random rows in a table
//! of many small pages cost a page-table walk each, and the first write to each page costs a fault.

use std::ops::Range;

/// Bytes of the huge pages of x86-64 and of most Arm systems.
pub const LARGE_PAGE: usize = 2 << 20;

/// Reserves memory for `more` elements, on huge pages if that pays. Without enough memory
/// nothing happens: growing for the elements reports it.
pub fn reserve_large<T>(run: &mut Vec<T>, more: usize) {
    let has_room = run.capacity() - run.len() >= more;
    if !has_room && run.try_reserve_exact(more).is_ok() {
        advise(run);
    }
}

#[cfg(all(target_os = "linux", not(miri)))]
fn advise<T>(run: &Vec<T>) {
    /// Pages of other sizes make the call an error, which changes nothing.
    const PAGE: usize = 4096;
    let bytes = run.capacity().saturating_mul(size_of::<T>());
    if bytes < 2 * LARGE_PAGE {
        return;
    }
    let address = run.as_ptr().addr();
    let start = address / PAGE * PAGE;
    let len = (address + bytes - start).next_multiple_of(PAGE);
    // SAFETY: advice on which pages to use changes neither what memory holds nor whether it is
    // there.
    unsafe {
        libc::madvise(run.as_ptr().cast_mut().with_addr(start).cast(), len, libc::MADV_HUGEPAGE);
    }
}

#[cfg(not(all(target_os = "linux", not(miri))))]
fn advise<T>(_: &Vec<T>) {}

/// Has the system map the pages of some addresses, as a first write by this thread would, while
/// other threads may write there. Contents stay. Without system support nothing happens, and the
/// first write maps the page.
#[cfg(all(target_os = "linux", not(miri)))]
pub fn map(addresses: Range<usize>) {
    const PAGE: usize = 4096;
    let start = addresses.start / PAGE * PAGE;
    let len = (addresses.end - start).next_multiple_of(PAGE);
    // SAFETY: this changes nothing that memory holds, and what is not mapped is an error.
    unsafe {
        libc::madvise(std::ptr::without_provenance_mut(start), len, libc::MADV_POPULATE_WRITE);
    }
}

#[cfg(not(all(target_os = "linux", not(miri))))]
pub fn map(_: Range<usize>) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_stays_and_more_fits() {
        for more in [0, 10, LARGE_PAGE, usize::MAX] {
            let mut run = vec![1u32, 2, 3];
            reserve_large(&mut run, more);
            assert_eq!(run, [1, 2, 3]);
            assert!(run.capacity() >= 3 && (more == usize::MAX || run.capacity() >= 3 + more));
        }
    }
}
