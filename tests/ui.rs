//! Every diagnostic, as the user sees it. `TRYBUILD=overwrite cargo test --test ui` rewrites the expected text.

use sparse_core::diagnostics::Code;
use std::collections::BTreeSet;

const FOLDERS: [&str; 8] =
    ["parse", "names", "shapes", "storage", "gradients", "blocks", "skeleton", "traits"];

#[test]
fn errors() {
    let cases = trybuild::TestCases::new();
    for folder in FOLDERS {
        cases.compile_fail(format!("tests/ui/{folder}/*.rs"));
    }
}

/// What a feature adds is refused without it, and the refusal names the feature.
#[cfg(not(feature = "half"))]
#[test]
fn features_that_are_off() {
    trybuild::TestCases::new().compile_fail("tests/ui/features/*.rs");
}

/// The catalogue and the cases hold each other: each code has a case named after it.
#[test]
fn every_code_has_a_case() {
    let mut covered: BTreeSet<Code> = BTreeSet::new();
    for folder in FOLDERS {
        for entry in std::fs::read_dir(format!("tests/ui/{folder}")).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "stderr") {
                let text = std::fs::read_to_string(path).unwrap();
                covered.extend(Code::ALL.iter().filter(|code| text.contains(code.code())));
            }
        }
    }
    let missing: Vec<_> = Code::ALL
        .iter()
        // A bug of the compiler cannot be shown by a case.
        .filter(|code| **code != Code::Internal && !covered.contains(code))
        .map(|code| code.code())
        .collect();
    assert!(missing.is_empty(), "no UI case shows {missing:?}");
}
