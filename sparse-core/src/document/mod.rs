//! Markdown pages of the operator table and of the diagnostics.
//!
//! `sparse_macros::operator_pages!` puts them into the runtime's documentation, and the package
//! `nnz-pages` keeps them in `docs/`. Everything here is text from data: no file is read or
//! written.

mod errors;
mod operators;
mod tables;

pub use tables::storage_tables;

/// A generated page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The path of the file, from the root of the repository, with `/`.
    pub path: String,
    /// The whole text, in Markdown.
    pub text: String,
}

/// The pages of the language: one for each family of operators, their index, and the errors.
pub fn language_pages() -> Vec<Page> {
    let mut pages = operators::pages();
    pages.push(errors::page());
    pages
}

/// The pages of the language as the documentation of modules, by the path of the module inside
/// `operators`: links to other pages become links to their modules. The index has the empty path.
pub fn module_pages() -> Vec<(String, String)> {
    let pages = language_pages();
    let name = |page: &Page| match page.path.rsplit('/').next().unwrap_or_default() {
        "README.md" => String::new(),
        file => file.trim_end_matches(".md").to_owned(),
    };
    let links: Vec<(String, String)> = pages
        .iter()
        .flat_map(|page| {
            let file = page.path.trim_start_matches("docs/").trim_start_matches("operators/");
            let module = match name(page) {
                index if index.is_empty() => "crate::operators".to_owned(),
                name => format!("crate::operators::{name}"),
            };
            ["", "../", "operators/"]
                .map(|folder| (format!("]({folder}{file}"), format!("]({module}")))
        })
        .collect();
    let module = |page: &Page| {
        let text =
            links.iter().fold(page.text.clone(), |text, (file, module)| text.replace(file, module));
        // A comment says how the file is made; a module has no file.
        let text = text.split_once("-->").map_or(text.clone(), |(_, rest)| rest.to_owned());
        // What stands in `graph!` is no program that a documentation test could compile.
        let text = text.replace("```rust\n", "```text\n");
        (name(page), text.trim_start().to_owned())
    };
    pages.iter().map(module).collect()
}

/// The first line of every generated page: `source`, and the command that makes the page again.
pub fn generated_from(source: &str) -> String {
    format!(
        "<!-- Generated from {source}. `NNZ_BLESS=1 cargo test -p nnz-pages` rewrites it. -->\n\n"
    )
}

/// A table in Markdown. A `|` inside a cell is escaped.
pub fn table(head: &[&str], rows: &[Vec<String>]) -> String {
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

/// Words as code, in one line: `` `a`, `b` ``.
pub fn code_list<S: AsRef<str>>(words: impl IntoIterator<Item = S>) -> String {
    let words: Vec<String> = words.into_iter().map(|word| format!("`{}`", word.as_ref())).collect();
    words.join(", ")
}
