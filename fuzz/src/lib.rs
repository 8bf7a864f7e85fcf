//! What fuzzing does with bytes: one function a target.
//!
//! Each takes any bytes, must not panic but for a broken promise of the library, and says whether
//! they were something valid. The fuzz targets call them, and so does the test `fuzz` of the
//! library, which includes this file.

#![allow(clippy::unwrap_used)]

mod arrays;
mod files;

pub use arrays::{csr, row_sparse};
pub use files::{
    cache, checkpoint, compressed, delimited, libffm, libsvm, matrix_market, npz, ratings, stream,
    vowpal_wabbit, words,
};

/// A target by name.
pub type Target = (&'static str, fn(&[u8]) -> bool);

/// All targets; the kept inputs of each are in the folder of its name in `corpus`.
pub const TARGETS: &[Target] = &[
    ("libsvm", libsvm),
    ("matrix_market", matrix_market),
    ("npz", npz),
    ("checkpoint", checkpoint),
    ("csr", csr),
    ("row_sparse", row_sparse),
    ("delimited", delimited),
    ("ratings", ratings),
    ("libffm", libffm),
    ("vowpal_wabbit", vowpal_wabbit),
    ("words", words),
    ("stream", stream),
    ("cache", cache),
    ("compressed", compressed),
];
