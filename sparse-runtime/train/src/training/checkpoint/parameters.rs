//! Saving and loading the parameters of a model.

use super::file::{load_open, open, write};
use super::ids::{self, Attachments};
use super::load_options::LoadOptions;
use super::metadata::CheckpointMetadata;
use crate::error::Result;
use nnz_step::model::{AnyModel, Model};
use sparse_core::element::Float;
use std::path::Path;

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
/// [`CheckpointError::Io`](super::CheckpointError::Io); the destination is unchanged then.
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
    save_any_with(model, path.as_ref(), attachments)
}

/// [`save_with`] of a model without its type.
pub(in crate::training) fn save_any_with<T: Float>(
    model: &dyn AnyModel<T>,
    path: &Path,
    attachments: Attachments<'_>,
) -> Result<()> {
    let Attachments { notes, ids } = attachments;
    write(model, path, true, &ids::tensors(ids), notes)
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
/// A [`CheckpointError`](super::CheckpointError) that names the file and the first fault; the model
/// is unchanged then, except after
/// [`CheckpointError::Interrupted`](super::CheckpointError::Interrupted).
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
/// As [`load`];
/// [`ParameterMismatch::NothingInCommon`](super::ParameterMismatch::NothingInCommon) where no
/// parameter would be loaded.
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

/// Copies the parameters that two models have in common, by name: [`load_with`] without a file,
/// with [`WARM_START`](LoadOptions::WARM_START). The parameters of `from` must be up to date, as
/// for [`save`].
///
/// # Errors
///
/// [`ParameterMismatch`](super::ParameterMismatch) for the first common parameter whose shape,
/// storage type or element type differs; `to` is unchanged then.
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

/// The metadata of a checkpoint, without its values: enough to make a model that fits.
///
/// # Errors
///
/// [`CheckpointError::Io`](super::CheckpointError::Io),
/// [`CheckpointError::Malformed`](super::CheckpointError::Malformed) and
/// [`CheckpointError::Format`](super::CheckpointError::Format).
pub fn read_metadata(path: impl AsRef<Path>) -> Result<CheckpointMetadata> {
    Ok(open(path.as_ref())?.1)
}
