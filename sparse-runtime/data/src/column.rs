//! The arrays of a dataset.

use super::error::role_name;
use nnz_arrays::escaped::Escaped;
use nnz_arrays::formats::column_shares;
use nnz_arrays::formats::{
    Csr, CsrView, Dense, DividedEntries, FormatError, Ids, RowSelection, Shape,
};
use nnz_arrays::with_ids;
use nnz_step::model::InputRole;
use sparse_core::element::{Element, Float, Stored, Unit};
use sparse_core::storage::{ElementType, Storage};
use std::fmt;
use std::sync::Arc;

/// One array of a dataset, with its role and an optional name.
#[derive(Clone)]
pub struct Column<T: Float = f32> {
    name: Option<String>,
    role: InputRole,
    values: ColumnValues<T>,
    /// The same entries, divided by threads.
    divided: Option<Divided<T>>,
}

/// The entries of a csr, divided by threads. Shared, as they never change.
#[derive(Clone)]
enum Divided<T> {
    Csr(Arc<DividedEntries<T>>),
    Unit(Arc<DividedEntries<Unit>>),
}

/// The values of a column, one row for each sample.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ColumnValues<T: Float = f32> {
    /// Sparse rows.
    Csr(Csr<T>),
    /// Sparse rows whose values are all 1, and take no memory.
    Unit(Csr<Unit>),
    /// Numbers: the first extent is the samples.
    Dense(Dense<T>),
    /// Ids of classes or of table rows, of any id type: the first extent is the samples.
    Ids(Ids),
}

impl<T: Float> Column<T> {
    pub(super) fn new(name: Option<String>, role: InputRole, values: ColumnValues<T>) -> Self {
        Column { name, role, values, divided: None }
    }

    /// Its name, if it has one.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Input or label.
    pub fn role(&self) -> InputRole {
        self.role
    }

    /// Its values.
    pub fn values(&self) -> &ColumnValues<T> {
        &self.values
    }

    /// Its values, without copying.
    pub(super) fn into_values(self) -> ColumnValues<T> {
        self.values
    }

    /// The same column, with the entries of a csr divided by this number of threads as well.
    pub(super) fn divided_for(mut self, threads: usize) -> Result<Self, FormatError> {
        self.divided = match &self.values {
            ColumnValues::Csr(csr) => {
                Some(Divided::Csr(column_shares::divide(csr.view(), threads)?.into()))
            }
            ColumnValues::Unit(csr) => {
                Some(Divided::Unit(column_shares::divide(csr.view(), threads)?.into()))
            }
            ColumnValues::Dense(_) | ColumnValues::Ids(_) => None,
        };
        Ok(self)
    }

    /// All rows of `csr`, which are its values, with their entries by threads.
    pub(super) fn csr_view<'s>(&'s self, csr: &'s Csr<T>) -> CsrView<'s, T> {
        match &self.divided {
            Some(Divided::Csr(divided)) => csr.view().with_divided(divided.rows(0..csr.n_rows())),
            _ => csr.view(),
        }
    }

    /// The same for a csr of units.
    pub(super) fn unit_view<'s>(&'s self, csr: &'s Csr<Unit>) -> CsrView<'s, Unit> {
        match &self.divided {
            Some(Divided::Unit(divided)) => csr.view().with_divided(divided.rows(0..csr.n_rows())),
            _ => csr.view(),
        }
    }

    /// The same name and role with other values.
    pub(super) fn with_values(&self, values: ColumnValues<T>) -> Self {
        Column::new(self.name.clone(), self.role, values)
    }
}

impl<T: Float> ColumnValues<T> {
    /// The number of samples.
    pub fn n_rows(&self) -> usize {
        self.shape().n_rows()
    }

    /// The shape; the first extent is the samples.
    pub fn shape(&self) -> Shape {
        match self {
            ColumnValues::Csr(csr) => csr.shape(),
            ColumnValues::Unit(csr) => csr.shape(),
            ColumnValues::Dense(dense) => *dense.shape(),
            ColumnValues::Ids(ids) => *ids.shape(),
        }
    }

    /// The storage type.
    pub fn storage(&self) -> Storage {
        match self {
            ColumnValues::Csr(_) | ColumnValues::Unit(_) => Storage::Csr,
            ColumnValues::Dense(_) | ColumnValues::Ids(_) => Storage::Dense,
        }
    }

    /// The element type.
    pub fn element(&self) -> ElementType {
        match self {
            ColumnValues::Csr(_) | ColumnValues::Dense(_) => T::TYPE,
            ColumnValues::Unit(_) => Unit::TYPE,
            ColumnValues::Ids(ids) => ids.element(),
        }
    }

    /// Copies of the given samples, in the given order.
    pub(super) fn gather(&self, rows: &[usize]) -> Result<Self, FormatError> {
        Ok(match self {
            ColumnValues::Csr(csr) => {
                ColumnValues::Csr(RowSelection::new().gather(csr, rows)?.to_owned())
            }
            ColumnValues::Unit(csr) => {
                ColumnValues::Unit(RowSelection::new().gather(csr, rows)?.to_owned())
            }
            ColumnValues::Dense(dense) => ColumnValues::Dense(gather_rows(dense, rows)?),
            ColumnValues::Ids(ids) => {
                ColumnValues::Ids(with_ids!(Ids, ids, |ids| gather_rows(ids, rows)?.into()))
            }
        })
    }

