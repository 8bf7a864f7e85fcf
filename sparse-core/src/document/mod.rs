//! Pages made from the operator table, the catalogue of diagnostics and the update rules.
//!
//! Everything here is text from data: nothing is read or written. The test `pages` compares the result with the
//! committed pages, and rewrites them where `NNZ_BLESS=1` is set.

mod errors;
mod foreign_names;
mod gpu;
mod operators;
mod optimizers;
mod tables;

pub use tables::{short_storage_tables, storage_tables};

/// A generated page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// Where it is kept, from the root of the repository, with `/`.
    pub path: String,
    /// All of it, in Markdown.
    pub text: String,
}

/// Every generated page: one a family of operators, their index, the page of errors, that of update
/// rules, that of GPUs and that of names from other libraries.
pub fn pages() -> Vec<Page> {
    let mut pages = language_pages();
    pages.push(optimizers::page());
    pages.push(gpu::page());
    pages.push(foreign_names::page());
    pages
}

/// The pages of the language: operators and errors.
fn language_pages() -> Vec<Page> {
    let mut pages = operators::pages();
    pages.push(errors::page());
    pages
}

/// The pages of the language as the documentation of modules, by the path of the module inside `operators`: links to other pages
/// become links to their modules. The index has the empty path.
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
