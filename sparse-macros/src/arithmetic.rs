//! Numbers of the source: literals, constants, dimensions, and arithmetic of them.
//!
//! What stands in an attribute or in front of `as f64` is read as a tree of its own. Where all its
//! names have values that the macro sees, the macro computes it; else it is handed to the compiler
//! of Rust.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use std::fmt;
use syn::{BinOp, Expr, Ident, Lit, Path, Type, UnOp};

/// An expression of numbers.
#[derive(Clone)]
pub(crate) enum Arithmetic {
    Literal(Literal, TokenStream),
    /// A constant of the model, a dimension, a parameter of a block.
    Name(Ident),
    /// A constant of Rust by its path.
    Path(Path),
    Negate(Box<Arithmetic>),
    Binary(BinOp, Box<[Arithmetic; 2]>),
    /// `FIELDS as f64`.
    Cast(Box<Arithmetic>, Ident),
}

/// A number or a flag that the macro sees. Arithmetic of `f32` is rounded as Rust rounds it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Literal {
    Flag(bool),
    Integer(i64),
    Single(f32),
    Number(f64),
}

/// The deepest arithmetic that is read: it is followed by recursion.
const DEEPEST: usize = 32;

impl Arithmetic {
    /// An expression of Rust, if it is arithmetic of numbers and names.
    pub(crate) fn of(expr: &Expr) -> Option<Self> {
        Self::within(expr, DEEPEST)
    }

    fn within(expr: &Expr, levels: usize) -> Option<Self> {
        let inner = |expr: &Expr| Self::within(expr, levels.checked_sub(1)?);
        Some(match expr {
            Expr::Paren(paren) => inner(&paren.expr)?,
            Expr::Group(group) => inner(&group.expr)?,
            Expr::Lit(literal) => {
                let value = match &literal.lit {
                    Lit::Bool(flag) => Literal::Flag(flag.value),
                    Lit::Int(number) => Literal::Integer(number.base10_parse().ok()?),
                    Lit::Float(number) if number.suffix() == "f32" => {
                        Literal::Single(number.base10_parse().ok()?)
                    }
                    Lit::Float(number) => Literal::Number(number.base10_parse().ok()?),
                    _ => return None,
                };
                Arithmetic::Literal(value, literal.to_token_stream())
            }
            Expr::Path(path) if path.qself.is_none() => match path.path.get_ident() {
                Some(name) => Arithmetic::Name(name.clone()),
                None => {
                    let plain = path.path.segments.iter().all(|part| part.arguments.is_none());
                    plain.then(|| Arithmetic::Path(path.path.clone()))?
                }
            },
            Expr::Unary(unary) if matches!(unary.op, UnOp::Neg(_)) => {
                Arithmetic::Negate(Box::new(inner(&unary.expr)?))
            }
            Expr::Binary(binary) => {
                use BinOp::{Add, Div, Mul, Rem, Sub};
                let known = matches!(binary.op, Add(_) | Sub(_) | Mul(_) | Div(_) | Rem(_));
                let sign = known.then_some(binary.op)?;
                Arithmetic::Binary(sign, Box::new([inner(&binary.left)?, inner(&binary.right)?]))
            }
            Expr::Cast(cast) => {
                let Type::Path(ty) = &*cast.ty else { return None };
                Arithmetic::Cast(Box::new(inner(&cast.expr)?), ty.path.get_ident()?.clone())
            }
            _ => return None,
        })
    }

    /// The value, where `of` knows each name's.
    pub(crate) fn value(&self, of: &dyn Fn(&Ident) -> Option<Literal>) -> Option<Literal> {
        match self {
            Arithmetic::Literal(value, _) => Some(*value),
            Arithmetic::Name(name) => of(name),
            Arithmetic::Path(_) => None,
            Arithmetic::Negate(inner) => match inner.value(of)? {
                Literal::Integer(integer) => integer.checked_neg().map(Literal::Integer),
                Literal::Single(number) => Some(Literal::Single(-number)),
                Literal::Number(number) => Some(Literal::Number(-number)),
                Literal::Flag(_) => None,
            },
            Arithmetic::Binary(sign, operands) => {
                let [lhs, rhs] = &**operands;
                applied(sign, lhs.value(of)?, rhs.value(of)?)
            }
            Arithmetic::Cast(inner, ty) => inner.value(of)?.cast(&ty.to_string()),
        }
    }

