//! Numbers: the constants of a model, constants of Rust by their paths, and dimensions as numbers.

use super::Resolver;
use crate::arithmetic::{Arithmetic, Literal};
use crate::ast::{AttributeText, Constant, Declaration, Extent, Model};
use proc_macro2::{Span, TokenStream};
use quote::ToTokens as _;
use sparse_core::diagnostics::Code;
use sparse_core::formula::{BinaryOperator, Formula};
use sparse_core::ir::{Entry, NamedList, ValueId};
use sparse_core::storage::ElementType;
use std::collections::BTreeMap;
use std::rc::Rc;
use syn::{BinOp, Ident};

/// What numbers the names of a model stand for.
#[derive(Default)]
pub(super) struct Numbers {
    pub(super) constants: BTreeMap<String, Known>,
    /// The dimensions of inputs and parameters, and of labels.
    pub(super) dims: BTreeMap<String, Reach>,
    /// Constants of Rust that have no name in the model, by the name that the graph calls them.
    unnamed: Vec<(String, TokenStream)>,
}

/// A constant of the model.
#[derive(Clone)]
pub(super) struct Known {
    /// Its value, where the macro sees it.
    value: Option<Literal>,
    /// Its type, where that is said or seen.
    ty: Option<String>,
}

impl Known {
    fn is_extent(&self) -> bool {
        self.ty.as_deref().is_none_or(|ty| ty == "usize")
    }
}

/// Where a dimension is known from.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Reach {
    Parameter,
    Input,
    Label,
}

/// What arithmetic comes to.
pub(super) enum Number {
    Seen(Literal),
    /// A constant of Rust, by its name in the graph.
    Named(String),
}

/// Why arithmetic is no constant.
pub(super) enum NoConstant {
    /// A name is none.
    Name(Ident),
    /// While a block is checked, the use decides.
    Unknown,
}

/// An expression of Rust that is a constant of a graph: its name there, and its tokens.
pub(crate) type Unnamed = (String, TokenStream);

impl Numbers {
    /// The constants that have no name in the model.
    pub(super) fn into_unnamed(self) -> Vec<Unnamed> {
        self.unnamed
    }

    /// Whether a name is a constant that is no extent.
    pub(super) fn is_no_extent(&self, name: &str) -> bool {
        self.constants.get(name).is_some_and(|known| !known.is_extent())
    }

    pub(super) fn is_dimension(&self, name: &str) -> bool {
        self.dims.contains_key(name)
    }
}

