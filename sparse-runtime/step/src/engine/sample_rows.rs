//! What one sample does with the rows of a table: reads, updates, sums.
//!
//! All of it is compiled for each rule, element type and [kind](UpdateKind) of memory. Tables of
//! which a sample names one row have a form of their own: [`one_row`](super::one_row).

use super::pools::{pool, scale, units};
use super::program::{Pool, Read, Values};
use super::table_reads::{Place, TableFacts};
use crate::error::Result;
use crate::linear::{is_large, scatter as scatter_rows, settled_product};
use crate::optimizer::{
    ReadRows as _, RowAccumulator, RowCursor, RowUpdater, RowWeights, UpdateKind,
};
use nnz_arrays::formats::ColumnId;
use nnz_arrays::with_column_ids;
use nnz_device::simd::{self, Fixed, Runtime, Width};
use nnz_optim::UpdateRule;
use sparse_core::element::{Factor, Float};

/// What is known of the rows of a table during one call.
pub(super) fn facts<R: UpdateRule, T: Float, K: UpdateKind>(
    rows: &RowUpdater<'_, R, T, K>,
) -> TableFacts {
    TableFacts {
        n_rows: rows.n_rows(),
        row_size: rows.row_size(),
        is_large: is_large(rows),
        only_adds: K::PLAIN,
        catches_up: rows.settles(),
    }
}

/// The numbers of a sample that a read has, and scratch.
pub(super) struct OfRead<'s, T> {
    /// Its numbers, or their gradients.
    pub(super) numbers: &'s mut [T],
    /// Of an interaction: the sum of its rows, and as much scratch.
    pub(super) sums: &'s mut [T],
    /// Ids of a signed type.
    pub(super) ids: &'s mut Vec<u64>,
}

/// Catches up and pools the rows that a sample names. `later`: the sample whose rows are
/// prefetched. `updated`: each of the rows is [updated](update) in this step.
///
/// # Errors
///
/// [`ModelError::Lookup`](crate::model::ModelError::Lookup) for an id that is not below the rows.
///
/// # Safety
///
/// The read was [checked](Read::check) with the rows.
#[inline(never)]
pub(super) unsafe fn read<R: UpdateRule, T: Float<Accumulator = T>, K: UpdateKind>(
    rows: &mut RowUpdater<'_, R, T, K>,
    facts: TableFacts,
    (read, place): (&Read<'_, '_, T>, &Place),
    (sample, later, updated): (usize, Option<usize>, bool),
    OfRead { numbers, sums, ids: buffer }: OfRead<'_, T>,
) -> Result<()> {
    if place.is_far {
        read.refs.prefetch(sample);
    }
    if let Some(later) = later.filter(|_| facts.is_large) {
        let ids = read.refs.of_sample(later, buffer).0;
        with_column_ids!(ids, |ids| {
            rows.prefetch_each(facts.row_size, ids);
            if !updated && read.has_gradient {
                rows.sums_mut().own_slots().prefetch_each(ids);
            }
        });
    }
    let (ids, values) = read.refs.of_sample(sample, buffer);
    read.refs.check(sample, ids, facts.n_rows)?;
    if facts.catches_up {
        let (cursor, mut settling) = rows.split(facts.row_size);
        let settling = &mut settling;
        // SAFETY, of all below: the ids are columns of a csr, which the caller has compared, or
        // were compared just now.
        if facts.row_size == 1 && read.pool == Pool::Product {
            let cursor = cursor.of_one_weight();
            with_column_ids!(ids, |ids| match values {
                // SAFETY: as above.
                Values::Each(values) => unsafe {
                    settled_product(ids, values, cursor, settling, updated, Fixed::<1>, numbers);
                },
                // SAFETY: as above.
                Values::Ones => unsafe {
                    let ones = units(ids.len());
                    settled_product(ids, ones, cursor, settling, updated, Fixed::<1>, numbers);
                },
            });
            return Ok(());
        }
        // SAFETY: as above.
        with_column_ids!(ids, |ids| unsafe {
            settling.settle_each(cursor, ids, updated);
        });
    }
    let weights = rows.weights_to_read();
    // SAFETY: as above.
    unsafe { pool(read, sample, (ids, values), (weights, facts.row_size), numbers, sums) };
    Ok(())
}

