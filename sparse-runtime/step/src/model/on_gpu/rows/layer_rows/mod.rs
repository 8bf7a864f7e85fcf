//! A batch of a model through dense layers on a GPU, wide & deep and its kin, up to the derivatives
//! of its loss by what its rows read of tables: one kernel, with the gradients of dense parameters,
//! and one that adds up what its blocks have of these.
//!
//! The kernel's statements are made of a [`Chain`], what becomes of a row. Losses are those of the
//! kernels that compute them one by one, from the same texts.

mod text;
mod units;

pub(crate) use self::units::{for_each_unit, with_unit};

use self::text::Statements;
use super::linear_rows::RowLoss;
use nnz_arrays::device::cuda::{Code, Cuda, CudaError, CudaSlice, Gpu, Unit, Word};
use nnz_arrays::formats::cuda::ArrayArguments;
use nnz_arrays::formats::{CsrView, Dense, DenseView, IdsView, Shape};
use nnz_arrays::kernels::cuda::loss;
use nnz_arrays::kernels::cuda::loss::words_of_labels;
use nnz_arrays::kernels::cuda::{CudaContext, GpuFloat, Labels, ScalarFunction, lanes};
use nnz_arrays::kernels::softmax_cross_entropy;
use nnz_device::cuda::text_of_files;
use nnz_device::cuda::{Blocks, Destination, Launch};
use sparse_core::element::Unit as Ones;
use sparse_core::passes::are_few;
use sparse_core::storage::ElementType;
use std::sync::LazyLock;

/// How many addresses and extents the text's `arrays` are at most.
const MOST_ARRAYS: usize = 40;

/// What a kernel without dynamic shared memory has, in bytes.
const SHARED: usize = 48 << 10;

/// At most so many blocks have a run of rows: so many sums the second kernel adds.
const MOST_BLOCKS: usize = 512;

/// Threads of a block, the most for which there is room first. With fewer, too few rows are
/// computed at a time.
const THREADS: [usize; 2] = [256, 128];

const COLUMNS: [&str; 4] = ["COLUMN_0", "COLUMN_1", "COLUMN_2", "COLUMN_3"];
const VALUES: [&str; 4] = ["VALUE_0", "VALUE_1", "VALUE_2", "VALUE_3"];
const IDS: [&str; 8] = ["ID_0", "ID_1", "ID_2", "ID_3", "ID_4", "ID_5", "ID_6", "ID_7"];

/// A row of a value, among the numbers that are kept of a row of the batch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RowSpan {
    /// The place of the first.
    pub(crate) at: usize,
    pub(crate) columns: usize,
}

/// The extents of a dense parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Matrix {
    pub(crate) rows: usize,
    pub(crate) columns: usize,
}

impl Matrix {
    pub(crate) fn size(self) -> usize {
        self.rows * self.columns
    }

    fn is_flat(self) -> bool {
        self.rows == 1 || self.columns == 1
    }

    /// How far its rows are apart in shared memory: an odd number, so that lanes read rows and
    /// columns side by side.
    fn step(self) -> usize {
        if self.is_flat() { self.columns } else { self.columns | 1 }
    }
}

/// What names rows of a table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Named {
    /// The columns of a csr: a product, or bags.
    Columns { csr: usize, mean: bool, weighted: bool },
    /// Ids, and whether those beyond the extent are the ends, or count on from the other end.
    Ids { ids: usize, clip: bool, wrap: bool },
}

/// An operand of a function of elements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Element {
    /// A row, or one of one element that repeats.
    Row(RowSpan),
    /// A dense parameter, one element or as many as the row has.
    Matrix(usize),
    Number(f64),
}

