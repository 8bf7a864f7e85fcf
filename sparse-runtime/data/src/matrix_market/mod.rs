//! MatrixMarket files: `%%MatrixMarket matrix coordinate real general`, and arrays.
//!
//! A line is read at a time, an entry a line; writing is a line an entry, from the csr arrays as
//! they are.

use super::blocks::{LINE_BYTES, io_error, open};
use super::libsvm::check_entries;
use super::number::{MAX_DIGITS, NotANumber, digits, number, write_number};
use super::text::{BYTE_ORDER_MARK, Skips};
use super::text_file::write_text;
use super::{Excerpt, OnError, Place, Problem, ReadError, ReadReport};
use nnz_arrays::formats::{Csr, FormatError};
use nnz_arrays::in_library;
use nnz_device::memory::{is_there_for, make_room};
use sparse_core::element::Float;
use std::cmp::Ordering;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;

/// Reads a matrix: fields `real` (or `double`), `integer` (or `unsigned-integer`) and `pattern`
/// (all values 1), symmetries `general`, `symmetric` (or `hermitian`, the same of real numbers) and
/// `skew-symmetric`. A symmetric file has one triangle, and the matrix both. Entries at the same
/// position are added. Of an `array`, which writes all numbers column by column, those that are not
/// 0 are stored. A name that ends in `.gz` or `.zst` is decompressed
/// (features `gzip` and `zstd`). O(m log m) for m entries.
///
/// # Errors
///
/// [`ReadError::Syntax`] with the line for text in another format, entries outside of the matrix or
/// in the second triangle of a symmetric one, and values that are not finite;
/// [`ReadError::ArraysTooLarge`] for sizes beyond the memory; [`ReadError::Io`], and those of gzip
/// files.
pub fn read<T: Float>(path: impl AsRef<Path>) -> Result<Csr<T>, ReadError> {
    read_with(path, OnError::Fail).map(|(matrix, _)| matrix)
}

/// Like [`read`]; lines that are not entries of the matrix may be [skipped](OnError::Skip), and the
/// report counts them. They count towards the declared number of entries.
///
/// # Errors
///
/// As [`read`]; [`ReadError::TooManySkipped`]. A file that ends early, or continues after its
/// entries, is an error under any setting.
pub fn read_with<T: Float>(
    path: impl AsRef<Path>,
    on_error: OnError,
) -> Result<(Csr<T>, ReadReport), ReadError> {
    let path = path.as_ref();
    in_library!(<T> read_file::<T> => (
        path: &Path,
        on_error: OnError,
    ) -> Result<(Csr<T>, ReadReport), ReadError>)
}

fn read_file<T: Float>(path: &Path, on_error: OnError) -> Result<(Csr<T>, ReadReport), ReadError> {
    read_from_with(&path.display().to_string(), open(path)?, on_error)
}

/// Reads everything from a reader; `name` stands for the file in messages.
///
/// # Errors
///
/// As [`read`].
///
/// ```
/// use nnz::data::matrix_market;
///
/// let text = "%%MatrixMarket matrix coordinate real general\n2 3 1\n1 3 0.5\n";
/// let x = matrix_market::read_from::<f32>("inline", text.as_bytes())?;
/// assert_eq!((x.n_rows(), x.n_cols(), x.values()), (2, 3, &[0.5][..]));
/// # Ok::<(), nnz::Error>(())
/// ```
pub fn read_from<T: Float>(name: &str, reader: impl Read) -> Result<Csr<T>, ReadError> {
    read_from_with(name, reader, OnError::Fail).map(|(matrix, _)| matrix)
}

