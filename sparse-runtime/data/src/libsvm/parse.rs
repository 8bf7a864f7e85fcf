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
use super::fast_path::common_entries;
use super::parsed_samples::{ParsedSamples, largest_base, widened};
use super::tolerance::Tolerance;
use nnz_arrays::formats::ColumnIds;
use nnz_device::simd;
use sparse_core::element::Float;

/// The settings for the text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    /// The index of the first feature.
    pub(super) base: IndexBase,
    /// The declared number of features.
    pub(super) n_features: Option<u64>,
    pub(super) tolerance: Tolerance,
}

impl<T: Float> ParsedSamples<T> {
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
        let (label, mut rest) =
            if rules.tolerance.any_label { (T::zero(), after_label(text)) } else { label(text)? };
        self.labels.push(label);
        if rules.tolerance.hashing.is_some() {
            rest = self.entries_in_any_order(rest, rules)?;
            return self.finish_row(block, text, rest, start, rules);
        }
        let entries = rest;
        let mut smallest = u64::from(rules.base == IndexBase::One);
        loop {
            if let ColumnIds::U32(columns) = &mut self.columns {
                let first = self.first as u32;
                let at = block.len() - rest.len();
                let values = &mut self.values;
                rest = &block[common_entries(block, at, (columns, values), &mut smallest, first)..];
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
                    [b'|', ..] => return Err((entry.len(), vowpal_wabbit(entry))),
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
                if rules.tolerance.unsorted || rules.tolerance.repeated {
                    self.discard_entries(start);
                    rest = self.entries_in_any_order(entries, rules)?;
                    break;
                }
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
        self.finish_row(block, text, rest, start, rules)
    }

    /// Completes a sample whose entries from `start` on ascend; returns `rest`.
    #[inline(always)]
    fn finish_row<'a>(
        &mut self,
        block: &'a [u8],
        text: &'a [u8],
        rest: &'a [u8],
        start: usize,
        rules: Rules,
    ) -> Result<&'a [u8], (usize, Problem)> {
        if let (true, Some(n_features)) = (rules.tolerance.unknown, rules.n_features) {
            self.discard_beyond(start, rules.base, n_features);
        }
        self.indptr.push(self.values.len() as u64);
        if self.values.len() == start {
            return Ok(rest);
        }
        // The first index of a row is its smallest and the last its largest: no other need be
        // looked at.
        let [first, last] = [start, self.values.len() - 1].map(|at| self.index_at(at));
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