/// Updates the rows that a sample names, by the gradients of the numbers that it
/// [read](self::read). These are overwritten.
///
/// # Safety
///
/// The sample was read, and names no row twice, or the rule only adds.
#[inline(never)]
pub(super) unsafe fn update<R: UpdateRule, T: Float<Accumulator = T>, K: UpdateKind>(
    rows: &mut RowUpdater<'_, R, T, K>,
    facts: TableFacts,
    read: &Read<'_, '_, T>,
    sample: usize,
    OfRead { numbers: gradient, sums, ids: buffer }: OfRead<'_, T>,
) {
    let (ids, values) = read.refs.of_sample(sample, buffer);
    scale(read, sample, ids.len(), gradient);
    let size = facts.row_size;
    let (cursor, mut settling) = rows.split(size);
    with_column_ids!(ids, |ids| {
        // SAFETY, of all below: promised by the caller; `read` has compared the ids.
        match read.pool {
            Pool::Rows => {
                for (id, gradient) in ids.iter().zip(gradient.chunks_exact_mut(size.max(1))) {
                    // SAFETY: as above.
                    unsafe { update_alike(std::slice::from_ref(id), cursor, gradient) };
                }
            }
            Pool::Pairs => {
                let (sums, scratch) = sums.split_at_mut(size);
                // SAFETY: as above.
                unsafe { update_pairs(ids, values, cursor, sums, scratch, gradient[0]) };
            }
            // SAFETY: as above.
            Pool::Bag { weighted: false, .. } => unsafe { update_alike(ids, cursor, gradient) },
            Pool::Product | Pool::Bag { .. } => match values {
                // SAFETY: as above.
                Values::Each(values) => unsafe { update_each(ids, values, cursor, gradient) },
                // SAFETY: as above.
                Values::Ones if size == 1 => unsafe {
                    update_each(ids, units(ids.len()), cursor, gradient)
                },
                // SAFETY: as above.
                Values::Ones => unsafe { update_alike(ids, cursor, gradient) },
            },
        }
        settling.mark_unsettled::<K, _>(ids);
    });
}

/// Updates each row by its value times `gradient`.
///
/// # Safety
///
/// The ids are below the rows and distinct, or the rule only adds; `gradient` has as many elements
/// as a row.
#[inline(always)]
unsafe fn update_each<R, T, V, K, I>(
    ids: &[I],
    values: &[V],
    rows: RowCursor<'_, R, T, K>,
    gradient: &mut [T],
) where
    R: UpdateRule,
    T: Float<Accumulator = T>,
    V: Factor<T>,
    K: UpdateKind,
    I: ColumnId,
{
    /// By the width that the compiler knows.
    ///
    /// # Safety
    ///
    /// As above.
    #[inline(never)]
    unsafe fn by_width<R, T, V, K, I>(
        ids: &[I],
        values: &[V],
        rows: RowCursor<'_, R, T, K>,
        width: impl Width,
        gradient: &mut [T],
    ) where
        R: UpdateRule,
        T: Float<Accumulator = T>,
        V: Factor<T>,
        K: UpdateKind,
        I: ColumnId,
    {
        simd::wide(
            #[inline(always)]
            // SAFETY: promised by the caller.
            || unsafe {
                let rows = rows.of_size(width.columns());
                match rows.without_options() {
                    Some(rows) => scatter_rows(ids, values, rows, width, gradient),
                    None => scatter_rows(ids, values, rows, width, gradient),
                }
            },
        );
    }
    // SAFETY: promised by the caller.
    unsafe {
        match gradient.len() {
            1 => by_width(ids, values, rows, Fixed::<1>, gradient),
            16 => by_width(ids, values, rows, Fixed::<16>, gradient),
            size => by_width(ids, values, rows, Runtime(size), gradient),
        }
    }
}

