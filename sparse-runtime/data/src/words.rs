//! Plain text, a document a line, as hashed n-grams of words.

use super::feature_names::{FeatureNames, each_line};
use super::hashing::xxh64;
use super::number::{NotANumber, number};
use super::read_error::Fault;
use super::text::{
    Chunk, ColumnKind, ColumnLayout, Lines, RowFormat, RowParser, check_text, sealed::Sealed,
    whole_format,
};
use super::{DataError, Excerpt, Hashing, Problem, ReadError};
use nnz_step::model::InputRole;
use serde::{Deserialize, Serialize};
use sparse_core::element::Float;
use std::ops::RangeInclusive;
use std::path::Path;

/// Text as bags of hashed words and n-grams: a document a line, with a label and a tab in front of
/// it.
///
/// The data has the input `x`, `csr[n, 2^bits]`, and the label `y`, `dense[n]`. A word is a run of
/// letters, digits and apostrophes, in lower case unless [`keep_case`](Words::keep_case) is set. An
/// n-gram is n words with one blank between them; its column is [`Hashing::column`] of the name
/// `text`.
///
/// ```
/// use nnz::data::{Hashing, TextReader, Words};
///
/// let format = Words::new(Hashing::new(20)?).ngrams(1..=2)?;
/// let data = TextReader::new(format).read_bytes("inline", b"1\tA bag of words\n-1\tno words\n")?;
/// // 4 words and 3 pairs; 2 words and 1 pair.
/// assert_eq!((data.n_rows(), data.features().unwrap().nnz()), (2, 10));
/// # Ok::<(), nnz::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Words {
    hashing: Hashing,
    ngrams: (usize, usize),
    weight: TermWeight,
    keep_case: bool,
    signed: bool,
    unit_norm: bool,
    labels: bool,
    expects_letters: bool,
}

/// The weight of a term in a document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum TermWeight {
    /// Its number of occurrences.
    #[default]
    Count,
    /// `1 + ln(count)`.
    Log,
    /// 1, for any number of occurrences.
    Binary,
}

impl Words {
    /// Single words, counted.
    pub fn new(hashing: Hashing) -> Self {
        Words {
            hashing,
            ngrams: (1, 1),
            weight: TermWeight::Count,
            keep_case: false,
            signed: false,
            unit_norm: false,
            labels: true,
            expects_letters: false,
        }
    }

    /// Uses runs of `lengths` words.
    ///
    /// # Errors
    ///
    /// [`DataError::Schema`] unless lengths are from 1 to at most 8 words.
    pub fn ngrams(self, lengths: RangeInclusive<usize>) -> Result<Self, DataError> {
        let (shortest, longest) = lengths.into_inner();
        if shortest == 0 || longest < shortest || longest > 8 {
            let message =
                format!("n-grams of {shortest} to {longest} words: from at least 1 to at most 8");
            return Err(DataError::Schema { message });
        }
        Ok(Words { ngrams: (shortest, longest), ..self })
    }

    /// Sets the weight of a term.
    #[must_use]
    pub fn weight(self, weight: TermWeight) -> Self {
        Words { weight, ..self }
    }

    /// Distinguishes upper and lower case.
    #[must_use]
    pub fn keep_case(self) -> Self {
        Words { keep_case: true, ..self }
    }

    /// Uses bit 63 of the hash as a sign, so that collisions cancel on average (Weinberger et al.,
    /// *Feature hashing for large scale multitask learning*, ICML 2009).
    #[must_use]
    pub fn signed(self) -> Self {
        Words { signed: true, ..self }
    }

    /// Divides each sample by its Euclidean norm.
    #[must_use]
    pub fn unit_norm(self) -> Self {
        Words { unit_norm: true, ..self }
    }

    /// Makes a file an error whose first documents, up to a hundred, are numbers and no words: for
    /// files that may not be text. Entries of other formats, `3:0.5`, would become words.
    #[must_use]
    pub fn expect_letters(self) -> Self {
        Words { expects_letters: true, ..self }
    }

    /// Lines are documents alone: enough to predict.
    #[must_use]
    pub fn without_labels(self) -> Self {
        Words { labels: false, ..self }
    }
}

