//! What became of the cases of a file, counted.

use crate::folder::say;
use crate::golden::reasons::Relaxes;
use std::collections::{BTreeMap, BTreeSet};

/// Why a case is different, and what is not held of it for that.
pub(crate) type Reasons = BTreeMap<&'static str, BTreeSet<Relaxes>>;

/// What became of one case.
pub(crate) enum Outcome {
    /// As recorded.
    Passed,
    /// Different on purpose, in one way or several: why.
    Reasons(Reasons),
    /// What the case needs is in a list of things that are not built yet: its name.
    NotBuilt(String),
    /// The device does not have what the case needs: what.
    NotThere(String),
    /// Not as recorded, or not understood.
    Failed(String),
}

impl From<String> for Outcome {
    fn from(message: String) -> Self {
        Outcome::Failed(message)
    }
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
    relaxed: BTreeMap<Relaxes, usize>,
    reasons: BTreeMap<&'static str, Reason>,
    fallbacks: usize,
    not_built: BTreeMap<String, usize>,
    not_there: BTreeMap<String, usize>,
    failures: Vec<String>,
}

/// As [`Tally::finish`], where there was a file to judge.
pub(crate) fn finish(tally: Option<Tally>) {
    if let Some(tally) = tally {
        tally.finish();
    }
}

/// How many cases a reason covered, and what it relaxed of how many.
#[derive(Default)]
struct Reason {
    cases: usize,
    relaxed: BTreeMap<Relaxes, usize>,
}

fn list<K: std::fmt::Display>(counts: &BTreeMap<K, usize>) -> String {
    let counts: Vec<String> =
        counts.iter().map(|(what, count)| format!("{what} {count}")).collect();
    counts.join(", ")
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
                let all: BTreeSet<Relaxes> = reasons.values().flatten().copied().collect();
                for relaxes in all {
                    *self.relaxed.entry(relaxes).or_default() += 1;
                }
                for (why, relaxed) in reasons {
                    let reason = self.reasons.entry(why).or_default();
                    reason.cases += 1;
                    for relaxes in relaxed {
                        *reason.relaxed.entry(relaxes).or_default() += 1;
                    }
                }
            }
            Outcome::NotBuilt(what) => *self.not_built.entry(what).or_default() += 1,
            Outcome::NotThere(what) => *self.not_there.entry(what).or_default() += 1,
            Outcome::Failed(message) => self.failures.push(format!("{id}: {message}")),
        }
    }

    /// Counts a case that the reference meets by a fallback: it was refused, and met where a
    /// fallback is allowed.
    pub(crate) fn add_fallback(&mut self) {
        self.fallbacks += 1;
    }

    /// The reasons that covered a case.
    pub(crate) fn reasons(&self) -> impl Iterator<Item = &'static str> {
        self.reasons.keys().copied()
    }

    /// Prints the counts, and fails if a case did.
    pub(crate) fn finish(self) {
        let not_built: usize = self.not_built.values().sum();
        let not_there: usize = self.not_there.values().sum();
        let cases = self.passed + self.different + not_built + not_there + self.failures.len();
        let mut text = format!(
            "golden {}: {cases} cases: {} passed, {} different for a reason, {not_built} not built yet, {} failed",
            self.file,
            self.passed,
            self.different,
            self.failures.len()
        );
        if self.fallbacks > 0 {
            let count = self.fallbacks;
            text += &format!("\n  {count} refused as they stand, and met with a fallback allowed");
        }
        if !self.relaxed.is_empty() {
            text += &format!("\n  relaxed of those that are different: {}", list(&self.relaxed));
        }
        for (why, reason) in &self.reasons {
            let (cases, relaxed) = (reason.cases, list(&reason.relaxed));
            text += &format!("\n  {cases} because {why} ({relaxed})");
        }
        if !self.not_built.is_empty() {
            text += &format!("\n  not built yet: {}", list(&self.not_built));
        }
        if not_there > 0 {
            text += &format!("\n  {not_there} not there: {}", list(&self.not_there));
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
