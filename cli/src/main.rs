//! The command line of `nnz`: sparse models on files of data.
//!
//! ```text
//! cargo run --release -p nnz-cli -- generate 200000 1048576 39 clicks.svm
//! cargo run --release -p nnz-cli -- train --model logistic --data clicks.svm \
//!     --save model.safetensors
//! cargo run --release -p nnz-cli -- evaluate --model model.safetensors --data clicks.svm
//! cargo run --release -p nnz-cli -- predict --model model.safetensors --data clicks.svm \
//!     --output scores.tsv
//! cargo run --release -p nnz-cli -- inspect model.safetensors --top 20
//! ```

mod evaluate;
mod files;
mod generate;
mod input;
mod inspect;
mod models;
mod plan;
mod predict;
mod report;
mod shell;
mod train;
mod unknown_flags;

use clap::{Arg, ArgAction, ArgMatches, Command};
use std::process::ExitCode;

/// An error of a program: of the library, or in words.
type Failure = Box<dyn std::error::Error>;

/// A subcommand.
struct Program {
    command: Command,
    run: fn(&ArgMatches) -> Result<(), Failure>,
}

/// The subcommands.
fn programs() -> Vec<Program> {
    vec![
        train::program(),
        evaluate::program(),
        predict::program(),
        inspect::program(),
        plan::program(),
        generate::program(),
        shell::completions(),
        shell::manual(),
    ]
}

/// The command line.
fn command() -> Command {
    let quiet = Arg::new(QUIET)
        .long(QUIET)
        .global(true)
        .action(ArgAction::SetTrue)
        .help("Print results, warnings and errors alone: no progress, and not what was read");
    Command::new("nnz")
        .about(
            "Trains sparse models on files of text, evaluates them, scores files, and shows them.",
        )
        .version(env!("CARGO_PKG_VERSION"))
        .propagate_version(true)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .arg(quiet)
        .subcommands(programs().into_iter().map(|program| program.command))
}

const QUIET: &str = "quiet";

fn main() -> ExitCode {
    let mut command = command();
    let arguments = match train::config::expanded(&mut command, std::env::args_os().collect()) {
        Ok(arguments) => arguments,
        Err(error) => {
            report::tell(format_args!("nnz train: {error}"));
            return ExitCode::FAILURE;
        }
    };
    let matches = match command.try_get_matches_from_mut(arguments) {
        Ok(matches) => matches,
        Err(error) => unknown_flags::explained(error, &command).exit(),
    };
    // One of them is required.
    let Some((name, matches)) = matches.subcommand() else { return ExitCode::FAILURE };
    report::set_quiet(matches.get_flag(QUIET));
    for program in programs().iter().filter(|program| program.command.get_name() == name) {
        if let Err(error) = (program.run)(matches) {
            report::tell(format_args!("nnz {name}: {error}"));
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
