//! The gradient of `take` of a csr's rows, on a GPU.
//!
//! O(entries · bits of a column and of a row / 4 + rows of the result), by a sort of the entries by
//! columns and then by the rows that they go to.

use super::{THREADS, places as find_places};
use crate::device::cuda::{Blocks, Cuda, CudaError, Launch, Unit, Word};
use crate::formats::cuda::ArrayArguments;
use crate::formats::{Csr, CsrView, IdsView, Shape, fits_u32};
use crate::kernels::cuda::occurrences::{FoundColumns, sum_up};
use crate::kernels::cuda::{CudaContext, GpuFloat};
use crate::kernels::lookup::Lookup;

/// Rows of a csr: what is at one place is added up in the order of the ids.
pub fn gradient_csr_ids_like_by_rows<T: GpuFloat>(
    out: &mut Csr<T, Cuda>,
    grad: CsrView<'_, T, Cuda>,
    ids: IdsView<'_, Cuda>,
    like: Shape,
    axis: i64,
    clip: bool,
    wrap: bool,
    context: &mut CudaContext,
) {
    let lookup = Lookup::new(&like, axis, clip, wrap);
    let CudaContext { gpu, occurrences, places, list, .. } = context;
    gpu.attempt(out, |out| {
        let (n_rows, n_cols, n) = (lookup.extent, like.row_size(), grad.values().len());
        find_places(gpu, places, ids, lookup)?;
        occurrences.find_groups(gpu, grad, places.as_slice(), n_rows, list)?;
        let (found, (marks, totals, number)) = occurrences.found_and_sums();
        let FoundColumns { columns: taken, runs, entries, rows } = found;
        if taken.is_empty() {
            return out.reset_on(gpu, [n_rows, n_cols]);
        }
        let out_id = if fits_u32(n_cols) { "u32" } else { "u64" };
        let words = words(T::TYPE.name(), grad.columns().type_name(), out_id);
        let unit = unit(&words);
        let kernel = |name| Ok::<_, CudaError>(Launch::new(gpu, gpu.kernel(&unit, name)?));
        let each = |n: usize| Blocks::of(n, THREADS as usize, THREADS);
        marks.resize_for_overwrite(gpu, n + 1, "the first entries of elements")?;
        number.resize_for_overwrite(gpu, 1, "the number of entries")?;

        let launch = kernel("mark_elements")?.reads(entries).reads(rows);
        let launch = launch.reads(places.as_slice()).columns(grad.columns());
        let launch = launch.reads(runs).size(taken.len()).writes(marks.as_slice()).size(n);
        // SAFETY: entries and rows are those of `grad`, each of which has a place, and there is a
        // mark for each entry and one more.
        unsafe { launch.launch(each(n + 1)) }?;
        sum_up(gpu, marks.as_slice(), totals)?;
        let indptr = out.make_row_pointers(gpu, n_rows)?;
        let launch = kernel("element_pointers")?.reads(taken).reads(runs).size(taken.len());
        let launch = launch.reads(marks.as_slice()).writes(indptr);
        let launch = launch.writes(number.as_slice()).size(n_rows);
        // SAFETY: runs end among the entries, of which each has a rank, and there is a row pointer
        // for each row and one more.
        unsafe { launch.launch(each(n_rows + 1)) }?;
        let nnz = number.to_host()?.first().map_or(0, |&number| number as usize);
        let (_, columns, values) = out.make_entries(gpu, n_cols, nnz)?;
        let launch = kernel("sum_elements")?.reads(entries).columns(grad.columns());
        let launch = launch.reads(grad.values()).reads(marks.as_slice()).reads(runs);
        let launch = launch.size(taken.len()).writes_columns(columns).writes(values).size(n);
        // SAFETY: as above, and ranks are below the number of entries that there is room for.
        unsafe { launch.launch(each(n)) }
    });
}

fn words(real: &'static str, id: &'static str, out: &'static str) -> [(&'static str, Word); 3] {
    [("REAL", Word::Name(real)), ("ID", Word::Name(id)), ("OUT_ID", Word::Name(out))]
}

fn unit<'a>(words: &'a [(&'static str, Word)]) -> Unit<'a> {
    let text = include_str!("../csr_gradient.cu");
    Unit { file: "kernels/take/csr_gradient.cu", text, words }
}

/// Visits these units.
pub(super) fn for_each_unit(visit: &mut dyn FnMut(&Unit<'_>)) {
    visit(&unit(&words("f32", "u32", "u32")));
    visit(&unit(&words("f32", "u64", "u64")));
}
