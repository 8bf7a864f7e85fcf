//! Rows of sums for runs of columns, each on a thread.

use nnz_device::thread_pool::{self, MAX_PARTS};
use std::mem::MaybeUninit;
use std::ops::Range;

/// Calls `find` with each of several runs of columns, which follow each other and are all that
/// there are: with their places in `ids`, their rows of sums, how many elements lie in front of
/// these, and the run. It moves the rows that occur to the front of those that it got, writes their
/// columns, and says how many; here they become one run from the front on. Says how many there are
/// in all.
pub(super) fn each_range<A: Copy + Send + Sync>(
    ids: &mut [MaybeUninit<u64>],
    sums: &mut [A],
    lead: usize,
    width: usize,
    ranges: impl Iterator<Item = Range<usize>>,
    find: &(impl Fn(&mut [MaybeUninit<u64>], &mut [A], usize, Range<usize>) -> usize + Sync),
) -> usize {
    let (mut rest, mut n_parts) = ((&mut *ids, &mut *sums), 0);
    let mut pieces = [const { None }; MAX_PARTS];
    for (piece, columns) in pieces.iter_mut().zip(ranges) {
        // The first part has what lies in front of all rows.
        let lead = if n_parts == 0 { lead } else { 0 };
        let (ids, more_ids) = rest.0.split_at_mut(columns.len());
        let (sums, more_sums) = rest.1.split_at_mut(lead + columns.len() * width);
        *piece = Some((columns, ids, sums, lead, 0));
        (rest, n_parts) = ((more_ids, more_sums), n_parts + 1);
    }
    thread_pool::each(&mut pieces[..n_parts], |_, piece| {
        if let Some((columns, ids, sums, lead, found)) = piece {
            *found = find(ids, sums, *lead, columns.clone());
        }
    });
    let found =
        pieces.map(|piece| piece.map_or((0, 0), |(columns, .., found)| (columns.start, found)));
    let mut all = 0;
    for (place, (start, found)) in found.into_iter().enumerate() {
        // The first part is where it belongs, the others move up to where the one before them
        // ended.
        if place > 0 {
            move_down(ids, start, all, found, n_parts);
            move_down(sums, lead + start * width, all * width, found * width, n_parts);
        }
        all += found;
    }
    all
}

/// Copies `len` elements from one place to an earlier one, on as many threads as there are to be
/// parts if the two do not overlap.
fn move_down<T: Copy + Send + Sync>(
    elements: &mut [T],
    from: usize,
    to: usize,
    len: usize,
    parts: usize,
) {
    if to + len > from {
        return elements.copy_within(from..from + len, to);
    }
    let (before, after) = elements.split_at_mut(from);
    let piece = len.div_ceil(parts).max(1);
    let mut copies = before[to..to + len].chunks_mut(piece).zip(after[..len].chunks(piece));
    let mut pieces = [const { None }; MAX_PARTS];
    pieces[..parts].iter_mut().for_each(|piece| *piece = copies.next());
    thread_pool::each(&mut pieces[..parts], |_, piece| {
        if let Some((to, from)) = piece {
            to.copy_from_slice(from);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::{Csr, CsrView, Dense};
    use crate::kernels::dot::cpu::by_column::some_columns;
    use crate::kernels::dot::cpu::gemm::Matrix;
    use crate::kernels::value::ValueOf;

    #[test]
    fn ranges_of_columns_have_the_bits_of_all_at_once() {
        let entry = |row: usize, column: usize| (column, 0.1 + (row * 31 + column * 7 % 90) as f32);
        // Rows that have entries of every part, of the last alone, of the first alone, and none.
        let rows = (0..90).map(|row| match row % 9 {
            0 => vec![],
            1 => vec![entry(row, N_COLS - 1)],
            2 => vec![entry(row, 0)],
            step => (row % 5..N_COLS).step_by(step).map(|column| entry(row, column)).collect(),
        });
        let x = Csr::from_rows(N_COLS, rows).unwrap();
        parts_have_the_bits_of_all_at_once(x.view(), N_COLS);
        let mut parts = x.into_parts();
        parts.values.fill(1.0);
        let pattern = Csr::from_parts(parts).unwrap();
        parts_have_the_bits_of_all_at_once(pattern.view().units().unwrap(), N_COLS);
        // All entries in one column, of one part; and one row that has all of them.
        for column in [0, N_COLS / 2, N_COLS - 1] {
            let rows = (0..90).map(|row| [entry(row, column)]);
            parts_have_the_bits_of_all_at_once(Csr::from_rows(N_COLS, rows).unwrap().view(), 1);
        }
        let whole: Vec<_> = (0..N_COLS).map(|column| entry(0, column)).collect();
        let rows = (0..90).map(|row| if row == 40 { whole.clone() } else { vec![] });
        parts_have_the_bits_of_all_at_once(Csr::from_rows(N_COLS, rows).unwrap().view(), N_COLS);
    }

    const N_COLS: usize = 150;

    /// Products with a matrix of 90 rows in which so many columns occur.
    fn parts_have_the_bits_of_all_at_once<V: ValueOf<f32>>(x: CsrView<'_, V>, n_occurring: usize) {
        let number = |row: usize, column: usize| 0.3 - ((row * 7 + column) % 17) as f32;
        for width in [1, 3, 16, 20] {
            let rows = (0..90).flat_map(|row| (0..width).map(move |column| number(row, column)));
            let rows = Dense::new([90, width], rows.collect()).unwrap();
            // The same by columns.
            let columns = (0..width).flat_map(|column| (0..90).map(move |row| number(row, column)));
            let columns = Dense::new([width, 90], columns.collect()).unwrap();
            let right = [(&rows, false), (&columns, true)];
            let cases = right.into_iter().flat_map(|y| [1, 2, 3, 5].map(|n_parts| (n_parts, y)));
            let products = Vec::from_iter(cases.map(|(n_parts, (y, transpose))| {
                let lead = 3 * n_parts - 3;
                let mut ids = vec![MaybeUninit::new(0); N_COLS];
                let mut sums = vec![-0.0f32; lead + N_COLS * width];
                let ranges =
                    (0..n_parts).map(|part| N_COLS * part / n_parts..N_COLS * (part + 1) / n_parts);
                let rhs = Matrix::new(y.view(), transpose);
                let find = |ids: &mut [_], sums: &mut [_], lead, columns| {
                    some_columns(ids, sums, lead, x, rhs, columns)
                };
                let found = each_range(&mut ids, &mut sums, lead, width, ranges, &find);
                sums.truncate(found * width);
                sums.iter().map(|sum| sum.to_bits()).collect::<Vec<_>>()
            }));
            assert!(products.iter().all(|bits| *bits == products[0]), "width {width}");
            assert_eq!(products[0].len(), n_occurring * width);
        }
    }

    #[test]
    fn elements_move_to_the_front_in_parts_or_at_once() {
        for (from, to, len) in
            [(5, 5, 10), (5, 2, 10), (50, 3, 47), (50, 4, 47), (60, 0, 1), (9, 0, 0)]
        {
            for parts in [1, 2, 5] {
                let mut elements = Vec::from_iter(0..100);
                move_down(&mut elements, from, to, len, parts);
                let moved = to..to + len;
                for (place, element) in elements.iter().enumerate() {
                    let came_from = if moved.contains(&place) { place + from - to } else { place };
                    assert_eq!(*element, came_from, "{len} from {from} to {to} in {parts}");
                }
            }
        }
    }
}
