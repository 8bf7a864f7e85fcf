//! The position of the smallest element on a GPU.

use crate::device::cuda::Cuda;
use crate::formats::{CsrView, Dense, DenseView, RowSparseView};
use crate::kernels::argmax::cuda::{of_csr, of_dense, of_row_sparse, positions};
use crate::kernels::cuda::{CudaContext, GpuFloat};
use sparse_core::ir::Axes;

positions!(largest = false);
