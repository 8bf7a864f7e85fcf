//! LibSVM text of files being read: blocks of lines into samples, on one thread or several, and
//! what all of them say together.

use super::super::blocks::{BLOCK_BYTES, Blocks};
use super::super::read_error::Fault;
use super::super::text::{BYTE_ORDER_MARK, LabelWords, Skips, count_lines, place_in, skip_faults};
use super::super::{Dataset, OnError, Place, ReadError, ReadReport};
use super::parallel::{Found, Reading, lines_of_piece, n_pieces, read_pieces};
use super::parse::Rules;
use super::parsed_samples::ParsedSamples;
use super::read::{IndexBase, Reader};
use crate::Problem;
use nnz_arrays::formats::{ColumnIds, Csr};
use sparse_core::element::Float;
use std::io::Read;
use std::sync::Arc;

/// Files being read: the samples so far and their end in the file.
pub(super) struct Parsing<T: Float> {
    /// The files so far, the one being read last.
    names: Vec<String>,
    rules: Rules,
    rows: ParsedSamples<T>,
    n_threads: usize,
    /// Buffers for each of several threads.
    readings: Vec<Reading<T>>,
    /// Whether the next block begins the file.
    at_start: bool,
    /// The bytes of the files, if they are known and not yet reserved.
    bytes: usize,
    /// The first sample that is within the declared width only if indices count from one.
    needs_base_one: Option<Place>,
    on_error: OnError,
    skips: Skips,
    /// The words that are labels.
    label_names: Arc<[String]>,
}

impl<T: Float> Parsing<T> {
    pub(super) fn new(reader: &Reader<T>, bytes: usize) -> Self {
        Parsing {
            names: Vec::new(),
            rules: Rules {
                base: reader.index_base,
                n_features: reader.n_features.map(|n| n as u64),
                tolerance: reader.tolerance,
            },
            rows: ParsedSamples::new(reader.index_base),
            n_threads: reader.n_threads(),
            readings: Vec::new(),
            at_start: true,
            bytes,
            needs_base_one: None,
            on_error: reader.on_error,
            skips: Skips::new(reader.on_error),
            label_names: Arc::clone(&reader.label_names),
        }
    }

    /// Begins a file, at its start or in its middle.
    pub(super) fn begin(&mut self, name: &str, at_start: bool) {
        self.names.push(name.to_owned());
        self.at_start = at_start;
        self.rows.lines = 0;
    }

    /// Reads the lines of a file, which begin at its start or in its middle.
    pub(super) fn lines_of(
        &mut self,
        name: &str,
        at_start: bool,
        reader: impl Read,
    ) -> Result<(), ReadError> {
        self.begin(name, at_start);
        if !self.label_names.is_empty() {
            let reader = LabelWords::new(reader, Arc::clone(&self.label_names));
            return self.blocks_of(name, reader);
        }
        self.blocks_of(name, reader)
    }

    /// Reads the blocks of a file.
    fn blocks_of(&mut self, name: &str, reader: impl Read) -> Result<(), ReadError> {
        let mut blocks = Blocks::with_size(reader, self.block_bytes());
        while let Some(block) = blocks.next().map_err(|error| error.after(name, self.rows.lines))? {
            self.block(block)?;
        }
        Ok(())
    }

    /// The name of the file being read.
    fn name(&self) -> &str {
        self.names.last().map_or("", String::as_str)
    }

    /// The bytes of one read.
    fn block_bytes(&self) -> usize {
        BLOCK_BYTES * self.n_threads
    }

    /// Reserves memory for the samples of the whole file, estimated from its head.
    fn make_room(&mut self, head: &[u8]) {
        let bytes = std::mem::take(&mut self.bytes);
        if bytes > 0 {
            let (rows, entries) = promised(head, bytes);
            self.rows.reserve(rows, entries);
        }
    }

