//! The program, run as a command, and a folder of files for one test.

use std::path::PathBuf;
use std::process::{Command, Output};

/// What `nnz SUBCOMMAND` prints, which must succeed.
pub(crate) fn run(subcommand: &str, arguments: &[&str]) -> String {
    let output = output(subcommand, arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{subcommand} {arguments:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// What `nnz SUBCOMMAND` prints on the error stream; it must fail.
pub(crate) fn refused(subcommand: &str, arguments: &[&str]) -> String {
    let output = output(subcommand, arguments);
    assert!(!output.status.success(), "{subcommand} {arguments:?} is taken");
    String::from_utf8(output.stderr).unwrap()
}

/// What comes of a subcommand.
pub(crate) fn output(subcommand: &str, arguments: &[&str]) -> Output {
    command(subcommand).args(arguments).output().unwrap()
}

/// A subcommand, to which arguments can be added.
pub(crate) fn command(subcommand: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nnz"));
    command.arg(subcommand);
    command
}

/// A folder of files for one test, which is removed at its end.
pub(crate) struct Files(pub(crate) PathBuf);

impl Files {
    pub(crate) fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("nnz-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Files(folder)
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> String {
        std::fs::write(self.0.join(name), text).unwrap();
        self.path(name)
    }

    pub(crate) fn bytes(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.0.join(name)).unwrap()
    }

    /// Removes a file, which must be there.
    pub(crate) fn forget(&self, name: &str) {
        std::fs::remove_file(self.0.join(name)).unwrap();
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
