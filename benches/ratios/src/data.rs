//! The matrices: one like the news stories of rcv1, one like a log of clicks.

use crate::steps::hand;
use crate::workload::Error;
use nnz::data::{ColumnValues, synthetic};
use nnz::formats::{ColumnIdsView, Csr, Dense, RowSelection};
use nnz::prelude::Dataset;
use std::cell::OnceCell;
use std::ops::Range;

/// What workloads read, made when first asked for.
#[derive(Default)]
pub struct Data {
    stories: OnceCell<Csr>,
    clicks: OnceCell<Csr>,
    logs: [OnceCell<Dataset>; 2],
    units: OnceCell<Dataset>,
    news: OnceCell<Dataset>,
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
            Matrix::Stories => (&self.stories, || stories(1, 20_000, 47_236, 20..129)),
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
    /// Stories of 20 classes, made when first asked for: 16,000 × 62,061, 80 to 130 entries a row.
    /// A label follows from the columns.
    pub fn news(&self) -> Result<&Dataset, Error> {
        if self.news.get().is_none() {
            let x = stories(3, 16_000, 62_061, 80..131)?;
            let arrays = Arrays::of(&x)?;
            let class =
                |row| arrays.row(row).0[..3].iter().map(|column| column / 7).sum::<u32>() % 20;
            let classes: Vec<u32> = (0..arrays.n_rows()).map(class).collect();
            let labels = Dense::new([classes.len()], classes)?;
            let news = Dataset::builder().input("x", x).label("y", labels).build()?;
            let _ = self.news.set(news);
        }
        self.news.get().ok_or_else(|| "the stories were made".into())
    }

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
fn stories(seed: u64, n_rows: usize, n_cols: usize, nnz: Range<usize>) -> Result<Csr, Error> {
    let mut random = Random(seed);
    let rows = (0..n_rows).map(|_| {
        let nnz = nnz.start + (random.uniform() * nnz.len() as f64) as usize;
        let mut columns = Vec::with_capacity(nnz);
        while columns.len() < nnz {
            let rank = (n_cols as f64).powf(random.uniform()) as usize;
            // A permutation: 7919 has no divisor in common with the widths.
            let column = rank * 7919 % n_cols;
            if !columns.contains(&column) {
                columns.push(column);
            }
        }
        columns.sort_unstable();
        let row: Vec<(usize, f32)> =
            columns.into_iter().map(|column| (column, 0.01 + random.uniform() as f32)).collect();
        row
    });
    Ok(Csr::from_rows(n_cols, rows)?)
}

/// Numbers in [-1, 1), from a line of the cache on.
pub fn dense(shape: [usize; 2], seed: u64) -> Dense {
    let mut random = Random(seed);
    let mut array = Dense::zeros(shape);
    array.values_mut().iter_mut().for_each(|value| *value = 2.0 * random.uniform() as f32 - 1.0);
    array
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

    /// Asks for entries of later rows.
    #[inline(always)]
    pub fn ask(&self, row: usize) {
        hand::ask(self.indptr, self.columns, self.values, row);
    }

    #[inline(always)]
    pub fn row(&self, row: usize) -> (&'a [u32], &'a [f32]) {
        let range = self.indptr[row] as usize..self.indptr[row + 1] as usize;
        (&self.columns[range.clone()], &self.values[range])
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

    /// Fisher and Yates's.
    pub fn shuffle<T>(&mut self, elements: &mut [T]) {
        for last in (1..elements.len()).rev() {
            elements.swap(last, (self.uniform() * (last + 1) as f64) as usize);
        }
    }

    /// In [0, 1).
    pub fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }
}