    /// Reads a block of whole lines.
    pub(super) fn block(&mut self, block: &[u8]) -> Result<(), ReadError> {
        let text = match block.strip_prefix(BYTE_ORDER_MARK) {
            Some(text) if self.at_start => text,
            _ => block,
        };
        self.at_start = false;
        self.make_room(text);
        let mut rest = text;
        while !rest.is_empty() {
            // A fault is found before all of a long text is read, and its line is counted from near
            // by.
            let head = lines_up_to(rest, 8 * BLOCK_BYTES);
            self.lines_of_threads(head)?;
            rest = &rest[head.len()..];
        }
        Ok(())
    }

    /// Reserves memory for the samples of a text, so that lack of memory is an error.
    fn grow_for(&mut self, text: &[u8]) -> Result<(), ReadError> {
        let (n_rows, n_entries) = promised(text, text.len());
        let grown = self.rows.grow(n_rows, n_entries);
        grown.map_err(|bytes| ReadError::OutOfMemory { file: self.name().to_owned(), bytes })
    }

    /// Reads whole lines.
    fn lines_of_threads(&mut self, text: &[u8]) -> Result<(), ReadError> {
        self.grow_for(text)?;
        // Where there is little, a thread costs more than it saves.
        let n_parts = (text.len() / (BLOCK_BYTES / 2)).clamp(1, self.n_threads);
        if n_parts > 1 {
            return self.lines_in_pieces(text, n_parts);
        }
        let lines = self.rows.lines;
        let faults = parse_part(&mut self.rows, text, self.rules, self.on_error);
        let needs_base_one = self.rows.needs_base_one;
        self.note(text, lines, 0, faults, needs_base_one)
    }

    /// Reads whole lines in pieces, each by a free thread.
    fn lines_in_pieces(&mut self, text: &[u8], n_parts: usize) -> Result<(), ReadError> {
        let (rules, on_error, lines) = (self.rules, self.on_error, self.rows.lines);
        if self.readings.len() < n_parts {
            self.readings.resize_with(n_parts, || Reading::new(rules.base));
        }
        let parse = |rows: &mut ParsedSamples<T>, piece: usize| {
            parse_part(rows, &text[lines_of_piece(text, piece)], rules, on_error)
        };
        let (mut next, n_pieces) = (0, n_pieces(text));
        while next < n_pieces {
            let readings = &mut self.readings[..n_parts];
            let (end, found) = read_pieces(&mut self.rows, readings, next..n_pieces, parse);
            for Found { piece, faults, needs_base_one } in found {
                self.note(text, lines, lines_of_piece(text, piece).start, faults, needs_base_one)?;
            }
            if end < n_pieces {
                // There was no room for it, or it is the first with wide columns: these rows grow,
                // and become wide.
                let start = lines_of_piece(text, end).start;
                self.grow_for(&text[start..])?;
                let faults = parse(&mut self.rows, end);
                let needs_base_one = self.rows.needs_base_one;
                self.note(text, lines, start, faults, needs_base_one)?;
            }
            next = end + 1;
        }
        Ok(())
    }

    /// Records the findings in some lines of a text, from `start` on. `lines` are those before the
    /// text.
    fn note(
        &mut self,
        text: &[u8],
        lines: u64,
        start: usize,
        faults: Vec<Fault>,
        needs_base_one: Option<usize>,
    ) -> Result<(), ReadError> {
        for Fault { offset, problem } in faults {
            let place = self.place(lines, text, start + offset);
            self.skips.add(place, problem)?;
        }
        if let (None, Some(offset)) = (&self.needs_base_one, needs_base_one) {
            self.needs_base_one = Some(self.place(lines, text, start + offset));
        }
        Ok(())
    }

    /// `lines` are those before the block.
    fn place(&self, lines: u64, block: &[u8], offset: usize) -> Place {
        place_in(self.name(), lines, block, offset)
    }

