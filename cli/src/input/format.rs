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
    /// A matrix of MatrixMarket, with --labels.
    #[value(alias = "mtx")]
    MatrixMarket,
    /// A matrix of SciPy's `save_npz`, with --labels or an array `y` in it.
    Npz,
}

impl Format {
    /// As on the command line.
    pub(crate) fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |name| name.get_name().to_owned())
    }

    /// By the ending of a name, that of compression left out, or by the first bytes.
    pub(crate) fn of(path: &Path) -> Self {
        Self::guess(path).0
    }

    /// Why it is taken for that format.
    pub(crate) fn reason(path: &Path) -> &'static str {
        Self::guess(path).1
    }

    /// Whether it is a matrix of another program, and no text with a sample a line.
    pub(crate) fn is_matrix(self) -> bool {
        matches!(self, Format::MatrixMarket | Format::Npz)
    }

    /// The format of a file, and why.
    fn guess(path: &Path) -> (Self, &'static str) {
        if let Some(format) = Self::of_ending(path) {
            return (format, "by its ending");
        }
        let beginning = beginning(path);
        if beginning.to_ascii_lowercase().starts_with(b"%%matrixmarket") {
            (Format::MatrixMarket, "by its first line")
        } else if has_bar(&beginning) {
            (Format::Vw, "by the `|` of its first line")
        } else {
            (Format::Libsvm, "since its ending is of no other format")
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
            Some("mtx") => Some(Format::MatrixMarket),
            Some("npz") => Some(Format::Npz),
            _ => None,
        }
    }
}

/// The first bytes of a file; none of a pipe and of a compressed file.
fn beginning(path: &Path) -> Vec<u8> {
    /// More than the labels and the tag of a line.
    const BEGINNING: u64 = 4096;
    let mut beginning = Vec::new();
    let mut read = || File::open(path)?.take(BEGINNING).read_to_end(&mut beginning);
    let name = path.to_string_lossy();
    let is_compressed = name.ends_with(".gz") || name.ends_with(".zst");
    if is_compressed || !path.is_file() || read().is_err() {
        return Vec::new();
    }
    beginning
}

/// Whether the first line has a `|` before any `:`, as of no format but Vowpal Wabbit's text.
fn has_bar(beginning: &[u8]) -> bool {
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
