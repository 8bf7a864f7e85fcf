//! csrᵀ · dense with sums in `f64`, whatever the elements: a column may occur in every row of a
//! batch, and a running sum in `f32` of a million terms would be off by percents.

use super::by_column;
use super::gemm::Matrix;
use super::scatter;
use crate::formats::CsrView;
use crate::kernels::Context;
use crate::kernels::features::number_columns;
use crate::kernels::value::ValueOf;
use nnz_device::simd::same_type;
use sparse_core::element::{Float, Stored, Unit};
#[cfg(feature = "half")]
use sparse_core::element::{bf16, f16};
use std::any::TypeId;

/// A csr of what models multiply with: loops over it are compiled once, and not for each model.
#[derive(Clone, Copy)]
pub(super) enum AnyCsr<'a> {
    Units(CsrView<'a, Unit>),
    Singles(CsrView<'a, f32>),
    Doubles(CsrView<'a, f64>),
    #[cfg(feature = "half")]
    Halves(CsrView<'a, f16>),
    #[cfg(feature = "half")]
    Brains(CsrView<'a, bf16>),
}

impl<'a> AnyCsr<'a> {
    /// The view by the type of its values; `None` where these are ids.
    pub(super) fn of<V: Stored>(x: CsrView<'a, V>) -> Option<Self> {
        let units = || same_values(x).map(AnyCsr::Units);
        let singles = || same_values(x).map(AnyCsr::Singles);
        let doubles = || same_values(x).map(AnyCsr::Doubles);
        let found = units().or_else(singles).or_else(doubles);
        #[cfg(feature = "half")]
        let found = found
            .or_else(|| same_values(x).map(AnyCsr::Halves))
            .or_else(|| same_values(x).map(AnyCsr::Brains));
        found
    }
}

/// The same matrix, where the two types are one.
fn same_values<'a, V: Stored, W: Stored>(x: CsrView<'a, V>) -> Option<CsrView<'a, W>> {
    // SAFETY: the types are equal, and so are those of the views.
    (TypeId::of::<V>() == TypeId::of::<W>()).then(|| unsafe { std::mem::transmute_copy(&x) })
}

macro_rules! with_any_csr {
    ($csr:expr, |$x:ident| $body:expr) => {
        match $csr {
            AnyCsr::Units($x) => $body,
            AnyCsr::Singles($x) => $body,
            AnyCsr::Doubles($x) => $body,
            #[cfg(feature = "half")]
            AnyCsr::Halves($x) => $body,
            #[cfg(feature = "half")]
            AnyCsr::Brains($x) => $body,
        }
    };
}

/// Runs `body` with a right side in `f64`, and the rest of the context; the elements lie in its
/// memory meanwhile, unless they are of that type.
pub(super) fn with_wide<T: Float, R>(
    rhs: Matrix<'_, T>,
    context: &mut Context,
    body: impl FnOnce(Matrix<'_, f64>, &mut Context) -> R,
) -> R {
    if let Some(values) = same_type(rhs.values) {
        return body(rhs.with_values(values), context);
    }
    let mut factors = std::mem::take(&mut context.factors);
    factors.clear();
    factors.extend(rhs.values.iter().map(|value| value.as_f64()));
    let result = body(rhs.with_values(&factors), context);
    context.factors = factors;
    result
}

/// Appends the columns that occur to `ids`, and makes the context's sums their rows.
pub(super) fn rows(
    ids: &mut Vec<u64>,
    lhs: AnyCsr<'_>,
    rhs: Matrix<'_, f64>,
    context: &mut Context,
) {
    with_any_csr!(lhs, |lhs| rows_of(ids, lhs, rhs, context));
}

fn rows_of<V: ValueOf<f64>>(
    ids: &mut Vec<u64>,
    lhs: CsrView<'_, V>,
    rhs: Matrix<'_, f64>,
    context: &mut Context,
) {
    let Context { parallel, ids: columns, sums, wide, .. } = context;
    if by_column::fits(lhs, rhs.n_cols) {
        return by_column::product::<f64, V>(ids, sums, lhs, rhs, *parallel, wide);
    }
    number_columns(columns, lhs, |column| ids.push(column as u64));
    sums.clear();
    sums.resize(ids.len() * rhs.n_cols, 0.0);
    // SAFETY: there is a row of sums for each column that was inserted, which all that occur were.
    unsafe { scatter::dense::<f64, V>(sums, lhs, rhs, *parallel, &*columns) };
}

/// Makes the context's sums a row for every column.
pub(super) fn table(lhs: AnyCsr<'_>, rhs: Matrix<'_, f64>, context: &mut Context) {
    with_any_csr!(lhs, |lhs| {
        let Context { parallel, sums, .. } = context;
        sums.clear();
        sums.resize(lhs.n_cols() * rhs.n_cols, 0.0);
        // SAFETY: there is a row of sums for every column.
        unsafe { scatter::dense::<f64, _>(sums, lhs, rhs, *parallel, scatter::Columns) };
    });
}
