//! What a kernel of a GPU is given besides its operands.

use super::occurrences::Occurrences;
use crate::device::cuda::{CudaBuffer, CudaError, Gpu};

/// The last argument of every kernel of [`Cuda`](crate::device::cuda::Cuda): the GPU, and scratch
/// memory on it.
///
/// A kernel returns before its work is done, and does not say whether it will be. What fails is
/// reported by the next [`synchronize`](CudaContext::synchronize) or `to_cpu`; until then nothing
/// more is done, and destinations store nothing.
///
/// ```
/// use nnz::device::cuda::{CudaError, Gpu};
/// use nnz::formats::{Csr, Dense};
/// use nnz::kernels::{cuda::CudaContext, dot};
/// # fn main() -> Result<(), CudaError> {
/// let gpu = match Gpu::open(0) {
///     Err(CudaError::LibraryMissing | CudaError::NoDevice) => return Ok(()),
///     gpu => gpu?,
/// };
/// let x = Csr::pattern(4, vec![0, 2, 3], vec![1u32, 3, 0]).expect("canonical").to_gpu(&gpu)?;
/// let w = Dense::from_rows(&[[1.0f32], [2.0], [3.0], [4.0]]).to_gpu(&gpu)?;
/// let mut context = CudaContext::new(&gpu);
/// let mut out = Dense::default();
/// dot::cuda::csr_dense(&mut out, x.view(), w.view(), false, &mut context);
/// assert_eq!(out.to_cpu()?.values(), [6.0, 1.0]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct CudaContext {
    pub(crate) gpu: Gpu,
    /// Those of the csr that was last read transposed, or of the ids whose gradient was last taken.
    pub occurrences: Occurrences,
    /// The positions that ids stand for, or those of elements in order.
    pub places: CudaBuffer<u64>,
    /// Rows that a result may store, or positions that go on to the next step.
    pub(crate) list: CudaBuffer<u64>,
    /// Results of parts of a reduction, and sums that a gradient reads.
    pub partial: CudaBuffer<f64>,
}

impl CudaContext {
    /// A context without scratch memory.
    pub fn new(gpu: &Gpu) -> Self {
        CudaContext {
            gpu: gpu.clone(),
            occurrences: Occurrences::default(),
            places: CudaBuffer::default(),
            list: CudaBuffer::default(),
            partial: CudaBuffer::default(),
        }
    }

    /// The GPU.
    pub fn gpu(&self) -> &Gpu {
        &self.gpu
    }

    /// Waits until everything that was asked for is done.
    ///
    /// # Errors
    ///
    /// As [`Gpu::synchronize`].
    pub fn synchronize(&self) -> Result<(), CudaError> {
        self.gpu.synchronize()
    }
}
