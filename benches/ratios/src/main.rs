//! Ours against the best loop by hand over the same arrays, and against what others offer for the
//! same work.
//!
//! ```text
//! cargo bench --manifest-path benches/ratios/Cargo.toml [-- FILTER… [ROUNDS]]
//! cargo bench --manifest-path benches/ratios/Cargo.toml -- --record [HEADING]
//! cargo bench --manifest-path benches/ratios/Cargo.toml -- --problems FOLDER
//! ```
//!
//! The first prints one table, the second makes those of `benches/RESULTS.md` anew, by the commands
//! that stand above them; of one section, if a part of its heading is given, and the third writes
//! the data of variance reduction, for `benches/peers/variance_reduction.py`. A workload is
//! measured if its name contains every filter, and no `not:FILTER`. In each round its contestants
//! take turns in one process, in an order that changes, and that every other round reverses; rates
//! are medians over the rounds, and ratios over pairs of rounds, each of the time of both. A family
//! of workloads is a file with a function `workloads`, which is listed here.

mod cache;
mod chains;
mod clock;
mod columnar;
mod data;
mod kernels;
mod libsvm;
mod predict;
mod record;
mod reduced;
mod steps;
mod store;
mod stream;
mod workload;

use data::Data;
use record::Arguments;
use std::path::Path;
use std::process::ExitCode;
use workload::Named;

/// Every family. What a workload needs is made when it is its turn.
fn workloads(data: &Data) -> Vec<Named<'_>> {
    let families = [
        kernels::workloads(data),
        chains::workloads(data),
        libsvm::workloads(data),
        columnar::workloads(data),
        steps::workloads(data),
        reduced::workloads(data),
        cache::workloads(data),
        stream::workloads(data),
        predict::workloads(data),
        store::workloads(),
    ];
    families.into_iter().flatten().collect()
}

/// Runs some workloads; shows each row as soon as it is there. `None` if one failed.
fn measure(data: &Data, arguments: &Arguments) -> Option<Vec<String>> {
    let (mut rows, mut failed) = (Vec::new(), false);
    let is_chosen = |named: &Named<'_>| {
        arguments.filters.iter().all(|filter| match filter.strip_prefix("not:") {
            Some(part) => !named.name.contains(part),
            None => named.name.contains(filter),
        })
    };
    for named in workloads(data).into_iter().filter(is_chosen) {
        let name = named.name.clone();
        match named.measure(arguments.rounds.unwrap_or(15)) {
            Ok(row) => {
                println!("{row}");
                rows.push(row);
            }
            Err(error) => {
                eprintln!("{name}: {error}");
                failed = true;
            }
        }
    }
    (!failed).then_some(rows)
}

fn main() -> ExitCode {
    // Cargo passes `--bench`.
    let words = || std::env::args().skip(1).filter(|word| !word.starts_with("--"));
    let data = Data::default();
    if let Some(folder) = std::env::args().skip_while(|word| word != "--problems").nth(1) {
        return match reduced::write_problems(&data, Path::new(&folder)) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("{error}");
                ExitCode::FAILURE
            }
        };
    }
    println!("{}", workload::HEADER);
    let passed = if std::env::args().any(|word| word == "--record") {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../RESULTS.md");
        let chosen = words().next().unwrap_or_default();
        record::record(&page, &chosen, |arguments| measure(&data, arguments)).unwrap_or_else(
            |error| {
                eprintln!("{}: {error}", page.display());
                false
            },
        )
    } else {
        measure(&data, &Arguments::of(words())).is_some()
    };
    if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
