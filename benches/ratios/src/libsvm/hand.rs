//! Text → csr by hand, of two forms of lines: those of one-hot data and those of decimal numbers
//! between 0 and 10. Numbers are read eight digits at a time, or a whole entry as one vector. Says
//! that text is wrong, and not where.

/// What a text holds.
pub struct Rows {
    pub labels: Vec<f32>,
    pub indptr: Vec<u64>,
    pub columns: Vec<u32>,
    pub values: Vec<f32>,
}

/// Reads text whose indices count from one.
pub fn parse(text: &[u8]) -> Option<Rows> {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
    {
        // SAFETY: the features are there.
        return unsafe { vectors::parse(text) };
    }
    // SAFETY: `read` asks for entries where they may be.
    read(text, |text, at| unsafe { entry(text, at) })
}

/// Reads text by a function that reads entries, given the place of one behind which there are
/// [`SLACK`] bytes.
#[inline(always)]
fn read(text: &[u8], entry: impl Fn(&[u8], usize) -> Option<(u64, f32, usize)>) -> Option<Rows> {
    // The shortest entry has four bytes: with so much room, which is not there before it is written
    // to, no place is looked for.
    let (mut labels, mut indptr) = (Vec::new(), vec![0]);
    let (mut columns, mut values) =
        (Vec::with_capacity(text.len() / 4 + 1), Vec::with_capacity(text.len() / 4 + 1));
    large_pages(&columns);
    large_pages(&values);
    let mut n = 0;
    // SAFETY: no more is read than `SLACK` bytes behind `at`, and no more entries are written than
    // there is room for.
    let done = unsafe {
        let (columns, values): (*mut u32, *mut f32) = (columns.as_mut_ptr(), values.as_mut_ptr());
        let last = text.len().saturating_sub(SLACK);
        let (mut at, mut done) = (0, 0);
        'rows: while at < last {
            let label = text.get_unchecked(at).wrapping_sub(b'0');
            if label > 9 {
                return None;
            }
            at += 1;
            let (start, mut previous) = (n, 0);
            while *text.get_unchecked(at) == b' ' {
                if at >= last {
                    n = start;
                    break 'rows;
                }
                let (index, value, end) = entry(text, at + 1)?;
                if index <= previous {
                    return None;
                }
                previous = index;
                *columns.add(n) = index as u32 - 1;
                *values.add(n) = value;
                n += 1;
                at = end;
            }
            if *text.get_unchecked(at) != b'\n' {
                return None;
            }
            at += 1;
            labels.push(f32::from(label));
            indptr.push(n as u64);
            done = at;
        }
        done
    };
    // SAFETY: they were written.
    unsafe {
        columns.set_len(n);
        values.set_len(n);
    }
    let mut rows = Rows { labels, indptr, columns, values };
    for line in text[done..].split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
        plain(&mut rows, line)?;
    }
    Some(rows)
}

/// Asks for them.
fn large_pages<V>(memory: &Vec<V>) {
    #[cfg(target_os = "linux")]
    {
        // SAFETY: the signature is that of Linux.
        unsafe extern "C" {
            fn madvise(start: *mut u8, len: usize, advice: i32) -> i32;
        }
        const HUGE_PAGE: i32 = 14;
        let start = memory.as_ptr().cast::<u8>().cast_mut();
        let offset = start.addr() % 4096;
        // SAFETY: the advice changes nothing that memory holds.
        unsafe {
            madvise(start.wrapping_sub(offset), memory.capacity() * size_of::<V>(), HUGE_PAGE)
        };
    }
    #[cfg(not(target_os = "linux"))]
    let _ = memory;
}

/// A line of any form.
fn plain(rows: &mut Rows, line: &[u8]) -> Option<()> {
    let mut words = std::str::from_utf8(line).ok()?.split_ascii_whitespace();
    rows.labels.push(words.next()?.parse().ok()?);
    for entry in words {
        let (index, value) = entry.split_once(':')?;
        rows.columns.push(index.parse::<u32>().ok()?.checked_sub(1)?);
        rows.values.push(value.parse().ok()?);
    }
    rows.indptr.push(rows.values.len() as u64);
    Some(())
}

