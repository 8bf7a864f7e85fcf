//! Groups, ranks, lengths and leaves that cannot be are refused by name.

use super::*;
use crate::error::Error;
use nnz_arrays::formats::{RowIdsView, RowSparse, RowSparseView};
use nnz_arrays::kernels::MAX_THREADS;
use nnz_step::optimizer::ParameterSpec;
use sparse_core::storage::Storage;

/// A communicator of numbers of its own, that hands back a group of one worker and this number of
/// parcels.
struct Odd {
    rank: usize,
    size: usize,
    parcels: usize,
}

impl Communicator for Odd {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn exchange(
        &mut self,
        outgoing: &mut Parcels,
        incoming: &mut Parcels,
    ) -> Result<(), CommunicatorError> {
        std::mem::swap(outgoing, incoming);
        *outgoing = Parcels::new(self.parcels);
        Ok(())
    }
}

/// A communicator whose only peer asks for whatever is in `message`.
struct Asking {
    message: Vec<u8>,
}

impl Communicator for Asking {
    fn rank(&self) -> usize {
        0
    }

    fn size(&self) -> usize {
        1
    }

    fn exchange(
        &mut self,
        _: &mut Parcels,
        incoming: &mut Parcels,
    ) -> Result<(), CommunicatorError> {
        incoming.iter_mut().for_each(|parcel| parcel.clone_from(&self.message));
        Ok(())
    }
}

fn spec() -> ParameterSpec {
    ParameterSpec::new("w", 4, 1, Some(Storage::RowSparse))
}

fn error_of<A>(result: crate::Result<A>) -> StoreError {
    match result.err().unwrap() {
        Error::Store(error) => error,
        other => panic!("{other}"),
    }
}

#[test]
fn a_group_of_65_536_threads_is_refused() {
    for found in [MAX_THREADS + 1, 65_536, usize::MAX] {
        let error = Threads::group(found).unwrap_err();
        assert_eq!(error, CommunicatorError::TooManyWorkers { found });
        let message = format!("a group has 1024 workers at most, but {found} were asked for");
        assert_eq!(error.to_string(), message);
    }
    assert_eq!(Threads::group(3).unwrap().len(), 3);
}

#[test]
fn a_communicator_of_no_group_is_refused() {
    let refused =
        |rank, size| match error_of(KvStore::<f32, _>::new(Odd { rank, size, parcels: 1 }, 8)) {
            StoreError::Communicator(error) => error,
            other => panic!("{other}"),
        };
    assert_eq!(refused(0, 0), CommunicatorError::NoWorkers);
    assert_eq!(refused(0, 1 << 40), CommunicatorError::TooManyWorkers { found: 1 << 40 });
    assert_eq!(refused(0, usize::MAX), CommunicatorError::TooManyWorkers { found: usize::MAX });
    for rank in [3, usize::MAX] {
        assert_eq!(refused(rank, 3), CommunicatorError::Rank { rank, size: 3 });
    }
}

#[test]
fn an_exchange_that_loses_parcels_is_refused() {
    for parcels in [0, 2] {
        let mut store = KvStore::new(Odd { rank: 0, size: 1, parcels }, 8).unwrap();
        store.init(spec(), &[0.5f32; 4]).unwrap();
        // Also when it is called once more.
        for _ in 0..2 {
            let error = error_of(store.row_sparse_pull("w", &[1]));
            let expected = CommunicatorError::Parcels { here: 0, found: parcels, size: 1 };
            assert_eq!(error, StoreError::Communicator(expected));
        }
    }
}

/// What is sent in answer has as many bytes as the worker's rows, at most.
#[test]
fn a_peer_that_asks_for_a_row_many_times_is_refused() {
    let mut message = Vec::new();
    message::begin(&mut message, message::Call::Request, 0);
    message.extend([0, 0]);
    for _ in 0..1000 {
        message::put_id(&mut message, 3, 4);
    }
    let mut store = KvStore::new(Asking { message }, 8).unwrap();
    store.init(spec(), &[0.5f32; 4]).unwrap();
    let error = error_of(store.row_sparse_pull("w", &[1]));
    let problem = "row ids do not ascend";
    assert_eq!(error, StoreError::Message { rank: 0, problem });
}

