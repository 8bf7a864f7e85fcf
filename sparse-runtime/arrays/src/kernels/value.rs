//! Stored values as factors of numbers of a type that may be wider than theirs.

use sparse_core::element::{Float, Stored, Unit};
#[cfg(feature = "half")]
use sparse_core::element::{bf16, f16};
use sparse_core::storage::ElementType;

/// As [`Factor`](sparse_core::element::Factor), also of numbers that are `f64`, whatever the
/// value's type: sums over a batch are of such. A trait of its own, so that the type of a model
/// still follows from the type of its values.
pub(crate) trait ValueOf<T: Float>: Stored {
    /// True where every value is 1.
    const IS_UNIT: bool = matches!(Self::TYPE, ElementType::Unit);

    /// The value as a number.
    fn number(self) -> T;

    /// The product of value and `factor`.
    fn times(self, factor: T::Accumulator) -> T::Accumulator;
}

impl<T: Float> ValueOf<T> for Unit {
    #[inline(always)]
    fn number(self) -> T {
        T::one()
    }

    #[inline(always)]
    fn times(self, factor: T::Accumulator) -> T::Accumulator {
        factor
    }
}

macro_rules! values {
    ($($value:ident of $number:ident),*) => {
        $(impl ValueOf<$number> for $value {
            #[inline(always)]
            fn number(self) -> $number {
                $number::of(self.as_f64())
            }

            #[inline(always)]
            fn times(self, factor: $number) -> $number {
                $number::of(self.as_f64()) * factor
            }
        })*
    };
}

values!(f32 of f32, f64 of f64, f32 of f64);
#[cfg(feature = "half")]
values!(f16 of f64, bf16 of f64);
