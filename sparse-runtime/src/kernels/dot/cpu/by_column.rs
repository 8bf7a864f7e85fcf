//! csrᵀ · dense with a row of sums for every column, where columns are not more than entries. Which of them occur shows in the
//! sums, so that nothing is noted entry by entry: a sum begins at -0, no term is -0, and so a sum is -0 until something is added.

use super::gemm::Matrix;
use super::scatter;
use crate::formats::CsrView;
use crate::kernels::Parallel;
use crate::kernels::index_set::for_each_bit;
#[cfg(target_arch = "x86_64")]
use crate::kernels::own_entries::{OwnEntries, are_added};
use crate::kernels::parallel::ColumnSamples;
use crate::lanes::{Lanes, Loop, same_type, widest};
#[cfg(target_arch = "x86_64")]
use crate::lanes::{same_type_mut, x86};
use crate::large_pages::reserve_large;
use crate::prefetch::LINE;
use crate::team::{self, MAX_PARTS};
use sparse_core::element::{Factor, Float, Stored};
use std::mem::MaybeUninit;
use std::ops::Range;

/// Whether this costs less than finding the columns first, then the place of each entry.
pub(super) fn fits<V: Stored>(lhs: CsrView<'_, V>, width: usize) -> bool {
    // What fits a cache is gone over quickly, occurring or not; what does not is a matter of memory as well.
    const CACHED: usize = 1 << 20;
    const LARGEST: usize = 1 << 24;
    let (n_cols, nnz) = (lhs.n_cols(), lhs.nnz());
    let size = n_cols.saturating_mul(width);
    width > 0 && (size <= CACHED && n_cols / 4 <= nnz || size <= LARGEST && n_cols <= nnz)
}

/// Appends the columns that occur to `ids`, and makes `values` their rows.
pub(super) fn product<T: Float, V: Factor<T>>(
    ids: &mut Vec<u64>,
    values: &mut Vec<T>,
    lhs: CsrView<'_, V>,
    rhs: Matrix<'_, T>,
    parallel: Parallel,
    wide: &mut Vec<f32>,
) {
    let (n_cols, width) = (lhs.n_cols(), rhs.n_cols);
    let parts = match width {
        1 if !divides_rows() => 1,
        // As long on two threads as on one.
        2 => 1,
        _ => scatter::parts(lhs, width, parallel),
    };
    // A row of sums that lies in two lines of the cache costs twice, and the allocator aligns nothing to lines.
    let slack = LINE / size_of::<T>();
    fill(values, n_cols * width + slack, -T::zero(), parts);
    ids.clear();
    ids.reserve(n_cols);
    let room = &mut ids.spare_capacity_mut()[..n_cols];
    let samples = if parts > 1 { ColumnSamples::of(lhs) } else { None };
    let found = T::in_accumulator(values, wide, |sums| {
        let lead = sums.as_ptr().align_offset(LINE).min(slack);
        match samples {
            None => some_columns(room, sums, lead, lhs, rhs, 0..n_cols),
            Some(samples) => in_parts(room, sums, lead, lhs, rhs, samples.ranges(parts, n_cols)),
        }
    });
    // SAFETY: there is room for `n_cols`, of which so many were written.
    unsafe { ids.set_len(found) };
    values.truncate(found * width);
}

/// Whether threads that have some columns each, and so a few entries of each row, win anything where an entry is a single addition. Both read all
/// rows, and how many entries are theirs is guessed wrong once a row unless a mask says it: without one, two threads took longer than one on AMD's
/// processors.
fn divides_rows() -> bool {
    #[cfg(target_arch = "x86_64")]
    return cfg!(test) || are_added();
    #[cfg(not(target_arch = "x86_64"))]
    true
}

