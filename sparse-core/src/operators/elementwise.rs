//! Element-wise functions of two operands, with broadcasting of dense operands: one line each.
//!
//! The formula is the function; its family says where it is 0 without being computed, and decides
//! the storage rules. With a number as an operand a sparse array keeps its storage where the
//! function of that number is 0 at 0: `maximum(x, -1)` and `power(x, 2)` of a csr are csr,
//! `maximum(x, 1)` and `power(x, 0)` are refused.

use super::write::{DEFAULTS, gradient, no_gradient, rule};
use super::{BinaryFamily, Condition, Kind, Operator, Rule, Scaling, Weights};

const ZERO_STAYS: &Condition = &Condition::ZERO_STAYS;

/// f(0, 0) = 0, for sums and differences: a sparse array plus a number is dense, but for plus 0,
/// which is left out.
const SUM: &[Rule] = &[
    rule("dense dense -> dense").on_gpu(),
    rule("csr csr -> csr").on_gpu().same_shape(),
    rule("row_sparse row_sparse -> row_sparse").on_gpu().same_shape(),
    rule("csr dense -> dense").on_gpu(),
    rule("dense csr -> dense").on_gpu(),
    rule("row_sparse dense -> dense").on_gpu(),
    rule("dense row_sparse -> dense").on_gpu(),
    rule("dense scalar -> dense").on_gpu(),
    rule("scalar dense -> dense").on_gpu(),
];

/// f(0, 0) = 0, and not 0 elsewhere: two operands of one sparse storage keep it. A number is the
/// right operand: each of these functions has a mirror.
const UNION: &[Rule] = &[
    rule("dense dense -> dense").on_gpu(),
    rule("csr csr -> csr").on_gpu().same_shape(),
    rule("row_sparse row_sparse -> row_sparse").on_gpu().same_shape(),
    rule("csr dense -> dense").on_gpu(),
    rule("dense csr -> dense").on_gpu(),
    rule("row_sparse dense -> dense").on_gpu(),
    rule("dense row_sparse -> dense").on_gpu(),
    rule("dense scalar -> dense").on_gpu(),
    rule("csr scalar -> csr").on_gpu().only(ZERO_STAYS),
    rule("row_sparse scalar -> row_sparse").on_gpu().only(ZERO_STAYS),
];

/// f(0, y) = f(x, 0) = 0: a sparse operand keeps its pattern.
const INTERSECTION: &[Rule] = &[
    rule("dense dense -> dense").on_gpu(),
    rule("csr csr -> csr").on_gpu().same_shape(),
    rule("row_sparse row_sparse -> row_sparse").on_gpu().same_shape(),
    rule("csr dense -> csr").on_gpu(),
    rule("dense csr -> csr").on_gpu(),
    rule("row_sparse dense -> row_sparse").on_gpu(),
    rule("dense row_sparse -> row_sparse").on_gpu(),
    rule("dense scalar -> dense").on_gpu(),
    rule("scalar dense -> dense").on_gpu(),
    rule("csr scalar -> csr").on_gpu(),
    rule("scalar csr -> csr").on_gpu(),
    rule("row_sparse scalar -> row_sparse").on_gpu(),
    rule("scalar row_sparse -> row_sparse").on_gpu(),
];

/// As `LEFT`, but that where the right operand stores nothing it is 0 like any other, whatever
/// comes of it.
const STORED_LEFT: &[Rule] = &[
    rule("dense dense -> dense").on_gpu(),
    rule("csr csr -> csr").on_gpu().same_shape(),
    rule("row_sparse row_sparse -> row_sparse").on_gpu().same_shape(),
    rule("row_sparse csr -> row_sparse").on_gpu().same_shape(),
    rule("csr dense -> csr").on_gpu(),
    rule("row_sparse dense -> row_sparse").on_gpu(),
];

/// f(0, y) = 0: a sparse left operand keeps its pattern.
const LEFT: &[Rule] = &[
    rule("dense dense -> dense").on_gpu(),
    rule("csr dense -> csr").on_gpu(),
    rule("row_sparse dense -> row_sparse").on_gpu(),
    rule("dense scalar -> dense").on_gpu(),
    rule("scalar dense -> dense").on_gpu(),
    rule("csr scalar -> csr").on_gpu(),
    rule("row_sparse scalar -> row_sparse").on_gpu(),
];

