//! Pages of memory that the system has mapped. A page of zeroed memory that was never touched is
//! not mapped yet, so that a search for what was written may pass over it without reading it.
//!
//! Linux reports this in [`/proc/self/pagemap`](https://docs.kernel.org/admin-guide/mm/pagemap.html),
//! to the process itself without privileges. A page that was written to swap is reported as well.
//! (`mincore` would leave it out.) With [huge pages](super::huge_pages) one byte that was touched
//! maps 2 MiB, and a page that was only read is mapped too.

use std::ops::Range;

/// The ranges of some addresses that may be mapped, ascending and disjoint: the process has never
/// written the others. All addresses as one range, where the system does not report pages.
///
/// This says something about private memory without a file alone. (Of a mapped file, bytes that
/// are not mapped are those of the file.) Reads 32 KiB of reports at a time, 8 bytes a page.
pub fn mapped_ranges(addresses: Range<usize>) -> MappedRanges {
    MappedRanges { reports: Reports::open(), rest: addresses }
}

/// An iterator over ranges of addresses, by [`mapped_ranges`].
#[derive(Debug)]
pub struct MappedRanges {
    /// `None` where the system does not report pages.
    reports: Option<Reports>,
    rest: Range<usize>,
}

impl MappedRanges {
    /// All addresses as one range, for memory of which the system is not asked.
    pub fn all(addresses: Range<usize>) -> Self {
        MappedRanges { reports: None, rest: addresses }
    }

    /// Whether the system reports the pages of this process.
    pub fn are_reported() -> bool {
        Reports::open().is_some()
    }
}

impl Iterator for MappedRanges {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        while !self.rest.is_empty() {
            let reported = self.reports.as_mut().map(|reports| reports.next(self.rest.clone()));
            let Some(Reported { unmapped, mapped }) = reported.flatten() else {
                self.reports = None;
                return Some(std::mem::replace(&mut self.rest, 0..0));
            };
            self.rest.start = self.rest.end.min(self.rest.start.saturating_add(unmapped));
            let end = self.rest.end.min(self.rest.start.saturating_add(mapped));
            let start = std::mem::replace(&mut self.rest.start, end);
            if start < end {
                return Some(start..end);
            }
        }
        None
    }
}

/// Bytes from an address on that are not mapped, and bytes behind them that may be. One of both is
/// not 0.
#[derive(Debug)]
struct Reported {
    unmapped: usize,
    mapped: usize,
}

#[cfg(all(target_os = "linux", not(miri)))]
use pagemap::Reports;

#[cfg(all(target_os = "linux", not(miri)))]
mod pagemap {
    use super::Reported;
    use std::fs::File;
    use std::ops::Range;
    use std::os::unix::fs::FileExt;

    /// Set of a page in memory, or in swap.
    const MAPPED: u64 = 0b11 << 62;
    const PAGES_PER_READ: usize = 4096;

    /// A part of the system's reports, an entry a page.
    #[derive(Debug)]
    pub(super) struct Reports {
        /// Of the address space that the process had when it opened the file: it is opened anew
        /// for each search, which does not outlive a fork.
        file: File,
        bytes_per_page: usize,
        entries: Vec<u64>,
        /// The number of the first page of `entries`.
        first_page: usize,
    }

    impl Reports {
        /// `None` where there are none, and where they are of other addresses than those that the
        /// process sees, as in an emulator.
        pub(super) fn open() -> Option<Self> {
            let bytes_per_page = bytes_per_page()?;
            let file = File::open("/proc/self/pagemap").ok()?;
            let mut reports = Reports { file, bytes_per_page, entries: Vec::new(), first_page: 0 };
            let witness = std::hint::black_box([1u8; 64]);
            let address = std::hint::black_box(&witness).as_ptr().addr();
            let Reported { mapped, .. } = reports.next(address..address + 1)?;
            (mapped > 0).then_some(reports)
        }

        /// What is reported of the first of some addresses, and of others as far as is known.
        pub(super) fn next(&mut self, addresses: Range<usize>) -> Option<Reported> {
            let page = addresses.start / self.bytes_per_page;
            if !(self.first_page..self.first_page + self.entries.len()).contains(&page) {
                let end = addresses.end.div_ceil(self.bytes_per_page);
                self.read(page, (end - page).min(PAGES_PER_READ))?;
            }
            let entries = &self.entries[page - self.first_page..];
            let is_mapped = |entry: &&u64| **entry & MAPPED != 0;
            let n_unmapped = entries.iter().take_while(|entry| !is_mapped(entry)).count();
            let n_mapped = entries[n_unmapped..].iter().take_while(is_mapped).count();
            // From the address on, which may lie inside its page.
            let bytes_before = addresses.start % self.bytes_per_page;
            let (unmapped, mapped) =
                (n_unmapped * self.bytes_per_page, n_mapped * self.bytes_per_page);
            Some(match n_unmapped {
                0 => Reported { unmapped, mapped: mapped - bytes_before },
                _ => Reported { unmapped: unmapped - bytes_before, mapped },
            })
        }

