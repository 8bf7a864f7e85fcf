//! A batch of a model whose rows name rows of tables by ids, matrix factorization and its kin, on a
//! GPU up to the derivatives of its loss: one kernel, whose scores need not be written.
//!
//! Losses are those of the kernels that compute them one by one, from the same text.

use crate::model::on_gpu::rows::row_results::{RowResults, Run};
use nnz_arrays::device::cuda::{Cuda, CudaError, CudaSlice, Gpu, Unit, Word};
use nnz_arrays::formats::cuda::ArrayArguments;
use nnz_arrays::formats::{Dense, DenseView, IdsView, Shape};
use nnz_arrays::kernels::cuda::loss;
use nnz_arrays::kernels::cuda::loss::{mean_of_parts, words_of_labels};
use nnz_arrays::kernels::cuda::{CudaContext, GpuFloat, LossFunction, lanes};
use nnz_device::cuda::text_of_files;
use nnz_device::cuda::{Destination, Launch};
use sparse_core::ir::Attributes;
use sparse_core::operators::find;
use sparse_core::storage::ElementType;
use std::sync::LazyLock;

/// How many tables the prelude's `lookups` are at most.
const MOST_TABLES: usize = 8;

/// Of how many inner products these can be.
const MOST_INNERS: usize = MOST_TABLES / 2;

// Where the parts of that struct begin, in units of 8 bytes, and its size.
const TABLES: usize = 0;
const IDS: usize = TABLES + MOST_TABLES;
const EXTENTS: usize = IDS + MOST_TABLES;
const WIDE: usize = EXTENTS + MOST_TABLES;
const DERIVATIVES: usize = WIDE + 1;
const SHARES: usize = DERIVATIVES + MOST_TABLES;
const SIZE: usize = SHARES + MOST_INNERS;

/// Whether one launch computes scores of so many inner products and rows of one element.
pub(crate) const fn are_few(inners: usize, elements: usize) -> bool {
    2 * inners + elements <= MOST_TABLES
}

/// A table, and the ids that name its rows.
#[derive(Clone, Copy)]
pub(crate) struct NamedRows<'a, T: GpuFloat> {
    pub(crate) table: DenseView<'a, T, Cuda>,
    /// One for each row of the batch.
    pub(crate) ids: IdsView<'a, Cuda>,
}

/// Inner products of rows of two tables.
#[derive(Clone, Copy)]
pub(crate) struct Inner<'a, T: GpuFloat> {
    /// The tables, whose rows have as many elements.
    pub(crate) sides: [NamedRows<'a, T>; 2],
    /// Whether they are means instead of sums.
    pub(crate) mean: bool,
}

/// What a batch is computed from.
#[derive(Clone, Copy)]
pub(crate) struct LookupRows<'b, 'a, T: GpuFloat> {
    /// All of rows of one length.
    pub(crate) inners: &'b [Inner<'a, T>],
    /// Rows of one element.
    pub(crate) elements: &'b [NamedRows<'a, T>],
    /// One number.
    pub(crate) bias: Option<DenseView<'a, T, Cuda>>,
    /// What else is added.
    pub(crate) constant: f64,
    /// A label for each row.
    pub(crate) labels: DenseView<'a, T, Cuda>,
    /// A weight for each row.
    pub(crate) row_weights: Option<DenseView<'a, T, Cuda>>,
}

/// What is computed of a batch.
pub(crate) struct LookupResults<'o, T: GpuFloat> {
    /// The scores, the loss and its derivatives.
    pub(crate) rows: RowResults<'o, T>,
    /// For each inner product the derivatives by the rows of either side.
    pub(crate) derivatives: Vec<&'o mut Dense<T, Cuda>>,
}

impl<T: GpuFloat> Destination for LookupResults<'_, T> {
    fn store_nothing(&mut self, gpu: &Gpu) {
        self.rows.store_nothing(gpu);
        self.derivatives.iter_mut().for_each(|of| of.store_nothing(gpu));
    }
}

impl<'a, T: GpuFloat> LookupRows<'_, 'a, T> {
    /// In the order of the kernel's record.
    fn tables(&self) -> impl Iterator<Item = NamedRows<'a, T>> {
        let of_inners = self.inners.iter().flat_map(|inner| inner.sides);
        of_inners.chain(self.elements.iter().copied())
    }

    /// The elements of a row of an inner product.
    fn width(&self) -> usize {
        self.inners.first().map_or(0, |inner| inner.sides[0].table.shape().row_size())
    }

    /// The prelude's `lookups`.
    fn record(&self, launch: &mut Launch<'_>, derivatives: &[CudaSlice<'_, T>]) -> [u64; SIZE] {
        let mut bits = [0; SIZE];
        for (at, of) in self.tables().enumerate() {
            bits[TABLES + at] = launch.address(of.table.values());
            bits[IDS + at] = launch.address_of_ids(of.ids);
            bits[EXTENTS + at] = of.table.shape().n_rows() as u64;
            bits[WIDE] |= u64::from(!matches!(of.ids, IdsView::U32(_))) << at;
        }
        for (at, derivatives) in derivatives.iter().enumerate() {
            bits[DERIVATIVES + at] = launch.address(*derivatives);
        }
        for (at, inner) in self.inners.iter().enumerate() {
            let share = if inner.mean { 1.0 / self.width() as f64 } else { 1.0 };
            bits[SHARES + at] = share.to_bits();
        }
        bits
    }
}