impl Words {
    /// The names of the features that fill some columns of `x`, by a pass over a file: runs of
    /// words, in lower case where case is not kept.
    ///
    /// # Errors
    ///
    /// [`ReadError::Io`], and those of compressed files.
    pub fn feature_names(
        &self,
        path: impl AsRef<Path>,
        columns: impl IntoIterator<Item = u64>,
    ) -> Result<FeatureNames, ReadError> {
        let mut names = FeatureNames::of(columns);
        let mut parser = RowFormat::<f64>::parser(self, &[]);
        each_line(
            path.as_ref(),
            None,
            |_| Ok(0),
            |line| {
                let label = memchr::memchr(b'\t', line).filter(|_| self.labels);
                let document = String::from_utf8_lossy(&line[label.map_or(0, |at| at + 1)..]);
                parser.split(&document);
                parser.each_term(|hash, term| {
                    names.add(self.hashing.low(hash), || term.to_owned());
                });
                true
            },
        )?;
        Ok(names)
    }
}

impl Sealed for Words {}

whole_format!(Words);

impl<T: Float> RowFormat<T> for Words {
    type Parser = Parser;

    fn columns(&self) -> Vec<ColumnLayout> {
        let column = |name: &str, role, kind| ColumnLayout { name: Some(name.into()), role, kind };
        let x = ColumnKind::Csr(Some(self.hashing.n_columns()));
        let mut columns = vec![column("x", InputRole::Input, x)];
        if self.labels {
            columns.push(column("y", InputRole::Label, ColumnKind::Dense(1)));
        }
        columns
    }

    fn parser(&self, _: &[u8]) -> Parser {
        let seed = self.hashing.seed_of("text");
        Parser {
            format: self.clone(),
            seed,
            text: String::new(),
            words: Vec::new(),
            terms: Vec::new(),
        }
    }
}

/// Lines into samples.
#[derive(Debug)]
pub struct Parser {
    format: Words,
    seed: u64,
    /// The words of a line with one blank between them.
    text: String,
    /// The start and end of each word in it.
    words: Vec<(usize, usize)>,
    /// The hashes of the terms of a line.
    terms: Vec<u64>,
}

impl Parser {
    fn row<T: Float>(&mut self, line: &[u8], rows: &mut Chunk<T>) -> Result<(), Fault> {
        let mut document = line;
        if self.format.labels {
            let (label, rest) = match number::<T>(line) {
                Ok((label, [])) => (label, &[][..]),
                Ok((label, [b'\t', rest @ ..])) => (label, rest),
                Err(NotANumber::NotFinite) => {
                    let problem = Problem::LabelNotFinite { found: Excerpt::word(line) };
                    return Err(Fault { offset: 0, problem });
                }
                Err(NotANumber::BeyondRange) => {
                    let found = Excerpt::word(line);
                    let problem = Problem::LabelBeyondRange { found, element: T::TYPE };
                    return Err(Fault { offset: 0, problem });
                }
                _ => {
                    let found = Excerpt::word(line);
                    let problem = Problem::Expected { expected: "a label and a tab", found };
                    return Err(Fault { offset: 0, problem });
                }
            };
            rows.dense(1).push(label);
            document = rest;
        }
        let document = str::from_utf8(document).map_err(|error| {
            let at = error.valid_up_to();
            let problem = Problem::NotUtf8 { found: Excerpt::line(&document[at..]) };
            Fault { offset: line.len() - document.len() + at, problem }
        })?;
        self.split(document);
        self.hash_terms();
        self.push_terms(rows);
        rows.finish_row();
        Ok(())
    }

    /// Refuses a text whose first documents are numbers.
    fn check_letters(&self, text: &[u8]) -> Result<(), Fault> {
        /// The number of documents that are checked.
        const LOOKED_AT: usize = 100;
        let mut first = None;
        let mut n_documents = 0;
        for (start, line) in Lines::new(text) {
            let label = memchr::memchr(b'\t', line).filter(|_| self.format.labels);
            let document = &line[label.map_or(0, |at| at + 1)..];
            if self.format.labels && label.is_none() || document.trim_ascii().is_empty() {
                continue;
            }
            if !is_numbers(document) {
                return Ok(());
            }
            first = first.or(Some((start + line.len() - document.len(), document)));
            n_documents += 1;
            if n_documents == LOOKED_AT {
                break;
            }
        }
        let Some((offset, document)) = first else { return Ok(()) };
        let found = Excerpt::line(document);
        Err(Fault { offset, problem: Problem::NumbersForWords { n_documents, found } })
    }

    fn split(&mut self, document: &str) {
        self.text.clear();
        self.words.clear();
        let is_word = |c: char| c.is_alphanumeric() || c == '\'';
        for word in document.split(|c| !is_word(c)).filter(|word| !word.is_empty()) {
            if !self.text.is_empty() {
                self.text.push(' ');
            }
            let start = self.text.len();
            match (self.format.keep_case, word.is_ascii()) {
                (true, _) => self.text.push_str(word),
                (false, true) => {
                    self.text.push_str(word);
                    self.text[start..].make_ascii_lowercase();
                }
                (false, false) => self.text.extend(word.chars().flat_map(char::to_lowercase)),
            }
            self.words.push((start, self.text.len()));
        }
    }

