//! The operators without a macro: functions and Rust operators on arrays, one implementation for
//! each storage rule of the operator table. A combination without a rule is a type error with its
//! own message.
//!
//! ```
//! use nnz::formats::{Csr, Dense};
//! use nnz::ops;
//!
//! # fn main() -> nnz::Result<()> {
//! let x = Csr::new(3, vec![0, 2, 3], vec![0u32, 2, 1], vec![1.0f32, 2.0, 3.0])?;
//! let w = Dense::new([3, 1], vec![1.0, 10.0, 100.0])?;
//! let scores: Dense = ops::dot(&x, &w)?;
//! assert_eq!(scores.values(), [201.0, 30.0]);
//! // The transposed product stores the columns that occur: row_sparse.
//! let gradient = ops::dot(x.t(), &scores)?;
//! assert_eq!(gradient.indices(), [0, 1, 2]);
//! let twice = &x * 2.0;
//! assert_eq!(twice.values(), [2.0, 4.0, 6.0]);
//! # Ok(())
//! # }
//! ```
//!
//! Operands are borrowed: `&x`, or `x.t()` for a transposed matrix. A function returns an error if
//! shapes do not fit, or if the system has no memory for a dense result
//! ([`FormatError::OutOfMemory`]). A Rust operator panics there, as an index does:
//! `ops::add(&a, &b)` is the function of `&a + &b`. A sparse result grows with its stored elements:
//! without memory for that the process ends, as when a `Vec` grows.
//!
//! # Which storage a result has
//!
//! The storage rules decide, at compile time; the documentation of each function lists its rules.
//! Operands of different storage types combine where a rule allows it. A function that keeps zero
//! at zero keeps a sparse operand sparse; any other is a type error, unless an operand is dense
//! already.
//!
//! ```
//! use nnz::formats::{Csr, Dense, RowSparse};
//! use nnz::ops;
//!
//! # fn main() -> nnz::Result<()> {
//! let x = RowSparse::from_rows(3, [(1, [1.0f32, 2.0])])?;
//! let (ones, csr) = (Dense::ones([3, 2]), x.to_csr()?);
//! let scaled: RowSparse = &x * 0.5;
//! let product: RowSparse = &x * &ones;
//! let sum: Dense = &x + &ones;
//! let both: Csr = &csr + &csr;
//! // exp(0) is 1: of a dense operand only.
//! let exponentials: Dense = ops::exp(&x.to_dense()?)?;
//! # let _ = (scaled, product, sum, both, exponentials);
//! # Ok(())
//! # }
//! ```
//!
//! ```compile_fail
//! # let x = nnz::formats::RowSparse::<f32>::zeros([3, 2]);
//! let exponentials = nnz::ops::exp(&x);
//! ```

use crate::device::Cpu;
use crate::formats::{Csr, Dense, ELEMENTS, Extents, FormatError, Ids, IdsView, RowSparse, Shape};
use crate::kernels::{Context, Kernels};
use nnz_device::memory;
use sparse_core::element::{Element, Float};
use sparse_core::formula::Formula;
use sparse_core::ir::{AttributeValue, Attributes, Axes, List, Number};
use sparse_core::operators::{self, Given};
use sparse_core::shape_rules;
use sparse_core::shapes::{self, Dim, Dims, Substitution};
use sparse_core::storage::Storage;

type Result<T> = std::result::Result<T, FormatError>;

/// A transposed array, from `t()`. It costs nothing: it chooses the kernel.
#[derive(Clone, Copy, Debug)]
pub struct Transposed<A>(pub A);

macro_rules! transposes {
    ($($array:ident),*) => {
        $(impl<T: Element> $array<T> {
            /// This matrix, transposed for an operator: `ops::dot(x.t(), &g)`.
            pub fn t(&self) -> Transposed<&Self> {
                Transposed(self)
            }
        })*
    };
}

transposes!(Dense, Csr, RowSparse);

