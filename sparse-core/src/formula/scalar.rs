//! Scalar formulas: the functions they may call, and their value.
//!
//! The value of a formula in `f64` is the oracle of the kernels' tests and of the compiler's
//! constant folding. The macros crate turns the same formulas into Rust; [`FUNCTIONS`] is the list
//! that both know.

use super::{BinaryOperator, Formula, special};

/// A function that a scalar formula may call.
#[derive(Debug)]
pub struct Function {
    /// Its name in formulas.
    pub name: &'static str,
    /// The number of arguments.
    pub arity: usize,
    /// The Rust method of a float (or of this library's `ScalarFunctions`) that computes it.
    pub method: &'static str,
    /// Its value.
    pub value: fn(&[f64]) -> f64,
}

/// Every function that a scalar formula may call.
pub const FUNCTIONS: &[Function] = &[
    Function { name: "abs", arity: 1, method: "abs", value: |x| x[0].abs() },
    Function { name: "sign", arity: 1, method: "sign", value: |x| sign(x[0]) },
    Function { name: "max", arity: 2, method: "at_least", value: |x| at_least(x[0], x[1]) },
    Function { name: "min", arity: 2, method: "at_most", value: |x| at_most(x[0], x[1]) },
    Function {
        name: "select",
        arity: 3,
        method: "select",
        value: |x| if x[0] != 0.0 { x[1] } else { x[2] },
    },
    Function { name: "pow", arity: 2, method: "powf", value: |x| x[0].powf(x[1]) },
    Function { name: "hypot", arity: 2, method: "hypot", value: |x| x[0].hypot(x[1]) },
    Function { name: "modulo", arity: 2, method: "modulo", value: |x| modulo(x[0], x[1]) },
    Function { name: "round", arity: 1, method: "round", value: |x| x[0].round() },
    Function { name: "rint", arity: 1, method: "rint", value: |x| x[0].round_ties_even() },
    Function { name: "ceil", arity: 1, method: "ceil", value: |x| x[0].ceil() },
    Function { name: "floor", arity: 1, method: "floor", value: |x| x[0].floor() },
    Function { name: "trunc", arity: 1, method: "trunc", value: |x| x[0].trunc() },
    Function { name: "log2", arity: 1, method: "log2", value: |x| x[0].log2() },
    Function { name: "log10", arity: 1, method: "log10", value: |x| x[0].log10() },
    Function { name: "arccos", arity: 1, method: "acos", value: |x| x[0].acos() },
    Function { name: "arccosh", arity: 1, method: "acosh", value: |x| x[0].acosh() },
    Function { name: "erf", arity: 1, method: "error_function", value: |x| special::erf(x[0]) },
    Function {
        name: "erfinv",
        arity: 1,
        method: "inverse_error_function",
        value: |x| special::erfinv(x[0]),
    },
    Function { name: "gamma", arity: 1, method: "gamma_function", value: |x| special::gamma(x[0]) },
    Function { name: "gammaln", arity: 1, method: "log_gamma", value: |x| special::gammaln(x[0]) },
    Function { name: "digamma", arity: 1, method: "digamma", value: |x| special::digamma(x[0]) },
    Function { name: "sqrt", arity: 1, method: "sqrt", value: |x| x[0].sqrt() },
    Function { name: "cbrt", arity: 1, method: "cbrt", value: |x| x[0].cbrt() },
    Function { name: "exp", arity: 1, method: "exp", value: |x| x[0].exp() },
    Function { name: "expm1", arity: 1, method: "exp_m1", value: |x| x[0].exp_m1() },
    Function { name: "log", arity: 1, method: "ln", value: |x| x[0].ln() },
    Function { name: "log1p", arity: 1, method: "ln_1p", value: |x| x[0].ln_1p() },
    Function { name: "sin", arity: 1, method: "sin", value: |x| x[0].sin() },
    Function { name: "cos", arity: 1, method: "cos", value: |x| x[0].cos() },
    Function { name: "tan", arity: 1, method: "tan", value: |x| x[0].tan() },
    Function { name: "arcsin", arity: 1, method: "asin", value: |x| x[0].asin() },
    Function { name: "arctan", arity: 1, method: "atan", value: |x| x[0].atan() },
    Function { name: "sinh", arity: 1, method: "sinh", value: |x| x[0].sinh() },
    Function { name: "cosh", arity: 1, method: "cosh", value: |x| x[0].cosh() },
    Function { name: "tanh", arity: 1, method: "tanh", value: |x| x[0].tanh() },
    Function { name: "arcsinh", arity: 1, method: "asinh", value: |x| x[0].asinh() },
    Function { name: "arctanh", arity: 1, method: "atanh", value: |x| x[0].atanh() },
    Function { name: "sigmoid", arity: 1, method: "sigmoid", value: |x| sigmoid(x[0]) },
    Function { name: "softplus", arity: 1, method: "softplus", value: |x| softplus(x[0]) },
];

/// The function of a name.
pub fn function(name: &str) -> Option<&'static Function> {
    FUNCTIONS.iter().find(|function| function.name == name)
}

/// The value of a formula.
///
/// # Errors
///
/// The name of a variable or function that is not known.
pub fn value(formula: &Formula, variable: &dyn Fn(&str) -> Option<f64>) -> Result<f64, String> {
    Ok(match formula {
        Formula::Number(number) => *number,
        Formula::Name(name) => variable(name).ok_or_else(|| name.clone())?,
        Formula::Negate(inner) => -value(inner, variable)?,
        Formula::Binary(operator, lhs, rhs) => {
            let (x, y) = (value(lhs, variable)?, value(rhs, variable)?);
            match operator {
                BinaryOperator::Add => x + y,
                BinaryOperator::Subtract => x - y,
                BinaryOperator::Multiply => x * y,
                BinaryOperator::Divide => x / y,
                compare => {
                    let holds = compare.comparison().is_some_and(|holds| holds(x, y));
                    f64::from(u8::from(holds))
                }
            }
        }
        Formula::Call(name, operands, _) => {
            let known = function(name).filter(|known| known.arity == operands.len());
            let arguments = operands
                .iter()
                .map(|operand| value(operand, variable))
                .collect::<Result<Vec<_>, _>>()?;
            (known.ok_or_else(|| name.clone())?.value)(&arguments)
        }
    })
}

fn sign(x: f64) -> f64 {
    if x > 0.0 {
        1.0
    } else if x < 0.0 {
        -1.0
    } else {
        0.0
    }
}

/// The larger one; NaN stays NaN.
fn at_least(x: f64, bound: f64) -> f64 {
    if x < bound { bound } else { x }
}

/// The smaller one; NaN stays NaN.
fn at_most(x: f64, bound: f64) -> f64 {
    if x > bound { bound } else { x }
}

/// The remainder with the sign of the divisor; 0 where that is 0.
fn modulo(x: f64, y: f64) -> f64 {
    if y == 0.0 { 0.0 } else { x - (x / y).floor() * y }
}

fn sigmoid(x: f64) -> f64 {
    // exp of a negative number only, so that nothing overflows.
    let e = (-x.abs()).exp();
    if x >= 0.0 { 1.0 / (1.0 + e) } else { e / (1.0 + e) }
}

fn softplus(x: f64) -> f64 {
    at_least(x, 0.0) + (-x.abs()).exp().ln_1p()
}
