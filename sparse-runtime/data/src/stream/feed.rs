//! The threads of a stream: one reads blocks, some parse them, and blocks come out in the order in
//! which they went in.

use super::super::blocks::{Blocks, Compression, io_error, open_counted};
use super::super::classes::Classes;
use super::super::delimited::LINE_END;
use super::super::libsvm::lines_before;
use super::super::read_error::Fault;
use super::super::text::{
    Chunk, ChunkColumn, RowParser, count_lines, parse_part, place_in, with_positions,
};
use super::super::{Excerpt, Place, Problem, ReadError};
use super::binary_labels::written;
use super::blocks::{BlockFault, Unit, read_lines};
#[cfg(feature = "parquet")]
use super::columnar::{Batch, batch_parser, parse_group_batch, read_group};
use super::epoch_cache::CachedUnit;
use super::label_check::LabelCheck;
use super::parsed::Parsed;
use super::{Source, lost_thread, spawn};
#[cfg(feature = "parquet")]
use crate::columnar::BatchParser;
use nnz_step::model::LabelKind;
use sparse_core::element::Float;
use std::fs::File;
use std::io::BufReader;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

/// A block on its way to a parser.
enum Job {
    Text(Block),
    /// A batch of a columnar file.
    #[cfg(feature = "parquet")]
    Batch(Batch),
    /// A block of a unit that has been parsed before.
    Cached {
        unit: usize,
        blocks: Arc<CachedUnit>,
        number: usize,
    },
    Failed(ReadError),
    /// The end of the blocks; without it a thread was lost.
    End,
}

struct Block {
    unit: usize,
    /// Whether it is the last of its unit.
    is_last: bool,
    text: Vec<u8>,
    /// Its start in the file, or in the text of a compressed file.
    start: u64,
    /// The number of lines before it, if known.
    lines: Option<u64>,
}

/// The purpose of the blocks of a feed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Samples, from text or from the kept file.
    Samples,
    /// The lines of labels: all text is parsed.
    Places,
}

/// Blocks of samples, in order. The threads end when it is dropped.
pub(super) struct Feed<T: Float> {
    results: Vec<Receiver<Result<Option<Parsed<T>>, ReadError>>>,
    next: usize,
    threads: Vec<JoinHandle<()>>,
}

impl<T: Float> Feed<T> {
    /// Starts to read the units of an order.
    ///
    /// # Errors
    ///
    /// [`ReadError::Stream`] if the system starts no thread.
    pub(super) fn start(
        source: &Arc<Source<T>>,
        order: Vec<usize>,
        checks: Vec<LabelCheck>,
        purpose: Purpose,
    ) -> Result<Self, ReadError> {
        let n_parsers = source.options.n_threads().min(source.sizes.max_parsers);
        let mut feed = Feed { results: Vec::new(), next: 0, threads: Vec::new() };
        let mut jobs = Vec::new();
        for _ in 0..n_parsers {
            let (job, blocks) = sync_channel(1);
            let (rows, result) = sync_channel(1);
            jobs.push(job);
            feed.results.push(result);
            let (source, checks) = (Arc::clone(source), checks.clone());
            feed.threads.push(spawn(move || parse(&source, (&checks, purpose), &blocks, &rows))?);
        }
        let source = Arc::clone(source);
        let reader = spawn(move || {
            let mut next = 0;
            let mut send = |job| {
                let sent = jobs[next % jobs.len()].send(job).is_ok();
                next += 1;
                sent
            };
            // A receiver that is gone needs no more.
            let last = match read_units(&source, &order, (&checks, purpose), &mut send) {
                Ok(()) => Job::End,
                Err(error) => Job::Failed(error),
            };
            send(last);
        });
        feed.threads.push(reader?);
        Ok(feed)
    }

    /// The next block, or `None` after the last.
    pub(super) fn next(&mut self) -> Result<Option<Parsed<T>>, ReadError> {
        let result = self.results[self.next % self.results.len()].recv();
        self.next += 1;
        result.unwrap_or_else(|_| Err(lost_thread()))
    }
}

