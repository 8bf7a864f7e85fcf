//! The tables of one call, and what each sample does with all of them: read, update, add to sums.

use super::few::Few;
use super::hogwild::Copies;
use super::joint_sums::{Joint, JointSums};
use super::one_column::{self, OneColumn};
use super::one_row::{self, OneRow};
use super::overlap;
use super::pools::pool;
use super::program::{Program, Read, Source};
use super::sample_rows::{self, OfRead};
use super::table_reads::{Layout, TableFacts, TableReads, Updates};
use crate::error::Result;
use crate::optimizer::{RowUpdater, RowWeights, UpdateKind};
use nnz_device::prefetch::AHEAD;
use nnz_optim::UpdateRule;
use sparse_core::element::Float;

/// The rows of tables that an updater lends, by their positions.
pub(super) type Lent<'t, R, T, K> = [Option<RowUpdater<'t, R, T, K>>];

/// A table of no form of its own: what is known of it, and its rows unless it is frozen.
type Other<'s, 't, R, T, K> = (TableReads, Option<&'s mut RowUpdater<'t, R, T, K>>);

/// The tables of one call, by the forms of their reads. `K` is the kind of most tables, `S` that of
/// tables whose rows have a slot for their sum beside the weight.
pub(super) struct Tables<'s, 't, 'b, 'm, R, T, K, S>
where
    R: UpdateRule,
    T: Float<Accumulator = T>,
    K: UpdateKind,
    S: UpdateKind,
{
    reads: &'s [Read<'b, 'm, T>],
    layout: &'s Layout,
    pub(super) n_samples: usize,
    /// Tables of which a sample names one row.
    one_rows: Few<OneRow<'b, 's, R, T, K>>,
    /// Tables of one column, of which a csr names rows.
    one_columns: Few<OneColumn<'b, 's, R, T, K>>,
    /// Those with slots.
    slotted: Few<OneColumn<'b, 's, R, T, S>>,
    /// The other tables, each with what is known of it; without rows where it is frozen.
    others: Few<Other<'s, 't, R, T, K>>,
    /// What of these have their sums together.
    joint: Few<Joint<'b, 'm, 's, 't, T>>,
    updates: bool,
}

