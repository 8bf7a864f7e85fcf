//! Kinds of operators: which kernels carry them out.

/// The kernels that compute an operator.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// Its own kernel folder, one kernel a rule.
    Kernel,
    /// A scalar function of `x` and of the attributes that are numbers: the unary kernels with this
    /// formula.
    Unary(&'static str),
    /// A scalar function of `x` and `y`: the kernels of a family with this formula.
    Binary(BinaryFamily, &'static str),
    /// A reduction over axes: the reduction kernels with these formulas.
    Reduction(Reduction),
    /// A loss: the mean over the samples of a function of a sample's scores and its label. The
    /// operator of this name is its gradient.
    Loss {
        /// The operator that gives the gradient with respect to the first operand.
        gradient: &'static str,
        /// The meaning of the label.
        label: LossLabel,
        /// The loss of one score, for a loss that is a sum over the scores of a sample.
        element: Option<ElementLoss>,
    },
    /// The gradient of a loss: the kernels of the loss of this name.
    LossGradient(&'static str),
    /// Functions of the user: the position of the declaration, and which of its functions.
    Declared(usize, DeclaredKernel),
}

/// The loss of one score, as formulas in the score `s`, its label `t` and attributes that are
/// numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ElementLoss {
    /// The loss.
    pub loss: &'static str,
    /// Its derivative by the score.
    pub slope: &'static str,
}

/// What a reduction does: `map` of every element `x`, combined, and `finish` of the result `s` over
/// `n` elements. The formulas may name attributes that are numbers. Computed in `f64`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reduction {
    /// A formula in `x`. Sums are taken over what is stored: it must be 0 at 0.
    pub map: &'static str,
    /// How the mapped elements are combined.
    pub combine: Combine,
    /// A formula in `s` and `n`.
    pub finish: &'static str,
}

impl Reduction {
    /// The sum of the elements, or their mean, where it is one of them.
    pub fn total(&self) -> Option<Total> {
        match (self.map, self.combine, self.finish) {
            ("x", Combine::Sum, "s") => Some(Total::Sum),
            ("x", Combine::Sum, "s / n") => Some(Total::Mean),
            _ => None,
        }
    }
}

/// A reduction that adds up the elements as they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Total {
    /// Their sum.
    Sum,
    /// The sum divided by their number.
    Mean,
}

/// How a reduction combines elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Combine {
    /// The sum.
    Sum,
    /// The product; an element that is not stored makes it 0.
    Product,
    /// The largest; an element that is not stored is a 0. NaN where an element is.
    Largest,
    /// The smallest, likewise.
    Smallest,
}

/// The value of a binary function where an operand stores nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BinaryFamily {
    /// f(0, 0) is not 0, or f is not defined there: dense operands. With a number, a sparse operand
    /// keeps its storage where that makes f(0) = 0, as in `power(x, 2)`.
    Dense,
    /// f(0, 0) = 0: the result stores what either operand stores (add, subtract).
    Union,
    /// f(0, y) = 0: the result stores what the sparse operands all store (multiply).
    Intersection,
    /// f(0, y) = 0 for the left operand only (divide).
    Left,
    /// A function of `g` and `x`, the gradient arriving at a unary function and its operand (or
    /// result), with f(0, x) = 0, where the function's derivative at 0 is 0, or taken as 0: the
    /// result stores what both store. A dense `g` meets a csr `x` on its pattern.
    Gradient,
    /// The same where the derivative at 0 is another number: an element that `x` does not store is
    /// 0 and has a gradient all the same, so that the result stores what `g` stores.
    SlopedGradient,
}

impl BinaryFamily {
    /// Whether the formula is in `g` and `x` or `y`, and not in `x` and `y`.
    pub fn is_gradient(self) -> bool {
        matches!(self, BinaryFamily::Gradient | BinaryFamily::SlopedGradient)
    }
}

/// The meaning of a loss's label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossLabel {
    /// Any finite number.
    Real,
    /// -1 or 0, or 1, or a probability.
    Binary,
    /// A number that is not negative.
    Count,
    /// A class id.
    Class,
}

/// What computes the values of a declared operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeclaredKernel {
    /// The function of the rule.
    OfRule,
    /// The function of each element.
    Each,
    /// The derivative of that, times the gradient that arrives; true where it may be other than 0
    /// at 0.
    EachGradient(bool),
}
