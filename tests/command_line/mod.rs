//! The examples that are programs for the command line, run as such.

use crate::folder::missing;
use std::process::{Command, Output};

/// What an example prints, which must succeed.
pub(crate) fn run(example: &str, arguments: &[&str]) -> Option<String> {
    let output = output(example, arguments)?;
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{example} {arguments:?}: {errors}");
    Some(String::from_utf8(output.stdout).unwrap())
}

/// What comes of an example.
pub(crate) fn output(example: &str, arguments: &[&str]) -> Option<Output> {
    Some(command(example)?.args(arguments).output().unwrap())
}

/// An example. Where it is not built, that is said aloud, and it is a failure where `NNZ_REQUIRE_DATA=1`.
pub(crate) fn command(example: &str) -> Option<Command> {
    // `cargo test` builds the examples; it puts tests into `deps`, beside `examples`.
    let test = std::env::current_exe().unwrap();
    let folder = test.parent().and_then(|deps| deps.parent()).unwrap().join("examples");
    let program = folder.join(format!("{example}{}", std::env::consts::EXE_SUFFIX));
    if !program.exists() {
        missing(&format!("{} is not built (`cargo test` builds it)", program.display()));
        return None;
    }
    Some(Command::new(program))
}
