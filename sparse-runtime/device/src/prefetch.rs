//! Prefetching of memory.

use std::sync::OnceLock;

/// Bytes of a cache line.
pub const LINE: usize = 64;

/// Whether this number of bytes, with the data read between, is out of reach of the hardware
/// prefetcher. Prefetching nearer memory costs more than it saves.
#[inline]
pub fn is_far(bytes: usize) -> bool {
    static FAR: OnceLock<usize> = OnceLock::new();
    bytes >= *FAR.get_or_init(far)
}

/// Half of the core's own cache is left to the data. If the next cache is near, a table is far from
/// four own caches on
/// ([experiments](https://github.com/nnz-rs/nnz/blob/main/docs/notes/performance.md#memory-and-prefetch)).
fn far() -> usize {
    if next_cache_is_near() { own_cache() * 4 } else { own_cache() / 2 }
}

/// Whether memory beyond the core's own cache, or just written by another core, is still near, as
/// on AMD processors, where some cores share the next cache.
pub fn next_cache_is_near() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        static NEAR: OnceLock<bool> = OnceLock::new();
        *NEAR.get_or_init(crate::simd::x86::is_of_amd)
    }
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// Bytes of the cache that a core has to itself: its L2 cache, or a usual size if the processor
/// does not report it.
fn own_cache() -> usize {
    const USUAL: usize = 1 << 20;
    #[cfg(target_arch = "x86_64")]
    {
        use crate::simd::x86::cpuid;
        /// The leaf that reports it in KiB, on Intel and AMD processors.
        const CACHES: u32 = 0x8000_0006;
        if cpuid(0x8000_0000).eax >= CACHES {
            let kib = (cpuid(CACHES).ecx >> 16) as usize;
            if kib > 0 {
                return kib << 10;
            }
        }
    }
    USUAL
}

/// Prefetches the cache line of an address, which may be any.
#[inline(always)]
pub fn prefetch_at<V>(address: *const V) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: SSE is part of x86_64; a prefetch reads nothing and faults on no address.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// Prefetches the cache line of `slice[index]`, which may lie outside of the slice.
#[inline(always)]
pub fn prefetch<V>(slice: &[V], index: usize) {
    prefetch_at(slice.as_ptr().wrapping_add(index));
}

/// Rows between prefetching and reading the bounds of one, or the number that a loop reads of each:
/// some cache lines.
pub const BOUNDS_AHEAD: usize = 32;

/// Entries between the prefetch and the use of samples that lie one after the other: a page.
pub const ENTRIES_AHEAD: usize = 1024;

/// Samples between the prefetch and the use of one that lies anywhere.
pub const DATA_AHEAD: usize = 16;

/// Samples between the prefetch and the use of their table rows.
pub const AHEAD: usize = 2;

/// [`AHEAD`] where a table row, with its states, is at most one cache line: a cache has room for
/// more of them.
pub const LINES_AHEAD: usize = 4;

/// Prefetches the cache lines of a run of entries, whose elements lie in two slices and may lie
/// outside of them. One loop has one branch misprediction. It steps by lines from the start of the
/// run, so the last one may be left to the next run.
#[inline(always)]
pub fn prefetch_runs<U, V>(first: &[U], second: &[V], start: usize, end: usize) {
    let size = size_of::<U>().max(size_of::<V>()).max(1);
    for index in (start..end).step_by((LINE / size).max(1)) {
        prefetch(first, index);
        if size_of::<V>() > 0 {
            prefetch(second, index);
        }
    }
}

/// [`prefetch_runs`] with its last line, for a run whose successor is not read next. It does not
/// use a non-temporal hint: the next epoch would find the data in no cache.
#[inline(always)]
pub fn prefetch_lone_runs<U, V>(first: &[U], second: &[V], start: usize, end: usize) {
    prefetch_runs(first, second, start, end);
    let last = end.saturating_sub(1).max(start);
    prefetch(first, last);
    if size_of::<V>() > 0 {
        prefetch(second, last);
    }
}

/// Whether all rows of this number of elements begin at a cache line; the first one is at an
/// address.
#[inline(always)]
pub fn begin_lines<V>(first: *const V, row_size: usize) -> bool {
    (first.addr() | (row_size * size_of::<V>())).is_multiple_of(LINE)
}

/// Prefetches the cache lines of a run of elements from an address on, whose number the compiler
/// knows, without a loop. A run that does not begin at a line may end in one more.
#[inline(always)]
pub fn prefetch_known_at<V>(start: *const V, len: usize, begins_line: bool) {
    let step = (LINE / size_of::<V>().max(1)).max(1);
    for line in 0..len.div_ceil(step) {
        prefetch_at(start.wrapping_add(line * step));
    }
    if !begins_line {
        prefetch_at(start.wrapping_add(len.max(1) - 1));
    }
}

/// Prefetches a row of this number of bytes, in a table of such rows that starts at a cache line.
/// For a long row only the first lines: the hardware prefetcher gets the others.
#[inline(always)]
pub fn prefetch_row(start: *const u8, bytes: usize) {
    const MOST: usize = 4;
    // Where rows may start within a line.
    let alignment = 1 << bytes.trailing_zeros().min(LINE.ilog2());
    let lines = (bytes + LINE - alignment).div_ceil(LINE).min(MOST);
    for line in 0..lines {
        prefetch_at(start.wrapping_add((line * LINE).min(bytes - 1)));
    }
}

/// [`prefetch_row`] for consecutive rows.
#[inline(always)]
pub fn prefetch_row_of<V>(rows: &[V], row: usize, row_size: usize) {
    let start = rows.as_ptr().wrapping_add(row.wrapping_mul(row_size));
    prefetch_row(start.cast(), row_size * size_of::<V>());
}
