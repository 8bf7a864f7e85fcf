//! MatrixMarket coordinate files: `%%MatrixMarket matrix coordinate real general`.
//!
//! Entries and symmetries are read by `sprs::io`. Header and size line are read here first, and the size is kept
//! from that crate, because it waits forever for a size line that is missing and panics on an entry outside
//! of the matrix. Writing is a line an entry, from the csr arrays as they are.

use super::blocks::{io_error, open};
use super::number::write_number;
use super::{Excerpt, Place, Problem, ReadError};
use crate::formats::Csr;
use crate::replace::replace_file;
use sparse_core::element::Float;
use sparse_core::storage::ElementType;
use sprs::TriMat;
use sprs::io::{IoError, read_matrix_market_from_bufread};
use sprs::num_kinds::Pattern;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;

/// Reads a matrix: fields `real`, `integer` and `pattern` (all values 1), symmetries `general`, `symmetric` and
/// `skew-symmetric` (both triangles are stored). Entries at the same place are added. A name that ends in `.gz` is
/// decompressed (feature `gzip`). O(m log m) for m entries.
///
/// # Errors
///
/// [`ReadError::Syntax`] with the line for text that is not such a file; [`ReadError::Content`] for entries
/// outside of the matrix, values that are not finite, and sizes beyond the memory; [`ReadError::Io`], and those
/// of gzip files.
pub fn read<T: Float>(path: impl AsRef<Path>) -> Result<Csr<T>, ReadError> {
    let path = path.as_ref();
    read_from(&path.display().to_string(), open(path)?)
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
    let mut text = Text { name, header: Vec::new(), reader: BufReader::new(reader), lines: 0 };
    let header = text.read_header()?;
    let size = text.read_size(&header)?;
    text.header = size.without_shape(&header);
    let entries: Vec<(usize, usize, T)> = match (header.field, T::TYPE) {
        ("pattern", _) => text.read_entries(&header, &size, |_: &Pattern| T::one()),
        ("integer", _) => text.read_entries(&header, &size, |&v: &i64| T::of(v as f64)),
        (_, ElementType::F32) => text.read_entries(&header, &size, |&v: &f32| T::of(v.into())),
        (_, _) => text.read_entries(&header, &size, |&v: &f64| T::of(v)),
    }?;
    Csr::from_coo(size.n_rows, size.n_cols, entries)
        .map_err(|source| ReadError::Format { file: name.to_owned(), source })
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

impl Size {
    /// The beginning of the same file for a matrix as large as can be.
    fn without_shape(&self, header: &Header) -> Vec<u8> {
        let Header { field, symmetry } = header;
        let (all, n_entries) = (usize::MAX, self.n_entries);
        format!("%%MatrixMarket matrix coordinate {field} {symmetry}\n{all} {all} {n_entries}\n")
            .into_bytes()
    }
}

/// A file, with a count of the lines read.
struct Text<'a, R> {
    name: &'a str,
    /// What is read before the rest of the file.
    header: Vec<u8>,
    reader: BufReader<R>,
    /// Lines of the file that were read whole or in part.
    lines: u64,
}

