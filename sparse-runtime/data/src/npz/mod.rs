//! SciPy's sparse matrix files, as `scipy.sparse.save_npz` writes them, and arrays of ids beside
//! them (feature `npz`).

mod npy;

use super::ReadError;
use nnz_arrays::formats::{ColumnIds, Csr, Dense, FormatError, Ids, MAX_RANK};
use nnz_arrays::in_library;
use nnz_device::memory::is_there_for;
use npy::{Npy, Number, Refusal};
use sparse_core::element::{Float, Id};
use std::fs::File;
use std::io::{BufReader, Read, Seek};
use std::path::Path;
use zip::ZipArchive;
use zip::read::ZipFile;
use zip::result::ZipError;

/// The result for the element type that an array has, or the message for one that is not listed.
macro_rules! by_element {
    ($npy:expr, $what:literal, $($name:literal => $result:expr),* $(,)?) => {
        match $npy.element() {
            $($name => $result,)*
            other => Err(format!(concat!("elements of type `{}` are not ", $what), other)),
        }
    };
}

/// Reads a csr matrix; [`NpzCsr`] shows what is in the file first.
///
/// # Errors
///
/// As [`NpzCsr::open`] and [`NpzCsr::into_csr`].
pub fn read<T: Float>(path: impl AsRef<Path>) -> Result<Csr<T>, ReadError> {
    NpzCsr::open(path)?.into_csr()
}

/// Reads an array of integers, one a row, out of a file of `numpy.savez`: class ids as
/// `numpy.savez("y.npz", y=labels)` leaves them. 64-bit integers keep their type, unsigned ones of
/// 32 bits too; narrower ones are widened to `u32`, or to `i64` where they have a sign.
///
/// # Errors
///
/// [`ReadError::Io`], and [`ReadError::Content`] if the file is not a whole npz file, has no array
/// of this name, or one that is not of integers or has several dimensions.
pub fn read_ids(path: impl AsRef<Path>, array: &str) -> Result<Ids, ReadError> {
    let path = path.as_ref();
    let file = path.display().to_string();
    match File::open(path) {
        Ok(opened) => read_ids_from(&file, BufReader::new(opened), array),
        Err(source) => Err(ReadError::Io { file, source }),
    }
}

/// As [`read_ids`], out of a file that is open, or in memory; `name` stands for the file in
/// messages.
///
/// # Errors
///
/// As [`read_ids`].
pub fn read_ids_from(name: &str, reader: impl Read + Seek, array: &str) -> Result<Ids, ReadError> {
    fn ids<E, I>(npy: &Npy) -> Result<Ids, String>
    where
        E: Number + Into<I>,
        I: Id,
        Dense<I>: Into<Ids>,
    {
        let ids: Vec<I> = npy.numbers::<E>()?.into_iter().map(Into::into).collect();
        Ok(Dense::from(ids).into())
    }
    let hint = "name one of those that were given to `numpy.savez`";
    let mut archive = Archive::open(name.to_owned(), reader, hint)?;
    let npy = archive.array(array, u64::MAX)?;
    by_element!(npy, "ids",
        "u1" => ids::<u8, u32>(&npy),
        "u2" => ids::<u16, u32>(&npy),
        "u4" => ids::<u32, u32>(&npy),
        "u8" => ids::<u64, u64>(&npy),
        "i1" => ids::<i8, i64>(&npy),
        "i2" => ids::<i16, i64>(&npy),
        "i4" => ids::<i32, i64>(&npy),
        "i8" => ids::<i64, i64>(&npy),
    )
    .map_err(|message| archive.content(array, message))
}

