//! The page of the language: its examples compile, and nothing that the parser knows is missing.

use super::diagnostics::said;
use crate::parse;
use sparse_core::diagnostics::Diagnostic;
use sparse_core::storage::{ElementType, Storage};

const PAGE: &str = include_str!("../../../docs/language.md");

/// The examples that are not whole programs, which are run as documentation tests.
fn examples() -> Vec<&'static str> {
    let parts = PAGE.split("```rust,ignore\n").skip(1);
    parts.filter_map(|part| part.split("```").next()).collect()
}

#[test]
fn examples_of_the_page_of_the_language_compile_without_a_warning() {
    let mut wrong = Vec::new();
    for example in examples() {
        let said = said(example);
        if !said.is_empty() {
            let said: Vec<String> = said.iter().map(Diagnostic::text).collect();
            wrong.push(format!("{example}says {said:#?}"));
        }
    }
    assert!(examples().len() > 20);
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn every_word_of_the_parser_stands_on_the_page_of_the_language() {
    let words = |text: &'static str| text.split(|c: char| !c.is_alphanumeric() && c != '_');
    let known: Vec<&str> = words(PAGE).collect();
    let of_types = Storage::ALL.map(Storage::name).into_iter();
    let of_types = of_types.chain(ElementType::ALL.map(ElementType::name));
    let missing: Vec<&str> =
        parse::words().chain(of_types).filter(|word| !known.contains(word)).collect();
    assert!(parse::words().count() > 40);
    assert!(missing.is_empty(), "{missing:?}");
    for sign in ["+", "-", "*", "/", "==", "!=", "<", "<=", ">", ">="] {
        assert!(
            PAGE.contains(&format!(" {sign} ")) || PAGE.contains(&format!("`{sign}")),
            "{sign}"
        );
    }
}

#[test]
fn links_of_the_page_of_the_language_lead_to_its_headings() {
    let headings: Vec<String> = PAGE
        .lines()
        .filter(|line| line.starts_with('#') && line.contains("# "))
        .map(|line| {
            let text = line.trim_start_matches('#').trim().to_lowercase();
            let kept = text.chars().filter(|c| c.is_alphanumeric() || *c == ' ' || *c == '_');
            kept.map(|c| if c == ' ' { '-' } else { c }).collect()
        })
        .collect();
    let links = PAGE.split("](#").skip(1).filter_map(|rest| rest.split(')').next());
    let broken: Vec<&str> =
        links.filter(|link| !headings.iter().any(|heading| heading == link)).collect();
    assert!(broken.is_empty(), "{broken:?}");
}
