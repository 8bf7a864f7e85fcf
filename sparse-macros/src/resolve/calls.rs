//! Calls: of blocks by their names, of operators with their operands and attributes.

use super::Resolver;
use super::library::Meaning;
use super::numbers::Number as Numeric;
use super::words::count;
use crate::ast::{AttributeText, Callee, Expression, ExpressionKind};
use sparse_core::diagnostics::{Code, nearest};
use sparse_core::foreign_names::{Instead, instead_of};
use sparse_core::ir::{AttributeValue, Attributes, Entry, List, Number, ValueId};
use sparse_core::operators::{self, Attribute, AttributeKind, Operator};
use sparse_core::storage::Storage;
use syn::Ident;

const LIST_OF_OPERATORS: &str = "docs/operators/README.md lists the operators by family";

impl Resolver<'_> {
    /// What is called with the operands of a call, as far as they are values: in a call of a block
    /// the first one that is none and those after it are given by the names of their parameters.
    pub(super) fn in_order<'e>(
        &self,
        callee: &Callee,
        operands: &'e [Expression],
    ) -> (&'e [Expression], Vec<(Ident, AttributeText)>) {
        let none = (operands, Vec::new());
        let Some(Some(Meaning::Block(index))) = self.library.find(self.frame.room, &callee.key())
        else {
            return none;
        };
        let Some(entry) = self.library.entry(index) else { return none };
        let Some(first) = operands.iter().position(|operand| self.is_attribute(operand)) else {
            return none;
        };
        let parameters = &entry.block.parameters;
        if operands.len() > parameters.len() {
            return none;
        }
        let named = operands.iter().zip(parameters).skip(first).map(|(operand, parameter)| {
            let name = Ident::new(&parameter.name.to_string(), operand.span);
            let text = match &operand.kind {
                ExpressionKind::Attribute(text) => (**text).clone(),
                ExpressionKind::Name(word) => AttributeText::Word(word.clone()),
                ExpressionKind::Arithmetic(arithmetic) => {
                    AttributeText::Arithmetic(arithmetic.clone(), Some(operand.clone()))
                }
                _ => AttributeText::Expression(operand.clone()),
            };
            (name, text)
        });
        (&operands[..first], named.collect())
    }

    /// Whether a block is called.
    pub(super) fn is_block(&self, callee: &Callee) -> bool {
        let found = self.library.find(self.frame.room, &callee.key());
        matches!(found, Some(Some(Meaning::Block(_))))
    }

    /// Whether an operand of a call is what attributes take, and no value.
    fn is_attribute(&self, operand: &Expression) -> bool {
        let ExpressionKind::Name(word) = &operand.kind else {
            return matches!(operand.kind, ExpressionKind::Attribute(_));
        };
        let word = word.to_string();
        match self.frame.attributes.get(&word) {
            Some(given) => given.is_some(),
            None => !self.frame.scope.contains_key(&word) && word.parse::<Storage>().is_ok(),
        }
    }

    pub(super) fn call(
        &mut self,
        callee: &Callee,
        operands: Vec<ValueId>,
        given: &[(Ident, AttributeText)],
    ) -> ValueId {
        let (name, word) = (&callee.name, callee.key());
        let declared = match self.library.find(self.frame.room, &word) {
            Some(Some(Meaning::Block(block))) => {
                return self.block(callee, Some(block), operands, given);
            }
            Some(Some(Meaning::Operator(index))) => Some(self.library.spec(index)),
            // What came broken was reported where it is.
            Some(None) => Some(None),
            None => None,
        };
        if let Some(None) = declared {
            return self.poison(name.span());
        }
        let known = || operators::find(&word).filter(|operator| !operator.internal);
        let Some(operator) = declared.flatten().or_else(known) else {
            let lost = self.frame.scope.get(&word).filter(|id| self.graph.value(**id).broken);
            if let Some(lost) = lost {
                return *lost;
            }
            let known = operators::all()
                .filter(|operator| !operator.internal)
                .map(|operator| operator.name)
                .chain(self.library.names(self.frame.room));
            // A keyword of Rust stands as a raw identifier.
            let word = word.trim_start_matches("r#");
            let help = match (instead_of(word), nearest(word, known)) {
                (Some(Instead::Write(text)), _) => format!("write `{text}`"),
                (Some(Instead::Nothing(reason)), _) => {
                    format!("no operator does it: {reason}; {LIST_OF_OPERATORS}")
                }
                (None, Some(known)) => format!("write `{known}`"),
                (None, None) => LIST_OF_OPERATORS.to_owned(),
            };
            let message = format!("no operator or block is called `{word}`");
            self.error(Code::UnknownOperator, name.span(), message, Some(help));
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
            let of_two = operator.of_two().filter(|_| operands.len() == 2);
            let attribute = operator.attributes.first().filter(|_| operands.len() > *arity.end());
            let help = match attribute {
                Some(attribute) => {
                    let operands = operator.operands.join(", ");
                    let name = attribute.name;
                    let of_two =
                        of_two.map(|other| format!("write `{other}(x, y)` of two values; "));
                    let of_two = of_two.unwrap_or_default();
                    Some(format!(
                        "{of_two}attributes are given by name: write `{word}({operands}, {name} = …)`"
                    ))
                }
                None if operands.len() < *arity.start() => {
                    let needed = operator.operands[..*arity.start()].join(", ");
                    Some(format!("write `{word}({needed})`"))
                }
                None => None,
            };
            self.error(Code::OperandCount, name.span(), message, help);
            return self.poison(name.span());
        }
        let mut attributes = Attributes::default();
        for (attribute, text) in &given {
            let Some((known, value)) = self.attribute(operator, attribute, text) else { continue };
            if attributes.get(known).is_some() {
                let message = format!("the attribute `{known}` of `{word}` is given twice");
                let help = Some("leave one of them out".to_owned());
                self.error(Code::AttributeTwice, attribute.span(), message, help);
            }
            attributes.set(known, value);
        }
        let missing = operator.attributes.iter().find(|attribute| {
            attribute.kind.is_required()
                && attributes.get(attribute.name).is_none()
                && !given.iter().any(|(name, _)| name == attribute.name)
        });
        if let Some(missing) = missing {
            let message = format!("`{word}` needs the attribute `{}`", missing.name);
            let help = format!("write `{word}(…, {} = …)`", missing.name);
            self.error(Code::MissingAttribute, name.span(), message, Some(help));
            return self.poison(name.span());
        }
        let place = self.place(name.span());
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
            let value = self.argument(name, text).unwrap_or_else(|| {
                let message = format!("`{name}` is an operand of `{call}`, which must be a value");
                let help = format!("write the name of a value: `{name} = x`");
                self.error(Code::BadAttribute, name.span(), message, Some(help));
                self.poison(name.span())
            });
            let place = operator.operand_index(&name.to_string())?;
            places.resize(places.len().max(place + 1), None);
            if places[place].replace(value).is_some() {
                let message = format!("the operand `{name}` of `{call}` is given twice");
                self.error(Code::OperandCount, name.span(), message, None);
                return None;
            }
        }
        if let Some(missing) = places.iter().position(Option::is_none) {
            let message = format!("`{call}` lacks its operand `{}`", operator.operands[missing]);
            self.error(Code::OperandCount, call.span(), message, None);
        }
        places.into_iter().collect()
    }

    /// What is given by name, as a value. `None` for what is none.
    pub(super) fn argument(&mut self, name: &Ident, text: &AttributeText) -> Option<ValueId> {
        let number = match text {
            AttributeText::Word(word) => return Some(self.name(word)),
            AttributeText::Expression(value) | AttributeText::Arithmetic(_, Some(value)) => {
                return Some(self.expression(value));
            }
            AttributeText::Named(known) => {
                return Some(self.value_of(Numeric::Named(known.clone()), name.span()));
            }
            AttributeText::Integer(integer) => *integer as f64,
            AttributeText::Number(number) => *number,
            _ => return None,
        };
        let place = self.place(name.span());
        Some(self.graph.constant(number, place))
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
            self.error(Code::UnknownAttribute, name.span(), message, Some(help));
            return None;
        };
        // `None` while a block is checked: what it is given decides.
        let given = text;
        let text = self.with_numbers(&self.given_to_block(text)?)?;
        if let AttributeText::Named(_) | AttributeText::NamedList(_) = text {
            return self.named_attribute(operator, known, name, &text);
        }
        let value = match (known.kind, &text) {
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
            let mut message =
                format!("the attribute `{word}` of `{}` has another kind of value", operator.name);
            let mut help = help.to_owned();
            let is_number = !matches!(known.kind, AttributeKind::Flag | AttributeKind::Storage);
            if is_number && let Some((of, why, instead)) = self.why_no_constant(&text) {
                let message = format!("the attribute `{word}` of `{}`: {why}", operator.name);
                let help = format!("{help}; {instead}");
                self.error(Code::BadAttribute, of.span(), message, Some(help));
                return None;
            }
            if let AttributeText::Entries(entries) = &text {
                let integers = "its entries are integers";
                help = format!("{help}; {integers}");
                if let Some((entry, value)) = self.no_integer(entries) {
                    message = format!("{message}: `{entry}` is {value}");
                }
            } else if let Some(value) = shown(&text) {
                message = match given {
                    AttributeText::Word(word) => format!("{message}: `{word}` is {value}"),
                    AttributeText::Arithmetic(of, _) => format!("{message}: `{of}` is {value}"),
                    _ => format!("{message}: {value}"),
                };
            }
            self.error(Code::BadAttribute, name.span(), message, Some(help));
        }
        value.map(|value| (known.name, value))
    }

    /// An attribute that is a constant of Rust, or a list with some, whose values the macro does
    /// not see.
    fn named_attribute(
        &mut self,
        operator: &Operator,
        known: &'static Attribute,
        at: &Ident,
        text: &AttributeText,
    ) -> Option<(&'static str, AttributeValue)> {
        let names: Vec<String> = match text {
            AttributeText::Named(name) => vec![name.clone()],
            AttributeText::NamedList(list) => {
                let names = list.entries().flatten().filter_map(|entry| match entry {
                    Entry::Named(name) => Some(name.to_owned()),
                    Entry::Integer(_) => None,
                });
                names.collect()
            }
            _ => Vec::new(),
        };
        let first = names.first().cloned().unwrap_or_default();
        let bare = first.trim_matches(['{', '}']);
        let attribute = format!("the attribute `{}` of `{}`", known.name, operator.name);
        if let AttributeKind::Number(_) = known.kind
            && let AttributeText::Named(name) = text
        {
            if !self.graph.unify.is_constant(name) {
                self.graph.unify.declare_number(name);
            }
            return Some((known.name, AttributeValue::named(name)));
        }
        let is_list = matches!(known.kind, AttributeKind::List);
        let fits = known.is_extent && (is_list || matches!(text, AttributeText::Named(_)));
        if !fits {
            let message = format!(
                "{attribute} decides more than a number, and the macro does not see the value of `{bare}`"
            );
            let help = match known.kind {
                AttributeKind::Number(_) => {
                    "write a number such as `0.5`, or one constant".to_owned()
                }
                AttributeKind::Flag => format!(
                    "write `true` or `false`, or declare the constant with its value in the model: `const {}: bool = true;`",
                    constant_name(bare)
                ),
                AttributeKind::Storage => "write `dense`, `csr` or `row_sparse`".to_owned(),
                _ => format!(
                    "write the number, or declare the constant with its value in the model: `const {}: usize = 1;`",
                    constant_name(bare)
                ),
            };
            self.error(Code::BadAttribute, at.span(), message, Some(help));
            return None;
        }
        for name in &names {
            if let Err(ty) = self.extent_of_rust(name) {
                let message = format!("{attribute} has another kind of value: `{name}` is `{ty}`");
                let help = format!("write an integer, or declare `const {name}: usize`");
                self.error(Code::BadAttribute, at.span(), message, Some(help));
                return None;
            }
        }
        let value = match text {
            AttributeText::NamedList(list) => AttributeValue::NamedList(*list),
            _ => AttributeValue::named(&first),
        };
        Some((known.name, value))
    }
}

/// The last word of a path, as a name in the model.
fn constant_name(path: &str) -> &str {
    let is_letter = |letter: char| letter.is_alphanumeric() || letter == '_';
    path.rsplit(|letter: char| !is_letter(letter)).find(|word| !word.is_empty()).unwrap_or("K")
}

/// The value of an attribute in a message.
fn shown(text: &AttributeText) -> Option<String> {
    Some(match text {
        AttributeText::Flag(flag) => format!("{flag}"),
        AttributeText::Integer(integer) => format!("{integer}"),
        AttributeText::Number(number) => format!("{number:?}"),
        _ => return None,
    })
}
