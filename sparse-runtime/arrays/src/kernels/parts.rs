//! Parts of arrays by positions along each axis, and parts put back among zeros.

use super::strided::Strided;
use crate::formats::{
    ColumnId, Csr, CsrView, Dense, DenseView, MAX_RANK, RowIdsView, RowSparse, RowSparseView,
    Shape, with_id_type,
};
use crate::with_column_ids;
use sparse_core::element::Float;
use sparse_core::ir::{Axes, List};
use sparse_core::shapes::{Span, place_of};
use std::ops::Range;

/// Positions along each axis of an array.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    shape: Shape,
    spans: [Span; MAX_RANK],
}

impl Part {
    /// The whole array.
    fn whole(shape: Shape) -> Self {
        let mut spans = [Span::all(1); MAX_RANK];
        for (span, &extent) in spans.iter_mut().zip(shape.iter()) {
            *span = Span::all(extent);
        }
        Part { shape, spans }
    }

    /// `begin:end:step` of each axis.
    pub(crate) fn of_lists(
        shape: Shape,
        begin: Option<List>,
        end: Option<List>,
        step: Option<List>,
    ) -> Self {
        let [begin, end, step] = [begin, end, step].map(Option::unwrap_or_default);
        let mut part = Part::whole(shape);
        for axis in 0..shape.rank() {
            let (begin, end, step) = (begin.get(axis), end.get(axis), step.get(axis));
            part.spans[axis] = Span::new(begin, end, step, shape[axis]);
        }
        part
    }

    /// `begin:end:step` of one axis.
    pub(crate) fn of_axis(
        shape: Shape,
        axis: i64,
        begin: Option<List>,
        end: Option<List>,
        step: Option<List>,
    ) -> Self {
        let [begin, end, step] = [begin, end, step].map(|list| list.and_then(|list| list.get(0)));
        let mut part = Part::whole(shape);
        if let Some(axis) = place_of(axis, shape.rank()) {
            part.spans[axis] = Span::new(begin, end, step, shape[axis]);
        }
        part
    }

    /// As many as another array has along some axes, the first or the last ones.
    pub(crate) fn like(shape: Shape, like: &Shape, axes: Axes, from_end: bool) -> Self {
        let mut part = Part::whole(shape);
        for axis in (0..shape.rank()).filter(|axis| axes.contain(*axis, shape.rank())) {
            let wanted = like.get(axis).copied().unwrap_or(shape[axis]);
            part.spans[axis] = Span::at_end(wanted, shape[axis], from_end);
        }
        part
    }

    /// The first two as the `spans` of the kernels of a GPU: starts, steps and numbers.
    #[cfg(feature = "cuda")]
    pub(crate) fn on_gpu(&self) -> [u64; 6] {
        let [rows, columns, ..] = self.spans;
        let numbers = |of: Span| [of.start as u64, of.step as u64, of.len as u64];
        let ([a, b, c], [d, e, f]) = (numbers(rows), numbers(columns));
        [a, d, b, e, c, f]
    }

    /// The shape of the whole array.
    #[cfg(feature = "cuda")]
    pub(crate) fn whole_shape(&self) -> Shape {
        self.shape
    }

    /// The shape of the part.
    pub(crate) fn extents(&self) -> Shape {
        let mut extents = [1; MAX_RANK];
        for (extent, span) in extents.iter_mut().zip(&self.spans) {
            *extent = span.len;
        }
        Shape::new(&extents[..self.shape.rank()])
    }

    /// Where the elements of the part lie in the array, or in a row of it.
    pub(crate) fn strided(&self, axes: Range<usize>) -> Strided {
        let mut steps = [1; MAX_RANK];
        for axis in (axes.start..axes.end.saturating_sub(1)).rev() {
            steps[axis] = steps[axis + 1] * self.shape[axis + 1];
        }
        let start = axes.clone().map(|axis| self.spans[axis].start * steps[axis]).sum();
        axes.fold(Strided::at(start), |strided, axis| {
            strided
                .axis(self.spans[axis].len, self.spans[axis].step as isize * steps[axis] as isize)
        })
    }

    /// Whether rows are kept whole.
    fn keeps_rows_whole(&self) -> bool {
        (1..self.shape.rank()).all(|axis| self.spans[axis].is_all(self.shape[axis]))
    }

    /// The part of a dense array. O(size of the part).
    pub(crate) fn of_dense<T: Float>(&self, out: &mut Dense<T>, x: DenseView<'_, T>) {
        out.reset_for_overwrite(self.extents());
        self.strided(0..self.shape.rank()).gather(out.values_mut(), x.values());
    }

