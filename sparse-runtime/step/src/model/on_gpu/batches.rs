//! Batches on their way to a GPU, and there.

use crate::model::{InputView, Model};
use nnz_arrays::device::cuda::{Cuda, CudaColumnIdsSlice, CudaError, CudaSlice, Gpu};
use nnz_arrays::formats::{
    ColumnId, ColumnIdsView, CsrView, DenseView, IdsView, RowIdsView, RowSparseView, Shape,
    fits_u32,
};
use nnz_arrays::kernels::cuda::GpuFloat;
use nnz_arrays::kernels::cuda::table::GpuOperand;
use nnz_arrays::with_column_ids;
use nnz_device::cuda::{Layout, Span, Upload};
use sparse_core::element::{Element, Stored, Unit};

/// Room for two batches: one that is computed, and one that is copied meanwhile. Each grows to the
/// largest that it has seen.
#[derive(Debug)]
pub(super) struct Batches<T: GpuFloat> {
    blocks: [Block<T>; 2],
    /// The one that kernels read.
    current: usize,
    /// Whether the other one has a batch that was taken for a step to come.
    has_taken: bool,
}

impl<T: GpuFloat> Batches<T> {
    pub(super) fn new() -> Self {
        let block = || Block { upload: None, parts: Vec::new() };
        Batches { blocks: [block(), block()], current: 0, has_taken: false }
    }

    /// Copies a batch for a step to come. One that was taken before is forgotten.
    ///
    /// # Errors
    ///
    /// [`CudaError::OutOfMemory`], [`CudaError::PinnedOutOfMemory`], [`CudaError::Copy`]; there is
    /// none taken then.
    pub(super) fn take<M: Model<Element = T>>(
        &mut self,
        gpu: &Gpu,
        batch: &M::Batch<'_>,
    ) -> Result<(), CudaError> {
        self.has_taken = false;
        self.blocks[1 - self.current].send::<M>(gpu, batch)?;
        self.has_taken = true;
        Ok(())
    }

    /// Which of the two is computed.
    pub(super) fn current(&self) -> usize {
        self.current
    }

    /// Whether a batch was taken for a step to come.
    pub(super) fn has_taken(&self) -> bool {
        self.has_taken
    }

    /// Kernels that are launched from now on read the batch that was taken.
    pub(super) fn read_taken(&mut self) -> Result<(), CudaError> {
        self.has_taken = false;
        self.read(1 - self.current)
    }

    /// Copies a batch, which kernels that are launched from now on read. One that was taken stays
    /// so.
    ///
    /// # Errors
    ///
    /// As [`take`](Batches::take).
    pub(super) fn read_now<M: Model<Element = T>>(
        &mut self,
        gpu: &Gpu,
        batch: &M::Batch<'_>,
    ) -> Result<(), CudaError> {
        let next = if self.has_taken { self.current } else { 1 - self.current };
        if next == self.current {
            self.blocks[next].is_read()?;
        }
        self.blocks[next].send::<M>(gpu, batch)?;
        self.read(next)
    }

    fn read(&mut self, next: usize) -> Result<(), CudaError> {
        if next != self.current {
            self.blocks[self.current].is_read()?;
            self.current = next;
        }
        match &self.blocks[next].upload {
            Some(upload) => upload.wait(),
            None => Ok(()),
        }
    }

    /// An input of the batch that kernels read.
    pub(super) fn operand(&self, index: usize) -> Option<GpuOperand<'_, T>> {
        let Block { upload, parts } = &self.blocks[self.current];
        Some(parts.get(index)?.operand(upload.as_ref()?))
    }
}

/// A batch, all of its arrays in one block.
#[derive(Debug)]
struct Block<T: GpuFloat> {
    upload: Option<Upload>,
    /// Where each input is.
    parts: Vec<InputPart<T>>,
}

impl<T: GpuFloat> Block<T> {
    fn send<M: Model<Element = T>>(
        &mut self,
        gpu: &Gpu,
        batch: &M::Batch<'_>,
    ) -> Result<(), CudaError> {
        let Block { upload, parts } = self;
        let upload = match upload {
            Some(upload) => upload,
            none => none.insert(Upload::new(gpu)?),
        };
        let input = |index| M::input(batch, index);
        let mut layout = Layout::default();
        parts.clear();
        parts.extend((0..M::INPUTS.len()).map(|index| InputPart::of(input(index), &mut layout)));
        let names = M::INPUTS.iter().enumerate();
        let given = names.filter(|(index, _)| input(*index).is_some()).map(|(_, info)| info.name);
        let begun = upload.begin(&layout, M::NAME, given);
        if begun.is_err() {
            // They are where there is no room.
            parts.clear();
        }
        begun?;
        for (index, part) in parts.iter().enumerate() {
            if let Some(from) = input(index) {
                part.write(from, upload);
            }
        }
        upload.send()
    }

