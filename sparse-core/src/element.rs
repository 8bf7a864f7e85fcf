//! The Rust types that arrays hold.

use crate::storage::ElementType;
#[cfg(feature = "half")]
pub use half::{bf16, f16};
use std::fmt::{self, Debug, Display};

/// A type of what a csr stores: an [`Element`], or [`Unit`]. Kernels choose their instructions by
/// [`TYPE`](Self::TYPE), so that there are no others than those of this crate.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an element of an array",
    note = "arrays hold floats, and ids, which are integers of 32 or 64 bits"
)]
pub trait Stored:
    sealed::Sealed + Copy + PartialEq + Debug + Display + Send + Sync + 'static
{
    /// The type's name in the language.
    const TYPE: ElementType;

    /// The value, exactly.
    fn to_number(self) -> Number;

    /// The value of this type nearest to a number, as a cast of an array takes it.
    ///
    /// A float is rounded to nearest, ties to even, beyond the largest to infinity; NaN stays NaN.
    /// An integer is cut towards zero, beyond the smallest and the largest it is that; NaN becomes
    /// 0. A unit is 1, whatever the number.
    fn from_number(number: Number) -> Self;
}

/// A type that an array of any storage can hold: it has a zero, its default, for what is not
/// stored.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an element of an array",
    note = "arrays hold floats, and ids, which are integers of 32 or 64 bits"
)]
pub trait Element: Stored + Default {}

mod sealed {
    pub trait Sealed {}
}

/// The number 1, in no memory: what a `csr<unit>` stores, whose pattern is all that it holds.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Unit;

/// `1`, as a number of an array is printed.
impl Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Display::fmt(&1, f)
    }
}

/// `1`.
impl Debug for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Display::fmt(self, f)
    }
}

impl sealed::Sealed for Unit {}

impl Stored for Unit {
    const TYPE: ElementType = ElementType::Unit;

    #[inline(always)]
    fn to_number(self) -> Number {
        Number::Integer(1)
    }

    #[inline(always)]
    fn from_number(_: Number) -> Self {
        Unit
    }
}

/// A stored value as a factor of numbers of a model: a number of its own type, or a [`Unit`], with
/// which loops are compiled that neither read values nor multiply.
///
/// Multiplying by 1 changes no bit, so that the results are those of a csr whose values are 1.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not what a csr of a model of `{T}` stores",
    note = "it stores numbers of the model's type, or `Unit`"
)]
pub trait Factor<T: Float>: Stored {
    /// True where every value is 1.
    const IS_UNIT: bool;

    /// Values that are numbers.
    fn numbers(values: &[Self]) -> Option<&[T]>;

    /// Values that are units.
    fn units(values: &[Self]) -> Option<&[Unit]>;

    /// The value as a number.
    fn number(self) -> T;

    /// The product of value and `factor`.
    fn times(self, factor: T::Accumulator) -> T::Accumulator;
}

impl<T: Float> Factor<T> for T {
    const IS_UNIT: bool = false;

    #[inline(always)]
    fn numbers(values: &[Self]) -> Option<&[T]> {
        Some(values)
    }

    #[inline(always)]
    fn units(_: &[Self]) -> Option<&[Unit]> {
        None
    }

    #[inline(always)]
    fn number(self) -> T {
        self
    }

    #[inline(always)]
    fn times(self, factor: T::Accumulator) -> T::Accumulator {
        self.widen() * factor
    }
}

impl<T: Float> Factor<T> for Unit {
    const IS_UNIT: bool = true;

    #[inline(always)]
    fn numbers(_: &[Self]) -> Option<&[T]> {
        None
    }

    #[inline(always)]
    fn units(values: &[Self]) -> Option<&[Unit]> {
        Some(values)
    }

    #[inline(always)]
    fn number(self) -> T {
        T::one()
    }

    #[inline(always)]
    fn times(self, factor: T::Accumulator) -> T::Accumulator {
        factor
    }
}