    /// The tokens of Rust, with others in place of names that `of` knows.
    pub(crate) fn tokens(&self, of: &dyn Fn(&Ident) -> Option<TokenStream>) -> TokenStream {
        match self {
            Arithmetic::Literal(_, tokens) => tokens.clone(),
            Arithmetic::Name(name) => of(name).unwrap_or_else(|| name.to_token_stream()),
            Arithmetic::Path(path) => path.to_token_stream(),
            Arithmetic::Negate(inner) => {
                let inner = inner.grouped(of);
                quote!(-#inner)
            }
            Arithmetic::Binary(sign, operands) => {
                let [lhs, rhs] = operands.each_ref().map(|operand| operand.grouped(of));
                quote!(#lhs #sign #rhs)
            }
            Arithmetic::Cast(inner, ty) => {
                let inner = inner.grouped(of);
                quote!(#inner as #ty)
            }
        }
    }

    fn grouped(&self, of: &dyn Fn(&Ident) -> Option<TokenStream>) -> TokenStream {
        let tokens = self.tokens(of);
        match self {
            Arithmetic::Literal(..) | Arithmetic::Name(_) | Arithmetic::Path(_) => tokens,
            _ => quote!((#tokens)),
        }
    }

    /// The names in it.
    pub(crate) fn names(&self) -> Vec<&Ident> {
        match self {
            Arithmetic::Literal(..) | Arithmetic::Path(_) => Vec::new(),
            Arithmetic::Name(name) => vec![name],
            Arithmetic::Negate(inner) | Arithmetic::Cast(inner, _) => inner.names(),
            Arithmetic::Binary(_, operands) => {
                operands.iter().flat_map(Arithmetic::names).collect()
            }
        }
    }

    /// The paths in it.
    pub(crate) fn paths(&self) -> Vec<&Path> {
        match self {
            Arithmetic::Literal(..) | Arithmetic::Name(_) => Vec::new(),
            Arithmetic::Path(path) => vec![path],
            Arithmetic::Negate(inner) | Arithmetic::Cast(inner, _) => inner.paths(),
            Arithmetic::Binary(_, operands) => {
                operands.iter().flat_map(Arithmetic::paths).collect()
            }
        }
    }
}

/// As it is written.
impl fmt::Display for Arithmetic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let grouped = |inner: &Arithmetic| match inner {
            Arithmetic::Binary(..) | Arithmetic::Cast(..) => format!("({inner})"),
            _ => inner.to_string(),
        };
        match self {
            Arithmetic::Literal(_, tokens) => write!(f, "{tokens}"),
            Arithmetic::Name(name) => write!(f, "{name}"),
            Arithmetic::Path(path) => {
                f.write_str(&path.to_token_stream().to_string().replace(' ', ""))
            }
            Arithmetic::Negate(inner) => write!(f, "-{}", grouped(inner)),
            Arithmetic::Binary(sign, operands) => {
                let [lhs, rhs] = operands.each_ref().map(grouped);
                write!(f, "{lhs} {} {rhs}", sign.to_token_stream())
            }
            Arithmetic::Cast(inner, ty) => write!(f, "{} as {ty}", grouped(inner)),
        }
    }
}

/// Arithmetic as Rust computes it; an integer among numbers is one of them.
fn applied(sign: &BinOp, lhs: Literal, rhs: Literal) -> Option<Literal> {
    if let (Literal::Integer(x), Literal::Integer(y)) = (lhs, rhs) {
        return match sign {
            BinOp::Add(_) => x.checked_add(y),
            BinOp::Sub(_) => x.checked_sub(y),
            BinOp::Mul(_) => x.checked_mul(y),
            BinOp::Div(_) => x.checked_div(y),
            _ => x.checked_rem(y),
        }
        .map(Literal::Integer);
    }
    let (x, y) = (lhs.number()?, rhs.number()?);
    let value = match sign {
        BinOp::Add(_) => x + y,
        BinOp::Sub(_) => x - y,
        BinOp::Mul(_) => x * y,
        BinOp::Div(_) => x / y,
        _ => x % y,
    };
    // Of `f32` rounded once, which the `f64` in between does not change.
    let is_single = matches!(lhs, Literal::Single(_)) || matches!(rhs, Literal::Single(_));
    Some(if is_single { Literal::Single(value as f32) } else { Literal::Number(value) })
}

impl Literal {
    /// The number that it is; `None` of a flag.
    pub(crate) fn number(self) -> Option<f64> {
        match self {
            Literal::Flag(_) => None,
            Literal::Integer(integer) => Some(integer as f64),
            Literal::Single(number) => Some(f64::from(number)),
            Literal::Number(number) => Some(number),
        }
    }

    /// `self as ty`; `None` where Rust refuses it.
    pub(crate) fn cast(self, ty: &str) -> Option<Literal> {
        Some(match (ty, self) {
            ("bool", Literal::Flag(_)) => self,
            ("f32", _) => Literal::Single(self.number()? as f32),
            ("f64", _) => Literal::Number(self.number()?),
            ("f16" | "bf16" | "bool", _) => return None,
            (_, Literal::Integer(_)) => self,
            (_, Literal::Flag(flag)) => Literal::Integer(i64::from(flag)),
            (_, number) => Literal::Integer(number.number()? as i64),
        })
    }
}

impl fmt::Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Literal::Flag(flag) => write!(f, "{flag}"),
            Literal::Integer(integer) => write!(f, "{integer}"),
            Literal::Single(number) => write!(f, "{number:?}"),
            Literal::Number(number) => write!(f, "{number:?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Arithmetic {
        Arithmetic::of(&syn::parse_str(text).unwrap()).unwrap()
    }

    fn value(text: &str) -> Option<Literal> {
        read(text).value(&|name| (name == "K").then_some(Literal::Integer(7)))
    }

    #[test]
    fn arithmetic_is_that_of_rust() {
        assert_eq!(value("2 * (K - 1) / 5"), Some(Literal::Integer(2)));
        assert_eq!(value("-K % 4"), Some(Literal::Integer(-3)));
        assert_eq!(value("1.0 / K as f64"), Some(Literal::Number(1.0 / 7.0)));
        assert_eq!(value("0.1f32 * 3.0"), Some(Literal::Single(0.1f32 * 3.0)));
        assert_eq!(value("2.9 as usize"), Some(Literal::Integer(2)));
        for unseen in ["K / 0", "L + 1", "crate::K", "9223372036854775807 + K"] {
            assert_eq!(value(unseen), None, "{unseen}");
        }
    }

    #[test]
    fn unseen_numbers_are_written_out_for_rust() {
        let text = "2 * (crate::K - J) as f64";
        assert_eq!(read(text).to_string(), "2 * ((crate::K - J) as f64)");
        let tokens = read("-(J + 1) * 2").tokens(&|_| Some(quote!((a + b))));
        assert_eq!(tokens.to_string(), quote!((-((a + b) + 1)) * 2).to_string());
        assert!(Arithmetic::of(&syn::parse_str("f(K) + 1").unwrap()).is_none());
    }
}
