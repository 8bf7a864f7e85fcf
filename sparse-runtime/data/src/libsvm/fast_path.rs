//! Fast path for entries of common forms: a blank, up to eight digits, a colon, and a 1 or a number
//! of few digits. The general loop reads entries of other forms, and faulty ones.

use super::super::number::{SHORT_DECIMAL, digits_before_colon, number, short_decimal};
use super::super::text::ends_here;
#[cfg(target_arch = "x86_64")]
use nnz_device::simd::x86;
use sparse_core::element::Float;
use std::mem::MaybeUninit;

/// Appends the entries of a sample from `block[at]` on, whose columns are indices less `first`.
/// Indices must be at least `smallest`, which is updated to the last one and 1. Returns the start
/// of the first entry of another form.
#[inline(always)]
pub(super) fn common_entries<T: Float>(
    block: &[u8],
    mut at: usize,
    (columns, values): (&mut Vec<u32>, &mut Vec<T>),
    smallest: &mut u64,
    first: u32,
) -> usize {
    /// Memory for at least this number of entries, so that it is checked about once a sample.
    const RESERVED_ENTRIES: usize = 64;
    loop {
        columns.reserve(RESERVED_ENTRIES);
        values.reserve(RESERVED_ENTRIES);
        let (before, spare) = (columns.len(), values.spare_capacity_mut());
        let most = spare.len().min(columns.capacity() - before);
        let spare_columns = &mut columns.spare_capacity_mut()[..most];
        let mut entries = Entries {
            columns: spare_columns,
            values: &mut spare[..most],
            n: 0,
            smallest: *smallest,
            first,
        };
        at = entries.read(block, at);
        let n = entries.n;
        *smallest = entries.smallest;
        // SAFETY: `n` elements were written to the spare memory of each.
        unsafe {
            columns.set_len(before + n);
            values.set_len(values.len() + n);
        }
        if n < most {
            return at;
        }
    }
}

/// The output for entries, and the bound for the next index.
struct Entries<'a, T> {
    columns: &'a mut [MaybeUninit<u32>],
    /// As long as the columns.
    values: &'a mut [MaybeUninit<T>],
    /// The number written of both.
    n: usize,
    smallest: u64,
    first: u32,
}

impl<T: Float> Entries<'_, T> {
    /// Entries as long as their form is common and memory is left.
    #[inline(always)]
    fn read(&mut self, block: &[u8], mut at: usize) -> usize {
        loop {
            at = self.ones(block, at);
            if block.get(at) != Some(&b' ') {
                return at;
            }
            let start = at;
            #[cfg(target_arch = "x86_64")]
            if x86::Level::found().is_some() {
                // SAFETY: found; every level has the instructions.
                at = unsafe { self.decimals(block, at) };
            }
            if at == start {
                at = self.decimal(block, at);
            }
            if at == start || block.get(at) != Some(&b' ') {
                return at;
            }
        }
    }

    /// True unless memory is used up, or the index is not above the previous one.
    #[inline(always)]
    fn push(&mut self, index: u64, value: T) -> bool {
        if self.n >= self.columns.len() || self.n >= self.values.len() || index < self.smallest {
            return false;
        }
        self.columns[self.n].write((index as u32).wrapping_sub(self.first));
        self.values[self.n].write(value);
        self.n += 1;
        self.smallest = index + 1;
        true
    }

    /// Entries whose value is written `1`, as in one-hot data. The next entry depends on the length
    /// of the index alone.
    #[inline(always)]
    fn ones(&mut self, block: &[u8], mut at: usize) -> usize {
        // With so many bytes left, nothing that is looked at lies behind the end.
        while let Some([blank, word @ ..]) = block[at..].first_chunk::<12>() {
            let Some((index, n)) = word.first_chunk().and_then(|word| digits_before_colon(*word))
            else {
                break;
            };
            let is_one = word[n] == b':' && word[n + 1] == b'1' && is_common_end(word[n + 2]);
            if *blank != b' ' || !is_one || !self.push(index, T::one()) {
                break;
            }
            at += n + 3;
        }
        at
    }

    /// One entry, with a number of any form.
    #[inline(always)]
    fn decimal(&mut self, block: &[u8], at: usize) -> usize {
        let Some(bytes) = block[at..].first_chunk::<{ 10 + SHORT_DECIMAL }>() else { return at };
        let [blank, word @ ..] = bytes;
        let Some((index, n)) = word.first_chunk().and_then(|word| digits_before_colon(*word))
        else {
            return at;
        };
        if *blank != b' ' || word[n] != b':' {
            return at;
        }
        let start = at + 2 + n;
        let number = match word[n + 1..].first_chunk().and_then(short_decimal) {
            Some((value, len)) if is_common_end(block[start + len]) => Some((value, start + len)),
            _ => any_number(block, start),
        };
        match number {
            Some((value, end)) if self.push(index, value) => end,
            _ => at,
        }
    }
}

