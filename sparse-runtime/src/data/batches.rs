//! Batches of data in memory.
//!
//! Everything that can be settled is settled before the first batch: names, types, labels, ranks, and each epoch's
//! order. What is left for a batch of consecutive rows, or of one row wherever it lies, is slicing. Any other batch gathers
//! the bounds of its rows and its labels into buffers that are reused; non-zeros are never copied.

use super::binding::{Bound, BoundDense, bind};
use super::column::append_rows;
use super::order::append_shuffled;
use super::source::{Batch, Batches, DataSource};
use super::{BatchOptions, DataError, Dataset, LastBatch, Order, Position};
use crate::error::Result;
use crate::formats::{CsrView, DenseView};
use crate::model::{BatchSource, InputInfo};
use sparse_core::element::{Element, Float};

impl<T: Float> DataSource<T> for Dataset<T> {
    type Batches<'s> = DatasetBatches<'s, T>;

    fn n_rows(&self) -> Option<usize> {
        Some(Dataset::n_rows(self))
    }

    fn batches<'s>(
        &'s self,
        inputs: &[InputInfo],
        options: &BatchOptions,
    ) -> Result<DatasetBatches<'s, T>> {
        if options.batch_size == 0 {
            return Err(DataError::ZeroBatchSize.into());
        }
        let bound = bind(self, inputs, options.labels)?;
        let mut batches = DatasetBatches {
            columns: bound.into_iter().map(BatchColumn::new).collect(),
            n_rows: Dataset::n_rows(self),
            options: *options,
            epoch: 0,
            sequence: Sequence::default(),
            next: 0,
        };
        batches.lay_out_epoch();
        Ok(batches)
    }
}

/// The batches of a [`Dataset`]; see [`Batches`].
pub struct DatasetBatches<'s, T: Float> {
    columns: Vec<BatchColumn<'s, T>>,
    n_rows: usize,
    options: BatchOptions,
    epoch: u64,
    sequence: Sequence,
    /// The batch that comes next.
    next: usize,
}

/// The rows of one epoch in order, padding and what rolled over included.
#[derive(Default)]
struct Sequence {
    /// The rows one by one, or empty where they are consecutive.
    listed: Vec<usize>,
    /// Where consecutive rows begin; after the last row comes row 0 again.
    first: usize,
    /// Room for a batch of consecutive rows that goes over the end.
    wrapped: Vec<usize>,
    n_batches: usize,
    /// The rows of all batches: `n_batches` times the batch size, or less if the last is short.
    len: usize,
    /// The rows without padding.
    n_real: usize,
}

/// One bound array, and room for a gathered batch of it.
struct BatchColumn<'s, T: Float> {
    all: Bound<'s, T>,
    starts: Vec<u64>,
    ends: Vec<u64>,
    values: Vec<T>,
    ids: Vec<u32>,
}

/// A batch of a [`Dataset`].
pub struct DatasetBatch<'b, T: Float> {
    columns: &'b [BatchColumn<'b, T>],
    rows: Rows<'b>,
    n_padding: usize,
}

/// The rows of a batch.
#[derive(Clone, Copy)]
enum Rows<'b> {
    /// A run of rows of the data.
    Run { first: usize, len: usize },
    /// These rows, gathered.
    Gathered(&'b [usize]),
}

impl<T: Float> DatasetBatches<'_, T> {
    /// Lays out the rows of `self.epoch`. O(1) for sequential order, O(n_rows) for shuffled order.
    fn lay_out_epoch(&mut self) {
        let n_rows = self.n_rows;
        let batch_size = self.options.batch_size;
        // Epochs that roll over are cut from one endless sequence, so that what is left of those before follows
        // from their number.
        let n_left = match self.options.last_batch {
            LastBatch::RollOver => {
                let before = u128::from(self.epoch) * n_rows as u128;
                (before % batch_size as u128) as usize
            }
            LastBatch::Short | LastBatch::Discard | LastBatch::Pad => 0,
        };
        let n_real = n_left + n_rows;
        let (n_batches, len) = match self.options.last_batch {
            LastBatch::Short => (n_real.div_ceil(batch_size), n_real),
            LastBatch::Discard | LastBatch::RollOver => {
                (n_real / batch_size, n_real / batch_size * batch_size)
            }
            LastBatch::Pad => {
                let n_batches = n_real.div_ceil(batch_size);
                (n_batches, n_batches.saturating_mul(batch_size))
            }
        };
        let sequence = &mut self.sequence;
        (sequence.n_batches, sequence.len, sequence.n_real) = (n_batches, len, n_real);
        sequence.listed.clear();
        sequence.first = 0;
        if n_batches == 0 {
            return;
        }
        match self.options.order {
            Order::Sequential => sequence.first = (n_rows - n_left % n_rows) % n_rows,
            Order::Shuffled { seed } => {
                let listed = &mut sequence.listed;
                let n_epochs_left = n_left.div_ceil(n_rows) as u64;
                for epoch in self.epoch - n_epochs_left..=self.epoch {
                    append_shuffled(listed, n_rows, seed, epoch);
                }
                listed.drain(..listed.len() - n_real);
                for padding in n_real..len {
                    listed.push(listed[padding - n_rows]);
                }
            }
        }
    }
}

