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
    /// Parquet or Arrow: a list of indices and one of values, or Spark's vectors.
    #[cfg(feature = "parquet")]
    SparseColumns,
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

    /// Whether its columns are sparse rows of a columnar file.
    pub(crate) fn is_sparse_columns(self) -> bool {
        #[cfg(feature = "parquet")]
        return self == Format::SparseColumns;
        #[cfg(not(feature = "parquet"))]
        false
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
            Some(ending) if COLUMNAR.contains(&ending) => columnar(path),
            _ => None,
        }
    }
}

/// The endings of Parquet and Arrow files.
const COLUMNAR: [&str; 3] = ["parquet", "arrow", "feather"];

/// Sparse rows where types of columns say so, else a table.
#[cfg(feature = "parquet")]
fn columnar(path: &Path) -> Option<Format> {
    // A file that cannot be opened is told of where it is read.
    let is_sparse = nnz::data::SparseColumns::are_in(path).unwrap_or(false);
    Some(if is_sparse { Format::SparseColumns } else { Format::Csv })
}

/// Read as any file, which its first bytes then name.
#[cfg(not(feature = "parquet"))]
fn columnar(_: &Path) -> Option<Format> {
    None
}

/// Refuses columnar files where nothing reads them.
pub(super) fn check_built(path: &Path) -> Result<(), String> {
    let ending = path.extension().and_then(|ending| ending.to_str());
    if cfg!(feature = "parquet") || !ending.is_some_and(|ending| COLUMNAR.contains(&ending)) {
        return Ok(());
    }
    Err(format!(
        "`{}` is a Parquet or Arrow file, by its ending, which this build does not read: enable its feature, `cargo install nnz-cli --features parquet`, or write the file as csv, with pandas by `to_csv`",
        path.display()
    ))
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
