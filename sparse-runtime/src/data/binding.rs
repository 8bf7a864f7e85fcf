//! Which array of the data serves which declaration of a model: names, types and labels, settled once.

use super::error::role_name;
use super::{ColumnValues, DataError, Dataset, Labels};
use crate::formats::{Csr, Dense, Shape};
use crate::model::{Extent, InputInfo, InputRole, LabelKind};
use sparse_core::element::{Element, Float};

/// All rows of the array that serves one declaration, with the rank declared.
pub(super) enum Bound<'s, T: Float> {
    Csr(&'s Csr<T>),
    Dense(BoundDense<'s, T>),
    Ids(BoundDense<'s, u32>),
    /// A label that nobody will read; the shape has no rows.
    Ignored(Shape),
}

/// The values of a dense array, and the shape under which they fit.
///
/// Invariant: `values` are `shape.n_rows()` rows of `row_size` elements.
#[derive(Clone, Copy)]
pub(super) struct BoundDense<'s, E> {
    pub(super) shape: Shape,
    pub(super) row_size: usize,
    pub(super) values: &'s [E],
}

impl<'s, E: Element> BoundDense<'s, E> {
    /// `shape` has as many elements as the array.
    fn new(array: &'s Dense<E>, shape: Shape) -> Self {
        BoundDense {
            shape,
            row_size: shape.row_size(),
            values: array.values(),
        }
    }
}

/// Finds and checks an array for every declaration, in the order of the declarations. Reads each label once.
pub(super) fn bind<'s, T: Float>(
    data: &'s Dataset<T>,
    inputs: &[InputInfo],
    labels: Labels,
) -> Result<Vec<Bound<'s, T>>, DataError> {
    let positions = resolve(data, inputs, labels)?;
    inputs
        .iter()
        .zip(positions)
        .map(|(declared, position)| match position {
            Some(position) => bind_column(data, position, declared),
            None => Ok(Bound::Ignored(without_rows(declared))),
        })
        .collect()
}

/// The column of each declaration: by name, else by role and order among the columns that no declaration names.
/// `None` for a label that is not needed.
fn resolve<T: Float>(
    data: &Dataset<T>,
    inputs: &[InputInfo],
    labels: Labels,
) -> Result<Vec<Option<usize>>, DataError> {
    let columns = data.columns();
    let by_name = |declared: &InputInfo| {
        columns
            .iter()
            .position(|column| column.name() == Some(declared.name))
    };
    let needed =
        |declared: &InputInfo| labels == Labels::Required || declared.role == InputRole::Input;
    let mut taken = vec![false; columns.len()];
    for position in inputs.iter().filter_map(by_name) {
        taken[position] = true;
    }
    inputs
        .iter()
        .map(|declared| {
            if !needed(declared) {
                return Ok(None);
            }
            let by_order =
                || (0..columns.len()).find(|&i| !taken[i] && columns[i].role() == declared.role);
            let position = by_name(declared)
                .or_else(by_order)
                .ok_or_else(|| missing(data, declared))?;
            taken[position] = true;
            Ok(Some(position))
        })
        .collect()
}

fn missing<T: Float>(data: &Dataset<T>, declared: &InputInfo) -> DataError {
    let names: Vec<String> = (0..data.columns().len())
        .map(|position| data.column_name(position).to_string())
        .collect();
    DataError::Missing {
        role: role_name(declared.role),
        declared: declared.name.to_owned(),
        available: names.join(", "),
    }
}

fn bind_column<'s, T: Float>(
    data: &'s Dataset<T>,
    position: usize,
    declared: &InputInfo,
) -> Result<Bound<'s, T>, DataError> {
    let values = data.columns()[position].values();
    let column = || data.column_name(position);
    let name = || declared.name.to_owned();
    if values.storage() != declared.storage {
        return Err(DataError::WrongStorage {
            declared: name(),
            expected: declared.storage,
            column: column(),
            found: values.storage(),
        });
    }
    if declared.label == LabelKind::Class && values.element().is_float() {
        return Err(DataError::LabelNotClass {
            column: column(),
            declared: name(),
        });
    }
    if values.element() != declared.element {
        return Err(DataError::WrongElement {
            declared: name(),
            expected: declared.element,
            column: column(),
            found: values.element(),
        });
    }
    let shape = fit(values.shape(), declared.shape).ok_or_else(|| DataError::WrongShape {
        declared: name(),
        expected: declared.shape.to_vec(),
        column: column(),
        found: values.shape(),
    })?;
    Ok(match values {
        ColumnValues::Csr(csr) => Bound::Csr(csr),
        ColumnValues::Ids(ids) => Bound::Ids(BoundDense::new(ids, shape)),
        ColumnValues::Dense(dense) => {
            if declared.label == LabelKind::Binary
                && let Some(at) = dense.values().iter().position(|&label| !is_binary(label))
            {
                return Err(DataError::LabelNotBinary {
                    column: column(),
                    row: at / dense.shape().row_size().max(1),
                    value: dense.values()[at].as_f64(),
                    declared: name(),
                });
            }
            Bound::Dense(BoundDense::new(dense, shape))
        }
    })
}

fn is_binary<T: Float>(label: T) -> bool {
    label == -T::one() || (label >= T::zero() && label <= T::one())
}

/// The shape under which an array fits a declaration. The number of rows is free; one element a row may be
/// written with any rank; other ranks and all constant extents must agree.
fn fit(found: Shape, declared: &[Extent]) -> Option<Shape> {
    let rank = declared.len();
    let shape = if found.rank() == rank {
        found
    } else if rank > 0 && found.rank() > 0 && found.row_size() == 1 {
        let mut extents = vec![1; rank];
        extents[0] = found.n_rows();
        Shape::try_new(&extents).ok()?
    } else {
        return None;
    };
    let agrees = |(&found, &declared): (&usize, &Extent)| match declared {
        Extent::Constant(expected) => found == expected,
        Extent::Named(_) => true,
    };
    shape
        .iter()
        .zip(declared)
        .skip(1)
        .all(agrees)
        .then_some(shape)
}

/// The declared shape with no rows, and no elements where an extent is not constant.
fn without_rows(declared: &InputInfo) -> Shape {
    let extents = declared.shape.iter().enumerate();
    let extents: Vec<usize> = extents
        .map(|(axis, extent)| match extent {
            Extent::Constant(extent) if axis > 0 => *extent,
            _ => 0,
        })
        .collect();
    Shape::try_new(&extents).unwrap_or_default()
}