impl<T: Float> Batches<T> for DatasetBatches<'_, T> {
    type Batch<'b>
        = DatasetBatch<'b, T>
    where
        Self: 'b;

    fn seek(&mut self, position: Position) -> Result<()> {
        if position.epoch != self.epoch {
            self.epoch = position.epoch;
            self.lay_out_epoch();
        }
        match usize::try_from(position.batch) {
            Ok(batch) if batch <= self.sequence.n_batches => {
                self.next = batch;
                Ok(())
            }
            _ => Err(DataError::BatchOutOfRange {
                epoch: position.epoch,
                batch: position.batch,
                n_batches: self.sequence.n_batches as u64,
            }
            .into()),
        }
    }

    #[inline]
    fn next_batch(&mut self) -> Result<Option<DatasetBatch<'_, T>>> {
        let sequence = &mut self.sequence;
        if self.next == sequence.n_batches {
            return Ok(None);
        }
        let start = self.next * self.options.batch_size;
        let len = self.options.batch_size.min(sequence.len - start);
        self.next += 1;
        let n_padding = (start + len).saturating_sub(sequence.n_real);
        let rows = if sequence.listed.is_empty() {
            let first = match start + sequence.first {
                first if first < self.n_rows => first,
                beyond => beyond % self.n_rows,
            };
            if first + len <= self.n_rows {
                Rows::Run { first, len }
            } else {
                let wrapped = &mut sequence.wrapped;
                wrapped.clear();
                wrapped.extend((first..first + len).map(|row| row % self.n_rows));
                Rows::Gathered(wrapped)
            }
        } else {
            match &sequence.listed[start..start + len] {
                &[first] => Rows::Run { first, len: 1 },
                rows => Rows::Gathered(rows),
            }
        };
        if let Rows::Gathered(rows) = rows {
            self.columns
                .iter_mut()
                .for_each(|column| column.gather(rows));
        }
        Ok(Some(DatasetBatch {
            columns: &self.columns,
            rows,
            n_padding,
        }))
    }

    fn position(&self) -> Position {
        Position {
            epoch: self.epoch,
            batch: self.next as u64,
        }
    }

    fn n_batches(&self) -> Option<u64> {
        Some(self.sequence.n_batches as u64)
    }
}

impl<'s, T: Float> BatchColumn<'s, T> {
    fn new(all: Bound<'s, T>) -> Self {
        BatchColumn {
            all,
            starts: Vec::new(),
            ends: Vec::new(),
            values: Vec::new(),
            ids: Vec::new(),
        }
    }

    fn gather(&mut self, rows: &[usize]) {
        match &self.all {
            Bound::Csr(csr) => {
                let indptr = csr.indptr();
                self.starts.clear();
                self.starts.extend(rows.iter().map(|&row| indptr[row]));
                self.ends.clear();
                self.ends.extend(rows.iter().map(|&row| indptr[row + 1]));
            }
            Bound::Dense(dense) => {
                self.values.clear();
                append_rows(&mut self.values, dense.values, dense.row_size, rows);
            }
            Bound::Ids(ids) => {
                self.ids.clear();
                append_rows(&mut self.ids, ids.values, ids.row_size, rows);
            }
            Bound::Ignored(_) => {}
        }
    }
}

impl<'b, T: Float> DatasetBatch<'b, T> {
    #[inline]
    fn dense_rows<E: Element>(
        &self,
        all: &BoundDense<'b, E>,
        gathered: &'b [E],
    ) -> Result<DenseView<'b, E>> {
        let (n_rows, values) = match self.rows {
            Rows::Run { first, len } => {
                let range = first * all.row_size..(first + len) * all.row_size;
                (len, &all.values[range])
            }
            Rows::Gathered(rows) => (rows.len(), gathered),
        };
        Ok(DenseView::new(all.shape.with_n_rows(n_rows), values)?)
    }
}

#[cold]
fn wrong_position(index: usize, asked: &'static str) -> DataError {
    DataError::WrongPosition { index, asked }
}

