//! Tree to graph: names, operators, attributes. What the passes of `sparse-core` take over from here.

use crate::ast::{
    ArrayType, AttributeText, Declaration, Expression, ExpressionKind, Extent, Model,
};
use crate::report::Report;
use proc_macro2::Span;
use sparse_core::diagnostics::{Code, nearest};
use sparse_core::ir::{
    Annotation, AttributeValue, Attributes, Claim, Fallback, Graph, Kind, List, Number, Output,
    Place, Value, ValueId,
};
use sparse_core::operators::{self, AttributeKind, Operator};
use sparse_core::shapes::{Dim, Dims};
use sparse_core::storage::{ElementType, Storage};
use std::collections::BTreeMap;
use syn::Ident;

/// The initializers of the library, for suggestions. The runtime's enum has the same variants; naming one that it
/// lacks would not compile.
const INITIALIZERS: [&str; 5] = ["Zeros", "Ones", "Constant", "Normal", "Uniform"];

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
    fn declaration(&mut self, declaration: &Declaration) {
        match declaration {
            Declaration::Option { .. } => {}
            Declaration::Input(input) => {
                let kind = if input.is_label { Kind::Label } else { Kind::Input };
                self.declare(kind, &input.name, &input.array);
            }
            Declaration::Parameter(parameter) => {
                let initializer = &parameter.initializer;
                let word = initializer.name.to_string();
                if !INITIALIZERS.contains(&word.as_str()) {
                    let help = match nearest(&word, INITIALIZERS) {
                        Some(known) => format!("write `{known}`"),
                        None => format!("the initializers are `{}`", INITIALIZERS.join("`, `")),
                    };
                    let message = format!("no initializer is called `{word}`");
                    self.report.error(
                        Code::UnknownInitializer,
                        initializer.name.span(),
                        message,
                        Some(help),
                    );
                }
                let kind = Kind::Parameter {
                    initializer: initializer.tokens.to_string(),
                    frozen: parameter.frozen,
                };
                self.declare(kind, &parameter.name, &parameter.array);
            }
            Declaration::Let(binding) => {
                let id = self.expression(&binding.value);
                let annotation = binding.array.as_ref().map(|array| self.annotation(array));
                self.bind_result(id, &binding.name, annotation, None);
                self.define(&binding.name, id);
            }
            Declaration::Loss(value) => {
                let id = self.expression(value);
                self.graph.losses.push(id);
            }
            Declaration::Output { name, array, value } => {
                let value = self.expression(value);
                let place = self.report.place(name.span());
                if let Some(earlier) =
                    self.graph.outputs.iter().find(|output| *name == output.name.as_str())
                {
                    let message = format!("the output `{}` is declared twice", earlier.name);
                    self.report.error(Code::DuplicateName, name.span(), message, None);
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

    fn option(&mut self, name: &Ident, value: &Ident) {
        let word = value.to_string();
        let allowed: &[&str] = match name.to_string().as_str() {
            "fallback" => match word.as_str() {
                "deny" => return self.graph.fallback = Fallback::Deny,
                "warn" => return self.graph.fallback = Fallback::Warn,
                "allow" => return self.graph.fallback = Fallback::Allow,
                _ => &["deny", "warn", "allow"],
            },
            "dtype" => match word.parse::<ElementType>() {
                Ok(element) if element.is_half() && !cfg!(feature = "half") => {
                    let message = format!("`{name} = {element};` needs the feature `half`");
                    let help =
                        "write `nnz = { …, features = [\"half\"] }` in Cargo.toml".to_owned();
                    self.report.error(Code::BadOption, value.span(), message, Some(help));
                    return;
                }
                Ok(element) if element.is_float() => return self.graph.element = Some(element),
                _ => &["f32", "f64", "f16", "bf16"],
            },
            _ => match word.as_str() {
                "on" => return self.graph.no_fuse = false,
                "off" => return self.graph.no_fuse = true,
                _ => &["on", "off"],
            },
        };
        let message = format!("`{name}` cannot be `{word}`");
        let help = format!("write one of `{}`", allowed.join("`, `"));
        self.report.error(Code::BadOption, value.span(), message, Some(help));
    }

    fn declare(&mut self, kind: Kind, name: &Ident, array: &ArrayType) {
        let (storage, element, shape) = self.array_type(array);
        let place = self.report.place(name.span());
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
            self.report.error(Code::ElementMismatch, array.span, message, Some(help));
            // What is emitted has the right types in spite of it.
            element = self.graph.element();
        }
        let is_parameter = matches!(kind, Kind::Parameter { .. });
        if element.is_id() && (is_parameter || storage != Storage::Dense) {
            let message = match is_parameter {
                true => format!("the parameter `{name}` cannot hold ids: parameters are numbers"),
                false => format!("`{name}` cannot be a `{storage}` of ids: ids are dense"),
            };
            let help = match is_parameter {
                true => "leave the element type out".to_owned(),
                false => format!("write `dense<{element}>[…]`, or leave the element type out"),
            };
            element = self.graph.element();
            self.report.error(Code::ElementMismatch, array.span, message, Some(help));
        }
        let id = self.graph.declare(kind, &name.to_string(), storage, element, shape, place);
        self.define(name, id);
    }

    fn define(&mut self, name: &Ident, id: ValueId) {
        if self.scope.insert(name.to_string(), id).is_some() {
            let message = format!("`{name}` is declared twice");
            let help = format!("call the second one `{name}_2`");
            self.report.error(Code::DuplicateName, name.span(), message, Some(help));
        }
    }

    /// Names the value of a `let`, or of the `output` at a position. A value that has a name already (`let a = b;`) keeps it, and
    /// what is said of the second name is checked.
    fn bind_result(
        &mut self,
        id: ValueId,
        name: &Ident,
        annotation: Option<Annotation>,
        output: Option<usize>,
    ) {
        let taken = output.is_some() && self.scope.contains_key(&name.to_string());
        let value = &mut self.graph.values[id.0];
        if value.name.is_none() && matches!(value.kind, Kind::Apply(_)) && !taken {
            value.name = Some(name.to_string());
            value.annotation = annotation;
        } else if let Some(annotation) = annotation {
            let name = name.to_string();
            self.graph.claims.push(Claim { name, value: id, annotation, output });
        }
    }

    fn annotation(&mut self, array: &ArrayType) -> Annotation {
        let (storage, element, shape) = self.array_type(array);
        Annotation { storage, shape, element, place: self.report.place(array.span) }
    }

    fn array_type(&mut self, array: &ArrayType) -> (Storage, Option<ElementType>, Dims) {
        let word = array.storage.to_string();
        let storage = word.parse().unwrap_or_else(|()| {
            let names = Storage::ALL.map(Storage::name);
            let help = match nearest(&word, names) {
                Some(known) => format!("write `{known}`"),
                None => format!("the storage types are `{}`", names.join("`, `")),
            };
            let message = format!("no storage type is called `{word}`");
            self.report.error(Code::UnknownStorage, array.storage.span(), message, Some(help));
            Storage::Dense
        });
        let element = array.element.as_ref().and_then(|element| {
            let parsed = element
                .to_string()
                .parse()
                .ok()
                .filter(|known: &ElementType| known.is_float() || known.is_id());
            if parsed.is_none() {
                let message = format!("no element type is called `{element}`");
                let help =
                    "write `f32`, `f64`, `f16` or `bf16`; for ids `u32`, `u64` or `i64`".to_owned();
                self.report.error(Code::UnknownElement, element.span(), message, Some(help));
            }
            parsed
        });
        let shape = array
            .dims
            .iter()
            .map(|extent| match extent {
                Extent::Name(name) => Dim::Named(name.to_string()),
                Extent::Size(size) => Dim::Size(*size),
                Extent::Inferred => self.graph.unify.fresh(),
            })
            .collect();
        (storage, element, shape)
    }

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

    fn call(
        &mut self,
        name: &Ident,
        operands: Vec<ValueId>,
        given: &[(Ident, AttributeText)],
    ) -> ValueId {
        let word = name.to_string();
        let Some(operator) = operators::find(&word).filter(|operator| !operator.internal) else {
            let known = operators::all()
                .filter(|operator| !operator.internal)
                .map(|operator| operator.name);
            let help = nearest(&word, known).map(|known| format!("write `{known}`"));
            let message = format!("no operator is called `{word}`");
            self.report.error(Code::UnknownOperator, name.span(), message, help);
            return self.poison(name.span());
        };
        let is_operand = |name: &Ident| {
            let word = name.to_string();
            operator.attribute(&word).is_none() && operator.operand_index(&word).is_some()
        };
        let (named, given): (Vec<_>, Vec<_>) =
            given.iter().partition(|(argument, _)| is_operand(argument));
        let Some(operands) = self.with_named(operator, name, operands, &named) else {
            return self.poison(name.span());
        };
        let arity = operator.required()..=operator.operands.len();
        let fits = arity.contains(&operands.len());
        if !fits && (operator.chain.is_none() || operands.is_empty()) {
            let takes = match operator.optional {
                0 => count(operator.operands.len(), "operand"),
                _ => format!("{} to {}", arity.start(), count(*arity.end(), "operand")),
            };
            let message = format!(
                "`{word}` takes {takes} ({}), but {} given",
                operator.operands.join(", "),
                match operands.len() {
                    1 => "1 is".to_owned(),
                    n => format!("{n} are"),
                }
            );
            self.report.error(Code::OperandCount, name.span(), message, None);
            return self.poison(name.span());
        }
        let mut attributes = Attributes::default();
        for (attribute, text) in &given {
            if let Some((known, value)) = self.attribute(operator, attribute, text) {
                attributes.set(known, value);
            }
        }
        let missing = operator.attributes.iter().find(|attribute| {
            attribute.kind.is_required()
                && attributes.get(attribute.name).is_none()
                && !given.iter().any(|(name, _)| name == attribute.name)
        });
        if let Some(missing) = missing {
            let message = format!("`{word}` needs the attribute `{}`", missing.name);
            let help = format!("write `{word}(…, {} = …)`", missing.name);
            self.report.error(Code::BadAttribute, name.span(), message, Some(help));
            return self.poison(name.span());
        }
        let place = self.report.place(name.span());
        self.graph.apply(operator, operands, attributes, place)
    }

    /// The operands of a call, those given by name at their places. `None` after an error.
    fn with_named(
        &mut self,
        operator: &Operator,
        call: &Ident,
        operands: Vec<ValueId>,
        named: &[&(Ident, AttributeText)],
    ) -> Option<Vec<ValueId>> {
        let mut places: Vec<Option<ValueId>> = operands.into_iter().map(Some).collect();
        for (name, text) in named {
            let value = match text {
                AttributeText::Word(word) => self.name(word),
                AttributeText::Integer(number) => {
                    let place = self.report.place(name.span());
                    self.graph.constant(*number as f64, place)
                }
                AttributeText::Number(number) => {
                    let place = self.report.place(name.span());
                    self.graph.constant(*number, place)
                }
                AttributeText::Expression(value) => self.expression(value),
                _ => {
                    let message =
                        format!("`{name}` is an operand of `{call}`, which must be a value");
                    let help = format!("write the name of a value: `{name} = x`");
                    self.report.error(Code::BadAttribute, name.span(), message, Some(help));
                    self.poison(name.span())
                }
            };
            let place = operator.operand_index(&name.to_string())?;
            places.resize(places.len().max(place + 1), None);
            if places[place].replace(value).is_some() {
                let message = format!("the operand `{name}` of `{call}` is given twice");
                self.report.error(Code::OperandCount, name.span(), message, None);
                return None;
            }
        }
        if let Some(missing) = places.iter().position(Option::is_none) {
            let message = format!("`{call}` lacks its operand `{}`", operator.operands[missing]);
            self.report.error(Code::OperandCount, call.span(), message, None);
        }
        places.into_iter().collect()
    }

    fn attribute(
        &mut self,
        operator: &Operator,
        name: &Ident,
        text: &AttributeText,
    ) -> Option<(&'static str, AttributeValue)> {
        let word = name.to_string();
        let Some(known) = operator.attribute(&word) else {
            let names = || operator.attributes.iter().map(|attribute| attribute.name);
            let optional = operator.operands[operator.required()..].iter().copied();
            let help = match nearest(&word, names().chain(optional)) {
                Some(known) => format!("write `{known}`"),
                None if operator.attributes.is_empty() => {
                    format!("`{}` has no attributes", operator.name)
                }
                None => {
                    let all: Vec<&str> = names().collect();
                    format!("its attributes are `{}`", all.join("`, `"))
                }
            };
            let message = format!("`{}` has no attribute `{word}`", operator.name);
            self.report.error(Code::UnknownAttribute, name.span(), message, Some(help));
            return None;
        };
        let value = match (known.kind, text) {
            (AttributeKind::Flag, AttributeText::Flag(flag)) => Some(AttributeValue::Flag(*flag)),
            (
                AttributeKind::Axes | AttributeKind::List | AttributeKind::Integer(_),
                AttributeText::Integer(integer),
            ) => Some(AttributeValue::Integer(*integer)),
            (AttributeKind::Axes, AttributeText::List(entries))
                if entries.iter().all(Option::is_some) =>
            {
                Some(AttributeValue::List(List::new(entries)))
            }
            (AttributeKind::List, AttributeText::List(entries)) => {
                Some(AttributeValue::List(List::new(entries)))
            }
            (AttributeKind::Number(_), AttributeText::Integer(integer)) => {
                Some(AttributeValue::Number(Number(*integer as f64)))
            }
            (AttributeKind::Number(_), AttributeText::Number(number)) => {
                Some(AttributeValue::Number(Number(*number)))
            }
            (AttributeKind::Storage, AttributeText::Word(word)) => {
                word.to_string().parse().ok().map(AttributeValue::Storage)
            }
            _ => None,
        };
        if value.is_none() {
            let help = match known.kind {
                AttributeKind::Flag => "write `true` or `false`",
                AttributeKind::Axes => {
                    "write an axis such as `0` or `-1`, or a list such as `[0, 1]`"
                }
                AttributeKind::Integer(_) => "write an integer such as `0` or `-1`",
                AttributeKind::Number(_) => "write a number such as `0.5`",
                AttributeKind::List => "write a list such as `[0, 2]`, with `_` for an open end",
                AttributeKind::Storage => "write `dense`, `csr` or `row_sparse`",
            };
            let message =
                format!("the attribute `{word}` of `{}` has another kind of value", operator.name);
            self.report.error(Code::BadAttribute, name.span(), message, Some(help.into()));
        }
        value.map(|value| (known.name, value))
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

fn count(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}