    fn is_read(&self) -> Result<(), CudaError> {
        self.upload.as_ref().map_or(Ok(()), Upload::is_read)
    }
}

/// Where an array of a batch is.
#[derive(Clone, Copy, Debug)]
enum InputPart<T> {
    /// Nowhere: it was not given.
    Missing,
    Dense(DensePart<T>),
    Csr(CsrPart<T>),
    Unit(CsrPart<Unit>),
    RowSparse {
        shape: Shape,
        rows: Span<u64>,
        values: Span<T>,
    },
    IdsU32(DensePart<u32>),
    IdsU64(DensePart<u64>),
    IdsI64(DensePart<i64>),
}

#[derive(Clone, Copy, Debug)]
struct DensePart<T> {
    shape: Shape,
    values: Span<T>,
}

#[derive(Clone, Copy, Debug)]
struct CsrPart<V> {
    n_cols: usize,
    indptr: Span<u64>,
    columns: ColumnsPart,
    values: Span<V>,
}

#[derive(Clone, Copy, Debug)]
enum ColumnsPart {
    U32(Span<u32>),
    U64(Span<u64>),
}

impl<T: GpuFloat> InputPart<T> {
    fn of(input: Option<InputView<'_, T>>, layout: &mut Layout) -> Self {
        match input {
            None => InputPart::Missing,
            Some(InputView::Dense(array)) => InputPart::Dense(DensePart::of(array, layout)),
            Some(InputView::Csr(array)) => InputPart::Csr(CsrPart::of(array, layout)),
            Some(InputView::Unit(array)) => InputPart::Unit(CsrPart::of(array, layout)),
            Some(InputView::RowSparse(array)) => {
                let shape = *array.shape();
                match array.indices() {
                    RowIdsView::All => InputPart::Dense(DensePart::of(
                        DenseView::table(shape, array.values()),
                        layout,
                    )),
                    RowIdsView::Listed(rows) => InputPart::RowSparse {
                        shape,
                        rows: layout.span(rows.len()),
                        values: layout.span(array.values().len()),
                    },
                }
            }
            Some(InputView::Ids(IdsView::U32(ids))) => {
                InputPart::IdsU32(DensePart::of(ids, layout))
            }
            Some(InputView::Ids(IdsView::U64(ids))) => {
                InputPart::IdsU64(DensePart::of(ids, layout))
            }
            Some(InputView::Ids(IdsView::I64(ids))) => {
                InputPart::IdsI64(DensePart::of(ids, layout))
            }
        }
    }

    /// Writes the array that it was laid out for.
    fn write(&self, from: InputView<'_, T>, to: &mut Upload) {
        match (self, from) {
            (InputPart::Dense(part), InputView::Dense(array)) => part.write(array.values(), to),
            (InputPart::Dense(part), InputView::RowSparse(array)) => part.write(array.values(), to),
            (InputPart::Csr(part), InputView::Csr(array)) => part.write(array, to),
            (InputPart::Unit(part), InputView::Unit(array)) => part.write(array, to),
            (InputPart::RowSparse { rows, values, .. }, InputView::RowSparse(array)) => {
                if let RowIdsView::Listed(stored) = array.indices() {
                    to.write(*rows).copy_from_slice(stored);
                }
                to.write(*values).copy_from_slice(array.values());
            }
            (InputPart::IdsU32(part), InputView::Ids(IdsView::U32(ids))) => {
                part.write(ids.values(), to)
            }
            (InputPart::IdsU64(part), InputView::Ids(IdsView::U64(ids))) => {
                part.write(ids.values(), to)
            }
            (InputPart::IdsI64(part), InputView::Ids(IdsView::I64(ids))) => {
                part.write(ids.values(), to)
            }
            // A part is of the storage of what it was laid out for.
            _ => {}
        }
    }

