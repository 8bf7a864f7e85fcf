//! Where the library differs from the reference on purpose, and why.

use crate::folder::say;
use crate::tally::Outcome;
use nnz::core::storage::Storage;
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

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
    /// Refused without `fallback`, where the reference makes a dense result without calling it a fallback.
    Refused,
    /// A result is sparse where the reference's is dense.
    Sparser,
    /// A result has another storage type.
    Storage,
    /// A sparse result stores nothing, so that it is 0, where the reference's is NaN.
    ZeroForNan,
    /// The values of a result.
    Values,
    /// As `Rule`, of a gradient.
    GradientRule,
    /// As `Refused`, of a gradient.
    GradientRefused,
    /// As `Sparser`, of a gradient.
    GradientSparser,
    /// The storage type of a gradient.
    GradientStorage,
    /// As `ZeroForNan`, of a gradient.
    GradientZeroForNan,
    /// The values of a gradient.
    GradientValues,
    /// Accepted as it stands, where the reference refuses it.
    Accepted,
    /// Refused as it stands and computed on conversions where they are allowed, where the reference refuses it always.
    Converted,
}

/// One difference.
pub(crate) struct Deviation {
    kind: Kind,
    message: String,
}

impl Deviation {
    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }
}

impl Kind {
    pub(crate) fn because(self, message: impl Into<String>) -> Deviation {
        Deviation { kind: self, message: message.into() }
    }
}

/// A reason for differences of some kinds in the cases whose ids match one of the patterns (`*` is anything).
struct Reason {
    patterns: &'static [&'static str],
    kinds: &'static [Kind],
    why: &'static str,
}

/// The reasons, one file a family of operators.
fn reasons() -> impl Iterator<Item = &'static Reason> {
    let families = [elementwise::REASONS, structure::REASONS, nn::REASONS];
    let files = [infer::REASONS, graphs::REASONS, refusals::REASONS];
    families.into_iter().chain(files).flatten()
}

/// Patterns of cases of operators that are built, which need something that is not.
const NOT_BUILT: &[(&str, &str)] = &[("dot.*.rank1_rhs", "dot with a vector")];

/// What becomes of a case that could not be run.
pub(crate) fn judge_failure(id: &str, message: String) -> Outcome {
    match NOT_BUILT.iter().find(|(pattern, _)| matches(pattern, id)) {
        Some((_, what)) => Outcome::NotBuilt((*what).to_owned()),
        None => Outcome::Failed(message),
    }
}

/// What becomes of a case: every deviation needs a reason that covers its id, or another name that it goes by.
pub(crate) fn judge(names: &[impl AsRef<str>], deviations: Vec<Deviation>) -> Outcome {
    judge_each(deviations.into_iter().map(|deviation| (names, deviation)))
}

/// As [`judge`], each deviation by names of its own.
pub(crate) fn judge_each<N: AsRef<[S]>, S: AsRef<str>>(
    deviations: impl IntoIterator<Item = (N, Deviation)>,
) -> Outcome {
    let mut covered = BTreeSet::new();
    let mut failures = Vec::new();
    for (names, deviation) in deviations {
        let names = names.as_ref();
        let reason = reasons().find(|reason| {
            let covers = |pattern: &&str| names.iter().any(|name| matches(pattern, name.as_ref()));
            reason.kinds.contains(&deviation.kind) && reason.patterns.iter().any(covers)
        });
        match reason {
            Some(reason) => {
                USED.lock().unwrap_or_else(PoisonError::into_inner).insert(reason.why);
                covered.insert(reason.why);
            }
            None => failures.push(format!("{:?}: {}", deviation.kind, deviation.message)),
        }
    }
    match (failures.is_empty(), covered.is_empty()) {
        (true, true) => Outcome::Passed,
        (true, false) => Outcome::Reasons(covered),
        (false, _) => Outcome::Failed(failures.join("; ")),
    }
}

/// The name of an operator and its operands' storage, in the form in which ids of cases begin: `plus_scalar.c.`.
pub(crate) fn operator_name(op: &str, stypes: impl IntoIterator<Item = Storage>) -> String {
    let op = op.strip_prefix("_contrib").unwrap_or(op).trim_start_matches('_');
    let letters: String = stypes.into_iter().map(|storage| &storage.name()[..1]).collect();
    format!("{op}.{letters}.")
}

/// The reasons that covered a deviation so far, and the files that were run.
static USED: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
static RUN: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// The files whose cases are judged by the reasons.
const FILES: [&str; 12] = [
    "broadcast",
    "dot",
    "elemwise",
    "graphs",
    "infer",
    "nn",
    "reduce",
    "refusals",
    "scalar",
    "storage",
    "structure",
    "unary",
];

/// Notes that all cases of a file were judged. After the last file it is said which reasons covered nothing: they can go,
/// unless other files of the same form need them.
pub(crate) fn file_is_done(file: &str) {
    let mut run = RUN.lock().unwrap_or_else(PoisonError::into_inner);
    if !FILES.contains(&file) || !run.insert(file.to_owned()) || run.len() < FILES.len() {
        return;
    }
    let used = USED.lock().unwrap_or_else(PoisonError::into_inner);
    let unused: Vec<&str> =
        reasons().map(|reason| reason.why).filter(|why| !used.contains(why)).collect();
    let lines: String = unused.iter().map(|why| format!("\n  {why}")).collect();
    say(&format!("golden reasons: {} of {} cover no case{lines}", unused.len(), reasons().count()));
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
