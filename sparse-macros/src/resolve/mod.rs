//! Name resolution: from the syntax tree to the graph that the passes of `sparse-core` take.

mod blocks;
mod calls;
mod declarations;
mod library;
mod names;
mod number_faults;
mod numbers;
mod operators;
mod states;
mod types;
mod words;

pub(crate) use blocks::check as check_blocks;
#[cfg(test)]
pub(crate) use declarations::values_of_options;
pub(crate) use library::{Library, callees, callees_of_operator};

use crate::ast::{Declaration, Expression, ExpressionKind, Model, Source};
use crate::parse::{DEEPEST, too_deep};
use crate::report::Report;
use blocks::Frame;
use numbers::Numbers;
pub(crate) use numbers::Unnamed;
use proc_macro2::Span;
use sparse_core::diagnostics::Code;
use sparse_core::ir::{Graph, Kind, Place, Value, ValueId};
use sparse_core::storage::{ElementType, Storage};
use std::collections::BTreeSet;
use syn::Ident;
use syn::ext::IdentExt;

/// The blocks and the operators of a source, with all that is wrong with them reported.
pub(crate) fn library<'a>(source: &'a Source, report: &mut Report) -> Library<'a> {
    let mut library = Library::new(source, report);
    operators::declare(&mut library, report);
    library
}

/// Resolves a model: its graph, and the constants of Rust in it that have no name in the model.
pub(crate) fn resolve(
    model: &Model,
    library: &Library<'_>,
    report: &mut Report,
) -> (Graph, Vec<Unnamed>) {
    let mut resolver = Resolver::new(&model.name.unraw().to_string(), library, report);
    resolver.graph.place = resolver.report.place(model.name.span());
    // Options first: they hold for the whole model, wherever they stand.
    let mut given = BTreeSet::new();
    for declaration in &model.declarations {
        let (Declaration::Option { name, .. } | Declaration::Specialize { name, .. }) = declaration
        else {
            continue;
        };
        if !given.insert(name) {
            let message = format!("`{name}` is given twice");
            let help = Some("leave one of them out".to_owned());
            resolver.error(Code::BadOption, name.span(), message, help);
        }
        if let Declaration::Option { name, value } = declaration {
            resolver.option(name, value);
        }
    }
    resolver.declare_numbers(model);
    resolver.below = names::declared(model).map(Ident::to_string).collect();
    for name in &model.lost {
        if !resolver.below.contains(&name.to_string()) {
            let id = resolver.poison(name.span());
            resolver.frame.scope.insert(name.to_string(), id);
        }
    }
    let before = resolver.report.n_errors();
    for declaration in &model.declarations {
        resolver.declaration(declaration);
    }
    if resolver.report.n_errors() == before {
        resolver.check_states();
    }
    let graph = &resolver.graph;
    let has_result = !graph.outputs.is_empty() || !graph.losses.is_empty();
    // What is broken may have been meant to read anything.
    let whole = !model.broken && graph.values.iter().all(|value| !value.broken);
    if has_result && resolver.report.n_errors() == before && whole {
        resolver.check_read(model);
    }
    (resolver.graph, resolver.numbers.into_unnamed())
}

struct Resolver<'a> {
    graph: Graph,
    library: &'a Library<'a>,
    /// What names mean: of the model, or of the block that is being expanded.
    frame: Frame,
    /// What names are numbers.
    numbers: Numbers,
    /// What the model declares.
    below: BTreeSet<String>,
    /// What is carried from batch to batch.
    states: Vec<states::State>,
    /// What the model has read.
    read: BTreeSet<String>,
    /// How deep the expression is nested that is being resolved, with the blocks around it.
    depth: usize,
    /// Whether one was refused as too deep.
    is_too_deep: bool,
    report: &'a mut Report,
}

impl<'a> Resolver<'a> {
    fn new(name: &str, library: &'a Library<'a>, report: &'a mut Report) -> Self {
        let mut graph = Graph::new(name, ElementType::F32);
        graph.operators = library.specs().collect();
        let (below, read) = (BTreeSet::new(), BTreeSet::new());
        Resolver {
            graph,
            library,
            frame: Frame::default(),
            numbers: Numbers::default(),
            below,
            states: Vec::new(),
            read,
            depth: 0,
            is_too_deep: false,
            report,
        }
    }
}

