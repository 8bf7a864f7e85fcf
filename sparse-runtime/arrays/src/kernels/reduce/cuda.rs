//! Reductions on a GPU.

use super::Over;
use super::cpu::{count, reduced};
use crate::device::cuda::{
    Blocks, Cuda, CudaBuffer, CudaError, CudaSlice, Gpu, Launch, Unit, Word,
};
use crate::formats::cuda::ArrayArguments;
use crate::formats::{CsrView, Dense, DenseView, MAX_RANK, RowSparse, RowSparseView, Shape};
use crate::kernels::cuda::row_lists::Stored;
use crate::kernels::cuda::{CudaContext, GpuFloat, Numbers};
use sparse_core::ir::{self, Attributes};
use sparse_core::operators::{Combine, Kind, Operator, Reduction, find};

const THREADS: u32 = 256;

/// How many elements a part of a reduction has at least, for each thread that works on it.
const LEAST_PART: usize = 64;

/// At most so many parts, of a grid's second axis.
const MOST_PARTS: usize = 1024;

/// The formulas of a reduction of the operator table, with its attributes.
#[derive(Clone, Copy, Debug)]
pub struct ReduceFunction {
    operator: &'static Operator,
    reduction: Reduction,
    numbers: Numbers,
}

impl ReduceFunction {
    /// Those of an operator; `None` for one that is no reduction.
    pub fn new(operator: &'static Operator, attributes: &Attributes) -> Option<Self> {
        let Kind::Reduction(reduction) = operator.kind else { return None };
        Some(ReduceFunction { operator, reduction, numbers: Numbers::new(operator, attributes)? })
    }
}

/// Of a dense array.
pub fn dense<T: GpuFloat>(
    out: &mut Dense<T, Cuda>,
    x: DenseView<'_, T, Cuda>,
    over: Over,
    function: ReduceFunction,
    context: &mut CudaContext,
) {
    let CudaContext { gpu, partial, .. } = context;
    gpu.attempt(out, |out| {
        let n = count(x.shape(), over) as usize;
        let out = out.reset_on(gpu, reduced(x.shape(), over, over.keepdims))?;
        function.write(gpu, out, x, over, Whole::of(n), partial)
    });
}

/// What the elements that are stored are a part of.
#[derive(Clone, Copy)]
struct Whole<'a> {
    /// How many elements each result is made of.
    n: usize,
    /// Whether some of them are not stored.
    zeros: bool,
    /// Of which rows the results are, if not of the first ones, and how many each row has.
    rows: CudaSlice<'a, u64>,
    of_row: usize,
}

impl Whole<'_> {
    fn of(n: usize) -> Self {
        Whole { n, zeros: false, rows: CudaSlice::default(), of_row: 1 }
    }
}

/// Of a row_sparse array.
pub fn row_sparse<T: GpuFloat>(
    out: &mut Dense<T, Cuda>,
    x: RowSparseView<'_, T, Cuda>,
    over: Over,
    function: ReduceFunction,
    context: &mut CudaContext,
) {
    let CudaContext { gpu, partial, .. } = context;
    gpu.attempt(out, |out| {
        let n = count(x.shape(), over) as usize;
        let shape = reduced(x.shape(), over, over.keepdims);
        let out = out.reset_on(gpu, shape)?;
        let (rows, n_stored) = x.stored_on_gpu();
        let zeros = n > 0 && n_stored < x.shape().n_rows();
        let stored = DenseView::stored_on_gpu(x);
        if over.reduces(0, x.shape().rank()) {
            return function.write(
                gpu,
                out,
                stored,
                over,
                Whole { zeros, ..Whole::of(n) },
                partial,
            );
        }
        function.fill::<T>(gpu, out, n > 0, n)?;
        let of_row = reduced(x.shape(), over, true).with_n_rows(1).size();
        function.write(gpu, out, stored, over, Whole { rows, of_row, ..Whole::of(n) }, partial)
    });
}

