//! What became of the cases of a file, counted.

use crate::folder::say;
use crate::reasons::file_is_done;
use std::collections::{BTreeMap, BTreeSet};

/// What became of one case.
pub(crate) enum Outcome {
    /// As recorded.
    Passed,
    /// Different on purpose, in one way or several: why.
    Reasons(BTreeSet<&'static str>),
    /// What the case needs is in a list of things that are not built yet: its name.
    NotBuilt(String),
    /// Not as recorded, or not understood.
    Failed(String),
}

impl From<Result<(), String>> for Outcome {
    fn from(result: Result<(), String>) -> Self {
        match result {
            Ok(()) => Outcome::Passed,
            Err(message) => Outcome::Failed(message),
        }
    }
}

/// The outcomes of a file.
#[derive(Default)]
pub(crate) struct Tally {
    file: String,
    passed: usize,
    different: usize,
    reasons: BTreeMap<&'static str, usize>,
    not_built: BTreeMap<String, usize>,
    failures: Vec<String>,
}

impl Tally {
    pub(crate) fn new(file: &str) -> Self {
        Tally { file: file.to_owned(), ..Tally::default() }
    }

    /// Counts a case.
    pub(crate) fn add(&mut self, id: &str, outcome: Outcome) {
        match outcome {
            Outcome::Passed => self.passed += 1,
            Outcome::Reasons(reasons) => {
                self.different += 1;
                for reason in reasons {
                    *self.reasons.entry(reason).or_default() += 1;
                }
            }
            Outcome::NotBuilt(what) => *self.not_built.entry(what).or_default() += 1,
            Outcome::Failed(message) => self.failures.push(format!("{id}: {message}")),
        }
    }

    /// Prints the counts, and fails if a case did.
    pub(crate) fn finish(self) {
        file_is_done(&self.file);
        let not_built: usize = self.not_built.values().sum();
        let cases = self.passed + self.different + not_built + self.failures.len();
        let mut text = format!(
            "golden {}: {cases} cases: {} passed, {} different for a reason, {not_built} not built yet, {} failed",
            self.file,
            self.passed,
            self.different,
            self.failures.len()
        );
        for (reason, count) in &self.reasons {
            text += &format!("\n  {count} because {reason}");
        }
        if !self.not_built.is_empty() {
            let list: Vec<String> =
                self.not_built.iter().map(|(what, count)| format!("{what} {count}")).collect();
            text += &format!("\n  not built yet: {}", list.join(", "));
        }
        say(&text);
        const SHOWN: usize = 40;
        let shown = self.failures.iter().take(SHOWN).cloned().collect::<Vec<_>>().join("\n");
        assert!(
            self.failures.is_empty(),
            "{} of {cases} cases of {} failed; the first {SHOWN}:\n{shown}",
            self.failures.len(),
            self.file
        );
    }
}