/// Reads an array of numbers of one dimension, such as labels, as `numpy.save("y.npy", y)` leaves
/// it. Floats, integers of any width and booleans of either byte order are rounded to `T`; whether
/// they are finite is for [`Dataset::new`](super::Dataset::new) to check.
///
/// # Errors
///
/// [`ReadError::Io`], and [`ReadError::Content`] if the file is not a whole npy file, or has
/// several dimensions or elements that are not numbers.
///
/// ```
/// use nnz::data::npz;
/// # let path = std::env::temp_dir().join(format!("nnz-npy-doc-{}.npy", std::process::id()));
/// # let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }";
/// # let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
/// # bytes.extend((header.len() as u16).to_le_bytes());
/// # bytes.extend(header.as_bytes());
/// # bytes.extend([1.0f32, -1.0].iter().flat_map(|value| value.to_le_bytes()));
/// # std::fs::write(&path, bytes)?;
///
/// let labels: Vec<f32> = npz::read_npy(&path)?;
/// assert_eq!(labels, [1.0, -1.0]);
/// # std::fs::remove_file(&path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn read_npy<T: Float>(path: impl AsRef<Path>) -> Result<Vec<T>, ReadError> {
    let path = path.as_ref();
    let file = path.display().to_string();
    let refused = |refusal| match refusal {
        Refusal::Message(message) => ReadError::Content { file: file.clone(), message },
        Refusal::NoMemory { n_elements, bytes } => {
            let what = format!("its {n_elements} elements");
            ReadError::ArraysTooLarge { file: file.clone(), what, bytes }
        }
    };
    let opened = File::open(path).map_err(|source| ReadError::Io { file: file.clone(), source })?;
    let npy = Npy::read(BufReader::new(opened), u64::MAX).map_err(refused)?;
    let values = values_of(&npy).map_err(|message| refused(message.into()))?;
    Ok(values.rounded())
}

/// Reads an array of numbers of one dimension out of a file of `numpy.savez`, as [`read_npy`] does;
/// `None` if the file has no array of this name.
///
/// # Errors
///
/// As [`read_npy`], of the array.
pub fn read_numbers<T: Float>(
    path: impl AsRef<Path>,
    array: &str,
) -> Result<Option<Vec<T>>, ReadError> {
    let path = path.as_ref();
    let file = path.display().to_string();
    let opened = File::open(path).map_err(|source| ReadError::Io { file: file.clone(), source })?;
    let mut archive = Archive::open(file, BufReader::new(opened), "")?;
    if archive.zip.index_for_name(&format!("{array}.npy")).is_none() {
        return Ok(None);
    }
    let npy = archive.array(array, u64::MAX)?;
    let values = values_of(&npy).map_err(|message| archive.content(array, message))?;
    Ok(Some(values.rounded()))
}

/// The arrays of a csr matrix in a file of SciPy's, read but not yet checked against each other.
///
/// Indices may be of 32 or 64 bits, signed or not, values floats of 32 or 64 bits, integers of any
/// width or booleans, of either byte order.
#[derive(Clone, Debug)]
pub struct NpzCsr {
    file: String,
    n_rows: u64,
    n_cols: u64,
    indptr: Vec<u64>,
    indices: ColumnIds,
    values: Values,
}

/// The values, as wide as they need to be; integers and booleans are exact in `f64` up to 2⁵³.
#[derive(Clone, Debug)]
enum Values {
    F32(Vec<f32>),
    F64(Vec<f64>),
}

impl Values {
    /// As another type.
    fn rounded<T: Float>(self) -> Vec<T> {
        match self {
            Values::F32(values) => {
                values.into_iter().map(|value| T::of(f64::from(value))).collect()
            }
            Values::F64(values) => values.into_iter().map(T::of).collect(),
        }
    }
}

