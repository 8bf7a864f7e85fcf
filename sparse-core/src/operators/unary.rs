//! Element-wise functions of one operand: one line each.
//!
//! The formula is the function; its value at 0 decides the storage: zero-preserving functions keep
//! `csr` and `row_sparse`, the others take dense operands only. The derivative is a formula in `x`
//! (the operand) or `y` (the result), whichever it needs, and becomes an operator of its own. What
//! the derivative is at 0 (`slope`, 0 where it is not given) decides the storage of the gradient:
//! storage must not change the mathematics, and a function like `sin` has a gradient where its
//! operand stores nothing. An infinite slope (`sqrt`, `cbrt`) is taken as 0 there.

//!
//! A function with parameters takes them as attributes; whether it is 0 at 0 may depend on them,
//! and so may the storage of its result: `clip(x, lower = -1, upper = 1)` of a csr is csr,
//! `clip(x, lower = 1, upper = 2)` is refused.

// A slope is the number that its formula spells out.
#![allow(clippy::approx_constant)]

use super::write::{DEFAULTS, gradient, no_gradient, number, number_or, rule, surrogate};
use super::{BinaryFamily, Condition, Kind, Link, Operator, Rule, Scaling};

pub(super) const ZERO_PRESERVING: &[Rule] = &[
    rule("dense -> dense").on_gpu(),
    rule("csr -> csr").on_gpu(),
    rule("row_sparse -> row_sparse").on_gpu(),
];
pub(super) const DENSE_ONLY: &[Rule] = &[rule("dense -> dense").on_gpu()];
const WHERE_ZERO_STAYS: &[Rule] = &[
    rule("dense -> dense").on_gpu(),
    rule("csr -> csr").on_gpu().only(&Condition::ZERO_STAYS),
    rule("row_sparse -> row_sparse").on_gpu().only(&Condition::ZERO_STAYS),
];
const GRADIENT: &[Rule] = &[
    rule("dense dense -> dense").on_gpu(),
    rule("csr csr -> csr").on_gpu(),
    rule("row_sparse row_sparse -> row_sparse").on_gpu(),
    rule("dense csr -> csr").on_gpu(),
    rule("dense row_sparse -> dense").on_gpu(),
    rule("scalar dense -> dense").on_gpu(),
];
const SLOPED_GRADIENT: &[Rule] = &[
    rule("dense dense -> dense").on_gpu(),
    rule("csr csr -> csr").on_gpu(),
    rule("row_sparse row_sparse -> row_sparse").on_gpu(),
    rule("dense csr -> dense").on_gpu(),
    rule("dense row_sparse -> dense").on_gpu(),
    rule("scalar dense -> dense").on_gpu(),
];
const GRADIENT_DENSE_ONLY: &[Rule] =
    &[rule("dense dense -> dense").on_gpu(), rule("scalar dense -> dense").on_gpu()];

/// The storage rules of a gradient, by the function's value and slope at 0.
pub(super) const fn gradient_rules(at_zero: f64, slope: f64) -> &'static [Rule] {
    if at_zero != 0.0 {
        GRADIENT_DENSE_ONLY
    } else if slope != 0.0 {
        SLOPED_GRADIENT
    } else {
        GRADIENT
    }
}

pub(super) const fn gradient_family(slope: f64) -> BinaryFamily {
    if slope != 0.0 { BinaryFamily::SlopedGradient } else { BinaryFamily::Gradient }
}

