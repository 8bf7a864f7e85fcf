//! Reading columnar files into memory: a row group is the work of a thread.

use super::reader::Parsing;
use super::{Chunk, OnError, RowFormat};
use crate::ReadError;
use crate::blocks::BLOCK_BYTES;
use crate::columnar::{BatchParser, ColumnarFile, RowFault, parse_batch, place_of};
use nnz_device::thread_pool;
use sparse_core::element::Float;
use std::path::Path;

/// The rows of a row group, and those with a fault by their positions in it.
type GroupResult = Result<(u64, Vec<RowFault>), ReadError>;

impl<T: Float, F: RowFormat<T>> Parsing<'_, T, F> {
    /// Reads a file if it is a columnar one and the format reads such; false else.
    pub(super) fn columnar_path(&mut self, path: &Path) -> Result<bool, ReadError> {
        let Some(file) = ColumnarFile::open(path)? else { return Ok(false) };
        let Some(first) = self.format.columnar(file.schema()) else { return Ok(false) };
        let mut parsers = vec![first.map_err(|message| file.refuse(message))?];
        while parsers.len() < self.n_threads.min(file.groups().len()) {
            let Some(parser) = self.format.columnar(file.schema()) else { break };
            parsers.push(parser.map_err(|message| file.refuse(message))?);
        }
        self.names.push(file.name().to_owned());
        let on_error = self.options.on_error;
        let groups: Vec<usize> = (0..file.groups().len()).collect();
        let mut rows_before = 0;
        let total: u64 = file.groups().iter().map(|group| group.bytes()).sum();
        let mut bytes = 0;
        for groups in groups.chunks(parsers.len()) {
            let mut results: Vec<GroupResult> =
                groups.iter().map(|_| Ok((0, Vec::new()))).collect();
            let chunks = std::iter::once(&mut self.rows).chain(&mut self.more);
            let work = parsers.iter_mut().zip(chunks).zip(groups).zip(&mut results);
            let mut work: Vec<_> = work.collect();
            thread_pool::each(&mut work, |_, (((parser, rows), group), result)| {
                **result = read_group(&file, **group, &mut ***parser, rows, on_error);
            });
            for (group, result) in groups.iter().zip(results) {
                let (n_rows, faults) = result?;
                for fault in faults {
                    let (place, problem) =
                        place_of(file.name(), &*parsers[0], *group, rows_before, fault);
                    self.skips.add(place, problem)?;
                }
                rows_before += n_rows;
                bytes += file.groups()[*group].bytes();
            }
            self.more.iter_mut().for_each(|rows| self.rows.append(rows));
            self.options.tell(file.name(), bytes, Some(total));
        }
        Ok(true)
    }
}

/// Appends the samples of a row group.
fn read_group<T: Float>(
    file: &ColumnarFile,
    group: usize,
    parser: &mut dyn BatchParser<T>,
    rows: &mut Chunk<T>,
    on_error: OnError,
) -> GroupResult {
    let n_rows = file.groups()[group].rows_of(BLOCK_BYTES);
    let (mut before, mut faults) = (0, Vec::new());
    for batch in file.batches(group, parser.projection(), n_rows)? {
        let batch = batch?;
        let found = parse_batch(parser, &batch, rows, on_error);
        faults.extend(found.into_iter().map(|fault| fault.after(before)));
        before += batch.num_rows();
        if faults.len() as u64 > on_error.limit() {
            break;
        }
    }
    Ok((before as u64, faults))
}