/// Like [`read_from`]; lines may be skipped as in [`read_with`].
///
/// # Errors
///
/// As [`read_with`].
///
/// ```
/// use nnz::data::{OnError, matrix_market};
///
/// let text = "%%MatrixMarket matrix coordinate pattern general\n2 3 2\n1 3\n7 7\n";
/// let skip = OnError::Skip(1);
/// let (x, report) = matrix_market::read_from_with::<f32>("inline", text.as_bytes(), skip)?;
/// assert_eq!((x.nnz(), report.n_skipped, report.first_skipped[0].place.line), (1, 1, 4));
/// # Ok::<(), nnz::Error>(())
/// ```
pub fn read_from_with<T: Float>(
    name: &str,
    reader: impl Read,
    on_error: OnError,
) -> Result<(Csr<T>, ReadReport), ReadError> {
    let mut text = Text { name, reader: BufReader::new(reader), line: Vec::new(), lines: 0 };
    let header = text.read_header()?;
    let size = text.read_size(&header)?;
    size.check_memory::<T>(name, &header)?;
    let mut skips = Skips::new(on_error);
    let entries = text.read_entries(&header, &size, &mut skips)?;
    text.check_end()?;
    let mut report = ReadReport::of_file(name.to_owned());
    (report.n_skipped, report.first_skipped) = (skips.count, skips.first);
    let matrix =
        Csr::from_coo(size.n_rows, size.n_cols, entries).map_err(|source| match source {
            FormatError::OutOfMemory { bytes, .. } => size.too_large(name, bytes),
            source => ReadError::Format { file: name.to_owned(), source },
        })?;
    check_sums(name, &matrix)?;
    Ok((matrix, report))
}

/// Entries of the same row and column were added.
fn check_sums<T: Float>(name: &str, matrix: &Csr<T>) -> Result<(), ReadError> {
    let overflown = (matrix.iter_rows().enumerate())
        .find_map(|(row, mut entries)| Some((row, entries.find(|(_, sum)| !sum.is_finite())?.0)));
    overflown.map_or(Ok(()), |(row, column)| {
        let message = format!(
            "its entries of row {} and column {} add up to no finite number",
            row + 1,
            column + 1
        );
        Err(ReadError::Content { file: name.to_owned(), message })
    })
}

/// Writes a matrix as `real general`, each number in the shortest form that reads back to the same
/// bits. A name that ends in `.gz` is compressed (feature `gzip`). The file is replaced atomically.
///
/// # Errors
///
/// [`ReadError::Data`] for a value that is not finite, which would not be read back: nothing is
/// written then. [`ReadError::Io`], [`ReadError::FeatureDisabled`], and [`ReadError::Content`] for
/// the ending `.zst`.
pub fn write<T: Float>(path: impl AsRef<Path>, matrix: &Csr<T>) -> Result<(), ReadError> {
    let path = path.as_ref();
    check(&path.display().to_string(), matrix)?;
    write_text(path, |writer| write_lines(writer, matrix))
}

/// Refuses entries that would not be read back.
fn check<T: Float>(name: &str, matrix: &Csr<T>) -> Result<(), ReadError> {
    check_entries(matrix, |value| value.as_f64())
        .map_err(|source| ReadError::Data { file: name.to_owned(), source: Box::new(source) })
}

/// Like [`write()`], to a writer, uncompressed; `name` stands for the file in messages. It writes a
/// number at a time: wrap a file in a buffer.
///
/// # Errors
///
/// [`ReadError::Data`] and [`ReadError::Io`].
pub fn write_to<T: Float>(
    name: &str,
    mut writer: impl Write,
    matrix: &Csr<T>,
) -> Result<(), ReadError> {
    check(name, matrix)?;
    write_lines(&mut writer, matrix)
        .map_err(|source| ReadError::Io { file: name.to_owned(), source })
}

fn write_lines<T: Float>(writer: &mut dyn Write, matrix: &Csr<T>) -> io::Result<()> {
    writeln!(writer, "%%MatrixMarket matrix coordinate real general")?;
    writeln!(writer, "{} {} {}", matrix.n_rows(), matrix.n_cols(), matrix.nnz())?;
    for (i, row) in matrix.iter_rows().enumerate() {
        for (column, value) in row {
            write!(writer, "{} {} ", i as u64 + 1, column as u64 + 1)?;
            write_number(writer, value)?;
            writeln!(writer)?;
        }
    }
    Ok(())
}

/// The triangle of a symmetric file, once an entry has shown it: an entry in the other one would be
/// added to its mirror.
#[derive(Default)]
struct Triangle(Option<Ordering>);

