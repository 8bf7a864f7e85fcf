//! The table rows that a batch reads and writes, known before a step runs.

use super::{Extent, Model, ModelError};
use crate::error::Result;
use nnz_arrays::formats::{CsrView, DenseView, IdsView, RowIdsView, RowSparseView};
use nnz_arrays::in_library;
use nnz_arrays::kernels::index_set::IndexSet;
use sparse_core::element::{Float, Unit};

/// An input or label of a batch, by [`Model::input`].
#[derive(Clone, Copy, Debug)]
pub enum InputView<'a, T: Float> {
    /// A csr array.
    Csr(CsrView<'a, T>),
    /// A csr array that holds a pattern only.
    Unit(CsrView<'a, Unit>),
    /// A dense array of numbers.
    Dense(DenseView<'a, T>),
    /// A dense array of ids.
    Ids(IdsView<'a>),
    /// A row_sparse array.
    RowSparse(RowSparseView<'a, T>),
}

impl<T: Float> InputView<'_, T> {
    /// Visits the columns or ids, once for each occurrence.
    pub(crate) fn visit(self, visit: &mut dyn FnMut(usize) -> Result<()>) -> Result<()> {
        let view = self;
        in_library!(<T> visit_ids::<T> => (
            view: InputView<'_, T>,
            visit: &mut dyn FnMut(usize) -> Result<()>,
        ) -> Result<()>)
    }
}

fn visit_ids<T: Float>(
    view: InputView<'_, T>,
    visit: &mut dyn FnMut(usize) -> Result<()>,
) -> Result<()> {
    match view {
        InputView::Csr(array) => array.iter_columns().try_for_each(visit),
        InputView::Unit(array) => array.iter_columns().try_for_each(visit),
        InputView::Ids(ids) => ids.iter().try_for_each(visit),
        InputView::Dense(_) | InputView::RowSparse(_) => Ok(()),
    }
}

/// A set of rows of a parameter, given by the inputs that name them. The compiler derives it from
/// the model's operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowSet {
    /// Every row, for any batch.
    All,
    /// The columns that occur in these csr inputs, and the ids in these arrays of ids: positions in
    /// [`Model::INPUTS`]. Empty without any.
    Of(&'static [usize]),
}

impl RowSet {
    /// Visits the rows that a batch names, unless these are all: once for each occurrence, in the
    /// order of the inputs; a negative id as `usize::MAX`. O(entries of the inputs). Compiled once
    /// for a model, for any `visit`: otherwise every update rule would have a copy.
    /// # Errors
    ///
    /// The first error of `visit`.
    pub fn visit<M: Model>(
        self,
        batch: &M::Batch<'_>,
        visit: &mut dyn FnMut(usize) -> Result<()>,
    ) -> Result<()> {
        let RowSet::Of(inputs) = self else {
            return Ok(());
        };
        for input in inputs {
            if let Some(view) = M::input(batch, *input) {
                view.visit(visit)?;
            }
        }
        Ok(())
    }

    /// The first id of a batch that is not below the number of rows.
    fn beyond<M: Model>(self, batch: &M::Batch<'_>, n_rows: usize) -> Option<ModelError> {
        let RowSet::Of(inputs) = self else {
            return None;
        };
        inputs.iter().find_map(|input| {
            let name = M::INPUTS[*input].name;
            let width = |n_cols: usize| {
                (n_cols != n_rows).then(|| match M::INPUTS[*input].shape.get(1) {
                    Some(Extent::Named(dim)) => {
                        ModelError::features(M::NAME, name, dim, n_cols, n_rows)
                    }
                    _ => ModelError::extent(M::NAME, name, 1, n_cols, n_rows),
                })
            };
            match M::input(batch, *input)? {
                InputView::Csr(array) => width(array.n_cols()),
                InputView::Unit(array) => width(array.n_cols()),
                InputView::Ids(ids) => {
                    let (position, _) = ids.first_beyond(n_rows)?;
                    Some(ModelError::id(M::NAME, name, ids, position, n_rows))
                }
                _ => None,
            }
        })
    }
}

/// A buffer for the rows of one batch after the other. [`Model::rows_read`] and
/// [`Model::rows_written`] write into it, and allocate nothing once it has seen the widest
/// parameter and the largest batch.
///
/// Memory: 8 bytes for each row of the largest batch, and a fifth of a byte for each row of the
/// widest parameter, mapped where batches touch it.
#[derive(Clone, Debug, Default)]
pub struct RowIds {
    set: IndexSet,
    ids: Vec<u64>,
}

impl RowIds {
    /// An empty buffer.
    pub fn new() -> Self {
        RowIds::default()
    }

    /// The rows of a set, ascending and distinct.
    pub(super) fn of<M: Model>(
        &mut self,
        rows: RowSet,
        batch: &M::Batch<'_>,
        n_rows: usize,
    ) -> Result<RowIdsView<'_>> {
        self.ids.clear();
        if rows == RowSet::All {
            return Ok(RowIdsView::All);
        }
        if let Some(error) = rows.beyond::<M>(batch, n_rows) {
            return Err(error.into());
        }
        self.collect(n_rows, &mut |visit| rows.visit::<M>(batch, visit))
    }
}

/// Calls what it is given with each row.
type VisitAll<'v> = &'v mut dyn FnMut(&mut dyn FnMut(usize) -> Result<()>) -> Result<()>;

impl RowIds {
    /// The rows that are visited, ascending and distinct.
    fn collect(&mut self, n_rows: usize, visit_all: VisitAll<'_>) -> Result<RowIdsView<'_>> {
        self.set.begin(n_rows);
        visit_all(&mut |row| {
            self.set.insert(row);
            Ok(())
        })?;
        self.set.finish(|row| self.ids.push(row as u64));
        Ok(RowIdsView::Listed(self.ids.as_slice()))
    }
}

/// The rows of a parameter, by its declared shape and the model's dimensions.
pub(super) fn n_rows<M: Model>(model: &M, parameter: usize) -> Result<usize> {
    let Some(info) = M::PARAMETERS.get(parameter) else {
        let known = M::PARAMETERS.len();
        return Err(ModelError::NoParameter { model: M::NAME, index: parameter, known }.into());
    };
    Ok(match info.shape.first() {
        None => 1,
        Some(Extent::Constant(extent)) => *extent,
        Some(Extent::Named(name)) => model.dims().get(name).unwrap_or(0),
    })
}
