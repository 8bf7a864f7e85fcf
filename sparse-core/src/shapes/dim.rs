//! Extents and symbolic shapes.

use std::fmt;

/// One extent.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Dim {
    /// A known extent.
    Size(u64),
    /// A named dimension. Different names never unify: a name is a promise, not a variable.
    Named(String),
    /// To be inferred (`_`).
    Unknown(u32),
}

/// A symbolic shape.
pub type Dims = Vec<Dim>;

impl fmt::Display for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Dim::Size(size) => write!(f, "{size}"),
            Dim::Named(name) => f.write_str(name),
            Dim::Unknown(_) => f.write_str("_"),
        }
    }
}

/// `[n, 10]`.
pub fn show(dims: &[Dim]) -> String {
    let inner: Vec<String> = dims.iter().map(Dim::to_string).collect();
    format!("[{}]", inner.join(", "))
}

/// `n × 10000`, or `1` for rank 0; known extents are multiplied.
pub fn size_formula(dims: &[Dim]) -> String {
    let known: u64 = dims.iter().fold(1u64, |product, dim| match dim {
        Dim::Size(size) => product.saturating_mul(*size),
        _ => product,
    });
    let factor = |dim: &Dim| match dim.to_string() {
        sum if sum.contains(' ') => format!("({sum})"),
        name => name,
    };
    let mut factors: Vec<String> =
        dims.iter().filter(|dim| !matches!(dim, Dim::Size(_))).map(factor).collect();
    if known != 1 || factors.is_empty() {
        factors.push(known.to_string());
    }
    factors.join(" × ")
}
