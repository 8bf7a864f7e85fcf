//! Which columns occur in a csr, or which ids in a list, and where: what a product with a
//! transposed csr and the gradient of a look-up go over.
//!
//! O(nnz · bits of a column id / 4), by a stable sort, so that the entries of a column are in the
//! order of the rows, whatever the GPU does first. The number of columns that occur is known on the
//! GPU; who needs it on the host, to size a result, waits for it once.

use crate::device::cuda::{
    Blocks, Cuda, CudaBuffer, CudaColumnIdsSlice, CudaError, CudaSlice, Gpu, Launch, Unit, Word,
};
use crate::formats::cuda::ArrayArguments;
use crate::formats::{CsrView, RowSparseView};
use sparse_core::element::{Element, Id, Stored};

const TEXT: &str = include_str!("occurrences.cu");

// As in the text.
const DIGIT_BITS: u32 = 4;
const THREADS: u32 = 256;
const TILE: usize = 2048;

const SORTED: &str = "the entries of a csr in the order of their columns";

/// The columns that occur in a csr, or the ids in a list. Kept by a context, so that its memory is
/// used again.
#[derive(Debug, Default)]
pub struct Occurrences {
    /// The columns, ascending; the first `n_columns` are.
    columns: CudaBuffer<u64>,
    /// Where the entries of each are, and where those of the last end.
    runs: CudaBuffer<u32>,
    n_columns: usize,
    /// How many columns occur at most, whatever they are: what is known without waiting.
    most_columns: usize,
    /// Whether the GPU was asked for their number, which nobody has read yet.
    is_asked: bool,
    /// The numbers of the entries in the order of their columns.
    entries: CudaBuffer<u32>,
    /// The row of each entry.
    rows: CudaBuffer<u32>,
    narrow: Scratch<u32>,
    wide: Scratch<u64>,
    /// Counts, and their sums.
    counts: CudaBuffer<u32>,
    totals: Vec<CudaBuffer<u32>>,
    /// The number of columns.
    number: CudaBuffer<u32>,
}

/// The other half of a sort.
#[derive(Debug)]
struct Scratch<I: Stored> {
    ids: [CudaBuffer<I>; 2],
    entries: CudaBuffer<u32>,
}

impl<I: Stored> Default for Scratch<I> {
    fn default() -> Self {
        Scratch {
            ids: [CudaBuffer::default(), CudaBuffer::default()],
            entries: CudaBuffer::default(),
        }
    }
}

/// Counts, the totals of their tiles, and a few numbers: what others may use between two lists of
/// occurrences.
pub(crate) type CountBuffers<'a> =
    (&'a mut CudaBuffer<u32>, &'a mut Vec<CudaBuffer<u32>>, &'a mut CudaBuffer<u32>);

/// The columns that occur, where the entries of each are among those sorted, and the row of each
/// entry.
#[derive(Clone, Copy)]
pub(crate) struct FoundColumns<'a> {
    pub(crate) columns: CudaSlice<'a, u64>,
    pub(crate) runs: CudaSlice<'a, u32>,
    pub(crate) entries: CudaSlice<'a, u32>,
    pub(crate) rows: CudaSlice<'a, u32>,
}

impl Occurrences {
    /// What was found last, and the memory for counts.
    pub(crate) fn found_and_sums(&mut self) -> (FoundColumns<'_>, CountBuffers<'_>) {
        let found = FoundColumns {
            columns: self.columns.as_slice().run(0, self.n_columns),
            runs: self.runs.as_slice(),
            entries: self.entries.as_slice(),
            rows: self.rows.as_slice(),
        };
        (found, (&mut self.counts, &mut self.totals, &mut self.number))
    }

