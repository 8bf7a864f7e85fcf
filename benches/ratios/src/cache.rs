//! A binary file of data, read with all its checks, against the least that a mapped one costs: its
//! bytes put together, and nothing checked.

use crate::data::Data;
use crate::workload::{Error, Named, Workload};
use memmap2::Mmap;
use nnz::data::ColumnValues;
use nnz::prelude::Dataset;
use std::fs::{self, File};
use std::path::PathBuf;

/// A file of the data, removed in the end.
struct Saved(PathBuf);

impl Drop for Saved {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// The bytes of a file in front of its pieces, and of a piece in front of what it holds.
const START: usize = 12;
const PIECE_START: usize = 12;

pub fn workloads(data: &Data) -> Vec<Named<'_>> {
    vec![Named::new("cache clicks", move || {
        let log = data.log(20)?;
        let name = format!("nnz-ratios-{}.cache", std::process::id());
        let saved = std::rc::Rc::new(Saved(std::env::temp_dir().join(name)));
        log.save(&saved.0)?;
        let gigabytes = fs::metadata(&saved.0)?.len() as f64 / 1e9;
        let (mapped, read) = (saved.clone(), saved.clone());
        let n_rows = log.n_rows();
        Ok(Workload::per_second("GB/s", gigabytes)
            .contestant(
                "nnz",
                None,
                move |data| *data = Dataset::load(&saved.0).ok(),
                |data: &Option<Dataset>| match data.as_ref().and_then(Dataset::labels) {
                    Some(ColumnValues::Dense(labels)) => sum(labels.values().iter().copied()),
                    _ => f64::NAN,
                },
            )
            .contestant(
                "mapped, unchecked",
                Vec::new(),
                move |bytes| *bytes = map(&mapped.0).unwrap_or_default(),
                move |bytes| sum_of_labels(bytes, n_rows),
            )
            .contestant(
                "read whole, unchecked",
                Vec::new(),
                move |bytes| {
                    *bytes = fs::read(&read.0).map(|file| pieces(&file)).unwrap_or_default()
                },
                move |bytes| sum_of_labels(bytes, n_rows),
            ))
    })]
}

fn map(path: &PathBuf) -> Result<Vec<u8>, Error> {
    let file = File::open(path)?;
    // SAFETY: the file was made by this process, under a name of its own, and nobody changes it.
    let map = unsafe { Mmap::map(&file)? };
    Ok(pieces(&map))
}

/// What the pieces of a file hold, one behind the other, as arrays would own it.
fn pieces(file: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(file.len());
    let mut rest = file.get(START..).unwrap_or_default();
    while let Some((start, behind)) = rest.split_first_chunk::<PIECE_START>() {
        let [a, b, c, d, ..] = *start;
        let length = u32::from_le_bytes([a, b, c, d]) as usize;
        let (piece, behind) = behind.split_at(length.min(behind.len()));
        bytes.extend_from_slice(piece);
        rest = behind;
    }
    bytes
}

/// The labels come last.
fn sum_of_labels(bytes: &[u8], n_rows: usize) -> f64 {
    let labels = &bytes[bytes.len().saturating_sub(4 * n_rows)..];
    sum(labels.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)))
}

fn sum(labels: impl Iterator<Item = f32>) -> f64 {
    labels.map(f64::from).sum()
}
