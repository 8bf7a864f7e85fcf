//! Sums of tables that one csr names rows of: what a batch adds to the gradients of all of them
//! lies together, a row of sums for each table row that the batch names. A sample then finds the
//! sums of each of its entries once, and not once for each table.

use super::few::Few;
use super::pools::{scale, units};
use super::program::{Pool, Read, Refs, Values};
use super::table_reads::{Layout, Place, TableReads};
use crate::optimizer::{
    ReadRows as _, RowAccumulator, RowUpdater, RowWeights, Slots, SumsOfRows, UpdateKind, term,
};
use nnz_arrays::formats::ColumnId;
use nnz_arrays::with_column_ids;
use nnz_device::prefetch::AHEAD;
use nnz_device::simd::{self, Fixed, Runtime, Width};
use nnz_optim::UpdateRule;
use sparse_core::element::{Factor, Float};

/// The sums of a group of tables, kept from batch to batch.
#[derive(Clone, Debug)]
pub(crate) struct JointSums {
    sums: RowAccumulator,
    /// Where the sums of a sample's entries begin.
    places: Vec<usize>,
}

/// Makes the sums of each group of a layout empty.
pub(super) fn make_room(joint: &mut Vec<JointSums>, layout: &Layout) {
    joint.truncate(layout.n_groups);
    for group in 0..layout.n_groups {
        let (mut n_rows, mut size) = (0, 0);
        for of_table in layout.of_group(group) {
            n_rows = of_table.facts.n_rows;
            size += of_table.facts.row_size;
        }
        match joint.get_mut(group) {
            Some(JointSums { sums, .. }) if (sums.n_rows(), sums.row_size()) == (n_rows, size) => {
                // A step that panicked may have left some.
                sums.clear();
            }
            _ => {
                joint.truncate(group);
                let sums = RowAccumulator::new(n_rows, size);
                joint.push(JointSums { sums, places: Vec::new() });
            }
        }
    }
}

/// The tables of a group during one call.
pub(super) struct Joint<'b, 'm, 's, 't, T: Float> {
    /// What names the rows of each.
    refs: Refs<'b, T>,
    sums: &'s mut RowAccumulator,
    places: &'s mut Vec<usize>,
    slots: Slots<'t>,
    prefetches_slots: bool,
    members: Few<Member<'b, 'm, 't, T>>,
    /// The numbers of the sums of the members so far.
    size: usize,
}

/// A table of a group.
struct Member<'b, 'm, 't, T: Float> {
    read: Read<'b, 'm, T>,
    place: Place,
    /// Its sums begin here among those of a row.
    first: usize,
    row_size: usize,
    /// The weights, which the gradient of an interaction depends on.
    weights: Option<RowWeights<'t, T>>,
}

impl<'b, 'm, 's, 't, T: Float<Accumulator = T>> Joint<'b, 'm, 's, 't, T> {
    /// A group whose rows are named by `refs`. `slots` lie beside the weights of one of its tables,
    /// or else they are those of the sums.
    pub(super) fn new(
        refs: Refs<'b, T>,
        joint: &'s mut JointSums,
        slots: Option<Slots<'t>>,
    ) -> Self {
        let JointSums { sums, places } = joint;
        let slots = slots.unwrap_or_else(|| sums.own_slots());
        let prefetches_slots = slots.are_apart() && slots.are_far();
        let members = Few::new();
        Joint { refs, sums, places, slots, prefetches_slots, members, size: 0 }
    }

    /// Takes the next table of the group, whose weights nothing writes between a read and an
    /// [addition](Self::add).
    pub(super) fn push(
        &mut self,
        read: &Read<'b, 'm, T>,
        place: &Place,
        row_size: usize,
        weights: RowWeights<'t, T>,
    ) {
        let weights = (read.pool == Pool::Pairs).then_some(weights);
        let first = self.size;
        self.size += row_size;
        self.members.push(Member { read: *read, place: *place, first, row_size, weights });
    }

    /// Adds the gradients of the rows that a sample names to their sums. The gradients of numbers
    /// that are means are overwritten.
    ///
    /// # Safety
    ///
    /// All tables of the group were given, as many rows as the csr has columns.
    #[inline(never)]
    pub(super) unsafe fn add(
        &mut self,
        sample: usize,
        n_samples: usize,
        (gradients, sums): (&mut [T], &[T]),
        buffer: &mut Vec<u64>,
    ) {
        let later = sample + AHEAD;
        if self.prefetches_slots && later < n_samples {
            let (ids, _) = self.refs.of_sample(later, buffer);
            with_column_ids!(ids, |ids| self.slots.prefetch_each(ids));
        }
        let (ids, _) = self.refs.of_sample(sample, buffer);
        with_column_ids!(ids, |ids| {
            // SAFETY: columns are below the rows, for which there are slots and sums.
            unsafe { self.sums.find_each(self.slots, ids, self.places) }
        });
        for at in 0..self.members.len() {
            let Some(member) = self.members.get_mut(at) else { break };
            let gradient = &mut gradients[member.place.gradients..][..member.read.size];
            let of_rows = &sums[member.place.sums..][..member.place.n_sums];
            let (ids, values) = member.read.refs.of_sample(sample, buffer);
            scale(&member.read, sample, ids.len(), gradient);
            let (places, all) = (&self.places[..], self.sums.values_mut());
            macro_rules! of_width {
                ($Width:ty, $width:expr) => {
                    simd::in_sixteens::<$Width, _>(
                        #[inline(always)]
                        || {
                            // SAFETY: columns are below the rows; these sums lie behind each place.
                            with_column_ids!(ids, |ids| unsafe {
                                member.add(ids, values, places, all, $width, (gradient, of_rows));
                            });
                        },
                    )
                };
            }
            match member.row_size {
                1 => of_width!(Fixed<1>, Fixed::<1>),
                8 => of_width!(Fixed<8>, Fixed::<8>),
                16 => of_width!(Fixed<16>, Fixed::<16>),
                size => of_width!(Runtime, Runtime(size)),
            }
        }
    }
}

