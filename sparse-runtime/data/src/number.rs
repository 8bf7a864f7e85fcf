//! Decimal numbers from bytes, and back: exact, and fast for the short numbers of data files.
//!
//! Results equal those of `str::parse` bit for bit. A number of few digits takes the fast path of
//! Clinger, "How to read floating point numbers accurately" (PLDI 1990): where mantissa and power
//! of ten are both exact in `f64`, one multiplication or division rounds correctly. The standard
//! library reads everything else.

use sparse_core::element::Float;
use sparse_core::storage::ElementType;
use std::io::{self, Write};

/// The powers of ten that are exact in `f64`.
const POWERS_OF_TEN: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
];

/// The most decimal digits that always fit a `u64`.
pub(crate) const MAX_DIGITS: usize = 19;

/// The powers of ten that fit a `u64`.
pub(crate) const SHIFT: [u64; MAX_DIGITS + 1] = {
    let mut powers = [1; MAX_DIGITS + 1];
    let mut i = 1;
    while i < powers.len() {
        powers[i] = powers[i - 1] * 10;
        i += 1;
    }
    powers
};

/// Reads leading decimal digits.
///
/// Returns their value, which is meaningless above [`MAX_DIGITS`] digits, their number and the text
/// after them.
#[inline(always)]
pub(crate) fn digits(bytes: &[u8]) -> (u64, usize, &[u8]) {
    let (mut value, mut count, mut rest) = digits8(bytes);
    if count == 8 {
        loop {
            let (next, n, after) = digits8(rest);
            value = value.wrapping_mul(SHIFT[n]).wrapping_add(next);
            count += n;
            rest = after;
            if n < 8 {
                break;
            }
        }
    }
    (value, count, rest)
}

/// Reads up to eight leading digits at once: the bytes are the lanes of one register.
#[inline(always)]
fn digits8(bytes: &[u8]) -> (u64, usize, &[u8]) {
    match bytes.first_chunk::<8>() {
        Some(chunk) => {
            let (value, count) = digits_of_chunk(*chunk);
            (value, count, &bytes[count..])
        }
        None => {
            let mut chunk = [0; 8];
            chunk[..bytes.len()].copy_from_slice(bytes);
            let (value, count) = digits_of_chunk(chunk);
            (value, count, &bytes[count..])
        }
    }
}

/// Reads the leading digits of eight bytes: their value and number.
#[inline(always)]
fn digits_of_chunk(chunk: [u8; 8]) -> (u64, usize) {
    let lanes = u64::from_le_bytes(chunk) ^ ZEROS;
    let count = others(lanes).trailing_zeros() / 8;
    // The digits move to the end, zeros come in front.
    (value_of(lanes.unbounded_shl(64 - 8 * count)), count as usize)
}

/// Reads the digits in front of a colon: their value and number, one to eight. `None` if other
/// bytes occur; the byte behind eight digits is not checked.
#[inline(always)]
pub(crate) fn digits_before_colon(chunk: [u8; 8]) -> Option<(u64, usize)> {
    // What a reader's next step waits for is the number of digits alone, so that it is found in as
    // few operations as can be: six more than a digit, unlike six more than a colon, has bit 4.
    // What else has it is refused afterwards.
    let word = u64::from_le_bytes(chunk);
    let count = (!word.wrapping_add(0x0606_0606_0606_0606) & BIT_4).trailing_zeros() / 8;
    let lanes = (word ^ ZEROS).unbounded_shl(64 - 8 * count);
    (count > 0 && others(lanes) == 0).then(|| (value_of(lanes), count as usize))
}

/// The character `0` in each of eight bytes: a digit less that is 0 to 9.
const ZEROS: u64 = 0x3030_3030_3030_3030;

/// The bit that digits have, and blanks, line ends, signs, points and `e` do not.
const BIT_4: u64 = 0x1010_1010_1010_1010;