impl<'b, T: Float> BatchSource<'b, T> for DatasetBatch<'b, T> {
    #[inline]
    fn n_rows(&self) -> usize {
        match self.rows {
            Rows::Run { len, .. } => len,
            Rows::Gathered(rows) => rows.len(),
        }
    }

    #[inline]
    fn csr(&self, index: usize) -> Result<CsrView<'b, T>> {
        match self.columns.get(index) {
            Some(BatchColumn {
                all: Bound::Csr(all),
                starts,
                ends,
                ..
            }) => Ok(match self.rows {
                Rows::Run { first, len } => all.view().rows(first..first + len)?,
                Rows::Gathered(_) => all.view().with_rows(starts, ends),
            }),
            Some(BatchColumn {
                all: Bound::Ignored(_),
                ..
            }) => Ok(CsrView::default()),
            _ => Err(wrong_position(index, "csr array").into()),
        }
    }

    #[inline]
    fn dense(&self, index: usize) -> Result<DenseView<'b, T>> {
        match self.columns.get(index) {
            Some(BatchColumn {
                all: Bound::Dense(all),
                values,
                ..
            }) => self.dense_rows(all, values),
            Some(BatchColumn {
                all: Bound::Ignored(shape),
                ..
            }) => Ok(DenseView::new(*shape, &[])?),
            _ => Err(wrong_position(index, "dense array of numbers").into()),
        }
    }

    #[inline]
    fn ids(&self, index: usize) -> Result<DenseView<'b, u32>> {
        match self.columns.get(index) {
            Some(BatchColumn {
                all: Bound::Ids(all),
                ids,
                ..
            }) => self.dense_rows(all, ids),
            Some(BatchColumn {
                all: Bound::Ignored(shape),
                ..
            }) => Ok(DenseView::new(*shape, &[])?),
            _ => Err(wrong_position(index, "array of ids").into()),
        }
    }
}

