//! Jobs of several processes, against threads of one: bits, resumed runs, accidents, disagreement.
//!
//! Without a launcher the tests say SKIPPED; with `NNZ_REQUIRE_MPI=1` they fail instead.
//! `NNZ_MPIRUN` names another launcher than `mpirun`. Arguments are parts of names of tests.

mod accidents;
mod bits;
mod job;
mod launching;
mod worker;

use std::panic::catch_unwind;
use std::process::ExitCode;
use std::time::Instant;

/// A test, by name.
type Test = (&'static str, fn());

const TESTS: [&[Test]; 3] = [&bits::TESTS, &accidents::TESTS, &launching::TESTS];

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let Some((first, rest)) = words.split_first()
        && first == worker::WORD
    {
        return worker::main(rest);
    }
    let parts = Vec::from_iter(words.iter().filter(|word| !word.starts_with('-')));
    let is_asked =
        |name: &str| parts.is_empty() || parts.iter().any(|part| name.contains(part.as_str()));
    let Some(launcher) = job::launcher() else {
        let is_required = std::env::var_os("NNZ_REQUIRE_MPI").is_some();
        println!("{}: there is no `mpirun`", if is_required { "FAILED" } else { "SKIPPED" });
        return if is_required { ExitCode::FAILURE } else { ExitCode::SUCCESS };
    };
    println!("\nrunning under {launcher}");
    let (mut passed, mut failed) = (0, 0);
    for (name, test) in TESTS.into_iter().flatten().filter(|(name, _)| is_asked(name)) {
        let began = Instant::now();
        let is_ok = catch_unwind(test).is_ok();
        *(if is_ok { &mut passed } else { &mut failed }) += 1;
        let result = if is_ok { "ok" } else { "FAILED" };
        println!("test {name} ... {result} ({:.1} s)", began.elapsed().as_secs_f64());
    }
    let result = if failed == 0 { "ok" } else { "FAILED" };
    println!("\ntest result: {result}. {passed} passed; {failed} failed");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
