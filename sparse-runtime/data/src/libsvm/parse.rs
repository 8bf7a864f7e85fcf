//! The LibSVM parser: bytes in, labels and raw csr arrays out.
//!
//! It knows nothing of files. An error has its offset in the block, from which the reader counts
//! lines. If the base depends on the whole file, indices are assumed to count from one until it is
//! known.

use super::super::number::{MAX_DIGITS, NotANumber, digits, number};
use super::super::read_error::Fault;
use super::super::text::{ends_here, or_carriage_return, skip_blanks};
use super::super::{Excerpt, Problem};
use super::IndexBase;
use super::room::Taken;
use super::usual::usual_entries;
use nnz_arrays::formats::ColumnIds;
use nnz_device::huge_pages::reserve_large;
use nnz_device::memory::make_room;
use nnz_device::simd;
use sparse_core::element::Float;

/// The settings for the text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    /// The index of the first feature.
    pub(super) base: IndexBase,
    /// The declared number of features.
    pub(super) n_features: Option<u64>,
}

/// The samples read so far.
#[derive(Debug)]
pub(super) struct Rows<T> {
    pub(super) labels: Vec<T>,
    pub(super) indptr: Vec<u64>,
    /// Indices as written, less `first`: index 0 of a file that was assumed to count from one wraps
    /// around.
    pub(super) columns: ColumnIds,
    pub(super) values: Vec<T>,
    /// The index of the first feature, known or assumed.
    pub(super) first: u64,
    /// The line ends passed.
    pub(super) lines: u64,
    /// The largest index as written.
    pub(super) largest: Option<u64>,
    /// Whether index 0 occurs.
    pub(super) has_zero: bool,
    /// The offset, in the last block, of the first sample whose largest index is valid only if
    /// indices count from one, which is not known yet.
    pub(super) needs_base_one: Option<usize>,
}

impl<T: Float> Rows<T> {
    pub(super) fn new(base: IndexBase) -> Self {
        Rows {
            labels: Vec::new(),
            indptr: vec![0],
            columns: ColumnIds::U32(Vec::new()),
            values: Vec::new(),
            first: largest_base(base),
            lines: 0,
            largest: None,
            has_zero: false,
            needs_base_one: None,
        }
    }

    /// Reserves memory for this number of further samples and entries.
    pub(super) fn reserve(&mut self, rows: usize, entries: usize) {
        reserve_large(&mut self.labels, rows);
        reserve_large(&mut self.indptr, rows);
        reserve_large(&mut self.values, entries);
        match &mut self.columns {
            ColumnIds::U32(columns) => reserve_large(columns, entries),
            ColumnIds::U64(columns) => reserve_large(columns, entries),
        }
    }

    /// Reserves memory for this number of further ones, plus half of the present ones: copies are
    /// then rare in the long run.
    ///
    /// # Errors
    ///
    /// The bytes of an array for which there is no memory.
    pub(super) fn grow(&mut self, rows: usize, entries: usize) -> Result<(), usize> {
        make_room(&mut self.labels, rows)?;
        make_room(&mut self.indptr, rows)?;
        make_room(&mut self.values, entries)?;
        match &mut self.columns {
            ColumnIds::U32(columns) => make_room(columns, entries),
            ColumnIds::U64(columns) => make_room(columns, entries),
        }
    }

    /// Releases unused memory.
    pub(super) fn shrink(&mut self) {
        self.labels.shrink_to_fit();
        self.indptr.shrink_to_fit();
        self.values.shrink_to_fit();
        match &mut self.columns {
            ColumnIds::U32(columns) => columns.shrink_to_fit(),
            ColumnIds::U64(columns) => columns.shrink_to_fit(),
        }
    }

    /// How many there are.
    pub(super) fn size(&self) -> Taken {
        Taken { rows: self.labels.len(), entries: self.values.len() }
    }

    /// Clears all samples; the memory is kept, and the width of columns.
    pub(super) fn clear(&mut self) {
        self.labels.clear();
        self.indptr.truncate(1);
        self.values.clear();
        match &mut self.columns {
            ColumnIds::U32(columns) => columns.clear(),
            ColumnIds::U64(columns) => columns.clear(),
        }
        (self.lines, self.largest, self.has_zero, self.needs_base_one) = (0, None, false, None);
    }

    /// Indices count from zero after all.
    pub(super) fn count_from_zero(&mut self) {
        let first = std::mem::take(&mut self.first);
        match &mut self.columns {
            ColumnIds::U32(columns) => {
                columns.iter_mut().for_each(|column| *column = column.wrapping_add(first as u32))
            }
            ColumnIds::U64(columns) => {
                columns.iter_mut().for_each(|column| *column = column.wrapping_add(first));
            }
        }
    }

