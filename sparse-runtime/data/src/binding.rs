//! Binds the arrays of data to the declarations of a model: names, types and labels, resolved once.

use super::error::role_name;
use super::{ColumnName, ColumnValues, DataError, Dataset, Labels};
use nnz_arrays::formats::{CsrView, IdsView, Shape};
use nnz_arrays::in_library;
use nnz_step::model::{Extent, InputInfo, InputRole, LabelKind};
use sparse_core::element::{Element, Float, Unit};
use sparse_core::storage::ElementType;

/// All samples of the array for one declaration, with the declared rank.
pub(super) enum Bound<'s, T: Float> {
    Csr(CsrView<'s, T>),
    Unit(CsrView<'s, Unit>),
    Dense(BoundDense<'s, T>),
    /// Ids, and the shape in which they fit.
    Ids(IdsView<'s>, Shape),
    /// A label that is not read; the shape has no rows.
    Ignored(Shape, ElementType),
}

/// The values of a dense array, and the shape in which they fit.
///
/// Invariant: `values` are `shape.n_rows()` rows of `row_size` elements.
#[derive(Clone, Copy)]
pub(super) struct BoundDense<'s, E> {
    pub(super) shape: Shape,
    pub(super) row_size: usize,
    pub(super) values: &'s [E],
}

impl<'s, E: Element> BoundDense<'s, E> {
    /// `shape` has as many elements as there are values.
    pub(super) fn new(values: &'s [E], shape: Shape) -> Self {
        BoundDense { shape, row_size: shape.row_size(), values }
    }
}

/// Finds and checks an array for every declaration, in the order of the declarations. Reads each
/// label once.
pub(super) fn bind<'s, T: Float>(
    data: &'s Dataset<T>,
    inputs: &[InputInfo],
    labels: Labels,
) -> Result<Vec<Bound<'s, T>>, DataError> {
    in_library!(<T> bind_columns::<T> => <'d>(
        data: &'d Dataset<T>,
        inputs: &[InputInfo],
        labels: Labels,
    ) -> Result<Vec<Bound<'d, T>>, DataError>)
}

fn bind_columns<'s, T: Float>(
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
            None => Ok(Bound::Ignored(declared.without_rows(), declared.element)),
        })
        .collect()
}

/// The column of each declaration: by name, otherwise by role and order among the columns that no
/// declaration names. `None` for a label that is not needed.
pub(super) fn resolve<T: Float>(
    data: &Dataset<T>,
    inputs: &[InputInfo],
    labels: Labels,
) -> Result<Vec<Option<usize>>, DataError> {
    let columns = data.columns();
    let by_name = |declared: &InputInfo| {
        columns.iter().position(|column| column.name() == Some(declared.name))
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
            let position =
                by_name(declared).or_else(by_order).ok_or_else(|| missing(data, declared))?;
            taken[position] = true;
            Ok(Some(position))
        })
        .collect()
}

fn missing<T: Float>(data: &Dataset<T>, declared: &InputInfo) -> DataError {
    let names: Vec<String> =
        (0..data.columns().len()).map(|position| data.column_name(position).to_string()).collect();
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
    let found = &data.columns()[position];
    let values = found.values();
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
        return Err(DataError::LabelNotClass { column: column(), declared: name() });
    }
    // Values that are all 1 are a pattern.
    let is_pattern =
        declared.element == ElementType::Unit && matches!(values, ColumnValues::Csr(_));
    if values.element() != declared.element && !is_pattern {
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
        found: Box::new(values.shape()),
    })?;
    Ok(match values {
        ColumnValues::Unit(csr) => Bound::Unit(found.unit_view(csr)),
        ColumnValues::Csr(csr) if is_pattern => {
            let units = csr.view().units();
            Bound::Unit(units.map_err(|error| DataError::not_unit(error, column(), declared.name))?)
        }
        ColumnValues::Csr(csr) => {
            let entries = csr.iter_rows().enumerate();
            let labels =
                entries.flat_map(|(row, entries)| entries.map(move |(_, value)| (row, value)));
            check_labels(declared, labels, column)?;
            Bound::Csr(found.csr_view(csr))
        }
        ColumnValues::Ids(ids) => Bound::Ids(ids.view(), shape),
        ColumnValues::Dense(dense) => {
            let row_size = dense.shape().row_size().max(1);
            let each = dense.values().iter().enumerate();
            check_labels(declared, each.map(|(at, &label)| (at / row_size, label)), column)?;
            Bound::Dense(BoundDense::new(dense.values(), shape))
        }
    })
}