    fn hash_terms(&mut self) {
        let mut terms = std::mem::take(&mut self.terms);
        terms.clear();
        self.each_term(|hash, _| terms.push(hash));
        self.terms = terms;
    }

    /// Calls a function with each term of the line that was split, and its hash.
    #[inline]
    fn each_term(&self, mut take: impl FnMut(u64, &str)) {
        let (shortest, longest) = self.format.ngrams;
        for n in shortest..=longest {
            for words in self.words.windows(n) {
                let term = &self.text[words[0].0..words[n - 1].1];
                take(xxh64(term.as_bytes(), self.seed), term);
            }
        }
    }

    fn push_terms<T: Float>(&mut self, rows: &mut Chunk<T>) {
        let Words { hashing, weight, signed, unit_norm, .. } = self.format;
        // By column, and in it by term.
        self.terms.sort_unstable_by_key(|&term| (hashing.low(term), term));
        let x = rows.csr(0);
        let first = x.values.len();
        let columns = self.terms.chunk_by(|a, b| hashing.low(*a) == hashing.low(*b));
        let mut squares = 0.0;
        for column in columns {
            let mut sum = 0.0;
            for term in column.chunk_by(|a, b| a == b) {
                let count = term.len() as f64;
                let value = match weight {
                    TermWeight::Count => count,
                    TermWeight::Log => 1.0 + count.ln(),
                    TermWeight::Binary => 1.0,
                };
                sum += if signed && term[0] >> 63 == 1 { -value } else { value };
            }
            squares += sum * sum;
            x.push(hashing.low(column[0]), T::of(sum));
        }
        if unit_norm && squares > 0.0 {
            let norm = squares.sqrt();
            for value in &mut x.values[first..] {
                *value = T::of(value.as_f64() / norm);
            }
        }
    }
}

/// Whether each word of a document is a number, or numbers with colons between them.
fn is_numbers(document: &[u8]) -> bool {
    let words = document.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let is_number = |part: &[u8]| part.is_empty() || matches!(number::<f64>(part), Ok((_, [])));
    let mut words = words.map(|word| word.split(|byte| matches!(byte, b':' | b',')));
    words.all(|mut parts| parts.all(is_number))
}

impl<T: Float> RowParser<T> for Parser {
    fn header(&mut self, text: &[u8]) -> Result<usize, Fault> {
        if self.format.expects_letters {
            self.check_letters(text)?;
        }
        Ok(0)
    }

