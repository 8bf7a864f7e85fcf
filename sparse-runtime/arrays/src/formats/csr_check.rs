//! What makes the arrays of a csr matrix canonical: the one place that says it in code.

use super::FormatError;
use super::ids::ColumnIndex;

/// Checks every invariant of a csr matrix, in O(n_rows + nnz).
pub(super) fn check<C: ColumnIndex>(
    n_cols: usize,
    indptr: &[u64],
    columns: &[C],
    n_values: usize,
) -> Result<(), FormatError> {
    let (Some(&first), Some(&last)) = (indptr.first(), indptr.last()) else {
        return Err(FormatError::IndptrEmpty);
    };
    if first != 0 {
        return Err(FormatError::IndptrStart { found: first });
    }
    // Before the end, so that the first thing wrong is the thing named.
    for (row, bounds) in indptr.windows(2).enumerate() {
        if bounds[0] > bounds[1] {
            return Err(FormatError::IndptrDecreasing { row, start: bounds[0], end: bounds[1] });
        }
    }
    if last != columns.len() as u64 {
        return Err(FormatError::IndptrEnd { found: last, stored: columns.len() });
    }
    if columns.len() != n_values {
        return Err(FormatError::EntryCount { columns: columns.len(), values: n_values });
    }
    for (row, bounds) in indptr.windows(2).enumerate() {
        let start = bounds[0] as usize;
        check_row(n_cols, row, start, &columns[start..bounds[1] as usize])?;
    }
    Ok(())
}

/// Checks the columns of one row, whose first entry has position `start`.
pub(super) fn check_row<C: ColumnIndex>(
    n_cols: usize,
    row: usize,
    start: usize,
    columns: &[C],
) -> Result<(), FormatError> {
    // Canonical rows without a branch an entry; what is wrong with others is looked for after.
    let ascend = |ascend, (a, b): (&C, &C)| ascend & (a.to_u64() < b.to_u64());
    if columns.iter().zip(columns.iter().skip(1)).fold(true, ascend)
        && columns.last().is_none_or(|last| last.to_u64() < n_cols as u64)
    {
        return Ok(());
    }
    let mut previous = None;
    for (offset, &column) in columns.iter().enumerate() {
        check_column(n_cols, row, start + offset, previous, column.to_u64())?;
        previous = Some(column.to_u64());
    }
    Ok(())
}

#[inline]
pub(super) fn check_column(
    n_cols: usize,
    row: usize,
    position: usize,
    previous: Option<u64>,
    column: u64,
) -> Result<(), FormatError> {
    if previous.is_none_or(|previous| previous < column) && column < n_cols as u64 {
        return Ok(());
    }
    Err(match previous {
        _ if column >= n_cols as u64 => {
            FormatError::ColumnOutOfRange { row, position, column, n_cols }
        }
        Some(previous) if previous > column => {
            FormatError::ColumnUnsorted { row, position, column, previous }
        }
        _ => FormatError::ColumnDuplicate { row, position, column },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::Csr;
    use proptest::prelude::*;

    fn error(n_cols: usize, indptr: &[u64], columns: &[u32], n_values: usize) -> FormatError {
        Csr::new(n_cols, indptr.to_vec(), columns.to_vec(), vec![1.0f32; n_values]).unwrap_err()
    }

    #[test]
    fn every_invariant_has_its_error() {
        assert_eq!(error(3, &[], &[], 0), FormatError::IndptrEmpty);
        assert_eq!(error(3, &[1, 1], &[0], 1), FormatError::IndptrStart { found: 1 });
        assert_eq!(
            error(3, &[0, 2, 1, 2], &[0, 1], 2),
            FormatError::IndptrDecreasing { row: 1, start: 2, end: 1 }
        );
        assert_eq!(error(3, &[0, 1], &[0, 1], 2), FormatError::IndptrEnd { found: 1, stored: 2 });
        assert_eq!(
            error(3, &[0, 2], &[0, 1], 3),
            FormatError::EntryCount { columns: 2, values: 3 }
        );
        assert_eq!(
            error(3, &[0, 1, 3], &[0, 1, 3], 3),
            FormatError::ColumnOutOfRange { row: 1, position: 2, column: 3, n_cols: 3 }
        );
        assert_eq!(
            error(3, &[0, 1, 3], &[2, 1, 0], 3),
            FormatError::ColumnUnsorted { row: 1, position: 2, column: 0, previous: 1 }
        );
        assert_eq!(
            error(3, &[0, 0, 2], &[1, 1], 2),
            FormatError::ColumnDuplicate { row: 1, position: 1, column: 1 }
        );
        for (n_rows, indptr) in
            [(3, &[0u64, 1, 2][..]), (1, &[0, 1, 2]), (0, &[]), (usize::MAX, &[])]
        {
            let found = indptr.len();
            assert_eq!(
                Csr::with_shape((n_rows, 3), indptr.to_vec(), vec![0u32, 1], vec![1.0f32; 2]),
                Err(FormatError::IndptrLength { found, n_rows })
            );
        }
        assert!(Csr::with_shape((2, 3), vec![0, 1, 2], vec![0u32, 1], vec![1.0f32; 2]).is_ok());
        // an end beyond every array must not be followed
        assert_eq!(
            error(3, &[0, u64::MAX, 2], &[0, 1], 2),
            FormatError::IndptrDecreasing { row: 1, start: u64::MAX, end: 2 }
        );
    }

    /// Mostly well-formed `indptr` and columns, one entry of either possibly spoiled.
    fn arrays() -> impl Strategy<Value = (Vec<u64>, Vec<u32>)> {
        let spoil = || prop::option::weighted(0.3, (any::<prop::sample::Index>(), 0..6u64));
        let rows = prop::collection::vec(prop::collection::btree_set(0..4u32, 0..4), 0..4);
        (rows, spoil(), spoil()).prop_map(|(rows, spoiled_end, spoiled_column)| {
            let mut indptr = vec![0];
            let mut columns = Vec::new();
            for row in rows {
                columns.extend(row);
                indptr.push(columns.len() as u64);
            }
            if let Some((index, end)) = spoiled_end {
                *index.get_mut(&mut indptr) = end;
            }
            if let Some((index, column)) = spoiled_column
                && !columns.is_empty()
            {
                *index.get_mut(&mut columns) = column as u32;
            }
            (indptr, columns)
        })
    }

    proptest! {
        #[test]
        fn canonical_arrays_and_no_others_are_accepted(
            n_cols in 3..5usize,
            (indptr, columns) in arrays(),
        ) {
            // said another way than the check says it
            let rows_ascend = || indptr.windows(2).all(|bounds| {
                columns.get(bounds[0] as usize..bounds[1] as usize).is_some_and(|row| {
                    let distinct: std::collections::BTreeSet<_> = row.iter().collect();
                    distinct.into_iter().eq(row)
                })
            });
            let canonical = indptr.first() == Some(&0)
                && indptr.last() == Some(&(columns.len() as u64))
                && columns.iter().all(|&column| (column as usize) < n_cols)
                && rows_ascend();
            let accepted = check(n_cols, &indptr, &columns, columns.len());
            prop_assert_eq!(accepted.is_ok(), canonical, "{:?}", accepted);
        }
    }
}
