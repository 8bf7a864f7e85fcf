//! Saving and loading the parameters of a model, as a [safetensors](https://docs.rs/safetensors)
//! file.
//!
//! One tensor a parameter, by its name. The file's metadata has one entry, `nnz`: the model's name,
//! the fingerprint of its typed graph, its dimensions, storage type and checksum of each parameter,
//! notes, and a checksum of all that.
//!
//! [`save_with`] adds notes and ids to the same file.
//!
//! [`save_run`] adds the state that resuming a run to the bit needs: the states of the optimizer as
//! tensors `w.velocity`, the last steps of their rows, position, settings and history. [`load`]
//! reads such a file like any other.
//!
//! A file is replaced atomically: it is written beside its destination and renamed once its bytes
//! are on the disk. The destination is the old file or the new one at any time. Values are streamed
//! both ways. Equal parameters give equal bytes.

mod error;
mod ids;
mod map;
mod metadata;
pub(super) mod run;
pub(super) mod run_file;
pub(super) mod tensor;
#[cfg(test)]
mod tests;

pub use error::{CheckpointError, ParameterMismatch};
pub use ids::{Attachments, read_ids};
pub(crate) use map::map;
pub use metadata::{CheckpointMetadata, SavedParameter};
pub use run::{CallbackState, KEPT_REPORTS, Run, load_run, save_run};

use crate::error::Result;
use nnz_arrays::bytes::{self, Checksum, decode};
use nnz_device::atomic_write::replace_file;
use nnz_step::model::Model;
use safetensors::tensor::Metadata;
use sparse_core::element::Float;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::Path;
use tensor::Tensor;

/// Saves the parameters of a model.
///
/// They must be up to date: between steps of an [`Updater`](nnz_step::optimizer::Updater) call
/// [`flush_model`](nnz_step::optimizer::Updater::flush_model) first; after an epoch they are.
///
/// ```
/// use nnz::model::Model;
/// use nnz::training::checkpoint;
///
/// fn copy<M: Model>(from: &M, to: &mut M) -> nnz::Result<()> {
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
/// [`CheckpointError::Io`]; the destination is unchanged then.
pub fn save<M: Model>(model: &M, path: impl AsRef<Path>) -> Result<()> {
    save_with_notes(model, path, &[])
}

/// Like [`save`], with notes by name: anything that a program which loads the model needs besides,
/// such as how data became features. [`CheckpointMetadata::notes`] has them, in order.
///
/// # Errors
///
/// As [`save`].
pub fn save_with_notes<M: Model>(
    model: &M,
    path: impl AsRef<Path>,
    notes: &[(&str, &str)],
) -> Result<()> {
    save_with(model, path, Attachments { notes, ..Attachments::default() })
}

/// Like [`save`], with notes and ids in the same file. A table whose rows have ids is useless
/// without them, so both are replaced at once. Other readers of safetensors see the ids as tensors.
///
/// # Errors
///
/// As [`save`].
pub fn save_with<M: Model>(
    model: &M,
    path: impl AsRef<Path>,
    attachments: Attachments<'_>,
) -> Result<()> {
    let Attachments { notes, ids } = attachments;
    write(model, path.as_ref(), true, &ids::tensors(ids), notes)
}

/// Writes the parameters of a model and further tensors.
fn write<M: Model>(
    model: &M,
    path: &Path,
    is_settled: bool,
    more: &[Tensor<'_>],
    notes: &[(&str, &str)],
) -> Result<()> {
    let failed = |error| CheckpointError::Io { path: path.to_owned(), action: "write", error };
    let parameters = tensor::parameters(model);
    let mut metadata =
        CheckpointMetadata::of_tensors(model, is_settled, &parameters, more).map_err(failed)?;
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

/// The differences between file and model that are allowed. Shape, storage type and element type of
/// common parameters must agree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoadOptions {
    /// The file may lack parameters of the model; they keep their values.
    pub allow_missing: bool,
    /// The file may have parameters that the model lacks.
    pub allow_unexpected: bool,
}

impl LoadOptions {
    /// Loads the parameters that model and file have in common.
    pub const WARM_START: LoadOptions = LoadOptions { allow_missing: true, allow_unexpected: true };

    /// A graph with other parameters is another graph.
    fn allows_other_graphs(self) -> bool {
        self.allow_missing || self.allow_unexpected
    }
}

/// The outcome of [`load_with`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Loaded {
    /// The metadata of the file.
    pub metadata: CheckpointMetadata,
    /// The parameters of the model that the file lacks: they keep their values.
    pub missing: Vec<String>,
    /// The parameters of the file that the model lacks.
    pub unexpected: Vec<String>,
}

