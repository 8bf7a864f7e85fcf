//! Rows with a one where an id says, on a GPU.

use crate::device::cuda::{Cuda, CudaError, CudaSlice};
use crate::formats::{Csr, Dense, IdsView};
use crate::kernels::cuda::csr_rows::{self, Source};
use crate::kernels::cuda::{CudaContext, GpuFloat};
use crate::kernels::lookup::Lookup;
use crate::kernels::{pick, take};

/// An array on a GPU that may be the result.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an array on a GPU that `one_hot` gives",
    note = "it gives a `Csr<{T}, Cuda>` or a `Dense<{T}, Cuda>`"
)]
#[allow(private_bounds, reason = "what a failed kernel leaves is the library's business")]
pub trait OneHot<T: GpuFloat>: crate::device::cuda::Destination {
    #[doc(hidden)]
    fn write(
        &mut self,
        ids: IdsView<'_, Cuda>,
        depth: usize,
        context: &mut CudaContext,
    ) -> Result<(), CudaError>;
}

impl<T: GpuFloat> OneHot<T> for Csr<T, Cuda> {
    fn write(
        &mut self,
        ids: IdsView<'_, Cuda>,
        depth: usize,
        context: &mut CudaContext,
    ) -> Result<(), CudaError> {
        let CudaContext { gpu, occurrences, places, .. } = context;
        take::cuda::places(gpu, places, ids, lookup(depth))?;
        let source = Source::ones(places.as_slice(), depth);
        csr_rows::write(gpu, self, [ids.len(), depth], source, occurrences.sums())
    }
}

impl<T: GpuFloat> OneHot<T> for Dense<T, Cuda> {
    fn write(
        &mut self,
        ids: IdsView<'_, Cuda>,
        depth: usize,
        context: &mut CudaContext,
    ) -> Result<(), CudaError> {
        let gpu = context.gpu();
        let out = self.zeros_on(gpu, [ids.len(), depth].into())?;
        // A matrix of a row for each id, in which each picks a column.
        pick::cuda::place(gpu, out, CudaSlice::default(), ids, lookup(depth))
    }
}

/// A row for each id.
pub fn ids<T: GpuFloat, O: OneHot<T>>(
    out: &mut O,
    ids: IdsView<'_, Cuda>,
    depth: i64,
    context: &mut CudaContext,
) {
    let gpu = &context.gpu().clone();
    let depth = usize::try_from(depth).unwrap_or(0);
    gpu.attempt(out, |out| out.write(ids, depth, context));
}

fn lookup(depth: usize) -> Lookup {
    Lookup::new(&[depth].into(), 0, false, false)
}
