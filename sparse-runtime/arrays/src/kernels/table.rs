//! The kernels by name, derived from the operator table: the trait of a device, its implementation
//! for the CPU, and the dynamic call. A rule of the table without a kernel does not compile here.

use super::{Context, ScalarFunctions};
use crate::device::{Cpu, Device};
use crate::formats::{
    Csr, CsrView, Dense, DenseView, Extents, Ids, IdsView, RowSparse, RowSparseView, Shape,
};
use sparse_core::element::{Float, Unit};
use sparse_core::ir::{Attributes, Axes, List};
use sparse_core::storage::Storage;

/// An array whose storage is known at run time only.
#[derive(Clone, Debug)]
pub enum Array<T: Float> {
    /// A dense array.
    Dense(Dense<T>),
    /// A csr matrix.
    Csr(Csr<T>),
    /// A row_sparse array.
    RowSparse(RowSparse<T>),
    /// Integer ids.
    Ids(Ids),
    /// A csr matrix that holds a pattern only.
    Unit(Csr<Unit>),
}

/// An operand of [`call_kernel`].
#[derive(Clone, Copy, Debug)]
pub enum Operand<'a, T: Float> {
    /// A dense array.
    Dense(DenseView<'a, T>),
    /// A csr matrix.
    Csr(CsrView<'a, T>),
    /// A row_sparse array.
    RowSparse(RowSparseView<'a, T>),
    /// Integer ids.
    Ids(IdsView<'a>),
    /// A csr matrix that holds a pattern only.
    Unit(CsrView<'a, Unit>),
    /// A number.
    Scalar(T),
}

impl<T: Float> Array<T> {
    /// The array as an operand.
    pub fn operand(&self) -> Operand<'_, T> {
        match self {
            Array::Dense(array) => Operand::Dense(array.view()),
            Array::Csr(array) => Operand::Csr(array.view()),
            Array::RowSparse(array) => Operand::RowSparse(array.view()),
            Array::Ids(array) => Operand::Ids(array.view()),
            Array::Unit(array) => Operand::Unit(array.view()),
        }
    }

    /// The extents.
    pub fn shape(&self) -> Shape {
        match self {
            Array::Dense(array) => *array.shape(),
            Array::Csr(array) => [array.n_rows(), array.n_cols()].into(),
            Array::RowSparse(array) => *array.shape(),
            Array::Ids(array) => *array.shape(),
            Array::Unit(array) => array.shape(),
        }
    }

    /// The storage type.
    pub fn storage(&self) -> Storage {
        match self {
            Array::Dense(_) | Array::Ids(_) => Storage::Dense,
            Array::Csr(_) | Array::Unit(_) => Storage::Csr,
            Array::RowSparse(_) => Storage::RowSparse,
        }
    }
}

impl<'a, T: Float> Operand<'a, T> {
    fn dense(self) -> Option<DenseView<'a, T>> {
        if let Operand::Dense(view) = self { Some(view) } else { None }
    }

    fn csr(self) -> Option<CsrView<'a, T>> {
        if let Operand::Csr(view) = self { Some(view) } else { None }
    }

    fn row_sparse(self) -> Option<RowSparseView<'a, T>> {
        if let Operand::RowSparse(view) = self { Some(view) } else { None }
    }

    fn ids(self) -> Option<IdsView<'a>> {
        if let Operand::Ids(view) = self { Some(view) } else { None }
    }

    fn unit(self) -> Option<CsrView<'a, Unit>> {
        if let Operand::Unit(view) = self { Some(view) } else { None }
    }

    /// The extents; none of a number.
    fn shape(&self) -> Shape {
        match self {
            Operand::Dense(view) => view.extents(),
            Operand::Csr(view) => view.extents(),
            Operand::RowSparse(view) => view.extents(),
            Operand::Ids(view) => view.extents(),
            Operand::Unit(view) => view.extents(),
            Operand::Scalar(_) => Shape::default(),
        }
    }

    fn scalar(self) -> Option<T> {
        if let Operand::Scalar(number) = self { Some(number) } else { None }
    }
}

sparse_macros::kernel_table!();
