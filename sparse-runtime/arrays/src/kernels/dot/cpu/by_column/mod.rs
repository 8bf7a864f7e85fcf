//! csrᵀ · dense with a row of sums for every column, where columns are not more than entries. Which
//! of them occur shows in the sums, so that nothing is noted entry by entry: a sum begins at -0, no
//! term is -0, and so a sum is -0 until something is added.

mod parallel;
mod row_halves;

use self::parallel::each_range;
use super::gemm::Matrix;
use super::scatter;
use crate::formats::CsrView;
use crate::kernels::Parallel;
#[cfg(target_arch = "x86_64")]
use crate::kernels::column_entries::{ColumnEntries, are_added};
use crate::kernels::index_set::for_each_bit;
use crate::kernels::parallel::column_ranges;
use crate::kernels::value::ValueOf;
use nnz_device::huge_pages::reserve_large;
use nnz_device::prefetch::LINE;
use nnz_device::simd::{Lanes, Loop, same_type, widest};
#[cfg(target_arch = "x86_64")]
use nnz_device::simd::{is_f32, same_type_mut, x86};
use nnz_device::thread_pool::{self, MAX_PARTS};
use sparse_core::element::{Float, Stored};
use std::mem::MaybeUninit;
use std::ops::Range;

/// Whether this costs less than finding the columns first, then the place of each entry.
pub(super) fn fits<V: Stored>(lhs: CsrView<'_, V>, width: usize) -> bool {
    // What fits a cache is gone over quickly, occurring or not; what does not is a matter of memory
    // as well.
    const CACHED: usize = 1 << 20;
    const LARGEST: usize = 1 << 24;
    let (n_cols, nnz) = (lhs.n_cols(), lhs.nnz());
    let size = n_cols.saturating_mul(width);
    width > 0 && (size <= CACHED && n_cols / 4 <= nnz || size <= LARGEST && n_cols <= nnz)
}

/// Appends the columns that occur to `ids`, and makes `values` their rows.
pub(super) fn product<T: Float, V: ValueOf<T>>(
    ids: &mut Vec<u64>,
    values: &mut Vec<T>,
    lhs: CsrView<'_, V>,
    rhs: Matrix<'_, T>,
    parallel: Parallel,
    wide: &mut Vec<f32>,
) {
    let (n_cols, width) = (lhs.n_cols(), rhs.n_cols);
    let halves = row_halves::fits(lhs, width);
    let parts = match width {
        1 if !halves && !divides_rows() => 1,
        // As long on two threads as on one.
        2 => 1,
        _ => scatter::parts(lhs, width, parallel),
    };
    // A row of sums that lies in two lines of the cache costs twice, and the allocator aligns
    // nothing to lines.
    let slack = LINE / size_of::<T>();
    let tables = if halves { 2 } else { 1 };
    fill(values, tables * n_cols * width + slack, -T::zero(), parts);
    ids.clear();
    ids.reserve(n_cols);
    let room = &mut ids.spare_capacity_mut()[..n_cols];
    let found = T::in_accumulator(values, wide, |sums| {
        let lead = sums.as_ptr().align_offset(LINE).min(slack);
        if halves {
            return row_halves::product(room, sums, lead, lhs, rhs, parts);
        }
        let ranges = column_ranges(lhs, parts);
        each_range(room, sums, lead, width, ranges, &|ids, sums, lead, columns| {
            some_columns(ids, sums, lead, lhs, rhs, columns)
        })
    });
    // SAFETY: there is room for `n_cols`, of which so many were written.
    unsafe { ids.set_len(found) };
    values.truncate(found * width);
}

/// Whether threads that have some columns each, and so a few entries of each row, win anything
/// where an entry is a single addition. Both read all rows, and how many entries are theirs is
/// guessed wrong once a row unless a mask says it: without one, two threads took longer than one on
/// AMD's processors.
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
    thread_pool::each(&mut pieces[..parts], |_, piece| {
        if let Some(piece) = piece {
            repeat(piece, element);
        }
    });
    // SAFETY: the pieces, not more than `parts`, were written, which are the first `len` elements.
    unsafe { values.set_len(len) };
}

