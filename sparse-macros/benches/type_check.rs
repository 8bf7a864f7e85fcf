//! What a model adds to the type check of a crate: `cargo check` of the first example of the README
//! against that of an empty crate with the same dependency, each after its source was touched,
//! without incremental compilation.
//!
//! ```sh
//! cargo bench -p sparse-macros --bench type_check
//! ```
//!
//! The two are measured in turn, after `nnz` was checked once: in the folder that
//! `CARGO_TARGET_DIR` names, or in one that is removed afterwards. The macro is built as the
//! development profile builds it, unoptimised.
#![allow(missing_docs)]

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

const ROUNDS: usize = 15;

const REPOSITORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

fn main() -> io::Result<()> {
    let folder = std::env::temp_dir().join(format!("nnz_type_check_{}", std::process::id()));
    let result = measure(&folder);
    fs::remove_dir_all(&folder)?;
    result
}

fn measure(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    fs::write(
        folder.join("Cargo.toml"),
        "[workspace]\nmembers = [\"empty\", \"model\"]\nresolver = \"3\"\n",
    )?;
    // The versions that the repository builds with, so that nothing is fetched.
    fs::copy(format!("{REPOSITORY}/Cargo.lock"), folder.join("Cargo.lock"))?;
    let empty = Crate::new(folder, "empty", "use nnz as _;\nfn main() {}\n".to_owned())?;
    let model = Crate::new(folder, "model", first_example()?)?;
    for member in [&empty, &model] {
        member.check()?;
    }
    let times = (0..ROUNDS)
        .map(|_| Ok([empty.check()?, model.check()?]))
        .collect::<io::Result<Vec<_>>>()?;
    let median = |seconds: fn(&[f64; 2]) -> f64| {
        let mut all: Vec<f64> = times.iter().map(seconds).collect();
        all.sort_by(f64::total_cmp);
        all[ROUNDS / 2]
    };
    println!("| empty crate, s | README's model, s | difference, s |");
    println!("|---|---|---|");
    println!(
        "| {:.2} | {:.2} | {:.2} |",
        median(|[empty, _]| *empty),
        median(|[_, model]| *model),
        median(|[empty, model]| model - empty)
    );
    Ok(())
}

/// The program that the README begins with.
fn first_example() -> io::Result<String> {
    let text = fs::read_to_string(format!("{REPOSITORY}/README.md"))?;
    let example = text.split_once("```rust").and_then(|(_, rest)| rest.split_once('\n'));
    let example = example.and_then(|(_, rest)| rest.split_once("```"));
    let (example, _) = example.ok_or_else(|| io::Error::other("the README has no example"))?;
    Ok(example.to_owned())
}

struct Crate {
    folder: PathBuf,
    name: &'static str,
    source: String,
}

impl Crate {
    fn new(workspace: &Path, name: &'static str, source: String) -> io::Result<Self> {
        let folder = workspace.join(name);
        fs::create_dir_all(folder.join("src"))?;
        let manifest = format!(
            "[package]\nname = \"{name}\"\nedition = \"2024\"\n[dependencies]\nnnz = {{ path = {REPOSITORY:?} }}\n"
        );
        fs::write(folder.join("Cargo.toml"), manifest)?;
        let member = Crate { folder, name, source };
        member.touch()?;
        Ok(member)
    }

    fn touch(&self) -> io::Result<()> {
        fs::write(self.folder.join("src/main.rs"), &self.source)
    }

    /// Touches the source and checks it; the seconds that takes.
    fn check(&self) -> io::Result<f64> {
        self.touch()?;
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
        let target = std::env::var_os("CARGO_TARGET_DIR")
            .unwrap_or_else(|| self.folder.with_file_name("target").into());
        let start = Instant::now();
        let status = Command::new(cargo)
            .args(["check", "--quiet", "--offline", "--package", self.name])
            .current_dir(&self.folder)
            .env("CARGO_TARGET_DIR", target)
            .env("CARGO_INCREMENTAL", "0")
            .status()?;
        let seconds = start.elapsed().as_secs_f64();
        if status.success() {
            Ok(seconds)
        } else {
            Err(io::Error::other(format!("`cargo check` of {} failed", self.name)))
        }
    }
}
