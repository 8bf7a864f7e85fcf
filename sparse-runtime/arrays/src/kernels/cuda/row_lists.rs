//! Row_sparse arrays on a GPU that store other rows than an operand: a list of candidates, which is
//! sorted, each once, and then the values. The host waits once, for how many rows there are.

use super::{CudaContext, GpuFloat, ScalarFunction};
use crate::device::cuda::{
    Blocks, Cuda, CudaBuffer, CudaError, CudaSlice, Gpu, Launch, Unit, Word,
};
use crate::formats::cuda::ArrayArguments;
use crate::formats::{CsrView, DenseView, MAX_RANK, RowSparse, RowSparseView, Shape};
use crate::kernels::strided::Strided;

const THREADS: u32 = 256;
const LIST: &str = "rows that a result may store";

/// Which rows a result stores.
#[derive(Clone, Copy)]
pub(in crate::kernels) enum Stored<'a, 'l, T: GpuFloat> {
    /// Those of an array.
    Of(RowSparseView<'a, T, Cuda>),
    /// Those of either, with this added to the numbers of the second.
    Either(RowSparseView<'a, T, Cuda>, RowSparseView<'a, T, Cuda>, usize),
    /// Those of both.
    Both(RowSparseView<'a, T, Cuda>, RowSparseView<'a, T, Cuda>),
    /// Those of an array at some positions: which of these they are.
    OfPart(RowSparseView<'a, T, Cuda>, [u64; 6]),
    /// The positions that those of an array are.
    OfWhole(RowSparseView<'a, T, Cuda>, [u64; 6]),
    /// Those of a dense array that have an element other than zero.
    NotZero(DenseView<'a, T, Cuda>),
    /// Those of a csr that have an entry.
    NotEmpty(CsrView<'a, T, Cuda>),
    /// Those of a list that an array stores too.
    Listed(CudaSlice<'l, u64>, RowSparseView<'a, T, Cuda>),
}

impl<T: GpuFloat> Stored<'_, '_, T> {
    /// Finds the rows, below `bound`: they are then the columns of the context's occurrences.
    pub(in crate::kernels) fn find(
        self,
        bound: usize,
        list: &mut CudaBuffer<u64>,
        occurrences: &mut super::occurrences::Occurrences,
        gpu: &Gpu,
    ) -> Result<(), CudaError> {
        let words = words(T::TYPE.name(), 1, "u32", None);
        let kernel = |name| Ok::<_, CudaError>(Launch::new(gpu, gpu.kernel(&unit(&words), name)?));
        let each = |n: usize| Blocks::of(n, THREADS as usize, THREADS);
        // SAFETY: each of these kernels reads rows of the arrays that it is given, and writes a
        // candidate for each of `n`.
        unsafe {
            match self {
                Stored::Of(x) => {
                    let (rows, n) = x.stored_on_gpu();
                    let list = room(list, gpu, n)?;
                    let launch = kernel("list_rows")?.reads(rows).size(0).writes(list);
                    launch.size(n).launch(each(n))?;
                }
                Stored::Either(x, y, shift) => {
                    let [(rows, n), (others, m)] = [x.stored_on_gpu(), y.stored_on_gpu()];
                    let list = room(list, gpu, n + m)?;
                    let launch = kernel("list_rows")?.reads(rows).size(0).writes(list.run(0, n));
                    launch.size(n).launch(each(n))?;
                    let launch = kernel("list_rows")?.reads(others).size(shift);
                    launch.writes(list.run(n, m)).size(m).launch(each(m))?;
                }
                Stored::Both(x, y) => {
                    let [(mut rows, mut n), (mut others, mut m)] =
                        [x.stored_on_gpu(), y.stored_on_gpu()];
                    if m < n {
                        std::mem::swap(&mut rows, &mut others);
                        std::mem::swap(&mut n, &mut m);
                    }
                    let list = room(list, gpu, n)?;
                    let launch = kernel("list_common_rows")?.reads(rows).reads(others).size(m);
                    launch.size(bound).writes(list).size(n).launch(each(n))?;
                }
                Stored::Listed(rows, x) => {
                    let ((others, m), n) = (x.stored_on_gpu(), rows.len());
                    let list = room(list, gpu, n)?;
                    let launch = kernel("list_common_rows")?.reads(rows).reads(others).size(m);
                    launch.size(bound).writes(list).size(n).launch(each(n))?;
                }
                Stored::OfPart(x, positions) => {
                    let (rows, n) = x.stored_on_gpu();
                    let list = room(list, gpu, n)?;
                    let launch = kernel("list_rows_of_part")?.reads(rows);
                    let launch = launch.record("spans", &positions).writes(list);
                    launch.size(n).launch(each(n))?;
                }
                Stored::OfWhole(x, positions) => {
                    let (rows, n) = x.stored_on_gpu();
                    let list = room(list, gpu, n)?;
                    let launch = kernel("list_rows_of_whole")?.reads(rows);
                    let launch = launch.record("spans", &positions).writes(list);
                    launch.size(n).launch(each(n))?;
                }
                Stored::NotZero(x) => {
                    let (n, row_size) = (x.shape().n_rows(), x.shape().row_size());
                    let list = room(list, gpu, n)?;
                    let launch = kernel("list_rows_not_zero")?.reads(x.values()).size(row_size);
                    let warps = Blocks::of(n, THREADS as usize / 32, THREADS);
                    launch.writes(list).size(n).launch(warps)?;
                }
                Stored::NotEmpty(x) => {
                    let n = x.n_rows();
                    let list = room(list, gpu, n)?;
                    let launch = kernel("list_rows_not_empty")?.reads(x.starts()).reads(x.ends());
                    launch.writes(list).size(n).launch(each(n))?;
                }
            }
        }
        occurrences.find_ids(gpu, list.as_slice(), bound)
    }
}

fn room<'l>(
    list: &'l mut CudaBuffer<u64>,
    gpu: &Gpu,
    n: usize,
) -> Result<CudaSlice<'l, u64>, CudaError> {
    list.resize_for_overwrite(gpu, n, LIST)?;
    Ok(list.as_slice())
}

/// Rows of an array at some positions, and where the elements of each lie in a row of a larger
/// array.
pub(in crate::kernels) struct PlacedRows<'a, T: GpuFloat> {
    pub(in crate::kernels) of: RowSparseView<'a, T, Cuda>,
    pub(in crate::kernels) positions: [u64; 6],
    pub(in crate::kernels) along: Strided,
}

/// What the values of a result are made of.
#[derive(Clone, Copy)]
pub(in crate::kernels) enum Values<'a, 'p, T: GpuFloat> {
    /// A function of the elements of two arrays.
    Of(RowSparseView<'a, T, Cuda>, RowSparseView<'a, T, Cuda>, ScalarFunction),
    /// A function of the elements of an array and those of a csr.
    WithCsr(RowSparseView<'a, T, Cuda>, CsrView<'a, T, Cuda>, ScalarFunction),
    /// Parts of the rows of an array at some positions.
    Gathered(&'p PlacedRows<'a, T>),
    /// Zeros, and where arrays store the rows at some positions each as a part of the row.
    Placed(&'p [PlacedRows<'a, T>]),
    /// Zeros, and the entries of a csr.
    Entries(CsrView<'a, T, Cuda>),
}

/// Becomes an array of a shape that stores the same rows as another, whose values are to be
/// written.
pub(in crate::kernels) fn store_rows_of<'o, T: GpuFloat>(
    gpu: &Gpu,
    out: &'o mut RowSparse<T, Cuda>,
    shape: Shape,
    x: RowSparseView<'_, T, Cuda>,
) -> Result<CudaSlice<'o, T>, CudaError> {
    let (rows, n) = x.stored_on_gpu();
    let (ids, values) = out.make_rows(gpu, shape, n)?;
    let words = words(T::TYPE.name(), 1, "u32", None);
    let launch = Launch::new(gpu, gpu.kernel(&unit(&words), "list_rows")?).reads(rows).size(0);
    // SAFETY: there is an id for each row that is stored.
    unsafe { launch.writes(ids).size(n).launch(Blocks::of(n, THREADS as usize, THREADS)) }?;
    Ok(values)
}

