//! Where tests find what is not part of the repository: a folder that a variable names, or one that
//! lies beside the checkout.

use std::io::Write;
use std::path::{Path, PathBuf};

/// The path of `file` in the folder that `variable` names, by default in `default` beside the
/// repository.
///
/// Where there is no such file, that is said aloud, and it is a failure where `NNZ_REQUIRE_DATA=1`:
/// a test that did nothing must not pass for one that did.
pub(crate) fn find(variable: &str, default: &str, file: &str) -> Option<PathBuf> {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let checkout = package.ancestors().find(|folder| folder.join("Cargo.lock").exists());
    let beside = checkout.unwrap_or(package).join("..").join(default);
    let path = std::env::var_os(variable).map_or(beside, PathBuf::from).join(file);
    if path.exists() {
        return Some(path);
    }
    missing(&format!("{} not found (set {variable})", path.display()));
    None
}

/// Says that something is missing; fails where `NNZ_REQUIRE_DATA=1`.
pub(crate) fn missing(what: &str) {
    let required = std::env::var("NNZ_REQUIRE_DATA").is_ok_and(|value| value == "1");
    assert!(!required, "NNZ_REQUIRE_DATA=1, but {what}");
    say(&format!("SKIPPED {}: {what}", env!("CARGO_CRATE_NAME")));
}

/// To the error stream itself: the test runner keeps back what a passing test prints.
pub(crate) fn say(text: &str) {
    let _ = std::io::stderr().write_all(format!("{text}\n").as_bytes());
}
