//! Where the library differs from the reference on purpose, and why.
//!
//! A reason relaxes what is said of storage types, fallbacks and refusals, and never values: a
//! recorded value that is not that of this library has another one in its place, which a
//! [correction](crate::golden::corrections) computes.

use crate::golden::tally::{Outcome, Reasons};
use nnz::core::storage::Storage;
use std::fmt;

mod elementwise;
mod graphs;
mod infer;
mod nn;
mod refusals;
mod structure;

/// In what a result differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// There is a sparse rule where the reference falls back to dense copies.
    Rule,
    /// Refused without `fallback`, where the reference makes a dense result without calling it a
    /// fallback.
    Refused,
    /// A result is sparse where the reference's is dense.
    Sparser,
    /// A result has another storage type.
    Storage,
    /// As `Rule`, of a gradient.
    GradientRule,
    /// As `Refused`, of a gradient.
    GradientRefused,
    /// As `Sparser`, of a gradient.
    GradientSparser,
    /// The storage type of a gradient.
    GradientStorage,
    /// Accepted as it stands, where the reference refuses it.
    Accepted,
    /// Refused as it stands and computed on conversions where they are allowed, where the reference
    /// refuses it always.
    Converted,
}

/// What is not held of a case for a reason. All else is, values first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Relaxes {
    /// That the operator is refused as it stands and takes a fallback, as in the reference: it
    /// needs none here.
    Fallback,
    /// The storage type of a result or a gradient.
    Storage,
    /// That it is accepted as it stands.
    Acceptance,
    /// That it is refused: its values are those of dense operands.
    Refusal,
    /// The values that are recorded: they are those of a correction.
    Values,
}

impl fmt::Display for Relaxes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Relaxes::Fallback => "fallback",
            Relaxes::Storage => "storage",
            Relaxes::Acceptance => "acceptance",
            Relaxes::Refusal => "refusal",
            Relaxes::Values => "values",
        })
    }
}

/// One difference.
pub(crate) enum Deviation {
    /// One that needs a reason.
    Differs(Kind, String),
    /// Values are those of a correction: why.
    Corrected(&'static str),
}

impl Kind {
    pub(crate) fn because(self, message: impl Into<String>) -> Deviation {
        Deviation::Differs(self, message.into())
    }

    /// What is not held of a case that differs so.
    pub(crate) fn relaxes(self) -> Relaxes {
        match self {
            Kind::Rule | Kind::GradientRule => Relaxes::Fallback,
            Kind::Refused | Kind::GradientRefused => Relaxes::Acceptance,
            Kind::Sparser | Kind::Storage | Kind::GradientSparser | Kind::GradientStorage => {
                Relaxes::Storage
            }
            Kind::Accepted | Kind::Converted => Relaxes::Refusal,
        }
    }
}

/// A reason for differences of some kinds in the cases whose ids match one of the patterns (`*` is
/// anything).
struct Reason {
    patterns: &'static [&'static str],
    kinds: &'static [Kind],
    why: &'static str,
}

/// Why, of each reason.
pub(crate) fn whys() -> impl Iterator<Item = &'static str> {
    reasons().map(|reason| reason.why)
}

/// The reasons, one file a family of operators.
fn reasons() -> impl Iterator<Item = &'static Reason> {
    let families = [elementwise::REASONS, structure::REASONS, nn::REASONS];
    let files = [infer::REASONS, graphs::REASONS, refusals::REASONS];
    families.into_iter().chain(files).flatten()
}

/// What becomes of a case: every deviation needs a reason that covers its id, or another name that
/// it goes by.
pub(crate) fn judge(names: &[impl AsRef<str>], deviations: Vec<Deviation>) -> Outcome {
    judge_each(deviations.into_iter().map(|deviation| (names, deviation)))
}

/// As [`judge`], each deviation by names of its own.
pub(crate) fn judge_each<N: AsRef<[S]>, S: AsRef<str>>(
    deviations: impl IntoIterator<Item = (N, Deviation)>,
) -> Outcome {
    let mut covered = Reasons::new();
    let mut failures = Vec::new();
    for (names, deviation) in deviations {
        let (kind, message) = match deviation {
            Deviation::Differs(kind, message) => (kind, message),
            Deviation::Corrected(why) => {
                covered.entry(why).or_default().insert(Relaxes::Values);
                continue;
            }
        };
        let covers = |reason: &&Reason| {
            reason.kinds.contains(&kind) && matches_any(reason.patterns, names.as_ref())
        };
        match reasons().find(covers) {
            Some(reason) => {
                covered.entry(reason.why).or_default().insert(kind.relaxes());
            }
            None => failures.push(format!("{kind:?}: {message}")),
        }
    }
    match (failures.is_empty(), covered.is_empty()) {
        (true, true) => Outcome::Passed,
        (true, false) => Outcome::Reasons(covered),
        (false, _) => Outcome::Failed(failures.join("; ")),
    }
}

/// The name of an operator and its operands' storage, in the form in which ids of cases begin:
/// `plus_scalar.c.`.
pub(crate) fn operator_name(op: &str, stypes: impl IntoIterator<Item = Storage>) -> String {
    let op = op.strip_prefix("_contrib").unwrap_or(op).trim_start_matches('_');
    let letters: String = stypes.into_iter().map(|storage| &storage.name()[..1]).collect();
    format!("{op}.{letters}.")
}

/// Whether one of the names matches one of the patterns.
pub(crate) fn matches_any(patterns: &[&str], names: &[impl AsRef<str>]) -> bool {
    patterns.iter().any(|pattern| names.iter().any(|name| matches(pattern, name.as_ref())))
}

/// Whether an id matches a pattern.
pub(crate) fn matches(pattern: &str, id: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == id,
        Some((head, tail)) => id.strip_prefix(head).is_some_and(|rest| {
            (0..=rest.len())
                .filter(|&at| rest.is_char_boundary(at))
                .any(|at| matches(tail, &rest[at..]))
        }),
    }
}

#[test]
fn patterns() {
    assert!(matches("dot.*c*.base", "dot.dc.NN.base") && matches("*", "") && matches("a", "a"));
    assert!(!matches("dot.*c*.base", "dot.dd.NN.base") && !matches("a", "ab"));
    assert!(!matches("a*a", "a"));
}
