//! Instances of generic functions that the library has.
//!
//! A release build compiles a generic function in each crate that calls it, for each set of types,
//! even where they are all the library's. What programs call is therefore passed on: for elements
//! of `f32`, which most models have, to a function that was compiled with the library. A program
//! that calls it compiles some lines.

use sparse_core::element::Stored;
use sparse_core::storage::ElementType;
use std::any::Any;

/// Calls a generic function of an element type, whose instance for `f32` this library has; instances
/// for other types are compiled where they are called. The arguments are names of variables.
///
/// In a generic function `of<T: Float>(data: &[T]) -> f64`:
/// `in_library!(<T> sum_of::<T> => (data: &[T]) -> f64)`.
#[macro_export]
macro_rules! in_library {
    (<$T:ident> $($call:tt)*) => {
        // A constant, so that nothing is compiled for what it excludes.
        if const { $crate::in_library::is_f32::<$T>() } {
            $crate::in_library_instance!([type $T = f32;] $($call)*)
        } else {
            $crate::in_library_generic!($($call)*)
        }
    };
}

/// Calls an instance of a generic function for the types that the aliases name: those that the
/// surrounding function has, which it knows by a constant.
#[doc(hidden)]
#[macro_export]
macro_rules! in_library_instance {
    (
        [$($alias:tt)*]
        $function:path => $(<$lifetime:lifetime>)? ($($argument:ident: $type:ty),* $(,)?) -> $result:ty
    ) => {{
        let instance = {
            $($alias)*
            #[inline(never)]
            #[allow(clippy::too_many_arguments)]
            fn instance$(<$lifetime>)?($($argument: $type),*) -> $result {
                $function($($argument),*)
            }
            instance as $(for<$lifetime>)? fn($($type),*) -> $result
        };
        let instance =
            $crate::in_library::same::<_, $(for<$lifetime>)? fn($($type),*) -> $result>(&instance);
        instance($($argument),*)
    }};
}

/// Calls a generic function.
#[doc(hidden)]
#[macro_export]
macro_rules! in_library_generic {
    (
        $function:path => $(<$lifetime:lifetime>)? ($($argument:ident: $type:ty),* $(,)?) -> $result:ty
    ) => {
        $function($($argument),*)
    };
}

/// Whether elements are `f32`.
pub const fn is_f32<T: Stored>() -> bool {
    matches!(T::TYPE, ElementType::F32)
}

/// A function as the type that it has under another name.
///
/// # Panics
///
/// If it is another type: a rule of another crate then says that it is one of the library.
#[inline]
pub fn same<A: 'static, B: Copy + 'static>(function: &A) -> B {
    match (function as &dyn Any).downcast_ref() {
        Some(function) => *function,
        None => not_in_library(),
    }
}

#[cold]
#[inline(never)]
fn not_in_library() -> ! {
    panic!("a rule that is not of the library has one of its `UpdateRule::BUILT_IN`")
}
