//! What a kernel is given besides its operands: how parallel it may be, and scratch memory.

use super::index_set::IndexSet;
use sparse_core::element::Float;

/// The most threads or workers that can be asked for, anywhere in this library: more are refused by
/// an error that names the number.
pub const MAX_THREADS: usize = 1024;

/// How many threads a kernel may use. The result has the same bits whatever this says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Parallel {
    /// The calling thread.
    #[default]
    Sequential,
    /// At most this number of threads: 0 is 1, and a kernel or a step uses 32 at most. Trainers,
    /// readers and streams refuse more than [`MAX_THREADS`].
    Threads(usize),
}

impl Parallel {
    /// The number of threads that may be used, at least 1.
    pub fn n_threads(self) -> usize {
        match self {
            Parallel::Sequential => 1,
            Parallel::Threads(threads) => threads.max(1),
        }
    }

    /// Refuses more than [`MAX_THREADS`]; `what` was told the number.
    pub fn check(self, what: &'static str) -> Result<(), TooManyThreads> {
        match self {
            Parallel::Sequential => Ok(()),
            Parallel::Threads(found) => TooManyThreads::check(what, found),
        }
    }
}

/// More threads than [`MAX_THREADS`] were asked for.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("`{what}` is told to use {found} threads, but at most {MAX_THREADS} can be had")]
#[non_exhaustive]
pub struct TooManyThreads {
    /// The method that was told the number.
    pub what: &'static str,
    /// The number.
    pub found: usize,
}

sparse_core::debug_of_errors!(TooManyThreads);

impl TooManyThreads {
    /// Refuses more threads than [`MAX_THREADS`] for the method `what`.
    ///
    /// # Errors
    ///
    /// This error.
    pub fn check(what: &'static str, found: usize) -> Result<(), Self> {
        if found > MAX_THREADS { Err(TooManyThreads { what, found }) } else { Ok(()) }
    }
}

/// The last argument of every kernel. One is kept for as long as kernels are called, so that
/// scratch memory is allocated for the largest call only.
///
/// ```
/// use nnz::formats::{Csr, Dense, RowSparse};
/// use nnz::kernels::{Context, dot};
/// let x = Csr::from_rows(4, [vec![(1, 2.0f32)], vec![(1, 1.0), (3, 3.0)]])?;
/// let gradient = Dense::from_rows(&[[10.0f32], [1.0]]);
/// let mut context = Context::default();
/// let mut out = RowSparse::default();
/// dot::cpu::csr_transposed_dense(&mut out, x.view(), gradient.view(), false, &mut context);
/// assert_eq!((out.indices(), out.values()), (&[1, 3][..], &[21.0, 3.0][..]));
/// # Ok::<(), nnz::formats::FormatError>(())
/// ```
#[derive(Debug, Default)]
pub struct Context {
    /// How many threads a kernel may use.
    pub parallel: Parallel,
    /// Which rows or columns occur, and their positions.
    pub(crate) ids: IndexSet,
    /// Sums of any element type.
    pub(crate) sums: Vec<f64>,
    /// Elements of other types than `f64`, as `f64`.
    pub(crate) factors: Vec<f64>,
    /// Ids or values in order, and where each came from.
    pub(crate) order: Vec<(usize, usize)>,
    /// Values along an axis and their positions.
    pub(crate) ranked: Vec<(f64, usize)>,
    /// Entries of a row: column, where from, value.
    pub(crate) entries: Vec<(usize, usize, f64)>,
    /// Elements of halves, in their accumulator.
    pub(crate) wide: Vec<f32>,
}

/// As many threads, and no memory yet.
impl Clone for Context {
    fn clone(&self) -> Self {
        Context { parallel: self.parallel, ..Context::default() }
    }
}

/// Lets `add` add to sums in `f64`, which are 0 at first, and rounds each once: sums over a batch
/// may be of a million terms.
pub(crate) fn in_sums<T: Float>(out: &mut [T], sums: &mut Vec<f64>, add: impl FnOnce(&mut [f64])) {
    sums.clear();
    sums.resize(out.len(), 0.0);
    add(sums);
    round(out, sums);
}

/// Rounds sums to elements.
pub(crate) fn round<T: Float>(out: &mut [T], sums: &[f64]) {
    out.iter_mut().zip(sums).for_each(|(out, sum)| *out = T::of(*sum));
}
