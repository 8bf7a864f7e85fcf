//! Where the library differs from the reference on purpose, and why.

use crate::tally::Outcome;
use Kind::{
    GradientRule, GradientSparser, GradientStorage, Refused, Rule, Sparser, Storage, ZeroForNan,
};

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
}

/// One difference.
pub(crate) struct Deviation {
    kind: Kind,
    message: String,
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

const REASONS: &[Reason] = &[
    Reason {
        patterns: &["dot.dc.*", "dot.cd.*"],
        kinds: &[Rule, GradientRule, Sparser, GradientSparser],
        why: "a kernel reads the csr operand as it is, transposed or not, where the reference multiplies dense copies",
    },
    Reason {
        patterns: &["dot.dd.*.csr.*", "dot.rd.*.csr.*"],
        kinds: &[GradientSparser],
        why: "the gradient that arrives at a product made csr is csr, and so is what is computed from it by rows or columns",
    },
    Reason {
        patterns: &["dot.dc.NT.auto.*"],
        kinds: &[Storage],
        why: "the product of a dense matrix with a transposed csr is dense; the reference converts it to csr, which saves nothing",
    },
    Reason {
        patterns: &["dot.cc.*"],
        kinds: &[GradientStorage],
        why: "where a product falls back, the conversions are part of the graph, and the gradient of a product of dense is dense",
    },
    Reason {
        patterns: &["broadcast_add.*", "broadcast_sub.*", "grad_add.*"],
        kinds: &[Rule, GradientRule, Sparser],
        why: "a kernel adds the sparse operand as it is, and a sum of two of one storage and shape keeps it",
    },
    Reason {
        patterns: &["elemwise_mul.*", "broadcast_mul.*", "broadcast_div.*"],
        kinds: &[Rule, GradientRule, Sparser, GradientSparser],
        why: "a product or quotient stores what its sparse operand stores, and so does its gradient where the rest is 0",
    },
    Reason {
        patterns: &["elemwise_div.cd.*", "elemwise_div.rd.*"],
        kinds: &[Rule, GradientRule, Sparser, GradientSparser, ZeroForNan],
        why: "the quotient of a sparse dividend stores what that stores, as `broadcast_div` does: what is not stored is 0, not 0/0",
    },
    Reason {
        patterns: &["elemwise_div.rr.*"],
        kinds: &[Refused],
        why: "the quotient of two row_sparse arrays is dense (0/0), which the source must ask for; the reference makes it unasked",
    },
    Reason {
        patterns: &["plus_scalar.c.*", "plus_scalar.r.*", "minus_scalar.c.*", "minus_scalar.r.*"],
        kinds: &[Refused],
        why: "a number added to a sparse array makes it dense, which the source must ask for; the reference does it unasked",
    },
    Reason {
        patterns: &[
            "arcsin.*",
            "arcsinh.*",
            "arctan.*",
            "arctanh.*",
            "cbrt.*",
            "expm1.*",
            "log1p.*",
            "sin.*",
            "sinh.*",
            "sqrt.*",
            "tan.*",
            "tanh.*",
        ],
        kinds: &[GradientRule, GradientSparser],
        why: "the gradient of a function of a sparse array stores what the arriving gradient stores, and 0 is not stored",
    },
    Reason {
        patterns: &["Activation.relu.*", "Activation.tanh.*"],
        kinds: &[Rule, GradientRule, Sparser, GradientSparser],
        why: "a function that is 0 at 0 keeps the storage of its operand under any name",
    },
    Reason {
        patterns: &["sum.c.*", "sum.r.*", "mean.c.*", "mean.r.*"],
        kinds: &[Rule, GradientRule, Sparser],
        why: "a kernel sums what is stored, over any axis; a reduction over no axis keeps the storage",
    },
    Reason {
        patterns: &["assign.d>*"],
        kinds: &[Rule],
        why: "a conversion reads the dense array as it is",
    },
    Reason {
        patterns: &["transpose.c*"],
        kinds: &[Rule, GradientRule, Sparser],
        why: "the transpose of a csr is a csr",
    },
];

/// Patterns of cases of operators that are built, which need something that is not.
const NOT_BUILT: &[(&str, &str)] = &[("dot.*.rank1_rhs", "dot with a vector")];

/// What becomes of a case that could not be run.
pub(crate) fn judge_failure(id: &str, message: String) -> Outcome {
    match NOT_BUILT.iter().find(|(pattern, _)| matches(pattern, id)) {
        Some((_, what)) => Outcome::NotBuilt((*what).to_owned()),
        None => Outcome::Failed(message),
    }
}

/// What becomes of a case: every deviation needs a reason.
pub(crate) fn judge(id: &str, deviations: Vec<Deviation>) -> Outcome {
    let mut covered = Outcome::Passed;
    let mut failures = Vec::new();
    for deviation in deviations {
        let reason = REASONS.iter().find(|reason| {
            reason.kinds.contains(&deviation.kind)
                && reason.patterns.iter().any(|pattern| matches(pattern, id))
        });
        match reason {
            Some(reason) => covered = Outcome::Reason(reason.why),
            None => failures.push(format!("{:?}: {}", deviation.kind, deviation.message)),
        }
    }
    if failures.is_empty() { covered } else { Outcome::Failed(failures.join("; ")) }
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
