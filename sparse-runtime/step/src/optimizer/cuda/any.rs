//! The updater of a step on a GPU without the type of its rule, so that such a step is compiled
//! once for a model.

use super::{CudaGradient, CudaSamples, CudaTable, NamedRows, RowSums};
use crate::error::Result;
use crate::optimizer::Updater;
use nnz_arrays::device::cuda::Gpu;
use nnz_arrays::kernels::cuda::{CudaContext, GpuFloat};
use nnz_arrays::parameter_memory::Table;
use nnz_optim::UpdateRule;

/// An updater of any rule, as a step on a GPU has it; the functions are those of [`Updater`] with
/// the same names.
pub(crate) trait UpdaterOnGpu<T: GpuFloat> {
    /// Begins a step, if its rule can make one there.
    fn begin_step_on_gpu(&mut self) -> Result<()>;

    fn end_step(&mut self) -> Result<()>;

    fn records_outputs(&self) -> bool;

    fn takes_sums_on_gpu(&self) -> bool;

    fn has_lazy_rows(&self, parameter: usize) -> bool;

    fn forget_mean(&mut self);

    fn samples_to_gpu(
        &mut self,
        samples: &mut CudaSamples<T>,
        columns: usize,
        gpu: &Gpu,
    ) -> Result<()>;

    fn make_room_on_gpu(
        &mut self,
        parameter: usize,
        table: &mut CudaTable<T>,
        host: &Table<T>,
        gpu: &Gpu,
    ) -> Result<()>;

    fn settle_read_on_gpu(
        &mut self,
        parameter: usize,
        table: &mut CudaTable<T>,
        rows: NamedRows<'_>,
        gpu: &Gpu,
    ) -> Result<()>;

    fn apply_sums_on_gpu(
        &mut self,
        parameter: usize,
        table: &mut CudaTable<T>,
        host: &Table<T>,
        sums: &RowSums<'_, T>,
        gpu: &Gpu,
    ) -> Result<()>;

    fn apply_scaled_on_gpu(
        &mut self,
        parameter: usize,
        table: &mut CudaTable<T>,
        host: &Table<T>,
        gradient: CudaGradient<'_, T>,
        factor: f64,
        context: &mut CudaContext,
    ) -> Result<()>;
}

impl<R: UpdateRule, T: GpuFloat> UpdaterOnGpu<T> for Updater<R, T> {
    fn begin_step_on_gpu(&mut self) -> Result<()> {
        self.begin_step()?;
        self.check_for_gpu()
    }

    fn end_step(&mut self) -> Result<()> {
        self.end_step()
    }

    fn records_outputs(&self) -> bool {
        self.records_outputs()
    }

    fn takes_sums_on_gpu(&self) -> bool {
        self.takes_sums_on_gpu()
    }

    fn has_lazy_rows(&self, parameter: usize) -> bool {
        self.has_lazy_rows(parameter)
    }

    fn forget_mean(&mut self) {
        self.forget_mean();
    }

    fn samples_to_gpu(
        &mut self,
        samples: &mut CudaSamples<T>,
        columns: usize,
        gpu: &Gpu,
    ) -> Result<()> {
        self.samples_to_gpu(samples, columns, gpu)
    }

    fn make_room_on_gpu(
        &mut self,
        parameter: usize,
        table: &mut CudaTable<T>,
        host: &Table<T>,
        gpu: &Gpu,
    ) -> Result<()> {
        self.make_room_on_gpu(parameter, table, host, gpu)
    }

    fn settle_read_on_gpu(
        &mut self,
        parameter: usize,
        table: &mut CudaTable<T>,
        rows: NamedRows<'_>,
        gpu: &Gpu,
    ) -> Result<()> {
        self.settle_read_on_gpu(parameter, table, rows, gpu)
    }

    fn apply_sums_on_gpu(
        &mut self,
        parameter: usize,
        table: &mut CudaTable<T>,
        host: &Table<T>,
        sums: &RowSums<'_, T>,
        gpu: &Gpu,
    ) -> Result<()> {
        self.apply_sums_on_gpu(parameter, table, host, sums, gpu)
    }

    fn apply_scaled_on_gpu(
        &mut self,
        parameter: usize,
        table: &mut CudaTable<T>,
        host: &Table<T>,
        gradient: CudaGradient<'_, T>,
        factor: f64,
        context: &mut CudaContext,
    ) -> Result<()> {
        self.apply_scaled_on_gpu(parameter, table, host, gradient, factor, context)
    }
}
