//! Sums of rows of a table on a GPU, and their gradient. The order of a sum is that of the entries.

use crate::device::cuda::{
    Blocks, Cuda, CudaBuffer, CudaError, CudaSlice, Gpu, Launch, Unit, Word,
};
use crate::formats::cuda::ArrayArguments;
use crate::formats::{CsrView, Dense, DenseView, RowSparseView};
use crate::kernels::cuda::{CudaContext, GpuFloat, Rows, lanes};
use crate::kernels::dot::cuda::sum_shares;
use sparse_core::element::{Factor, Stored, Unit as Ones};

const THREADS: u32 = 256;

/// Sums of rows of a dense table.
pub fn csr_dense<T: GpuFloat, V: Factor<T>>(
    out: &mut Dense<T, Cuda>,
    bags: CsrView<'_, V, Cuda>,
    table: DenseView<'_, T, Cuda>,
    mean: bool,
    weighted: bool,
    context: &mut CudaContext,
) {
    csr_row_sparse(out, bags, RowSparseView::all_on_gpu(table), mean, weighted, context);
}

/// Sums of rows of a row_sparse table; one that is not stored is zero.
pub fn csr_row_sparse<T: GpuFloat, V: Factor<T>>(
    out: &mut Dense<T, Cuda>,
    bags: CsrView<'_, V, Cuda>,
    table: RowSparseView<'_, T, Cuda>,
    mean: bool,
    weighted: bool,
    context: &mut CudaContext,
) {
    let gpu = &context.gpu().clone();
    let shares = &mut context.partial;
    gpu.attempt(out, |out| {
        let (n_bags, width) = (bags.n_rows(), table.shape().row_size());
        let out = out.reset_on(gpu, [n_bags, width].into())?;
        let words = words(T::TYPE.name(), V::TYPE.name(), bags.columns().type_name());
        let shares = find_shares::<T, V>(gpu, shares, bags, mean, weighted)?;
        let launch = Launch::new(gpu, gpu.kernel(&unit(&words), "embedding_bag")?);
        let launch = launch.csr(bags).rows(table).reads(shares).size(usize::from(weighted));
        let lanes = lanes(width);
        let launch = launch.writes(out).size(n_bags).size(width).size(lanes);
        // SAFETY: rows that are stored are below their number, there is a share for each bag where
        // there are any, and a row of `out`.
        unsafe { launch.launch(Blocks::of(n_bags, THREADS as usize / lanes, THREADS)) }
    });
}

/// The gradient with respect to the table: a row for each column that occurs.
pub fn gradient_csr_dense<T: GpuFloat, V: Factor<T>, O: Rows<T>>(
    out: &mut O,
    bags: CsrView<'_, V, Cuda>,
    grad: DenseView<'_, T, Cuda>,
    mean: bool,
    weighted: bool,
    context: &mut CudaContext,
) {
    let gpu = &context.gpu().clone();
    let CudaContext { occurrences, partial: shares, .. } = context;
    gpu.attempt(out, |out| {
        let width = grad.shape().row_size();
        let shares = find_shares::<T, V>(gpu, shares, bags, mean, weighted)?;
        occurrences.find(gpu, bags)?;
        let columns = occurrences.columns();
        let (sums, targets) = out.make_room(gpu, [bags.n_cols(), width].into(), columns)?;
        if weighted {
            sum_shares(gpu, sums, bags.values(), shares, occurrences, grad, targets)
        } else {
            let ones = CudaSlice::<Ones>::default();
            sum_shares(gpu, sums, ones, shares, occurrences, grad, targets)
        }
    });
}

/// What each entry of a bag is multiplied by, besides its value if that is asked for; nothing where
/// that is 1.
pub fn find_shares<'s, T: GpuFloat, V: Stored>(
    gpu: &Gpu,
    shares: &'s mut CudaBuffer<f64>,
    bags: CsrView<'_, V, Cuda>,
    mean: bool,
    weighted: bool,
) -> Result<CudaSlice<'s, f64>, CudaError> {
    if !mean {
        return Ok(CudaSlice::default());
    }
    let words = words(T::TYPE.name(), V::TYPE.name(), bags.columns().type_name());
    let n_bags = bags.n_rows();
    shares.resize_for_overwrite(gpu, n_bags, "the shares of entries of bags")?;
    let launch = Launch::new(gpu, gpu.kernel(&unit(&words), "shares")?);
    let launch = launch.reads(bags.starts()).reads(bags.ends()).reads(bags.values());
    let launch = launch.size(usize::from(weighted)).writes(shares.as_slice()).size(n_bags);
    // SAFETY: there is a share for each bag.
    unsafe { launch.launch(Blocks::of(n_bags, THREADS as usize, THREADS)) }?;
    Ok(shares.as_slice())
}

fn words(real: &'static str, value: &'static str, id: &'static str) -> [(&'static str, Word); 3] {
    [("REAL", Word::Name(real)), ("VALUE", Word::Name(value)), ("ID", Word::Name(id))]
}

fn unit<'a>(words: &'a [(&'static str, Word)]) -> Unit<'a> {
    let text = include_str!("embedding_bag.cu");
    Unit { file: "kernels/embedding_bag/embedding_bag.cu", text, words }
}

/// Visits these units.
pub(crate) fn for_each_unit(visit: &mut dyn FnMut(&Unit<'_>)) {
    visit(&unit(&words("f32", "f32", "u32")));
    visit(&unit(&words("f32", "unit", "u64")));
}
