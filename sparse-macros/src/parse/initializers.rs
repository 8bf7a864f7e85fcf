//! What a parameter starts with: forms and numbers of the library's initializers.

use super::Notes;
use sparse_core::diagnostics::{Code, nearest};
use syn::spanned::Spanned;
use syn::{Expr, ExprStruct, Ident, Lit, Member, UnOp};

/// The fields of an initializer.
enum Form {
    /// `Zeros`
    Alone,
    /// `Constant(0.5)`
    Number,
    /// `Normal { mean: 0.0, std: 0.01 }`
    Fields([&'static str; 2]),
}

/// The initializers of the library. The runtime's enum has the same variants; naming one that it
/// lacks would not compile.
const INITIALIZERS: [(&str, Form); 5] = [
    ("Zeros", Form::Alone),
    ("Ones", Form::Alone),
    ("Constant", Form::Number),
    ("Normal", Form::Fields(["mean", "std"])),
    ("Uniform", Form::Fields(["low", "high"])),
];

/// Their names, and those of their numbers.
#[cfg(test)]
pub(super) fn words() -> impl Iterator<Item = &'static str> {
    let fields = INITIALIZERS.iter().filter_map(|(_, form)| match form {
        Form::Fields(fields) => Some(*fields),
        Form::Alone | Form::Number => None,
    });
    INITIALIZERS.iter().map(|(name, _)| *name).chain(fields.flatten())
}

/// Checks an initializer: its name, its form, and its numbers where they are written out.
pub(super) fn check(name: &Ident, value: &Expr, notes: &mut Notes) {
    let word = name.to_string();
    let Some((_, form)) = INITIALIZERS.iter().find(|(known, _)| *known == word) else {
        let names = INITIALIZERS.map(|(known, _)| known);
        let help = match nearest(&word, names) {
            Some(known) => format!("write `{known}`"),
            None => format!("the initializers are `{}`", names.join("`, `")),
        };
        let message = format!("no initializer is called `{word}`");
        return notes.error(Code::UnknownInitializer, name.span(), message, &help);
    };
    let (example, fits) = match (form, value) {
        (Form::Alone, value) => (word.clone(), matches!(value, Expr::Path(_))),
        (Form::Number, Expr::Call(call)) => (format!("{word}(0.5)"), call.args.len() == 1),
        (Form::Number, _) => (format!("{word}(0.5)"), false),
        (Form::Fields([first, second]), value) => {
            let example = format!("{word} {{ {first}: 0.0, {second}: 0.01 }}");
            if let Expr::Struct(value) = value {
                return check_fields(&word, [first, second], value, &example, notes);
            }
            (example, false)
        }
    };
    if !fits {
        let message = format!("`{word}` is not written so");
        notes.error(Code::BadInitializer, name.span(), message, &format!("write `{example}`"));
    }
}

fn check_fields(
    word: &str,
    [first, second]: [&str; 2],
    value: &ExprStruct,
    example: &str,
    notes: &mut Notes,
) {
    let help = format!("write `{example}`");
    let mut numbers = [None, None];
    let mut given = [0, 0];
    for field in &value.fields {
        let place = [first, second].iter().position(|known| match &field.member {
            Member::Named(name) => name == known,
            Member::Unnamed(_) => false,
        });
        let Some(place) = place else {
            let name = match &field.member {
                Member::Named(name) => name.to_string(),
                Member::Unnamed(index) => index.index.to_string(),
            };
            let help = match nearest(&name, [first, second]) {
                Some(known) => format!("write `{known}`"),
                None => help.clone(),
            };
            let message = format!("`{word}` has no number called `{name}`");
            return notes.error(Code::BadInitializer, field.member.span(), message, &help);
        };
        given[place] += 1;
        numbers[place] = number(&field.expr);
    }
    let span = value.path.span();
    if let Some(place) = given.iter().position(|count| *count != 1) {
        let name = [first, second][place];
        let how = if given[place] == 0 { "is missing" } else { "is given twice" };
        let message = format!("`{name}` of `{word}` {how}");
        return notes.error(Code::BadInitializer, span, message, &help);
    }
    match (word, numbers) {
        ("Normal", [_, Some(std)]) if std < 0.0 => {
            let message = format!("the standard deviation of `Normal` is {std}, below 0");
            notes.error(Code::BadInitializer, span, message, "write a `std` of 0 or more");
        }
        ("Uniform", [Some(low), Some(high)]) if low > high => {
            let message = format!("`low` of `Uniform` is {low}, above `high`, {high}");
            notes.error(Code::BadInitializer, span, message, "swap them");
        }
        _ => {}
    }
}

/// A number that is written out.
fn number(expr: &Expr) -> Option<f64> {
    match expr {
        Expr::Lit(literal) => match &literal.lit {
            Lit::Float(number) => number.base10_parse().ok(),
            Lit::Int(number) => number.base10_parse().ok(),
            _ => None,
        },
        Expr::Unary(unary) if matches!(unary.op, UnOp::Neg(_)) => {
            number(&unary.expr).map(|number| -number)
        }
        _ => None,
    }
}
