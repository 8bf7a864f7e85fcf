//! What kernels that compute a batch row by row up to the derivatives of its loss have in common:
//! their results, and which rows a block has.

use nnz_arrays::device::cuda::{Cuda, CudaBuffer, CudaError, CudaSlice, Gpu};
use nnz_arrays::formats::{Dense, Shape};
use nnz_arrays::kernels::cuda::GpuFloat;
use nnz_device::cuda::{Blocks, Destination};

/// As the texts have it.
const THREADS: u32 = 256;

/// At most so many parts, whose losses one thread adds.
const MOST_PARTS: usize = 1 << 10;

/// What is computed of a batch.
pub(crate) struct RowResults<'o, T: GpuFloat> {
    /// The scores, where somebody reads them.
    pub(crate) scores: Option<&'o mut Dense<T, Cuda>>,
    /// The mean of the losses, of rank 0.
    pub(crate) loss: &'o mut Dense<T, Cuda>,
    /// Its derivatives by the scores.
    pub(crate) gradient: &'o mut Dense<T, Cuda>,
}

impl<T: GpuFloat> RowResults<'_, T> {
    /// Memory for scores of this shape, which is nothing where nobody reads them, for the loss, and
    /// for the derivatives.
    pub(crate) fn reset_on(
        &mut self,
        gpu: &Gpu,
        shape: Shape,
    ) -> Result<[CudaSlice<'_, T>; 3], CudaError> {
        let scores = match &mut self.scores {
            Some(scores) => scores.reset_on(gpu, shape)?,
            None => CudaSlice::default(),
        };
        let loss = self.loss.reset_on(gpu, Shape::from([]))?;
        Ok([scores, loss, self.gradient.reset_on(gpu, shape)?])
    }
}

impl<T: GpuFloat> Destination for RowResults<'_, T> {
    fn store_nothing(&mut self, gpu: &Gpu) {
        if let Some(scores) = &mut self.scores {
            scores.store_nothing(gpu);
        }
        self.loss.store_nothing(gpu);
        self.gradient.store_nothing(gpu);
    }
}

/// The rows of a batch, cut into a run for each block, whose losses are summed by themselves. It
/// depends on sizes alone.
#[derive(Clone, Copy)]
pub(crate) struct Run {
    /// The rows of each but the last.
    pub(crate) rows: usize,
    blocks: usize,
}

impl Run {
    /// A group of so many lanes has a row at a time.
    pub(crate) fn new(n_rows: usize, lanes: usize) -> Self {
        let rows = n_rows.div_ceil(MOST_PARTS).max(THREADS as usize / lanes);
        Run { rows, blocks: n_rows.div_ceil(rows) }
    }

    /// Makes room for a sum of each.
    pub(crate) fn reset_on(
        &self,
        gpu: &Gpu,
        partial: &mut CudaBuffer<f64>,
    ) -> Result<(), CudaError> {
        partial.resize_for_overwrite(gpu, self.blocks, "partial sums of a loss")
    }

    pub(crate) fn blocks(&self) -> Blocks {
        Blocks { x: self.blocks, y: 1, threads: THREADS }
    }
}
