//! The page of errors and warnings.

use super::{Page, generated_from, table};
use crate::diagnostics::{Code, Severity};

/// `docs/errors.md`.
pub(super) fn page() -> Page {
    let mut text = generated_from("`sparse-core/src/diagnostics/`");
    text.push_str(
        "# Errors\n\n\
         What `graph!` can say about a model, by code. All errors of a pass are reported together; the types of a \
         model with errors still exist, so that code that uses it is not in error for that. Each example is what stands \
         inside `graph! { … }`: the first one is refused with the code of its section, the second is the same mended. \
         A test compiles both.\n\n",
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
        let wrong = format!("```graph,{}\n", code.code());
        let page = code.page().replace(&wrong, "```rust\n").replace("```graph\n", "```rust\n");
        text.push_str(&format!(
            "\n## {}\n\n{}: **{}**\n\n{}",
            code.code(),
            kind(*code),
            code.title(),
            page
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
