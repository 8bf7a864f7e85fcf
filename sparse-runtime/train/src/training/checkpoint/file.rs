//! The frame of a checkpoint file: header, checksums, and the values of the parameters.

use super::error::CheckpointError;
use super::load_options::LoadOptions;
use super::metadata::CheckpointMetadata;
use super::tensor::{self, Tensor};
use crate::error::Result;
use nnz_arrays::bytes::{self, Checksum, decode};
use nnz_arrays::in_library;
use nnz_device::atomic_write::replace_file;
use nnz_step::model::{AnyModel, Model};
use safetensors::tensor::Metadata;
use sparse_core::element::Float;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

/// Writes the parameters of a model and further tensors.
pub(super) fn write<T: Float>(
    model: &dyn AnyModel<T>,
    path: &Path,
    is_settled: bool,
    more: &[Tensor<'_>],
    notes: &[(&str, &str)],
) -> Result<()> {
    in_library!(<T> write_model::<T> => (
        model: &dyn AnyModel<T>,
        path: &Path,
        is_settled: bool,
        more: &[Tensor<'_>],
        notes: &[(&str, &str)],
    ) -> Result<()>)
}

fn write_model<T: Float>(
    model: &dyn AnyModel<T>,
    path: &Path,
    is_settled: bool,
    more: &[Tensor<'_>],
    notes: &[(&str, &str)],
) -> Result<()> {
    let parameters = tensor::parameters(model.parameters());
    let mut metadata = CheckpointMetadata::of_model(model);
    let failed = |error| CheckpointError::Io { path: path.to_owned(), action: "write", error };
    metadata.is_settled = is_settled;
    metadata.set_tensors(&parameters, more).map_err(failed)?;
    let owned = |(name, note): &(&str, &str)| ((*name).to_owned(), (*note).to_owned());
    metadata.notes = notes.iter().map(owned).collect();
    let header = metadata.header(path)?;
    replace_file(path, |writer| {
        writer.write_all(&(header.len() as u64).to_le_bytes())?;
        writer.write_all(&header)?;
        let mut tensors = parameters.iter().chain(more);
        tensors.try_for_each(|tensor| tensor.visit(&mut |bytes| writer.write_all(bytes)))
    })
    .map_err(failed)?;
    Ok(())
}

/// Loads the parameters of a model from an open file.
pub(super) fn load_open<M: Model>(
    model: &mut M,
    path: &Path,
    (reader, metadata, start): (&mut BufReader<File>, &CheckpointMetadata, u64),
    options: LoadOptions,
) -> Result<()> {
    metadata.check(path, model, options)?;
    check_parameters(path, reader, metadata, start)?;
    for mut parameter in model.parameters_mut() {
        if let Some(saved) = metadata.parameter(parameter.name) {
            read_into(path, reader, start + saved.offset, parameter.values_mut())?;
        }
    }
    Ok(())
}

/// Checks the checksums of the parameters of a file, which fit the model.
pub(super) fn check_parameters(
    path: &Path,
    reader: &mut BufReader<File>,
    metadata: &CheckpointMetadata,
    start: u64,
) -> Result<(), CheckpointError> {
    for saved in &metadata.parameters {
        let n_bytes = saved.shape.size() as u64 * saved.element.bytes();
        let sum = (metadata.checksum(), saved.checksum);
        check_bytes(path, reader, &saved.name, sum, start + saved.offset, n_bytes)?;
    }
    Ok(())
}

/// Checks the checksum of a tensor, which is given as that of nothing and the expected value.
pub(super) fn check_bytes(
    path: &Path,
    reader: &mut BufReader<File>,
    name: &str,
    (mut checksum, expected): (Checksum, u64),
    offset: u64,
    n_bytes: u64,
) -> Result<(), CheckpointError> {
    reader
        .seek(SeekFrom::Start(offset))
        .and_then(|_| bytes::visit(&mut reader.take(n_bytes), |bytes| checksum.add(bytes)))
        .map_err(|error| io_error(path, error))?;
    match checksum.value() {
        found if found == expected => Ok(()),
        found => Err(CheckpointError::Damaged {
            path: path.to_owned(),
            name: name.to_owned(),
            found,
            expected,
        }),
    }
}

/// Reads the values of a checked tensor.
pub(super) fn read_into<T: Float>(
    path: &Path,
    reader: &mut BufReader<File>,
    offset: u64,
    values: &mut [T],
) -> Result<(), CheckpointError> {
    let count = values.len();
    let mut values = values.iter_mut();
    reader
        .seek(SeekFrom::Start(offset))
        .and_then(|_| {
            decode(
                reader,
                count,
                |_| {},
                |value| {
                    if let Some(place) = values.next() {
                        *place = value;
                    }
                },
            )
        })
        .map_err(|error| CheckpointError::Interrupted { path: path.to_owned(), error })
}

/// Opens a file and checks its frame: returns the reader, the metadata, and the offset of the
/// values.
pub(super) fn open(
    path: &Path,
) -> Result<(BufReader<File>, CheckpointMetadata, u64), CheckpointError> {
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

/// The error of a read that the system refused.
pub(super) fn io_error(path: &Path, error: io::Error) -> CheckpointError {
    CheckpointError::Io { path: path.to_owned(), action: "read", error }
}