    /// The first value that is `nan` or infinite: its sample, its place in the sample, and the
    /// value. O(values).
    pub(super) fn not_finite(&self) -> Option<(usize, usize, f64)> {
        // Without a branch for each value, so that the common case is as fast as reading them.
        let all_finite = |values: &[T]| {
            values
                .chunks(256)
                .all(|values| values.iter().fold(true, |finite, value| finite & value.is_finite()))
        };
        let position = |values: &[T]| {
            if all_finite(values) {
                None
            } else {
                values.iter().position(|value| !value.is_finite())
            }
        };
        match self {
            ColumnValues::Csr(csr) => {
                let at = position(csr.values())?;
                // The last row that starts at or before it.
                let row = csr.indptr().partition_point(|&start| start <= at as u64) - 1;
                let (columns, values) = csr.row(row)?;
                let place = values.iter().position(|value| !value.is_finite())?;
                Some((row, columns.get(place)?, csr.values()[at].as_f64()))
            }
            ColumnValues::Dense(dense) => {
                let (at, row_size) = (position(dense.values())?, dense.shape().row_size().max(1));
                Some((at / row_size, at % row_size, dense.values()[at].as_f64()))
            }
            ColumnValues::Ids(_) | ColumnValues::Unit(_) => None,
        }
    }
}

fn gather_rows<E: Element>(source: &Dense<E>, rows: &[usize]) -> Result<Dense<E>, FormatError> {
    let row_size = source.shape().row_size();
    let mut values = Vec::with_capacity(rows.len() * row_size);
    append_rows(&mut values, source.values(), row_size, rows);
    Dense::new(source.shape().with_n_rows(rows.len()), values)
}

/// Appends the elements of the given samples, which exist.
#[inline]
pub(super) fn append_rows<E: Element>(
    values: &mut Vec<E>,
    source: &[E],
    row_size: usize,
    rows: &[usize],
) {
    if row_size == 1 {
        values.extend(rows.iter().map(|&row| source[row]));
    } else {
        for &row in rows {
            values.extend_from_slice(&source[row * row_size..(row + 1) * row_size]);
        }
    }
}

impl<T: Float> From<Csr<T>> for ColumnValues<T> {
    fn from(values: Csr<T>) -> Self {
        ColumnValues::Csr(values)
    }
}

impl<T: Float> From<Ids> for ColumnValues<T> {
    fn from(values: Ids) -> Self {
        ColumnValues::Ids(values)
    }
}

macro_rules! from_ids {
    ($($id:ident),*) => {
        $(impl<T: Float> From<Dense<$id>> for ColumnValues<T> {
            fn from(values: Dense<$id>) -> Self {
                ColumnValues::Ids(values.into())
            }
        }

        /// One id a sample.
        impl<T: Float> From<Vec<$id>> for ColumnValues<T> {
            fn from(values: Vec<$id>) -> Self {
                Dense::from(values).into()
            }
        })*
    };
}

from_ids!(u32, u64, i64);

// Not for every `T: Float`: the compiler could not rule out that an id type becomes one.
macro_rules! from_floats {
    ($($float:ty),*) => {
        $(impl From<Dense<$float>> for ColumnValues<$float> {
            fn from(values: Dense<$float>) -> Self {
                ColumnValues::Dense(values)
            }
        }

        impl From<Csr<Unit>> for ColumnValues<$float> {
            fn from(values: Csr<Unit>) -> Self {
                ColumnValues::Unit(values)
            }
        }

        /// One number a sample.
        impl From<Vec<$float>> for ColumnValues<$float> {
            fn from(values: Vec<$float>) -> Self {
                ColumnValues::Dense(values.into())
            }
        })*
    };
}

from_floats!(f32, f64);
#[cfg(feature = "half")]
from_floats!(sparse_core::element::f16, sparse_core::element::bf16);

/// `` label `y`: dense f32 [1000], -1 to 1 ``.
impl<T: Float> fmt::Display for Column<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Column { name, role, values, divided } = self;
        f.write_str(role_name(*role))?;
        if let Some(name) = name {
            write!(f, " `{}`", Escaped(name))?;
        }
        let (storage, element) = (values.storage(), values.element());
        write!(f, ": {storage} {element} {}", values.shape())?;
        let mut non_zeros = |nnz: usize| {
            let a_row = nnz as f64 / values.n_rows().max(1) as f64;
            write!(f, ", {nnz} non-zeros ({a_row:.1} a row)")
        };
        match values {
            ColumnValues::Csr(csr) => non_zeros(csr.nnz()),
            ColumnValues::Unit(csr) => non_zeros(csr.nnz()),
            ColumnValues::Dense(dense) => {
                let values = dense.values().iter().copied();
                match (values.clone().reduce(T::min), values.reduce(T::max)) {
                    (Some(smallest), Some(largest)) => write!(f, ", {smallest} to {largest}"),
                    _ => Ok(()),
                }
            }
            ColumnValues::Ids(_) => Ok(()),
        }?;
        let threads = match divided {
            Some(Divided::Csr(divided)) => divided.n_parts(),
            Some(Divided::Unit(divided)) => divided.n_parts(),
            None => return Ok(()),
        };
        write!(f, ", divided for {threads} threads")
    }
}

impl<T: Float> fmt::Debug for Column<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
