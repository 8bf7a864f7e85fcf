//! Exact sums of floating-point numbers, rounded once, so that the order of terms does not matter.

/// The sum of `f64` terms, as an integer multiple of the smallest `f64`, 2⁻¹⁰⁷⁴. Sums of several
/// threads, merged, have the bits of one pass.
///
/// A term is added to three digits of 32 bits each, kept in 64 bits, so that carries can be
/// deferred (R. M. Neal, "Fast exact summation using small and large superaccumulators", 2015). 0.5
/// KB.
#[derive(Clone, Debug)]
pub(crate) struct ExactSum {
    /// Digit `i` counts 2^(32 i - 1074). The last ones are for sums beyond the range of a term.
    digits: [i64; DIGITS],
    /// Terms since the last carry.
    waiting: u32,
    /// The sum of the terms that are infinite or NaN.
    not_finite: f64,
}

const DIGITS: usize = 68;
const BITS: u32 = 32;
const DIGIT: i64 = (1 << BITS) - 1;

/// The exponent of the smallest number.
const SMALLEST: i32 = -1074;

/// Terms between carries: each adds less than 2³² to a digit.
const MAX_WAITING: u32 = 1 << 30;

impl Default for ExactSum {
    fn default() -> Self {
        ExactSum { digits: [0; DIGITS], waiting: 0, not_finite: 0.0 }
    }
}

impl ExactSum {
    /// Adds a term.
    #[inline]
    pub(crate) fn add(&mut self, term: f64) {
        if !term.is_finite() {
            self.not_finite += term;
            return;
        }
        let bits = term.to_bits();
        let exponent = (bits >> 52 & 0x7ff) as u32;
        let fraction = bits & ((1 << 52) - 1);
        // A subnormal number has the exponent of the smallest normal one, and no leading 1.
        let mantissa = if exponent == 0 { fraction } else { fraction | 1 << 52 };
        let place = exponent.saturating_sub(1);
        let (digit, shift) = ((place / BITS) as usize, place % BITS);
        let wide = u128::from(mantissa) << shift;
        let sign = if term < 0.0 { -1 } else { 1 };
        for (i, digit) in self.digits[digit..digit + 3].iter_mut().enumerate() {
            *digit += sign * ((wide >> (BITS as usize * i)) as i64 & DIGIT);
        }
        self.waiting += 1;
        if self.waiting == MAX_WAITING {
            self.carry();
        }
    }

    /// Adds the terms of another sum.
    pub(crate) fn merge(&mut self, other: &ExactSum) {
        let mut other = other.clone();
        other.carry();
        self.carry();
        for (digit, other) in self.digits.iter_mut().zip(other.digits) {
            *digit += other;
        }
        self.carry();
        self.not_finite += other.not_finite;
    }

    /// Propagates carries: every digit but the last is then in 0 .. 2³², and the last has the sign.
    fn carry(&mut self) {
        let mut carry = 0;
        for digit in &mut self.digits[..DIGITS - 1] {
            *digit += carry;
            carry = *digit >> BITS;
            *digit &= DIGIT;
        }
        self.digits[DIGITS - 1] += carry;
        self.waiting = 0;
    }

    /// The sum, rounded to the nearest number, ties to even.
    pub(crate) fn value(&self) -> f64 {
        if self.not_finite != 0.0 {
            return self.not_finite;
        }
        let mut sum = self.clone();
        sum.carry();
        let is_negative = sum.digits[DIGITS - 1] < 0;
        if is_negative {
            sum.digits.iter_mut().for_each(|digit| *digit = -*digit);
            sum.carry();
        }
        let Some(first) = sum.digits.iter().rposition(|digit| *digit != 0) else {
            return 0.0;
        };
        // 65 bits or more decide, and whether there is anything below them.
        let last = first.saturating_sub(2);
        let leading = sum.digits[last..=first].iter().rev();
        let leading = leading.fold(0u128, |all, digit| all << BITS | *digit as u128);
        let rest = sum.digits[..last].iter().any(|digit| *digit != 0);
        let magnitude = (leading | u128::from(rest)) as f64 * power_of_two(last);
        if is_negative { -magnitude } else { magnitude }
    }