/// A number of any element type, exactly: what a cast goes through. An integer never passes through
/// a float.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// Of a type of floats: `f64` has all values of all of them.
    Float(f64),
    /// Of a type of ids.
    Integer(i128),
}

/// An element that arithmetic is defined on: `f32`, `f64` and, with the feature `half`, `f16` and
/// `bf16`.
///
/// What an operator computes for one element of its result is computed in the
/// [`Accumulator`](Float::Accumulator) and rounded once. The halves are for storage: sums in them
/// would lose all but a few digits.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a type of floats",
    note = "models, operators and metrics compute in floats: `array.cast::<f32>()` makes them of \
            ids"
)]
pub trait Float:
    Element + num_traits::Float + num_traits::NumAssign + num_traits::FromPrimitive + std::iter::Sum
{
    /// The type that sums of elements, functions of them and update rules are computed in: itself,
    /// for a half `f32`.
    type Accumulator: Float<Accumulator = Self::Accumulator>;

    /// From an `f64`, rounded to the nearest value.
    fn of(value: f64) -> Self;

    /// To an `f64`, exactly.
    fn as_f64(self) -> f64;

    /// To the accumulator, exactly.
    fn widen(self) -> Self::Accumulator;

    /// From the accumulator, rounded to the nearest value.
    fn narrow(value: Self::Accumulator) -> Self;

    /// Runs `body` on the elements in the accumulator; those of a half lie in `scratch` meanwhile
    /// and are rounded at the end.
    fn in_accumulator<R>(
        elements: &mut [Self],
        scratch: &mut Vec<f32>,
        body: impl FnOnce(&mut [Self::Accumulator]) -> R,
    ) -> R;
}

/// An element that names a row or a class. Ids are integers by type: a float cannot become one
/// silently.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a type of ids",
    note = "ids are integers by type, so that none loses digits in a float: `array.cast::<u32>()` \
            makes them of whole numbers"
)]
pub trait Id: Element + Ord {
    /// The id as an index, or `None` where it is negative or does not fit.
    fn index(self) -> Option<usize>;
}

macro_rules! elements {
    ($($float:ident $float_type:ident),*; $($id:ident $id_type:ident),*) => {
        $(impl sealed::Sealed for $float {}
        impl Element for $float {}
        impl Stored for $float {
            const TYPE: ElementType = ElementType::$float_type;

            #[inline(always)]
            fn to_number(self) -> Number {
                Number::Float(self.into())
            }

            #[inline(always)]
            fn from_number(number: Number) -> Self {
                match number {
                    Number::Float(value) => value as $float,
                    Number::Integer(value) => value as $float,
                }
            }
        }
        impl Float for $float {
            type Accumulator = $float;

            #[inline(always)]
            fn of(value: f64) -> Self {
                value as $float
            }
            #[inline(always)]
            fn as_f64(self) -> f64 {
                self as f64
            }
            #[inline(always)]
            fn widen(self) -> $float {
                self
            }
            #[inline(always)]
            fn narrow(value: $float) -> Self {
                value
            }
            #[inline(always)]
            fn in_accumulator<R>(
                elements: &mut [Self],
                _: &mut Vec<f32>,
                body: impl FnOnce(&mut [Self]) -> R,
            ) -> R {
                body(elements)
            }
        })*
        $(impl sealed::Sealed for $id {}
        impl Element for $id {}
        impl Stored for $id {
            const TYPE: ElementType = ElementType::$id_type;

            #[inline(always)]
            fn to_number(self) -> Number {
                Number::Integer(self.into())
            }

            #[inline(always)]
            fn from_number(number: Number) -> Self {
                match number {
                    Number::Float(value) => value as $id,
                    // Within the bounds, so that nothing wraps.
                    Number::Integer(value) => {
                        value.clamp($id::MIN.into(), $id::MAX.into()) as $id
                    }
                }
            }
        }
        impl Id for $id {
            #[inline(always)]
            fn index(self) -> Option<usize> {
                usize::try_from(self).ok()
            }
        })*
    };
}

