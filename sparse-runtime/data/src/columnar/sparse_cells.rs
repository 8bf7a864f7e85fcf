//! The entries of sparse rows in arrays of Arrow.

use super::cell::{Cells, list_of};
use crate::text::CsrChunk;
use crate::{Excerpt, Problem};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, StructArray};
use arrow_schema::DataType;
use sparse_core::element::Float;

/// Whether indices may have a type.
pub(super) fn is_index(data_type: &DataType) -> bool {
    data_type.is_integer()
}

/// Whether values and labels may have a type.
pub(super) fn is_value(data_type: &DataType) -> bool {
    data_type.is_integer()
        || matches!(data_type, DataType::Float32 | DataType::Float64 | DataType::Boolean)
}

/// Numbers of one of several types.
macro_rules! numbers {
    ($Name:ident, $doc:literal, $($Variant:ident: $Type:ident),*) => {
        #[doc = $doc]
        enum $Name<'a> {
            $($Variant(&'a [<$Type as arrow_array::types::ArrowPrimitiveType>::Native]),)*
        }

        impl<'a> $Name<'a> {
            fn of(array: &'a ArrayRef) -> Option<Self> {
                $(
                    if let Some(array) = array.as_primitive_opt::<$Type>() {
                        return Some($Name::$Variant(array.values()));
                    }
                )*
                None
            }
        }
    };
}

numbers!(
    Indices, "Indices.", I8: Int8Type, I16: Int16Type, I32: Int32Type, I64: Int64Type,
    U8: UInt8Type, U16: UInt16Type, U32: UInt32Type, U64: UInt64Type
);
numbers!(
    Values, "Values.", F32: Float32Type, F64: Float64Type, I8: Int8Type, I16: Int16Type,
    I32: Int32Type, I64: Int64Type, U8: UInt8Type, U16: UInt16Type, U32: UInt32Type,
    U64: UInt64Type
);

impl Indices<'_> {
    /// An index, if it is at least 0 and below 2⁶³.
    #[inline]
    fn at(&self, at: usize) -> Result<u64, String> {
        let signed = |index: i64| u64::try_from(index).map_err(|_| index.to_string());
        match self {
            Indices::I32(of) => signed(of[at].into()),
            Indices::U32(of) => Ok(of[at].into()),
            Indices::I64(of) => signed(of[at]),
            Indices::I8(of) => signed(of[at].into()),
            Indices::I16(of) => signed(of[at].into()),
            Indices::U8(of) => Ok(of[at].into()),
            Indices::U16(of) => Ok(of[at].into()),
            Indices::U64(of) if of[at] >> 63 != 0 => Err(of[at].to_string()),
            Indices::U64(of) => Ok(of[at]),
        }
    }
}

impl Values<'_> {
    #[inline]
    fn at(&self, at: usize) -> f64 {
        match self {
            Values::F32(of) => of[at].into(),
            Values::F64(of) => of[at],
            Values::I8(of) => of[at].into(),
            Values::I16(of) => of[at].into(),
            Values::I32(of) => of[at].into(),
            Values::I64(of) => of[at] as f64,
            Values::U8(of) => of[at].into(),
            Values::U16(of) => of[at].into(),
            Values::U32(of) => of[at].into(),
            Values::U64(of) => of[at] as f64,
        }
    }
}

/// Lists of numbers.
struct Lists<'a, N> {
    lists: &'a dyn Array,
    ranges: Vec<(usize, usize)>,
    elements: &'a ArrayRef,
    numbers: N,
}

impl<'a, N> Lists<'a, N> {
    fn of(array: &'a ArrayRef, numbers: impl Fn(&'a ArrayRef) -> Option<N>) -> Option<Self> {
        let (ranges, elements) = list_of(array)?;
        Some(Lists { lists: array, ranges, elements, numbers: numbers(elements)? })
    }

    /// Where the elements of a row are: nowhere if it is null.
    #[inline]
    fn range(&self, row: usize) -> (usize, usize) {
        if self.lists.is_null(row) { (0, 0) } else { self.ranges[row] }
    }

    /// Whether an element of a range is null.
    fn has_null(&self, (start, end): (usize, usize)) -> bool {
        let nulls = self.elements.nulls().filter(|nulls| nulls.null_count() > 0);
        nulls.is_some_and(|nulls| (start..end).any(|at| nulls.is_null(at)))
    }
}