impl<T: Float> Drop for Feed<T> {
    fn drop(&mut self) {
        self.results.clear();
        for thread in self.threads.drain(..) {
            // `next` has reported one that panicked.
            let _ = thread.join();
        }
    }
}

/// Reads units in order; ends early if the receiver is gone.
fn read_units<T: Float>(
    source: &Source<T>,
    order: &[usize],
    (checks, purpose): (&[LabelCheck], Purpose),
    send: &mut impl FnMut(Job) -> bool,
) -> Result<(), ReadError> {
    let mut open: Option<(usize, File)> = None;
    // An epoch of rows that are kept reads no file.
    let kept = source.epoch_cache.as_ref().filter(|_| purpose == Purpose::Samples);
    let mut reads_text = kept.is_none();
    let bytes_of =
        |&unit: &usize| source.units[unit].bytes(source.files[source.units[unit].file()].len);
    // What is passed over has been read.
    let mut bytes = source.total_bytes() - order.iter().map(bytes_of).sum::<u64>();
    for &unit in order {
        let index = source.units[unit].file();
        let file = &source.files[index];
        if let Some(blocks) = kept.and_then(|kept| kept.unit(unit, checks)) {
            for number in 0..blocks.n_blocks() {
                if !send(Job::Cached { unit, blocks: Arc::clone(&blocks), number }) {
                    return Ok(());
                }
            }
            bytes += bytes_of(&unit);
            source.tell(file, bytes);
            continue;
        }
        reads_text = true;
        match source.units[unit] {
            Unit::Lines { start, end, .. } => {
                if open.as_ref().is_none_or(|(known, _)| *known != index) {
                    let opened = File::open(&file.path).map_err(|e| io_error(&file.name, e))?;
                    file.check(opened.metadata())?;
                    open = Some((index, opened));
                }
                let Some((_, reader)) = &mut open else { continue };
                let mut text = Vec::with_capacity((end - start) as usize + 4096);
                let limit = source.sizes.line;
                let start = match read_lines(&file.name, reader, (start, end), limit, &mut text) {
                    Ok(start) => start,
                    Err(BlockFault::Read(error)) => return Err(error),
                    Err(BlockFault::LongLine(start)) => {
                        let problem = Problem::LineTooLong { limit };
                        let lines = lines_in(&file.path, &file.name, start)?;
                        let place = Place { file: file.name.clone(), line: lines + 1, column: 1 };
                        return Err(ReadError::Syntax { place, problem });
                    }
                };
                let lines = (start == 0).then_some(0);
                if !send(Job::Text(Block { unit, is_last: true, text, start, lines })) {
                    return Ok(());
                }
                bytes += bytes_of(&unit);
                source.tell(file, bytes);
            }
            Unit::Whole { .. } => {
                let (reader, count) = open_counted(&file.path)?;
                file.check(std::fs::metadata(&file.path))?;
                let blocks = Blocks::with_size(reader, source.sizes.block);
                let mut blocks = blocks.longest_line(source.sizes.line);
                let mut next_text = |lines| {
                    let text = blocks.next().map_err(|error| error.after(&file.name, lines))?;
                    Ok::<_, ReadError>(text.map(<[u8]>::to_vec))
                };
                let (mut start, mut lines) = (0, 0);
                let mut next = next_text(lines)?;
                while let Some(text) = next {
                    let (len, ends) = (text.len() as u64, count_lines(&text));
                    next = next_text(lines + ends)?;
                    let is_last = next.is_none();
                    let block = Block { unit, is_last, text, start, lines: Some(lines) };
                    if !send(Job::Text(block)) {
                        return Ok(());
                    }
                    start += len;
                    lines += ends;
                    source.tell(file, bytes + count.bytes());
                }
                bytes += bytes_of(&unit);
                source.tell(file, bytes);
            }
            #[cfg(feature = "parquet")]
            Unit::Group { group, .. } => {
                file.check(std::fs::metadata(&file.path))?;
                let send = &mut |batch| send(Job::Batch(batch));
                if !read_group(source.sizes, file, (unit, group), send)? {
                    return Ok(());
                }
                bytes += bytes_of(&unit);
                source.tell(file, bytes);
            }
        }
    }
    if reads_text { source.check_files() } else { Ok(()) }
}

