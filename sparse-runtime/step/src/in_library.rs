//! The rules whose loops this library has, and calls of them: see
//! [`nnz_arrays::in_library`](mod@nnz_arrays::in_library).

use nnz_optim::UpdateRule;
use sparse_core::element::Float;

/// Passes the rules whose loops are compiled with the library to a macro, after its arguments. Each
/// costs everybody some seconds of a clean build, so they are those that most models are trained
/// with.
#[doc(hidden)]
#[macro_export]
macro_rules! for_rules_in_library {
    ([$($then:tt)*] $($arguments:tt)*) => {
        $($then)*!(Sgd AdaGrad Ftrl Adam AdamW RmsProp; $($arguments)*)
    };
}

/// Calls a generic function of a rule and an element type, whose instances for the rules of
/// [`for_rules_in_library`] and `f32` this library has; other instances are compiled where they are
/// called. The arguments are names of variables.
///
/// In a generic function `of<R: UpdateRule, T: Float>(updater: &mut Updater<R, T>) -> Result<()>`:
/// `in_library_by_rule!(<R, T> flush_of::<R, T> => (updater: &mut Updater<R, T>) -> Result<()>)`.
#[macro_export]
macro_rules! in_library_by_rule {
    (<$R:ident, $T:ident> $($call:tt)*) => {
        nnz_arrays::if_optimised!({
            $crate::for_rules_in_library!([$crate::in_library_by_each_rule] $R $T { $($call)* })
        } else {
            nnz_arrays::in_library_generic!($($call)*)
        })
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! in_library_by_each_rule {
    ($($Rule:ident)*; $R:ident $T:ident $call:tt) => {
        'found: {
            $(
                // Constants of their own, so that nothing is compiled for what they exclude.
                if const { $crate::in_library::is::<$R, $T>(nnz_optim::BuiltIn::$Rule) } {
                    break 'found $crate::in_library_instance_of!(
                        [type $R = nnz_optim::$Rule; type $T = f32;] $call
                    );
                }
            )*
            $crate::in_library_generic_of!($call)
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! in_library_instance_of {
    ($aliases:tt { $($call:tt)* }) => { nnz_arrays::in_library_instance!($aliases $($call)*) };
}

#[doc(hidden)]
#[macro_export]
macro_rules! in_library_generic_of {
    ({ $($call:tt)* }) => { nnz_arrays::in_library_generic!($($call)*) };
}

/// Whether a rule is one of the library, on elements of `f32`.
pub const fn is<R: UpdateRule, T: Float>(rule: nnz_optim::BuiltIn) -> bool {
    match R::BUILT_IN {
        Some(built_in) => built_in as u8 == rule as u8 && nnz_arrays::in_library::has::<T>(),
        None => false,
    }
}

/// Whether the library has the loops of a rule on elements of a type.
pub const fn has<R: UpdateRule, T: Float>() -> bool {
    macro_rules! any {
        ($($Rule:ident)*;) => {
            $(is::<R, T>(nnz_optim::BuiltIn::$Rule))||*
        };
    }
    for_rules_in_library!([any])
}
