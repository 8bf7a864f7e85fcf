//! Parameters: tables whose storage type, and that of their gradient, are in the Rust type.

use super::DimsError;
use crate::error::Result;
use nnz_arrays::device::{Cpu, Device};
use nnz_arrays::formats::{Array, Dense, DenseView, FormatError, RowSparse, RowSparseView, Shape};
use nnz_arrays::initializer::{Initializer, Stream};
use nnz_arrays::parameter_memory::Table;
use nnz_device::memory;
use sparse_core::element::{Element, Float};
use std::fmt;
use std::marker::PhantomData;

/// A parameter, stored as `S`, whose gradient is a `G`.
///
/// The compiler derived and checked both storage types: a `Parameter<RowSparse, RowSparse>` can
/// never meet a dense gradient. Physically every parameter is a table of all its rows, row major;
/// `row_sparse` says that batches read and write it by table rows.
///
/// Invariant: the table holds exactly `shape.size()` elements.
///
/// ```
/// use nnz::formats::RowSparse;
/// use nnz::initializer::{Initializer, Seed};
/// use nnz::model::Parameter;
/// let w: Parameter<RowSparse, RowSparse> =
///     Parameter::new("w", [1000, 4], &Initializer::Ones, Seed(42).stream(0))?;
/// assert_eq!((w.n_rows(), w.row_size()), (1000, 4));
/// assert_eq!(w.view().row(999), Some(&[1.0; 4][..]));
/// # Ok::<(), nnz::Error>(())
/// ```
#[derive(Clone)]
pub struct Parameter<S: Array, G: Array<Element = S::Element>, D: Device = Cpu> {
    name: &'static str,
    shape: Shape,
    table: D::Table<S::Element>,
    types: PhantomData<fn() -> (S, G)>,
}

/// A storage type that a parameter can have: every row is stored, as a table.
#[diagnostic::on_unimplemented(
    message = "a parameter cannot be stored as `{Self}`",
    note = "a parameter is a table of all its rows: `Dense`, or `RowSparse` if batches touch few of them"
)]
pub trait ParameterStorage: Array {
    /// A view of the table.
    type View<'a>: Copy;

    /// The view of a parameter with this storage type.
    fn view<G: Array<Element = Self::Element>>(parameter: &Parameter<Self, G>) -> Self::View<'_>
    where
        Self: Sized;

    /// An owned array.
    fn to_owned(view: Self::View<'_>) -> Self;
}

impl<T: Float> ParameterStorage for Dense<T> {
    type View<'a> = DenseView<'a, T>;

    fn view<G: Array<Element = T>>(parameter: &Parameter<Self, G>) -> DenseView<'_, T> {
        parameter.dense_view()
    }

    fn to_owned(view: DenseView<'_, T>) -> Self {
        view.to_owned()
    }
}

impl<T: Float> ParameterStorage for RowSparse<T> {
    type View<'a> = RowSparseView<'a, T>;

    fn view<G: Array<Element = T>>(parameter: &Parameter<Self, G>) -> RowSparseView<'_, T> {
        parameter.row_sparse_view()
    }

    fn to_owned(view: RowSparseView<'_, T>) -> Self {
        view.to_owned()
    }
}

impl<T: Float, S: Array<Element = T>, G: Array<Element = T>> Parameter<S, G> {
    /// A parameter with its initial values, which depend on the stream alone: `seed.stream(i)` for
    /// the i-th parameter of a model.
    ///
    /// # Errors
    ///
    /// [`DimsError::TooLarge`] if the table cannot be addressed, [`DimsError::OutOfMemory`], and
    /// [`InitializerError`](nnz_arrays::initializer::InitializerError).
    pub fn new(
        name: &'static str,
        shape: impl Into<Shape>,
        initializer: &Initializer,
        stream: Stream,
    ) -> Result<Self> {
        let shape = shape.into();
        let Some(size) = shape.addressable_size::<T>() else {
            return Err(DimsError::TooLarge { parameter: name, shape: shape.to_string() }.into());
        };
        if !memory::is_there_for::<T>(size) {
            return Err(DimsError::OutOfMemory {
                parameter: name,
                shape: shape.to_string(),
                bytes: size * size_of::<T>(),
            }
            .into());
        }
        Ok(Parameter {
            name,
            shape,
            table: initializer.table(shape.n_rows(), shape.row_size(), stream)?,
            types: PhantomData,
        })
    }

