//! A process with little memory, for tests: lack of it would end other tests.

// What a test cannot do fails it.
#![allow(clippy::unwrap_used)]

use std::process::Command;

/// The variable that names the test of a started process.
const STARTED_FOR: &str = "NNZ_TEST_WITH_LITTLE_MEMORY";

/// Whether this process was started for `test`. If not, runs the test in such a process, which
/// must succeed.
pub fn is_own(test: &str) -> bool {
    if std::env::var(STARTED_FOR).is_ok_and(|started| started == test) {
        return true;
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture", "--test-threads", "1"]);
    // A second arena of the allocator has room that the limit does not count.
    command.env("MALLOC_ARENA_MAX", "1");
    let output = command.env(STARTED_FOR, test).output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {printed}{errors}", output.status);
    assert!(printed.contains("1 passed"), "`{test}` is no test: {printed}");
    false
}

/// Runs `body` with a limit of this number of bytes beyond the present ones.
pub fn with_bytes<A>(more: u64, body: impl FnOnce() -> A) -> A {
    let set = |bytes: u64| {
        // SAFETY: both calls get a struct that lives as long as they take, and `mallopt` a
        // number.
        unsafe {
            // What is given back is given to the system, at every size: none of it is left.
            assert_eq!(libc::mallopt(libc::M_MMAP_THRESHOLD, 1 << 17), 1);
            let mut limit: libc::rlimit = std::mem::zeroed();
            assert_eq!(libc::getrlimit(libc::RLIMIT_AS, &mut limit), 0);
            limit.rlim_cur = bytes.min(limit.rlim_max);
            assert_eq!(libc::setrlimit(libc::RLIMIT_AS, &limit), 0);
        }
    };
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = pages.split(' ').next().unwrap().parse().unwrap();
    set(pages * 4096 + more);
    let result = body();
    set(u64::MAX);
    result
}
