//! Schemas of tables with a header, inferred from their first lines.

use super::cells::Fields;
use super::parse::is_missing;
use super::{Delimited, Kind, Numbers};
use crate::ReadError;
use crate::blocks::{BLOCK_BYTES, Blocks, open};
use crate::number::number;
use crate::text::{BYTE_ORDER_MARK, Lines, count_joined_lines, place_in_joined};
use std::path::Path;

/// What the fields of a column have been so far.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Seen {
    Nothing,
    Numbers,
    Texts,
}

impl Delimited {
    /// Declares the columns that the first line of a file names. The column `label` is the label; a
    /// column is numeric if each of its fields in the first `n_lines` lines is a finite number or
    /// empty, ignored if all are empty, and else categorical. The file then has a
    /// [`header`](Self::header). In a columnar file (feature `parquet`) types decide: numbers are
    /// numeric, lists are lists, texts, dictionaries, dates and truth values categorical, and
    /// other types ignored.
    ///
    /// ```
    /// use nnz::data::{Delimited, Hashing};
    /// # let path = std::env::temp_dir().join(format!("nnz-infer-doc-{}.csv", std::process::id()));
    /// # std::fs::write(&path, "click,age,shop,note\n1,20,Lido,\n0,,Rialto,\n")?;
    ///
    /// let format = Delimited::csv(Hashing::new(10)?).infer(&path, "click", 10_000)?;
    /// assert_eq!(format.schema(), "click:label,age:numeric,shop:categorical,note:ignore");
    /// # std::fs::remove_file(&path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ReadError::Io`], those of compressed files, [`ReadError::Empty`], and
    /// [`ReadError::Syntax`] for a faulty quote; [`ReadError::Content`] without a column of that
    /// name, for a name that occurs twice or is empty, and for a name with `,` or `:`, which a
    /// schema cannot have.
    pub fn infer(
        mut self,
        path: impl AsRef<Path>,
        label: &str,
        n_lines: usize,
    ) -> Result<Self, ReadError> {
        let path = path.as_ref();
        #[cfg(feature = "parquet")]
        if let Some(file) = crate::columnar::ColumnarFile::open(path)? {
            return self.infer_columnar(&file, label);
        }
        let file = path.display().to_string();
        let mut blocks = Blocks::with_size(self.joined(open(path)?), BLOCK_BYTES);
        let (mut names, mut seen): (Vec<String>, Vec<Seen>) = (Vec::new(), Vec::new());
        let (mut n_read, mut lines) = (0, 0);
        while n_read <= n_lines
            && let Some(block) = blocks.next().map_err(|error| error.after(&file, lines))?
        {
            let text = match block.strip_prefix(BYTE_ORDER_MARK) {
                Some(text) if lines == 0 => text,
                _ => block,
            };
            for (start, line) in Lines::new(text).filter(|(_, line)| !line.is_empty()) {
                if n_read > n_lines {
                    break;
                }
                n_read += 1;
                let fields = Fields::new(line, self.separator, self.quotes);
                let fields = fields.collect::<Result<Vec<_>, _>>().map_err(|fault| {
                    let place = place_in_joined(&file, lines, text, start + fault.offset);
                    ReadError::Syntax { place, problem: fault.problem }
                })?;
                if names.is_empty() {
                    let name =
                        |field: &[u8]| String::from_utf8_lossy(field.trim_ascii()).into_owned();
                    names = fields.iter().map(|(_, field)| name(field)).collect();
                    seen = vec![Seen::Nothing; names.len()];
                    continue;
                }
                // A line with another number of fields is for the reader to refuse.
                for (seen, (_, field)) in seen.iter_mut().zip(&fields) {
                    if !is_missing(field, &self.missing) {
                        *seen = with(*seen, field.trim_ascii());
                    }
                }
            }
            lines += count_joined_lines(block);
        }
        if names.is_empty() {
            return Err(ReadError::Empty { file });
        }
        check(&file, &names, label)?;
        for (name, seen) in names.iter().zip(seen) {
            let kind = match seen {
                _ if name == label => Kind::Label,
                Seen::Nothing => Kind::Ignore,
                Seen::Numbers => Kind::Numeric(Numbers::Value),
                Seen::Texts => Kind::Categorical,
            };
            self = self.column(name, kind);
        }
        Ok(self.header(true))
    }

