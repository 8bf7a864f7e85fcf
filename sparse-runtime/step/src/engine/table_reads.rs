//! The reads of a program by table, with what stays the same during one call.

use super::overlap;
use super::program::{Pool, Read, Source};
use crate::error::Result;
use sparse_core::element::Float;
use std::ops::Range;

/// What is known of the rows of a table during one call.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TableFacts {
    pub(super) n_rows: usize,
    /// The elements of a row.
    pub(super) row_size: usize,
    /// Prefetching rows pays: the table is larger than a cache.
    pub(super) is_large: bool,
    /// An update only adds to a weight, so that the rows of a sample may be updated in any number
    /// of parts.
    pub(super) only_adds: bool,
    /// Rows must be caught up before they are read.
    pub(super) catches_up: bool,
}

/// The reads of one table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TableReads {
    /// The table's position, `None` of a frozen one.
    pub(super) table: Option<usize>,
    /// The first of its reads, and one after the last.
    reads: (usize, usize),
    pub(super) facts: TableFacts,
    /// How the rows that a sample names are updated.
    pub(super) updates: Updates,
    /// The [group](super::joint_sums) of tables that the same csr names rows of, if there is one.
    pub(super) group: Option<usize>,
}

/// How the rows of a table that a sample names are updated, by one or more reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Updates {
    /// Read by read: no row is named twice, or a row may be updated in any number of parts.
    InParts,
    /// Read by read where the rows of the sample are apart, else by their sums.
    InPartsIfApart,
}

/// Where the numbers of a read lie among those of a sample.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// The first of its numbers.
    pub(super) numbers: usize,
    /// The first of their gradients.
    pub(super) gradients: usize,
    /// Of an interaction, the first of two rows: the sum of its rows, and scratch.
    pub(super) sums: usize,
    /// The elements of these.
    pub(super) n_sums: usize,
    /// Whether prefetching what names its rows pays.
    pub(super) is_far: bool,
}

/// The reads by table, and where their numbers lie.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layout {
    pub(super) tables: Vec<TableReads>,
    pub(super) places: Vec<Place>,
    /// The groups of tables whose sums lie together.
    pub(super) n_groups: usize,
}

impl TableReads {
    /// The positions of its reads.
    #[inline(always)]
    pub(super) fn reads(&self) -> Range<usize> {
        self.reads.0..self.reads.1
    }

    /// Its reads, and where their numbers lie.
    #[inline(always)]
    pub(super) fn of<'s, 'b, 'm, T: Float>(
        &self,
        reads: &'s [Read<'b, 'm, T>],
        layout: &'s Layout,
    ) -> impl Iterator<Item = (&'s Read<'b, 'm, T>, &'s Place)> {
        reads[self.reads()].iter().zip(&layout.places[self.reads()])
    }
}

impl Layout {
    /// Room for so many reads.
    pub(super) fn make_room(&mut self, n_reads: usize) {
        self.tables.reserve(n_reads.saturating_sub(self.tables.len()));
        self.places.reserve(n_reads.saturating_sub(self.places.len()));
    }

    /// Finds it, and compares the tables with the reads.
    pub(super) fn of<T: Float<Accumulator = T>>(
        &mut self,
        reads: &[Read<'_, '_, T>],
        facts_of: impl Fn(usize) -> Option<TableFacts>,
    ) -> Result<()> {
        self.tables.clear();
        self.places.clear();
        let mut next = Place { numbers: 0, gradients: 0, sums: 0, n_sums: 0, is_far: false };
        let mut n_trained = 0;
        let mut facts_of = |source: Source<'_, T>| match source {
            // Tables come in their order. One in another place has no rows, which no read fits.
            Source::Trained(table) => {
                let is_next = table == n_trained;
                n_trained += 1;
                facts_of(table).filter(|_| is_next).unwrap_or_default()
            }
            Source::Frozen(values, row_size) => TableFacts {
                n_rows: values.len() / row_size.max(1),
                row_size,
                ..Default::default()
            },
        };
        let of_one_table = |one: &Read<'_, '_, T>, other: &Read<'_, '_, T>| {
            matches!(
                (one.source, other.source),
                (Source::Trained(one), Source::Trained(other)) if one == other
            )
        };
        let mut first = 0;
        for of_table in reads.chunk_by(of_one_table) {
            let source = of_table[0].source;
            let facts = facts_of(source);
            for read in of_table {
                read.check(facts.n_rows, facts.row_size)?;
                let n_sums = if read.pool == Pool::Pairs { 2 * facts.row_size } else { 0 };
                self.places.push(Place { n_sums, is_far: read.refs.are_far(), ..next });
                next.numbers += read.size;
                next.gradients += if read.has_gradient { read.size } else { 0 };
                next.sums += n_sums;
            }
            let adds = facts.only_adds && !overlap::depend_on_weights(of_table);
            self.tables.push(TableReads {
                table: match source {
                    Source::Trained(table) => Some(table),
                    Source::Frozen(..) => None,
                },
                reads: (first, first + of_table.len()),
                facts,
                updates: if adds || !overlap::may_overlap(of_table) {
                    Updates::InParts
                } else {
                    Updates::InPartsIfApart
                },
                group: None,
            });
            first += of_table.len();
        }
        self.n_groups = 0;
        Ok(())
    }

    /// Finds groups: trained tables with one read each, which has a gradient, whose rows the
    /// columns of one csr name. O(tables²).
    pub(super) fn find_groups<T: Float>(&mut self, reads: &[Read<'_, '_, T>]) {
        let csr_of = |of_table: &TableReads| match &reads[of_table.reads()] {
            [read] if read.has_gradient && of_table.table.is_some() => read.refs.csr_names(),
            _ => None,
        };
        for place in 0..self.tables.len() {
            let (before, rest) = self.tables.split_at_mut(place);
            let Some((own, after)) = rest.split_first_mut() else { continue };
            let Some(names) = csr_of(own) else { continue };
            let is_alike = |other: &&TableReads| csr_of(other) == Some(names);
            own.group = match before.iter().find(is_alike) {
                Some(first) => first.group,
                None if after.iter().any(|other| is_alike(&other)) => {
                    self.n_groups += 1;
                    Some(self.n_groups - 1)
                }
                None => None,
            };
        }
    }

    /// The tables of a group, in their order.
    pub(super) fn of_group(&self, group: usize) -> impl Iterator<Item = &TableReads> {
        self.tables.iter().filter(move |of_table| of_table.group == Some(group))
    }
}
