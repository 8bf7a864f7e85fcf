//! States: parameters that no gradient trains, and what they become after a batch.

use super::Resolver;
use crate::ast::{Expression, Parameter};
use proc_macro2::Span;
use sparse_core::diagnostics::{Code, nearest};
use sparse_core::ir::{Annotation, Claim, Update, ValueId};
use sparse_core::storage::Storage;
use syn::Ident;

/// A state of the model.
pub(super) struct State {
    name: String,
    value: ValueId,
    span: Span,
    is_updated: bool,
}

impl Resolver<'_> {
    /// A parameter that was declared, if it is a state.
    pub(super) fn state(&mut self, parameter: &Parameter) {
        let (name, span) = (parameter.name.to_string(), parameter.name.span());
        let value = self.frame.scope.get(&name).copied().filter(|_| parameter.is_state);
        let Some(value) = value else { return };
        let storage = self.graph.storage(value);
        if storage != Storage::Dense {
            let message = format!("the state `{name}` is declared `{storage}`");
            let help = "a step writes all of a state: declare it `dense[…]`".to_owned();
            self.error(Code::BadUpdate, parameter.array.span, message, Some(help));
        }
        self.states.push(State { name, value, span, is_updated: false });
    }

    /// `update name = value;`: a value of the state's type.
    pub(super) fn update(&mut self, name: &Ident, value: &Expression) {
        let value = self.expression(value);
        let (word, place) = (name.to_string(), self.place(name.span()));
        let known = self.states.iter().map(|state| state.name.as_str());
        let suggestion = nearest(&word, known).map(|known| format!("write `update {known} = …;`"));
        let Some(state) = self.states.iter_mut().find(|state| state.name == word) else {
            let (message, help) = if self.frame.scope.contains_key(&word) {
                (
                    format!("`{word}` is not a state"),
                    format!(
                        "`let` computes values, and training updates parameters; what a step carries over is declared `state {word}: dense[…] = Zeros;`"
                    ),
                )
            } else {
                (
                    format!("no state is called `{word}`"),
                    suggestion.unwrap_or_else(|| {
                        format!("declare `state {word}: dense[…] = Zeros;` above")
                    }),
                )
            };
            self.error(Code::BadUpdate, name.span(), message, Some(help));
            return;
        };
        if std::mem::replace(&mut state.is_updated, true) {
            let message = format!("the state `{word}` is updated twice");
            let help = "write one update of it".to_owned();
            self.error(Code::BadUpdate, name.span(), message, Some(help));
            return;
        }
        let state = state.value;
        let declared = self.graph.value(state);
        let annotation = Annotation {
            storage: Storage::Dense,
            shape: declared.shape.clone().unwrap_or_default(),
            element: Some(declared.element),
            place,
        };
        let name = format!("update {word}");
        self.graph.claims.push(Claim { name, value, annotation, output: None });
        self.graph.updates.push(Update { state, value, place });
    }

    /// What nothing updates.
    pub(super) fn check_states(&mut self) {
        let idle: Vec<(String, Span)> = self
            .states
            .iter()
            .filter(|state| !state.is_updated)
            .map(|state| (state.name.clone(), state.span))
            .collect();
        for (name, span) in idle {
            let message = format!("nothing updates the state `{name}`");
            let help = format!("write `update {name} = …;`, or declare `param(frozen) {name}`");
            self.error(Code::BadUpdate, span, message, Some(help));
        }
    }
}
