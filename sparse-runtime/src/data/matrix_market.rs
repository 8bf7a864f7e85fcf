//! MatrixMarket coordinate files: `%%MatrixMarket matrix coordinate real general`.
//!
//! A line is read at a time, an entry a line; writing is a line an entry, from the csr arrays as they are.

use super::blocks::{io_error, open};
use super::number::{MAX_DIGITS, NotANumber, digits, number, write_number};
use super::text::Skips;
use super::{Excerpt, OnError, Place, Problem, ReadError, ReadReport};
use crate::formats::Csr;
use crate::replace::replace_file;
use sparse_core::element::Float;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;

/// Reads a matrix: fields `real`, `integer` and `pattern` (all values 1), symmetries `general`, `symmetric` and
/// `skew-symmetric` (both triangles are stored). Entries at the same place are added. A name that ends in `.gz` is
/// decompressed (feature `gzip`). O(m log m) for m entries.
///
/// # Errors
///
/// [`ReadError::Syntax`] with the line for text that is not such a file, entries outside of the matrix and values that are not
/// finite; [`ReadError::Content`] for sizes beyond the memory; [`ReadError::Io`], and those of gzip files.
pub fn read<T: Float>(path: impl AsRef<Path>) -> Result<Csr<T>, ReadError> {
    read_with(path, OnError::Fail).map(|(matrix, _)| matrix)
}

/// As [`read`], where lines that are no entry of the matrix may be [left out](OnError::Skip); the report counts them. They are lines of
/// the number that the file declares.
///
/// # Errors
///
/// As [`read`]; [`ReadError::TooManySkipped`]. A file that ends early, or goes on after its entries, is never read.
pub fn read_with<T: Float>(
    path: impl AsRef<Path>,
    on_error: OnError,
) -> Result<(Csr<T>, ReadReport), ReadError> {
    let path = path.as_ref();
    read_from_with(&path.display().to_string(), open(path)?, on_error)
}

/// Reads what a reader yields; `name` stands for the file in messages.
///
/// # Errors
///
/// As [`read`].
///
/// ```
/// use sparse_runtime::data::matrix_market;
///
/// let text = "%%MatrixMarket matrix coordinate real general\n2 3 1\n1 3 0.5\n";
/// let x = matrix_market::read_from::<f32>("inline", text.as_bytes())?;
/// assert_eq!((x.n_rows(), x.n_cols(), x.values()), (2, 3, &[0.5][..]));
/// # Ok::<(), sparse_runtime::Error>(())
/// ```
pub fn read_from<T: Float>(name: &str, reader: impl Read) -> Result<Csr<T>, ReadError> {
    read_from_with(name, reader, OnError::Fail).map(|(matrix, _)| matrix)
}

/// As [`read_from`], where lines may be left out as [`read_with`] says.
///
/// # Errors
///
/// As [`read_with`].
///
/// ```
/// use sparse_runtime::data::{OnError, matrix_market};
///
/// let text = "%%MatrixMarket matrix coordinate pattern general\n2 3 2\n1 3\n7 7\n";
/// let skip = OnError::Skip(1);
/// let (x, report) = matrix_market::read_from_with::<f32>("inline", text.as_bytes(), skip)?;
/// assert_eq!((x.nnz(), report.n_skipped, report.first_skipped[0].place.line), (1, 1, 4));
/// # Ok::<(), sparse_runtime::Error>(())
/// ```
pub fn read_from_with<T: Float>(
    name: &str,
    reader: impl Read,
    on_error: OnError,
) -> Result<(Csr<T>, ReadReport), ReadError> {
    let mut text = Text { name, reader: BufReader::new(reader), line: Vec::new(), lines: 0 };
    let header = text.read_header()?;
    let size = text.read_size(&header)?;
    let mut skips = Skips::new(on_error);
    let entries = text.read_entries(&header, &size, &mut skips)?;
    text.check_end()?;
    let mut report = ReadReport::of_file(name.to_owned());
    (report.n_skipped, report.first_skipped) = (skips.count, skips.first);
    let matrix = Csr::from_coo(size.n_rows, size.n_cols, entries)
        .map_err(|source| ReadError::Format { file: name.to_owned(), source })?;
    Ok((matrix, report))
}