impl<R: Read> Text<'_, R> {
    fn read_header(&mut self) -> Result<Header, ReadError> {
        let line = self.read_line()?;
        let lower = line.to_ascii_lowercase();
        let words: Vec<&[u8]> =
            lower.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).collect();
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
            &line,
        ))
    }

    /// Skips comments and empty lines.
    fn read_size(&mut self, header: &Header) -> Result<Size, ReadError> {
        let line = loop {
            let line = self.read_line()?;
            let is_blank = line.trim_ascii().is_empty();
            if !(line.starts_with(b"%") || is_blank && !line.is_empty()) {
                break line;
            }
        };
        let numbers: Option<Vec<usize>> = line
            .split(u8::is_ascii_whitespace)
            .filter(|word| !word.is_empty())
            .map(|word| str::from_utf8(word).ok()?.parse().ok())
            .collect();
        let Some(&[n_rows, n_cols, n_entries]) = numbers.as_deref() else {
            return Err(self.expected("the numbers of rows, columns and entries", &line));
        };
        if header.symmetry != "general" && n_rows != n_cols {
            return Err(self.expected("as many rows as columns, as symmetry needs", &line));
        }
        // A damaged size must not end the process for want of memory.
        let stored = if header.symmetry == "general" { 1 } else { 2 };
        let n_stored = n_entries.checked_mul(stored);
        let fits = n_stored
            .is_some_and(|n| Vec::<(usize, usize, f64)>::new().try_reserve(n).is_ok())
            && n_rows < usize::MAX
            && Vec::<u64>::new().try_reserve(n_rows + 1).is_ok();
        if !fits {
            return Err(self.refuse(format!(
                "{n_rows} rows with {n_entries} entries need more memory than there is"
            )));
        }
        Ok(Size { n_rows, n_cols, n_entries })
    }

    fn read_entries<N, T: Float>(
        &mut self,
        header: &Header,
        size: &Size,
        convert: impl Fn(&N) -> T,
    ) -> Result<Vec<(usize, usize, T)>, ReadError>
    where
        N: sprs::num_kinds::PrimitiveKind
            + Clone
            + std::ops::Neg<Output = N>
            + sprs::num_matrixmarket::MatrixMarketRead
            + sprs::num_matrixmarket::MatrixMarketConjugate,
    {
        let read: TriMat<N> = match read_matrix_market_from_bufread(self) {
            Ok(read) => read,
            Err(IoError::Io(source)) => return Err(io_error(self.name, source)),
            Err(_) => {
                return Err(self.syntax(Problem::ExpectedCoordinates {
                    form: if header.field == "pattern" { "row column" } else { "row column value" },
                    n_entries: size.n_entries,
                }));
            }
        };
        self.check_end()?;
        let places = read.row_inds().iter().zip(read.col_inds());
        let entries = places.zip(read.data()).map(|((&row, &column), value)| {
            let value = convert(value);
            if row >= size.n_rows || column >= size.n_cols {
                return Err(self.refuse(format!(
                    "the entry at row {}, column {} (counted from one) lies outside of the matrix of {} rows and {} columns",
                    row + 1, column + 1, size.n_rows, size.n_cols
                )));
            }
            if !value.is_finite() {
                return Err(self.refuse(format!(
                    "the value at row {}, column {} (counted from one) is not a finite `{}`",
                    row + 1, column + 1, T::TYPE
                )));
            }
            Ok((row, column, value))
        });
        entries.collect()
    }

    /// What follows the declared number of entries must be blank.
    fn check_end(&mut self) -> Result<(), ReadError> {
        loop {
            let line = self.read_line()?;
            if line.is_empty() {
                return Ok(());
            }
            if !line.trim_ascii().is_empty() {
                return Err(self
                    .expected("the end of the file after the declared number of entries", &line));
            }
        }
    }

    fn read_line(&mut self) -> Result<Vec<u8>, ReadError> {
        let mut line = Vec::new();
        let result = self.read_until(b'\n', &mut line);
        result.map_err(|source| io_error(self.name, source))?;
        Ok(line)
    }

    fn expected(&self, expected: &'static str, line: &[u8]) -> ReadError {
        let found = Excerpt::line(line);
        self.syntax(Problem::Expected { expected, found })
    }

    fn syntax(&self, problem: Problem) -> ReadError {
        let place = Place { file: self.name.to_owned(), line: self.lines.max(1), column: 1 };
        ReadError::Syntax { place, problem }
    }

    fn refuse(&self, message: String) -> ReadError {
        ReadError::Content { file: self.name.to_owned(), message }
    }
}

impl<R: Read> Read for Text<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.fill_buf()?.read(buffer)?;
        self.consume(n);
        Ok(n)
    }
}

impl<R: Read> BufRead for Text<'_, R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.header.is_empty() { self.reader.fill_buf() } else { Ok(&self.header) }
    }

    fn consume(&mut self, n: usize) {
        if self.header.is_empty() {
            let ends = |bytes: &[u8]| bytes.iter().filter(|&&byte| byte == b'\n').count();
            self.lines += ends(&self.reader.buffer()[..n]) as u64;
            self.reader.consume(n);
        } else {
            self.header.drain(..n);
        }
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
            format!("`file`: the entry at row 4, column 1 (counted from one) {outside}")
        );
        assert!(refused(&format!("{GENERAL}3 4 1\n1 5 1\n")).ends_with(outside));
        for bad in ["nan", "inf", "1e39"] {
            let error = refused(&format!("{GENERAL}3 4 1\n1 2 {bad}\n"));
            assert_eq!(
                error,
                "`file`: the value at row 1, column 2 (counted from one) is not a finite `f32`"
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
        assert!(matches!(error, Err(ReadError::Io { .. })), "{error:?}");
        assert!(matches!(read::<f32>("no/such/file.mtx"), Err(ReadError::Io { .. })));
        assert!(matches!(
            write("no/such/folder/file.mtx", &csr(1, 1, &[])),
            Err(ReadError::Io { .. })
        ));
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
