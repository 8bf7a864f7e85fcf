//! Reductions over axes: elements are mapped, combined, and the result finished, in `f64`.
//!
//! O(stored elements) and the size of the result. What is not stored is a zero: sums do not see it,
//! products and extremes are combined with it once.

pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;

use sparse_core::ir::Axes;

/// What is reduced.
#[derive(Clone, Copy, Debug)]
pub struct Over {
    /// The axes.
    pub axis: Axes,
    /// Whether reduced axes stay, as 1.
    pub keepdims: bool,
    /// Whether all other axes are meant.
    pub exclude: bool,
}

impl Over {
    /// Whether an axis of an array of a rank is reduced.
    pub fn reduces(&self, place: usize, rank: usize) -> bool {
        self.axis.contain(place, rank) != self.exclude
    }
}

/// How elements are combined.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not combine the elements of a reduction",
    note = "a reduction has one of the ways in this module, which its row in the operator table \
            names"
)]
pub trait Combine: Copy {
    /// What nothing gives.
    const START: f64;
    /// Whether the zeros that are not stored have to be combined too.
    const SEES_ZEROS: bool;

    /// Both.
    fn join(a: f64, b: f64) -> f64;
}

/// The sum.
#[derive(Clone, Copy, Debug)]
pub struct Sum;

/// The product.
#[derive(Clone, Copy, Debug)]
pub struct Product;

/// The largest one, NaN where there is one.
#[derive(Clone, Copy, Debug)]
pub struct Largest;

/// The smallest one, NaN where there is one.
#[derive(Clone, Copy, Debug)]
pub struct Smallest;

impl Combine for Sum {
    const START: f64 = 0.0;
    const SEES_ZEROS: bool = false;

    #[inline(always)]
    fn join(a: f64, b: f64) -> f64 {
        a + b
    }
}

impl Combine for Product {
    const START: f64 = 1.0;
    const SEES_ZEROS: bool = true;

    #[inline(always)]
    fn join(a: f64, b: f64) -> f64 {
        a * b
    }
}

impl Combine for Largest {
    const START: f64 = f64::NEG_INFINITY;
    const SEES_ZEROS: bool = true;

    #[inline(always)]
    fn join(a: f64, b: f64) -> f64 {
        if b > a || b.is_nan() { b } else { a }
    }
}

impl Combine for Smallest {
    const START: f64 = f64::INFINITY;
    const SEES_ZEROS: bool = true;

    #[inline(always)]
    fn join(a: f64, b: f64) -> f64 {
        if b < a || b.is_nan() { b } else { a }
    }
}