/// The longest entry, and what is loaded behind it.
const SLACK: usize = 64;

/// Index, value, and where it ends.
///
/// # Safety
///
/// There are [`SLACK`] bytes from `at` on.
#[inline(always)]
unsafe fn entry(text: &[u8], at: usize) -> Option<(u64, f32, usize)> {
    // SAFETY: as the caller says: at most eight digits, a colon, a digit, a point and sixteen bytes
    // are looked at.
    unsafe {
        let byte = |at: usize| *text.get_unchecked(at);
        let word = |at: usize| text.as_ptr().add(at).cast::<u64>().read_unaligned();
        let digits = word(at);
        let n = (!digits.wrapping_add(0x0606_0606_0606_0606) & BIT_4).trailing_zeros() / 8;
        let lanes = (digits ^ ZEROS).unbounded_shl(64 - 8 * n);
        let colon = at + n as usize;
        if byte(colon) != b':' || n == 0 || others(lanes) != 0 {
            return None;
        }
        let index = value_of(lanes);
        if byte(colon + 1) == b'1' && matches!(byte(colon + 2), b' ' | b'\n') {
            return Some((index, 1.0, colon + 2));
        }
        let digit = byte(colon + 1).wrapping_sub(b'0');
        if digit > 9 || byte(colon + 2) != b'.' {
            return None;
        }
        let (high, low) = (word(colon + 3), word(colon + 11));
        let n = (!high & BIT_4).trailing_zeros() / 8;
        // No branch: nothing foretells whether there are more than eight.
        let m = ((!low & BIT_4).trailing_zeros() / 8) & (n / 8).wrapping_neg();
        let high = (high ^ ZEROS).unbounded_shl(64 - 8 * n);
        let low = (low ^ ZEROS).unbounded_shl(64 - 8 * m);
        let count = (n + m) as usize;
        let end = colon + 3 + count;
        if others(high) | others(low) != 0 || count > 15 || !matches!(byte(end), b' ' | b'\n') {
            return None;
        }
        let mantissa = (u64::from(digit) * POWERS[n as usize] + value_of(high))
            * POWERS[m as usize]
            + value_of(low);
        let value = mantissa as i64 as f64 / POWERS_OF_TEN.get_unchecked(count);
        // Exact but for numbers of more digits, and for those halfway between two `f32`, where a
        // second rounding may go wrong.
        if mantissa > 1 << 53 || value.to_bits() & ((1 << 29) - 1) == 1 << 28 {
            let value = std::str::from_utf8(&text[colon + 1..end]).ok()?.parse().ok()?;
            return Some((index, value, end));
        }
        Some((index, value as f32, end))
    }
}

#[cfg(target_arch = "x86_64")]
mod vectors {
    //! With AVX2.

    use super::{POWERS_OF_TEN, Rows, read};
    use std::arch::x86_64::*;

    /// All lines of a text.
    ///
    /// # Safety
    ///
    /// The processor has these instructions.
    #[target_feature(enable = "avx2,bmi1,bmi2")]
    pub unsafe fn parse(text: &[u8]) -> Option<Rows> {
        read(text, |text, at| {
            // SAFETY: as `read` says; the features are there.
            unsafe {
                let byte = |at: usize| *text.get_unchecked(at);
                let digits = text.as_ptr().add(at).cast::<u64>().read_unaligned();
                let colon = (!digits.wrapping_add(0x0606_0606_0606_0606) & super::BIT_4)
                    .trailing_zeros() as usize
                    / 8
                    + at;
                // The entries of one-hot data wait for less so.
                let is_one = byte(colon + 1) == b'1' && matches!(byte(colon + 2), b' ' | b'\n');
                if is_one || at < 16 { super::entry(text, at) } else { decimal(text, at) }
            }
        })
    }

    /// A run of 16 bytes of this that begins at `n` keeps the last `n` bytes of another, less the
    /// character `0`.
    static LAST: [u8; 32] = {
        let mut masks = [0; 32];
        let mut n = 16;
        while n < 32 {
            masks[n] = 0x0f;
            n += 1;
        }
        masks
    };

