//! The texts of a column: ids of samples, and the words that are labels.

use super::cells::{Fields, RowCells};
use super::parse::Parser;
use super::{Delimited, Kind};
use crate::feature_names::{FeatureNames, each_line};
use crate::number::number;
use crate::text::{Lines, RowParser};
use crate::{DataError, ReadError};
use std::collections::BTreeSet;
use std::io::Read;
use std::path::Path;

/// More distinct labels than this are no words for classes.
const MOST_LABELS: usize = 1 << 16;

/// Where so many samples have numbers as labels, the others have them too.
const ENOUGH_NUMBERS: usize = 10_000;

impl Delimited {
    /// The texts of a column, one for each sample of a file, in order: for ids, which are no
    /// features. Blanks around them are left out.
    ///
    /// ```
    /// use nnz::data::{Delimited, Hashing};
    /// # let path = std::env::temp_dir().join(format!("nnz-texts-doc-{}.csv", std::process::id()));
    /// # std::fs::write(&path, "y,who\n1,anna\n0,ben\n")?;
    ///
    /// let format = Delimited::csv(Hashing::new(10)?).with_schema("y:label,who:ignore")?;
    /// assert_eq!(format.header(true).texts(&path, "who")?, ["anna", "ben"]);
    /// # std::fs::remove_file(&path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ReadError::Data`] for a column that is not declared; [`ReadError::Io`], those of
    /// compressed files, and [`ReadError::Syntax`] for a header that differs from the schema.
    pub fn texts(&self, path: impl AsRef<Path>, column: &str) -> Result<Vec<String>, ReadError> {
        let path = path.as_ref();
        let position = self.position(column).map_err(|source| {
            let file = path.display().to_string();
            ReadError::Data { file, source: Box::new(source) }
        })?;
        let mut texts = Vec::new();
        self.each_row(path, &[position], |cells| {
            texts.push(text_at(cells, position));
            true
        })?;
        Ok(texts)
    }

    /// The texts of a column of some lines without a header, as of a pipe.
    ///
    /// # Errors
    ///
    /// [`DataError::Schema`] for a column that is not declared.
    pub fn texts_of_lines(&self, text: &[u8], column: &str) -> Result<Vec<String>, DataError> {
        let position = self.position(column)?;
        let mut joined = Vec::with_capacity(text.len());
        // Memory has no error of reading; a byte 0xff is refused where samples are read.
        if self.joined(text).read_to_end(&mut joined).is_err() {
            joined = text.to_vec();
        }
        let lines = Lines::new(&joined).filter(|(_, line)| !line.is_empty());
        Ok(lines.map(|(_, line)| text_at(&mut self.cells(line), position)).collect())
    }

    /// The distinct texts of the column of the label, in byte order, if one of the first 10,000 is
    /// no number.
    ///
    /// # Errors
    ///
    /// [`ReadError::Content`] for more than 65,536 of them; and those of [`texts`](Self::texts).
    pub fn label_texts(&self, path: impl AsRef<Path>) -> Result<Option<Vec<String>>, ReadError> {
        self.label_texts_of_paths([path])
    }

    /// Like [`label_texts`](Self::label_texts), of several files.
    ///
    /// # Errors
    ///
    /// As [`label_texts`](Self::label_texts).
    pub fn label_texts_of_paths<P: AsRef<Path>>(
        &self,
        paths: impl IntoIterator<Item = P>,
    ) -> Result<Option<Vec<String>>, ReadError> {
        let is_label = |(_, kind): &(String, Kind)| *kind == Kind::Label;
        let Some(position) = self.columns.iter().position(is_label) else { return Ok(None) };
        let mut texts = BTreeSet::new();
        let (mut has_words, mut n_samples) = (false, 0);
        for path in paths {
            let path = path.as_ref();
            self.each_row(path, &[position], |cells| {
                let text = text_at(cells, position);
                let is_number = || matches!(number::<f64>(text.as_bytes()), Ok((_, [])));
                has_words |= !text.is_empty() && !is_number();
                // A label that is missing is refused where it is read.
                if !text.is_empty() {
                    texts.insert(text);
                }
                n_samples += 1;
                if has_words { texts.len() <= MOST_LABELS } else { n_samples < ENOUGH_NUMBERS }
            })?;
            if texts.len() > MOST_LABELS {
                let file = path.display().to_string();
                let message = format!(
                    "the labels are words, of which there are more than {MOST_LABELS}: is it the column of the label?"
                );
                return Err(ReadError::Content { file, message });
            }
        }
        Ok(has_words.then(|| texts.into_iter().collect()))
    }

