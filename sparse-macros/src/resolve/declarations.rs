//! Declarations: what is added to the graph and to the scope.

use super::Resolver;
use crate::ast::{ArrayType, Declaration};
use sparse_core::diagnostics::Code;
use sparse_core::ir::{Alternatives, Annotation, Claim, Fallback, Kind, Output, ValueId};
use sparse_core::storage::{ElementType, Storage, join};
use syn::Ident;

const FALLBACKS: [(&str, Fallback); 3] =
    [("deny", Fallback::Deny), ("warn", Fallback::Warn), ("allow", Fallback::Allow)];
const DTYPES: [&str; 4] = ["f32", "f64", "f16", "bf16"];
const SWITCHES: [(&str, bool); 2] = [("on", true), ("off", false)];

/// The words that stand behind `fallback =`, `dtype =` and `fuse =`.
#[cfg(test)]
pub(crate) fn values_of_options() -> impl Iterator<Item = &'static str> {
    let fallbacks = FALLBACKS.iter().map(|(word, _)| *word);
    fallbacks.chain(DTYPES).chain(SWITCHES.iter().map(|(word, _)| *word))
}

impl Resolver<'_> {
    pub(super) fn declaration(&mut self, declaration: &Declaration) {
        match declaration {
            Declaration::Option { .. }
            | Declaration::Specialize { .. }
            | Declaration::Constant(_) => {}
            Declaration::Input(input) => {
                let kind = if input.is_label { Kind::Label } else { Kind::Input };
                self.declare(kind, &input.name, &input.array);
            }
            Declaration::Parameter(parameter) => {
                let kind = Kind::Parameter {
                    initializer: parameter.initializer.tokens.to_string(),
                    frozen: parameter.frozen,
                    decay: parameter.decay,
                };
                self.declare(kind, &parameter.name, &parameter.array);
                self.state(parameter);
            }
            Declaration::Let(binding) => {
                let id = self.expression(&binding.value);
                let annotation = binding.array.as_ref().map(|array| self.annotation(array));
                self.bind_result(id, &binding.name, annotation, None);
                self.define(&binding.name, id);
            }
            Declaration::Update { name, value } => self.update(name, value),
            Declaration::Loss(value) => {
                let id = self.expression(value);
                let place = self.place(value.span);
                self.graph.losses.push(id);
                self.graph.loss_places.push(place);
            }
            Declaration::Output { name, array, value, .. } => {
                let value = self.expression(value);
                let place = self.place(name.span());
                if let Some(earlier) =
                    self.graph.outputs.iter().find(|output| *name == output.name.as_str())
                {
                    let message = format!("the output `{}` is declared twice", earlier.name);
                    self.error(Code::DuplicateOutput, name.span(), message, None);
                    return;
                }
                if let Some(array) = array {
                    let annotation = self.annotation(array);
                    let output = self.graph.outputs.len();
                    self.bind_result(value, name, Some(annotation), Some(output));
                }
                self.graph.outputs.push(Output { name: name.to_string(), value, place });
            }
        }
    }

    pub(super) fn option(&mut self, name: &Ident, value: &Ident) {
        let word = value.to_string();
        let allowed: &[&str] = match name.to_string().as_str() {
            "fallback" => match FALLBACKS.iter().find(|(known, _)| *known == word) {
                Some((_, fallback)) => return self.graph.fallback = *fallback,
                None => &FALLBACKS.map(|(known, _)| known),
            },
            "dtype" => match word.parse::<ElementType>() {
                Ok(element) if element.is_float() => {
                    if self.is_compiled(element, Code::BadOption, value) {
                        self.graph.element = Some(element);
                    }
                    return;
                }
                _ => &DTYPES,
            },
            _ => match SWITCHES.iter().find(|(known, _)| *known == word) {
                Some((_, is_on)) => return self.graph.no_fuse = !is_on,
                None => &SWITCHES.map(|(known, _)| known),
            },
        };
        let message = format!("`{name}` cannot be `{word}`");
        let help = format!("write one of `{}`", allowed.join("`, `"));
        self.error(Code::BadOption, value.span(), message, Some(help));
    }

    fn declare(&mut self, kind: Kind, name: &Ident, array: &ArrayType) {
        if self.frame.scope.contains_key(&name.to_string()) {
            // A second one would be a second field of what is emitted.
            return self.declared_twice(name);
        }
        let (storage, element, shape) = self.array_type(array);
        let storages = self.alternatives(name, storage, array);
        let place = self.place(name.span());
        let mut element = element.unwrap_or_else(|| self.graph.element());
        if element.is_float() && element != self.graph.element() {
            let message = format!(
                "`{name}` holds `{element}`, but the model computes in `{}`",
                self.graph.element()
            );
            let help = format!(
                "write `dtype = {element};` in the model, or leave the element type out and give it data of `{0}`: `array.cast::<{0}>()`",
                self.graph.element()
            );
            self.error(Code::ElementOfModel, array.span, message, Some(help));
            // What is emitted has the right types in spite of it.
            element = self.graph.element();
        }
        let is_parameter = matches!(kind, Kind::Parameter { .. });
        let sparse = storages.iter().find(|storage| **storage != Storage::Dense).copied();
        if let Some(storage) = sparse.or(is_parameter.then_some(storage))
            && element.is_id()
        {
            let message = if is_parameter {
                format!("the parameter `{name}` cannot hold ids: parameters are numbers")
            } else {
                format!("`{name}` cannot be a `{storage}` of ids: ids are dense")
            };
            let help = if is_parameter {
                "leave the element type out".to_owned()
            } else {
                format!("write `dense<{element}>[…]`, or leave the element type out")
            };
            element = self.graph.element();
            self.error(Code::IdsNotDense, array.span, message, Some(help));
        }
        if element == ElementType::Unit && (is_parameter || storages != [Storage::Csr]) {
            let message = if is_parameter {
                format!("the parameter `{name}` cannot be a pattern: parameters are numbers")
            } else {
                let storages = join(&storages, " | ");
                format!("`{name}` cannot be `{storages}` with elements `unit`: a pattern is `csr`")
            };
            let help = if is_parameter {
                "leave the element type out"
            } else {
                "write `csr<unit>[…]`, or leave the element type out"
            };
            element = self.graph.element();
            self.error(Code::UnitNotCsr, array.span, message, Some(help.to_owned()));
        }
        let id = self.graph.declare(kind, &name.to_string(), storage, element, shape, place);
        if storages.len() > 1 {
            self.graph.alternatives.push(Alternatives { value: id, storages });
        }
        self.define(name, id);
    }

    pub(super) fn define(&mut self, name: &Ident, id: ValueId) {
        if self.frame.scope.insert(name.to_string(), id).is_some() {
            self.declared_twice(name);
        }
    }

    fn declared_twice(&mut self, name: &Ident) {
        let message = format!("`{name}` is declared twice");
        let help = format!("call the second one `{name}_2`");
        self.error(Code::DuplicateName, name.span(), message, Some(help));
    }

    /// Names the value of a `let`, or of the `output` at a position. A value that has a name
    /// already (`let a = b;`) keeps it, and what is said of the second name is checked.
    pub(super) fn bind_result(
        &mut self,
        id: ValueId,
        name: &Ident,
        annotation: Option<Annotation>,
        output: Option<usize>,
    ) {
        let full = match &self.frame.block {
            Some(block) => format!("{block}.{name}"),
            None => name.to_string(),
        };
        let taken = output.is_some() && self.frame.scope.contains_key(&name.to_string());
        let value = &mut self.graph.values[id.0];
        if value.name.is_none() && matches!(value.kind, Kind::Apply(_)) && !taken {
            value.name = Some(full);
            value.annotation = annotation;
        } else if let Some(annotation) = annotation {
            self.graph.claims.push(Claim { name: full, value: id, annotation, output });
        }
    }
}