    /// The part of a csr matrix. O(rows of the part · log nnz of a row + entries between its columns).
    pub(crate) fn of_csr<T: Float>(&self, out: &mut Csr<T>, x: CsrView<'_, T>) {
        let [rows, columns, ..] = self.spans;
        let (least, most) = columns.bounds();
        with_id_type!(columns.len, |I| out.rebuild::<I, _>(columns.len, |parts| {
            with_column_ids!(x.columns(), |ids| {
                for row in (0..rows.len).map(|row| rows.at(row)) {
                    let start = x.starts()[row] as usize;
                    let row = &ids[start..x.ends()[row] as usize];
                    let from = start + row.partition_point(|id| id.at() < least);
                    let to = start + row.partition_point(|id| id.at() < most);
                    let mut keep = |position: usize| {
                        if let Some(column) = columns.find(ids[position].at()) {
                            parts.push(I::from_index(column), x.values()[position]);
                        }
                    };
                    match columns.step < 0 {
                        true => (from..to).rev().for_each(&mut keep),
                        false => (from..to).for_each(&mut keep),
                    }
                    parts.finish_row();
                }
            });
        }));
    }

    /// The part of a row_sparse array: rows that it does not store are not stored. O(log rows stored + elements of the rows
    /// stored between the ends of the part).
    pub(crate) fn of_row_sparse<T: Float>(&self, out: &mut RowSparse<T>, x: RowSparseView<'_, T>) {
        let rows = self.spans[0];
        let stored = stored_between(x, rows.bounds());
        let inner = self.strided(1..self.shape.rank());
        let whole = self.keeps_rows_whole();
        out.rebuild(self.extents(), |ids, values| {
            let mut keep = |position: usize| {
                let id = x.row_id(position).and_then(|id| rows.find(id));
                let (Some(id), Some(row)) = (id, x.stored_row(position)) else { return };
                ids.push(id as u64);
                if whole {
                    values.extend_from_slice(row);
                } else {
                    let start = values.len();
                    values.resize(start + inner.size(), T::zero());
                    inner.gather(&mut values[start..], row);
                }
            };
            match rows.step < 0 {
                true => stored.rev().for_each(&mut keep),
                false => stored.for_each(&mut keep),
            }
        });
    }

    /// Zeros, and a dense array as the part. O(size of the whole).
    pub(crate) fn place_dense<T: Float>(&self, out: &mut Dense<T>, part: DenseView<'_, T>) {
        out.reset(self.shape);
        self.strided(0..self.shape.rank()).scatter(out.values_mut(), part.values(), |x| x);
    }

    /// A csr matrix as the part of one that stores nothing else. O(rows of the whole + entries).
    pub(crate) fn place_csr<T: Float>(&self, out: &mut Csr<T>, part: CsrView<'_, T>) {
        let [rows, columns, ..] = self.spans;
        let n_cols = self.shape.row_size();
        with_id_type!(n_cols, |I| out.rebuild::<I, _>(n_cols, |parts| {
            with_column_ids!(part.columns(), |ids| {
                for row in 0..self.shape.n_rows() {
                    if let Some(row) = rows.find(row) {
                        let mut keep = |position: usize| {
                            let column = columns.at(ids[position].at());
                            parts.push(I::from_index(column), part.values()[position]);
                        };
                        let entries = part.starts()[row] as usize..part.ends()[row] as usize;
                        match columns.step < 0 {
                            true => entries.rev().for_each(&mut keep),
                            false => entries.for_each(&mut keep),
                        }
                    }
                    parts.finish_row();
                }
            });
        }));
    }

    /// A row_sparse array as the part of one that stores no other rows. O(rows stored · size of a whole row).
    pub(crate) fn place_row_sparse<T: Float>(
        &self,
        out: &mut RowSparse<T>,
        part: RowSparseView<'_, T>,
    ) {
        let rows = self.spans[0];
        let inner = self.strided(1..self.shape.rank());
        let row_size = self.shape.row_size();
        out.rebuild(self.shape, |ids, values| {
            let mut keep = |position: usize| {
                let (Some(id), Some(row)) = (part.row_id(position), part.stored_row(position))
                else {
                    return;
                };
                ids.push(rows.at(id) as u64);
                let start = values.len();
                values.resize(start + row_size, T::zero());
                inner.scatter(&mut values[start..], row, |x| x);
            };
            match rows.step < 0 {
                true => (0..part.n_stored()).rev().for_each(&mut keep),
                false => (0..part.n_stored()).for_each(&mut keep),
            }
        });
    }

    /// A dense array as the part of a row_sparse one that stores no other rows.
    pub(crate) fn place_rows<T: Float>(&self, out: &mut RowSparse<T>, part: DenseView<'_, T>) {
        self.place_row_sparse(out, RowSparseView::table(*part.shape(), part.values()));
    }
}

/// The positions of the stored rows whose ids are between two bounds.
fn stored_between<T: Float>(
    x: RowSparseView<'_, T>,
    (least, most): (usize, usize),
) -> Range<usize> {
    match x.indices() {
        RowIdsView::All => least..most,
        RowIdsView::Listed(ids) => {
            let position = |bound: usize| ids.partition_point(|&id| id < bound as u64);
            position(least)..position(most)
        }
    }
}