/// Computes a batch whose scores are of this shape, and whose tables [are few](are_few). O(rows ·
/// elements of the rows that they name).
pub(crate) fn compute<T: GpuFloat>(
    mut out: LookupResults<'_, T>,
    of: &LookupRows<'_, '_, T>,
    shape: Shape,
    loss: LossFunction,
    context: &mut CudaContext,
) {
    let gpu = &context.gpu().clone();
    let partial = &mut context.partial;
    gpu.attempt(&mut out, |out| {
        let (n_rows, width) = (shape.n_rows(), of.width());
        let [scores, mean, gradient] = out.rows.reset_on(gpu, shape)?;
        let derivatives = out.derivatives.iter_mut();
        let derivatives = derivatives.map(|of| of.reset_on(gpu, [n_rows, width].into()));
        let derivatives = derivatives.collect::<Result<Vec<_>, CudaError>>()?;
        let lanes = lanes(width);
        let run = Run::new(n_rows, lanes);
        run.reset_on(gpu, partial)?;
        let words = words(T::TYPE.name(), lanes, [of.inners.len(), of.elements.len()], loss);
        let mut launch = Launch::new(gpu, gpu.kernel(&unit(&words), "lookup_rows")?);
        let record = of.record(&mut launch, &derivatives);
        let launch = launch.record("lookups", &record).size(width);
        let launch = launch.reads(values(of.bias)).f64(of.constant);
        let launch = launch.reads(of.labels.values()).reads(values(of.row_weights));
        let launch = loss.numbers().read_by(launch).writes(partial.as_slice());
        let launch = launch.writes(scores).writes(gradient);
        let launch = launch.size(n_rows).size(run.rows).f64(1.0 / n_rows.max(1) as f64);
        // SAFETY: for ids beyond their tables nothing is read; rows of inner products have `width`
        // elements, as do those of the derivatives, and other rows one; there are an id of each
        // list, a label, a weight and a result for each row, and a sum for each part.
        unsafe { launch.launch(run.blocks()) }?;
        mean_of_parts(gpu, mean, partial.as_slice(), n_rows)
    });
}

fn values<'a, T: GpuFloat>(of: Option<DenseView<'a, T, Cuda>>) -> CudaSlice<'a, T> {
    of.map_or_else(CudaSlice::default, |of| of.values())
}

fn words(
    real: &'static str,
    lanes: usize,
    [inners, elements]: [usize; 2],
    loss: LossFunction,
) -> [(&'static str, Word); 8] {
    // Labels are dense, so that of classes and columns nothing is read.
    let none = ElementType::U32.name();
    let [real, class, label_id] = words_of_labels(real, none, none);
    let number = |name, number: usize| (name, Word::Number(number as u64));
    let [of_loss, of_slope] = loss.formulas();
    let (lanes, inners) = (number("LANES", lanes), number("INNERS", inners));
    [real, class, label_id, lanes, inners, number("ELEMENTS", elements), of_loss, of_slope]
}

fn unit<'a>(words: &'a [(&'static str, Word)]) -> Unit<'a> {
    let text = {
        static TEXT: LazyLock<String> = LazyLock::new(|| {
            text_of_files(&[
                loss::LABELS,
                loss::LOSS,
                ("model/on_gpu/rows/lookup_rows.cu", include_str!("lookup_rows.cu")),
            ])
        });
        TEXT.as_str()
    };
    Unit { file: "model/on_gpu/rows/lookup_rows.cu", text, words }
}

/// Visits the unit of a loss, of matrix factorization with biases.
pub(crate) fn with_unit(loss: LossFunction, visit: &mut dyn FnMut(&Unit<'_>)) {
    visit(&unit(&words("f32", lanes(8), [1, 2], loss)));
}

/// Visits those of biases alone, and of as much as there can be.
pub(crate) fn for_each_unit(visit: &mut dyn FnMut(&Unit<'_>)) {
    let squared =
        find("squared_error").and_then(|of| LossFunction::new(of, &Attributes::default()));
    if let Some(loss) = squared {
        visit(&unit(&words("f32", lanes(0), [0, 2], loss)));
        visit(&unit(&words("f64", lanes(32), [MOST_INNERS, 0], loss)));
    }
}