/// Sets the high bit of the lowest lane above 9. Lanes above that may be wrong: a lane that
/// overflows is itself no digit.
#[inline(always)]
fn others(lanes: u64) -> u64 {
    (lanes.wrapping_add(0x7676_7676_7676_7676) | lanes) & 0x8080_8080_8080_8080
}

/// The number whose digits the lanes are, the lowest lane first.
#[inline(always)]
fn value_of(lanes: u64) -> u64 {
    let pairs = lanes.wrapping_mul(10).wrapping_add(lanes >> 8);
    const EVERY_FOURTH: u64 = 0x0000_00ff_0000_00ff;
    let high = (pairs & EVERY_FOURTH).wrapping_mul(0x000f_4240_0000_0064);
    let low = ((pairs >> 16) & EVERY_FOURTH).wrapping_mul(0x0000_2710_0000_0001);
    high.wrapping_add(low) >> 32
}

/// The number of bytes that [`short_decimal`] reads, and may read.
pub(crate) const SHORT_DECIMAL: usize = 24;

/// Reads a number of the most frequent form: a digit, a point, one to fifteen digits, and an
/// optional minus in front. Returns it and its length. `None` for anything else, which may be a
/// number as well.
#[inline(always)]
pub(crate) fn short_decimal<T: Float>(bytes: &[u8; SHORT_DECIMAL]) -> Option<(T, usize)> {
    // Two loops in effect: to add the sign's length would make all that follows wait for it.
    if bytes[0] == b'-' {
        let (value, len) = short_unsigned::<T>(bytes[1..].first_chunk()?)?;
        return Some((-value, 1 + len));
    }
    short_unsigned(bytes.first_chunk()?)
}

#[inline(always)]
fn short_unsigned<T: Float>(bytes: &[u8; SHORT_DECIMAL - 1]) -> Option<(T, usize)> {
    let digit = bytes[0].wrapping_sub(b'0');
    if digit > 9 || bytes[1] != b'.' {
        return None;
    }
    let word = |at: usize| Some(u64::from_le_bytes(*bytes[at..].first_chunk()?));
    let words = [word(2)?, word(10)?];
    let counts = words.map(|word| (!word & BIT_4).trailing_zeros() / 8);
    // Without a branch on whether there are more than eight, which nothing foretells: then all
    // ones, else 0.
    let more = (counts[0] / 8).wrapping_neg();
    let counts = [counts[0], counts[1] & more];
    let [high, low] = [0, 1].map(|n| (words[n] ^ ZEROS).unbounded_shl(64 - 8 * counts[n]));
    let count = (counts[0] + counts[1]) as usize;
    if others(high) | others(low) != 0 || !(1..16).contains(&count) {
        return None;
    }
    let [above, below] = counts.map(|count| SHIFT[count as usize]);
    let mantissa = (u64::from(digit) * above + value_of(high)) * below + value_of(low);
    Some((exact(mantissa, -(count as i64))?, 2 + count))
}

/// The reason why bytes are not a finite number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotANumber {
    /// No number begins here.
    Syntax,
    /// `nan` or `inf`.
    NotFinite,
    /// A number beyond the range of the type.
    BeyondRange,
}

/// Reads the number at the beginning of `bytes`; returns it and the text after it.
///
/// The grammar is that of `str::parse` without the words: `[+-] digits [. digits] [e [+-] digits]`,
/// with at least one digit before or after the point.
#[inline(always)]
pub(crate) fn number<T: Float>(bytes: &[u8]) -> Result<(T, &[u8]), NotANumber> {
    let (negative, unsigned) = match bytes {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, bytes),
    };
    let (mut mantissa, mut n_digits, mut rest) = digits(unsigned);
    let mut exponent = 0i64;
    if let [b'.', after @ ..] = rest {
        let (fraction, n, after) = digits(after);
        if n_digits + n <= MAX_DIGITS {
            mantissa = mantissa * SHIFT[n] + fraction;
        }
        n_digits += n;
        exponent = -(n as i64);
        rest = after;
    }
    if n_digits == 0 {
        return Err(word(unsigned));
    }
    if let [b'e' | b'E', after @ ..] = rest {
        let (negative, after) = match after {
            [b'-', after @ ..] => (true, after),
            [b'+', after @ ..] => (false, after),
            _ => (false, after),
        };
        let (value, n, after) = digits(after);
        if n == 0 {
            return Err(NotANumber::Syntax);
        }
        // Beyond four digits the standard library decides; the bound keeps the sum in range.
        let value = if n <= 4 { value as i64 } else { 10_000 };
        exponent += if negative { -value } else { value };
        rest = after;
    }
    if n_digits <= MAX_DIGITS
        && let Some(value) = exact::<T>(mantissa, exponent)
    {
        return Ok((if negative { -value } else { value }, rest));
    }
    let text = &bytes[..bytes.len() - rest.len()];
    by_the_standard_library(text).map(|value| (value, rest))
}

