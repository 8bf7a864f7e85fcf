//! Declared operators: their specs, and the formulas of their gradients.

use super::library::{Declared, Library, Meaning};
use super::words;
use crate::ast::{AttributeText, Callee, Expression, ExpressionKind, Operator, RowNames};
use crate::parse::{DEEPEST, too_deep};
use crate::report::Report;
use proc_macro2::{Ident, Span};
use sparse_core::diagnostics::{Code, nearest};
use sparse_core::operators::declared::{Declaration, DeclaredPart, Each, NamedRows};
use sparse_core::operators::{self, Operator as OperatorSpec};

impl Library<'_> {
    /// The spec of a declared operator, if it has no error.
    pub(super) fn spec(&self, index: usize) -> Option<&'static OperatorSpec> {
        self.declared[index].specs.first().copied()
    }

    /// The specs of all declared operators.
    pub(super) fn specs(&self) -> impl Iterator<Item = &'static OperatorSpec> {
        self.declared.iter().flat_map(|declared| declared.specs.iter().copied())
    }

    /// What the passes call a declared operator: two of one name, from different modules, are two.
    fn spec_name(&self, index: usize) -> String {
        let name = self.declared[index].operator.name.to_string();
        let earlier = self.declared[..index].iter().map(|earlier| &earlier.operator.name);
        match earlier.filter(|earlier| **earlier == name).count() {
            0 => name,
            n => format!("{name}_{}", n + 1),
        }
    }
}

/// Makes the specs of all declared operators, and reports what is wrong with them.
pub(super) fn declare(library: &mut Library<'_>, report: &mut Report) {
    for index in 0..library.declared.len() {
        let Declared { operator, room, .. } = library.declared[index];
        if operator.broken {
            continue;
        }
        let before = report.n_errors();
        let gradients = operator.gradients.iter().map(|(operand, formula)| {
            let formulas = Formulas { library, operator, room };
            (operand.to_string(), formulas.text(formula, DEEPEST, report).unwrap_or_default())
        });
        let declaration = Declaration {
            name: library.spec_name(index),
            operands: operator.operands.iter().map(Ident::to_string).collect(),
            shape: operator.shape.as_ref().map(|(_, text)| text.clone()),
            rules: operator.rules.iter().map(|rule| rule.signature.clone()).collect(),
            gradients: gradients.collect(),
            reads: operator.reads.iter().map(|(v, by)| (v.to_string(), named_rows(by))).collect(),
            stores: operator.stores.as_ref().map(|(_, by)| named_rows(by)),
            each: operator.each.as_ref().map(|_| Each {
                at_zero: operator.at_zero,
                has_derivative: operator.derivative.is_some(),
                slope_at_zero: operator.slope_at_zero,
            }),
        };
        for (part, message, help) in declaration.check() {
            let (code, span) = match part {
                DeclaredPart::Rule(rule) => (Code::OperatorRule, operator.rules[rule].span),
                DeclaredPart::Shape => {
                    let shape = operator.shape.as_ref();
                    (Code::OperatorShape, shape.map_or(operator.name.span(), |(span, _)| *span))
                }
                DeclaredPart::Reads(line) => {
                    (Code::OperatorRows, operator.reads[line].1.operand.span())
                }
                DeclaredPart::Stores => {
                    let stores = operator.stores.as_ref();
                    (Code::OperatorRows, stores.map_or(operator.name.span(), |(span, _)| *span))
                }
            };
            report.error(code, span, message, Some(help));
        }
        if report.n_errors() == before {
            library.declared[index].specs = declaration.specs(index);
        }
    }
}

fn named_rows(RowNames { by_ids, operand }: &RowNames) -> NamedRows {
    if *by_ids {
        NamedRows::Ids(operand.to_string())
    } else {
        NamedRows::Columns(operand.to_string())
    }
}

/// Formulas of one operator: expressions in its operands, `grad` and `out`.
struct Formulas<'a> {
    library: &'a Library<'a>,
    operator: &'a Operator,
    room: usize,
}

