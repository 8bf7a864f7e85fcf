//! One declaration.

use super::expressions::{self, converted, dismantle};
use super::types::{array_type, input_type};
use super::{Note, Notes, attributes, initializers};
use crate::arithmetic::Arithmetic;
use crate::ast::{
    ArrayType, Constant, Declaration, Expression, ExpressionKind, Initializer, Input, Let,
    Parameter,
};
use proc_macro2::TokenStream;
use quote::ToTokens;
use sparse_core::diagnostics::{Code, nearest};
use syn::ext::IdentExt;
use syn::parse::ParseStream;
use syn::spanned::Spanned;
use syn::{Attribute, Expr, Ident, Path, Token, bracketed};

/// The words that begin a declaration, for suggestions.
pub(super) const DECLARATIONS: [&str; 13] = [
    "const",
    "input",
    "label",
    "param",
    "state",
    "let",
    "loss",
    "output",
    "update",
    "fallback",
    "dtype",
    "fuse",
    "specialize",
];

/// Those of the model as a whole, each one word.
const OPTIONS: [&str; 4] = ["fallback", "dtype", "fuse", "specialize"];

/// The kinds of parameters, in parentheses behind `param`: whether each is frozen, and whether it
/// decays.
pub(super) const KINDS: [(&str, bool, Option<bool>); 3] =
    [("frozen", true, None), ("decay", false, Some(true)), ("no_decay", false, Some(false))];

/// A declaration. `None` after an error that is noted.
pub(super) fn declaration(
    stream: ParseStream<'_>,
    notes: &mut Notes,
) -> syn::Result<Option<Declaration>> {
    let docs = attributes::documentation(stream, notes)?;
    if stream.peek(Token![let]) {
        stream.parse::<Token![let]>()?;
        return let_declaration(stream, notes).map(Some);
    }
    if stream.peek(Token![const]) {
        return constant(stream, notes).map(Some);
    }
    let word: Ident = stream.parse().map_err(|error| {
        let message = "expected a declaration, such as `let name = …;` or `output name;`";
        syn::Error::new(error.span(), message)
    })?;
    let parsed = match word.to_string().as_str() {
        "input" | "label" => {
            let name = name(stream, notes)?;
            let Some(array) = declared_type(stream, &word, &name, notes)? else { return Ok(None) };
            Declaration::Input(Input { docs, is_label: word == "label", name, array })
        }
        "param" | "state" => match parameter(stream, &word, docs, notes)? {
            Some(parameter) => parameter,
            None => return Ok(None),
        },
        "update" => {
            let name = name(stream, notes)?;
            stream.parse::<Token![=]>()?;
            Declaration::Update { name, value: expressions::next(stream, notes)? }
        }
        "loss" => Declaration::Loss(loss(stream, notes)?),
        "output" => {
            let name = name(stream, notes)?;
            if !stream.is_empty() && !stream.peek(Token![:]) && !stream.peek(Token![=]) {
                let message = "an output that is computed here needs a name".to_owned();
                let help = "write `output name = …;`";
                notes.error(Code::UnnamedOutput, name.span(), message, help);
                stream.parse::<TokenStream>()?;
                return Ok(None);
            }
            let array = match stream.parse::<Option<Token![:]>>()? {
                Some(_) => Some(array_type(stream, notes)?),
                None => None,
            };
            let value = if stream.parse::<Option<Token![=]>>()?.is_some() {
                expressions::next(stream, notes)?
            } else {
                Expression { span: name.span(), kind: ExpressionKind::Name(name.clone()) }
            };
            Declaration::Output { docs, name, array, value }
        }
        "fallback" | "dtype" | "fuse" => {
            stream.parse::<Token![=]>()?;
            Declaration::Option { name: word, value: stream.parse()? }
        }
        "specialize" => {
            stream.parse::<Token![=]>()?;
            let list;
            bracketed!(list in stream);
            let rules = list.parse_terminated(Path::parse_mod_style, Token![,])?;
            Declaration::Specialize { name: word, rules: rules.into_iter().collect() }
        }
        other => {
            notes.errors.push(Note {
                code: Code::UnknownDeclaration,
                span: word.span(),
                message: format!("`{other}` does not begin a declaration"),
                help: Some(match nearest(other, DECLARATIONS) {
                    Some(known) if stream.peek(Token![=]) && OPTIONS.contains(&known) => {
                        format!("write `{known}`")
                    }
                    _ if stream.peek(Token![=]) => format!("write `let {other} = …;`"),
                    Some(known) => format!("write `{known}`"),
                    None => format!("declarations begin with `{}`", DECLARATIONS.join("`, `")),
                }),
            });
            // Nothing more to say about this line.
            stream.parse::<TokenStream>()?;
            return Ok(None);
        }
    };
    if stream.peek(Token![@]) {
        notes.errors.push(not_ended(stream, &stream.error("expected `;`")));
        stream.parse::<TokenStream>()?;
    }
    if !stream.is_empty() {
        return Err(stream.error("expected `;`"));
    }
    Ok(Some(parsed))
}

