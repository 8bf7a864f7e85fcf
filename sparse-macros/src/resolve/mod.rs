//! Tree to graph: names, operators, attributes. What the passes of `sparse-core` take over from here.

mod calls;
mod declarations;
mod types;

use crate::ast::{Declaration, Expression, ExpressionKind, Model};
use crate::report::Report;
use proc_macro2::Span;
use sparse_core::diagnostics::{Code, nearest};
use sparse_core::ir::{Graph, Kind, Place, Value, ValueId};
use sparse_core::operators;
use sparse_core::storage::{ElementType, Storage};
use std::collections::BTreeMap;
use syn::Ident;

/// Resolves a model.
pub(crate) fn resolve(model: &Model, report: &mut Report) -> Graph {
    let mut resolver = Resolver {
        graph: Graph::new(&model.name.to_string(), ElementType::F32),
        scope: BTreeMap::new(),
        report,
    };
    // Options first: they hold for the whole model, wherever they stand.
    for declaration in &model.declarations {
        if let Declaration::Option { name, value } = declaration {
            resolver.option(name, value);
        }
    }
    for name in &model.lost {
        let id = resolver.poison(name.span());
        resolver.scope.insert(name.to_string(), id);
    }
    for declaration in &model.declarations {
        resolver.declaration(declaration);
    }
    resolver.graph
}

struct Resolver<'a> {
    graph: Graph,
    scope: BTreeMap<String, ValueId>,
    report: &'a mut Report,
}

impl Resolver<'_> {
    fn expression(&mut self, expression: &Expression) -> ValueId {
        match &expression.kind {
            ExpressionKind::Broken => self.poison(expression.span),
            ExpressionKind::Number(number) => {
                let place = self.report.place(expression.span);
                self.graph.constant(*number, place)
            }
            ExpressionKind::Name(name) => self.name(name),
            ExpressionKind::Call { operator, operands, attributes } => {
                let operands: Vec<ValueId> =
                    operands.iter().map(|operand| self.expression(operand)).collect();
                self.call(operator, operands, attributes)
            }
        }
    }

    /// The value of a name.
    fn name(&mut self, name: &Ident) -> ValueId {
        let word = name.to_string();
        if let Some(id) = self.scope.get(&word) {
            return *id;
        }
        let help = nearest(&word, self.scope.keys().map(String::as_str))
            .map(|known| format!("a value `{known}` is declared above"));
        let help = help.or_else(|| {
            operators::find(&word).map(|_| format!("`{word}` is an operator: write `{word}(…)`"))
        });
        let message = format!("no value is called `{word}`");
        self.report.error(Code::UnknownName, name.span(), message, help);
        self.poison(name.span())
    }

    /// A value for what is already reported, so that its users say nothing.
    fn poison(&mut self, span: Span) -> ValueId {
        let place: Place = self.report.place(span);
        self.graph.push(Value {
            kind: Kind::Input,
            name: None,
            place,
            element: self.graph.element(),
            shape: Some(Vec::new()),
            storage: Some(Storage::Dense),
            annotation: None,
            inserted: false,
            broken: true,
        })
    }
}
