//! The loops by hand: what ours are measured against. Each is written for AVX-512; other machines
//! run the plain loop that stands beside it.

mod batch;
mod copy;
mod merge;
mod product;
mod scatter;

use crate::data::Arrays;

pub use batch::{Found, of_rows, sixteens};
pub use copy::{from_dense, retain};
pub use merge::{Matrix, add};
pub use product::product;
pub use scatter::{Rows, scatter};

/// Whether the loops with AVX-512 may run.
#[cfg(target_arch = "x86_64")]
fn has_avx512() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("popcnt")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
}

/// Asks for an entry's column and value, which may lie outside of the arrays.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn ask(x: Arrays<'_>, entry: usize) {
    ask_for_one(x.columns, entry);
    ask_for_one(x.values, entry);
}

/// Asks for an element, which may lie outside of the array.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn ask_for_one<T>(array: &[T], index: usize) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: a prefetch reads nothing and faults on no address.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(array.as_ptr().wrapping_add(index).cast()) };
}

#[cfg(not(target_arch = "x86_64"))]
fn ask(_: Arrays<'_>, _: usize) {}

#[cfg(not(target_arch = "x86_64"))]
fn ask_for_one<T>(_: &[T], _: usize) {}
