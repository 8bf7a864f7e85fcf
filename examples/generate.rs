//! Writes a made-up click log as a LibSVM file: hashed categorical fields with power-law popularity.
//!
//! ```text
//! cargo run --release --example generate -- 200000 1048576 39 clicks.svm
//! cargo run --release --example train -- --model logistic --data clicks.svm --no-shuffle --epochs 3
//! ```

use clap::Parser;
use nnz::data::synthetic;
use nnz::prelude::*;
use std::path::PathBuf;
use std::process::ExitCode;

/// Writes a made-up click log as a LibSVM file: hashed categorical fields with power-law popularity, a label by a model of
/// its own for each row.
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

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match write(&arguments) {
        Ok(()) => {
            let Arguments { rows, features, fields, file, .. } = arguments;
            println!("{}: {rows} rows of {fields} of {features} features", file.display());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("generate: {error}");
            ExitCode::FAILURE
        }
    }
}

fn write(Arguments { rows, features, fields, file, seed }: &Arguments) -> Result<()> {
    let data = synthetic::click_log(*rows, *features, *fields, *seed)?;
    libsvm::write(file, &data)?;
    Ok(())
}