impl Formulas<'_> {
    /// A formula in the grammar of the table, at most so many levels deep: each term of a sum is
    /// one. `None` after an error.
    fn text(&self, formula: &Expression, levels: usize, report: &mut Report) -> Option<String> {
        match &formula.kind {
            ExpressionKind::Call { .. } if levels == 0 => {
                let message = too_deep("a formula, in which each term of a sum is a level,");
                let help = "declare an operator of its own for a part of it".to_owned();
                report.error(Code::TooDeep, formula.span, message, Some(help));
                None
            }
            ExpressionKind::Broken => None,
            ExpressionKind::Number(number) => Some(number_of(*number)),
            ExpressionKind::Name(name) => self.name(name, report),
            ExpressionKind::Arithmetic(arithmetic) => {
                let message = format!("`{arithmetic}` has no value here");
                let help =
                    "write the number: a gradient is a formula of operands and numbers".to_owned();
                self.error(formula.span, message, help, report)
            }
            ExpressionKind::Attribute(text) => {
                let message = "expected an operand, a number or a call".to_owned();
                self.error(formula.span, message, words::no_value(text).to_owned(), report)
            }
            ExpressionKind::Call { callee, operands, attributes } => {
                self.call(callee, operands, attributes, levels - 1, report)
            }
        }
    }

    fn name(&self, name: &Ident, report: &mut Report) -> Option<String> {
        let word = name.to_string();
        let operands: Vec<String> = self.operator.operands.iter().map(Ident::to_string).collect();
        let known = || operands.iter().map(String::as_str).chain(["grad", "out"]);
        if known().any(|known| known == word) {
            return Some(word);
        }
        let help = match nearest(&word, known()) {
            Some(known) => format!("write `{known}`"),
            None => format!(
                "a gradient is computed from the operands, `{}`, from the result, `out`, and from the gradient that arrives, `grad`",
                operands.join("`, `")
            ),
        };
        let message = format!("`{word}` is no operand of `{}`", self.operator.name);
        self.error(name.span(), message, help, report)
    }

    fn call(
        &self,
        callee: &Callee,
        operands: &[Expression],
        attributes: &[(Ident, AttributeText)],
        levels: usize,
        report: &mut Report,
    ) -> Option<String> {
        let (span, key) = (callee.name.span(), callee.key());
        let (name, arity, spec) = match self.library.find(self.room, &key) {
            Some(Some(Meaning::Operator(index))) => {
                let operator = self.library.declared[index].operator;
                (
                    self.library.spec_name(index),
                    operator.operands.len()..=operator.operands.len(),
                    None,
                )
            }
            Some(None) => return None,
            Some(Some(Meaning::Block(_))) => {
                let message =
                    format!("`{key}` is a block, and a gradient is computed by operators");
                let help = "write out what the block computes".to_owned();
                return self.error(span, message, help, report);
            }
            None => match operators::find(&key).filter(|spec| !spec.internal) {
                Some(spec) => {
                    (spec.name.to_owned(), spec.required()..=spec.operands.len(), Some(spec))
                }
                None => {
                    let known =
                        operators::all().filter(|spec| !spec.internal).map(|spec| spec.name);
                    let help = match nearest(&key, known.chain(self.library.names(self.room))) {
                        Some(known) => format!("write `{known}`"),
                        None => {
                            "gradients are computed by operators of the language and declared ones"
                                .to_owned()
                        }
                    };
                    return self.error(
                        span,
                        format!("no operator is called `{key}`"),
                        help,
                        report,
                    );
                }
            },
        };
        if !arity.contains(&operands.len()) {
            let message = format!(
                "`{key}` takes {}, but {} given",
                words::count(*arity.end(), "operand"),
                if operands.len() == 1 {
                    "1 is".to_owned()
                } else {
                    format!("{} are", operands.len())
                }
            );
            let help = "give each operand in its place".to_owned();
            return self.error(span, message, help, report);
        }
        let mut parts = Vec::new();
        for operand in operands {
            parts.push(self.text(operand, levels, report)?);
        }
        for (attribute, value) in attributes {
            let known = spec.is_some_and(|spec| spec.attribute(&attribute.to_string()).is_some());
            let value = match value {
                AttributeText::Flag(flag) => Some(flag.to_string()),
                AttributeText::Integer(integer) => Some(integer.to_string()),
                AttributeText::Number(number) => Some(number.to_string()),
                AttributeText::Word(word) => Some(word.to_string()),
                _ => None,
            };
            let Some(value) = value.filter(|_| known) else {
                let message = format!("`{key}` cannot have `{attribute}` so in a gradient");
                let help = "give operands in their places, and attributes that are flags, numbers or storage types".to_owned();
                return self.error(attribute.span(), message, help, report);
            };
            parts.push(format!("{attribute} = {value}"));
        }
        Some(format!("{name}({})", parts.join(", ")))
    }

    fn error<T>(
        &self,
        span: Span,
        message: String,
        help: String,
        report: &mut Report,
    ) -> Option<T> {
        let message = format!("{message} (in a gradient of `{}`)", self.operator.name);
        report.error(Code::OperatorGradient, span, message, Some(help));
        None
    }
}

/// A number in the grammar of formulas, which has no exponents.
fn number_of(number: f64) -> String {
    if number < 0.0 { format!("-{}", -number) } else { number.to_string() }
}