/// How a row of a value is computed. Arrays are named by their number among those of their kind.
#[derive(Clone, Debug)]
pub(crate) enum ChainStep {
    /// A row of the batch.
    Load {
        input: usize,
        to: RowSpan,
    },
    /// Rows of a table.
    Named {
        named: Named,
        table: usize,
        to: RowSpan,
    },
    /// With a dense parameter, which may be read transposed, and another one that is added.
    Product {
        x: RowSpan,
        matrix: usize,
        transposed: bool,
        bias: Option<usize>,
        to: RowSpan,
    },
    /// A function of elements.
    ElementWise {
        function: ScalarFunction,
        operands: Vec<Element>,
        to: RowSpan,
    },
    /// A part of a row, from element `first` on.
    Copy {
        of: RowSpan,
        first: usize,
        to: RowSpan,
    },
    /// The sum over `count`.
    Total {
        of: RowSpan,
        count: usize,
        to: RowSpan,
    },
    /// One element in every place, times a factor.
    Repeat {
        of: RowSpan,
        factor: f64,
        to: RowSpan,
    },
    Softmax {
        of: RowSpan,
        to: RowSpan,
    },
    /// The derivatives by the scores, and the loss.
    Loss {
        scores: RowSpan,
        to: RowSpan,
    },
}

impl ChainStep {
    fn to(&self) -> RowSpan {
        match *self {
            ChainStep::Load { to, .. }
            | ChainStep::Named { to, .. }
            | ChainStep::Product { to, .. }
            | ChainStep::ElementWise { to, .. }
            | ChainStep::Copy { to, .. }
            | ChainStep::Total { to, .. }
            | ChainStep::Repeat { to, .. }
            | ChainStep::Softmax { to, .. }
            | ChainStep::Loss { to, .. } => to,
        }
    }
}

/// A term of the gradient of a dense parameter, summed over the rows of the batch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Sum {
    /// The products of all elements of two rows.
    Outer(RowSpan, RowSpan),
    /// A row.
    Row(RowSpan),
    /// The sum of a row.
    Total(RowSpan),
}

/// The gradient of a dense parameter.
#[derive(Clone, Debug)]
pub(crate) struct Gradient {
    pub(crate) size: usize,
    pub(crate) sums: Vec<Sum>,
}

/// What becomes of a row of the batch.
#[derive(Clone, Debug, Default)]
pub(crate) struct Chain {
    pub(crate) matrices: Vec<Matrix>,
    /// How many elements a row of each table has.
    pub(crate) tables: Vec<usize>,
    pub(crate) n_csrs: usize,
    pub(crate) n_ids: usize,
    /// How many elements a row of each input has.
    pub(crate) inputs: Vec<usize>,
    pub(crate) steps: Vec<ChainStep>,
    /// Rows that others may read.
    pub(crate) kept: Vec<RowSpan>,
    pub(crate) gradients: Vec<Gradient>,
    /// How many numbers are kept of a row.
    pub(crate) width: usize,
}

/// Where the arrays of each kind are among the kernel's.
impl Chain {
    fn place_of_table(&self, number: usize) -> usize {
        // With its extent.
        self.matrices.len() + 2 * number
    }

    fn place_of_csr(&self, number: usize) -> usize {
        self.place_of_table(self.tables.len()) + 4 * number
    }

    fn place_of_ids(&self, number: usize) -> usize {
        self.place_of_csr(self.n_csrs) + number
    }

    fn place_of_input(&self, number: usize) -> usize {
        self.place_of_ids(self.n_ids) + number
    }

    fn place_of_kept(&self, number: usize) -> usize {
        self.place_of_input(self.inputs.len()) + number
    }

    /// Where a dense parameter begins in shared memory.
    fn first_of_matrix(&self, number: usize) -> usize {
        self.matrices[..number].iter().map(|matrix| matrix.rows * matrix.step()).sum()
    }
}