/// Makes a vector so many times the same element, on as many threads as there are to be parts.
fn fill<T: Float>(values: &mut Vec<T>, len: usize, element: T, parts: usize) {
    values.clear();
    reserve_large(values, len);
    values.reserve(len);
    let mut room = values.spare_capacity_mut()[..len].chunks_mut(len.div_ceil(parts).max(1));
    let mut pieces = [const { None }; MAX_PARTS];
    pieces.iter_mut().for_each(|piece| *piece = room.next());
    team::each(&mut pieces[..parts], |_, piece| {
        if let Some(piece) = piece {
            repeat(piece, element);
        }
    });
    // SAFETY: the pieces, not more than `parts`, were written, which are the first `len` elements.
    unsafe { values.set_len(len) };
}

/// Writes the same element to each place, by the processor's instruction for that. What it has written, AMD's processors keep in a cache while
/// the data go by; of what single stores have written, after another table was at work, they keep less.
#[cfg(all(target_arch = "x86_64", not(miri)))]
fn repeat<T: Float>(room: &mut [MaybeUninit<T>], element: T) {
    /// The instruction takes its time to begin.
    const MANY: usize = 1 << 16;
    const { assert!(!std::mem::needs_drop::<T>()) };
    let (len, start) = (room.len(), room.as_mut_ptr());
    if size_of_val(room) < MANY {
        return room.fill(MaybeUninit::new(element));
    }
    // SAFETY: so many elements of this size are written as there is room for; the bits are those of an element. The direction is upwards wherever
    // such code begins.
    unsafe {
        match size_of::<T>() {
            4 => std::arch::asm!(
                "rep stosd",
                inout("rcx") len => _,
                inout("rdi") start => _,
                in("eax") std::mem::transmute_copy::<T, u32>(&element),
                options(nostack, preserves_flags),
            ),
            8 => std::arch::asm!(
                "rep stosq",
                inout("rcx") len => _,
                inout("rdi") start => _,
                in("rax") std::mem::transmute_copy::<T, u64>(&element),
                options(nostack, preserves_flags),
            ),
            _ => room.fill(MaybeUninit::new(element)),
        }
    }
}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
fn repeat<T: Float>(room: &mut [MaybeUninit<T>], element: T) {
    room.fill(MaybeUninit::new(element));
}

/// As [`some_columns`], of several runs of columns, each on a thread.
fn in_parts<T: Float, V: Factor<T>>(
    ids: &mut [MaybeUninit<u64>],
    sums: &mut [T::Accumulator],
    lead: usize,
    lhs: CsrView<'_, V>,
    rhs: Matrix<'_, T>,
    ranges: impl Iterator<Item = Range<usize>>,
) -> usize {
    let width = rhs.n_cols;
    let (mut rest, mut n_parts) = ((&mut *ids, &mut *sums), 0);
    let mut pieces = [const { None }; MAX_PARTS];
    for (piece, columns) in pieces.iter_mut().zip(ranges) {
        // The first part has what lies in front of all rows.
        let lead = if n_parts == 0 { lead } else { 0 };
        let (ids, more_ids) = rest.0.split_at_mut(columns.len());
        let (sums, more_sums) = rest.1.split_at_mut(lead + columns.len() * width);
        *piece = Some((columns, ids, sums, lead, 0));
        (rest, n_parts) = ((more_ids, more_sums), n_parts + 1);
    }
    team::each(&mut pieces[..n_parts], |_, piece| {
        if let Some((columns, ids, sums, lead, found)) = piece {
            *found = some_columns(ids, sums, *lead, lhs, rhs, columns.clone());
        }
    });
    let found =
        pieces.map(|piece| piece.map_or((0, 0), |(columns, .., found)| (columns.start, found)));
    let mut all = 0;
    for (place, (start, found)) in found.into_iter().enumerate() {
        // The first part is where it belongs, the others move up to where the one before them ended.
        if place > 0 {
            move_down(ids, start, all, found, n_parts);
            move_down(sums, lead + start * width, all * width, found * width, n_parts);
        }
        all += found;
    }
    all
}