/// Loads the parameters of a model.
///
/// Everything is checked before the first value is written: the graph's fingerprint, name, storage
/// type, element type and shape of every parameter, and the checksums. For these the file is read
/// once more.
///
/// # Errors
///
/// A [`CheckpointError`] that names the file and the first fault; the model is unchanged then,
/// except after [`CheckpointError::Interrupted`].
pub fn load<M: Model>(model: &mut M, path: impl AsRef<Path>) -> Result<CheckpointMetadata> {
    Ok(load_with(model, path, LoadOptions::default())?.metadata)
}

/// [`load`] of a file that may have parameters of another model, too few or too many: to continue
/// training after a model has changed. If the options allow that, fingerprints of graphs are not
/// compared.
///
/// ```
/// use nnz::model::Model;
/// use nnz::training::checkpoint::{self, LoadOptions};
///
/// /// Starts from the parameters of the same names of another model.
/// fn warm_start<M: Model>(model: &mut M, path: &str) -> nnz::Result<()> {
///     let loaded = checkpoint::load_with(model, path, LoadOptions::WARM_START)?;
///     println!("from the start: {}", loaded.missing.join(", "));
///     Ok(())
/// }
/// ```
///
/// # Errors
///
/// As [`load`]; [`ParameterMismatch::NothingInCommon`] where no parameter would be loaded.
pub fn load_with<M: Model>(
    model: &mut M,
    path: impl AsRef<Path>,
    options: LoadOptions,
) -> Result<Loaded> {
    let path = path.as_ref();
    let (mut reader, metadata, start) = open(path)?;
    load_open(model, path, (&mut reader, &metadata, start), options)?;
    Ok(Loaded {
        missing: metadata.missing::<M>().map(str::to_owned).collect(),
        unexpected: metadata.unexpected::<M>().map(str::to_owned).collect(),
        metadata,
    })
}

/// Loads the parameters of a model from an open file.
fn load_open<M: Model>(
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

/// Copies the parameters that two models have in common, by name: [`load_with`] without a file,
/// with [`WARM_START`](LoadOptions::WARM_START). The parameters of `from` must be up to date, as
/// for [`save`].
///
/// # Errors
///
/// [`ParameterMismatch`] for the first common parameter whose shape, storage type or element type
/// differs; `to` is unchanged then.
pub fn warm_start<M, N>(to: &mut M, from: &N) -> Result<()>
where
    M: Model,
    N: Model<Element = M::Element>,
{
    let known = CheckpointMetadata::of_model(from);
    if let Some(mismatch) = known.first_mismatch(to, LoadOptions::WARM_START) {
        return Err(Box::new(mismatch).into());
    }
    let source = from.parameters();
    for mut parameter in to.parameters_mut() {
        if let Some(same) = source.iter().find(|source| source.name == parameter.name) {
            parameter.values_mut().copy_from_slice(same.values());
        }
    }
    Ok(())
}

/// Checks the checksums of the parameters of a file, which fit the model.
fn check_parameters(
    path: &Path,
    reader: &mut BufReader<File>,
    metadata: &CheckpointMetadata,
    start: u64,
) -> Result<(), CheckpointError> {
    for saved in &metadata.parameters {
        let n_bytes = saved.shape.size() as u64 * saved.element.bytes();
        check_bytes(path, reader, &saved.name, saved.checksum, start + saved.offset, n_bytes)?;
    }
    Ok(())
}

/// Checks the checksum of a tensor.
fn check_bytes(
    path: &Path,
    reader: &mut BufReader<File>,
    name: &str,
    expected: u64,
    offset: u64,
    n_bytes: u64,
) -> Result<(), CheckpointError> {
    let mut checksum = Checksum::new();
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
fn read_into<T: Float>(
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

/// The metadata of a checkpoint, without its values: enough to make a model that fits.
///
/// # Errors
///
/// [`CheckpointError::Io`], [`CheckpointError::Malformed`] and [`CheckpointError::Format`].
pub fn read_metadata(path: impl AsRef<Path>) -> Result<CheckpointMetadata> {
    Ok(open(path.as_ref())?.1)
}

/// Opens a file and checks its frame: returns the reader, the metadata, and the offset of the
/// values.
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

fn io_error(path: &Path, error: io::Error) -> CheckpointError {
    CheckpointError::Io { path: path.to_owned(), action: "read", error }
}
