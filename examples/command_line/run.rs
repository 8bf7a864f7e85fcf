//! What surrounds an example: the words of its command line, its result and its exit code.

use nnz::Result;
use std::fmt::Display;
use std::process::ExitCode;

/// Calls `example` with the words of the command line and prints its result. Shows `usage` if the
/// words are none that it takes: if it returns `None`.
pub(crate) fn run<T: Display>(
    usage: &str,
    example: impl FnOnce(&[&str]) -> Option<Result<T>>,
) -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match example(&words) {
        Some(Ok(result)) => {
            println!("{result}");
            ExitCode::SUCCESS
        }
        Some(Err(error)) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
        None => {
            eprintln!("usage: {usage}");
            ExitCode::from(2)
        }
    }
}