impl Triangle {
    fn check(&mut self, row: usize, column: usize) -> Result<(), Problem> {
        let side = row.cmp(&column);
        if side == Ordering::Equal || *self.0.get_or_insert(side) == side {
            return Ok(());
        }
        Err(Problem::BothTriangles { row: row as u64 + 1, column: column as u64 + 1 })
    }
}

/// The words of the header that vary.
struct Header {
    /// All numbers follow, column by column, instead of entries with their places.
    is_array: bool,
    field: Field,
    symmetry: Symmetry,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Field {
    Real,
    Integer,
    /// Places without values.
    Pattern,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Symmetry {
    General,
    Symmetric,
    /// Entries on the other side have the other sign.
    Skew,
}

struct Size {
    n_rows: usize,
    n_cols: usize,
    n_entries: usize,
}

impl Size {
    /// Refuses sizes without memory: a damaged size must not end the process.
    fn check_memory<T: Float>(&self, name: &str, header: &Header) -> Result<(), ReadError> {
        let stored = if header.symmetry == Symmetry::General { 1 } else { 2 };
        let n_stored = self.n_entries.saturating_mul(stored);
        let of_entries = n_stored.saturating_mul(size_of::<(usize, usize, T)>());
        let of_rows = self.n_rows.saturating_add(1).saturating_mul(size_of::<u64>());
        let bytes = of_entries.saturating_add(of_rows);
        if is_there_for::<u8>(bytes) { Ok(()) } else { Err(self.too_large(name, bytes)) }
    }

    #[cold]
    fn too_large(&self, name: &str, bytes: usize) -> ReadError {
        let what = format!("{} rows with {} entries", self.n_rows, self.n_entries);
        ReadError::ArraysTooLarge { file: name.to_owned(), what, bytes }
    }
}

impl Header {
    /// The first row of a column of an array that is written.
    fn first_row(&self, column: usize) -> usize {
        match self.symmetry {
            Symmetry::General => 0,
            Symmetry::Symmetric => column,
            Symmetry::Skew => column + 1,
        }
    }

    /// The numbers of an array that are written.
    fn n_numbers(&self, n_rows: usize, n_cols: usize) -> usize {
        match self.symmetry {
            Symmetry::General => n_rows.saturating_mul(n_cols),
            Symmetry::Symmetric => n_rows.saturating_mul(n_rows.saturating_add(1)) / 2,
            Symmetry::Skew => n_rows.saturating_mul(n_rows.saturating_sub(1)) / 2,
        }
    }

    /// The entry that follows from another by symmetry.
    fn mirrored<T: Float>(&self, row: usize, column: usize, value: T) -> Option<(usize, usize, T)> {
        match self.symmetry {
            _ if row == column => None,
            Symmetry::General => None,
            Symmetry::Symmetric => Some((column, row, value)),
            Symmetry::Skew => Some((column, row, -value)),
        }
    }

    /// A number of the field; an integer may be written `1.0`.
    fn number<T: Float>(&self, word: &[u8]) -> Result<T, NotANumber> {
        let value: T = match number(word) {
            Ok((value, b"")) => value,
            Ok(_) => return Err(NotANumber::Syntax),
            Err(error) => return Err(error),
        };
        let is_whole = self.field != Field::Integer
            || number::<f64>(word).is_ok_and(|(value, _)| value.fract() == 0.0);
        if is_whole { Ok(value) } else { Err(NotANumber::Syntax) }
    }

    /// The entry of a line.
    fn entry<T: Float>(&self, size: &Size, line: &[u8]) -> Result<(usize, usize, T), Problem> {
        let is_pattern = self.field == Field::Pattern;
        let expected = || Problem::ExpectedCoordinates {
            form: if is_pattern { "row column" } else { "row column value" },
            n_entries: size.n_entries,
        };
        let mut words = words(line);
        let mut next = || words.next();
        let (Some(row), Some(column)) = (next().and_then(position), next().and_then(position))
        else {
            return Err(expected());
        };
        let value = match (is_pattern, next()) {
            (true, None) => Ok(T::one()),
            (false, Some(word)) => self.number(word),
            _ => Err(NotANumber::Syntax),
        };
        let value = match value {
            Ok(value) if next().is_none() => value,
            Err(NotANumber::NotFinite | NotANumber::BeyondRange) => {
                return Err(Problem::EntryNotFinite { row, column });
            }
            _ => return Err(expected()),
        };
        let (n_rows, n_cols) = (size.n_rows, size.n_cols);
        if row > n_rows as u64 || column > n_cols as u64 {
            return Err(Problem::EntryOutside { row, column, n_rows, n_cols });
        }
        // `aᵢⱼ = -aⱼᵢ` leaves nothing but 0 there.
        if self.symmetry == Symmetry::Skew && row == column && !value.is_zero() {
            return Err(Problem::SkewDiagonal { row });
        }
        Ok((row as usize - 1, column as usize - 1, value))
    }
}

fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty())
}

