//! What a kernel is given besides its operands: how parallel it may be, and scratch memory.

use super::index_set::IndexSet;

/// How many threads a kernel may use. The result has the same bits whatever this says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Parallel {
    /// The calling thread.
    #[default]
    Sequential,
    /// So many threads.
    Threads(usize),
}

/// The last argument of every kernel. One is kept for as long as kernels are called, so that scratch memory is
/// allocated for the largest call only.
///
/// ```
/// use sparse_runtime::formats::{Csr, Dense, RowSparse};
/// use sparse_runtime::kernels::{Context, dot};
/// let x = Csr::from_rows(4, [vec![(1, 2.0f32)], vec![(1, 1.0), (3, 3.0)]])?;
/// let gradient = Dense::from_rows(&[[10.0f32], [1.0]]);
/// let mut context = Context::default();
/// let mut out = RowSparse::default();
/// dot::cpu::csr_transposed_dense(&mut out, x.view(), gradient.view(), false, &mut context);
/// assert_eq!((out.indices(), out.values()), (&[1, 3][..], &[21.0, 3.0][..]));
/// # Ok::<(), sparse_runtime::formats::FormatError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Context {
    /// How many threads a kernel may use.
    pub parallel: Parallel,
    /// Which rows or columns occur, and their positions.
    pub(crate) ids: IndexSet,
    /// Sums of any element type.
    pub(crate) sums: Vec<f64>,
    /// Ids or values in order, and where each came from.
    pub(crate) order: Vec<(usize, usize)>,
    /// Values along an axis and their positions.
    pub(crate) ranked: Vec<(f64, usize)>,
    /// Entries of a row: column, where from, value.
    pub(crate) entries: Vec<(usize, usize, f64)>,
    /// Elements of halves, in their accumulator.
    pub(crate) wide: Vec<f32>,
}