/// Writes the same element to each place, by the processor's instruction for that. What it has
/// written, AMD's processors keep in a cache while the data go by; of what single stores have
/// written, after another table was at work, they keep less.
#[cfg(all(target_arch = "x86_64", not(miri)))]
fn repeat<T: Float>(room: &mut [MaybeUninit<T>], element: T) {
    /// The instruction takes its time to begin.
    const MANY: usize = 1 << 16;
    const { assert!(!std::mem::needs_drop::<T>()) };
    let (len, start) = (room.len(), room.as_mut_ptr());
    if size_of_val(room) < MANY {
        return room.fill(MaybeUninit::new(element));
    }
    // SAFETY: so many elements of this size are written as there is room for; the bits are those of
    // an element. The direction is upwards wherever such code begins.
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

/// Sums the rows of some columns, of which the first is `lead` elements behind the front; moves
/// those that occur to the front, and says how many. Their columns are written to `ids`.
fn some_columns<T: Float, V: ValueOf<T>>(
    ids: &mut [MaybeUninit<u64>],
    sums: &mut [T::Accumulator],
    lead: usize,
    lhs: CsrView<'_, V>,
    rhs: Matrix<'_, T>,
    columns: Range<usize>,
) -> usize {
    let first = columns.start;
    add(&mut sums[lead..], lhs, rhs, columns);
    occurring(ids, sums, lead, rhs.n_cols, first)
}

/// Adds the entries in some columns to their rows of sums.
///
/// # Panics
///
/// If there are fewer rows than columns.
fn add<T: Float, V: ValueOf<T>>(
    sums: &mut [T::Accumulator],
    lhs: CsrView<'_, V>,
    rhs: Matrix<'_, T>,
    columns: Range<usize>,
) {
    let sums = &mut sums[..columns.len() * rhs.n_cols];
    // SAFETY: there is a row for each of the columns.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        if add_own::<T, V>(sums, lhs, rhs, columns.clone()) {
            return;
        }
        let (first, place) = (columns.start, scatter::Columns);
        scatter::some_columns::<T, V, _, true>(sums, first, lhs, rhs, columns, place);
    }
}

/// Moves the rows of sums that occur to the front, and says how many. There is a row for each of
/// `ids`, which become their columns; the first lies `lead` elements behind the front and is of
/// column `first`.
fn occurring<A: Float>(
    ids: &mut [MaybeUninit<u64>],
    sums: &mut [A],
    lead: usize,
    width: usize,
    first: usize,
) -> usize {
    assert!(lead + ids.len() * width <= sums.len(), "a row of sums a column");
    #[cfg(target_arch = "x86_64")]
    if width == 1
        && x86::Level::found() == Some(x86::Level::Avx512)
        && let Some(sums) = same_type_mut(sums)
    {
        // SAFETY: the processor has the instructions, and behind `lead` there is a sum for each id.
        return unsafe { compressed(ids, sums, lead, first) };
    }
    let mut found = 0;
    widest(Occurring { ids, sums, lead, width, first, found: &mut found });
    found
}

/// Adds the entries in some columns, not all, to sums of one column. Tells whether it did.
///
/// # Safety
///
/// There is a sum for each of the columns.
#[cfg(target_arch = "x86_64")]
unsafe fn add_own<T: Float, V: ValueOf<T>>(
    sums: &mut [T::Accumulator],
    lhs: CsrView<'_, V>,
    rhs: Matrix<'_, T>,
    columns: Range<usize>,
) -> bool {
    if const { !is_f32::<V>() && !V::IS_UNIT } {
        return false;
    }
    let is_part = columns.start > 0 || columns.end < lhs.n_cols();
    let is_own = lhs.divided().is_some_and(|divided| divided.part_of(&columns).is_some());
    if rhs.n_cols != 1 || !is_part || is_own {
        return false;
    }
    // A right side of one column is its elements, one behind the other.
    let own = ColumnEntries::of(lhs, rhs.values);
    match (own, same_type_mut(sums)) {
        (Some(own), Some(sums)) => {
            let own = own.in_columns(columns);
            // SAFETY: promised by the caller.
            unsafe { own.add::<true>(sums.as_mut_ptr()) };
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
        // SAFETY: what is read is there, or masked. Not more is written than was read, and where it
        // was read already.
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
            // A row is moved faster than it is known whether it occurs; what does not is written
            // over by the next one.
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
                    // SAFETY: the processor has the instructions of `L`, as the caller says, and
                    // rows are part of `sums`.
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

/// Copies a row to where it may overlap with itself, but not behind. For a row of a few vectors,
/// which are not worth a call of `memmove`.
///
/// # Safety
///
/// The processor has the instructions of `L`, and `to <= from <= sums.len() - width`.
#[inline(always)]
unsafe fn move_row<A: Float, L: Lanes<A>>(sums: &mut [A], from: usize, to: usize, width: usize) {
    let whole = width / L::COUNT * L::COUNT;
    let sums = sums.as_mut_ptr();
    // SAFETY: as the caller says. What a vector overwrites of the row has been read: the row goes
    // to the front, vector by vector.
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
    fn vectors_are_filled_by_ranges_of_columns() {
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
