//! Standardisation of numeric columns: minus the mean, divided by the deviation.

use super::parse::Parser;
use super::{Delimited, Kind, Numbers};
use crate::blocks::{BLOCK_BYTES, Blocks, open};
use crate::text::{BYTE_ORDER_MARK, Lines, RowParser, count_joined_lines, place_in_joined};
use crate::{DataError, ReadError};
use std::path::Path;

/// The scale of a numeric column: the data holds `(number - mean) / deviation`.
#[derive(Clone, Debug, PartialEq)]
pub struct NumberScale {
    /// The name of the column.
    pub column: String,
    /// The mean, which is subtracted.
    pub mean: f64,
    /// The divisor, more than 0.
    pub deviation: f64,
}

impl Delimited {
    /// Reads a file for the mean and the standard deviation of each column that is
    /// [`numeric`](Delimited::numeric), over the samples with a number there. The deviation of a
    /// column of equal numbers is 1. Unreadable samples do not count.
    ///
    /// ```
    /// use nnz::data::{Delimited, Hashing, TextReader};
    /// # let path = std::env::temp_dir().join(format!("nnz-scale-doc-{}.csv", std::process::id()));
    /// # std::fs::write(&path, "1,20\n0,40\n1,60\n0,80\n")?;
    ///
    /// let format = Delimited::csv(Hashing::new(10)?).label("y").numeric("age");
    /// let scales = format.measure(&path)?;
    /// assert_eq!((scales[0].mean, scales[0].deviation), (50.0, 500f64.sqrt()));
    /// let data = TextReader::new(format.scaled(scales)?).read_path(&path)?;
    /// # std::fs::remove_file(&path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ReadError::Io`], those of compressed files, and [`ReadError::Syntax`] for a header that
    /// differs from the schema.
    pub fn measure(&self, path: impl AsRef<Path>) -> Result<Vec<NumberScale>, ReadError> {
        self.measure_paths([path])
    }

    /// Like [`measure`](Self::measure), over the samples of several files.
    ///
    /// # Errors
    ///
    /// As [`measure`](Self::measure).
    pub fn measure_paths<P: AsRef<Path>>(
        &self,
        paths: impl IntoIterator<Item = P>,
    ) -> Result<Vec<NumberScale>, ReadError> {
        let mut moments: Vec<Moments> = Vec::new();
        for path in paths {
            self.add_moments(path.as_ref(), &mut moments)?;
        }
        let is_numeric = |(_, kind): &&(String, Kind)| *kind == Kind::Numeric(Numbers::Value);
        let names = self.columns.iter().filter(is_numeric).map(|(name, _)| name.clone());
        let moments = moments.into_iter().chain(std::iter::repeat(Moments::default()));
        Ok(names.zip(moments).map(|(column, moments)| moments.scale(column)).collect())
    }

    /// Adds the numbers of a file to the moments of their columns.
    fn add_moments(&self, path: &Path, moments: &mut Vec<Moments>) -> Result<(), ReadError> {
        #[cfg(feature = "parquet")]
        if let Some(file) = crate::columnar::ColumnarFile::open(path)? {
            return self.add_moments_of_table(&file, moments);
        }
        let name = path.display().to_string();
        let mut parser = Parser::new(self);
        let mut blocks = Blocks::with_size(self.joined(open(path)?), BLOCK_BYTES);
        let (mut numbers, mut lines) = (Vec::new(), None);
        while let Some(block) =
            blocks.next().map_err(|error| error.after(&name, lines.unwrap_or(0)))?
        {
            let mut text = block;
            if lines.is_none() {
                text = block.strip_prefix(BYTE_ORDER_MARK).unwrap_or(block);
                let header = RowParser::<f64>::header(&mut parser, text);
                let header = header.map_err(|fault| ReadError::Syntax {
                    place: place_in_joined(&name, 0, text, fault.offset),
                    problem: fault.problem,
                })?;
                text = &text[header..];
            }
            lines = Some(lines.unwrap_or(0) + count_joined_lines(block));
            for (_, line) in Lines::new(text).filter(|(_, line)| !line.is_empty()) {
                if parser.measure(&mut parser.cells(line), &mut numbers) {
                    add(moments, &numbers);
                }
            }
        }
        Ok(())
    }

    /// Adds the numbers of a columnar file to the moments of their columns.
    #[cfg(feature = "parquet")]
    fn add_moments_of_table(
        &self,
        file: &crate::columnar::ColumnarFile,
        moments: &mut Vec<Moments>,
    ) -> Result<(), ReadError> {
        let parser = Parser::new(self);
        let mut numbers = Vec::new();
        let columns = self.needed(|_, kind| kind == Kind::Numeric(Numbers::Value));
        crate::columnar::each_row_of_file(file, columns, |cells| {
            if parser.measure(cells, &mut numbers) {
                add(moments, &numbers);
            }
            true
        })
    }

    /// Subtracts a mean from the numbers of some columns and divides them by a deviation. These are
    /// usually [measured](Delimited::measure) on the training data and then belong to the model. A
    /// sample without a number still has no entry, as if it were the mean. If a column has two
    /// scales, the last counts.
    ///
    /// # Errors
    ///
    /// [`DataError::Schema`] for a column that is not [`numeric`](Delimited::numeric), for numbers
    /// that are not finite, and for a deviation that is not more than 0.
    pub fn scaled(
        mut self,
        scales: impl IntoIterator<Item = NumberScale>,
    ) -> Result<Self, DataError> {
        for scale in scales {
            let NumberScale { column, mean, deviation } = &scale;
            let is_it = |(name, kind): &(String, Kind)| {
                name == column && *kind == Kind::Numeric(Numbers::Value)
            };
            if !self.columns.iter().any(is_it) {
                let message = format!("`{column}` is scaled, but no column that is `numeric`");
                return Err(DataError::Schema { message });
            }
            if !(mean.is_finite() && deviation.is_finite() && *deviation > 0.0) {
                let message = format!(
                    "`{column}` less {mean} and divided by {deviation}: they must be finite, and the deviation more than 0"
                );
                return Err(DataError::Schema { message });
            }
            self.scales.retain(|known| known.column != *column);
            self.scales.push(scale);
        }
        Ok(self)
    }
}

/// Adds the numbers of a sample to the moments of their columns.
fn add(moments: &mut Vec<Moments>, numbers: &[Option<f64>]) {
    moments.resize(numbers.len(), Moments::default());
    moments.iter_mut().zip(numbers).for_each(|(moments, number)| moments.add(*number));
}

/// The mean of numbers and their squared distance from it (Welford, *Note on a method for
/// calculating corrected sums of squares and products*, 1962).
#[derive(Clone, Copy, Debug, Default)]
struct Moments {
    count: f64,
    mean: f64,
    squares: f64,
}

impl Moments {
    fn add(&mut self, number: Option<f64>) {
        let Some(number) = number else { return };
        self.count += 1.0;
        let before = number - self.mean;
        self.mean += before / self.count;
        self.squares += before * (number - self.mean);
    }

    fn scale(self, column: String) -> NumberScale {
        let deviation = (self.squares / self.count.max(1.0)).sqrt();
        // Numbers too large to be squared are left as they are.
        let mean = if deviation.is_finite() { self.mean } else { 0.0 };
        let is_spread = deviation.is_finite() && deviation > 0.0;
        NumberScale { column, mean, deviation: if is_spread { deviation } else { 1.0 } }
    }
}
