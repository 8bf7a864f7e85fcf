//! The rate that a user's crate gets, over the rate of the same source with link-time optimisation
//! and one codegen unit.
//!
//! ```text
//! cargo build --release --manifest-path benches/user_crate/Cargo.toml
//! cargo build --profile whole --manifest-path benches/user_crate/Cargo.toml
//! cd benches/user_crate/target && release/user_crate --against whole/user_crate [FILTER… [ROUNDS]]
//! ```
//!
//! Both programs train the same models on the same arrays, an epoch each in turn; who is first
//! changes from round to round. Rates are medians over the rounds, ratios are medians over pairs of
//! neighbouring rounds. A row is measured if its name contains every filter. `--rates` prints the
//! rates of this program alone.

mod models;
mod rows;
mod turns;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let result = match arguments.split_first() {
        Some((first, _)) if first == "--serve" => turns::serve(),
        Some((first, rest)) if first == "--against" => match rest.split_first() {
            Some((other, rest)) => turns::measure(Some(other), rest),
            None => Err("`--against` takes the path of a program".into()),
        },
        Some((first, rest)) if first == "--rates" => turns::measure(None, rest),
        _ => Err("write `--against PROGRAM` or `--rates`".into()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
