//! A model with room for the table rows that one step names, numbered anew in each.

use crate::error::Result;
use nnz_arrays::formats::{CsrView, DenseView, IdsView};
use nnz_arrays::kernels::Parallel;
use nnz_arrays::kernels::row_numbers::{NumberedCsr, NumberedIds, RowNumbers};
use nnz_arrays::parameter_memory::Table;
use nnz_step::model::{BatchSource, Extent, InputView, Model, ParameterInfo, RowSet};
use sparse_core::element::{Float, Unit};
use sparse_core::storage::Storage;
use std::marker::PhantomData;

/// A model with tables of as many rows as a step names, and the numbers of these rows.
#[derive(Debug)]
pub(super) struct Compact<M: Model> {
    pub(super) model: M,
    /// The same for the snapshot.
    pub(super) snapshot: Option<M>,
    pub(super) numbering: Numbering<M::Element>,
    parallel: Parallel,
}

/// The rows that a step names, by dimension, and the inputs that name them with their numbers.
#[derive(Debug)]
pub(super) struct Numbering<T> {
    pub(super) lists: Vec<NumberedRows>,
    /// By the position of the input.
    inputs: Vec<Option<Numbered<T>>>,
}

/// The rows of the tables of one dimension.
#[derive(Debug)]
pub(super) struct NumberedRows {
    dimension: &'static str,
    inputs: &'static [usize],
    /// Those of whole tables.
    pub(super) n_rows: usize,
    /// Those that the model's tables have room for.
    room: usize,
    numbers: RowNumbers,
}

/// An input whose columns or ids are numbers of rows: one of the three.
#[derive(Debug)]
struct Numbered<T> {
    list: usize,
    csr: NumberedCsr<T>,
    unit: NumberedCsr<Unit>,
    ids: NumberedIds,
}

impl NumberedRows {
    /// The rows that the step names, ascending.
    pub(super) fn rows(&self) -> &[u64] {
        self.numbers.rows()
    }
}

/// The position of the list of a parameter's rows in [`Model::ROW_DIMENSIONS`].
pub(super) fn list_of<M: Model>(info: &ParameterInfo) -> Option<usize> {
    let Some(Extent::Named(dimension)) = info.shape.first() else { return None };
    M::ROW_DIMENSIONS.iter().position(|known| known == dimension)
}

impl<M: Model> Compact<M> {
    /// A model for the steps of `whole`; none for a model that has other trained tables than those
    /// of its [row dimensions](Model::ROW_DIMENSIONS), or whose frozen ones are read by rows.
    pub(super) fn of(whole: &M, parallel: Parallel) -> Result<Option<Self>> {
        let is_fit = |info: &ParameterInfo| match info.gradient {
            _ if list_of::<M>(info).is_some() => true,
            Some(gradient) => gradient == Storage::Dense,
            None => matches!(info.reads, RowSet::All | RowSet::Of([])),
        };
        if M::ROW_DIMENSIONS.is_empty() || !M::PARAMETERS.iter().all(is_fit) {
            return Ok(None);
        }
        let mut inputs = Vec::from_iter(M::INPUTS.iter().map(|_| None));
        let mut lists = Vec::new();
        for (list, dimension) in M::ROW_DIMENSIONS.iter().enumerate() {
            let mut tables = M::PARAMETERS.iter().filter(|info| list_of::<M>(info) == Some(list));
            let of_inputs = match tables.next().map(|info| info.reads) {
                Some(RowSet::Of(of_inputs)) => of_inputs,
                _ => return Ok(None),
            };
            for input in of_inputs {
                inputs[*input] = Some(Numbered {
                    list,
                    csr: NumberedCsr::default(),
                    unit: NumberedCsr::default(),
                    ids: NumberedIds::default(),
                });
            }
            let n_rows = whole.dims().get(dimension).unwrap_or_default();
            let numbers = RowNumbers::default();
            lists.push(NumberedRows { dimension, inputs: of_inputs, n_rows, room: 0, numbers });
        }
        let numbering = Numbering { lists, inputs };
        let model = with_room(whole, &numbering, parallel)?;
        Ok(Some(Compact { model, snapshot: None, numbering, parallel }))
    }

