//! What both libraries are measured on. The file is compiled twice, as the crates `old_side` and
//! `new_side`, whose dependencies named `nnz` differ. It names only what both have.

mod arrays;
#[path = "../user_crate/src/models.rs"]
mod models;
mod readers;
#[allow(dead_code)] // Milliseconds are shown, not samples a second.
#[path = "../user_crate/src/rows.rs"]
mod training;

use std::error::Error;

/// Does the work of a row once.
pub type Work = Box<dyn FnMut() -> Result<(), Box<dyn Error>>>;

/// A row: its name, and a function that allocates what its work reads and writes.
pub type Row = (String, Box<dyn Fn() -> Result<Work, Box<dyn Error>>>);

/// Every row, in an order that is the same on both sides.
pub fn rows() -> Result<Vec<Row>, Box<dyn Error>> {
    let data: &'static models::Data = Box::leak(Box::new(models::Data::new()?));
    let mut rows: Vec<Row> = Vec::new();
    for row in training::rows(data) {
        rows.push((row.name.clone(), Box::new(move || row.make())));
    }
    arrays::add(&mut rows, data)?;
    readers::add(&mut rows, data)?;
    Ok(rows)
}
