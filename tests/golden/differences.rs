//! Reasons for differences in cases that are not operators: each file of tests has its own table of
//! them.

use crate::golden::reasons::{Relaxes, matches_any};
use crate::golden::tally::{Outcome, Reasons};

/// Why something is not held of the cases whose ids match one of the patterns (`*` is anything).
pub(crate) struct Reason {
    pub(crate) patterns: &'static [&'static str],
    pub(crate) relaxes: Relaxes,
    pub(crate) why: &'static str,
}

/// What becomes of a case that is as recorded, or of which something does not hold.
pub(crate) fn judge(
    reasons: &[Reason],
    id: &str,
    differences: Result<Vec<Relaxes>, impl Into<Outcome>>,
) -> Outcome {
    let differences = match differences {
        Ok(differences) => differences,
        Err(failure) => return failure.into(),
    };
    let mut covered = Reasons::new();
    for relaxes in differences {
        let covers =
            |reason: &&Reason| reason.relaxes == relaxes && matches_any(reason.patterns, &[id]);
        match reasons.iter().find(covers) {
            Some(reason) => covered.entry(reason.why).or_default().insert(relaxes),
            None => return Outcome::Failed(format!("no reason for its {relaxes}")),
        };
    }
    if covered.is_empty() { Outcome::Passed } else { Outcome::Reasons(covered) }
}

#[test]
fn a_difference_needs_a_reason_of_its_kind() {
    use Relaxes::{Refusal, Storage};
    const REASONS: &[Reason] = &[Reason { patterns: &["a.*"], relaxes: Storage, why: "so" }];
    let no_failure = Ok::<Vec<Relaxes>, String>;
    let failed = |id, differences| matches!(judge(REASONS, id, differences), Outcome::Failed(_));
    assert!(
        matches!(judge(REASONS, "a.b", no_failure(vec![Storage])), Outcome::Reasons(reasons) if reasons.contains_key("so"))
    );
    assert!(matches!(judge(REASONS, "b", no_failure(vec![])), Outcome::Passed));
    assert!(failed("b", Ok(vec![Storage])) && failed("a.b", Ok(vec![Storage, Refusal])));
    assert!(failed("a.b", Err("wrong".to_owned())));
}
