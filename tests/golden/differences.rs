//! Reasons for differences in cases that are not operators: each file of tests has its own table of them, and its own
//! kinds of differences.

use crate::reasons::matches;
use crate::tally::Outcome;
use std::fmt::Debug;

/// A reason for differences of some kinds in the cases whose ids match one of the patterns (`*` is anything).
pub(crate) struct Reason<K: 'static> {
    pub(crate) patterns: &'static [&'static str],
    pub(crate) kinds: &'static [K],
    pub(crate) why: &'static str,
}

/// What becomes of a case that is as recorded, or different in one way.
pub(crate) fn judge<K: PartialEq + Debug>(
    reasons: &[Reason<K>],
    id: &str,
    difference: Result<Option<K>, String>,
) -> Outcome {
    let kind = match difference {
        Ok(None) => return Outcome::Passed,
        Ok(Some(kind)) => kind,
        Err(message) => return Outcome::Failed(message),
    };
    let covers = |reason: &&Reason<K>| {
        reason.kinds.contains(&kind) && reason.patterns.iter().any(|pattern| matches(pattern, id))
    };
    match reasons.iter().find(covers) {
        Some(reason) => Outcome::Reasons([reason.why].into()),
        None => Outcome::Failed(format!("{kind:?}, and there is no reason for it")),
    }
}

#[test]
fn a_difference_needs_a_reason_of_its_kind() {
    const REASONS: &[Reason<u8>] = &[Reason { patterns: &["a.*"], kinds: &[1], why: "so" }];
    let failed = |id, difference| matches!(judge(REASONS, id, difference), Outcome::Failed(_));
    assert!(
        matches!(judge(REASONS, "a.b", Ok(Some(1))), Outcome::Reasons(reasons) if reasons.contains("so"))
    );
    assert!(matches!(judge(REASONS, "b", Ok(None)), Outcome::Passed));
    assert!(failed("b", Ok(Some(1))) && failed("a.b", Ok(Some(2))));
    assert!(failed("a.b", Err("wrong".into())));
}