    /// The memory for counts.
    pub(crate) fn sums(&mut self) -> CountBuffers<'_> {
        (&mut self.counts, &mut self.totals, &mut self.number)
    }

    /// Finds those of a matrix.
    pub(crate) fn find<V: Stored>(
        &mut self,
        gpu: &Gpu,
        x: CsrView<'_, V, Cuda>,
    ) -> Result<(), CudaError> {
        self.ask(gpu, x)?;
        self.counted()
    }

    /// Asks for those of a matrix; how many columns they have is known when
    /// [`counted`](Self::counted) has waited for it.
    pub fn ask<V: Stored>(&mut self, gpu: &Gpu, x: CsrView<'_, V, Cuda>) -> Result<(), CudaError> {
        let (n, bound) = (x.values().len(), x.n_cols());
        let counts = [n, x.n_rows()];
        if let Some(&count) = counts.iter().find(|&&count| u32::try_from(count).is_err()) {
            self.n_columns = 0;
            return Err(CudaError::TooManyEntries { what: "a csr that is read transposed", count });
        }
        self.make_room(gpu, n)?;
        self.rows.resize_for_overwrite(gpu, n, SORTED)?;
        let warps = Blocks::of(x.n_rows(), THREADS as usize / 32, THREADS);
        let words = [("ID", Word::Name(x.columns().type_name()))];
        // SAFETY: there is a row and a number for each entry, and the rows of a view are all of its
        // entries.
        unsafe {
            Launch::new(gpu, gpu.kernel(&unit(&words), "number_entries")?)
                .reads(x.starts())
                .reads(x.ends())
                .writes(self.rows.as_slice())
                .writes(self.entries.as_slice())
                .size(x.n_rows())
                .launch(warps)
        }?;
        match x.columns() {
            CudaColumnIdsSlice::U32(ids) => {
                let mut scratch = std::mem::take(&mut self.narrow);
                let asked = self.ask_in(gpu, ids, bound.saturating_sub(1), bound, &mut scratch);
                self.narrow = scratch;
                asked
            }
            CudaColumnIdsSlice::U64(ids) => {
                let mut scratch = std::mem::take(&mut self.wide);
                let asked = self.ask_in(gpu, ids, bound.saturating_sub(1), bound, &mut scratch);
                self.wide = scratch;
                asked
            }
        }
    }

    /// Finds those of a matrix in the rows that an array stores, whose ranks there the rows of the
    /// entries then are.
    pub(crate) fn find_in_rows<V: Stored, T: Element>(
        &mut self,
        gpu: &Gpu,
        x: CsrView<'_, V, Cuda>,
        of: RowSparseView<'_, T, Cuda>,
        list: &mut CudaBuffer<u64>,
    ) -> Result<(), CudaError> {
        let (n, bound) = (x.values().len(), x.n_cols());
        let counts = [n, x.n_rows()];
        if let Some(&count) = counts.iter().find(|&&count| u32::try_from(count).is_err()) {
            self.n_columns = 0;
            return Err(CudaError::TooManyEntries { what: "a csr that is read transposed", count });
        }
        self.make_room(gpu, n)?;
        self.rows.resize_for_overwrite(gpu, n, SORTED)?;
        list.resize_for_overwrite(gpu, n, SORTED)?;
        let (stored, n_stored) = of.stored_on_gpu();
        let words = [("ID", Word::Name(x.columns().type_name()))];
        let launch = Launch::new(gpu, gpu.kernel(&unit(&words), "number_entries_of_rows")?);
        let launch = launch.reads(x.starts()).reads(x.ends()).columns(x.columns()).reads(stored);
        let launch = launch.size(n_stored).size(bound).writes(list.as_slice());
        let launch = launch.writes(self.rows.as_slice()).writes(self.entries.as_slice());
        let warps = Blocks::of(x.n_rows(), THREADS as usize / 32, THREADS);
        // SAFETY: there is an id, a row and a number for each entry, and the rows of a view are all
        // of its entries.
        unsafe { launch.size(x.n_rows()).launch(warps) }?;
        let mut scratch = std::mem::take(&mut self.wide);
        let asked = self.ask_in(gpu, list.as_slice(), bound, bound, &mut scratch);
        self.wide = scratch;
        asked?;
        self.counted()
    }

    /// Finds those of a list of ids up to `bound`, which itself stands for no id. The entries are
    /// positions in the list.
    pub(crate) fn find_ids(
        &mut self,
        gpu: &Gpu,
        ids: CudaSlice<'_, u64>,
        bound: usize,
    ) -> Result<(), CudaError> {
        self.ask_for_ids(gpu, ids, bound)?;
        self.counted()
    }

    /// Asks for those of a list of ids, as [`ask`](Self::ask) for those of a matrix.
    pub fn ask_for_ids(
        &mut self,
        gpu: &Gpu,
        ids: CudaSlice<'_, u64>,
        bound: usize,
    ) -> Result<(), CudaError> {
        let n = ids.len();
        if u32::try_from(n).is_err() {
            self.n_columns = 0;
            return Err(CudaError::TooManyEntries { what: "a list of ids", count: n });
        }
        self.make_room(gpu, n)?;
        let words = [("ID", Word::Name("u64"))];
        let launch = Launch::new(gpu, gpu.kernel(&unit(&words), "number_ids")?);
        // SAFETY: there is a number for each id.
        unsafe {
            let launch = launch.writes(self.entries.as_slice()).size(n);
            launch.launch(Blocks::of(n, THREADS as usize, THREADS))
        }?;
        let mut scratch = std::mem::take(&mut self.wide);
        let asked = self.ask_in(gpu, ids, bound, bound, &mut scratch);
        self.wide = scratch;
        asked
    }

    /// Finds the groups of a matrix's rows, of which there is a number for each: those below
    /// `bound`, which itself stands for no group. The columns are then the groups that have
    /// entries, and the entries of a group are in the order of their columns, and of their rows in
    /// a column.
    pub(crate) fn find_groups<V: Stored>(
        &mut self,
        gpu: &Gpu,
        x: CsrView<'_, V, Cuda>,
        groups: CudaSlice<'_, u64>,
        bound: usize,
        list: &mut CudaBuffer<u64>,
    ) -> Result<(), CudaError> {
        // Sorted by columns, and then by groups, stably.
        self.ask(gpu, x)?;
        self.is_asked = false;
        let n = x.values().len();
        list.resize_for_overwrite(gpu, n, SORTED)?;
        let words = [("ID", Word::Name("u64"))];
        let launch = Launch::new(gpu, gpu.kernel(&unit(&words), "groups_of_entries")?);
        let launch = launch.reads(self.entries.as_slice()).reads(self.rows.as_slice());
        let launch = launch.reads(groups).writes(list.as_slice()).size(n);
        // SAFETY: the entries are those of the matrix, and there is a group for each row of them
        // and room for that of each entry.
        unsafe { launch.launch(Blocks::of(n, THREADS as usize, THREADS)) }?;
        let mut scratch = std::mem::take(&mut self.wide);
        let asked = self.ask_in(gpu, list.as_slice(), bound, bound, &mut scratch);
        self.wide = scratch;
        asked?;
        self.counted()
    }

    fn make_room(&mut self, gpu: &Gpu, n: usize) -> Result<(), CudaError> {
        (self.n_columns, self.most_columns, self.is_asked) = (0, 0, false);
        self.entries.resize_for_overwrite(gpu, n, SORTED)?;
        self.runs.resize_for_overwrite(gpu, n + 1, SORTED)?;
        self.columns.resize_for_overwrite(gpu, n, SORTED)?;
        self.number.resize_for_overwrite(gpu, 1, SORTED)
    }

    /// The columns that occur, ascending.
    pub(crate) fn columns(&self) -> CudaSlice<'_, u64> {
        self.columns.as_slice().run(0, self.n_columns)
    }

    /// The same, without waiting: how many occur at most, the memory that has them, ascending, and
    /// on the GPU their number.
    pub fn columns_asked_for(&self) -> (usize, CudaSlice<'_, u64>, CudaSlice<'_, u32>) {
        (self.most_columns, self.columns.as_slice(), self.number.as_slice())
    }

    /// For each of them where its entries are in [`entries`](Self::entries), and where those of the
    /// last end.
    pub fn runs(&self) -> CudaSlice<'_, u32> {
        self.runs.as_slice()
    }

    /// The numbers of the entries, column by column.
    pub fn entries(&self) -> CudaSlice<'_, u32> {
        self.entries.as_slice()
    }

    /// The row of each entry.
    pub fn rows(&self) -> CudaSlice<'_, u32> {
        self.rows.as_slice()
    }

    /// Waits until it is known how many columns there are of what was asked for last.
    ///
    /// # Errors
    ///
    /// What failed on the GPU so far.
    pub(crate) fn counted(&mut self) -> Result<(), CudaError> {
        if std::mem::take(&mut self.is_asked) {
            self.n_columns = self.number.to_host()?.first().map_or(0, |&number| number as usize);
        }
        Ok(())
    }

    /// Sorts the entries by ids of at most `largest`, and asks for the runs of those below `bound`.
    fn ask_in<I: Id>(
        &mut self,
        gpu: &Gpu,
        ids: CudaSlice<'_, I>,
        largest: usize,
        bound: usize,
        scratch: &mut Scratch<I>,
    ) -> Result<(), CudaError> {
        let n = ids.len();
        if n == 0 {
            return Ok(());
        }
        let words = [("ID", Word::Name(I::TYPE.name()))];
        let unit = unit(&words);
        let kernel = |name| Ok::<_, CudaError>(Launch::new(gpu, gpu.kernel(&unit, name)?));
        let tiles = Blocks::of(n, TILE, THREADS);
        let each = Blocks::of(n, THREADS as usize, THREADS);

        let Scratch { ids: sorted, entries: other } = scratch;
        for buffer in &mut *sorted {
            buffer.resize_for_overwrite(gpu, n, SORTED)?;
        }
        other.resize_for_overwrite(gpu, n, SORTED)?;

        let bits = usize::BITS - largest.leading_zeros();
        let mut from = ids;
        let [to, next] = sorted;
        let (mut to, mut next) = (&*to, &*next);
        for shift in (0..bits.max(1)).step_by(DIGIT_BITS as usize) {
            let n_counts = tiles.x << DIGIT_BITS;
            self.counts.resize_for_overwrite(gpu, n_counts, SORTED)?;
            // SAFETY: there is a count for each digit of each tile.
            unsafe {
                kernel("count_digits")?
                    .reads(from)
                    .size(n)
                    .size(shift as usize)
                    .writes(self.counts.as_slice())
                    .launch(tiles)
            }?;
            sum_up(gpu, self.counts.as_slice(), &mut self.totals)?;
            // SAFETY: the sums of counts are a place for each entry.
            unsafe {
                kernel("move_by_digit")?
                    .reads(from)
                    .reads(self.entries.as_slice())
                    .size(n)
                    .size(shift as usize)
                    .reads(self.counts.as_slice())
                    .writes(to.as_slice())
                    .writes(other.as_slice())
                    .launch(tiles)
            }?;
            std::mem::swap(&mut self.entries, other);
            from = to.as_slice();
            std::mem::swap(&mut to, &mut next);
        }

        self.counts.resize_for_overwrite(gpu, n, SORTED)?;
        // SAFETY: there is a mark for each entry.
        unsafe {
            kernel("mark_runs")?.reads(from).size(n).writes(self.counts.as_slice()).launch(each)
        }?;
        sum_up(gpu, self.counts.as_slice(), &mut self.totals)?;
        // SAFETY: there are at most as many runs as entries, and room for one end more.
        unsafe {
            kernel("write_runs")?
                .reads(from)
                .size(n)
                .size(bound)
                .reads(self.counts.as_slice())
                .writes(self.columns.as_slice())
                .writes(self.runs.as_slice())
                .writes(self.number.as_slice())
                .launch(each)
        }?;
        self.is_asked = true;
        self.most_columns = n.min(bound);
        Ok(())
    }
}