/// `mantissa * 10^exponent`, correctly rounded, or `None` if that takes more than one rounding.
#[inline(always)]
pub(crate) fn exact<T: Float>(mantissa: u64, exponent: i64) -> Option<T> {
    if mantissa > 1 << f64::MANTISSA_DIGITS {
        return None;
    }
    let power = *POWERS_OF_TEN.get(exponent.unsigned_abs() as usize)?;
    // Of a signed number the conversion is one instruction.
    let mantissa = mantissa as i64 as f64;
    let value = if exponent < 0 { mantissa / power } else { mantissa * power };
    // To `f32` there is a second rounding. It goes wrong only where the first ended exactly halfway
    // between two
    // `f32`; all values that come here are zero or normal in `f32`, where halfway shows in the
    // dropped bits.
    const DROPPED: u32 = f64::MANTISSA_DIGITS - f32::MANTISSA_DIGITS;
    const HALFWAY: u64 = 1 << (DROPPED - 1);
    let dropped = value.to_bits() & ((1 << DROPPED) - 1);
    if T::TYPE == ElementType::F32 && dropped == HALFWAY {
        return None;
    }
    // A half may be too short for them.
    let has_range = matches!(T::TYPE, ElementType::F32 | ElementType::F64);
    Some(T::of(value)).filter(|value| has_range || value.is_finite())
}

#[cold]
fn by_the_standard_library<T: Float>(text: &[u8]) -> Result<T, NotANumber> {
    let text = str::from_utf8(text).map_err(|_| NotANumber::Syntax)?;
    // Rounded once, to the result's type: through `f64` an `f32` could be off by one.
    let value = if T::TYPE == ElementType::F32 {
        text.parse::<f32>().map(|value| T::of(f64::from(value)))
    } else {
        text.parse::<f64>().map(T::of)
    };
    match value {
        Ok(value) if value.is_finite() => Ok(value),
        // `nan` and `inf` are other texts.
        Ok(_) => Err(NotANumber::BeyondRange),
        Err(_) => Err(NotANumber::Syntax),
    }
}

/// Distinguishes `nan` and `inf` from other text.
#[cold]
fn word(bytes: &[u8]) -> NotANumber {
    let begins_with =
        |word: &[u8]| bytes.get(..word.len()).is_some_and(|head| head.eq_ignore_ascii_case(word));
    if begins_with(b"nan") || begins_with(b"inf") {
        NotANumber::NotFinite
    } else {
        NotANumber::Syntax
    }
}

