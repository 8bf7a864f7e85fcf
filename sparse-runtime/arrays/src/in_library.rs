//! Instances of generic functions that the library has.
//!
//! A release build compiles a generic function in each crate that calls it, for each set of types,
//! even where they are all the library's. What programs call is therefore passed on: for elements
//! of `f32`, which most models have, to a function that was compiled with the library. A program
//! that calls it compiles some lines.

use sparse_core::element::Stored;
use sparse_core::storage::ElementType;
use std::any::Any;

/// Calls a generic function of an element type, whose instance for `f32` this library has;
/// instances for other types are compiled where they are called. The arguments are names of
/// variables.
///
/// In a generic function `of<T: Float>(data: &[T]) -> f64`:
/// `in_library!(<T> sum_of::<T> => (data: &[T]) -> f64)`.
#[macro_export]
macro_rules! in_library {
    (<$T:ident> $($call:tt)*) => {
        $crate::if_optimised!({
            // A constant, so that nothing is compiled for what it excludes.
            if const { $crate::in_library::has::<$T>() } {
                $crate::in_library_instance!([type $T = f32;] $($call)*)
            } else {
                $crate::in_library_generic!($($call)*)
            }
        } else {
            $crate::in_library_generic!($($call)*)
        })
    };
}

/// The first block where the library is optimised, else the second.
#[cfg(is_optimised)]
#[doc(hidden)]
#[macro_export]
macro_rules! if_optimised {
    ($optimised:block else $plain:block) => {
        $optimised
    };
}

/// The first block where the library is optimised, else the second.
#[cfg(not(is_optimised))]
#[doc(hidden)]
#[macro_export]
macro_rules! if_optimised {
    ($optimised:block else $plain:block) => {
        $plain
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

/// Whether the library has instances for an element type: for `f32`, where it was optimised. In a
/// build without optimisation they would be slow, whatever the profile of the program.
pub const fn has<T: Stored>() -> bool {
    cfg!(is_optimised) && matches!(T::TYPE, ElementType::F32)
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

#[cfg(test)]
mod tests {
    use sparse_core::element::Float;

    fn sum_of<T: Float>(values: &[T], sum: &mut f64) -> usize {
        *sum = values.iter().map(|value| value.as_f64()).sum();
        values.len()
    }

    fn first_of<T: Float>(values: &[T]) -> &T {
        &values[0]
    }

    /// As a function that programs call.
    fn sum<T: Float>(values: &[T]) -> (usize, f64) {
        let mut sum = 0.0;
        let to = &mut sum;
        let count = in_library!(<T> sum_of::<T> => (values: &[T], to: &mut f64) -> usize);
        (count, sum)
    }

    #[test]
    fn a_call_is_that_of_the_function_for_any_element() {
        assert_eq!(sum(&[1.5f32, 2.0]), (2, 3.5));
        assert_eq!(sum(&[1.5f64, 2.0, 3.0]), (3, 6.5));
    }

    /// Whether or not the library is optimised.
    #[test]
    fn an_instance_is_the_function_for_its_types() {
        fn first<T: Float>(values: &[T]) -> &T {
            in_library_instance!([type T = f32;] first_of::<T> => <'v>(values: &'v [T]) -> &'v T)
        }
        assert_eq!(first(&[7.0f32, 2.0]), &7.0);
    }

    #[test]
    #[should_panic = "not of the library"]
    fn an_instance_for_other_types_says_so() {
        fn first<T: Float>(values: &[T]) -> &T {
            in_library_instance!([type T = f32;] first_of::<T> => <'v>(values: &'v [T]) -> &'v T)
        }
        first(&[7.0f64, 2.0]);
    }
}