/// Parses blocks until the end, or until the receiver is gone.
fn parse<T: Float>(
    source: &Source<T>,
    (checks, purpose): (&[LabelCheck], Purpose),
    blocks: &Receiver<Job>,
    rows: &SyncSender<Result<Option<Parsed<T>>, ReadError>>,
) {
    let mut parser: Option<(usize, Box<dyn RowParser<T>>)> = None;
    #[cfg(feature = "parquet")]
    let mut table: Option<(usize, Box<dyn BatchParser<T>>)> = None;
    while let Ok(job) = blocks.recv() {
        let result = match job {
            Job::End => Ok(None),
            Job::Failed(error) => Err(error),
            Job::Cached { unit, blocks, number } => match &source.epoch_cache {
                Some(kept) => {
                    kept.read((unit, &blocks), number, Chunk::new(&source.layout)).map(Some)
                }
                None => continue,
            },
            Job::Text(block) => {
                let file = source.units[block.unit].file();
                if parser.as_ref().is_none_or(|(known, _)| *known != file) {
                    parser = Some((file, source.format.parser(&source.files[file].head)));
                }
                let Some((_, parser)) = &mut parser else { continue };
                parse_block(source, (checks, purpose), parser, &block).map(Some)
            }
            #[cfg(feature = "parquet")]
            Job::Batch(batch) => {
                let file = source.units[batch.unit].file();
                if table.as_ref().is_none_or(|(known, _)| *known != file) {
                    table = batch_parser(source, file).map(|parser| (file, parser));
                }
                let Some((_, parser)) = &mut table else { continue };
                parse_group_batch(source, (checks, purpose), &mut **parser, &batch).map(Some)
            }
        };
        let is_end = !matches!(result, Ok(Some(_)));
        if rows.send(result).is_err() || is_end {
            return;
        }
    }
}

fn parse_block<T: Float>(
    source: &Source<T>,
    (checks, purpose): (&[LabelCheck], Purpose),
    parser: &mut Box<dyn RowParser<T>>,
    block: &Block,
) -> Result<Parsed<T>, ReadError> {
    let file = &source.files[source.units[block.unit].file()];
    // Columns are counted without the mark.
    let mark = super::super::text::BYTE_ORDER_MARK;
    let marked = block.text.strip_prefix(mark).filter(|_| block.start == 0);
    let text = marked.unwrap_or(&block.text);
    let names = &source.options.label_names;
    let named = (!names.is_empty()).then(|| with_positions(text, names));
    let text = named.as_deref().unwrap_or(text);
    let place = |offset| -> Result<Place, ReadError> {
        let lines = match block.lines {
            Some(lines) => lines,
            None => lines_in(&file.path, &file.name, block.start)?,
        };
        Ok(place_in(&file.name, lines, text, offset))
    };
    // The parser would take the byte for a quoted line end that was joined, of which a stream has
    // none.
    if source.format.has_quotes()
        && let Some(offset) = memchr::memchr(LINE_END, text)
    {
        let problem = Problem::NotUtf8 { found: Excerpt::word(&text[offset..]) };
        return Err(ReadError::Syntax { place: place(offset)?, problem });
    }
    let mut first = 0;
    if block.start == 0 {
        match parser.header(text) {
            Ok(header) => first = header,
            Err(Fault { offset, problem }) => {
                return Err(ReadError::Syntax { place: place(offset)?, problem });
            }
        }
    }
    let mut rows = Chunk::new(&source.parsed_layout);
    let faults = parse_part(parser, &text[first..], &mut rows, source.on_error());
    let faults = faults
        .into_iter()
        .map(|Fault { offset, problem }| {
            let offset = first + offset;
            // The other fault of a quoted field is at the byte behind its last quote.
            let is_open = problem == Problem::Quote && text.get(offset) == Some(&b'"');
            let problem = if is_open { Problem::QuotedLineEnd } else { problem };
            Ok((place(offset)?, problem))
        })
        .collect::<Result<Vec<_>, ReadError>>()?;
    let Block { unit, is_last, .. } = *block;
    let parsed = Parsed { unit, is_last, rows, faults, written: Vec::new(), is_cached: false };
    with_labels(source, (checks, purpose), parsed, |row| {
        place(first + offset_of_row(parser, &text[first..], source, row))
    })
}

