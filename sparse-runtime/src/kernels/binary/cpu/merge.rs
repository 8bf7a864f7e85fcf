//! Two sparse operands of one shape, merged by their sorted ids.

use crate::formats::{
    ColumnId, ColumnIdsView, Csr, CsrView, RowSparse, RowSparseView, with_id_type,
};
use sparse_core::element::Float;
use std::cmp::Ordering;

/// Ascending ids of one row. With the usual width they are a slice; otherwise each is looked up by its type, which costs
/// a branch and saves compiling every function for every pair of types.
trait Columns: Copy {
    fn len(self) -> usize;
    fn at(self, position: usize) -> usize;
}

impl Columns for &[u32] {
    #[inline(always)]
    fn len(self) -> usize {
        <[u32]>::len(self)
    }

    #[inline(always)]
    fn at(self, position: usize) -> usize {
        self[position].at()
    }
}

impl Columns for ColumnIdsView<'_> {
    #[inline(always)]
    fn len(self) -> usize {
        ColumnIdsView::len(&self)
    }

    #[inline(always)]
    fn at(self, position: usize) -> usize {
        // Positions are below `len`.
        self.get(position).unwrap_or_default()
    }
}

/// What either matrix stores; results equal to 0 are dropped.
pub(super) fn union_csr<T: Float>(
    out: &mut Csr<T>,
    lhs: CsrView<'_, T>,
    rhs: CsrView<'_, T>,
    f: impl Fn(T, T) -> T + Copy,
) {
    merge_rows(out, lhs, rhs, Union(f));
}

/// What both matrices store, results equal to 0 included.
pub(super) fn intersection_csr<T: Float>(
    out: &mut Csr<T>,
    lhs: CsrView<'_, T>,
    rhs: CsrView<'_, T>,
    f: impl Fn(T, T) -> T + Copy,
) {
    merge_rows(out, lhs, rhs, Intersection(f));
}

/// What the left matrix stores, results equal to 0 included.
pub(super) fn left_csr<T: Float>(
    out: &mut Csr<T>,
    lhs: CsrView<'_, T>,
    rhs: CsrView<'_, T>,
    f: impl Fn(T, T) -> T + Copy,
) {
    merge_rows(out, lhs, rhs, Left(f));
}

/// What becomes of the entries of two rows.
trait Merge<T>: Copy {
    fn row(self, lhs: (impl Columns, &[T]), rhs: (impl Columns, &[T]), push: impl FnMut(usize, T));
}

#[derive(Clone, Copy)]
struct Union<F>(F);

#[derive(Clone, Copy)]
struct Intersection<F>(F);

#[derive(Clone, Copy)]
struct Left<F>(F);

impl<T: Float, F: Fn(T, T) -> T + Copy> Merge<T> for Union<F> {
    #[inline]
    fn row(
        self,
        (left, x): (impl Columns, &[T]),
        (right, y): (impl Columns, &[T]),
        mut push: impl FnMut(usize, T),
    ) {
        let f = self.0;
        let mut push = |column, value: T| {
            if value != T::zero() {
                push(column, value);
            }
        };
        let (mut i, mut j) = (0, 0);
        while i < left.len() && j < right.len() {
            let (a, b) = (left.at(i), right.at(j));
            match a.cmp(&b) {
                Ordering::Less => push(a, f(x[i], T::zero())),
                Ordering::Greater => push(b, f(T::zero(), y[j])),
                Ordering::Equal => push(a, f(x[i], y[j])),
            }
            i += usize::from(a <= b);
            j += usize::from(b <= a);
        }
        (i..left.len()).for_each(|i| push(left.at(i), f(x[i], T::zero())));
        (j..right.len()).for_each(|j| push(right.at(j), f(T::zero(), y[j])));
    }
}

impl<T: Float, F: Fn(T, T) -> T + Copy> Merge<T> for Intersection<F> {
    #[inline]
    fn row(
        self,
        (left, x): (impl Columns, &[T]),
        (right, y): (impl Columns, &[T]),
        mut push: impl FnMut(usize, T),
    ) {
        let f = self.0;
        let (mut i, mut j) = (0, 0);
        while i < left.len() && j < right.len() {
            let (a, b) = (left.at(i), right.at(j));
            if a == b {
                push(a, f(x[i], y[j]));
            }
            i += usize::from(a <= b);
            j += usize::from(b <= a);
        }
    }
}

impl<T: Float, F: Fn(T, T) -> T + Copy> Merge<T> for Left<F> {
    #[inline]
    fn row(
        self,
        (left, x): (impl Columns, &[T]),
        (right, y): (impl Columns, &[T]),
        mut push: impl FnMut(usize, T),
    ) {
        let mut j = 0;
        for (i, &x) in x.iter().enumerate() {
            let column = left.at(i);
            while j < right.len() && right.at(j) < column {
                j += 1;
            }
            let matched = j < right.len() && right.at(j) == column;
            push(column, (self.0)(x, if matched { y[j] } else { T::zero() }));
        }
    }
}

