//! Element-wise functions of one operand: one line each.
//!
//! The formula is the function; its value at 0 decides the storage: zero-preserving functions keep `csr` and
//! `row_sparse`, the others take dense operands only. The derivative is a formula in `x` (the operand) or
//! `y` (the result), whichever it needs, and becomes an operator of its own. What the derivative is at 0 (`slope`, 0 where
//! it is not given) decides the storage of the gradient: storage must not change the mathematics, and a function like
//! `sin` has a gradient where its operand stores nothing. An infinite slope (`sqrt`, `cbrt`) is taken as 0 there.

use super::{BinaryFamily, Kind, Operator, Rule, gradient, no_gradient, rule};

const ZERO_PRESERVING: &[Rule] =
    &[rule("dense -> dense"), rule("csr -> csr"), rule("row_sparse -> row_sparse")];
const DENSE_ONLY: &[Rule] = &[rule("dense -> dense")];
const GRADIENT: &[Rule] = &[
    rule("dense dense -> dense"),
    rule("csr csr -> csr"),
    rule("row_sparse row_sparse -> row_sparse"),
    rule("dense csr -> csr"),
    rule("dense row_sparse -> dense"),
    rule("scalar dense -> dense"),
];
const SLOPED_GRADIENT: &[Rule] = &[
    rule("dense dense -> dense"),
    rule("csr csr -> csr"),
    rule("row_sparse row_sparse -> row_sparse"),
    rule("dense csr -> dense"),
    rule("dense row_sparse -> dense"),
    rule("scalar dense -> dense"),
];
const GRADIENT_DENSE_ONLY: &[Rule] = &[rule("dense dense -> dense"), rule("scalar dense -> dense")];

/// The storage rules of a gradient, by the function's value and slope at 0.
const fn gradient_rules(at_zero: f64, slope: f64) -> &'static [Rule] {
    if at_zero != 0.0 {
        GRADIENT_DENSE_ONLY
    } else if slope != 0.0 {
        SLOPED_GRADIENT
    } else {
        GRADIENT
    }
}

const fn gradient_family(slope: f64) -> BinaryFamily {
    if slope != 0.0 { BinaryFamily::SlopedGradient } else { BinaryFamily::Gradient }
}

/// The two rows of a function: the function and its gradient.
macro_rules! unary {
    ($($FUNCTION:ident $GRADIENT:ident $name:literal = $formula:literal, at_zero = $at_zero:literal
        $(, slope = $slope:literal)?, derivative($of:ident) = $derivative:literal, $summary:literal $(, instead = $instead:literal)?;)*) => {
        pub(super) const ALL: &[&Operator] = &[&NEGATIVE, $(&$FUNCTION, &$GRADIENT),*];

        /// What each row says of its value and its slope at 0, for the tests that hold the formulas to it.
        #[cfg(test)]
        pub(super) const AT_ZERO: &[(&str, &str, &str, &str, f64, f64)] = &[$((
            $name, $formula, $derivative, stringify!($of), $at_zero as f64, 0.0 $(+ $slope as f64)?,
        )),*];

        $(
            const $FUNCTION: Operator = Operator {
                name: $name,
                summary: $summary,
                operands: &["x"],
                attributes: &[],
                shape: "same -> same",
                storage: if $at_zero as f64 == 0.0 { ZERO_PRESERVING } else { DENSE_ONLY },
                gradient: &[gradient("x", unary!(@gradient $name $of))],
                kind: Kind::Unary($formula),
                alternative: unary!(@instead $($instead)?),
                internal: false,
            };
            const $GRADIENT: Operator = Operator {
                name: concat!($name, "_gradient"),
                summary: concat!("The gradient of `", $name, "`: the gradient arriving at it times ", $derivative, "."),
                operands: &["grad", unary!(@operand $of)],
                attributes: &[],
                shape: "same same -> same",
                storage: gradient_rules($at_zero as f64, 0.0 $(+ $slope as f64)?),
                gradient: &[
                    no_gradient("grad", "second derivatives are not offered"),
                    no_gradient(unary!(@operand $of), "second derivatives are not offered"),
                ],
                kind: Kind::Binary(
                    gradient_family(0.0 $(+ $slope as f64)?),
                    concat!("g * (", $derivative, ")"),
                ),
                alternative: None,
                internal: true,
            };
        )*
    };
    (@gradient $name:literal x) => { concat!($name, "_gradient(grad, x)") };
    (@gradient $name:literal y) => { concat!($name, "_gradient(grad, out)") };
    (@operand x) => { "x" };
    (@operand y) => { "y" };
    (@instead) => { None };
    (@instead $instead:literal) => { Some($instead) };
}

const NEGATIVE: Operator = Operator {
    name: "negative",
    summary: "The negative, `-x`.",
    operands: &["x"],
    attributes: &[],
    shape: "same -> same",
    storage: ZERO_PRESERVING,
    gradient: &[gradient("x", "-grad")],
    kind: Kind::Unary("-x"),
    alternative: None,
    internal: false,
};