    /// A parameter made of an existing table.
    ///
    /// # Errors
    ///
    /// [`FormatError::Mismatch`] unless the table has as many rows, of the same size, as the shape.
    pub fn from_table(
        name: &'static str,
        shape: impl Into<Shape>,
        table: Table<T>,
    ) -> Result<Self> {
        let shape = shape.into();
        if (table.n_rows(), table.row_size()) != (shape.n_rows(), shape.row_size()) {
            let message = format!("parameter `{name}` has shape {shape}, but is given a {table:?}");
            return Err(FormatError::Mismatch { operation: "making a parameter", message }.into());
        }
        Ok(Parameter { name, shape, table, types: PhantomData })
    }

    /// The same parameter, for a model that derives its gradient in another storage type.
    pub(crate) fn for_gradient<H: Array<Element = T>>(self) -> Parameter<S, H> {
        let Parameter { name, shape, table, .. } = self;
        Parameter { name, shape, table, types: PhantomData }
    }

    /// Its name in the model.
    #[inline]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Its extents.
    #[inline]
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The number of rows.
    #[inline]
    pub fn n_rows(&self) -> usize {
        self.shape.n_rows()
    }

    /// The elements of one row.
    #[inline]
    pub fn row_size(&self) -> usize {
        self.shape.row_size()
    }

    /// All values, row major. O(1); after a fused step of a rule with state O(values).
    #[inline]
    pub fn values(&self) -> &[T] {
        self.table.values()
    }

    /// All values, row major, for writing. Cost as for [`values`](Self::values).
    #[inline]
    pub fn values_mut(&mut self) -> &mut [T] {
        self.table.values_mut()
    }

    /// One row, in O(row).
    ///
    /// # Panics
    ///
    /// If there is no such row.
    #[inline]
    pub fn row(&self, row: usize) -> &[T] {
        self.table.row(row)
    }

    /// The memory of the values.
    #[inline]
    pub fn table(&self) -> &Table<T> {
        &self.table
    }

    /// The memory of the values, for writing: an [`Updater`](crate::optimizer::Updater) takes it. A
    /// table that replaces it must have as many rows of as many elements: an updater refuses
    /// another, and reads of the parameter panic.
    #[inline]
    pub fn table_mut(&mut self) -> &mut Table<T> {
        &mut self.table
    }

    /// Replaces all values.
    ///
    /// # Errors
    ///
    /// [`FormatError::Mismatch`] unless the shapes are equal.
    pub fn set_values(&mut self, values: DenseView<'_, T>) -> Result<(), FormatError> {
        if *values.shape() != self.shape {
            return Err(FormatError::Mismatch {
                operation: "setting a parameter",
                message: format!(
                    "parameter `{}` has shape {}, but the values given have shape {}",
                    self.name,
                    self.shape,
                    values.shape()
                ),
            });
        }
        self.values_mut().copy_from_slice(values.values());
        Ok(())
    }

    /// The table as a dense array.
    #[inline]
    pub fn dense_view(&self) -> DenseView<'_, T> {
        DenseView::table(self.shape, self.values())
    }

    /// The table as a row_sparse array that stores every row.
    #[inline]
    pub fn row_sparse_view(&self) -> RowSparseView<'_, T> {
        RowSparseView::table(self.shape, self.values())
    }

    /// The table as an array of the parameter's storage type, borrowed.
    #[inline]
    pub fn view(&self) -> S::View<'_>
    where
        S: ParameterStorage,
    {
        S::view(self)
    }

    /// A copy of the table as an array of the parameter's storage type.
    pub fn to_array(&self) -> S
    where
        S: ParameterStorage,
    {
        S::to_owned(self.view())
    }

    /// Name, shape and values, without the storage types.
    pub fn as_ref(&self) -> ParameterRef<'_, T> {
        ParameterRef { name: self.name, shape: self.shape, table: &self.table }
    }

    /// Name, shape and values for writing, without the storage types.
    pub fn as_mut(&mut self) -> ParameterMut<'_, T> {
        ParameterMut { name: self.name, shape: self.shape, table: &mut self.table }
    }
}

/// The name, and the table as `Debug` of a dense array shows it.
impl<T: Float, S: Array<Element = T>, G: Array<Element = T>> fmt::Debug for Parameter<S, G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {} (gradient {}) as {:?}",
            self.name,
            S::STORAGE,
            G::STORAGE,
            self.dense_view()
        )
    }
}

/// A parameter whose gradient is row_sparse: a bound for generic code that relies on sparse
/// updates.
#[diagnostic::on_unimplemented(
    message = "the gradient of this parameter is not row_sparse",
    note = "a parameter's gradient is row_sparse when every use of it reads it by rows, \
            such as `dot(x, w)` with `x: csr`"
)]
pub trait RowSparseGradient {}