fn merge_rows<T: Float>(
    out: &mut Csr<T>,
    lhs: CsrView<'_, T>,
    rhs: CsrView<'_, T>,
    merge: impl Merge<T>,
) {
    let n_cols = lhs.n_cols();
    debug_assert_eq!((lhs.n_rows(), n_cols), (rhs.n_rows(), rhs.n_cols()));
    with_id_type!(n_cols, |I| out.rebuild::<I, _>(n_cols, |parts| {
        for row in 0..lhs.n_rows() {
            let (columns, x) = lhs.row(row).unwrap_or_default();
            let (others, y) = rhs.row(row).unwrap_or_default();
            let push = |column, value| parts.push(I::from_index(column), value);
            match (columns, others) {
                (ColumnIdsView::U32(columns), ColumnIdsView::U32(others)) => {
                    merge.row((columns, x), (others, y), push);
                }
                _ => merge.row((columns, x), (others, y), push),
            }
            parts.finish_row();
        }
    }));
}

/// The rows that either array stores.
pub(super) fn union_row_sparse<T: Float>(
    out: &mut RowSparse<T>,
    lhs: RowSparseView<'_, T>,
    rhs: RowSparseView<'_, T>,
    f: impl Fn(T, T) -> T + Copy,
) {
    debug_assert_eq!(lhs.shape(), rhs.shape());
    out.rebuild(*lhs.shape(), |ids, values| {
        let (mut left, mut right) = (lhs.iter_rows().peekable(), rhs.iter_rows().peekable());
        loop {
            let order = match (left.peek(), right.peek()) {
                (Some((a, _)), Some((b, _))) => a.cmp(b),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (None, None) => break,
            };
            let x = if order.is_le() { left.next() } else { None };
            let y = if order.is_ge() { right.next() } else { None };
            match (x, y) {
                (Some((id, x)), None) => {
                    ids.push(id as u64);
                    values.extend(x.iter().map(|&x| f(x, T::zero())));
                }
                (None, Some((id, y))) => {
                    ids.push(id as u64);
                    values.extend(y.iter().map(|&y| f(T::zero(), y)));
                }
                (Some((id, x)), Some((_, y))) => {
                    ids.push(id as u64);
                    values.extend(x.iter().zip(y).map(|(&x, &y)| f(x, y)));
                }
                (None, None) => break,
            }
        }
    });
}

/// The rows that both arrays store, looked up from the smaller one.
pub(super) fn intersection_row_sparse<T: Float>(
    out: &mut RowSparse<T>,
    lhs: RowSparseView<'_, T>,
    rhs: RowSparseView<'_, T>,
    f: impl Fn(T, T) -> T + Copy,
) {
    debug_assert_eq!(lhs.shape(), rhs.shape());
    out.rebuild(*lhs.shape(), |ids, values| {
        let mut push = |id: usize, x: &[T], y: &[T]| {
            ids.push(id as u64);
            values.extend(x.iter().zip(y).map(|(&x, &y)| f(x, y)));
        };
        if lhs.n_stored() <= rhs.n_stored() {
            for (id, x) in lhs.iter_rows() {
                if let Some(y) = rhs.row(id) {
                    push(id, x, y);
                }
            }
        } else {
            for (id, y) in rhs.iter_rows() {
                if let Some(x) = lhs.row(id) {
                    push(id, x, y);
                }
            }
        }
    });
}

/// The rows that the left array stores.
pub(super) fn left_row_sparse<T: Float>(
    out: &mut RowSparse<T>,
    lhs: RowSparseView<'_, T>,
    rhs: RowSparseView<'_, T>,
    f: impl Fn(T, T) -> T + Copy,
) {
    debug_assert_eq!(lhs.shape(), rhs.shape());
    out.rebuild(*lhs.shape(), |ids, values| {
        for (id, x) in lhs.iter_rows() {
            ids.push(id as u64);
            match rhs.row(id) {
                Some(y) => values.extend(x.iter().zip(y).map(|(&x, &y)| f(x, y))),
                None => values.extend(x.iter().map(|&x| f(x, T::zero()))),
            }
        }
    });
}

/// The rows that the left array stores; the right one is 0 where it stores nothing.
pub(super) fn left_row_sparse_csr<T: Float>(
    out: &mut RowSparse<T>,
    lhs: RowSparseView<'_, T>,
    rhs: CsrView<'_, T>,
    f: impl Fn(T, T) -> T + Copy,
) {
    out.rebuild(*lhs.shape(), |ids, values| {
        for (id, x) in lhs.iter_rows() {
            ids.push(id as u64);
            let start = values.len();
            values.extend(x.iter().map(|&x| f(x, T::zero())));
            let (columns, stored) = rhs.row(id).unwrap_or_default();
            for (column, &y) in columns.iter().zip(stored) {
                values[start + column] = f(x[column], y);
            }
        }
    });
}
