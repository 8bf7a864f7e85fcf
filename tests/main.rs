//! The tests of the library as its users meet it: models that `graph!` compiles, training, files,
//! messages.
//!
//! They are one program, since most of a test's cost is compiling what all of them call.
//! `cargo test -p nnz-tests plan::` runs a file of them.

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
mod declared_rows;
mod fallback;
mod field_decay;
mod field_faults;
mod field_ftrl;
mod field_language;
mod field_macro;
mod field_metrics;
mod field_precision;
mod field_storage;
mod field_sums;
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
mod row_programs;
mod rows;
mod scattered;
mod shared_tables;
mod specialized;
mod states;
mod step;
mod stream;
mod training;
mod ui;
mod units;
mod unusual;

/// A file that is not declared above would be compiled by nothing, and its tests would not be
/// missed.
#[test]
fn every_file_is_a_module() {
    let declared = include_str!("main.rs");
    for entry in std::fs::read_dir(env!("CARGO_MANIFEST_DIR")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        let is_module = path.extension().is_some_and(|extension| extension == "rs");
        let is_declared = declared.contains(&format!("\nmod {name};\n"));
        assert!(!is_module || name == "main" || is_declared, "`{name}` is not in main.rs");
    }
}
