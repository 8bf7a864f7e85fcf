//! Pages made from the operator table and from the catalogue of diagnostics.
//!
//! Everything here is text from data: nothing is read or written. The test `pages` compares the result with the
//! committed pages, and rewrites them where `NNZ_BLESS=1` is set.

mod errors;
mod operators;
mod tables;

pub use tables::storage_tables;

/// A generated page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// Where it is kept, from the root of the repository, with `/`.
    pub path: String,
    /// All of it, in Markdown.
    pub text: String,
}

/// Every generated page: one a family of operators, their index, and the page of errors.
pub fn pages() -> Vec<Page> {
    let mut pages = operators::pages();
    pages.push(errors::page());
    pages
}

/// A page with what stands between `<!-- name -->` and `<!-- end of name -->` replaced by `part`; `None` where it has
/// no such lines.
///
/// ```
/// use sparse_core::document::embed;
///
/// let page = "# Title\n<!-- table -->\nold\n<!-- end of table -->\n";
/// let new = embed(page, "table", "new\n");
/// assert_eq!(new.as_deref(), Some("# Title\n<!-- table -->\nnew\n<!-- end of table -->\n"));
/// assert_eq!(embed(page, "figure", ""), None);
/// ```
pub fn embed(page: &str, name: &str, part: &str) -> Option<String> {
    let (start, end) = (format!("<!-- {name} -->\n"), format!("<!-- end of {name} -->\n"));
    let (before, rest) = page.split_once(&start)?;
    let (_, after) = rest.split_once(&end)?;
    Some(format!("{before}{start}{part}{end}{after}"))
}

/// The first line of every generated page.
fn generated_from(source: &str) -> String {
    format!(
        "<!-- Generated from {source}. `NNZ_BLESS=1 cargo test -p sparse-core --test pages` rewrites it. -->\n\n"
    )
}

/// A table in Markdown. A `|` inside a cell is escaped.
fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let cells: Vec<String> = cells.map(|cell| cell.replace('|', "\\|")).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    let mut text = line(&mut head.iter().copied());
    text.push_str(&format!("|{}\n", "---|".repeat(head.len())));
    for row in rows {
        text.push_str(&line(&mut row.iter().map(String::as_str)));
    }
    text
}

/// `` `a`, `b` ``.
fn code_list<S: AsRef<str>>(words: impl IntoIterator<Item = S>) -> String {
    let words: Vec<String> = words.into_iter().map(|word| format!("`{}`", word.as_ref())).collect();
    words.join(", ")
}