impl<'b, T: Float> Batch<'b, T> for DatasetBatch<'b, T> {
    fn n_padding(&self) -> usize {
        self.n_padding
    }

    fn row_id(&self, row: usize) -> Option<u64> {
        let id = match self.rows {
            Rows::Run { first, len } => (row < len).then_some(first + row)?,
            Rows::Gathered(rows) => *rows.get(row)?,
        };
        Some(id as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Labels;
    use crate::formats::{Csr, Dense};
    use crate::model::{Extent, InputRole, LabelKind};
    use proptest::prelude::*;
    use sparse_core::storage::{ElementType, Storage};

    const INPUTS: &[InputInfo] = &[
        declare("x", InputRole::Input, Storage::Csr, ElementType::F32, 2),
        declare("two", InputRole::Input, Storage::Dense, ElementType::F32, 2),
        declare("y", InputRole::Label, Storage::Dense, ElementType::F32, 1),
        declare(
            "class",
            InputRole::Label,
            Storage::Dense,
            ElementType::U32,
            2,
        ),
    ];

    const fn declare(
        name: &'static str,
        role: InputRole,
        storage: Storage,
        element: ElementType,
        rank: usize,
    ) -> InputInfo {
        const SHAPES: [&[Extent]; 3] = [
            &[],
            &[Extent::Named("n")],
            &[Extent::Named("n"), Extent::Named("d")],
        ];
        InputInfo {
            name,
            role,
            storage,
            element,
            shape: SHAPES[rank],
            label: LabelKind::Real,
        }
    }

    /// Data in which everything tells the number of its row; row `i` has `i % 3` entries.
    fn data(n_rows: usize) -> Dataset {
        let row = |i: usize| (0..i % 3).map(move |j| (i + j, i as f32));
        let x = Csr::from_rows(n_rows + 2, (0..n_rows).map(row)).unwrap();
        let two: Vec<f32> = (0..n_rows).flat_map(|i| [i as f32, -(i as f32)]).collect();
        Dataset::builder()
            .input("x", x)
            .input("two", Dense::new([n_rows, 2], two).unwrap())
            .label("y", (0..n_rows).map(|i| i as f32).collect::<Vec<_>>())
            .label("class", (0..n_rows).map(|i| i as u32).collect::<Vec<_>>())
            .build()
            .unwrap()
    }

    /// The rows of a batch, after a check that all arrays agree on them.
    fn rows_of(data: &Dataset, batch: &DatasetBatch<'_, f32>) -> Vec<usize> {
        let n = batch.n_rows();
        let (x, two) = (batch.csr(0).unwrap(), batch.dense(1).unwrap());
        let (y, class) = (batch.dense(2).unwrap(), batch.ids(3).unwrap());
        assert_eq!((x.n_rows(), &two.shape()[..]), (n, &[n, 2][..]));
        assert_eq!(
            (&y.shape()[..], &class.shape()[..]),
            (&[n][..], &[n, 1][..])
        );
        let row = |i: usize| {
            let row = class.values()[i] as usize;
            assert_eq!(batch.row_id(i), Some(row as u64));
            assert_eq!(y.values()[i], row as f32);
            assert_eq!(two.row(i), Some(&[row as f32, -(row as f32)][..]));
            assert_eq!(x.row(i), data.features().unwrap().row(row));
            row
        };
        assert_eq!(batch.row_id(n), None);
        (0..n).map(row).collect()
    }

    fn options(batch_size: usize, order: Order, last_batch: LastBatch) -> BatchOptions {
        BatchOptions {
            batch_size,
            order,
            last_batch,
            labels: Labels::Required,
        }
    }

    /// The batches of an epoch and the padding of the last.
    fn epoch(
        data: &Dataset,
        batches: &mut DatasetBatches<'_, f32>,
        epoch: u64,
    ) -> (Vec<Vec<usize>>, usize) {
        batches.start_epoch(epoch).unwrap();
        let n_batches = batches.n_batches().unwrap();
        let (mut found, mut n_padding) = (Vec::new(), 0);
        while let Some(batch) = batches.next_batch().unwrap() {
            assert_eq!(n_padding, 0, "only the last batch is padded");
            found.push(rows_of(data, &batch));
            n_padding = batch.n_padding();
        }
        assert_eq!(found.len() as u64, n_batches);
        assert_eq!(
            batches.position(),
            Position {
                epoch,
                batch: n_batches
            }
        );
        (found, n_padding)
    }

    fn epochs(
        n_rows: usize,
        options: BatchOptions,
        n_epochs: u64,
    ) -> Vec<(Vec<Vec<usize>>, usize)> {
        let data = data(n_rows);
        let mut batches = data.batches(INPUTS, &options).unwrap();
        (0..n_epochs)
            .map(|i| epoch(&data, &mut batches, i))
            .collect()
    }

    #[test]
    fn last_batches() {
        let sequential = |last_batch| epochs(5, options(2, Order::Sequential, last_batch), 3);
        let short = (vec![vec![0, 1], vec![2, 3], vec![4]], 0);
        assert_eq!(
            sequential(LastBatch::Short),
            [short.clone(), short.clone(), short]
        );
        let discard = (vec![vec![0, 1], vec![2, 3]], 0);
        assert_eq!(
            sequential(LastBatch::Discard),
            [discard.clone(), discard.clone(), discard]
        );
        let pad = (vec![vec![0, 1], vec![2, 3], vec![4, 0]], 1);
        assert_eq!(sequential(LastBatch::Pad), [pad.clone(), pad.clone(), pad]);
        assert_eq!(
            sequential(LastBatch::RollOver),
            [
                (vec![vec![0, 1], vec![2, 3]], 0),
                (vec![vec![4, 0], vec![1, 2], vec![3, 4]], 0),
                (vec![vec![0, 1], vec![2, 3]], 0),
            ]
        );
    }

    #[test]
    fn batches_larger_than_the_data() {
        let sequential = |last_batch| epochs(2, options(5, Order::Sequential, last_batch), 4);
        assert_eq!(sequential(LastBatch::Short)[0], (vec![vec![0, 1]], 0));
        assert_eq!(sequential(LastBatch::Discard)[0], (vec![], 0));
        assert_eq!(
            sequential(LastBatch::Pad)[0],
            (vec![vec![0, 1, 0, 1, 0]], 3)
        );
        assert_eq!(
            sequential(LastBatch::RollOver),
            [
                (vec![], 0),
                (vec![], 0),
                (vec![vec![0, 1, 0, 1, 0]], 0),
                (vec![], 0),
            ]
        );
        let huge = epochs(
            2,
            options(usize::MAX, Order::Sequential, LastBatch::Short),
            1,
        );
        assert_eq!(huge[0].0, [[0, 1]]);
    }

    #[test]
    fn no_rows_no_batches() {
        for order in [Order::Sequential, Order::Shuffled { seed: 1 }] {
            for last_batch in [
                LastBatch::Short,
                LastBatch::Discard,
                LastBatch::Pad,
                LastBatch::RollOver,
            ] {
                assert_eq!(
                    epochs(0, options(3, order, last_batch), 2),
                    [(vec![], 0), (vec![], 0)]
                );
            }
        }
    }

    #[test]
    fn what_a_batch_does_not_hold() {
        let data = data(3);
        for order in [Order::Sequential, Order::Shuffled { seed: 1 }] {
            let ignoring = BatchOptions {
                labels: Labels::Ignored,
                ..options(2, order, LastBatch::Short)
            };
            let mut batches = data.batches(INPUTS, &ignoring).unwrap();
            let batch = batches.next_batch().unwrap().unwrap();
            assert_eq!((batch.n_rows(), batch.csr(0).unwrap().n_rows()), (2, 2));
            assert_eq!(batch.dense(2).unwrap().shape()[..], [0]);
            assert_eq!(batch.ids(3).unwrap().shape()[..], [0, 0]);
            for error in [
                batch.csr(1).map(drop),
                batch.dense(0).map(drop),
                batch.ids(1).map(drop),
                batch.csr(9).map(drop),
            ] {
                let message = error.unwrap_err().to_string();
                assert!(message.starts_with("the batch holds no"), "{message}");
            }
        }
    }

    #[test]
    fn senseless_options_and_positions() {
        let data = data(3);
        let error = data
            .batches(INPUTS, &options(0, Order::Sequential, LastBatch::Short))
            .err()
            .unwrap();
        assert_eq!(
            error.to_string(),
            "the batch size is 0: a batch has at least one row"
        );
        let mut batches = data
            .batches(INPUTS, &options(2, Order::Sequential, LastBatch::Short))
            .unwrap();
        batches.seek(Position { epoch: 4, batch: 2 }).unwrap();
        assert!(batches.next_batch().unwrap().is_none());
        let error = batches.seek(Position { epoch: 4, batch: 3 }).unwrap_err();
        assert_eq!(
            error.to_string(),
            "epoch 4 has 2 batches: there is no batch 3"
        );
    }

    fn any_order() -> impl Strategy<Value = Order> {
        prop_oneof![
            Just(Order::Sequential),
            any::<u64>().prop_map(|seed| Order::Shuffled { seed })
        ]
    }

    fn any_last_batch() -> impl Strategy<Value = LastBatch> {
        prop_oneof![
            Just(LastBatch::Short),
            Just(LastBatch::Discard),
            Just(LastBatch::Pad),
            Just(LastBatch::RollOver),
        ]
    }

    proptest! {
        #[test]
        fn every_row_is_met_as_often_as_it_should(
            n_rows in 1usize..20,
            batch_size in 1usize..25,
            order in any_order(),
            last_batch in any_last_batch(),
        ) {
            let epochs = epochs(n_rows, options(batch_size, order, last_batch), 4);
            let mut met = vec![0; n_rows];
            for (batches, n_padding) in &epochs {
                let mut rows = batches.concat();
                let padding = rows.split_off(rows.len() - n_padding);
                for (i, row) in padding.iter().enumerate() {
                    prop_assert_eq!(*row, rows[i % n_rows]);
                }
                if last_batch != LastBatch::RollOver {
                    let expected = match last_batch {
                        LastBatch::Discard => n_rows / batch_size * batch_size,
                        _ => n_rows,
                    };
                    prop_assert_eq!(rows.len(), expected);
                    let mut distinct = rows.clone();
                    distinct.sort_unstable();
                    distinct.dedup();
                    prop_assert_eq!(distinct.len(), rows.len());
                }
                rows.iter().for_each(|&row| met[row] += 1);
                for (i, batch) in batches.iter().enumerate() {
                    let full = batch.len() == batch_size;
                    prop_assert!(full || (last_batch == LastBatch::Short && i + 1 == batches.len()));
                }
            }
            if last_batch == LastBatch::RollOver {
                // All but what is left at the end, which is less than a batch.
                let sum: usize = met.iter().sum();
                prop_assert_eq!(sum, 4 * n_rows / batch_size * batch_size);
                prop_assert!(met.iter().all(|&n| n <= 4));
            }
        }

        #[test]
        fn a_position_determines_the_rest(
            n_rows in 1usize..20,
            batch_size in 1usize..25,
            order in any_order(),
            last_batch in any_last_batch(),
            at in 0u64..4,
            skip in 0u64..5,
        ) {
            let data = data(n_rows);
            let options = options(batch_size, order, last_batch);
            let whole = epochs(n_rows, options, at + 1);
            let (whole, _) = &whole[at as usize];
            let batch = skip.min(whole.len() as u64);
            let mut batches = data.batches(INPUTS, &options).unwrap();
            batches.seek(Position { epoch: at, batch }).unwrap();
            let mut rest = Vec::new();
            while let Some(batch) = batches.next_batch().unwrap() {
                rest.push(rows_of(&data, &batch));
            }
            prop_assert_eq!(&rest[..], &whole[batch as usize..]);
        }
    }
}