/// Copies `len` elements from one place to an earlier one, on as many threads as there are to be parts if the two do not overlap.
fn move_down<T: Copy + Send + Sync>(
    elements: &mut [T],
    from: usize,
    to: usize,
    len: usize,
    parts: usize,
) {
    if to + len > from {
        return elements.copy_within(from..from + len, to);
    }
    let (before, after) = elements.split_at_mut(from);
    let piece = len.div_ceil(parts).max(1);
    let mut copies = before[to..to + len].chunks_mut(piece).zip(after[..len].chunks(piece));
    let mut pieces = [const { None }; MAX_PARTS];
    pieces[..parts].iter_mut().for_each(|piece| *piece = copies.next());
    team::each(&mut pieces[..parts], |_, piece| {
        if let Some((to, from)) = piece {
            to.copy_from_slice(from);
        }
    });
}

/// Sums the rows of some columns, of which the first is `lead` elements behind the front; moves those that occur to the front, and
/// says how many. Their columns are written to `ids`.
fn some_columns<T: Float, V: Factor<T>>(
    ids: &mut [MaybeUninit<u64>],
    sums: &mut [T::Accumulator],
    lead: usize,
    lhs: CsrView<'_, V>,
    rhs: Matrix<'_, T>,
    columns: Range<usize>,
) -> usize {
    let first = columns.start;
    // SAFETY: behind `lead` there is a row for each of the columns, which all callers see to.
    unsafe {
        let sums = &mut sums[lead..];
        #[cfg(target_arch = "x86_64")]
        let is_added = add_own::<T, V>(sums, lhs, rhs, columns.clone());
        #[cfg(not(target_arch = "x86_64"))]
        let is_added = false;
        if !is_added {
            let place = scatter::Columns;
            scatter::some_columns::<T, V, _, true>(sums, first, lhs, rhs, columns, place);
        }
    }
    #[cfg(target_arch = "x86_64")]
    if rhs.n_cols == 1
        && x86::Level::found() == Some(x86::Level::Avx512)
        && let Some(sums) = same_type_mut(sums)
    {
        // SAFETY: the processor has the instructions, and behind `lead` there is a sum for each id.
        return unsafe { compressed(ids, sums, lead, first) };
    }
    let mut found = 0;
    widest(Occurring { ids, sums, lead, width: rhs.n_cols, first, found: &mut found });
    found
}

/// Adds the entries in some columns, not all, to sums of one column. Tells whether it did.
///
/// # Safety
///
/// There is a sum for each of the columns.
#[cfg(target_arch = "x86_64")]
unsafe fn add_own<T: Float, V: Factor<T>>(
    sums: &mut [T::Accumulator],
    lhs: CsrView<'_, V>,
    rhs: Matrix<'_, T>,
    columns: Range<usize>,
) -> bool {
    let is_part = columns.start > 0 || columns.end < lhs.n_cols();
    if rhs.n_cols != 1 || !is_part {
        return false;
    }
    // A right side of one column is its elements, one behind the other.
    let own = same_type(rhs.values).and_then(|factors| OwnEntries::of::<T>(lhs, factors));
    match (own, same_type_mut(sums)) {
        (Some(own), Some(sums)) => {
            let own = own.in_columns(columns);
            // SAFETY: promised by the caller.
            unsafe { own.add::<T, true>(sums.as_mut_ptr()) };
            true
        }
        _ => false,
    }
}