elements!(f32 F32, f64 F64; u32 U32, u64 U64, i64 I64);

/// Halves are held; what is computed of them is computed in `f32`.
#[cfg(feature = "half")]
mod halves {
    use super::{Element, ElementType, Float, Number, Stored, bf16, f16, sealed};

    macro_rules! halves {
        ($($half:ident $half_type:ident),*) => {
            $(impl sealed::Sealed for $half {}
            impl Element for $half {}
            impl Stored for $half {
                const TYPE: ElementType = ElementType::$half_type;

                #[inline(always)]
                fn to_number(self) -> Number {
                    Number::Float(self.to_f64())
                }

                #[inline]
                fn from_number(number: Number) -> Self {
                    $half::from_f32(to_odd(number))
                }
            }

            impl Float for $half {
                type Accumulator = f32;

                #[inline]
                fn of(value: f64) -> Self {
                    Self::from_number(Number::Float(value))
                }
                #[inline(always)]
                fn as_f64(self) -> f64 {
                    self.to_f64()
                }
                #[inline(always)]
                fn widen(self) -> f32 {
                    self.to_f32()
                }
                #[inline(always)]
                fn narrow(value: f32) -> Self {
                    $half::from_f32(value)
                }
                #[inline]
                fn in_accumulator<R>(
                    elements: &mut [Self],
                    scratch: &mut Vec<f32>,
                    body: impl FnOnce(&mut [f32]) -> R,
                ) -> R {
                    scratch.clear();
                    scratch.extend(elements.iter().map(|half| half.to_f32()));
                    let result = body(scratch);
                    for (half, &wide) in elements.iter_mut().zip(&*scratch) {
                        *half = $half::from_f32(wide);
                    }
                    result
                }
            })*
        };
    }

    halves!(f16 F16, bf16 BF16);

