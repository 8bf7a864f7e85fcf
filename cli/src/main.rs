//! The command line of `nnz`: the models of the examples on files of text.
//!
//! ```text
//! cargo run --release -p nnz-cli -- generate 200000 1048576 39 clicks.svm
//! cargo run --release -p nnz-cli -- train --model logistic --data clicks.svm \
//!     --save model.safetensors
//! cargo run --release -p nnz-cli -- predict --model model.safetensors --data clicks.svm \
//!     --output scores.tsv
//! cargo run --release -p nnz-cli -- inspect model.safetensors --top 20
//! ```

mod changed;
mod data;
mod files;
mod generate;
mod inspect;
mod models;
mod notes;
mod predict;
mod printed;
mod summary;
mod train;

use clap::{ArgMatches, Command};
use std::process::ExitCode;

/// An error of a program: of the library, or in words.
type Failure = Box<dyn std::error::Error>;

/// A subcommand.
struct Program {
    command: Command,
    run: fn(&ArgMatches) -> Result<(), Failure>,
}

fn main() -> ExitCode {
    let programs = [train::program(), predict::program(), inspect::program(), generate::program()];
    let command = Command::new("nnz")
        .about("Trains sparse models on files of text, scores files with them, and shows them.")
        .version(env!("CARGO_PKG_VERSION"))
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommands(programs.iter().map(|program| program.command.clone()));
    let matches = command.get_matches();
    // One of them is required.
    let Some((name, matches)) = matches.subcommand() else { return ExitCode::FAILURE };
    for program in programs.iter().filter(|program| program.command.get_name() == name) {
        if let Err(error) = (program.run)(matches) {
            printed::tell(format_args!("nnz {name}: {error}"));
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