/// [`Occurring`] of one column, sixteen sums at a time.
///
/// # Safety
///
/// The processor has AVX-512 and bmi2, and there are `lead` sums and one for each id.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,bmi2,popcnt")]
unsafe fn compressed(
    ids: &mut [MaybeUninit<u64>],
    sums: &mut [f32],
    lead: usize,
    first: usize,
) -> usize {
    use std::arch::x86_64::*;
    let minus_zero = _mm512_set1_epi32((-0.0f32).to_bits().cast_signed());
    let eight = _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7);
    let (n_rows, mut found) = (ids.len(), 0);
    let (ids, sums) = (ids.as_mut_ptr().cast::<i64>(), sums.as_mut_ptr().cast::<i32>());
    for start in (0..n_rows).step_by(16) {
        let there = _bzhi_u32(0xffff, (n_rows - start).min(16) as u32) as u16;
        // SAFETY: what is read is there, or masked. Not more is written than was read, and where it was read already.
        unsafe {
            let sixteen = _mm512_maskz_loadu_epi32(there, sums.add(lead + start));
            let occur = _mm512_mask_cmpneq_epi32_mask(there, sixteen, minus_zero);
            let written = _bzhi_u32(0xffff, occur.count_ones()) as u16;
            let kept = _mm512_maskz_compress_epi32(occur, sixteen);
            _mm512_mask_storeu_epi32(sums.add(found), written, kept);
            for (half, occur) in [occur as u8, (occur >> 8) as u8].into_iter().enumerate() {
                let columns = _mm512_set1_epi64((first + start + 8 * half) as i64);
                let columns = _mm512_add_epi64(columns, eight);
                let written = _bzhi_u32(0xff, occur.count_ones()) as u8;
                let kept = _mm512_maskz_compress_epi64(occur, columns);
                _mm512_mask_storeu_epi64(ids.add(found), written, kept);
                found += occur.count_ones() as usize;
            }
        }
    }
    found
}

/// Of so many of 64 that occur, moving all is faster than finding each.
const MANY: u32 = 24;

/// Moves to the front what is not -0 in its first element.
struct Occurring<'a, A> {
    ids: &'a mut [MaybeUninit<u64>],
    sums: &'a mut [A],
    /// The elements in front of the first row.
    lead: usize,
    width: usize,
    /// The first column.
    first: usize,
    found: &'a mut usize,
}

/// The compiler makes the comparisons into vectors by itself.
impl<A: Float> Loop<A> for Occurring<'_, A> {
    #[inline(always)]
    unsafe fn run<L: Lanes<A>>(self) {
        let Occurring { ids, sums, lead, width, first, found } = self;
        let (n_rows, mut n_found) = (ids.len(), 0);
        if width == L::COUNT {
            // A row is moved faster than it is known whether it occurs; what does not is written over by the next one.
            for row in 0..n_rows {
                let from = lead + row * width;
                ids[n_found].write((first + row) as u64);
                let occurs = is_sum(sums[from]);
                // SAFETY: as below.
                unsafe { move_row::<A, L>(sums, from, n_found * width, L::COUNT) };
                n_found += usize::from(occurs);
            }
            *found = n_found;
            return;
        }
        for start in (0..n_rows).step_by(64) {
            let mut places = 0u64;
            if width == 1 {
                let rows = lead + start..lead + n_rows.min(start + 64);
                for (at, &sum) in sums[rows].iter().enumerate() {
                    places |= u64::from(is_sum(sum)) << at;
                }
            } else {
                for at in 0..(n_rows - start).min(64) {
                    places |= u64::from(is_sum(sums[lead + (start + at) * width])) << at;
                }
            }
            if width == 1 && places.count_ones() >= MANY {
                // Each is moved, and what is not counted is written over by the next one.
                for at in 0..(n_rows - start).min(64) {
                    ids[n_found].write((first + start + at) as u64);
                    sums[n_found] = sums[lead + start + at];
                    n_found += (places >> at & 1) as usize;
                }
                continue;
            }
            for_each_bit(places, |at| {
                let row = start + at;
                ids[n_found].write((first + row) as u64);
                if width == 1 {
                    sums[n_found] = sums[lead + row];
                } else {
                    // SAFETY: the processor has the instructions of `L`, as the caller says, and rows are part of `sums`.
                    unsafe { move_row::<A, L>(sums, lead + row * width, n_found * width, width) };
                }
                n_found += 1;
            });
        }
        *found = n_found;
    }
}