impl Resolver<'_> {
    /// The constants of a model, in order: each may name those above it.
    pub(super) fn declare_numbers(&mut self, model: &Model) {
        for declaration in &model.declarations {
            let (array, reach) = match declaration {
                Declaration::Constant(constant) => {
                    self.constant(constant);
                    continue;
                }
                Declaration::Parameter(parameter) => (&parameter.array, Reach::Parameter),
                Declaration::Input(input) if input.is_label => (&input.array, Reach::Label),
                Declaration::Input(input) => (&input.array, Reach::Input),
                _ => continue,
            };
            for dim in &array.dims {
                let Extent::Name(name) = dim else { continue };
                let known = self.numbers.dims.entry(name.to_string()).or_insert(reach);
                if *known == Reach::Label {
                    *known = reach;
                }
            }
        }
        let constants = &self.numbers.constants;
        self.numbers.dims.retain(|name, _| !constants.contains_key(name));
    }

    fn constant(&mut self, constant: &Constant) {
        let Constant { name, ty, arithmetic, .. } = constant;
        let (word, ty) = (name.to_string(), ty.as_ref().map(Ident::to_string));
        if self.numbers.constants.contains_key(&word) {
            let message = format!("`{word}` is declared twice");
            self.error(Code::DuplicateName, name.span(), message, None);
        }
        let above = |name: &Ident| self.numbers.constants.get(&name.to_string())?.value;
        let value = arithmetic.as_ref().and_then(|arithmetic| arithmetic.value(&above));
        let (value, fault) = match (value, ty.as_deref()) {
            (Some(value), Some(ty)) => typed(value, ty),
            (value, _) => (value, None),
        };
        if let Some(fault) = fault {
            let ty = ty.clone().unwrap_or_default();
            let message = format!("the constant `{word}` is {fault}, which is no `{ty}`");
            let help = match fault {
                Literal::Flag(_) => format!("write `const {word}: bool = {fault};`"),
                Literal::Integer(_) => format!("write `const {word}: i64 = {fault};`"),
                _ => format!("write `const {word}: f32 = {fault};`"),
            };
            self.error(Code::BadExtent, name.span(), message, Some(help));
        }
        let ty = ty.or_else(|| {
            Some(match value? {
                Literal::Flag(_) => "bool".to_owned(),
                Literal::Integer(integer) if integer < 0 => "i64".to_owned(),
                Literal::Integer(_) => return None,
                Literal::Single(_) => "f32".to_owned(),
                Literal::Number(_) => "f64".to_owned(),
            })
        });
        let known = Known { value, ty };
        match value {
            _ if !known.is_extent() => self.graph.unify.declare_number(&word),
            Some(Literal::Integer(size)) if size >= 0 => {
                self.graph.unify.declare_known_constant(&word, size as u64);
            }
            _ => self.graph.unify.declare_constant(&word),
        }
        self.numbers.constants.insert(word, known);
    }

    /// What arithmetic comes to, of constants alone: those of a model, or in a block what its
    /// parameters were given.
    pub(super) fn number_of(&mut self, arithmetic: &Arithmetic) -> Result<Number, NoConstant> {
        let mut names: BTreeMap<String, Number> = BTreeMap::new();
        for name in arithmetic.names() {
            let number = self.number_called(name)?;
            names.insert(name.to_string(), number);
        }
        let seen = |name: &Ident| match names.get(&name.to_string())? {
            Number::Seen(value) => Some(*value),
            Number::Named(_) => None,
        };
        if let Some(value) = arithmetic.value(&seen) {
            return Ok(Number::Seen(value));
        }
        // A name alone, maybe as the type that numbers have.
        let is_single = self.graph.element() != ElementType::F64;
        let alone = match arithmetic {
            Arithmetic::Cast(inner, ty) if *ty == "f64" || (*ty == "f32" && is_single) => inner,
            other => other,
        };
        if let Arithmetic::Name(name) = alone
            && let Some(Number::Named(known)) = names.get(&name.to_string())
        {
            return Ok(Number::Named(known.clone()));
        }
        let is_of_model = |name: &str| self.numbers.constants.contains_key(name);
        let unnamed = &self.numbers.unnamed;
        let tokens = arithmetic.tokens(&|name: &Ident| match names.get(&name.to_string())? {
            Number::Seen(value) => value.to_string().parse().ok(),
            Number::Named(known) if is_of_model(known) => {
                Some(Ident::new(known, name.span()).into_token_stream())
            }
            Number::Named(known) => {
                let (_, tokens) = unnamed.iter().find(|(other, _)| other == known)?;
                Some(quote::quote!((#tokens)))
            }
        });
        // That of a block of another crate.
        let of_crate = format!("crate_{}", self.frame.room);
        let text = tokens.to_string().replace(" :: ", "::").replace("$crate", &of_crate);
        let text = match arithmetic {
            Arithmetic::Path(_) => text.replace(' ', ""),
            _ => format!("{{{text}}}"),
        };
        if unnamed.iter().all(|(known, _)| *known != text) {
            self.numbers.unnamed.push((text.clone(), tokens));
        }
        Ok(Number::Named(text))
    }

    /// The number that a name is.
    fn number_called(&mut self, name: &Ident) -> Result<Number, NoConstant> {
        let word = name.to_string();
        let none = || NoConstant::Name(name.clone());
        if self.frame.block.is_none() {
            let known = self.numbers.constants.get(&word).ok_or_else(none)?;
            return Ok(known.value.map_or_else(|| Number::Named(word.clone()), Number::Seen));
        }
        match self.given_to_block(&AttributeText::Word(name.clone())) {
            None => Err(NoConstant::Unknown),
            Some(AttributeText::Flag(flag)) => Ok(Number::Seen(Literal::Flag(flag))),
            Some(AttributeText::Integer(integer)) => Ok(Number::Seen(Literal::Integer(integer))),
            Some(AttributeText::Number(number)) => Ok(Number::Seen(Literal::Number(number))),
            Some(AttributeText::Named(known)) => Ok(Number::Named(known)),
            Some(_) if self.frame.site.is_none() && self.frame.scope.contains_key(&word) => {
                Err(NoConstant::Unknown)
            }
            Some(_) => Err(none()),
        }
    }

    /// What is written as an attribute with numbers in place of constants; as it is where a name is
    /// no constant.
    pub(super) fn with_numbers(&mut self, text: &AttributeText) -> Option<AttributeText> {
        let number = match text {
            AttributeText::Word(word) if self.frame.block.is_none() => {
                let known = self.numbers.constants.contains_key(&word.to_string());
                if !known || self.frame.scope.contains_key(&word.to_string()) {
                    return Some(text.clone());
                }
                self.number_called(word)
            }
            AttributeText::Arithmetic(arithmetic, _) => self.number_of(arithmetic),
            AttributeText::Entries(entries) => return self.entries(entries, text),
            other => return Some(other.clone()),
        };
        match number {
            Ok(Number::Seen(value)) => Some(written(value)),
            Ok(Number::Named(name)) => Some(AttributeText::Named(name)),
            Err(NoConstant::Unknown) => None,
            Err(NoConstant::Name(_)) => Some(text.clone()),
        }
    }

    fn entries(
        &mut self,
        entries: &[Option<Rc<Arithmetic>>],
        text: &AttributeText,
    ) -> Option<AttributeText> {
        let mut found = Vec::new();
        for entry in entries {
            let Some(entry) = entry else {
                found.push(None);
                continue;
            };
            found.push(Some(match self.number_of(entry) {
                Ok(Number::Seen(Literal::Integer(integer))) => Entry::Integer(integer),
                Ok(Number::Named(name)) => Entry::named(&name),
                Err(NoConstant::Unknown) => return None,
                Ok(Number::Seen(_)) | Err(NoConstant::Name(_)) => return Some(text.clone()),
            }));
        }
        let list = NamedList::new(&found);
        Some(match list.integers() {
            Some(list) => AttributeText::List(list.entries().to_vec()),
            None => AttributeText::NamedList(list),
        })
    }

    /// Whether a constant of the graph can be an extent. What it is instead is reported, once.
    pub(super) fn extent_of_rust(&mut self, name: &str) -> Result<(), String> {
        if let Some(known) = self.numbers.constants.get(name)
            && !known.is_extent()
        {
            return Err(known.ty.clone().unwrap_or_default());
        }
        if !self.graph.unify.is_constant(name) {
            self.graph.unify.declare_constant(name);
        }
        Ok(())
    }

    /// Arithmetic as a value: a number that is seen, or a formula in names of constants and
    /// dimensions.
    pub(super) fn arithmetic(&mut self, arithmetic: &Arithmetic, span: Span) -> ValueId {
        match self.number_of(arithmetic) {
            Ok(number) => self.value_of(number, span),
            Err(NoConstant::Unknown) => self.poison(span),
            Err(NoConstant::Name(_)) => match self.formula(arithmetic) {
                Ok(formula) => {
                    let place = self.place(span);
                    self.graph.number(formula, place)
                }
                Err(name) => {
                    self.refuse_number(&name, span);
                    self.poison(span)
                }
            },
        }
    }

    /// A number as a value.
    pub(super) fn value_of(&mut self, number: Number, span: Span) -> ValueId {
        let place = self.place(span);
        let formula = match number {
            Number::Seen(Literal::Flag(flag)) => Formula::Number(f64::from(u8::from(flag))),
            Number::Seen(value) => Formula::Number(value.number().unwrap_or_default()),
            Number::Named(name) => {
                if !self.graph.unify.is_constant(&name) {
                    self.graph.unify.declare_number(&name);
                }
                Formula::Name(name)
            }
        };
        self.graph.number(formula, place)
    }

    /// Arithmetic of dimensions in whole numbers, which sums and products of `f64` are too.
    fn formula(&mut self, arithmetic: &Arithmetic) -> Result<Formula, Ident> {
        Ok(match arithmetic {
            Arithmetic::Literal(value, _) => Formula::Number(value.number().unwrap_or_default()),
            Arithmetic::Name(name) => {
                let word = name.to_string();
                let reach = self.numbers.dims.get(&word).copied();
                let reach = reach.filter(|_| self.frame.block.is_none());
                match reach {
                    Some(Reach::Parameter | Reach::Input) => Formula::Name(word),
                    Some(Reach::Label) | None => match self.number_called(name) {
                        Ok(Number::Seen(value)) => {
                            Formula::Number(value.number().unwrap_or_default())
                        }
                        Ok(Number::Named(known)) => Formula::Name(known),
                        Err(_) => return Err(name.clone()),
                    },
                }
            }
            Arithmetic::Path(_) => match self.number_of(arithmetic) {
                Ok(Number::Named(known)) => {
                    self.graph.unify.declare_number(&known);
                    Formula::Name(known)
                }
                _ => Formula::Number(0.0),
            },
            Arithmetic::Negate(inner) => Formula::Negate(Box::new(self.formula(inner)?)),
            Arithmetic::Binary(sign, operands) => {
                let [lhs, rhs] = &**operands;
                let (of_cast, lhs, rhs) =
                    (is_cast(lhs) || is_cast(rhs), self.formula(lhs)?, self.formula(rhs)?);
                let (lhs, rhs) = (Box::new(lhs), Box::new(rhs));
                match sign {
                    BinOp::Add(_) => Formula::Binary(BinaryOperator::Add, lhs, rhs),
                    BinOp::Sub(_) => Formula::Binary(BinaryOperator::Subtract, lhs, rhs),
                    BinOp::Mul(_) => Formula::Binary(BinaryOperator::Multiply, lhs, rhs),
                    BinOp::Div(_) => {
                        let quotient = Formula::Binary(BinaryOperator::Divide, lhs, rhs);
                        // Whole numbers are divided without a remainder.
                        if of_cast {
                            quotient
                        } else {
                            Formula::Call("trunc".to_owned(), vec![quotient], Vec::new())
                        }
                    }
                    _ => Formula::Call("modulo".to_owned(), vec![*lhs, *rhs], Vec::new()),
                }
            }
            Arithmetic::Cast(inner, _) => self.formula(inner)?,
        })
    }

    /// The value of a name that is a constant.
    pub(super) fn constant_value(&mut self, name: &Ident) -> Option<ValueId> {
        let word = name.to_string();
        let known =
            self.numbers.constants.get(&word).filter(|_| self.frame.block.is_none())?.clone();
        if known.is_extent() {
            let message = format!("`{word}` is an extent, and no value");
            let help = format!("as a number write `{word} as f64`");
            self.error(Code::UnknownName, name.span(), message, Some(help));
            return Some(self.poison(name.span()));
        }
        let number = known.value.map_or(Number::Named(word), Number::Seen);
        Some(self.value_of(number, name.span()))
    }
}

fn is_cast(arithmetic: &Arithmetic) -> bool {
    match arithmetic {
        Arithmetic::Cast(..) | Arithmetic::Literal(Literal::Number(_) | Literal::Single(_), _) => {
            true
        }
        Arithmetic::Negate(inner) => is_cast(inner),
        Arithmetic::Binary(_, operands) => operands.iter().any(is_cast),
        _ => false,
    }
}

/// A value of a type; what it is instead, where it is of another.
fn typed(value: Literal, ty: &str) -> (Option<Literal>, Option<Literal>) {
    let fits = match (ty, value) {
        ("bool", Literal::Flag(_)) => true,
        ("bool", _) | (_, Literal::Flag(_)) => false,
        ("f32" | "f64", Literal::Integer(_)) => false,
        ("f32" | "f64", _) => true,
        (_, Literal::Integer(integer)) => !(ty.starts_with('u') && integer < 0),
        _ => false,
    };
    if fits { (value.cast(ty), None) } else { (None, Some(value)) }
}

/// A number as the text of an attribute.
fn written(value: Literal) -> AttributeText {
    match value {
        Literal::Flag(flag) => AttributeText::Flag(flag),
        Literal::Integer(integer) => AttributeText::Integer(integer),
        Literal::Single(number) => AttributeText::Number(f64::from(number)),
        Literal::Number(number) => AttributeText::Number(number),
    }
}