impl NpzCsr {
    /// Reads the arrays. Linear in the size of the file, compressed or not.
    ///
    /// # Errors
    ///
    /// [`ReadError::Io`], and [`ReadError::Content`] if the file is not a whole npz file, lacks an
    /// array of SciPy's, or holds another format than csr.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, ReadError> {
        let path = path.as_ref();
        let file = path.display().to_string();
        match File::open(path) {
            Ok(opened) => NpzCsr::read_from(&file, BufReader::new(opened)),
            Err(source) => Err(ReadError::Io { file, source }),
        }
    }

    /// Reads the arrays out of a file that is open, or in memory; `name` stands for the file in
    /// messages.
    ///
    /// # Errors
    ///
    /// As [`open`](NpzCsr::open).
    pub fn read_from(name: &str, reader: impl Read + Seek) -> Result<Self, ReadError> {
        let hint = "only files of `scipy.sparse.save_npz` can be read";
        let mut archive = Archive::open(name.to_owned(), reader, hint)?;
        let format = archive.array("format", 1)?;
        let format = format.text().map_err(|m| archive.content("format", m))?;
        if format != "csr" {
            return Err(archive.refuse(format!(
                "the matrix is `{format}`: convert it by `.tocsr()` before `save_npz`"
            )));
        }
        // Each array says how long the next may be: more is not read.
        let shape = unsigned(&mut archive, "shape", MAX_RANK as u64)?;
        let [n_rows, n_cols] = shape[..] else {
            return Err(archive.refuse(format!(
                "the shape has {} extents: only matrices have rows of features",
                shape.len()
            )));
        };
        let indptr = unsigned(&mut archive, "indptr", n_rows.saturating_add(1))?;
        let nnz = indptr.last().copied().unwrap_or_default();
        let (indices, values) = (column_ids(&mut archive, nnz)?, values(&mut archive, nnz)?);
        Ok(NpzCsr { n_rows, n_cols, indptr, indices, values, file: archive.file })
    }

    /// The number of rows.
    pub fn n_rows(&self) -> u64 {
        self.n_rows
    }

    /// The number of columns.
    pub fn n_cols(&self) -> u64 {
        self.n_cols
    }

    /// The number of stored entries.
    pub fn nnz(&self) -> usize {
        match &self.values {
            Values::F32(values) => values.len(),
            Values::F64(values) => values.len(),
        }
    }

    /// The matrix, with values rounded to `T`.
    ///
    /// # Errors
    ///
    /// [`ReadError::Content`] if the columns of a row do not ascend or repeat (which SciPy allows),
    /// if a value is not finite in `T` or if the arrays disagree on the number of rows;
    /// [`ReadError::Format`] if they do not make a matrix.
    pub fn into_csr<T: Float>(self) -> Result<Csr<T>, ReadError> {
        let arrays = self;
        in_library!(<T> NpzCsr::matrix::<T> => (arrays: NpzCsr) -> Result<Csr<T>, ReadError>)
    }

    fn matrix<T: Float>(self) -> Result<Csr<T>, ReadError> {
        let NpzCsr { file, n_rows, n_cols, indptr, indices, values } = self;
        let refuse = |message| ReadError::Content { file: file.clone(), message };
        if indptr.len() as u64 != n_rows.saturating_add(1) {
            return Err(refuse(format!(
                "`indptr` has {} entries, but a matrix of {n_rows} rows has one more than rows",
                indptr.len()
            )));
        }
        let n_cols = usize::try_from(n_cols).map_err(|_| {
            refuse(format!("{n_cols} columns are more than this machine can address"))
        })?;
        let n_values = match &values {
            Values::F32(values) => values.len(),
            Values::F64(values) => values.len(),
        };
        if !is_there_for::<T>(n_values) {
            let what = format!("the {n_values} elements of array `data`");
            let bytes = n_values.saturating_mul(size_of::<T>());
            return Err(ReadError::ArraysTooLarge { file, what, bytes });
        }
        let values: Vec<T> = values.rounded();
        if let Some(at) = values.iter().position(|value| !value.is_finite()) {
            let row = indptr.partition_point(|&start| start <= at as u64).saturating_sub(1);
            return Err(refuse(format!(
                "the value of entry {at}, in row {row}, is not a finite `{}`: leave the entry out where a value is missing",
                T::TYPE
            )));
        }
        let csr = match indices {
            ColumnIds::U32(indices) => Csr::new(n_cols, indptr, indices, values),
            ColumnIds::U64(indices) => Csr::new(n_cols, indptr, indices, values),
        };
        csr.map_err(|source| match source {
            FormatError::ColumnUnsorted { .. } | FormatError::ColumnDuplicate { .. } => refuse(
                format!("{source}; or call `.sum_duplicates()` on the matrix before `save_npz`"),
            ),
            source => ReadError::Format { file: file.clone(), source },
        })
    }
}

/// An open npz file.
struct Archive<R> {
    file: String,
    /// What to say of an array that is not there.
    hint: &'static str,
    zip: ZipArchive<R>,
}

impl<R: Read + Seek> Archive<R> {
    fn open(file: String, reader: R, hint: &'static str) -> Result<Self, ReadError> {
        match ZipArchive::new(reader) {
            Ok(zip) => Ok(Archive { file, hint, zip }),
            Err(ZipError::Io(source)) => Err(ReadError::Io { file, source }),
            Err(error) => Err(ReadError::Content {
                file,
                message: format!("this is not an npz file, or is damaged: {error}"),
            }),
        }
    }

    fn refuse(&self, message: String) -> ReadError {
        ReadError::Content { file: self.file.clone(), message }
    }

    fn content(&self, array: &str, message: String) -> ReadError {
        self.refuse(format!("array `{array}`: {message}"))
    }