/// The entries of the rows of a batch.
pub(super) struct Entries<'a> {
    indices: Lists<'a, Indices<'a>>,
    values: Lists<'a, Values<'a>>,
    /// Of Spark's vectors: the vectors, their types and their sizes.
    vectors: Option<(&'a StructArray, &'a ArrayRef, Indices<'a>, &'a ArrayRef, Indices<'a>)>,
}

/// How entries become those of a row.
pub(super) struct SparseRow {
    /// What the first feature's index is.
    pub(super) one: u64,
    pub(super) n_features: Option<u64>,
    /// The number of features of the present row, if it is known.
    pub(super) size: Option<u64>,
    pub(super) sorts: bool,
    pub(super) adds: bool,
    pub(super) ignores_unknown: bool,
    /// The entries of a row that are sorted.
    pub(super) unsorted: Vec<(u64, f64)>,
}

/// The position of the column at fault, and the problem.
type Refused = (usize, Problem);

impl<'a> Entries<'a> {
    pub(super) fn of_lists(indices: &'a ArrayRef, values: &'a ArrayRef) -> Option<Self> {
        let indices = Lists::of(indices, Indices::of)?;
        Some(Entries { indices, values: Lists::of(values, Values::of)?, vectors: None })
    }

    pub(super) fn of_vectors(vectors: &'a StructArray) -> Option<Self> {
        let (kinds, sizes) = (vectors.column_by_name("type")?, vectors.column_by_name("size")?);
        let indices = Lists::of(vectors.column_by_name("indices")?, Indices::of)?;
        let values = Lists::of(vectors.column_by_name("values")?, Values::of)?;
        let vectors = (vectors, kinds, Indices::of(kinds)?, sizes, Indices::of(sizes)?);
        Some(Entries { indices, values, vectors: Some(vectors) })
    }

    /// Appends the entries of a row.
    pub(super) fn push<T: Float>(
        &mut self,
        row: usize,
        how: &mut SparseRow,
        csr: &mut CsrChunk<T>,
    ) -> Result<(), Refused> {
        let expected = |column, expected, found: String| {
            (column, Problem::Expected { expected, found: Excerpt::line(found.as_bytes()) })
        };
        let values_column = usize::from(self.vectors.is_none());
        how.size = how.n_features;
        if let Some((vectors, kinds, kind, sizes, size)) = &self.vectors {
            if vectors.is_null(row) || kinds.is_null(row) {
                return Err(expected(0, "a vector", "null".to_owned()));
            }
            let is_dense = kind.at(row) == Ok(1);
            let (start, end) = self.values.range(row);
            let size = if is_dense {
                (end - start) as u64
            } else {
                let size = if sizes.is_null(row) { Err("null".to_owned()) } else { size.at(row) };
                size.map_err(|found| expected(0, "the size of a vector", found))?
            };
            // All rows are as wide as the widest, unless that was declared.
            if how.n_features.is_none() {
                csr.n_cols = csr.n_cols.max(usize::try_from(size).ok());
                how.size = Some(size);
            }
            if is_dense {
                if self.values.has_null((start, end)) {
                    return Err(expected(0, "numbers", "null".to_owned()));
                }
                for at in start..end {
                    let value = self.values.numbers.at(at);
                    if value != 0.0 {
                        how.push(csr, (at - start) as u64, value)
                            .map_err(|problem| (0, problem))?;
                    }
                }
                return Ok(());
            }
        }
        let (indices, values) = (self.indices.range(row), self.values.range(row));
        let n = indices.1 - indices.0;
        if n != values.1 - values.0 {
            let found = format!("{n} and {}", values.1 - values.0);
            return Err(expected(values_column, "as many values as indices", found));
        }
        if self.indices.has_null(indices) {
            return Err(expected(0, "indices", "null".to_owned()));
        }
        if self.values.has_null(values) {
            return Err(expected(values_column, "numbers", "null".to_owned()));
        }
        how.unsorted.clear();
        let mut previous = None;
        for at in 0..n {
            let index = self.indices.numbers.at(indices.0 + at);
            let index = index.map_err(|found| expected(0, "an index from 0 to 2^63", found))?;
            let value = self.values.numbers.at(values.0 + at);
            let column = index.checked_sub(how.one).ok_or((0, Problem::IndexZero))?;
            if how.sorts {
                how.unsorted.push((column, value));
                continue;
            }
            if let Some(previous) = previous.filter(|previous| *previous >= index) {
                return Err((0, not_ascending(index, previous)));
            }
            previous = Some(index);
            how.push(csr, column, value).map_err(|problem| at_fault(problem, values_column))?;
        }
        how.push_sorted(csr).map_err(|problem| at_fault(problem, values_column))
    }
}

