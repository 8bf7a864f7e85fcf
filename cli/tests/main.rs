//! Tests of the command line: every test runs the program as a user does.

// What cannot be run or read fails the test.
#![allow(clippy::unwrap_used)]
// Examples share a file, of which nothing is called.
#![allow(clippy::duplicate_mod)]

#[cfg(feature = "parquet")]
mod columnar;
mod command_line;
mod evaluate;
mod examples;
mod field_cases;
mod flags;
// What is missing of the data is told by the same words as in the tests of the library.
#[path = "../../tests/folder/mod.rs"]
mod folder;
mod going_on;
mod kept_runs;
mod many_files;
// Of an example, `main` and `fit` are not called.
#[allow(dead_code, unreachable_pub)]
#[path = "../../examples/factorization_machine.rs"]
mod factorization_machine;
#[allow(dead_code, unreachable_pub)]
#[path = "../../examples/logistic_regression.rs"]
mod logistic_regression;
mod model_file;
#[allow(dead_code, unreachable_pub)]
#[path = "../../examples/multi_task.rs"]
mod multi_task;
mod names_and_ranks;
#[allow(dead_code, unreachable_pub)]
#[path = "../../examples/poisson_regression.rs"]
mod poisson_regression;
mod predictions;
mod programs;
mod reading;
mod real_data;
mod robust_models;
mod run_files;
mod sized_models;
#[allow(dead_code, unreachable_pub)]
#[path = "../../examples/softmax_regression.rs"]
mod softmax_regression;
mod tables;
mod training_table;
mod transcripts;
mod unknown_ids;
mod vowpal_wabbit;
