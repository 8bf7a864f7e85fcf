//! The Rust types that arrays hold.

use crate::storage::ElementType;
use std::fmt::{Debug, Display};

/// A type that an array can hold.
pub trait Element: Copy + Default + PartialEq + Debug + Display + Send + Sync + 'static {
    /// The type's name in the language.
    const TYPE: ElementType;
}

/// An element that arithmetic is defined on: `f32` or `f64`.
pub trait Float:
    Element + num_traits::Float + num_traits::NumAssign + num_traits::FromPrimitive + std::iter::Sum
{
    /// From an `f64`, rounded to the nearest value.
    fn of(value: f64) -> Self;

    /// To an `f64`, exactly.
    fn as_f64(self) -> f64;
}

/// An element that names a row or a class. Ids are integers by type: a float cannot become one silently.
pub trait Id: Element + Ord {
    /// The id as an index, or `None` where it is negative or does not fit.
    fn index(self) -> Option<usize>;
}

macro_rules! elements {
    ($($float:ident $float_type:ident),*; $($id:ident $id_type:ident),*) => {
        $(impl Element for $float {
            const TYPE: ElementType = ElementType::$float_type;
        }
        impl Float for $float {
            #[inline(always)]
            fn of(value: f64) -> Self {
                value as $float
            }
            #[inline(always)]
            fn as_f64(self) -> f64 {
                self as f64
            }
        })*
        $(impl Element for $id {
            const TYPE: ElementType = ElementType::$id_type;
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
