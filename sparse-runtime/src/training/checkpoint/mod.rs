//! Saving and loading the parameters of a model, as a [safetensors](https://docs.rs/safetensors) file.
//!
//! One tensor a parameter, by its name. The file's metadata has one entry, `nnz`: the model's name, the
//! fingerprint of its typed graph, its dimensions, and storage type and checksum of each parameter. Optimizer
//! state is not in it.
//!
//! A file is written beside its destination and renamed onto it when its bytes are on the disk: whatever
//! happens, the destination is the old file or the new one, whole. Values are streamed both ways; a copy of a
//! table is never made. The same parameters give the same bytes.

pub(crate) mod bytes;
mod error;
mod map;
mod metadata;
#[cfg(test)]
mod tests;

pub use error::{CheckpointError, ParameterMismatch};
pub(crate) use map::map;
pub use metadata::{CheckpointMetadata, SavedParameter};

use crate::error::Result;
use crate::model::Model;
use crate::replace::replace_file;
use bytes::{Checksum, decode, encode};
use safetensors::tensor::Metadata;
use sparse_core::element::Float;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

/// Saves the parameters of a model.
///
/// They must be up to date: between an [`Updater`](crate::optimizer::Updater)'s steps call
/// [`flush_model`](crate::optimizer::Updater::flush_model) before; after an epoch they are.
///
/// ```
/// use sparse_runtime::model::Model;
/// use sparse_runtime::training::checkpoint;
///
/// fn copy<M: Model>(from: &M, to: &mut M) -> sparse_runtime::Result<()> {
///     let path = std::env::temp_dir().join("model.safetensors");
///     checkpoint::save(from, &path)?;
///     let metadata = checkpoint::load(to, &path)?;
///     assert_eq!(metadata.model, M::NAME);
///     Ok(())
/// }
/// ```
///
/// # Errors
///
/// [`CheckpointError::Io`]; then the destination is as it was.
pub fn save<M: Model>(model: &M, path: impl AsRef<Path>) -> Result<()> {
    let path = path.as_ref();
    let parameters = model.parameters();
    let checksums: Vec<u64> =
        parameters.iter().map(|parameter| Checksum::of(parameter.values())).collect();
    let header = CheckpointMetadata::of_model(model, &checksums).header(path)?;
    replace_file(path, |writer| {
        writer.write_all(&(header.len() as u64).to_le_bytes())?;
        writer.write_all(&header)?;
        for parameter in &parameters {
            encode(parameter.values(), |bytes| writer.write_all(bytes))?;
        }
        Ok(())
    })
    .map_err(|error| CheckpointError::Io { path: path.to_owned(), action: "write", error })?;
    Ok(())
}

/// Loads the parameters of a model.
///
/// Everything is checked before the first value is written: the graph's fingerprint, name, storage type,
/// element type and shape of every parameter, and the checksums, for which the file is read once more.
///
/// # Errors
///
/// A [`CheckpointError`] that names the file and the first thing that is wrong with it; then the model is as
/// it was, but after [`CheckpointError::Interrupted`].
pub fn load<M: Model>(model: &mut M, path: impl AsRef<Path>) -> Result<CheckpointMetadata> {
    let path = path.as_ref();
    let (mut reader, metadata, start) = open(path)?;
    metadata.check(path, model)?;
    for saved in &metadata.parameters {
        let mut checksum = Checksum::new();
        read_values(
            &mut reader,
            start + saved.offset,
            saved.shape.size(),
            |bytes| checksum.add(bytes),
            |_: M::Element| {},
        )
        .map_err(|error| io_error(path, error))?;
        if checksum.value() != saved.checksum {
            return Err(CheckpointError::Damaged {
                path: path.to_owned(),
                parameter: saved.name.clone(),
                found: checksum.value(),
                expected: saved.checksum,
            }
            .into());
        }
    }
    for mut parameter in model.parameters_mut() {
        let Some(saved) = metadata.parameter(parameter.name) else {
            continue; // `check` has refused a file without it
        };
        let mut values = parameter.values_mut().iter_mut();
        read_values(
            &mut reader,
            start + saved.offset,
            saved.shape.size(),
            |_| {},
            |value| {
                if let Some(place) = values.next() {
                    *place = value;
                }
            },
        )
        .map_err(|error| CheckpointError::Interrupted { path: path.to_owned(), error })?;
    }
    Ok(metadata)
}

/// What a checkpoint says about itself, without reading its values: enough to make a model that it fits.
///
/// # Errors
///
/// [`CheckpointError::Io`], [`CheckpointError::Malformed`] and [`CheckpointError::Format`].
pub fn read_metadata(path: impl AsRef<Path>) -> Result<CheckpointMetadata> {
    Ok(open(path.as_ref())?.1)
}

/// Opens a file and checks its frame: the reader, the metadata, and where the values start.
fn open(path: &Path) -> Result<(BufReader<File>, CheckpointMetadata, u64), CheckpointError> {
    let malformed = |problem: String| CheckpointError::Malformed { path: path.to_owned(), problem };
    let file = File::open(path).map_err(|error| io_error(path, error))?;
    let file_size = file.metadata().map_err(|error| io_error(path, error))?.len();
    let mut reader = BufReader::with_capacity(1 << 16, file);
    let mut prefix = [0; 8];
    if file_size < prefix.len() as u64 {
        return Err(malformed(format!("it has {file_size} bytes")));
    }
    reader.read_exact(&mut prefix).map_err(|error| io_error(path, error))?;
    let header_size = u64::from_le_bytes(prefix);
    let start = header_size.saturating_add(prefix.len() as u64);
    if start > file_size {
        return Err(malformed(format!(
            "its header should have {header_size} bytes, but the file has {file_size}"
        )));
    }
    // Not more than the file has; what cannot be a header is not kept.
    let mut header = Vec::new();
    (&mut reader)
        .take(header_size)
        .read_to_end(&mut header)
        .map_err(|error| io_error(path, error))?;
    let header: Metadata = serde_json::from_slice(&header)
        .map_err(|error| malformed(format!("its header: {error}")))?;
    let expected = start.saturating_add(header.data_len() as u64);
    if expected != file_size {
        return Err(malformed(format!("it should have {expected} bytes, but has {file_size}")));
    }
    let metadata = CheckpointMetadata::parse(path, &header)?;
    Ok((reader, metadata, start))
}

fn read_values<T: Float>(
    reader: &mut BufReader<File>,
    offset: u64,
    count: usize,
    look: impl FnMut(&[u8]),
    take: impl FnMut(T),
) -> io::Result<()> {
    reader.seek(SeekFrom::Start(offset))?;
    decode(reader, count, look, take)
}

fn io_error(path: &Path, error: io::Error) -> CheckpointError {
    CheckpointError::Io { path: path.to_owned(), action: "read", error }
}