impl<'s, 't, 'b, 'm, R, T, K, S> Tables<'s, 't, 'b, 'm, R, T, K, S>
where
    R: UpdateRule,
    T: Float<Accumulator = T>,
    K: UpdateKind,
    S: UpdateKind,
{
    /// A table is among `tables` or `slotted`. `updates`: the rows that a sample reads are
    /// [updated](Self::update) before the next one, and nothing is [added](Self::add) to sums.
    /// `joint` are the sums of the layout's groups.
    pub(super) fn new(
        reads: &'s [Read<'b, 'm, T>],
        layout: &'s Layout,
        n_samples: usize,
        tables: &'s mut Lent<'t, R, T, K>,
        slotted: &'s mut Lent<'t, R, T, S>,
        joint: &'s mut [JointSums],
        updates: bool,
    ) -> Self {
        let (one_rows, one_columns, with_slots) = (Few::new(), Few::new(), Few::new());
        let (others, mut groups) = (Few::new(), Few::new());
        for (group, joint) in joint.iter_mut().enumerate() {
            groups.push(joint_of(reads, layout, (&mut *tables, &mut *slotted), group, joint));
        }
        let slotted_rows = slotted;
        let mut all = Tables {
            reads,
            layout,
            n_samples,
            one_rows,
            one_columns,
            slotted: with_slots,
            others,
            joint: groups,
            updates,
        };
        // Trained tables come first, in their order.
        let (mut tables, mut slotted) = (tables.iter_mut(), slotted_rows.iter_mut());
        for of_table in &layout.tables {
            let (of_reads, facts) = (&reads[of_table.reads()], of_table.facts);
            let place = &layout.places[of_table.reads().start];
            let updated = updates && of_reads.iter().all(|read| read.has_gradient);
            let (rows, with_slots) = match of_table.table {
                Some(_) => (tables.next(), slotted.next()),
                None => (None, None),
            };
            let entries = || one_column::entries_of(of_reads, facts.row_size);
            let has_gradient = of_reads.iter().all(|read| read.has_gradient);
            // What has its sums elsewhere adds to none of its own.
            let adds = !updates && has_gradient && of_table.group.is_none();
            let has_gradient = if updates { has_gradient } else { adds };
            if let Some(rows) = with_slots.and_then(Option::as_mut) {
                if let Some(entries) = entries() {
                    let rows = OneColumn::new(entries, has_gradient, updated, place, facts, rows);
                    all.slotted.push(rows);
                }
                continue;
            }
            let Some(rows) = rows.and_then(Option::as_mut) else {
                all.others.push((*of_table, None));
                continue;
            };
            if let Some(ids) = one_row::ids_of(of_reads) {
                let rows = OneRow::new(ids, has_gradient, updated, place, facts, rows);
                all.one_rows.push(rows);
            } else if let Some(entries) = entries() {
                let rows = OneColumn::new(entries, has_gradient, updated, place, facts, rows);
                all.one_columns.push(rows);
            } else {
                all.others.push((*of_table, Some(rows)));
            }
        }
        all
    }

    /// Catches up and pools the rows that a sample names, and prefetches those of a later one.
    #[inline(always)]
    pub(super) fn read(&mut self, sample: usize, numbers: &mut Numbers<T>) -> Result<()> {
        let Numbers { read: of_sample, sums, ids, .. } = numbers;
        for at in 0..self.one_rows.len() {
            let Some(rows) = self.one_rows.get_mut(at) else { break };
            rows.read(sample, sample + AHEAD, of_sample)?;
        }
        for at in 0..self.one_columns.len() {
            let Some(rows) = self.one_columns.get_mut(at) else { break };
            rows.read(sample, of_sample);
        }
        if S::SLOTS {
            for at in 0..self.slotted.len() {
                let Some(rows) = self.slotted.get_mut(at) else { break };
                rows.read(sample, of_sample);
            }
        }
        let later = Some(sample + AHEAD).filter(|later| *later < self.n_samples);
        for at in 0..self.others.len() {
            let Some((of_table, rows)) = self.others.get_mut(at) else { break };
            let facts = of_table.facts;
            for (of_read, place) in of_table.of(self.reads, self.layout) {
                let numbers = &mut of_sample[place.numbers..][..of_read.size];
                let sums = &mut sums[place.sums..][..place.n_sums];
                let of = OfRead { numbers, sums, ids };
                // SAFETY: `Layout` has compared the read with the rows.
                unsafe {
                    match rows {
                        Some(rows) => {
                            let updated = self.updates && of_read.has_gradient;
                            let turn = (sample, later, updated);
                            sample_rows::read(rows, facts, (of_read, place), turn, of)?;
                        }
                        None => read_frozen(facts, of_read, sample, of)?,
                    }
                }
            }
        }
        Ok(())
    }

    /// Updates the rows that a sample has read, each once, and goes on to the next step.
    #[inline(always)]
    pub(super) fn update(&mut self, sample: usize, numbers: &mut Numbers<T>) {
        let Numbers { gradients, sums, ids, others, .. } = numbers;
        for at in 0..self.one_rows.len() {
            let Some(rows) = self.one_rows.get_mut(at) else { break };
            // SAFETY: the sample was read.
            unsafe { rows.update(sample, gradients) };
        }
        for at in 0..self.one_columns.len() {
            let Some(rows) = self.one_columns.get_mut(at) else { break };
            rows.update(sample, gradients);
        }
        for at in 0..self.others.len() {
            let Some((of_table, rows)) = self.others.get_mut(at) else { break };
            let Some(rows) = rows else { continue };
            let facts = of_table.facts;
            let in_parts = match of_table.updates {
                Updates::InParts => true,
                Updates::InPartsIfApart => {
                    are_apart(&self.reads[of_table.reads()], sample, ids, others)
                }
            };
            for (read, place) in of_table.of(self.reads, self.layout) {
                if !read.has_gradient {
                    continue;
                }
                let numbers = &mut gradients[place.gradients..][..read.size];
                let sums = &mut sums[place.sums..][..place.n_sums];
                let of = OfRead { numbers, sums, ids };
                // SAFETY: the sample was read; a row is named once where `in_parts`, or the rule
                // only adds.
                unsafe {
                    if in_parts {
                        sample_rows::update(rows, facts, read, sample, of);
                    } else {
                        sample_rows::add(rows, facts, read, sample, of);
                    }
                }
            }
            if !in_parts {
                rows.apply_settled();
            }
            rows.advance();
        }
    }

    /// Adds the gradients of the rows that a sample has read to their sums.
    #[inline(always)]
    pub(super) fn add(&mut self, sample: usize, numbers: &mut Numbers<T>) {
        let Numbers { gradients, sums, ids, .. } = numbers;
        for at in 0..self.joint.len() {
            let Some(joint) = self.joint.get_mut(at) else { break };
            // SAFETY: `joint_of` has given all tables, which `Layout` has compared with their
            // reads.
            unsafe { joint.add(sample, self.n_samples, (gradients, sums), ids) };
        }
        for at in 0..self.one_rows.len() {
            let Some(rows) = self.one_rows.get_mut(at) else { break };
            // SAFETY: the sample was read.
            unsafe { rows.add(sample, gradients) };
        }
        for at in 0..self.one_columns.len() {
            let Some(rows) = self.one_columns.get_mut(at) else { break };
            rows.add(sample, gradients);
        }
        if S::SLOTS {
            for at in 0..self.slotted.len() {
                let Some(rows) = self.slotted.get_mut(at) else { break };
                rows.add(sample, gradients);
            }
        }
        for at in 0..self.others.len() {
            let Some((of_table, rows)) = self.others.get_mut(at) else { break };
            let Some(rows) = rows.as_mut().filter(|_| of_table.group.is_none()) else { continue };
            for (read, place) in of_table.of(self.reads, self.layout) {
                if !read.has_gradient {
                    continue;
                }
                let numbers = &mut gradients[place.gradients..][..read.size];
                let sums = &mut sums[place.sums..][..place.n_sums];
                // SAFETY: the sample was read.
                unsafe {
                    let of = OfRead { numbers, sums, ids };
                    sample_rows::add(rows, of_table.facts, read, sample, of);
                }
            }
        }
    }
}