/// The unit of these kernels, for ids of a type.
fn unit<'a>(words: &'a [(&'static str, Word)]) -> Unit<'a> {
    Unit { file: "kernels/cuda/occurrences.cu", text: TEXT, words }
}

/// Visits these units.
pub(super) fn for_each_unit(visit: &mut dyn FnMut(&Unit<'_>)) {
    for id in ["u32", "u64"] {
        visit(&unit(&[("ID", Word::Name(id))]));
    }
}

/// Each value becomes the sum of those before it. `totals` has a buffer for each level of tiles of
/// tiles.
pub(in crate::kernels) fn sum_up(
    gpu: &Gpu,
    values: CudaSlice<'_, u32>,
    totals: &mut Vec<CudaBuffer<u32>>,
) -> Result<(), CudaError> {
    sum_up_level(gpu, values, totals, 0)
}

fn sum_up_level(
    gpu: &Gpu,
    values: CudaSlice<'_, u32>,
    totals: &mut Vec<CudaBuffer<u32>>,
    level: usize,
) -> Result<(), CudaError> {
    let words = [("ID", Word::Name("u32"))];
    let unit = &unit(&words);
    let tiles = Blocks::of(values.len(), TILE, THREADS);
    if totals.len() == level {
        totals.push(CudaBuffer::default());
    }
    totals[level].resize_for_overwrite(gpu, tiles.x, SORTED)?;
    let sum = Launch::new(gpu, gpu.kernel(unit, "sum_up")?).writes(values).size(values.len());
    // SAFETY: there is a total for each tile.
    unsafe { sum.writes(totals[level].as_slice()).launch(tiles) }?;
    if tiles.x < 2 {
        return Ok(());
    }
    // The totals of one level are out of `totals` while those of the next are made.
    let of_tiles = std::mem::take(&mut totals[level]);
    let summed = sum_up_level(gpu, of_tiles.as_slice(), totals, level + 1);
    totals[level] = of_tiles;
    summed?;
    let add = Launch::new(gpu, gpu.kernel(unit, "add_totals")?).writes(values).size(values.len());
    // SAFETY: as above.
    unsafe { add.reads(totals[level].as_slice()).launch(tiles) }
}
