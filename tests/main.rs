//! The tests of the library as its users meet it: models that `graph!` compiles, training, files, messages.
//!
//! They are one program, since most of a test's cost is compiling what all of them call. `cargo test -p nnz-tests plan::` runs a file of them.

// What cannot be made fails the test; models are `pub` as users write them.
#![allow(clippy::unwrap_used, unreachable_pub)]

#[macro_use]
mod twins;

mod folder;
mod own_process;

mod alternatives;
mod blocks;
mod chains;
mod constants;
mod declared;
mod fallback;
mod frozen;
mod golden;
mod grown;
#[cfg(feature = "half")]
mod halves;
mod ids;
mod layers;
mod lookups;
mod losses;
mod moving;
mod names;
mod plan;
mod predictor;
mod rows;
mod scattered;
mod shared_tables;
mod states;
mod step;
mod stream;
mod training;
mod ui;
mod units;
mod unusual;