    /// Labels are these words: each is read as its position among them, from zero. Any other is an
    /// error.
    #[must_use]
    pub fn label_names(mut self, names: impl IntoIterator<Item = String>) -> Self {
        self.label_names = names.into_iter().collect();
        self
    }

    /// The position of a declared column.
    fn position(&self, column: &str) -> Result<usize, DataError> {
        let found = self.columns.iter().position(|(name, _)| name == column);
        found.ok_or_else(|| {
            let known: Vec<&str> = self.columns.iter().map(|(name, _)| &name[..]).collect();
            let known = known.join(", ");
            DataError::Schema {
                message: format!("there is no column `{column}`: there are {known}"),
            }
        })
    }

    /// The cells of a line.
    fn cells<'a>(&self, line: &'a [u8]) -> Fields<'a> {
        Fields::new(line, self.separator, self.quotes)
    }

    /// Calls a function with the cells of each row of a file, until it returns false. Of a columnar
    /// file only these columns are read.
    fn each_row(
        &self,
        path: &Path,
        positions: &[usize],
        mut take: impl FnMut(&mut dyn RowCells) -> bool,
    ) -> Result<(), ReadError> {
        #[cfg(feature = "parquet")]
        if let Some(file) = crate::columnar::ColumnarFile::open(path)? {
            let columns = self.needed(|position, _| positions.contains(&position));
            return crate::columnar::each_row_of_file(&file, columns, |cells| take(cells));
        }
        let _ = positions;
        each_line(
            path,
            self.quoted_separator(),
            |text| RowParser::<f64>::header(&mut Parser::new(self), text),
            |line| take(&mut self.cells(line)),
        )
    }

    /// The names of the features that fill some columns of `x`, by a pass over a file: of a
    /// category `shop=Rialto`, of a number `age`, of a [cross](Self::cross) `site=a*device=b`.
    ///
    /// ```
    /// use nnz::data::{Delimited, Hashing};
    /// # let path = std::env::temp_dir().join(format!("nnz-names-doc-{}.csv", std::process::id()));
    /// # std::fs::write(&path, "1,Rialto\n0,Lido\n")?;
    ///
    /// let hashing = Hashing::new(18)?;
    /// let format = Delimited::csv(hashing).label("y").categorical("shop");
    /// let column = hashing.column("shop", b"Lido");
    /// assert_eq!(format.feature_names(&path, [column])?.get(column), ["shop=Lido"]);
    /// # std::fs::remove_file(&path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`texts`](Self::texts), but for the column.
    pub fn feature_names(
        &self,
        path: impl AsRef<Path>,
        columns: impl IntoIterator<Item = u64>,
    ) -> Result<FeatureNames, ReadError> {
        let mut names = FeatureNames::of(columns);
        let mut parser = Parser::new(self);
        let features = |(_, (_, kind)): &(usize, &(String, Kind))| {
            !matches!(kind, Kind::Label | Kind::Weight | Kind::Ignore)
        };
        let features = self.columns.iter().enumerate().filter(features);
        let positions: Vec<usize> = features.map(|(position, _)| position).collect();
        self.each_row(path.as_ref(), &positions, |cells| {
            parser.name_features(cells, &mut names);
            true
        })?;
        Ok(names)
    }
}

