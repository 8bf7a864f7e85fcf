//! Rows of LibSVM text that are read on request: in any order, with repeated, unknown or hashed
//! indices, and without a label.

use super::super::Hashing;
use super::{IndexBase, Reader};
use sparse_core::element::Float;

/// Rows that are read on request alone.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tolerance {
    /// The indices of a row may be in any order.
    pub(super) unsorted: bool,
    /// The values of an index that occurs more than once in a row are added.
    pub(super) repeated: bool,
    /// Indices beyond the declared number of features are left out.
    pub(super) unknown: bool,
    /// What stands before the first entry of a row is not looked at, and may be missing.
    pub(super) any_label: bool,
    /// Indices are folded into the columns of a hash.
    pub(super) hashing: Option<Hashing>,
}

impl<T: Float> Reader<T> {
    /// Leaves out entries whose index is beyond the [declared](Self::n_features) number of
    /// features, as those that a model has not seen. If the base is to be detected, an index that
    /// is beyond for one of the bases is an error still.
    ///
    /// ```
    /// use nnz::data::libsvm::{IndexBase, Reader};
    ///
    /// let reader = Reader::new().index_base(IndexBase::One).n_features(8).ignore_unknown();
    /// let data = reader.read_bytes("inline", b"-1 4:1 9:1\n")?;
    /// let features = data.features().unwrap();
    /// assert_eq!((features.n_cols(), features.nnz()), (8, 1));
    /// # Ok::<(), nnz::Error>(())
    /// ```
    #[must_use]
    pub fn ignore_unknown(mut self) -> Self {
        self.tolerance.unknown = true;
        self
    }

    /// Reads rows whose indices are in any order. Such a row costs a sort.
    #[must_use]
    pub fn sort_unsorted(mut self) -> Self {
        self.tolerance.unsorted = true;
        self
    }

    /// Adds the values of an index that occurs more than once in a row; next to each other, unless
    /// rows may be [unsorted](Self::sort_unsorted).
    #[must_use]
    pub fn add_repeated(mut self) -> Self {
        self.tolerance.repeated = true;
        self
    }

    /// Reads samples to score: what stands before the first `index:value` of a line, such as a
    /// label, a `?` or an id, is not looked at, and may be missing. The data has no label.
    ///
    /// ```
    /// use nnz::data::libsvm::Reader;
    ///
    /// let text = b"? 1:1\nid7 2:1\n1:1 2:1\n";
    /// let data = Reader::new().without_labels().read_bytes("inline", text)?;
    /// assert_eq!((data.n_rows(), data.columns().len()), (3, 1));
    /// # Ok::<(), nnz::Error>(())
    /// ```
    #[must_use]
    pub fn without_labels(mut self) -> Self {
        self.tolerance.any_label = true;
        self
    }

    /// Folds indices into the columns of a hash, for indices that are hashes of 63 bits themselves.
    /// Values that meet in a column are added. Columns count from zero.
    ///
    /// ```
    /// use nnz::data::{Hashing, libsvm::Reader};
    ///
    /// let reader = Reader::new().hashed(Hashing::new(18)?);
    /// let data = reader.read_bytes("inline", b"1 72048431380967004:1 9223372036854775806:2\n")?;
    /// let features = data.features().unwrap();
    /// assert_eq!((features.n_cols(), features.nnz()), (1 << 18, 2));
    /// # Ok::<(), nnz::Error>(())
    /// ```
    #[must_use]
    pub fn hashed(mut self, hashing: Hashing) -> Self {
        self.tolerance.hashing = Some(hashing);
        self.index_base(IndexBase::Zero).n_features(hashing.n_columns())
    }
}