/// Writes a matrix as `real general`, each number in the shortest form that is read back to the same bits. The
/// file is written beside its place and renamed.
///
/// # Errors
///
/// [`ReadError::Io`].
pub fn write<T: Float>(path: impl AsRef<Path>, matrix: &Csr<T>) -> Result<(), ReadError> {
    let path = path.as_ref();
    replace_file(path, |writer| write_lines(writer, matrix))
        .map_err(|source| ReadError::Io { file: path.display().to_string(), source })
}

/// As [`write()`], to a writer; `name` stands for the file in messages. Writes a number at a time: give a file a
/// buffer.
///
/// # Errors
///
/// [`ReadError::Io`].
pub fn write_to<T: Float>(
    name: &str,
    mut writer: impl Write,
    matrix: &Csr<T>,
) -> Result<(), ReadError> {
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

/// The two words of the header that vary.
struct Header {
    field: &'static str,
    symmetry: &'static str,
}

struct Size {
    n_rows: usize,
    n_cols: usize,
    n_entries: usize,
}

impl Header {
    /// The entry of a line.
    fn entry<T: Float>(&self, size: &Size, line: &[u8]) -> Result<(usize, usize, T), Problem> {
        let is_pattern = self.field == "pattern";
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
            (false, Some(word)) if self.field == "integer" => integer(word),
            (false, Some(word)) => match number(word) {
                Ok((value, b"")) => Ok(value),
                Ok(_) => Err(NotANumber::Syntax),
                Err(error) => Err(error),
            },
            _ => Err(NotANumber::Syntax),
        };
        let value = match value {
            Ok(value) if next().is_none() => value,
            Err(NotANumber::NotFinite) => return Err(Problem::EntryNotFinite { row, column }),
            _ => return Err(expected()),
        };
        let (n_rows, n_cols) = (size.n_rows, size.n_cols);
        if row > n_rows as u64 || column > n_cols as u64 {
            return Err(Problem::EntryOutside { row, column, n_rows, n_cols });
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

fn integer<T: Float>(word: &[u8]) -> Result<T, NotANumber> {
    let text = str::from_utf8(word).map_err(|_| NotANumber::Syntax)?;
    let value = T::of(text.parse::<i64>().map_err(|_| NotANumber::Syntax)? as f64);
    if value.is_finite() { Ok(value) } else { Err(NotANumber::NotFinite) }
}

/// A file, a line at a time.
struct Text<'a, R> {
    name: &'a str,
    reader: BufReader<R>,
    /// The line read last, with its end; empty after the last one.
    line: Vec<u8>,
    /// The lines read.
    lines: u64,
}

impl<R: Read> Text<'_, R> {
    fn read_header(&mut self) -> Result<Header, ReadError> {
        self.read_line()?;
        let lower = self.line.to_ascii_lowercase();
        let words: Vec<&[u8]> = words(&lower).collect();
        let known = |word: &[u8], words: &[&'static str]| {
            words.iter().copied().find(|known| known.as_bytes() == word)
        };
        if let [b"%%matrixmarket", b"matrix", b"coordinate", field, symmetry] = words[..]
            && let Some(field) = known(field, &["real", "integer", "pattern"])
            && let Some(symmetry) = known(symmetry, &["general", "symmetric", "skew-symmetric"])
            && (field, symmetry) != ("pattern", "skew-symmetric")
        {
            return Ok(Header { field, symmetry });
        }
        Err(self.expected(
            "`%%MatrixMarket matrix coordinate`, `real`, `integer` or `pattern`, and `general`, `symmetric` or `skew-symmetric`",
        ))
    }

    /// Skips comments and empty lines.
    fn read_size(&mut self, header: &Header) -> Result<Size, ReadError> {
        loop {
            self.read_line()?;
            let is_blank = self.line.trim_ascii().is_empty();
            if !(self.line.starts_with(b"%") || is_blank && !self.line.is_empty()) {
                break;
            }
        }
        let numbers: Option<Vec<usize>> =
            words(&self.line).map(|word| str::from_utf8(word).ok()?.parse().ok()).collect();
        let Some(&[n_rows, n_cols, n_entries]) = numbers.as_deref() else {
            return Err(self.expected("the numbers of rows, columns and entries"));
        };
        if header.symmetry != "general" && n_rows != n_cols {
            return Err(self.expected("as many rows as columns, as symmetry needs"));
        }
        // A damaged size must not end the process for want of memory.
        let stored = if header.symmetry == "general" { 1 } else { 2 };
        let n_stored = n_entries.checked_mul(stored);
        let fits = n_stored
            .is_some_and(|n| Vec::<(usize, usize, f64)>::new().try_reserve(n).is_ok())
            && n_rows < usize::MAX
            && Vec::<u64>::new().try_reserve(n_rows + 1).is_ok();
        if !fits {
            let message =
                format!("{n_rows} rows with {n_entries} entries need more memory than there is");
            return Err(ReadError::Content { file: self.name.to_owned(), message });
        }
        Ok(Size { n_rows, n_cols, n_entries })
    }

    /// Reads as many lines as there are entries, besides blank ones, and mirrors entries of symmetric matrices.
    fn read_entries<T: Float>(
        &mut self,
        header: &Header,
        size: &Size,
        skips: &mut Skips,
    ) -> Result<Vec<(usize, usize, T)>, ReadError> {
        let mut entries = Vec::new();
        let mut n_read = 0;
        while n_read < size.n_entries {
            self.read_line()?;
            if self.line.trim_ascii().is_empty() && !self.line.is_empty() {
                continue;
            }
            n_read += 1;
            match header.entry::<T>(size, &self.line) {
                Ok((row, column, value)) => {
                    entries.push((row, column, value));
                    match header.symmetry {
                        "symmetric" if row != column => entries.push((column, row, value)),
                        "skew-symmetric" if row != column => entries.push((column, row, -value)),
                        _ => {}
                    }
                }
                // The file has ended.
                Err(problem) if self.line.is_empty() => return Err(self.syntax(problem)),
                Err(problem) => skips.add(self.place(), problem)?,
            }
        }
        Ok(entries)
    }

    /// What follows the declared number of entries must be blank.
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
        let n_bytes = self.reader.read_until(b'\n', &mut self.line);
        let n_bytes = n_bytes.map_err(|source| io_error(self.name, source))?;
        self.lines += u64::from(n_bytes > 0);
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
mod tests {
    use super::*;
    use crate::data::synthetic::random_csr;
    use proptest::prelude::*;

    fn parse(text: &str) -> Result<Csr<f32>, String> {
        read_from("file", text.as_bytes()).map_err(|error| error.to_string())
    }

    fn csr(n_rows: usize, n_cols: usize, entries: &[(usize, usize, f32)]) -> Csr<f32> {
        Csr::from_coo(n_rows, n_cols, entries.iter().copied()).unwrap()
    }

    #[test]
    fn fields_and_symmetries() {
        let text = "%%MatrixMarket matrix coordinate real general\n% a comment\n%\n\n3 4 3\n3 1 -2.5e-1\n\n 1   4 1\n1 2 7\n\n";
        assert_eq!(parse(text), Ok(csr(3, 4, &[(2, 0, -0.25), (0, 3, 1.0), (0, 1, 7.0)])));
        let text =
            "%%MatrixMarket MATRIX Coordinate Integer Symmetric\r\n2 2 2\r\n1 1 3\r\n2 1 -4\r\n";
        assert_eq!(parse(text), Ok(csr(2, 2, &[(0, 0, 3.0), (1, 0, -4.0), (0, 1, -4.0)])));
        let text = "%%MatrixMarket matrix coordinate pattern general\n2 2 1\n2 2";
        assert_eq!(parse(text), Ok(csr(2, 2, &[(1, 1, 1.0)])));
        let text = "%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 1\n2 1 5\n";
        assert_eq!(parse(text), Ok(csr(2, 2, &[(1, 0, 5.0), (0, 1, -5.0)])));
        let text = "%%MatrixMarket matrix coordinate real general\n1 1 2\n1 1 5\n1 1 2\n";
        assert_eq!(parse(text), Ok(csr(1, 1, &[(0, 0, 7.0)])));
        let text = "%%MatrixMarket matrix coordinate real general\n2 0 0\n";
        assert_eq!(parse(text), Ok(csr(2, 0, &[])));
    }

    #[test]
    fn what_is_wrong_is_named() {
        const GENERAL: &str = "%%MatrixMarket matrix coordinate real general\n";
        let refused = |text: &str| parse(text).unwrap_err();
        for header in [
            "",
            "\n",
            "3 3 1\n",
            "%%MatrixMarket matrix array real general\n",
            "%%MatrixMarket matrix coordinate complex general\n",
            "%%MatrixMarket matrix coordinate real hermitian\n",
            "%%MatrixMarket matrix coordinate pattern skew-symmetric\n",
            "%%MatrixMarket matrix coordinate real\n",
        ] {
            let error = refused(header);
            assert!(
                error.starts_with("file:1:1: expected `%%MatrixMarket matrix coordinate`"),
                "{error}"
            );
        }
        let sized = |size: &str| refused(&format!("{GENERAL}% comment\n{size}"));
        assert_eq!(
            sized("3 x 1\n"),
            "file:3:1: expected the numbers of rows, columns and entries, found `3 x 1`"
        );
        assert_eq!(
            sized(""),
            "file:2:1: expected the numbers of rows, columns and entries, found nothing"
        );
        for huge in
            ["3 3 9999999999999999999", "18446744073709551615 3 1", "3 3 999999999999999999"]
        {
            assert!(sized(huge).ends_with("need more memory than there is"), "{huge}");
        }
        let error = refused("%%MatrixMarket matrix coordinate real symmetric\n3 2 1\n1 1 1\n");
        assert!(error.starts_with("file:2:1: expected as many rows as columns"), "{error}");
        let error = refused(&format!("{GENERAL}3 3 3\n1 1 1\n2 2 x\n3 3 3\n"));
        assert_eq!(
            error,
            "file:4:1: expected `row column value`, both counted from one, and 3 such lines in all"
        );
        for (entries, line) in
            [("1 1 1\n0 2 1\n", 4), ("1 1 1\n2 2\n", 4), ("1 1 1\n", 3), ("1 1 1 1\n2 2 2\n", 3)]
        {
            let error = refused(&format!("{GENERAL}3 3 2\n{entries}"));
            assert!(
                error.starts_with(&format!("file:{line}:1: expected `row column value`")),
                "{error}"
            );
        }
        let error = refused(&format!("{GENERAL}3 4 1\n4 1 1\n"));
        let outside = "lies outside of the matrix of 3 rows and 4 columns";
        assert_eq!(
            error,
            format!("file:3:1: the entry at row 4, column 1 (counted from one) {outside}")
        );
        assert!(refused(&format!("{GENERAL}3 4 1\n1 5 1\n")).ends_with(outside));
        for bad in ["nan", "inf", "1e39"] {
            let error = refused(&format!("{GENERAL}3 4 1\n1 2 {bad}\n"));
            assert_eq!(
                error,
                "file:3:1: the value at row 1, column 2 (counted from one) is not finite, or beyond the range of the element type"
            );
        }
        let error = refused(&format!("{GENERAL}3 3 1\n1 1 1\n\n2 2 2\n"));
        assert_eq!(
            error,
            "file:5:1: expected the end of the file after the declared number of entries, found `2 2 2`"
        );
        let error = read_from::<f32>(
            "file",
            &b"%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 \xff\n"[..],
        );
        assert!(matches!(error, Err(ReadError::Syntax { .. })), "{error:?}");
        assert!(matches!(read::<f32>("no/such/file.mtx"), Err(ReadError::Io { .. })));
        assert!(matches!(
            write("no/such/folder/file.mtx", &csr(1, 1, &[])),
            Err(ReadError::Io { .. })
        ));
    }

    #[test]
    fn lines_that_are_no_entries_are_skipped_and_counted() {
        let text = "%%MatrixMarket matrix coordinate real general\n3 3 5\n1 1 1\n9 1 1\n\n2 2 x\n3 3 3\n1 2 nan\n";
        let read = |limit| read_from_with::<f32>("file", text.as_bytes(), OnError::Skip(limit));
        let (matrix, report) = read(3).unwrap();
        assert_eq!(matrix, csr(3, 3, &[(0, 0, 1.0), (2, 2, 3.0)]));
        let lines: Vec<u64> = report.first_skipped.iter().map(|row| row.place.line).collect();
        assert_eq!((report.n_skipped, lines), (3, vec![4, 6, 8]));
        let error = read(2).unwrap_err();
        assert!(matches!(error, ReadError::TooManySkipped { limit: 2, .. }), "{error}");
        // Lines that are missing are not skipped, nor those that are too many.
        for bad in ["3 3 2\n1 1 1\n", "3 3 1\n1 1 1\n2 2 2\n"] {
            let text = format!("%%MatrixMarket matrix coordinate real general\n{bad}");
            let error = read_from_with::<f32>("file", text.as_bytes(), OnError::Skip(9));
            assert!(matches!(error, Err(ReadError::Syntax { .. })), "{error:?}");
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let path = std::env::temp_dir().join(format!("nnz-{}.mtx", std::process::id()));
        let mut matrix = random_csr::<f64>(20, 30, 0.1, 1).unwrap();
        matrix.values_mut()[0] = 1e-300;
        write(&path, &matrix).unwrap();
        let again = read::<f64>(&path);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(again.unwrap(), matrix);
    }

    /// Any finite values, and any pattern, rows and columns of nothing included.
    fn matrices() -> impl Strategy<Value = Csr<f64>> {
        let value = any::<f64>().prop_filter("finite", |value| value.is_finite());
        (0..6usize, 1..6usize).prop_flat_map(move |(n_rows, n_cols)| {
            let row = prop::collection::btree_map(0..n_cols, value.clone(), 0..=n_cols);
            prop::collection::vec(row, n_rows)
                .prop_map(move |rows| Csr::from_rows(n_cols, rows).unwrap())
        })
    }

    proptest! {
        #[test]
        fn any_matrix_is_read_as_it_was_written(matrix in matrices()) {
            let mut text = Vec::new();
            write_to("file", &mut text, &matrix).unwrap();
            let again: Csr<f64> = read_from("file", &text[..]).unwrap();
            prop_assert_eq!((again.indptr(), again.columns()), (matrix.indptr(), matrix.columns()));
            let bits = |csr: &Csr<f64>| csr.values().iter().map(|v| v.to_bits()).collect::<Vec<_>>();
            prop_assert_eq!(bits(&again), bits(&matrix));
        }

        #[test]
        fn a_file_cut_short_is_refused(matrix in matrices(), cut in any::<prop::sample::Index>()) {
            let mut text = Vec::new();
            write_to("file", &mut text, &matrix).unwrap();
            let cut = cut.index(text.len());
            if let Ok(read) = read_from::<f64>("file", &text[..cut]) {
                // Nothing but digits of the last number, or the last end of a line, can be missing.
                prop_assert_eq!(read.columns().len(), matrix.nnz());
            }
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let header = b"%%MatrixMarket matrix coordinate real general\n";
            prop_assert!(read_from::<f32>("file", &bytes[..]).is_err());
            let _ = read_from::<f32>("file", &[&header[..], &b"3 3 2\n"[..], &bytes].concat()[..]);
        }
    }
}
