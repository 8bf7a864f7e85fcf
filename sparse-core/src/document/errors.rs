//! The page of everything that the compiler can say.

use super::{Page, generated_from, table};
use crate::diagnostics::{Code, Severity};

/// `docs/errors.md`.
pub(super) fn page() -> Page {
    let mut text = generated_from("`sparse-core/src/diagnostics.rs`");
    text.push_str(
        "# Errors\n\n\
         What `graph!` can say about a model, by code. All errors of a pass are reported together; the types of a \
         model with errors still exist, so that code that uses it is not in error for that.\n\n",
    );
    let rows: Vec<Vec<String>> = Code::ALL
        .iter()
        .map(|code| {
            vec![
                format!("[{}](#{})", code.code(), code.code().to_lowercase()),
                kind(*code).to_owned(),
                code.title().to_owned(),
            ]
        })
        .collect();
    text.push_str(&table(&["code", "is", "about"], &rows));
    for code in Code::ALL {
        let page: Vec<&str> = code.page().lines().map(str::trim).collect();
        text.push_str(&format!(
            "\n## {}\n\n{}: **{}**\n\n{}\n",
            code.code(),
            kind(*code),
            code.title(),
            page.join("\n").trim()
        ));
    }
    Page { path: "docs/errors.md".into(), text }
}

fn kind(code: Code) -> &'static str {
    match code.severity() {
        Severity::Error => "error",
        Severity::Warning => "warning",
    }
}
