//! Maps between ids in files and their numbers in models.

use super::super::ReadError;
use super::super::blocks::io_error;
use nnz_device::atomic_write::replace_file;
use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// The ids of a column, numbered densely from 0 in the order of their first occurrence.
///
/// A table that was trained on these numbers is useless without the map: keep it with the model,
/// and read data to be scored with it.
///
/// ```
/// use nnz::data::{Ratings, TextReader};
///
/// let text = b"anna,Solaris,5\nbert,Solaris,3\nanna,Stalker,4\n";
/// let train = TextReader::new(Ratings::new()).read_bytes("inline", text)?;
/// let users = train.id_map("user").unwrap();
/// assert_eq!((users.len(), users.number("bert"), users.id(0)), (2, Some(1), Some("anna")));
/// # Ok::<(), nnz::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct IdMap {
    numbers: HashMap<Arc<str>, u32>,
    ids: Vec<Arc<str>>,
}

impl IdMap {
    /// An empty map.
    pub fn new() -> Self {
        IdMap::default()
    }

    /// The number of ids.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// The number of an id.
    pub fn number(&self, id: &str) -> Option<u32> {
        self.numbers.get(id).copied()
    }

    /// The id of a number.
    pub fn id(&self, number: u32) -> Option<&str> {
        self.ids.get(number as usize).map(|id| &**id)
    }

    /// All ids; their positions are their numbers.
    pub fn ids(&self) -> impl ExactSizeIterator<Item = &str> {
        self.ids.iter().map(|id| &**id)
    }

    /// The number of an id; a new id gets the next one. `None` if all are taken.
    pub fn insert(&mut self, id: &str) -> Option<u32> {
        if let Some(&number) = self.numbers.get(id) {
            return Some(number);
        }
        let number = u32::try_from(self.ids.len()).ok()?;
        let id: Arc<str> = id.into();
        self.ids.push(Arc::clone(&id));
        self.numbers.insert(id, number);
        Some(number)
    }

    /// Writes the ids, one a line, in the order of their numbers; the file is replaced atomically.
    ///
    /// # Errors
    ///
    /// [`ReadError::Io`]; [`ReadError::Content`] for an id that contains a line end.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<(), ReadError> {
        let path = path.as_ref();
        let name = path.display().to_string();
        if let Some(id) = self.ids.iter().find(|id| id.contains(['\n', '\r'])) {
            let message = format!("the id `{}` has a line end in it", id.escape_debug());
            return Err(ReadError::Content { file: name, message });
        }
        replace_file(path, |writer| self.ids.iter().try_for_each(|id| writeln!(writer, "{id}")))
            .map_err(|source| io_error(&name, source))
    }

    /// Reads the file of [`write`](IdMap::write).
    ///
    /// # Errors
    ///
    /// [`ReadError::Io`]; [`ReadError::Content`] for an id that occurs twice.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, ReadError> {
        let path = path.as_ref();
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|source| io_error(&name, source))?;
        let mut map = IdMap::new();
        for (line, id) in text.lines().enumerate() {
            if map.insert(id) != u32::try_from(line).ok() {
                let message = format!("line {} has the id `{id}` once more", line + 1);
                return Err(ReadError::Content { file: name, message });
            }
        }
        Ok(map)
    }
}

impl<'a> FromIterator<&'a str> for IdMap {
    fn from_iter<I: IntoIterator<Item = &'a str>>(ids: I) -> Self {
        let mut map = IdMap::new();
        for id in ids {
            map.insert(id);
        }
        map
    }
}

/// `943 ids`.
impl fmt::Debug for IdMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ids", self.len())
    }
}

impl PartialEq for IdMap {
    fn eq(&self, other: &Self) -> bool {
        self.ids == other.ids
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let path = std::env::temp_dir().join(format!("nnz-id-map-{}", std::process::id()));
        let map: IdMap = ["b", "a", "b", "é, x"].into_iter().collect();
        map.write(&path).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "b\na\né, x\n");
        assert_eq!(IdMap::read(&path).unwrap(), map);
        std::fs::write(&path, "a\nb\na\n").unwrap();
        let error = IdMap::read(&path).unwrap_err().to_string();
        std::fs::remove_file(&path).unwrap();
        assert!(error.ends_with("line 3 has the id `a` once more"), "{error}");
        let bad: IdMap = ["a\nb"].into_iter().collect();
        assert!(matches!(bad.write(&path), Err(ReadError::Content { .. })));
    }
}
