//! Parameters: tables whose storage type and gradient's storage type are both in the Rust type.

use crate::device::{Cpu, Device};
use crate::formats::{Array, RowSparse, Shape};
use sparse_core::element::Float;
use std::marker::PhantomData;

/// A parameter, stored as `S`, whose gradient is a `G`.
///
/// Both storage types were derived and checked by the compiler: a `Parameter<RowSparse, RowSparse>` can never
/// meet a dense gradient. Physically every parameter is a table of all its rows, row major; `row_sparse` says
/// that batches read and write it by rows.
#[derive(Clone, Debug)]
pub struct Parameter<S: Array, G: Array<Element = S::Element>, D: Device = Cpu> {
    name: &'static str,
    shape: Shape,
    values: D::Buffer<S::Element>,
    types: PhantomData<fn() -> (S, G)>,
}

/// A parameter whose gradient is row_sparse: what generic code that relies on sparse updates asks for.
#[diagnostic::on_unimplemented(
    message = "the gradient of this parameter is not row_sparse",
    note = "a parameter's gradient is row_sparse when every use of it reads it by rows, \
            such as `dot(x, w)` with `x: csr`"
)]
pub trait RowSparseGradient {}

impl<S: Array, T: Float> RowSparseGradient for Parameter<S, RowSparse<T>> where S: Array<Element = T>
{}

/// A parameter behind a model's interface: its name, shape and values.
#[derive(Debug)]
pub struct ParameterRef<'a, T> {
    /// Its name.
    pub name: &'static str,
    /// Its shape.
    pub shape: Shape,
    /// Its values, row major.
    pub values: &'a [T],
}

/// A parameter behind a model's interface, to be written.
#[derive(Debug)]
pub struct ParameterMut<'a, T> {
    /// Its name.
    pub name: &'static str,
    /// Its shape.
    pub shape: Shape,
    /// Its values, row major.
    pub values: &'a mut [T],
}