    fn parse(&mut self, text: &[u8], rows: &mut Chunk<T>) -> Result<(), Fault> {
        for (start, line) in Lines::new(text) {
            // Of lines that are nothing but text, each is a row: predictions are told by their
            // line.
            if line.is_empty() && self.format.labels {
                continue;
            }
            check_text(line, start)?;
            self.row(line, rows)
                .map_err(|fault| Fault { offset: start + fault.offset, ..fault })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Dataset, TextReader};

    fn hashing() -> Hashing {
        Hashing::new(24).unwrap()
    }

    fn read(format: Words, text: &str) -> Result<Dataset, ReadError> {
        TextReader::new(format).read_bytes("file", text.as_bytes())
    }

    fn rows(data: &Dataset) -> Vec<Vec<(usize, f32)>> {
        data.features().unwrap().iter_rows().map(Iterator::collect).collect()
    }

    /// A sample of these terms.
    fn row(terms: &[(&str, f32)]) -> Vec<(usize, f32)> {
        let entry = |&(term, value): &(&str, f32)| {
            (hashing().column("text", term.as_bytes()) as usize, value)
        };
        let mut row: Vec<_> = terms.iter().map(entry).collect();
        row.sort_by_key(|entry| entry.0);
        row
    }

    #[test]
    fn terms_are_counted() {
        let words = Words::new(hashing());
        let text = "1\tThe cat, the HAT; don't!\r\n\n0\tÉTÉ 2024\n-1\t\n0";
        let data = read(words.clone(), text).unwrap();
        let first = row(&[("the", 2.0), ("cat", 1.0), ("hat", 1.0), ("don't", 1.0)]);
        assert_eq!(rows(&data), [first, row(&[("été", 1.0), ("2024", 1.0)]), vec![], vec![]]);
        let pairs = words.clone().ngrams(2..=3).unwrap();
        let data = read(pairs, "1\ta b a b\n").unwrap();
        let expected = row(&[("a b", 2.0), ("b a", 1.0), ("a b a", 1.0), ("b a b", 1.0)]);
        assert_eq!(rows(&data), [expected]);
        let data = read(words.clone().keep_case(), "1\ta A\n").unwrap();
        assert_eq!(rows(&data), [row(&[("a", 1.0), ("A", 1.0)])]);
        let data = read(words.without_labels(), "a\n\nb\n").unwrap();
        assert_eq!(rows(&data), [row(&[("a", 1.0)]), vec![], row(&[("b", 1.0)])]);
        assert!(data.labels().is_none());
    }

    #[test]
    fn d1_numbers_are_not_taken_for_words_where_letters_are_expected() {
        let words = Words::new(hashing()).expect_letters();
        for (text, place) in [
            ("1\t1:1 3:1\n0\t2:1\n", "file:1:3: 2 documents"),
            ("1\t0.5\t3\n0\t0.1\t7\n", "file:1:3: 2 documents"),
            ("1\t\n0\t1,2,-3e5\n", "file:2:3: 1 documents"),
        ] {
            let error = read(words.clone(), text).unwrap_err().to_string();
            assert!(error.starts_with(place) && error.contains("of another format"), "{error}");
            assert!(read(Words::new(hashing()), text).is_ok());
        }
        for text in ["1\t2024\n0\tin 2024\n", "1\t\n"] {
            assert!(read(words.clone(), text).is_ok(), "{text}");
        }
        let error = read(words.without_labels(), "0.5 3\n").unwrap_err().to_string();
        assert!(error.starts_with("file:1:1: "), "{error}");
    }

    #[test]
    fn d7_documents_that_end_in_carriage_returns_are_refused() {
        let error = read(Words::new(hashing()), "1\ta b\r0\tc d\r").unwrap_err().to_string();
        assert!(error.starts_with("file:1:6: a carriage return (CR) within a line"), "{error}");
    }

    #[test]
    fn weights() {
        let words = Words::new(hashing());
        let text = "1\ta a a b\n";
        let of = |format: Words| rows(&read(format, text).unwrap());
        let log = (1.0 + 3f64.ln()) as f32;
        assert_eq!(of(words.clone().weight(TermWeight::Log)), [row(&[("a", log), ("b", 1.0)])]);
        assert_eq!(of(words.clone().weight(TermWeight::Binary)), [row(&[("a", 1.0), ("b", 1.0)])]);
        let norm = 10f64.sqrt();
        let (a, b) = ((3.0 / norm) as f32, (1.0 / norm) as f32);
        assert_eq!(of(words.clone().unit_norm()), [row(&[("a", a), ("b", b)])]);
        // The sign of a term is bit 63 of its hash.
        let seed = hashing().seed_of("text");
        let sign = |term: &[u8]| if xxh64(term, seed) >> 63 == 1 { -1.0 } else { 1.0 };
        let expected = row(&[("a", 3.0 * sign(b"a")), ("b", sign(b"b"))]);
        assert_eq!(of(words.signed()), [expected]);
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, message) in [
            ("1\ta\nwords\n", "file:2:1: expected a label and a tab, found `words`"),
            ("inf\ta\n", "file:1:1: label `inf` is not a finite number"),
            ("1\ta\0b\n", "file:1:4: a NUL byte"),
            ("\n", "`file` has no rows"),
        ] {
            let error = read(Words::new(hashing()), text).unwrap_err().to_string();
            assert!(error.starts_with(message), "{error}");
        }
        let bytes = TextReader::new(Words::new(hashing())).read_bytes("file", b"1\tab\xff\n");
        let error = bytes.unwrap_err().to_string();
        assert!(error.starts_with("file:1:5: expected text in UTF-8"), "{error}");
        for bad in [0..=1, std::ops::RangeInclusive::new(2, 1), 1..=9] {
            assert!(matches!(Words::new(hashing()).ngrams(bad), Err(DataError::Schema { .. })));
        }
    }

    #[test]
    fn columns_are_named_by_their_terms() {
        let path = std::env::temp_dir().join(format!("nnz-terms-{}.txt", std::process::id()));
        std::fs::write(&path, "1\tThe cat\n0\tthe Hat\n").unwrap();
        let format = Words::new(hashing()).ngrams(1..=2).unwrap();
        let column = |term: &str| hashing().column("text", term.as_bytes());
        let asked = [column("the"), column("the hat"), column("dog")];
        let names = format.feature_names(&path, asked).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(names.get(asked[0]), ["the"]);
        assert_eq!(names.get(asked[1]), ["the hat"]);
        assert!(names.get(asked[2]).is_empty() && names.get(column("cat")).is_empty());
    }
}