impl<T: Float<Accumulator = T>> Member<'_, '_, '_, T> {
    /// Adds to the sums of this table that begin behind each of `places`.
    ///
    /// # Safety
    ///
    /// The ids are below the rows; behind each place there are the sums of a whole row of the
    /// group, and as many places as ids.
    #[inline(always)]
    unsafe fn add<I: ColumnId, W: Width>(
        &self,
        ids: &[I],
        values: Values<'_, T>,
        places: &[usize],
        sums: &mut [f64],
        width: W,
        (gradient, of_rows): (&[T], &[T]),
    ) {
        let size = width.columns();
        let (first, sums) = (self.first, sums.as_mut_ptr());
        let places = &places[..ids.len()];
        let sums_of = move |place: usize| {
            // SAFETY: promised by the caller.
            unsafe { std::slice::from_raw_parts_mut(sums.add(place + first), size) }
        };
        let values = match self.read.pool {
            Pool::Bag { weighted: false, .. } => Values::Ones,
            _ => values,
        };
        match (self.read.pool, self.weights) {
            (Pool::Pairs, Some(weights)) => {
                let (gradient, weights) = (gradient[0], weights.of_size(size));
                let of_rows = &of_rows[..size];
                for (entry, (id, place)) in ids.iter().zip(places).enumerate() {
                    let value = match values {
                        Values::Each(values) => values[entry],
                        Values::Ones => T::one(),
                    };
                    let share = value * gradient;
                    // SAFETY: promised by the caller.
                    let row = unsafe { weights.row(id.at()) };
                    for ((sum, of_rows), weight) in sums_of(*place).iter_mut().zip(of_rows).zip(row)
                    {
                        *sum += (share * (*of_rows - value * *weight)).as_f64();
                    }
                }
            }
            _ => match values {
                Values::Each(values) => add_outer(places, values, &gradient[..size], sums_of),
                Values::Ones => add_outer(places, units(ids.len()), &gradient[..size], sums_of),
            },
        }
    }
}

/// Adds each value times the gradient to the sums of its place.
#[inline(always)]
fn add_outer<'s, T: Float<Accumulator = T>, V: Factor<T>>(
    places: &[usize],
    values: &[V],
    gradient: &[T],
    sums_of: impl Fn(usize) -> &'s mut [f64],
) {
    for (place, value) in places.iter().zip(values) {
        for (sum, gradient) in sums_of(*place).iter_mut().zip(gradient) {
            *sum += term::<T, V>(*value, *gradient);
        }
    }
}

/// Updates the rows of all tables of groups by their sums, and forgets these. The rows were caught
/// up in this step.
pub(super) fn apply<R: UpdateRule, T: Float, K: UpdateKind, S: UpdateKind>(
    joint: &mut [JointSums],
    layout: &Layout,
    tables: &mut [Option<RowUpdater<'_, R, T, K>>],
    slotted: &mut [Option<RowUpdater<'_, R, T, S>>],
) {
    /// Rows whose sums stay in a cache from table to table.
    const ROWS_AT_ONCE: usize = 1024;
    for (group, JointSums { sums, .. }) in joint.iter_mut().enumerate() {
        let stride = sums.row_size();
        for (part, rows) in sums.rows().chunks(ROWS_AT_ONCE).enumerate() {
            let mut first = part * ROWS_AT_ONCE * stride;
            for TableReads { table, facts, .. } in layout.of_group(group) {
                let Some(table) = *table else { continue };
                let sums = &sums.values()[first..];
                first += facts.row_size;
                let of_rows = SumsOfRows { rows, sums, stride };
                // SAFETY: the sums are of rows of this size that the columns of a csr name, which
                // were compared with the rows; each is named once.
                unsafe {
                    if let Some(rows) = tables.get_mut(table).and_then(Option::as_mut) {
                        rows.apply(of_rows);
                    } else if let Some(rows) = slotted.get_mut(table).and_then(Option::as_mut) {
                        rows.apply(of_rows);
                    }
                }
            }
        }
        sums.clear();
    }
}

/// Forgets all sums.
pub(super) fn clear(joint: &mut [JointSums]) {
    joint.iter_mut().for_each(|joint| joint.sums.clear());
}
