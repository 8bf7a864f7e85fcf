//! The examples on the pages of the catalogue, through the front end.

use crate::expand;
use sparse_core::diagnostics::{Code, Diagnostic};

fn said(graph: &str) -> Vec<Diagnostic> {
    let (_, report) = expand::front(graph.parse().unwrap());
    report.diagnostics().to_vec()
}

#[test]
fn examples_give_their_code_and_are_mended() {
    let mut wrong = Vec::new();
    for code in Code::ALL {
        for example in code.examples() {
            let said = said(example.text);
            let found: Vec<Code> = said.iter().map(|diagnostic| diagnostic.code).collect();
            let holds = match example.is_wrong {
                true => found == [*code],
                false => found.is_empty(),
            };
            if !holds {
                let said: Vec<String> = said.iter().map(Diagnostic::text).collect();
                wrong.push(format!("{}:\n{}says {said:#?}", code.code(), example.text));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}
