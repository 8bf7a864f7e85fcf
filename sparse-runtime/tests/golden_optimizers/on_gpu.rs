//! The recorded steps by the kernels of a GPU, emulated or with `NNZ_TEST_GPU=1` a real one.

#[path = "../cuda/device.rs"]
#[allow(dead_code, reason = "the tests of kernels ask for more of it")]
mod device;

use super::{Device, Tensor, each_state, run_file};
use nnz_optim::UpdateRule;
use sparse_core::storage::Storage;
use sparse_runtime::Result;
use sparse_runtime::formats::{Dense, Shape};
use sparse_runtime::kernels::cuda::CudaContext;
use sparse_runtime::optimizer::Updater;
use sparse_runtime::optimizer::cuda::{CudaGradient, CudaTable};
use sparse_runtime::table::Table;

#[test]
fn opt_sgd() {
    run_file::<OnGpu>("opt_sgd");
}

#[test]
fn opt_adam() {
    run_file::<OnGpu>("opt_adam");
}

#[test]
fn opt_adaptive() {
    run_file::<OnGpu>("opt_adaptive");
}

#[test]
fn opt_dense() {
    run_file::<OnGpu>("opt_dense");
}

/// Weights and states on a GPU, and the table of the host that they come back to.
struct OnGpu {
    context: CudaContext,
    table: CudaTable<f32>,
    host: Table<f32>,
}

impl Device for OnGpu {
    const SUFFIX: &'static str = " on a GPU";

    fn new(values: &[f32], row_size: usize) -> Result<Self> {
        let context = CudaContext::new(&device::gpu());
        let weights = Dense::new([values.len() / row_size, row_size], values.to_vec())?;
        let table = CudaTable::new(weights.to_gpu(context.gpu())?);
        Ok(OnGpu { context, table, host: Table::from_values(row_size, values) })
    }

    fn check<R: UpdateRule>(updater: &Updater<R, f32>) -> Result<()> {
        Ok(updater.check_for_gpu()?)
    }

    fn apply<R: UpdateRule>(
        &mut self,
        updater: &mut Updater<R, f32>,
        gradient: &Tensor,
    ) -> Result<()> {
        let OnGpu { context, table, host } = self;
        let gpu = context.gpu().clone();
        if gradient.storage == Storage::Dense {
            let dense = Dense::new(Shape::new(&gradient.shape), gradient.data.clone())?;
            let there = dense.to_gpu(&gpu)?;
            let gradient = CudaGradient::Dense(there.view());
            return Ok(updater.apply_on_gpu(0, table, host, gradient, context)?);
        }
        let there = gradient.row_sparse()?.to_gpu(&gpu)?;
        let gradient = CudaGradient::RowSparse(there.view());
        Ok(updater.apply_on_gpu(0, table, host, gradient, context)?)
    }

    fn read<R: UpdateRule>(
        &mut self,
        updater: &mut Updater<R, f32>,
    ) -> Result<(Vec<f32>, Vec<Vec<f32>>)> {
        updater.states_from_gpu(0, &mut self.table, &mut self.host)?;
        self.host.values_mut().copy_from_slice(self.table.weights.to_cpu()?.values());
        updater.flush(0, &mut self.host)?;
        // From where they were brought up to date they go on.
        let shape = *self.table.weights.shape();
        let weights = Dense::new(shape, self.host.values().to_vec())?;
        self.table = CudaTable::new(weights.to_gpu(self.context.gpu())?);
        let states = each_state(&updater.states(0, &self.host)?);
        Ok((self.host.values().to_vec(), states))
    }
}
