//! The kernels: one folder an operator (or family of operators), one function a storage rule.
//!
//! A kernel's name is its operator and its rule: `dot` with `csr' dense -> row_sparse` is
//! [`dot::cpu::csr_transposed_dense`], and with its result on request as dense
//! [`dot::cpu::csr_transposed_dense_into_dense`]. The operator table of `sparse_core` is the list, and the build
//! breaks where a rule has no kernel. Element-wise operators share [`unary`] and [`binary`], which take the
//! function as a closure; a loss and its gradient share a folder.
//!
//! All have one form: the destination first, the operands in order, the attributes in the order of the row, and the
//! [`Context`] last. A destination takes the result's shape in its own allocation, so that a step in steady state
//! allocates nothing. Operands are canonical by type, and their shapes were checked by the caller: a kernel that
//! is called with shapes that the operator refuses panics or gives an array of no meaning.

// The arguments of a kernel are the operands and attributes of its row.
#![allow(clippy::too_many_arguments)]

mod ahead;
#[cfg(test)]
mod batch_sums;
pub(crate) mod broadcast;
pub(crate) mod context;
#[cfg(feature = "cuda")]
pub mod cuda;
mod features;
pub(crate) mod index_set;
pub(crate) mod lookup;
mod order;
#[cfg(target_arch = "x86_64")]
pub(crate) mod own_entries;
pub(crate) mod parallel;
mod parts;
mod position;
pub mod row_loss;
mod rows;
pub mod scalar;
mod strided;
mod value;

pub mod absolute_error;
pub mod argmax;
pub mod argmin;
pub mod argsort;
pub mod binary;
pub mod broadcast_at;
pub mod broadcast_like;
pub mod chain;
pub mod concat;
pub mod count_stored;
pub mod csr;
pub mod dense;
pub mod dot;
pub mod embedding;
pub mod embedding_bag;
pub mod embedding_bag_gradient;
pub mod expand_dims;
pub mod flatten;
pub mod fully_connected;
pub mod hinge;
pub mod huber;
pub mod log_softmax;
pub mod logistic;
pub mod logsumexp;
pub mod one_hot;
pub mod order_gradient;
pub mod outer;
pub mod pairwise_interaction;
pub mod pairwise_interaction_gradient;
pub mod pairwise_interaction_slope;
pub mod permute;
pub mod pick;
pub mod pick_gradient;
pub mod poisson;
pub mod read_rows;
pub mod reduce;
pub mod reduce_to;
pub mod repeat;
pub mod repeat_gradient;
pub mod reshape;
pub mod reshape_like;
pub mod retain;
pub mod reverse;
pub mod row_sparse;
pub mod sampled_dot;
pub mod select;
pub mod slice;
pub mod slice_axis;
pub mod slice_axis_gradient;
pub mod slice_gradient;
pub mod slice_like;
pub mod slice_like_gradient;
pub mod softmax;
pub mod softmax_cross_entropy;
pub mod softmax_gradient;
pub mod sort;
pub mod squared_error;
pub mod squared_hinge;
pub mod squeeze;
pub mod stack;
pub mod stack_next;
pub mod swap_axes;
mod table;
pub mod take;
pub mod take_gradient;
pub mod tile;
pub mod tile_gradient;
pub mod topk;
pub mod topk_ids;
pub mod transpose;
pub mod unary;
pub mod zeros_like;

pub use context::{Context, MAX_THREADS, Parallel, TooManyThreads};
pub use scalar::ScalarFunctions;
pub use table::{Array, Kernels, Operand, call_kernel};

use crate::formats::FormatError;

/// What a conversion gives. Its only errors are a wrong rank, which the caller has ruled out, and a result that
/// cannot be addressed, at which allocating panics too.
#[track_caller]
fn converted<R>(result: Result<R, FormatError>) -> R {
    match result {
        Ok(converted) => converted,
        Err(error) => panic!("{error}"),
    }
}