    /// Drops the started part of a faulty sample.
    pub(super) fn discard_partial(&mut self) {
        self.labels.truncate(self.indptr.len() - 1);
        let nnz = self.indptr[self.indptr.len() - 1] as usize;
        self.values.truncate(nnz);
        match &mut self.columns {
            ColumnIds::U32(columns) => columns.truncate(nnz),
            ColumnIds::U64(columns) => columns.truncate(nnz),
        }
    }

    /// Appends the samples of a block of whole lines, up to a fault: then the samples before it,
    /// and a part of the faulty one.
    pub(super) fn parse(&mut self, block: &[u8], rules: Rules) -> Result<(), Fault> {
        // Not for vectors: for shifts by any number of bits, and for counts of zeros.
        simd::wide(
            #[inline(always)]
            || self.lines(block, rules),
        )
    }

    #[inline(always)]
    fn lines(&mut self, block: &[u8], rules: Rules) -> Result<(), Fault> {
        self.needs_base_one = None;
        let mut rest = block;
        loop {
            rest = skip_blanks(rest);
            match rest {
                [] => return Ok(()),
                [b'\n', after @ ..] => {
                    self.lines += 1;
                    rest = after;
                }
                [b'#', ..] => rest = skip_line(rest),
                _ => match self.row(block, rest, rules) {
                    Ok(after) => rest = after,
                    Err((left, problem)) => {
                        let offset = block.len() - left;
                        let problem = or_carriage_return(block, offset, problem);
                        return Err(Fault { offset, problem });
                    }
                },
            }
        }
    }

    /// One sample, at the beginning of `text`, the end of `block`; returns the text after it. An
    /// error carries the number of bytes from its position to the end.
    #[inline(always)]
    fn row<'a>(
        &mut self,
        block: &'a [u8],
        text: &'a [u8],
        rules: Rules,
    ) -> Result<&'a [u8], (usize, Problem)> {
        let start = self.values.len();
        let (label, mut rest) = label(text)?;
        self.labels.push(label);
        let mut smallest = u64::from(rules.base == IndexBase::One);
        loop {
            if let ColumnIds::U32(columns) = &mut self.columns {
                let first = self.first as u32;
                let at = block.len() - rest.len();
                let values = &mut self.values;
                rest = &block[usual_entries(block, at, (columns, values), &mut smallest, first)..];
            }
            rest = skip_blanks(rest);
            let entry = rest;
            let (index, n_digits, after) = digits(entry);
            if n_digits == 0 {
                match entry {
                    [] => break,
                    [b'\n', after @ ..] => {
                        self.lines += 1;
                        rest = after;
                        break;
                    }
                    [b'#', ..] => rest = skip_line(entry),
                    // Query ids group the rows of ranking data; no model here reads them.
                    [b'q', b'i', b'd', b':', ..] => rest = skip_word(entry),
                    _ => {
                        let found = Excerpt::word(entry);
                        return Err((entry.len(), Problem::ExpectedEntry { found }));
                    }
                }
                continue;
            }
            if index < smallest || index >= 1 << 63 || n_digits > MAX_DIGITS {
                let previous = (self.values.len() > start).then(|| smallest - 1);
                return Err((entry.len(), bad_index(entry, index, n_digits, previous)));
            }
            smallest = index + 1;
            let value = match after {
                [b':', text @ ..] => {
                    let (value, after) = value(index, text)?;
                    rest = after;
                    value
                }
                _ => {
                    let found = Excerpt::word(after);
                    return Err((after.len(), Problem::ExpectedColon { index, found }));
                }
            };
            self.push(index, value);
        }
        self.indptr.push(self.values.len() as u64);
        if self.values.len() == start {
            return Ok(rest);
        }
        // The first index of a row is its smallest and the last its largest: no other need be
        // looked at.
        let [first, last] = [start, self.values.len() - 1].map(|at| match &self.columns {
            ColumnIds::U32(columns) => u64::from(columns[at].wrapping_add(self.first as u32)),
            ColumnIds::U64(columns) => columns[at].wrapping_add(self.first),
        });
        if let Some(n_features) = rules.n_features
            && last >= n_features
        {
            if !within(rules.base, n_features, last) {
                self.indptr.pop();
                return Err(beyond_declared(text, rules.base, n_features, last));
            }
            if rules.base == IndexBase::Detect && self.needs_base_one.is_none() {
                self.needs_base_one = Some(block.len() - text.len());
            }
        }
        self.has_zero |= first == 0;
        self.largest = self.largest.max(Some(last));
        Ok(rest)
    }

    #[inline(always)]
    fn push(&mut self, index: u64, value: T) {
        self.values.push(value);
        match (&mut self.columns, u32::try_from(index)) {
            (ColumnIds::U32(columns), Ok(index)) => {
                columns.push(index.wrapping_sub(self.first as u32));
            }
            (ColumnIds::U64(columns), _) => columns.push(index.wrapping_sub(self.first)),
            (ColumnIds::U32(_), Err(_)) => self.push_wide(index),
        }
    }

    /// The first index above 32 bits makes all of them 64 bits wide.
    #[cold]
    fn push_wide(&mut self, index: u64) {
        if let ColumnIds::U32(narrow) = &self.columns {
            let columns = narrow.iter().map(|&column| widened(column, self.first));
            self.columns = ColumnIds::U64(columns.collect());
        }
        if let ColumnIds::U64(columns) = &mut self.columns {
            columns.push(index.wrapping_sub(self.first));
        }
    }
}

