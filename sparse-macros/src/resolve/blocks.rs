//! Blocks: written out where they are used, so that everything in them is inferred for that use.

use super::Resolver;
use super::library::{Entry, Library};
use super::words::count;
use crate::ast::{AttributeText, BlockParameter, Callee};
use crate::report::Report;
use proc_macro2::Span;
use sparse_core::diagnostics::{Code, nearest};
use sparse_core::formula::Formula;
use sparse_core::ir::ValueId;
use sparse_core::shapes::Dim;
use sparse_core::storage::Storage;
use std::collections::BTreeMap;
use std::rc::Rc;
use syn::Ident;

/// What names mean, in a model or in one use of a block.
#[derive(Default)]
pub(super) struct Frame {
    pub(super) scope: BTreeMap<String, ValueId>,
    /// Parameters of a block that were given a word, a flag or a list. `None` while the block is
    /// checked.
    pub(super) attributes: BTreeMap<String, Option<AttributeText>>,
    /// The extents that a block's types name.
    pub(super) dims: BTreeMap<String, Dim>,
    /// Where blocks are looked up.
    pub(super) room: usize,
    /// The block, as the plan calls what is computed in it: `linear`, `linear_2`, `mlp.linear`.
    pub(super) block: Option<String>,
    /// How often each block was used so far.
    uses: BTreeMap<String, usize>,
    /// Where the model uses the block.
    pub(super) site: Option<Site>,
}

/// A use of a block.
#[derive(Clone)]
pub(super) struct Site {
    /// In the model.
    pub(super) span: Span,
    /// Which line of the block, and of the block that uses it.
    pub(super) words: Rc<str>,
}

/// Checks the names in every block of a `graph!`, whether it is used or not.
pub(crate) fn check(library: &mut Library<'_>, report: &mut Report) {
    for index in library.own() {
        let Some(entry) = library.entry(index) else { continue };
        let before = report.n_errors();
        let mut resolver = Resolver::new("", library, report);
        resolver.frame.block = Some(entry.block.name.to_string());
        for BlockParameter { name, default } in &entry.block.parameters {
            let id = resolver.poison(name.span());
            if default.as_ref().is_some_and(|default| !is_literal(default)) {
                let message = format!("the default of `{name}` is not a number");
                let help =
                    format!("write a number, a flag, a list or a storage type: `{name} = 1.0`");
                resolver.error(Code::BlockArguments, name.span(), message, Some(help));
            }
            resolver.frame.attributes.insert(name.to_string(), None);
            resolver.define(name, id);
        }
        resolver.body(entry, None);
        if report.n_errors() > before {
            library.set_broken(index);
        }
    }
}