    fn operand<'b>(&self, block: &'b Upload) -> GpuOperand<'b, T> {
        match self {
            InputPart::Missing => {
                GpuOperand::Dense(DenseView::of_slice([0].into(), CudaSlice::default()))
            }
            InputPart::Dense(part) => GpuOperand::Dense(part.view(block)),
            InputPart::Csr(part) => GpuOperand::Csr(part.view(block)),
            InputPart::Unit(part) => GpuOperand::Unit(part.view(block)),
            InputPart::RowSparse { shape, rows, values } => {
                let (rows, values) = (block.slice(*rows), block.slice(*values));
                GpuOperand::RowSparse(RowSparseView::of_slices(*shape, rows, values))
            }
            InputPart::IdsU32(part) => GpuOperand::Ids(part.view(block).into()),
            InputPart::IdsU64(part) => GpuOperand::Ids(part.view(block).into()),
            InputPart::IdsI64(part) => GpuOperand::Ids(part.view(block).into()),
        }
    }
}

impl<T: Element> DensePart<T> {
    fn of(array: DenseView<'_, T>, layout: &mut Layout) -> Self {
        DensePart { shape: *array.shape(), values: layout.span(array.values().len()) }
    }

    fn write(&self, values: &[T], to: &mut Upload) {
        to.write(self.values).copy_from_slice(values);
    }

    fn view<'b>(&self, block: &'b Upload) -> DenseView<'b, T, Cuda> {
        DenseView::of_slice(self.shape, block.slice(self.values))
    }
}

impl<V: Stored> CsrPart<V> {
    /// Room for the rows of a view, and for those only.
    fn of(array: CsrView<'_, V>, layout: &mut Layout) -> Self {
        let (n_cols, nnz) = (array.n_cols(), array.nnz());
        CsrPart {
            n_cols,
            indptr: layout.span(array.n_rows() + 1),
            columns: if fits_u32(n_cols) {
                ColumnsPart::U32(layout.span(nnz))
            } else {
                ColumnsPart::U64(layout.span(nnz))
            },
            values: layout.span(nnz),
        }
    }

    fn write(&self, from: CsrView<'_, V>, to: &mut Upload) {
        let mut written = 0;
        let indptr = to.write(self.indptr);
        indptr[0] = 0;
        for ((end, from_start), from_end) in
            indptr[1..].iter_mut().zip(from.starts()).zip(from.ends())
        {
            written += from_end - from_start;
            *end = written;
        }
        match self.columns {
            ColumnsPart::U32(columns) => write_columns(from, to.write(columns)),
            ColumnsPart::U64(columns) => write_columns(from, to.write(columns)),
        }
        let mut values = to.write(self.values);
        for row in rows(from) {
            let (of_row, rest) = values.split_at_mut(row.len());
            of_row.copy_from_slice(&from.values()[row]);
            values = rest;
        }
    }

    fn view<'b>(&self, block: &'b Upload) -> CsrView<'b, V, Cuda> {
        let columns = match self.columns {
            ColumnsPart::U32(columns) => CudaColumnIdsSlice::U32(block.slice(columns)),
            ColumnsPart::U64(columns) => CudaColumnIdsSlice::U64(block.slice(columns)),
        };
        CsrView::of_slices(self.n_cols, block.slice(self.indptr), columns, block.slice(self.values))
    }
}

/// The columns of the rows of a view, one after the other, as ids of a type that has room for them.
fn write_columns<I: ColumnId, V: Stored>(from: CsrView<'_, V>, mut to: &mut [I]) {
    let columns: ColumnIdsView<'_> = from.columns();
    with_column_ids!(columns, |ids| {
        for row in rows(from) {
            let (of_row, rest) = to.split_at_mut(row.len());
            for (to, id) in of_row.iter_mut().zip(&ids[row]) {
                *to = I::from_index(id.at());
            }
            to = rest;
        }
    });
}

/// Runs of entries that make up the rows of a view: one where they lie one after the other.
fn rows<V: Stored>(of: CsrView<'_, V>) -> impl Iterator<Item = std::ops::Range<usize>> {
    let whole = of.is_contiguous().then(|| of.entries());
    let n_rows = if whole.is_some() { 0 } else { of.n_rows() };
    let (starts, ends) = (of.starts()[..n_rows].iter(), of.ends()[..n_rows].iter());
    whole.into_iter().chain(starts.zip(ends).map(|(&start, &end)| start as usize..end as usize))
}