/// A row or column, counted from one.
fn position(word: &[u8]) -> Option<u64> {
    match digits(word) {
        (position @ 1.., 1..=MAX_DIGITS, b"") => Some(position),
        _ => None,
    }
}

/// A file, a line at a time.
struct Text<'a, R> {
    name: &'a str,
    reader: BufReader<R>,
    /// The last line, with its end; empty after the last one.
    line: Vec<u8>,
    /// The lines read.
    lines: u64,
}

impl<R: Read> Text<'_, R> {
    fn read_header(&mut self) -> Result<Header, ReadError> {
        self.read_line()?;
        let line = self.line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&self.line);
        let lower = line.to_ascii_lowercase();
        let words: Vec<&[u8]> = words(&lower).collect();
        let [b"%%matrixmarket", b"matrix", layout, field, symmetry] = words[..] else {
            return Err(self.expected("`%%MatrixMarket matrix`, a layout, a field and a symmetry"));
        };
        let unknown = |expected, word: &[u8]| {
            self.syntax(Problem::Expected { expected, found: Excerpt::line(word) })
        };
        let is_array = match layout {
            b"coordinate" => false,
            b"array" => true,
            word => return Err(unknown("`coordinate` or `array`", word)),
        };
        let field = match field {
            b"real" | b"double" => Field::Real,
            b"integer" | b"unsigned-integer" => Field::Integer,
            b"pattern" if !is_array => Field::Pattern,
            word => {
                let fields =
                    "`real`, `double`, `integer`, `unsigned-integer` or, of coordinates, `pattern`";
                return Err(unknown(fields, word));
            }
        };
        let symmetry = match symmetry {
            b"general" => Symmetry::General,
            // Of real numbers both are the same.
            b"symmetric" | b"hermitian" => Symmetry::Symmetric,
            b"skew-symmetric" if field != Field::Pattern => Symmetry::Skew,
            word => {
                let kinds = "`general`, `symmetric`, `hermitian` or, of numbers, `skew-symmetric`";
                return Err(unknown(kinds, word));
            }
        };
        Ok(Header { is_array, field, symmetry })
    }

    /// Skips comments and empty lines.
    fn read_size(&mut self, header: &Header) -> Result<Size, ReadError> {
        loop {
            self.read_line()?;
            let is_blank = self.line.trim_ascii().is_empty();
            if !(self.line.trim_ascii_start().starts_with(b"%")
                || is_blank && !self.line.is_empty())
            {
                break;
            }
        }
        let numbers: Option<Vec<usize>> =
            words(&self.line).map(|word| str::from_utf8(word).ok()?.parse().ok()).collect();
        let (n_rows, n_cols, n_entries) = match (numbers.as_deref(), header.is_array) {
            (Some(&[n_rows, n_cols, n_entries]), false) => (n_rows, n_cols, n_entries),
            (Some(&[n_rows, n_cols]), true) => (n_rows, n_cols, header.n_numbers(n_rows, n_cols)),
            (_, false) => {
                return Err(self.expected("the numbers of rows, columns and entries"));
            }
            (_, true) => return Err(self.expected("the numbers of rows and columns of an array")),
        };
        if header.symmetry != Symmetry::General && n_rows != n_cols {
            return Err(self.expected("as many rows as columns, as symmetry needs"));
        }
        Ok(Size { n_rows, n_cols, n_entries })
    }

    /// Reads as many lines as there are entries, without blank ones, and mirrors entries of
    /// symmetric matrices.
    fn read_entries<T: Float>(
        &mut self,
        header: &Header,
        size: &Size,
        skips: &mut Skips,
    ) -> Result<Vec<(usize, usize, T)>, ReadError> {
        if header.is_array {
            return self.read_array(header, size);
        }
        let mut entries = Vec::new();
        let mut n_read = 0;
        let mut triangle = Triangle::default();
        while n_read < size.n_entries {
            self.read_line()?;
            if self.line.trim_ascii().is_empty() && !self.line.is_empty() {
                continue;
            }
            n_read += 1;
            let entry = header.entry::<T>(size, &self.line);
            let entry = entry.and_then(|entry| match header.symmetry {
                Symmetry::General => Ok(entry),
                _ => triangle.check(entry.0, entry.1).map(|()| entry),
            });
            match entry {
                Ok((row, column, value)) => {
                    make_room(&mut entries, 2).map_err(|bytes| size.too_large(self.name, bytes))?;
                    entries.push((row, column, value));
                    entries.extend(header.mirrored(row, column, value));
                }
                // The file has ended.
                Err(problem) if self.line.is_empty() => return Err(self.syntax(problem)),
                Err(problem) => skips.add(self.place(), problem)?,
            }
        }
        Ok(entries)
    }

    /// Reads all numbers of an array, and keeps those that are not 0. None can be skipped: the
    /// places of later ones follow from their number.
    fn read_array<T: Float>(
        &mut self,
        header: &Header,
        size: &Size,
    ) -> Result<Vec<(usize, usize, T)>, ReadError> {
        let mut entries = Vec::new();
        for column in 0..size.n_cols {
            for row in header.first_row(column)..size.n_rows {
                self.read_line()?;
                while self.line.trim_ascii().is_empty() && !self.line.is_empty() {
                    self.read_line()?;
                }
                let value: T = match header.number(self.line.trim_ascii()) {
                    Ok(value) => value,
                    Err(NotANumber::NotFinite | NotANumber::BeyondRange) => {
                        let (row, column) = (row as u64 + 1, column as u64 + 1);
                        return Err(self.syntax(Problem::EntryNotFinite { row, column }));
                    }
                    Err(NotANumber::Syntax) => {
                        return Err(self.expected("a number of the array, one a line"));
                    }
                };
                if !value.is_zero() {
                    make_room(&mut entries, 2).map_err(|bytes| size.too_large(self.name, bytes))?;
                    entries.push((row, column, value));
                    entries.extend(header.mirrored(row, column, value));
                }
            }
        }
        Ok(entries)
    }

    /// Text after the declared number of entries must be blank.
    fn check_end(&mut self) -> Result<(), ReadError> {
        loop {
            self.read_line()?;
            if self.line.is_empty() {
                return Ok(());
            }
            if !self.line.trim_ascii().is_empty() {
                return Err(
                    self.expected("the end of the file after the declared number of entries")
                );
            }
        }
    }

    fn read_line(&mut self) -> Result<(), ReadError> {
        self.line.clear();
        let limit = LINE_BYTES;
        let n_bytes = (&mut self.reader).take(limit as u64).read_until(b'\n', &mut self.line);
        let n_bytes = n_bytes.map_err(|source| io_error(self.name, source))?;
        self.lines += u64::from(n_bytes > 0);
        if n_bytes == limit && !self.line.ends_with(b"\n") {
            return Err(self.syntax(Problem::LineTooLong { limit }));
        }
        Ok(())
    }

    fn expected(&self, expected: &'static str) -> ReadError {
        self.syntax(Problem::Expected { expected, found: Excerpt::line(&self.line) })
    }

    fn syntax(&self, problem: Problem) -> ReadError {
        ReadError::Syntax { place: self.place(), problem }
    }

    fn place(&self) -> Place {
        Place { file: self.name.to_owned(), line: self.lines.max(1), column: 1 }
    }
}

#[cfg(test)]
mod tests;