impl Resolver<'_> {
    /// A use of a block. `found` is `None` for one that was reported elsewhere.
    pub(super) fn block(
        &mut self,
        callee: &Callee,
        found: Option<usize>,
        operands: Vec<ValueId>,
        given: &[(Ident, AttributeText)],
    ) -> ValueId {
        let span = callee.name.span();
        let library = self.library;
        let Some(entry) = found.and_then(|index| library.entry(index)) else {
            return self.poison(span);
        };
        let name = entry.block.name.to_string();
        let Some(frame) = self.arguments(callee, entry, operands, given) else {
            return self.poison(span);
        };
        // A block that only another block uses is checked by itself.
        if self.frame.block.is_some() && self.frame.site.is_none() {
            return self.poison(span);
        }
        let uses = self.frame.uses.entry(name.clone()).or_default();
        *uses += 1;
        let name = if *uses == 1 { name } else { format!("{name}_{uses}") };
        let outer = self.frame.block.as_ref().map_or(String::new(), |outer| format!("{outer}."));
        let block = Some(format!("{outer}{name}"));
        let site = self.frame.site.clone().unwrap_or(Site { span, words: Rc::from("") });
        let caller = std::mem::replace(
            &mut self.frame,
            Frame { block, room: entry.room, site: Some(site.clone()), ..frame },
        );
        let value = self.body(entry, Some(&site));
        let inner = std::mem::replace(&mut self.frame, caller);
        self.release(value, &inner);
        value
    }

    /// The lines of a block, of which the last is its value.
    fn body(&mut self, entry: &Entry<'_>, site: Option<&Site>) -> ValueId {
        let mut value = None;
        for statement in &entry.block.body {
            self.frame.site = site.map(|Site { span, words }| {
                let outer = if words.is_empty() { String::new() } else { format!(", {words}") };
                let line = format!("in the block `{}`, at `{}`", entry.block.name, statement.text);
                Site { span: *span, words: format!("{line}{outer}").into() }
            });
            let id = self.expression(&statement.value);
            if let Some((name, array)) = &statement.binding {
                let annotation = array.as_ref().map(|array| self.annotation(array));
                self.bind_result(id, name, annotation, None);
                self.define(name, id);
            }
            value = Some(id);
        }
        value.unwrap_or_else(|| self.poison(entry.block.name.span()))
    }

    /// The value of a block is named by who uses it, unless the block says something of it.
    fn release(&mut self, id: ValueId, inner: &Frame) {
        let value = &mut self.graph.values[id.0];
        let prefix = inner.block.as_deref().unwrap_or_default();
        let of_block = value.name.as_ref().is_some_and(|name| {
            name.strip_prefix(prefix).is_some_and(|rest| rest.starts_with('.'))
        });
        if of_block && value.annotation.is_none() {
            value.name = None;
        }
    }

    /// The parameters of a block, bound to what a call gives. `None` after an error.
    fn arguments(
        &mut self,
        callee: &Callee,
        entry: &Entry<'_>,
        operands: Vec<ValueId>,
        given: &[(Ident, AttributeText)],
    ) -> Option<Frame> {
        let (span, block) = (callee.name.span(), callee.key());
        let parameters = &entry.block.parameters;
        let names = || parameters.iter().map(|parameter| parameter.name.to_string());
        if operands.len() > parameters.len() {
            let list = names().collect::<Vec<_>>().join(", ");
            let message = format!(
                "`{block}` takes {} ({list}), but {} are given",
                count(parameters.len(), "argument"),
                operands.len()
            );
            self.error(Code::BlockArguments, span, message, None);
            return None;
        }
        let mut frame = Frame::default();
        for (parameter, value) in names().zip(&operands) {
            frame.scope.insert(parameter, *value);
        }
        for (name, text) in given {
            let word = name.to_string();
            if !names().any(|known| known == word) {
                let all: Vec<String> = names().collect();
                let help = match nearest(&word, all.iter().map(String::as_str)) {
                    Some(known) => format!("write `{known}`"),
                    None => format!("its parameters are `{}`", all.join("`, `")),
                };
                let message = format!("`{block}` has no parameter `{word}`");
                self.error(Code::BlockArguments, name.span(), message, Some(help));
                return None;
            }
            if frame.scope.contains_key(&word) || frame.attributes.contains_key(&word) {
                let message = format!("the parameter `{word}` of `{block}` is given twice");
                self.error(Code::BlockArguments, name.span(), message, None);
                return None;
            }
            self.bind_argument(&mut frame, name, text);
        }
        for BlockParameter { name, default } in parameters {
            let word = name.to_string();
            if frame.scope.contains_key(&word) || frame.attributes.contains_key(&word) {
                continue;
            }
            let Some(default) = default else {
                let message = format!("`{block}` lacks its argument `{word}`");
                let list = names().collect::<Vec<_>>().join(", ");
                let help = format!("write `{block}({list})`");
                self.error(Code::BlockArguments, span, message, Some(help));
                return None;
            };
            let name = Ident::new(&word, span);
            self.bind_argument(&mut frame, &name, default);
        }
        Some(frame)
    }

    fn bind_argument(&mut self, frame: &mut Frame, name: &Ident, text: &AttributeText) {
        let word = name.to_string();
        let text = match text {
            AttributeText::Arithmetic(..) | AttributeText::Entries(_) | AttributeText::Word(_) => {
                match self.with_numbers(text) {
                    Some(text) => text,
                    None => {
                        frame.attributes.insert(word, None);
                        return;
                    }
                }
            }
            text => text.clone(),
        };
        // A value may be called as a storage type is.
        let is_value = |text: &AttributeText| match text {
            AttributeText::Word(word) => self.frame.scope.contains_key(&word.to_string()),
            _ => false,
        };
        match self.given_to_block(&text) {
            Some(text) if !is_attribute(&text) || is_value(&text) => {
                let id = self.argument(name, &text).unwrap_or_else(|| self.poison(name.span()));
                frame.scope.insert(word, id);
            }
            given => {
                frame.attributes.insert(word, given);
            }
        }
    }

    /// The value of an attribute, where it may be a parameter of a block. `None` while that is not
    /// known.
    pub(super) fn given_to_block(&self, text: &AttributeText) -> Option<AttributeText> {
        let AttributeText::Word(word) = text else { return Some(text.clone()) };
        let word = word.to_string();
        if let Some(given) = self.frame.attributes.get(&word) {
            return given.clone();
        }
        let value = self.frame.scope.get(&word).filter(|_| self.frame.block.is_some());
        // What came broken was reported where it was given.
        if value.is_some_and(|id| self.graph.value(*id).broken) {
            return None;
        }
        let number = value.and_then(|id| self.graph.number_of(*id));
        Some(match number {
            Some(Formula::Number(number)) if number.fract() == 0.0 => {
                AttributeText::Integer(number as i64)
            }
            Some(Formula::Number(number)) => AttributeText::Number(number),
            Some(Formula::Name(name)) if self.graph.unify.is_constant_number(&name) => {
                AttributeText::Named(name)
            }
            _ => text.clone(),
        })
    }
}

/// What attributes take and values are not.
fn is_attribute(text: &AttributeText) -> bool {
    match text {
        AttributeText::Flag(_)
        | AttributeText::List(_)
        | AttributeText::Entries(_)
        | AttributeText::NamedList(_) => true,
        AttributeText::Word(word) => word.to_string().parse::<Storage>().is_ok(),
        _ => false,
    }
}

/// What means the same wherever it stands.
fn is_literal(text: &AttributeText) -> bool {
    is_attribute(text) || matches!(text, AttributeText::Integer(_) | AttributeText::Number(_))
}