/// An error of syntax; that a product is not written `x @ w`.
fn not_ended(stream: ParseStream<'_>, error: &syn::Error) -> Note {
    let help = stream.peek(Token![@]).then(|| "write `dot(x, y)`".to_owned());
    Note { help, ..Note::syntax(error) }
}

/// The types of constants.
const TYPES: [&str; 14] = [
    "usize", "f32", "f64", "bool", "i8", "i16", "i32", "i64", "isize", "u8", "u16", "u32", "u64",
    "i128",
];

/// `const CLASSES;`, `const CLASSES: usize = 2 * PAIRS;` or `const DELTA: f32 = 1.5;`.
fn constant(stream: ParseStream<'_>, notes: &Notes) -> syn::Result<Declaration> {
    stream.parse::<Token![const]>()?;
    let name: Ident = stream.parse()?;
    let mut ty = None;
    if stream.parse::<Option<Token![:]>>()?.is_some() {
        let word: Ident = stream.parse()?;
        if !TYPES.iter().any(|known| word == known) {
            let message = "a constant is `usize`, which is an extent, or `f32`, `f64`, `bool`";
            return Err(syn::Error::new(word.span(), message));
        }
        ty = Some(word);
    }
    let (value, arithmetic) = match stream.parse::<Option<Token![=]>>()? {
        Some(_) => {
            let value: Expr = stream.parse()?;
            let arithmetic = Arithmetic::of(&value);
            (notes.cut.restored(value.to_token_stream()), arithmetic)
        }
        None => (name.to_token_stream(), Some(Arithmetic::Name(name.clone()))),
    };
    if stream.is_empty() {
        Ok(Declaration::Constant(Constant { name, ty, value, arithmetic }))
    } else {
        Err(stream.error("expected `;`"))
    }
}

/// What stands behind `loss`, which names nothing.
fn loss(stream: ParseStream<'_>, notes: &mut Notes) -> syn::Result<Expression> {
    let span = stream.span();
    let sign = stream.parse::<Option<Token![=]>>()?;
    let value = match (stream.parse()?, sign) {
        (Expr::Assign(assign), None) => *assign.right,
        (value, None) => return Ok(converted(value, notes)),
        (value, Some(_)) => value,
    };
    notes.error(Code::Syntax, span, "a loss has no name".into(), "write `loss squared_error(…);`");
    Ok(converted(value, notes))
}

fn let_declaration(stream: ParseStream<'_>, notes: &mut Notes) -> syn::Result<Declaration> {
    if let Some(word) = stream.parse::<Option<Token![mut]>>()? {
        let message = "values do not change".to_owned();
        notes.error(Code::Syntax, word.span, message, "leave `mut` out");
    }
    let name = name(stream, notes)?;
    let array = match stream.parse::<Option<Token![:]>>()? {
        Some(_) => Some(array_type(stream, notes)?),
        None => None,
    };
    stream.parse::<Token![=]>()?;
    let value = match stream.parse::<Expr>() {
        Ok(expr) if stream.is_empty() => converted(expr, notes),
        // The name stays known, so that its uses are not errors too.
        result => {
            let error = match result {
                Ok(expr) => {
                    dismantle(expr);
                    stream.error("expected `;`")
                }
                Err(error) => error,
            };
            notes.errors.push(not_ended(stream, &error));
            stream.parse::<TokenStream>()?;
            Expression { span: error.span(), kind: ExpressionKind::Broken }
        }
    };
    Ok(Declaration::Let(Let { name, array, value }))
}