    /// The number as `f32`, where it is none with the last bit set: of the two neighbours the odd
    /// one.
    ///
    /// What is rounded from there to a half is rounded as if at once, since an `f32` has two bits
    /// more than either half and to spare (Boldo and Melquiond, "Emulation of a FMA and
    /// correctly-rounded sums", 2008). `half` itself rounds an `f64` twice on some processors.
    #[inline]
    fn to_odd(number: Number) -> f32 {
        let (nearest, exact, away) = match number {
            Number::Float(value) => {
                let nearest = value as f32;
                let back = f64::from(nearest);
                (nearest, back == value || value.is_nan(), back.abs() > value.abs())
            }
            Number::Integer(value) => {
                let nearest = value as f32;
                let back = nearest as i128;
                (nearest, back == value, back.unsigned_abs() > value.unsigned_abs())
            }
        };
        let bits = nearest.to_bits();
        if bits % 2 == 1 || exact {
            return nearest;
        }
        // The number is between this neighbour and the next one, which is odd.
        f32::from_bits(if away { bits - 1 } else { bits + 1 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cast<T: Element, U: Element>(value: T) -> U {
        U::from_number(value.to_number())
    }

    #[test]
    fn floats_round_and_integers_are_cut() {
        assert_eq!(cast::<f64, f32>(0.1), 0.1f32);
        assert_eq!(cast::<f64, f32>(1e60), f32::INFINITY);
        assert_eq!(cast::<f64, i64>(-2.9), -2);
        assert_eq!(cast::<f32, u32>(-2.9), 0);
        assert_eq!(cast::<f64, u32>(1e20), u32::MAX);
        assert_eq!(cast::<f32, i64>(f32::NAN), 0);
        assert!(cast::<f64, f32>(f64::NAN).is_nan());
        assert_eq!(cast::<f64, f32>(-0.0).to_bits(), (-0.0f32).to_bits());
    }

    #[test]
    fn integers_keep_every_digit_or_the_bound() {
        let large = (1u64 << 63) + 1;
        assert_eq!(cast::<u64, u64>(large), large);
        assert_eq!(cast::<u64, i64>(large), i64::MAX);
        assert_eq!(cast::<i64, u64>(-1), 0);
        assert_eq!(cast::<i64, i64>(i64::MIN), i64::MIN);
        assert_eq!(cast::<u64, u32>(1 << 40), u32::MAX);
        // Rounded once: the nearest f32 to 2²⁴ + 1 is a tie, which goes to even.
        assert_eq!(cast::<u64, f32>((1 << 24) + 1), 16_777_216.0);
        assert_eq!(cast::<u64, f64>(large), 2f64.powi(63));
    }

    #[cfg(feature = "half")]
    mod halves {
        use super::*;

        /// All halves that are numbers, ascending, with 0 once.
        fn ascending<T: Element>(of_bits: fn(u16) -> T, infinity: u16) -> Vec<(f64, T)> {
            let negative = (1..infinity).rev().map(|bits| of_bits(bits | 0x8000));
            let values = negative.chain((0..infinity).map(of_bits));
            values
                .map(|half| match half.to_number() {
                    Number::Float(value) => (value, half),
                    Number::Integer(_) => unreachable!("a half is a float"),
                })
                .collect()
        }

        fn check<T: Element>(of_bits: fn(u16) -> T, infinity: u16) {
            let halves = ascending(of_bits, infinity);
            for (index, &(low, below)) in halves.iter().enumerate() {
                assert_eq!(cast::<f64, T>(low), below);
                let Some(&(high, above)) = halves.get(index + 1) else { continue };
                let middle = low / 2.0 + high / 2.0;
                let even = |value: f64| cast::<T, f64>(cast::<f64, T>(value)) == value;
                // The even one of two neighbours: every second one, 0 among them.
                let zero = halves.len() / 2;
                let tie = if index.abs_diff(zero) % 2 == 0 { below } else { above };
                assert!(even(low) && even(high));
                assert_eq!(cast::<f64, T>(middle), tie, "between {low} and {high}");
                // So little beside the middle that it is lost where f32 comes in between.
                assert_eq!(cast::<f64, T>(middle.next_down()), below, "below {middle:e}");
                assert_eq!(cast::<f64, T>(middle.next_up()), above, "above {middle:e}");
            }
            let largest = halves.last().unwrap().0;
            assert_eq!(cast::<f64, T>(largest * 4.0), of_bits(infinity));
            assert_eq!(cast::<f64, T>(f64::NEG_INFINITY), of_bits(infinity | 0x8000));
            assert_eq!(cast::<T, f64>(of_bits(infinity)), f64::INFINITY);
            assert!(cast::<T, f64>(cast::<f64, T>(f64::NAN)).is_nan());
        }

        #[test]
        fn every_half_is_the_nearest_to_what_lies_around_it() {
            check(f16::from_bits, 0x7c00);
            check(bf16::from_bits, 0x7f80);
        }

        #[test]
        fn integers_are_rounded_once() {
            // 2⁶² + 2⁵⁴ is the middle of two bf16; one more is above it, which neither f64 nor f32
            // can say.
            let middle = (1i64 << 62) + (1 << 54);
            assert_eq!(cast::<i64, bf16>(middle).to_f64(), 2f64.powi(62));
            let above = 2f64.powi(62) + 2f64.powi(55);
            assert_eq!(cast::<i64, bf16>(middle + 1).to_f64(), above);
            assert_eq!(cast::<i64, bf16>(-middle - 1).to_f64(), -above);
            assert_eq!(cast::<u64, f16>(u64::MAX), f16::INFINITY);
            assert_eq!(cast::<f16, u32>(f16::from_f32(-3.5)), 0);
            assert_eq!(cast::<u32, f16>(2049), f16::from_f32(2048.0));
        }
    }
}
