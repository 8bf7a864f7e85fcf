//! The formats of files, and the guess from a name.

use clap::ValueEnum;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::str::FromStr;

/// A format, by its name on the command line.
#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
pub(crate) enum Format {
    /// `label index:value …`
    Libsvm,
    /// `label field:index:value …`
    Libffm,
    /// Label, 13 counts and 26 categories, tab separated.
    Criteo,
    /// Comma separated, with a schema.
    Csv,
    /// A label, a tab and a text.
    Words,
    /// Text of Vowpal Wabbit: `label |namespace feature:value …`
    Vw,
    /// User, item and rating.
    Ratings,
}

impl Format {
    /// As on the command line.
    pub(crate) fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |name| name.get_name().to_owned())
    }

    /// By the ending of a name, that of compression left out.
    pub(crate) fn of(path: &Path) -> Self {
        Self::of_ending(path).unwrap_or_else(|| Self::of_first_line(path))
    }

    /// LibSVM, or text of Vowpal Wabbit where the first line has a `|`.
    fn of_first_line(path: &Path) -> Self {
        if has_bar(path) { Format::Vw } else { Format::Libsvm }
    }

    /// Why it is taken for that format.
    pub(crate) fn reason(path: &Path) -> &'static str {
        match Self::of_ending(path) {
            Some(_) => "by its ending",
            None if has_bar(path) => "by the `|` of its first line",
            None => "since its ending is of no other format",
        }
    }

    fn of_ending(path: &Path) -> Option<Self> {
        let name = path.to_string_lossy();
        let name = name.trim_end_matches(".gz").trim_end_matches(".zst");
        match name.rsplit('.').next() {
            Some("ffm") => Some(Format::Libffm),
            Some("tsv") => Some(Format::Criteo),
            Some("csv") => Some(Format::Csv),
            Some("txt") => Some(Format::Words),
            Some("vw") => Some(Format::Vw),
            _ => None,
        }
    }
}

/// Whether the first line of a file has a `|` before any `:`, as of no other format. Of a pipe and
/// of a compressed file nothing is read.
fn has_bar(path: &Path) -> bool {
    /// More than the labels and the tag of a line.
    const BEGINNING: u64 = 4096;
    let mut beginning = Vec::new();
    let mut read = || File::open(path)?.take(BEGINNING).read_to_end(&mut beginning);
    let name = path.to_string_lossy();
    let is_compressed = name.ends_with(".gz") || name.ends_with(".zst");
    if is_compressed || !path.is_file() || read().is_err() {
        return false;
    }
    let mut lines = beginning.split(|byte| *byte == b'\n');
    let first = lines.find(|line| !line.trim_ascii().is_empty()).unwrap_or_default();
    first.iter().find(|byte| matches!(byte, b'|' | b':')) == Some(&b'|')
}

/// As on the command line.
impl FromStr for Format {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        <Format as ValueEnum>::from_str(name, false)
    }
}