/// The text of a cell, empty where a row has none.
fn text_at(cells: &mut dyn RowCells, position: usize) -> String {
    for _ in 0..position {
        if cells.is_done() || cells.next_cell().is_err() {
            return String::new();
        }
    }
    if cells.is_done() {
        return String::new();
    }
    match cells.next_cell() {
        Ok((_, cell)) => String::from_utf8_lossy(cell.text().trim_ascii()).into_owned(),
        Err(_) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ColumnValues, Dataset, Hashing, TextReader};

    fn format() -> Delimited {
        let format = Delimited::csv(Hashing::new(8).unwrap()).header(true);
        format.with_schema("y:label,who:ignore,n:numeric").unwrap()
    }

    #[test]
    fn labels_that_are_words_are_positions_in_byte_order() {
        let path = std::env::temp_dir().join(format!("nnz-label-texts-{}.csv", std::process::id()));
        let text = "y,who,n\nyes,a,1\nno,b,2\n\"yes\",c,3\n\nmaybe,d,4\n";
        std::fs::write(&path, text).unwrap();
        let names = format().label_texts(&path).unwrap().unwrap();
        assert_eq!(names, ["maybe", "no", "yes"]);
        let named = format().label_names(names);
        let data: Dataset = TextReader::new(named.clone()).read_path(&path).unwrap();
        let Some(ColumnValues::Dense(labels)) = data.labels() else { panic!("no labels") };
        assert_eq!(labels.values(), [2.0, 1.0, 2.0, 0.0]);
        std::fs::write(&path, "y,who,n\n1,a,1\n-0.5,b,2\n").unwrap();
        assert_eq!(format().label_texts(&path).unwrap(), None);
        let error = TextReader::new(named).read_path(&path).map(|_: Dataset| ()).unwrap_err();
        std::fs::remove_file(&path).unwrap();
        let message =
            ":2:1: expected one of the words that are labels in the column `y`, found `1`";
        assert!(error.to_string().ends_with(message), "{error}");
    }

    #[test]
    fn words_and_moments_are_those_of_all_files() {
        let folder = std::env::temp_dir().join(format!("nnz-all-files-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let paths = [folder.join("1.csv"), folder.join("2.csv")];
        std::fs::write(&paths[0], "y,who,n\nno,a,1\n").unwrap();
        std::fs::write(&paths[1], "y,who,n\nyes,b,3\nno,c,5\n").unwrap();
        let names = format().label_texts_of_paths(&paths).unwrap().unwrap();
        let scales = format().measure_paths(&paths).unwrap();
        let data: Dataset = {
            let named = format().label_names(names.clone());
            TextReader::new(named).read_paths(&paths).unwrap()
        };
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(names, ["no", "yes"]);
        let variance = 8.0 / 3.0;
        assert!((scales[0].mean - 3.0).abs() < 1e-12, "{scales:?}");
        assert!((scales[0].deviation.powi(2) - variance).abs() < 1e-12, "{scales:?}");
        let Some(ColumnValues::Dense(labels)) = data.labels() else { panic!("no labels") };
        assert_eq!(labels.values(), [0.0, 1.0, 0.0]);
    }

    #[test]
    fn texts_of_a_column_are_one_for_each_sample() {
        let texts = format().texts_of_lines(b"1, anna ,2\n\n0,\"b,c\",3\n", "who").unwrap();
        assert_eq!(texts, ["anna", "b,c"]);
        let texts = format().texts_of_lines(b"1,\"an\nna\",2\n0,ben,3\n", "who").unwrap();
        assert_eq!(texts, ["an\nna", "ben"]);
        let error = format().texts_of_lines(b"", "whom").unwrap_err().to_string();
        assert!(error.contains("there is no column `whom`: there are y, who, n"), "{error}");
    }

    #[test]
    fn columns_are_named_by_fields() {
        let path = std::env::temp_dir().join(format!("nnz-names-{}.csv", std::process::id()));
        std::fs::write(&path, "1,a,7,red|green\n0,b,,\n").unwrap();
        let hashing = Hashing::new(24).unwrap();
        let format = Delimited::csv(hashing);
        let format = format.with_schema("y:label,site:categorical,n:numeric,tags:list").unwrap();
        let format = format.cross(&["n", "site"]).unwrap();
        let columns = [
            hashing.column("site", b"b"),
            hashing.column("n", b""),
            hashing.column("tags", b"green"),
            hashing.cross_column(&[("n", b""), ("site", b"a")]),
        ];
        let names = format.feature_names(&path, columns).unwrap();
        std::fs::remove_file(&path).unwrap();
        let named = columns.map(|column| names.get(column).join("|"));
        assert_eq!(named, ["site=b", "n", "tags=green", "n*site=a"]);
    }
}
