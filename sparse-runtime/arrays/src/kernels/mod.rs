//! The kernels: one folder an operator (or family of operators), one function a storage rule.
//!
//! A kernel's name is its operator and its rule: `dot` with `csr' dense -> row_sparse` is
//! [`dot::cpu::csr_transposed_dense`], and with its result on request as dense
//! [`dot::cpu::csr_transposed_dense_into_dense`]. The operator table of `sparse_core` is the list,
//! and the build breaks where a rule has no kernel. Element-wise operators share [`unary`] and
//! [`binary`], which take the function as a closure; a loss and its gradient share a folder.
//!
//! All have one form: the destination first, the operands in order, the attributes in the order of
//! the row, and the [`Context`] last. A destination takes the result's shape in its own allocation,
//! so that a step in steady state allocates nothing. Operands are canonical by type, and their
//! shapes were checked by the caller: a kernel that is called with shapes that the operator refuses
//! panics or gives an array of no meaning.

// The arguments of a kernel are the operands and attributes of its row.
#![allow(clippy::too_many_arguments)]

#[cfg(test)]
mod batch_sums;
pub(crate) mod broadcast;
mod casts;
#[cfg(target_arch = "x86_64")]
pub mod column_entries;
pub(crate) mod context;
#[cfg(feature = "cuda")]
pub mod cuda;
mod entry_prefetch;
mod extremes;
mod features;
pub mod index_set;
mod joining;
mod layout;
#[cfg(test)]
mod level_tests;
pub mod lookup;
mod losses;
mod ordering;
pub mod parallel;
pub mod row_loss;
pub mod row_numbers;
mod rows;
pub mod scalar;
mod slicing;
mod strided;
mod value;

pub mod binary;
pub mod broadcast_at;
pub mod broadcast_like;
pub mod chain;
pub mod count_stored;
pub mod dot;
pub mod embedding_bag;
pub mod fully_connected;
pub mod one_hot;
pub mod outer;
pub mod pairwise_interaction;
pub mod pick;
pub mod read_rows;
pub mod reduce;
pub mod reduce_to;
pub mod retain;
pub mod sampled_dot;
pub mod select;
pub mod softmax;
pub mod softmax_cross_entropy;
mod table;
pub mod take;
pub mod transpose;
pub mod unary;

sparse_macros::kernel_modules!();

/// The names that the modules of [`sparse_macros::kernel_modules`] are written in.
mod prelude {
    pub(super) use super::Context;
    pub(super) use crate::device::Cpu;
    pub(super) use crate::formats::{
        Csr, CsrView, Dense, DenseView, RowSparse, RowSparseView, Shape,
    };
    pub(super) use sparse_core::element::Float;
    pub(super) use sparse_core::ir::{Axes, List};

    #[cfg(feature = "cuda")]
    pub(super) mod cuda {
        pub(in crate::kernels) use crate::device::cuda::Cuda;
        pub(in crate::kernels) use crate::kernels::cuda::{CudaContext, GpuFloat};
    }
}

pub use context::{Context, MAX_THREADS, Parallel, TooManyThreads};
pub use losses::*;
pub use scalar::ScalarFunctions;
pub use table::{Array, Kernels, Operand, call_kernel};

use crate::formats::FormatError;

/// What a conversion gives. Its only errors are a wrong rank, which the caller has ruled out, and a
/// result that cannot be addressed, at which allocating panics too.
#[track_caller]
fn converted<R>(result: Result<R, FormatError>) -> R {
    match result {
        Ok(converted) => converted,
        Err(error) => panic!("{error}"),
    }
}