        /// Reads the entries of some pages, of one at least; `None` where none can be read.
        fn read(&mut self, page: usize, n_pages: usize) -> Option<()> {
            self.entries.resize(n_pages, 0);
            self.first_page = page;
            let start = u64::try_from(page.checked_mul(size_of::<u64>())?).ok()?;
            let bytes = bytemuck::cast_slice_mut(&mut self.entries);
            let n_read = self.file.read_at(bytes, start).ok()? / size_of::<u64>();
            self.entries.truncate(n_read);
            (n_read > 0).then_some(())
        }
    }

    fn bytes_per_page() -> Option<usize> {
        // SAFETY: a number of the system, which reads and writes no memory of ours.
        let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        usize::try_from(bytes).ok().filter(|bytes| *bytes > 0)
    }
}

/// Other systems report nothing.
#[cfg(not(all(target_os = "linux", not(miri))))]
#[derive(Debug)]
enum Reports {}

#[cfg(not(all(target_os = "linux", not(miri))))]
impl Reports {
    fn open() -> Option<Self> {
        None
    }

    fn next(&mut self, addresses: Range<usize>) -> Option<Reported> {
        Some(Reported { unmapped: 0, mapped: addresses.len() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_the_system_is_not_asked_about_is_one_range() {
        assert!(MappedRanges::all(5..5).next().is_none());
        assert!(MappedRanges::all(5..900_000).eq(std::iter::once(5..900_000)));
    }

    #[test]
    fn memory_that_was_written_is_mapped_as_a_whole() {
        let memory = vec![1u8; 100_000];
        let start = memory.as_ptr().addr();
        for addresses in [start..start + 100_000, start + 17..start + 18, start + 5..start + 60_000]
        {
            let mut next = addresses.start;
            for range in mapped_ranges(addresses.clone()) {
                assert_eq!(range.start, next);
                next = range.end;
            }
            assert_eq!(next, addresses.end);
        }
        assert!(mapped_ranges(start..start).next().is_none());
    }

    /// Zeros in pages of the usual size, and where a page number begins.
    #[cfg(all(target_os = "linux", not(miri)))]
    fn zeros(n_pages: usize) -> Option<(memmap2::MmapMut, usize)> {
        const BYTES: usize = 1 << 16;
        if !MappedRanges::are_reported() {
            eprintln!("skipped: /proc/self/pagemap cannot be read here");
            return None;
        }
        let memory = memmap2::MmapMut::map_anon(n_pages * BYTES).unwrap();
        memory.advise(memmap2::Advice::NoHugePage).unwrap();
        Some((memory, BYTES))
    }

    /// Over several reads, each of 4096 pages.
    #[cfg(all(target_os = "linux", not(miri)))]
    #[test]
    fn pages_that_were_written_are_the_mapped_ones() {
        // As many bytes as the largest pages of any system, of which there are a few in each.
        let Some((mut memory, bytes)) = zeros(3000) else { return };
        let start = memory.as_ptr().addr();
        let written = [0, 1, 7, 255, 256, 257, 1023, 2999].map(|page| page * bytes);
        for byte in written {
            memory[byte + 5] = 1;
        }
        for addresses in [0..memory.len(), 6..memory.len() - 3, bytes + 9..1023 * bytes + 6] {
            let ranges: Vec<_> = mapped_ranges(start + addresses.start..start + addresses.end)
                .map(|range| range.start - start..range.end - start)
                .collect();
            let len: usize = ranges.iter().map(Range::len).sum();
            assert!(len <= written.len() * bytes, "{len} bytes may be mapped");
            assert!(ranges.is_sorted_by(|one, next| one.end <= next.start));
            let is_inside = |range: &Range<usize>| {
                addresses.start <= range.start && range.end <= addresses.end && !range.is_empty()
            };
            assert!(ranges.iter().all(is_inside), "{ranges:?}");
            for byte in written.map(|byte| byte + 5) {
                let is_found = ranges.iter().any(|range| range.contains(&byte));
                assert_eq!(is_found, addresses.contains(&byte), "byte {byte} of {addresses:?}");
            }
        }
    }

    #[cfg(all(target_os = "linux", not(miri)))]
    #[test]
    fn untouched_memory_has_no_mapped_pages() {
        let Some((memory, _)) = zeros(3000) else { return };
        let start = memory.as_ptr().addr();
        assert_eq!(mapped_ranges(start..start + memory.len()).count(), 0);
    }
}
