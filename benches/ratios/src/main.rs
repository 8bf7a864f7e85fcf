//! Ours against the best loop by hand over the same arrays, and against what others offer for the same work.
//!
//! ```text
//! cargo bench --manifest-path benches/ratios/Cargo.toml [-- FILTER… [ROUNDS]]
//! ```
//!
//! Prints one table. A workload is measured if its name contains every filter. In each round its contestants take turns
//! in one process; rates are medians over the rounds, and so are ratios, each of which is of two runs in the same round.
//! A family of workloads is a file with a function `workloads`, which is listed here.

mod clock;
mod data;
mod kernels;
mod libsvm;
mod predict;
mod reduced;
mod steps;
mod workload;

use data::Data;
use std::process::ExitCode;
use workload::Named;

/// Every family. What a workload needs is made when it is its turn.
fn workloads(data: &Data) -> Vec<Named<'_>> {
    let families = [
        kernels::workloads(data),
        libsvm::workloads(data),
        steps::workloads(data),
        reduced::workloads(data),
        predict::workloads(data),
    ];
    families.into_iter().flatten().collect()
}

fn main() -> ExitCode {
    let mut rounds = 15;
    let mut filters = Vec::new();
    // Cargo passes `--bench`.
    for argument in std::env::args().skip(1).filter(|argument| !argument.starts_with("--")) {
        match argument.parse() {
            Ok(number) => rounds = number,
            Err(_) => filters.push(argument),
        }
    }
    println!("{}", workload::HEADER);
    let data = Data::default();
    let chosen = workloads(&data);
    let mut failed = false;
    for named in
        chosen.into_iter().filter(|named| filters.iter().all(|filter| named.name.contains(filter)))
    {
        let name = named.name.clone();
        match named.measure(rounds) {
            Ok(row) => println!("{row}"),
            Err(error) => {
                eprintln!("{name}: {error}");
                failed = true;
            }
        }
    }
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