/// Of a row_sparse array over axes other than the first: row_sparse.
pub fn row_sparse_by_rows<T: GpuFloat>(
    out: &mut RowSparse<T, Cuda>,
    x: RowSparseView<'_, T, Cuda>,
    over: Over,
    function: ReduceFunction,
    context: &mut CudaContext,
) {
    let CudaContext { gpu, partial, occurrences, list, .. } = context;
    gpu.attempt(out, |out| {
        Stored::Of(x).find(x.shape().n_rows(), list, occurrences, gpu)?;
        let shape = reduced(x.shape(), over, over.keepdims);
        let out = out.store_rows(gpu, shape, occurrences.columns())?;
        let n = count(x.shape(), over) as usize;
        function.write(gpu, out, DenseView::stored_on_gpu(x), over, Whole::of(n), partial)
    });
}

/// Of a csr matrix.
pub fn csr<T: GpuFloat>(
    out: &mut Dense<T, Cuda>,
    x: CsrView<'_, T, Cuda>,
    over: Over,
    function: ReduceFunction,
    context: &mut CudaContext,
) {
    let CudaContext { gpu, partial, occurrences, .. } = context;
    let (n_rows, n_cols, n_stored) = (x.n_rows(), x.n_cols(), x.values().len());
    let shape = Shape::from([n_rows, n_cols]);
    let warps = Blocks::of(n_rows, THREADS as usize / 32, THREADS);
    gpu.attempt(out, |out| {
        let n = count(&shape, over) as usize;
        let out = out.reset_on(gpu, reduced(&shape, over, over.keepdims))?;
        let kernel = |name| {
            let words = function.words(T::TYPE.name(), x.columns().type_name(), [1, 1], 1);
            Ok::<_, CudaError>(Launch::new(gpu, gpu.kernel(&unit(&words), name)?))
        };
        match (over.reduces(0, 2), over.reduces(1, 2)) {
            (true, true) => {
                let all = Over { axis: ir::Axes::all(), keepdims: false, exclude: false };
                let whole = Whole { zeros: n_stored < n, ..Whole::of(n) };
                let stored = DenseView::listed_on_gpu(x.values());
                function.write(gpu, out, stored, all, whole, partial)
            }
            (false, true) => {
                let launch = kernel("reduce_rows")?.reads(x.starts()).reads(x.ends());
                let launch = function.numbers.read_by(launch.reads(x.values())).writes(out);
                // SAFETY: `out` has an element for each row.
                unsafe { launch.size(n_rows).size(n_cols).launch(warps) }
            }
            (true, false) => {
                function.fill::<T>(gpu, out, n_rows > 0, n)?;
                occurrences.find(gpu, x)?;
                let columns = occurrences.columns();
                let launch = kernel("reduce_columns")?.reads(columns).reads(occurrences.runs());
                let launch = launch.reads(occurrences.entries()).reads(x.values());
                let launch = function.numbers.read_by(launch).writes(out).size(columns.len());
                let blocks = Blocks::of(columns.len(), THREADS as usize, THREADS);
                // SAFETY: runs and entries are those of `x`, of whose columns `out` has an element
                // each.
                unsafe { launch.size(n_rows).launch(blocks) }
            }
            (false, false) => {
                function.fill::<T>(gpu, out, true, n)?;
                let launch = function.numbers.read_by(kernel("reduce_entries")?.csr(x));
                // SAFETY: `out` has an element for each row and column.
                unsafe { launch.writes(out).size(n_rows).size(n_cols).launch(warps) }
            }
        }
    });
}