    /// The state, as exact numbers.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = f64> {
        let mut sum = self.clone();
        sum.carry();
        sum.digits.into_iter().map(|digit| digit as f64).chain([sum.not_finite])
    }

    /// The sum with this state.
    pub(crate) fn of_numbers(numbers: &[f64]) -> Option<Self> {
        let (not_finite, digits) = numbers.split_last()?;
        let digits = <[f64; DIGITS]>::try_from(digits).ok()?.map(|digit| digit as i64);
        Some(ExactSum { digits, waiting: MAX_WAITING - 1, not_finite: *not_finite })
    }

    /// The count of numbers in a state.
    pub(crate) const N_NUMBERS: usize = DIGITS + 1;
}

/// The unit of a digit; infinite beyond the range.
fn power_of_two(digit: usize) -> f64 {
    let exponent = SMALLEST + (BITS as usize * digit) as i32;
    match exponent {
        ..-1022 => f64::from_bits(1 << (exponent - SMALLEST)),
        -1022..1024 => f64::from_bits(((exponent + 1023) as u64) << 52),
        _ => f64::INFINITY,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NUMBER: proptest::num::f64::Any = proptest::num::f64::NORMAL;

    fn sum(terms: &[f64]) -> ExactSum {
        let mut sum = ExactSum::default();
        terms.iter().for_each(|term| sum.add(*term));
        sum
    }

    #[test]
    fn it_is_rounded_once() {
        let tiny = f64::from_bits(1);
        let cases: [(&[f64], f64); 11] = [
            (&[], 0.0),
            (&[0.1; 10], 1.0),
            (&[1e300, 1.0, -1e300], 1.0),
            (&[1e16, 1.0, 1.0], 1e16 + 2.0),
            // Half a unit is rounded to even, a little more is not.
            (&[9_007_199_254_740_992.0, 1.0], 9_007_199_254_740_992.0),
            (&[9_007_199_254_740_992.0, 1.0, tiny], 9_007_199_254_740_994.0),
            (&[-9_007_199_254_740_992.0, -1.0, -tiny], -9_007_199_254_740_994.0),
            (&[tiny, tiny], 2.0 * tiny),
            (&[f64::MIN_POSITIVE, -tiny], f64::MIN_POSITIVE - tiny),
            (&[f64::MAX, f64::MAX, -f64::MAX], f64::MAX),
            (&[f64::MAX, f64::MAX], f64::INFINITY),
        ];
        for (terms, expected) in cases {
            assert_eq!(sum(terms).value(), expected, "{terms:?}");
        }
        assert_eq!(sum(&[1.0, f64::NEG_INFINITY]).value(), f64::NEG_INFINITY);
        assert!(sum(&[f64::INFINITY, f64::NEG_INFINITY, 1.0]).value().is_nan());
    }

    proptest! {
        #[test]
        fn order_and_parts_do_not_matter(
            terms in proptest::collection::vec(prop_oneof![NUMBER, -1.0..1.0f64], 0..60),
            cut in 0usize..60,
        ) {
            let whole = sum(&terms);
            let (first, second) = terms.split_at(cut.min(terms.len()));
            let (mut merged, rest) = (sum(second), sum(first));
            merged.merge(&rest);
            prop_assert_eq!(merged.value().to_bits(), whole.value().to_bits());
            let backwards: Vec<_> = terms.iter().rev().copied().collect();
            prop_assert_eq!(sum(&backwards).value().to_bits(), whole.value().to_bits());
            let numbers: Vec<_> = whole.numbers().collect();
            prop_assert_eq!(numbers.len(), ExactSum::N_NUMBERS);
            let mut copy = ExactSum::of_numbers(&numbers).unwrap();
            copy.add(0.5);
            copy.add(-0.5);
            prop_assert_eq!(copy.value().to_bits(), whole.value().to_bits());
        }

        /// Of two terms the processor's sum is the sum rounded once.
        #[test]
        fn two_terms(a in NUMBER, b in NUMBER) {
            prop_assert_eq!(sum(&[a, b]).value(), a + b);
        }
    }
}
