//! Gradients as the result of a pass over a batch, for whoever changes them before an update: a
//! step clipped by a norm, a difference of two gradients, a worker's share.
//!
//! The terms of each table row are summed in `f64`, in the order of the samples, as those of a step
//! are. The rows of a gradient are then brought in order, once.

use super::one_pass::OnePass;
use super::program::{Program, TrainedTable};
use super::sink::{Body, Sink};
use super::table_reads::TableFacts;
use super::table_rows::{SumOfPart, TableRows};
use crate::column_partition::RowPart;
use crate::error::Result;
use crate::optimizer::{OptimizerError, RowAccumulator, RowWeights};
use nnz_arrays::formats::{ColumnIdsView, RowSparse, Shape};
use nnz_arrays::kernels::index_set::IndexSet;
use nnz_arrays::with_column_ids;
use nnz_device::prefetch::is_far;
use nnz_device::thread_pool;
use sparse_core::element::Float;
use sparse_core::passes::MOST_PARAMETERS;

/// Puts the gradient of each table into [`TrainedTable::gradient`]; that of a dense parameter is in
/// [`TrainedDense::gradient`](super::program::TrainedDense::gradient) already. Weights stay as they
/// are. Keeps memory from batch to batch: 4 bytes for each row of a table in pages that batches
/// name, and what the rows of the largest batch take.
#[derive(Clone, Debug, Default)]
pub(crate) struct GradientSink {
    /// By the positions of the tables.
    tables: Vec<SummedRows>,
}

/// What is summed of one table.
#[derive(Clone, Debug)]
struct SummedRows {
    sums: RowAccumulator,
    order: RowOrder,
}

/// What brings summed rows in order.
#[derive(Clone, Debug, Default)]
struct RowOrder {
    /// Of one part.
    set: IndexSet,
    ids: Vec<u64>,
    /// Of several.
    sorted: Vec<Summed>,
}

/// A row that was summed: ordered by the row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Summed {
    row: usize,
    part: u32,
    slot: u32,
}

impl GradientSink {
    /// Empty sums for rows of these tables.
    fn make_room<T: Float>(&mut self, tables: &[TrainedTable<'_, T>]) {
        self.tables.truncate(tables.len());
        for (place, TrainedTable { table, .. }) in tables.iter().enumerate() {
            let (n_rows, row_size) = (table.n_rows(), table.row_size());
            let made = self.tables.get_mut(place);
            match made.filter(|it| (it.sums.n_rows(), it.sums.row_size()) == (n_rows, row_size)) {
                // A pass that panicked may have left some.
                Some(known) => known.sums.clear(),
                None => {
                    self.tables.truncate(place);
                    let sums = RowAccumulator::new(n_rows, row_size);
                    self.tables.push(SummedRows { sums, order: RowOrder::default() });
                }
            }
        }
    }

    fn lend<T: Float<Accumulator = T>, const N: usize>(
        &mut self,
        tables: &mut [TrainedTable<'_, T>],
        body: &mut Body<'_, T>,
    ) -> Result<()> {
        let n_tables = self.tables.len();
        let mut lent = tables.iter_mut().zip(&mut self.tables);
        let mut rows: [Option<CollectedRows<'_, T>>; N] = std::array::from_fn(|_| {
            let (of_table, SummedRows { sums, order }) = lent.next()?;
            let TrainedTable { shape, table, gradient, .. } = of_table;
            let weights = RowWeights::of_values(table.values(), table.row_size());
            Some(CollectedRows { shape: *shape, weights, gradient, sums, order })
        });
        let mut rows = rows.iter_mut();
        let mut objects: [Option<&mut dyn TableRows<T>>; N] =
            std::array::from_fn(|_| Some(rows.next()?.as_mut()? as &mut dyn TableRows<T>));
        body(&mut objects[..n_tables])
    }
}

impl<T: Float<Accumulator = T>> Sink<T> for GradientSink {
    fn records_outputs(&self) -> bool {
        true
    }

    fn begin_step(&mut self) -> Result<()> {
        Ok(())
    }

    fn end_step(&mut self) -> Result<()> {
        Ok(())
    }

    fn sum_samples(
        &mut self,
        _: &mut Program<'_, '_, T>,
        _: &mut OnePass<'_, '_, T>,
    ) -> Option<Result<()>> {
        None
    }