    /// The declared columns, as [`with_schema`](Self::with_schema) takes them.
    pub fn schema(&self) -> String {
        let column = |(name, kind): &(String, Kind)| format!("{name}:{}", kind.name());
        self.columns.iter().map(column).collect::<Vec<_>>().join(",")
    }
}

/// What a column has been with one more field.
fn with(seen: Seen, field: &[u8]) -> Seen {
    let is_number = || matches!(number::<f64>(field), Ok((_, [])));
    match seen {
        _ if field.is_empty() => seen,
        Seen::Nothing | Seen::Numbers if is_number() => Seen::Numbers,
        _ => Seen::Texts,
    }
}

/// Refuses names that cannot be those of a schema with this label.
pub(super) fn check(file: &str, names: &[String], label: &str) -> Result<(), ReadError> {
    let refuse = |message| Err(ReadError::Content { file: file.to_owned(), message });
    for (position, name) in names.iter().enumerate() {
        let column = position + 1;
        if name.is_empty() {
            return refuse(format!("column {column} of the header has no name: give it one"));
        }
        if name.contains([',', ':']) {
            return refuse(format!(
                "column {column} of the header is called `{name}`: a name has no `,` and no `:`"
            ));
        }
        if names[..position].contains(name) {
            return refuse(format!("two columns of the header are called `{name}`"));
        }
    }
    if names.iter().any(|name| name == label) {
        return Ok(());
    }
    refuse(format!("the header has no column `{label}`: it has {}", names.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Hashing;

    /// The schema of a file of this text, or the error.
    fn infer(text: &str, label: &str, n_lines: usize) -> Result<String, String> {
        let path = std::env::temp_dir().join(format!(
            "nnz-infer-{}-{:p}.csv",
            std::process::id(),
            text.as_ptr()
        ));
        std::fs::write(&path, text).unwrap();
        let format = Delimited::csv(Hashing::new(8).unwrap()).infer(&path, label, n_lines);
        std::fs::remove_file(&path).unwrap();
        let text = format.map(|format| format.schema()).map_err(|error| error.to_string());
        text.map_err(|error| error.replace(&path.display().to_string(), "file"))
    }

    #[test]
    fn kinds_follow_from_the_first_lines() {
        let text = "\u{feff}y,\"a b\",c,d\r\n1,2.5,x,\n\n0,,3, \n1,-1e3,4,\n0,7,5,late\n";
        let all = "y:label,a b:numeric,c:categorical,d:categorical";
        assert_eq!(infer(text, "y", 10_000).unwrap(), all);
        let some = "y:label,a b:numeric,c:categorical,d:ignore";
        assert_eq!(infer(text, "y", 3).unwrap(), some);
        // What is no finite number is text.
        assert_eq!(infer("y,x\n1,NA\n0,3\n", "y", 9).unwrap(), "y:label,x:categorical");
        assert_eq!(infer("y,x\n1,inf\n", "y", 9).unwrap(), "y:label,x:categorical");
    }

    #[test]
    fn headers_that_are_no_schema_are_refused() {
        for (text, message) in [
            ("y,x\n1,2\n", "`file`: the header has no column `z`: it has y, x"),
            ("z,\n", "`file`: column 2 of the header has no name: give it one"),
            ("z,a:b\n", "`file`: column 2 of the header is called `a:b`: a name has no `,`"),
            ("z,x,x\n", "`file`: two columns of the header are called `x`"),
            ("\n", "`file` has no rows"),
            ("z,x\n1,\"a\n", "file:2:3: a quoted field must end"),
        ] {
            let error = infer(text, "z", 9).unwrap_err();
            assert!(error.starts_with(message), "{error}");
        }
    }
}