    /// Numbers the rows that samples of a batch name, and makes room for them. The batch is checked
    /// against the whole model. O(entries of the samples).
    pub(super) fn number<'b, S: BatchSource<'b, M::Element>>(
        &mut self,
        whole: &M,
        samples: &S,
    ) -> Result<()> {
        let batch = whole.bind(samples)?;
        if samples.n_rows() > 0 {
            whole.check_batch(&batch, true)?;
        }
        let Numbering { lists, inputs } = &mut self.numbering;
        let mut is_full = false;
        for list in &mut *lists {
            let named = || list.inputs.iter().filter_map(|input| M::input(&batch, *input));
            list.numbers.begin(list.n_rows, named().map(|view| n_entries(&view)).sum());
            for view in named() {
                match view {
                    InputView::Csr(matrix) => list.numbers.add_columns(matrix),
                    InputView::Unit(matrix) => list.numbers.add_columns(matrix),
                    InputView::Ids(ids) => list.numbers.add_ids(ids),
                    _ => {}
                }
            }
            let n_named = list.numbers.finish();
            if n_named > list.room {
                // Some more, so that a later step with a few more rows needs no other tables.
                list.room = (n_named + n_named / 4).min(list.n_rows).max(n_named);
                is_full = true;
            }
        }
        for (position, numbered) in inputs.iter_mut().enumerate() {
            let Some(Numbered { list, csr, unit, ids }) = numbered else { continue };
            let numbers = &lists[*list].numbers;
            match M::input(&batch, position) {
                Some(InputView::Csr(matrix)) => numbers.number_columns(matrix, csr),
                Some(InputView::Unit(matrix)) => numbers.number_columns(matrix, unit),
                Some(InputView::Ids(view)) => numbers.number_ids(view, ids),
                _ => {}
            }
        }
        if is_full {
            self.model = with_room(&self.model, &self.numbering, self.parallel)?;
            if let Some(snapshot) = &mut self.snapshot {
                *snapshot = with_room(snapshot, &self.numbering, self.parallel)?;
            }
        }
        Ok(())
    }
}

fn n_entries<T: Float>(view: &InputView<'_, T>) -> usize {
    match view {
        InputView::Csr(matrix) => entries_of(matrix.starts(), matrix.ends()),
        InputView::Unit(matrix) => entries_of(matrix.starts(), matrix.ends()),
        InputView::Ids(ids) => ids.len(),
        _ => 0,
    }
}

/// The entries of some rows of a csr.
fn entries_of(starts: &[u64], ends: &[u64]) -> usize {
    starts.iter().zip(ends).map(|(start, end)| (end - start) as usize).sum()
}

/// The model with tables of as many rows as there is room for, all zeros, and the other parameters
/// of `model`.
fn with_room<M: Model>(
    model: &M,
    numbering: &Numbering<M::Element>,
    parallel: Parallel,
) -> Result<M> {
    let mut dims = model.dims().clone();
    for list in &numbering.lists {
        dims = dims.with(list.dimension, list.room);
    }
    let known = model.parameters();
    let mut made = M::from_tables(dims, &mut |name, shape| {
        let (n_rows, row_size) = (shape.n_rows(), shape.row_size());
        let known = M::PARAMETERS.iter().zip(&known).find(|(info, _)| info.name == name);
        Ok(match known {
            Some((info, parameter)) if list_of::<M>(info).is_none() => {
                Table::from_values(row_size, parameter.table.values())
            }
            _ => Table::zeros_on_small_pages(n_rows, row_size),
        })
    })?;
    made.set_parallel(parallel);
    Ok(made)
}

/// Samples of a batch whose inputs have the numbers of rows in place of rows.
pub(super) struct NumberedSamples<'s, 'b, S, T> {
    samples: &'s S,
    numbering: &'s Numbering<T>,
    batch: PhantomData<&'b ()>,
}

impl<'s, S, T> NumberedSamples<'s, '_, S, T> {
    /// Those that were [numbered](Compact::number) last.
    pub(super) fn new(samples: &'s S, numbering: &'s Numbering<T>) -> Self {
        NumberedSamples { samples, numbering, batch: PhantomData }
    }

    fn numbered(&self, index: usize) -> Option<(&'s Numbered<T>, usize)> {
        let numbered = self.numbering.inputs.get(index)?.as_ref()?;
        Some((numbered, self.numbering.lists[numbered.list].room))
    }
}

impl<'s, 'b: 's, T: Float, S: BatchSource<'b, T>> BatchSource<'s, T>
    for NumberedSamples<'s, 'b, S, T>
{
    fn n_rows(&self) -> usize {
        self.samples.n_rows()
    }

    fn csr(&self, index: usize) -> nnz_step::Result<CsrView<'s, T>> {
        match self.numbered(index) {
            Some((numbered, room)) => Ok(numbered.csr.view(room)),
            None => Ok(self.samples.csr(index)?.arrays().view()),
        }
    }

    fn unit(&self, index: usize) -> nnz_step::Result<CsrView<'s, Unit>> {
        match self.numbered(index) {
            Some((numbered, room)) => Ok(numbered.unit.view(room)),
            None => Ok(self.samples.unit(index)?.arrays().view()),
        }
    }

    fn dense(&self, index: usize) -> nnz_step::Result<DenseView<'s, T>> {
        let view = self.samples.dense(index)?;
        Ok(DenseView::table(*view.shape(), view.values()))
    }

    fn ids(&self, index: usize) -> nnz_step::Result<IdsView<'s>> {
        let ids = self.samples.ids(index)?;
        Ok(match self.numbered(index) {
            Some((numbered, _)) => numbered.ids.view(ids),
            None => match ids {
                IdsView::U32(ids) => IdsView::U32(DenseView::table(*ids.shape(), ids.values())),
                IdsView::U64(ids) => IdsView::U64(DenseView::table(*ids.shape(), ids.values())),
                IdsView::I64(ids) => IdsView::I64(DenseView::table(*ids.shape(), ids.values())),
            },
        })
    }
}
