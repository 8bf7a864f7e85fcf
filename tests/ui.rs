//! Every diagnostic, as the user sees it. `TRYBUILD=overwrite cargo test -p nnz-tests ui::`
//! rewrites the expected text.

use sparse_core::diagnostics::Code;
use std::collections::BTreeSet;
use std::path::PathBuf;

const FOLDERS: [&str; 10] = [
    "parse",
    "names",
    "shapes",
    "storage",
    "gradients",
    "blocks",
    "alternatives",
    "operators",
    "skeleton",
    "traits",
];

#[test]
fn errors() {
    let cases = trybuild::TestCases::new();
    for folder in FOLDERS {
        cases.compile_fail(format!("ui/{folder}/*.rs"));
    }
}

/// What a feature adds is refused without it, and the refusal names the feature.
#[cfg(not(feature = "half"))]
#[test]
fn features_that_are_off() {
    trybuild::TestCases::new().compile_fail("ui/features/*.rs");
}

/// The catalogue and the cases hold each other: each code has a case named after it.
#[test]
fn every_code_has_a_case() {
    let mut covered: BTreeSet<Code> = BTreeSet::new();
    for folder in FOLDERS {
        for entry in std::fs::read_dir(format!("ui/{folder}")).unwrap() {
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

/// A type that is not what a trait bound asks for is told what is, in our words.
#[test]
fn every_public_trait_says_what_it_wants() {
    let mut folders: Vec<_> = ["../sparse-core/src", "../sparse-runtime"].map(PathBuf::from).into();
    let (mut found, mut silent) = (0, Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            if path.extension().is_none_or(|extension| extension != "rs") {
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            // Traits inside a module that is not public begin further right.
            for (at, _) in text.match_indices("\npub trait ") {
                let before = &text[..at];
                let item = before.rfind("\n\n").map_or(before, |start| &before[start..]);
                found += 1;
                if !item.contains("#[diagnostic::on_unimplemented(") {
                    let name = text[at + 11..].split(|c: char| !c.is_alphanumeric()).next();
                    silent.push(format!("{}: {}", path.display(), name.unwrap_or_default()));
                }
            }
        }
    }
    assert!(found > 20, "{found} public traits");
    assert!(silent.is_empty(), "no `#[diagnostic::on_unimplemented]`: {silent:#?}");
}
