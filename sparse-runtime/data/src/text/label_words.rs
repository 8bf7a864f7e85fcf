//! Words as labels at the beginning of lines: `spam 3:1 7:0.5`, `ham |words …`.

use super::super::ReadError;
use super::super::feature_names::each_line;
use super::super::number::{NotANumber, number};
use super::{ends_here, skip_blanks};
use std::collections::BTreeSet;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;

/// More distinct words than this are no classes.
const MOST_WORDS: usize = 1 << 16;

/// The distinct words that are labels in text whose lines begin with them (LibSVM, libFFM, Vowpal
/// Wabbit), in byte order; `None` as soon as a sample has a number, or what is no word either. A
/// word has a letter in it, and no `,`, `:`, `|` or `"`. O(bytes) where labels are words.
///
/// ```
/// use nnz::data::label_words;
/// # let path = std::env::temp_dir().join(format!("nnz-words-doc-{}.svm", std::process::id()));
/// # std::fs::write(&path, "spam 1:1\nham 2:1\nspam 2:0.5\n")?;
///
/// assert_eq!(label_words([&path])?, Some(vec!["ham".to_owned(), "spam".to_owned()]));
/// # std::fs::remove_file(&path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// [`ReadError::Io`], those of compressed files, and [`ReadError::Content`] for more than 65,536
/// words.
pub fn label_words<P: AsRef<Path>>(
    paths: impl IntoIterator<Item = P>,
) -> Result<Option<Vec<String>>, ReadError> {
    let mut words = BTreeSet::new();
    let mut are_words = true;
    for path in paths {
        let path = path.as_ref();
        each_line(
            path,
            None,
            |_| Ok(0),
            |line| {
                let Some(word) = first_word(line) else { return true };
                // The reader says what is wrong with one that is neither.
                are_words &= is_word(word);
                words.insert(String::from_utf8_lossy(word).into_owned());
                are_words && words.len() <= MOST_WORDS
            },
        )?;
        if are_words && words.len() > MOST_WORDS {
            let file = path.display().to_string();
            let message = format!("its labels are more than {MOST_WORDS} words: are they labels?");
            return Err(ReadError::Content { file, message });
        }
    }
    Ok((are_words && !words.is_empty()).then(|| words.into_iter().collect()))
}

/// What a line begins with, if it is a sample.
fn first_word(line: &[u8]) -> Option<&[u8]> {
    let line = skip_blanks(line);
    let end = line.iter().position(|byte| byte.is_ascii_whitespace()).unwrap_or(line.len());
    (!matches!(line.first(), None | Some(b'#'))).then(|| &line[..end])
}

/// Whether a label is a word, and no number that is not finite.
fn is_word(word: &[u8]) -> bool {
    let is_number = match number::<f64>(word) {
        Ok((_, rest)) => ends_here(rest),
        Err(NotANumber::NotFinite | NotANumber::BeyondRange) => true,
        Err(_) => false,
    };
    let separates = |byte: &u8| matches!(byte, b',' | b':' | b'|' | b'"');
    !is_number && word.iter().any(u8::is_ascii_alphabetic) && !word.iter().any(separates)
}

/// Text whose labels are words: each becomes its position among them, with blanks behind it up to
/// the width of the word, so that places in a line stay. A word that is not among them is left for
/// the parser to refuse.
#[derive(Debug)]
pub(crate) struct LabelWords<R> {
    reader: BufReader<R>,
    /// In byte order.
    words: Arc<[String]>,
    line: Vec<u8>,
    /// The bytes of the line that have been read.
    taken: usize,
}

impl<R: Read> LabelWords<R> {
    pub(crate) fn new(reader: R, words: Arc<[String]>) -> Self {
        LabelWords { reader: BufReader::new(reader), words, line: Vec::new(), taken: 0 }
    }

    /// Reads the next line, with the position of its label.
    fn next_line(&mut self) -> io::Result<()> {
        self.taken = 0;
        self.line.clear();
        self.reader.read_until(b'\n', &mut self.line)?;
        let Some(word) = first_word(&self.line) else { return Ok(()) };
        let found = self.words.binary_search_by(|known| known.as_bytes().cmp(word));
        if let Ok(position) = found {
            let start = self.line.len() - skip_blanks(&self.line).len();
            let width = word.len();
            let text = format!("{position:<width$}");
            self.line.splice(start..start + width, text.bytes());
        }
        Ok(())
    }
}

impl<R: Read> Read for LabelWords<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() {
            if self.taken == self.line.len() {
                self.next_line()?;
                if self.line.is_empty() {
                    break;
                }
            }
            let left = &self.line[self.taken..];
            let n = left.len().min(buffer.len() - filled);
            buffer[filled..filled + n].copy_from_slice(&left[..n]);
            (self.taken, filled) = (self.taken + n, filled + n);
        }
        Ok(filled)
    }
}