/// The kernels of a chain.
#[derive(Clone, Debug)]
pub(crate) struct LayerRows {
    chain: Chain,
    loss: RowLoss,
    lanes: usize,
    threads: usize,
    n_sums: usize,
    /// Those that the types of arrays are not among.
    words: Vec<(&'static str, Word)>,
}

impl LayerRows {
    /// Those of a chain of numbers of a type. `None` where there is no room for it in the memory
    /// that the threads of a block share, where it has too many arrays, or dense parameters that
    /// are not [few](are_few) elements.
    pub(crate) fn new(chain: Chain, loss: RowLoss, real: ElementType) -> Option<Self> {
        let n_sums = chain.gradients.iter().map(|of| of.size).sum();
        let n_weights: usize = chain.matrices.iter().map(|matrix| matrix.size()).sum();
        let most = chain.place_of_kept(chain.kept.len()).max(chain.gradients.len());
        let is = are_few(n_weights)
            && are_few(n_sums)
            && most <= MOST_ARRAYS
            && chain.n_csrs <= COLUMNS.len()
            && chain.n_ids <= IDS.len();
        is.then_some(())?;
        let widest = chain.steps.iter().map(|step| step.to().columns).max()?;
        let lanes = if chain.n_csrs > 0 { 32 } else { lanes(widest) };
        // An odd number, so that the rows of several groups lie side by side.
        let width = chain.width | 1;
        let weights = chain.first_of_matrix(chain.matrices.len()).max(1);
        let shared = |threads: usize| {
            let (groups, bytes) = (threads / lanes, real.bytes() as usize);
            (weights + groups * width) * bytes + groups * size_of::<f64>()
        };
        let threads = THREADS.into_iter().find(|threads| shared(*threads) <= SHARED)?;
        let statements = Statements::of(&chain, lanes, threads)?;
        let number = |name, number: usize| (name, Word::Number(number as u64));
        let code = |name, text: &str| (name, Word::Code(Code::new(text)));
        let mut words = vec![
            number("LANES", lanes),
            number("THREADS", threads),
            number("WEIGHTS", weights),
            number("WIDTH", width),
            number("N_SUMS", n_sums),
            code("FUNCTIONS", &statements.functions),
            code("LOAD", &statements.load),
            code("ROW", &statements.row),
            code("SUMS", &statements.sums),
            code("ADD", &statements.add),
            code("WRITE", &statements.write),
            code("TARGET", &statements.target),
        ];
        if let RowLoss::Elements(function) = &loss {
            words.extend(function.formulas());
        }
        Some(LayerRows { chain, loss, lanes, threads, n_sums, words })
    }

