//! Tests of the command line: every test runs the program as a user does.

// What cannot be run or read fails the test.
#![allow(clippy::unwrap_used)]

mod command_line;
mod evaluate;
mod field_cases;
mod flags;
// What is missing of the data is told by the same words as in the tests of the library.
#[path = "../../tests/folder/mod.rs"]
mod folder;
mod going_on;
mod kept_runs;
// Of an example, `main` and `fit` are not called.
#[allow(dead_code, unreachable_pub)]
#[path = "../../examples/logistic_regression.rs"]
mod logistic_regression;
mod programs;
mod reading;
mod real_data;
mod tables;
