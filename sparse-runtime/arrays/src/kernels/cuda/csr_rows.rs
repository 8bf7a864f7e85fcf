//! Csr matrices on a GPU that have other entries than an operand: two passes over what they are
//! made of, one that counts the entries of each row, and one that writes them where the counts,
//! summed up, say. The host waits once, for how many there are.

use super::occurrences::CountBuffers;
use super::{CudaContext, GpuFloat, ScalarFunction};
use crate::device::cuda::{Blocks, Cuda, CudaError, CudaSlice, Gpu, Launch, Unit, Word};
use crate::formats::cuda::ArrayArguments;
use crate::formats::{Csr, CsrView, RowSparseView, fits_u32};
use crate::kernels::slicing::SlicedPart;

const THREADS: u32 = 256;

/// What the rows of a matrix are made of.
#[derive(Clone, Copy)]
pub(in crate::kernels) struct Source<'a, 'l, T: GpuFloat> {
    /// The name in the text.
    name: &'static str,
    first: Option<CsrView<'a, T, Cuda>>,
    second: Option<CsrView<'a, T, Cuda>>,
    array: Option<RowSparseView<'a, T, Cuda>>,
    rows: Option<CudaSlice<'l, u64>>,
    wanted: CudaSlice<'l, u64>,
    positions: [u64; 6],
    /// The extents of the first operand, or of the array.
    extents: [usize; 2],
    function: Option<ScalarFunction>,
}

impl<'a, 'l, T: GpuFloat> Source<'a, 'l, T> {
    fn new(name: &'static str, extents: [usize; 2]) -> Self {
        Source {
            name,
            first: None,
            second: None,
            array: None,
            rows: None,
            wanted: CudaSlice::default(),
            positions: [0; 6],
            extents,
            function: None,
        }
    }

    fn of_csr(name: &'static str, x: CsrView<'a, T, Cuda>) -> Self {
        Source { first: Some(x), ..Source::new(name, [x.n_rows(), x.n_cols()]) }
    }

    fn of_two(name: &'static str, x: CsrView<'a, T, Cuda>, y: CsrView<'a, T, Cuda>) -> Self {
        Source { second: Some(y), ..Source::of_csr(name, x) }
    }

    /// A function of two matrices of one shape: by the name of the text, `Union`, `Intersection` or
    /// `Left`.
    pub(in crate::kernels) fn combined(
        name: &'static str,
        lhs: CsrView<'a, T, Cuda>,
        rhs: CsrView<'a, T, Cuda>,
        f: ScalarFunction,
    ) -> Self {
        Source { function: Some(f), ..Source::of_two(name, lhs, rhs) }
    }

    /// A matrix repeated to so many rows and columns.
    pub(in crate::kernels) fn repeated(
        x: CsrView<'a, T, Cuda>,
        [n_rows, n_cols]: [usize; 2],
    ) -> Self {
        let positions = [0, 0, 1, 1, n_rows as u64, n_cols as u64];
        Source { positions, ..Source::of_csr("Repeated", x) }
    }

    /// The part of a matrix.
    pub(in crate::kernels) fn part(x: CsrView<'a, T, Cuda>, part: &SlicedPart) -> Self {
        Source { positions: part.on_gpu(), ..Source::of_csr("Part", x) }
    }

    /// A matrix as the part of one that stores nothing else.
    pub(in crate::kernels) fn placed(x: CsrView<'a, T, Cuda>, part: &SlicedPart) -> Self {
        Source { positions: part.on_gpu(), ..Source::of_csr("Placed", x) }
    }

    /// Two matrices, over each other or side by side.
    pub(in crate::kernels) fn joined(
        lhs: CsrView<'a, T, Cuda>,
        rhs: CsrView<'a, T, Cuda>,
        by_rows: bool,
    ) -> Self {
        Source::of_two(if by_rows { "OverEachOther" } else { "SideBySide" }, lhs, rhs)
    }

    /// For each row the one of this number, for as many rows as there are numbers.
    pub(in crate::kernels) fn wanted(x: CsrView<'a, T, Cuda>, wanted: CudaSlice<'l, u64>) -> Self {
        Source { wanted, ..Source::of_csr("Wanted", x) }
    }

    /// The rows of a list, ascending.
    pub(in crate::kernels) fn listed(x: CsrView<'a, T, Cuda>, rows: CudaSlice<'l, u64>) -> Self {
        Source { rows: Some(rows), ..Source::of_csr("Listed", x) }
    }

    /// What is not zero in the rows that are stored.
    pub(in crate::kernels) fn not_zero(x: RowSparseView<'a, T, Cuda>) -> Self {
        let extents = [x.shape().n_rows(), x.shape().row_size()];
        Source { array: Some(x), ..Source::new("NotZero", extents) }
    }

    /// In each row a one in a column; nothing where there is no such column.
    pub(in crate::kernels) fn ones(columns: CudaSlice<'l, u64>, n_cols: usize) -> Self {
        Source { wanted: columns, ..Source::new("One", [columns.len(), n_cols]) }
    }

