//! Tests that need a process of their own: other tests beside them would allocate, log or end with
//! them.

use std::process::Command;

/// The variable that names the test for which a process was started.
const STARTED_FOR: &str = "NNZ_TEST_OF_ITS_OWN";

/// This program with `test` alone, whose output is not kept back.
pub(crate) fn command(test: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture"]);
    command
}

/// Whether this process was started for `test`; if not, runs `test` in one that is, which must
/// succeed.
pub(crate) fn is_own(test: &str) -> bool {
    if std::env::var(STARTED_FOR).is_ok_and(|started| started == test) {
        return true;
    }
    let output = command(test).env(STARTED_FOR, test).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (printed, errors) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{printed}{errors}");
    assert!(printed.contains("1 passed"), "`{test}` is no test of this program: {printed}");
    false
}
