//! Extents that follow from others, of which the compiler knows names alone.

use super::{Dim, Span};
use std::fmt;

/// How an extent follows from numbers and constants of Rust.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Derived {
    /// Of arrays that are joined.
    Sum([Dim; 2]),
    /// Of an axis that is repeated, and of several that become one.
    Product([Dim; 2]),
    /// Of `begin:end:step` of an axis, as [`Span::new`] counts.
    Part {
        /// The extent of the axis.
        of: Dim,
        /// `begin`, `end` and `step`.
        bounds: [Option<Bound>; 3],
    },
}

/// Where a part begins or ends, or its step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bound {
    /// A number, from the end where it is negative.
    Number(i64),
    /// A constant of Rust.
    Extent(Dim),
}

impl Bound {
    fn number(&self) -> Option<i64> {
        match self {
            Bound::Number(number) => Some(*number),
            Bound::Extent(Dim::Size(size)) => i64::try_from(*size).ok(),
            Bound::Extent(_) => None,
        }
    }
}

impl From<i64> for Bound {
    fn from(number: i64) -> Self {
        Bound::Number(number)
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Bound::Number(number) => write!(f, "{number}"),
            Bound::Extent(dim) => write!(f, "{dim}"),
        }
    }
}

impl Derived {
    /// The extents it follows from.
    pub fn terms(&self) -> &[Dim] {
        match self {
            Derived::Sum(terms) | Derived::Product(terms) => terms,
            Derived::Part { of, .. } => std::slice::from_ref(of),
        }
    }

    pub(super) fn map_terms(self, map: impl Fn(&Dim) -> Dim) -> Self {
        match self {
            Derived::Sum(terms) => Derived::Sum(terms.each_ref().map(map)),
            Derived::Product(terms) => Derived::Product(terms.each_ref().map(map)),
            Derived::Part { of, bounds } => Derived::Part {
                of: map(&of),
                bounds: bounds.map(|bound| match bound? {
                    Bound::Extent(dim) => Some(Bound::Extent(map(&dim))),
                    number => Some(number),
                }),
            },
        }
    }

    /// The number where all of its terms are numbers; `Some(None)` of one that is too large.
    pub(super) fn size(&self) -> Option<Option<u64>> {
        Some(match self {
            Derived::Sum([Dim::Size(a), Dim::Size(b)]) => a.checked_add(*b),
            Derived::Product([Dim::Size(a), Dim::Size(b)]) => a.checked_mul(*b),
            Derived::Part { of: Dim::Size(of), bounds } => {
                let of = usize::try_from(*of).unwrap_or(usize::MAX);
                let seen = |bound: &Option<Bound>| {
                    bound.as_ref().map_or(Some(None), |bound| bound.number().map(Some))
                };
                let [begin, end, step] = bounds.each_ref().map(seen);
                Some(Span::new(begin?, end?, step?, of).len as u64)
            }
            _ => return None,
        })
    }

    /// How messages and the plan call it: `K + 3`, `(K + 3) * 4`, `K[1:-1]`.
    pub(super) fn name(&self) -> String {
        match self {
            Derived::Sum([a, b]) => format!("{a} + {b}"),
            Derived::Product([a, b]) => format!("{} * {}", grouped(a, " + "), grouped(b, " ")),
            Derived::Part { of, bounds: [begin, end, step] } => {
                let bound = |bound: &Option<Bound>| {
                    bound.as_ref().map_or_else(String::new, Bound::to_string)
                };
                let step = step.as_ref().map_or_else(String::new, |step| format!(":{step}"));
                format!("{}[{}:{}{step}]", grouped(of, " "), bound(begin), bound(end))
            }
        }
    }
}

/// An extent in parentheses where its name has an operator that would bind less than what is around
/// it.
fn grouped(dim: &Dim, operator: &str) -> String {
    match dim.to_string() {
        name if name.contains(operator) => format!("({name})"),
        name => name,
    }
}