    /// An array of at most so many elements.
    fn array(&mut self, name: &str, most: u64) -> Result<Npy, ReadError> {
        self.read(name, |member| Npy::read(member, most))
    }

    /// The first elements of an array, which may have room for more: SciPy keeps it.
    fn first_of_array(&mut self, name: &str, n_elements: u64) -> Result<Npy, ReadError> {
        self.read(name, |member| Npy::read_first(member, n_elements))
    }

    fn read(
        &mut self,
        name: &str,
        read: impl FnOnce(ZipFile<'_, R>) -> Result<Npy, Refusal>,
    ) -> Result<Npy, ReadError> {
        let Some(index) = self.zip.index_for_name(&format!("{name}.npy")) else {
            return Err(self.refuse(format!("there is no array `{name}`: {}", self.hint)));
        };
        let read = match self.zip.by_index(index) {
            Ok(member) => read(member),
            Err(error) => Err(error.to_string().into()),
        };
        read.map_err(|refusal| match refusal {
            Refusal::Message(message) => self.content(name, message),
            Refusal::NoMemory { n_elements, bytes } => ReadError::ArraysTooLarge {
                file: self.file.clone(),
                what: format!("the {n_elements} elements of array `{name}`"),
                bytes,
            },
        })
    }
}

fn unsigned<R: Read + Seek>(
    archive: &mut Archive<R>,
    name: &str,
    most: u64,
) -> Result<Vec<u64>, ReadError> {
    let npy = archive.array(name, most)?;
    by_element!(npy, "indices",
        "i4" => convert::<i32, u64>(&npy),
        "u4" => convert::<u32, u64>(&npy),
        "i8" => convert::<i64, u64>(&npy),
        "u8" => npy.numbers(),
    )
    .map_err(|message| archive.content(name, message))
}

fn column_ids<R: Read + Seek>(archive: &mut Archive<R>, most: u64) -> Result<ColumnIds, ReadError> {
    let npy = archive.first_of_array("indices", most)?;
    by_element!(npy, "indices",
        "i4" => convert::<i32, u32>(&npy).map(ColumnIds::U32),
        "u4" => npy.numbers().map(ColumnIds::U32),
        "i8" => convert::<i64, u64>(&npy).map(ColumnIds::U64),
        "u8" => npy.numbers().map(ColumnIds::U64),
    )
    .map_err(|message| archive.content("indices", message))
}

/// Indices, none of which may be negative.
fn convert<E, I>(npy: &Npy) -> Result<Vec<I>, String>
where
    E: Number + Copy + std::fmt::Display,
    I: TryFrom<E>,
{
    let indices = npy.numbers::<E>()?.into_iter().enumerate();
    indices
        .map(|(at, index)| {
            I::try_from(index).map_err(|_| format!("entry {at} is {index}, below 0"))
        })
        .collect()
}

fn values<R: Read + Seek>(archive: &mut Archive<R>, most: u64) -> Result<Values, ReadError> {
    let npy = archive.first_of_array("data", most)?;
    values_of(&npy).map_err(|message| archive.content("data", message))
}

/// The numbers of an array.
fn values_of(npy: &Npy) -> Result<Values, String> {
    fn exact<E: Number + Into<f64>>(npy: &Npy) -> Result<Values, String> {
        let values = npy.numbers::<E>()?;
        Ok(Values::F64(values.into_iter().map(Into::into).collect()))
    }
    by_element!(npy, "numbers",
        "f4" => npy.numbers().map(Values::F32),
        "f8" => npy.numbers().map(Values::F64),
        "b1" => npy.numbers::<bool>().map(|values| {
            Values::F32(values.into_iter().map(|value| f32::from(u8::from(value))).collect())
        }),
        "i1" => exact::<i8>(npy),
        "u1" => exact::<u8>(npy),
        "i2" => exact::<i16>(npy),
        "u2" => exact::<u16>(npy),
        "i4" => exact::<i32>(npy),
        "u4" => exact::<u32>(npy),
        "i8" => npy.numbers::<i64>().map(|values| {
            Values::F64(values.into_iter().map(|value| value as f64).collect())
        }),
        "u8" => npy.numbers::<u64>().map(|values| {
            Values::F64(values.into_iter().map(|value| value as f64).collect())
        }),
    )
}

#[cfg(test)]
mod tests;
