//! The tests of the crate's public interface, as one program:
//! `cargo test -p sparse-runtime --test tests threads::` runs a part of them.
//!
//! Under Miri they are the loops without checks alone.

// What cannot be made or read fails the test.
#![allow(clippy::unwrap_used)]

#[cfg(all(feature = "gzip", not(miri)))]
mod data_files;
#[cfg(not(miri))]
mod errors;
#[cfg(not(miri))]
mod formats_bad_input;
#[cfg(not(miri))]
mod formats_properties;
#[cfg(not(miri))]
mod golden_optimizers;
#[cfg(all(feature = "half", not(miri)))]
mod half_arrays;
#[cfg(not(miri))]
mod ops;
#[cfg(not(miri))]
mod threads;
mod unchecked;
