//! Epoch cache of a stream: an epoch writes its parsed samples to a file, and later epochs read
//! them in place of the text.
//!
//! The file has no name, so no other process reads or changes it, and nothing is left of it after
//! any end of the process. It is not a cache of the [kind](crate::cache) that outlives a process:
//! it need not record its sources.

use super::super::blocks::io_error;
use super::super::text::{Chunk, ChunkColumn};
use super::super::{Place, Problem, ReadError};
use super::label_check::LabelCheck;
use super::parsed::Parsed;
use nnz_arrays::bytes::{append, append_values};
use nnz_arrays::formats::ColumnIds;
use nnz_device::atomic_write::new_private_file;
use sparse_core::element::Float;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The units of a stream that have been kept.
pub(super) struct EpochCache {
    /// Receives a warning if the file cannot be written or read.
    name: String,
    /// For systems that keep the name of an open file.
    path: Option<PathBuf>,
    state: Mutex<State>,
}

struct State {
    file: File,
    /// The offset of the next block.
    end: u64,
    units: Vec<Option<Arc<CachedUnit>>>,
    /// Whether an epoch keeps its samples: one of several at once does.
    is_written: bool,
    /// Whether writing has failed: nothing more is kept then.
    is_full: bool,
}

/// The blocks of a unit, and the findings about their labels.
pub(super) struct CachedUnit {
    blocks: Vec<CachedBlock>,
    checks: Vec<LabelCheck>,
}

struct CachedBlock {
    start: u64,
    bytes: usize,
    n_rows: usize,
    /// The stored elements of each csr, and whether its ids have 64 bits.
    patterns: Vec<(usize, bool)>,
    faults: Vec<(Place, Problem)>,
}

impl EpochCache {
    /// A new file in a folder, for `n_units` units.
    pub(super) fn new(folder: &Path, n_units: usize) -> Result<Self, ReadError> {
        static COUNTER: AtomicU64 = AtomicU64::new(0);
        let name = folder.display().to_string();
        let failed = |source| io_error(&name, source);
        let (path, file) = loop {
            let count = COUNTER.fetch_add(1, Ordering::Relaxed);
            let path = folder.join(format!(".nnz-stream-{}-{count}.tmp", std::process::id()));
            match new_private_file().read(true).open(&path) {
                Ok(file) => break (path, file),
                // Of a process that had the same number.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(failed(error)),
            }
        };
        let path = if cfg!(unix) {
            fs::remove_file(&path).map_err(failed)?;
            None
        } else {
            Some(path)
        };
        let units = (0..n_units).map(|_| None).collect();
        let state = Mutex::new(State { file, end: 0, units, is_written: false, is_full: false });
        Ok(EpochCache { name, path, state })
    }

    /// A block is written before it is listed, so a thread that panicked leaves nothing half done.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The blocks of a unit whose labels are known to pass these checks.
    pub(super) fn unit(&self, unit: usize, checks: &[LabelCheck]) -> Option<Arc<CachedUnit>> {
        let kept = self.state().units[unit].clone()?;
        let has_passed = |check: &LabelCheck| {
            kept.checks.iter().any(|known| (known.column, known.kind) == (check.column, check.kind))
        };
        checks.iter().all(has_passed).then_some(kept)
    }

    /// Drops all units: files have changed during parsing.
    pub(super) fn forget(&self) {
        self.state().units.fill(None);
    }

    /// For an epoch that keeps its samples, which pass these checks; `None` while another epoch
    /// does, and once writing has failed.
    pub(super) fn keep(&self, checks: Vec<LabelCheck>) -> Option<EpochCacheWriter<'_>> {
        let mut state = self.state();
        let may_write = !state.is_written && !state.is_full;
        state.is_written |= may_write;
        may_write.then(|| EpochCacheWriter { kept: self, checks, blocks: Vec::new() })
    }

    /// The samples of a block.
    pub(super) fn read<T: Float>(
        &self,
        unit: (usize, &CachedUnit),
        number: usize,
        mut rows: Chunk<T>,
    ) -> Result<Parsed<T>, ReadError> {
        let (unit, CachedUnit { blocks, .. }) = unit;
        let block = &blocks[number];
        let mut bytes = vec![0; block.bytes];
        {
            let mut state = self.state();
            let found = state.file.seek(SeekFrom::Start(block.start));
            let read = found.and_then(|_| state.file.read_exact(&mut bytes));
            read.map_err(|source| io_error(&self.name, source))?;
        }
        block.decode(&bytes, &mut rows);
        let (is_last, faults) = (number + 1 == blocks.len(), block.faults.clone());
        Ok(Parsed { unit, is_last, rows, faults, written: Vec::new(), is_cached: true })
    }
}