/// Checks that labels, each with its sample, are accepted by the loss that reads them.
fn check_labels<T: Float>(
    declared: &InputInfo,
    mut labels: impl Iterator<Item = (usize, T)>,
    column: impl Fn() -> ColumnName,
) -> Result<(), DataError> {
    if let LabelKind::Real | LabelKind::Class = declared.label {
        return Ok(());
    }
    // The first label of each way to write the negative class.
    let (mut minus_one, mut fraction) = (None, None);
    let misfit = labels.find(|(row, label)| {
        if *label == -T::one() {
            minus_one = minus_one.or(Some(*row));
        } else if *label != T::one() {
            fraction = fraction.or(Some((*row, *label)));
        }
        !declared.label.fits(*label)
    });
    let declared_name = declared.name.to_owned();
    let Some((row, value)) = misfit else {
        return match (declared.label, minus_one, fraction) {
            (LabelKind::Binary, Some(row), Some((other_row, other))) => {
                let (value, other) = (-1.0, other.as_f64());
                let (column, declared) = (column(), declared_name);
                Err(DataError::LabelsMixed { column, row, value, other_row, other, declared })
            }
            _ => Ok(()),
        };
    };
    let (column, value) = (column(), value.as_f64());
    Err(match declared.label {
        LabelKind::Count => {
            DataError::LabelNotCount { column, row, value, declared: declared_name }
        }
        _ => DataError::LabelNotBinary { column, row, value, declared: declared_name },
    })
}

/// The shape in which an array fits a declaration. The number of samples is free; one element a
/// sample may have any rank; other ranks and all constant extents must agree.
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
    shape.iter().zip(declared).skip(1).all(agrees).then_some(shape)
}

/// The declared shape with no rows, and no elements where an extent is not constant.
#[cfg(test)]
mod tests {
    use super::*;
    use nnz_arrays::formats::Csr;
    use sparse_core::storage::ElementType::{F32, F64, U32, U64};
    use sparse_core::storage::Storage::{self, Csr as Sparse, Dense as Full, RowSparse};

    const N: Extent = Extent::Named("n");

    fn declare(
        name: &'static str,
        role: InputRole,
        storage: Storage,
        element: ElementType,
        shape: &'static [Extent],
        label: LabelKind,
    ) -> InputInfo {
        InputInfo { name, role, storage, element, shape, label }
    }

    fn input(name: &'static str) -> InputInfo {
        declare(name, InputRole::Input, Sparse, F32, &[N, Extent::Named("d")], LabelKind::Real)
    }

    fn label(name: &'static str, kind: LabelKind) -> InputInfo {
        let element = if kind == LabelKind::Class { U32 } else { F32 };
        declare(name, InputRole::Label, Full, element, &[N, Extent::Constant(1)], kind)
    }

    /// A csr input of this width, so that it can be distinguished from others.
    fn csr(n_cols: usize) -> Csr {
        Csr::zeros(2, n_cols)
    }

    fn unnamed(labels: [f32; 2]) -> Dataset {
        Dataset::new(csr(3), labels.to_vec()).unwrap()
    }

    #[track_caller]
    fn refused(data: &Dataset, inputs: &[InputInfo]) -> String {
        match bind(data, inputs, Labels::Required) {
            Err(error) => error.to_string(),
            Ok(_) => panic!("bound"),
        }
    }