    /// Reads the entries of a sample that may be in any order, and whose values may have to be
    /// added; returns the text after the sample.
    #[cold]
    fn entries_in_any_order<'a>(
        &mut self,
        text: &'a [u8],
        rules: Rules,
    ) -> Result<&'a [u8], (usize, Problem)> {
        let Tolerance { unsorted, repeated, hashing, .. } = rules.tolerance;
        let mut entries: Vec<(u64, T, usize)> = Vec::new();
        let mut rest = text;
        loop {
            rest = skip_blanks(rest);
            let entry = rest;
            let (index, n_digits, after) = digits(entry);
            match (n_digits, entry) {
                (0, []) => break,
                (0, [b'\n', after @ ..]) => {
                    self.lines += 1;
                    rest = after;
                    break;
                }
                (0, [b'#', ..]) => rest = skip_line(entry),
                (0, [b'|', ..]) => return Err((entry.len(), vowpal_wabbit(entry))),
                (0, [b'q', b'i', b'd', b':', ..]) => rest = skip_word(entry),
                (0, _) => {
                    let found = Excerpt::word(entry);
                    return Err((entry.len(), Problem::ExpectedEntry { found }));
                }
                _ => {
                    let previous = entries.last().map(|(index, ..)| *index);
                    let is_too_large = index >= 1 << 63 || n_digits > MAX_DIGITS;
                    let is_before_first = rules.base == IndexBase::One && index == 0;
                    if is_too_large || is_before_first {
                        return Err((entry.len(), bad_index(entry, index, n_digits, None)));
                    }
                    if let Some(previous) = previous.filter(|previous| index < *previous)
                        && !unsorted
                        && hashing.is_none()
                    {
                        let problem = bad_index(entry, index, n_digits, Some(previous));
                        return Err((entry.len(), problem));
                    }
                    let [b':', text @ ..] = after else {
                        let found = Excerpt::word(after);
                        return Err((after.len(), Problem::ExpectedColon { index, found }));
                    };
                    let (value, after) = value(index, text)?;
                    let index = match hashing {
                        Some(hashing) => hashing.column("", &index.to_le_bytes()),
                        None => index,
                    };
                    entries.push((index, value, entry.len()));
                    rest = after;
                }
            }
        }
        // Stable: values of an index are added in the order of the line.
        entries.sort_by_key(|(index, ..)| *index);
        let mut entries = entries.into_iter().peekable();
        while let Some((index, value, mut place)) = entries.next() {
            let mut sum = value.as_f64();
            while let Some((_, value, left)) = entries.next_if(|(next, ..)| *next == index) {
                if !repeated && hashing.is_none() {
                    return Err((left, Problem::DuplicateIndex { index }));
                }
                sum += value.as_f64();
                place = left;
            }
            let sum = T::of(sum);
            if !sum.is_finite() {
                return Err((place, Problem::SumNotFinite { index }));
            }
            self.push(index, sum);
        }
        Ok(rest)
    }

    /// Drops the entries from `start` on.
    #[cold]
    fn discard_entries(&mut self, start: usize) {
        self.values.truncate(start);
        match &mut self.columns {
            ColumnIds::U32(columns) => columns.truncate(start),
            ColumnIds::U64(columns) => columns.truncate(start),
        }
    }

    /// Drops the last entries from `start` on that are beyond the declared number of features.
    fn discard_beyond(&mut self, start: usize, base: IndexBase, n_features: u64) {
        let mut end = self.values.len();
        while end > start && !within(base, n_features, self.index_at(end - 1)) {
            end -= 1;
        }
        self.discard_entries(end);
    }

    /// The index of an entry, as written.
    #[inline(always)]
    fn index_at(&self, at: usize) -> u64 {
        match &self.columns {
            ColumnIds::U32(columns) => u64::from(columns[at].wrapping_add(self.first as u32)),
            ColumnIds::U64(columns) => columns[at].wrapping_add(self.first),
        }
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
        other => Err((text.len(), bad_label::<T>(text, other.err()))),
    }
}

/// The text after a label of any kind, or all of it if the sample begins with an entry.
fn after_label(text: &[u8]) -> &[u8] {
    match digits(text) {
        (_, 1.., [b':', ..]) => text,
        _ => skip_word(text),
    }
}

/// A value that blanks separate from its colon, as tables of fixed columns have them.
#[cold]
fn value_after_blanks<T: Float>(
    index: u64,
    text: &[u8],
    error: Option<NotANumber>,
) -> Result<(T, &[u8]), (usize, Problem)> {
    match number(skip_blanks(text)) {
        Ok((value, rest)) if ends_here(text) && ends_here(rest) => Ok((value, rest)),
        _ => Err((text.len(), bad_value::<T>(index, text, error))),
    }
}

#[inline(always)]
fn value<T: Float>(index: u64, text: &[u8]) -> Result<(T, &[u8]), (usize, Problem)> {
    match number(text) {
        Ok((value, rest)) if ends_here(rest) => Ok((value, rest)),
        other => value_after_blanks(index, text, other.err()),
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
fn vowpal_wabbit(text: &[u8]) -> Problem {
    Problem::VowpalWabbit { found: Excerpt::word(text) }
}

#[cold]
fn bad_label<T: Float>(text: &[u8], error: Option<NotANumber>) -> Problem {
    let found = Excerpt::word(text);
    let is_entry = matches!(digits(text), (_, 1.., [b':', ..]));
    match error {
        Some(NotANumber::NotFinite) => Problem::LabelNotFinite { found },
        Some(NotANumber::BeyondRange) => Problem::LabelBeyondRange { found, element: T::TYPE },
        _ if text.starts_with(b"|") => Problem::VowpalWabbit { found },
        _ if is_entry => Problem::MissingLabel { found },
        _ => Problem::ExpectedLabel { found },
    }
}

#[cold]
fn bad_value<T: Float>(index: u64, text: &[u8], error: Option<NotANumber>) -> Problem {
    if ends_here(text) {
        return Problem::MissingValue { index };
    }
    let found = Excerpt::word(text);
    match error {
        Some(NotANumber::NotFinite) => Problem::ValueNotFinite { index, found },
        Some(NotANumber::BeyondRange) => {
            Problem::ValueBeyondRange { index, found, element: T::TYPE }
        }
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