unary! {
    ABS ABS_GRADIENT "abs" = "abs(x)", at_zero = 0, derivative(x) = "sign(x)", "The absolute value.";
    SIGN SIGN_GRADIENT "sign" = "sign(x)", at_zero = 0, derivative(x) = "0 * x",
        "-1, 0 or 1; the derivative is taken as 0.";
    RELU RELU_GRADIENT "relu" = "max(x, 0)", at_zero = 0, derivative(y) = "y > 0",
        "The positive part; the derivative at 0 is taken as 0.";
    SQUARE SQUARE_GRADIENT "square" = "x * x", at_zero = 0, derivative(x) = "2 * x", "The square.";
    SQRT SQRT_GRADIENT "sqrt" = "sqrt(x)", at_zero = 0, derivative(y) = "0.5 / y", "The square root.";
    CBRT CBRT_GRADIENT "cbrt" = "cbrt(x)", at_zero = 0, derivative(y) = "1 / (3 * y * y)", "The cube root.";
    LOG1P LOG1P_GRADIENT "log1p" = "log1p(x)", at_zero = 0, slope = 1, derivative(x) = "1 / (1 + x)", "log(1 + x), accurate near 0.";
    EXPM1 EXPM1_GRADIENT "expm1" = "expm1(x)", at_zero = 0, slope = 1, derivative(y) = "y + 1", "exp(x) - 1, accurate near 0.";
    SIN SIN_GRADIENT "sin" = "sin(x)", at_zero = 0, slope = 1, derivative(x) = "cos(x)", "The sine.";
    TAN TAN_GRADIENT "tan" = "tan(x)", at_zero = 0, slope = 1, derivative(y) = "1 + y * y", "The tangent.";
    ARCSIN ARCSIN_GRADIENT "arcsin" = "arcsin(x)", at_zero = 0, slope = 1, derivative(x) = "1 / sqrt(1 - x * x)", "The inverse sine.";
    ARCTAN ARCTAN_GRADIENT "arctan" = "arctan(x)", at_zero = 0, slope = 1, derivative(x) = "1 / (1 + x * x)", "The inverse tangent.";
    SINH SINH_GRADIENT "sinh" = "sinh(x)", at_zero = 0, slope = 1, derivative(x) = "cosh(x)", "The hyperbolic sine.";
    TANH TANH_GRADIENT "tanh" = "tanh(x)", at_zero = 0, slope = 1, derivative(y) = "1 - y * y", "The hyperbolic tangent.";
    ARCSINH ARCSINH_GRADIENT "arcsinh" = "arcsinh(x)", at_zero = 0, slope = 1, derivative(x) = "1 / sqrt(x * x + 1)", "The inverse hyperbolic sine.";
    ARCTANH ARCTANH_GRADIENT "arctanh" = "arctanh(x)", at_zero = 0, slope = 1, derivative(x) = "1 / (1 - x * x)", "The inverse hyperbolic tangent.";
    EXP EXP_GRADIENT "exp" = "exp(x)", at_zero = 1, derivative(y) = "y", "The exponential.",
        instead = "`exp(0)` is `1`; write `expm1({})` to stay sparse, or `exp(dense({}))` to accept the cost";
    LOG LOG_GRADIENT "log" = "log(x)", at_zero = -1, derivative(x) = "1 / x", "The natural logarithm.",
        instead = "`log(0)` is `-inf`; write `log1p({})` to stay sparse, or `log(dense({}))` to accept the cost";
    COS COS_GRADIENT "cos" = "cos(x)", at_zero = 1, derivative(x) = "-sin(x)", "The cosine.",
        instead = "`cos(0)` is `1`; write `cos(dense({}))` to accept the cost";
    COSH COSH_GRADIENT "cosh" = "cosh(x)", at_zero = 1, derivative(x) = "sinh(x)", "The hyperbolic cosine.",
        instead = "`cosh(0)` is `1`; write `cosh(dense({}))` to accept the cost";
    SIGMOID SIGMOID_GRADIENT "sigmoid" = "sigmoid(x)", at_zero = 1, derivative(y) = "y * (1 - y)",
        "The logistic function 1 / (1 + exp(-x)), without overflow.",
        instead = "`sigmoid(0)` is `1/2`; write `tanh({})` to stay sparse, or `sigmoid(dense({}))` to accept the cost";
    SOFTPLUS SOFTPLUS_GRADIENT "softplus" = "softplus(x)", at_zero = 1, derivative(x) = "sigmoid(x)",
        "log(1 + exp(x)), without overflow.",
        instead = "`softplus(0)` is `log 2`; write `softplus(dense({}))` to accept the cost";
    RECIPROCAL RECIPROCAL_GRADIENT "reciprocal" = "1 / x", at_zero = 1, derivative(y) = "-(y * y)",
        "1 / x.", instead = "`1/0` is infinite; write `reciprocal(dense({}))` to accept the cost";
}
