//! Collisions of a hash: how many features share a column, by how many columns are in use.

use super::{DataFiles, Known, Reading};
use crate::Failure;
use nnz::data::AnyDataset;
use nnz::prelude::*;
use std::str::FromStr;

/// How many bits of a hash are a column: a number of them, or as many as the data needs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum HashBits {
    Auto,
    Bits(u32),
}

impl FromStr for HashBits {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match (text, text.parse()) {
            ("auto", _) => Ok(HashBits::Auto),
            (_, Ok(bits)) => Ok(HashBits::Bits(bits)),
            _ => Err("it is a number of bits, or `auto`".to_owned()),
        }
    }
}

/// The columns of hashed data, and those of them that occur.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Occupancy {
    in_use: usize,
    columns: usize,
}

impl Occupancy {
    /// O(entries) and a bit a column.
    pub(crate) fn of(data: &Dataset) -> Option<Self> {
        let x = data.features()?;
        let mut seen = vec![0u64; x.n_cols().div_ceil(64)];
        for (column, _) in x.iter_rows().flatten() {
            seen[column / 64] |= 1 << (column % 64);
        }
        let in_use = seen.iter().map(|word| word.count_ones() as usize).sum();
        Some(Occupancy { in_use, columns: x.n_cols() })
    }

    /// The features that fill so many columns on average: n of m columns stay empty with
    /// probability (1 - 1/m)^n each.
    fn features(self) -> f64 {
        let (in_use, columns) = (self.in_use as f64, self.columns as f64);
        // One column is taken for empty where none is.
        let empty = (1.0 - in_use / columns).max(1.0 / columns);
        empty.ln() / (-1.0 / columns).ln_1p()
    }

    /// The expected share of features that have a column with others.
    pub(crate) fn share(self) -> f64 {
        share(self.features(), self.columns)
    }
}

/// The expected share of features that have a column with others, of so many columns.
fn share(features: f64, columns: usize) -> f64 {
    1.0 - ((features - 1.0).max(0.0) * (-1.0 / columns as f64).ln_1p()).exp()
}

impl Reading {
    /// Reads the data once for `--hash-bits auto`: the least number of bits with which at most 1 %
    /// of the features share a column.
    pub(crate) fn find_hash_bits(&mut self, files: &DataFiles) -> Result<(), Failure> {
        /// The bits of the pass that counts features.
        const COUNTING: u32 = 28;
        const FEWEST: u32 = 10;
        const MOST_SHARED: f64 = 0.01;
        if self.hash_bits != Some(HashBits::Auto) {
            return Ok(());
        }
        if self.stream.is_some() {
            return Err("--hash-bits auto: features are counted in memory, and --stream reads what does not fit: say the number of bits".into());
        }
        if !files.can_be_read_again() {
            return Err("--hash-bits auto: what comes through a pipe is read once, and features are counted before: say the number of bits".into());
        }
        let counting = Reading {
            hash_bits: Some(HashBits::Bits(COUNTING)),
            stream: None,
            cache: false,
            ..self.clone()
        };
        let data = counting.open(files, &Known::default(), false)?;
        let AnyDataset::Memory(data) = &data else { return Ok(()) };
        let features = Occupancy::of(data).map_or(0.0, Occupancy::features);
        let is_enough = |bits: &u32| share(features, 1 << bits) <= MOST_SHARED;
        let bits = (FEWEST..COUNTING).find(is_enough).unwrap_or(COUNTING);
        self.hash_bits = Some(HashBits::Bits(bits));
        Ok(())
    }
}
