//! Asking for memory ahead of its use.

use crate::formats::CsrView;
use sparse_core::element::Stored;
use std::sync::OnceLock;

/// Bytes of a cache line.
pub(crate) const LINE: usize = 64;

/// Whether so many bytes, with the data that is read between, are further from the core than it sees ahead by itself. What is nearer comes soon
/// enough: asking for it costs more than it saves.
#[inline]
pub(crate) fn is_far(bytes: usize) -> bool {
    static FAR: OnceLock<usize> = OnceLock::new();
    bytes >= *FAR.get_or_init(far)
}

/// Of what the core's own cache holds half is left to the data. Where the next one is near, steps over tables of less than four own caches are
/// faster if nothing is asked for.
fn far() -> usize {
    if next_cache_is_near() { own_cache() * 4 } else { own_cache() / 2 }
}

/// Whether what a core's own cache does not hold, or another core has just written, is still near: so measured on AMD's processors, where some
/// cores share the next cache, and not on Intel's, where all do.
pub(crate) fn next_cache_is_near() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        static NEAR: OnceLock<bool> = OnceLock::new();
        *NEAR.get_or_init(crate::simd::x86::is_of_amd)
    }
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// Bytes of the cache that a core has to itself: its second level, or what is usual where the processor does not say.
fn own_cache() -> usize {
    const USUAL: usize = 1 << 20;
    #[cfg(target_arch = "x86_64")]
    {
        use crate::simd::x86::cpuid;
        /// The processors of both makers say it here, in KiB.
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

/// Asks for the cache line of an address, which may be any.
#[inline(always)]
pub(crate) fn prefetch_at<V>(address: *const V) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: SSE is part of x86_64; a prefetch reads nothing and faults on no address.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// Asks for the cache line of `slice[index]`, which may lie outside of the slice.
#[inline(always)]
pub(crate) fn prefetch<V>(slice: &[V], index: usize) {
    prefetch_at(slice.as_ptr().wrapping_add(index));
}

/// Rows between asking for the bounds of one, or for the number that a loop reads of each, and reading them: some lines.
pub(crate) const BOUNDS_AHEAD: usize = 32;

/// Asks for where a later row begins and ends. A line has the bounds of several rows, so that it is read so long after the one before it that
/// the processor has forgotten that it was to foresee it.
#[inline(always)]
pub(crate) fn prefetch_bounds<V: Stored>(x: CsrView<'_, V>, row: usize) {
    prefetch(x.starts(), row + BOUNDS_AHEAD);
    if !x.is_run() {
        prefetch(x.ends(), row + BOUNDS_AHEAD);
    }
}

/// Asks for the cache lines of a run of entries, which have elements in two slices and may lie outside of them: in one loop, whose end the
/// processor guesses wrong once. It steps by lines from where the run starts, so that the last one may be left to the run behind it.
#[inline(always)]
pub(crate) fn prefetch_runs<U, V>(first: &[U], second: &[V], start: usize, end: usize) {
    let size = size_of::<U>().max(size_of::<V>()).max(1);
    for index in (start..end).step_by((LINE / size).max(1)) {
        prefetch(first, index);
        if size_of::<V>() > 0 {
            prefetch(second, index);
        }
    }
}

/// [`prefetch_runs`] where what lies behind the run is not read next: with its last line. Not as what is read once, though it is, in an epoch:
/// then the next epoch would find it in no cache.
#[inline(always)]
pub(crate) fn prefetch_lone_runs<U, V>(first: &[U], second: &[V], start: usize, end: usize) {
    prefetch_runs(first, second, start, end);
    let last = end.saturating_sub(1).max(start);
    prefetch(first, last);
    if size_of::<V>() > 0 {
        prefetch(second, last);
    }
}

/// Whether rows of so many elements, the first of which is at an address, begin a cache line, all of them.
#[inline(always)]
pub(crate) fn begin_lines<V>(first: *const V, row_size: usize) -> bool {
    (first.addr() | (row_size * size_of::<V>())).is_multiple_of(LINE)
}

/// Asks for the cache lines of a run of elements from an address on, whose number the compiler knows, without a loop. A run that does not begin
/// with a line may end in one more.
#[inline(always)]
pub(crate) fn prefetch_known_at<V>(start: *const V, len: usize, begins_line: bool) {
    let step = (LINE / size_of::<V>().max(1)).max(1);
    for line in 0..len.div_ceil(step) {
        prefetch_at(start.wrapping_add(line * step));
    }
    if !begins_line {
        prefetch_at(start.wrapping_add(len.max(1) - 1));
    }
}

/// Asks for a row of so many bytes, of a table of such rows that starts at a cache line. Of a long row the first lines: the
/// processor foresees the others.
#[inline(always)]
pub(crate) fn prefetch_row(start: *const u8, bytes: usize) {
    const MOST: usize = 4;
    // Where rows may start within a line.
    let alignment = 1 << bytes.trailing_zeros().min(LINE.ilog2());
    let lines = (bytes + LINE - alignment).div_ceil(LINE).min(MOST);
    for line in 0..lines {
        prefetch_at(start.wrapping_add((line * LINE).min(bytes - 1)));
    }
}

/// [`prefetch_row`] of rows that lie one after the other.
#[inline(always)]
pub(crate) fn prefetch_row_of<V>(rows: &[V], row: usize, row_size: usize) {
    let start = rows.as_ptr().wrapping_add(row.wrapping_mul(row_size));
    prefetch_row(start.cast(), row_size * size_of::<V>());
}
