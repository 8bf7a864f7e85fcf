//! `nnz generate`: writes a made-up click log as a LibSVM file: hashed categorical fields with
//! power-law popularity.
//!
//! ```text
//! cargo run --release -p nnz-cli -- generate 200000 1048576 39 clicks.svm
//! cargo run --release -p nnz-cli -- train --model logistic --data clicks.svm --no-shuffle \
//!     --epochs 3
//! ```

use crate::Program;
use crate::report::written;
use clap::{CommandFactory, FromArgMatches, Parser};
use nnz::data::synthetic;
use nnz::prelude::*;
use std::io::{self, Write};
use std::path::PathBuf;

/// Writes a made-up click log as a LibSVM file: hashed categorical fields with power-law
/// popularity, a label by a model of its own for each row.
#[derive(Debug, Parser)]
#[command(name = "generate")]
struct Arguments {
    /// How many rows.
    rows: usize,
    /// How many features the fields are hashed to.
    features: usize,
    /// How many features a row has, all of weight 1.
    fields: usize,
    /// The file to write; one that is there is replaced.
    file: PathBuf,
    /// The same log for the same seed.
    #[arg(default_value_t = 42)]
    seed: u64,
}

pub(crate) fn program() -> Program {
    Program {
        command: Arguments::command(),
        run: |matches| {
            let arguments = Arguments::from_arg_matches(matches)?;
            write(&arguments)?;
            let Arguments { rows, features, fields, file, .. } = arguments;
            let file = file.display();
            let line = format!("{file}: {rows} rows of {fields} of {features} features");
            written(writeln!(io::stdout(), "{line}"))
        },
    }
}

fn write(Arguments { rows, features, fields, file, seed }: &Arguments) -> Result<()> {
    let data = synthetic::click_log(*rows, *features, *fields, *seed)?;
    libsvm::write(file, &data)?;
    Ok(())
}
