//! What the models of this repository store.

use crate::report::Report;
use crate::{parse, resolve};
use proc_macro2::TokenStream;
use sparse_core::alternatives::compile_variants;
use sparse_core::diagnostics::Diagnostic;
use sparse_core::ir::Fallback;
use std::path::{Path, PathBuf};
use syn::visit::{self, Visit};

#[path = "../../../sparse-core/tests/field_storage/cases.rs"]
#[allow(dead_code, unreachable_pub)]
mod cases;

/// The tokens of each `graph!` of a file.
#[derive(Default)]
struct Graphs(Vec<TokenStream>);

impl<'ast> Visit<'ast> for Graphs {
    fn visit_macro(&mut self, found: &'ast syn::Macro) {
        if found.path.segments.last().is_some_and(|last| last.ident == "graph") {
            self.0.push(found.tokens.clone());
        }
        visit::visit_macro(self, found);
    }
}

/// The files of Rust in a folder; those that are to be refused are left out.
fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("ui") {
            files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn s_no_model_of_examples_and_tests_has_a_gradient_denser_than_its_value() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut sources = Vec::new();
    for folder in ["examples", "tests", "benches/ratios/src"] {
        files(&root.join(folder), &mut sources);
    }
    sources.sort();
    let (mut n_models, mut wrong) = (0, Vec::new());
    for path in sources {
        let Ok(file) = syn::parse_file(&std::fs::read_to_string(&path).unwrap()) else { continue };
        let mut graphs = Graphs::default();
        graphs.visit_file(&file);
        for tokens in graphs.0 {
            let mut report = Report::default();
            let Some(source) = parse::source_of_depth(tokens, &mut report) else { continue };
            // What is fetched from other crates is not here.
            if source.unfetched().is_some() {
                continue;
            }
            let library = resolve::library(&source, &mut report);
            for model in &source.models {
                let (graph, _) = resolve::resolve(model, &library, &mut report);
                if report.n_errors() > 0 || graph.fallback != Fallback::Deny {
                    continue;
                }
                for variant in compile_variants(graph).variants {
                    let refused = variant.model.errors().map(Diagnostic::text);
                    let refused = refused.filter(|text| text.contains("the gradient of"));
                    let mut dense = cases::dense_temporaries(&variant.model);
                    dense.extend(cases::whole_tables(&variant.model));
                    dense.extend(refused);
                    if !dense.is_empty() {
                        wrong.push(format!("{path:?} {}: {dense:?}", variant.model.graph.name));
                    }
                    n_models += 1;
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(n_models > 100, "{n_models} models were found");
}
