//! The files of a command's data, which are read as one: several, those of a folder, or a pipe.

use std::fmt;
use std::path::{Path, PathBuf};

/// Files in the order in which they are read; at least one.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct DataFiles {
    /// As the command line names them, folders among them.
    named: Vec<PathBuf>,
    paths: Vec<PathBuf>,
}

/// The name that stands for the standard input and output.
pub(crate) const DASH: &str = "-";

impl DataFiles {
    /// The files that the command line names: of a folder its files in the order of their names,
    /// but for hidden ones, for folders in it, and for the caches beside them. The standard input
    /// is read as a file.
    pub(crate) fn of(named: &[PathBuf]) -> Result<Self, String> {
        let mut paths = Vec::new();
        for path in named {
            if path.as_os_str() == DASH && named.len() > 1 {
                return Err("--data -: the standard input is read alone, without files".to_owned());
            }
            if path.is_dir() {
                paths.extend(files_of(path)?);
            } else if path.as_os_str() == DASH && cfg!(unix) {
                paths.push(PathBuf::from("/dev/stdin"));
            } else {
                paths.push(path.clone());
            }
        }
        Ok(DataFiles { named: named.to_vec(), paths })
    }

    /// All files.
    pub(crate) fn paths(&self) -> &[PathBuf] {
        &self.paths
    }

    /// The first file: its name and its first line tell the format of all.
    pub(crate) fn first(&self) -> &Path {
        self.paths.first().map_or(Path::new(DASH), PathBuf::as_path)
    }

    /// Whether all can be read twice, as no pipe can.
    pub(crate) fn can_be_read_again(&self) -> bool {
        self.paths.iter().all(|path| !path.exists() || path.is_file())
    }

    /// Whether the command line names the standard input.
    pub(crate) fn is_standard_input(&self) -> bool {
        matches!(&self.named[..], [path] if path.as_os_str() == DASH)
    }
}

/// The files of a folder by their names.
fn files_of(folder: &Path) -> Result<Vec<PathBuf>, String> {
    /// What `--cache` writes beside a file.
    const CACHE: &str = "cache";
    let problem = |error| format!("`{}`: {error}", folder.display());
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(problem)? {
        let path = entry.map_err(problem)?.path();
        let name = path.file_name().unwrap_or_default().as_encoded_bytes();
        let is_hidden = name.starts_with(b".") || name.starts_with(b"_");
        let is_cache = path.extension().is_some_and(|ending| ending == CACHE);
        if path.is_file() && !is_hidden && !is_cache {
            files.push(path);
        }
    }
    if files.is_empty() {
        return Err(format!("the folder `{}` has no files: name files", folder.display()));
    }
    files.sort();
    Ok(files)
}

/// `a.svm`, `a.svm, b.svm`, `days (31 files)`, or `a.svm and 9 more`.
impl fmt::Display for DataFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// More names than these are counted.
        const MOST_NAMES: usize = 3;
        match &self.named[..] {
            [first, more @ ..] if more.len() >= MOST_NAMES => {
                write!(f, "{} and {} more", first.display(), more.len())?;
            }
            few => {
                let names: Vec<String> =
                    few.iter().map(|path| path.display().to_string()).collect();
                f.write_str(&names.join(", "))?;
            }
        }
        match self.paths.len() {
            n if n != self.named.len() => write!(f, " ({n} files)"),
            _ => Ok(()),
        }
    }
}
