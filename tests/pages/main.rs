//! The generated pages of `docs/` and the README: compared with the committed ones, or rewritten by
//! `NNZ_BLESS=1`.

#![allow(clippy::unwrap_used)]

mod coming_from;
mod features;
mod foreign_names;
mod gpu;
mod optimizers;

use sparse_core::document::{Page, language_pages};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Every generated page: one for each family of operators, their index, and the pages of errors,
/// update rules, GPUs and names from other libraries.
fn pages() -> Vec<Page> {
    let mut pages = language_pages();
    pages.extend([optimizers::page(), gpu::page(), foreign_names::page()]);
    pages
}

/// A page with the text between `<!-- name -->` and `<!-- end of name -->` replaced by `part`;
/// `None` where the page has no such lines.
fn embed(page: &str, name: &str, part: &str) -> Option<String> {
    let (start, end) = (format!("<!-- {name} -->\n"), format!("<!-- end of {name} -->\n"));
    let (before, rest) = page.split_once(&start)?;
    let (_, after) = rest.split_once(&end)?;
    Some(format!("{before}{start}{part}{end}{after}"))
}

#[test]
fn embedding_replaces_the_text_between_the_marks() {
    let page = "# Title\n<!-- table -->\nold\n<!-- end of table -->\n";
    let new = embed(page, "table", "new\n");
    assert_eq!(new.as_deref(), Some("# Title\n<!-- table -->\nnew\n<!-- end of table -->\n"));
    assert_eq!(embed(page, "figure", ""), None);
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn blessing() -> bool {
    std::env::var_os("NNZ_BLESS").is_some_and(|value| value == "1")
}

/// Compares a page with the committed one, or rewrites it.
fn check(path: &str, text: &str) -> Result<(), String> {
    let file = root().join(path);
    let committed = fs::read_to_string(&file).unwrap_or_default();
    if committed == text {
        return Ok(());
    }
    if blessing() {
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        // Other tests read the page meanwhile.
        let beside = file.with_extension("new");
        fs::write(&beside, text).unwrap();
        fs::rename(&beside, &file).unwrap();
        return Ok(());
    }
    let line = 1 + committed.lines().zip(text.lines()).take_while(|(a, b)| a == b).count();
    Err(format!("`{path}` is stale from line {line} on"))
}

#[test]
fn committed_pages_are_up_to_date() {
    let stale: Vec<String> =
        pages().iter().filter_map(|page| check(&page.path, &page.text).err()).collect();
    assert!(stale.is_empty(), "{}; run `NNZ_BLESS=1 cargo test -p nnz-pages`", stale.join(", "));
}

#[test]
fn every_committed_operator_page_has_a_family() {
    let known: BTreeSet<PathBuf> = pages().iter().map(|page| root().join(&page.path)).collect();
    for entry in fs::read_dir(root().join("docs/operators")).unwrap() {
        let path = entry.unwrap().path();
        assert!(known.contains(&path), "`{}` is nobody's page", path.display());
    }
}

/// A page with the table of features of today.
fn with_features(page: &str) -> String {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    embed(page, "features", &features::table(&manifest)).expect("the page has a table of features")
}

#[test]
fn the_front_page_lists_the_features_of_the_manifest() {
    let page = fs::read_to_string(root().join("docs/front.md")).unwrap();
    check("docs/front.md", &with_features(&page))
        .unwrap_or_else(|stale| panic!("{stale}; run `NNZ_BLESS=1 cargo test -p nnz-pages`"));
}

#[test]
fn the_readme_lists_the_features_of_the_manifest() {
    let page = fs::read_to_string(root().join("README.md")).unwrap();
    check("README.md", &with_features(&page))
        .unwrap_or_else(|stale| panic!("{stale}; run `NNZ_BLESS=1 cargo test -p nnz-pages`"));
}

/// The loss and the seconds that a page shows of a program stand in one row of `benches/README.md`.
#[test]
fn rates_that_pages_show_are_recorded() {
    let recorded = fs::read_to_string(root().join("benches/README.md")).unwrap();
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let mut shown = 0;
    for page in coming_from::pages().into_iter().map(|(_, text)| text).chain([readme]) {
        let tables = page.split("| log loss on the test file |").skip(1);
        let rows = tables.flat_map(|rest| rest.lines().skip(2).map_while(coming_from::cells));
        for cells in rows {
            let numbers = format!("| {} | {} |", cells[1], cells[2]);
            assert!(recorded.contains(&numbers), "{numbers} of {} is not recorded", cells[0]);
            shown += 1;
        }
    }
    assert!(shown > 10, "{shown}");
}

/// The README shows an error in the words that its case records.
#[test]
fn the_error_of_the_readme_is_the_recorded_one() {
    let read = |path: &str| fs::read_to_string(root().join(path)).unwrap();
    let recorded = read("tests/ui/storage/nnz0301_log_of_csr.stderr");
    let readme = read("README.md");
    let shown = readme.split_once("```text\nerror: ").unwrap().1;
    let words: Vec<&str> = shown.lines().take(2).collect();
    assert!(recorded.starts_with(&format!("error: {}\n", words.join("\n"))));
}

#[test]
fn the_rust_version_of_the_readme_is_the_declared_one() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let declared = format!("Minimum supported Rust version: {}.", env!("CARGO_PKG_RUST_VERSION"));
    assert!(readme.contains(&declared), "the README does not say `{declared}`");
}
