//! The names of the types that models are emitted as: no two models of a `graph!` may have one in
//! common.

use crate::ast::Model;
use crate::report::Report;
use sparse_core::alternatives::Variants;
use sparse_core::diagnostics::Code;
use std::collections::BTreeMap;
use syn::ext::IdentExt;

/// The types of the models so far, and whose they are.
#[derive(Default)]
pub(crate) struct Types(BTreeMap<String, String>);

impl Types {
    /// Whether a model can be emitted: what is emitted twice would be told in words of the Rust
    /// compiler.
    pub(crate) fn take(&mut self, model: &Model, compiled: &Variants, report: &mut Report) -> bool {
        let name = model.name.unraw().to_string();
        let variants = compiled.variants.iter().map(|variant| &variant.model.graph.name);
        let parts = ["", "Batch", "Outputs", "Grads"];
        let types = variants.flat_map(|variant| parts.map(|part| format!("{variant}{part}")));
        let types: Vec<String> = types.chain([name.clone()]).collect();
        let taken = types.iter().find_map(|known| Some((known, self.0.get(known)?)));
        if let Some((known, other)) = taken {
            let message = if *other == name {
                format!("the model `{name}` is declared twice")
            } else {
                format!("the model `{other}` has a type `{known}` already")
            };
            let help = Some(format!("call the second model something else: `{name}2`"));
            report.error(Code::DuplicateName, model.name.span(), message, help);
            return false;
        }
        self.0.extend(types.into_iter().map(|known| (known, name.clone())));
        true
    }
}
