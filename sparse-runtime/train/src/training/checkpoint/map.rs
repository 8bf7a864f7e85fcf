//! A checkpoint as mapped memory: parameters are read from the file when they are used.

use super::error::CheckpointError;
use super::file::{io_error, load_open, open};
use super::load_options::LoadOptions;
use super::metadata::SavedParameter;
use crate::error::Result;
use nnz_arrays::bytes::Checksum;
use nnz_arrays::parameter_memory::{Aligned, Table};
use nnz_step::model::{Dims, Model};
use std::fs::File;
use std::path::Path;

/// The dimensions of the model in a file, and the tables of its parameters in the order of
/// declaration. A table is mapped if its layout in the file is that in memory, otherwise loaded.
/// Everything is checked as by [`load`](super::load). The path is opened once: header and values
/// are of one file, also if it is replaced meanwhile.
pub(crate) fn map<M: Model>(path: &Path) -> Result<(Dims, Vec<Table<M::Element>>)> {
    let (mut reader, metadata, start) = open(path)?;
    metadata.check_dims_of::<M>(path)?;
    // Of the shapes of its parameters, which take no memory.
    let mut model = M::from_tables(metadata.dims.clone(), &mut |_, shape| {
        Ok(Table::zeros(shape.n_rows(), shape.row_size()))
    })?;
    metadata.check(path, &model, LoadOptions::default())?;
    let saved = M::PARAMETERS.iter().map(|info| metadata.parameter(info.name));
    let of_nothing = metadata.checksum();
    let Some(tables) = mapped(path, reader.get_ref(), start, saved, &of_nothing)? else {
        let file = (&mut reader, &metadata, start);
        load_open(&mut model, path, file, LoadOptions::default())?;
        let parameters = model.parameters_mut().into_iter();
        let tables = parameters.map(|parameter| parameter.table.take_shared());
        return Ok((metadata.dims, tables.collect()));
    };
    Ok((metadata.dims, tables))
}

/// The tables, or `None` where the layout of some differs from that in memory.
#[cfg(target_os = "linux")]
fn mapped<'s, T: sparse_core::element::Float>(
    path: &Path,
    file: &File,
    start: u64,
    saved: impl Iterator<Item = Option<&'s SavedParameter>>,
    of_nothing: &Checksum,
) -> Result<Option<Vec<Table<T>>>, CheckpointError> {
    // SAFETY: whoever opens a predictor sees to it that nobody writes to the file, as its
    // documentation says; a file that is replaced stays what it was.
    let file = unsafe { memmap2::Mmap::map(file) }.map_err(|error| io_error(path, error))?;
    let file = std::sync::Arc::new(file);
    let mut tables = Vec::new();
    for saved in saved {
        // `check` has refused a file without it.
        let Some(saved) = saved else { return Ok(None) };
        let (shape, first) = (saved.shape, (start + saved.offset) as usize);
        let Some(values) = Aligned::<T>::of_file(&file, first, shape.size()) else {
            return Ok(None);
        };
        let mut checksum = of_nothing.clone();
        checksum.add(&file[first..first + size_of_val(&values[..])]);
        if checksum.value() != saved.checksum {
            return Err(CheckpointError::Damaged {
                path: path.to_owned(),
                name: saved.name.clone(),
                found: checksum.value(),
                expected: saved.checksum,
            });
        }
        tables.push(Table::of_run(shape.n_rows(), shape.row_size(), values));
    }
    Ok(Some(tables))
}

#[cfg(not(target_os = "linux"))]
fn mapped<'s, T: sparse_core::element::Float>(
    _: &Path,
    _: &File,
    _: u64,
    _: impl Iterator<Item = Option<&'s SavedParameter>>,
    _: &Checksum,
) -> Result<Option<Vec<Table<T>>>, CheckpointError> {
    Ok(None)
}
