//! The matrices: one like the news stories of rcv1, one like a log of clicks.

use crate::workload::Error;
use nnz::data::{ColumnValues, synthetic};
use nnz::formats::{ColumnIdsView, Csr, Dense, RowSelection};
use nnz::prelude::Dataset;
use std::cell::OnceCell;

/// What workloads read, made when first asked for.
#[derive(Default)]
pub struct Data {
    stories: OnceCell<Csr>,
    clicks: OnceCell<Csr>,
    logs: [OnceCell<Dataset>; 2],
    units: OnceCell<Dataset>,
}

/// A matrix, by the name that workloads show.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Matrix {
    /// 20,000 × 47,236, 20 to 128 entries a row, columns by a power law.
    Stories,
    /// 200,000 × 2²⁰, 39 entries a row, every value 1.
    Clicks,
}

impl Matrix {
    pub const ALL: [Matrix; 2] = [Matrix::Stories, Matrix::Clicks];

    pub fn name(self) -> &'static str {
        match self {
            Matrix::Stories => "rcv1-like",
            Matrix::Clicks => "clicks",
        }
    }
}

impl Data {
    pub fn matrix(&self, matrix: Matrix) -> Result<&Csr, Error> {
        let (cell, make): (_, fn() -> Result<Csr, Error>) = match matrix {
            Matrix::Stories => (&self.stories, stories),
            Matrix::Clicks => (&self.clicks, clicks),
        };
        if cell.get().is_none() {
            let _ = cell.set(make()?);
        }
        cell.get().ok_or_else(|| "the matrix was made".into())
    }
}

impl Data {
    /// The log of clicks with its labels, of 2²⁰ or 2²⁴ features.
    pub fn log(&self, bits: u32) -> Result<&Dataset, Error> {
        let cell = &self.logs[usize::from(bits > 20)];
        if cell.get().is_none() {
            let _ = cell.set(click_log(bits)?);
        }
        cell.get().ok_or_else(|| "the log was made".into())
    }

    /// That of 2²⁰ features without its values, which are 1.
    pub fn units(&self) -> Result<&Dataset, Error> {
        if self.units.get().is_none() {
            let _ = self.units.set(self.log(20)?.clone().into_units()?);
        }
        self.units.get().ok_or_else(|| "the log was made".into())
    }
}

impl Data {
    /// A log of clicks of 2^`bits` features, as one of 2^`width`.
    pub fn widened(&self, bits: u32, width: u32) -> Result<Dataset, Error> {
        let log = click_log(bits)?;
        let (Some(features), Some(labels)) = (log.features(), log.labels()) else {
            return Err("the log has features and labels".into());
        };
        let ColumnValues::Dense(labels) = labels else { return Err("labels are numbers".into()) };
        let mut parts = features.clone().into_parts();
        parts.n_cols = 1 << width;
        Ok(Dataset::new(Csr::from_parts(parts)?, labels.values().to_vec())?)
    }
}

fn click_log(bits: u32) -> Result<Dataset, Error> {
    Ok(synthetic::click_log(200_000, 1 << bits, 39, 42)?)
}

fn clicks() -> Result<Csr, Error> {
    let data = click_log(20)?;
    let features = data.features().ok_or("the data is csr")?;
    Ok(features.clone())
}

/// A matrix of the same shape whose rows are those of `x` in reverse, with other values.
pub fn other(x: &Csr) -> Result<Csr, Error> {
    let rows: Vec<usize> = (0..x.n_rows()).rev().collect();
    let mut selection = RowSelection::new();
    let mut y = selection.gather(x, &rows)?.to_owned();
    let mut random = Random(4);
    y.values_mut().iter_mut().for_each(|value| *value = 0.01 + random.uniform() as f32);
    Ok(y)
}

/// The probability of the r-th most frequent column is about 1/r; frequent columns lie anywhere.
fn stories() -> Result<Csr, Error> {
    const N_COLS: usize = 47_236;
    let mut random = Random(1);
    let rows = (0..20_000).map(|_| {
        let nnz = 20 + (random.uniform() * 109.0) as usize;
        let mut columns = Vec::with_capacity(nnz);
        while columns.len() < nnz {
            let rank = (N_COLS as f64).powf(random.uniform()) as usize;
            // A permutation: 7919 has no divisor in common with the width.
            let column = rank * 7919 % N_COLS;
            if !columns.contains(&column) {
                columns.push(column);
            }
        }
        columns.sort_unstable();
        let row: Vec<(usize, f32)> =
            columns.into_iter().map(|column| (column, 0.01 + random.uniform() as f32)).collect();
        row
    });
    Ok(Csr::from_rows(N_COLS, rows)?)
}

/// Numbers in [-1, 1).
pub fn dense(shape: [usize; 2], seed: u64) -> Result<Dense, Error> {
    let mut random = Random(seed);
    let values = (0..shape[0] * shape[1]).map(|_| 2.0 * random.uniform() as f32 - 1.0).collect();
    Ok(Dense::new(shape, values)?)
}

/// The arrays of a matrix.
#[derive(Clone, Copy)]
pub struct Arrays<'a> {
    pub n_cols: usize,
    pub indptr: &'a [u64],
    pub columns: &'a [u32],
    pub values: &'a [f32],
}

impl<'a> Arrays<'a> {
    pub fn of(matrix: &'a Csr) -> Result<Self, Error> {
        match matrix.columns() {
            ColumnIdsView::U32(columns) => Ok(Arrays {
                n_cols: matrix.n_cols(),
                indptr: matrix.indptr(),
                columns,
                values: matrix.values(),
            }),
            ColumnIdsView::U64(_) => Err("the matrix is narrow".into()),
        }
    }

    pub fn n_rows(&self) -> usize {
        self.indptr.len() - 1
    }

    pub fn nnz(&self) -> usize {
        self.values.len()
    }
}

/// Steele, Lea and Flood's SplitMix64.
pub struct Random(pub u64);

impl Random {
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// In [0, 1).
    pub fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }
}