/// Becomes an array of a shape with the rows and values given.
pub(in crate::kernels) fn make<T: GpuFloat>(
    out: &mut RowSparse<T, Cuda>,
    shape: Shape,
    stored: Stored<'_, '_, T>,
    values: Values<'_, '_, T>,
    context: &mut CudaContext,
) {
    let CudaContext { gpu, occurrences, list, .. } = context;
    gpu.attempt(out, |out| {
        stored.find(shape.n_rows(), list, occurrences, gpu)?;
        let list = occurrences.columns();
        let to = out.store_rows(gpu, shape, list)?;
        values.write(gpu, list, shape.row_size(), to)
    });
}

impl<T: GpuFloat> Values<'_, '_, T> {
    /// Writes the values of the rows of a list.
    fn write(
        self,
        gpu: &Gpu,
        list: CudaSlice<'_, u64>,
        row_size: usize,
        out: CudaSlice<'_, T>,
    ) -> Result<(), CudaError> {
        let real = T::TYPE.name();
        let kernel = |words: [(&'static str, Word); 6], name| {
            Ok::<_, CudaError>(Launch::new(gpu, gpu.kernel(&unit(&words), name)?).reads(list))
        };
        let each = |n: usize| Blocks::of(n, THREADS as usize, THREADS);
        // SAFETY: row numbers of the list are below those of the arrays, or of their positions,
        // whose rows have the sizes given; `out` has a row for each of the list.
        unsafe {
            match self {
                Values::Of(x, y, f) => {
                    let launch = kernel(words(real, 1, "u32", Some(f)), "combine_rows")?;
                    let launch = f.read_by(launch.rows(x).rows(y).size(row_size));
                    launch.writes(out).size(out.len()).launch(each(out.len()))
                }
                Values::WithCsr(x, y, f) => {
                    let words = words(real, 1, y.columns().type_name(), Some(f));
                    let launch = kernel(words, "combine_rows_with_csr")?.rows(x).csr(y);
                    let launch = f.read_by(launch.size(row_size));
                    launch.writes(out).size(out.len()).launch(each(out.len()))
                }
                Values::Gathered(&PlacedRows { of: x, positions, along }) => {
                    let launch = kernel(words(real, along.axes(), "u32", None), "gather_rows")?;
                    let launch = launch.record("spans", &positions).rows(x);
                    let launch = launch.size(x.shape().row_size());
                    let launch = launch.record("strided", &along.on_gpu()).size(row_size);
                    launch.writes(out).size(out.len()).launch(each(out.len()))
                }
                Values::Placed(parts) => {
                    out.zero()?;
                    for &PlacedRows { of: x, positions, along } in parts {
                        let from_size = x.shape().row_size();
                        let n = list.len() * from_size;
                        let launch = kernel(words(real, along.axes(), "u32", None), "place_rows")?;
                        let launch = launch.record("spans", &positions).rows(x).size(from_size);
                        let launch = launch.record("strided", &along.on_gpu()).size(row_size);
                        launch.writes(out).size(n).launch(each(n))?;
                    }
                    Ok(())
                }
                Values::Entries(x) => {
                    out.zero()?;
                    let words = words(real, 1, x.columns().type_name(), None);
                    let launch = kernel(words, "scatter_listed_rows")?.csr(x).size(row_size);
                    let warps = Blocks::of(list.len(), THREADS as usize / 32, THREADS);
                    launch.writes(out).size(list.len()).launch(warps)
                }
            }
        }
    }
}

/// All of so many positions, of rows.
pub(in crate::kernels) fn all(n: usize) -> [u64; 6] {
    [0, 0, 1, 1, n as u64, 0]
}

/// So many positions from one on, of rows.
pub(in crate::kernels) fn from(start: usize, n: usize) -> [u64; 6] {
    [start as u64, 0, 1, 1, n as u64, 0]
}

fn words(
    real: &'static str,
    rank: usize,
    id: &'static str,
    function: Option<ScalarFunction>,
) -> [(&'static str, Word); 6] {
    let none =
        [("FORMULA", Word::Name("0")), ("FIRST", Word::Name("x")), ("SECOND", Word::Name("y"))];
    let [formula, x, y] = function.map_or(none, |function| function.words());
    [
        ("REAL", Word::Name(real)),
        ("RANK", Word::Number(rank as u64)),
        ("ID", Word::Name(id)),
        formula,
        x,
        y,
    ]
}

fn unit<'a>(words: &'a [(&'static str, Word)]) -> Unit<'a> {
    Unit { file: "kernels/cuda/row_lists.cu", text: include_str!("row_lists.cu"), words }
}

/// Visits the unit of the most axes.
pub(super) fn for_each_unit(visit: &mut dyn FnMut(&Unit<'_>)) {
    visit(&unit(&words("f32", 2 * MAX_RANK, "u64", None)));
}

/// The unit of a function of two operands.
pub(crate) fn with_unit(f: ScalarFunction, visit: &mut dyn FnMut(&Unit<'_>)) {
    visit(&unit(&words("f32", 1, "u32", Some(f))));
}
