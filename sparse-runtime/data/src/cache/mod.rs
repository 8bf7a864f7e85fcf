//! Data caches: parsed data as a binary file, which is read at the speed of the disk.
//!
//! A file is the eight bytes `nnzcache`, the version of the format as a `u32`, and pieces of up to
//! a mebibyte, each with its length and checksum; the last piece is empty. The pieces hold a header
//! in JSON, with its length before it, and the arrays of the columns, all little-endian.
//!
//! A file is read and not mapped: arrays own their memory, a damaged file is an error and not a
//! signal, and bounds on memory stay exact.

mod arrays;
mod pieces;
#[cfg(test)]
mod tests;

use super::blocks::io_error;
use super::file_stamp::FileStamp;
use super::libsvm::IndexBase;
use super::{Classes, Column, ColumnValues, Dataset, IdMap, ReadError, ReadReport};
use arrays::{ArrayHeader, NoMemory};
use nnz_device::atomic_write::replace_private_file;
use nnz_step::model::InputRole;
use pieces::{PieceReader, PieceWriter};
use serde::{Deserialize, Serialize};
use sparse_core::element::Float;
use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};

const MAGIC: &[u8; 8] = b"nnzcache";

/// The version of the format; a file of another version is written anew.
const VERSION: u32 = 1;

/// The header of a file.
#[derive(Serialize, Deserialize)]
struct Header {
    element: String,
    /// The sources of the data.
    sources: Vec<Stamp>,
    /// The description of the reader.
    reading: String,
    /// The reader's report.
    #[serde(default)]
    index_base: Option<Base>,
    #[serde(default)]
    detected: bool,
    #[serde(default)]
    n_skipped: u64,
    columns: Vec<ColumnHeader>,
    classes: Option<Classes>,
    id_maps: Vec<(String, Vec<String>)>,
}

/// A known index base.
#[derive(Serialize, Deserialize)]
enum Base {
    Zero,
    One,
}

#[derive(Serialize, Deserialize)]
struct ColumnHeader {
    name: Option<String>,
    is_label: bool,
    array: ArrayHeader,
}

/// A file stamp: another length, modification time or inode is another file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Stamp {
    path: String,
    bytes: u64,
    modified_nanoseconds: u128,
    /// `None` if the system has none, and for files of earlier versions.
    #[serde(default)]
    inode: Option<u64>,
}