/// The tables of a group.
fn joint_of<'s, 't, 'b, 'm, R, T, K, S>(
    reads: &[Read<'b, 'm, T>],
    layout: &Layout,
    (tables, slotted): (&mut Lent<'t, R, T, K>, &mut Lent<'t, R, T, S>),
    group: usize,
    joint: &'s mut JointSums,
) -> Joint<'b, 'm, 's, 't, T>
where
    R: UpdateRule,
    T: Float<Accumulator = T>,
    K: UpdateKind,
    S: UpdateKind,
{
    let of_group = || layout.of_group(group).filter_map(|of| Some((of, of.table?)));
    let slots = of_group().find_map(|(_, table)| slotted.get(table)?.as_ref()?.slots());
    let first = layout.of_group(group).next().map_or(0, |of_table| of_table.reads().start);
    let mut joint = Joint::new(reads[first].refs, joint, slots);
    for (of_table, table) in of_group() {
        let plain = tables.get_mut(table).and_then(Option::as_mut);
        let with_slots = slotted.get_mut(table).and_then(Option::as_mut);
        // SAFETY: rows are written when they are caught up, before they are read, and when all
        // samples have added to the sums.
        let weights = unsafe {
            match (plain, with_slots) {
                (Some(rows), _) => rows.weights_meanwhile(),
                (None, Some(rows)) => rows.weights_meanwhile(),
                (None, None) => continue,
            }
        };
        let place = of_table.reads().start;
        joint.push(&reads[place], &layout.places[place], of_table.facts.row_size, weights);
    }
    joint
}

/// The numbers of one sample, and what stays the same from sample to sample.
#[derive(Clone, Debug, Default)]
pub(crate) struct Numbers<T> {
    /// The numbers that are read.
    pub(super) read: Vec<T>,
    pub(super) gradients: Vec<T>,
    pub(super) terms: Vec<T>,
    pub(super) outputs: Vec<T>,
    pub(super) work: Vec<T>,
    /// Of interactions: the sums of their rows, and scratch.
    pub(super) sums: Vec<T>,
    /// Ids of a signed type.
    pub(super) ids: Vec<u64>,
    others: Vec<u64>,
    pub(super) layout: Layout,
    /// Of tables that one csr names rows of.
    pub(super) joint: Vec<JointSums>,
    /// Of rows that other threads update meanwhile.
    pub(super) copies: Copies<T>,
}

impl<T: Float<Accumulator = T>> Numbers<T> {
    pub(super) fn make_room(&mut self, program: &Program<'_, '_, T>) {
        let zero = T::zero();
        let reads = program.reads;
        let of_gradients = reads.iter().filter(|read| read.has_gradient).map(|read| read.size);
        self.read.resize(reads.iter().map(|read| read.size).sum(), zero);
        self.gradients.resize(of_gradients.sum(), zero);
        self.terms.resize(program.terms(), zero);
        self.outputs.resize(program.outputs.iter().map(|output| output.size).sum(), zero);
        self.work.resize(program.work, zero);
        self.sums.resize(program.sums(), zero);
        self.layout.make_room(reads.len());
    }
}

/// Pools the rows of a frozen table that a sample names.
///
/// # Safety
///
/// The read was [checked](Read::check) with the table.
#[inline(never)]
pub(super) unsafe fn read_frozen<T: Float<Accumulator = T>>(
    facts: TableFacts,
    read: &Read<'_, '_, T>,
    sample: usize,
    OfRead { numbers, sums, ids }: OfRead<'_, T>,
) -> Result<()> {
    let Source::Frozen(values, row_size) = read.source else { return Ok(()) };
    let named = read.refs.of_sample(sample, ids);
    read.refs.check(sample, named.0, facts.n_rows)?;
    let rows = RowWeights::of_values(values, row_size);
    // SAFETY: promised by the caller; the ids were compared just now, or are columns of a csr.
    unsafe { pool(read, sample, named, (rows, row_size), numbers, sums) };
    Ok(())
}

/// Whether no row is named twice by the reads that have gradients.
fn are_apart<T: Float>(
    reads: &[Read<'_, '_, T>],
    sample: usize,
    buffer: &mut Vec<u64>,
    others: &mut Vec<u64>,
) -> bool {
    let updated = || reads.iter().filter(|read| read.has_gradient);
    updated().enumerate().all(|(place, read)| {
        let ids = read.refs.of_sample(sample, buffer).0;
        let mut before = updated().take(place);
        let repeats = read.refs.may_repeat() && overlap::repeats(ids);
        let meets =
            before.any(|other| overlap::have_common(ids, other.refs.of_sample(sample, others).0));
        !repeats && !meets
    })
}