#[test]
fn rows_that_do_not_ascend_are_refused_where_they_are_asked_for() {
    let mut store = KvStore::new(OneProcess, 8).unwrap();
    store.init(spec(), &[0.5f32; 4]).unwrap();
    let mut found = [0.0; 4];
    for (ids, row, previous) in [(&[2u64, 1][..], 1, 2), (&[0, 3, 3], 3, 3)] {
        let error = error_of(store.pull_rows("w", RowIdsView::Listed(ids), &mut found));
        assert_eq!(error, StoreError::RowOrder { key: "w".to_owned(), row, previous });
    }
    store.pull_rows("w", RowIdsView::Listed(&[1u64, 3][..]), &mut found).unwrap();
    assert_eq!(found, [0.0, 0.5, 0.0, 0.5]);
}

#[test]
fn a_leaf_that_no_step_has_is_refused() {
    let gradient = RowSparse::new([4, 1], vec![2], vec![1.0f32]).unwrap();
    let mut sum = LeafSum::new();
    sum.add(3, gradient.view(), 1.0).unwrap();
    for leaf in [1 << 31, usize::MAX] {
        let error = sum.add(leaf, gradient.view(), 1.0).unwrap_err();
        assert_eq!(error, StoreError::NoSuchLeaf { leaf });
    }
    // The last one there can be: leaves without a gradient are passed over, all at once.
    sum.add((1 << 31) - 1, gradient.view(), 1.0).unwrap();
    let mut store = KvStore::new(OneProcess, 1 << 31).unwrap();
    store.init(spec(), &[0.0f32; 4]).unwrap();
    store.push("w", &mut sum).unwrap();
    assert_eq!(store.row_sparse_pull("w", &[2]).unwrap().values(), [2.0]);
}

#[test]
fn gradients_of_two_shapes_are_not_added_up() {
    let add = |second: RowSparseView<'_, f32>| {
        let gradient = RowSparse::new([4, 1], vec![2], vec![1.0f32]).unwrap();
        let mut sum = LeafSum::new();
        sum.add(0, gradient.view(), 1.0).unwrap();
        match sum.add(1, second, 1.0) {
            Err(StoreError::LeafShape { leaf: 1, expected, found }) => {
                assert_eq!(expected, "row_sparse[4, 1]");
                found
            }
            other => panic!("{other:?}"),
        }
    };
    let wide = RowSparse::new([4, 2], vec![1], vec![1.0, 2.0]).unwrap();
    let long = RowSparse::new([5, 1], vec![4], vec![1.0]).unwrap();
    assert_eq!(add(wide.view()), "row_sparse[4, 2]");
    assert_eq!(add(long.view()), "row_sparse[5, 1]");
    assert_eq!(add(RowSparseView::all([4, 1], &[1.0; 4]).unwrap()), "dense[4, 1]");
}

#[test]
fn parts_that_there_are_not_are_empty() {
    let leaves = Leaves::new(8).unwrap();
    for (rank, size) in [(3, 3), (usize::MAX, 3), (0, 0), (usize::MAX, 0), (1, 1)] {
        let own = leaves.of_worker(rank, size);
        assert!(own.end <= 8 && (own.is_empty() || (rank, size) == (0, 0)), "{rank}: {own:?}");
    }
    for leaf in [8, usize::MAX] {
        assert!(leaves.rows_of(leaf, 5).is_empty());
    }
    assert_eq!(leaves.rows_of(7, usize::MAX).end, usize::MAX);
}

#[test]
fn the_leaf_of_a_row_is_the_one_whose_rows_have_it() {
    for count in [1, 2, 8, 64] {
        let leaves = Leaves::new(count).unwrap();
        for n_rows in [1, 3, 7, 8, 9, 64, 100] {
            for row in 0..n_rows {
                let leaf = leaves.of_row(row, n_rows);
                assert!(leaves.rows_of(leaf, n_rows).contains(&row), "{row} of {n_rows}, {count}");
            }
        }
    }
    let most = Leaves::new(1 << 31).unwrap();
    assert_eq!(most.of_row(2, 3), (1 << 31) - 1);
}