/// Whether anything was added, which the bits tell: to a comparison -0 is 0.
#[inline(always)]
fn is_sum<A: Float>(sum: A) -> bool {
    match same_type::<A, f32>(&[sum]) {
        Some([sum]) => sum.to_bits() != (-0.0f32).to_bits(),
        _ => sum.as_f64().to_bits() != (-0.0f64).to_bits(),
    }
}

/// Copies a row to where it may overlap with itself, but not behind. For a row of a few vectors, which are not worth a call of `memmove`.
///
/// # Safety
///
/// The processor has the instructions of `L`, and `to <= from <= sums.len() - width`.
#[inline(always)]
unsafe fn move_row<A: Float, L: Lanes<A>>(sums: &mut [A], from: usize, to: usize, width: usize) {
    let whole = width / L::COUNT * L::COUNT;
    let sums = sums.as_mut_ptr();
    // SAFETY: as the caller says. What a vector overwrites of the row has been read: the row goes to the front, vector by vector.
    unsafe {
        for at in (0..whole).step_by(L::COUNT) {
            L::load(sums.add(from + at)).store(sums.add(to + at));
        }
        for at in whole..width {
            *sums.add(to + at) = *sums.add(from + at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::{Csr, Dense, RowSparse};
    use crate::kernels::Context;
    use crate::kernels::dot::cpu::csr_transposed_dense;

    #[test]
    fn columns_in_parts_have_the_bits_of_all_at_once() {
        let entry = |row: usize, column: usize| (column, 0.1 + (row * 31 + column * 7 % 90) as f32);
        // Rows that have entries of every part, of the last alone, of the first alone, and none.
        let rows = (0..90).map(|row| match row % 9 {
            0 => vec![],
            1 => vec![entry(row, N_COLS - 1)],
            2 => vec![entry(row, 0)],
            step => (row % 5..N_COLS).step_by(step).map(|column| entry(row, column)).collect(),
        });
        let x = Csr::from_rows(N_COLS, rows).unwrap();
        parts_have_the_bits_of_all_at_once(x.view(), N_COLS);
        let mut parts = x.into_parts();
        parts.values.fill(1.0);
        let pattern = Csr::from_parts(parts).unwrap();
        parts_have_the_bits_of_all_at_once(pattern.view().units().unwrap(), N_COLS);
        // All entries in one column, of one part; and one row that has all of them.
        for column in [0, N_COLS / 2, N_COLS - 1] {
            let rows = (0..90).map(|row| [entry(row, column)]);
            parts_have_the_bits_of_all_at_once(Csr::from_rows(N_COLS, rows).unwrap().view(), 1);
        }
        let whole: Vec<_> = (0..N_COLS).map(|column| entry(0, column)).collect();
        let rows = (0..90).map(|row| if row == 40 { whole.clone() } else { vec![] });
        parts_have_the_bits_of_all_at_once(Csr::from_rows(N_COLS, rows).unwrap().view(), N_COLS);
    }

    const N_COLS: usize = 150;

    /// Products with a matrix of 90 rows in which so many columns occur.
    fn parts_have_the_bits_of_all_at_once<V: Factor<f32>>(x: CsrView<'_, V>, n_occurring: usize) {
        let number = |row: usize, column: usize| 0.3 - ((row * 7 + column) % 17) as f32;
        for width in [1, 3, 16, 20] {
            let rows = (0..90).flat_map(|row| (0..width).map(move |column| number(row, column)));
            let rows = Dense::new([90, width], rows.collect()).unwrap();
            // The same by columns.
            let columns = (0..width).flat_map(|column| (0..90).map(move |row| number(row, column)));
            let columns = Dense::new([width, 90], columns.collect()).unwrap();
            let right = [(&rows, false), (&columns, true)];
            let cases = right.into_iter().flat_map(|y| [1, 2, 3, 5].map(|n_parts| (n_parts, y)));
            let products = Vec::from_iter(cases.map(|(n_parts, (y, transpose))| {
                let lead = 3 * n_parts - 3;
                let mut ids = vec![MaybeUninit::new(0); N_COLS];
                let mut sums = vec![-0.0f32; lead + N_COLS * width];
                let ranges =
                    (0..n_parts).map(|part| N_COLS * part / n_parts..N_COLS * (part + 1) / n_parts);
                let rhs = Matrix::new(y.view(), transpose);
                let found = in_parts(&mut ids, &mut sums, lead, x, rhs, ranges);
                sums.truncate(found * width);
                sums.iter().map(|sum| sum.to_bits()).collect::<Vec<_>>()
            }));
            assert!(products.iter().all(|bits| *bits == products[0]), "width {width}");
            assert_eq!(products[0].len(), n_occurring * width);
        }
    }

    #[test]
    fn elements_are_moved_in_parts_or_at_once() {
        for (from, to, len) in
            [(5, 5, 10), (5, 2, 10), (50, 3, 47), (50, 4, 47), (60, 0, 1), (9, 0, 0)]
        {
            for parts in [1, 2, 5] {
                let mut elements = Vec::from_iter(0..100);
                move_down(&mut elements, from, to, len, parts);
                let moved = to..to + len;
                for (place, element) in elements.iter().enumerate() {
                    let came_from = if moved.contains(&place) { place + from - to } else { place };
                    assert_eq!(*element, came_from, "{len} from {from} to {to} in {parts}");
                }
            }
        }
    }

    #[test]
    fn vectors_are_filled_in_parts() {
        let (mut singles, mut doubles) = (vec![7.0; 3], vec![7.0; 3]);
        // The longest are filled by the instruction that repeats.
        let cases = [(0, 2), (1, 4), (100, 1), (101, 4), (5, MAX_PARTS), (20_001, 1), (90_001, 2)];
        for (len, parts) in cases {
            fill(&mut singles, len, -0.0f32, parts);
            fill(&mut doubles, len, -0.0f64, parts);
            assert!(singles.iter().all(|value| value.to_bits() == (-0.0f32).to_bits()));
            assert!(doubles.iter().all(|value| value.to_bits() == (-0.0f64).to_bits()));
            assert_eq!([singles.len(), doubles.len()], [len; 2]);
        }
    }

    #[test]
    fn columns_occur_whatever_their_sums() {
        // Column 1: a term of -0; 4: a stored zero; 69: beyond the first word of marks.
        let mut rows = vec![
            vec![(1, -1.0f32), (2, 1.0), (69, 3.0)],
            vec![(2, -1.0), (4, 0.0)],
            vec![(6, 1.0), (7, 1.0), (8, 1.0), (9, 1.0), (10, 1.0), (11, 1.0)],
        ];
        rows.resize(6, (12..20).map(|column| (column, 1.0)).collect());
        for width in [1, 3, 16, 20] {
            let found = [70, 1 << 30].map(|n_cols| {
                let x = Csr::from_rows(n_cols, rows.clone()).unwrap();
                assert_eq!(fits(x.view(), width), n_cols == 70);
                let y = [[0.0, 0.0], [5.0, 5.0], [0.0, -0.0], [1.0, -0.0], [1.0, -1.0], [0.0, 0.0]];
                let y = y.map(|[first, others]| {
                    let mut row = vec![others; width];
                    row[0] = first;
                    row
                });
                let y = Dense::new([6, width], y.concat()).unwrap();
                let mut out = RowSparse::default();
                csr_transposed_dense(&mut out, x.view(), y.view(), false, &mut Context::default());
                let bits: Vec<u32> = out.values().iter().map(|value| value.to_bits()).collect();
                (out.indices().to_vec(), bits)
            });
            let [few, many] = found;
            assert_eq!(few, many, "width {width}");
            let expected: Vec<u64> = [1, 2, 4].into_iter().chain(6..20).chain([69]).collect();
            assert_eq!(few.0, expected);
            // Sums begin at 0: a term of -0 leaves that.
            assert_eq!(few.1[..width], vec![0; width]);
            assert_eq!(f32::from_bits(few.1[width]), -5.0);
        }
    }
}
