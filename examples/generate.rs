//! Writes a made-up click log as a LibSVM file: hashed categorical fields with power-law popularity.
//!
//! ```text
//! cargo run --release --example generate -- 200000 1048576 39 clicks.svm
//! cargo run --release --example train -- --model logistic --data clicks.svm --no-shuffle --epochs 3
//! ```

use nnz::data::synthetic;
use nnz::prelude::*;
use std::process::ExitCode;

const USAGE: &str = "generate ROWS FEATURES FIELDS FILE [SEED]";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(message) => {
            println!("{message}");
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("generate: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> Result<String, String> {
    let (numbers, path, seed) = match arguments {
        [rows, features, fields, path] => ([rows, features, fields], path, "42"),
        [rows, features, fields, path, seed] => ([rows, features, fields], path, seed.as_str()),
        _ => return Err(format!("usage: {USAGE}")),
    };
    let number = |text: &str| {
        text.parse::<usize>().map_err(|_| format!("`{text}` is not a number; usage: {USAGE}"))
    };
    let (rows, features, fields) = (number(numbers[0])?, number(numbers[1])?, number(numbers[2])?);
    let seed = number(seed)? as u64;
    let data = synthetic::click_log(rows, features, fields, seed).map_err(|e| e.to_string())?;
    libsvm::write(path, &data).map_err(|error| error.to_string())?;
    Ok(format!("{path}: {rows} rows of {fields} of {features} features"))
}
