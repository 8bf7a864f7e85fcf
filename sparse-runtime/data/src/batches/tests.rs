use super::*;
use crate::Labels;
use nnz_arrays::formats::{Csr, Dense};
use nnz_step::model::{Extent, InputRole, LabelKind};
use proptest::prelude::*;
use sparse_core::storage::{ElementType, Storage};

const INPUTS: &[InputInfo] = &[
    declare("x", InputRole::Input, Storage::Csr, ElementType::F32, 2),
    declare("two", InputRole::Input, Storage::Dense, ElementType::F32, 2),
    declare("y", InputRole::Label, Storage::Dense, ElementType::F32, 1),
    declare("class", InputRole::Label, Storage::Dense, ElementType::I64, 2),
];

const fn declare(
    name: &'static str,
    role: InputRole,
    storage: Storage,
    element: ElementType,
    rank: usize,
) -> InputInfo {
    const SHAPES: [&[Extent]; 3] =
        [&[], &[Extent::Named("n")], &[Extent::Named("n"), Extent::Named("d")]];
    InputInfo { name, role, storage, element, shape: SHAPES[rank], label: LabelKind::Real }
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
        .label("class", (0..n_rows).map(|i| i as i64).collect::<Vec<_>>())
        .build()
        .unwrap()
}

/// The rows of a batch, after a check that all arrays agree on them.
fn rows_of(data: &Dataset, batch: &DatasetBatch<'_, f32>) -> Vec<usize> {
    let n = batch.n_rows();
    let (x, two) = (batch.csr(0).unwrap(), batch.dense(1).unwrap());
    let (y, class) = (batch.dense(2).unwrap(), batch.ids(3).unwrap());
    assert_eq!((x.n_rows(), &two.shape()[..]), (n, &[n, 2][..]));
    assert_eq!((&y.shape()[..], &class.shape()[..]), (&[n][..], &[n, 1][..]));
    let row = |i: usize| {
        let row = class.get(i).unwrap();
        assert_eq!(batch.row_id(i), Some(row as u64));
        assert_eq!(y.values()[i], row as f32);
        assert_eq!(two.row(i), Some(&[row as f32, -(row as f32)][..]));
        assert_eq!(x.row(i), data.features().unwrap().row(row));
        row
    };
    let rows: Vec<usize> = (0..n).map(row).collect();
    assert_eq!(batch.row_id(n), None);
    let mut ids = vec![7];
    batch.append_row_ids(&mut ids);
    assert_eq!((ids[0], &ids[1..]), (7, &rows[..]));
    rows
}

fn options(batch_size: usize, order: Order, last_batch: LastBatch) -> BatchOptions {
    BatchOptions { batch_size, order, last_batch, labels: Labels::Required }
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
    assert_eq!(batches.position(), Position { epoch, batch: n_batches });
    (found, n_padding)
}

fn epochs(n_rows: usize, options: BatchOptions, n_epochs: u64) -> Vec<(Vec<Vec<usize>>, usize)> {
    let data = data(n_rows);
    let mut batches = data.batches(INPUTS, &options).unwrap();
    (0..n_epochs).map(|i| epoch(&data, &mut batches, i)).collect()
}