/// The sum to a shape that broadcasts to that of the array, by the sum over the axes given.
pub(in crate::kernels) fn sum_to<T: GpuFloat>(
    out: &mut Dense<T, Cuda>,
    shape: Shape,
    like: Shape,
    sum_over: impl FnOnce(&mut Dense<T, Cuda>, Over, ReduceFunction),
) {
    let Some(sum) = find("sum").and_then(|sum| ReduceFunction::new(sum, &Attributes::default()))
    else {
        return;
    };
    let missing = shape.rank().saturating_sub(like.rank());
    let is_summed =
        |axis: &usize| *axis < missing || (like[axis - missing] == 1 && shape[*axis] != 1);
    let axes: Vec<i64> = (0..shape.rank()).filter(is_summed).map(|axis| axis as i64).collect();
    let over = Over { axis: ir::Axes(Some(axes[..].into())), keepdims: true, exclude: false };
    sum_over(out, over, sum);
    // What failed stores nothing.
    if out.shape().size() == like.size() {
        out.take_shape(like);
    }
}

impl ReduceFunction {
    /// The partial results of a reduction of all elements, in their order, when they are there.
    pub fn partial_results<T: GpuFloat>(
        &self,
        x: CudaSlice<'_, T>,
        context: &mut CudaContext,
    ) -> Result<Vec<f64>, CudaError> {
        let CudaContext { gpu, partial, .. } = context;
        let all = Over { axis: ir::Axes::all(), keepdims: false, exclude: false };
        let parts = self.reduce_parts(gpu, DenseView::listed_on_gpu(x), all, partial)?;
        debug_assert_eq!(parts, partial.len());
        partial.to_host()
    }

    /// Reduces the elements that are stored.
    fn write<T: GpuFloat>(
        &self,
        gpu: &Gpu,
        out: CudaSlice<'_, T>,
        x: DenseView<'_, T, Cuda>,
        over: Over,
        whole: Whole<'_>,
        partial: &mut CudaBuffer<f64>,
    ) -> Result<(), CudaError> {
        let parts = self.reduce_parts(gpu, x, over, partial)?;
        let n_results = reduced(x.shape(), over, true).size();
        let words = self.words(T::TYPE.name(), "u32", [1, 1], 1);
        let launch = Launch::new(gpu, gpu.kernel(&unit(&words), "combine_parts")?);
        let launch = self.numbers.read_by(launch.reads(partial.as_slice()).size(parts));
        let launch = launch.size(usize::from(whole.zeros)).reads(whole.rows).size(whole.of_row);
        let launch = launch.writes(out).size(n_results).size(whole.n);
        // SAFETY: there is a partial result for each result and part, and rows are below those of
        // `out`.
        unsafe { launch.launch(Blocks::of(n_results, THREADS as usize, THREADS)) }
    }

    /// Reduces parts of what each result is made of. Gives how many there are of each.
    fn reduce_parts<T: GpuFloat>(
        &self,
        gpu: &Gpu,
        x: DenseView<'_, T, Cuda>,
        over: Over,
        partial: &mut CudaBuffer<f64>,
    ) -> Result<usize, CudaError> {
        let shape = x.shape();
        let [kept, inner] = [false, true].map(|reduces| Axes::new(shape, over, reduces));
        let (n_results, n_reduced) =
            (reduced(shape, over, true).size(), count(shape, over) as usize);
        // Threads that follow one another read elements that do: results where the last axis is
        // kept, else elements of one.
        let group = if inner.last_step() == 1 && n_reduced > 1 { THREADS as usize } else { 1 };
        let part = n_reduced.div_ceil(MOST_PARTS).max(LEAST_PART * group);
        let parts = n_reduced.div_ceil(part);
        partial.resize_for_overwrite(gpu, n_results * parts, "partial results of a reduction")?;
        let partial = partial.as_slice();

        let words = self.words(T::TYPE.name(), "u32", [kept.rank, inner.rank], group);
        let unit = unit(&words);
        let kernel = |name| Ok::<_, CudaError>(Launch::new(gpu, gpu.kernel(&unit, name)?));
        let launch = kept.read_by(kernel("reduce_parts")?.reads(x.values()));
        let launch = self.numbers.read_by(inner.read_by(launch));
        let launch = launch.writes(partial).size(n_results).size(n_reduced).size(part);
        let blocks = Blocks::of(n_results, THREADS as usize / group, THREADS);
        // SAFETY: kept and reduced axes are all of the array, and there is a partial result for
        // each result and part.
        unsafe { launch.launch(Blocks { y: parts, ..blocks }) }?;
        Ok(parts)
    }