/// f(0, 0) is not 0. A number is the right operand.
const DENSE: &[Rule] = &[
    rule("dense dense -> dense").on_gpu(),
    rule("dense scalar -> dense").on_gpu(),
    rule("csr scalar -> csr").on_gpu().only(ZERO_STAYS),
    rule("row_sparse scalar -> row_sparse").on_gpu().only(ZERO_STAYS),
];

/// As `DENSE`, for functions without a mirror.
const DENSE_EITHER: &[Rule] = &[
    rule("dense dense -> dense").on_gpu(),
    rule("dense scalar -> dense").on_gpu(),
    rule("scalar dense -> dense").on_gpu(),
    rule("csr scalar -> csr").on_gpu().only(ZERO_STAYS),
    rule("row_sparse scalar -> row_sparse").on_gpu().only(ZERO_STAYS),
];

const fn rules(family: BinaryFamily, mirrored: bool) -> &'static [Rule] {
    match family {
        BinaryFamily::Union if mirrored => UNION,
        BinaryFamily::Union => SUM,
        BinaryFamily::Intersection => INTERSECTION,
        BinaryFamily::Left => LEFT,
        _ if mirrored => DENSE,
        _ => DENSE_EITHER,
    }
}

/// Rows: constant, name, family, function, gradients, other columns, and one sentence.
macro_rules! binary {
    ($($NAME:ident $name:literal $family:ident = $formula:literal, lhs = $lhs:literal, rhs = $rhs:literal,
        $(chain = $chain:literal, also = $aliases:expr,)? $(mirror = $mirror:literal,)? $(weights = $weights:ident,)?
        $(where_stored = $stored:literal,)? $({ $($column:ident: $value:expr),* },)? $summary:literal;)*) => {
        pub(super) const ALL: &[&Operator] = &[$(&$NAME,)* &SCATTER_DIVIDE, &STORED_POWER];

        $(
            const $NAME: Operator = Operator {
                name: $name,
                summary: $summary,
                operands: &["lhs", "rhs"],
                shape: "broadcast",
                storage: rules(BinaryFamily::$family, false $(|| !$mirror.is_empty())?),
                gradient: &[gradient("lhs", $lhs), gradient("rhs", $rhs)],
                kind: Kind::Binary(BinaryFamily::$family, $formula),
                $(chain: Some($chain), aliases: $aliases,)?
                $(mirror: Some($mirror),)?
                $(weights: Weights::$weights,)?
                $(where_stored: Some($stored),)?
                $($($column: $value,)*)?
                ..DEFAULTS
            };
        )*
    };
}

