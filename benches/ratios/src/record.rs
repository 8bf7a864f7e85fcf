//! Writes what was measured into the page that says how: below each command of `RESULTS.md`, the
//! table that it prints.

use crate::workload::{Error, HEADER};
use std::path::Path;
use std::process::Command;

const COMMAND: &str = "cargo bench --manifest-path benches/ratios/Cargo.toml -- ";

/// The line that says when and where, made anew when all is recorded.
const RECORDED: &str = "Recorded ";

/// What a command of the page asks for.
#[derive(Debug, Default, PartialEq)]
pub struct Arguments {
    pub filters: Vec<String>,
    pub rounds: Option<usize>,
}

impl Arguments {
    /// Of words that a shell has split.
    pub fn of(words: impl IntoIterator<Item = String>) -> Self {
        let mut arguments = Arguments::default();
        for word in words {
            match word.parse() {
                Ok(rounds) => arguments.rounds = Some(rounds),
                Err(_) => arguments.filters.push(word),
            }
        }
        arguments
    }
}

/// Runs the commands of the page whose section `chosen` is in, by its heading, and replaces their
/// tables. A section's commands stand in one block; their rows become one table. A table of which a
/// workload failed stays as it was.
pub fn record(
    page: &Path,
    chosen: &str,
    mut measure: impl FnMut(&Arguments) -> Option<Vec<String>>,
) -> Result<bool, Error> {
    let text = std::fs::read_to_string(page)?;
    let mut lines = text.lines().peekable();
    let (mut written, mut all) = (Vec::new(), true);
    let mut heading = String::new();
    // Rows that wait for the table that they replace; none if one of them failed.
    let mut rows = Some(Vec::new());
    while let Some(line) = lines.next() {
        if line.starts_with("## ") {
            line.clone_into(&mut heading);
        }
        if let Some(rest) = line.strip_prefix(COMMAND)
            && !rest.starts_with("--")
            && heading.contains(chosen)
        {
            let measured = measure(&Arguments::of(words(rest)));
            all &= measured.is_some();
            rows = rows.zip(measured).map(|(rows, more)| [rows, more].concat());
        }
        if line.starts_with(RECORDED) && chosen.is_empty() {
            written.push(format!("{RECORDED}{}.", circumstances()?));
            continue;
        }
        written.push(line.to_owned());
        let is_rule = HEADER.lines().nth(1) == Some(line);
        if !is_rule {
            continue;
        }
        if let Some(rows) = rows.replace(Vec::new()).filter(|rows| !rows.is_empty()) {
            written.extend(rows);
            while lines.next_if(|line| line.starts_with('|')).is_some() {}
        }
    }
    // Beside, then in place: a page is never half a page.
    let beside = page.with_extension("md.new");
    std::fs::write(&beside, written.join("\n") + "\n")?;
    std::fs::rename(&beside, page)?;
    Ok(all)
}

/// A shell's words, of which some are in double quotes.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (place, part) in text.split('"').enumerate() {
        if place % 2 == 1 {
            words.push(part.to_owned());
        } else {
            words.extend(part.split_whitespace().map(str::to_owned));
        }
    }
    words
}

/// The day, the processor, how many of it, the compiler.
fn circumstances() -> Result<String, Error> {
    let output = |program: &str, argument: &str| -> Result<String, Error> {
        let output = Command::new(program).arg(argument).output()?;
        Ok(String::from_utf8(output.stdout)?.trim().to_owned())
    };
    let processors = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model =
        processors.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let model = model.map_or("an unknown processor", |(_, name)| name);
    let count = std::thread::available_parallelism()?;
    let (day, compiler) = (output("date", "+%Y-%m-%d")?, output("rustc", "--version")?);
    Ok(format!("{day}, {model}, {count} virtual cores, {compiler}"))
}