/// The rows of functions: with a derivative, two, the function and its gradient; the others, one.
/// `NEGATIVE` and functions with parameters are written below.
macro_rules! unary {
    (smooth { $($FUNCTION:ident $GRADIENT:ident $name:literal = $formula:literal, at_zero = $at_zero:literal
        $(, slope = $slope:literal)?, derivative($of:ident) = $derivative:literal, $summary:literal $(, instead = $instead:literal)? $(, link = $link:ident)?;)* }
     other { $($OTHER:ident $other:literal = $value:literal, at_zero = $other_at_zero:literal, $how:ident = $other_gradient:literal,
        $other_summary:literal $(, instead = $other_instead:literal)?;)* }
     parameters { $($PARAMETRIC:ident $PARAMETRIC_GRADIENT:ident $parametric:literal [$($attribute:expr),*] = $of_parameters:literal,
        derivative($given:literal) = $by_parameters:literal, $parametric_summary:literal;)* }) => {
        pub(super) const ALL: &[&Operator] = &[
            &NEGATIVE, &PATTERN, &SCALE_GRADIENT, $(&$FUNCTION, &$GRADIENT,)* $(&$OTHER,)* $(&$PARAMETRIC, &$PARAMETRIC_GRADIENT,)*
        ];

        /// What each row says of its value and its slope at 0, for the tests that hold the formulas
        /// to it.
        #[cfg(test)]
        pub(super) const AT_ZERO: &[(&str, &str, &str, &str, f64, f64)] = &[$((
            $name, $formula, $derivative, stringify!($of), $at_zero as f64, 0.0 $(+ $slope as f64)?,
        )),*];

        /// The same of the functions without a derivative: name, formula, value.
        #[cfg(test)]
        pub(super) const FLAT_AT_ZERO: &[(&str, &str, f64)] = &[$(($other, $value, $other_at_zero as f64)),*];

        $(
            const $FUNCTION: Operator = Operator {
                name: $name,
                summary: $summary,
                storage: if $at_zero as f64 == 0.0 { ZERO_PRESERVING } else { DENSE_ONLY },
                gradient: &[gradient("x", unary!(@gradient $name $of))],
                kind: Kind::Unary($formula),
                alternative: unary!(@instead $($instead)?),
                link: unary!(@link $($link)?),
                ..DEFAULTS
            };
            const $GRADIENT: Operator = Operator {
                name: concat!($name, "_gradient"),
                summary: concat!("The gradient of `", $name, "`: the gradient arriving at it times ", $derivative, "."),
                operands: &["grad", unary!(@operand $of)],
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
                internal: true,
                ..DEFAULTS
            };
        )*
        $(
            const $OTHER: Operator = Operator {
                name: $other,
                summary: $other_summary,
                storage: if $other_at_zero as f64 == 0.0 { ZERO_PRESERVING } else { DENSE_ONLY },
                gradient: &[$how("x", $other_gradient)],
                kind: Kind::Unary($value),
                alternative: unary!(@instead $($other_instead)?),
                ..DEFAULTS
            };
        )*
        $(
            const $PARAMETRIC: Operator = Operator {
                name: $parametric,
                summary: $parametric_summary,
                attributes: &[$($attribute),*],
                storage: WHERE_ZERO_STAYS,
                gradient: &[gradient("x", concat!($parametric, "_gradient(grad, x, ", $given, ")"))],
                kind: Kind::Unary($of_parameters),
                ..DEFAULTS
            };
            const $PARAMETRIC_GRADIENT: Operator = Operator {
                name: concat!($parametric, "_gradient"),
                summary: concat!("The gradient of `", $parametric, "`: the gradient arriving at it times ", $by_parameters, "."),
                operands: &["grad", "x"],
                attributes: &[$($attribute),*],
                shape: "same same -> same",
                storage: SLOPED_GRADIENT,
                gradient: &[
                    no_gradient("grad", "second derivatives are not offered"),
                    no_gradient("x", "second derivatives are not offered"),
                ],
                kind: Kind::Binary(BinaryFamily::SlopedGradient, concat!("g * (", $by_parameters, ")")),
                internal: true,
                ..DEFAULTS
            };
        )*
    };
    (@gradient $name:literal x) => { concat!($name, "_gradient(grad, x)") };
    (@gradient $name:literal y) => { concat!($name, "_gradient(grad, out)") };
    (@operand x) => { "x" };
    (@operand y) => { "y" };
    (@link) => { None };
    (@link $link:ident) => { Some(Link::$link) };
    (@instead) => { None };
    (@instead $instead:literal) => { Some($instead) };
}

const NEGATIVE: Operator = Operator {
    name: "negative",
    summary: "The negative, `-x`.",
    storage: ZERO_PRESERVING,
    gradient: &[gradient("x", "-grad")],
    kind: Kind::Unary("-x"),
    scaling: Scaling::Always,
    std_trait: Some(("Neg", "neg")),
    ..DEFAULTS
};

const PATTERN: Operator = Operator {
    name: "pattern",
    summary: "1 where the operand stores an element, be it a zero: what of a csr or row_sparse array is stored, without its values.",
    storage: ZERO_PRESERVING,
    gradient: &[gradient("x", "0")],
    kind: Kind::Unary("1"),
    ..DEFAULTS
};

const SCALE_GRADIENT: Operator = Operator {
    name: "scale_gradient",
    summary: "The operand as it is, its gradient multiplied by `factor`.",
    attributes: &[number("factor")],
    storage: ZERO_PRESERVING,
    gradient: &[surrogate("x", "grad * factor")],
    kind: Kind::Unary("x"),
    ..DEFAULTS
};