binary! {
    ADD "add" Union = "x + y", lhs = "reduce_to(grad, lhs)", rhs = "reduce_to(grad, rhs)",
        chain = "add", also = &["add_n"],
        { is_sum: true, neutral: [Some(0.0), Some(0.0)], std_trait: Some(("Add", "add")) },
        "The sum, element by element; a dense operand broadcasts. `a + b`, or `add(a, b, c)`.";
    SUBTRACT "subtract" Union = "x - y", lhs = "reduce_to(grad, lhs)", rhs = "reduce_to(-grad, rhs)",
        { neutral: [None, Some(0.0)], std_trait: Some(("Sub", "sub")) },
        "The difference, element by element; a dense operand broadcasts. `a - b`.";
    MULTIPLY "multiply" Intersection = "x * y",
        lhs = "reduce_to(grad * rhs, lhs)", rhs = "reduce_to(grad * lhs, rhs)", chain = "multiply", also = &[],
        weights = BesideCsr,
        {
            is_product: true,
            neutral: [Some(1.0), Some(1.0)],
            scaling: Scaling::ByEither,
            std_trait: Some(("Mul", "mul"))
        },
        "The product, element by element; a dense operand broadcasts. `a * b`. A sparse operand keeps its pattern: only stored \
         elements are multiplied.";
    DIVIDE "divide" Left = "x / y",
        lhs = "reduce_to(grad / rhs, lhs)", rhs = "reduce_to(-(grad * out / rhs), rhs)",
        where_stored = "scatter_divide",
        { scaling: Scaling::ByRight, std_trait: Some(("Div", "div")) },
        "The quotient, element by element; a dense operand broadcasts. `a / b`. A sparse dividend keeps its pattern: only stored \
         elements are divided.";
    MAXIMUM "maximum" Union = "max(x, y)",
        lhs = "reduce_to(grad - grad * (rhs > lhs), lhs)", rhs = "reduce_to(grad * (rhs > lhs), rhs)",
        chain = "maximum", also = &[],
        mirror = "maximum", "The larger one; the gradient of equal ones goes to the left.";
    MINIMUM "minimum" Union = "min(x, y)",
        lhs = "reduce_to(grad - grad * (lhs > rhs), lhs)", rhs = "reduce_to(grad * (lhs > rhs), rhs)",
        chain = "minimum", also = &[],
        mirror = "minimum", "The smaller one; the gradient of equal ones goes to the left.";
    POWER "power" Dense = "pow(x, y)",
        lhs = "reduce_to(grad * (rhs * power(lhs, rhs - (rhs != 0))), lhs)", rhs = "reduce_to(grad * (out * log(lhs + (lhs == 0))), rhs)",
        where_stored = "stored_power",
        "x to the power of y. 0 to the power of 0 is 1, with a gradient of 0. Of a sparse x, a derivative that is infinite at 0 is \
         taken as 0 there.";
    HYPOT "hypot" Union = "hypot(x, y)",
        lhs = "reduce_to(scatter_divide(grad * lhs, out + (pattern(out) - (out != 0))), lhs)",
        rhs = "reduce_to(scatter_divide(grad * rhs, out + (pattern(out) - (out != 0))), rhs)",
        mirror = "hypot", "√(x² + y²), without overflow; its gradient at (0, 0) is taken as 0.";
    MODULO "modulo" Left = "modulo(x, y)",
        lhs = "reduce_to(grad * (rhs != 0), lhs)", rhs = "reduce_to(-(grad * floor(lhs / rhs)), rhs)",
        "x - ⌊x / y⌋ · y, which has the sign of y; 0 where y is 0.";
    EQUAL "equal" Dense = "x == y", lhs = "0", rhs = "0",
        mirror = "equal", "1 where x = y, else 0.";
    NOT_EQUAL "not_equal" Union = "x != y", lhs = "0", rhs = "0",
        mirror = "not_equal", "1 where x ≠ y, else 0.";
    GREATER "greater" Union = "x > y", lhs = "0", rhs = "0",
        mirror = "less", "1 where x > y, else 0.";
    GREATER_EQUAL "greater_equal" Dense = "x >= y", lhs = "0", rhs = "0",
        mirror = "less_equal", "1 where x ≥ y, else 0.";
    LESS "less" Union = "x < y", lhs = "0", rhs = "0",
        mirror = "greater", "1 where x < y, else 0.";
    LESS_EQUAL "less_equal" Dense = "x <= y", lhs = "0", rhs = "0",
        mirror = "greater_equal", "1 where x ≤ y, else 0.";
    LOGICAL_AND "logical_and" Intersection = "(x != 0) * (y != 0)", lhs = "0", rhs = "0", "1 where neither is 0, else 0.";
    LOGICAL_OR "logical_or" Union = "(x != 0) + (y != 0) > 0", lhs = "0", rhs = "0",
        mirror = "logical_or", "1 where one is not 0, else 0.";
    LOGICAL_XOR "logical_xor" Union = "(x != 0) != (y != 0)", lhs = "0", rhs = "0",
        mirror = "logical_xor", "1 where exactly one is not 0, else 0.";
}

const SCATTER_DIVIDE: Operator = Operator {
    name: "scatter_divide",
    summary: "The quotient of the elements that the left operand stores, whatever the right one stores: a stored element over one \
              that is not stored is infinite or not a number.",
    operands: &["lhs", "rhs"],
    shape: "broadcast",
    storage: STORED_LEFT,
    gradient: &[
        gradient("lhs", "reduce_to(scatter_divide(grad * pattern(lhs), rhs), lhs)"),
        gradient("rhs", "reduce_to(-scatter_divide(grad * out, rhs), rhs)"),
    ],
    kind: Kind::Binary(BinaryFamily::Left, "x / y"),
    ..DEFAULTS
};

const STORED_POWER: Operator = Operator {
    name: "stored_power",
    summary: "`power` of the elements that the operand stores; 0 where a stored 0 would have an infinite one. Gradients of `power` are \
              made of it.",
    operands: &["lhs", "rhs"],
    shape: "broadcast",
    storage: &[
        rule("dense scalar -> dense").on_gpu(),
        rule("csr scalar -> csr").on_gpu(),
        rule("row_sparse scalar -> row_sparse").on_gpu(),
    ],
    gradient: &[
        no_gradient("lhs", "second derivatives are not offered"),
        no_gradient("rhs", "second derivatives are not offered"),
    ],
    kind: Kind::Binary(BinaryFamily::Left, "select((x == 0) * (y < 0), 0, pow(x, y))"),
    internal: true,
    ..DEFAULTS
};