/// The column of a problem: of its index, or of its value.
#[cold]
fn at_fault(problem: Problem, values_column: usize) -> Refused {
    let is_value = matches!(
        problem,
        Problem::ValueNotFinite { .. }
            | Problem::ValueBeyondRange { .. }
            | Problem::SumNotFinite { .. }
    );
    (if is_value { values_column } else { 0 }, problem)
}

#[cold]
fn not_ascending(index: u64, previous: u64) -> Problem {
    if index == previous {
        Problem::DuplicateIndex { index }
    } else {
        Problem::DescendingIndex { index, previous }
    }
}

impl SparseRow {
    /// Appends an entry whose column is above those before it.
    #[inline]
    fn push<T: Float>(
        &self,
        csr: &mut CsrChunk<T>,
        column: u64,
        value: f64,
    ) -> Result<(), Problem> {
        let index = column + self.one;
        if let Some(n_features) = self.size.filter(|n_features| column >= *n_features) {
            if self.ignores_unknown {
                return Ok(());
            }
            return Err(Problem::BeyondDeclared { index, n_features, base: self.one });
        }
        let narrow = T::of(value);
        if !narrow.is_finite() {
            let found = Excerpt::line(value.to_string().as_bytes());
            return Err(if value.is_finite() {
                Problem::ValueBeyondRange { index, found, element: T::TYPE }
            } else {
                Problem::ValueNotFinite { index, found }
            });
        }
        csr.push(column, narrow);
        Ok(())
    }

    /// Appends the entries that wait to be sorted.
    fn push_sorted<T: Float>(&mut self, csr: &mut CsrChunk<T>) -> Result<(), Problem> {
        // Stable: values of one column are added in the order of the row.
        self.unsorted.sort_by_key(|&(column, _)| column);
        let entries = std::mem::take(&mut self.unsorted);
        let mut rest = entries.iter().copied().peekable();
        while let Some((column, mut value)) = rest.next() {
            while let Some((_, more)) = rest.next_if(|(next, _)| *next == column) {
                let index = column + self.one;
                if !self.adds {
                    return Err(Problem::DuplicateIndex { index });
                }
                value += more;
                if !value.is_finite() {
                    return Err(Problem::SumNotFinite { index });
                }
            }
            self.push(csr, column, value)?;
        }
        drop(rest);
        self.unsorted = entries;
        Ok(())
    }
}

/// The cells of a label or a weight.
pub(super) struct LabelCells<'a>(Cells<'a>);

impl<'a> LabelCells<'a> {
    pub(super) fn of(array: &'a ArrayRef) -> Self {
        LabelCells(Cells::of(array))
    }

    /// The number of a row, or what was expected and what was found.
    pub(super) fn number<T: Float>(
        &self,
        row: usize,
        is_weight: bool,
    ) -> Result<T, (&'static str, Excerpt)> {
        let mut buffer = String::new();
        let value = match &self.0 {
            Cells::Float32(array) if array.is_valid(row) => Some(f64::from(array.value(row))),
            cells => cells.number(row),
        };
        let narrow = value.map(T::of).filter(|value| value.is_finite());
        let found = |buffer: &mut String| Excerpt::line(&self.0.text(row, buffer));
        match narrow {
            None => Err(("a finite number", found(&mut buffer))),
            Some(value) if is_weight && value < T::zero() => {
                Err(("a weight of at least 0", found(&mut buffer)))
            }
            Some(value) => Ok(value),
        }
    }
}
