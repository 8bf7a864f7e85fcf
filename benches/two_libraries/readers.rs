//! Readers of text in memory.

use crate::Row;
use crate::models::Data;
use nnz::data::libsvm::{Reader, write_to};
use nnz::prelude::*;
use std::error::Error;

/// Adds the rows, on the log of clicks as text.
pub fn add(rows: &mut Vec<Row>, data: &'static Data) -> Result<(), Box<dyn Error>> {
    let mut text = Vec::new();
    write_to("text", &mut text, &data.clicks)?;
    let text: &'static [u8] = text.leak();
    let read = move || -> Result<(), Box<dyn Error>> {
        let data: Dataset = Reader::new().index_base(IndexBase::One).read_bytes("text", text)?;
        std::hint::black_box(data);
        Ok(())
    };
    rows.push(("LibSVM text".into(), Box::new(move || Ok(Box::new(read)))));
    Ok(())
}