    /// All words, with the types of the columns and values of each csr, and of ids.
    fn words(
        &self,
        real: &'static str,
        [class, label_id]: [&'static str; 2],
        csrs: impl Iterator<Item = [&'static str; 2]>,
        ids: impl Iterator<Item = &'static str>,
    ) -> Vec<(&'static str, Word)> {
        let mut words = self.words.clone();
        words.extend(words_of_labels(real, class, label_id));
        for ((column, value), types) in COLUMNS.into_iter().zip(VALUES).zip(csrs) {
            let [of_column, of_value] = types.map(Word::Name);
            words.extend([(column, of_column), (value, of_value)]);
        }
        words.extend(IDS.into_iter().zip(ids.map(Word::Name)));
        words
    }

    fn unit<'a>(&self, words: &'a [(&'static str, Word)]) -> Unit<'a> {
        let text = match self.loss {
            RowLoss::Elements(_) => {
                static TEXT: LazyLock<String> = LazyLock::new(|| {
                    text_of_files(&[
                        loss::LABELS,
                        loss::LOSS,
                        (
                            "model/on_gpu/rows/layer_rows/layer_rows.cu",
                            include_str!("layer_rows.cu"),
                        ),
                    ])
                });
                TEXT.as_str()
            }
            RowLoss::CrossEntropy => {
                static TEXT: LazyLock<String> = LazyLock::new(|| {
                    text_of_files(&[
                        loss::LABELS,
                        softmax_cross_entropy::cuda::HEADER,
                        (
                            "model/on_gpu/rows/layer_rows/layer_rows.cu",
                            include_str!("layer_rows.cu"),
                        ),
                    ])
                });
                TEXT.as_str()
            }
        };
        Unit { file: "model/on_gpu/rows/layer_rows/layer_rows.cu", text, words }
    }
}

/// A csr that names rows.
#[derive(Clone, Copy)]
pub(crate) enum Names<'a, T: GpuFloat> {
    Csr(CsrView<'a, T, Cuda>),
    Unit(CsrView<'a, Ones, Cuda>),
}

impl<T: GpuFloat> Names<'_, T> {
    fn extents(&self) -> [usize; 2] {
        match self {
            Names::Csr(x) => [x.n_rows(), x.n_cols()],
            Names::Unit(x) => [x.n_rows(), x.n_cols()],
        }
    }

    fn types(&self) -> [&'static str; 2] {
        match self {
            Names::Csr(x) => [x.columns().type_name(), T::TYPE.name()],
            Names::Unit(x) => [x.columns().type_name(), ElementType::Unit.name()],
        }
    }

    fn record(&self, launch: &mut Launch<'_>) -> [u64; 4] {
        match self {
            Names::Csr(x) => [
                launch.address(x.starts()),
                launch.address(x.ends()),
                launch.address_of_columns(x.columns()),
                launch.address(x.values()),
            ],
            Names::Unit(x) => [
                launch.address(x.starts()),
                launch.address(x.ends()),
                launch.address_of_columns(x.columns()),
                launch.address(x.values()),
            ],
        }
    }
}

/// What a batch is computed from, in the order of the chain.
pub(crate) struct LayerOperands<'a, T: GpuFloat> {
    pub(crate) matrices: Vec<DenseView<'a, T, Cuda>>,
    pub(crate) tables: Vec<DenseView<'a, T, Cuda>>,
    pub(crate) csrs: Vec<Names<'a, T>>,
    pub(crate) ids: Vec<IdsView<'a, Cuda>>,
    pub(crate) inputs: Vec<DenseView<'a, T, Cuda>>,
    pub(crate) labels: Labels<'a, T>,
    pub(crate) row_weights: Option<DenseView<'a, T, Cuda>>,
}

impl<T: GpuFloat> LayerOperands<'_, T> {
    fn n_rows(&self) -> usize {
        match &self.labels {
            Labels::Dense(labels) => labels.shape().n_rows(),
            Labels::Csr(labels) => labels.n_rows(),
            Labels::Classes(classes) => classes.len(),
        }
    }

    /// Whether all have the sizes that the kernel relies on.
    fn fit(&self, chain: &Chain) -> bool {
        let n_rows = self.n_rows();
        let sizes = self.matrices.iter().zip(&chain.matrices);
        let mut sizes = sizes.map(|(matrix, of)| matrix.shape().size() == of.size());
        let tables = self.tables.iter().zip(&chain.tables);
        let mut tables = tables.map(|(table, columns)| table.shape().row_size() == *columns);
        let inputs = self.inputs.iter().zip(&chain.inputs);
        let mut inputs = inputs.map(|(input, columns)| input.shape().size() == n_rows * columns);
        let names = |named: Named, table: usize| match named {
            Named::Columns { csr, .. } => {
                self.csrs[csr].extents() == [n_rows, self.tables[table].shape().n_rows()]
            }
            Named::Ids { ids, .. } => self.ids[ids].len() == n_rows,
        };
        let named = |step: &ChainStep| match *step {
            ChainStep::Named { named, table, .. } => names(named, table),
            _ => true,
        };
        sizes.all(|fits| fits)
            && tables.all(|fits| fits)
            && inputs.all(|fits| fits)
            && chain.steps.iter().all(named)
    }
}

/// What is computed of a batch.
pub(crate) struct LayerResults<'o, T: GpuFloat> {
    /// The mean of the losses, of rank 0.
    pub(crate) loss: &'o mut Dense<T, Cuda>,
    /// Rows that are kept, each with the rank of its value, where somebody reads them.
    pub(crate) kept: Vec<(Option<&'o mut Dense<T, Cuda>>, usize)>,
    /// The gradients of dense parameters, with their shapes.
    pub(crate) gradients: Vec<(&'o mut Dense<T, Cuda>, Shape)>,
}

impl<T: GpuFloat> Destination for LayerResults<'_, T> {
    fn store_nothing(&mut self, gpu: &Gpu) {
        self.loss.store_nothing(gpu);
        self.kept.iter_mut().filter_map(|(of, _)| of.as_mut()).for_each(|of| of.store_nothing(gpu));
        self.gradients.iter_mut().for_each(|(of, _)| of.store_nothing(gpu));
    }
}

/// Computes a batch. O(elements read + products of its rows with dense parameters). `None` where an
/// operand has not the size that the model says: nothing is launched then.
pub(crate) fn compute<T: GpuFloat>(
    mut out: LayerResults<'_, T>,
    of: &LayerOperands<'_, T>,
    kernel: &LayerRows,
    context: &mut CudaContext,
) -> Option<()> {
    let LayerRows { chain, threads, n_sums, .. } = kernel;
    of.fit(chain).then_some(())?;
    let gpu = &context.gpu().clone();
    let partial = &mut context.partial;
    gpu.attempt(&mut out, |out| {
        let n_rows = of.n_rows();
        let groups = threads / kernel.lanes;
        let part = n_rows.div_ceil(MOST_BLOCKS).next_multiple_of(groups).max(groups);
        let blocks = n_rows.div_ceil(part);
        partial.resize_for_overwrite(gpu, blocks * (n_sums + 1), "partial sums of gradients")?;
        let partial = partial.as_slice();
        let kept = out.kept.iter_mut().zip(&chain.kept).map(|((to, rank), row)| match to {
            Some(to) => {
                let shape = match rank {
                    1 => Shape::from([n_rows]),
                    _ => [n_rows, row.columns].into(),
                };
                to.reset_on(gpu, shape)
            }
            None => Ok(CudaSlice::default()),
        });
        let kept = kept.collect::<Result<Vec<_>, CudaError>>()?;
        let types = [of.labels.class(), of.labels.id()];
        let csrs = of.csrs.iter().map(Names::types);
        let words =
            kernel.words(T::TYPE.name(), types, csrs, of.ids.iter().map(IdsView::type_name));
        let unit = kernel.unit(&words);
        let mut launch = Launch::new(gpu, gpu.kernel(&unit, "layer_rows")?);
        let record = record(&mut launch, of, &kept);
        let launch = launch.record("arrays", &record);
        let launch = of.labels.read_by(of.labels.classes_read_by(launch));
        let launch = launch.reads(of.row_weights.map_or_else(CudaSlice::default, |of| of.values()));
        let launch = kernel.loss.numbers().read_by(launch).writes(partial);
        let launch = launch.size(n_rows).size(part).f64(1.0 / n_rows.max(1) as f64);
        // SAFETY: arrays have the sizes that the statements were made for, columns are those of the
        // tables, for ids beyond them nothing is read, there are labels and a weight for each row,
        // rows that are kept have room, and there are sums for each block.
        unsafe { launch.launch(Blocks { x: blocks, y: 1, threads: *threads as u32 }) }?;
        let mut launch = Launch::new(gpu, gpu.kernel(&unit, "layer_sums")?);
        let mut targets = [0; MOST_ARRAYS];
        for (target, (gradient, shape)) in targets.iter_mut().zip(&mut out.gradients) {
            *target = launch.address(gradient.reset_on(gpu, *shape)?);
        }
        let launch = launch.reads(partial).size(blocks).f64(n_rows.max(1) as f64);
        let launch = launch.record("arrays", &targets);
        let launch = launch.writes(out.loss.reset_on(gpu, Shape::from([]))?);
        // SAFETY: there are sums of each block, and a result for each.
        unsafe { launch.launch(Blocks::of(n_sums + 1, 32, *threads as u32)) }
    });
    Some(())
}

/// The text's `arrays`.
fn record<T: GpuFloat>(
    launch: &mut Launch<'_>,
    of: &LayerOperands<'_, T>,
    kept: &[CudaSlice<'_, T>],
) -> [u64; MOST_ARRAYS] {
    let mut bits = Vec::with_capacity(MOST_ARRAYS);
    bits.extend(of.matrices.iter().map(|matrix| launch.address(matrix.values())));
    for table in &of.tables {
        bits.extend([launch.address(table.values()), table.shape().n_rows() as u64]);
    }
    for csr in &of.csrs {
        bits.extend(csr.record(launch));
    }
    bits.extend(of.ids.iter().map(|ids| launch.address_of_ids(*ids)));
    bits.extend(of.inputs.iter().map(|input| launch.address(input.values())));
    bits.extend(kept.iter().map(|kept| launch.address(*kept)));
    let mut record = [0; MOST_ARRAYS];
    record.iter_mut().zip(bits).for_each(|(to, bits)| *to = bits);
    record
}