/// Updates each row by `gradient`: element by element, which the compiler vectorises where the
/// gradient is the same for all rows.
///
/// # Safety
///
/// As [`update_each`].
#[inline(always)]
unsafe fn update_alike<R, T, K, I>(ids: &[I], rows: RowCursor<'_, R, T, K>, gradient: &mut [T])
where
    R: UpdateRule,
    T: Float<Accumulator = T>,
    K: UpdateKind,
    I: ColumnId,
{
    /// By the width that the compiler knows.
    ///
    /// # Safety
    ///
    /// As above.
    #[inline(never)]
    unsafe fn by_width<R, T, K, I>(
        ids: &[I],
        rows: RowCursor<'_, R, T, K>,
        width: impl Width,
        gradient: &mut [T],
    ) where
        R: UpdateRule,
        T: Float<Accumulator = T>,
        K: UpdateKind,
        I: ColumnId,
    {
        simd::wide(
            #[inline(always)]
            || {
                let rows = rows.of_size(width.columns());
                width.in_registers(
                    gradient,
                    #[inline(always)]
                    |gradient| {
                        if let Some(factor) = rows.plain_factor() {
                            gradient.iter_mut().for_each(|gradient| *gradient *= factor);
                            for id in ids {
                                // SAFETY: promised by the caller.
                                unsafe { rows.add_row(id.at(), gradient, |change| change) };
                            }
                            return;
                        }
                        for id in ids {
                            // SAFETY: promised by the caller.
                            unsafe {
                                rows.update_row_by(id.at(), gradient, |gradient, _| gradient)
                            };
                        }
                    },
                );
            },
        );
    }
    // SAFETY: promised by the caller.
    unsafe {
        match gradient.len() {
            16 => by_width(ids, rows, Fixed::<16>, gradient),
            size => by_width(ids, rows, Runtime(size), gradient),
        }
    }
}

/// Updates each row by the gradient of an interaction: value · `gradient` · (`sums` - value ·
/// row), where `sums` is the sum of the rows, each multiplied by its value. `scratch` has as many
/// elements as a row.
///
/// # Safety
///
/// The ids are below the rows and distinct; `sums` and `scratch` have as many elements as a row.
#[inline(never)]
unsafe fn update_pairs<R, T, K, I>(
    ids: &[I],
    values: Values<'_, T>,
    rows: RowCursor<'_, R, T, K>,
    sums: &[T],
    scratch: &mut [T],
    gradient: T,
) where
    R: UpdateRule,
    T: Float<Accumulator = T>,
    K: UpdateKind,
    I: ColumnId,
{
    macro_rules! of_width {
        ($Width:ty, $width:expr) => {
            simd::in_sixteens::<$Width, _>(
                #[inline(always)]
                || {
                    let width = $width;
                    let rows = rows.of_size(width.columns());
                    // What the rule's options are is asked once, not for every element.
                    // SAFETY: promised by the caller.
                    unsafe {
                        match rows.without_options() {
                            Some(rows) => {
                                update_each_pair(ids, values, rows, width, sums, scratch, gradient)
                            }
                            None => {
                                update_each_pair(ids, values, rows, width, sums, scratch, gradient)
                            }
                        }
                    }
                },
            )
        };
    }
    match sums.len() {
        8 => of_width!(Fixed<8>, Fixed::<8>),
        16 => of_width!(Fixed<16>, Fixed::<16>),
        size => of_width!(Runtime, Runtime(size)),
    }
}

/// [`update_pairs`] by a width that the compiler may know.
///
/// # Safety
///
/// As there.
#[inline(always)]
unsafe fn update_each_pair<R, T, K, I>(
    ids: &[I],
    values: Values<'_, T>,
    rows: RowCursor<'_, R, T, K>,
    width: impl Width,
    sums: &[T],
    changes: &mut [T],
    gradient: T,
) where
    R: UpdateRule,
    T: Float<Accumulator = T>,
    K: UpdateKind,
    I: ColumnId,
{
    width.in_registers(
        changes,
        #[inline(always)]
        |changes| {
            for (place, id) in ids.iter().enumerate() {
                let value = match values {
                    Values::Each(values) => values[place],
                    Values::Ones => T::one(),
                };
                let share = Factor::<T>::times(value, gradient);
                // SAFETY: promised by the caller.
                unsafe {
                    let row = rows.row(id.at());
                    for ((change, sum), weight) in changes.iter_mut().zip(sums).zip(row) {
                        *change = share * (*sum - value * *weight);
                    }
                    rows.update_row_in_sixteens(id.at(), changes, |change, _| change);
                }
            }
        },
    );
}

/// Adds to the sums of rows what [`update`] would update them by. The gradients are overwritten.
///
/// # Safety
///
/// The sample was read.
pub(super) unsafe fn add<R: UpdateRule, T: Float<Accumulator = T>, K: UpdateKind>(
    rows: &mut RowUpdater<'_, R, T, K>,
    facts: TableFacts,
    read: &Read<'_, '_, T>,
    sample: usize,
    OfRead { numbers: gradient, sums: of_rows, ids: buffer }: OfRead<'_, T>,
) {
    let (ids, values) = read.refs.of_sample(sample, buffer);
    scale(read, sample, ids.len(), gradient);
    let (sums, weights) = rows.sums_and_weights();
    macro_rules! of_width {
        ($width:expr) => {
            simd::wide(
                #[inline(always)]
                || {
                    let (width, of) = ($width, (weights, &*of_rows, &*gradient));
                    // SAFETY: promised by the caller; `read` has compared the ids; nothing writes
                    // the weights meanwhile.
                    with_column_ids!(ids, |ids| unsafe {
                        add_each(sums, read.pool, ids, values, width, of);
                    });
                },
            )
        };
    }
    match facts.row_size {
        1 => of_width!(Fixed::<1>),
        8 => of_width!(Fixed::<8>),
        16 => of_width!(Fixed::<16>),
        size => of_width!(Runtime(size)),
    }
}

/// [`add`] by a width that the compiler may know, given the weights, of an interaction the sum of
/// the sample's rows, and the gradients.
///
/// # Safety
///
/// The ids are below the rows; nothing writes the weights meanwhile.
#[inline(always)]
unsafe fn add_each<T: Float<Accumulator = T>, I: ColumnId, W: Width>(
    sums: &mut RowAccumulator,
    pool: Pool,
    ids: &[I],
    values: Values<'_, T>,
    width: W,
    (weights, of_rows, gradient): (RowWeights<'_, T>, &[T], &[T]),
) {
    let (slots, size) = (sums.own_slots(), width.columns());
    let entries = ids.iter().copied();
    // SAFETY: promised by the caller.
    unsafe {
        match (pool, values) {
            (Pool::Rows, _) => {
                let entries = entries.zip(gradient.chunks_exact(size.max(1)));
                sums.add_each(slots, entries, size, |sums, gradient: &[T]| {
                    sums.iter_mut().zip(gradient).for_each(|(sum, by)| *sum += by.as_f64());
                });
            }
            (Pool::Pairs, _) => {
                let (gradient, weights) = (gradient[0], weights.of_size(size));
                let of_rows = &of_rows[..size];
                let entries = ids.iter().enumerate().map(|(place, id)| {
                    let value = match values {
                        Values::Each(values) => values[place],
                        Values::Ones => T::one(),
                    };
                    (*id, (id.at(), value))
                });
                sums.add_each(slots, entries, size, |sums, (id, value)| {
                    let share = value * gradient;
                    for ((sum, of_rows), weight) in
                        sums.iter_mut().zip(of_rows).zip(weights.row(id))
                    {
                        *sum += (share * (*of_rows - value * *weight)).as_f64();
                    }
                });
            }
            (Pool::Bag { weighted: false, .. }, _) | (_, Values::Ones) => {
                let gradient = &gradient[..size];
                let ones = units(ids.len()).iter().copied();
                sums.add_outer::<_, T, _>(slots, entries.zip(ones), gradient);
            }
            (_, Values::Each(values)) => {
                let gradient = &gradient[..size];
                sums.add_outer::<_, T, T>(slots, entries.zip(values.iter().copied()), gradient);
            }
        }
    }
}