/// An index less the first, in 64 bits: one that wrapped around does so again.
pub(super) fn widened(column: u32, first: u64) -> u64 {
    u64::from(column.wrapping_add(first as u32)).wrapping_sub(first)
}

/// The index of the first feature; the larger one until it is known.
fn largest_base(base: IndexBase) -> u64 {
    u64::from(base != IndexBase::Zero)
}

/// Whether an index is within the declared width.
fn within(base: IndexBase, n_features: u64, index: u64) -> bool {
    index < n_features.saturating_add(largest_base(base))
}

/// Finds the first entry of a sample beyond the declared width; `last` is known to be.
#[cold]
fn beyond_declared(row: &[u8], base: IndexBase, n_features: u64, last: u64) -> (usize, Problem) {
    let mut rest = row;
    let index = loop {
        rest = skip_blanks(skip_word(rest));
        match (rest, digits(rest)) {
            ([] | [b'\n', ..], _) => break last,
            (_, (index, 1.., _)) if !within(base, n_features, index) => break index,
            _ => {}
        }
    };
    let base = largest_base(base);
    let problem = Problem::BeyondDeclared { index, n_features, base };
    (rest.len(), problem)
}

#[inline(always)]
fn label<T: Float>(text: &[u8]) -> Result<(T, &[u8]), (usize, Problem)> {
    match number(text) {
        Ok((label, rest)) if ends_here(rest) => Ok((label, rest)),
        other => Err((text.len(), bad_label(text, other.err()))),
    }
}

#[inline(always)]
fn value<T: Float>(index: u64, text: &[u8]) -> Result<(T, &[u8]), (usize, Problem)> {
    match number(text) {
        Ok((value, rest)) if ends_here(rest) => Ok((value, rest)),
        other => Err((text.len(), bad_value(index, text, other.err()))),
    }
}

fn skip_until(rest: &[u8], end: impl Fn(u8) -> bool) -> &[u8] {
    let at = rest.iter().position(|&byte| end(byte));
    &rest[at.unwrap_or(rest.len())..]
}

fn skip_line(rest: &[u8]) -> &[u8] {
    skip_until(rest, |byte| byte == b'\n')
}

fn skip_word(rest: &[u8]) -> &[u8] {
    skip_until(rest, |byte| byte.is_ascii_whitespace())
}

#[cold]
fn bad_label(text: &[u8], error: Option<NotANumber>) -> Problem {
    let found = Excerpt::word(text);
    let is_entry = matches!(digits(text), (_, 1.., [b':', ..]));
    match error {
        Some(NotANumber::NotFinite) => Problem::LabelNotFinite { found },
        _ if is_entry => Problem::MissingLabel { found },
        _ => Problem::ExpectedLabel { found },
    }
}

#[cold]
fn bad_value(index: u64, text: &[u8], error: Option<NotANumber>) -> Problem {
    if ends_here(text) {
        return Problem::MissingValue { index };
    }
    let found = Excerpt::word(text);
    match error {
        Some(NotANumber::NotFinite) => Problem::ValueNotFinite { index, found },
        _ => Problem::ExpectedValue { index, found },
    }
}

#[cold]
fn bad_index(entry: &[u8], index: u64, n_digits: usize, previous: Option<u64>) -> Problem {
    match previous {
        _ if n_digits > MAX_DIGITS || index >= 1 << 63 => {
            Problem::IndexTooLarge { found: Excerpt::word(entry) }
        }
        None => Problem::IndexZero,
        Some(previous) if index == previous => Problem::DuplicateIndex { index },
        Some(previous) => Problem::DescendingIndex { index, previous },
    }
}