    fn with_tables(
        &mut self,
        tables: &mut [TrainedTable<'_, T>],
        updates: bool,
        body: &mut Body<'_, T>,
    ) -> Result<()> {
        if !updates {
            self.make_room(tables);
        }
        match tables.len() {
            ..=4 => self.lend::<T, 4>(tables, body),
            5..=MOST_PARAMETERS => self.lend::<T, MOST_PARAMETERS>(tables, body),
            count => Err(OptimizerError::TooMany { count, most: MOST_PARAMETERS }.into()),
        }
    }

    fn apply_dense(&mut self, _: usize, _: &mut [T], _: &[T]) -> Result<()> {
        Ok(())
    }
}

/// The rows of a table whose gradient is collected.
struct CollectedRows<'s, T: Float> {
    shape: Shape,
    weights: RowWeights<'s, T>,
    gradient: &'s mut RowSparse<T>,
    sums: &'s mut RowAccumulator,
    order: &'s mut RowOrder,
}

impl<T: Float<Accumulator = T>> TableRows<T> for CollectedRows<'_, T> {
    fn facts(&self) -> TableFacts {
        let (n_rows, row_size) = (self.sums.n_rows(), self.sums.row_size());
        let is_large = is_far(n_rows * row_size * size_of::<T>());
        TableFacts { n_rows, row_size, is_large, only_adds: false, catches_up: false }
    }

    fn prefetch(&mut self, ids: ColumnIdsView<'_>) {
        with_column_ids!(ids, |ids| self.weights.prefetch_each(ids));
    }

    /// The model was settled when its gradients were asked for.
    unsafe fn catch_up(&mut self, _: ColumnIdsView<'_>) {}

    fn weights(&mut self) -> RowWeights<'_, T> {
        self.weights
    }

    fn sums_and_weights(&mut self) -> (&mut RowAccumulator, RowWeights<'_, T>) {
        (&mut *self.sums, self.weights)
    }

    fn apply_sums(&mut self) {
        let CollectedRows { shape, gradient, sums, order, .. } = self;
        write_one(*shape, gradient, order, sums);
        sums.clear();
    }

    fn update_parts(&mut self, parts: &mut [RowPart<T>], sum: &SumOfPart<'_, T>) {
        let weights = self.weights;
        thread_pool::each(parts, |place, part| sum(place, part, weights));
        let mut of_parts = [&*self.sums; thread_pool::MAX_PARTS];
        of_parts.iter_mut().zip(&*parts).for_each(|(sums, part)| *sums = &part.sums);
        write_parts(self.shape, self.gradient, &mut self.order.sorted, &of_parts[..parts.len()]);
        parts.iter_mut().for_each(|part| part.sums.clear());
    }
}

/// Makes the gradient those rows that were summed, in ascending order. O(rows + elements).
fn write_one<T: Float>(
    shape: Shape,
    gradient: &mut RowSparse<T>,
    order: &mut RowOrder,
    sums: &RowAccumulator,
) {
    let RowOrder { set, ids, .. } = order;
    set.begin_with(shape.n_rows(), sums.rows().len());
    set.insert_all(sums.rows().iter().copied());
    ids.clear();
    set.finish(|row| ids.push(row as u64));
    let row_size = shape.row_size().max(1);
    let values = gradient.reset_to_rows(shape, ids.iter().copied());
    for (values, id) in values.chunks_exact_mut(row_size).zip(ids) {
        let sums = sums.sums(sums.slot_of(*id as usize));
        values.iter_mut().zip(sums).for_each(|(value, sum)| *value = T::of(*sum));
    }
}

/// Makes the gradient those rows that were summed, none of them in two parts, in ascending order.
/// O(rows · log(rows) + elements).
fn write_parts<T: Float>(
    shape: Shape,
    gradient: &mut RowSparse<T>,
    order: &mut Vec<Summed>,
    parts: &[&RowAccumulator],
) {
    let row_size = shape.row_size().max(1);
    order.clear();
    for (part, sums) in (0..).zip(parts) {
        let rows = (0..).zip(sums.rows());
        order.extend(rows.map(|(slot, row)| Summed { row: *row, part, slot }));
    }
    order.sort_unstable();
    let ids = order.iter().map(|summed| summed.row as u64);
    let values = gradient.reset_to_rows(shape, ids);
    for (values, Summed { part, slot, .. }) in values.chunks_exact_mut(row_size).zip(order) {
        let sums = parts[*part as usize].sums(*slot as usize);
        values.iter_mut().zip(sums).for_each(|(value, sum)| *value = T::of(*sum));
    }
}
