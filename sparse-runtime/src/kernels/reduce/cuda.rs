//! Reductions of dense arrays on a GPU.

use super::Over;
use super::cpu::{count, reduced};
use crate::device::cuda::{Blocks, Cuda, CudaError, CudaSlice, Gpu, Launch, Unit, Word};
use crate::formats::{Dense, DenseView, MAX_RANK, Shape};
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
    let gpu = context.gpu().clone();
    let partial = &mut context.partial;
    gpu.attempt(out, |out| {
        let shape = *x.shape();
        let [kept, inner] = [false, true].map(|reduces| Axes::new(&shape, over, reduces));
        let out = out.reset_on(&gpu, reduced(&shape, over, over.keepdims))?;
        let (n_results, n_reduced) = (out.len(), count(&shape, over) as usize);
        // Threads that follow one another read elements that do: results where the last axis is kept, else elements of one.
        let group = if inner.last_step() == 1 && n_reduced > 1 { THREADS as usize } else { 1 };
        let part = n_reduced.div_ceil(MOST_PARTS).max(LEAST_PART * group);
        let parts = n_reduced.div_ceil(part);
        partial.resize_for_overwrite(&gpu, n_results * parts, "partial results of a reduction")?;
        let partial = partial.as_slice();

        let launch = function.launch::<T>(&gpu, [&kept, &inner], group, "reduce_parts")?;
        let launch = kept.read_by(launch.reads(x.values()));
        let launch = function.numbers.read_by(inner.read_by(launch));
        let launch = launch.writes(partial).size(n_results).size(n_reduced).size(part);
        let blocks = Blocks::of(n_results, THREADS as usize / group, THREADS);
        // SAFETY: kept and reduced axes are all of the array, and there is a partial result for each result and part.
        unsafe { launch.launch(Blocks { y: parts, ..blocks }) }?;
        function.finish(&gpu, out, partial, parts, n_reduced, [&kept, &inner], group)
    });
}

/// The sum to a shape that broadcasts to that of the array.
pub fn sum_to<T: GpuFloat>(
    out: &mut Dense<T, Cuda>,
    x: DenseView<'_, T, Cuda>,
    like: Shape,
    context: &mut CudaContext,
) {
    let Some(sum) = find("sum").and_then(|sum| ReduceFunction::new(sum, &Attributes::default()))
    else {
        return;
    };
    let shape = x.shape();
    let missing = shape.rank().saturating_sub(like.rank());
    let is_summed =
        |axis: &usize| *axis < missing || (like[axis - missing] == 1 && shape[*axis] != 1);
    let axes: Vec<i64> = (0..shape.rank()).filter(is_summed).map(|axis| axis as i64).collect();
    let over = Over { axis: ir::Axes(Some(axes[..].into())), keepdims: true, exclude: false };
    dense(out, x, over, sum, context);
    // What failed stores nothing.
    if out.shape().size() == like.size() {
        out.take_shape(like);
    }
}

impl ReduceFunction {
    fn launch<'a, T: GpuFloat>(
        &self,
        gpu: &'a Gpu,
        [kept, inner]: [&Axes; 2],
        group: usize,
        name: &'static str,
    ) -> Result<Launch<'a>, CudaError> {
        let words = self.words(T::TYPE.name(), [kept.rank, inner.rank], group);
        Ok(Launch::new(gpu, gpu.kernel(&unit(&words), name)?))
    }

    fn words(
        &self,
        element: &'static str,
        [outer, inner]: [usize; 2],
        group: usize,
    ) -> [(&'static str, Word); 8] {
        [
            ("ELEMENT", Word::Name(element)),
            ("REAL", Word::Name("f64")),
            ("MAP", Word::Formula(self.operator, self.reduction.map)),
            ("FINISH", Word::Formula(self.operator, self.reduction.finish)),
            ("COMBINE", Word::Name(combine(self.reduction.combine))),
            ("OUTER", Word::Number(outer as u64)),
            ("INNER", Word::Number(inner as u64)),
            ("GROUP", Word::Number(group as u64)),
        ]
    }

    #[allow(clippy::too_many_arguments)]
    fn finish<T: GpuFloat>(
        &self,
        gpu: &Gpu,
        out: CudaSlice<'_, T>,
        partial: CudaSlice<'_, f64>,
        parts: usize,
        n_reduced: usize,
        axes: [&Axes; 2],
        group: usize,
    ) -> Result<(), CudaError> {
        let launch = self.launch::<T>(gpu, axes, group, "combine_parts")?;
        let launch = self.numbers.read_by(launch.reads(partial).size(parts));
        let launch = launch.writes(out).size(out.len()).size(n_reduced);
        // SAFETY: there is a partial result for each result and part.
        unsafe { launch.launch(Blocks::of(out.len(), THREADS as usize, THREADS)) }
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
        visit(&unit(&function.words(element, [MAX_RANK; 2], group)));
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

/// Some axes of an array: extents, and steps in its memory. Neighbours that one step goes through are one.
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