/// The name of a declaration: a word of Rust's that is not one of its own.
pub(super) fn name(stream: ParseStream<'_>, notes: &mut Notes) -> syn::Result<Ident> {
    let Some((word, _)) = stream.cursor().ident() else { return stream.parse() };
    let text = word.to_string();
    if text == "_" {
        Ident::parse_any(stream)?;
        let message = "`_` is no name, and a value without one is not computed".to_owned();
        let help = "leave the declaration out, or write `_unused`, of which no warning is given";
        notes.error(Code::ReservedName, word.span(), message, help);
        return Ok(Ident::new("_unused", word.span()));
    }
    let why = match () {
        // Of the newest edition, which the parser does not know.
        () if text == "gen" => "is a word of Rust",
        () if text.starts_with("r#") || syn::parse_str::<Ident>(&text).is_err() => {
            "is a word of Rust"
        }
        () if text.starts_with("__") => "begins as the names of emitted code do",
        () => return stream.parse(),
    };
    Ident::parse_any(stream)?;
    let spelled = text.trim_start_matches("r#").trim_start_matches('_');
    let spelled = if spelled.is_empty() { "unnamed" } else { spelled };
    let message = format!("`{text}` cannot be a name: it {why}");
    notes.error(Code::ReservedName, word.span(), message, &format!("write `{spelled}_`"));
    Ok(Ident::new(&format!("{spelled}_"), word.span()))
}

/// `: csr[n, d]`. `None` where there is none, which is noted.
fn declared_type(
    stream: ParseStream<'_>,
    word: &Ident,
    name: &Ident,
    notes: &mut Notes,
) -> syn::Result<Option<ArrayType>> {
    if stream.parse::<Option<Token![:]>>()?.is_some() {
        return if word == "param" || word == "state" {
            array_type(stream, notes).map(Some)
        } else {
            input_type(stream, notes).map(Some)
        };
    }
    let message = format!("the type of `{name}` is missing");
    let help = format!("write `{word} {name}: dense[…]`, `csr[…]` or `row_sparse[…]`");
    notes.error(Code::MissingType, name.span(), message, &help);
    stream.parse::<TokenStream>()?;
    Ok(None)
}

fn parameter(
    stream: ParseStream<'_>,
    keyword: &Ident,
    docs: Vec<Attribute>,
    notes: &mut Notes,
) -> syn::Result<Option<Declaration>> {
    let is_state = keyword == "state";
    let (mut frozen, mut decay) = (is_state, None);
    if !is_state && stream.peek(syn::token::Paren) {
        let content;
        syn::parenthesized!(content in stream);
        let word: Ident = content.parse()?;
        match KINDS.iter().find(|(known, ..)| word == known) {
            Some((_, is_frozen, decays)) => (frozen, decay) = (*is_frozen, *decays),
            None => {
                let message = format!("no kind of parameter is called `{word}`");
                let help = "write `param(frozen)` for one that is not trained, \
                            `param(decay)` or `param(no_decay)` for its weight decay, or `param`";
                notes.error(Code::UnknownModifier, word.span(), message, help);
                // Nothing is said twice of what was meant.
                frozen = true;
            }
        }
        if !content.is_empty() {
            let message = "a parameter has one kind".to_owned();
            let help = "write one word: `param(frozen)`, `param(decay)` or `param(no_decay)`; a frozen parameter never decays";
            notes.error(Code::UnknownModifier, content.span(), message, help);
            content.parse::<TokenStream>()?;
        }
    }
    let name = name(stream, notes)?;
    let word = Ident::new(&keyword.to_string(), name.span());
    let Some(array) = declared_type(stream, &word, &name, notes)? else { return Ok(None) };
    if stream.is_empty() {
        let what = if is_state { "state" } else { "parameter" };
        let message = format!("the {what} `{name}` has no initializer");
        let help = "write `= Zeros` or `= Normal { mean: 0.0, std: 0.01 }`";
        notes.error(Code::MissingInitializer, name.span(), message, help);
        return Ok(None);
    }
    stream.parse::<Token![=]>()?;
    let value: Expr = stream.parse()?;
    let path = match &value {
        Expr::Struct(value) => &value.path,
        Expr::Path(value) => &value.path,
        Expr::Call(call) => match &*call.func {
            Expr::Path(value) => &value.path,
            other => return Err(syn::Error::new(other.span(), "expected an initializer")),
        },
        other => {
            let message = "expected an initializer, such as `Zeros` or `Constant(0.5)`";
            return Err(syn::Error::new(other.span(), message));
        }
    };
    let name_of = path
        .segments
        .last()
        .map(|segment| segment.ident.clone())
        .ok_or_else(|| syn::Error::new(path.span(), "expected an initializer"))?;
    initializers::check(&name_of, &value, notes);
    let tokens = notes.cut.restored(value.to_token_stream());
    let initializer = Initializer { name: name_of, tokens };
    Ok(Some(Declaration::Parameter(Parameter {
        docs,
        frozen,
        decay,
        is_state,
        name,
        array,
        initializer,
    })))
}