impl<T: Float> Dataset<T> {
    /// Writes the data as a binary file, with names, roles, classes, id maps and the reader's
    /// report without the faults of skipped samples. The file is replaced atomically. A new file is
    /// private to its owner, as the data may be; an existing one keeps its access.
    ///
    /// # Errors
    ///
    /// [`ReadError::Io`].
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), ReadError> {
        self.save_as(path.as_ref(), Vec::new(), "")
    }

    /// Reads the file of [`save`](Dataset::save). Everything is checked: the checksum of each
    /// piece, and the arrays.
    ///
    /// ```
    /// use nnz::data::Dataset;
    /// use nnz::data::synthetic::click_log;
    ///
    /// let path = std::env::temp_dir().join(format!("nnz-save-{}.cache", std::process::id()));
    /// let data = click_log(100, 1 << 10, 5, 1)?;
    /// data.save(&path)?;
    /// assert_eq!(Dataset::<f32>::load(&path)?.features(), data.features());
    /// # std::fs::remove_file(&path).unwrap();
    /// # Ok::<(), nnz::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ReadError::Io`]; [`ReadError::Content`] for a file of another kind, version or element
    /// type, and for a damaged or truncated one.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, ReadError> {
        Ok(load(path.as_ref())?.data)
    }

    /// The data of the file `path`, if that was made from the same unchanged `sources` in the same
    /// way. Otherwise calls `read` and writes the file. `reading` describes the settings of the
    /// reader, as any text; another text is another way of reading.
    ///
    /// A damaged file, or one of an earlier version, is written anew. A file that cannot be written
    /// is a warning (`tracing`, and in the [report](Dataset::report)), since the data is there. A
    /// file at `path` that is not a cache is left alone, and is an error.
    ///
    /// ```
    /// use nnz::data::libsvm::{self, IndexBase};
    /// use nnz::data::Dataset;
    /// # let folder = std::env::temp_dir().join(format!("nnz-cached-{}", std::process::id()));
    /// # std::fs::create_dir_all(&folder).unwrap();
    /// # let (text, cache) = (folder.join("train.svm"), folder.join("train.cache"));
    /// # std::fs::write(&text, "1 1:0.5\n").unwrap();
    ///
    /// for _ in 0..2 {
    ///     // The second time nothing is parsed.
    ///     let read = || libsvm::read(&text, IndexBase::One);
    ///     let data = Dataset::cached(&cache, [&text], "one-based", read)?;
    ///     assert_eq!(data.n_rows(), 1);
    /// }
    /// # std::fs::remove_dir_all(&folder).unwrap();
    /// # Ok::<(), nnz::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Errors of `read`, and [`ReadError::Io`] for a source; [`ReadError::Changed`] for a source
    /// that changed during `read`; [`ReadError::Content`] for a file of another kind, which would
    /// be lost.
    pub fn cached<P: AsRef<Path>>(
        path: impl AsRef<Path>,
        sources: impl IntoIterator<Item = P>,
        reading: &str,
        read: impl FnOnce() -> Result<Self, ReadError>,
    ) -> Result<Self, ReadError> {
        let path = path.as_ref();
        let sources = sources.into_iter().map(|source| source.as_ref().to_owned());
        let sources: Vec<PathBuf> = sources.collect();
        let before = sources.iter().map(|source| stamp_of(source));
        let before = before.collect::<Result<Vec<_>, _>>()?;
        let stamps = || sources.iter().zip(&before).map(|(path, stamp)| Stamp::of(path, stamp));
        match load(path) {
            Ok(saved) if saved.was_made_from(stamps()) && saved.reading == reading => {
                return Ok(saved.data);
            }
            Ok(_) => tracing::info!(path = %path.display(), "sources or reading have changed"),
            Err(_) if is_of_another_kind(path) => {
                let message = "it is not a file that `Dataset::save` wrote, and would be lost as a cache: give the cache another name, or remove it";
                let file = path.display().to_string();
                return Err(ReadError::Content { file, message: message.to_owned() });
            }
            Err(error) => tracing::info!(%error, "no cache"),
        }
        let data = read();
        for (source, before) in sources.iter().zip(&before) {
            if let Some(change) = before.change(&stamp_of(source)?) {
                return Err(ReadError::Changed { file: source.display().to_string(), change });
            }
        }
        let data = data?;
        if let Err(error) = data.save_as(path, stamps().collect(), reading) {
            tracing::warn!(%error, "no cache can be written: the next run reads the text again");
            let names: Vec<String> = stamps().map(|stamp| stamp.path).collect();
            let report = data.report().cloned();
            let report = report.unwrap_or_else(|| ReadReport::of_file(names.join(", ")));
            return Ok(
                data.with_report(ReadReport { cache_error: Some(error.to_string()), ..report })
            );
        }
        Ok(data)
    }

    fn save_as(&self, path: &Path, sources: Vec<Stamp>, reading: &str) -> Result<(), ReadError> {
        let column = |column: &Column<T>| ColumnHeader {
            name: column.name().map(str::to_owned),
            is_label: column.role() == InputRole::Label,
            array: ArrayHeader::of(column.values()),
        };
        let report = self.report();
        let header = Header {
            element: T::TYPE.to_string(),
            sources,
            reading: reading.to_owned(),
            index_base: match report.and_then(|report| report.index_base) {
                Some(IndexBase::Zero) => Some(Base::Zero),
                Some(IndexBase::One) => Some(Base::One),
                Some(IndexBase::Detect) | None => None,
            },
            detected: report.is_some_and(|report| report.detected),
            n_skipped: report.map_or(0, |report| report.n_skipped),
            columns: self.columns().iter().map(column).collect(),
            classes: self.classes().cloned(),
            id_maps: self
                .id_maps()
                .map(|(name, map)| (name.to_owned(), map.ids().map(str::to_owned).collect()))
                .collect(),
        };
        let result = replace_private_file(path, |writer| {
            writer.write_all(MAGIC)?;
            writer.write_all(&VERSION.to_le_bytes())?;
            let mut pieces = PieceWriter::new(writer);
            let header = serde_json::to_vec(&header)?;
            pieces.write_all(&(header.len() as u64).to_le_bytes())?;
            pieces.write_all(&header)?;
            for column in self.columns() {
                arrays::write(&mut pieces, column.values())?;
            }
            pieces.finish()
        });
        result.map_err(|source| io_error(&path.display().to_string(), source))
    }
}

