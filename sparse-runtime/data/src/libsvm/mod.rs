//! LibSVM text: `label index:value index:value …`, one sample a line.
//!
//! ```
//! use nnz::data::libsvm::{IndexBase, Reader};
//!
//! let text = b"+1 1:0.5 7:1 # a comment\n-1 3:1\n";
//! let data = Reader::new().index_base(IndexBase::One).read_bytes("inline", text)?;
//! assert_eq!((data.n_rows(), data.n_features()), (2, 7));
//! # Ok::<(), nnz::Error>(())
//! ```
//!
//! The format: blanks are spaces and tabs, several count as one. Lines end in `\n` or `\r\n`; the
//! last line may lack its end. A comment from `#` on, blank lines, and `qid:…` are skipped. Labels
//! and values are decimal numbers, rounded exactly as `str::parse` does. Entries that are written
//! as zero stay stored.
//!
//! Errors, with file, line and column: labels or values that are not finite, indices that do not
//! ascend or occur twice in a sample, indices of 2⁶³ and more or beyond a declared width, and
//! anything else that is not `index:value`. Several labels a sample are deliberately not supported.
//! Labels that are sparse rows themselves are a second file; its entries are used, the numbers in
//! front of them are not:
//!
//! ```
//! use nnz::data::libsvm::{IndexBase, Reader};
//!
//! let reader = Reader::new().index_base(IndexBase::Zero);
//! let tags = reader.clone().n_features(3).read_bytes("tags", b"0 2:1\n0 0:1 1:1\n")?;
//! let data = reader.read_bytes("texts", b"0 0:0.5\n0 6:1\n")?.with_labels_from(tags)?;
//! println!("{data}");
//! # Ok::<(), nnz::Error>(())
//! ```

mod fast_path;
mod file_part;
mod format;
mod parallel;
mod parse;
mod parsed_samples;
mod parsing;
mod read;
mod tolerance;
mod uninit_output;
mod write;

pub(super) use file_part::lines_before;
pub use read::{IndexBase, Reader, read};
pub(super) use write::check_entries;
pub use write::{write, write_to};

#[cfg(test)]
mod file_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tolerance_tests;
