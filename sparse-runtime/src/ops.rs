//! The operators without a macro: functions and the signs of Rust on arrays, one implementation for each storage
//! rule of the operator table. A combination that no rule covers is a type error with its own words.
//!
//! ```
//! use sparse_runtime::formats::{Csr, Dense};
//! use sparse_runtime::ops;
//!
//! # fn main() -> sparse_runtime::Result<()> {
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

use crate::device::Cpu;
use crate::error::Result;
use crate::formats::{Csr, Dense, FormatError, RowSparse, Shape};
use crate::kernels::{Context, Kernels};
use sparse_core::element::{Element, Float};
use sparse_core::ir::{AttributeValue, Attributes};
use sparse_core::shapes::{self, Dim, Dims, Substitution};

/// An array to be read transposed, from `t()`. Costs nothing: it chooses the kernel.
#[derive(Clone, Copy, Debug)]
pub struct Transposed<A>(pub A);

macro_rules! transposes {
    ($($array:ident),*) => {
        $(impl<T: Element> $array<T> {
            /// This matrix, to be read transposed by an operator: `ops::dot(x.t(), &g)`.
            pub fn t(&self) -> Transposed<&Self> {
                Transposed(self)
            }
        })*
    };
}

transposes!(Dense, Csr);

/// The extents of an array, whatever its storage.
trait Extents {
    fn extents(&self) -> Shape;
}

impl<T: Element> Extents for Dense<T> {
    fn extents(&self) -> Shape {
        *self.shape()
    }
}

impl<T: Element> Extents for Csr<T> {
    fn extents(&self) -> Shape {
        [self.n_rows(), self.n_cols()].into()
    }
}

impl<T: Element> Extents for RowSparse<T> {
    fn extents(&self) -> Shape {
        *self.shape()
    }
}

/// The operator's own shape rule, at run time.
fn check_shapes(
    operator: &'static str,
    attributes: &Attributes,
    operands: &[&[usize]],
    same_shape: bool,
) -> Result<()> {
    let Some(row) = sparse_core::operators::find(operator) else {
        return Ok(());
    };
    let mismatch = |message| Err(FormatError::Mismatch { operation: operator, message }.into());
    let dims: Vec<Dims> = operands
        .iter()
        .map(|extents| extents.iter().map(|extent| Dim::Size(*extent as u64)).collect())
        .collect();
    if let Err(error) = shapes::infer(row, attributes, &dims, &mut Substitution::default()) {
        return mismatch(error.describe(row.operands));
    }
    if same_shape && operands.windows(2).any(|pair| pair[0] != pair[1]) {
        let all: Vec<String> = dims.iter().map(|dims| shapes::show(dims)).collect();
        return mismatch(format!("sparse operands must have one shape, not {}", all.join(" and ")));
    }
    Ok(())
}

sparse_macros::operator_traits!();