/// Whole lines with the positions of their labels in place of these.
pub(crate) fn with_positions(text: &[u8], words: &Arc<[String]>) -> Vec<u8> {
    let mut lines = Vec::with_capacity(text.len());
    // Reading from memory does not fail.
    let _ = LabelWords::new(text, Arc::clone(words)).read_to_end(&mut lines);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ColumnValues, Dataset, Hashing, LibFfm, TextReader, VowpalWabbit, libsvm};

    fn words() -> Vec<String> {
        ["ham", "more", "spam"].map(str::to_owned).to_vec()
    }

    fn labels(data: &Dataset) -> Vec<f32> {
        match data.labels() {
            Some(ColumnValues::Dense(labels)) => labels.values().to_vec(),
            _ => panic!("labels are numbers"),
        }
    }

    #[test]
    fn words_are_labels_by_their_position_in_each_format() {
        let svm = b"spam 1:1 2:0.5\n\n# no sample\n ham 2:1\nmore 1:2\nspam";
        let reader = libsvm::Reader::new().label_names(words());
        let data = reader.read_bytes("inline", svm).unwrap();
        assert_eq!((labels(&data), data.n_features()), (vec![2.0, 0.0, 1.0, 2.0], 2));
        let ffm = TextReader::new(LibFfm::new()).label_names(words());
        let data = ffm.read_bytes("inline", b"more 0:1:1\nham 1:2:1\n").unwrap();
        assert_eq!(labels(&data), [1.0, 0.0]);
        let vw = TextReader::new(VowpalWabbit::new(Hashing::new(8).unwrap())).label_names(words());
        let data = vw.read_bytes("inline", b"spam |a x\nham 2 'tag|b y\n").unwrap();
        assert_eq!(labels(&data), [2.0, 0.0]);
    }

    #[test]
    fn places_are_those_of_the_text_and_other_words_are_refused() {
        let reader = libsvm::Reader::new().label_names(words());
        let error = |text: &[u8]| reader.read_bytes("file", text).unwrap_err().to_string();
        assert!(error(b"spam 1:1\nham 2:x\n").starts_with("file:2:7: "), "{}", error(b"ham 2:x"));
        let unknown = error(b"ham 1:1\neggs 1:1\n");
        assert!(unknown.starts_with("file:2:1: expected a label, found `eggs`"), "{unknown}");
    }

    #[test]
    fn words_are_labels_of_a_stream_and_faults_are_at_their_places() {
        use crate::stream::Stream;
        use crate::{BatchOptions, Batches, DataSource};
        let path = std::env::temp_dir().join(format!("nnz-stream-words-{}", std::process::id()));
        let open = |text: &str| {
            std::fs::write(&path, text).unwrap();
            let format = libsvm::Reader::new().n_features(2).index_base(libsvm::IndexBase::One);
            Stream::new(format).label_names(words()).file(&path).buffer(1 << 20).open().unwrap()
        };
        let epoch = |text: &str| -> crate::Result<Option<Vec<f64>>> {
            let data = open(text);
            let mut batches = data.batches(&[], &BatchOptions::default()).unwrap();
            batches.start_epoch(0)?;
            while batches.next_batch()?.is_some() {}
            Ok(data.label_statistics().unwrap()[0].distinct().map(<[f64]>::to_vec))
        };
        let found = epoch("spam 1:1\nham 2:1\nspam 2:0.5\n").unwrap();
        assert_eq!(found, Some(vec![0.0, 2.0]));
        let error = epoch("spam 1:1\nham 2:x\n").unwrap_err().to_string();
        assert!(error.contains(":2:7: "), "{error}");
        let error = epoch("spam 1:1\neggs 2:1\n").unwrap_err().to_string();
        assert!(error.contains(":2:1: expected a label, found `eggs`"), "{error}");
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn words_are_found_in_all_files_and_not_among_numbers() {
        let folder = std::env::temp_dir().join(format!("nnz-label-words-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let found = |texts: [&str; 2]| {
            let paths = [folder.join("1"), folder.join("2")];
            paths.iter().zip(texts).for_each(|(path, text)| std::fs::write(path, text).unwrap());
            label_words(&paths).unwrap()
        };
        let three = found(["spam 1:1\n# comment\nham 1:1\n", "more 2:1\n"]);
        assert_eq!(three, Some(words()));
        for text in ["1 1:1\n", "1,a,b\n", "nan 1:1\n", "a:1 b\n", "? 1:1\n", "spam|a\n"] {
            assert_eq!(found(["spam 1:1\n", text]), None, "{text}");
        }
        assert_eq!(found(["", "\n"]), None);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
