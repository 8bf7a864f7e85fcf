//! Tests that compute more than they are compiled: every kernel against an oracle, many steps,
//! files of real data, mutations of bytes.
//!
//! They are a package of their own for the sake of its settings: these alone are optimised,
//! lightly.

// What cannot be made or read fails the test; models are `pub` as users write them.
#![allow(clippy::unwrap_used, unreachable_pub)]

#[path = "../folder/mod.rs"]
mod folder;
#[path = "../own_process.rs"]
mod own_process;

mod allocation;
mod each_row;
mod fuzz;
#[cfg(feature = "gzip")]
mod models;
#[cfg(feature = "gzip")]
mod real_data;
mod table;