    /// Determines the base and the width.
    pub(super) fn finish(self) -> Result<Dataset<T>, ReadError> {
        let file = || self.names.join(", ");
        let mut rows = self.rows;
        if rows.labels.is_empty() {
            return Err(ReadError::Empty { file: file() });
        }
        let base = match self.rules.base {
            IndexBase::Detect if rows.has_zero => IndexBase::Zero,
            IndexBase::Detect => IndexBase::One,
            known => known,
        };
        if let (IndexBase::Zero, Some(place), Some(n_features)) =
            (base, self.needs_base_one, self.rules.n_features)
        {
            let problem = Problem::BeyondDeclared { index: n_features, n_features, base: 0 };
            return Err(ReadError::Syntax { place, problem });
        }
        let first = u64::from(base == IndexBase::One);
        let n_columns = match (self.rules.n_features, rows.largest) {
            (Some(n_features), _) => n_features,
            (None, Some(largest)) => largest + 1 - first,
            (None, None) => 0,
        };
        let n_columns = usize::try_from(n_columns).map_err(|_| ReadError::Content {
            file: file(),
            message: format!("{n_columns} features are more than this machine can address"),
        })?;
        if self.rules.base == IndexBase::Detect && base == IndexBase::Zero {
            rows.count_from_zero();
        }
        rows.shrink();
        // The parser saw that indices ascend and are within the width.
        let features = match rows.columns {
            ColumnIds::U32(columns) => {
                Csr::from_canonical(n_columns, rows.indptr, columns, rows.values)
            }
            ColumnIds::U64(columns) => {
                Csr::from_canonical(n_columns, rows.indptr, columns, rows.values)
            }
        };
        let dataset = if self.rules.tolerance.any_label {
            Dataset::features_only(features)
        } else {
            Dataset::new(features, rows.labels)
        };
        let dataset =
            dataset.map_err(|source| ReadError::Data { file: file(), source: Box::new(source) })?;
        Ok(dataset.with_report(ReadReport {
            index_base: Some(base),
            detected: self.rules.base == IndexBase::Detect,
            n_skipped: self.skips.count,
            first_skipped: self.skips.first,
            ..ReadReport::of_file(file())
        }))
    }
}

/// Parses whole lines; returns the faults of skippable samples, and one more if there is one.
fn parse_part<T: Float>(
    rows: &mut ParsedSamples<T>,
    part: &[u8],
    rules: Rules,
    on_error: OnError,
) -> Vec<Fault> {
    let (mut needs_base_one, lines) = (None, rows.lines);
    let faults = skip_faults(part, on_error, |text| {
        let result = rows.parse(text, rules);
        let start = part.len() - text.len();
        needs_base_one = needs_base_one.or(rows.needs_base_one.map(|offset| start + offset));
        if result.is_err() {
            rows.discard_partial();
        }
        result
    });
    rows.needs_base_one = needs_base_one;
    if !faults.is_empty() {
        // The end of a line that was skipped was not passed.
        rows.lines = lines + count_lines(part);
    }
    faults
}

/// The first lines of a text: `size` bytes, extended to the end of the line there.
fn lines_up_to(text: &[u8], size: usize) -> &[u8] {
    let end = text.iter().skip(size).position(|&byte| byte == b'\n');
    &text[..end.map_or(text.len(), |end| size + end + 1)]
}

/// The estimated samples and entries of this number of bytes, and a few more.
fn promised(text: &[u8], bytes: usize) -> (usize, usize) {
    /// The bytes that are sampled.
    const HEAD: usize = 1 << 18;
    /// Parts of a file exceed the estimate.
    const MARGIN: f64 = 1.02;
    let head = &text[..text.len().min(HEAD)];
    let times = bytes as f64 / head.len().max(1) as f64 * MARGIN;
    let [rows, entries] = [b'\n', b':'].map(|mark| (count(head, mark) as f64 * times) as usize);
    (rows, entries)
}

fn count(text: &[u8], wanted: u8) -> u64 {
    // Counts of a byte each are added in one register, as many as a byte can hold.
    let found = |chunk: &[u8]| chunk.iter().map(|&byte| u8::from(byte == wanted)).sum::<u8>();
    text.chunks(usize::from(u8::MAX)).map(|chunk| u64::from(found(chunk))).sum()
}