    /// Writes what results are that nothing is stored of.
    fn fill<T: GpuFloat>(
        &self,
        gpu: &Gpu,
        out: CudaSlice<'_, T>,
        zeros: bool,
        n: usize,
    ) -> Result<(), CudaError> {
        let words = self.words(T::TYPE.name(), "u32", [1, 1], 1);
        let launch = Launch::new(gpu, gpu.kernel(&unit(&words), "fill_reduced")?);
        let launch = self.numbers.read_by(launch).size(usize::from(zeros));
        let launch = launch.writes(out).size(out.len()).size(n);
        // SAFETY: the size is that of `out`.
        unsafe { launch.launch(Blocks::of(out.len(), THREADS as usize, THREADS)) }
    }

    fn words(
        &self,
        element: &'static str,
        id: &'static str,
        [outer, inner]: [usize; 2],
        group: usize,
    ) -> [(&'static str, Word); 9] {
        [
            ("ELEMENT", Word::Name(element)),
            ("ID", Word::Name(id)),
            ("REAL", Word::Name("f64")),
            ("MAP", Word::Formula(self.operator, self.reduction.map)),
            ("FINISH", Word::Formula(self.operator, self.reduction.finish)),
            ("COMBINE", Word::Name(combine(self.reduction.combine))),
            ("OUTER", Word::Number(outer as u64)),
            ("INNER", Word::Number(inner as u64)),
            ("GROUP", Word::Number(group as u64)),
        ]
    }
}

fn unit<'a>(words: &'a [(&'static str, Word)]) -> Unit<'a> {
    Unit { file: "kernels/reduce/reduce.cu", text: include_str!("reduce.cu"), words }
}

/// The units of a reduction.
pub(crate) fn with_units(
    element: &'static str,
    function: ReduceFunction,
    visit: &mut dyn FnMut(&Unit<'_>),
) {
    for group in [1, THREADS as usize] {
        visit(&unit(&function.words(element, "u32", [MAX_RANK; 2], group)));
    }
}

/// The name of the way to combine in the text.
fn combine(combine: Combine) -> &'static str {
    match combine {
        Combine::Sum => "Sum",
        Combine::Product => "Product",
        Combine::Largest => "Largest",
        Combine::Smallest => "Smallest",
    }
}

/// Some axes of an array: extents, and steps in its memory. Neighbours that one step goes through
/// are one.
struct Axes {
    extents: [usize; MAX_RANK],
    steps: [usize; MAX_RANK],
    rank: usize,
}

impl Axes {
    /// The axes that are reduced, or those that are not.
    fn new(shape: &Shape, over: Over, reduces: bool) -> Self {
        let mut axes = Axes { extents: [1; MAX_RANK], steps: [0; MAX_RANK], rank: 0 };
        for axis in 0..shape.rank() {
            if over.reduces(axis, shape.rank()) != reduces || shape[axis] == 1 {
                continue;
            }
            let step = shape[axis + 1..].iter().product::<usize>();
            match axes.rank.checked_sub(1) {
                Some(last) if axes.steps[last] == step * shape[axis] => {
                    axes.extents[last] *= shape[axis];
                    axes.steps[last] = step;
                }
                _ => {
                    (axes.extents[axes.rank], axes.steps[axes.rank]) = (shape[axis], step);
                    axes.rank += 1;
                }
            }
        }
        axes.rank = axes.rank.max(1);
        axes
    }

    fn last_step(&self) -> usize {
        self.steps[self.rank - 1]
    }

    fn read_by<'l>(&self, launch: Launch<'l>) -> Launch<'l> {
        let mut bits = [0; 2 * MAX_RANK];
        for (bits, &of) in bits.iter_mut().zip(self.extents.iter().chain(&self.steps)) {
            *bits = of as u64;
        }
        launch.record("axes", &bits)
    }
}