fn stamp_of(path: &Path) -> Result<FileStamp, ReadError> {
    let metadata = std::fs::metadata(path);
    let metadata = metadata.map_err(|source| io_error(&path.display().to_string(), source))?;
    Ok(FileStamp::of(&metadata))
}

impl Stamp {
    fn of(path: &Path, stamp: &FileStamp) -> Self {
        Stamp {
            path: path.display().to_string(),
            bytes: stamp.bytes(),
            modified_nanoseconds: stamp.modified_nanoseconds(),
            inode: stamp.inode(),
        }
    }

    /// Whether both are the same file, as far as they are known.
    fn is(&self, other: &Stamp) -> bool {
        let inode = self.inode.and(other.inode).or(self.inode);
        *self == Stamp { inode, ..other.clone() }
    }
}

/// The data of a file, with its sources and the description of the reader.
struct Saved<T: Float> {
    data: Dataset<T>,
    sources: Vec<Stamp>,
    reading: String,
}

impl<T: Float> Saved<T> {
    fn was_made_from(&self, stamps: impl ExactSizeIterator<Item = Stamp>) -> bool {
        stamps.len() == self.sources.len()
            && stamps.zip(&self.sources).all(|(now, saved)| now.is(saved))
    }
}

/// Whether there is a file that does not begin like one of [`Dataset::save`], also a truncated one.
fn is_of_another_kind(path: &Path) -> bool {
    let mut start = Vec::new();
    let read = |file: File| file.take(MAGIC.len() as u64).read_to_end(&mut start);
    File::open(path).and_then(read).is_ok() && !MAGIC.starts_with(&start)
}

fn load<T: Float>(path: &Path) -> Result<Saved<T>, ReadError> {
    let name = path.display().to_string();
    let content = |message: String| ReadError::Content { file: name.clone(), message };
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::UnexpectedEof => content("the file is cut short".to_owned()),
        io::ErrorKind::InvalidData => content(error.to_string()),
        io::ErrorKind::OutOfMemory => match error.downcast::<NoMemory>() {
            Ok(NoMemory { n_elements, bytes }) => ReadError::ArraysTooLarge {
                file: name.clone(),
                what: format!("the elements of an array of {n_elements}"),
                bytes,
            },
            Err(error) => io_error(&name, error),
        },
        _ => io_error(&name, error),
    };
    let file = File::open(path).map_err(|source| io_error(&name, source))?;
    let mut reader = BufReader::new(file);
    let mut start = [0; 12];
    reader.read_exact(&mut start).map_err(failed)?;
    let (magic, version) = start.split_at(MAGIC.len());
    if magic != MAGIC {
        return Err(content("it is not a file that `Dataset::save` wrote".to_owned()));
    }
    if version != VERSION.to_le_bytes() {
        return Err(content(format!("it is not of version {VERSION}: make it again")));
    }
    let mut pieces = PieceReader::new(reader);
    let length = arrays::read_u64(&mut pieces).map_err(failed)?;
    let mut header = Vec::new();
    (&mut pieces).take(length).read_to_end(&mut header).map_err(failed)?;
    let header: Header =
        serde_json::from_slice(&header).map_err(|error| content(format!("its header: {error}")))?;
    if header.element != T::TYPE.to_string() {
        return Err(content(format!("it has elements `{}`, not `{}`", header.element, T::TYPE)));
    }
    let data_error = |source| ReadError::Data { file: name.clone(), source: Box::new(source) };
    let mut columns = Vec::with_capacity(header.columns.len());
    for column in header.columns {
        let values: ColumnValues<T> = arrays::read(&mut pieces, &column.array)
            .map_err(failed)?
            .map_err(|source| data_error(source.into()))?;
        let role = if column.is_label { InputRole::Label } else { InputRole::Input };
        columns.push(Column::new(column.name, role, values));
    }
    pieces.finish().map_err(failed)?;
    let maps = header.id_maps.into_iter().map(|(name, ids)| {
        let map: IdMap = ids.iter().map(String::as_str).collect();
        (name, map)
    });
    let report = ReadReport {
        index_base: header.index_base.map(|base| match base {
            Base::Zero => IndexBase::Zero,
            Base::One => IndexBase::One,
        }),
        detected: header.detected,
        n_skipped: header.n_skipped,
        ..ReadReport::of_file(name.clone())
    };
    let data = Dataset::from_columns(columns)
        .map_err(data_error)?
        .with_saved(header.classes, maps.collect())
        .with_report(report);
    Ok(Saved { data, sources: header.sources, reading: header.reading })
}