/// The shortest decimal form that reads back to the same bits.
pub(crate) fn write_number<T: Float>(
    writer: &mut (impl Write + ?Sized),
    value: T,
) -> io::Result<()> {
    let value = value.as_f64();
    let size = value.abs();
    // Of an `f32` the shortest form is shorter than that of the same number as `f64`.
    let narrow = T::TYPE == ElementType::F32;
    match (size == 0.0 || (1e-5..1e16).contains(&size), narrow) {
        (true, true) => write!(writer, "{}", value as f32),
        (true, false) => write!(writer, "{value}"),
        (false, true) => write!(writer, "{:e}", value as f32),
        (false, false) => write!(writer, "{value:e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Why a text without a finite value is no number.
    fn not_finite(text: &str) -> NotANumber {
        if text.contains(|c: char| c.is_ascii_digit()) {
            NotANumber::BeyondRange
        } else {
            NotANumber::NotFinite
        }
    }

    /// Both types against the standard library, bit for bit; the whole text must be read.
    #[track_caller]
    fn same(text: &str) {
        match text.parse::<f64>() {
            Ok(expected) if expected.is_finite() => {
                let (found, rest) = number::<f64>(text.as_bytes()).unwrap();
                assert_eq!(found.to_bits(), expected.to_bits(), "f64 {text}");
                assert!(rest.is_empty(), "{text}: {} bytes left", rest.len());
            }
            Ok(_) => {
                assert_eq!(number::<f64>(text.as_bytes()), Err(not_finite(text)), "{text}")
            }
            Err(_) => assert!(
                number::<f64>(text.as_bytes()).is_ok_and(|(_, rest)| !rest.is_empty())
                    || number::<f64>(text.as_bytes()) == Err(NotANumber::Syntax),
                "{text}"
            ),
        }
        // The fast path says what the general one does, or nothing; an exponent is not for it.
        let mantissa = text.split(['e', 'E']).next().unwrap_or_default();
        for tail in [" 77:7777777777777777777777", "\n1 1:1 2:1                 "] {
            let bytes = format!("{text}{tail}");
            let Some(chunk) = bytes.as_bytes().first_chunk() else { continue };
            if let Some((value, len)) = short_decimal::<f32>(chunk) {
                let expected: f32 = mantissa.parse().unwrap();
                assert_eq!((len, value.to_bits()), (mantissa.len(), expected.to_bits()), "{text}");
            }
            if let Some((value, len)) = short_decimal::<f64>(chunk) {
                let expected: f64 = mantissa.parse().unwrap();
                assert_eq!((len, value.to_bits()), (mantissa.len(), expected.to_bits()), "{text}");
            }
        }
        if let Ok(expected) = text.parse::<f32>() {
            match number::<f32>(text.as_bytes()) {
                Ok((found, _)) => assert_eq!(found.to_bits(), expected.to_bits(), "f32 {text}"),
                Err(error) => {
                    assert!(!expected.is_finite(), "{text}");
                    assert_eq!(error, not_finite(text), "{text}");
                }
            }
        }
    }

    #[test]
    fn forms() {
        for text in [
            "0",
            "-0",
            "+1",
            "-1",
            "1.",
            ".5",
            "+.5e1",
            "1e5",
            "1E-5",
            "1e+5",
            "00000000000000000000000001",
            "12345678",
            "123456789",
            "1234567890123456",
            "9999999999999999999",
            "18446744073709551615",
            "18446744073709551616",
            "9007199254740993",
            "0.000000000000000000000000000000000000001",
            "1e22",
            "1e23",
            "1e-22",
            "1e-23",
            "1e308",
            "1e309",
            "-1e309",
            "1e39",
            "1e-46",
            "1e-400",
            "1e99999",
            "1e-99999",
            "0e99999999999999999999",
            "4.9e-324",
            "1.17549435e-38",
            "3.4028235e38",
            "3.4028236e38",
            "3.40282357e38",
            "nan",
            "inf",
            "-inf",
            "infinity",
            "NaN",
            "",
            "+",
            ".",
            "e5",
            "1e",
            "1e+",
            "--1",
            "x",
            "1x",
            "0x10",
        ] {
            same(text);
        }
    }

    #[test]
    fn halfway_between_two_f32() {
        // 2^24 + 1 lies exactly between two f32; a digit far behind decides.
        for text in [
            "16777217",
            "16777217.000000001",
            "16777216.999999999",
            "1.00000005960464477539",
            "0.50000002980232238",
        ] {
            same(text);
        }
    }

    #[test]
    fn stops_where_the_number_ends() {
        let (value, rest) = number::<f32>(b"0.25 7:1").unwrap();
        assert_eq!((value, rest), (0.25, &b" 7:1"[..]));
        let (value, rest) = number::<f32>(b"1:1").unwrap();
        assert_eq!((value, rest), (1.0, &b":1"[..]));
    }

    #[test]
    fn the_usual_numbers_are_short() {
        let chunk = |text: &str| *format!("{text:<30}").as_bytes().first_chunk().unwrap();
        assert_eq!(short_decimal(&chunk("0.25")), Some((0.25f32, 4)));
        assert_eq!(short_decimal(&chunk("-7.123456789")), Some((-7.123456789, 12)));
        assert_eq!(short_decimal(&chunk("0.123456789012345")), Some((0.123456789012345, 17)));
        for other in
            ["1", ".5", "1.", "10.5", "+0.5", "1.5x", "1.5e3", "0.1234567890123456", "", "-"]
        {
            let found = short_decimal::<f64>(&chunk(other));
            // What follows the number is for the caller to look at.
            assert_eq!(found, (other == "1.5e3").then_some((1.5, 3)), "{other}");
        }
    }

    #[test]
    fn digits_in_front_of_a_colon() {
        let all = "12345678";
        for n in 0..=8 {
            let text = format!("{}:12345678", &all[..n]);
            let chunk = text.as_bytes().first_chunk().copied().unwrap();
            assert_eq!(digits_before_colon(chunk), all[..n].parse().ok().map(|value| (value, n)));
        }
        // Any byte in any place: digits are counted rightly, or nothing is said.
        for (place, byte) in (0..8).flat_map(|place| (0..=u8::MAX).map(move |byte| (place, byte))) {
            let mut chunk = *b"12345678";
            chunk[place] = byte;
            let leading = chunk.iter().take_while(|byte| byte.is_ascii_digit()).count();
            let expected = digits_of_chunk(chunk);
            assert_eq!(expected.1, leading);
            if let Some(found) = digits_before_colon(chunk) {
                assert_eq!(found, expected);
            } else {
                assert!(byte != b':' || place == 0, "{place} {byte}");
            }
        }
    }

    #[test]
    fn digits_of_every_length() {
        let all = "12345678901234567890123";
        for n in 0..=MAX_DIGITS {
            for tail in ["", ":", " 1", "/", "\u{ff}", "          "] {
                let text = format!("{}{tail}", &all[..n]);
                let (value, count, rest) = digits(text.as_bytes());
                assert_eq!(count, n);
                assert_eq!(value, all[..n].parse().unwrap_or(0));
                assert_eq!(rest, tail.as_bytes());
            }
        }
        assert_eq!(digits(all.as_bytes()).1, all.len());
    }

    proptest! {
        #[test]
        fn any_f64(bits: u64) {
            let value = f64::from_bits(bits);
            if value.is_finite() {
                same(&format!("{value}"));
                same(&format!("{value:e}"));
                same(&format!("{value:.6}"));
            }
        }

        #[test]
        fn any_f32(bits: u32) {
            let value = f32::from_bits(bits);
            if value.is_finite() {
                same(&format!("{value}"));
                same(&format!("{value:e}"));
            }
        }

        #[test]
        fn short_decimals(text in "[+-]?[0-9]{0,20}(\\.[0-9]{0,20})?([eE][+-]?[0-9]{0,3})?") {
            same(&text);
        }

        #[test]
        fn near_the_middle_of_two_f32(bits: u32, nudge in -2i64..=2) {
            // The exact decimal expansion of f64 neighbours of the middle of two f32.
            let value = f32::from_bits(bits & 0x7fff_ffff);
            let next = f32::from_bits((bits & 0x7fff_ffff).wrapping_add(1));
            if value.is_finite() && next.is_finite() {
                let middle = (f64::from(value) + f64::from(next)) / 2.0;
                let near = f64::from_bits(middle.to_bits().wrapping_add_signed(nudge));
                same(&format!("{near}"));
                same(&format!("{near:e}"));
            }
        }
    }
}