    /// As [`entry`](super::entry), of a decimal number behind at least 16 bytes.
    ///
    /// # Safety
    ///
    /// The processor has these instructions, and at least 16 bytes are before `at`.
    #[target_feature(enable = "avx2,bmi1,bmi2")]
    #[inline]
    unsafe fn decimal(text: &[u8], at: usize) -> Option<(u64, f32, usize)> {
        // SAFETY: as the caller says: at most 32 bytes from `at` on are looked at, and 16 before
        // what lies among them.
        unsafe {
            let text = text.as_ptr().add(at);
            let byte = |at: u32| *text.add(at as usize);
            let lanes = _mm256_xor_si256(_mm256_loadu_si256(text.cast()), _mm256_set1_epi8(0x30));
            let others = _mm256_cmpeq_epi8(_mm256_max_epu8(lanes, _mm256_set1_epi8(10)), lanes);
            // The colon, the point, and what follows.
            let colons = _mm256_movemask_epi8(others) as u32;
            let points = colons & colons.wrapping_sub(1);
            let ends = points & points.wrapping_sub(1);
            let [colon, point, end] = [colons, points, ends].map(u32::trailing_zeros);
            let count = end.wrapping_sub(point + 1);
            if end == 32
                || colon.wrapping_sub(1) > 7
                || point != colon + 2
                || count.wrapping_sub(1) > 14
            {
                return None;
            }
            if byte(colon) != b':' || byte(point) != b'.' || !matches!(byte(end), b' ' | b'\n') {
                return None;
            }
            let last = |end: u32, n: u32| {
                let mask = _mm_loadu_si128(LAST.as_ptr().add(n as usize).cast());
                _mm_and_si128(_mm_loadu_si128(text.add(end as usize).sub(16).cast()), mask)
            };
            let digits = _mm256_set_m128i(last(end, count), last(colon, colon));
            let pairs = _mm256_maddubs_epi16(digits, _mm256_set1_epi16(0x010a));
            let fours = _mm256_madd_epi16(pairs, _mm256_set1_epi32(0x0001_0064));
            let fours = _mm256_packus_epi32(fours, fours);
            let eights = _mm256_madd_epi16(fours, _mm256_set1_epi32(0x0001_2710));
            let index = _mm_cvtsi128_si64(_mm256_castsi256_si128(eights)) as u64 >> 32;
            let fraction = _mm_cvtsi128_si64(_mm256_extracti128_si256::<1>(eights)) as u64;
            let fraction = (fraction & u64::from(u32::MAX)) * 100_000_000 + (fraction >> 32);
            let power = *POWERS_OF_TEN.get_unchecked(count as usize);
            let mantissa = u64::from(byte(colon + 1) - b'0') * power as u64 + fraction;
            let value = mantissa as i64 as f64 / power;
            // As for `entry`.
            if mantissa > 1 << 53 || value.to_bits() & ((1 << 29) - 1) == 1 << 28 {
                return super::entry(std::slice::from_raw_parts(text, super::SLACK), 0)
                    .map(|(index, value, len)| (index, value, at + len));
            }
            Some((index, value as f32, at + end as usize))
        }
    }
}

const ZEROS: u64 = 0x3030_3030_3030_3030;
/// What digits have, and blanks, line ends and, six further, colons have not.
const BIT_4: u64 = 0x1010_1010_1010_1010;
const POWERS: [u64; 9] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];
const POWERS_OF_TEN: [f64; 16] =
    [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15];

/// Not 0 if a lane is above 9.
#[inline(always)]
fn others(lanes: u64) -> u64 {
    (lanes.wrapping_add(0x7676_7676_7676_7676) | lanes) & 0x8080_8080_8080_8080
}

/// Eight digits, the lowest lane first.
#[inline(always)]
fn value_of(lanes: u64) -> u64 {
    let pairs = lanes.wrapping_mul(10).wrapping_add(lanes >> 8);
    let high = (pairs & 0x0000_00ff_0000_00ff).wrapping_mul(0x000f_4240_0000_0064);
    let low = ((pairs >> 16) & 0x0000_00ff_0000_00ff).wrapping_mul(0x0000_2710_0000_0001);
    high.wrapping_add(low) >> 32
}