/// Checks the labels of samples, and turns them into classes; `place` is that of a sample.
pub(super) fn with_labels<T: Float>(
    source: &Source<T>,
    (checks, purpose): (&[LabelCheck], Purpose),
    mut parsed: Parsed<T>,
    mut place: impl FnMut(usize) -> Result<Place, ReadError>,
) -> Result<Parsed<T>, ReadError> {
    let rows = &mut parsed.rows;
    if let Some((row, problem)) = misfit(rows, checks, source) {
        return Err(ReadError::Syntax { place: place(row)?, problem });
    }
    parsed.written = written(rows, checks);
    if purpose == Purpose::Places {
        for label in &mut parsed.written {
            label.place = Some(place(label.row)?);
        }
    }
    if let Some(classes) = &source.classes {
        into_classes(rows, source, classes);
    }
    rows.shrink_to_fit();
    Ok(parsed)
}

/// The first label that does not fit the model or the classes, by its sample.
fn misfit<T: Float>(
    rows: &Chunk<T>,
    checks: &[LabelCheck],
    source: &Source<T>,
) -> Option<(usize, Problem)> {
    checks.iter().find_map(|check| {
        if check.kind == LabelKind::Class {
            let ChunkColumn::Dense { values, width: 1 } = &rows.columns[check.column] else {
                return None;
            };
            let known = source.classes.as_ref()?;
            let row = values.iter().position(|label| known.id(label.as_f64()).is_none())?;
            let problem =
                Problem::UnknownClass { label: values[row].as_f64(), known: known.clone() };
            return Some((row, problem));
        }
        let misfit = rows.find_label(check.column, |label| !check.kind.fits(label));
        let (row, label) = misfit?;
        let problem = Problem::Label {
            label: label.as_f64(),
            declared: check.declared.to_owned(),
            expected: check.kind.expectation(),
        };
        Some((row, problem))
    })
}

/// Labels of one number a sample become ids; all of them are classes.
fn into_classes<T: Float>(rows: &mut Chunk<T>, source: &Source<T>, classes: &Classes) {
    let changed = source.parsed_layout.iter().zip(&source.layout).position(|(a, b)| a != b);
    if let Some(column) = changed
        && let ChunkColumn::Dense { values, width } = &rows.columns[column]
    {
        let id = |label: &T| classes.id(label.as_f64()).unwrap_or_default();
        let values = values.iter().map(id).collect();
        rows.columns[column] = ChunkColumn::Ids { width: *width, values };
    }
}

/// The start of a sample's line: found by parsing line after line, for an error only.
#[cold]
fn offset_of_row<T: Float>(
    parser: &mut Box<dyn RowParser<T>>,
    text: &[u8],
    source: &Source<T>,
    row: usize,
) -> usize {
    let mut rows = Chunk::new(&source.parsed_layout);
    let mut start = 0;
    for line in text.split_inclusive(|&byte| byte == b'\n') {
        parse_part(parser, line, &mut rows, source.on_error());
        if rows.n_rows > row {
            break;
        }
        start += line.len();
    }
    start
}

/// The lines before a place of a file that is not compressed.
#[cold]
fn lines_in(path: &std::path::Path, name: &str, start: u64) -> Result<u64, ReadError> {
    debug_assert!(Compression::of(name).is_none());
    let file = File::open(path).map_err(|source| io_error(name, source))?;
    lines_before(&mut BufReader::new(file), start).map_err(|source| io_error(name, source))
}