/// A number of any form, and its end. Out of line, so that the loop over common forms keeps its
/// registers.
#[inline(never)]
fn any_number<T: Float>(block: &[u8], at: usize) -> Option<(T, usize)> {
    let (value, after) = number(&block[at..]).ok()?;
    ends_here(after).then(|| (value, block.len() - after.len()))
}

/// The bytes that follow almost all numbers.
#[inline(always)]
fn is_common_end(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n')
}

#[cfg(target_arch = "x86_64")]
mod vectors {
    //! With AVX2: all of an entry is in one register, and its digits are added up side by side.

    use super::super::super::number::{SHIFT, exact};
    use super::{Entries, is_common_end};
    use sparse_core::element::Float;
    use std::arch::x86_64::*;

    /// The bytes before an entry's first digit that are loaded with it.
    const BEFORE: usize = 16;

    /// The bytes of an entry in which its end is looked for, from its first digit on.
    const LEN: usize = 32;

    /// The bytes around an entry's first digit that have to be there: a power of two, so that any
    /// position can be made one of them.
    type Around = [u8; 64];

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

    impl<T: Float> Entries<'_, T> {
        /// Entries whose value is up to eight digits, or a digit, a point and one to fifteen more,
        /// perhaps with a minus in front.
        ///
        /// # Safety
        ///
        /// The processor has AVX2, BMI1 and BMI2.
        #[target_feature(enable = "avx2,bmi1,bmi2")]
        pub(super) fn decimals(&mut self, block: &[u8], mut at: usize) -> usize {
            // With so many bytes around, nothing that is looked at lies outside.
            while at + 1 >= BEFORE
                && let Some(bytes) = block[at + 1 - BEFORE..].first_chunk()
                && bytes[BEFORE - 1] == b' '
                && let Some((index, value, len)) = entry(bytes)
                && self.push(index, value)
            {
                at += 1 + len;
            }
            at
        }
    }

    /// Index, value and length of the entry behind the first [`BEFORE`] bytes.
    ///
    /// # Safety
    ///
    /// The processor has AVX2, BMI1 and BMI2.
    #[target_feature(enable = "avx2,bmi1,bmi2")]
    #[inline]
    fn entry<T: Float>(bytes: &Around) -> Option<(u64, T, usize)> {
        let byte = |at: usize| bytes[(BEFORE + at) % bytes.len()];
        // What the next entry waits for is where this one ends: found without any branch, and
        // before anything is looked at.
        let colon = others(bytes);
        let after_index = colon & colon.wrapping_sub(1);
        let n = colon.trailing_zeros() as usize;
        if byte(n) != b':' || n.wrapping_sub(1) >= 8 {
            return None;
        }
        // Two loops in effect: to add the sign's length would make all that follows wait for it.
        if byte(n + 1) == b'-' {
            let after_sign = after_index & after_index.wrapping_sub(1);
            let (index, value, end) = number::<T>(bytes, after_sign, n, n + 2)?;
            return Some((index, -value, end));
        }
        number(bytes, after_index, n, n + 1)
    }

    /// The bits of the bytes behind the first [`BEFORE`] that are no digits.
    ///
    /// # Safety
    ///
    /// The processor has AVX2, BMI1 and BMI2.
    #[target_feature(enable = "avx2,bmi1,bmi2")]
    #[inline]
    fn others(bytes: &Around) -> u32 {
        // SAFETY: so many bytes are there.
        let text = unsafe { _mm256_loadu_si256(bytes.as_ptr().add(BEFORE).cast()) };
        let lanes = _mm256_xor_si256(text, _mm256_set1_epi8(b'0'.cast_signed()));
        let is_other = _mm256_cmpeq_epi8(_mm256_max_epu8(lanes, _mm256_set1_epi8(10)), lanes);
        _mm256_movemask_epi8(is_other).cast_unsigned()
    }

    /// The index, of `n` digits, the number that begins at `start`, and where it ends; `others` are
    /// the bytes from there on that are no digits.
    ///
    /// # Safety
    ///
    /// The processor has AVX2, BMI1 and BMI2.
    #[target_feature(enable = "avx2,bmi1,bmi2")]
    #[inline]
    fn number<T: Float>(
        bytes: &Around,
        others: u32,
        n: usize,
        start: usize,
    ) -> Option<(u64, T, usize)> {
        let byte = |at: usize| bytes[(BEFORE + at) % bytes.len()];
        let point = others.trailing_zeros() as usize;
        let (end, n_digits, digit, exponent) = if byte(point) == b'.' {
            let end = (others & others.wrapping_sub(1)).trailing_zeros() as usize;
            let n_digits = end.wrapping_sub(point + 1);
            if point != start + 1 || n_digits.wrapping_sub(1) >= 15 {
                return None;
            }
            (end, n_digits, u64::from(byte(start) & 0x0f), -(n_digits as i64))
        } else {
            let n_digits = point.wrapping_sub(start);
            if n_digits.wrapping_sub(1) >= 8 {
                return None;
            }
            (point, n_digits, 0, 0)
        };
        if end >= LEN || !is_common_end(byte(end)) {
            return None;
        }
        let (index, high, low) = digits_before(bytes, [(n, n), (end, n_digits)]);
        let mantissa = digit * SHIFT[n_digits] + high * SHIFT[8] + low;
        Some((index, exact(mantissa, exponent)?, end))
    }

    /// Two numbers by where they end and how many digits they have, at most eight and sixteen: the
    /// first, and the upper and lower eight digits of the second.
    ///
    /// # Safety
    ///
    /// The processor has AVX2, BMI1 and BMI2.
    #[target_feature(enable = "avx2,bmi1,bmi2")]
    #[inline]
    fn digits_before(bytes: &Around, numbers: [(usize, usize); 2]) -> (u64, u64, u64) {
        let [first, second] = numbers.map(|(end, n)| {
            let (end, n) = (end.min(LEN), n.min(16));
            // SAFETY: 16 bytes begin at `end` of all that are there, and at `n` of the masks.
            let (text, mask) = unsafe {
                let load = |from: *const u8| _mm_loadu_si128(from.cast());
                (load(bytes.as_ptr().add(end)), load(LAST.as_ptr().add(n)))
            };
            _mm_and_si128(text, mask)
        });
        // Tens and ones, then hundreds of those, then ten thousands.
        let digits = _mm256_set_m128i(second, first);
        let pairs = _mm256_maddubs_epi16(digits, _mm256_set1_epi16(0x010a));
        let fours = _mm256_madd_epi16(pairs, _mm256_set1_epi32(0x0001_0064));
        let fours = _mm256_packus_epi32(fours, fours);
        let eights = _mm256_madd_epi16(fours, _mm256_set1_epi32(0x0001_2710));
        let word = |half| _mm_cvtsi128_si64(half).cast_unsigned();
        let first = word(_mm256_castsi256_si128(eights));
        let second = word(_mm256_extracti128_si256::<1>(eights));
        (first >> 32, second & u64::from(u32::MAX), second >> 32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The entries of the row that begins `block`, behind its label of one character: those that
    /// `read` reads, and each that it leaves as one of any form.
    fn entries<T: Float>(
        block: &[u8],
        read: impl Fn(&mut Entries<'_, T>, &[u8], usize) -> usize,
    ) -> Vec<(u32, T)> {
        let (mut columns, mut values) = ([MaybeUninit::uninit(); 64], [MaybeUninit::uninit(); 64]);
        let (columns, values) = (&mut columns[..], &mut values[..]);
        let mut entries = Entries { columns, values, n: 0, smallest: 0, first: 0 };
        let mut at = 1;
        while block[at] == b' ' {
            let start = at;
            at = read(&mut entries, block, at);
            if at == start {
                at = entries.decimal(block, at);
                assert!(at > start, "{}", block[start..].escape_ascii());
            }
        }
        let written = entries.columns.iter().zip(&*entries.values).take(entries.n);
        // SAFETY: so many were written.
        written
            .map(|(column, value)| unsafe { (column.assume_init(), value.assume_init()) })
            .collect()
    }

    fn number() -> impl Strategy<Value = String> {
        prop_oneof![
            Just("1".to_owned()),
            "-?[0-9]{1,9}",
            "-?[0-9]\\.[0-9]{1,17}",
            "[+-]?[0-9]{1,3}\\.[0-9]{0,3}(e-?[0-9])?",
        ]
    }

    proptest! {
        /// All loops find what the standard library does.
        #[test]
        fn entries_of_all_forms(row in proptest::collection::vec((1u32..2000, number()), 0..30)) {
            let (mut text, mut index) = ("1".to_owned(), 0);
            let (mut narrow, mut wide) = (Vec::new(), Vec::new());
            for (step, number) in row {
                index += step;
                text += &format!(" {index}:{number}");
                narrow.push((index, number.parse::<f32>().unwrap()));
                wide.push((index, number.parse::<f64>().unwrap()));
            }
            // What the loops look at behind the last entry.
            text += &format!("\n{:80}", "");
            let block = text.as_bytes();
            prop_assert_eq!(&entries(block, |entries, block, at| entries.ones(block, at)), &narrow);
            prop_assert_eq!(&entries(block, |entries, block, at| entries.read(block, at)), &wide);
            #[cfg(target_arch = "x86_64")]
            if x86::Level::found().is_some() {
                // SAFETY: found.
                let found = entries(block, |entries, block, at| unsafe { entries.decimals(block, at) });
                prop_assert_eq!(&found, &narrow);
                // SAFETY: found.
                let found = entries(block, |entries, block, at| unsafe { entries.decimals(block, at) });
                prop_assert_eq!(&found, &wide);
            }
        }
    }

    #[test]
    fn what_is_wrong_or_does_not_fit_is_left() {
        let text = format!("1 3:1 5:0.25 4:1 7:2{:80}", "");
        let mut columns = Vec::new();
        let mut values: Vec<f32> = Vec::new();
        let mut smallest = 1;
        let at = common_entries(text.as_bytes(), 1, (&mut columns, &mut values), &mut smallest, 1);
        assert_eq!((&text[at..at + 4], smallest), (" 4:1", 6));
        assert_eq!((columns, values), (vec![2, 4], vec![1.0, 0.25]));

        let (mut columns, mut values) = ([MaybeUninit::uninit(); 2], [MaybeUninit::uninit(); 2]);
        let (columns, values) = (&mut columns[..], &mut values[..]);
        let mut entries = Entries::<f32> { columns, values, n: 0, smallest: 0, first: 0 };
        let text = format!("a label 3:0.5 5:0.25 7:0.125{:80}", "");
        assert_eq!(&text[entries.read(text.as_bytes(), 7)..][..8], " 7:0.125");
        assert_eq!(entries.n, 2);
    }
}