impl Drop for EpochCache {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            let _ = fs::remove_file(path);
        }
    }
}

impl CachedUnit {
    /// How many blocks it has.
    pub(super) fn n_blocks(&self) -> usize {
        self.blocks.len()
    }
}

/// An epoch that keeps its samples.
pub(super) struct EpochCacheWriter<'k> {
    kept: &'k EpochCache,
    checks: Vec<LabelCheck>,
    /// The blocks of the current unit.
    blocks: Vec<CachedBlock>,
}

impl EpochCacheWriter<'_> {
    /// Keeps the next block of the epoch.
    pub(super) fn add<T: Float>(&mut self, parsed: &Parsed<T>) -> Result<(), ReadError> {
        let mut bytes = Vec::with_capacity(parsed.rows.bytes());
        let patterns = encode(&parsed.rows, &mut bytes);
        let mut state = self.kept.state();
        let start = state.end;
        let written =
            (state.file.seek(SeekFrom::Start(start))).and_then(|_| state.file.write_all(&bytes));
        if let Err(source) = written {
            state.is_full = true;
            return Err(io_error(&self.kept.name, source));
        }
        state.end += bytes.len() as u64;
        let (n_rows, faults) = (parsed.rows.n_rows, parsed.faults.clone());
        self.blocks.push(CachedBlock { start, bytes: bytes.len(), n_rows, patterns, faults });
        if parsed.is_last {
            let (blocks, checks) = (std::mem::take(&mut self.blocks), self.checks.clone());
            state.units[parsed.unit] = Some(Arc::new(CachedUnit { blocks, checks }));
        }
        Ok(())
    }
}

impl Drop for EpochCacheWriter<'_> {
    fn drop(&mut self) {
        self.kept.state().is_written = false;
    }
}

/// Appends the bytes of some samples; returns the data needed to find them again.
fn encode<T: Float>(rows: &Chunk<T>, bytes: &mut Vec<u8>) -> Vec<(usize, bool)> {
    let mut patterns = Vec::new();
    for column in &rows.columns {
        match column {
            ChunkColumn::Csr(csr) => {
                bytes.extend(csr.indptr.iter().flat_map(|end| end.to_le_bytes()));
                match &csr.ids {
                    ColumnIds::U32(ids) => bytes.extend(ids.iter().flat_map(|id| id.to_le_bytes())),
                    ColumnIds::U64(ids) => bytes.extend(ids.iter().flat_map(|id| id.to_le_bytes())),
                }
                append(&csr.values, bytes);
                patterns.push((csr.values.len(), matches!(csr.ids, ColumnIds::U64(_))));
            }
            ChunkColumn::Dense { values, .. } => append(values, bytes),
            ChunkColumn::Ids { values, .. } => {
                bytes.extend(values.iter().flat_map(|id| id.to_le_bytes()));
            }
        }
    }
    patterns
}

impl CachedBlock {
    /// Restores the samples of which [`encode`] gave these bytes, into an empty chunk of their
    /// layout.
    fn decode<T: Float>(&self, mut bytes: &[u8], rows: &mut Chunk<T>) {
        let mut next = |n_bytes: usize| {
            // As many as were written.
            let (taken, rest) = bytes.split_at(n_bytes);
            bytes = rest;
            taken
        };
        let (n_rows, float) = (self.n_rows, T::TYPE.bytes() as usize);
        let mut patterns = self.patterns.iter();
        for column in &mut rows.columns {
            match column {
                ChunkColumn::Csr(csr) => {
                    let Some(&(nnz, is_wide)) = patterns.next() else { continue };
                    csr.indptr = numbers(next(8 * (n_rows + 1)), u64::from_le_bytes);
                    csr.ids = if is_wide {
                        ColumnIds::U64(numbers(next(8 * nnz), u64::from_le_bytes))
                    } else {
                        ColumnIds::U32(numbers(next(4 * nnz), u32::from_le_bytes))
                    };
                    csr.values.reserve_exact(nnz);
                    append_values(next(float * nnz), &mut csr.values);
                }
                ChunkColumn::Dense { width, values } => {
                    values.reserve_exact(n_rows * *width);
                    append_values(next(float * n_rows * *width), values);
                }
                ChunkColumn::Ids { width, values } => {
                    *values = numbers(next(4 * n_rows * *width), u32::from_le_bytes);
                }
            }
        }
        rows.n_rows = n_rows;
    }
}

fn numbers<N, const BYTES: usize>(bytes: &[u8], number: fn([u8; BYTES]) -> N) -> Vec<N> {
    bytes.as_chunks().0.iter().map(|bytes| number(*bytes)).collect()
}