#[test]
fn last_batches() {
    let sequential = |last_batch| epochs(5, options(2, Order::Sequential, last_batch), 3);
    let short = (vec![vec![0, 1], vec![2, 3], vec![4]], 0);
    assert_eq!(sequential(LastBatch::Short), [short.clone(), short.clone(), short]);
    let discard = (vec![vec![0, 1], vec![2, 3]], 0);
    assert_eq!(sequential(LastBatch::Discard), [discard.clone(), discard.clone(), discard]);
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
fn large_batches_of_divided_data_lead_to_the_parts_of_their_rows() {
    let data = data(3 * MIN_DIVIDED_BATCH - 1).divided_for(2).unwrap();
    for order in [Order::Sequential, Order::Shuffled { seed: 3 }] {
        // The last batch goes on with the first rows.
        let options = options(MIN_DIVIDED_BATCH, order, LastBatch::Pad);
        let mut batches = data.batches(INPUTS, &options).unwrap();
        let mut seen = [false; 2];
        for _ in 0..3 {
            let batch = batches.next_batch().unwrap().unwrap();
            rows_of(&data, &batch);
            let x = batch.csr(0).unwrap();
            assert!(x.divided_among(3).is_none());
            let divided = x.divided_among(2).unwrap();
            let parts = [0, 1].map(|part| divided.part(part));
            assert_eq!(parts[0].nnz() + parts[1].nnz(), x.nnz());
            seen = [0, 1].map(|part| seen[part] | (parts[part].nnz() > 0));
            for (row, entries) in x.iter_rows().enumerate() {
                let of_parts = parts.iter().flat_map(|part| part.iter_rows().nth(row).unwrap());
                assert!(entries.eq(of_parts), "row {row}, {order:?}");
            }
        }
        assert_eq!(seen, [true; 2]);
        let options = BatchOptions { batch_size: MIN_DIVIDED_BATCH - 1, ..options };
        let mut batches = data.batches(INPUTS, &options).unwrap();
        let batch = batches.next_batch().unwrap().unwrap();
        assert!(batch.csr(0).unwrap().divided_among(2).is_none());
    }
}

#[test]
fn batches_larger_than_the_data() {
    let sequential = |last_batch| epochs(2, options(5, Order::Sequential, last_batch), 4);
    assert_eq!(sequential(LastBatch::Short)[0], (vec![vec![0, 1]], 0));
    assert_eq!(sequential(LastBatch::Discard)[0], (vec![], 0));
    assert_eq!(sequential(LastBatch::Pad)[0], (vec![vec![0, 1, 0, 1, 0]], 3));
    assert_eq!(
        sequential(LastBatch::RollOver),
        [(vec![], 0), (vec![], 0), (vec![vec![0, 1, 0, 1, 0]], 0), (vec![], 0),]
    );
    let huge = epochs(2, options(usize::MAX, Order::Sequential, LastBatch::Short), 1);
    assert_eq!(huge[0].0, [[0, 1]]);
}

#[test]
fn no_rows_no_batches() {
    for order in [Order::Sequential, Order::Shuffled { seed: 1 }] {
        for last_batch in
            [LastBatch::Short, LastBatch::Discard, LastBatch::Pad, LastBatch::RollOver]
        {
            assert_eq!(epochs(0, options(3, order, last_batch), 2), [(vec![], 0), (vec![], 0)]);
        }
    }
}

#[test]
fn what_a_batch_does_not_hold() {
    let data = data(3);
    for order in [Order::Sequential, Order::Shuffled { seed: 1 }] {
        let ignoring =
            BatchOptions { labels: Labels::Ignored, ..options(2, order, LastBatch::Short) };
        let mut batches = data.batches(INPUTS, &ignoring).unwrap();
        let batch = batches.next_batch().unwrap().unwrap();
        assert_eq!((batch.n_rows(), batch.csr(0).unwrap().n_rows()), (2, 2));
        assert_eq!(batch.dense(2).unwrap().shape()[..], [0]);
        let class = batch.ids(3).unwrap();
        assert_eq!((&class.shape()[..], class.element()), (&[0, 0][..], ElementType::I64));
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
    let error =
        data.batches(INPUTS, &options(0, Order::Sequential, LastBatch::Short)).err().unwrap();
    assert_eq!(error.to_string(), "the batch size is 0: a batch has at least one row");
    let mut batches =
        data.batches(INPUTS, &options(2, Order::Sequential, LastBatch::Short)).unwrap();
    batches.seek(Position { epoch: 4, batch: 2 }).unwrap();
    assert!(batches.next_batch().unwrap().is_none());
    let error = batches.seek(Position { epoch: 4, batch: 3 }).unwrap_err();
    assert_eq!(error.to_string(), "epoch 4 has 2 batches: there is no batch 3");
}

fn any_order() -> impl Strategy<Value = Order> {
    prop_oneof![Just(Order::Sequential), any::<u64>().prop_map(|seed| Order::Shuffled { seed })]
}

fn any_last_batch() -> impl Strategy<Value = LastBatch> {
    prop_oneof![
        Just(LastBatch::Short),
        Just(LastBatch::Discard),
        Just(LastBatch::Pad),
        Just(LastBatch::RollOver),
    ]
}

#[test]
fn a_batch_that_is_filled_up_is_bounded() {
    let data = data(3);
    let batches = |batch_size, last_batch| {
        let options = options(batch_size, Order::Shuffled { seed: 1 }, last_batch);
        data.batches(INPUTS, &options).map(|batches| batches.n_batches())
    };
    let error = batches(1 << 40, LastBatch::Pad).unwrap_err().to_string();
    let message = "the batch size is 1099511627776, but a batch that `LastBatch::Pad` fills up has at most 16777216 rows";
    assert!(error.starts_with(message), "{error}");
    assert_eq!(batches(1 << 40, LastBatch::Short).unwrap(), Some(1));
    assert_eq!(batches(100, LastBatch::Pad).unwrap(), Some(1));
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
