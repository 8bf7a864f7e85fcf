//! Writing text files.

use super::ReadError;
use nnz_device::atomic_write::replace_file;
use std::io::{self, Write};
use std::path::Path;

/// Writes text to a file that is [replaced](replace_file) atomically, compressed if its name ends
/// in `.gz`. A name that ends in `.zst` is refused, since a reader would decompress it.
///
/// # Errors
///
/// [`ReadError::Io`], [`ReadError::FeatureDisabled`], and [`ReadError::Content`] for the ending
/// `.zst`.
pub(super) fn write_text(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), ReadError> {
    let file = || path.display().to_string();
    let result = match path.extension().and_then(|ending| ending.to_str()) {
        Some("gz") => replace_compressed(path, write)?,
        Some("zst") => {
            let message = "text is written plain or compressed as `.gz`, not as `.zst`".to_owned();
            return Err(ReadError::Content { file: file(), message });
        }
        _ => replace_file(path, write),
    };
    result.map_err(|source| ReadError::Io { file: file(), source })
}

#[cfg(feature = "gzip")]
fn replace_compressed(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<io::Result<()>, ReadError> {
    Ok(replace_file(path, |writer| {
        let level = flate2::Compression::default();
        let mut encoder = io::BufWriter::new(flate2::write::GzEncoder::new(writer, level));
        write(&mut encoder)?;
        encoder.into_inner()?.finish()?;
        Ok(())
    }))
}

#[cfg(not(feature = "gzip"))]
fn replace_compressed(
    path: &Path,
    _: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<io::Result<()>, ReadError> {
    Err(ReadError::FeatureDisabled { file: path.display().to_string(), feature: "gzip" })
}