/// The operator's own shape rule and the condition of its storage rule, at run time.
fn check(
    operator: &'static str,
    rule: usize,
    attributes: &Attributes,
    operands: &[&[usize]],
    numbers: &[Option<f64>],
    element_bytes: usize,
) -> Result<()> {
    let Some(row) = operators::find(operator) else {
        return Ok(());
    };
    let mismatch = |message| Err(FormatError::Mismatch { operation: operator, message });
    let dims: Vec<Dims> = operands
        .iter()
        .map(|extents| extents.iter().map(|extent| Dim::Size(*extent as u64)).collect())
        .collect();
    let result = match shape_rules::infer(row, attributes, &dims, &mut Substitution::default()) {
        Ok(result) => result,
        Err(error) => return mismatch(error.describe(row.operands)),
    };
    let Some(signature) = row.storage.get(rule).map(|rule| rule.signature()) else {
        return Ok(());
    };
    if signature.result == Storage::Dense && !is_addressable(&result) {
        let shape = shapes::show(&result);
        return mismatch(format!("the result, {shape}, has more elements than can be addressed"));
    }
    if signature.result == Storage::Dense {
        check_memory(&result, element_bytes)?;
    }
    if signature.same_shape && operands.windows(2).any(|pair| pair[0] != pair[1]) {
        let all: Vec<String> = dims.iter().map(|dims| shapes::show(dims)).collect();
        return mismatch(format!("sparse operands must have one shape, not {}", all.join(" and ")));
    }
    if let Some(condition) = signature.condition {
        let ranks: Vec<usize> = operands.iter().map(|extents| extents.len()).collect();
        let numbers: Vec<Option<Formula>> =
            numbers.iter().map(|number| number.map(Formula::Number)).collect();
        let (numbers, names) = (&numbers[..], None);
        let given = Given { operator: row, attributes, numbers, ranks: &ranks, names };
        if !(condition.holds)(&given) {
            let text = row.storage[rule].text();
            let sparse = signature.operands.iter().any(
                |pattern| matches!(pattern, operators::Pattern::Array(storage, _) if storage.is_sparse()),
            );
            let help = if sparse {
                "; convert the operand with `to_dense()` to accept the cost"
            } else {
                ""
            };
            return mismatch(format!("the rule `{text}` holds {}{help}", condition.text));
        }
    }
    Ok(())
}

/// Refuses a dense result without memory.
fn check_memory(dims: &[Dim], element_bytes: usize) -> Result<()> {
    let extents = dims.iter().map(|dim| match dim {
        Dim::Size(extent) => usize::try_from(*extent).ok(),
        _ => None,
    });
    // An extent that is only known from values is not too large for them.
    let Some(extents) = extents.collect::<Option<Vec<usize>>>() else { return Ok(()) };
    let shape = Shape::try_new(&extents)?;
    let bytes = shape.size().saturating_mul(element_bytes);
    if memory::is_there_for::<u8>(bytes) {
        return Ok(());
    }
    Err(FormatError::OutOfMemory { what: ELEMENTS, shape, bytes })
}

/// Whether a dense array can have these extents, for any element type.
fn is_addressable(dims: &[Dim]) -> bool {
    let sizes =
        || dims.iter().filter_map(|dim| if let Dim::Size(n) = dim { Some(*n) } else { None });
    let bytes =
        sizes().try_fold(size_of::<u64>() as u64, |bytes, extent| bytes.checked_mul(extent));
    sizes().any(|extent| extent == 0) || bytes.is_some_and(|bytes| bytes <= isize::MAX as u64)
}

/// Ids must be below the extent in the operator spec.
fn check_ids(
    operator: &'static str,
    attributes: &Attributes,
    ids: IdsView<'_>,
    operands: &[&[usize]],
) -> Result<()> {
    let checked =
        operators::find(operator).and_then(|row| Some((row, row.ids_checked(attributes)?)));
    let Some((row, below)) = checked else {
        return Ok(());
    };
    let bound = match row.operand_index(below.of) {
        Some(of) => operands.get(of).and_then(|extents| {
            let axis = row.integer(attributes, "axis").unwrap_or(below.axis);
            shapes::place_of(axis, extents.len()).map(|place| extents[place])
        }),
        None => row.integer(attributes, below.of).and_then(|size| usize::try_from(size).ok()),
    };
    match bound.and_then(|bound| Some((bound, ids.first_beyond(bound)?))) {
        None => Ok(()),
        Some((bound, (position, id))) => {
            let message =
                format!("id {id} at position {position} of `{}` is not below {bound}", below.ids);
            Err(FormatError::Mismatch { operation: operator, message })
        }
    }
}

sparse_macros::operator_traits!();

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_that_cannot_be_addressed_are_refused() {
        let x = Dense::from_rows(&[[1.0f32, 2.0]]);
        let refused = |result: Result<Dense>| {
            let error = result.err().map(|error| error.to_string()).unwrap_or_default();
            assert!(error.contains("elements"), "{error}");
        };
        for times in [1 << 61, i64::MAX] {
            refused(repeat(&x, times, 0));
            refused(tile(&x, List::new(&[Some(times), Some(1)])));
        }
        assert_eq!(repeat(&x, 2, 0).unwrap().shape()[..], [2, 2]);
    }

    #[test]
    fn a_dense_result_without_memory_is_an_error_with_its_shape_and_bytes() {
        let x = Dense::from_rows(&[[1.0f32, 2.0]]);
        for (result, rows, columns, bytes) in [
            (repeat(&x, 1 << 55, 0), 1 << 55, 2, 1 << 58),
            (tile(&x, List::new(&[Some(1), Some(1 << 50)])), 1, 1 << 51, 1 << 53),
            (
                dot(&Dense::zeros([1 << 21, 0]), &Dense::zeros([0, 1 << 25])),
                1 << 21,
                1 << 25,
                1 << 48,
            ),
        ] {
            let error = result.unwrap_err();
            let FormatError::OutOfMemory { shape, bytes: found, .. } = error else {
                panic!("{error}")
            };
            assert_eq!((&shape[..], found), (&[rows, columns][..], bytes));
        }
    }
}