    fn words(&self, n_cols: usize) -> [(&'static str, Word); 8] {
        let id = |x: Option<CsrView<'_, T, Cuda>>| x.map_or("u32", |x| x.columns().type_name());
        words(
            T::TYPE.name(),
            self.name,
            [id(self.first), id(self.second), if fits_u32(n_cols) { "u32" } else { "u64" }],
            self.function,
        )
    }

    fn read_by<'g>(&self, launch: Launch<'g>) -> Launch<'g> {
        let csr = |launch: Launch<'g>, x: Option<CsrView<'_, T, Cuda>>| match x {
            Some(x) => launch.csr(x),
            None => launch.no_csr::<T>(),
        };
        let launch = csr(csr(launch, self.first), self.second);
        let launch = match self.array {
            Some(array) => launch.rows(array),
            None => {
                let rows = self.rows.unwrap_or_default();
                launch.reads(rows).size(rows.len()).reads(CudaSlice::<T>::default())
            }
        };
        let launch = launch.reads(self.wanted).record("spans", &self.positions);
        let launch = launch.size(self.extents[0]).size(self.extents[1]);
        match self.function {
            Some(function) => function.read_by(launch),
            None => launch.record("numbers", &[0; 4]),
        }
    }
}

/// Makes a matrix of rows and columns out of a source.
pub(in crate::kernels) fn make<T: GpuFloat>(
    out: &mut Csr<T, Cuda>,
    shape: [usize; 2],
    source: Source<'_, '_, T>,
    context: &mut CudaContext,
) {
    let CudaContext { gpu, occurrences, .. } = context;
    gpu.attempt(out, |out| write(gpu, out, shape, source, occurrences.sums()));
}

/// The same, with the context in use.
pub(in crate::kernels) fn write<T: GpuFloat>(
    gpu: &Gpu,
    out: &mut Csr<T, Cuda>,
    [n_rows, n_cols]: [usize; 2],
    source: Source<'_, '_, T>,
    sums: CountBuffers<'_>,
) -> Result<(), CudaError> {
    let words = source.words(n_cols);
    let unit = unit(&words);
    let kernel = |name| Ok::<_, CudaError>(Launch::new(gpu, gpu.kernel(&unit, name)?));
    let (counts, totals, number) = sums;
    counts.resize_for_overwrite(gpu, n_rows + 1, "the number of entries of each row")?;
    number.resize_for_overwrite(gpu, 2, "the number of entries")?;
    number.fill_bytes(0)?;
    let each = Blocks::of(n_rows + 1, THREADS as usize, THREADS);
    let launch = source.read_by(kernel("count_entries")?);
    // SAFETY: a source reads its operands, whose rows are those of the result as its name says;
    // there is a count for each row and one more.
    unsafe { launch.writes(counts.as_slice()).size(n_rows).launch(each) }?;
    super::occurrences::sum_up(gpu, counts.as_slice(), totals)?;
    let indptr = out.make_row_pointers(gpu, n_rows)?;
    let launch = kernel("row_pointers")?.reads(counts.as_slice()).writes(indptr);
    // SAFETY: there is a row pointer for each row and one more, and two numbers.
    unsafe { launch.writes(number.as_slice()).size(n_rows).launch(each) }?;
    let nnz = match number.to_host()?[..] {
        [nnz, 0] => nnz as usize,
        _ => return Err(CudaError::TooManyEntries { what: "a csr", count: 1 << 32 }),
    };
    let (indptr, columns, values) = out.make_entries(gpu, n_cols, nnz)?;
    let launch = source.read_by(kernel("write_entries")?).reads(indptr);
    let launch = launch.writes_columns(columns).writes(values).size(n_rows);
    // SAFETY: as above, and there is room for as many entries as were counted.
    unsafe { launch.launch(Blocks::of(n_rows, THREADS as usize, THREADS)) }
}

fn words(
    real: &'static str,
    source: &'static str,
    [first, second, out]: [&'static str; 3],
    function: Option<ScalarFunction>,
) -> [(&'static str, Word); 8] {
    let none =
        [("FORMULA", Word::Name("0")), ("FIRST", Word::Name("x")), ("SECOND", Word::Name("y"))];
    let [formula, x, y] = function.map_or(none, |function| function.words());
    [
        ("REAL", Word::Name(real)),
        ("SOURCE", Word::Name(source)),
        ("FIRST_ID", Word::Name(first)),
        ("SECOND_ID", Word::Name(second)),
        ("OUT_ID", Word::Name(out)),
        formula,
        x,
        y,
    ]
}

fn unit<'a>(words: &'a [(&'static str, Word)]) -> Unit<'a> {
    Unit { file: "kernels/cuda/csr_rows.cu", text: include_str!("csr_rows.cu"), words }
}

/// Visits the units of those sources that are of no function.
pub(super) fn for_each_unit(visit: &mut dyn FnMut(&Unit<'_>)) {
    let names = [
        "Repeated",
        "Part",
        "Placed",
        "OverEachOther",
        "SideBySide",
        "Wanted",
        "Listed",
        "NotZero",
        "One",
    ];
    for name in names {
        visit(&unit(&words("f32", name, ["u32", "u64", "u64"], None)));
    }
}

/// The units of a function of two matrices.
pub(crate) fn with_units(f: ScalarFunction, visit: &mut dyn FnMut(&Unit<'_>)) {
    for name in ["Union", "Intersection", "Left"] {
        visit(&unit(&words("f32", name, ["u32"; 3], Some(f))));
    }
}
