//! Atomic numbers for Hogwild: relaxed loads and stores, which compile to plain moves.

use sparse_core::element::Float;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering};

/// A number that other threads may store meanwhile.
///
/// # Safety
///
/// It lies there, and is accessed by this and [`store`] alone while another thread may.
#[inline(always)]
pub(super) unsafe fn load<F: Float>(from: *mut F) -> F {
    const { assert!(matches!(size_of::<F>(), 2 | 4 | 8)) };
    // SAFETY: promised by the caller; an atomic integer is aligned as a float of its size, of which
    // all bits are one.
    unsafe {
        match size_of::<F>() {
            2 => {
                std::mem::transmute_copy(&AtomicU16::from_ptr(from.cast()).load(Ordering::Relaxed))
            }
            4 => {
                std::mem::transmute_copy(&AtomicU32::from_ptr(from.cast()).load(Ordering::Relaxed))
            }
            _ => {
                std::mem::transmute_copy(&AtomicU64::from_ptr(from.cast()).load(Ordering::Relaxed))
            }
        }
    }
}

/// Stores a number that other threads may load meanwhile.
///
/// # Safety
///
/// As [`load`].
#[inline(always)]
pub(super) unsafe fn store<F: Float>(to: *mut F, value: F) {
    // SAFETY: as in `load`.
    unsafe {
        match size_of::<F>() {
            2 => AtomicU16::from_ptr(to.cast())
                .store(std::mem::transmute_copy(&value), Ordering::Relaxed),
            4 => AtomicU32::from_ptr(to.cast())
                .store(std::mem::transmute_copy(&value), Ordering::Relaxed),
            _ => AtomicU64::from_ptr(to.cast())
                .store(std::mem::transmute_copy(&value), Ordering::Relaxed),
        }
    }
}

/// A state, number by number.
///
/// # Safety
///
/// As [`load`], of each number; `S` is made of numbers `A` and nothing else, which
/// [`why_not_racing`](super::hogwild::why_not_racing) asks.
#[inline(always)]
pub(super) unsafe fn load_state<S: Copy, A: Float>(from: *mut S) -> S {
    let mut state = MaybeUninit::<S>::uninit();
    for number in 0..size_of::<S>() / size_of::<A>() {
        // SAFETY: promised by the caller; all of the state is written.
        unsafe {
            state.as_mut_ptr().cast::<A>().add(number).write(load(from.cast::<A>().add(number)))
        };
    }
    // SAFETY: as above.
    unsafe { state.assume_init() }
}

/// Stores a state, number by number.
///
/// # Safety
///
/// As [`load_state`].
#[inline(always)]
pub(super) unsafe fn store_state<S: Copy, A: Float>(to: *mut S, state: S) {
    for number in 0..size_of::<S>() / size_of::<A>() {
        // SAFETY: promised by the caller.
        unsafe {
            store(to.cast::<A>().add(number), (&raw const state).cast::<A>().add(number).read())
        };
    }
}