impl<S: Array<Element = T>, T: Float> RowSparseGradient for Parameter<S, RowSparse<T>> {}

/// A parameter behind a model's interface: its name, shape and values.
#[derive(Clone, Copy, Debug)]
pub struct ParameterRef<'a, T: Element> {
    /// Its name.
    pub name: &'static str,
    /// Its shape.
    pub shape: Shape,
    /// The memory of its values.
    pub table: &'a Table<T>,
}

impl<'a, T: Element> ParameterRef<'a, T> {
    /// Its values, row major. As [`Parameter::values`].
    #[inline]
    pub fn values(&self) -> &'a [T] {
        self.table.values()
    }
}

/// A parameter behind a model's interface, for writing.
#[derive(Debug)]
pub struct ParameterMut<'a, T: Element> {
    /// Its name.
    pub name: &'static str,
    /// Its shape.
    pub shape: Shape,
    /// The memory of its values.
    pub table: &'a mut Table<T>,
}

impl<T: Element> ParameterMut<'_, T> {
    /// Its values, row major, for writing. Cost as for [`Parameter::values_mut`].
    #[inline]
    pub fn values_mut(&mut self) -> &mut [T] {
        self.table.values_mut()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use nnz_arrays::initializer::Seed;

    type Tabled<S> = Parameter<S, RowSparse>;

    fn ones<S: Array<Element = f32>>(shape: [usize; 2]) -> Tabled<S> {
        Parameter::new("w", shape, &Initializer::Ones, Seed(1).stream(0)).unwrap()
    }

    #[test]
    fn the_view_has_the_storage_type() {
        let dense = ones::<Dense>([3, 2]);
        let sparse = ones::<RowSparse>([3, 2]);
        let (table, rows): (DenseView, RowSparseView) = (dense.view(), sparse.view());
        assert_eq!(table, sparse.dense_view());
        assert_eq!((rows.n_stored(), rows.row(2)), (3, Some(&[1.0, 1.0][..])));
        assert_eq!(sparse.to_array().indices(), [0, 1, 2]);
        assert_eq!(dense.to_array(), Dense::full([3, 2], 1.0));
    }

    #[test]
    fn tables_that_cannot_be_addressed_are_refused() {
        for shape in [[usize::MAX, 2], [1 << 61, 1]] {
            let error = Tabled::<Dense>::new("w", shape, &Initializer::Zeros, Seed(1).stream(0));
            assert!(
                matches!(error, Err(Error::Dims(DimsError::TooLarge { parameter: "w", .. }))),
                "{error:?}"
            );
        }
    }

    #[test]
    fn a_table_without_memory_is_an_error() {
        let error = Tabled::<Dense>::new("w", [1 << 59, 1], &Initializer::Zeros, Seed(1).stream(0));
        assert!(
            matches!(error, Err(Error::Dims(DimsError::OutOfMemory { bytes, .. })) if bytes == 1 << 61),
            "{error:?}"
        );
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn zeros_do_not_touch_their_memory() {
        let resident_pages = || -> usize {
            let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
            statm.split_whitespace().nth(1).unwrap().parse().unwrap()
        };
        let before = resident_pages();
        let table = Tabled::<Dense>::new("w", [1 << 28, 1], &Initializer::Zeros, Seed(1).stream(0));
        let touched = resident_pages().saturating_sub(before);
        assert_eq!(table.unwrap().values().len(), 1 << 28);
        // a quarter of the table's 2¹⁸ pages of 4 KiB, for what other tests do meanwhile
        assert!(touched < 1 << 16, "{touched} pages became resident");
    }

    #[test]
    fn values_are_replaced_only_by_the_same_shape() {
        let mut w = ones::<Dense>([3, 2]);
        let error = w.set_values(Dense::zeros([2, 3]).view()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "setting a parameter: parameter `w` has shape [3, 2], but the values given have shape [2, 3]"
        );
        w.set_values(Dense::full([3, 2], 5.0).view()).unwrap();
        assert_eq!(w.as_ref().values(), [5.0; 6]);
        w.as_mut().values_mut()[0] = 1.0;
        assert_eq!(
            format!("{w:?}"),
            "w: dense (gradient row_sparse) as dense [3, 2] f32 {0: 1.0, 5.0; 1: 5.0, 5.0; 2: 5.0, 5.0}"
        );
    }
}