impl Resolver<'_> {
    /// A place in the source; in a block, where the model uses it.
    fn place(&mut self, span: Span) -> Place {
        match &self.frame.site {
            None => self.report.place(span),
            Some(site) => self.report.place_in(site.span, &site.words),
        }
    }

    /// Says something at a place of the source.
    fn error(&mut self, code: Code, span: Span, message: String, help: Option<String>) {
        let place = self.place(span);
        self.report.error_at(code, place, message, help);
    }

    /// The value of an expression. What is computed first in it is followed by a loop: a sum is as
    /// deep as it has terms.
    fn expression(&mut self, expression: &Expression) -> ValueId {
        self.depth += 1;
        if self.depth > DEEPEST {
            self.depth -= 1;
            return self.too_deep(expression.span);
        }
        let mut outer: Vec<&Expression> = Vec::new();
        let mut inner = expression;
        while let Some(first) = self.first_operand(inner) {
            outer.push(inner);
            inner = first;
        }
        let mut value = self.around(inner, None);
        while let Some(expression) = outer.pop() {
            value = self.around(expression, Some(value));
        }
        self.depth -= 1;
        value
    }

    /// The operand that a call computes first, if there is one.
    fn first_operand<'e>(&self, expression: &'e Expression) -> Option<&'e Expression> {
        let ExpressionKind::Call { callee, operands, .. } = &expression.kind else { return None };
        let has_attribute =
            |operand: &Expression| matches!(operand.kind, ExpressionKind::Attribute(_));
        let operands = if operands.iter().any(has_attribute) && !self.is_block(callee) {
            operands
        } else {
            self.in_order(callee, operands).0
        };
        operands.first().filter(|first| !has_attribute(first))
    }

    /// Refuses what is nested deeper than the compiler follows it, blocks in blocks included.
    fn too_deep(&mut self, span: Span) -> ValueId {
        if !std::mem::replace(&mut self.is_too_deep, true) {
            let message = too_deep("this, with the blocks that are written out around it,");
            let help = "write a part of it as a `let`, and use its name".to_owned();
            self.error(Code::TooDeep, span, message, Some(help));
        }
        self.poison(span)
    }

    /// The value of an expression around its [first operand](Self::first_operand).
    fn around(&mut self, expression: &Expression, first: Option<ValueId>) -> ValueId {
        match &expression.kind {
            ExpressionKind::Broken => self.poison(expression.span),
            ExpressionKind::Number(number) => {
                let place = self.place(expression.span);
                let constant = self.graph.constant(*number, place);
                self.within_range(constant, "the number is", expression.span)
            }
            ExpressionKind::Name(name) => self.name(name),
            ExpressionKind::Arithmetic(arithmetic) => {
                let number = self.arithmetic(arithmetic, expression.span);
                self.within_range(number, "the number is", expression.span)
            }
            ExpressionKind::Attribute(text) => {
                let help = words::no_value(text).to_owned();
                let message = "expected a value: a name, a number, an operator or a call";
                self.error(
                    Code::UnsupportedExpression,
                    expression.span,
                    message.to_owned(),
                    Some(help),
                );
                self.poison(expression.span)
            }
            ExpressionKind::Call { callee, operands, attributes } => {
                let is_attribute =
                    |operand: &Expression| matches!(operand.kind, ExpressionKind::Attribute(_));
                let rest = usize::from(first.is_some());
                if operands.iter().any(is_attribute) && !self.is_block(callee) {
                    // What operators take so is given by name: the operands are not to be counted.
                    for operand in &operands[rest..] {
                        self.expression(operand);
                    }
                    return self.poison(expression.span);
                }
                let (operands, named) = self.in_order(callee, operands);
                let value = |operand: &Expression| {
                    if is_attribute(operand) {
                        self.poison(operand.span)
                    } else {
                        self.expression(operand)
                    }
                };
                let others = operands[rest..].iter().map(value);
                let operands: Vec<ValueId> = first.into_iter().chain(others).collect();
                let value = if named.is_empty() {
                    self.call(callee, operands, attributes)
                } else {
                    let all = named.into_iter().chain(attributes.iter().cloned());
                    self.call(callee, operands, &all.collect::<Vec<_>>())
                };
                self.within_range(value, "what these numbers come to is", expression.span)
            }
        }
    }

    /// A value, which is reported if it is a number that the model's element type does not have.
    fn within_range(&mut self, value: ValueId, what: &str, span: Span) -> ValueId {
        let element = self.graph.element();
        let is_double = element == ElementType::F64;
        let is_there =
            |number: f64| number.is_finite() && (is_double || (number as f32).is_finite());
        let Some(number) = self.graph.constant_of(value).filter(|number| !is_there(*number)) else {
            return value;
        };
        let message = if number.is_nan() {
            "what these numbers come to is no number".to_owned()
        } else {
            format!("{what} beyond the range of `{element}`: {number:e}")
        };
        let help = (!is_double && number.is_finite())
            .then(|| "write `dtype = f64;` in the model".to_owned());
        self.error(Code::UnsupportedExpression, span, message, help);
        self.poison(span)
    }

    /// A value for what is already reported, so that its users say nothing.
    fn poison(&mut self, span: Span) -> ValueId {
        let place = self.place(span);
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