unary! {
smooth {
    ABS ABS_GRADIENT "abs" = "abs(x)", at_zero = 0, derivative(x) = "sign(x)", "The absolute value.";
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
        instead = "`exp(0)` is `1`; write `expm1({})` to stay sparse, or `exp(dense({}))` to accept the cost", link = Exp;
    LOG LOG_GRADIENT "log" = "log(x)", at_zero = -1, derivative(x) = "1 / x", "The natural logarithm.",
        instead = "`log(0)` is `-inf`; write `log1p({})` to stay sparse, or `log(dense({}))` to accept the cost";
    COS COS_GRADIENT "cos" = "cos(x)", at_zero = 1, derivative(x) = "-sin(x)", "The cosine.",
        instead = "`cos(0)` is `1`; write `cos(dense({}))` to accept the cost";
    COSH COSH_GRADIENT "cosh" = "cosh(x)", at_zero = 1, derivative(x) = "sinh(x)", "The hyperbolic cosine.",
        instead = "`cosh(0)` is `1`; write `cosh(dense({}))` to accept the cost";
    SIGMOID SIGMOID_GRADIENT "sigmoid" = "sigmoid(x)", at_zero = 1, derivative(y) = "y * (1 - y)",
        "The logistic function 1 / (1 + exp(-x)), without overflow.",
        instead = "`sigmoid(0)` is `1/2`; write `tanh({})` to stay sparse, or `sigmoid(dense({}))` to accept the cost", link = Sigmoid;
    SOFTPLUS SOFTPLUS_GRADIENT "softplus" = "softplus(x)", at_zero = 1, derivative(x) = "sigmoid(x)",
        "log(1 + exp(x)), without overflow.",
        instead = "`softplus(0)` is `log 2`; write `softplus(dense({}))` to accept the cost";
    RECIPROCAL RECIPROCAL_GRADIENT "reciprocal" = "1 / x", at_zero = 1, derivative(y) = "-(y * y)",
        "1 / x.", instead = "`1/0` is infinite; write `reciprocal(dense({}))` to accept the cost";
    ERF ERF_GRADIENT "erf" = "erf(x)", at_zero = 0, slope = 1.1283791670955126,
        derivative(x) = "1.1283791670955126 * exp(-(x * x))", "The error function.";
    ERFINV ERFINV_GRADIENT "erfinv" = "erfinv(x)", at_zero = 0, slope = 0.886226925452758,
        derivative(y) = "0.886226925452758 * exp(y * y)", "The inverse of the error function.";
    SOFTSIGN SOFTSIGN_GRADIENT "softsign" = "x / (1 + abs(x))", at_zero = 0, slope = 1,
        derivative(x) = "1 / ((1 + abs(x)) * (1 + abs(x)))", "x / (1 + |x|).";
    DEGREES DEGREES_GRADIENT "degrees" = "x * 57.29577951308232", at_zero = 0, slope = 57.29577951308232,
        derivative(x) = "57.29577951308232", "Radians as degrees.";
    RADIANS RADIANS_GRADIENT "radians" = "x * 0.017453292519943295", at_zero = 0, slope = 0.017453292519943295,
        derivative(x) = "0.017453292519943295", "Degrees as radians.";
    LOG2 LOG2_GRADIENT "log2" = "log2(x)", at_zero = -1, derivative(x) = "1 / (x * 0.6931471805599453)", "The logarithm to base 2.",
        instead = "`log2(0)` is `-inf`; write `log1p({}) / 0.6931` to stay sparse, or `log2(dense({}))` to accept the cost";
    LOG10 LOG10_GRADIENT "log10" = "log10(x)", at_zero = -1, derivative(x) = "1 / (x * 2.302585092994046)", "The logarithm to base 10.",
        instead = "`log10(0)` is `-inf`; write `log1p({}) / 2.3026` to stay sparse, or `log10(dense({}))` to accept the cost";
    ARCCOS ARCCOS_GRADIENT "arccos" = "arccos(x)", at_zero = 1, derivative(x) = "-(1 / sqrt(1 - x * x))", "The inverse cosine.",
        instead = "`arccos(0)` is `π/2`; write `arcsin({})` to stay sparse, or `arccos(dense({}))` to accept the cost";
    ARCCOSH ARCCOSH_GRADIENT "arccosh" = "arccosh(x)", at_zero = 1, derivative(x) = "1 / sqrt(x * x - 1)",
        "The inverse hyperbolic cosine; not a number below 1.",
        instead = "`arccosh(0)` is not a number; write `arccosh(dense({}))` to accept the cost";
    RSQRT RSQRT_GRADIENT "rsqrt" = "1 / sqrt(x)", at_zero = 1, derivative(y) = "-0.5 * y * y * y", "1 / √x.",
        instead = "`1/√0` is infinite; write `rsqrt(dense({}))` to accept the cost";
    RCBRT RCBRT_GRADIENT "rcbrt" = "1 / cbrt(x)", at_zero = 1, derivative(y) = "-(y * y * y * y) / 3", "1 / ∛x.",
        instead = "`1/∛0` is infinite; write `rcbrt(dense({}))` to accept the cost";
    GAMMA GAMMA_GRADIENT "gamma" = "gamma(x)", at_zero = 1, derivative(x) = "gamma(x) * digamma(x)", "The gamma function.",
        instead = "`gamma(0)` is infinite; write `gamma(dense({}))` to accept the cost";
    GAMMALN GAMMALN_GRADIENT "gammaln" = "gammaln(x)", at_zero = 1, derivative(x) = "digamma(x)",
        "The logarithm of the absolute value of the gamma function.",
        instead = "`gammaln(0)` is infinite; write `gammaln(dense({}))` to accept the cost";
}
other {
    SIGN "sign" = "sign(x)", at_zero = 0, gradient = "0", "-1, 0 or 1; 0 for NaN. The derivative is taken as 0.";
    ROUND "round" = "round(x)", at_zero = 0, gradient = "0", "The nearest integer, halves away from 0.";
    RINT "rint" = "rint(x)", at_zero = 0, gradient = "0", "The nearest integer, halves to the even one.";
    CEIL "ceil" = "ceil(x)", at_zero = 0, gradient = "0", "The next integer upwards.";
    FLOOR "floor" = "floor(x)", at_zero = 0, gradient = "0", "The next integer downwards.";
    TRUNC "trunc" = "trunc(x)", at_zero = 0, gradient = "0", "The next integer towards 0.";
    ROUND_STE "round_ste" = "round(x)", at_zero = 0, surrogate = "grad",
        "As `round`, but the gradient passes as if nothing were rounded (a straight-through estimator).";
    SIGN_STE "sign_ste" = "sign(x)", at_zero = 0, surrogate = "grad",
        "As `sign`, but the gradient passes as if it were the operand (a straight-through estimator).";
    STOP_GRADIENT "stop_gradient" = "x", at_zero = 0, surrogate = "0", "The operand as it is, without a gradient.";
    MAKE_LOSS "make_loss" = "x", at_zero = 0, surrogate = "broadcast_like(1, x)",
        "The operand as it is, as the head of a model: whatever gradient arrives, the gradient that it passes is 1.";
    LOGICAL_NOT "logical_not" = "x == 0", at_zero = 1, gradient = "0", "1 where x is 0, else 0.",
        instead = "what is not stored is 0, so that the result is 1 there; write `{} != 0` to stay sparse, or `logical_not(dense({}))` to accept the cost";
    ONES_LIKE "ones_like" = "1", at_zero = 1, gradient = "0", "Ones in the shape of the operand.",
        instead = "every element is 1; write `ones_like(dense({}))` to accept the cost";
}
parameters {
    CLIP CLIP_GRADIENT "clip" [number("lower"), number("upper")] = "min(max(x, lower), upper)",
        derivative("lower = lower, upper = upper") = "(x >= lower) * (x <= upper)",
        "The operand, at least `lower` and at most `upper`. The derivative at the bounds is 1.";
    SMOOTH_L1 SMOOTH_L1_GRADIENT "smooth_l1" [number_or("scale", 1.0)] =
        "select(abs(x) * scale * scale < 1, 0.5 * (scale * x) * (scale * x), abs(x) - 0.5 / (scale * scale))",
        derivative("scale = scale") = "select(abs(x) * scale * scale < 1, scale * scale * x, sign(x))",
        "½ (scale · x)² where |x| < 1 / scale², else |x| - ½ / scale².";
    QUADRATIC QUADRATIC_GRADIENT "quadratic" [number_or("a", 0.0), number_or("b", 0.0), number_or("c", 0.0)] =
        "(a * x + b) * x + c",
        derivative("a = a, b = b") = "2 * a * x + b", "a · x² + b · x + c.";
    HARD_SIGMOID HARD_SIGMOID_GRADIENT "hard_sigmoid" [number_or("alpha", 0.2), number_or("beta", 0.5)] =
        "min(max(alpha * x + beta, 0), 1)",
        derivative("alpha = alpha, beta = beta") = "select((alpha * x + beta > 0) * (alpha * x + beta < 1), alpha, 0)",
        "alpha · x + beta, at least 0 and at most 1.";
}
}