    /// The widths of the csr arrays that were bound.
    fn widths(data: &Dataset, inputs: &[InputInfo]) -> Vec<usize> {
        let bound = bind(data, inputs, Labels::Required).unwrap();
        let width = |bound: &Bound<'_, f32>| match bound {
            Bound::Csr(csr) => csr.n_cols(),
            _ => panic!("not csr"),
        };
        bound.iter().map(width).collect()
    }

    #[test]
    fn by_name_first_then_by_role_and_order() {
        let data = Dataset::<f32>::builder()
            .input("a", csr(1))
            .input("b", csr(2))
            .label("y", vec![0.0f32, 1.0])
            .input("c", csr(3))
            .build()
            .unwrap();
        assert_eq!(widths(&data, &[input("c"), input("a"), input("b")]), [3, 1, 2]);
        assert_eq!(widths(&data, &[input("u"), input("v"), input("w")]), [1, 2, 3]);
        // A column that some declaration names is not taken by order, wherever that declaration
        // stands.
        assert_eq!(widths(&data, &[input("u"), input("a"), input("v")]), [2, 1, 3]);
        assert_eq!(widths(&data, &[input("b")]), [2]);
        let message = refused(&data, &[input("u"), input("v"), input("w"), input("z")]);
        assert_eq!(
            message,
            "the model's input `z` has no data: the data has the input `a`, the input `b`, the label `y`, the input `c`; add it by `.input(\"z\", values)` of `Dataset::builder()`"
        );
    }

    #[test]
    fn labels_may_be_ignored_but_not_missing() {
        let data = Dataset::features_only(csr(3)).unwrap();
        let inputs = [input("x"), label("y", LabelKind::Real)];
        assert!(refused(&data, &inputs).starts_with("the model's label `y` has no data"));
        let bound = bind(&data, &inputs, Labels::Ignored).unwrap();
        assert!(matches!(&bound[1], Bound::Ignored(shape, F32) if shape[..] == [0, 1]));
        // An invalid label is not looked at either.
        let data = unnamed([7.0, 8.0]);
        assert!(bind(&data, &[input("x"), label("y", LabelKind::Binary)], Labels::Ignored).is_ok());
    }

    #[test]
    fn types_are_checked() {
        let data = unnamed([0.0, 1.0]);
        let mut dense = input("x");
        dense.storage = Full;
        assert_eq!(
            refused(&data, &[dense]),
            "`x` is declared `dense`, but the input (column 0) is `csr`: convert it, or change the declaration"
        );
        dense.storage = RowSparse;
        assert!(refused(&data, &[dense]).starts_with("`x` is declared `row_sparse`"));
        let mut wide = input("x");
        wide.element = F64;
        assert_eq!(
            refused(&data, &[wide]),
            "`x` is declared with elements `f64`, but the input (column 0) has `f32`: convert it, or change the declaration"
        );
        let ids =
            Dataset::<f32>::builder().input("x", csr(3)).label("y", vec![1u32, 0]).build().unwrap();
        assert!(refused(&ids, &[label("y", LabelKind::Binary)]).contains("has `u32`"));
        assert!(bind(&ids, &[label("y", LabelKind::Class)], Labels::Required).is_ok());
        let wide = InputInfo { element: U64, ..label("y", LabelKind::Class) };
        assert_eq!(
            refused(&ids, &[wide]),
            "`y` is declared with elements `u64`, but the label `y` has `u32`: convert it, or change the declaration"
        );
        assert_eq!(
            refused(&data, &[label("y", LabelKind::Class)]),
            "`y` is a class id, but the label (column 1) holds real numbers: turn them into ids by `data.into_classes()`"
        );
    }

    #[test]
    fn constant_extents_are_checked() {
        let data = unnamed([0.0, 1.0]);
        let mut narrow = input("x");
        narrow.shape = &[N, Extent::Constant(3)];
        assert!(bind(&data, &[narrow], Labels::Required).is_ok());
        narrow.shape = &[N, Extent::Constant(4)];
        assert_eq!(
            refused(&data, &[narrow]),
            "`x` is declared [n, 4], but the input (column 0) has the shape [2, 3]"
        );
    }

    #[test]
    fn one_number_a_row_takes_the_rank_declared() {
        for found in [&[2][..], &[2, 1], &[2, 1, 1]] {
            for declared in
                [&[N][..], &[N, Extent::Constant(1)], &[N, Extent::Named("k"), Extent::Constant(1)]]
            {
                let shape = fit(Shape::new(found), declared).unwrap();
                assert_eq!(
                    (shape.rank(), shape.n_rows(), shape.row_size()),
                    (declared.len(), 2, 1)
                );
            }
        }
        let fits =
            |found: &[usize], declared: &[Extent]| fit(Shape::new(found), declared).is_some();
        assert!(!fits(&[2, 3], &[N]));
        assert!(!fits(&[2, 3], &[N, Extent::Constant(1)]));
        assert!(!fits(&[2], &[N, Extent::Constant(3)]));
        assert!(!fits(&[2], &[]));
        assert!(fits(&[2, 3], &[N, Extent::Named("k")]));
        // The first extent is the rows of a batch, not of the data.
        assert!(fits(&[2, 3], &[Extent::Constant(32), Extent::Named("k")]));
    }

    #[test]
    fn binary_labels_are_checked() {
        let count = [label("y", LabelKind::Count)];
        assert!(bind(&unnamed([0.0, 7.5]), &count, Labels::Required).is_ok());
        assert_eq!(
            refused(&unnamed([2.0, -1.0]), &count),
            "row 1 of the label (column 1) is -1: `y` is read by a loss of counts or probabilities, which are not negative"
        );
        let sparse = Csr::from_rows(1, [vec![(0, 1.0f32)], vec![(0, 3.0)]]).unwrap();
        let builder = Dataset::<f32>::builder().input("x", csr(3));
        let data = builder.label("y", sparse).build().unwrap();
        let mut declared = label("y", LabelKind::Binary);
        declared.storage = Sparse;
        assert!(refused(&data, &[declared]).starts_with("row 1 of the label `y` is 3"));
        let binary = [label("y", LabelKind::Binary)];
        for good in [-1.0, -0.0, 0.0, 0.25, 1.0] {
            assert!(bind(&unnamed([1.0, good]), &binary, Labels::Required).is_ok());
        }
        for bad in [-0.5, 1.5, 2.0, -2.0] {
            let message = refused(&unnamed([1.0, bad]), &binary);
            assert!(
                message.starts_with(&format!(
                    "row 1 of the label (column 1) is {bad}: `y` is read by a binary loss"
                )),
                "{message}"
            );
        }
        assert!(
            bind(&unnamed([5.0, -7.0]), &[label("y", LabelKind::Real)], Labels::Required).is_ok()
        );
    }

    #[test]
    fn d13_labels_of_minus_one_and_zero_in_one_file_are_refused_by_binary_losses() {
        let data =
            |labels: [f32; 3]| Dataset::<f32>::new(Csr::zeros(3, 3), labels.to_vec()).unwrap();
        for (labels, place) in [
            ([1.0, 0.0, -1.0], "row 2 of the label (column 1) is -1, and row 1 is 0: "),
            ([-1.0, 1.0, 0.25], "row 0 of the label (column 1) is -1, and row 2 is 0.25: "),
        ] {
            let message = refused(&data(labels), &[label("y", LabelKind::Binary)]);
            assert!(message.starts_with(place), "{message}");
            assert!(message.contains("both the negative class"), "{message}");
            assert!(bind(&data(labels), &[label("y", LabelKind::Real)], Labels::Required).is_ok());
            assert!(bind(&data(labels), &[label("y", LabelKind::Binary)], Labels::Ignored).is_ok());
        }
        for labels in [[1.0, -1.0, -1.0], [1.0, 0.0, 0.5]] {
            assert!(
                bind(&data(labels), &[label("y", LabelKind::Binary)], Labels::Required).is_ok()
            );
        }
    }
}
