//! Ids of table rows in the file of a model, so that both are replaced together.
//!
//! The ids of a column are two tensors. `ids.NAME.text` has all ids one after the other in UTF-8,
//! `ids.NAME.ends` the end of each, as `u64`.

use super::error::CheckpointError;
use super::file::open;
use super::metadata::CheckpointMetadata;
use super::run_file::TensorsOf;
use super::tensor::Tensor;
use crate::error::Result;
use nnz_data::IdMap;
use safetensors::tensor::Dtype;
use std::io;
use std::path::Path;

/// The prefix of the name of a column. No parameter has a name with a point.
const PREFIX: &str = "ids.";
const TEXT: &str = ".text";
const ENDS: &str = ".ends";

/// Data in the file of a model beside its parameters: [`save_with`](super::save_with).
#[derive(Clone, Copy, Debug, Default)]
pub struct Attachments<'a> {
    /// Notes by name: [`CheckpointMetadata::notes`] has them, in their order.
    pub notes: &'a [(&'a str, &'a str)],
    /// The ids of table rows, by the name of the column: [`read_ids`] has them, in order.
    pub ids: &'a [(&'a str, &'a IdMap)],
}

/// The tensors of some ids.
pub(super) fn tensors<'a>(ids: &[(&str, &'a IdMap)]) -> Vec<Tensor<'a>> {
    let mut tensors = Vec::new();
    for &(name, map) in ids {
        let n_bytes = map.ids().map(str::len).sum();
        let text = format!("{PREFIX}{name}{TEXT}");
        tensors.push(Tensor::new(text, Dtype::U8, vec![n_bytes], move |take| {
            in_pieces(map.ids().map(str::as_bytes), take)
        }));
        let ends = format!("{PREFIX}{name}{ENDS}");
        tensors.push(Tensor::new(ends, Dtype::U64, vec![map.len()], move |take| {
            let mut end = 0;
            let ends = map.ids().map(|id| {
                end += id.len() as u64;
                end.to_le_bytes()
            });
            in_pieces(ends, take)
        }));
    }
    tensors
}

/// Passes on bytes in pieces of a few kilobytes, all but the last of them whole words.
fn in_pieces<B: AsRef<[u8]>>(
    all: impl Iterator<Item = B>,
    take: &mut dyn FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<()> {
    const PIECE: usize = 1 << 14;
    let mut bytes = Vec::with_capacity(PIECE);
    for some in all {
        bytes.extend_from_slice(some.as_ref());
        if bytes.len() >= PIECE {
            let whole = bytes.len() / 8 * 8;
            take(&bytes[..whole])?;
            bytes.drain(..whole);
        }
    }
    take(&bytes)
}

/// The metadata of a file, and the ids in it by the name of their column, in the order in which
/// they were saved. Files without ids, also of earlier versions, give none. All of it is of one
/// file, also if it is replaced meanwhile.
///
/// ```
/// use nnz::data::IdMap;
/// use nnz::model::Model;
/// use nnz::training::checkpoint::{self, Attachments};
///
/// fn save<M: Model>(model: &M, users: &IdMap, path: &str) -> nnz::Result<()> {
///     let ids = [("user", users)];
///     checkpoint::save_with(model, path, Attachments { ids: &ids, ..Attachments::default() })?;
///     let (_, ids) = checkpoint::read_ids(path)?;
///     assert_eq!((&ids[0].0[..], &ids[0].1), ("user", users));
///     Ok(())
/// }
/// ```
///
/// # Errors
///
/// As [`read_metadata`](super::read_metadata); [`CheckpointError::Damaged`] and
/// [`CheckpointError::Malformed`] for ids that differ from those written.
pub fn read_ids(path: impl AsRef<Path>) -> Result<(CheckpointMetadata, Vec<(String, IdMap)>)> {
    let path = path.as_ref();
    let (reader, metadata, start) = open(path)?;
    let mut file = TensorsOf { path, reader, metadata: &metadata, start };
    let names = metadata.tensors.iter().filter_map(|tensor| {
        Some(tensor.name.strip_prefix(PREFIX)?.strip_suffix(TEXT)?.to_owned())
    });
    let ids = names.map(|name| Ok((read(&mut file, &name)?, name)));
    let ids = ids.collect::<Result<Vec<_>, CheckpointError>>()?;
    Ok((metadata, ids.into_iter().map(|(map, name)| (name, map)).collect()))
}

/// The ids of one column.
fn read(file: &mut TensorsOf<'_>, name: &str) -> Result<IdMap, CheckpointError> {
    let [text, ends] = [TEXT, ENDS].map(|ending| format!("{PREFIX}{name}{ending}"));
    let (bytes, ends) = (file.checked(&text, Dtype::U8)?, file.checked(&ends, Dtype::U64)?);
    let malformed = |problem: &str| file.malformed(format!("the ids of `{name}`: {problem}"));
    let all = str::from_utf8(&bytes).map_err(|error| malformed(&error.to_string()))?;
    let mut map = IdMap::new();
    let mut start = 0;
    for (number, end) in ends.as_chunks().0.iter().enumerate() {
        let end = usize::try_from(u64::from_le_bytes(*end)).unwrap_or(usize::MAX);
        let id = all.get(start..end);
        let id = id.ok_or_else(|| malformed("they do not end one after the other"))?;
        if map.insert(id) != u32::try_from(number).ok() {
            return Err(malformed(&format!("`{id}` is there twice")));
        }
        start = end;
    }
    if start != all.len() {
        return Err(malformed("there is text after the last"));
    }
    Ok(map)
}
